// Which samples take the rows of corrupt ones.
#pragma once

#include "stages/plan/run_spec.hpp"
#include "stages/run/batch_in_flight.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace leat::stages {

/// Draws another sample for each corrupt row of a batch and plans it: a function of the run's seed and the row, and of how often this
/// row was drawn for before (sample_trouble::substitutions).
///   rows      gets the rows that are to be read now
///   returns   why a row gets none, which ends the run
///   throws    as run_spec::substitute()
/// Thread: the first I/O thread.
[[nodiscard]] std::optional<std::string> draw_substitutes(batch_in_flight& batch, const run_spec& run,
                                                          std::uint64_t seed, std::vector<std::uint32_t>& rows);

}  // namespace leat::stages
