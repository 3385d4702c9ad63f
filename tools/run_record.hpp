// What each --json says of the run besides its result: who would repeat it, or doubts it, finds the rest here.
#pragma once

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <string>
#include <utility>
#include <vector>

namespace leat::tools {

/// What the command line asked for: what stands by itself, and the options that were given.
struct asked_for {
  std::vector<std::string> sources;
  std::vector<std::pair<std::string, std::vector<std::string>>> options;
};
[[nodiscard]] asked_for asked_of(const CLI::App& app);

/// "0.7.0"
[[nodiscard]] std::string version_number();

/// What "run" is, up to now.
[[nodiscard]] nlohmann::ordered_json run_json(const asked_for& asked);

/// The result with a last member "run": leat's version, the command line, its sources and options, host, kernel, processor, GPUs,
/// when it was started (UTC) and how long it took. Addresses are without their queries, which may be signatures.
[[nodiscard]] std::string report_text(nlohmann::ordered_json result, const asked_for& asked);

}  // namespace leat::tools
