// What it costs that each node keeps to its share of the set, in words.
#pragma once

#include "stages/plan/run_spec.hpp"

#include <optional>
#include <string>

namespace leat::stages {

///   warns   whether it is worth a warning
struct node_shares {
  std::string text;
  bool warns = false;
};

/// A sentence for a person. Nothing where the order is not divided by nodes.
[[nodiscard]] std::optional<node_shares> describe_node_shares(const run_spec& run);

}  // namespace leat::stages
