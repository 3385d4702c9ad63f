// How many cores this process may run on.
#pragma once

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>

namespace leat {

///   process   0 is this one
/// By its affinity mask: taskset(1), cpusets of containers and batch systems. A quota of CPU time is not in it (base/cores_quota.hpp).
[[nodiscard]] inline std::uint32_t usable_cores(pid_t process = 0) noexcept {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(process, sizeof set, &set) != 0) return 1;
  return static_cast<std::uint32_t>(std::max(1, CPU_COUNT(&set)));
}

}  // namespace leat
