// What ends the work on a batch early, for all who work on batches.
#pragma once

#include <atomic>
#include <cstdint>

namespace leat::stages {

/// Thread: any.
class run_flags {
 public:
  /// Nothing is delivered any more: the run has failed, or was stopped.
  void stop() noexcept { stopping_.store(true, std::memory_order_relaxed); }
  [[nodiscard]] bool stopping() const noexcept { return stopping_.load(std::memory_order_relaxed); }
  /// The same for decoders, which look at it within a row.
  [[nodiscard]] const std::atomic<bool>& stopping_flag() const noexcept { return stopping_; }

  /// Whatever is left of the epochs before this one is dropped.
  void skip_before(std::uint32_t epoch) noexcept { skip_before_.store(epoch, std::memory_order_relaxed); }
  [[nodiscard]] bool is_skipped(std::uint32_t epoch) const noexcept {
    return epoch < skip_before_.load(std::memory_order_relaxed);
  }

 private:
  std::atomic<bool> stopping_{false};
  std::atomic<std::uint32_t> skip_before_{0};
};

}  // namespace leat::stages
