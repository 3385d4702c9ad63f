// Which of how many processes this one is. Each is a rank of the world: it has its rows of every global batch, and no rank talks to
// another one about them.
#pragma once

#include <cstdint>
#include <string>

namespace leat {

/// 1 of 1, unless somebody says otherwise.
///   rank, size               of all processes of the run; rank < size
///   local_rank, local_size   of those on this machine, which share what the loader chooses by itself: decode threads and memory
///
/// Rank r of W has rows floor(r * n / W) to floor((r + 1) * n / W) of a global batch of n rows: the ranks' rows, in rank order, are
/// the global batch. Every rank has every batch, perhaps of 0 rows, so that all of them take as many steps.
struct world {
  std::uint32_t rank = 0;
  std::uint32_t size = 1;
  std::uint32_t local_rank = 0;
  std::uint32_t local_size = 1;

  /// As the launcher of this process says in its environment; 1 of 1 where there is none. See find_world().
  [[nodiscard]] static world from_environment();

  /// The first of this rank's rows of so many; that of the rank behind the last one is the number of rows.
  [[nodiscard]] constexpr std::uint32_t row_begin(std::uint32_t rows) const noexcept {
    return static_cast<std::uint32_t>(std::uint64_t{rank} * rows / size);
  }
  [[nodiscard]] constexpr std::uint32_t row_end(std::uint32_t rows) const noexcept {
    return static_cast<std::uint32_t>((std::uint64_t{rank} + 1) * rows / size);
  }
  /// The most rows that any rank has of so many.
  [[nodiscard]] constexpr std::uint32_t rows_max(std::uint32_t rows) const noexcept {
    return static_cast<std::uint32_t>((std::uint64_t{rows} + size - 1) / size);
  }

  friend bool operator==(const world&, const world&) = default;
};

/// A world, and who says so: "torchrun", "Open MPI", "PMI", "Slurm"; empty where nobody does.
struct found_world {
  leat::world world;
  std::string launcher = {};
};

/// The first of these that has numbered this process:
///
///     torchrun    RANK WORLD_SIZE LOCAL_RANK LOCAL_WORLD_SIZE
///     Open MPI    OMPI_COMM_WORLD_{RANK,SIZE,LOCAL_RANK,LOCAL_SIZE}
///     PMI         PMI_RANK PMI_SIZE MPI_LOCALRANKID MPI_LOCALNRANKS (MPICH, Intel MPI); PMI_LOCAL_RANK PMI_LOCAL_SIZE (Cray)
///     Slurm       SLURM_PROCID SLURM_STEP_NUM_TASKS or SLURM_NTASKS, SLURM_LOCALID SLURM_STEP_TASKS_PER_NODE, where SLURM_STEP_ID
///                 says that srun has started it: a batch script has the other variables too, and is no rank
///
/// torchrun that was started by one of the next two, once per node, agrees with it: its world is the other's times its local size.
/// Slurm is not compared with others: it often is the one that starts them, or their daemons.
///   throws   error{errc::usage} with variables and values: two launchers contradict each other, a rank has no size, a rank is not
///            less than its size, a value is no number
[[nodiscard]] found_world find_world();

}  // namespace leat
