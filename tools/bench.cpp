// leat bench: what a part of the line does on this machine, by itself.
#include "io/text.hpp"
#include "tools/arguments.hpp"
#include "tools/bench_file.hpp"
#include "tools/bench_read.hpp"
#include "tools/human.hpp"
#include "tools/output.hpp"
#include "tools/status_line.hpp"
#include "tools/subcommand.hpp"

#include <leat/error.hpp>

#include <absl/strings/numbers.h>

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
  bool json = false;
};

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
  const std::stop_callback leaving(stop.token(), [&] {
    complain("bench read", io::str_cat("stopped by ", stop.name()));
    std::_Exit(stop.exit_code());  // Nothing was written, nothing is lost.
  });
  std::vector<read_row> rows;
  {
    const status_line shown([](const terminal& screen, std::size_t) { return screen.dim("  reading"); });
    rows.push_back(measure_reads(arguments.paths, arguments.how));
  }
  if (arguments.json) {
    json all = json::array();
    for (const read_row& row : rows) all.push_back(as_json(row));
    print(json_text(json{{"rows", all}, {"rungs", rungs_json(rows.front().rungs)}}) + "\n");
  } else {
    print(io::str_cat(name(arguments.how.pattern), " reads of ", counted(arguments.paths.size(), "file", "files"), ", ",
                      seconds_text(arguments.how.seconds), "\n", as_table(rows), rungs_text(rows.front().rungs)));
  }
  return exit_done;
}

void add_bench_read(CLI::App& bench, chosen_command& chosen) {
  auto arguments = std::make_shared<bench_read_arguments>();  // Lives as long as the parser's callbacks do.
  CLI::App& app = *bench.add_subcommand("read", "how fast files can be read, through the reader that the loader uses");
  app.get_help_ptr()->group("");  // Whoever reads it has found it.
  app.add_option("PATH", arguments->paths, "files on the drive to be measured")->required()->type_name("");
  add_bytes(app, "--block", arguments->how.block_bytes, "bytes of a read: 4K, 112K (a photograph), 1M, 8M (1M)")
      ->type_name("SIZE");
  add_number(app, "--depth", arguments->how.depth, 1, "reads in flight, for each thread (7 MiB of them, 8 to 128)",
             4096);
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
  app.add_flag("--json", arguments->json, "all that was measured, as one JSON object");
  app.footer(
      "  leat bench read /data/leat.bench --create 8GiB\n"
      "  leat bench read /data/leat.bench --block 4K --depth 128 --threads 2 --json");
  app.callback(
      [arguments, &chosen] { chosen = [arguments](interruption& stop) { return bench_read(*arguments, stop); }; });
}

}  // namespace

void add_bench(CLI::App& leat, chosen_command& chosen) {
  CLI::App& app = *leat.add_subcommand("bench", "measure the drive, with the reader that the loader uses");
  app.footer("  leat bench read --help\n  leat bench read /data/leat.bench --create 8GiB");
  add_bench_read(app, chosen);
  app.get_help_ptr()->group("");  // After: a subcommand gets its own from one that is listed.
}

}  // namespace leat::tools
