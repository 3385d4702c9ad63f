// leat doctor: what this machine offers, what leat will therefore do, and what would bring it a better way.
#include "base/text.hpp"
#include "datasets/files/remote_files.hpp"
#include "io/remote/address.hpp"
#include "io/remote/store_probe.hpp"
#include "tools/arguments.hpp"
#include "tools/doctor_advice.hpp"
#include "tools/doctor_json.hpp"
#include "tools/doctor_probe.hpp"
#include "tools/human.hpp"
#include "tools/output.hpp"
#include "tools/run_record.hpp"
#include "tools/sources.hpp"
#include "tools/status_line.hpp"
#include "tools/subcommand.hpp"

#include <leat/error.hpp>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

namespace leat::tools {
namespace {

struct doctor_arguments {
  std::vector<std::string> paths;  // and addresses
  remote_options remote;
  bool json = false;
  asked_for asked;
};

// Of each address the first object that it names, or of a folder has.
std::vector<io::store_facts> look_at_stores(const std::vector<std::string>& addresses, const remote_options& remote) {
  std::vector<io::store_facts> all;
  for (const std::string& each : addresses) {
    try {
      all.push_back(io::look_at_store(datasets::expand_addresses(each, remote).front(), remote));
    } catch (const error& failed) {
      if (failed.code() == errc::unsupported || failed.code() == errc::usage) throw;
      all.push_back({.address = io::redacted(each), .failure = failed.what(), .failure_kind = failed.code()});
    }
  }
  return all;
}

std::string as_text(const terminal& screen, const std::vector<finding>& findings) {
  std::size_t columns = 12;
  for (const finding& each : findings) columns = std::max(columns, std::min<std::size_t>(columns_of(each.concern), 28));
  const std::string indent(columns + 4, ' ');
  std::string text = "\n";
  std::size_t advised = 0;
  std::size_t failing = 0;
  for (const finding& each : findings) {
    const std::size_t taken = columns_of(each.concern);
    str_append(text, "  ", screen.bold(each.concern));
    // A long path has its line to itself.
    text += taken > columns ? "\n" + indent : std::string(columns - taken + 2, ' ');
    str_append(text, one_line(each.found), "\n");
    if (each.how == finding::grade::failing) ++failing;
    if (each.advice.empty()) continue;
    ++advised;
    str_append(text, indent, screen.warning(each.how == finding::grade::failing ? "! " : "> "), one_line(each.advice),
               "\n");
  }
  str_append(text, "\n  ",
             advised > 0    ? counted(advised, "piece of advice", "pieces of advice")
             : failing == 0 ? "nothing to be had that leat does not have"
                            : "nothing to be done about what fails but to use another place",
             "\n\n");
  return text;
}

int doctor(const doctor_arguments& arguments, interruption& stop) {
  const auto leave = [&] { complain("doctor", str_cat("stopped by ", stop.name())); };
  std::vector<std::string> paths;
  std::vector<std::string> addresses;
  for (const std::string& each : arguments.paths) (datasets::is_remote(each) ? addresses : paths).push_back(each);
  if (arguments.paths.empty()) paths.emplace_back(".");
  const machine_facts facts = [&] {
    const std::stop_callback leaving(stop.token(), [&] {
      leave();
      std::_Exit(stop.exit_code());  // Nothing was written, nothing is lost.
    });
    const status_line shown([](const terminal& screen, std::size_t) { return screen.dim("  looking at the machine"); });
    machine_facts found = look_at_machine(paths);
    found.stores = look_at_stores(addresses, arguments.remote);
    return found;
  }();
  const std::vector<finding> findings = examine(facts);
  print(arguments.json ? report_text(as_json(facts, findings), arguments.asked)
                       : as_text(terminal::of(stdout), findings));
  const bool failing = std::any_of(findings.begin(), findings.end(),
                                   [](const finding& each) { return each.how == finding::grade::failing; });
  return failing ? exit_failed : exit_done;
}

}  // namespace

void add_doctor(CLI::App& leat, chosen_command& chosen) {
  auto arguments = std::make_shared<doctor_arguments>();  // Lives as long as the parser's callbacks do.
  CLI::App& app = *leat.add_subcommand("doctor", "say what this machine offers and what would make it faster");
  app.add_option("PATH", arguments->paths,
                 "where data lies or will lie: paths, and objects at addresses (s3://, https://); the directory one is "
                 "in unless told");
  add_remote_options(app, arguments->remote);
  app.add_flag("--json", arguments->json, "all that was found, as one JSON object");
  app.footer(
      "  leat doctor /data\n  leat doctor /data /scratch --json\n  leat doctor s3://bucket/train-000000.tar\n  leat "
      "doctor s3://bucket/train/");
  app.callback([arguments, &app, &chosen] {
    arguments->asked = asked_of(app);
    chosen = [arguments](interruption& stop) { return doctor(*arguments, stop); };
  });
}

}  // namespace leat::tools
