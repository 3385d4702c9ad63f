#include "tools/run_record.hpp"

#include "base/cores_quota.hpp"
#include "base/text.hpp"
#include "tools/output.hpp"
#include "tools/process.hpp"
#include "tools/sources.hpp"

#include <leat/version.hpp>

#include <sys/utsname.h>

#include <chrono>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string_view>
#include <system_error>

namespace leat::tools {
namespace {

using json = nlohmann::ordered_json;

std::vector<std::string> command_words() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  std::vector<std::string> words;
  for (std::string word; std::getline(file, word, '\0');) words.push_back(shown_source(word));
  return words;
}

/// What stands behind the first `key` of a file of "key : value" lines.
std::string value_after(const std::string& path, std::string_view key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with(key)) continue;
    const std::size_t begin = line.find_first_not_of(" \t:", key.size());
    return begin == std::string::npos ? "" : line.substr(begin);
  }
  return {};
}

std::vector<std::string> gpus() {
  std::vector<std::string> names;
  std::error_code failure;
  for (std::filesystem::directory_iterator each("/proc/driver/nvidia/gpus", failure), end; !failure && each != end;
       each.increment(failure)) {
    names.push_back(value_after((each->path() / "information").string(), "Model"));
  }
  return names;
}

std::string started_text(double seconds_ago) {
  const auto began = std::chrono::system_clock::now() - std::chrono::duration_cast<std::chrono::system_clock::duration>(
                                                            std::chrono::duration<double>(seconds_ago));
  const std::time_t whole = std::chrono::system_clock::to_time_t(began);
  std::tm parts{};
  ::gmtime_r(&whole, &parts);
  char text[32];
  return {text, std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts)};
}

json options_json(const asked_for& asked) {
  json options = json::object();
  for (const auto& [name, values] : asked.options) {
    if (values.size() == 1) {
      options[name] = shown_source(values.front());
    } else {
      options[name] = values;
    }
  }
  return options;
}

}  // namespace

std::string version_number() { return str_cat(LEAT_VERSION_MAJOR, ".", LEAT_VERSION_MINOR, ".", LEAT_VERSION_PATCH); }

asked_for asked_of(const CLI::App& app) {
  asked_for asked;
  for (const CLI::Option* option : app.get_options()) {
    if (option->count() == 0) continue;
    if (option->get_positional()) {
      asked.sources.insert(asked.sources.end(), option->results().begin(), option->results().end());
    } else {
      const std::string name = option->get_name(false, true);
      asked.options.emplace_back(name.substr(0, name.find(',')), option->results());
    }
  }
  return asked;
}

nlohmann::ordered_json run_json(const asked_for& asked) {
  utsname machine{};
  static_cast<void>(::uname(&machine));
  const double seconds = seconds_since_start();
  json sources = json::array();
  for (const std::string& each : asked.sources) sources.push_back(shown_source(each));
  return {{"version", version_number()},
          {"command", command_words()},
          {"sources", std::move(sources)},
          {"options", options_json(asked)},
          {"host", machine.nodename},
          {"kernel", str_cat(machine.sysname, " ", machine.release, " ", machine.machine)},
          {"cpu", value_after("/proc/cpuinfo", "model name")},
          {"cores", working_cores()},
          {"devices", gpus()},
          {"started", started_text(seconds)},
          {"seconds", seconds}};
}

std::string report_text(nlohmann::ordered_json result, const asked_for& asked) {
  result["run"] = run_json(asked);
  return json_text(result) + "\n";
}

}  // namespace leat::tools
