// Which of how many processes this one is, for a command: --rank and --world, or what launched it; and files of a name of its own.
#pragma once

#include <leat/world.hpp>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace leat::tools {

struct rank_options {
  std::optional<std::uint32_t> rank;
  std::optional<std::uint32_t> world;
};

/// --rank and --world.
void add_rank_options(CLI::App& app, rank_options& ranks);

/// The options where they are given; else as leat::find_world(). Local ranks are known from a launcher that says the same.
///   throws   error{errc::usage}
[[nodiscard]] found_world world_of(const rank_options& ranks);

/// Adds "rank", "world" and "launcher" to a report.
void add_ranks(nlohmann::ordered_json& report, const found_world& here);

/// The name with the rank's number for each %r.
[[nodiscard]] std::string with_rank(std::string name, const world& here);

/// The same, for a file that this rank writes.
///   option   that gave the name, which may be empty
///   throws   error{errc::usage}: all ranks of a world would write the same file
[[nodiscard]] std::string name_for_rank(std::string_view option, const std::string& name, const world& here);

}  // namespace leat::tools
