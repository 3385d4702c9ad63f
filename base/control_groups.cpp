#include "base/control_groups.hpp"

#include "base/text.hpp"

#include <cstddef>
#include <fstream>

namespace leat {

std::vector<control_group> control_groups(const std::string& root, std::string_view controller) {
  std::vector<control_group> all;
  std::ifstream groups(root + "/proc/self/cgroup");
  std::string line;
  while (std::getline(groups, line)) {
    // "0::/group" is version 2, "4:cpu,cpuacct:/group" version 1, cgroups(7).
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = str_cat(",", line.substr(first + 1, second - first - 1), ",");
    const bool is_of_version_1 = controllers != ",,";
    if (is_of_version_1 && controllers.find(str_cat(",", controller, ",")) == std::string::npos) continue;
    std::string mount = root + "/sys/fs/cgroup";
    if (is_of_version_1) str_append(mount, "/", controller);
    std::string group = line.substr(second + 1);
    if (group == "/") group.clear();
    for (;;) {
      all.push_back({group.empty() ? "/" : group, mount + group, is_of_version_1});
      const std::size_t slash = group.rfind('/');
      if (group.empty() || slash == std::string::npos) break;
      group.resize(slash);
    }
  }
  return all;
}

}  // namespace leat
