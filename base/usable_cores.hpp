// How many cores this process may run on.
#pragma once

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <vector>

namespace leat {

///   process   0 is this one
/// By its affinity mask: taskset(1), cpusets of containers and batch systems. A quota of CPU time is not in it (base/cores_quota.hpp).
[[nodiscard]] inline std::uint32_t usable_cores(pid_t process = 0) noexcept {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(process, sizeof set, &set) != 0) return 1;
  return static_cast<std::uint32_t>(std::max(1, CPU_COUNT(&set)));
}

/// Which they are. None, where the kernel does not say.
[[nodiscard]] inline std::vector<std::uint32_t> usable_core_numbers() {
  std::vector<std::uint32_t> cores;
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(0, sizeof set, &set) != 0) return cores;
  for (std::uint32_t core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(core, &set)) cores.push_back(core);
  }
  return cores;
}

}  // namespace leat
