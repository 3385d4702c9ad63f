// leat tune: windows of a run whose trainer only sleeps, and the options to paste.
#include "tests/support/photos.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/tools/command.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <signal.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

namespace leat::testing {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

std::vector<std::string> tune(const photo_folder& photos, const std::vector<std::string>& more) {
  std::vector<std::string> all{"tune", photos.path().string(), "--size", "16", "--batch-size", "4"};
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

// Which settings are tried depends on the machine and its other work: tests/stages/tuner_test.cpp has that.
TEST(tune, tries_settings_in_windows_and_says_what_to_paste) {
  const photo_folder photos;
  const ended process = run(tune(photos, {"--step-ms", "20", "--threads", "4", "--minutes", "0.12", "--json"}));
  ASSERT_EQ(process.exit_code, 0) << process.err;
  const json found = process.json();
  ASSERT_GE(found.at("windows").size(), 2U);
  EXPECT_EQ(found.at("windows").at(0).at("decode_threads"), 4);
  ASSERT_GE(found.at("tried").size(), 1U);
  EXPECT_EQ(found.at("tried").at(0).at("why"), nullptr);
  for (std::size_t i = 1; i < found.at("tried").size(); ++i) EXPECT_NE(found.at("tried").at(i).at("why"), nullptr);
  EXPECT_EQ(found.at("frozen"), false);
  const json& chosen = found.at("chosen");
  const auto said = [&](const char* name) { return std::to_string(chosen.at(name).get<int>()); };
  const std::string flags = found.at("flags");
  EXPECT_THAT(flags,
              HasSubstr("--threads " + said("decode_threads") + " --prefetch-batches " + said("prefetch_batches")));
  EXPECT_THAT(found.at("cpp").get<std::string>(), HasSubstr(".decode_threads = " + said("decode_threads") +
                                                            ", .prefetch_batches = " + said("prefetch_batches")));
  std::size_t in_windows = 0;
  for (const json& each : found.at("tried")) in_windows += each.at("windows").get<std::size_t>();
  EXPECT_EQ(in_windows, found.at("windows").size());
  for (const json& each : found.at("windows")) {
    // 4 samples in a step of 20 ms: never more.
    EXPECT_LE(each.at("samples_per_s"), 201);
    EXPECT_GT(each.at("samples_per_s"), 0);
    EXPECT_LT(each.at("cores"), 4);
  }
  // What is to be pasted is taken.
  std::vector<std::string> again{"epoch", photos.path().string(), "--size", "16", "--batch-size", "4"};
  for (std::size_t at = 0; at < flags.size();) {
    const std::size_t end = std::min(flags.find(' ', at), flags.size());
    again.push_back(flags.substr(at, end - at));
    at = end + 1;
  }
  EXPECT_EQ(run(again).exit_code, 0);
}

TEST(tune, shows_a_table_and_ends_where_it_is_told_to) {
  const photo_folder photos;
  command running(tune(photos, {"--step-ms", "5", "--threads", "1", "--prefetch-batches", "2"}),
                  command::streams::terminal);
  running.read_until("1 window");
  running.signal(SIGINT);
  const ended process = running.wait();
  EXPECT_EQ(process.exit_code, 130) << process.out;
  EXPECT_THAT(process.out, HasSubstr("steps of 5 ms"));
  EXPECT_THAT(process.out, HasSubstr("stopped by Ctrl-C"));
  EXPECT_THAT(process.out, HasSubstr("--threads 1 --prefetch-batches 2"));
  EXPECT_THAT(process.out, HasSubstr(".decode_threads = 1, .prefetch_batches = 2"));
}

TEST(tune, refuses_in_words) {
  const photo_folder photos;
  const auto refused = [&](const std::vector<std::string>& more, int code) {
    const ended process = run(tune(photos, more));
    EXPECT_EQ(process.exit_code, code) << process.err;
    EXPECT_EQ(process.out, "");
    expect_one_line(process, "leat tune: ");
    return process.err;
  };
  EXPECT_THAT(refused({"--minutes", "0"}, 2), HasSubstr("a number of minutes up to 1440, as 10 or 0.5"));
  EXPECT_THAT(refused({"--minutes", "ten"}, 2), HasSubstr("a number of minutes"));
  EXPECT_THAT(refused({"--step-ms", "-1"}, 2), HasSubstr("--step-ms"));
  EXPECT_THAT(refused({"--tune", "off"}, 2), HasSubstr("unknown option '--tune'"));
  EXPECT_THAT(refused({"--drop-last", "--global-batch-size", "64"}, 2), HasSubstr("give a smaller --batch-size"));
  EXPECT_THAT(refused({"--epochs", "1"}, 1), HasSubstr("a window takes at least 2 s and 24 batches"));
}

}  // namespace
}  // namespace leat::testing
