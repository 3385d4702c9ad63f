#include "stages/mpi/mpi_module.hpp"

#include <leat/mpi.hpp>

#include <cstdio>
#include <exception>

extern "C" {

[[gnu::visibility("default")]] leat::rendezvous* leat_mpi_begin(char* why_not, std::size_t room) noexcept {
  try {
    int given = 0;
    if (MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &given) != MPI_SUCCESS) {
      std::snprintf(why_not, room, "MPI_Init_thread failed");
      return nullptr;
    }
    return new leat::mpi_rendezvous();
  } catch (const std::exception& problem) {
    std::snprintf(why_not, room, "%s", problem.what());
  }
  return nullptr;
}

[[gnu::visibility("default")]] void leat_mpi_end() noexcept { MPI_Finalize(); }

}  // extern "C"
