// leat epoch: loads, and says how fast, from where and what.
#include "base/corrupt_kind.hpp"
#include "base/errno_words.hpp"
#include "base/text.hpp"
#include "base/unfinished_file.hpp"
#include "stages/run/loader_parts.hpp"
#include "stages/state/replaceable_files.hpp"
#include "tools/arguments.hpp"
#include "tools/batch_files.hpp"
#include "tools/epoch_arguments.hpp"
#include "tools/epoch_progress.hpp"
#include "tools/epoch_report.hpp"
#include "tools/fields.hpp"
#include "tools/human.hpp"
#include "tools/meeting.hpp"
#include "tools/output.hpp"
#include "tools/process.hpp"
#include "tools/run_record.hpp"
#include "tools/sources.hpp"
#include "tools/stand_in.hpp"
#include "tools/state_writer.hpp"
#include "tools/status_line.hpp"
#include "tools/subcommand.hpp"
#include "tools/user_signal.hpp"

#include <leat/error.hpp>
#include <leat/index_options.hpp>
#include <leat/loading.hpp>
#include <leat/open.hpp>
#include <leat/rendezvous.hpp>

#include <absl/strings/str_format.h>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/use_future.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <cstddef>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <functional>
#include <iterator>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace leat::tools {
namespace {

namespace asio = boost::asio;
using clock = std::chrono::steady_clock;

// What a person reads: beside the lines where those have standard output.
void tell(const epoch_arguments& arguments, const std::string& text) {
  if (arguments.batches == "-") {
    std::fputs(text.c_str(), stderr);
  } else {
    print(text);
  }
}

std::array<written_file, 8> files_of(const epoch_arguments& arguments) {
  return {{{"--journal", &arguments.journal},
           {"--receipts", &arguments.receipts},
           {"--batches", &arguments.batches},
           {"--state", &arguments.state},
           {"--progress", &arguments.watch.windows},
           {"--trace", &arguments.trace},
           {"--record", &arguments.record},
           {"--metrics", &arguments.watch.metrics}}};
}

void check(const epoch_arguments& arguments) {
  if (arguments.on_corrupt == corrupt_policy::raise && arguments.corrupt_max != corrupt_bound()) {
    throw error(
        errc::usage,
        "--corrupt-max says how many corrupt samples are passed over, and none is unless --on-corrupt is skip or "
        "substitute; give one of them as well");
  }
  if (arguments.windows.length != 0 && arguments.arrays) {
    throw error(errc::usage, "--tokens and --arrays each say what the sources are; leave one of them out");
  }
  if (arguments.rows && arguments.batches.empty()) {
    throw error(errc::usage, "--rows says what a line of --batches holds; give --batches FILE as well");
  }
  if (arguments.rows && !arguments.digests) {
    throw error(errc::usage, "--rows writes digests, and --digest off makes none; leave one of them out");
  }
  if (!arguments.receipts.empty() && !arguments.digests) {
    throw error(errc::usage,
                "--receipts writes of each row's digest, and --digest off makes none; leave one of them out");
  }
  if (arguments.batches == "-" && arguments.json) {
    throw error(
        errc::usage,
        "--batches - writes its lines where --json writes one object; give --batches a FILE, or leave one of them out");
  }
  const std::array files = files_of(arguments);
  for (auto one = std::begin(files); one != std::end(files); ++one) {
    if (*one->second == "-" && one->first != "--batches" && one->first != "--state") {
      throw error(errc::usage, str_cat(one->first,
                                       " writes a file of its own, never standard output; name it (a file called - is "
                                       "./-)"));
    }
    for (auto other = one + 1; other != std::end(files); ++other) {
      if (!is_same_file(*one->second, *other->second)) continue;
      throw error(errc::usage,
                  str_cat(one->first, " and ", other->first, " name the same file; give each one of its own"));
    }
  }
  if (arguments.npy == "-") {
    throw error(errc::usage, "--npy writes files into a directory; name it (one called - is ./-)");
  }
  if (device_of(arguments.device) != host && !(arguments.npy.empty() && arguments.batches.empty())) {
    throw error(errc::usage, "--npy and --batches look at batches on the host; leave out --device, or them");
  }
}

/// Where the batches go, and what is known of the run once they are there.
struct batch_outputs {
  std::optional<batch_lines> lines;
  bool is_file = false;  // that they go to
  std::string npy_directory;
  state_writer state;

