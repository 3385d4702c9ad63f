// leat check: whether the data is what it should be.
#include "base/text.hpp"
#include "stages/pixels/scratch.hpp"
#include "tools/arguments.hpp"
#include "tools/check_drift.hpp"
#include "tools/check_findings.hpp"
#include "tools/check_page.hpp"
#include "tools/check_report.hpp"
#include "tools/checked_samples.hpp"
#include "tools/human.hpp"
#include "tools/output.hpp"
#include "tools/run_record.hpp"
#include "tools/sources.hpp"
#include "tools/status_line.hpp"
#include "tools/subcommand.hpp"
#include "tools/where_option.hpp"

#include <leat/error.hpp>
#include <leat/loading.hpp>
#include <leat/open.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace leat::tools {
namespace {

using clock = std::chrono::steady_clock;

struct check_arguments {
  std::vector<std::string> sources;
  std::vector<std::string> against;
  open_options opening;
  std::string where;
  std::uint64_t host_bytes_max = host_bytes_usual;
  std::uint32_t threads = 0;
  std::uint32_t near_bits = near_bits_usual;
  std::uint64_t vocabulary = 0;
  std::optional<dtype> tokens;  // of files that do not say it
  std::string baseline;
  std::string json;
  std::string ids;
  std::string page;
};

std::vector<std::string> shown(const std::vector<std::string>& sources) {
  std::vector<std::string> all;
  for (const std::string& each : sources) all.push_back(shown_source(each));
  return all;
}

// A loader refuses it too. With less than an arena's least there is no picture that decodes.
void check_budget(std::uint64_t host_bytes_max) {
  const std::uint64_t least = 4 * std::uint64_t{pixels::scratch_arena::base_bytes};
  if (host_bytes_max >= least) return;
  throw error(errc::usage, str_cat("--host-bytes-max of ", bytes_text(host_bytes_max),
                                   " is too small: a quarter of it is for decoding a picture, which takes ",
                                   bytes_text(least / 4), " at least; give ", bytes_text(least), " or more"));
}

// Before the work: an hour later it is lost.
void check_outputs(const check_arguments& arguments) {
  const written_file files[] = {{"--baseline", &arguments.baseline},
                                {"--json", &arguments.json},
                                {"--ids", &arguments.ids},
                                {"--out", &arguments.page}};
  std::string_view on_standard_output;
  for (const auto& [option, path] : files) {
    for (const written_file& other : files) {
      if (other.first == option) break;
      if (!is_same_file(*path, *other.second)) continue;
      throw error(errc::usage, str_cat(other.first, " and ", option, " name the same file; give each one of its own"));
    }
    if (path == &arguments.baseline || path->empty()) continue;
    if (*path != "-") {
      const output_kind kind = path == &arguments.json  ? output_kind::findings
                               : path == &arguments.ids ? output_kind::ids
                                                        : output_kind::page;
      output_file::check(*path, kind, option);
    } else if (!std::exchange(on_standard_output, option).empty()) {
      throw error(errc::usage,
                  str_cat(option, " - and another both write to standard output; give one of them a FILE"));
    }
  }
}

void write(const std::string& path, output_kind kind, const std::string& text) {
  if (path.empty()) return;
  if (path == "-") return print(text);
  output_file file(path, kind, output_file::appears::when_closed);
  file.write(text);
  file.close();
}

std::string advise_checking(dtype type) { return str_cat("--token-type ", name(type), " checks it as tokens"); }

std::string progress(const terminal& screen, std::size_t columns, const measuring_progress& so_far,
                     clock::time_point began) {
  const std::uint64_t all = so_far.pictures;
  const std::uint64_t done = so_far.measured;
  if (all == 0) return screen.dim("  looking through the samples");
  const std::chrono::duration<double> seconds = clock::now() - began;
  const double share = static_cast<double>(done) / static_cast<double>(all);
  const std::string left =
      share > 0 ? str_cat(", ", clock_text(seconds.count() * (1 - share) / share), " left") : std::string();
  const std::string end = str_cat("  checking samples: ", count_text(done), " of ", count_text(all), left);
  return bar_line(screen, columns, share, end);
}

int check(const check_arguments& arguments, interruption& stop) {
  check_outputs(arguments);
  check_budget(arguments.host_bytes_max);
  const auto leave = [&] { complain("check", str_cat("stopped by ", stop.name())); };
  const auto opened = [&](const std::vector<std::string>& sources) {
    return open_sources(
        sources, stop, leave, advise_checking,
        {.tokens = arguments.tokens ? std::optional(token_options{.type = arguments.tokens}) : std::nullopt,
         .opening = arguments.opening});
  };
  const std::optional<nlohmann::ordered_json> before =
      arguments.baseline.empty() ? std::nullopt : std::optional(read_baseline(arguments.baseline));
  const dataset samples = opened(arguments.sources);
  std::optional<dataset> others;
  if (!arguments.against.empty()) others = opened(arguments.against);
  const written_file written[] = {{"--json", &arguments.json}, {"--ids", &arguments.ids}, {"--out", &arguments.page}};
  check_writes_no_sample(samples, written);
  if (others) check_writes_no_sample(*others, written);
  tell_notes("check", samples);

  const clock::time_point began = clock::now();
  const leaving_at_once leaving(stop, leave);  // Nothing was written, nothing is lost.
  const auto look = [&](const dataset& at) {
    measuring_progress so_far;
    const clock::time_point start = clock::now();
    const status_line line(
        [&](const terminal& screen, std::size_t columns) { return progress(screen, columns, so_far, start); });
    return check_samples(at,
                         {.where = arguments.where,
                          .index = arguments.opening.index,
                          .host_bytes_max = arguments.host_bytes_max,
                          .threads = arguments.threads,
                          .vocabulary = arguments.vocabulary},
                         so_far);
  };
  const checked_samples set = look(samples);
  const std::optional<checked_samples> other = others ? std::optional(look(*others)) : std::nullopt;
  for (const std::string& each : set.warnings) complain("check", each);
  const checked_samples* const compared = other ? &*other : nullptr;
  check_report report{.sources = shown(arguments.sources),
                      .against = shown(arguments.against),
                      .bits_max = arguments.near_bits,
                      .set = set,
                      .other = compared,
                      .found = find_in(set, compared, arguments.near_bits, arguments.threads)};
  const nlohmann::ordered_json found = report.as_json();
  if (before) report.drift = drift_between(*before, found);
  const bool is_told_elsewhere = arguments.json == "-" || arguments.ids == "-" || arguments.page == "-";
  const std::chrono::duration<double> took = clock::now() - began;
  const std::string text = report.as_text(terminal::of(is_told_elsewhere ? stderr : stdout), took.count());
  if (!arguments.json.empty()) write(arguments.json, output_kind::findings, json_text(report.as_json(), 1) + "\n");
  if (!arguments.ids.empty()) write(arguments.ids, output_kind::ids, report.as_ids());
  if (!arguments.page.empty()) write(arguments.page, output_kind::page, check_page(report, arguments.host_bytes_max));
  if (is_told_elsewhere) {
    std::fputs(text.c_str(), stderr);
  } else {
    print(text);
  }
  return is_wrong(set, report.found) || (report.drift && report.drift->is_wrong()) ? exit_failed : exit_done;
}

}  // namespace

