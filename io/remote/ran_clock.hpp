// Time that a process ran: what it was stopped for (a debugger, docker pause, a suspended job) is nobody's silence.
#pragma once

#include "base/clock.hpp"

#include <algorithm>
#include <atomic>
#include <cstdint>

namespace leat::io {

/// Whoever waits for a deadline asks twenty times a second: a much longer gap is time that nobody ran. Thread: any.
class ran_clock {
 public:
  /// Who waits for a server looks every 50 ms at the most: a longer gap is a machine that has no time for this thread.
  static constexpr std::uint64_t gap_max_ns = 250'000'000;

  ///   now_ns   of a clock that never stops
  std::uint64_t tell(std::uint64_t now_ns) noexcept {
    // A thread that was held up on its way here tells a time that others have passed: the clock does not go back, or it would count that twice.
    std::uint64_t before = last_ns_.load(std::memory_order_relaxed);
    while (before < now_ns && !last_ns_.compare_exchange_weak(before, now_ns, std::memory_order_relaxed)) {
    }
    const std::uint64_t gap = before == 0 || now_ns < before ? 0 : std::min(now_ns - before, gap_max_ns);
    return ran_ns_.fetch_add(gap, std::memory_order_relaxed) + gap;
  }

 private:
  std::atomic<std::uint64_t> last_ns_{0};
  std::atomic<std::uint64_t> ran_ns_{1};
};

/// This process's. Never 0.
[[nodiscard]] inline std::uint64_t ran_ns() noexcept {
  static ran_clock clock;
  return clock.tell(now_ns());
}

}  // namespace leat::io
