// Digests of what a trainer gets: row, batch, run. A changed pixel, label, size, dtype, seed or order changes them; a
// machine does not. XXH3-128, seed 0, over little-endian fields.
#pragma once

#include <leat/digest.hpp>
#include <leat/tensor.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace leat::stages {

/// One output of one row, as the trainer sees it. A ragged row has the shape [bytes].
struct row_output {
  std::string_view name;
  dtype type = dtype::u8;
  dimensions shape;
  std::span<const std::byte> bytes;
};

/// Over the sample's id and each output's name, dtype, shape and bytes.
[[nodiscard]] digest row_digest(std::uint64_t sample, std::span<const row_output> outputs) noexcept;

/// Over epoch, index and the row digests in order.
[[nodiscard]] digest batch_digest(std::uint32_t epoch, std::uint64_t index, std::span<const digest> rows) noexcept;

/// The run's digest so far and the next batch's: the chain starts with a digest of zeros.
[[nodiscard]] digest chain_digest(const digest& previous, const digest& next) noexcept;

}  // namespace leat::stages
