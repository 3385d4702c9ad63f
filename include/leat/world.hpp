// Ranks: a run of several processes. Each rank has its rows of every global batch; ranks do not talk to each other
// about them.
#pragma once

#include <leat/compiler.hpp>

#include <cstdint>
#include <string>

#pragma GCC visibility push(default)
namespace leat {

/// This process among the ranks of a run. Default: the only one.
///   rank, size               its number, and the number of all processes; rank < size. As torch.distributed's rank and
///                            world size
///   local_rank, local_size   the same of the processes on this machine. They share the decode threads and the memory
///                            that the loader chooses
///
/// Rank r of W has rows floor(r * n / W) to floor((r + 1) * n / W) - 1 of a global batch of n rows. Every rank has
/// every batch, perhaps with 0 rows, so that all ranks take the same number of steps.
struct world {
  std::uint32_t rank = 0;
  std::uint32_t size = 1;
  std::uint32_t local_rank = 0;
  std::uint32_t local_size = 1;

  /// As the launcher of this process (torchrun, MPI, Slurm) says in its environment; the only process without one. See
  /// find_world().
  [[nodiscard]] static world from_environment();

  /// This rank's rows of a batch of `rows`: row_begin(rows) to row_end(rows) - 1.
  [[nodiscard]] constexpr std::uint32_t row_begin(std::uint32_t rows) const noexcept {
    return static_cast<std::uint32_t>(std::uint64_t{rank} * rows / size);
  }
  [[nodiscard]] constexpr std::uint32_t row_end(std::uint32_t rows) const noexcept {
    return static_cast<std::uint32_t>((std::uint64_t{rank} + 1) * rows / size);
  }
  /// The most rows that any rank has of a batch of `rows`.
  [[nodiscard]] constexpr std::uint32_t rows_max(std::uint32_t rows) const noexcept {
    return static_cast<std::uint32_t>((std::uint64_t{rows} + size - 1) / size);
  }

  friend bool operator==(const world&, const world&) = default;
};

/// A world, and which launcher says so: "torchrun", "Open MPI", "PMI", "MVAPICH", "jsrun", "Flux",
/// "Horovod", "Slurm"; empty without one.
struct found_world {
  leat::world world;
  std::string launcher = {};
};

/// The world that the environment names. The first of these launchers that numbered this process counts:
///
///     torchrun    RANK WORLD_SIZE LOCAL_RANK LOCAL_WORLD_SIZE
///     Open MPI    OMPI_COMM_WORLD_{RANK,SIZE,LOCAL_RANK,LOCAL_SIZE}
///     PMI         PMI_RANK PMI_SIZE MPI_LOCALRANKID MPI_LOCALNRANKS (MPICH, Intel MPI); PMI_LOCAL_RANK PMI_LOCAL_SIZE (Cray)
///     MVAPICH     MV2_COMM_WORLD_{RANK,SIZE,LOCAL_RANK,LOCAL_SIZE}
///     jsrun       JSM_NAMESPACE_{RANK,SIZE,LOCAL_RANK,LOCAL_SIZE}
///     Flux        FLUX_TASK_RANK FLUX_JOB_SIZE FLUX_TASK_LOCAL_ID, and FLUX_JOB_NNODES of 1
///     Horovod     HOROVOD_{RANK,SIZE,LOCAL_RANK,LOCAL_SIZE}
///     Slurm       SLURM_PROCID SLURM_STEP_NUM_TASKS or SLURM_NTASKS, SLURM_LOCALID SLURM_STEP_TASKS_PER_NODE, where SLURM_STEP_ID
///                 says that srun has started it: a batch script has the other variables too, and is no rank
///
/// torchrun that was started by one of the next two, once per node, agrees with it: its world is the other's times its
/// local size. Slurm is not compared with others: it often is the one that starts them, or their daemons.
///   throws   error{errc::usage} with variables and values: two launchers contradict each other; a rank has no size; a
///            rank is not less than its size; a value is no number; a launcher that is none of these has numbered the
///            process (PMIX_RANK, PALS_RANKID, ALPS_APP_PE, MPIRUN_RANK, MPI_RANK)
[[nodiscard]] found_world find_world();

}  // namespace leat
#pragma GCC visibility pop
