// Every sample's value of a field, looked at once: what an order has to know of all samples before the first batch.
#pragma once

#include "datasets/files/blocking_source.hpp"
#include "datasets/model/model.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>

namespace leat::datasets {

///   bytes        nothing: the sample has none, it is damaged, or it could not be had. Of an excluded one they are there
///   unreadable   the file's or the sample's fault: its bytes could not be read
///   is_over      it is larger than may be held
struct seen_value {
  std::optional<std::span<const std::byte>> bytes;
  const read_failure* unreadable = nullptr;
  bool is_over = false;
};
using value_use = std::function<void(std::uint64_t sample, const seen_value& value)>;

/// Reads the value of each sample and calls a use for it, once a sample, in any order, on all cores that may work. Neighbours are read
/// together. Blocks.
///   fields      the first of them that a sample has
///   bytes_max   what all threads hold of values together, and of what is made of them, if each is used for no more than twice its
///               bytes. One of more than three quarters of it is not read, as a loader of this budget never does
///   make        what one thread uses at a time: as many are made as threads work. Called under a lock
///   throws      read_failure, where the fault is the environment's; what a use throws
void for_each_value(const dataset_model& model, std::span<const std::uint16_t> fields, std::uint64_t bytes_max,
                    const std::function<value_use()>& make);

}  // namespace leat::datasets
