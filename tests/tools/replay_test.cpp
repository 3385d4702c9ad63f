// leat replay, and leat show of any batch: what epoch has delivered, again.
#include "tests/support/photos.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/tools/command.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace leat::testing {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;

std::vector<std::string> joined(std::vector<std::string> all, const std::vector<std::string>& more) {
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

TEST(replay, gives_each_batch_of_a_run_with_the_digests_it_had) {
  const photo_folder photos;
  std::filesystem::resize_file(photos.files()[5], 100);
  const temporary_directory directory;
  const std::string lines = (directory.path() / "lines").string();
  const std::string state = (directory.path() / "state").string();
  for (const std::string policy : {"skip", "substitute"}) {
    SCOPED_TRACE(policy);
    std::filesystem::remove(state);
    const std::vector<std::string> options{photos.path().string(), "--batch-size", "5", "--seed", "3", "--size", "32",
                                           "--on-corrupt",         policy};
    const ended whole =
        run(joined(joined({"epoch"}, options), {"--epochs", "2", "--batches", lines, "--rows", "--state", state}));
    ASSERT_EQ(whole.exit_code, 0) << whole.err;
    std::size_t corrupt = 0;
    for (const std::string& line : lines_of(text_of(lines))) {
      const json expected = json::parse(line);
      const json got = run(joined(joined({"replay"}, options),
                                  {"--epoch", std::to_string(expected["epoch"].get<int>()), "--batch",
                                   std::to_string(expected["batch"].get<int>()), "--state", state, "--json"}))
                           .json();
      EXPECT_EQ(got["digest"], expected["digest"]);
      ASSERT_EQ(got["rows"].size(), expected["ids"].size());
      for (std::size_t row = 0; row < got["rows"].size(); ++row) {
        const json& each = got["rows"][row];
        EXPECT_EQ(each["sample"], expected["ids"][row]);
        EXPECT_EQ(each["digest"], expected["rows"][row]);
        ASSERT_EQ(each["parts"].size(), 1U);
        EXPECT_EQ(each["parts"][0]["file"], photos.files()[each["sample"].get<std::size_t>()].string());
        EXPECT_EQ(each["parts"][0]["bytes"], std::filesystem::file_size(each["parts"][0]["file"].get<std::string>()));
        EXPECT_EQ(each["parts"][0]["offset"], 0);
      }
      for (const json& each : got["corrupt"]) {
        EXPECT_EQ(each["sample"], 5);
        ++corrupt;
      }
    }
    EXPECT_EQ(corrupt, 2U) << "once an epoch";
  }
}

TEST(replay, refuses_another_run_and_a_batch_that_is_not_there) {
  const photo_folder photos;
  const temporary_directory directory;
  const std::string state = (directory.path() / "state").string();
  const std::string folder = photos.path().string();
  ASSERT_EQ(run({"epoch", folder, "--batch-size", "5", "--size", "32", "--state", state}).exit_code, 0);
  const ended other = run({"replay", folder, "--batch-size", "4", "--size", "32", "--state", state});
  EXPECT_EQ(other.exit_code, 2);
  EXPECT_THAT(other.err, AllOf(HasSubstr("is 4, and was 5"), HasSubstr(state)));
  const ended none = run({"replay", folder, "--batch-size", "5", "--size", "32", "--batch", "3"});
  EXPECT_EQ(none.exit_code, 2);
  EXPECT_THAT(none.err, AllOf(HasSubstr("batch 3 of epoch 0"), HasSubstr("it has 3")));
  const ended shown = run({"replay", folder, "--batch-size", "5", "--size", "32", "--epoch", "70"});
  EXPECT_EQ(shown.exit_code, 0) << shown.err;
  EXPECT_THAT(shown.out, AllOf(HasSubstr("batch 0 of epoch 70: 5 rows"), HasSubstr(".jpg at offset 0, ")));
}

TEST(replay, makes_no_batch_of_pixels_that_the_host_has_not) {
  const photo_folder photos;
  const ended refused = run({"replay", photos.path().string(), "--size", "32", "--jpeg-decoder", "nvjpeg"});
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_THAT(refused.err, HasSubstr("has no pixels of --jpeg-decoder nvjpeg"));
}

TEST(replay, takes_the_epochs_of_the_run_where_they_are_given) {
  const photo_folder photos;
  const std::string folder = photos.path().string();
  EXPECT_EQ(run({"replay", folder, "--size", "32", "--epochs", "2", "--epoch", "1"}).exit_code, 0);
  const ended none = run({"replay", folder, "--size", "32", "--epochs", "2", "--epoch", "2"});
  EXPECT_EQ(none.exit_code, 2);
  EXPECT_THAT(none.err, HasSubstr("there is no epoch 2: the run has 2"));
}

TEST(replay, tells_of_rows_that_are_drawn_as_in_another_epoch) {
  const photo_folder many;
  const photo_folder few;
  const std::vector<std::string> batch{"replay",
                                       many.path().string(),
                                       few.path().string(),
                                       "--mixture",
                                       "0.9,0.1",
                                       "--batch-size",
                                       "12",
                                       "--size",
                                       "32",
                                       "--epoch",
                                       "2",
                                       "--batch",
                                       "1"};
  const ended text = run(batch);
  bool any = false;
  const json shown = run(joined(batch, {"--json"})).json();
  for (const json& row : shown["rows"]) {
    if (row["epoch"] == 2) continue;
    any = true;
    EXPECT_THAT(text.out, HasSubstr("drawn as in epoch " + row["epoch"].dump()));
  }
  EXPECT_TRUE(any) << text.out;
}

TEST(replay, leaves_out_what_the_run_left_out) {
  const temporary_directory directory;
  const std::string table = (directory.path() / "texts.jsonl").string();
  const std::string state = (directory.path() / "state").string();
  const std::string lines = (directory.path() / "lines").string();
  {
    std::ofstream out(table);
    for (int i = 0; i < 12; ++i) {
      out << R"({"text": ")" << (i == 7 ? std::string(std::size_t{12} << 20, 'a') : std::to_string(i)) << "\"}\n";
    }
  }
  const std::vector<std::string> options{table, "--batch-size", "4", "--on-corrupt", "skip"};
  const std::vector<std::string> little{"--host-bytes-max", "24MiB"};
  const ended whole =
      run(joined(joined(joined({"epoch"}, options), little), {"--batches", lines, "--rows", "--state", state}));
  ASSERT_EQ(whole.exit_code, 0) << whole.err;
  std::size_t left_out = 0;
  for (const std::string& line : lines_of(text_of(lines))) {
    const json expected = json::parse(line);
    const std::vector<std::string> batch =
        joined(joined({"replay"}, options), {"--batch", std::to_string(expected["batch"].get<int>()), "--json"});
    const ended by_state = run(joined(batch, {"--state", state}));
    EXPECT_EQ(by_state.json()["digest"], expected["digest"]) << by_state.err;
    EXPECT_THAT(by_state.err, HasSubstr("samples with a value of more than 6.00 MiB are corrupt, as in " + state));
    EXPECT_EQ(run(joined(batch, little)).json()["digest"], expected["digest"]);
    const json roomy = run(batch).json();
    EXPECT_EQ(roomy["digest"] == expected["digest"], by_state.json()["corrupt"].empty());
    left_out += by_state.json()["corrupt"].size();
  }
  EXPECT_EQ(left_out, 1U);
}

TEST(replay, show_draws_the_same_batch) {
  const photo_folder photos;
  const temporary_directory directory;
  const std::string page = (directory.path() / "page.html").string();
  const std::string folder = photos.path().string();
  const json batch =
      run({"replay", folder, "--batch-size", "5", "--size", "32", "--epoch", "4", "--batch", "2", "--json"}).json();
  ASSERT_EQ(batch["rows"].size(), 2U);
  const ended drawn =
      run({"show", folder, "-o", page, "--batch-size", "5", "--size", "32", "--epoch", "4", "--batch", "2"});
  ASSERT_EQ(drawn.exit_code, 0) << drawn.err;
  const std::string html = text_of(page);
  EXPECT_THAT(html, AllOf(HasSubstr("batch 2 of epoch 4: 2 of 12 samples"),
                          HasSubstr(batch["rows"][0]["name"].get<std::string>()),
                          HasSubstr(batch["rows"][1]["name"].get<std::string>())));
  EXPECT_EQ(run({"show", folder, "-o", page, "--batch-size", "5", "--batch", "3"}).exit_code, 2);
}

}  // namespace
}  // namespace leat::testing
