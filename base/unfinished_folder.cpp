#include "base/unfinished_folder.hpp"

#include "base/unfinished_file.hpp"

#include <sys/file.h>
#include <sys/stat.h>

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>
#include <utility>

namespace leat {

unfinished_folder::unfinished_folder(std::string path) : path_(std::move(path)) {
  while (path_.size() > 1 && path_.ends_with('/')) path_.pop_back();
  const std::size_t name = path_.rfind('/') + 1;  // npos + 1 is 0.
  temporary_ = path_.substr(0, name) + "." + path_.substr(name) + ".partial";
}

int unfinished_folder::open() {
  while (fd_ < 0) {
    if (::mkdir(temporary_.c_str(), 0777) != 0 && errno != EEXIST) return errno;
    // Not through a link.
    const int fd = ::open(temporary_.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) {
      if (errno == ENOENT) continue;  // Its owner finished it in between.
      return errno;
    }
    // Where a file system has no locks nobody is kept out.
    if (::flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
      ::close(fd);
      return EWOULDBLOCK;
    }
    struct stat mine{};
    struct stat named{};
    // Between opening and locking, its owner may have finished it: then this is the finished folder, not to be touched.
    if (::fstat(fd, &mine) == 0 && ::lstat(temporary_.c_str(), &named) == 0 && mine.st_ino == named.st_ino &&
        mine.st_dev == named.st_dev) {
      fd_ = fd;
    } else {
      ::close(fd);
    }
  }
  std::error_code failure;
  for (std::filesystem::directory_iterator each(temporary_, failure), end; !failure && each != end;
       each.increment(failure)) {
    std::filesystem::remove_all(each->path(), failure);
    if (failure) break;
  }
  if (!failure) return 0;
  ::close(std::exchange(fd_, -1));
  return failure.value();
}

int unfinished_folder::sync() noexcept { return ::syncfs(fd_) == 0 ? 0 : errno; }

int unfinished_folder::take_name() noexcept {
  // Of folders rename(2) replaces only an empty one.
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) return errno;
  ::close(std::exchange(fd_, -1));
  return sync_folder_of(path_);
}

void unfinished_folder::remove() noexcept {
  if (fd_ < 0) return;
  std::error_code ignored;
  std::filesystem::remove_all(temporary_,
                              ignored);  // Before the lock goes: the next one to lock it finds a folder of its own.
  ::close(std::exchange(fd_, -1));
}

}  // namespace leat
