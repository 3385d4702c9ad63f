// A run as `leat epoch --progress` has written it down, and what it comes to.
#pragma once

#include <nlohmann/json.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace leat::tools {

/// A line of the file. What an older leat did not write is not there.
struct run_line {
  double end_s = 0;    ///< since the loader began
  double seconds = 0;  ///< that it is about
  double samples = 0;
  double stalled_s = 0;
  double reads_in_flight = 0;
  double decode_queued = 0;
  double batches_ready = 0;
  std::string verdict;  ///< a name of leat::bottleneck
  std::optional<double> step_s;
  std::optional<double> cpu_s;
  std::optional<double> rss_bytes;
  std::optional<double> arena_bytes;
  std::optional<double> bytes_from_files;
  std::optional<double> bytes_from_network;
  std::optional<double> bytes_from_cache;
  /// Shares, as stages::gpu_reading has them.
  struct gpu_shares {
    std::optional<double> sm;
    std::optional<double> occupancy;
    std::optional<double> busy;
    std::string why_sm;
    std::string why_occupancy;
    std::string why_busy;
  };
  std::optional<gpu_shares> gpu;
  /// What next() waited for the batches of this time.
  struct waits {
    double p50_ms = 0;
    double p99_ms = 0;
    double max_ms = 0;
    std::uint64_t epoch = 0;  ///< of the batch that was waited for longest
    std::uint64_t batch = 0;
  };
  std::optional<waits> waited;
  /// A setting that the tuner changed in this time.
  struct step {
    double at_s = 0;  ///< since the loader began
    std::string setting;
    double from = 0;
    double to = 0;
    std::string why;
    double stall_share = 0;  ///< of the window before it
  };
  std::vector<step> steps;
  std::vector<std::pair<std::string, double>> threads;  ///< cores that each was busy with
};

///   about, settings   what was run and with what; null where nobody wrote it
///   waits_ms          p50, p90, p99 and the longest wait of next(), of the whole run
///   unreadable        lines that are none: a disk was full, or the process was killed
struct recorded_run {
  std::string path;
  std::vector<run_line> lines;
  nlohmann::ordered_json about;
  nlohmann::ordered_json settings;
  std::optional<std::array<double, 4>> waits_ms;
  double quarantined = 0;
  std::size_t unreadable = 0;

  [[nodiscard]] double seconds() const;
  [[nodiscard]] double samples() const;
  [[nodiscard]] double stalled_s() const;
  /// Cores of the machine; 0: nobody wrote it.
  [[nodiscard]] double cores() const;
};

/// Reads the lines of --progress.
///   path     for messages
///   throws   error{errc::format}: no line is one, or two runs are in one file
[[nodiscard]] recorded_run parse_run(const std::string& path, std::string_view text);

/// A figure that a limit can be set on. `value` is nothing where it was not measured, and `why` says so.
struct run_measure {
  std::string_view name;
  std::string_view is;
  std::optional<double> value;
  std::string why = {};
};

///   disk_peak   what the drive can give, in bytes a second; 0: not known
struct measure_options {
  double disk_peak = 0;
};

/// All measures, also those that the run has not.
[[nodiscard]] std::vector<run_measure> measures_of(const recorded_run& run, const measure_options& options);

/// "next_p99_ms<=50"
struct run_limit {
  std::string name;
  bool at_most = true;
  double bound = 0;
};

/// Limits with spaces or commas between them.
///   throws   error{errc::usage}: no measure has that name, or it is no limit
[[nodiscard]] std::vector<run_limit> parse_limits(std::string_view text);

/// How a run stands to a limit. What was not measured does not keep it.
enum class limit_outcome : std::uint8_t { kept, broken, not_measured };

struct held_limit {
  run_limit limit;
  run_measure measure;
  limit_outcome outcome = limit_outcome::not_measured;
};
[[nodiscard]] std::vector<held_limit> hold(const std::vector<run_limit>& limits,
                                           const std::vector<run_measure>& measures);

/// "1,234", "0.0312"
[[nodiscard]] std::string measure_text(double value);

}  // namespace leat::tools
