// leat doctor: what this machine offers, what leat will therefore do, and what would bring it a better rung.
#include "io/text.hpp"
#include "tools/arguments.hpp"
#include "tools/doctor_advice.hpp"
#include "tools/doctor_probe.hpp"
#include "tools/human.hpp"
#include "tools/output.hpp"
#include "tools/status_line.hpp"
#include "tools/subcommand.hpp"

#include <leat/version.hpp>

#include <absl/strings/str_format.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

namespace leat::tools {
namespace {

using json = nlohmann::ordered_json;

struct doctor_arguments {
  std::vector<std::string> paths;
  bool json = false;
};

std::string_view word(finding::grade how) {
  constexpr std::string_view words[] = {"best", "lower", "failing"};
  return words[static_cast<std::size_t>(how)];
}

json limit_json(const resource_limit& limit) {
  const auto number = [](std::uint64_t value) { return value == resource_limit::unlimited ? json() : json(value); };
  return {{"soft", number(limit.soft)}, {"hard", number(limit.hard)}};
}

json rung_json(const rung& taken) { return {{"use", taken.use}, {"why", taken.why}}; }

json path_json(const path_facts& path) {
  return {{"path", path.path},
          {"failure", path.failure},
          {"file_system", path.file_system},
          {"direct_memory_alignment", path.alignment_told ? json(path.direct_memory_alignment) : json()},
          {"direct_offset_alignment", path.alignment_told ? json(path.direct_offset_alignment) : json()},
          {"tried_on", path.tried_on},
          {"direct", rung_json(path.direct)}};
}

json gpu_json(const gpu_facts& gpu) {
  return {{"device", io::str_cat("cuda:", gpu.index)},
          {"name", gpu.name},
          {"driver", gpu.driver},
          {"driver_cuda", gpu.driver_cuda},
          {"runtime_cuda", gpu.runtime_cuda},
          {"compute_capability", gpu.capability},
          {"memory_bytes", gpu.memory_bytes},
          {"memory_free_bytes", gpu.memory_free_bytes},
          {"pci_address", gpu.pci_address},
          {"link_gt_s", gpu.link_gt_s},
          {"link_lanes", gpu.link_lanes},
          {"link_gt_s_max", gpu.link_gt_s_max},
          {"link_lanes_max", gpu.link_lanes_max},
          {"numa_node", gpu.numa_node},
          {"pinned", gpu.pinned},
          {"copy_bytes_per_s", gpu.copy_bytes_per_s},
          {"why", gpu.why}};
}

json as_json(const machine_facts& facts, const std::vector<finding>& findings) {
  json paths = json::array();
  for (const path_facts& each : facts.paths) paths.push_back(path_json(each));
  json gpus = json::array();
  for (const gpu_facts& each : facts.gpus) gpus.push_back(gpu_json(each));
  json told = json::array();
  for (const finding& each : findings) {
    told.push_back(
        {{"concern", each.concern}, {"grade", word(each.how)}, {"found", each.found}, {"advice", each.advice}});
  }
  return {{"leat", io::str_cat(LEAT_VERSION_MAJOR, ".", LEAT_VERSION_MINOR, ".", LEAT_VERSION_PATCH)},
          {"kernel", facts.kernel},
          {"architecture", facts.architecture},
          {"reader",
           {{"failure", facts.reader_failure},
            {"backend", rung_json(facts.reader.backend)},
            {"registered_buffers", rung_json(facts.reader.registered_buffers)},
            {"huge_pages", rung_json(facts.reader.huge_pages)}}},
          {"memlock_bytes", limit_json(facts.locked_bytes)},
          {"may_lock_all", facts.may_lock_all},
          {"open_files", limit_json(facts.files)},
          {"huge_pages_setting", facts.huge_pages_setting},
          {"memory_bytes", facts.memory_bytes},
          {"memory_available_bytes", facts.memory_available_bytes},
          {"memory_said_by", facts.memory_said_by},
          {"cores_usable", facts.cores_usable},
          {"cores_online", facts.cores_online},
          {"cores_quota", facts.cores_quota ? json(*facts.cores_quota) : json()},
          {"numa_nodes", facts.numa_nodes},
          {"built_with_cuda", facts.built_with_cuda},
          {"gpus_on_the_bus", facts.gpus_on_the_bus},
          {"gpus", gpus},
          {"why_no_gpu", facts.why_no_gpu},
          {"paths", paths},
          {"findings", told}};
}

std::string as_text(const terminal& screen, const std::vector<finding>& findings) {
  std::size_t columns = 12;
  for (const finding& each : findings) columns = std::max(columns, std::min<std::size_t>(columns_of(each.concern), 28));
  const std::string indent(columns + 4, ' ');
  std::string text = "\n";
  std::size_t advised = 0;
  for (const finding& each : findings) {
    const std::size_t taken = columns_of(each.concern);
    io::str_append(text, "  ", screen.bold(each.concern));
    // A long path has its line to itself.
    text += taken > columns ? "\n" + indent : std::string(columns - taken + 2, ' ');
    io::str_append(text, one_line(each.found), "\n");
    if (each.advice.empty()) continue;
    ++advised;
    io::str_append(text, indent, screen.warning(each.how == finding::grade::failing ? "! " : "> "),
                   one_line(each.advice), "\n");
  }
  io::str_append(text, "\n  ",
                 advised == 0 ? std::string("nothing to be had that leat does not have")
                              : counted(advised, "piece of advice", "pieces of advice"),
                 "\n\n");
  return text;
}

int doctor(const doctor_arguments& arguments, interruption& stop) {
  const auto leave = [&] { complain("doctor", io::str_cat("stopped by ", stop.name())); };
  const machine_facts facts = [&] {
    const std::stop_callback leaving(stop.token(), [&] {
      leave();
      std::_Exit(stop.exit_code());  // Nothing was written, nothing is lost.
    });
    const status_line shown([](const terminal& screen, std::size_t) { return screen.dim("  looking at the machine"); });
    return look_at_machine(arguments.paths.empty() ? std::vector<std::string>{"."} : arguments.paths);
  }();
  const std::vector<finding> findings = examine(facts);
  print(arguments.json ? json_text(as_json(facts, findings)) + "\n" : as_text(terminal::of(stdout), findings));
  const bool failing = std::any_of(findings.begin(), findings.end(),
                                   [](const finding& each) { return each.how == finding::grade::failing; });
  return failing ? exit_failed : exit_done;
}

}  // namespace

void add_doctor(CLI::App& leat, chosen_command& chosen) {
  auto arguments = std::make_shared<doctor_arguments>();  // Lives as long as the parser's callbacks do.
  CLI::App& app = *leat.add_subcommand("doctor", "say what this machine offers and what would make it faster");
  app.get_help_ptr()->group("");  // Whoever reads it has found it.
  app.add_option("PATH", arguments->paths, "where data lies or will lie; the directory one is in unless told");
  app.add_flag("--json", arguments->json, "all that was found, as one JSON object");
  app.footer("  leat doctor /data\n  leat doctor /data /scratch --json");
  app.callback([arguments, &chosen] { chosen = [arguments](interruption& stop) { return doctor(*arguments, stop); }; });
}

}  // namespace leat::tools
