// leat bench: what a part of the line does on this machine, by itself.
#include "io/text.hpp"
#include "tools/arguments.hpp"
#include "tools/bench_file.hpp"
#include "tools/bench_fio.hpp"
#include "tools/bench_read.hpp"
#include "tools/human.hpp"
#include "tools/output.hpp"
#include "tools/status_line.hpp"
#include "tools/subcommand.hpp"

#include <leat/error.hpp>

#include <absl/strings/numbers.h>

#include <signal.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <memory>
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
  bool block_is_asked = false;
  bool fio = false;
  bool rungs = false;
  bool sweep = false;
  bool json = false;
};

constexpr int fio_rounds = 3;
constexpr double good_share = 0.95;  // of the best rate: where more depth is not worth its latency

std::string rungs_text(const reader_report& rungs) {
  std::string text;
  const auto add = [&text](const char* what, const rung& taken) {
    io::str_append(text, "  ", what, " ", taken.use, taken.why.empty() ? "" : " (" + one_line(taken.why) + ")", "\n");
  };
  add("backend", rungs.backend);
  add("registered buffers", rungs.registered_buffers);
  add("O_DIRECT", rungs.direct);
  add("huge pages", rungs.huge_pages);
  return text;
}

json rungs_json(const reader_report& rungs) {
  const auto of = [](const rung& taken) { return json{{"use", taken.use}, {"why", taken.why}}; };
  return {{"backend", of(rungs.backend)},
          {"registered_buffers", of(rungs.registered_buffers)},
          {"direct", of(rungs.direct)},
          {"huge_pages", of(rungs.huge_pages)}};
}

/// leat and fio in turn; of each the round whose rate is the median. What fio was called with is added to `lines`.
read_row measure_beside_fio(const std::vector<std::string>& paths, const read_settings& how,
                            std::vector<std::string>& lines, std::atomic<int>& fio_process) {
  std::vector<read_row> ours;
  std::vector<fio_figures> theirs;
  for (int round = 0; round < fio_rounds; ++round) {
    ours.push_back(measure_reads(paths, how));
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
    if (found.empty() || found.back()->asked.block_bytes != block)
      found.push_back(smallest_depth(rows, block, good_share));
  }
  return found;
}

int bench_read(const bench_read_arguments& arguments, interruption& stop) {
  if (arguments.create_bytes > 0) {
    if (arguments.paths.size() != 1) throw error(errc::usage, "--create makes one file; give one PATH");
    try {
      const status_line shown([](const terminal& screen, std::size_t) { return screen.dim("  laying out the file"); });
      create_bench_file(arguments.paths.front(), arguments.create_bytes, stop.token());
    } catch (const error& failure) {
      if (failure.code() != errc::cancelled || !stop.requested()) throw;
      complain("bench read", io::str_cat("stopped by ", stop.name(), "; the file begun was removed"));
      return stop.exit_code();
    }
  }
  std::atomic<int> fio_process{0};
  const std::stop_callback leaving(stop.token(), [&] {
    if (const int running = fio_process.load(); running > 0) ::kill(-running, SIGKILL);
    complain("bench read", io::str_cat("stopped by ", stop.name()));
    std::_Exit(stop.exit_code());  // Nothing was written, nothing is lost.
  });
  std::vector<std::pair<std::string, read_settings>> wanted;
  if (arguments.rungs) wanted = without_each_rung(arguments.how);
  if (arguments.sweep) {
    for (const read_settings& each : sweep_of(arguments.how, arguments.block_is_asked)) wanted.emplace_back("", each);
  }
  if (wanted.empty()) wanted.emplace_back("", arguments.how);
  std::vector<read_row> rows;
  std::vector<std::string> fio_lines;
  {
    std::atomic<std::size_t> done = 0;
    const status_line shown([&](const terminal& screen, std::size_t) {
      return screen.dim(wanted.size() == 1 ? "  reading"
                                           : io::str_cat("  reading: ", done.load() + 1, " of ", wanted.size()));
    });
    for (const auto& [rung, how] : wanted) {
      rows.push_back(arguments.fio ? measure_beside_fio(arguments.paths, how, fio_lines, fio_process)
                                   : measure_reads(arguments.paths, how));
      rows.back().rung = rung;
      done.store(std::min(rows.size(), wanted.size() - 1));
    }
  }
  const std::vector<const read_row*> knees = arguments.sweep ? knees_of(rows) : std::vector<const read_row*>{};
  if (arguments.json) {
    json all = json::array();
    for (const read_row& row : rows) all.push_back(as_json(row));
    json made = {{"rows", all}, {"rungs", rungs_json(rows.front().rungs)}};
    for (const read_row* each : knees) {
      made["smallest_depths"].push_back({{"block", each->asked.block_bytes}, {"depth", each->asked.depth}});
    }
    if (!fio_lines.empty()) made["fio_commands"] = fio_lines;
    print(json_text(made) + "\n");
  } else {
    std::string text = io::str_cat(
        name(arguments.how.pattern), " reads of ", counted(arguments.paths.size(), "file", "files"), ", ",
        seconds_text(arguments.how.seconds),
        arguments.fio ? io::str_cat(" of each in turn, ", fio_rounds, " times; the round of the median rate") : "",
        "\n", as_table(rows));
    for (const read_row* each : knees) {
      io::str_append(text, "  ", bytes_text(each->asked.block_bytes), ": depth ", each->asked.depth,
                     " is the smallest with 95 % of the best rate\n");
    }
    if (!arguments.rungs) text += rungs_text(rows.front().rungs);
    for (const std::string& each : fio_lines) io::str_append(text, "  ", one_line(each), "\n");
    std::uint64_t pages = 0;
    for (const read_row& row : rows) {
      if (row.fio && !row.fio->huge_pages && row.rungs.huge_pages.use != "off")
        pages = std::max(pages, fio_huge_pages(row));
    }
    if (pages > 0) {
      io::str_append(text, "  fio had no huge pages and we had: no fair comparison; `sysctl vm.nr_hugepages=", pages,
                     "` gives it some\n");
    }
    print(text);
  }
  return exit_done;
}

