// leat bench: what a part of the line does on this machine, by itself.
#include "base/memory_available.hpp"
#include "base/text.hpp"
#include "io/files/read_error.hpp"
#include "tools/arguments.hpp"
#include "tools/bench_drive.hpp"
#include "tools/bench_extents.hpp"
#include "tools/bench_file.hpp"
#include "tools/bench_fio.hpp"
#include "tools/bench_plot.hpp"
#include "tools/bench_read.hpp"
#include "tools/child.hpp"
#include "tools/fields.hpp"
#include "tools/human.hpp"
#include "tools/output.hpp"
#include "tools/run_record.hpp"
#include "tools/sources.hpp"
#include "tools/status_line.hpp"
#include "tools/subcommand.hpp"

#include <leat/error.hpp>

#include <absl/strings/numbers.h>
#include <sys/stat.h>

#include <signal.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

namespace leat::tools {
namespace {

using json = nlohmann::ordered_json;

struct bench_read_arguments {
  std::vector<std::string> paths;
  read_settings how;
  std::uint64_t create_bytes = 0;
  std::string plot;
  window_options windows;
  bool no_shuffle = false;
  bool histogram = false;
  bool block_is_asked = false;
  bool fio = false;
  bool fallbacks = false;
  bool sweep = false;
  bool json = false;
  asked_for asked;
};

/// All that a run found.
///   knees      of a sweep: for each block the row of the smallest depth that is good enough
///   fio_lines  what fio was called with
struct bench_read_result {
  std::optional<epoch_reads> epoch;
  std::vector<read_row> rows;
  std::vector<const read_row*> knees;
  std::vector<std::string> fio_lines;
  std::vector<std::string> holes;
};

constexpr int fio_rounds = 3;
// Less is freed before anybody notices, also where each block freed is discarded (ext4 mounted so: 0.4 to 0.6 s a GB here).
constexpr std::uint64_t slow_to_free_bytes = 64 << 20;
constexpr double good_share = 0.95;  // of the best rate: where more depth is not worth its latency

std::string fallbacks_text(const reader_report& fallbacks) {
  std::string text;
  const auto add = [&text](const char* what, const fallback& taken) {
    str_append(text, "  ", what, " ", taken.use, taken.why.empty() ? "" : " (" + one_line(taken.why) + ")", "\n");
  };
  add("backend", fallbacks.backend);
  add("registered buffers", fallbacks.registered_buffers);
  add("O_DIRECT", fallbacks.direct);
  add("huge pages", fallbacks.huge_pages);
  return text;
}

json fallbacks_json(const reader_report& fallbacks) {
  const auto of = [](const fallback& taken) { return json{{"use", taken.use}, {"why", taken.why}}; };
  return {{"backend", of(fallbacks.backend)},
          {"registered_buffers", of(fallbacks.registered_buffers)},
          {"direct", of(fallbacks.direct)},
          {"huge_pages", of(fallbacks.huge_pages)}};
}

/// leat and fio in turn; of each the round whose rate is the median. What fio was called with is added to `lines`.
read_row measure_beside_fio(const std::vector<std::string>& paths, const read_settings& how, std::uint32_t rings_before,
                            std::vector<std::string>& lines, std::atomic<int>& fio_process) {
  std::vector<read_row> ours;
  std::vector<fio_figures> theirs;
  for (int round = 0; round < fio_rounds; ++round) {
    ours.push_back(measure_reads(paths, how, rings_before));
    rings_before = std::max(rings_before, ours.back().rings);
    const bool huge = free_huge_pages() >= fio_huge_pages(ours.front());
    const std::vector<std::string> fio = fio_arguments(paths, ours.front(), huge);
    theirs.push_back(run_fio(fio, fio_process));
    theirs.back().huge_pages = huge;
    if (round == 0) lines.push_back(command_line(fio));
  }
  std::sort(ours.begin(), ours.end(), [](const auto& a, const auto& b) { return a.gib_per_s() < b.gib_per_s(); });
  std::sort(theirs.begin(), theirs.end(), [](const auto& a, const auto& b) { return a.gib_per_s < b.gib_per_s; });
  read_row median = ours[fio_rounds / 2];
  median.fio = theirs[fio_rounds / 2];
  return median;
}

std::vector<const read_row*> knees_of(const std::vector<read_row>& rows) {
  std::vector<const read_row*> found;
  for (const read_row& row : rows) {
    const std::uint64_t block = row.asked.block_bytes;
    if (!found.empty() && found.back()->asked.block_bytes == block) continue;
    if (const read_row* const knee = smallest_depth(rows, block, good_share)) found.push_back(knee);
  }
  return found;
}

[[noreturn]] void refuse_missing(const std::string& path) {
  const bool is_pattern = path.find_first_of("*?[{") != std::string::npos;
  throw error(errc::not_found,
              str_cat(path, ": no such file; ",
                      is_pattern ? "name files one by one, or leave the pattern to the shell, unquoted: only "
                                   "--pattern extents, which takes a dataset, finds files by a pattern"
                                 : "check the path, or make a file there: --create 8GiB"));
}

// A directory is a dataset, and the mere opening of a pipe would wait.
void check_paths(const std::vector<std::string>& paths) {
  for (const std::string& path : paths) {
    struct stat found{};
    if (::stat(path.c_str(), &found) != 0) {
      if (errno == ENOENT) refuse_missing(path);
      throw io::explain_open(errno, path);
    }
    if (S_ISBLK(found.st_mode)) {
      if (block_device_bytes(path) != 0) continue;  // It is read only.
      throw error(errc::usage, str_cat(path, " is a block device of 0 bytes: nothing is in it; give another one"));
    }
    if (S_ISDIR(found.st_mode)) {
      throw error(errc::usage, str_cat(path,
                                       " is a directory; give files, or --pattern extents to replay the reads "
                                       "of an epoch of what is in it"));
    }
    if (!S_ISREG(found.st_mode)) {
      const char* const what = S_ISFIFO(found.st_mode)   ? "pipe"
                               : S_ISSOCK(found.st_mode) ? "socket"
                                                         : "character device";
      throw error(errc::usage, str_cat(path, " is a ", what,
                                       "; give a regular file on the drive to be measured, which --create makes"));
    }
  }
}

void check_verified(const bench_read_arguments& arguments) {
  for (const std::string& path : arguments.how.verify ? arguments.paths : std::vector<std::string>()) {
    if (is_bench_file(path)) continue;
    throw error(errc::usage, str_cat("--verify: ", path,
                                     " is no file that --create made, so nobody knows what is to be in it; "
                                     "make one: --create 8GiB"));
  }
}

/// False: stopped, and said so.
bool create(const bench_read_arguments& arguments, interruption& stop) {
  if (arguments.paths.size() != 1) throw error(errc::usage, "--create makes one file; give one PATH");
  const auto removed = [&stop](std::uint64_t bytes) {
    std::string text = str_cat("stopped by ", stop.name(), "; the file begun was removed");
    if (bytes > slow_to_free_bytes) str_append(text, "; its file system may take a moment to free ", bytes_text(bytes));
    complain("bench read", text);
  };
  try {
    const status_line shown([](const terminal& screen, std::size_t) { return screen.dim("  laying out the file"); });
    create_bench_file(arguments.paths.front(), arguments.create_bytes, stop.token(),
                      {.removed = removed, .replaced = [] {
                         complain("bench read",
                                  "an unfinished file of an earlier --create, which was killed, is replaced");
                       }});
  } catch (const error& failure) {
    if (failure.code() != errc::cancelled || !stop.requested()) throw;
    return false;
  }
  return true;
}

epoch_reads open_epoch(const bench_read_arguments& arguments, interruption& stop) {
  const auto leave = [&stop] { complain("bench read", str_cat("stopped by ", stop.name())); };
  const dataset opened =
      open_sources(arguments.paths, stop, leave, advise_loading, {.tokens = arguments.windows.files()});
  const leaving_at_once leaving(stop, leave);
  const chosen_fields fields = fields_of(opened, {}, arguments.windows);
  for (const std::string& each : fields.warnings) complain("bench read", each);
  return plan_epoch(fields.samples, fields.all, {.shuffle = !arguments.no_shuffle});
}

/// Settings to measure with, each beside the name of the fallback that it does without.
using wanted_reads = std::vector<std::pair<std::string, read_settings>>;

wanted_reads wanted_of(const bench_read_arguments& arguments) {
  if (arguments.fallbacks) return without_each_fallback(arguments.how);
  wanted_reads wanted;
  if (arguments.sweep) {
    const bool one_block = arguments.block_is_asked || arguments.how.pattern == read_pattern::extents;
    for (const read_settings& each : sweep_of(arguments.how, one_block)) wanted.emplace_back("", each);
  } else {
    wanted.emplace_back("", arguments.how);
  }
  return wanted;
}

/// Refuses what cannot be measured; before a file is laid out for it.
void check(const bench_read_arguments& arguments, const wanted_reads& wanted, const std::optional<epoch_reads>& epoch) {
  const memory_available memory = find_memory_available();
  for (const auto& [fallback, how] : wanted) {
    set_up([&] { check_memory(how, epoch ? &*epoch : nullptr, memory); });
    if (arguments.create_bytes == 0 || arguments.create_bytes >= how.block_bytes) continue;
    throw error(errc::usage, str_cat("--create ", bytes_text(arguments.create_bytes), " is less than a block of ",
                                     bytes_text(how.block_bytes), "; give a larger one, or a smaller --block"));
  }
}

void measure_all(const bench_read_arguments& arguments, const wanted_reads& wanted, std::atomic<int>& fio_process,
                 bench_read_result& result) {
  std::atomic<std::size_t> done = 0;
  const status_line shown([&](const terminal& screen, std::size_t) {
    return screen.dim(wanted.size() == 1 ? "  reading"
                                         : str_cat("  reading: ", done.load() + 1, " of ", wanted.size()));
  });
  std::uint32_t rings = 1;  // that could be had: the most of any row, and of the first it is not known
  for (const auto& [fallback, how] : wanted) {
    // fio leaves nothing out: beside a row that does it would say what that is worth, and call it ours.
    const bool fio = arguments.fio && (!arguments.fallbacks || fallback == nothing_left_out);
    result.rows.push_back(result.epoch ? measure_reads(*result.epoch, how, rings)
                          : fio        ? measure_beside_fio(arguments.paths, how, rings, result.fio_lines, fio_process)
                                       : measure_reads(arguments.paths, how, rings));
    result.rows.back().fallback = fallback;
    rings = std::max(result.rows.size() == 1 ? 0U : rings, result.rows.back().rings);
    done.store(std::min(result.rows.size(), wanted.size() - 1));
  }
  if (arguments.sweep || arguments.fallbacks) mark_off_label(result.rows);
  if (arguments.sweep) result.knees = knees_of(result.rows);
}

nlohmann::ordered_json as_json(const bench_read_result& result) {
  json all = json::array();
  for (const read_row& row : result.rows) all.push_back(as_json(row));
  json made = {{"rows", all}, {"fallbacks", fallbacks_json(result.rows.front().fallbacks)}};
  json& caveats = made["caveats"] = caveats_of(result.rows);
  for (const std::string& each : result.holes) caveats.push_back(each);
  if (result.epoch) {
    made["epoch"] = {{"samples", result.epoch->samples_all},
                     {"samples_planned", result.epoch->samples},
                     {"files", result.epoch->files.size()},
                     {"reads", result.epoch->reads.size()},
                     {"bytes", result.epoch->bytes},
                     {"read_bytes_mean", result.epoch->read_bytes_mean()},
                     {"read_bytes_max", result.epoch->read_bytes_max}};
  }
  for (const read_row* each : result.knees) {
    made["smallest_depths"].push_back({{"block", each->asked.block_bytes}, {"depth", each->asked.depth}});
  }
  if (!result.fio_lines.empty()) made["fio_commands"] = result.fio_lines;
  return made;
}

std::string epoch_text(const epoch_reads& epoch) {
  std::string text = str_cat("the reads of an epoch of ", counted(epoch.samples_all, "sample", "samples"), ": ");
  if (epoch.samples < epoch.samples_all) str_append(text, "the first ", count_text(epoch.samples), " in ");
  return str_cat(text, counted(epoch.reads.size(), "read", "reads"), " of ",
                 counted(epoch.files.size(), "file", "files"), ", ", bytes_text(epoch.bytes), "; ",
                 bytes_text(epoch.read_bytes_mean()), " on average, ", bytes_text(epoch.read_bytes_max), " at most");
}

// What training would get: how many samples, and how long an epoch takes at this rate. Of fallbacks the page cache, which holds
// a small dataset after the first round, is not the drive.
std::string training_text(const epoch_reads& epoch, const std::vector<read_row>& rows) {
  double best = 0;
  for (const read_row& row : rows) {
    if (row.is_the_drive() && (row.fallback.empty() || row.fallback == nothing_left_out))
      best = std::max(best, row.samples_per_s());
  }
  if (best <= 0) return {};
  return str_cat("  the drive gives training ", count_text(static_cast<std::uint64_t>(best + 0.5)),
                 " samples/s: an epoch in ", seconds_text(static_cast<double>(epoch.samples_all) / best), "\n");
}

// Beside a caveat of the rows, which is there already.
std::string unfair_text(const std::vector<read_row>& rows) {
  std::string text;
  const std::vector<std::string> said = caveats_of(rows);
  for (const read_row& row : rows) {
    for (const std::string& each : row.fio ? why_unfair(row) : std::vector<std::string>()) {
      if (std::find(said.begin(), said.end(), each) == said.end()) str_append(text, "  ", each, "\n");
    }
  }
  return text;
}

std::string as_text(const bench_read_arguments& arguments, const bench_read_result& result) {
  const std::string what = result.epoch ? epoch_text(*result.epoch)
                                        : str_cat(name(arguments.how.pattern), " reads of ",
                                                  counted(arguments.paths.size(), "file", "files"));
  std::string text =
      str_cat(what, ", ", seconds_text(arguments.how.seconds),
              arguments.fio ? str_cat(" of each in turn, ", fio_rounds, " times; the round of the median rate") : "",
              "\n", as_table(result.rows));
  for (const std::string& each : result.holes) str_append(text, "  ", each, "\n");
  if (arguments.histogram) {
    for (const read_row& row : result.rows) {
      str_append(text, "  latency of reads of ", bytes_text(row.asked.block_bytes), ", depth ", row.asked.depth, "\n",
                 histogram_text(row));
    }
  }
  if (result.epoch) text += training_text(*result.epoch, result.rows);
  for (const read_row* each : result.knees) {
    str_append(text, "  ", bytes_text(each->asked.block_bytes), ": depth ", each->asked.depth,
               " is the smallest with 95 % of the best rate\n");
  }
  text += fallbacks_text(result.rows.front().fallbacks);
  for (const std::string& each : result.fio_lines) str_append(text, "  ", one_line(each), "\n");
  return text + unfair_text(result.rows);
}

int bench_read(const bench_read_arguments& arguments, interruption& stop) {
  bench_read_result result;
  if (arguments.how.pattern == read_pattern::extents) {
    const bool of_files = arguments.create_bytes > 0 || arguments.how.size_bytes > 0 || arguments.how.verify;
    if (arguments.fio || arguments.block_is_asked || of_files) {
      throw error(errc::usage,
                  "--pattern extents reads what a dataset has, and fio cannot follow it; leave --block, "
                  "--create, --size, --verify and --fio away");
    }
    result.epoch = open_epoch(arguments, stop);
  } else if (arguments.windows.length != 0 || arguments.no_shuffle) {
    throw error(errc::usage,
                "--tokens and --no-shuffle say what an epoch reads; give --pattern extents as well, which replays it");
  } else if (arguments.create_bytes == 0) {
    as_named([&] { check_paths(arguments.paths); });
    check_verified(arguments);
  }
  const wanted_reads wanted = wanted_of(arguments);
  check(arguments, wanted, result.epoch);
  std::atomic<int> child_process{0};
  const auto leave = [&] {
    if (const int running = child_process.load(); running > 0) ::kill(-running, SIGKILL);
    complain("bench read", str_cat("stopped by ", stop.name()));
    std::_Exit(stop.exit_code());  // Nothing was written, nothing is lost.
  };
  if (!arguments.plot.empty()) {
    const std::stop_callback leaving(stop.token(), leave);
    check_gnuplot(child_process);
    output_file::check(arguments.plot, output_kind::plot);
  }
  if (arguments.create_bytes > 0 && !create(arguments, stop)) return stop.exit_code();
  const std::stop_callback leaving(stop.token(), leave);
  result.holes = hole_caveats(result.epoch ? result.epoch->files : arguments.paths);
  measure_all(arguments, wanted, child_process, result);
  print(arguments.json ? report_text(as_json(result), arguments.asked)
                       : as_text(arguments, result));  // First: what was measured is not lost.
  if (!arguments.plot.empty()) {
    const std::string title =
        str_cat(name(arguments.how.pattern), " reads, ", result.rows.front().fallbacks.backend.use, ", O_DIRECT ",
                result.rows.front().fallbacks.direct.use);
    const std::string drawn = draw_plot(plot_script(result.rows, result.knees, title), child_process);
    output_file picture(arguments.plot, output_kind::plot, output_file::appears::when_closed);
    picture.write(marked_plot(drawn));
    picture.close();
  }
  return exit_done;
}

void add_seconds(CLI::App& app, const std::string& names, double& value, double least, const std::string& help) {
  app.add_option_function<std::string>(
         names,
         [&value, names, least](std::string given) {
           if (given.ends_with("s")) given.pop_back();  // as fio has it
           if (!absl::SimpleAtod(given, &value) || !(value >= least && value <= 86400)) {
             refuse(names, given, str_cat("seconds, from ", least, " to 86400"));
           }
         },
         help)
      ->type_name("N");
}

void add_bench_read(CLI::App& bench, chosen_command& chosen) {
  auto arguments = std::make_shared<bench_read_arguments>();  // Lives as long as the parser's callbacks do.
  CLI::App& app = *bench.add_subcommand("read", "how fast files can be read, through the reader that the loader uses");
  app.add_option("PATH", arguments->paths,
                 "files on the drive to be measured, or block devices, which are only read; with --pattern extents a "
                 "dataset, also as a quoted pattern")
      ->required()
      ->type_name("");
  CLI::Option* const block = add_bytes(app, "--block,--bs", arguments->how.block_bytes,
                                       "bytes of a read: 4K, 112K (a photograph), 1M, 8M (1M)");
  CLI::Option* const depth = add_number(app, "--depth,--iodepth", arguments->how.depth, 1,
                                        "reads in flight, for each thread (7 MiB of them, 8 to 128)", 4096);
  add_number(app, "--threads,--numjobs", arguments->how.threads, 1, "I/O threads, one ring each (1)", 64);
  add_choice(
      app, "--pattern,--rw", arguments->how.pattern,
      {{"random", read_pattern::random},
       {"sequential", read_pattern::sequential},
       {"extents", read_pattern::extents},
       {"randread", read_pattern::random},
       {"read", read_pattern::sequential}},
      "random: on multiples of 4096; extents: what an epoch of a dataset reads; the last two are fio's words (random)");
  add_seconds(app, "--seconds,--runtime", arguments->how.seconds, 0.01, "of measuring (5)");
  add_seconds(app, "--ramp,--ramp-time", arguments->how.ramp_seconds, 0,
              "of reading before that, which do not count (0)");
  add_bytes(app, "--size", arguments->how.size_bytes, "read only so much of each file, from its begin (all)");
  app.add_flag("--verify", arguments->how.verify, "compare each byte with what --create wrote; this takes CPU");
  add_window_options(app, arguments->windows);
  app.add_flag("--no-shuffle", arguments->no_shuffle, "extents in the dataset's order");
  add_choice(app, "--direct", arguments->how.direct, {{"on", choice::on}, {"off", choice::off}},
             "O_DIRECT, or through the page cache, emptied before it serves a byte twice (on, where it can be had)");
  add_choice(
      app, "--reader", arguments->how.backend,
      {{"auto", read_backend::automatic}, {"io_uring", read_backend::io_uring}, {"preadv", read_backend::preadv}},
      "auto: io_uring where the kernel allows it");
  add_bytes(app, "--create", arguments->create_bytes,
            "make PATH first: random data, of this size; one that this made is used again, any other left alone");
  CLI::Option* const fallbacks = app.add_flag("--fallbacks,--rungs", arguments->fallbacks,
                                              "what leat can do without, left out once each, side by side");
  CLI::Option* const sweep =
      app.add_flag(
             "--sweep", arguments->sweep,
             "every depth from 1 to 128 for 4K, 112K, 1M and 8M (or --block), and the smallest that is good enough")
          ->excludes(depth)
          ->excludes(fallbacks);
  add_text(app, "--plot", arguments->plot, "FILE.svg", "the sweep as a picture, by gnuplot")->needs(sweep);
  app.add_flag("--fio", arguments->fio,
               "fio in turn with us, with the same settings: its command line and the ratios; with --fallbacks beside "
               "all of them");
  app.add_flag("--histogram", arguments->histogram, "how many reads took how long");
  app.add_flag("--json", arguments->json, "all that was measured, as one JSON object");
  app.footer(
      "  leat bench read /data/leat.bench --create 8GiB\n"
      "  leat bench read 'shards/photos-{000000..000127}.tar' --pattern extents\n"
      "  leat bench read train.bin --pattern extents --tokens 1024 --windows random\n"
      "  leat bench read /data/leat.bench --sweep --plot curve.svg\n"
      "  leat bench read /data/leat.bench --block 4K --depth 128 --threads 2 --json");
  app.callback([arguments, block, &app, &chosen] {
    arguments->asked = asked_of(app);
    arguments->block_is_asked = block->count() > 0;
    chosen = [arguments](interruption& stop) { return bench_read(*arguments, stop); };
  });
}

}  // namespace

void add_bench(CLI::App& leat, chosen_command& chosen) {
  CLI::App& app = *leat.add_subcommand("bench", "measure the drive, with the reader that the loader uses");
  app.footer("  leat bench read --help\n  leat bench read /data/leat.bench --create 8GiB");
  add_bench_read(app, chosen);
}

}  // namespace leat::tools
