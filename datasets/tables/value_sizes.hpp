// How long each sample's value of a field is.
#pragma once

#include "datasets/model/model.hpp"

#include <cstdint>
#include <vector>

namespace leat::datasets {

/// As value_sizes() says of a sample that has no such value.
inline constexpr std::uint64_t no_value = ~std::uint64_t{0};

/// And of one that is damaged.
inline constexpr std::uint64_t damaged_value = no_value - 1;

/// Bytes of every sample's value. Nothing is read where the parts tell it;
/// values that are picked out of records are read, each once. Blocks.
///   field    of origin `extents`
///   throws   error{errc::io}
[[nodiscard]] std::vector<std::uint64_t> value_sizes(const dataset_model& model, std::uint16_t field);

}  // namespace leat::datasets
