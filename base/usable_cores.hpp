// How many cores this process may run on.
#pragma once

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>

namespace leat {

///   process   0 is this one
/// By its affinity mask: taskset(1), cpusets of containers and batch systems. A quota of CPU time is not in it.
[[nodiscard]] inline std::uint32_t usable_cores(pid_t process = 0) noexcept {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(process, sizeof set, &set) != 0) return 1;
  return static_cast<std::uint32_t>(std::max(1, CPU_COUNT(&set)));
}

/// Of a process that shares its machine with others of its kind, local_ranks in all: its own cores, where its launcher has bound it
/// to some (it has fewer than who started it); else its part of them.
[[nodiscard]] inline std::uint32_t cores_of_local_rank(std::uint32_t local_ranks) noexcept {
  const std::uint32_t own = usable_cores();
  if (local_ranks <= 1) return own;
  const bool bound = own < usable_cores(::getppid());
  return bound ? own : std::max(1U, own / local_ranks);
}

}  // namespace leat
