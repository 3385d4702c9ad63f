#include "stages/run/node_placement.hpp"

#include "base/errno_words.hpp"
#include "base/option_words.hpp"
#include "base/text.hpp"
#include "datasets/model/model.hpp"
#include "io/files/source.hpp"
#include "stages/run/device_choice.hpp"

#include <leat/error.hpp>

#include <algorithm>
#include <cerrno>
#include <string_view>
#include <utility>

namespace leat::stages {
namespace {

const node_cores* find_node(const std::vector<node_cores>& nodes, std::uint32_t number) {
  const auto found =
      std::find_if(nodes.begin(), nodes.end(), [&](const node_cores& each) { return each.node == number; });
  return found == nodes.end() ? nullptr : &*found;
}

// "nodes 0 and 1", of those with cores for this process.
std::string usable_nodes_text(const std::vector<node_cores>& nodes) {
  std::vector<std::uint32_t> usable;
  for (const node_cores& each : nodes) {
    if (!each.cores.empty()) usable.push_back(each.node);
  }
  if (usable.empty()) return "none that this process may use";
  if (usable.size() == 1) return str_cat("node ", usable.front());
  const std::uint32_t last = usable.back();
  usable.pop_back();
  return str_cat("nodes ", joined(usable, ", "), " and ", last);
}

node_choice node_asked_for(std::uint32_t number, const std::vector<node_cores>& nodes) {
  const std::string off = str_cat("let the kernel decide: ", spelled(option_id::numa, "off"));
  const std::string remedy =
      str_cat("give one of them, let the loader choose (", spelled(option_id::numa, "automatic"), "), or ", off);
  if (nodes.empty()) {
    throw error(errc::usage,
                str_cat("NUMA node ", number,
                        " was asked for, and this kernel lists none under /sys/devices/system/node; ", off),
                option_id::numa);
  }
  const node_cores* const found = find_node(nodes, number);
  if (found == nullptr) {
    throw error(
        errc::usage,
        str_cat("there is no NUMA node ", number, "; this machine has ", usable_nodes_text(nodes), ": ", remedy),
        option_id::numa);
  }
  if (found->cores.empty()) {
    throw error(
        errc::usage,
        str_cat("NUMA node ", number,
                " has no core that this process may use (by taskset, a cpuset or a batch system); it has some of ",
                usable_nodes_text(nodes), ": ", remedy),
        option_id::numa);
  }
  return {.node = number, .cores = found->cores, .is_asked_for = true, .why = "asked for"};
}

node_choice node_of(std::string_view what, std::uint32_t number, std::uint32_t ranks,
                    const std::vector<node_cores>& nodes) {
  const node_cores* const found = find_node(nodes, number);
  if (found == nullptr || found->cores.empty()) {
    return {.why = str_cat(what, " is at node ", number, ", where this process may use no core")};
  }
  return {.node = number, .cores = found->cores, .ranks = ranks, .why = str_cat(what, " is there")};
}

std::optional<std::uint32_t> node_of_first_file(const datasets::dataset_model& dataset, const std::string& sysfs_root) {
  for (const auto& source : dataset.sources()) {
    if (source->is_read_by_the_loop() && source->files() != 0) return node_of_file(source->file_name(0), sysfs_root);
  }
  return std::nullopt;
}

}  // namespace

node_choice choose_node(numa asked, const node_facts& facts) {
  const int number = static_cast<int>(asked);
  if (number >= 0) return node_asked_for(static_cast<std::uint32_t>(number), facts.nodes);
  if (asked == numa::off) return {.why = "asked for"};
  if (asked != numa::automatic) {
    throw error(errc::usage,
                str_cat(spelled(option_id::numa), " is ", number, "; give automatic, off or the number of a node"),
                option_id::numa);
  }
  if (facts.nodes.empty()) return {.why = "this kernel lists no NUMA nodes"};
  if (facts.nodes.size() == 1) return {.why = "one node"};
  // A rank has a device of its own, and all may read from one drive.
  if (facts.of_device) {
    return node_of("the device", *facts.of_device, std::min(facts.ranks, std::max(1U, facts.devices)), facts.nodes);
  }
  if (facts.of_drive) return node_of("the drive of the dataset", *facts.of_drive, facts.ranks, facts.nodes);
  return {.why = "of neither device nor drive the node is known"};
}

node_choice find_node_for(const loader_options& options, const datasets::dataset_model& dataset, const transfer& to,
                          const std::string& sysfs_root) {
  const numa asked = options.numa;
  if (asked == numa::off) return choose_node(asked, {});
  node_facts facts{.nodes = find_numa_nodes(sysfs_root), .ranks = std::max(1U, options.world.local_size)};
  if (asked == numa::automatic && facts.nodes.size() > 1) {
    const std::string address = pci_address_of(to);
    facts.of_device = node_of_pci_device(address, sysfs_root);
    facts.devices = devices_beside(address, sysfs_root);
    if (!facts.of_device) facts.of_drive = node_of_first_file(dataset, sysfs_root);
  }
  return choose_node(asked, facts);
}

std::uint32_t node_placement::cores_of_decode(std::uint32_t threads, std::uint32_t usable) const noexcept {
  return binds_decode(threads) ? std::min(usable, static_cast<std::uint32_t>(chosen_.cores.size())) : usable;
}

fallback node_placement::report(std::uint32_t decode_threads, int memory_failure) const {
  if (!chosen_.node) return {"off", chosen_.why};
  fallback said{str_cat("node ", *chosen_.node), chosen_.why};
  if (!binds_decode(decode_threads)) {
    str_append(said.why, "; its ", chosen_.cores.size(), " cores are too few for ", decode_threads,
               chosen_.ranks == 1 ? " decode threads" : str_cat(" decode threads of each of ", chosen_.ranks, " ranks"),
               ", which run on all");
  }
  if (memory_failure != 0) {
    str_append(said.why, "; memory comes from the node of who touches it first: mbind failed with ",
               errno_name(memory_failure), memory_failure == EPERM ? ", and in a container it takes CAP_SYS_NICE" : "");
  }
  if (const int failure = cores_.failure(); failure != 0) {
    str_append(said.why, "; a thread could not be bound: pthread_setaffinity_np failed with ", errno_name(failure));
  }
  return said;
}

}  // namespace leat::stages
