// How long things take: counts of durations in classes that are narrow everywhere.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace leat::async {

/// A histogram of nanoseconds in log-linear classes, as HdrHistogram's: 32 to each power of two, so a percentile is off
/// by at most 1/64 (1.6 %) of its value; below 32 ns, and the maximum, exact. Up to 2^42 ns (73 minutes); longer counts
/// as the last class. 9.5 KiB, no allocation.
///
///   threads   record() and the readers from any thread, with relaxed atomics: a reader may see some of the recordings
///             made while it reads and not others, and none is lost. Where one thread alone records, record_alone() needs no
///             locked instruction
class histogram {
 public:
  void record(std::uint64_t ns) noexcept {
    counts_[class_of(ns)].fetch_add(1, std::memory_order_relaxed);
    sum_ns_.fetch_add(ns, std::memory_order_relaxed);
    std::uint64_t highest = max_ns_.load(std::memory_order_relaxed);
    while (ns > highest && !max_ns_.compare_exchange_weak(highest, ns, std::memory_order_relaxed)) {
    }
  }

  void record_alone(std::uint64_t ns) noexcept {
    const auto set = [](std::atomic<std::uint64_t>& value, std::uint64_t to) {
      value.store(to, std::memory_order_relaxed);
    };
    std::atomic<std::uint64_t>& count = counts_[class_of(ns)];
    set(count, count.load(std::memory_order_relaxed) + 1);
    set(sum_ns_, sum_ns_.load(std::memory_order_relaxed) + ns);
    if (ns > max_ns_.load(std::memory_order_relaxed)) set(max_ns_, ns);
  }

  /// Powers of four, where classes end: what lies below each is counted exactly.
  static constexpr std::array<std::uint64_t, 12> bounds_ns = [] {
    std::array<std::uint64_t, 12> bounds{};
    for (std::size_t i = 0; i < bounds.size(); ++i) bounds[i] = std::uint64_t{1} << (12 + 2 * i);
    return bounds;
  }();

  struct summary {
    std::uint64_t count = 0;
    std::uint64_t sum_ns = 0;
    std::uint64_t p50_ns = 0;
    std::uint64_t p90_ns = 0;
    std::uint64_t p99_ns = 0;
    std::uint64_t p999_ns = 0;
    std::uint64_t max_ns = 0;
    std::array<std::uint64_t, bounds_ns.size() + 1> between = {};  ///< below each of bounds_ns, and beyond all of them
  };

  [[nodiscard]] std::uint64_t sum_ns() const noexcept { return sum_ns_.load(std::memory_order_relaxed); }

  /// Everything at once; all zero where nothing was recorded.
  [[nodiscard]] summary summarize() const noexcept;

  /// The duration that a share `quantile` (0..1) of the recordings did not exceed.
  [[nodiscard]] std::uint64_t quantile_ns(double quantile) const noexcept;

  void reset() noexcept;

 private:
  static constexpr unsigned linear_bits = 5;  // 32 classes per power of two
  static constexpr unsigned value_bits = 42;
  static constexpr std::size_t class_count = std::size_t{value_bits - linear_bits + 1} << linear_bits;
  using snapshot = std::array<std::uint64_t, class_count>;

  [[nodiscard]] static std::size_t class_of(std::uint64_t ns) noexcept {
    if (ns >> value_bits != 0) return class_count - 1;
    if (ns >> linear_bits == 0) return static_cast<std::size_t>(ns);
    // The power of two gives the group, the five bits below the leading one the class in it.
    const auto shift = static_cast<unsigned>(std::bit_width(ns)) - linear_bits - 1;
    return (std::size_t{shift} << linear_bits) + static_cast<std::size_t>(ns >> shift);
  }
  /// The middle of a class.
  [[nodiscard]] static std::uint64_t value_of(std::size_t index) noexcept;
  friend class histogram_sum;

  std::array<std::atomic<std::uint64_t>, class_count> counts_{};
  std::atomic<std::uint64_t> sum_ns_{0};
  std::atomic<std::uint64_t> max_ns_{0};
};

/// Several histograms as one: those of several threads, summed when somebody asks.
class histogram_sum {
 public:
  void add(const histogram& part) noexcept;
  [[nodiscard]] std::uint64_t count() const noexcept;
  [[nodiscard]] std::uint64_t sum_ns() const noexcept { return sum_ns_; }
  [[nodiscard]] std::uint64_t quantile_ns(double quantile) const noexcept;
  [[nodiscard]] histogram::summary summarize() const noexcept;

 private:
  [[nodiscard]] std::uint64_t quantile_of(std::uint64_t total, double quantile) const noexcept;

  histogram::snapshot counts_{};
  std::uint64_t sum_ns_ = 0;
  std::uint64_t max_ns_ = 0;
};

}  // namespace leat::async
