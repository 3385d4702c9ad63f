// How far a run has got: what next() has handed out, in the order of the run. A run that is resumed goes on from here.
#pragma once

#include <leat/batch.hpp>

#include <cstdint>
#include <optional>

namespace leat::stages {

/// What corrupt_watch has counted.
///   corrupt, unreadable   in the epoch that has begun
///   planned, delivered    samples of the whole run
///   corrupt_in_all        likewise
struct corrupt_counts {
  std::uint64_t corrupt = 0;
  std::uint64_t unreadable = 0;
  std::uint64_t planned = 0;
  std::uint64_t delivered = 0;
  std::uint64_t corrupt_in_all = 0;

  friend bool operator==(const corrupt_counts&, const corrupt_counts&) = default;
};

/// epoch, batch    what comes next. `batch` may be the number of batches of the epoch: its end comes next
/// batches         handed out since the beginning of the run
/// run             the chain over their digests; unset where they have none, or where it is not known
/// journal_bytes   of the journal, with the lines of all of them
struct run_progress {
  std::uint32_t epoch = 0;
  std::uint64_t batch = 0;
  std::uint64_t batches = 0;
  corrupt_counts corrupt;
  std::optional<digest> run;
  std::uint64_t journal_bytes = 0;

  /// The next epoch has begun, or is about to.
  void begin_epoch(std::uint32_t next) noexcept {
    epoch = next;
    batch = 0;
    corrupt.corrupt = corrupt.unreadable = 0;
  }
  friend bool operator==(const run_progress&, const run_progress&) = default;
};

}  // namespace leat::stages
