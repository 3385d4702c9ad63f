// leat tune: what a loader should work with on this machine, for a trainer of that step time.
#include "base/text.hpp"
#include "tools/arguments.hpp"
#include "tools/epoch_arguments.hpp"
#include "tools/epoch_report.hpp"
#include "tools/fields.hpp"
#include "tools/human.hpp"
#include "tools/output.hpp"
#include "tools/process.hpp"
#include "tools/ranks.hpp"
#include "tools/run_record.hpp"
#include "tools/sources.hpp"
#include "tools/stand_in.hpp"
#include "tools/status_line.hpp"
#include "tools/subcommand.hpp"
#include "tools/terminal.hpp"

#include <leat/error.hpp>
#include <leat/loading.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace leat::tools {
namespace {

using json = nlohmann::ordered_json;
using clock = std::chrono::steady_clock;

struct tune_arguments {
  epoch_arguments run;
  bool has_epochs = false;  // given
  std::uint32_t step_ms = 0;
  double minutes = 10;
};

double minutes_of(const std::string& option, const std::string& given) {
  double minutes = 0;
  const char* const end_given = given.data() + given.size();
  const auto [end, failure] = std::from_chars(given.data(), end_given, minutes, std::chars_format::fixed);
  if (failure != std::errc() || end != end_given || !(minutes > 0 && minutes <= 1440)) {
    refuse(option, given, "a number of minutes up to 1440, as 10 or 0.5");
  }
  return minutes;
}

/// What the tuner may change, as options have it.
struct tuned_setting {
  std::uint32_t threads = 0;
  std::uint32_t batches = 0;  // the trainer's with them
  std::uint32_t queue_depth = 0;
  std::uint32_t io_threads = 0;
  std::uint32_t connections = 0;  // 0: none was tried

  friend bool operator==(const tuned_setting&, const tuned_setting&) = default;
  [[nodiscard]] std::uint32_t prefetch_batches() const { return std::max(batches, 2U) - 1; }
};

tuned_setting setting_of(const tuning_stats& now) {
  return {now.decode_threads, now.batches, now.queue_depth, now.io_threads, tuned_connections(now)};
}

/// A window of the run, and the setting that it was worked with.
///   cores   that this process was busy with
///   why     the tuner's reason to try the setting; empty: the run began with it
struct tuned_window {
  tuned_setting setting;
  loader_window of;
  double cores = 0;
  std::string why;
};

/// Takes down each window that ends. Thread: the one that takes the batches.
class window_log {
 public:
  ///   train   outlives it
  explicit window_log(const loader& train) : train_(train), now_(setting_of(train.stats().tuned)) {}

  /// Looks for a window that has ended: after each batch. Windows are 2 s long at least, so that one ends between two looks at most.
  void look() {
    if (seconds_since(looked_) < between_looks_s) return;
    looked_ = clock::now();
    const std::vector<loader_window> windows = train_.windows();  // the last one is open
    if (windows.size() < 2 || windows[windows.size() - 2].begin_s < next_begin_s_) return;
    const loader_window& ended = windows[windows.size() - 2];
    next_begin_s_ = windows.back().begin_s;
    const double cpu_s = cpu_seconds();
    all_.push_back({now_, ended, (cpu_s - cpu_s_) / std::max(seconds_since(counted_), 1e-3), why_});
    cpu_s_ = cpu_s;
    counted_ = clock::now();
    ended_ = all_.size();
    const tuning_stats tuned = train_.stats().tuned;
    frozen_ = tuned.frozen;
    if (const tuned_setting next = setting_of(tuned); next != now_) {
      now_ = next;
      why_ = tuned.steps.empty() ? "" : tuned.steps.back().why;
    }
  }

  [[nodiscard]] bool is_frozen() const noexcept { return frozen_; }
  [[nodiscard]] const std::vector<tuned_window>& all() const noexcept { return all_; }
  /// Thread: any.
  [[nodiscard]] std::size_t ended() const noexcept { return ended_; }
  /// What is worth keeping: the setting of now, or that of the last window where nothing has judged that of now yet.
  ///   all()   is not empty
  [[nodiscard]] tuned_setting chosen() const {
    const bool was_seen = std::any_of(all_.begin(), all_.end(), [&](const auto& each) { return each.setting == now_; });
    return was_seen ? now_ : all_.back().setting;
  }

