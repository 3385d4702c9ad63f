// What `leat doctor` found on a machine. Plain values: the advice is made from these alone, and its tests make them up.
#pragma once

#include "base/numa_nodes.hpp"
#include "io/remote/store_probe.hpp"

#include <leat/error.hpp>
#include <leat/stats.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace leat::tools {

/// A limit of getrlimit(2); `unlimited` is RLIM_INFINITY.
struct resource_limit {
  static constexpr std::uint64_t unlimited = ~std::uint64_t{0};
  std::uint64_t soft = 0;
  std::uint64_t hard = 0;
};

struct path_facts {
  std::string path;
  std::string failure = {};  ///< why nothing is known of it; empty where it is
  errc failure_kind = errc::io;
  std::string file_system = {};
  bool alignment_known = false;               ///< the kernel says how O_DIRECT has to be aligned (Linux 6.1)
  std::uint32_t direct_memory_alignment = 0;  ///< bytes; 0: no O_DIRECT
  std::uint32_t direct_offset_alignment = 0;
  std::string tried_on = {};                    ///< the file that was read; empty where there is none to read
  fallback direct = {};                         ///< what a reader then said
  std::optional<std::uint32_t> numa_node = {};  ///< of the drive, where the kernel knows
};

struct gpu_facts {
  int index = 0;
  std::string name;
  std::string driver;   ///< "580.82.07", "" where it does not say
  int driver_cuda = 0;  ///< the newest CUDA that the driver knows, as 13000; 0: not said
  int runtime_cuda = 0;
  int capability = 0;  ///< as 90
  std::uint64_t memory_bytes = 0;
  std::uint64_t memory_free_bytes = 0;
  std::string pci_address;
  double link_gt_s = 0;  ///< PCIe, as it is now; 0: not said
  int link_lanes = 0;
  double link_gt_s_max = 0;
  int link_lanes_max = 0;
  int numa_node = -1;
  double copy_bytes_per_s = 0;  ///< host to device, from memory as leat has it; 0: it could not be measured
  bool pinned = false;          ///< whether that memory was pinned
  std::string why;              ///< why not pinned, or not measured
};

/// One that is there and that leat cannot use.
struct gpu_failure {
  int index = 0;
  std::string why;
};

struct machine_facts {
  std::string kernel;  ///< "6.18.44"
  std::string architecture;

  reader_report reader;  ///< of a reader that has read
  std::string reader_failure;

  resource_limit locked_bytes;
  bool may_lock_all = false;  ///< CAP_IPC_LOCK
  resource_limit files;

  std::string huge_pages_setting;  ///< "always", "madvise", "never"; empty: there are none
  std::uint64_t memory_bytes = 0;
  std::uint64_t memory_available_bytes = 0;
  std::string memory_said_by;

  std::uint32_t cores_usable = 0;
  std::uint32_t cores_online = 0;
  std::optional<double> cores_quota;   ///< of the control group, in cores
  std::vector<node_cores> numa_nodes;  ///< with the cores that are usable; none: the kernel lists none
  bool photo_packs_recoded = false;    ///< loader_stats::photo_packs_recoded

  bool built_with_probes = false;
  bool built_with_cuda = false;
  std::string why_no_gpu;             ///< where there is none to be used
  std::uint32_t gpus_on_the_bus = 0;  ///< NVIDIA's, whether or not a driver has them
  std::vector<gpu_facts> gpus;
  std::vector<gpu_failure> gpus_unusable;
  std::string cuda_connections;  ///< CUDA_DEVICE_MAX_CONNECTIONS as this process has it; empty: not set
  std::vector<path_facts> paths;
  std::vector<io::store_facts> stores;
};

}  // namespace leat::tools