  void take(const batch& delivered, const loader& train, const std::stop_token& stop) {
    if (lines) lines->append(delivered, stop);
    if (!npy_directory.empty()) write_npy_files(npy_directory, delivered, stop);
    if (state.on()) state.write(train.state_after(delivered), lines_bytes());
  }
  void save(const loader& train) {
    if (state.on()) state.write(train.state(), lines_bytes());
  }
  void close() {
    state.finish();
    if (lines) lines->close();
  }

 private:
  // Nobody goes on with those of standard output.
  [[nodiscard]] std::uint64_t lines_bytes() const { return lines && is_file ? lines->bytes() : 0; }
};

state_writer_options run_state_of(const epoch_arguments& arguments) {
  return {.path = arguments.state,
          .name = arguments.state_name,
          .here = arguments.here.world,
          .resume = arguments.resume,
          .journal = arguments.journal,
          .receipts = arguments.receipts,
          .lines = arguments.batches};
}

//   state     of the run, locked
//   resumed   the run that is gone on with, if there is one
batch_outputs outputs_of(const epoch_arguments& arguments, const chosen_fields& fields, state_writer state,
                         const std::optional<loader_state>& resumed) {
  batch_outputs outputs{
      .lines = {}, .is_file = arguments.batches != "-", .npy_directory = {}, .state = std::move(state)};
  if (!arguments.batches.empty()) {
    outputs.lines.emplace(arguments.batches, arguments.rows, fields.labels.empty() ? "" : fields.labels.front(),
                          resumed ? resumed->lines_bytes : 0);
  }
  if (!arguments.npy.empty()) {
    std::error_code failure;
    std::filesystem::create_directories(arguments.npy, failure);
    if (failure) {
      throw error(errc::io, str_cat("cannot make the directory ", arguments.npy, ": ", failure.message(),
                                    "; give --npy a directory that you may write"));
    }
    outputs.npy_directory = arguments.npy;
  }
  return outputs;
}

// The trainer: takes batch after batch and does nothing with them but what it was asked.
//   batches_max   after which it stops; 0: at the end of the run
asio::awaitable<void> take_all(loader& train, std::uint64_t batches_max, batch_outputs& outputs, stand_in& trainer,
                               run_watch& watch, epoch_report& report, std::stop_token stop) {
  std::uint64_t taken = 0;
  while (!train.finished()) {
    for (;;) {
      const clock::time_point asked = clock::now();
      std::optional<batch> delivered = co_await train.next();
      if (!delivered) break;
      watch.waited(delivered->epoch(), delivered->index(), seconds_since(asked));
      if (!report.first_batch_ms) report.first_batch_ms = seconds_since_start() * 1e3;
      outputs.take(*delivered, train, stop);
      delivered->wait_on(stream());  // As a trainer would; on the host there is nothing to wait for.
      trainer.step(stop);
      if (++taken == batches_max) co_return;
    }
    outputs.save(train);
  }
}

// The run has its report without it.
void write_trace(const loader& train, const std::string& path) {
  if (path.empty()) return;
  try {
    train.write_timeline(path);
  } catch (const std::exception& failure) {  // no memory for it, too
    complain("epoch", str_cat("warning: ", failure.what()));
  }
}

// Runs the loader on this thread until all batches are taken, or something ends it.
void load(loader& train, const epoch_arguments& arguments, batch_outputs& outputs, epoch_report& report,
          const interruption& stop) {
  run_watch_options watched = arguments.watch;
  if (!watched.windows.empty()) {
    watched.about = run_json(arguments.asked);
    watch_gpu_of(train, watched);
  }
  run_watch watch(train, watched);
  if (watch.port() != 0 && arguments.watch.metrics_port == 0) {
    complain("epoch", str_cat("metrics are at ", watch.url()));
  }
  std::optional<user_signal> on_request;
  if (!arguments.trace.empty()) on_request.emplace([&] { write_trace(train, arguments.trace); });
  stand_in trainer(arguments.step_ms);
  epoch_progress progress(train, report.planned_in_all, arguments.epochs);
  const status_line shown([&](const terminal& screen, std::size_t columns) { return progress.draw(screen, columns); });
  asio::io_context here(1);
  auto done = asio::co_spawn(here, take_all(train, arguments.stop_after, outputs, trainer, watch, report, stop.token()),
                             asio::use_future);
  here.run();
  report.is_trained = arguments.step_ms.has_value();
  report.is_tuned = arguments.tune == tuning::on;
  report.packs = arguments.choice.order.starts_with("packed:");
  report.au = trainer.au();
  done.get();
  outputs.close();
}

/// A loader that the interruption stops.
struct running_loader {
  running_loader(loader made, interruption& stop) : train(std::move(made)) {
    stopping.emplace(stop.token(), stopper{this});
  }
  running_loader(const running_loader&) = delete;
  running_loader& operator=(const running_loader&) = delete;
  ~running_loader() {
    stopping.reset();  // waits for who is starting the thread
    if (stops.joinable()) stops.join();
  }

