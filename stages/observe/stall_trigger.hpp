// When a stall of the trainer is worth a file: each long wait once, while there may be more files.
#pragma once

#include <cstdint>

namespace leat::stages {

/// Looks at what a delivery counts now and then, and says when a file is due: once a wait that was too long has ended, so that what held
/// it up is in the timeline; or while it lasts, once it is ten times too long. Thread: one.
class stall_trigger {
 public:
  stall_trigger(std::uint64_t patience_ns, std::uint32_t files_max) noexcept
      : patience_ns_(patience_ns), files_left_(files_max) {}

  ///   long_waits   waits longer than the patience that have ended, in all
  ///   waiting_ns   that the trainer waits by now
  [[nodiscard]] bool is_due(std::uint64_t long_waits, std::uint64_t waiting_ns) noexcept {
    bool due = false;
    if (long_waits > seen_) {
      // Of the first of them there may be a file already.
      due = long_waits - seen_ > (told_while_it_lasts_ ? 1 : 0);
      told_while_it_lasts_ = false;
      seen_ = long_waits;
    }
    if (waiting_ns > 10 * patience_ns_ && !told_while_it_lasts_) due = told_while_it_lasts_ = true;
    if (!due || files_left_ == 0) return false;
    --files_left_;
    return true;
  }

 private:
  const std::uint64_t patience_ns_;
  std::uint32_t files_left_;
  std::uint64_t seen_ = 0;
  bool told_while_it_lasts_ = false;
};

}  // namespace leat::stages
