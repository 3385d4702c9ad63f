// A file that is there whole or not at all: it grows under a temporary name beside its own, and takes its own when it is done.
#pragma once

#include <fcntl.h>

#include <cstddef>
#include <span>
#include <string>

namespace leat {

/// Gives a file another name; with `replace` in the place of what has that name. Returns 0 or the errno: EEXIST where nothing may be
/// replaced. Where a file system cannot promise that (EINVAL, ENOSYS of renameat2), it is looked at first, and another process that
/// is as fast may be overwritten.
///   folder   as unfinished_file has it
[[nodiscard]] int rename_file(const std::string& from, const std::string& to, bool replace,
                              int folder = AT_FDCWD) noexcept;

/// Makes the names in the folder of `path` durable. Returns 0 or the errno; file systems that have no such call (EINVAL) order their
/// names themselves.
[[nodiscard]] int sync_folder_of(const std::string& path) noexcept;

/// .NAME.partial beside NAME, locked: what a killed process left behind is used again, what another one is writing is not
/// (where the file system has locks). All
/// functions return 0 or the errno, so that each user has words of its own.
///
/// Thread: one at a time.
class unfinished_file {
 public:
  ///   folder   an open one that a relative path begins in, and that outlives this
  explicit unfinished_file(std::string path, int folder = AT_FDCWD);
  unfinished_file(const unfinished_file&) = delete;
  unfinished_file& operator=(const unfinished_file&) = delete;
  /// Unless it was finished: removes it.
  ~unfinished_file() { remove(); }

  /// Takes the temporary name, and empties what is there. EWOULDBLOCK: another process has it.
  [[nodiscard]] int open() noexcept;
  /// All bytes, behind those before.
  [[nodiscard]] int write(std::span<const std::byte> bytes) noexcept;
  /// On the disk.
  [[nodiscard]] int sync() noexcept;
  /// Takes its name. As rename_file().
  [[nodiscard]] int take_name(bool replace) noexcept;
  void remove() noexcept;

  [[nodiscard]] int descriptor() const noexcept { return fd_; }
  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  [[nodiscard]] const std::string& temporary() const noexcept { return temporary_; }

 private:
  const int folder_;
  std::string path_;
  std::string temporary_;
  int fd_ = -1;
};

/// Writes all of a file, which then is there whole or not at all. A device or a pipe that is there is written to: a rename would put a
/// file in its place. Returns 0 or the errno; ENXIO of a pipe that nobody reads.
[[nodiscard]] int write_whole(const std::string& path, std::span<const std::byte> bytes);
/// Whether write_whole() can begin. Returns 0 or the errno; leaves nothing behind.
[[nodiscard]] int can_write_whole(const std::string& path);

/// The folder that a path lies in: ".", "/", or what stands before the last slash.
[[nodiscard]] std::string folder_of(const std::string& path);

}  // namespace leat
