// How many cores this process may run on.
#pragma once

#include <sched.h>

#include <algorithm>
#include <cstdint>

namespace leat::io {

/// By its affinity mask: taskset(1), cpusets of containers and batch systems. A quota of CPU time is not in it.
[[nodiscard]] inline std::uint32_t usable_cores() noexcept {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(0, sizeof set, &set) != 0) return 1;
  return static_cast<std::uint32_t>(std::max(1, CPU_COUNT(&set)));
}

}  // namespace leat::io
