#include "tools/recorded_run.hpp"

#include "base/as_absl.hpp"
#include "base/parse_json.hpp"
#include "base/text.hpp"

#include <leat/error.hpp>

#include <absl/strings/numbers.h>
#include <absl/strings/str_format.h>

#include <algorithm>
#include <cmath>
#include <map>

namespace leat::tools {
namespace {

using json = nlohmann::ordered_json;

std::optional<double> number_in(const json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_number()) return std::nullopt;
  const double value = found->get<double>();
  // No machine has more of anything, and sums of such stay whole numbers.
  constexpr double most = 1e14;
  return value >= 0 && value <= most ? std::optional(value) : std::nullopt;
}

const json* object_in(const json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_object() ? &*found : nullptr;
}

std::optional<run_line::waits> waits_in(const json& line) {
  const json* const waits = object_in(line, "waits_ms");
  if (waits == nullptr) return std::nullopt;
  const auto of = [&](const char* key) { return number_in(*waits, key).value_or(0); };
  return run_line::waits{.p50_ms = of("p50"),
                         .p99_ms = of("p99"),
                         .max_ms = of("max"),
                         .epoch = static_cast<std::uint64_t>(std::min(of("epoch"), 1e15)),
                         .batch = static_cast<std::uint64_t>(std::min(of("batch"), 1e15))};
}

std::string string_in(const json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

// What is no step is passed over.
std::vector<run_line::step> steps_in(const json& line) {
  std::vector<run_line::step> steps;
  const auto all = line.find("tuning");
  if (all == line.end() || !all->is_array()) return steps;
  for (const json& each : *all) {
    if (!each.is_object()) continue;
    const std::optional<double> at_s = number_in(each, "at_s");
    const std::optional<double> from = number_in(each, "from");
    const std::optional<double> to = number_in(each, "to");
    if (!at_s || !from || !to) continue;
    steps.push_back({.at_s = *at_s,
                     .setting = string_in(each, "setting"),
                     .from = *from,
                     .to = *to,
                     .why = string_in(each, "why"),
                     .stall_share = number_in(each, "stall_share").value_or(0)});
  }
  return steps;
}

// A share of all is at most 1: what says more is none.
std::optional<double> share_in(const json& object, const char* key) {
  const std::optional<double> share = number_in(object, key);
  return share && *share <= 1 ? share : std::nullopt;
}

std::optional<run_line::gpu_shares> gpu_in(const json& line) {
  const json* const gpu = object_in(line, "gpu");
  if (gpu == nullptr) return std::nullopt;
  // One reason is of all that have none of their own.
  const std::string why = string_in(*gpu, "why");
  const auto reason = [&](const char* name) {
    const std::string own = string_in(*gpu, name);
    return own.empty() ? why : own;
  };
  return run_line::gpu_shares{.sm = share_in(*gpu, "sm"),
                              .occupancy = share_in(*gpu, "sm_occupancy"),
                              .busy = share_in(*gpu, "busy"),
                              .why_sm = why,
                              .why_occupancy = reason("why_sm_occupancy"),
                              .why_busy = reason("why_busy")};
}

// Nothing where it is no line of --progress.
std::optional<run_line> line_in(const json& object) {
  if (!object.is_object()) return std::nullopt;
  const std::optional<double> end = number_in(object, "t_s");
  const std::optional<double> seconds = number_in(object, "seconds");
  const std::optional<double> samples = number_in(object, "samples");
  if (!end || !seconds || !samples) return std::nullopt;
  const auto of = [&](const char* key) { return number_in(object, key).value_or(0); };
  run_line line;
  line.end_s = *end;
  line.seconds = *seconds;
  line.samples = *samples;
  // Of a wait that began before this time all is counted when it ends.
  line.stalled_s = of("stalled_s");
  line.reads_in_flight = of("reads_in_flight");
  line.decode_queued = of("decode_queued");
  line.batches_ready = of("batches_ready");
  line.verdict = "unknown";
  if (const json* const verdict = object_in(object, "verdict")) {
    const auto who = verdict->find("who");
    if (who != verdict->end() && who->is_string()) line.verdict = who->get<std::string>();
  }
  line.step_s = number_in(object, "step_s");
  line.cpu_s = number_in(object, "cpu_s");
  line.rss_bytes = number_in(object, "rss_bytes");
  line.arena_bytes = number_in(object, "arena_bytes");
  line.bytes_from_files = number_in(object, "bytes_from_files");
  line.bytes_from_network = number_in(object, "bytes_from_network");
  line.bytes_from_cache = number_in(object, "bytes_from_cache");
  line.gpu = gpu_in(object);
  line.steps = steps_in(object);
  line.waited = waits_in(object);
  if (const json* const threads = object_in(object, "threads")) {
    for (const auto& [name, cores] : threads->items()) {
      line.threads.emplace_back(name, number_in(*threads, name.c_str()).value_or(0));
    }
  }
  return line;
}

double sum_of(const recorded_run& run, double run_line::* member) {
  double sum = 0;
  for (const run_line& line : run.lines) sum += line.*member;
  return sum;
}

// Nothing where a line lacks it: what the others add up to would be too little.
std::optional<double> sum_of(const recorded_run& run, std::optional<double> run_line::* member) {
  double sum = 0;
  for (const run_line& line : run.lines) {
    if (!(line.*member)) return std::nullopt;
    sum += *(line.*member);
  }
  return sum;
}

constexpr std::string_view is_older = "this file does not have it: an older leat wrote it";

run_measure measure(std::string_view name, std::string_view is, std::optional<double> value,
                    std::string_view why = is_older) {
  return {.name = name, .is = is, .value = value, .why = value ? std::string() : std::string(why)};
}

std::optional<double> ratio(std::optional<double> of, double to) {
  return of && to > 0 ? std::optional(*of / to) : std::nullopt;
}

// Of the time that it was measured in, where that is nearly all of the run: what a part of it was says nothing of the rest.
run_measure gpu_measure(const recorded_run& run, std::string_view name, std::string_view is,
                        std::optional<double> run_line::gpu_shares::* member,
                        std::string run_line::gpu_shares::* reason) {
  constexpr double nearly_all = 0.9;
  double sum = 0;
  double seconds = 0;
  std::map<std::string, double> reasons;  // and the seconds of each
  bool is_there = false;
  for (const run_line& line : run.lines) {
    if (!line.gpu) continue;
    is_there = true;
    if (const std::optional<double> share = (*line.gpu).*member) {
      sum += *share * line.seconds;
      seconds += line.seconds;
    } else if (const std::string& why = (*line.gpu).*reason; !why.empty()) {
      reasons[why] += line.seconds;
    }
  }
  if (!is_there) return measure(name, is, std::nullopt);
  if (seconds > 0 && seconds >= nearly_all * run.seconds()) return measure(name, is, sum / seconds);
  const auto longest = std::max_element(reasons.begin(), reasons.end(),
                                        [](const auto& a, const auto& b) { return a.second < b.second; });
  const std::string why = longest == reasons.end() ? "NVML did not say" : longest->first;
  return measure(name, is, std::nullopt,
                 seconds > 0 ? str_cat("only in ", absl::StrFormat("%.0f", seconds / run.seconds() * 100),
                                       " % of the run; else: ", why)
                             : why);
}

}  // namespace

double recorded_run::seconds() const { return sum_of(*this, &run_line::seconds); }
double recorded_run::samples() const { return sum_of(*this, &run_line::samples); }
double recorded_run::stalled_s() const { return sum_of(*this, &run_line::stalled_s); }
double recorded_run::cores() const { return about.is_object() ? number_in(about, "cores").value_or(0) : 0; }

recorded_run parse_run(const std::string& path, std::string_view text) {
  recorded_run run;
  run.path = path;
  std::size_t number = 0;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    ++number;
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    const json object = parse_json_or_discard<json>(line);
    std::optional<run_line> read = line_in(object);
    if (!read) {
      ++run.unreadable;
      continue;
    }
    if (!run.lines.empty() && read->end_s < run.lines.back().end_s) {
      throw error(errc::format,
                  str_cat(path, ": line ", number,
                          " is earlier than the one before: two runs are in one file; give each its own"));
    }
    if (const json* const about = object_in(object, "run"); about != nullptr && run.about.is_null()) run.about = *about;
    if (const json* const settings = object_in(object, "settings")) run.settings = *settings;
    if (const json* const waits = object_in(object, "next_wait_ms")) {
      const auto of = [&](const char* key) { return number_in(*waits, key).value_or(0); };
      run.waits_ms = {of("p50"), of("p90"), of("p99"), of("max")};
    }
    run.quarantined += number_in(object, "quarantined").value_or(0);
    run.lines.push_back(std::move(*read));
  }
  if (run.lines.empty()) {
    throw error(
        errc::format,
        str_cat(path, " has no line of `leat epoch --progress`; make one: leat epoch SOURCE --progress ", path));
  }
  return run;
}

