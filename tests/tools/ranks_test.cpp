// leat epoch as one of many: who says which rank it is, what it loads then, and the files that it writes.
#include "tests/support/photos.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/tools/command.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sys/wait.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace leat::testing {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;

/// Twelve photographs, and where the ranks write.
class ranks {
 public:
  [[nodiscard]] std::string file(const std::string& name) const { return (directory_.path() / name).string(); }
  [[nodiscard]] std::vector<std::string> epoch(const std::vector<std::string>& more = {}) const {
    std::vector<std::string> all{"epoch", photos_.path().string(), "--size", "32", "--seed", "4", "--threads", "2",
                                 "--json"};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  [[nodiscard]] ended run(const std::vector<std::string>& more,
                          const std::vector<std::string>& environment = {}) const {
    return command(epoch(more), command::streams::pipes, environment).wait();
  }
  [[nodiscard]] std::string photos() const { return photos_.path().string(); }
  /// The row digests of all batches, of the ranks' in rank order.
  [[nodiscard]] std::vector<json> rows(const std::vector<std::string>& names) const {
    std::vector<json> batches;
    for (const std::string& name : names) {
      std::size_t at = 0;
      for (const std::string& line : lines_of(text_of(file(name)))) {
        const json batch = json::parse(line);
        if (at == batches.size()) batches.push_back(json::array());
        for (const json& row : batch.at("rows")) batches.at(at).push_back(row);
        ++at;
      }
    }
    return batches;
  }

 private:
  photo_folder photos_;
  temporary_directory directory_;
};

std::string refusal_of(const ended& process) {
  EXPECT_EQ(process.exit_code, 2) << process.err;
  return process.err;
}

TEST(ranks, deliver_together_what_one_process_delivers) {
  const ranks use;
  ASSERT_EQ(use.run({"--batch-size", "5", "--epochs", "2", "--rows", "--batches", use.file("alone")}).exit_code, 0);
  const std::vector<json> alone = use.rows({"alone"});
  ASSERT_EQ(alone.size(), 6U);
  for (const char* const rank : {"0", "1", "2"}) {
    const ended one = use.run({"--global-batch-size", "5", "--epochs", "2", "--rows", "--batches", use.file("rank-%r"),
                               "--rank", rank, "--world", "3"});
    ASSERT_EQ(one.exit_code, 0) << one.err;
    const json report = one.json();
    EXPECT_EQ(report.at("rank"), std::atoi(rank));
    EXPECT_EQ(report.at("world"), 3);
    EXPECT_EQ(report.at("launcher"), "--rank --world");
    EXPECT_EQ(report.at("batches"), 6);
  }
  EXPECT_EQ(use.rows({"rank-0", "rank-1", "rank-2"}), alone);
}

TEST(ranks, are_what_the_launcher_says) {
  const ranks use;
  const auto report = [&](const std::vector<std::string>& environment, const std::vector<std::string>& more = {}) {
    const ended process = use.run(more, environment);
    EXPECT_EQ(process.exit_code, 0) << process.err;
    return process.json();
  };
  const json alone = report({});
  EXPECT_EQ(alone.at("rank"), 0);
  EXPECT_EQ(alone.at("world"), 1);
  EXPECT_TRUE(alone.at("launcher").is_null());
  EXPECT_EQ(alone.at("samples"), 12);
  const json third = report({"RANK=2", "WORLD_SIZE=3", "LOCAL_RANK=2", "LOCAL_WORLD_SIZE=3"});
  EXPECT_EQ(third.at("rank"), 2);
  EXPECT_EQ(third.at("launcher"), "torchrun");
  EXPECT_EQ(third.at("samples"), 4);
  EXPECT_EQ(report({"OMPI_COMM_WORLD_RANK=0", "OMPI_COMM_WORLD_SIZE=2"}).at("launcher"), "Open MPI");
  EXPECT_EQ(report({"PMI_RANK=0", "PMI_SIZE=2"}).at("launcher"), "PMI");
  EXPECT_EQ(report({"SLURM_STEP_ID=0", "SLURM_PROCID=1", "SLURM_NTASKS=2"}).at("launcher"), "Slurm");
  EXPECT_TRUE(report({"SLURM_PROCID=0", "SLURM_NTASKS=2"}).at("launcher").is_null()) << "a batch script";
  // The options decide, also where the environment makes no sense.
  const json given = report({"RANK=7"}, {"--rank", "1", "--world", "2"});
  EXPECT_EQ(given.at("rank"), 1);
  EXPECT_EQ(given.at("world"), 2);
}

TEST(ranks, that_contradict_one_another_are_refused_with_both) {
  const ranks use;
  EXPECT_THAT(refusal_of(use.run({}, {"RANK=0", "WORLD_SIZE=4", "OMPI_COMM_WORLD_RANK=1", "OMPI_COMM_WORLD_SIZE=4"})),
              AllOf(HasSubstr("torchrun says rank 0 of 4"), HasSubstr("Open MPI says rank 1 of 4")));
  EXPECT_THAT(refusal_of(use.run({}, {"RANK=0"})), HasSubstr("WORLD_SIZE is not set"));
  EXPECT_THAT(refusal_of(use.run({}, {"PMI_RANK=2", "PMI_SIZE=2"})), HasSubstr("rank 2 of 2"));
  EXPECT_THAT(refusal_of(use.run({}, {"RANK=first", "WORLD_SIZE=4"})), HasSubstr("RANK is 'first'"));
  EXPECT_THAT(refusal_of(use.run({"--rank", "1"})), HasSubstr("--rank is given, and --world is not"));
  EXPECT_THAT(refusal_of(use.run({"--rank", "3", "--world", "3"})), HasSubstr("--rank and --world: rank 3 of 3"));
  EXPECT_EQ(use.run({"--world", "0"}).exit_code, 2);
}

TEST(ranks, write_files_of_their_own) {
  const ranks use;
  for (const char* const option : {"--batches", "--journal", "--npy", "--state"}) {
    EXPECT_THAT(refusal_of(use.run({option, use.file("all"), "--rank", "0", "--world", "2"})),
                AllOf(HasSubstr(std::string(option) + " "), HasSubstr("%r in the name is the rank")));
    EXPECT_FALSE(std::filesystem::exists(use.file("all")));
    EXPECT_EQ(use.run({option, use.file("own-%r"), "--rank", "1", "--world", "2"}).exit_code, 0);
    EXPECT_TRUE(std::filesystem::exists(use.file("own-1")) || std::string(option) == "--journal") << option;
    std::filesystem::remove_all(use.file("own-1"));
  }
  EXPECT_EQ(refusal_of(use.run({"--batches", "-", "--rank", "0", "--world", "2"})).empty(), false);
  EXPECT_EQ(use.run({"--batches", use.file("alone-%r")}).exit_code, 0);
  EXPECT_TRUE(std::filesystem::exists(use.file("alone-0")));
}

/// One batch of each rank of such a world, and its state.
void step(const ranks& use, const std::string& world, const std::string& stop_after = "2") {
  for (int rank = 0; rank < std::atoi(world.c_str()); ++rank) {
    const ended one = use.run({"--batch-size", "1", "--epochs", "2", "--rows", "--batches",
                               use.file("rows-" + world + "-%r"), "--state", use.file("state-%r"), "--resume", "auto",
                               "--stop-after", stop_after, "--rank", std::to_string(rank), "--world", world});
    ASSERT_EQ(one.exit_code, 0) << one.err;
  }
}

TEST(ranks, go_on_each_from_its_own_state) {
  const ranks use;
  ASSERT_EQ(use.run({"--batch-size", "4", "--epochs", "2", "--rows", "--batches", use.file("alone")}).exit_code, 0);
  step(use, "4");
  step(use, "4", "1");
  step(use, "4", "9");
  EXPECT_EQ(use.rows({"rows-4-0", "rows-4-1", "rows-4-2", "rows-4-3"}), use.rows({"alone"}));
}

TEST(ranks, that_lost_their_state_say_so_where_they_do_not_meet) {
  const ranks use;
  const auto run_rank = [&](const std::string& rank) {
    return use.run({"--batch-size", "1", "--epochs", "2", "--rank", rank, "--world", "2", "--state",
                    use.file("lost-%r"), "--resume", "auto", "--stop-after", "2"});
  };
  EXPECT_EQ(run_rank("1").exit_code, 0);
  EXPECT_EQ(run_rank("0").err, "");
  std::filesystem::remove(use.file("lost-1"));
  const ended anew = run_rank("1");
  EXPECT_EQ(anew.exit_code, 0);
  EXPECT_THAT(anew.err, AllOf(HasSubstr("warning: there is no"), HasSubstr("rank 1 begins anew"),
                              HasSubstr("lost-0 is at batch 2 of epoch 0")));
}

TEST(ranks, of_another_world_go_on_from_one_place) {
  const ranks use;
  ASSERT_EQ(use.run({"--batch-size", "4", "--epochs", "2", "--rows", "--batches", use.file("alone")}).exit_code, 0);
  step(use, "4");
  const auto resumed = [&](const std::string& rank, const std::string& world) {
    return use.run({"--batch-size", "1", "--epochs", "2", "--rows", "--batches", use.file("rows-" + world + "-%r"),
                    "--state", use.file("state-%r"), "--resume", "auto", "--rank", rank, "--world", world});
  };
  // A rank more than there were has no state: it does not begin anew beside the others.
  EXPECT_THAT(refusal_of(resumed("4", "5")),
              AllOf(HasSubstr("state-0 is of rank 0 of 4"), HasSubstr("for rank 4 of 5")));
  // One of them was a batch further when all were killed.
  std::filesystem::copy_file(use.file("state-2"), use.file("kept"));
  ASSERT_EQ(use.run({"--batch-size", "1", "--epochs", "2", "--state", use.file("state-%r"), "--resume", "auto",
                     "--stop-after", "1", "--rank", "2", "--world", "4"})
                .exit_code,
            0);
  EXPECT_THAT(refusal_of(resumed("0", "3")),
              AllOf(HasSubstr("state-2 is at batch 3 of epoch 0"), HasSubstr("state-0 at batch 2 of epoch 0")));
  for (const char* const name : {"state-0", "state-1", "state-2", "state-3", "state-4"}) {
    std::filesystem::copy_file(use.file("kept"), use.file(name), std::filesystem::copy_options::overwrite_existing);
  }
  for (const char* const rank : {"0", "1", "2"}) {
    const ended one = resumed(rank, "3");
    ASSERT_EQ(one.exit_code, 0) << one.err;
    EXPECT_FALSE(one.json().contains("digest")) << "only a rank of the world that began the run knows it";
  }
  std::vector<json> all = use.rows({"rows-4-0", "rows-4-1", "rows-4-2", "rows-4-3"});
  for (const json& batch : use.rows({"rows-3-0", "rows-3-1", "rows-3-2"})) all.push_back(batch);
  EXPECT_EQ(all, use.rows({"alone"}));
}

TEST(ranks, do_not_go_on_from_a_state_that_a_larger_world_left_behind) {
  const ranks use;
  step(use, "4");
  // Three go on, twice; the fourth's state stays where it was.
  step(use, "3", "1");
  step(use, "3", "1");
  for (const char* const world : {"4", "5"}) {
    EXPECT_THAT(
        refusal_of(use.run({"--batch-size", "1", "--epochs", "2", "--state", use.file("state-%r"), "--resume", "auto",
                            "--rank", "3", "--world", world})),
        AllOf(HasSubstr("state-3 is at batch 2 of epoch 0 in a world of 4"), HasSubstr("state-0 is further, at batch")))
        << world;
  }
}

TEST(ranks, leave_the_lines_of_others_alone) {
  const ranks use;
  step(use, "2");
  std::filesystem::copy_file(use.file("state-1"), use.file("state-0"),
                             std::filesystem::copy_options::overwrite_existing);
  const std::string before = text_of(use.file("rows-2-0"));
  EXPECT_THAT(refusal_of(use.run({"--batch-size", "1", "--epochs", "2", "--rows", "--batches", use.file("rows-2-%r"),
                                  "--state", use.file("state-%r"), "--resume", "auto", "--rank", "0", "--world", "2"})),
              AllOf(HasSubstr("is of rank 1 of 2"), HasSubstr("rows-2-0 is there already")));
  EXPECT_EQ(text_of(use.file("rows-2-0")), before);
}

/// mpirun, where there is one that starts something.
struct real_mpirun {
  real_mpirun() {
    if (std::system("command -v mpirun > /dev/null 2>&1") != 0) {
      why_not = "there is no mpirun here: apt-get install openmpi-bin";
      return;
    }
    is_open_mpi = std::system("mpirun --version 2> /dev/null | grep -q 'Open MPI'") == 0;
    line = std::string("timeout 60 mpirun") + (is_open_mpi ? " --allow-run-as-root --oversubscribe" : "");
    if (std::system((line + " -n 2 true > /dev/null 2>&1").c_str()) != 0) why_not = "mpirun starts nothing here";
  }
  /// Runs the command as so many ranks; their streams go to the files out and err. Each writes its report to a file of its own first:
  /// mpirun passes on what it has read, and would put a piece of one rank's line into another's.
  [[nodiscard]] int run(int size, const std::vector<std::string>& words, const ranks& use) const {
    const std::string out = use.file("out");
    std::string all = "rm -f '" + out + "'-*; " + line + " -n " + std::to_string(size) +
                      R"( sh -c 'exec "$@" > "$0-${OMPI_COMM_WORLD_RANK:-$PMI_RANK}"' ')" + out + "' '" +
                      std::getenv("LEAT_COMMAND") + "'";
    for (const std::string& word : words) all += " '" + word + "'";
    const int status = std::system((all + " 2> '" + use.file("err") + "'").c_str());
    EXPECT_EQ(std::system(("cat '" + out + "'-* > '" + out + "'").c_str()), 0);
    return status;
  }
  std::string why_not;
  bool is_open_mpi = false;
  /// Whether the command was built with MPI.
  bool compares =
      std::filesystem::exists(std::filesystem::path(std::getenv("LEAT_COMMAND")).parent_path() / "leat_mpi.so");
  std::string line;
};

TEST(ranks, of_a_real_mpirun_deliver_together_what_one_process_delivers) {
  const real_mpirun mpirun;
  if (!mpirun.why_not.empty()) GTEST_SKIP() << mpirun.why_not;
  const ranks use;
  ASSERT_EQ(use.run({"--batch-size", "5", "--rows", "--batches", use.file("alone")}).exit_code, 0);
  for (const int size : {2, 3, 4}) {
    const std::string world = std::to_string(size);
    ASSERT_EQ(
        mpirun.run(size,
                   use.epoch({"--global-batch-size", "5", "--rows", "--batches", use.file("mpi-" + world + "-%r")}),
                   use),
        0)
        << text_of(use.file("err"));
    std::vector<std::string> names;
    for (int rank = 0; rank < size; ++rank) names.push_back("mpi-" + world + "-" + std::to_string(rank));
    EXPECT_EQ(use.rows(names), use.rows({"alone"})) << size << " ranks";
    const std::vector<std::string> reports = lines_of(text_of(use.file("out")));
    ASSERT_EQ(reports.size(), static_cast<std::size_t>(size));
    for (const std::string& report : reports) {
      EXPECT_EQ(json::parse(report).at("world"), size);
      EXPECT_EQ(json::parse(report).at("launcher"), mpirun.is_open_mpi ? "Open MPI" : "PMI");
      const json slowest = json::parse(report).at("slowest_rank");
      if (mpirun.compares) {
        EXPECT_LT(slowest.at("rank").get<int>(), size);
        EXPECT_GE(slowest.at("wait_s").get<double>(), slowest.at("wait_s_mean").get<double>());
        EXPECT_EQ(slowest, json::parse(reports.front()).at("slowest_rank")) << "all ranks say the same";
      }
    }
  }
}

TEST(ranks, of_a_real_mpirun_that_are_of_two_runs_end_before_the_first_batch) {
  const real_mpirun mpirun;
  if (!mpirun.why_not.empty()) GTEST_SKIP() << mpirun.why_not;
  if (!mpirun.compares) GTEST_SKIP() << "the command was built without MPI";
  const ranks use;
  const std::vector<std::string> words =
      use.epoch({"--batch-size", "1", "--epochs", "2", "--rows", "--batches", use.file("rows-%r"), "--state",
                 use.file("state-%r"), "--resume", "auto", "--stop-after", "2"});
  ASSERT_EQ(mpirun.run(3, words, use), 0) << text_of(use.file("err"));
  // One of them has lost its state: alone it would begin anew.
  std::filesystem::remove(use.file("state-1"));
  const std::string before = text_of(use.file("rows-1"));
  EXPECT_EQ(WEXITSTATUS(mpirun.run(3, words, use)), 2);
  EXPECT_THAT(text_of(use.file("err")), HasSubstr("rank 1 is at batch 0 of epoch 0, and rank 0 at batch 2 of epoch 0"));
  EXPECT_EQ(text_of(use.file("rows-1")), before);
  EXPECT_FALSE(std::filesystem::exists(use.file("state-1")));
  // One of them cannot read its own.
  std::ofstream(use.file("state-1")) << "no state";
  EXPECT_NE(mpirun.run(3, words, use), 0);
  EXPECT_THAT(text_of(use.file("err")), HasSubstr("state-1"));
  EXPECT_EQ(text_of(use.file("rows-1")), before);
}

TEST(ranks, of_a_real_mpirun_go_on_each_from_where_it_was_killed) {
  const real_mpirun mpirun;
  if (!mpirun.why_not.empty()) GTEST_SKIP() << mpirun.why_not;
  const ranks use;
  ASSERT_EQ(use.run({"--batch-size", "3", "--epochs", "2", "--rows", "--batches", use.file("alone")}).exit_code, 0);
  const std::vector<std::string> words =
      use.epoch({"--batch-size", "1", "--epochs", "2", "--rows", "--batches", use.file("rows-%r"), "--state",
                 use.file("state-%r"), "--resume", "auto"});
  // Ranks are not in step: each is killed at a batch of its own.
  for (const int rank : {0, 1, 2}) {
    std::vector<std::string> more{
        "--batch-size",           "1",       "--epochs",           "2",        "--rows", "--batches",
        use.file("rows-%r"),      "--state", use.file("state-%r"), "--resume", "auto",   "--stop-after",
        std::to_string(rank + 1), "--rank",  std::to_string(rank), "--world",  "3"};
    ASSERT_EQ(use.run(more).exit_code, 0);
  }
  ASSERT_EQ(mpirun.run(3, words, use), 0) << text_of(use.file("err"));
  EXPECT_EQ(use.rows({"rows-0", "rows-1", "rows-2"}), use.rows({"alone"}));
}

// Nothing was delivered yet: that the run has begun is known all the same, and it goes on where another rank was quicker.
TEST(ranks, of_a_real_mpirun_have_states_before_their_first_batch) {
  const real_mpirun mpirun;
  if (!mpirun.why_not.empty()) GTEST_SKIP() << mpirun.why_not;
  if (!mpirun.compares) GTEST_SKIP() << "the command was built without MPI";
  const ranks use;
  ASSERT_EQ(use.run({"--batch-size", "2", "--rows", "--batches", use.file("alone")}).exit_code, 0);
  std::vector<std::string> words = use.epoch({"--batch-size", "1", "--rows", "--batches", use.file("rows-%r"),
                                              "--state", use.file("state-%r"), "--resume", "auto"});
  const auto and_more = [&](const std::vector<std::string>& more) {
    std::vector<std::string> all = words;
    all.insert(all.end(), more.begin(), more.end());
    return all;
  };
  // Lines that nobody can write end it before the first batch.
  ASSERT_NE(mpirun.run(2, and_more({"--npy", "/dev/null/npy"}), use), 0);
  EXPECT_FALSE(std::filesystem::exists(use.file("state-0")));
  ASSERT_EQ(mpirun.run(2, and_more({"--stop-after", "1"}), use), 0) << text_of(use.file("err"));
  ASSERT_EQ(mpirun.run(2, words, use), 0) << text_of(use.file("err"));
  EXPECT_EQ(use.rows({"rows-0", "rows-1"}), use.rows({"alone"}));
}

TEST(ranks, of_a_real_mpirun_pack_the_same_bytes_as_one_process) {
  const real_mpirun mpirun;
  if (!mpirun.why_not.empty()) GTEST_SKIP() << mpirun.why_not;
  const ranks use;
  const auto packing = [&](const std::string& directory) {
    std::filesystem::create_directory(use.file(directory));
    return std::vector<std::string>{
        "pack", use.photos(), use.file(directory + "/p-%d.tar"), "--samples-per-shard", "2", "--shuffle", "--json"};
  };
  ASSERT_EQ(run(packing("alone")).exit_code, 0);
  ASSERT_EQ(mpirun.run(4, packing("together"), use), 0) << text_of(use.file("err"));
  std::uint64_t samples = 0;
  for (const std::string& report : lines_of(text_of(use.file("out")))) {
    EXPECT_EQ(json::parse(report).at("world"), 4);
    samples += json::parse(report).at("samples").get<std::uint64_t>();
  }
  EXPECT_EQ(samples, 12U);
  for (int shard = 0; shard < 6; ++shard) {
    const std::string name = "/p-" + std::to_string(shard) + ".tar";
    EXPECT_EQ(text_of(use.file("together" + name)), text_of(use.file("alone" + name))) << name;
  }
  EXPECT_FALSE(std::filesystem::exists(use.file("together/p-6.tar")));
}

TEST(ranks, cannot_pack_what_one_has_to_write_after_another) {
  const ranks use;
  const auto packed = [&](const std::vector<std::string>& more) {
    std::vector<std::string> words{"pack", use.photos()};
    words.insert(words.end(), more.begin(), more.end());
    words.insert(words.end(), {"--rank", "0", "--world", "2"});
    return refusal_of(run(words));
  };
  EXPECT_THAT(packed({use.file("p-%d.tar"), "--bytes-per-shard", "1MiB"}),
              AllOf(HasSubstr("--bytes-per-shard"), HasSubstr("--samples-per-shard")));
  EXPECT_THAT(packed({use.file("p-%d.tar")}), AllOf(HasSubstr("2 ranks"), HasSubstr("--samples-per-shard")));
  EXPECT_THAT(packed({use.file("p.npy"), "--to", "npy"}), HasSubstr("2 ranks cannot write together"));
}

TEST(ranks, replay_shows_the_rows_of_one_of_them) {
  const ranks use;
  std::vector<std::string> arguments = use.epoch({"--batch-size", "4", "--batch", "1"});
  arguments.front() = "replay";
  const json whole = run(arguments).json();
  ASSERT_EQ(whole.at("rows").size(), 4U);
  arguments.insert(arguments.end(), {"--global-batch-size", "4", "--rank", "1", "--world", "2"});
  // Of which run it is says when it began.
  const auto without_run = [](json told) {
    told.erase("run");
    return told;
  };
  const json half = without_run(run(arguments).json());
  ASSERT_EQ(half.at("rows").size(), 2U);
  EXPECT_EQ(half.at("rows")[0], whole.at("rows")[2]);
  EXPECT_EQ(half.at("rows")[1], whole.at("rows")[3]);
  // By a state of whatever name: it is only read.
  ASSERT_EQ(
      use.run({"--global-batch-size", "4", "--rank", "1", "--world", "2", "--state", use.file("state-%r")}).exit_code,
      0);
  arguments.insert(arguments.end(), {"--state", use.file("state-1")});
  EXPECT_EQ(without_run(run(arguments).json()), half);
}

}  // namespace
}  // namespace leat::testing
