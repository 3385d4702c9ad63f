// How far a run has got: what next() has handed out, in the order of the run. A run that is resumed goes on from here.
#pragma once

#include <leat/digest.hpp>
#include <leat/loader_state.hpp>

#include <cstdint>
#include <optional>

namespace leat::stages {

/// epoch, batch    what comes next. `batch` may be the number of batches of the epoch: its end comes next
/// counted         since the beginning of the run
/// run             the chain over their digests; unset where they have none, or where it is not known
/// journal_bytes   of the journal, with the lines of all of them
struct run_progress {
  std::uint32_t epoch = 0;
  std::uint64_t batch = 0;
  state_counters counted = {};
  std::optional<digest> run = {};
  std::uint64_t journal_bytes = 0;

  /// The next epoch has begun, or is about to.
  void begin_epoch(std::uint32_t next) noexcept {
    epoch = next;
    batch = 0;
    counted.epoch_corrupt = counted.epoch_unreadable = 0;
  }
  friend bool operator==(const run_progress&, const run_progress&) = default;
};

}  // namespace leat::stages
