// A regular file that nobody can open for a while: what a dead mount does, without a mount.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>

namespace leat::testing {

/// A write lease on a file (fcntl(2), F_SETLEASE): whoever opens it is held in open(2) until the lease ends, at the
/// latest after /proc/sys/fs/lease-break-time (45 s). stat(2) is not held.
class held_file {
 public:
  explicit held_file(const std::filesystem::path& path) : descriptor_(::open(path.c_str(), O_RDWR | O_CLOEXEC)) {
    // Somebody waits at the door: by default that is told with SIGIO, which would end us.
    if (descriptor_ >= 0) static_cast<void>(::fcntl(descriptor_, F_SETSIG, SIGURG));
    held_ = descriptor_ >= 0 && ::fcntl(descriptor_, F_SETLEASE, F_WRLCK) == 0;
  }
  held_file(const held_file&) = delete;
  held_file& operator=(const held_file&) = delete;
  ~held_file() {
    let_go();
    if (descriptor_ >= 0) ::close(descriptor_);
  }

  /// False where the file system has no leases: then the test has nothing to test.
  [[nodiscard]] bool held() const noexcept { return held_; }
  /// Whether somebody is being held.
  [[nodiscard]] bool somebody_waits() const noexcept { return held_ && ::fcntl(descriptor_, F_GETLEASE) != F_WRLCK; }
  void let_go() noexcept {
    if (held_) static_cast<void>(::fcntl(descriptor_, F_SETLEASE, F_UNLCK));
    held_ = false;
  }

 private:
  int descriptor_ = -1;
  bool held_ = false;
};

}  // namespace leat::testing
