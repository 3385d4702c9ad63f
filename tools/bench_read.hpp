// leat bench read: how fast a drive is through leat::reader, and at what cost.
#pragma once

#include "base/memory_available.hpp"

#include <leat/reader.hpp>

#include <nlohmann/json.hpp>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace leat::tools {

/// The order in which blocks are read.
enum class read_pattern : std::uint8_t {
  random,      ///< anywhere in the files, on multiples of 4096
  sequential,  ///< from front to back, file by file, and again
  extents      ///< what an epoch of a dataset reads (bench_extents.hpp), and again
};
[[nodiscard]] std::string_view name(read_pattern pattern) noexcept;

/// Where the n-th read of a run goes. Blocks lie within one file each; every file is at least a block long.
class read_places {
 public:
  struct place {
    std::size_t file = 0;
    std::uint64_t offset = 0;
    std::uint64_t bytes = 0;
    friend bool operator==(const place&, const place&) = default;
  };
  /// These, in their order, again and again. Kept by the caller, and not empty.
  explicit read_places(std::span<const place> listed);
  ///   throws   error{errc::usage}: a file is smaller than a block
  read_places(read_pattern pattern, const std::vector<reader::file>& files, const std::vector<std::string>& paths,
              std::uint64_t block_bytes);

  [[nodiscard]] place at(std::uint64_t n) const noexcept;
  /// Of all places in their order once; at random as many bytes as the files have.
  [[nodiscard]] std::uint64_t bytes_of_pass() const noexcept { return bytes_of_pass_; }
  /// Bytes of memory that any of them can be read into.
  [[nodiscard]] std::size_t lease_bytes() const noexcept { return lease_bytes_; }

 private:
  std::span<const place> listed_;
  read_pattern pattern_ = read_pattern::extents;
  std::uint64_t block_bytes_ = 0;
  std::uint64_t step_bytes_ = 0;  // between neighbouring places
  std::size_t lease_bytes_ = 0;
  std::uint64_t bytes_of_pass_ = 0;
  std::vector<std::uint64_t> ends_;  // number of the place after a file's last
};

struct read_settings {
  std::uint64_t block_bytes = 1 << 20;  ///< of extents: on average
  std::uint32_t depth = 0;              ///< for each thread; 0: by bytes, as the loader (io/files/queue_depth.hpp)
  std::uint32_t threads = 1;
  read_pattern pattern = read_pattern::random;
  double seconds = 5;
  double ramp_seconds = 0;       ///< read before that, and not counted
  std::uint64_t size_bytes = 0;  ///< of each file, from its begin; 0: all of it
  bool verify = false;           ///< compare what is read with what --create wrote
  choice direct = choice::automatic;
  read_backend backend = read_backend::automatic;
  choice registered_buffers = choice::automatic;
  choice huge_pages = choice::automatic;
};

/// What fio found with the same settings.
struct fio_figures {
  double gib_per_s = 0;
  double cpu_s_per_gib = 0;
  bool huge_pages = false;  ///< its buffers; without them it pays more for a large block than we do
};

/// So many reads took less, and no less than the class before.
struct latency_class {
  double below_us = 0;  ///< of the last: infinite
  std::uint64_t reads = 0;
};

/// What one measurement found. CPU is seconds per GiB read.
struct read_row {
  read_settings asked;  ///< with the depth that was used
  reader_report fallbacks;
  std::uint64_t reads = 0;
  std::uint64_t bytes = 0;
  double wall_s = 0;
  double p50_us = 0, p90_us = 0, p99_us = 0, p999_us = 0, max_us = 0;
  std::vector<latency_class> latency;
  double cpu_s = 0;  ///< this process, the kernel's work for it included
  std::optional<fio_figures> fio;
  double samples_per_read = 0;  ///< of extents: how many samples a read serves; else 0
  std::string fallback;         ///< which one this row does without; empty: it is not about fallbacks
  std::uint32_t rings = 0;      ///< of the readers, one for each thread: how many have io_uring
  std::string warm;             ///< why the page cache, not the drive, is what was measured; empty: it is the drive
  std::string off_label;        ///< another backend than the row is meant for, and why; empty: the one
  /// All CPUs of the machine, interrupts and other programs included; the kernel counts it in ticks of 10 ms, and of a run
  /// shorter than a second that says nothing.
  std::optional<double> system_cpu_s;

