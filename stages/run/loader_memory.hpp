// What a loader needs memory for, as a function of its run and its options.
#pragma once

#include "base/memory_available.hpp"
#include "stages/plan/memory_plan.hpp"
#include "stages/plan/run_spec.hpp"

#include <leat/loading.hpp>

#include <algorithm>
#include <cstdint>
#include <optional>

namespace leat::stages {

/// For what a device decodes: one thread copies 50,000 values a second out of the page cache, where a device decodes 160,000
/// (benchmarks/results/gpu-nvidia-h200-2026-11-27.md).
[[nodiscard]] constexpr std::uint32_t io_threads_for_device(std::uint32_t cores) noexcept {
  return std::clamp(cores / 4, 1U, 4U);
}
/// reader_options::io_threads, or how many are chosen: one where what is read comes over a network.
[[nodiscard]] std::uint32_t io_threads_of(const run_spec& run, const loader_options& options);

///   batches_to_come   of the whole run; 0: endless
[[nodiscard]] memory_needs needs_of(const run_spec& run, const loader_options& options,
                                    const memory_available& available, std::uint64_t batches_to_come);

/// plan_memory() of that. Where corrupt samples do not end the run and the budget is too small for a batch of the
/// largest ones, samples with a value of more than a quarter of it become corrupt, if that helps.
///   decided   by another line of the same run: loader_parts::value_bytes_max
[[nodiscard]] memory_plan memory_of(run_spec& run, const loader_options& options, const memory_available& available,
                                    std::uint64_t batches_to_come, std::optional<std::uint64_t> decided = {});

}  // namespace leat::stages
