// How often an order has the blocks that samples share expanded: what chunks of HDF5 and Zarr and packed columns cost in this run.
#pragma once

#include "stages/plan/memory_plan.hpp"
#include "stages/plan/run_spec.hpp"

#include <cstdint>
#include <optional>
#include <string>

namespace leat::stages {

/// Rows in some order, out of blocks.
///   rows         in an epoch
///   batch_rows   of one batch, at most
///   blocks       that they lie in; 1 at least
///   near         how many of them the rows of neighbouring batches come from
///   kept         the share of these that stay expanded for the batches that follow, from 0 to 1
struct block_order {
  double rows = 0;
  double batch_rows = 1;
  double blocks = 1;
  double near = 1;
  double kept = 0;
};

/// How often a block is expanded in an epoch, about: once for each batch that has rows of it, if it is not kept for the next one.
[[nodiscard]] double expansions_of(const block_order& of) noexcept;

/// A sentence for loader_plan::notes. Nothing where no field lies in blocks.
[[nodiscard]] std::optional<std::string> describe_block_uses(const run_spec& run, const memory_plan& memory);

}  // namespace leat::stages