 private:
  static constexpr double between_looks_s = 0.1;
  const loader& train_;
  tuned_setting now_;
  std::string why_;
  std::vector<tuned_window> all_;
  std::atomic<std::size_t> ended_ = 0;
  bool frozen_ = false;
  double next_begin_s_ = 0;
  double cpu_s_ = cpu_seconds();
  clock::time_point counted_ = clock::now();
  clock::time_point looked_;
};

/// All windows of one setting together: the middle one of each figure.
struct tried_setting {
  tuned_setting setting;
  std::size_t windows = 0;
  double samples_per_s = 0;
  double stall_share = 0;
  double cores = 0;
  verdict last;
  std::string why;
};

double middle(std::vector<double> values) {
  const auto at = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), at, values.end());
  return *at;
}

// In the order in which they were tried first.
std::vector<tried_setting> tried_of(const std::vector<tuned_window>& all) {
  std::vector<tried_setting> tried;
  for (const tuned_window& first : all) {
    const auto is_same = [&](const auto& each) { return each.setting == first.setting; };
    if (std::any_of(tried.begin(), tried.end(), is_same)) continue;
    std::vector<double> rates;
    std::vector<double> stalls;
    std::vector<double> cores;
    tried_setting made{.setting = first.setting, .last = {}, .why = first.why};
    for (const tuned_window& each : all) {
      if (each.setting != first.setting) continue;
      rates.push_back(each.of.verdict.samples_per_s);
      stalls.push_back(each.of.verdict.stall_share);
      cores.push_back(each.cores);
      made.last = each.of.verdict;
    }
    made.windows = rates.size();
    made.samples_per_s = middle(std::move(rates));
    made.stall_share = middle(std::move(stalls));
    made.cores = middle(std::move(cores));
    tried.push_back(std::move(made));
  }
  return tried;
}

/// What came of it.
struct tuning_result {
  std::vector<tuned_window> windows;
  std::vector<tried_setting> tried;
  tuned_setting chosen;
  bool frozen = false;
  double seconds = 0;

  [[nodiscard]] const tried_setting& best() const {
    return *std::find_if(tried.begin(), tried.end(), [&](const auto& each) { return each.setting == chosen; });
  }
};

std::string flags_text(const tuned_setting& of) {
  return str_cat("--threads ", of.threads, " --prefetch-batches ", of.prefetch_batches(),
                 of.queue_depth != 0 ? str_cat(" --queue-depth ", of.queue_depth) : "",
                 of.io_threads > 1 ? str_cat(" --io-threads ", of.io_threads) : "");
}

std::string cpp_text(const tuned_setting& of) {
  std::string reader = of.queue_depth != 0 ? str_cat(".queue_depth = ", of.queue_depth) : "";
  if (of.io_threads > 1) str_append(reader, reader.empty() ? "" : ", ", ".io_threads = ", of.io_threads);
  return str_cat(".decode_threads = ", of.threads, ", .prefetch_batches = ", of.prefetch_batches(),
                 reader.empty() ? "" : str_cat(", .reader = {", reader, "}"));
}

// Of open_options: how many connections is a property of what is read.
std::string open_text(const tuned_setting& of) {
  return str_cat(".remote = {.connections_max = ", of.connections, "}");
}

json setting_json(const tuned_setting& of) {
  return {{"decode_threads", of.threads},
          {"prefetch_batches", of.prefetch_batches()},
          {"queue_depth", of.queue_depth},
          {"io_threads", of.io_threads},
          {"connections", of.connections != 0 ? json(of.connections) : json()}};
}

