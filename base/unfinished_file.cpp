#include "base/unfinished_file.hpp"

#include "base/descriptor.hpp"
#include "base/replaced_place.hpp"

#include <sys/file.h>
#include <sys/stat.h>

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <utility>

namespace leat {
namespace {

int write_all(int fd, std::span<const std::byte> bytes) noexcept {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd, bytes.data(), bytes.size());
    if (written >= 0) {
      bytes = bytes.subspan(static_cast<std::size_t>(written));
    } else if (errno != EINTR) {
      return errno;
    }
  }
  return 0;
}

}  // namespace

std::string folder_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
}

int rename_file(const std::string& from, const std::string& to, bool replace, int folder) noexcept {
  if (!replace) {
    // Looking first and renaming then would lose a file that another process finishes in between.
    if (::renameat2(folder, from.c_str(), folder, to.c_str(), RENAME_NOREPLACE) == 0) return 0;
    if (errno != EINVAL && errno != ENOSYS) return errno;
    struct stat there{};
    if (::fstatat(folder, to.c_str(), &there, AT_SYMLINK_NOFOLLOW) == 0) return EEXIST;
  }
  return ::renameat(folder, from.c_str(), folder, to.c_str()) == 0 ? 0 : errno;
}

int sync_folder_of(const std::string& path) noexcept {
  const int folder = ::open(folder_of(path).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return errno;
  const int failure = ::fsync(folder) != 0 && errno != EINVAL ? errno : 0;
  ::close(folder);
  return failure;
}

unfinished_file::unfinished_file(std::string path, int folder) : folder_(folder), path_(std::move(path)) {
  const std::size_t name = path_.rfind('/') + 1;  // npos + 1 is 0.
  temporary_ = path_.substr(0, name) + "." + path_.substr(name) + ".partial";
}

int unfinished_file::open() noexcept {
  while (fd_ < 0) {
    // Not through a link, nor waiting for the other end of a pipe.
    const int fd =
        ::openat(folder_, temporary_.c_str(), O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0666);
    if (fd < 0) return errno;
    // Where a file system has no locks (Lustre without -o flock: ENOSYS) nobody is kept out.
    if (::flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
      ::close(fd);
      return EWOULDBLOCK;
    }
    struct stat mine{};
    struct stat named{};
    // Between opening and locking, its owner may have finished it: then this is the finished file, not to be touched.
    if (::fstat(fd, &mine) == 0 && ::fstatat(folder_, temporary_.c_str(), &named, 0) == 0 &&
        mine.st_ino == named.st_ino && mine.st_dev == named.st_dev) {
      fd_ = fd;
      if (mine.st_size == 0) return 0;
    } else {
      ::close(fd);
    }
  }
  if (::ftruncate(fd_, 0) == 0) return 0;
  const int failure = errno;
  remove();
  return failure;
}

int unfinished_file::write(std::span<const std::byte> bytes) noexcept { return write_all(fd_, bytes); }

int unfinished_file::sync() noexcept { return ::fsync(fd_) == 0 ? 0 : errno; }

int unfinished_file::take_name(bool replace) noexcept {
  if (const int failure = rename_file(temporary_, path_, replace, folder_); failure != 0) return failure;
  // A file system may keep what it refuses until here (quota, NFS): it has its name then, and the caller says what is wrong with it.
  return ::close(std::exchange(fd_, -1)) == 0 ? 0 : errno;
}

void unfinished_file::remove() noexcept {
  if (fd_ < 0) return;
  ::unlinkat(folder_, temporary_.c_str(), 0);  // Before the lock goes: the next one to lock it finds a file of its own.
  ::close(std::exchange(fd_, -1));
}

int write_whole(const std::string& path, std::span<const std::byte> bytes) {
  const std::optional<std::string> place = replaced_place(path);
  if (!place) {
    // Without waiting for a reader, and then for as long as one takes.
    const descriptor there(::open(path.c_str(), O_WRONLY | O_TRUNC | O_NONBLOCK | O_CLOEXEC));
    if (there.get() < 0 || ::fcntl(there.get(), F_SETFL, 0) != 0) return errno;
    return write_all(there.get(), bytes);
  }
  unfinished_file begun(*place);
  int failure = begun.open();
  if (failure == 0) failure = begun.write(bytes);
  if (failure == 0) failure = begun.take_name(true);
  return failure;
}

int can_write_whole(const std::string& path) {
  // Not opened: who reads a pipe would take it for its end.
  const std::optional<std::string> place = replaced_place(path);
  if (!place) return can_write_in_place(path);
  unfinished_file begun(*place);
  return begun.open();
}

}  // namespace leat
