// How the budget is divided before a byte is read. Sizes are sums that name their holders.
#pragma once

#include "base/memory_available.hpp"

#include <leat/loader_state.hpp>
#include <leat/loading.hpp>

#include <cstddef>
#include <cstdint>
#include <string>

namespace leat::stages {

/// What the loader knows of its needs.
struct memory_needs {
  /// What is noted of the run while it goes on.
  [[nodiscard]] std::size_t noted_bytes() const noexcept { return timeline_bytes + record_bytes; }

  std::size_t host_bytes_max = 0;           ///< 0: not given; then plan_memory() chooses
  std::size_t batch_bytes = 0;              ///< the largest a batch can be
  std::size_t batch_bookkeeping_bytes = 0;  ///< what each batch takes on the heap, beside its block
  std::size_t read_bytes_max = 0;           ///< the largest lease of one read
  std::size_t read_bytes_mean = 0;          ///< a usual one
  std::size_t block_bytes_max = 0;          ///< of these, the largest of a block, as stored and expanded
  std::uint64_t blocks_kept = 0;            ///< how many the samples of neighbouring batches come from
  bool blocks_by_order = false;             ///< since the order takes them one pool after the other
  bool keeps_pool = false;                  ///< then a budget that does not keep all of them is refused
  std::uint32_t decode_threads = 1;
  /// Nobody asked for so many: there are so many cores, and fewer threads where their scratch would take too much.
  bool threads_automatic = false;
  std::size_t scratch_bytes_per_thread = 0;   ///< what a usual sample takes
  std::size_t expanded_bytes_per_thread = 0;  ///< of which the largest blocks, expanded
  std::size_t target_bytes_per_thread = 0;    ///< of which masks, boxes and points, and their numbers
  std::uint32_t prefetch_batches = 0;         ///< 0: what fits, at most prefetch_default or what a drive wants
  std::uint32_t queue_depth = 0;              ///< reads to leases in flight, of all I/O threads
  std::uint64_t batches_in_flight = 0;        ///< whose reads are as many as the drive is given at a time
  bool direct = false;                        ///< every read is the drive's: none comes from the page cache
  std::uint64_t batches_to_come = 0;          ///< of the whole run; 0: endless
  std::size_t timeline_bytes = 0;
  std::size_t record_bytes = 0;
  /// Of all sources on all loops, beside leases (io::source_memory).
  std::size_t source_bytes_least = 0;
  std::size_t source_bytes_wanted = 0;
  std::string source_what = {};
  std::size_t mosaic_bytes =
      0;  ///< of batch_bytes: what boxes take beside those of plain rows, since they come in several
};

/// How the budget is divided.
struct memory_plan {
  std::size_t read_bytes = 0;
  std::size_t batch_bytes = 0;
  std::size_t scratch_bytes = 0;
  std::size_t source_bytes = 0;  ///< of all sources, beside leases
  std::size_t kept_bytes = 0;    ///< for expanded blocks that later batches want; given up for reads
  std::size_t kept_missing = 0;  ///< what more these would take
  std::uint32_t batches = 0;     ///< with the consumer, and ahead of it
  bool batches_missing = false;  ///< a larger budget would have more of them
  std::uint32_t decode_threads = 0;
  sample_limits limits;  ///< which samples are corrupt, since they take too much (loader_memory.hpp)
  loader_plan shown;
};

inline constexpr std::uint32_t prefetch_default = 8;
/// More batches than those, where they are small, take no more than this part of the budget: 64 MiB of 512 where reads wait
/// for the drive, and 4 MiB where they may come from the page cache.
inline constexpr std::uint32_t prefetch_budget_share_direct = 8;
inline constexpr std::uint32_t prefetch_budget_share_buffered = 128;

/// A batch's part of the batch memory: what batches take that are smaller than half a huge page divides a piece of the arena, so
/// that none lies across two; larger ones are whole huge pages.
[[nodiscard]] std::size_t batch_share(std::size_t batch_bytes);

/// Read buffers for every read that is under way, where the budget has them.
[[nodiscard]] std::size_t read_bytes_wanted(const memory_needs& needs, std::uint32_t threads);

/// Throws error{errc::limit} naming the least that would do.
[[nodiscard]] memory_plan divide_memory(const memory_needs& needs);

/// As above. Without a given budget it is host_bytes_usual, or half of the available memory where that is less, or the least that
/// will do where half does not. A given budget that takes more than is available has a warning.
///   throws        error{errc::limit}: also where no budget was given and the least is more than is available
///   local_ranks   loaders on this machine that each take what this one takes: the available memory is divided among them
[[nodiscard]] memory_plan plan_memory(memory_needs needs, memory_available available, std::uint32_t local_ranks = 1);

}  // namespace leat::stages