std::vector<run_measure> measures_of(const recorded_run& run, const measure_options& options) {
  const double seconds = run.seconds();
  const double stalled = run.stalled_s();
  const std::optional<double> steps = sum_of(run, &run_line::step_s);
  // What was waited for the first batch is in no line's stalled_s, as MLPerf Storage leaves the first step out.
  const std::optional<double> au = steps ? ratio(*steps, *steps + stalled) : std::nullopt;
  const std::optional<double> cpu_s = sum_of(run, &run_line::cpu_s);
  const double cores = run.cores();
  const std::optional<double> files = sum_of(run, &run_line::bytes_from_files);
  const std::optional<double> network = sum_of(run, &run_line::bytes_from_network);
  const std::optional<double> cache = sum_of(run, &run_line::bytes_from_cache);
  const auto wait = [&](std::size_t which) {
    return run.waits_ms ? std::optional((*run.waits_ms)[which]) : std::nullopt;
  };
  std::optional<double> rss;
  for (const run_line& line : run.lines) {
    if (line.rss_bytes) rss = std::max(rss.value_or(0), *line.rss_bytes);
  }
  const bool no_network = network && cache && *network + *cache == 0;
  return {
      measure("samples_per_s", "samples a second", ratio(run.samples(), seconds), "the run took no time"),
      measure("stall", "share of the time that the trainer waited", ratio(stalled, seconds), "the run took no time"),
      measure("au", "time of steps over time of steps and waits", au, steps ? "no batch was delivered" : is_older),
      measure("next_p50_ms", "wait of next(), the median", wait(0)),
      measure("next_p90_ms", "90 of 100 waits are shorter", wait(1)),
      measure("next_p99_ms", "99 of 100 waits are shorter", wait(2)),
      measure("next_max_ms", "the longest wait", wait(3)),
      measure("cpu", "share of the machine's cores", ratio(cpu_s, seconds * cores)),
      measure("cpu_ms_per_sample", "CPU time of a sample", cpu_s ? ratio(*cpu_s * 1e3, run.samples()) : std::nullopt),
      measure(
          "disk", "share of what the drive can give",
          options.disk_peak > 0 && files ? ratio(*files / options.disk_peak, seconds) : std::nullopt,
          files ? "the drive's peak is not known; leat bench read measures it, --disk-peak 3.1GB/s says it" : is_older),
      measure("cache_hit", "share of bytes from the local cache",
              network && cache ? ratio(*cache, *network + *cache) : std::nullopt,
              no_network ? "nothing came from an address" : is_older),
      measure("rss_bytes", "memory of the process at most", rss),
      measure("quarantined", "corrupt samples", run.quarantined),
      gpu_measure(run, "sm", "share of the GPU's processors (SMs) that were busy, with any program",
                  &run_line::gpu_shares::sm, &run_line::gpu_shares::why_sm),
      gpu_measure(run, "sm_occupancy", "share of the warps that its SMs have room for",
                  &run_line::gpu_shares::occupancy, &run_line::gpu_shares::why_occupancy),
      gpu_measure(run, "gpu_busy", "share of the time with a kernel on the GPU, on one SM or on all",
                  &run_line::gpu_shares::busy, &run_line::gpu_shares::why_busy),
  };
}

