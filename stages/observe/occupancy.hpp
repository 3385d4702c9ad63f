// How many are somewhere, over time.
#pragma once

#include "base/clock.hpp"

#include <algorithm>
#include <atomic>
#include <cstdint>

namespace leat::stages {

/// Counts who comes and goes, and the sum of their stays: that over a time is how many there were in the mean. Thread: any, and no lock,
/// since a batch may end in a child of fork().
class occupancy {
 public:
  void add(std::uint64_t now_ns) noexcept {
    count_.fetch_add(1, std::memory_order_relaxed);
    both_.fetch_add(one + ticks(now_ns), std::memory_order_relaxed);
  }
  void remove(std::uint64_t now_ns) noexcept {
    count_.fetch_sub(1, std::memory_order_relaxed);
    both_.fetch_sub(one + ticks(now_ns), std::memory_order_relaxed);
  }

  [[nodiscard]] std::uint64_t count() const noexcept {
    return static_cast<std::uint64_t>(std::max<std::int64_t>(count_.load(std::memory_order_relaxed), 0));
  }
  /// Of all stays so far, also of those that have not ended. What is short of 16 us may count or not.
  [[nodiscard]] std::uint64_t stays_ns(std::uint64_t now_ns) const noexcept {
    const std::uint64_t both = both_.load(std::memory_order_relaxed);
    // The low bits are a sum with a sign; what it has borrowed from the count goes back.
    const std::int64_t sum = static_cast<std::int64_t>(both << (64 - count_shift)) >> (64 - count_shift);
    const std::int64_t here = static_cast<std::int64_t>(both - static_cast<std::uint64_t>(sum)) >> count_shift;
    const std::int64_t stays = here * static_cast<std::int64_t>(ticks(now_ns)) - sum;
    return static_cast<std::uint64_t>(std::max<std::int64_t>(stays, 0)) << tick_shift;
  }

 private:
  static constexpr unsigned tick_shift = 14;   // 16 us
  static constexpr unsigned count_shift = 48;  // the sum of 1,000 stays at a time has room for 26 days
  static constexpr std::uint64_t one = std::uint64_t{1} << count_shift;
  [[nodiscard]] std::uint64_t ticks(std::uint64_t ns) const noexcept {
    return (std::max(ns, began_ns_) - began_ns_) >> tick_shift;
  }

  const std::uint64_t began_ns_ = now_ns();
  std::atomic<std::int64_t> count_{0};
  // How many there are, and the sum of the times at which they came less those at which others left: one number, so that both are of
  // the same moment.
  std::atomic<std::uint64_t> both_{0};
};

/// One that is there as long as this is.
class staying {
 public:
  explicit staying(occupancy& among) noexcept : among_(among) { among_.add(now_ns()); }
  staying(const staying&) = delete;
  staying& operator=(const staying&) = delete;
  ~staying() { among_.remove(now_ns()); }

 private:
  occupancy& among_;
};

}  // namespace leat::stages
