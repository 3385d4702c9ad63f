// How the ranks of a run meet: before its first batch, so that all are of one run, and after the last. In between none talks to another.
#pragma once

#include <leat/world.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace leat {

class loader;
struct loader_stats;

/// Every rank makes the same calls in the same order. MPI's is in <leat/mpi.hpp>; whoever has NCCL or a key-value store makes another.
///
/// Thread: one at a time.
class rendezvous {
 public:
  rendezvous() = default;
  rendezvous(const rendezvous&) = delete;
  rendezvous& operator=(const rendezvous&) = delete;
  virtual ~rendezvous() = default;

  [[nodiscard]] virtual leat::world world() const = 0;
  /// Rank 0's bytes, on all ranks. What the others give is not looked at.
  [[nodiscard]] virtual std::vector<std::byte> broadcast(std::span<const std::byte> of_rank_0) = 0;
  /// Each rank's bytes in rank order, on rank 0; nothing on the others. They need not be of one size.
  [[nodiscard]] virtual std::vector<std::vector<std::byte>> gather(std::span<const std::byte> own) = 0;
};

/// From where ranks go on.
enum class ranks_go_on : std::uint8_t {
  in_step,  ///< all from one place: their trainers take each step together
  apart     ///< each from its own place: they were killed at different ones. All of them begin, or none does
};

/// Makes each rank's loader, and goes on only where all are ranks of one run: the same options, dataset, fields, order and place, each
/// with its own rank of this world.
///
///     leat::mpi_rendezvous ranks;
///     options.world = ranks.world();
///     leat::loader train = leat::make_together(ranks, [&] { return leat::loader{samples, options, image, label}; });
///
///   throws   on all ranks: what `make` threw, where it did; elsewhere error with that rank and its words. error{errc::usage} with rank,
///            option and both values where a rank's run is another one than that of rank 0
///   cost     some hundred bytes of each rank to rank 0; the descriptions of two ranks, where they differ
[[nodiscard]] loader make_together(rendezvous& ranks, const std::function<loader()>& make,
                                   ranks_go_on from = ranks_go_on::in_step);

/// For whom the others waited, if for anybody: the rank whose trainer waited longest for its batches.
///   wait_s        of this rank for its batches, in all
///   wait_s_mean   of all ranks
///   slowest       what its loader's stages waited for in its last window: "read", "decode", ...
struct slowest_rank {
  std::uint32_t rank = 0;
  double wait_s = 0;
  double wait_s_mean = 0;
  std::string slowest;
};

/// The same answer on all ranks.
[[nodiscard]] slowest_rank find_slowest(rendezvous& ranks, const loader_stats& own);

}  // namespace leat
