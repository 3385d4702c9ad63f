// How the ranks of a run meet: before the first batch, to make sure that all are of one run, and after the last. In
// between they do not communicate.
#pragma once

#include <leat/compiler.hpp>
#include <leat/world.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#pragma GCC visibility push(default)
namespace leat {

class loader;
struct loader_stats;

/// A way for ranks to exchange bytes. Every rank makes the same calls in the same order. <leat/mpi.hpp> has one for
/// MPI; derive your own for NCCL or a key-value store.
///
/// Thread: one at a time.
class rendezvous {
 public:
  rendezvous() = default;
  rendezvous(const rendezvous&) = delete;
  rendezvous& operator=(const rendezvous&) = delete;
  virtual ~rendezvous() = default;

  [[nodiscard]] virtual leat::world world() const = 0;
  /// Gives the bytes of rank 0 to all ranks. The bytes of the others are ignored.
  [[nodiscard]] virtual std::vector<std::byte> broadcast(std::span<const std::byte> of_rank_0) = 0;
  /// Gives rank 0 the bytes of every rank, in rank order, and the others nothing. Sizes may differ.
  [[nodiscard]] virtual std::vector<std::vector<std::byte>> gather(std::span<const std::byte> own) = 0;
};

/// From which place ranks go on.
enum class ranks_go_on : std::uint8_t {
  in_step,  ///< all from one place: their trainers take each step together
  apart     ///< each from its own place, where it was killed. All of them begin, or none does
};

/// Makes the loader of each rank. Throws unless all are ranks of one run: the same options, dataset, fields, order and
/// place, and each with its own rank of this world.
///
///     leat::mpi_rendezvous ranks;
///     options.world = ranks.world();
///     leat::loader train = leat::make_together(ranks, [&] { return leat::loader{samples, options, image, label}; });
///
///   throws   on all ranks. If `make` throws: on that rank its exception, on the others an error with that rank and its
///            message. If a rank is of another run than rank 0: error{errc::usage} with rank, option and both values
///   cost     some hundred bytes from each rank to rank 0; if they differ, the descriptions of two ranks
[[nodiscard]] loader make_together(rendezvous& ranks, const std::function<loader()>& make,
                                   ranks_go_on from = ranks_go_on::in_step);

/// The rank whose trainer waited longest for its batches.
///   wait_s        seconds that it waited for batches
///   wait_s_mean   the mean of all ranks
///   slowest       the bottleneck of its last window: "read", "decode", ...
struct slowest_rank {
  std::uint32_t rank = 0;
  double wait_s = 0;
  double wait_s_mean = 0;
  std::string slowest;
};

/// The same answer on all ranks.
[[nodiscard]] slowest_rank find_slowest(rendezvous& ranks, const loader_stats& own);

}  // namespace leat
#pragma GCC visibility pop
