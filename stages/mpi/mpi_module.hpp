// What the command finds in the module leat_mpi.so, which it loads where mpirun started it.
#pragma once

#include <leat/rendezvous.hpp>

#include <cstddef>

namespace leat::mpi_module {

inline constexpr char file_name[] = "leat_mpi.so";

// Two functions of C, by name.
inline constexpr char begin_name[] = "leat_mpi_begin";
inline constexpr char end_name[] = "leat_mpi_end";

/// Initialises MPI and gives the rendezvous of all its ranks, owned by the caller; or null, and words in `why_not`, which has room for
/// so many bytes.
using begin_function = rendezvous*(char* why_not, std::size_t room) noexcept;
/// MPI_Finalize: when the rendezvous is gone.
using end_function = void() noexcept;

}  // namespace leat::mpi_module
