// Draws by weight in constant time: Walker's alias method.
#pragma once

#include "base/random.hpp"
#include "stages/order/sample_numbers.hpp"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cstdint>
#include <span>
#include <vector>

namespace leat::stages {

/// Draws a number by its weight in constant time.
///   source   Walker 1977; Vose, "A linear algorithm for generating random numbers with a given distribution", 1991. In whole numbers,
///            so that equal weights give equal tables on every machine
class alias_table {
 public:
  ///   weights   none negative, some above 0
  explicit alias_table(std::span<const double> weights) : aliases_(weights.size(), weights.size()) {
    const std::uint64_t n = weights.size();
    // A column holds `full_` units, all of them fewer than 2^63.
    const int n_bits = static_cast<int>(std::bit_width(n));
    full_ = std::uint64_t{1} << std::min(53, 63 - n_bits);
    shares_ = units_of(weights);
    std::vector<std::uint64_t> small;
    std::vector<std::uint64_t> large;
    for (std::uint64_t i = 0; i < n; ++i) {
      aliases_.set(i, i);
      if (shares_[i] < full_) {
        small.push_back(i);
      } else if (shares_[i] > full_) {
        large.push_back(i);
      }
    }
    while (!small.empty()) {
      assert(!large.empty());
      const std::uint64_t less = small.back();
      const std::uint64_t more = large.back();
      small.pop_back();
      aliases_.set(less, more);
      shares_[more] -= full_ - shares_[less];
      if (shares_[more] > full_) continue;
      large.pop_back();
      if (shares_[more] < full_) small.push_back(more);
    }
  }

  /// Where the table has what decides a draw: to be asked for before it is needed, since the table is larger than a cache.
  struct throw_of_dice {
    std::uint64_t column;
    std::uint64_t height;
  };
  [[nodiscard]] throw_of_dice begin_draw(random_draws draws) const noexcept {
    const std::uint64_t column = draws.below(shares_.size());
    __builtin_prefetch(&shares_[column]);
    aliases_.prefetch(column);
    return {column, draws.below(full_)};
  }
  [[nodiscard]] std::uint64_t end_draw(const throw_of_dice& thrown) const noexcept {
    const std::uint64_t alias = aliases_[thrown.column];
    return thrown.height < shares_[thrown.column] ? thrown.column : alias;
  }

 private:
  // Weights as units that add up to a full column for each. What is above 0 has one unit at least.
  [[nodiscard]] std::vector<std::uint64_t> units_of(std::span<const double> weights) const {
    const double largest = *std::max_element(weights.begin(), weights.end());
    double sum = 0;  // of weights that are 1 at most: nothing overflows
    for (const double weight : weights) sum += weight / largest;
    const double scale = static_cast<double>(full_) * static_cast<double>(weights.size()) / sum;
    std::vector<std::uint64_t> units(weights.size());
    std::uint64_t total = 0;
    for (std::size_t i = 0; i < weights.size(); ++i) {
      if (weights[i] > 0)
        units[i] = std::max<std::uint64_t>(1, static_cast<std::uint64_t>(weights[i] / largest * scale));
      total += units[i];
    }
    // What rounding has lost or won is the largest one's: at most n units of its full column or more.
    const auto most = static_cast<std::size_t>(std::max_element(units.begin(), units.end()) - units.begin());
    units[most] += full_ * weights.size() - total;
    return units;
  }

  std::uint64_t full_ = 0;
  std::vector<std::uint64_t> shares_;  // Of a column, what is its own.
  sample_numbers aliases_;             // Whose the rest is.
};

}  // namespace leat::stages
