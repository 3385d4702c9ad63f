// The NUMA node of a loader's threads and memory: which one it is, and what came of it.
#pragma once

#include "base/core_binding.hpp"
#include "base/numa_nodes.hpp"

#include <leat/loading.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace leat::datasets {
class dataset_model;
}

namespace leat::stages {

class transfer;

/// What a choice goes by.
///   of_device   the node of the device that batches go to; nothing where it is not known, or there is none
///   of_drive    that of the drive of the dataset's first file, likewise
///   devices     of the kind of that device that are at its node
///   ranks       local ranks, which each have a loader
struct node_facts {
  std::vector<node_cores> nodes;
  std::optional<std::uint32_t> of_device = {};
  std::optional<std::uint32_t> of_drive = {};
  std::uint32_t devices = 1;
  std::uint32_t ranks = 1;
};

/// A node, or none: then the kernel decides. With the reason, for loader_stats::placement.
struct node_choice {
  std::optional<std::uint32_t> node = {};
  std::vector<std::uint32_t> cores = {};  ///< of the node, that this process may use
  bool is_asked_for = false;
  std::uint32_t ranks = 1;  ///< that may have found the same
  std::string why = {};
};

///   throws   error{errc::usage}: a node that is not there, or that has no core which this process may use
[[nodiscard]] node_choice choose_node(numa asked, const node_facts& facts);

/// As above, by what the kernel says of this machine. The drive is looked at only where it decides.
///   sysfs_root   where /sys is looked for
[[nodiscard]] node_choice find_node_for(const loader_options& options, const datasets::dataset_model& dataset,
                                        const transfer& to, const std::string& sysfs_root);

/// What the parts of a line are given of a choice. Outlives their threads.
class node_placement {
 public:
  explicit node_placement(node_choice chosen) : chosen_(std::move(chosen)), cores_(chosen_.cores) {}

  /// Whose memory is preferred.
  [[nodiscard]] std::optional<std::uint32_t> node() const noexcept { return chosen_.node; }
  /// As many decode threads as there are cores, where nobody says how many: no more than these. 0: those of the process. A node that
  /// was asked for has all threads, while one that was found takes no cores away.
  [[nodiscard]] std::uint32_t cores_by_default() const noexcept {
    return chosen_.is_asked_for ? static_cast<std::uint32_t>(chosen_.cores.size()) : 0;
  }

  /// Null: as the thread that starts them.
  [[nodiscard]] core_binding* io_threads() noexcept { return chosen_.node ? &cores_ : nullptr; }
  /// Decode threads that are more than the cores of a node that was found run on all cores, those of all ranks at that node together.
  [[nodiscard]] core_binding* decode_threads(std::uint32_t threads) noexcept {
    return binds_decode(threads) ? &cores_ : nullptr;
  }
  /// How many of `usable` cores so many decode threads have.
  [[nodiscard]] std::uint32_t cores_of_decode(std::uint32_t threads, std::uint32_t usable) const noexcept;

  ///   decode_threads   that the line has
  ///   memory_failure   with which the kernel refused the node for memory; 0: it did not
  [[nodiscard]] fallback report(std::uint32_t decode_threads, int memory_failure) const;

 private:
  [[nodiscard]] bool binds_decode(std::uint32_t threads) const noexcept {
    return chosen_.node && (chosen_.is_asked_for || std::size_t{threads} * chosen_.ranks <= chosen_.cores.size());
  }

  const node_choice chosen_;
  core_binding cores_;
};

}  // namespace leat::stages
