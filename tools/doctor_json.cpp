#include "tools/doctor_json.hpp"

#include "base/text.hpp"

#include <leat/version.hpp>

#include <cstddef>
#include <string_view>

namespace leat::tools {
namespace {

using json = nlohmann::ordered_json;

std::string_view word(finding::grade how) {
  constexpr std::string_view words[] = {"best", "lower", "failing"};
  return words[static_cast<std::size_t>(how)];
}

json limit_json(const resource_limit& limit) {
  const auto number = [](std::uint64_t value) { return value == resource_limit::unlimited ? json() : json(value); };
  return {{"soft", number(limit.soft)}, {"hard", number(limit.hard)}};
}

json fallback_json(const fallback& taken) { return {{"use", taken.use}, {"why", taken.why}}; }

json path_json(const path_facts& path) {
  return {{"path", path.path},
          {"failure", path.failure},
          {"file_system", path.file_system},
          {"direct_memory_alignment", path.alignment_known ? json(path.direct_memory_alignment) : json()},
          {"direct_offset_alignment", path.alignment_known ? json(path.direct_offset_alignment) : json()},
          {"tried_on", path.tried_on},
          {"direct", fallback_json(path.direct)},
          {"numa_node", path.numa_node ? json(*path.numa_node) : json()}};
}

json rate_json(const io::measured_rate& rate) {
  return {{"connections", rate.connections},
          {"bytes_each", rate.bytes_each},
          {"fetches", rate.fetches},
          {"bytes", rate.bytes},
          {"seconds", rate.seconds}};
}

json store_json(const io::store_facts& store) {
  json blocks = json::array();
  for (const io::measured_rate& each : store.by_blocks) blocks.push_back(rate_json(each));
  return {{"address", store.address},
          {"failure", store.failure},
          {"keys_from", store.keys_from},
          {"region", store.region},
          {"server", store.server},
          {"bytes", store.size_bytes},
          {"is_versioned", store.is_versioned},
          {"first_s", store.first_s},
          {"latencies_s", store.latencies_s},
          {"by_blocks", blocks},
          {"by_samples", rate_json(store.by_samples)},
          {"bytes_read", store.bytes}};
}

json gpu_json(const gpu_facts& gpu) {
  return {{"device", str_cat("cuda:", gpu.index)},
          {"name", gpu.name},
          {"driver", gpu.driver},
          {"driver_cuda", gpu.driver_cuda},
          {"runtime_cuda", gpu.runtime_cuda},
          {"compute_capability", gpu.capability},
          {"memory_bytes", gpu.memory_bytes},
          {"memory_free_bytes", gpu.memory_free_bytes},
          {"pci_address", gpu.pci_address},
          {"link_gt_s", gpu.link_gt_s},
          {"link_lanes", gpu.link_lanes},
          {"link_gt_s_max", gpu.link_gt_s_max},
          {"link_lanes_max", gpu.link_lanes_max},
          {"numa_node", gpu.numa_node},
          {"pinned", gpu.pinned},
          {"copy_bytes_per_s", gpu.copy_bytes_per_s},
          {"why", gpu.why}};
}

}  // namespace

nlohmann::ordered_json as_json(const machine_facts& facts, const std::vector<finding>& findings) {
  json paths = json::array();
  for (const path_facts& each : facts.paths) paths.push_back(path_json(each));
  json stores = json::array();
  for (const io::store_facts& each : facts.stores) stores.push_back(store_json(each));
  json gpus = json::array();
  for (const gpu_facts& each : facts.gpus) gpus.push_back(gpu_json(each));
  json unusable = json::array();
  for (const gpu_failure& each : facts.gpus_unusable) {
    unusable.push_back({{"device", str_cat("cuda:", each.index)}, {"why", each.why}});
  }
  json shown = json::array();
  for (const finding& each : findings) {
    shown.push_back(
        {{"concern", each.concern}, {"grade", word(each.how)}, {"found", each.found}, {"advice", each.advice}});
  }
  return {{"leat", str_cat(LEAT_VERSION_MAJOR, ".", LEAT_VERSION_MINOR, ".", LEAT_VERSION_PATCH)},
          {"kernel", facts.kernel},
          {"architecture", facts.architecture},
          {"reader",
           {{"failure", facts.reader_failure},
            {"backend", fallback_json(facts.reader.backend)},
            {"registered_buffers", fallback_json(facts.reader.registered_buffers)},
            {"huge_pages", fallback_json(facts.reader.huge_pages)}}},
          {"memlock_bytes", limit_json(facts.locked_bytes)},
          {"may_lock_all", facts.may_lock_all},
          {"open_files", limit_json(facts.files)},
          {"huge_pages_setting", facts.huge_pages_setting},
          {"memory_bytes", facts.memory_bytes},
          {"memory_available_bytes", facts.memory_available_bytes},
          {"memory_said_by", facts.memory_said_by},
          {"cores_usable", facts.cores_usable},
          {"cores_online", facts.cores_online},
          {"cores_quota", facts.cores_quota ? json(*facts.cores_quota) : json()},
          {"numa_nodes", facts.numa_nodes.size()},
          {"photo_packs_recoded", facts.photo_packs_recoded},
          {"built_with_probes", facts.built_with_probes},
          {"built_with_cuda", facts.built_with_cuda},
          {"gpus_on_the_bus", facts.gpus_on_the_bus},
          {"cuda_device_max_connections", facts.cuda_connections},
          {"gpus", gpus},
          {"gpus_unusable", unusable},
          {"why_no_gpu", facts.why_no_gpu},
          {"paths", paths},
          {"stores", stores},
          {"findings", shown}};
}

}  // namespace leat::tools