  // On a thread of its own: who was told to stop before this is built is told here and now, and has yet to say so.
  struct stopper {
    running_loader* self;
    void operator()() const noexcept {
      self->stops = std::thread([train = &self->train] { train->stop(); });
    }
  };
  loader train;
  std::thread stops;
  std::optional<std::stop_callback<stopper>> stopping;
};

/// Says what a process that has been told to stop is waiting for, if it has to wait at all.
class late_notice {
 public:
  explicit late_notice(const loader& train) {
    thread_ = std::thread([this, &train] {
      std::unique_lock lock(mutex_);
      if (ended_changed_.wait_for(lock, patience, [this] { return ended_; })) return;
      const std::vector<std::string> held = train.reads_under_way();
      if (held.empty()) return;  // It is the decoders that take their time.
      std::string names = held.front();
      for (std::size_t i = 1; i < std::min(held.size(), names_max); ++i) str_append(names, ", ", held[i]);
      if (held.size() > names_max) str_append(names, " and ", held.size() - names_max, " more");
      complain("epoch", str_cat("waiting for ", counted(held.size(), "read", "reads"),
                                " that the kernel does not let go of (a dead mount?): ", names,
                                "; Ctrl-C once more ends it now"));
    });
  }
  late_notice(const late_notice&) = delete;
  late_notice& operator=(const late_notice&) = delete;
  ~late_notice() {
    {
      const std::lock_guard lock(mutex_);
      ended_ = true;
    }
    ended_changed_.notify_one();
    thread_.join();
  }

