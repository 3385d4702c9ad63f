// What benchmarks share: medians, clocks of the CPU, and what a figure means nothing without: machine, kernel, file
// system, state of the page cache.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace leat::benchmarks {

/// The same figure, measured once per round.
class figure {
 public:
  void add(double value) { values_.push_back(value); }

  [[nodiscard]] bool empty() const noexcept { return values_.empty(); }
  [[nodiscard]] std::size_t count() const noexcept { return values_.size(); }
  [[nodiscard]] double median() const;
  [[nodiscard]] double low() const;
  [[nodiscard]] double high() const;

 private:
  std::vector<double> values_;
};

/// Seconds of the steady clock.
[[nodiscard]] double wall_s() noexcept;

/// CPU seconds of this process so far: all threads, user and system, the kernel's workers for its rings included.
[[nodiscard]] double process_cpu_s() noexcept;

/// CPU seconds of the calling thread.
[[nodiscard]] double thread_cpu_s() noexcept;

/// CPU seconds of this process's living threads whose name begins with `prefix`; 0 where /proc does not tell.
[[nodiscard]] double named_threads_cpu_s(std::string_view prefix);

/// The CPU time of this process's threads but for those whose name begins with `prefix`: each thread's own clock, read one behind
/// the other, so that what the others do beside it is no part of the difference.
class other_threads_cpu {
 public:
  /// From now on.
  ///   throws   error{errc::unsupported} where /proc does not name the threads
  explicit other_threads_cpu(std::string prefix);

  /// In seconds, of the threads that live now. What one has done that ended meanwhile is not counted.
  [[nodiscard]] double spent_s() const;

 private:
  using clocks = std::map<int, double>;  ///< by thread, in seconds
  [[nodiscard]] clocks read() const;

  const std::string prefix_;
  const clocks before_;
};

/// "AMD EPYC, 2 CPUs, Linux 6.18.44, clang 19.1.7"
[[nodiscard]] std::string machine();

/// The file system below `path`: "ext4".
[[nodiscard]] std::string file_system(const std::string& path);

/// Puts the files out of the page cache, and looks whether they went. Directories and inodes stay cached, and so does
/// what other programs use: unlike /proc/sys/vm/drop_caches it needs no privilege and slows nobody else down.
///   returns   the share of the files, 0..1, whose first page is out; below 1 where somebody has them mapped
///   source    posix_fadvise(2) POSIX_FADV_DONTNEED, preadv2(2) RWF_NOWAIT
[[nodiscard]] double drop_from_page_cache(const std::vector<std::string>& files);

}  // namespace leat::benchmarks
