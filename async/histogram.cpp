#include "async/histogram.hpp"

#include <algorithm>
#include <cmath>

namespace leat::async {

std::uint64_t histogram::value_of(std::size_t index) noexcept {
  constexpr std::size_t linear = std::size_t{1} << linear_bits;
  if (index < linear) return index;
  const std::size_t shift = (index >> linear_bits) - 1;
  const std::uint64_t first = std::uint64_t{(index & (linear - 1)) + linear} << shift;
  return first + ((std::uint64_t{1} << shift) >> 1U);
}

std::uint64_t histogram::read(snapshot& counts) const noexcept {
  std::uint64_t total = 0;
  for (std::size_t i = 0; i < class_count; ++i) total += counts[i] = counts_[i].load(std::memory_order_relaxed);
  return total;
}

std::uint64_t histogram::quantile_of(const snapshot& counts, std::uint64_t total, double quantile) const noexcept {
  if (total == 0) return 0;
  const double wanted = std::ceil(std::clamp(quantile, 0.0, 1.0) * static_cast<double>(total));
  const std::uint64_t rank = std::clamp<std::uint64_t>(static_cast<std::uint64_t>(wanted), 1, total);
  std::uint64_t seen = 0;
  std::size_t index = 0;
  while (index + 1 < class_count && (seen += counts[index]) < rank) ++index;
  const std::uint64_t max = max_ns_.load(std::memory_order_relaxed);
  // No percentile is reported above the maximum, which is exact; beyond the last class it is all we know.
  return index + 1 == class_count ? max : std::min(value_of(index), max);
}

std::uint64_t histogram::quantile_ns(double quantile) const noexcept {
  snapshot counts;
  const std::uint64_t total = read(counts);
  return quantile_of(counts, total, quantile);
}

histogram::summary histogram::summarize() const noexcept {
  snapshot counts;
  const std::uint64_t total = read(counts);
  return {.count = total,
          .sum_ns = sum_ns_.load(std::memory_order_relaxed),
          .p50_ns = quantile_of(counts, total, 0.5),
          .p90_ns = quantile_of(counts, total, 0.9),
          .p99_ns = quantile_of(counts, total, 0.99),
          .p999_ns = quantile_of(counts, total, 0.999),
          .max_ns = max_ns_.load(std::memory_order_relaxed)};
}

void histogram::reset() noexcept {
  for (auto& count : counts_) count.store(0, std::memory_order_relaxed);
  sum_ns_.store(0, std::memory_order_relaxed);
  max_ns_.store(0, std::memory_order_relaxed);
}

}  // namespace leat::async
