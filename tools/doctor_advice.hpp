// From what was found on a machine to what leat will do there, and what would bring it a better way. Pure functions, one for
// each concern.
#pragma once

#include "tools/doctor_facts.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace leat::tools {

/// One concern of a machine.
struct finding {
  enum class grade : std::uint8_t {
    best,    ///< nothing to be had
    lower,   ///< leat does well without, and a better way is within reach or at least known
    failing  ///< leat will not work so
  };
  std::string concern = {};
  grade how = grade::best;
  std::string found = {};   ///< what there is, and what leat does with it
  std::string advice = {};  ///< what to do; empty where there is nothing
};

[[nodiscard]] finding check_kernel(const machine_facts& facts);
[[nodiscard]] finding check_io_uring(const machine_facts& facts);
[[nodiscard]] finding check_locked_memory(const machine_facts& facts);
[[nodiscard]] finding check_files(const machine_facts& facts);
[[nodiscard]] finding check_huge_pages(const machine_facts& facts);
[[nodiscard]] finding check_memory(const machine_facts& facts);
[[nodiscard]] finding check_cores(const machine_facts& facts);
[[nodiscard]] finding check_numa(const machine_facts& facts);
[[nodiscard]] finding check_path(const path_facts& path);
/// Of an object at an address: itself, how soon and how fast it comes, and what samples cost beside blocks. Only the first where it failed.
[[nodiscard]] std::vector<finding> check_store(const io::store_facts& store);
/// Where there is no GPU: why.
[[nodiscard]] finding check_no_gpu(const machine_facts& facts);
[[nodiscard]] finding check_gpu(const machine_facts& facts, const gpu_facts& gpu);
[[nodiscard]] finding check_unusable_gpu(const machine_facts& facts, const gpu_failure& gpu);
/// How many hardware queues the streams of a process share, where somebody has said it.
[[nodiscard]] finding check_connections(const machine_facts& facts);

/// All of them.
[[nodiscard]] std::vector<finding> examine(const machine_facts& facts);

/// PCIe's payload rate in one direction, bytes/s; 0 where the link is not known.
[[nodiscard]] double link_bytes_per_s(double gt_s, int lanes) noexcept;

}  // namespace leat::tools
