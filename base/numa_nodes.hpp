// NUMA nodes of this machine, as the kernel lists them in sysfs.
#pragma once

#include "base/usable_cores.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace leat {

/// A node with its cores, those of which this process may use.
struct node_cores {
  std::uint32_t node = 0;
  std::vector<std::uint32_t> cores;  ///< none, where the process may use none, and of nodes that are memory alone

  friend bool operator==(const node_cores&, const node_cores&) = default;
};

/// "0-3,8": cores or nodes, as the kernel lists them. Nothing where it is no such list.
[[nodiscard]] std::optional<std::vector<std::uint32_t>> parse_number_list(std::string_view text);

/// By number. None, where the kernel lists none.
///   root   where /sys is looked for; another one in tests, here and below
[[nodiscard]] std::vector<node_cores> find_numa_nodes(const std::string& root = "",
                                                      const std::vector<std::uint32_t>& usable = usable_core_numbers());

/// Of a device at "0000:17:00.0", in letters of either case. Nothing where the kernel does not know.
[[nodiscard]] std::optional<std::uint32_t> node_of_pci_device(const std::string& address, const std::string& root = "");

/// Devices of the same vendor and class that are at the same node, itself among them: the GPUs beside a GPU. 0 where its node is not
/// known.
[[nodiscard]] std::uint32_t devices_beside(const std::string& address, const std::string& root = "");

/// Of the drive that a file lies on, through partitions, device mapper and RAID. Nothing where the kernel does not know, where the
/// drives of several nodes are one, and of file systems that hide theirs (overlayfs, btrfs, a network's).
[[nodiscard]] std::optional<std::uint32_t> node_of_file(const std::string& path, const std::string& root = "");

}  // namespace leat
