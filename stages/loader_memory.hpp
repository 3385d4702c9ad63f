// What a loader needs memory for, as a function of its run and its options.
#pragma once

#include "base/memory_available.hpp"
#include "stages/bound_run.hpp"
#include "stages/memory_plan.hpp"

#include <leat/loader.hpp>

#include <cstdint>

namespace leat::stages {

///   batches_to_come   of the whole run; 0: endless
[[nodiscard]] memory_needs needs_of(const bound_run& run, const loader_options& options,
                                    const memory_available& available, std::uint64_t batches_to_come);

}  // namespace leat::stages
