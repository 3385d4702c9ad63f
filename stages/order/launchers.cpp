#include "stages/order/launchers.hpp"

#include "base/text.hpp"

#include <leat/error.hpp>

#include <array>
#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <optional>
#include <span>
#include <string_view>
#include <system_error>
#include <vector>

namespace leat {
namespace stages {
namespace {

constexpr std::string_view remedy =
    "; `--rank R --world W` of the command, or loader_options::world, says it in their place";

struct variable {
  const char* name = nullptr;
  std::uint32_t value = 0;
};

std::optional<variable> number(const environment& variables, const char* name) {
  const char* const text = variables(name);
  if (text == nullptr || *text == '\0') return std::nullopt;
  const std::string_view given = text;
  variable found{.name = name};
  const auto [end, failure] = std::from_chars(given.data(), given.data() + given.size(), found.value);
  if (failure != std::errc{} || end != given.data() + given.size()) {
    throw error(errc::usage, str_cat(name, " is '", given, "', which is no whole number from 0 to ",
                                     std::numeric_limits<std::uint32_t>::max(), remedy));
  }
  return found;
}

std::optional<variable> first_number(const environment& variables, std::span<const char* const> names) {
  for (const char* const name : names) {
    if (const auto found = number(variables, name)) return found;
  }
  return std::nullopt;
}

/// Of each the first that is set. What is missing is null.
struct launcher {
  std::string_view name;
  std::array<const char*, 2> rank;
  std::array<const char*, 2> size;
  std::array<const char*, 2> local_rank;
  std::array<const char*, 2> local_size;
};

// torchrun: pytorch.org/docs/stable/elastic/run.html, "Environment Variables". Open MPI: the FAQ's "environment variables" (faq/
// running). MPICH's Hydra sets PMI_* and MPI_LOCAL* (src/pm/hydra), Cray's PALS PMI_LOCAL_*. Slurm: srun(1), "OUTPUT ENVIRONMENT
// VARIABLES"; in a step of several components SLURM_NTASKS counts one of them, and SLURM_STEP_NUM_TASKS all.
constexpr launcher torchrun{"torchrun", {"RANK"}, {"WORLD_SIZE"}, {"LOCAL_RANK"}, {"LOCAL_WORLD_SIZE"}};
constexpr launcher open_mpi{"Open MPI",
                            {"OMPI_COMM_WORLD_RANK"},
                            {"OMPI_COMM_WORLD_SIZE"},
                            {"OMPI_COMM_WORLD_LOCAL_RANK"},
                            {"OMPI_COMM_WORLD_LOCAL_SIZE"}};
constexpr launcher pmi{
    "PMI", {"PMI_RANK"}, {"PMI_SIZE"}, {"MPI_LOCALRANKID", "PMI_LOCAL_RANK"}, {"MPI_LOCALNRANKS", "PMI_LOCAL_SIZE"}};
// jsrun: IBM's Job Step Manager, "jsrun environment variables". MVAPICH: its user guide, "MV2_COMM_WORLD_*". Flux: flux-environment(7).
// Horovod: horovodrun, "Environment Variables".
constexpr launcher mvapich{"MVAPICH",
                           {"MV2_COMM_WORLD_RANK"},
                           {"MV2_COMM_WORLD_SIZE"},
                           {"MV2_COMM_WORLD_LOCAL_RANK"},
                           {"MV2_COMM_WORLD_LOCAL_SIZE"}};
constexpr launcher jsrun{"jsrun",
                         {"JSM_NAMESPACE_RANK"},
                         {"JSM_NAMESPACE_SIZE"},
                         {"JSM_NAMESPACE_LOCAL_RANK"},
                         {"JSM_NAMESPACE_LOCAL_SIZE"}};
constexpr launcher flux{"Flux", {"FLUX_TASK_RANK"}, {"FLUX_JOB_SIZE"}, {"FLUX_TASK_LOCAL_ID"}, {}};
constexpr launcher horovod{
    "Horovod", {"HOROVOD_RANK"}, {"HOROVOD_SIZE"}, {"HOROVOD_LOCAL_RANK"}, {"HOROVOD_LOCAL_SIZE"}};
constexpr launcher slurm{"Slurm", {"SLURM_PROCID"}, {"SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"}, {"SLURM_LOCALID"}, {}};

std::span<const char* const> set_ones(const std::array<const char*, 2>& names) {
  return std::span(names).first(names[0] == nullptr ? 0 : names[1] == nullptr ? 1 : 2);
}

struct finding {
  found_world found;
  variable rank;
  variable size;

