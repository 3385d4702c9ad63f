// What it costs that a cache is smaller than the set, in words.
#pragma once

#include "io/source.hpp"
#include "stages/bound_run.hpp"

#include <optional>
#include <string>

namespace leat::stages {

/// A sentence for a person. Nothing where there is no cache, or room for all.
[[nodiscard]] std::optional<std::string> describe_cache_cost(const bound_run& run);

}  // namespace leat::stages
