// A Fisher-Yates shuffle by a seed, the same everywhere and for ever: for splitting and packing, where the whole order is
// wanted at once. (The loader's order is stages/order/permutation, which needs no memory.)
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace leat::datasets {

/// The numbers 0..n-1 in an order drawn from (seed, purpose).
///   source   Philox4x32-10, Random123; D. Lemire, "Fast random integer generation in an interval", 2019
[[nodiscard]] std::vector<std::uint64_t> shuffled(std::uint64_t n, std::uint64_t seed, std::string_view purpose);

}  // namespace leat::datasets