std::vector<run_limit> parse_limits(std::string_view text) {
  const std::vector<run_measure> known = measures_of({}, {});
  std::vector<run_limit> limits;
  constexpr std::string_view between = " ,\t\n";
  if (!text.empty() && text.find_first_not_of(between) == std::string_view::npos) {
    throw error(errc::usage, str_cat("--limits '", text, "' has no limit; write one as next_p99_ms<=50"));
  }
  for (;;) {
    const std::size_t begin = text.find_first_not_of(between);
    if (begin == std::string_view::npos) break;
    text.remove_prefix(begin);
    const std::string_view each = text.substr(0, text.find_first_of(between));
    text.remove_prefix(each.size());
    const std::size_t sign = each.find_first_of("<>=");
    const std::string_view name = each.substr(0, sign);
    const auto is_named = [&](const run_measure& one) { return one.name == name; };
    if (std::none_of(known.begin(), known.end(), is_named)) {
      std::vector<std::string_view> names;
      for (const run_measure& one : known) names.push_back(one.name);
      throw error(errc::usage,
                  str_cat("--limits '", each, "': no measure is called '", name, "'; they are ", joined(names, ", ")));
    }
    const std::string_view rest = sign == std::string_view::npos ? std::string_view() : each.substr(sign);
    double bound = 0;
    if (!(rest.starts_with("<=") || rest.starts_with(">=")) || !absl::SimpleAtod(as_absl(rest.substr(2)), &bound) ||
        !std::isfinite(bound)) {
      throw error(errc::usage, str_cat("--limits '", each, "' is no limit; write ", name, "<=NUMBER or ", name,
                                       ">=NUMBER, without spaces"));
    }
    limits.push_back({.name = std::string(name), .at_most = rest[0] == '<', .bound = bound});
  }
  return limits;
}

std::vector<held_limit> hold(const std::vector<run_limit>& limits, const std::vector<run_measure>& measures) {
  std::vector<held_limit> held;
  for (const run_limit& limit : limits) {
    const auto found = std::find_if(measures.begin(), measures.end(),
                                    [&](const run_measure& each) { return each.name == limit.name; });
    held_limit each{.limit = limit, .measure = *found};
    if (each.measure.value) {
      const bool is_kept = limit.at_most ? *each.measure.value <= limit.bound : *each.measure.value >= limit.bound;
      each.outcome = is_kept ? limit_outcome::kept : limit_outcome::broken;
    }
    held.push_back(std::move(each));
  }
  return held;
}

std::string measure_text(double value) {
  if (std::abs(value) >= 1000 && std::abs(value) < 1e15)
    return count_text(static_cast<std::uint64_t>(std::llround(value)));
  return absl::StrFormat("%.3g", value);
}

}  // namespace leat::tools