void add_bench_read(CLI::App& bench, chosen_command& chosen) {
  auto arguments = std::make_shared<bench_read_arguments>();  // Lives as long as the parser's callbacks do.
  CLI::App& app = *bench.add_subcommand("read", "how fast files can be read, through the reader that the loader uses");
  app.get_help_ptr()->group("");  // Whoever reads it has found it.
  app.add_option("PATH", arguments->paths, "files on the drive to be measured")->required()->type_name("");
  CLI::Option* const block =
      add_bytes(app, "--block", arguments->how.block_bytes, "bytes of a read: 4K, 112K (a photograph), 1M, 8M (1M)");
  CLI::Option* const depth = add_number(app, "--depth", arguments->how.depth, 1,
                                        "reads in flight, for each thread (7 MiB of them, 8 to 128)", 4096);
  add_number(app, "--threads", arguments->how.threads, 1, "I/O threads, one ring each (1)", 64);
  add_choice(app, "--pattern", arguments->how.pattern,
             {{"random", read_pattern::random}, {"sequential", read_pattern::sequential}},
             "random: on multiples of 4096 (random)");
  app.add_option_function<std::string>(
         "--seconds",
         [arguments](const std::string& given) {
           double& seconds = arguments->how.seconds;
           if (!absl::SimpleAtod(given, &seconds) || !(seconds >= 0.01 && seconds <= 86400)) {
             refuse("--seconds", given, "seconds, from 0.01 to 86400");
           }
         },
         "of measuring (5)")
      ->type_name("N");
  add_choice(app, "--direct", arguments->how.direct, {{"on", choice::on}, {"off", choice::off}},
             "O_DIRECT, or through the page cache, emptied of these files (on, where it can be had)");
  add_choice(
      app, "--reader", arguments->how.backend,
      {{"auto", read_backend::automatic}, {"io_uring", read_backend::io_uring}, {"preadv", read_backend::preadv}},
      "auto: io_uring where the kernel allows it");
  add_bytes(app, "--create", arguments->create_bytes,
            "make PATH first: random data, of this size; one that this made is used again, any other left alone");
  CLI::Option* const rungs =
      app.add_flag("--rungs", arguments->rungs, "each rung of the ladder left out once, side by side");
  app.add_flag("--sweep", arguments->sweep,
               "every depth from 1 to 128 for 4K, 112K, 1M and 8M (or --block), and the smallest that is good enough")
      ->excludes(depth)
      ->excludes(rungs);
  app.add_flag("--fio", arguments->fio, "fio in turn with us, with the same settings: its command line and the ratios");
  app.add_flag("--json", arguments->json, "all that was measured, as one JSON object");
  app.footer(
      "  leat bench read /data/leat.bench --create 8GiB\n"
      "  leat bench read /data/leat.bench --block 4K --depth 128 --threads 2 --json");
  app.callback([arguments, block, &chosen] {
    arguments->block_is_asked = block->count() > 0;
    chosen = [arguments](interruption& stop) { return bench_read(*arguments, stop); };
  });
}

}  // namespace

void add_bench(CLI::App& leat, chosen_command& chosen) {
  CLI::App& app = *leat.add_subcommand("bench", "measure the drive, with the reader that the loader uses");
  app.footer("  leat bench read --help\n  leat bench read /data/leat.bench --create 8GiB");
  add_bench_read(app, chosen);
  app.get_help_ptr()->group("");  // After: a subcommand gets its own from one that is listed.
}

}  // namespace leat::tools
