// Sleeping to the point: as what sleeps for an interrupt wakes, and not when the kernel finds it convenient.
#pragma once

#include <sys/prctl.h>

#include <cerrno>
#include <cstdint>
#include <ctime>

namespace leat::testing {

///   until_ns   as now_ns()
///   source     prctl(2) PR_SET_TIMERSLACK: else a timer may be 50 us late to save a wake-up
inline void sleep_until(std::uint64_t until_ns) noexcept {
  thread_local const int exact = ::prctl(PR_SET_TIMERSLACK, 1UL);
  static_cast<void>(exact);
  const timespec until{static_cast<time_t>(until_ns / 1'000'000'000), static_cast<long>(until_ns % 1'000'000'000)};
  while (::clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr) == EINTR) {
  }
}

}  // namespace leat::testing
