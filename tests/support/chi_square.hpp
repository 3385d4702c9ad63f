// How far counts lie from what they should be, in standard deviations of chi-square: about N(0, 1) where nothing is wrong.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

namespace leat::testing {

/// Four in a billion under the normal law; chi-square's tail is longer: about one run in a million may fail, and none of the fixed seeds
/// does.
constexpr double deviation_max = 6;

/// From equal shares.
///   freedom   less than counts - 1 where the counts are tied to each other, and the statistic shrinks with it
inline double deviation(std::span<const std::uint32_t> counts, double freedom) {
  const double total = std::accumulate(counts.begin(), counts.end(), 0.0);
  const auto cells = static_cast<double>(counts.size());
  const double share = total / cells;
  double chi_square = 0;
  for (const std::uint32_t count : counts) chi_square += (count - share) * (count - share) / share;
  return (chi_square - freedom) / std::sqrt(2 * freedom);
}

inline double deviation(std::span<const std::uint32_t> counts) {
  return deviation(counts, static_cast<double>(counts.size()) - 1);
}

/// From shares of any sum, one for each count; where a share is 0 there must be no count, or it is infinite.
inline double deviation_from(std::span<const std::uint32_t> counts, std::span<const double> shares) {
  const double total = std::accumulate(counts.begin(), counts.end(), 0.0);
  const double sum = std::accumulate(shares.begin(), shares.end(), 0.0);
  double chi_square = 0;
  double freedom = -1;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (shares[i] == 0 && counts[i] == 0) continue;
    const double expected = total * shares[i] / sum;
    chi_square += (counts[i] - expected) * (counts[i] - expected) / expected;
    ++freedom;
  }
  return (chi_square - freedom) / std::sqrt(2 * freedom);
}

}  // namespace leat::testing