json as_json(const tuning_result& result, const tune_arguments& asked) {
  json tried = json::array();
  for (const tried_setting& each : result.tried) {
    json line = setting_json(each.setting);
    line.update({{"why", each.why.empty() ? json(nullptr) : json(each.why)},
                 {"windows", each.windows},
                 {"samples_per_s", each.samples_per_s},
                 {"stall_share", each.stall_share},
                 {"cores", each.cores},
                 {"verdict", verdict_json(each.last)}});
    tried.push_back(std::move(line));
  }
  json windows = json::array();
  for (const tuned_window& each : result.windows) {
    json line = setting_json(each.setting);
    line.update({{"begin_s", each.of.begin_s},
                 {"seconds", each.of.seconds},
                 {"batches", each.of.batches},
                 {"samples_per_s", each.of.verdict.samples_per_s},
                 {"stall_share", each.of.verdict.stall_share},
                 {"cores", each.cores},
                 {"bottleneck", std::string(name(each.of.verdict.who))}});
    windows.push_back(std::move(line));
  }
  return {{"step_ms", asked.step_ms},
          {"seconds", result.seconds},
          {"frozen", result.frozen},
          {"chosen", setting_json(result.chosen)},
          {"flags", flags_text(result.chosen)},
          {"cpp", cpp_text(result.chosen)},
          {"open", result.chosen.connections != 0 ? json(open_text(result.chosen)) : json()},
          {"tried", std::move(tried)},
          {"windows", std::move(windows)}};
}

std::string table_text(const tuning_result& result, const terminal& screen) {
  std::string text = "  " + screen.dim("threads  ahead  reads  windows  samples/s   waits  cores  bottleneck") + "\n";
  for (const tried_setting& each : result.tried) {
    const bool is_chosen = each.setting == result.chosen;
    const std::string reads = str_cat(each.setting.io_threads > 1 ? str_cat(each.setting.io_threads, " x ") : "",
                                      each.setting.queue_depth == 0 ? "auto" : str_cat(each.setting.queue_depth));
    const std::string line = str_cat(
        is_chosen ? "> " : "  ", to_right(str_cat(each.setting.threads), 7),
        to_right(str_cat(each.setting.prefetch_batches()), 7), to_right(reads, 7), to_right(str_cat(each.windows), 9),
        to_right(count_text(static_cast<std::uint64_t>(std::llround(each.samples_per_s))), 11),
        to_right(with_decimals(each.stall_share * 100, 1) + " %", 8), to_right(with_decimals(each.cores, 2), 7), "  ",
        name(each.last.who), each.why.empty() ? "" : str_cat(", tried for: ", each.why));
    str_append(text, is_chosen ? screen.bold(line) : line, "\n");
  }
  return text;
}

std::string as_text(const tuning_result& result, const tune_arguments& asked, const terminal& screen) {
  const std::string steps =
      asked.step_ms == 0 ? "a trainer that takes no time" : str_cat("steps of ", asked.step_ms, " ms");
  std::string text = str_cat("\n  ", screen.bold(steps), ": ", counted(result.windows.size(), "window", "windows"),
                             " in ", seconds_text(result.seconds), "\n\n", table_text(result, screen), "\n");
  str_append(text, "  ", result.frozen ? "nothing was worth a change any more" : "a longer run may find more", "\n");
  if (const tried_setting& best = result.best(); best.stall_share > 0.01 && asked.step_ms != 0) {
    str_append(text, "  ", screen.warning("the trainer still waits"), ", for ", best.last.to_string(), "\n");
  }
  str_append(text, "\n  ", screen.dim("leat epoch"), "      ", flags_text(result.chosen), "\n  ",
             screen.dim("loader_options"), "  ", cpp_text(result.chosen), "\n");
  if (result.chosen.connections != 0)
    str_append(text, "  ", screen.dim("open_options"), "    ", open_text(result.chosen), "\n");
  text += '\n';
  return text;
}

/// How far it is, for the line at the bottom: time, windows and what is worked with.
std::string progress_text(const loader& train, const window_log& log, double seconds, double minutes,
                          const terminal& screen, std::size_t columns) {
  const tuned_setting now = setting_of(train.stats().tuned);
  return bar_line(screen, columns, seconds / (minutes * 60),
                  str_cat("  ", clock_text(seconds), " of ", clock_text(minutes * 60), "  ",
                          counted(log.ended(), "window", "windows"), "  ", flags_text(now)));
}

// Takes batches until nothing is worth a change, the time is over, the run ends, or somebody stops it.
tuning_result tune_run(loader& train, const tune_arguments& asked, const interruption& stop) {
  const clock::time_point began = clock::now();
  const auto patience = std::chrono::milliseconds(50);
  window_log log(train);
  stand_in trainer(asked.step_ms);
  {
    const status_line shown([&](const terminal& screen, std::size_t columns) {
      return progress_text(train, log, seconds_since(began), asked.minutes, screen, columns);
    });
    while (!stop.requested() && !log.is_frozen() && !train.finished() && seconds_since(began) < asked.minutes * 60) {
      next_result got = train.next_blocking(patience);
      if (!got) continue;
      got->wait_on(stream());
      trainer.step(stop.token());
      log.look();
    }
  }
  tuning_result result{.windows = log.all(),
                       .tried = tried_of(log.all()),
                       .chosen = {},
                       .frozen = log.is_frozen(),
                       .seconds = seconds_since(began)};
  if (!result.windows.empty()) result.chosen = log.chosen();
  return result;
}

