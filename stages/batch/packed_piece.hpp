// What one sample has in one packed row: stages/order/packing.hpp.
#pragma once

#include <leat/sampler.hpp>

#include <cstdint>

namespace leat::stages {

/// A part of a sample in a packed row.
///   row      of the epoch; of rank_packing::pieces(), of the rank's batch
///   offset   in the row, in tokens
///   first    of the sample's tokens
///   count    at least 1
struct packed_piece {
  pick of;
  std::uint64_t row = 0;
  std::uint32_t offset = 0;
  std::uint64_t first = 0;
  std::uint32_t count = 0;

  friend bool operator==(const packed_piece&, const packed_piece&) = default;
};

/// Where a piece lies in a rank's rows of a batch, in tokens, and which of its row's pieces it is.
struct placed_piece {
  std::uint32_t begin = 0;
  std::uint32_t count = 0;
  std::uint32_t document = 0;
};

}  // namespace leat::stages
