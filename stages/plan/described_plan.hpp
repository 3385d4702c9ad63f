// The plan that a loader shows: what its memory is for, and what is worth knowing of a run before it begins.
#pragma once

#include <leat/loading.hpp>

#include <cstdint>
#include <string>

namespace leat::stages {

class run_spec;
class transfer;
struct cache_use;
struct memory_plan;

///   io_threads_asked   0: as many as are best
///   why_no_cache       as remote_stats::cache: "off: " and a reason
struct plan_surroundings {
  std::uint32_t io_threads_asked = 0;
  std::uint32_t io_threads = 1;
  std::string why_no_cache = {};
};

///   to   which is prepared
[[nodiscard]] loader_plan described_plan(const run_spec& run, const memory_plan& memory, const cache_use& cache,
                                         const transfer& to, const plan_surroundings& around);

}  // namespace leat::stages