 private:
  static constexpr std::chrono::milliseconds patience{500};
  static constexpr std::size_t names_max = 3;
  std::mutex mutex_;
  std::condition_variable ended_changed_;
  bool ended_ = false;
  std::thread thread_;
};

// Rows that this process would deliver, had it come to its end.
std::uint64_t planned_of(const loader& train, const epoch_arguments& arguments,
                         const std::optional<epoch_report::place>& resumed) {
  const std::uint64_t batches = train.batches();
  if (batches == 0) return 0;
  const std::uint64_t gone = resumed ? resumed->epoch * batches + resumed->batch : 0;
  const std::uint64_t all = arguments.epochs * batches;
  std::uint64_t left = all - std::min(all, gone);
  if (arguments.stop_after != 0) left = std::min(left, arguments.stop_after);
  // Batches of the mean size.
  return static_cast<std::uint64_t>(
      std::llround(static_cast<double>(train.rows()) * static_cast<double>(left) / static_cast<double>(batches)));
}

std::string smaller_batches(const epoch_arguments& arguments, std::uint64_t samples) {
  if (arguments.global_batch_size != 0) return str_cat("give a --global-batch-size of at most ", samples);
  const std::uint64_t of_rank = samples / arguments.here.world.size;
  return of_rank != 0 ? str_cat("give a --batch-size of at most ", of_rank)
                      : std::string("there are more ranks than samples");
}

/// What a loader was made of, and when.
struct made_of {
  std::optional<chosen_fields> fields;
  std::optional<state_writer> state;
  std::optional<loader_state> resumed;
  clock::time_point opened;
};

void check_trace(const std::string& path) {
  if (path.empty()) return;
  check_replaces_own_kind(path, output_kind::trace, "--trace");
  check_partial_is_own(path, output_kind::trace);
  if (const int failure = can_write_whole(path); failure != 0) {
    throw explain_write(str_cat("cannot write --trace ", path), failure);
  }
}

// Before anything is opened or written: what is refused at all is refused while the outputs of the run before are whole.
void check_outputs(const epoch_arguments& arguments) {
  // A run that is gone on with keeps what it has written of these, and looks at them as it finds its place.
  std::error_code failure;
  const bool goes_on = arguments.resume != resume_when::never && std::filesystem::exists(arguments.state, failure);
  if (!goes_on) {
    if (!arguments.journal.empty()) stages::check_journal_replaceable(arguments.journal);
    if (!arguments.receipts.empty()) stages::check_receipts_replaceable(arguments.receipts);
    if (!arguments.batches.empty() && arguments.batches != "-") {
      output_file::check(arguments.batches, output_kind::batches, "--batches", output_file::appears::at_once);
    }
  }
  if (!arguments.record.empty()) stages::check_record_replaceable(arguments.record);
  check_trace(arguments.trace);
  check_watch(arguments.watch);
  if (!arguments.npy.empty()) check_npy_files(arguments.npy, arguments.epochs);
}

// Opens the sources, and makes the loader of what is in them.
//   is_open   called once the sources are open
loader make_loader(const epoch_arguments& arguments, interruption& stop, epoch_report& report, made_of& of,
                   const std::function<void()>& is_open) {
  check_outputs(arguments);
  const auto leave = [&] {
    report.interrupted = true;
    report.measure_process();
    if (arguments.json) print(report_text(report.as_json(), arguments.asked));
    complain("epoch", str_cat("stopped by ", stop.name(), " while opening the sources"));
  };
  source_kind kind = kind_of_sources(arguments);
  kind.opening.index.on_report = [&report](const index_report& each) { report.indexes.push_back(each); };
  const dataset opened = open_sources(arguments.sources, stop, leave, advise_loading, kind);
  is_open();
  check_writes_no_sample(opened, files_of(arguments));
  tell_notes("epoch", opened);
  report.notes = notes_of(opened);
  of.fields = [&] {
    const leaving_at_once leaving(stop, leave);
    window_options windows = arguments.windows;
    windows.counts = arguments.opening.index;
    return fields_of(opened, arguments.pictures, windows);
  }();
  for (const std::string& each : of.fields->warnings) complain("epoch", each);
  loader_options options = loader_options_of(arguments);
  const dataset samples = set_up([&] { return samples_of_run(*of.fields, arguments); });
  of.state.emplace(run_state_of(arguments));
  of.resumed = options.resume = of.state->resumed();
  of.opened = clock::now();
  return set_up([&] { return loader(samples, std::move(options), of.fields->all); });
}

// Opens, loads and takes note. What is left in `running` outlives an error, so that the report need not wait for reads
// that the kernel holds.
void run_loader(const epoch_arguments& arguments, meeting& met, interruption& stop, epoch_report& report,
                std::optional<running_loader>& running) {
  const clock::time_point opening = clock::now();
  made_of of;
  // One rank of each machine looks through the sources, and keeps an index that the others read.
  bool is_to_meet = met.ranks() != nullptr;
  const auto meet_once = [&] {
    if (std::exchange(is_to_meet, false)) static_cast<void>(met.ranks()->broadcast({}));
  };
  const auto make = [&] {
    if (arguments.here.world.local_rank != 0) meet_once();
    try {
      return make_loader(arguments, stop, report, of, meet_once);
    } catch (...) {
      meet_once();  // The others wait.
      throw;
    }
  };
  running.emplace(met.ranks() != nullptr ? make_together(*met.ranks(), make, ranks_go_on::apart) : make(), stop);
  loader& train = running->train;
  if (of.resumed) report.resumed = {of.resumed->epoch, of.resumed->batch};
  report.open_seconds = std::chrono::duration<double>(of.opened - opening).count();
  // Once it is sure that the state is this run's: what is beyond it is removed.
  batch_outputs outputs = outputs_of(arguments, *of.fields, std::move(*of.state), of.resumed);
  if (met.ranks() != nullptr) {
    // All have a state before one goes on: who is killed before its first batch has begun as the others have.
    if (!of.resumed && arguments.resume != resume_when::never) outputs.save(train);
    static_cast<void>(met.ranks()->broadcast({}));
  }
  report.host_bytes_max = train.plan().host_bytes_max;
  for (const std::string& each : train.plan().warnings) complain("epoch", str_cat("warning: ", each));
  report.planned_in_all = planned_of(train, arguments, report.resumed);
  const std::string_view drops = arguments.choice.drop_last                  ? "--drop-last"
                                 : arguments.choice.last == last_batch::drop ? "--last drop"
                                                                             : "";
  if (train.batches() == 0 && train.samples() > 0 && arguments.choice.order.starts_with("packed:")) {
    complain("epoch", drops.empty()
                          ? "warning: no text has a token: nothing is loaded"
                          : str_cat("warning: ", drops, " leaves out all rows, since a batch has ",
                                    count_text(train.state().global_batch_size),
                                    " and the texts fill fewer: nothing is loaded; give a smaller --batch-size"));
  } else if (train.batches() == 0 && train.samples() > 0) {
    complain("epoch", str_cat("warning: ", drops, " leaves out all ", counted(train.samples(), "sample", "samples"),
                              ", since a batch has ", count_text(train.state().global_batch_size),
                              ": nothing is loaded; ", smaller_batches(arguments, train.samples())));
  }
  if (arguments.plan) {
    report.plan = train.plan();
    if (!arguments.json) tell(arguments, "\n" + train.plan().to_string());
  }

  const auto settle = [&](bool is_refused) {
    report.seconds = seconds_since(of.opened);
    report.stats = train.stats();
    report.verdict_of_run = train.verdict_of_run();
    report.run_digest = train.state().run_digest;
    if (!is_refused) write_trace(train, arguments.trace);
  };
  try {
    load(train, arguments, outputs, report, stop);
  } catch (const error& problem) {
    settle(problem.code() == errc::usage);
    throw;
  } catch (...) {
    settle(false);
    throw;
  }
  train.stop();  // Its threads have counted their last sample when it returns.
  if (const int why = stages::record_failure(train); why != 0) {
    complain("epoch",
             str_cat("warning: ", explain_write(str_cat("cannot write --record ", arguments.record), why).what()));
  }
  settle(false);
  if (met.ranks() != nullptr) report.slowest_rank = find_slowest(*met.ranks(), report.stats);
}

// Which rank this is, and what its files are called.
epoch_arguments of_this_rank(epoch_arguments arguments) {
  arguments.here = world_of(arguments.ranks);
  const world& here = arguments.here.world;
  arguments.state_name = arguments.state;
  arguments.state = name_for_rank("--state", arguments.state, here);
  arguments.batches = name_for_rank("--batches", arguments.batches, here);
  arguments.journal = name_for_rank("--journal", arguments.journal, here);
  arguments.receipts = name_for_rank("--receipts", arguments.receipts, here);
  arguments.npy = name_for_rank("--npy", arguments.npy, here);
  arguments.watch.metrics = name_for_rank("--metrics", arguments.watch.metrics, here);
  arguments.trace = name_for_rank("--trace", arguments.trace, here);
  arguments.record = name_for_rank("--record", arguments.record, here);
  arguments.watch.windows = name_for_rank("--progress", arguments.watch.windows, here);
  if (here.size > 1) {
    arguments.watch.labels.push_back({"rank", str_cat(here.rank)});
    // Ranks of one machine share its ports.
    std::optional<std::uint16_t>& port = arguments.watch.metrics_port;
    if (port && *port != 0) {
      const std::uint64_t own = std::uint64_t{*port} + here.local_rank;
      if (own > std::numeric_limits<std::uint16_t>::max()) {
        throw error(errc::usage,
                    str_cat("--metrics-port ", *port, " leaves no port for rank ", here.local_rank,
                            " of this machine, which takes the one ", here.local_rank, " above it; give a lower one"));
      }
      port = static_cast<std::uint16_t>(own);
    }
  }
  return arguments;
}

constexpr std::string_view stale_hint =
    "if a file was replaced before this run began, the index is stale: --index-use rebuild";

bool uses_index(const epoch_report& report) {
  return std::any_of(report.indexes.begin(), report.indexes.end(),
                     [](const index_report& each) { return each.what == index_report::outcome::used; });
}

// Whether a file that could not be read may have another size than an index says: it was replaced in place before this
// run began, which its folder's time does not tell.
bool may_be_stale(const epoch_report& report, std::string_view failure) {
  return uses_index(report) &&
         (failure.find("(ENODATA)") != std::string_view::npos || failure.find("(EFBIG)") != std::string_view::npos);
}

bool has_unreadable(const epoch_report& report) {
  const std::vector<corrupt_count>& corrupt = report.stats.quarantined_as;
  return std::any_of(corrupt.begin(), corrupt.end(),
                     [](const corrupt_count& each) { return each.kind == corrupt_kinds::unreadable.name; });
}

// Builds such an index anew for the runs to come, and says so.
std::string rebuild_stale_index(const epoch_arguments& arguments, interruption& stop) {
  bool written = false;
  source_kind kind = kind_of_sources(arguments);
  kind.opening.index.use = index_use::rebuild;
  kind.opening.index.on_report = [&written](const index_report& each) {
    written = written || each.what == index_report::outcome::written;
  };
  try {
    static_cast<void>(open_sources(arguments.sources, stop, [] {}, advise_loading, kind));
  } catch (const std::exception&) {
    written = false;  // The next run says why.
  }
  return written ? "the index of the sources was stale; it has been built anew: run this again"
                 : std::string(stale_hint);
}

// Ranks that have met are shown by rank 0, one after the other: launchers mix what ranks write at once, within lines too.
void show_together(const epoch_arguments& arguments, meeting& met, const std::string& shown) {
  std::string all = shown;
  if (met.ranks() != nullptr) {
    all.clear();
    for (const std::vector<std::byte>& each : met.ranks()->gather(std::as_bytes(std::span(shown)))) {
      all.append(reinterpret_cast<const char*>(each.data()), each.size());
    }
  }
  if (arguments.json) {
    print(all);
  } else {
    tell(arguments, all);
  }
}

int epoch(const epoch_arguments& given, interruption& stop) {
  if (given.trace.empty()) release_user_signal();
  const epoch_arguments arguments = of_this_rank(given);
  check(arguments);
  meeting met(arguments.here);
  if (!met.why_not().empty() && arguments.here.world.rank == 0) {
    complain("epoch", str_cat("note: the ranks do not compare their runs: ", met.why_not()));
  }
  epoch_report report;
  report.here = arguments.here;
  std::optional<running_loader> running;
  std::exception_ptr failure;
  try {
    run_loader(arguments, met, stop, report, running);
  } catch (const reader_has_gone&) {
    throw;
  } catch (const error& problem) {
    report.interrupted = stop.requested() && problem.code() == errc::cancelled;
    if (!report.interrupted) {
      // A wrong option has nothing to report but the error; a source that is refused is a run that failed.
      if (problem.code() == errc::usage && dynamic_cast<const refused_name*>(&problem) == nullptr) throw;
      const std::string hint =
          may_be_stale(report, problem.what()) ? "; " + rebuild_stale_index(arguments, stop) : std::string();
      report.failure = problem.what() + hint;
      failure = hint.empty() ? std::current_exception()
                             : std::make_exception_ptr(error(problem.code(), problem.what() + hint, problem.option()));
    }
  } catch (const std::exception& problem) {
    report.failure = problem.what();
    failure = std::current_exception();
  }
  // A missing file or a bad sector is unreadable too: nothing is built anew for these.
  if (failure == nullptr && !report.interrupted && uses_index(report) && has_unreadable(report)) {
    complain("epoch", str_cat("note: samples could not be read; ", stale_hint));
  }
  report.measure_process();
  const std::string shown = arguments.json ? report_text(report.as_json(), arguments.asked)
                            : failure == nullptr || report.stats.batches > 0
                                ? report.as_text(terminal::of(arguments.batches == "-" ? stderr : stdout))
                                : "";
  if (failure == nullptr && !report.interrupted) {
    show_together(arguments, met, shown);
    met.end();
  } else if (arguments.json) {
    print(shown);
  } else {
    tell(arguments, shown);
  }
  if (report.interrupted) {
    complain("epoch", str_cat("stopped by ", stop.name(), " after ", count_text(report.stats.planned), " of ",
                              counted(report.planned_in_all, "sample", "samples")));
    if (running) {
      const late_notice notice(running->train);
      running->train.stop();
    }
    return stop.exit_code();
  }
  if (failure != nullptr) std::rethrow_exception(failure);
  return exit_done;
}

void add_options(CLI::App& app, epoch_arguments& arguments) {
  add_loading_options(app, arguments);
  add_text(app, "--journal", arguments.journal, "FILE", "a JSON line for each");

  app.option_defaults()->group("To go on another time");
  add_text(app, "--state", arguments.state, "FILE", "where the run stands, written after each batch");
  add_choice(app, "--resume", arguments.resume, {{"auto", resume_when::automatic}, {"always", resume_when::always}},
             "go on with the run of --state FILE: if there is such a file, or else end there");
  add_number(app, "--stop-after", arguments.stop_after, 1, "end this process after so many batches");

  app.option_defaults()->group("What to see of it");
  add_choice(app, "--digest", arguments.digests, {{"on", true}, {"off", false}},
             "of every byte delivered; off to measure speed (on)");
  add_text(app, "--receipts", arguments.receipts, "FILE",
           "16 bytes for each row: leat receipt proves by it which samples the run had; %r is the rank");
  add_text(app, "--batches", arguments.batches, "FILE",
           "a JSON line for each batch: epoch, batch, ids, labels, digest; - is standard output, and the table then "
           "goes to standard error");
  app.add_flag("--rows", arguments.rows, "with --batches: the digest of each row as well");
  app.add_option_function<std::string>(
         "--step-ms",
         [&arguments](const std::string& given) {
           arguments.step_ms = static_cast<std::uint32_t>(parse_number("--step-ms", given, 0, 3'600'000));
         },
         "stand for a trainer: sleep so long with each batch, and say how much of its time it waited")
      ->type_name("N");
  add_text(app, "--metrics", arguments.watch.metrics, "FILE",
           "for Prometheus' node_exporter: rewritten every 5 s; %r is the rank");
  app.add_option_function<std::string>(
         "--metrics-port",
         [&arguments](const std::string& given) {
           arguments.watch.metrics_port = static_cast<std::uint16_t>(parse_number("--metrics-port", given, 0, 65535));
         },
         "the same on http://127.0.0.1:N/metrics; 0: any port")
      ->type_name("N");
  add_text(app, "--metrics-address", arguments.watch.metrics_address, "ADDRESS",
           "listen there instead (127.0.0.1): whoever reaches it may read, 0.0.0.0 is all of this machine")
      ->needs("--metrics-port");
  add_text(app, "--progress", arguments.watch.windows, "FILE",
           "a JSON line each second: what came, and the bottleneck");
  add_text(app, "--trace", arguments.trace, "FILE",
           "when the run ends, and at each SIGUSR1: what each batch and thread did and when, for ui.perfetto.dev");
  add_text(app, "--record", arguments.record, "FILE",
           "of each read when, how many bytes and how long, for `leat replay-io`; no data, no names");
  add_text(app, "--npy", arguments.npy, "DIR", "each batch's tensors as <epoch>-<batch>-<field>.npy");
  app.add_flag("--plan", arguments.plan, "first say what the memory is for");
  app.add_flag("--json", arguments.json, "the result as one JSON object");
}

}  // namespace

void add_epoch(CLI::App& leat, chosen_command& chosen) {
  auto arguments = std::make_shared<epoch_arguments>();  // Lives as long as the parser's callbacks do.
  CLI::App& app = *leat.add_subcommand("epoch", "load one epoch and say how fast it went");
  add_options(app, *arguments);
  app.footer(
      "  leat epoch photos\n"
      "  leat epoch 'train-{000..127}.tar' --batch-size 256 --dtype u8 --layout nhwc --digest off\n"
      "  leat epoch photos --transform eval --epochs 2 --json | jq .samples_per_s\n"
      "  leat epoch 'arrays/*.npy'\n"
      "  leat epoch train.bin --tokens 1024 --batch-size 12");
  app.callback([arguments, &app, &chosen] {
    arguments->asked = asked_of(app);
    chosen = [arguments](interruption& stop) { return epoch(*arguments, stop); };
  });
}

}  // namespace leat::tools
