#include "stages/plan/node_shares.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <cstdint>

namespace leat::stages {

std::optional<node_shares> describe_node_shares(const run_spec& run) {
  if (run.nodes() == 1) return std::nullopt;
  constexpr double share_to_warn_of = 0.05;
  const std::uint64_t all = run.dataset().size();
  const std::uint64_t left_out = all - std::min(all, run.order().samples(0));
  const double share = static_cast<double>(left_out) / static_cast<double>(std::max<std::uint64_t>(all, 1));
  node_shares described;
  described.text = str_cat("nodes: each of ", run.nodes(), " reads a share of its own; an epoch leaves out ", left_out,
                           " of ", all, " samples (", with_decimals(100 * share, 1), " %)",
                           run.order().in_order() && left_out != 0 ? ", the same in each" : "");
  described.warns = share > share_to_warn_of;
  if (described.warns && !run.dataset().blocks().empty()) {
    str_append(described.text,
               ": shares are whole blocks (shards, chunks); write more of them, or as many for each node");
  }
  return described;
}

}  // namespace leat::stages
