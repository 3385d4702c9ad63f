// leat epoch --state: a run that ends at any moment, and goes on as if it had not.
#include "tests/support/photos.hpp"
#include "tests/support/seeded_random.hpp"
#include "tests/support/seeds.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/tools/command.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sys/file.h>

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace leat::testing {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;

/// A run of 3 epochs of 3 batches over 12 photographs, two of which are corrupt, with all the files that a run can write.
class run_with_state {
 public:
  run_with_state() {
    const auto files = photos_.files();
    std::filesystem::resize_file(files[2], std::filesystem::file_size(files[2]) / 2);
    std::ofstream(files[9], std::ios::trunc).flush();
  }
  [[nodiscard]] std::string file(const std::string& name) const { return (directory_.path() / name).string(); }
  [[nodiscard]] std::filesystem::path photo(std::size_t number) const { return photos_.files()[number]; }

  //   name   of the files; each run has its own
  [[nodiscard]] std::vector<std::string> arguments(const std::string& name,
                                                   const std::vector<std::string>& more = {}) const {
    std::vector<std::string> all{"epoch",        photos_.path().string(),
                                 "--batch-size", "5",
                                 "--epochs",     "3",
                                 "--seed",       "4",
                                 "--size",       "32",
                                 "--threads",    "2",
                                 "--on-corrupt", "skip",
                                 "--json",       "--rows",
                                 "--batches",    file(name + ".lines"),
                                 "--journal",    file(name + ".journal")};
    return changed(std::move(all), more);
  }
  [[nodiscard]] std::vector<std::string> resumed(const std::string& name,
                                                 const std::vector<std::string>& more = {}) const {
    std::vector<std::string> all = arguments(name, {"--state", file(name + ".state"), "--resume", "auto"});
    return changed(std::move(all), more);
  }
  void expect_same_files(const std::string& a, const std::string& b) const {
    EXPECT_EQ(text_of(file(a + ".lines")), text_of(file(b + ".lines")));
    EXPECT_EQ(text_of(file(a + ".journal")), text_of(file(b + ".journal")));
  }

 private:
  // Pairs of an option and its value, which take the place of those that are there.
  static std::vector<std::string> changed(std::vector<std::string> all, const std::vector<std::string>& by) {
    for (std::size_t k = 0; k + 1 < by.size(); k += 2) {
      const auto there = std::find(all.begin(), all.end(), by[k]);
      if (there != all.end()) {
        *(there + 1) = by[k + 1];
      } else {
        all.insert(all.end(), {by[k], by[k + 1]});
      }
    }
    return all;
  }

  photo_folder photos_;
  temporary_directory directory_;
};

json json_of(const ended& process) {
  EXPECT_EQ(process.exit_code, 0) << process.err;
  return process.json();
}

TEST(saved_state, one_batch_a_process_is_the_same_run) {
  const run_with_state use;
  const json whole = json_of(run(use.arguments("whole")));
  ASSERT_EQ(whole["batches"], 9);
  for (int k = 0; k < 9; ++k) {
    const json part = json_of(run(use.resumed("parts", {"--stop-after", "1"})));
    EXPECT_EQ(part["batches"], 1);
    if (k == 0) {
      EXPECT_FALSE(part.contains("resumed"));
    } else {
      // The end of an epoch comes after its last batch, and is not yet handed out.
      EXPECT_EQ(part["resumed"], (json{{"epoch", (k - 1) / 3}, {"batch", (k - 1) % 3 + 1}}));
    }
  }
  const json last = json_of(run(use.resumed("parts")));
  EXPECT_EQ(last["batches"], 0) << "only the end of the last epoch was left";
  EXPECT_EQ(last["digest"], whole["digest"]);
  use.expect_same_files("parts", "whole");

  const json finished = json_of(run(use.resumed("parts")));
  EXPECT_EQ(finished["planned"], 0);
  EXPECT_EQ(finished["digest"], whole["digest"]);
  EXPECT_EQ(finished["resumed"], (json{{"epoch", 3}, {"batch", 0}}));
  use.expect_same_files("parts", "whole");

  // A finished run can be prolonged.
  const json longer = json_of(run(use.arguments("longer", {"--epochs", "4"})));
  EXPECT_EQ(json_of(run(use.resumed("parts", {"--epochs", "4"})))["digest"], longer["digest"]);
  use.expect_same_files("parts", "longer");
}

TEST(saved_state, a_run_that_is_killed_at_any_moment_goes_on_as_if_it_had_not_been) {
  const run_with_state use;
  const json whole = json_of(run(use.arguments("whole", {"--epochs", "40"})));
  for_each_seed(2, [&](std::uint64_t seed) {
    const std::string name = "killed-" + std::to_string(seed);
    seeded_random random(seed);
    int kills = 0;
    for (;;) {
      command process(use.resumed(name, {"--epochs", "40"}));
      std::this_thread::sleep_for(std::chrono::microseconds(random.below(40'000)));  // the moment, not a wait
      process.signal(SIGKILL);
      const ended result = process.wait();
      if (result.exit_code == 0) {
        EXPECT_EQ(result.json()["digest"], whole["digest"]);
        break;
      }
      ASSERT_EQ(result.exit_code, 128 + SIGKILL) << result.err;
      // The more often it is killed, the less of it is left: it may never get to the end by itself on a slow machine.
      if (++kills == 25) {
        EXPECT_EQ(json_of(run(use.resumed(name, {"--epochs", "40"})))["digest"], whole["digest"]);
        break;
      }
    }
    use.expect_same_files(name, "whole");
  });
}

TEST(saved_state, refuses_what_would_lose_something) {
  const run_with_state use;
  json_of(run(use.resumed("a", {"--stop-after", "2"})));
  const std::string state = use.file("a.state");
  const auto refused = [](const std::vector<std::string>& arguments) {
    const ended process = run(arguments);
    EXPECT_EQ(process.exit_code, 2) << process.err;
    expect_one_line(process, "leat epoch: ");
    return process.err;
  };
  EXPECT_THAT(refused(use.arguments("b", {"--state", state})), AllOf(HasSubstr(state), HasSubstr("--resume auto")));
  EXPECT_THAT(refused(use.arguments("b", {"--resume", "auto"})), HasSubstr("--state FILE"));
  EXPECT_THAT(refused(use.resumed("a", {"--batches", "-"})), HasSubstr("--batches"));
  EXPECT_THAT(refused(use.resumed("a", {"--seed", "5"})), AllOf(HasSubstr("seed is 5, and was 4"), HasSubstr(state)));
  EXPECT_THAT(refused(use.resumed("a", {"--batches", use.file("none")})), HasSubstr("none is not there"));
  EXPECT_EQ(run(use.arguments("b", {"--state", use.file("no.state"), "--resume", "always"})).exit_code, 1);

  // Nothing was touched by all that.
  const json whole = json_of(run(use.arguments("whole")));
  EXPECT_EQ(json_of(run(use.resumed("a")))["digest"], whole["digest"]);
  use.expect_same_files("a", "whole");

  std::ofstream(use.file("bad.state"), std::ios::binary) << "no state";
  const ended damaged = run(use.resumed("bad"));
  EXPECT_EQ(damaged.exit_code, 1);
  EXPECT_THAT(damaged.err, HasSubstr("bad.state"));
}

TEST(saved_state, keeps_the_lines_and_the_journal_that_a_process_in_between_does_not_write) {
  const run_with_state run_of;
  ASSERT_EQ(run(run_of.arguments("whole")).exit_code, 0);
  ASSERT_EQ(run(run_of.resumed("some", {"--stop-after", "4"})).exit_code, 0);
  const std::string lines = text_of(run_of.file("some.lines"));
  const std::string journal = text_of(run_of.file("some.journal"));
  ASSERT_FALSE(journal.empty());
  // Without them for two batches.
  std::vector<std::string> without = run_of.resumed("some", {"--stop-after", "2"});
  without.erase(std::remove(without.begin(), without.end(), "--rows"), without.end());
  for (const char* const option : {"--batches", "--journal"}) {
    const auto at = std::find(without.begin(), without.end(), option);
    without.erase(at, at + 2);
  }
  ASSERT_EQ(run(without).exit_code, 0);
  const ended last = run(run_of.resumed("some"));
  ASSERT_EQ(last.exit_code, 0) << last.err;
  EXPECT_TRUE(text_of(run_of.file("some.lines")).starts_with(lines));
  EXPECT_TRUE(text_of(run_of.file("some.journal")).starts_with(journal));
  EXPECT_EQ(text_of(run_of.file("some.lines")).substr(lines.size()).find("\"epoch\":1,\"batch\":1,"),
            std::string::npos);
  EXPECT_TRUE(text_of(run_of.file("whole.lines")).ends_with(text_of(run_of.file("some.lines")).substr(lines.size())));
}

TEST(saved_state, refuses_files_that_are_one_however_they_are_spelled) {
  const run_with_state run_of;
  const std::string folder = std::filesystem::path(run_of.file("x")).parent_path().string();
  for (const std::vector<std::string>& both :
       {std::vector<std::string>{"--state", "--batches"}, {"--state", "--journal"}, {"--journal", "--batches"}}) {
    const ended process = run(run_of.arguments("a", {both[0], run_of.file("same"), both[1], folder + "/./same"}));
    EXPECT_EQ(process.exit_code, 2) << both[0];
    EXPECT_THAT(process.err, HasSubstr("same file")) << both[0];
  }
}

TEST(saved_state, does_not_cut_a_file_of_other_lines) {
  const run_with_state run_of;
  ASSERT_EQ(run(run_of.resumed("some", {"--stop-after", "4"})).exit_code, 0);
  const std::string other(100'000, 'x');
  std::ofstream(run_of.file("some.lines"), std::ios::trunc) << other;
  const ended process = run(run_of.resumed("some"));
  EXPECT_EQ(process.exit_code, 2);
  EXPECT_THAT(process.err, HasSubstr("no end of a line"));
  EXPECT_EQ(text_of(run_of.file("some.lines")), other);
}

TEST(saved_state, that_cannot_be_looked_at_is_not_taken_for_missing) {
  const run_with_state run_of;
  std::filesystem::create_symlink("round", run_of.file("round"));
  const ended process = run(run_of.arguments("some", {"--state", run_of.file("round"), "--resume", "auto"}));
  EXPECT_EQ(process.exit_code, 1);
  EXPECT_THAT(process.err, AllOf(HasSubstr("cannot look at"), HasSubstr("round")));
  EXPECT_FALSE(std::filesystem::exists(run_of.file("some.lines")));
}

TEST(saved_state, that_another_process_writes_is_refused_before_anything_is_touched) {
  const run_with_state run_of;
  ASSERT_EQ(run(run_of.resumed("a", {"--stop-after", "4"})).exit_code, 0);
  const std::string lines = text_of(run_of.file("a.lines")) + "{}\n";
  std::ofstream(run_of.file("a.lines"), std::ios::app) << "{}\n";  // as the other process would, a batch later
  const int other = ::open(run_of.file("a.state").c_str(), O_RDONLY | O_CLOEXEC);
  ASSERT_EQ(::flock(other, LOCK_EX), 0);
  const ended process = run(run_of.resumed("a"));
  EXPECT_EQ(process.exit_code, 2);
  EXPECT_THAT(process.err, AllOf(HasSubstr("a.state"), HasSubstr("another process is writing it")));
  EXPECT_EQ(text_of(run_of.file("a.lines")), lines);
  ::close(other);
  EXPECT_EQ(run(run_of.resumed("a")).exit_code, 0);
}

TEST(saved_state, is_locked_while_it_is_written) {
  const run_with_state run_of;
  command process(run_of.resumed("a", {"--epochs", "100000"}));
  while (!std::filesystem::exists(run_of.file("a.state"))) std::this_thread::yield();
  // What was written has its lock once the next batch is there.
  while (lines_of(text_of(run_of.file("a.lines"))).size() < 20) std::this_thread::yield();
  const ended second = run(run_of.resumed("a", {"--epochs", "100000"}));
  EXPECT_EQ(second.exit_code, 2);
  EXPECT_THAT(second.err, HasSubstr("another process is writing it"));
  process.signal(SIGINT);
  EXPECT_EQ(process.wait().exit_code, 128 + SIGINT);
}

TEST(saved_state, that_is_a_link_stays_one) {
  const run_with_state run_of;
  std::filesystem::create_directory(run_of.file("elsewhere"));
  std::filesystem::create_symlink("elsewhere/run.state", run_of.file("a.state"));
  ASSERT_EQ(run(run_of.resumed("a", {"--stop-after", "2"})).exit_code, 0);
  EXPECT_TRUE(std::filesystem::is_symlink(run_of.file("a.state")));
  EXPECT_TRUE(std::filesystem::is_regular_file(run_of.file("elsewhere/run.state")));
  EXPECT_EQ(json_of(run(run_of.resumed("a", {"--stop-after", "2"})))["resumed"], (json{{"epoch", 0}, {"batch", 2}}));
  EXPECT_TRUE(std::filesystem::is_symlink(run_of.file("a.state")));
}

TEST(saved_state, that_cannot_be_written_is_refused_before_anything_is) {
  const run_with_state run_of;
  const ended process = run(run_of.arguments("a", {"--state", run_of.file("none/a.state")}));
  EXPECT_EQ(process.exit_code, 1);
  EXPECT_THAT(process.err, AllOf(HasSubstr("none/a.state"), HasSubstr("make its folder first")));
  EXPECT_FALSE(std::filesystem::exists(run_of.file("a.lines")));
  EXPECT_FALSE(std::filesystem::exists(run_of.file("a.journal")));
}

TEST(saved_state, of_a_run_that_a_corrupt_sample_has_ended_goes_on_without_it) {
  const run_with_state run_of;
  const json whole = json_of(run(run_of.arguments("whole")));
  const ended raised = run(run_of.resumed("a", {"--on-corrupt", "raise"}));
  EXPECT_EQ(raised.exit_code, 1);
  std::filesystem::remove(run_of.file("a.journal"));  // which says what was raised, and the state does not count it
  EXPECT_EQ(json_of(run(run_of.resumed("a")))["digest"], whole["digest"]);
  run_of.expect_same_files("a", "whole");
  // The other way round nobody knows whether it would have been ended.
  ASSERT_EQ(run(run_of.resumed("b", {"--stop-after", "2"})).exit_code, 0);
  const ended refused = run(run_of.resumed("b", {"--on-corrupt", "raise"}));
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.err, HasSubstr("on-corrupt is raise, and was skip"));
}

TEST(saved_state, whose_journal_is_gone_is_refused_as_one_whose_lines_are) {
  const run_with_state run_of;
  ASSERT_EQ(run(run_of.resumed("a", {"--stop-after", "4"})).exit_code, 0);
  std::filesystem::remove(run_of.file("a.journal"));
  const ended process = run(run_of.resumed("a"));
  EXPECT_EQ(process.exit_code, 2);
  EXPECT_THAT(process.err,
              AllOf(HasSubstr("a.journal is not there"), HasSubstr("name the file that this run has written")));
}

TEST(saved_state, can_be_kept_while_lines_go_to_standard_output) {
  const run_with_state run_of;
  std::vector<std::string> words = run_of.arguments("some", {"--batches", "-", "--state", run_of.file("some.state")});
  words.erase(std::remove(words.begin(), words.end(), "--json"), words.end());
  const ended process = run(words);
  EXPECT_EQ(process.exit_code, 0) << process.err;
  EXPECT_TRUE(std::filesystem::exists(run_of.file("some.state")));
}

TEST(saved_state, of_a_dataset_that_has_changed_is_refused) {
  const run_with_state use;
  json_of(run(use.resumed("a", {"--stop-after", "2"})));
  std::filesystem::remove(use.photo(4));
  const ended fewer = run(use.resumed("a"));
  EXPECT_EQ(fewer.exit_code, 2);
  EXPECT_THAT(fewer.err, AllOf(HasSubstr("samples"), HasSubstr("11"), HasSubstr("12")));
}

}  // namespace
}  // namespace leat::testing
