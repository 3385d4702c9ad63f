// One part of one sample, for looking at single samples.
#pragma once

#include "datasets/files/blocking_source.hpp"
#include "datasets/model/model.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <stop_token>
#include <vector>

namespace leat::datasets {

/// Reads the part, expands it where it is stored in another form, and appends its bytes; of one that lies in a block those of the block.
/// A part that nothing is read for is made. Blocks.
///   throws   error{errc::io}; error{errc::corrupt} naming the sample, where its bytes cannot be expanded
void append_part(const dataset_model& model, std::uint64_t sample, const part& wanted, blocking_sources& from,
                 std::vector<std::byte>& to, const std::stop_token& stop = {});

/// Appends a value that is taken out of its block.
///   wanted    a part_form::value
///   decoded   the block
///   throws    error{errc::corrupt} naming the sample, where there is none
void take_value(const dataset_model& model, std::uint64_t sample, const part& wanted,
                std::span<const std::byte> decoded, std::vector<std::byte>& to);

/// Appends a part, of which what is stored was read before: as it is, or expanded.
///   wanted    neither made nor in a block
///   throws    error{errc::corrupt} naming the sample, where its bytes cannot be expanded
void append_expanded(const dataset_model& model, std::uint64_t sample, const part& wanted,
                     std::span<const std::byte> stored, std::vector<std::byte>& to);

/// Appends all of a sample's bytes of a field, wherever they lie. `from` keeps the blocks that were expanded last.
///   parts   of the sample; those of other fields are left out
void append_field(const dataset_model& model, std::uint64_t sample, std::uint16_t field, std::span<const part> parts,
                  blocking_sources& from, std::vector<std::byte>& to, const std::stop_token& stop = {});

}  // namespace leat::datasets
