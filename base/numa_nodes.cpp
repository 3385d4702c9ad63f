#include "base/numa_nodes.hpp"

#include "base/numbers.hpp"
#include "base/text.hpp"
#include "base/words.hpp"

#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <system_error>
#include <utility>

namespace leat {
namespace {

namespace fs = std::filesystem;

// The kernel has room for 8,192 cores and 1,024 nodes, Linux's Kconfig of x86.
constexpr std::uint64_t numbers_max = 65'536;

std::string first_line(const fs::path& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

std::optional<std::uint32_t> small_number(std::string_view text) {
  const std::optional<std::uint64_t> number = parse_unsigned(text);
  if (!number || *number >= numbers_max) return std::nullopt;
  return static_cast<std::uint32_t>(*number);
}

// Of a device or one of those that it hangs on: -1 is not known, and asks the next one.
std::optional<std::uint32_t> node_above(fs::path device) {
  for (; device.has_relative_path(); device = device.parent_path()) {
    if (const std::optional<std::uint32_t> node = small_number(first_line(device / "numa_node"))) return node;
  }
  return std::nullopt;
}

using some_nodes = std::set<std::optional<std::uint32_t>>;

// Of an NVMe drive with several paths, whose subsystem links to its controllers.
some_nodes nodes_of_controllers(const fs::path& subsystem) {
  some_nodes nodes;
  std::error_code failed;
  for (const fs::directory_entry& each : fs::directory_iterator(subsystem, failed)) {
    if (!each.is_symlink(failed) || !each.path().filename().string().starts_with("nvme")) continue;
    if (const fs::path controller = fs::canonical(each.path(), failed); !failed) nodes.insert(node_above(controller));
  }
  return nodes;
}

// Of all drives under a block device: what device mapper and RAID are made of stands in slaves/.
some_nodes nodes_under(const fs::path& block_device, int depth = 0) {
  constexpr int depth_max = 8;  // of mappings on mappings
  std::error_code failed;
  fs::path place = fs::canonical(block_device, failed);
  if (failed || depth > depth_max) return {std::nullopt};
  if (fs::exists(place / "partition", failed)) place = place.parent_path();
  some_nodes nodes;
  for (const fs::directory_entry& each : fs::directory_iterator(place / "slaves", failed)) {
    nodes.merge(nodes_under(each.path(), depth + 1));
  }
  const fs::path above = place.parent_path();
  if (nodes.empty() && above.filename().string().starts_with("nvme-subsys")) nodes = nodes_of_controllers(above);
  if (nodes.empty()) nodes.insert(node_above(place));
  return nodes;
}

}  // namespace

std::optional<std::vector<std::uint32_t>> parse_number_list(std::string_view text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.remove_suffix(1);
  std::vector<std::uint32_t> numbers;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(','), text.size());
    const std::string_view part = text.substr(0, end);
    const std::size_t dash = part.find('-');
    const std::optional<std::uint32_t> first = small_number(part.substr(0, dash));
    const std::optional<std::uint32_t> last =
        dash == std::string_view::npos ? first : small_number(part.substr(dash + 1));
    if (!first || !last || *last < *first) return std::nullopt;
    for (std::uint32_t number = *first; number <= *last; ++number) numbers.push_back(number);
    if (end + 1 == text.size()) return std::nullopt;
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return numbers;
}

std::vector<node_cores> find_numa_nodes(const std::string& root, const std::vector<std::uint32_t>& usable) {
  std::vector<node_cores> nodes;
  std::error_code failed;
  for (const fs::directory_entry& each : fs::directory_iterator(root + "/sys/devices/system/node", failed)) {
    const std::string name = each.path().filename().string();
    if (!name.starts_with("node")) continue;
    const std::optional<std::uint32_t> number = small_number(std::string_view(name).substr(4));
    const std::optional<std::vector<std::uint32_t>> cores = parse_number_list(first_line(each.path() / "cpulist"));
    if (!number || !cores) continue;
    node_cores& node = nodes.emplace_back(node_cores{.node = *number, .cores = {}});
    std::copy_if(cores->begin(), cores->end(), std::back_inserter(node.cores),
                 [&](std::uint32_t core) { return std::find(usable.begin(), usable.end(), core) != usable.end(); });
  }
  std::sort(nodes.begin(), nodes.end(), [](const node_cores& a, const node_cores& b) { return a.node < b.node; });
  return nodes;
}

std::optional<std::uint32_t> node_of_pci_device(const std::string& address, const std::string& root) {
  if (address.empty()) return std::nullopt;
  std::error_code failed;
  const fs::path place = fs::canonical(root + "/sys/bus/pci/devices/" + lower_case(address), failed);
  return failed ? std::nullopt : node_above(place);
}

std::uint32_t devices_beside(const std::string& address, const std::string& root) {
  const std::optional<std::uint32_t> node = node_of_pci_device(address, root);
  if (!node) return 0;
  const auto kind_of = [](const fs::path& device) {
    return str_cat(first_line(device / "vendor"), " ", first_line(device / "class"));
  };
  const fs::path devices = root + "/sys/bus/pci/devices";
  const std::string kind = kind_of(devices / lower_case(address));
  std::uint32_t count = 0;
  std::error_code failed;
  for (const fs::directory_entry& each : fs::directory_iterator(devices, failed)) {
    if (kind_of(each.path()) == kind && node_of_pci_device(each.path().filename().string(), root) == node) ++count;
  }
  return count;
}

std::optional<std::uint32_t> node_of_file(const std::string& path, const std::string& root) {
  struct stat found{};
  if (::stat(path.c_str(), &found) != 0) return std::nullopt;
  const some_nodes nodes = nodes_under(str_cat(root, "/sys/dev/block/", major(found.st_dev), ":", minor(found.st_dev)));
  return nodes.size() == 1 ? *nodes.begin() : std::nullopt;
}

}  // namespace leat
