// Real ranks under mpirun. Skipped, with the reason, where it is missing or starts nothing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <string>
#include <vector>

namespace leat {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::SizeIs;

struct outcome {
  int exit_code = -1;
  std::vector<std::string> lines;

  [[nodiscard]] std::vector<std::string> beginning_with(const std::string& word) const {
    std::vector<std::string> found;
    for (const std::string& line : lines) {
      if (line.starts_with(word)) found.push_back(line);
    }
    return found;
  }
};

outcome shell(const std::string& command) {
  outcome seen;
  FILE* const out = ::popen((command + " 2>&1").c_str(), "r");
  if (out == nullptr) return seen;
  std::string text;
  std::array<char, 4096> some{};
  for (std::size_t got; (got = std::fread(some.data(), 1, some.size(), out)) != 0;) text.append(some.data(), got);
  const int status = ::pclose(out);
  seen.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) seen.lines.push_back(line);
  return seen;
}

class mpi : public ::testing::Test {
 protected:
  void SetUp() override {
    const char* const ranks = std::getenv("LEAT_MPI_RANKS");
    const char* const mpirun = std::getenv("LEAT_MPIRUN");
    if (ranks == nullptr || mpirun == nullptr)
      GTEST_SKIP() << "LEAT_MPI_RANKS and LEAT_MPIRUN are not set; ctest sets them";
    if (std::system(("command -v '" + std::string(mpirun) + "' > /dev/null 2>&1").c_str()) != 0) {
      GTEST_SKIP() << "there is no mpirun here: apt-get install openmpi-bin";
    }
    // Root is refused unless it is told twice; cores are fewer than ranks here.
    const bool is_open_mpi = shell(std::string(mpirun) + " --version | grep -qE 'Open MPI|OpenRTE'").exit_code == 0;
    start_ = std::string("exec timeout 60 ") + mpirun + (is_open_mpi ? " --allow-run-as-root --oversubscribe" : "");
    program_ = ranks;
    const outcome tried = shell(start_ + " -n 2 true");
    if (tried.exit_code != 0) {
      GTEST_SKIP() << "mpirun starts nothing here: " << (tried.lines.empty() ? "" : tried.lines.front());
    }
  }
  [[nodiscard]] outcome run(int ranks, const std::string& what) const {
    return shell(start_ + " -n " + std::to_string(ranks) + " " + program_ + " " + what);
  }

 private:
  std::string start_;
  std::string program_;
};

TEST_F(mpi, ranks_deliver_together_what_one_process_delivers_and_name_the_slowest) {
  const outcome alone = run(1, "same");
  ASSERT_EQ(alone.exit_code, 0);
  ASSERT_THAT(alone.beginning_with("batch "), SizeIs(6));
  for (const int size : {2, 3, 4}) {
    const outcome many = run(size, "same");
    EXPECT_EQ(many.exit_code, 0);
    EXPECT_EQ(many.beginning_with("batch "), alone.beginning_with("batch ")) << size << " ranks";
    const std::vector<std::string> last = many.beginning_with("rank ");
    ASSERT_THAT(last, SizeIs(size));
    EXPECT_THAT(last, Each(HasSubstr(" of " + std::to_string(size) + " (local ")));
    const std::string slowest = last.front().substr(last.front().find("slowest"));
    EXPECT_THAT(last, Each(HasSubstr(slowest))) << "all ranks name the same one";
  }
}

TEST_F(mpi, ranks_fail_together_with_the_rank_and_the_option_that_differ) {
  const auto expect = [&](const std::string& what, const auto& words) {
    const outcome failed = run(3, what);
    EXPECT_THAT(failed.beginning_with("batch "), SizeIs(0)) << what;
    EXPECT_THAT(failed.beginning_with("failed: "), SizeIs(3)) << what;
    EXPECT_THAT(failed.beginning_with("failed: "), Each(words)) << what;
  };
  expect("seed", HasSubstr("seed of rank 2 is 6, and that of rank 0 is 5"));
  expect("place", AllOf(HasSubstr("rank 2 is at batch 3 of epoch 0, and rank 0 at batch 0 of epoch 0")));
  expect("world", HasSubstr("rank 2 of 3 takes itself for rank 0 of 1: give it loader_options::world"));
  expect("dataset", AllOf(HasSubstr("the dataset's "), HasSubstr("numbers from 1"), HasSubstr("numbers from 0")));
  expect("fields", AllOf(HasSubstr("the fields' "), HasSubstr(" of rank 2 ")));
  expect("broken", HasSubstr("no such folder"));
}

TEST_F(mpi, ranks_that_throw_what_is_no_exception_of_ours_fail_together_too) {
  const outcome failed = run(3, "strange");
  EXPECT_THAT(failed.beginning_with("failed: "), SizeIs(3));
  EXPECT_THAT(failed.beginning_with("failed: rank 2: an exception that has no words"), SizeIs(2));
}

TEST_F(mpi, is_refused_before_MPI_Init) {
  const std::vector<std::string> refused = run(1, "too-early").beginning_with("refused: ");
  EXPECT_THAT(refused, SizeIs(1));
  EXPECT_THAT(refused, Each(HasSubstr("call MPI_Init before")));
}

}  // namespace
}  // namespace leat
