// The file of a state that is written after each batch.
#pragma once

#include <leat/loader_state.hpp>

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

namespace leat::stages {

/// Written whole the first time, as loader_state::save() does. After that only numbers change: the core, 256 bytes at the beginning of
/// the file, is written in place by one call. It lies in one page and in one sector, so that a kill and a loss of power leave the old
/// numbers or the new ones. A file that is replaced for each batch takes ten times as long on ext4, which begins to write it
/// to the disk at each rename, and may be empty after a loss of power elsewhere.
///
/// The file is locked from claim() or the first write() on (where the file system has locks): two processes do not write one state.
/// A link is followed: what it names is written, and it stays a link.
///
/// Thread: one at a time.
class state_file {
 public:
  ///   path   empty: never written to
  explicit state_file(const std::filesystem::path& path);
  state_file(state_file&& other) noexcept;
  state_file& operator=(state_file&&) = delete;
  ~state_file();

  /// Locks the file, if there is one, and sees whether one can be made beside it: before anything that belongs to the run is touched.
  ///   throws   as loader_state::save()
  void claim();
  /// In the kernel's hands when it returns: it survives this process. Where the file is another one than was written last (removed,
  /// replaced), it is written whole again.
  ///   throws   as loader_state::save()
  void write(const loader_state& state);
  /// What was written is on the disk when it returns.
  void sync();

 private:
  [[nodiscard]] bool is_still_there() const noexcept;
  void lock_it();
  void close() noexcept;

  std::string path_;
  int fd_ = -1;
  std::vector<std::byte> text_;  // what the file has behind the core
};

/// The error for a state that could not be written.
[[noreturn]] void fail_to_save(const std::string& path, int failure);

}  // namespace leat::stages
