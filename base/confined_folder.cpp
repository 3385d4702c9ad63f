#include "base/confined_folder.hpp"

#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <filesystem>
#include <string>
#include <system_error>

namespace leat {
namespace {

constexpr int folder_flags = O_PATH | O_DIRECTORY | O_CLOEXEC;

// The descriptor, or the errno, negative.
int open_beneath(int folder, const char* path) noexcept {
  open_how how{};
  how.flags = folder_flags;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS;
  long opened = -1;
  do {  // EAGAIN: something was renamed meanwhile.
    opened = ::syscall(SYS_openat2, folder, path, &how, sizeof how);
  } while (opened < 0 && (errno == EAGAIN || errno == EINTR));
  return opened < 0 ? -errno : static_cast<int>(opened);
}

// What lies in a folder itself, and is no link.
int open_in(int folder, const char* name) noexcept {
  const int opened = ::openat(folder, name, folder_flags | O_NOFOLLOW);
  if (opened >= 0) return opened;
  const int failure = errno;
  struct stat there{};
  const bool is_link = ::fstatat(folder, name, &there, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(there.st_mode);
  return is_link ? -ELOOP : -failure;
}

}  // namespace

int confined_folder::open(const std::string& path) {
  std::error_code failed;
  std::filesystem::create_directories(path, failed);
  if (failed) return failed.value();
  const int opened = ::open(path.c_str(), folder_flags);
  if (opened < 0) return errno;
  folder_.emplace(opened);
  return 0;
}

int confined_folder::open_below(const std::string& path) const {
  bool follows = follows_;
  if (follows) {
    const int found = open_beneath(folder_->get(), path.empty() ? "." : path.c_str());
    if (found >= 0) return found;
    // Linux 5.6 has it; a sandbox may forbid it.
    follows = found != -ENOSYS && found != -EPERM;
    if (follows && found != -ENOENT) return found;
  }
  int at = ::openat(folder_->get(), ".", folder_flags);
  if (at < 0) return -errno;
  for (std::size_t begin = 0, end = 0; end < path.size(); begin = end + 1) {
    end = std::min(path.find('/', begin), path.size());
    descriptor parent(at);
    const std::string name = path.substr(begin, end - begin);
    if (name.empty()) {
      at = parent.release();
      continue;
    }
    const auto look = [&] {
      return follows ? open_beneath(folder_->get(), path.substr(0, end).c_str()) : open_in(parent.get(), name.c_str());
    };
    at = look();
    if (at == -ENOENT) at = ::mkdirat(parent.get(), name.c_str(), 0777) == 0 || errno == EEXIST ? look() : -errno;
    if (at < 0) return at;
  }
  return at;
}

}  // namespace leat
