#include "base/memory_available.hpp"

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

/// What one group and its parents leave.
void tighten(memory_available& found, const std::string& mount, std::string group, const group_files& names) {
  for (;;) {
    const std::string directory = str_cat(mount, group, "/");
    const auto limit = number_in(directory + names.limit);
    const auto used = number_in(directory + names.used);
    if (limit && used && *limit != unlimited) {
      const std::string stat = directory + "memory.stat";
      const std::uint64_t cache = number_after(stat, str_cat(names.stat_prefix, "inactive_file")) +
                                  number_after(stat, str_cat(names.stat_prefix, "active_file"));
      const std::uint64_t held = *used - std::min(*used, cache);
      const std::uint64_t left = *limit - std::min(*limit, held);
      if (left < found.bytes) found = {left, str_cat("control group ", group.empty() ? "/" : group)};
    }
    const std::size_t slash = group.rfind('/');
    if (group.empty() || slash == std::string::npos) return;
    group.resize(slash);
  }
}

}  // namespace

memory_available find_memory_available(const std::string& root) {
  memory_available found{number_after(root + "/proc/meminfo", "MemAvailable:") * 1024, "MemAvailable"};
  if (found.bytes == 0) found.bytes = unlimited;  // a sandbox without /proc/meminfo: the groups may still know

  // "0::/group" is version 2, "4:memory:/group" version 1, cgroups(7). In a container the path may be that of the
  // host and not exist here; then the mount's root is the container's own group.
  std::ifstream groups(root + "/proc/self/cgroup");
  std::string line;
  while (std::getline(groups, line)) {
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    std::string group = line.substr(second + 1);
    if (group == "/") group.clear();
    if (controllers.empty()) {
      const std::string mount = root + "/sys/fs/cgroup";
      tighten(found, mount, group, version_2);
    } else if (str_cat(",", controllers, ",").find(",memory,") != std::string::npos) {
      tighten(found, root + "/sys/fs/cgroup/memory", group, version_1);
    }
  }
  if (found.bytes == unlimited) found.bytes = 0;
  return found;
}

}  // namespace leat
