// Every sample's value of a field, looked at once: what an order has to know of all samples before the first batch.
#pragma once

#include "datasets/model/model.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>

namespace leat::datasets {

/// What is done with a value. Nothing instead of its bytes: the sample has none, or it is damaged. Of an excluded one
/// they are there.
using value_use = std::function<void(std::uint64_t sample, std::optional<std::span<const std::byte>> value)>;

/// Reads the value of each sample and calls a use for it, once a sample, in any order, on all cores that may work. Blocks.
///   fields   the first of them that a sample has
///   make     what one thread uses at a time: as many are made as threads work. Called under a lock
///   throws   error{errc::io}; what a use throws
void for_each_value(const dataset_model& model, std::span<const std::uint16_t> fields,
                    const std::function<value_use()>& make);

}  // namespace leat::datasets
