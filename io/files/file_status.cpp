#include "io/files/file_status.hpp"

#include <sys/stat.h>
#include <sys/syscall.h>

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <utility>

namespace leat::io {

std::uint64_t file_status::version() const noexcept {
  // splitmix64's finaliser over the parts, each step a bijection: no two of them cancel out.
  const auto mix = [](std::uint64_t x) {
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9U;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBU;
    return x ^ (x >> 31);
  };
  std::uint64_t value = mix(static_cast<std::uint64_t>(write_time.seconds));
  value = mix(value ^ write_time.nanoseconds);
  value = mix(value ^ size_bytes);
  return mix(value ^ inode);
}

int look_at(const char* path, file_status& out) noexcept {
  const long result = ::syscall(SYS_statx, AT_FDCWD, path, AT_STATX_SYNC_AS_STAT,
                                file_status::mask_basic | file_status::mask_direct, &out);
  return result == 0 ? 0 : errno;
}

namespace {
constexpr int open_tries_max = 16;
}

int open_to_read(const char* path, int flags) noexcept {
  constexpr int always = O_RDONLY | O_CLOEXEC | O_NOCTTY;
  struct stat status{};
  int wait = O_NONBLOCK;
  for (int tries = 1;; ++tries) {
    const int descriptor = ::open(path, always | wait | flags);
    if (descriptor < 0) {
      if (errno == EINTR && tries < open_tries_max) continue;
      const int failure = errno;
      // A process holds a lease on the file (fcntl(2)), so it is a regular one. A blocking open notifies that process and waits.
      if (failure == EAGAIN && std::exchange(wait, 0) != 0) continue;
      // A socket has no open(2), and a pipe no O_DIRECT.
      if ((failure == ENXIO || failure == EINVAL) && ::stat(path, &status) == 0 && !has_offsets(status.st_mode)) {
        return -ESPIPE;
      }
      return -failure;
    }
    const int failure = ::fstat(descriptor, &status) != 0 ? errno : has_offsets(status.st_mode) ? 0 : ESPIPE;
    if (failure != 0) {
      ::close(descriptor);
      return -failure;
    }
    // Some file systems look at O_NONBLOCK in each read.
    if (wait != 0) static_cast<void>(::fcntl(descriptor, F_SETFL, flags));
    return descriptor;
  }
}

std::string file_system_of(std::uint32_t device_major, std::uint32_t device_minor) {
  // "36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw", proc(5)
  std::ifstream mounts("/proc/self/mountinfo");
  std::string line;
  std::string found;
  while (std::getline(mounts, line)) {
    unsigned major = 0;
    unsigned minor = 0;
    if (std::sscanf(line.c_str(), "%*d %*d %u:%u", &major, &minor) != 2) continue;
    if (major != device_major || minor != device_minor) continue;
    const std::size_t dash = line.find(" - ");
    if (dash == std::string::npos) continue;
    const std::size_t end = line.find(' ', dash + 3);
    found = line.substr(dash + 3, end - dash - 3);
    break;
  }
  return found;
}

bool is_made_up(std::string_view file_system) noexcept {
  // filesystems(5) marks these "nodev", and with them tmpfs, overlay, NFS and FUSE, where data may well be.
  constexpr std::string_view made_up[] = {"binfmt_misc", "bpf",       "cgroup",   "cgroup2",  "configfs",
                                          "debugfs",     "devpts",    "devtmpfs", "efivarfs", "fusectl",
                                          "mqueue",      "nsfs",      "proc",     "pstore",   "rpc_pipefs",
                                          "securityfs",  "selinuxfs", "sysfs",    "tracefs"};
  return std::find(std::begin(made_up), std::end(made_up), file_system) != std::end(made_up);
}

}  // namespace leat::io
