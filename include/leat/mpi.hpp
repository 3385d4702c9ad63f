// The ranks of a run that mpirun started: leat::mpi, a library of its own beside leat, which knows nothing of MPI.
//
//     find_package(leat REQUIRED COMPONENTS mpi)
//     target_link_libraries(trainer PRIVATE leat::leat leat::mpi)
#pragma once

#include <leat/compiler.hpp>
#include <leat/rendezvous.hpp>

#include <mpi.h>

#pragma GCC visibility push(default)
namespace leat {

/// A rendezvous by MPI. Use it between MPI_Init and MPI_Finalize. It duplicates the communicator, so that its messages
/// do not mix with those of the program.
///   thread    a thread that may call MPI, one at a time
///   throws    error{errc::usage}: MPI was not initialised, or has ended; error{errc::io}: what MPI says;
///             error{errc::limit}: more than 2 GiB at once
class mpi_rendezvous final : public rendezvous {
 public:
  explicit mpi_rendezvous(MPI_Comm among = MPI_COMM_WORLD);
  ~mpi_rendezvous() override;

  /// Local ranks are those of the machine (they can share memory).
  [[nodiscard]] leat::world world() const override { return world_; }
  [[nodiscard]] std::vector<std::byte> broadcast(std::span<const std::byte> of_rank_0) override;
  [[nodiscard]] std::vector<std::vector<std::byte>> gather(std::span<const std::byte> own) override;

 private:
  MPI_Comm ranks_ = MPI_COMM_NULL;
  leat::world world_;
};

}  // namespace leat
#pragma GCC visibility pop
