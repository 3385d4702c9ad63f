// What this process has used so far.
#pragma once

#include <chrono>
#include <cstdint>

namespace leat::tools {

/// Seconds since the process began. The clock starts in a constructor that runs before main() and before those of the
/// program's own globals, and is put back by the CPU time that the process had used until then: exec and the dynamic linker
/// count by what they cost. (/proc/self/stat knows the start to 10 ms only.)
[[nodiscard]] double seconds_since_start() noexcept;
[[nodiscard]] inline double seconds_since(std::chrono::steady_clock::time_point began) noexcept {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
}

/// User and system time of all threads, those of the kernel for us included.
[[nodiscard]] double cpu_seconds() noexcept;

/// What is resident now; VmRSS of proc(5), 0 where it cannot be read.
[[nodiscard]] std::uint64_t rss_bytes_now() noexcept;

/// The most memory that was resident at a time; VmHWM of proc(5).
[[nodiscard]] std::uint64_t rss_bytes_max() noexcept;

}  // namespace leat::tools
