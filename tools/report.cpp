// leat report: what came of a run, as a page and held to limits.
#include "base/gzip.hpp"
#include "base/text.hpp"
#include "tools/arguments.hpp"
#include "tools/human.hpp"
#include "tools/joined_traces.hpp"
#include "tools/output.hpp"
#include "tools/report_page.hpp"
#include "tools/subcommand.hpp"
#include "tools/whole_file.hpp"

#include <leat/error.hpp>

#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace leat::tools {
namespace {

constexpr std::size_t runs_max = 2;

struct report_arguments {
  std::vector<std::string> runs;
  std::string page;
  std::string limits;
  std::string tensorboard;
  bool joins_traces = false;
  std::string disk_peak;
  std::string price;
};

std::string bytes_of_file(const std::string& path, std::string_view written_by = "`leat epoch --progress`") {
  int failure = 0;
  std::string text = whole_file(path, failure);
  if (failure != 0) {
    throw error(errc::usage, str_cat("cannot read ", path, ": ", std::strerror(failure), "; give a file that ",
                                     written_by, " has written"));
  }
  return text;
}

double disk_peak_of(const std::string& text) {
  if (text.empty()) return 0;
  const std::string size = text.ends_with("/s") ? text.substr(0, text.size() - 2) : text;
  const std::optional<std::uint64_t> bytes = parse_bytes(size);
  if (!bytes || *bytes == 0) {
    throw error(errc::usage, str_cat("--disk-peak '", text, "' is no rate; write one as 3.1GB/s"));
  }
  return static_cast<double>(*bytes);
}

double price_of(const std::string& text) {
  if (text.empty()) return 0;
  double price = -1;
  // std::from_chars takes neither blanks nor hexadecimal numbers.
  const auto [end, wrong] = std::from_chars(text.data(), text.data() + text.size(), price);
  if (wrong != std::errc() || end != text.data() + text.size() || !std::isfinite(price) || price < 0) {
    throw error(errc::usage, str_cat("--price-per-hour '", text, "' is no price; write one as 2.5"));
  }
  return price;
}

// TensorBoard takes each folder for a run.
std::string events_folder(const std::string& folder, std::size_t run, std::size_t runs) {
  return runs == 1 ? folder : str_cat(folder, "/", run + 1);
}

std::string events_path(const std::string& folder) { return folder + "/events.out.tfevents.0.leat"; }

// Before the page is written.
void check_tensorboard(const std::string& folder, std::size_t runs) {
  for (std::size_t i = 0; i < runs; ++i) {
    const std::string place = events_folder(folder, i, runs);
    std::error_code failure;
    std::filesystem::create_directories(place, failure);
    if (failure) {
      throw error(errc::io, str_cat("cannot make the directory ", place, ": ", failure.message(),
                                    "; give --tensorboard a directory that you may write"));
    }
    output_file::check(events_path(place), output_kind::events);
  }
}

void write_tensorboard(const std::string& folder, const std::vector<recorded_run>& runs) {
  for (std::size_t i = 0; i < runs.size(); ++i) {
    output_file file(events_path(events_folder(folder, i, runs.size())), output_kind::events,
                     output_file::appears::when_closed);
    file.write(tensorboard_events(runs[i]));
    file.close();
  }
}

// Another thing to show of runs, and as quick: no run is looked at, and nothing is held to limits.
int join(const report_arguments& arguments) {
  if (arguments.page.empty()) {
    throw error(errc::usage, "--join-traces writes one file of several; give it -o FILE");
  }
  if (!(arguments.limits.empty() && arguments.tensorboard.empty() && arguments.disk_peak.empty() &&
        arguments.price.empty())) {
    throw error(errc::usage, "--join-traces takes nothing but -o FILE; leave out what is about a run of --progress");
  }
  if (arguments.page != "-") check_replaces_own_kind(arguments.page, output_kind::trace, "-o");
  std::vector<trace_file> files;
  for (const std::string& each : arguments.runs) {
    if (is_same_file(each, arguments.page)) {
      throw error(errc::usage, str_cat("-o ", arguments.page, " is one of the traces; give it a name of its own"));
    }
    files.push_back({each, unpacked(each, bytes_of_file(each, "`leat epoch --trace`"))});
  }
  const std::string text = join_traces(files);
  if (arguments.page == "-") {
    print(text);
    return exit_done;
  }
  std::vector<std::byte> packed;
  if (arguments.page.ends_with(".gz")) gzip(std::as_bytes(std::span(text)), packed);
  output_file file(arguments.page, output_kind::trace, output_file::appears::when_closed);
  if (packed.empty()) {
    file.write(text);
  } else {
    file.write(std::span<const std::byte>(packed));
  }
  file.close();
  return exit_done;
}

int report(const report_arguments& arguments) {
  if (arguments.joins_traces) return join(arguments);
  if (arguments.runs.size() > runs_max) {
    throw error(errc::usage, str_cat("a page shows one run, or one beside another; of ", arguments.runs.size(),
                                     " give the two to compare"));
  }
  for (const std::string& each : arguments.runs) {
    if (is_same_file(each, arguments.page)) {
      throw error(errc::usage, str_cat("-o ", arguments.page, " is the run itself; give the page a name of its own"));
    }
  }
  if (arguments.page != "-") check_replaces_own_kind(arguments.page, output_kind::page, "-o");
  const std::vector<run_limit> limits = parse_limits(arguments.limits);
  const measure_options options{.disk_peak = disk_peak_of(arguments.disk_peak)};
  run_report shown;
  shown.price_per_hour = price_of(arguments.price);
  for (const std::string& each : arguments.runs) {
    shown.runs.push_back(parse_run(each, bytes_of_file(each)));
    shown.measures.push_back(measures_of(shown.runs.back(), options));
  }
  shown.limits = hold(limits, shown.measures.front());
  if (!arguments.tensorboard.empty()) check_tensorboard(arguments.tensorboard, shown.runs.size());
  if (arguments.page == "-") {
    print(shown.as_html());
  } else if (!arguments.page.empty()) {
    output_file file(arguments.page, output_kind::page, output_file::appears::when_closed);
    file.write(shown.as_html());
    file.close();
  }
  if (!arguments.tensorboard.empty()) write_tensorboard(arguments.tensorboard, shown.runs);
  const std::string text = shown.as_text(terminal::of(arguments.page == "-" ? stderr : stdout));
  if (arguments.page == "-") {
    std::fputs(text.c_str(), stderr);
  } else {
    print(text);
  }
  return shown.keeps_limits() ? exit_done : exit_failed;
}

}  // namespace