loader make_loader(const tune_arguments& asked, interruption& stop) {
  const epoch_arguments& run = asked.run;
  const auto leave = [&] { complain("tune", str_cat("stopped by ", stop.name(), " while opening the sources")); };
  const dataset opened = open_sources(run.sources, stop, leave, advise_loading, kind_of_sources(run));
  tell_notes("tune", opened);
  const chosen_fields fields = [&] {
    const leaving_at_once leaving(stop, leave);
    return fields_of(opened, run.pictures, run.windows);
  }();
  for (const std::string& each : fields.warnings) complain("tune", each);
  loader_options options = loader_options_of(run);
  if (!asked.has_epochs) options.epochs = 0;  // As many as it takes.
  options.digests = false;
  options.tune = tuning::on;
  const dataset samples = set_up([&] { return samples_of_run(fields, run); });
  return set_up([&] { return loader(samples, std::move(options), fields.all); });
}

int tune(tune_arguments asked, interruption& stop) {
  asked.run.here = world_of(asked.run.ranks);
  loader train = make_loader(asked, stop);
  for (const std::string& each : train.plan().warnings) complain("tune", str_cat("warning: ", each));
  if (train.batches() == 0) {
    throw error(errc::usage, str_cat("no batch comes of ", counted(train.samples(), "sample", "samples"),
                                     "; give a smaller --batch-size"));
  }
  const tuning_result result = tune_run(train, asked, stop);
  const loader_stats stats = train.stats();
  if (stop.requested()) complain("tune", str_cat("stopped by ", stop.name(), " after ", seconds_text(result.seconds)));
  if (result.windows.empty()) {
    if (stop.requested()) return stop.exit_code();
    throw error(errc::limit, str_cat("nothing is known after ", counted(stats.batches, "batch", "batches"), " in ",
                                     seconds_text(result.seconds),
                                     ": a window takes at least 2 s and 24 batches; give more --minutes",
                                     asked.has_epochs ? " or --epochs" : "", ", or a smaller --step-ms"));
  }
  print(asked.run.json ? report_text(as_json(result, asked), asked.run.asked)
                       : as_text(result, asked, terminal::of(stdout)));
  return stop.requested() ? stop.exit_code() : exit_done;
}

}  // namespace

void add_tune(CLI::App& leat, chosen_command& chosen) {
  auto arguments = std::make_shared<tune_arguments>();  // Lives as long as the parser's callbacks do.
  CLI::App& app = *leat.add_subcommand("tune", "find out how many threads, reads and batches a trainer takes");
  add_loading_options(app, arguments->run);
  app.remove_option(app.get_option("--tune"));
  app.option_defaults()->group("For whom");
  add_number(app, "--step-ms", arguments->step_ms, 0, "what a step of the trainer takes (0: as fast as they come)",
             3'600'000);
  app.add_option_function<std::string>(
         "--minutes",
         [of = arguments.get()](const std::string& given) { of->minutes = minutes_of("--minutes", given); },
         "the most that it takes; it ends earlier once nothing is worth a change (10)")
      ->type_name("N");
  app.add_flag("--json", arguments->run.json, "all windows and the settings, as one JSON object");
  app.footer(
      "  # sources and options as the run will be given\n"
      "  leat tune photos --step-ms 30\n"
      "  leat tune 'train-{000..127}.tar' --batch-size 256 --cores-max 12 --minutes 3 --json | jq -r .flags");
  const CLI::Option* const epochs = app.get_option("--epochs");
  app.callback([arguments, epochs, &app, &chosen] {
    arguments->run.asked = asked_of(app);
    arguments->has_epochs = epochs->count() > 0;
    chosen = [arguments](interruption& stop) { return tune(*arguments, stop); };
  });
}

}  // namespace leat::tools
