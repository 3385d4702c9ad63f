#include "benchmarks/measure.hpp"

#include "base/clock.hpp"
#include "base/text.hpp"

#include <leat/error.hpp>

#include <sys/uio.h>
#include <sys/utsname.h>
#include <sys/vfs.h>

#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <utility>

namespace leat::benchmarks {
namespace {

double seconds(const timespec& of) noexcept {
  return static_cast<double>(of.tv_sec) + static_cast<double>(of.tv_nsec) * 1e-9;
}

double clock_s(clockid_t clock) noexcept {
  timespec now{};
  ::clock_gettime(clock, &now);
  return seconds(now);
}

std::string first_line(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

std::string cpu_model() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("model name")) return line.substr(std::min(line.find(':') + 2, line.size()));
  }
  return "unknown CPU";
}

constexpr std::string_view compiler =
#if defined(__clang__)
    "clang " __clang_version__;
#else
    "GCC " __VERSION__;
#endif

// Whether the first page of the file would have to be read.
bool is_out(int file) noexcept {
  std::byte byte{};
  iovec place{&byte, 1};
  return ::preadv2(file, &place, 1, 0, RWF_NOWAIT) < 0;
}

}  // namespace

double figure::median() const {
  if (values_.empty()) return 0;
  std::vector<double> sorted = values_;
  std::sort(sorted.begin(), sorted.end());
  const std::size_t middle = sorted.size() / 2;
  return sorted.size() % 2 != 0 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}
double figure::low() const { return values_.empty() ? 0 : *std::min_element(values_.begin(), values_.end()); }
double figure::high() const { return values_.empty() ? 0 : *std::max_element(values_.begin(), values_.end()); }

double wall_s() noexcept { return static_cast<double>(now_ns()) * 1e-9; }
double process_cpu_s() noexcept { return clock_s(CLOCK_PROCESS_CPUTIME_ID); }
double thread_cpu_s() noexcept { return clock_s(CLOCK_THREAD_CPUTIME_ID); }

double named_threads_cpu_s(std::string_view prefix) {
  std::uint64_t sum_ns = 0;
  std::error_code gone;  // A thread may end while we look.
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task", gone)) {
    if (!first_line(task.path() / "comm").starts_with(prefix)) continue;
    std::uint64_t run_ns = 0;
    std::ifstream(task.path() / "schedstat") >> run_ns;
    sum_ns += run_ns;
  }
  return static_cast<double>(sum_ns) * 1e-9;
}

other_threads_cpu::other_threads_cpu(std::string prefix) : prefix_(std::move(prefix)), before_(read()) {
  if (before_.empty()) {
    throw error(errc::unsupported,
                "/proc/self/task does not name the threads of this process; mount /proc to measure their CPU time");
  }
}

double other_threads_cpu::spent_s() const {
  double sum_s = 0;
  for (const auto& [thread, now_s] : read()) {
    const auto before = before_.find(thread);
    sum_s += now_s - (before == before_.end() ? 0 : before->second);
  }
  return sum_s;
}

other_threads_cpu::clocks other_threads_cpu::read() const {
  clocks all;
  std::error_code gone;  // A thread may end while we look.
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task", gone)) {
    const std::string name = first_line(task.path() / "comm");
    if (name.empty() || name.starts_with(prefix_)) continue;
    const int thread = std::atoi(task.path().filename().c_str());
    // A thread's clock by its number, as pthread_getcpuclockid(3) makes it. Unlike schedstat it holds what has run since
    // the last tick.
    timespec now{};
    if (::clock_gettime(static_cast<clockid_t>(~static_cast<unsigned>(thread) << 3U | 6U), &now) != 0) continue;
    all.emplace(thread, seconds(now));
  }
  return all;
}

std::string machine() {
  cpu_set_t usable;
  CPU_ZERO(&usable);
  ::sched_getaffinity(0, sizeof usable, &usable);
  utsname system{};
  ::uname(&system);
  std::string_view built_by = compiler;
  while (built_by.ends_with(' ')) built_by.remove_suffix(1);
  return str_cat(cpu_model(), ", ", CPU_COUNT(&usable), " CPUs, ", system.sysname, " ", system.release, ", ", built_by);
}

std::string file_system(const std::string& path) {
  struct statfs found{};
  if (::statfs(path.c_str(), &found) != 0) return "unknown file system";
  struct known {
    unsigned long magic;
    std::string_view name;
  };
  // linux/magic.h; XFS's is in its own header.
  static constexpr std::array<known, 9> names{{{0xEF53, "ext4"},
                                               {0x58465342, "xfs"},
                                               {0x9123683E, "btrfs"},
                                               {0x01021994, "tmpfs"},
                                               {0x794C7630, "overlay"},
                                               {0x6969, "nfs"},
                                               {0x2FC12FC1, "zfs"},
                                               {0x65735546, "fuse"},
                                               {0x73717368, "squashfs"}}};
  for (const known& each : names) {
    if (each.magic == static_cast<unsigned long>(found.f_type)) return std::string(each.name);
  }
  return str_cat("file system ", found.f_type);
}

double drop_from_page_cache(const std::vector<std::string>& files) {
  std::size_t out = 0;
  for (const std::string& path : files) {
    const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (file < 0) continue;
    // Pages that were not written yet cannot be dropped.
    ::fdatasync(file);
    ::posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
    if (is_out(file)) ++out;
    ::close(file);
  }
  return files.empty() ? 1 : static_cast<double>(out) / static_cast<double>(files.size());
}

}  // namespace leat::benchmarks
