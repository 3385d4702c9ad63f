#include "tools/meeting.hpp"

#include "base/text.hpp"
#include "stages/mpi/mpi_module.hpp"

#include <dlfcn.h>

#include <array>
#include <cstdlib>

namespace leat::tools {
namespace {

// The ranks of these are MPI's, if the library of MPI is of the launcher's kind. srun alone starts ranks that MPI knows nothing of, and
// Open MPI ends such a process when it is initialised.
bool launches_mpi(const found_world& here) {
  if (here.world.size <= 1) return false;
  if (here.launcher == "Slurm") return std::getenv("PMIX_RANK") != nullptr;
  return here.launcher == "Open MPI" || here.launcher == "PMI";
}

}  // namespace

meeting::meeting(const found_world& here) {
  if (!launches_mpi(here)) return;
  // Its place is in the command's own list of directories. It stays loaded: MPI leaves threads and handlers behind.
  void* const module = ::dlopen(mpi_module::file_name, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (module == nullptr) {
    why_not_ = str_cat("leat was built without MPI, or it cannot be loaded (", ::dlerror(), ")");
    return;
  }
  const auto begin = reinterpret_cast<mpi_module::begin_function*>(::dlsym(module, mpi_module::begin_name));
  const auto end = reinterpret_cast<mpi_module::end_function*>(::dlsym(module, mpi_module::end_name));
  if (begin == nullptr || end == nullptr) {
    why_not_ = str_cat(mpi_module::file_name, " is of another leat");
    return;
  }
  std::array<char, 512> words{};
  ranks_.reset(begin(words.data(), words.size()));
  finalize_ = end;
  if (!ranks_) {
    why_not_ = words.data();
  } else if (const world seen = ranks_->world(); seen.rank != here.world.rank || seen.size != here.world.size) {
    why_not_ = str_cat("MPI says rank ", seen.rank, " of ", seen.size, ", and ", here.launcher, " rank ",
                       here.world.rank, " of ", here.world.size, ": they are of different kinds");
    ranks_.reset();
  }
}

void meeting::end() {
  if (!ranks_) return;
  ranks_.reset();
  finalize_();
}

}  // namespace leat::tools
