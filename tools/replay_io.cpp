// leat replay-io: how a recorded run would have been on another drive, or with other settings.
#include "base/errno_words.hpp"
#include "base/text.hpp"
#include "stages/observe/read_record.hpp"
#include "tools/arguments.hpp"
#include "tools/human.hpp"
#include "tools/output.hpp"
#include "tools/recorded_reads.hpp"
#include "tools/run_record.hpp"
#include "tools/subcommand.hpp"
#include "tools/terminal.hpp"
#include "tools/what_if.hpp"
#include "tools/whole_file.hpp"

#include <leat/error.hpp>

#include <absl/strings/str_format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

namespace leat::tools {
namespace {

using json = nlohmann::ordered_json;
using stages::read_record;

struct replay_io_arguments {
  std::string path;
  std::string on;
  std::optional<what_if_drive> disk;
  std::uint32_t threads = 0;
  std::uint32_t io_threads = 0;
  std::uint32_t queue_depth = 0;
  std::uint32_t prefetch_batches = 0;
  std::optional<std::uint32_t> step_ms;
  bool json = false;
  asked_for asked;
};

/// A run, recorded or replayed.
struct shown_run {
  std::string name;
  what_if_settings with;
  std::optional<what_if_drive> drive;  // none: the recorded run itself
  what_if_result result;
};

read_record read_of(const std::string& path) {
  int failure = 0;
  const std::string text = whole_file(path, failure);
  if (failure != 0) throw refused_name(str_cat("cannot read ", path, ": ", errno_words(failure)));
  return stages::parse_read_record(std::as_bytes(std::span(text)), path);
}

what_if_settings asked_settings(const replay_io_arguments& arguments, const read_record& record) {
  what_if_settings with = settings_of(record);
  const what_if_settings was = with;
  if (arguments.threads != 0) with.decode_threads = arguments.threads;
  if (arguments.io_threads != 0) with.io_threads = arguments.io_threads;
  if (arguments.queue_depth != 0) {
    with.queue_depth = arguments.queue_depth;
    with.by_bytes = false;
  }
  if (arguments.prefetch_batches != 0) with.batches = arguments.prefetch_batches + 1;
  if (arguments.step_ms) with.step_s = *arguments.step_ms * 1e-3;
  // A loader that works on more has more memory for it.
  const bool is_more = with.decode_threads > was.decode_threads || with.io_threads > was.io_threads ||
                       arguments.queue_depth != 0 || with.batches > was.batches;
  if (is_more) with.read_bytes = 0;
  return with;
}

double median_s(const what_if_drive& drive) {
  std::vector<std::uint32_t> all = drive.latency_ns;
  const auto middle = all.begin() + static_cast<std::ptrdiff_t>(all.size() / 2);
  std::nth_element(all.begin(), middle, all.end());
  return *middle * 1e-9;
}

std::string text_of(const what_if_drive& drive) {
  return str_cat(seconds_text(median_s(drive)), ", ", drive.is_least && drive.bytes_per_s > 0 ? ">= " : "",
                 drive.bytes_per_s > 0 ? rate_text(drive.bytes_per_s) : "no limit");
}

std::string depth_text(const what_if_settings& with) {
  return with.by_bytes ? "by size" : with.queue_depth == 0 ? "the source's" : count_text(with.queue_depth);
}

json json_of(const shown_run& run) {
  json made = {{"io_threads", run.with.io_threads},
               {"queue_depth", run.with.by_bytes || run.with.queue_depth == 0 ? json() : json(run.with.queue_depth)},
               {"decode_threads", run.with.decode_threads},
               {"batches", run.with.batches},
               {"step_s", run.result.step_s},
               {"samples_per_s", run.result.samples_per_s},
               {"bytes_per_s", run.result.bytes_per_s},
               {"stall_share", run.result.stall_share},
               {"wait_p50_s", run.result.wait_p50_s},
               {"wait_p99_s", run.result.wait_p99_s}};
  if (!run.drive) return made;
  made["drive"] = {{"latency_p50_s", median_s(*run.drive)},
                   {"bytes_per_s", run.drive->bytes_per_s > 0 ? json(run.drive->bytes_per_s) : json()},
                   {"at_least", run.drive->is_least}};
  made["bottleneck"] = name(run.result.bound.who);
  made["verdict"] = run.result.bound.to_string();
  return made;
}

std::string table_of(const std::vector<shown_run>& runs, const terminal& screen) {
  std::string text;
  const auto line = [&](const std::string& what, const std::function<std::string(const shown_run&)>& value) {
    absl::StrAppendFormat(&text, "  %-18s", what);
    for (const shown_run& run : runs) {
      const std::string shown = value(run);
      text += std::string(columns_of(shown) < 22 ? 22 - columns_of(shown) : 1, ' ') + shown;
    }
    text += "\n";
  };
  const auto percent = [](double share) { return absl::StrFormat("%.1f %%", share * 100); };
  line("", [&](const shown_run& run) { return screen.bold(run.name); });
  line("I/O threads", [](const shown_run& run) { return count_text(run.with.io_threads); });
  line("queue depth", [](const shown_run& run) { return depth_text(run.with); });
  line("decode threads", [](const shown_run& run) { return count_text(run.with.decode_threads); });
  line("batches at a time", [](const shown_run& run) { return count_text(run.with.batches); });
  line("step", [](const shown_run& run) { return seconds_text(run.result.step_s); });
  line("drive", [](const shown_run& run) { return run.drive ? text_of(*run.drive) : "-"; });
  line("samples/s", [](const shown_run& run) {
    return count_text(static_cast<std::uint64_t>(std::llround(run.result.samples_per_s)));
  });
  line("read", [](const shown_run& run) { return rate_text(run.result.bytes_per_s); });
  line("stall", [&](const shown_run& run) { return percent(run.result.stall_share); });
  line("next() p50", [](const shown_run& run) { return seconds_text(run.result.wait_p50_s); });
  line("next() p99", [](const shown_run& run) { return seconds_text(run.result.wait_p99_s); });
  for (const shown_run& run : runs) {
    if (run.drive) str_append(text, "  ", run.name, ": ", run.result.bound.to_string(), "\n");
  }
  return text;
}

// What is to be known before the figures are believed.
std::vector<std::string> notes_of(const read_record& record, const std::vector<shown_run>& runs) {
  std::vector<std::string> notes;
  const what_if_result& was = runs[0].result;
  const what_if_result& again = runs[1].result;
  const double stall = std::abs(again.stall_share - was.stall_share);
  const double rate = was.samples_per_s > 0 ? std::abs(again.samples_per_s / was.samples_per_s - 1) : 0;
  if (stall > 0.03 || rate > 0.05) {
    notes.push_back(absl::StrFormat(
        "the replay of the run as it was is off by %.1f points of stall and %.1f %% of the rate: no other is nearer",
        stall * 100, rate * 100));
  }
  const what_if_settings& with = runs.back().with;
  const double had_core = static_cast<double>(record.totals.decode_cpu_ns) /
                          static_cast<double>(std::max<std::uint64_t>(record.totals.decode_busy_ns, 1));
  constexpr double little_wait = 0.9;
  if (with.decode_threads != record.settings.decode_threads && record.totals.decode_busy_ns != 0 &&
      had_core < little_wait) {
    notes.push_back(absl::StrFormat(
        "the decode threads had a core for %.0f %% of their time, or slept: rows may take less where more is free",
        had_core * 100));
  }
  if (record.settings.cores != 0 && with.decode_threads > record.settings.cores) {
    notes.push_back(str_cat(count_text(with.decode_threads), " decode threads take a core each, and the run had ",
                            count_text(record.settings.cores)));
  }
  if (record.settings.tuned != 0) notes.emplace_back("the run changed its settings as it went (--tune on)");
  if (record.settings.on_device != 0)
    notes.emplace_back("waits on the device are not in the record: only those on the host");
  if (runs[1].drive->is_least && !runs.back().drive) {
    notes.emplace_back("the recorded drive was never at its limit, and may do more");
  }
  return notes;
}

int replay_io(const replay_io_arguments& arguments, interruption& stop) {
  if (!arguments.on.empty() && arguments.disk) {
    throw error(errc::usage, "--on and --disk each say what drive it is; leave one of them out");
  }
  const auto leave = [&stop] {
    complain("replay-io", str_cat("stopped by ", stop.name()));
    std::_Exit(stop.exit_code());  // Nothing is written.
  };
  const std::stop_callback leaving(stop.token(), leave);
  const read_record record = read_of(arguments.path);
  const auto are_of_one_epoch = [](const auto& one, const auto& next) { return one.epoch == next.epoch; };
  const auto end = record.batches.end();
  if (std::adjacent_find(record.batches.begin(), end, are_of_one_epoch) == end) {
    throw error(errc::format, str_cat(arguments.path, " has ", counted(record.batches.size(), "batch", "batches"),
                                      ", and no two of one epoch: too few to tell anything; record a longer run"));
  }
  const what_if_settings as_it_was = settings_of(record);
  const what_if_drive own = drive_of(record);
  std::vector<shown_run> runs;
  runs.push_back({"recorded", as_it_was, std::nullopt, measured(record)});
  runs.push_back({"replayed", as_it_was, own, simulate(record, as_it_was, own)});
  const what_if_settings with = asked_settings(arguments, record);
  const bool is_other = arguments.threads != 0 || arguments.io_threads != 0 || arguments.queue_depth != 0 ||
                        arguments.prefetch_batches != 0 || arguments.step_ms || arguments.disk || !arguments.on.empty();
  if (is_other) {
    const what_if_drive drive = arguments.disk         ? *arguments.disk
                                : arguments.on.empty() ? own
                                                       : measured_drive(record, arguments.on, with);
    runs.push_back({"what if", with, drive, simulate(record, with, drive)});
  }
  const std::vector<std::string> notes = notes_of(record, runs);
  if (arguments.json) {
    json made = {{"record",
                  {{"batches", record.batches.size()},
                   {"reads", record.reads.size()},
                   {"tuned", record.settings.tuned != 0},
                   {"cores", record.settings.cores}}},
                 {"recorded", json_of(runs[0])},
                 {"replayed", json_of(runs[1])}};
    if (is_other) made["what_if"] = json_of(runs[2]);
    made["notes"] = notes;
    print(report_text(std::move(made), arguments.asked));
    return exit_done;
  }
  const terminal screen = terminal::of(stdout);
  std::string text = str_cat("\n  ", one_line(arguments.path), ": ", counted(record.batches.size(), "batch", "batches"),
                             ", ", counted(record.reads.size(), "read", "reads"), "\n\n", table_of(runs, screen));
  for (const std::string& each : notes) str_append(text, "  note: ", each, "\n");
  print(text + "\n");
  return exit_done;
}

}  // namespace

void add_replay_io(CLI::App& leat, chosen_command& chosen) {
  auto arguments = std::make_shared<replay_io_arguments>();  // Lives as long as the parser's callbacks do.
  CLI::App& app = *leat.add_subcommand("replay-io", "how a recorded run would be on another drive, or other settings");
  app.add_option("RECORD", arguments->path, "what `leat epoch --record` wrote")->required()->type_name("");
  add_text(app, "--on", arguments->on, "FILE",
           "on the drive of this file or block device: the recorded reads are timed there, and nothing is written");
  app.add_option_function<std::string>(
         "--disk",
         [&arguments = *arguments](const std::string& given) { arguments.disk = parse_disk("--disk", given); },
         "on a drive of this latency and rate, as latency=90us,rate=6GB/s")
      ->type_name("DRIVE");
  add_number(app, "--threads", arguments->threads, 1, "that decode (as recorded, like all that follow)", 1024);
  add_number(app, "--io-threads", arguments->io_threads, 1, "that read", 64);
  add_number(app, "--queue-depth", arguments->queue_depth, 1, "reads in flight per I/O thread", 4096);
  add_number(app, "--prefetch-batches", arguments->prefetch_batches, 1, "under way or ready beside the trainer's",
             1'000'000);
  app.add_option_function<std::string>(
         "--step-ms",
         [&arguments = *arguments](const std::string& given) {
           arguments.step_ms = static_cast<std::uint32_t>(parse_number("--step-ms", given, 0, 3'600'000));
         },
         "what the trainer takes for each batch")
      ->type_name("N");
  app.add_flag("--json", arguments->json, "the result as one JSON object");
  app.footer(
      "  leat epoch photos --record epoch.rec\n"
      "  leat replay-io epoch.rec --disk latency=90us,rate=6GB/s --threads 16 --step-ms 12\n"
      "  leat replay-io epoch.rec --on /dev/nvme1n1 --queue-depth 64");
  app.callback([arguments, &app, &chosen] {
    arguments->asked = asked_of(app);
    chosen = [arguments](interruption& stop) { return replay_io(*arguments, stop); };
  });
}

}  // namespace leat::tools
