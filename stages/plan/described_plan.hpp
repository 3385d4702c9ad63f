// The plan that a loader shows: what its memory is for, and what is worth knowing of a run before it begins.
#pragma once

#include <leat/loading.hpp>

#include <cstdint>
#include <optional>
#include <string>

namespace leat::stages {

class run_spec;
class transfer;
struct cache_use;
struct memory_plan;

///   io_threads_asked   0: as many as are best
///   quota, cores       of the process, which base/cores_quota.hpp finds
///   why_no_cache       as remote_stats::cache: "off: " and a reason
///   device_cache_asked   loader_options::device_cache
struct plan_surroundings {
  std::uint32_t io_threads_asked = 0;
  std::uint32_t io_threads = 1;
  std::optional<double> quota = {};
  std::uint32_t cores = 1;
  std::string why_no_cache = {};
  bool device_cache_asked = false;
};

/// Which cores count where a quota of CPU time leaves fewer than the process may run on; nothing where it leaves all.
[[nodiscard]] std::optional<std::string> explain_quota(std::optional<double> quota, std::uint32_t cores);

///   to   which is prepared
[[nodiscard]] loader_plan described_plan(const run_spec& run, const memory_plan& memory, const cache_use& cache,
                                         const transfer& to, const plan_surroundings& around);

}  // namespace leat::stages
