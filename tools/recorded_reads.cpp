#include "tools/recorded_reads.hpp"

#include "base/memory_available.hpp"
#include "base/text.hpp"
#include "io/files/read_error.hpp"
#include "tools/arguments.hpp"
#include "tools/bench_drive.hpp"
#include "tools/bench_extents.hpp"
#include "tools/human.hpp"
#include "tools/output.hpp"
#include "tools/status_line.hpp"
#include "tools/subcommand.hpp"

#include <absl/strings/numbers.h>
#include <absl/strings/str_split.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <map>
#include <random>
#include <utility>

namespace leat::tools {
namespace {

constexpr std::uint64_t page_of_drive_bytes = 4096;

// Seconds of "90us", "1.5ms", "0.2s".
std::optional<double> parse_seconds(std::string_view text) {
  for (const auto& [unit, in_s] : {std::pair("us", 1e-6), std::pair("ms", 1e-3), std::pair("s", 1.0)}) {
    if (!text.ends_with(unit)) continue;
    double value = 0;
    const std::string_view digits = text.substr(0, text.size() - std::string_view(unit).size());
    if (!absl::SimpleAtod(std::string(digits), &value) || !(value >= 0 && value * in_s <= 4)) return std::nullopt;
    return value * in_s;
  }
  return std::nullopt;
}

std::uint64_t bytes_of_file(const std::string& path) {
  struct stat found{};
  if (::stat(path.c_str(), &found) != 0) throw refused_name(io::explain_open(errno, path).what());
  const std::uint64_t bytes =
      S_ISBLK(found.st_mode) ? block_device_bytes(path) : static_cast<std::uint64_t>(found.st_size);
  if (!S_ISBLK(found.st_mode) && !S_ISREG(found.st_mode)) {
    throw refused_name(str_cat(path, " is no regular file or block device; give one on the drive in question"));
  }
  return bytes;
}

}  // namespace

what_if_drive parse_disk(const std::string& option, std::string_view given) {
  constexpr std::string_view wanted = "a latency of at most 4 s and a rate, as latency=90us,rate=6GB/s";
  std::optional<double> latency_s;
  std::optional<std::uint64_t> rate;
  for (const absl::string_view part : absl::StrSplit(absl::string_view(given.data(), given.size()), ',')) {
    const std::pair<std::string, std::string> pair = absl::StrSplit(part, absl::MaxSplits('=', 1));
    if (pair.first == "latency" && !latency_s) {
      latency_s = parse_seconds(pair.second);
      if (!latency_s) refuse(option, given, wanted);
    } else if (pair.first == "rate" && !rate) {
      std::string_view bytes = pair.second;
      if (bytes.ends_with("/s")) bytes.remove_suffix(2);
      rate = parse_bytes(bytes);
      if (!rate || *rate == 0) refuse(option, given, wanted);
    } else {
      refuse(option, given, wanted);
    }
  }
  if (!latency_s) refuse(option, given, wanted);
  return {.latency_ns = {static_cast<std::uint32_t>(std::llround(*latency_s * 1e9))},
          .bytes_per_s = static_cast<double>(rate.value_or(0)),
          .is_least = false};
}

std::vector<read_places::place> places_within(const stages::read_record& record, std::uint64_t file_bytes) {
  std::map<std::uint32_t, std::uint64_t> ends;  // of each file, as far as it was read
  std::uint64_t largest = 0;
  for (const stages::recorded_read& each : record.reads) {
    std::uint64_t& end = ends[each.file];
    end = std::max(end, each.offset + each.bytes);
    largest = std::max(largest, each.bytes);
  }
  if (largest > file_bytes) {
    throw error(errc::usage, str_cat("a read has ", bytes_text(largest), ", and the file ", bytes_text(file_bytes),
                                     "; give a larger one"));
  }
  std::uint64_t all = 0;
  for (auto& [file, end] : ends) end = std::exchange(all, all + end);  // now its begin
  std::vector<read_places::place> places;
  for (const stages::recorded_read& each : record.reads) {
    if (each.bytes == 0) continue;
    const double share = static_cast<double>(ends[each.file] + each.offset) / static_cast<double>(all);
    const auto room = static_cast<double>(file_bytes - each.bytes);
    const auto offset = static_cast<std::uint64_t>(share * room);
    places.push_back({.offset = offset / page_of_drive_bytes * page_of_drive_bytes, .bytes = each.bytes});
  }
  return places;
}

what_if_drive measured_drive(const stages::read_record& record, const std::string& path, const what_if_settings& with) {
  constexpr double seconds = 2;
  epoch_reads reads;
  reads.files = {path};
  reads.reads = places_within(record, bytes_of_file(path));
  if (reads.reads.empty()) throw error(errc::format, "nothing was read in the recorded run: no drive changes it");
  for (const read_places::place& each : reads.reads) {
    reads.bytes += each.bytes;
    reads.read_bytes_max = std::max(reads.read_bytes_max, each.bytes);
  }
  const read_settings one{.depth = 1, .pattern = read_pattern::extents, .seconds = seconds};
  const read_settings many{.depth = with.by_bytes ? 0 : with.queue_depth,
                           .threads = with.io_threads,
                           .pattern = read_pattern::extents,
                           .seconds = seconds};
  set_up([&] { check_memory(many, &reads, find_memory_available()); });
  for (const std::string& each : hole_caveats({path})) complain("replay-io", str_cat("warning: ", each));
  const status_line shown([](const terminal& screen, std::size_t) { return screen.dim("  reading"); });
  const read_row alone = measure_reads(reads, one);
  const read_row full = measure_reads(reads, many, alone.rings);
  for (const std::string& each : caveats_of({alone, full})) complain("replay-io", str_cat("warning: ", each));
  what_if_drive made{.latency_ns = {}, .bytes_per_s = static_cast<double>(full.bytes) / full.wall_s, .is_least = false};
  // As many of each class as were seen, in no order. What a read alone takes has its own way over the drive's path in it.
  constexpr double draws = 4096;
  const double path_us = static_cast<double>(reads.read_bytes_mean()) / made.bytes_per_s * 1e6;
  double below_us = 0;
  for (const latency_class& each : alone.latency) {
    const double usual_us = std::isinf(each.below_us) ? alone.max_us : (below_us + each.below_us) / 2;
    below_us = each.below_us;
    const auto count = static_cast<std::size_t>(std::llround(
        draws * static_cast<double>(each.reads) / static_cast<double>(std::max<std::uint64_t>(alone.reads, 1))));
    const double latency_ns = std::clamp((usual_us - path_us) * 1e3, 0.0, 4e9);
    made.latency_ns.insert(made.latency_ns.end(), count, static_cast<std::uint32_t>(latency_ns));
  }
  if (made.latency_ns.empty()) made.latency_ns.push_back(static_cast<std::uint32_t>(alone.p50_us * 1e3));
  std::shuffle(made.latency_ns.begin(), made.latency_ns.end(), std::mt19937_64(1));
  return made;
}

}  // namespace leat::tools
