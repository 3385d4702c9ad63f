// The CPU time of a thread, user and system.
#pragma once

#include <pthread.h>
#include <time.h>

#include <cstdint>

namespace leat {

/// 0 where the system has no such clock.
[[nodiscard]] inline std::uint64_t clock_ns(clockid_t clock) noexcept {
  timespec time{};
  if (::clock_gettime(clock, &time) != 0) return 0;
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000U + static_cast<std::uint64_t>(time.tv_nsec);
}

/// Of the calling thread.
[[nodiscard]] inline std::uint64_t thread_cpu_ns() noexcept { return clock_ns(CLOCK_THREAD_CPUTIME_ID); }

/// Of a thread that has not been joined: a system call.
[[nodiscard]] inline std::uint64_t cpu_ns_of(pthread_t thread) noexcept {
  clockid_t clock{};
  return ::pthread_getcpuclockid(thread, &clock) == 0 ? clock_ns(clock) : 0;
}

}  // namespace leat