  /// Its rates are those that it is called by: of the drive, on its backend.
  [[nodiscard]] bool is_the_drive() const noexcept { return off_label.empty() && warm.empty(); }
  [[nodiscard]] double gib() const noexcept { return static_cast<double>(bytes) / (1 << 30); }
  [[nodiscard]] double gib_per_s() const noexcept { return wall_s > 0 ? gib() / wall_s : 0; }
  [[nodiscard]] double iops() const noexcept { return wall_s > 0 ? static_cast<double>(reads) / wall_s : 0; }
  [[nodiscard]] double samples_per_s() const noexcept { return iops() * samples_per_read; }
  [[nodiscard]] double cpu_s_per_gib() const noexcept { return bytes > 0 ? cpu_s / gib() : 0; }
  [[nodiscard]] std::optional<double> system_cpu_s_per_gib() const noexcept {
    return bytes > 0 && system_cpu_s ? std::optional(*system_cpu_s / gib()) : std::nullopt;
  }
};

/// Reads for `asked.seconds`: `threads` readers of one ring (or loop) each, `depth` reads in flight on each. What the
/// page cache has of the files is dropped first and, where it is read through, again before it serves a second read.
///   throws   error: what leat::reader throws; usage where a file is smaller than a block
///   rings_before   of the rows before; where less can be had because the kernel has not yet given their locked memory back
///                  (about 300 ms), it is waited for, at most a second
[[nodiscard]] read_row measure_reads(const std::vector<std::string>& paths, const read_settings& asked,
                                     std::uint32_t rings_before = 1);

struct epoch_reads;
/// The same with the reads of an epoch; asked.block_bytes and asked.pattern do not matter. Where nothing is said of the
/// depth and the largest read is large, fewer are in flight: together they have 1 GiB of memory.
[[nodiscard]] read_row measure_reads(const epoch_reads& epoch, const read_settings& asked,
                                     std::uint32_t rings_before = 1);

/// What several readers stand on, as one: "io_uring and preadv", "partly".
[[nodiscard]] reader_report together(std::span<const reader_report> each);

/// Tells rows that are not what they are called, or not to be compared with the others: io_uring was to be had for some of
/// them and not for these. Rows of --fallbacks say which backend they are meant for; rows of a sweep are to be on the best of theirs.
void mark_off_label(std::vector<read_row>& rows);

/// Refuses what needs more than half of the memory that is available: a machine that swaps, or kills, measures nothing.
///   epoch       whose reads are replayed, or null
///   available   of 0 bytes: not known, and nothing is refused
///   throws      error{errc::limit}: block x depth x threads, and the depth that fits
void check_memory(const read_settings& asked, const epoch_reads* epoch, const memory_available& available);

/// Seconds that the CPUs of the machine have been busy, from the first line of /proc/stat; 0 where it is none.
///   ticks_per_s   sysconf(_SC_CLK_TCK)
[[nodiscard]] double busy_cpu_s(std::string_view stat_line, double ticks_per_s);

/// What makes the rates of rows others than the drive's, each in a line: a warm page cache, files of holes, a backend that is
/// not the row's.
[[nodiscard]] std::vector<std::string> caveats_of(const std::vector<read_row>& rows);
/// Holes of these files, each named; those that are not there or have none are left out.
[[nodiscard]] std::vector<std::string> hole_caveats(const std::vector<std::string>& paths);
/// Why leat and fio were not measured alike in this row; empty: they were.
[[nodiscard]] std::vector<std::string> why_unfair(const read_row& row);
[[nodiscard]] std::string histogram_text(const read_row& row);

/// The same settings, each fallback left out once, the first with all of them; with names.
inline constexpr std::string_view nothing_left_out = "nothing left out";
[[nodiscard]] std::vector<std::pair<std::string, read_settings>> without_each_fallback(const read_settings& asked);

/// Block sizes and depths worth walking: those asked for, else 4 KiB to 8 MiB and 1 to 128, at most 256 MiB in flight.
[[nodiscard]] std::vector<read_settings> sweep_of(const read_settings& asked, bool block_is_asked);

/// Of a sweep's rows with this block: the one of the smallest depth that reaches `share` of the best rate. Rows that are off
/// their label do not count; null where there is no other.
[[nodiscard]] const read_row* smallest_depth(const std::vector<read_row>& rows, std::uint64_t block_bytes,
                                             double share);

[[nodiscard]] nlohmann::ordered_json as_json(const read_row& row);
/// A table: one line of names, and one for each row.
[[nodiscard]] std::string as_table(const std::vector<read_row>& rows);

}  // namespace leat::tools