void add_report(CLI::App& leat, chosen_command& chosen) {
  auto arguments = std::make_shared<report_arguments>();  // Lives as long as the parser's callbacks do.
  CLI::App& app = *leat.add_subcommand("report", "show a run, hold it to limits, compare it with another");
  app.add_option("RUN", arguments->runs,
                 "what leat epoch --progress has written; a second one is shown beside it. The exit status is 1 if "
                 "the first does not keep a limit")
      ->required()
      ->type_name("RUN");
  add_text(app, "-o,--out", arguments->page, "FILE",
           "a page that needs nothing beside it; - is standard output, and the summary then goes to standard error");
  add_text(app, "--limits", arguments->limits, "LIMITS",
           "as 'next_p99_ms<=50 au>=0.9': samples_per_s, stall, au, next_p50_ms, next_p90_ms, next_p99_ms, "
           "next_max_ms, cpu, cpu_ms_per_sample, disk, cache_hit, rss_bytes, quarantined, sm, sm_occupancy, gpu_busy. "
           "What was not measured does "
           "not keep its limit");
  add_text(app, "--disk-peak", arguments->disk_peak, "RATE", "what the drive can give, as 3.1GB/s, for the limit disk");
  add_text(app, "--price-per-hour", arguments->price, "PRICE", "of the machine: what the run and its waits cost");
  add_text(app, "--tensorboard", arguments->tensorboard, "DIR",
           "event files for TensorBoard; of two runs in a folder each");
  app.add_flag("--join-traces", arguments->joins_traces,
               "each RUN is a trace that leat epoch --trace has written, of one rank: -o FILE gets them all");
  app.footer(
      "  leat epoch photos --progress run.jsonl && leat report run.jsonl -o run.html\n"
      "  leat report run.jsonl --limits 'next_p99_ms<=50 au>=0.9'\n"
      "  leat report new.jsonl old.jsonl -o both.html\n"
      "  leat report --join-traces t-0.json t-1.json -o all.json.gz");
  app.callback([arguments, &chosen] { chosen = [arguments](interruption&) { return report(*arguments); }; });
}

}  // namespace leat::tools
