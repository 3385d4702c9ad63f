#include "base/memory_available.hpp"

#include "base/control_groups.hpp"
#include "base/text.hpp"

#include <algorithm>
#include <fstream>
#include <limits>
#include <optional>
#include <sstream>
#include <string_view>

namespace leat {
namespace {

constexpr std::uint64_t unlimited = std::numeric_limits<std::uint64_t>::max();

/// The first number in a file; "max" is unlimited.
std::optional<std::uint64_t> number_in(const std::string& path) {
  std::ifstream file(path);
  std::string word;
  if (!(file >> word)) return std::nullopt;
  if (word == "max") return unlimited;
  try {
    return std::stoull(word);
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

/// The number behind `key` in a file of "key number" or "key: number kB" lines; 0 where there is none.
std::uint64_t number_after(const std::string& path, std::string_view key) {
  std::ifstream file(path);
  std::string line;
  while (std::getline(file, line)) {
    std::istringstream words(line);
    std::string name;
    std::uint64_t number = 0;
    if (words >> name >> number && name == key) return number;
  }
  return 0;
}

struct group_files {
  const char* limit;
  const char* used;
  const char* stat_prefix;
};
constexpr group_files version_2{"memory.max", "memory.current", ""};
constexpr group_files version_1{"memory.limit_in_bytes", "memory.usage_in_bytes", "total_"};

/// What a group leaves.
void tighten(memory_available& found, const control_group& group, const group_files& names) {
  const std::string directory = group.directory + "/";
  const auto limit = number_in(directory + names.limit);
  const auto used = number_in(directory + names.used);
  if (!limit || !used || *limit == unlimited) return;
  const std::string stat = directory + "memory.stat";
  const std::uint64_t cache = number_after(stat, str_cat(names.stat_prefix, "inactive_file")) +
                              number_after(stat, str_cat(names.stat_prefix, "active_file"));
  const std::uint64_t held = *used - std::min(*used, cache);
  const std::uint64_t left = *limit - std::min(*limit, held);
  if (left < found.bytes) found = {left, str_cat("control group ", group.name)};
}

}  // namespace

memory_available find_memory_available(const std::string& root) {
  memory_available found{number_after(root + "/proc/meminfo", "MemAvailable:") * 1024, "MemAvailable"};
  if (found.bytes == 0) found.bytes = unlimited;  // a sandbox without /proc/meminfo: the groups may still know
  for (const control_group& group : control_groups(root, "memory")) {
    tighten(found, group, group.is_of_version_1 ? version_1 : version_2);
  }
  if (found.bytes == unlimited) found.bytes = 0;
  return found;
}

}  // namespace leat
