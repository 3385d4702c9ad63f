// A folder that is there whole or not at all: it grows under a temporary name beside its own, and takes its own when it is done.
#pragma once

#include <string>

namespace leat {

/// .NAME.partial beside NAME, locked, as unfinished_file has it: what a killed process left behind is emptied and used again, what another
/// one is writing is not. All functions return 0 or the errno, so that each user has words of its own.
///
/// Thread: one at a time.
class unfinished_folder {
 public:
  ///   path   slashes at its end are left out
  explicit unfinished_folder(std::string path);
  unfinished_folder(const unfinished_folder&) = delete;
  unfinished_folder& operator=(const unfinished_folder&) = delete;
  /// Unless it was finished: removes it with all that is in it.
  ~unfinished_folder() { remove(); }

  /// Takes the temporary name. EWOULDBLOCK: another process has it. ENOTDIR: something else has it.
  [[nodiscard]] int open();
  /// All that was written is on the disk, with what else its file system has not written yet.
  [[nodiscard]] int sync() noexcept;
  /// Takes its name, also in the place of an empty folder. ENOTEMPTY or EEXIST: there is one that is not empty. ENOTDIR: what is there is no
  /// folder.
  [[nodiscard]] int take_name() noexcept;
  void remove() noexcept;

  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  [[nodiscard]] const std::string& temporary() const noexcept { return temporary_; }

 private:
  std::string path_;
  std::string temporary_;
  int fd_ = -1;
};

}  // namespace leat
