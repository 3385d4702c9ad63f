#include "stages/plan/block_uses.hpp"

#include "base/option_words.hpp"
#include "base/text.hpp"
#include "datasets/model/model.hpp"

#include <algorithm>
#include <cmath>

namespace leat::stages {

double expansions_of(const block_order& of) noexcept {
  const double rows_of_block = of.rows / of.blocks;
  const double rows_near = std::max(of.near * rows_of_block, 1.0);
  const double batches = std::max(rows_near / std::max(of.batch_rows, 1.0), 1.0);
  // A batch leaves a block out if it leaves each of its rows out.
  const double each_anew = batches * (1 - std::pow(1 - 1 / batches, rows_of_block));
  if (rows_of_block <= 1) return rows_of_block;
  return of.kept + (1 - of.kept) * std::max(each_anew, 1.0);
}

std::optional<std::string> describe_block_uses(const run_spec& run, const memory_plan& memory) {
  if (!run.planner().in_blocks()) return std::nullopt;
  const sampler& order = run.order();
  const datasets::sample_blocks shared = run.dataset().blocks();
  if (shared.empty() || shared.size() == shared.samples()) {
    return "blocks: no samples share one; each is expanded once for one use";
  }
  // Of one rank's rows.
  const double ranks = run.world().size;
  const auto blocks = static_cast<double>(run.share_of_rank(shared.size()));
  const double near = static_cast<double>(order.blocks_near()) * run.nodes_of_rank();
  const double wanted = static_cast<double>(memory.kept_bytes) + static_cast<double>(memory.kept_missing);
  const block_order of{.rows = static_cast<double>(order.batches(0)) * static_cast<double>(order.rows_max()) / ranks,
                       .batch_rows = static_cast<double>(order.rows_max()) / ranks,
                       .blocks = blocks,
                       .near = near != 0 ? near : blocks,
                       .kept = wanted == 0 ? 0 : std::min(static_cast<double>(memory.kept_bytes) / wanted, 1.0)};
  const double expansions = expansions_of(of);
  if (expansions <= 0) return std::nullopt;
  return str_cat(
      "blocks: of ", with_decimals(static_cast<double>(shared.samples()) / static_cast<double>(shared.size()), 1),
      " samples each; in this order one is expanded about ", with_decimals(expansions, 1), " times an epoch, once for ",
      with_decimals(of.rows / of.blocks / expansions, 1), " uses",
      expansions > 2 ? str_cat(" (", spelled(option_id::shuffle_blocks), " takes the samples of few blocks at a time)")
                     : std::string());
}

}  // namespace leat::stages
