#include "async/histogram.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace leat::async {

std::uint64_t histogram::value_of(std::size_t index) noexcept {
  constexpr std::size_t linear = std::size_t{1} << linear_bits;
  if (index < linear) return index;
  const std::size_t shift = (index >> linear_bits) - 1;
  const std::uint64_t first = std::uint64_t{(index & (linear - 1)) + linear} << shift;
  return first + ((std::uint64_t{1} << shift) >> 1U);
}

// Classes beyond the maximum are empty: of many threads' histograms most of the memory is not looked at. A recording whose maximum is
// not seen yet counts the next time.
void histogram_sum::add(const histogram& part) noexcept {
  const std::uint64_t max_ns = part.max_ns_.load(std::memory_order_relaxed);
  const std::size_t end = histogram::class_of(max_ns) + 1;
  for (std::size_t i = 0; i < end; ++i) counts_[i] += part.counts_[i].load(std::memory_order_relaxed);
  sum_ns_ += part.sum_ns_.load(std::memory_order_relaxed);
  max_ns_ = std::max(max_ns_, max_ns);
}

std::uint64_t histogram_sum::count() const noexcept {
  return std::accumulate(counts_.begin(), counts_.end(), std::uint64_t{0});
}

std::uint64_t histogram_sum::quantile_of(std::uint64_t total, double quantile) const noexcept {
  if (total == 0) return 0;
  const double wanted = std::ceil(std::clamp(quantile, 0.0, 1.0) * static_cast<double>(total));
  const std::uint64_t rank = std::clamp<std::uint64_t>(static_cast<std::uint64_t>(wanted), 1, total);
  std::uint64_t seen = 0;
  std::size_t index = 0;
  while (index + 1 < counts_.size() && (seen += counts_[index]) < rank) ++index;
  // No percentile is reported above the maximum, which is exact; beyond the last class it is all we know.
  return index + 1 == counts_.size() ? max_ns_ : std::min(histogram::value_of(index), max_ns_);
}

std::uint64_t histogram_sum::quantile_ns(double quantile) const noexcept { return quantile_of(count(), quantile); }

histogram::summary histogram_sum::summarize() const noexcept {
  const std::uint64_t total = count();
  histogram::summary made{.count = total,
                          .sum_ns = sum_ns_,
                          .p50_ns = quantile_of(total, 0.5),
                          .p90_ns = quantile_of(total, 0.9),
                          .p99_ns = quantile_of(total, 0.99),
                          .p999_ns = quantile_of(total, 0.999),
                          .max_ns = max_ns_};
  std::size_t from = 0;
  for (std::size_t i = 0; i < made.between.size(); ++i) {
    const std::size_t to =
        i < histogram::bounds_ns.size() ? histogram::class_of(histogram::bounds_ns[i]) : counts_.size();
    for (; from < to; ++from) made.between[i] += counts_[from];
  }
  return made;
}

std::uint64_t histogram::quantile_ns(double quantile) const noexcept {
  histogram_sum alone;
  alone.add(*this);
  return alone.quantile_ns(quantile);
}

histogram::summary histogram::summarize() const noexcept {
  histogram_sum alone;
  alone.add(*this);
  return alone.summarize();
}

void histogram::reset() noexcept {
  for (auto& count : counts_) count.store(0, std::memory_order_relaxed);
  sum_ns_.store(0, std::memory_order_relaxed);
  max_ns_.store(0, std::memory_order_relaxed);
}

}  // namespace leat::async
