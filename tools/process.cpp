#include "tools/process.hpp"

#include <sys/resource.h>
#include <sys/time.h>

#include <cinttypes>
#include <cstdio>
#include <ctime>
#include <memory>
#include <string_view>

namespace leat::tools {
namespace {

double seconds_of(clockid_t clock) noexcept {
  timespec now{};
  ::clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

double started_s = 0;

// 101: the first that is not reserved for the implementation.
__attribute__((constructor(101))) void remember_start() noexcept {
  started_s = seconds_of(CLOCK_MONOTONIC) - seconds_of(CLOCK_PROCESS_CPUTIME_ID);
}

// A line of proc(5)'s status; 0 where there is none.
std::uint64_t status_bytes(std::string_view key) noexcept {
  struct close_file {
    void operator()(std::FILE* file) const noexcept { std::fclose(file); }
  };
  const std::unique_ptr<std::FILE, close_file> status(std::fopen("/proc/self/status", "re"));
  char line[256];
  while (status != nullptr && std::fgets(line, sizeof line, status.get()) != nullptr) {
    std::uint64_t kib = 0;
    if (std::string_view(line).starts_with(key) && std::sscanf(line + key.size(), "%" SCNu64 " kB", &kib) == 1) {
      return kib * 1024;
    }
  }
  return 0;
}

double seconds_of(const timeval& value) noexcept {
  return static_cast<double>(value.tv_sec) + static_cast<double>(value.tv_usec) * 1e-6;
}

}  // namespace

double seconds_since_start() noexcept { return seconds_of(CLOCK_MONOTONIC) - started_s; }

double cpu_seconds() noexcept {
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  return seconds_of(used.ru_utime) + seconds_of(used.ru_stime);
}

std::uint64_t rss_bytes_now() noexcept { return status_bytes("VmRSS:"); }

std::uint64_t rss_bytes_max() noexcept {
  if (const std::uint64_t most = status_bytes("VmHWM:"); most != 0) return most;
  // Without /proc: the same counter, which a fork() hands on from the parent.
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  return static_cast<std::uint64_t>(used.ru_maxrss) * 1024;
}

}  // namespace leat::tools
