#include "base/memory_available.hpp"

#include "base/control_groups.hpp"
#include "base/text.hpp"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <initializer_list>
#include <limits>
#include <optional>
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

/// The sum of the numbers behind `keys` in a file of "key number" or "key: number kB" lines; one that is not there counts as 0.
std::uint64_t sum_behind(const std::string& path, std::initializer_list<std::string_view> keys) {
  std::ifstream file(path);
  std::uint64_t sum = 0;
  std::string line;
  while (std::getline(file, line)) {
    const std::string_view name = std::string_view(line).substr(0, line.find_first_of(" \t"));
    if (std::find(keys.begin(), keys.end(), name) == keys.end()) continue;
    const std::size_t first = std::min(line.find_first_not_of(" \t", name.size()), line.size());
    std::uint64_t number = 0;
    std::from_chars(line.data() + first, line.data() + line.size(), number);
    sum += number;
  }
  return sum;
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
  const std::uint64_t cache = sum_behind(directory + "memory.stat", {str_cat(names.stat_prefix, "inactive_file"),
                                                                     str_cat(names.stat_prefix, "active_file")});
  const std::uint64_t held = *used - std::min(*used, cache);
  const std::uint64_t left = *limit - std::min(*limit, held);
  if (left < found.bytes) found = {left, str_cat("control group ", group.name)};
}

}  // namespace

memory_available find_memory_available(const std::string& root) {
  memory_available found{sum_behind(root + "/proc/meminfo", {"MemAvailable:"}) * 1024, "MemAvailable"};
  if (found.bytes == 0) found.bytes = unlimited;  // a sandbox without /proc/meminfo: the groups may still know
  for (const control_group& group : control_groups(root, "memory")) {
    tighten(found, group, group.is_of_version_1 ? version_1 : version_2);
  }
  if (found.bytes == unlimited) found.bytes = 0;
  return found;
}

}  // namespace leat
