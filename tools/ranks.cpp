#include "tools/ranks.hpp"

#include "base/text.hpp"
#include "stages/order/launchers.hpp"
#include "tools/arguments.hpp"

#include <leat/error.hpp>

#include <filesystem>
#include <limits>

namespace leat::tools {
namespace {

constexpr std::string_view rank_place = "%r";

// The option decides, whatever the environment holds; it may be why it was given.
void take_local_ranks(world& into) {
  try {
    const world said = world::from_environment();
    if (said.rank == into.rank && said.size == into.size) into = said;
  } catch (const error&) {
    return;
  }
}

// "train.%r.bin"
std::string named_by_rank(std::filesystem::path name) {
  return name.replace_extension(str_cat(".%r", name.extension().string())).string();
}

}  // namespace

void add_rank_options(CLI::App& app, rank_options& ranks) {
  const auto add = [&](const char* option, std::optional<std::uint32_t>& into, std::uint64_t least, const char* help) {
    app.add_option_function<std::string>(
           option,
           [&into, option, least](const std::string& given) {
             constexpr std::uint64_t most = std::numeric_limits<std::uint32_t>::max();
             into = static_cast<std::uint32_t>(parse_number(option, given, least, most));
           },
           help)
        ->type_name("N");
  };
  add("--rank", ranks.rank, 0, "of this process, from 0 (as torchrun, mpirun or srun says)");
  add("--world", ranks.world, 1, "how many ranks there are");
}

found_world world_of(const rank_options& ranks) {
  if (!ranks.rank && !ranks.world) return find_world();
  if (!ranks.rank || !ranks.world) {
    throw error(errc::usage,
                str_cat(ranks.rank ? "--rank is given, and --world is not" : "--world is given, and --rank is not",
                        "; give both, or leave both to the launcher"));
  }
  found_world given{.world = {.rank = *ranks.rank, .size = *ranks.world}, .launcher = "--rank --world"};
  stages::check_world(given.world, "--rank and --world");
  take_local_ranks(given.world);
  return given;
}

void add_ranks(nlohmann::ordered_json& report, const found_world& here) {
  report["rank"] = here.world.rank;
  report["world"] = here.world.size;
  report["launcher"] = here.launcher.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(here.launcher);
}

std::string with_rank(std::string name, const world& here) {
  const std::string rank = std::to_string(here.rank);
  for (std::size_t at = name.find(rank_place); at != std::string::npos; at = name.find(rank_place, at + rank.size())) {
    name.replace(at, rank_place.size(), rank);
  }
  return name;
}

std::string name_for_rank(std::string_view option, const std::string& name, const world& here) {
  if (!name.empty() && here.size > 1 && name.find(rank_place) == std::string::npos) {
    throw error(errc::usage, str_cat(option, " ", name, ": ", here.size,
                                     " ranks would write it together; %r in the name is the rank, as ", option, " ",
                                     name == "-" ? "batches.%r" : named_by_rank(name)));
  }
  return with_rank(name, here);
}

}  // namespace leat::tools
