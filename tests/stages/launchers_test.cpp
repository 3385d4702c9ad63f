#include "stages/order/launchers.hpp"

#include <leat/error.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>

namespace leat::stages {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using variables = std::map<std::string, std::string>;

found_world world_in(const variables& set) {
  return find_world_in([&](const char* name) -> const char* {
    const auto found = set.find(name);
    return found == set.end() ? nullptr : found->second.c_str();
  });
}

std::string refusal_of(const variables& set) {
  try {
    const found_world found = world_in(set);
    return "none: rank " + std::to_string(found.world.rank) + " of " + std::to_string(found.world.size);
  } catch (const error& refused) {
    EXPECT_EQ(refused.code(), errc::usage);
    return refused.what();
  }
}

constexpr world third_of_8{.rank = 2, .size = 8, .local_rank = 2, .local_size = 4};

const variables torchrun{{"RANK", "2"}, {"WORLD_SIZE", "8"}, {"LOCAL_RANK", "2"}, {"LOCAL_WORLD_SIZE", "4"}};
const variables open_mpi{{"OMPI_COMM_WORLD_RANK", "2"},
                         {"OMPI_COMM_WORLD_SIZE", "8"},
                         {"OMPI_COMM_WORLD_LOCAL_RANK", "2"},
                         {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"}};
const variables hydra{{"PMI_RANK", "2"}, {"PMI_SIZE", "8"}, {"MPI_LOCALRANKID", "2"}, {"MPI_LOCALNRANKS", "4"}};
const variables srun{{"SLURM_STEP_ID", "0"},        {"SLURM_PROCID", "2"},  {"SLURM_NTASKS", "8"},
                     {"SLURM_STEP_NUM_TASKS", "8"}, {"SLURM_LOCALID", "2"}, {"SLURM_STEP_TASKS_PER_NODE", "4(x2)"},
                     {"SLURM_NODEID", "0"}};

const variables mvapich{{"MV2_COMM_WORLD_RANK", "2"},
                        {"MV2_COMM_WORLD_SIZE", "8"},
                        {"MV2_COMM_WORLD_LOCAL_RANK", "2"},
                        {"MV2_COMM_WORLD_LOCAL_SIZE", "4"}};
const variables jsrun{{"JSM_NAMESPACE_RANK", "2"},
                      {"JSM_NAMESPACE_SIZE", "8"},
                      {"JSM_NAMESPACE_LOCAL_RANK", "2"},
                      {"JSM_NAMESPACE_LOCAL_SIZE", "4"}};
const variables horovod{
    {"HOROVOD_RANK", "2"}, {"HOROVOD_SIZE", "8"}, {"HOROVOD_LOCAL_RANK", "2"}, {"HOROVOD_LOCAL_SIZE", "4"}};
const variables flux{{"FLUX_TASK_RANK", "2"}, {"FLUX_JOB_SIZE", "8"}, {"FLUX_TASK_LOCAL_ID", "2"}};

variables with(variables base, const variables& more) {
  for (const auto& [name, value] : more) base.insert_or_assign(name, value);
  return base;
}

variables without(variables base, const std::string& name) {
  base.erase(name);
  return base;
}

TEST(launchers, nobody_says_anything_and_the_process_is_1_of_1) {
  EXPECT_EQ(world_in({}).world, world());
  EXPECT_EQ(world_in({}).launcher, "");
  EXPECT_EQ(world_in({{"WORLD_SIZE", "1"}}).world, world());
  EXPECT_EQ(world_in({{"RANK", ""}}).world, world());
}

TEST(launchers, each_is_understood) {
  for (const auto& [set, name] : {std::pair{torchrun, "torchrun"}, std::pair{open_mpi, "Open MPI"},
                                  std::pair{hydra, "PMI"}, std::pair{srun, "Slurm"}, std::pair{mvapich, "MVAPICH"},
                                  std::pair{jsrun, "jsrun"}, std::pair{horovod, "Horovod"}}) {
    EXPECT_EQ(world_in(set).world, third_of_8) << name;
    EXPECT_EQ(world_in(set).launcher, name);
  }
}

TEST(launchers, local_ranks_are_known_from_both_of_their_numbers_or_not_at_all) {
  const world alone{.rank = 2, .size = 8};
  EXPECT_EQ(world_in(without(torchrun, "LOCAL_WORLD_SIZE")).world, alone);
  EXPECT_EQ(world_in(without(hydra, "MPI_LOCALRANKID")).world, alone);
  EXPECT_EQ(world_in(without(srun, "SLURM_STEP_TASKS_PER_NODE")).world, alone);
  EXPECT_EQ(world_in({{"PMI_RANK", "2"}, {"PMI_SIZE", "8"}, {"PMI_LOCAL_RANK", "2"}, {"PMI_LOCAL_SIZE", "4"}}).world,
            third_of_8);
}

TEST(launchers, of_flux_the_local_size_is_known_on_one_node) {
  EXPECT_EQ(world_in(flux).world, (world{.rank = 2, .size = 8}));
  EXPECT_EQ(world_in(flux).launcher, "Flux");
  EXPECT_EQ(world_in(with(flux, {{"FLUX_JOB_NNODES", "2"}})).world, (world{.rank = 2, .size = 8}));
  EXPECT_EQ(world_in(with(flux, {{"FLUX_JOB_NNODES", "1"}})).world,
            (world{.rank = 2, .size = 8, .local_rank = 2, .local_size = 8}));
}

// Each of the processes would load everything, and nobody would know.
TEST(launchers, one_that_is_not_known_is_named) {
  EXPECT_THAT(refusal_of({{"PMIX_RANK", "1"}}),
              AllOf(HasSubstr("PMIX_RANK is '1': a launcher that is not known"), HasSubstr("--rank R --world W")));
  EXPECT_THAT(refusal_of({{"PALS_RANKID", "0"}}), HasSubstr("PALS_RANKID is '0'"));
  EXPECT_EQ(world_in(with(open_mpi, {{"PMIX_RANK", "2"}})).launcher, "Open MPI") << "Open MPI 5 sets both";
  EXPECT_EQ(world_in(with(srun, {{"PMIX_RANK", "2"}})).launcher, "Slurm");
  EXPECT_EQ(world_in({{"PMIX_RANK", ""}}).world, world());
}

TEST(launchers, slurm_counts_the_tasks_of_this_node) {
  const auto local_size = [](const char* list, const char* node) {
    return world_in(with(srun, {{"SLURM_STEP_TASKS_PER_NODE", list}, {"SLURM_NODEID", node}, {"SLURM_LOCALID", "0"}}))
        .world.local_size;
  };
  EXPECT_EQ(local_size("2(x3),1,1", "2"), 2U);
  EXPECT_EQ(local_size("2(x3),1,1", "3"), 1U);
  EXPECT_EQ(local_size("3,5", "1"), 5U);
  EXPECT_EQ(local_size("3,5", "2"), 1U) << "no such node: not known";
  EXPECT_EQ(local_size("many", "0"), 1U);
}

TEST(launchers, a_jobs_script_or_shell_is_no_rank) {
  EXPECT_EQ(world_in(without(srun, "SLURM_STEP_ID")).world, world());
  EXPECT_EQ(world_in(with(srun, {{"SLURM_STEP_ID", "4294967290"}})).world, world()) << "salloc's interactive step";
  EXPECT_EQ(world_in(with(srun, {{"SLURM_STEP_ID", "4294967291"}})).world, world()) << "the batch script";
}

TEST(launchers, a_step_of_many_components_counts_all_of_their_tasks) {
  EXPECT_EQ(world_in(with(srun, {{"SLURM_NTASKS", "5"}, {"SLURM_STEP_NUM_TASKS", "8"}})).world.size, 8U);
  EXPECT_EQ(world_in(without(srun, "SLURM_STEP_NUM_TASKS")).world.size, 8U);
}

TEST(launchers, one_that_was_started_by_another_agrees_with_it) {
  EXPECT_EQ(world_in(with(torchrun, open_mpi)).launcher, "torchrun");
  // mpirun -n 2, once per node, and torchrun --nproc-per-node 4 there.
  const variables outer{{"OMPI_COMM_WORLD_RANK", "1"}, {"OMPI_COMM_WORLD_SIZE", "2"}};
  EXPECT_EQ(world_in(with(torchrun, outer)).world, third_of_8);
  // srun starts Open MPI's daemons, or torchrun, with numbers of their own.
  EXPECT_EQ(world_in(with(open_mpi, with(srun, {{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "1"}}))).launcher, "Open MPI");
}

TEST(launchers, those_that_contradict_each_other_are_both_named) {
  EXPECT_THAT(
      refusal_of({{"RANK", "0"}, {"WORLD_SIZE", "4"}, {"OMPI_COMM_WORLD_RANK", "1"}, {"OMPI_COMM_WORLD_SIZE", "4"}}),
      AllOf(HasSubstr("torchrun says rank 0 of 4 (RANK, WORLD_SIZE)"),
            HasSubstr("Open MPI says rank 1 of 4 (OMPI_COMM_WORLD_RANK, OMPI_COMM_WORLD_SIZE)"),
            HasSubstr("--rank R --world W")));
  EXPECT_THAT(refusal_of(with(open_mpi, {{"PMI_RANK", "2"}, {"PMI_SIZE", "6"}})),
              AllOf(HasSubstr("Open MPI says rank 2 of 8"), HasSubstr("PMI says rank 2 of 6")));
  // 8 is not 3 times 4.
  EXPECT_THAT(refusal_of(with(torchrun, {{"OMPI_COMM_WORLD_RANK", "1"}, {"OMPI_COMM_WORLD_SIZE", "3"}})),
              HasSubstr("Open MPI says rank 1 of 3"));
}

TEST(launchers, half_a_world_is_refused_with_the_variable_that_is_missing) {
  EXPECT_THAT(refusal_of({{"RANK", "0"}}), HasSubstr("RANK is 0, and WORLD_SIZE is not set"));
  EXPECT_THAT(refusal_of({{"WORLD_SIZE", "4"}}), HasSubstr("WORLD_SIZE is 4, and RANK is not set"));
  EXPECT_THAT(refusal_of({{"PMI_RANK", "0"}}), HasSubstr("PMI_RANK is 0, and PMI_SIZE is not set"));
  EXPECT_THAT(refusal_of({{"SLURM_STEP_ID", "1"}, {"SLURM_PROCID", "0"}}),
              HasSubstr("SLURM_PROCID is 0, and SLURM_STEP_NUM_TASKS is not set"));
}

TEST(launchers, numbers_that_are_none_of_a_world_are_refused) {
  EXPECT_THAT(refusal_of({{"RANK", "4"}, {"WORLD_SIZE", "4"}}),
              AllOf(HasSubstr("torchrun (RANK, WORLD_SIZE): rank 4 of 4"), HasSubstr("from 0 to 3")));
  EXPECT_THAT(refusal_of({{"RANK", "0"}, {"WORLD_SIZE", "0"}}), HasSubstr("a world of 0 ranks"));
  for (const char* const value : {"two", "-1", "1.0", " 1", "4294967296", "1x"}) {
    EXPECT_THAT(refusal_of({{"RANK", value}, {"WORLD_SIZE", "4"}}), HasSubstr("RANK is '" + std::string(value) + "'"));
  }
  EXPECT_THAT(refusal_of(with(torchrun, {{"LOCAL_RANK", "4"}})), HasSubstr("local rank 4 of 4"));
  EXPECT_THAT(refusal_of(with(torchrun, {{"LOCAL_WORLD_SIZE", "9"}})), HasSubstr("local rank 2 of 9"));
}

}  // namespace
}  // namespace leat::stages
