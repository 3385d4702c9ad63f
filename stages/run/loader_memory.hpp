// What a loader needs memory for, as a function of its run and its options.
#pragma once

#include "base/memory_available.hpp"
#include "stages/plan/memory_plan.hpp"
#include "stages/plan/run_spec.hpp"

#include <leat/loader_state.hpp>
#include <leat/loading.hpp>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>

namespace leat::stages {

/// For what a device decodes: one thread copies 50,000 values a second out of the page cache, where a device decodes 160,000
/// (benchmarks/results/gpu-nvidia-h200-2026-11-27.md).
[[nodiscard]] constexpr std::uint32_t io_threads_for_device(std::uint32_t cores) noexcept {
  return std::clamp(cores / 4, 1U, 4U);
}
/// At most, for a tuner: one thread copies 200,000 rows of 16 KiB a second out of the page cache, and a second one half as many more, also
/// where there are two cores (benchmarks/results/tune-2026-11-30.md).
[[nodiscard]] constexpr std::uint32_t io_threads_to_try(std::uint32_t cores) noexcept {
  return std::max(std::min(cores, 2U), io_threads_for_device(cores));
}
/// reader_options::io_threads, or how many are chosen: one where what is read comes over a network.
[[nodiscard]] std::uint32_t io_threads_at_first(const run_spec& run, const loader_options& options);
/// How many are started: where a tuner may find that it takes more of them, as many as it may.
[[nodiscard]] std::uint32_t io_threads_of(const run_spec& run, const loader_options& options);

///   batches_to_come   of the whole run; 0: endless
///   cores             as many decode threads as there are, where nobody says how many, and no more than these; 0: those of the process
[[nodiscard]] memory_needs needs_of(const run_spec& run, const loader_options& options,
                                    const memory_available& available, std::uint64_t batches_to_come,
                                    std::uint32_t cores = 0);

/// What another line of the same run has decided.
///   at_least    of scratch: that line would have ended at a sample above its limits, and met none
///   said_by     the file of a state, for messages; empty: a line of this process
struct decided_limits {
  sample_limits limits;
  bool at_least = false;
  std::string said_by = {};
};

/// What the state that `options` resume from has decided. Nothing where there is none, and where corrupt samples end this
/// run: a batch is then whole or is none.
[[nodiscard]] std::optional<decided_limits> limits_resumed(const loader_options& options);
/// What the state of a run says that has these.
[[nodiscard]] sample_limits limits_to_save(const loader_options& options, const sample_limits& own);

/// plan_memory() of that. Where corrupt samples do not end the run and the budget is too small for a batch of the
/// largest ones, samples with a value of more than a quarter of it become corrupt, if that helps. What has been decided
/// stays, also where the budget could hold more.
///   throws   error{errc::limit}: also for a budget that cannot hold a value which another line of the run has loaded
[[nodiscard]] memory_plan memory_of(run_spec& run, const loader_options& options, const memory_available& available,
                                    std::uint64_t batches_to_come, const std::optional<decided_limits>& decided = {},
                                    std::uint32_t cores = 0);

}  // namespace leat::stages
