// Whether files are read with O_DIRECT: what was asked for, what an epoch needs, and what each file system turned out
// to be able to do.
#pragma once

#include "base/memory_available.hpp"
#include "base/mutex.hpp"
#include "io/files/file_status.hpp"

#include <leat/reader.hpp>
#include <leat/stats.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace leat::io {

/// One for all I/O threads. Thread: any.
class direct_policy {
 public:
  explicit direct_policy(choice asked);

  /// Automatic chooses: buffered when `bytes` fit in half of the memory available, for then the second epoch comes from
  /// the page cache, twice as fast as the disk; else O_DIRECT, at a thirteenth of the CPU.
  void set_epoch_bytes(std::uint64_t bytes, const memory_available& memory = find_memory_available());

  [[nodiscard]] bool wants_direct() const;
  /// direct = on: a file that cannot do it is an error.
  [[nodiscard]] bool insists() const noexcept { return asked_ == choice::on; }

  /// What became of a directory's files, for the report.
  void note_direct();
  void note_buffered(std::string_view path, const std::string& why);

  [[nodiscard]] fallback report() const;

 private:
  const choice asked_;
  mutable mutex mutex_;
  bool wanted_ ABSL_GUARDED_BY(mutex_);
  std::string why_ ABSL_GUARDED_BY(mutex_);
  std::uint64_t directories_direct_ ABSL_GUARDED_BY(mutex_) = 0;
  std::uint64_t directories_buffered_ ABSL_GUARDED_BY(mutex_) = 0;
  std::string first_buffered_ ABSL_GUARDED_BY(mutex_);
};

/// How a file is opened and read.
///   alignment   in bytes: reads begin and end on multiples of it; 1 for buffered ones
struct file_mode {
  bool direct = false;
  std::uint32_t alignment = 1;
};

/// What was found out about the directories of one source. A directory's files nearly always lie on one file system;
/// where a symbolic link leads elsewhere, a refused read corrects us. Where direct was insisted on that is not enough: some
/// file systems take O_DIRECT and read from memory, so each file is looked at. Thread: any.
class file_modes {
 public:
  explicit file_modes(direct_policy& policy) : policy_(policy) {}

  /// nullopt: look at a file of the directory, and learn; or look at each file and go by mode_of().
  [[nodiscard]] std::optional<file_mode> known(std::uint32_t directory) const;

  /// Whether each file is looked at before it is opened, and not only the first of its directory.
  [[nodiscard]] bool each_file() const noexcept { return policy_.insists(); }

  /// Takes note of a file's status; nullptr if it could not be had. Returns an errno where O_DIRECT was insisted on and
  /// there is none for this file: EOPNOTSUPP.
  [[nodiscard]] int learn(std::uint32_t directory, std::string_view path, const file_status* status);

  /// A file there refused O_DIRECT. True if it shall be read buffered from now on, false where direct was insisted on.
  [[nodiscard]] bool refused(std::uint32_t directory, std::string_view path, int failure);

  /// For a file of known status.
  [[nodiscard]] file_mode mode_of(const file_status& status) const;
  /// Whether a file of this status cannot be read as it was insisted on: EOPNOTSUPP, else 0.
  [[nodiscard]] int failure_of(const file_status& status) const;

 private:
  enum class state : std::uint8_t { unknown, direct, buffered };
  struct entry {
    state now = state::unknown;
    std::uint8_t alignment_log2 = 0;
  };

  [[nodiscard]] std::string why_not_direct(const file_status& status) const;

  direct_policy& policy_;
  mutable mutex mutex_;
  std::vector<entry> directories_ ABSL_GUARDED_BY(mutex_);
  // The file system of the device asked for last: looking it up takes 50 us and more.
  mutable std::uint64_t device_ ABSL_GUARDED_BY(mutex_) = ~std::uint64_t{0};
  mutable std::string type_of_device_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace leat::io