void add_check(CLI::App& leat, chosen_command& chosen) {
  auto arguments = std::make_shared<check_arguments>();  // Lives as long as the parser's callbacks do.
  CLI::App& app = *leat.add_subcommand("check", "say what in the data is broken, there twice, or in two sets");
  add_sources(app, arguments->sources,
              "; the exit status is 1 if a sample is broken, one content has two classes, or is in both sets");
  add_opening_options(app, arguments->opening);
  add_where(app, arguments->where);
  app.add_option("--against", arguments->against,
                 "another set, as the one for validation, that should share no sample with this; may be repeated")
      ->type_name("SOURCE")
      ->allow_extra_args(false);
  add_text(
      app, "--baseline", arguments->baseline, "FILE",
      "what leat check --json wrote of an earlier set: says what has drifted, and by how much; the exit status is 1 if "
      "classes are new or gone, or columns are");
  add_choice(
      app, "--token-type", arguments->tokens,
      {{"u16", std::optional(dtype::u16)}, {"u32", std::optional(dtype::u32)}, {"i32", std::optional(dtype::i32)}},
      "the sources are files of tokens, of this type where no header says it");
  add_number(app, "--vocabulary", arguments->vocabulary, 1,
             "tokens are below it; a sample with another one is broken (any)");
  add_number(app, "--max-near", arguments->near_bits, 0,
             "pictures look alike if at most so many of 64 bits differ between them, across and down, 0 to 10 (4)",
             near_bits_max);
  add_text(app, "-o,--out", arguments->page, "FILE",
           "check.html: a page with histograms, classes, and pictures of what was found");
  add_text(app, "--json", arguments->json, "FILE",
           "all of it; - is standard output, and the summary then goes to standard error");
  add_text(app, "--ids", arguments->ids, "FILE",
           "the samples to leave out, a number a line, for leat epoch --exclude; - as above");
  add_bytes(
      app, "--host-bytes-max", arguments->host_bytes_max,
      "the memory that a loader would have: values that do not fit, and pictures that take more than a quarter to "
      "decode, are broken (512MiB)");
  add_number(app, "--threads", arguments->threads, 1, "that read and decode (one per core)", 1024);
  app.footer(
      "  leat check photos\n  leat check photos -o check.html --json check.json --ids check.ids\n"
      "  leat check train --against val\n  leat check new --baseline check.json");
  app.callback([arguments, &chosen] { chosen = [arguments](interruption& stop) { return check(*arguments, stop); }; });
}

}  // namespace leat::tools