  [[nodiscard]] std::string words() const {
    return str_cat(found.launcher, " says rank ", found.world.rank, " of ", found.world.size, " (", rank.name, ", ",
                   size.name, ")");
  }
};

// The tasks of one node, out of "2(x3),1".
std::optional<std::uint32_t> tasks_on_node(std::string_view list, std::uint32_t node) {
  const char* at = list.data();
  const char* const end = at + list.size();
  for (std::uint64_t passed = 0; at != end;) {
    std::uint32_t tasks = 0;
    std::uint32_t nodes = 1;
    auto read = std::from_chars(at, end, tasks);
    if (read.ec != std::errc{}) return std::nullopt;
    if (std::string_view(read.ptr, end).starts_with("(x")) {
      read = std::from_chars(read.ptr + 2, end, nodes);
      if (read.ec != std::errc{} || read.ptr == end || *read.ptr != ')') return std::nullopt;
      ++read.ptr;
    }
    passed += nodes;
    if (node < passed) return tasks;
    if (read.ptr != end && *read.ptr != ',') return std::nullopt;
    at = read.ptr == end ? end : read.ptr + 1;
  }
  return std::nullopt;
}

std::optional<finding> look(const environment& variables, const launcher& at) {
  const auto rank = first_number(variables, set_ones(at.rank));
  const auto size = first_number(variables, set_ones(at.size));
  if (!rank && (!size || size->value == 1)) return std::nullopt;
  if (!rank || !size) {
    const variable& there = rank ? *rank : *size;
    throw error(errc::usage, str_cat(there.name, " is ", there.value, ", and ", rank ? at.size[0] : at.rank[0],
                                     " is not set: ", at.name, " sets both", remedy));
  }
  finding made{.found = {.world = {.rank = rank->value, .size = size->value}, .launcher = std::string(at.name)},
               .rank = *rank,
               .size = *size};
  world& here = made.found.world;
  const auto local_rank = first_number(variables, set_ones(at.local_rank));
  std::optional<std::uint32_t> local_size;
  if (const auto said = first_number(variables, set_ones(at.local_size))) local_size = said->value;
  if (at.name == slurm.name) {
    const char* const tasks = variables("SLURM_STEP_TASKS_PER_NODE");
    const auto node = number(variables, "SLURM_NODEID");
    if (tasks != nullptr && node) local_size = tasks_on_node(tasks, node->value);
  }
  if (at.name == flux.name) {
    const auto nodes = number(variables, "FLUX_JOB_NNODES");
    if (nodes && nodes->value == 1) local_size = size->value;
  }
  // One without the other says nothing.
  if (local_rank && local_size) {
    here.local_rank = local_rank->value;
    here.local_size = *local_size;
  }
  check_world(here, str_cat(at.name, " (", rank->name, ", ", size->name, ")"));
  return made;
}

// Whether srun has started this process, and not the job's script or shell. Steps that are none of srun's have the highest
// numbers: slurm.h, SLURM_INTERACTIVE_STEP to SLURM_PENDING_STEP.
bool is_in_slurm_step(const environment& variables) {
  constexpr std::uint32_t not_of_srun = 0xFFFFFFFAU;
  const auto step = first_number(variables, std::array<const char*, 2>{"SLURM_STEP_ID", "SLURM_STEPID"});
  return step && step->value < not_of_srun;
}

// torchrun under mpirun, once per node or several times.
bool starts(const finding& outer, const finding& inner) {
  const world& in = inner.found.world;
  return in.local_size > 1 && in.size == std::uint64_t{outer.found.world.size} * in.local_size;
}

// Ranks of launchers that say nothing, or elsewhere, of how many there are: PMIx (prun), Cray's PALS and ALPS. Without a word each of them would load everything.
void refuse_unknown(const environment& variables) {
  for (const char* const name : {"PMIX_RANK", "PALS_RANKID", "ALPS_APP_PE", "MPIRUN_RANK", "MPI_RANK"}) {
    const char* const value = variables(name);
    if (value == nullptr || *value == '\0') continue;
    throw error(errc::usage, str_cat(name, " is '", value,
                                     "': a launcher that is not known has started this process, and how many "
                                     "there are is not said",
                                     remedy));
  }
}

}  // namespace

void check_world(const world& checked, const std::string& who) {
  if (checked.size == 0) throw error(errc::usage, str_cat(who, ": a world of 0 ranks; give at least 1"));
  if (checked.rank >= checked.size) {
    throw error(errc::usage, str_cat(who, ": rank ", checked.rank, " of ", checked.size,
                                     "; ranks are numbered from 0 to ", checked.size - 1));
  }
  if (checked.local_rank >= checked.local_size || checked.local_size > checked.size) {
    throw error(errc::usage, str_cat(who, ": local rank ", checked.local_rank, " of ", checked.local_size,
                                     " on this machine, in a world of ", checked.size,
                                     "; local ranks are numbered from 0, and no more than all"));
  }
}

found_world find_world_in(const environment& variables) {
  std::vector<finding> said;
  for (const launcher* const each : {&torchrun, &open_mpi, &pmi, &mvapich, &jsrun, &flux, &horovod}) {
    if (const auto one = look(variables, *each)) said.push_back(*one);
  }
  if (said.empty() && is_in_slurm_step(variables)) {
    if (const auto one = look(variables, slurm)) said.push_back(*one);
  }
  if (said.empty()) {
    refuse_unknown(variables);
    return {};
  }
  const finding& chosen = said.front();
  for (const finding& other : std::span(said).subspan(1)) {
    const world& a = chosen.found.world;
    const world& b = other.found.world;
    if ((a.rank == b.rank && a.size == b.size) || starts(other, chosen)) continue;
    throw error(errc::usage, str_cat(chosen.words(), ", and ", other.words(),
                                     ": unset those of the launcher that did not start this process", remedy));
  }
  return chosen.found;
}

}  // namespace stages

found_world find_world() {
  return stages::find_world_in([](const char* name) { return std::getenv(name); });
}

world world::from_environment() { return find_world().world; }

}  // namespace leat
