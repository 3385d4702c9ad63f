// leat check: a set with one of each defect is found exactly, and a sound one has none.
#include "base/sha256.hpp"
#include "tests/support/make_picture.hpp"
#include "tests/support/photos.hpp"
#include "tests/support/raw_files.hpp"
#include "tests/support/tar_writer.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/tools/command.hpp"
#include "tests/tools/page_xml.hpp"
#include "tools/check_drift.hpp"

#include <absl/strings/escaping.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace leat::testing {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
namespace fs = std::filesystem;

std::string photo(std::uint64_t seed) {
  const std::vector<std::uint8_t> file = photo_jpeg(seed, 96, 64);
  return {file.begin(), file.end()};
}

// The same, as somebody else's program wrote it.
std::string photo_written_anew(std::uint64_t seed) {
  const std::vector<std::byte> file = make_jpeg({96, 64, photo_pixels(seed, 96, 64)}, {.quality = 60});
  return {reinterpret_cast<const char*>(file.data()), file.size()};
}

std::string grey_picture() {
  rgb_picture seen;
  const std::vector<std::byte> file = make_png({16, 16, std::vector<std::uint8_t>(768, 128)}, {}, seen);
  return {reinterpret_cast<const char*>(file.data()), file.size()};
}

/// 8 sound photographs in 2 classes.
class sound_set {
 public:
  sound_set() {
    for (std::uint64_t i = 0; i < 8; ++i) add(i < 4 ? "a" : "b", std::to_string(i) + ".jpg", photo(100 + i));
  }
  void add(const std::string& cls, const std::string& name, const std::string& content) const {
    write_file(path() / cls / name, content);
  }
  [[nodiscard]] fs::path path() const { return directory_.path() / "set"; }
  [[nodiscard]] std::string beside(const std::string& name) const { return (directory_.path() / name).string(); }

 private:
  temporary_directory directory_;
};

/// What lies in a folder: paths, sizes, times.
std::map<std::string, std::pair<std::uint64_t, fs::file_time_type>> listing(const fs::path& folder) {
  std::map<std::string, std::pair<std::uint64_t, fs::file_time_type>> all;
  for (const fs::directory_entry& each : fs::recursive_directory_iterator(folder)) {
    all[each.path().string()] = {each.is_directory() ? 0 : each.file_size(), each.last_write_time()};
  }
  return all;
}

json checked(const std::vector<std::string>& arguments, int exit_code) {
  std::vector<std::string> all{"check"};
  all.insert(all.end(), arguments.begin(), arguments.end());
  all.insert(all.end(), {"--json", "-"});
  const ended process = run(all);
  EXPECT_EQ(process.exit_code, exit_code) << process.err;
  return process.json();
}

std::vector<std::string> names_in(const json& list, const std::string& key = "name") {
  std::vector<std::string> names;
  for (const json& each : list) names.push_back(each.at(key));
  return names;
}

TEST(check, finds_one_of_each_defect_and_nothing_else) {
  const sound_set set;
  set.add("a", "cut.jpg", photo(200).substr(0, 1200));
  set.add("a", "empty.jpg", "");
  set.add("a", "no picture.jpg", "hello");
  set.add("a", "twice.jpg", photo(100));                      // as a/0.jpg
  set.add("b", "other class.jpg", photo(101));                // as a/1.jpg
  set.add("b", "written anew.jpg", photo_written_anew(105));  // as b/5.jpg, nearly
  set.add("b", "grey.png", grey_picture());
  const auto before = listing(set.path());
  const json found = checked({set.path().string()}, 1);
  EXPECT_EQ(listing(set.path()), before) << "something was written beside the data";

  EXPECT_EQ(found.at("samples"), 15);
  EXPECT_EQ(found.at("wrong"), true);
  EXPECT_THAT(names_in(found.at("broken")), ElementsAre("a/cut.jpg", "a/empty.jpg", "a/no picture.jpg"));
  EXPECT_THAT(names_in(found["broken"], "kind"), ElementsAre("damaged", "empty", "unknown format"));
  ASSERT_EQ(found.at("duplicates").size(), 1U) << found["duplicates"];
  EXPECT_THAT(names_in(found["duplicates"][0].at("samples")), ElementsAre("a/0.jpg", "a/twice.jpg"));
  ASSERT_EQ(found.at("two_labels").size(), 1U) << found["two_labels"];
  EXPECT_THAT(names_in(found["two_labels"][0].at("samples")), ElementsAre("a/1.jpg", "b/other class.jpg"));
  ASSERT_EQ(found.at("near").size(), 1U) << found["near"];
  EXPECT_EQ(found["near"][0].at("name"), "b/written anew.jpg");
  EXPECT_EQ(found["near"][0].at("of_name"), "b/5.jpg");
  EXPECT_THAT(names_in(found.at("one_colour")), ElementsAre("b/grey.png"));
  EXPECT_TRUE(found.at("against").is_null());
  EXPECT_EQ(found.at("class_label"), "cls");
  ASSERT_EQ(found.at("classes").size(), 2U);
  EXPECT_EQ(found["classes"][0].at("samples"), 8);
  EXPECT_EQ(found["classes"][1].at("samples"), 7);
  EXPECT_EQ(found.at("pictures").at("samples"), 12);
  EXPECT_EQ(found["pictures"].at("width").at("least"), 16);
  EXPECT_EQ(found["pictures"].at("width").at("largest"), 96);

  // Left out are the broken, the second of a content, and both that have two classes.
  std::vector<std::string> left_out;
  const std::vector<std::string> in_order = {
      "a/0.jpg", "a/1.jpg", "a/2.jpg", "a/3.jpg", "a/cut.jpg",  "a/empty.jpg",       "a/no picture.jpg",  "a/twice.jpg",
      "b/4.jpg", "b/5.jpg", "b/6.jpg", "b/7.jpg", "b/grey.png", "b/other class.jpg", "b/written anew.jpg"};
  for (const json& each : found.at("exclude")) left_out.push_back(in_order.at(each.get<std::size_t>()));
  EXPECT_THAT(left_out, ElementsAre("a/1.jpg", "a/cut.jpg", "a/empty.jpg", "a/no picture.jpg", "a/twice.jpg",
                                    "b/other class.jpg"));
}

TEST(check, a_sound_set_has_no_finding) {
  const sound_set set;
  const json found = checked({set.path().string()}, 0);
  EXPECT_EQ(found.at("wrong"), false);
  for (const char* const kind : {"broken", "two_labels", "duplicates", "near", "one_colour", "exclude"}) {
    EXPECT_TRUE(found.at(kind).empty()) << kind << ": " << found.at(kind);
  }
  EXPECT_EQ(found.at("classes").size(), 2U);
}

TEST(check, any_number_of_threads_writes_the_same) {
  const sound_set set;
  set.add("a", "cut.jpg", photo(200).substr(0, 1200));
  set.add("b", "written anew.jpg", photo_written_anew(105));
  for (std::uint64_t i = 0; i < 150; ++i) set.add("c", std::to_string(1000 + i) + ".jpg", photo(300 + i % 120));
  const auto text = [&](const std::string& threads) {
    const ended process = run({"check", set.path().string(), "--threads", threads, "--json", "-"});
    EXPECT_EQ(process.exit_code, 1) << process.err;
    return process.out;
  };
  const std::string alone = text("1");
  EXPECT_EQ(json::parse(alone).at("duplicates").size(), 30U);
  EXPECT_EQ(text("2"), alone);
  EXPECT_EQ(text("5"), alone);
}

TEST(check, means_and_deviations_are_those_of_the_pixels) {
  const temporary_directory directory;
  double sum = 0;
  double squares = 0;
  std::uint64_t count = 0;
  for (std::uint64_t i = 0; i < 6; ++i) {
    rgb_picture seen;
    const std::vector<std::byte> file = make_png(make_texture(i, 60, 40), {}, seen);
    write_file(directory.path() / "set" / "a" / (std::to_string(i) + ".png"),
               {reinterpret_cast<const char*>(file.data()), file.size()});
    for (std::size_t k = 1; k < seen.pixels.size(); k += 3) {
      const double value = seen.pixels[k] / 255.0;
      sum += value;
      squares += value * value;
      ++count;
    }
  }
  const json pictures = checked({(directory.path() / "set").string()}, 0).at("pictures");
  const double mean = sum / static_cast<double>(count);
  EXPECT_NEAR(pictures.at("mean")[1].get<double>(), mean, 1e-6);
  EXPECT_NEAR(pictures.at("deviation")[1].get<double>(), std::sqrt(squares / static_cast<double>(count) - mean * mean),
              1e-6);
}

TEST(check, finds_what_two_sets_share) {
  const sound_set train;
  const sound_set val;
  fs::remove_all(val.path());
  val.add("a", "new.jpg", photo(500));
  val.add("a", "seen.jpg", photo(102));
  val.add("b", "seen.jpg", photo_written_anew(106));
  const json found = checked({train.path().string(), "--against", val.path().string()}, 1);
  const json& shared = found.at("against");
  EXPECT_EQ(shared.at("samples"), 3);
  ASSERT_EQ(shared.at("same").size(), 1U);
  EXPECT_EQ(shared["same"][0].at("name"), "a/2.jpg");
  EXPECT_EQ(shared["same"][0].at("of_name"), "a/seen.jpg");
  ASSERT_EQ(shared.at("near").size(), 1U);
  EXPECT_EQ(shared["near"][0].at("name"), "b/6.jpg");
  EXPECT_EQ(shared["near"][0].at("of_name"), "b/seen.jpg");
  EXPECT_EQ(found.at("exclude"), json({2}));

  fs::remove(val.path() / "a" / "seen.jpg");
  EXPECT_EQ(checked({train.path().string(), "--against", val.path().string()}, 0).at("against").at("near").size(), 1U)
      << "what only looks alike is no failure";
  EXPECT_TRUE(checked({train.path().string(), "--against", val.path().string(), "--max-near", "0"}, 0)
                  .at("against")
                  .at("near")
                  .empty());
}

TEST(check, shards_have_their_classes_in_members) {
  const temporary_directory directory;
  const std::string shard = (directory.path() / "a.tar").string();
  tar_writer tar;
  const auto add = [&](const std::string& key, std::uint64_t seed, const std::string& cls) {
    tar.add_file(key + ".jpg", photo(seed));
    if (!cls.empty()) tar.add_file(key + ".cls", cls);
  };
  add("one", 1, "0");
  add("two", 2, "1");
  add("three", 3, "1");
  add("four", 1, "1");   // one's picture
  add("five", 2, "1");   // two's
  add("six", 6, "0.5");  // no class
  add("seven", 7, "");
  const std::vector<std::byte> bytes = tar.finish();
  write_file(shard, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  const json found = checked({shard}, 1);
  EXPECT_THAT(names_in(found.at("broken"), "kind"), ElementsAre("damaged", "incomplete")) << found["broken"];
  EXPECT_THAT(names_in(found["broken"], "field"), ElementsAre("cls", "cls"));
  ASSERT_EQ(found.at("two_labels").size(), 1U);
  EXPECT_EQ(found["two_labels"][0].at("samples")[1].at("sample"), 3);
  ASSERT_EQ(found.at("duplicates").size(), 1U);
  EXPECT_EQ(found["duplicates"][0].at("samples")[1].at("sample"), 4);
}

std::vector<std::vector<std::uint64_t>> groups_in(const json& list) {
  std::vector<std::vector<std::uint64_t>> groups;
  for (const json& group : list) {
    groups.emplace_back();
    for (const json& each : group.at("samples")) groups.back().push_back(each.at("sample"));
  }
  return groups;
}

using groups = std::vector<std::vector<std::uint64_t>>;

TEST(check, rows_with_different_targets_are_no_duplicates) {
  const temporary_directory directory;
  const auto lines = [&](const std::string& text) { return write_file(directory.path() / "rows.jsonl", text); };
  std::string text;
  for (int i = 0; i < 1000; ++i) {
    text += "{\"text\": \"t" + std::to_string(i / 2) + "\", \"label\": " + std::to_string(i) + "}\n";
  }
  json found = checked({lines(text)}, 0);
  EXPECT_TRUE(found.at("duplicates").empty());
  EXPECT_EQ(found.at("other_fields").size(), 500U);
  EXPECT_EQ(groups_in(found["other_fields"])[499], (std::vector<std::uint64_t>{998, 999}));
  EXPECT_TRUE(found.at("exclude").empty());

  found = checked({lines("{\"text\":\"a\",\"y\":0}\n{\"text\":\"a\",\"y\":1}\n{\"text\":\"a\",\"y\":0}\n")}, 0);
  EXPECT_EQ(groups_in(found.at("duplicates")), (groups{{0, 2}}));
  EXPECT_EQ(groups_in(found.at("other_fields")), (groups{{0, 1}}));
  EXPECT_EQ(found.at("exclude"), json({2}));

  found = checked(
      {lines("{\"text\":\"a\",\"score\":0.1}\n{\"text\":\"a\",\"score\":0.9}\n{\"text\":\"b\",\"score\":0.5}\n")}, 0);
  EXPECT_TRUE(found.at("duplicates").empty());
  EXPECT_TRUE(found.at("other_fields").empty()) << "a real number is a field: another content";
  EXPECT_TRUE(found.at("exclude").empty());

  // Of one word and several classes: wrong where their numbers are the same too.
  found =
      checked({lines("{\"word\":\"cat\",\"weight\":4.5,\"label\":0}\n{\"word\":\"cat\",\"weight\":7.5,\"label\":1}\n"
                     "{\"word\":\"dog\",\"weight\":4.5,\"label\":0}\n{\"word\":\"dog\",\"weight\":4.5,\"label\":1}\n"
                     "{\"word\":\"cow\",\"weight\":1.5,\"label\":1}\n{\"word\":\"cow\",\"weight\":1.5,\"label\":1}\n")},
              1);
  EXPECT_EQ(found.at("class_label"), "label");
  EXPECT_EQ(groups_in(found.at("two_labels")), (groups{{2, 3}}));
  EXPECT_EQ(groups_in(found.at("duplicates")), (groups{{4, 5}}));
  EXPECT_TRUE(found.at("other_fields").empty());
  EXPECT_EQ(found.at("exclude"), json({2, 3, 5}));
}

TEST(check, a_row_is_in_both_sets_with_other_columns_and_is_not_left_out) {
  const temporary_directory directory;
  const std::string train =
      write_file(directory.path() / "train.jsonl",
                 "{\"text\":\"a\",\"y\":0}\n{\"text\":\"b\",\"y\":1}\n{\"text\":\"c\",\"y\":2}\n");
  const std::string val = write_file(directory.path() / "val.jsonl",
                                     "{\"text\":\"a\",\"y\":7}\n{\"text\":\"b\",\"y\":0}\n{\"text\":\"b\",\"y\":1}\n");
  const std::string ids = (directory.path() / "ids").string();
  const json found = checked({train, "--against", val, "--ids", ids}, 1);
  const json& same = found.at("against").at("same");
  ASSERT_EQ(same.size(), 2U) << same;
  EXPECT_EQ(same[0].at("of"), 0);
  EXPECT_EQ(same[0].at("other_columns"), true);
  EXPECT_EQ(same[1].at("of"), 2) << "the one that is the same in all";
  EXPECT_EQ(same[1].at("other_columns"), false);
  EXPECT_EQ(found.at("exclude"), json({1}));
  EXPECT_THAT(text_of(ids), HasSubstr("\n# 0  # "));
}

TEST(check, a_picture_with_another_caption_is_no_duplicate) {
  const temporary_directory directory;
  tar_writer tar;
  const auto add = [&](const std::string& key, std::uint64_t seed, const std::string& caption) {
    tar.add_file(key + ".jpg", photo(seed));
    tar.add_file(key + ".txt", caption);
  };
  for (int i = 0; i < 20; ++i) add("a" + std::to_string(100 + i), 1, "caption " + std::to_string(i));
  add("b0", 2, "two");
  add("b1", 2, "two");
  add("b2", 2, "deux");
  add("c0", 3, "three");
  const std::vector<std::byte> bytes = tar.finish();
  const std::string shard =
      write_file(directory.path() / "a.tar", {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  const json found = checked({shard}, 0);
  EXPECT_EQ(groups_in(found.at("duplicates")), (groups{{20, 21}}));
  const groups others = groups_in(found.at("other_fields"));
  ASSERT_EQ(others.size(), 2U);
  EXPECT_EQ(others[0].size(), 20U);
  EXPECT_EQ(others[1], (std::vector<std::uint64_t>{20, 22}));
  EXPECT_TRUE(found.at("two_labels").empty());
  EXPECT_EQ(found.at("exclude"), json({21}));
  EXPECT_THAT(run({"check", shard}).out, HasSubstr("2 pictures with several, in 22 samples"));
}

TEST(check, names_rows_of_arrays_that_hold_a_NaN) {
  const temporary_directory directory;
  std::vector<float> values = counting<float>(40);
  values[13] = std::numeric_limits<float>::quiet_NaN();
  values[39] = std::numeric_limits<float>::infinity();
  const std::string path = write_file(directory.path() / "x.npy", npy_text(npy_dict("<f4", "10, 4"), bytes_of(values)));
  const json broken = checked({path}, 1).at("broken");
  ASSERT_EQ(broken.size(), 2U);
  EXPECT_EQ(broken[0].at("sample"), 3);
  EXPECT_EQ(broken[1].at("sample"), 9);
  EXPECT_EQ(broken[0].at("kind"), "not finite");
}

// A table of 40 rows.
std::string table_with(const std::function<std::string(int)>& row) {
  std::string text = "id,same,score,cls,text\n";
  for (int i = 0; i < 40; ++i) text += row(i) + "\n";
  return text;
}

TEST(check, names_columns_that_say_nothing) {
  const temporary_directory directory;
  const std::string path = write_file(directory.path() / "t.csv", table_with([](int i) {
                                        return std::to_string(i) + ",7," +
                                               (i % 4 == 0 ? "" : std::to_string(i) + ".5") + "," +
                                               std::to_string(i % 2) + ",text " + std::to_string(i);
                                      }));
  const ended process = run({"check", path, "--columns", "id,same,score,cls", "--json", "-"});
  EXPECT_EQ(process.exit_code, 0) << process.err;
  std::map<std::string, json> numbers;
  const json found = process.json();
  for (const json& each : found.at("numbers")) numbers[each.at("name")] = each;
  ASSERT_EQ(numbers.size(), 4U);
  EXPECT_EQ(numbers["same"].at("constant"), true);
  EXPECT_EQ(numbers["same"].at("least"), 7);
  EXPECT_EQ(numbers["id"].at("constant"), false);
  EXPECT_EQ(numbers["id"].at("mean"), 19.5);
  EXPECT_DOUBLE_EQ(numbers["id"].at("deviation").get<double>(), std::sqrt((40.0 * 40 - 1) / 12));
  EXPECT_EQ(numbers["score"].at("samples").get<int>() - numbers["score"].at("not_a_number").get<int>(), 30);
  EXPECT_EQ(numbers["score"].at("least"), 1.5);
  EXPECT_EQ(numbers["score"].at("largest"), 39.5);
  EXPECT_THAT(process.err, HasSubstr("same: 7"));
}

TEST(check, names_arrays_of_one_number) {
  const temporary_directory directory;
  const std::string path = write_file(directory.path() / "x.npy",
                                      npy_text(npy_dict("<f4", "10, 4"), bytes_of(std::vector<float>(40, 2.5F))));
  const json numbers = run({"check", path, "--json", "-"}).json().at("numbers");
  ASSERT_EQ(numbers.size(), 1U);
  EXPECT_EQ(numbers[0].at("array"), true);
  EXPECT_EQ(numbers[0].at("constant"), true);
  EXPECT_EQ(numbers[0].at("least"), 2.5);
}

TEST(check, names_the_first_token_that_no_vocabulary_has) {
  const temporary_directory directory;
  std::vector<std::uint16_t> tokens(1000, 3);
  tokens[700] = 50'257;
  const std::string path = write_file(directory.path() / "t.bin", bytes_of(tokens));
  EXPECT_EQ(checked({path, "--token-type", "u16", "--vocabulary", "50258"}, 0).at("broken").size(), 0U);
  const json broken = checked({path, "--token-type", "u16", "--vocabulary", "50257"}, 1).at("broken");
  ASSERT_EQ(broken.size(), 1U);
  EXPECT_EQ(broken[0].at("kind"), "not in vocabulary");
  EXPECT_EQ(broken[0].at("reason"), "token 50257 at place 700; the vocabulary has 50257");
  const std::string lists = write_file(directory.path() / "t.jsonl", "{\"ids\":[1,70000]}\n{\"ids\":[2]}\n");
  const ended other = run({"check", lists, "--vocabulary", "50257"});
  EXPECT_EQ(other.exit_code, 2);
  EXPECT_THAT(other.err, HasSubstr("--vocabulary is of tokens, and the source has none, but ids"));
}

TEST(check, measures_how_far_a_set_has_drifted_from_a_baseline) {
  const temporary_directory directory;
  const auto table = [&](const std::string& name, double shift, const std::string& third) {
    return write_file(directory.path() / name / "t.csv", table_with([&](int i) {
                        return std::to_string(i) + ",7," + std::to_string(i + shift) + "," +
                               (i % 10 == 0  ? third
                                : i % 2 == 0 ? "cat"
                                             : "dog") +
                               ",text " + std::to_string(i);
                      }));
  };
  const std::string baseline = (directory.path() / "before.json").string();
  const auto check = [&](const std::string& source, const std::vector<std::string>& more) {
    std::vector<std::string> all{"check", source, "--columns", "score,cls"};
    all.insert(all.end(), more.begin(), more.end());
    return run(all);
  };
  const std::string before = table("a", 0, "cat");
  ASSERT_EQ(check(before, {"--json", baseline}).exit_code, 0);
  const ended same = check(before, {"--baseline", baseline, "--json", "-"});
  EXPECT_EQ(same.exit_code, 0) << same.err;
  const json unchanged = same.json();
  for (const json& each : unchanged.at("baseline").at("effects")) {
    EXPECT_EQ(each.at("effect"), 0) << each;
    EXPECT_EQ(each.at("size"), "none");
  }
  EXPECT_THAT(same.err, HasSubstr("nothing has drifted"));

  // Half a deviation, which is 11.54.
  const json half = check(table("b", 5.77, "cat"), {"--baseline", baseline, "--json", "-"}).json().at("baseline");
  EXPECT_EQ(half.at("wrong"), false);
  EXPECT_EQ(half.at("effects")[0].at("of"), "column score");
  EXPECT_EQ(half["effects"][0].at("measure"), "d");
  EXPECT_NEAR(half["effects"][0].at("effect").get<double>(), 0.5, 0.001);

  const ended other = check(table("c", 0, "horse"), {"--baseline", baseline, "--json", "-"});
  EXPECT_EQ(other.exit_code, 1) << "a class is new";
  EXPECT_EQ(other.json().at("baseline").at("new_classes"), json({"horse"}));
  EXPECT_THAT(other.err, HasSubstr("new classes"));
}

TEST(check, says_that_a_set_has_no_pictures_any_more) {
  const auto report = [](int pictures) {
    const std::vector<std::array<int, 2>> one{{8, 1}};
    return nlohmann::ordered_json{{"samples", 1},
                                  {"bytes", {{"histogram", one}}},
                                  {"pictures",
                                   {{"samples", pictures},
                                    {"width", {{"histogram", one}}},
                                    {"height", {{"histogram", one}}},
                                    {"mean", {0.5, 0.5, 0.5}},
                                    {"deviation", {0.2, 0.2, 0.2}}}},
                                  {"numbers", nlohmann::ordered_json::array()},
                                  {"classes", nlohmann::ordered_json::array()}};
  };
  EXPECT_EQ(tools::drift_between(report(1), report(0)).missing_columns, std::vector<std::string>{"pictures"});
  EXPECT_FALSE(tools::drift_between(report(0), report(1)).is_wrong());
  EXPECT_FALSE(tools::drift_between(report(1), report(1)).is_wrong());
}

TEST(check, takes_its_own_report_of_numbers_whose_squares_are_none_for_a_baseline) {
  const temporary_directory directory;
  const std::string path =
      write_file(directory.path() / "t.jsonl", "{\"text\":\"a\",\"v\":1e200}\n{\"text\":\"b\",\"v\":-1e200}\n");
  const std::string baseline = (directory.path() / "before.json").string();
  ASSERT_EQ(run({"check", path, "--columns", "v", "--json", baseline}).exit_code, 0);
  const ended again = run({"check", path, "--columns", "v", "--baseline", baseline});
  EXPECT_EQ(again.exit_code, 0) << again.err;
}

TEST(check, effects_are_those_of_the_literature) {
  const auto report = [](const nlohmann::ordered_json& histogram, int cats, int dogs) {
    return nlohmann::ordered_json{
        {"samples", 10},
        {"bytes", {{"histogram", histogram}}},
        {"pictures", {{"samples", 0}}},
        {"numbers", nlohmann::ordered_json::array()},
        {"classes", {{{"name", "cat"}, {"samples", cats}}, {{"name", "dog"}, {"samples", dogs}}}}};
  };
  using pairs = std::vector<std::array<int, 2>>;
  // Of the 9 pairs of {1, 2, 3} and {2, 3, 4} six are larger now and one is smaller.
  const tools::check_drift drift =
      tools::drift_between(report(pairs{{1, 1}, {2, 1}, {3, 1}}, 5, 5), report(pairs{{2, 1}, {3, 1}, {4, 1}}, 1, 3));
  ASSERT_EQ(drift.effects.size(), 3U);
  EXPECT_EQ(drift.effects[0].of, "bytes");
  EXPECT_DOUBLE_EQ(drift.effects[0].effect, 5.0 / 9);
  EXPECT_EQ(drift.effects[0].size, "large");
  // Shares of 0.5 and 0.25: 2 asin(sqrt(0.5)) - 2 asin(sqrt(0.25)) is a sixth of pi.
  EXPECT_EQ(drift.effects[1].of, "class cat");
  EXPECT_NEAR(drift.effects[1].effect, -std::acos(-1.0) / 6, 1e-12);
  EXPECT_EQ(drift.effects[1].size, "medium");
  EXPECT_NEAR(drift.effects[2].effect, std::acos(-1.0) / 6, 1e-12);
}

TEST(check, refuses_a_baseline_that_is_none) {
  const sound_set set;
  const auto refused = [&](const std::string& content, const std::string& words) {
    const std::string path = write_file(fs::path(set.beside("baseline")), content);
    const ended process = run({"check", set.path().string(), "--baseline", path});
    EXPECT_EQ(process.exit_code, 2) << process.err;
    EXPECT_THAT(process.err, HasSubstr(words));
    expect_one_line(process, "leat check: --baseline ");
  };
  refused("", "line 1, column 1");
  refused("{}", "is no report of leat check --json: it has no 'samples'");
  refused("[1, 2]", "is no report of leat check --json");
  refused(R"({"samples": 1, "bytes": {"least": 3}})", "it has no histograms");
  refused(R"({"samples": 1, "bytes": {"histogram": [[1]]}})", "pairs of numbers");
  refused(R"({"samples": "x"})", "'samples' is no number");
  refused(std::string(100'000, '['), "deep");
}

TEST(check, writes_a_page_that_shows_the_worst_of_each_kind) {
  const sound_set set;
  set.add("a", "cut.jpg", photo(200).substr(0, 1200));
  set.add("a", "<script>alert(1)</script> & \"x\".jpg", "hello");
  set.add("a", "twice.jpg", photo(100));
  set.add("b", "other class.jpg", photo(101));
  set.add("b", "written anew.jpg", photo_written_anew(105));
  set.add("b", "grey.png", grey_picture());
  const std::string path = set.beside("check.html");
  EXPECT_EQ(run({"check", set.path().string(), "-o", path}).exit_code, 1);
  const std::string page = text_of(path);
  EXPECT_EQ(wrong_with_xml(page), "");
  EXPECT_LT(page.size(), 300'000U);
  EXPECT_THAT(page, AllOf(HasSubstr("Broken: 2"), HasSubstr("Two labels: 1"), HasSubstr("Duplicates: 1"),
                          HasSubstr("Look alike: 1"), HasSubstr("One colour: 1"), HasSubstr("Smallest pictures"),
                          HasSubstr("&lt;script&gt;alert(1)"), HasSubstr("data:image/jpeg;base64,"),
                          HasSubstr("prefers-color-scheme: dark")));
  EXPECT_THAT(page, AllOf(Not(HasSubstr("http:")), Not(HasSubstr("https:"))));
}

// All between two texts that stand once.
std::string between(const std::string& page, const std::string& begin, const std::string& end) {
  const std::size_t at = page.find(begin);
  EXPECT_EQ(page.find(begin, at + 1), std::string::npos) << begin;
  const std::size_t from = at + begin.size();
  return page.substr(from, page.find(end, from) - from);
}

TEST(check, a_page_is_searched_by_a_script_that_is_the_only_one_whatever_names_say) {
  const sound_set set;
  const char* const hostile[] = {"<",
                                 "script>alert(1)</script>",
                                 "\"><img src=x onerror=alert(1)>",
                                 "' onload='alert(1)",
                                 "]]><!--",
                                 "&lt;script&gt;",
                                 "\xED\xA0\x80",  // half of a character of UTF-16
                                 "\xEF\xBF\xBF",
                                 "${alert(1)}"};
  for (const char* const name : hostile) {
    std::string safe(name);
    std::replace(safe.begin(), safe.end(), '/', '\\');
    set.add(safe, safe + ".jpg", "hello");
  }
  set.add("a", "twice.jpg", photo(100));
  const std::string path = set.beside("check.html");
  EXPECT_EQ(run({"check", set.path().string(), "-o", path}).exit_code, 1);
  const std::string page = text_of(path);
  EXPECT_EQ(wrong_with_xml(page), "");
  const std::string script = between(page, "<script>", "</script>");
  for (const char* const never : {"<", "&", "innerHTML", "eval", "alert"}) EXPECT_THAT(script, Not(HasSubstr(never)));
  sha256_hasher hash;
  hash.add(script);
  const sha256 sum = hash.finish();
  EXPECT_EQ(between(page, "script-src 'sha256-", "'"),
            absl::Base64Escape(absl::string_view(reinterpret_cast<const char*>(sum.data()), sum.size())));
  EXPECT_THAT(page, AllOf(HasSubstr("content=\"default-src 'none'; img-src data:; "), Not(HasSubstr("<img src=x")),
                          Not(HasSubstr("<!--"))));
  // Without the script the search is not there, and all that it finds is.
  EXPECT_THAT(page, HasSubstr("<p class=\"find\" hidden=\"hidden\">"));
  EXPECT_THAT(page, AllOf(HasSubstr("<td>Broken</td>"), HasSubstr("<td>Duplicates</td>"), HasSubstr("a/twice.jpg</td>"),
                          HasSubstr("&quot;&gt;&lt;img src=x onerror=alert(1)&gt;.jpg</td>")));
}

TEST(check, a_page_is_bounded_however_much_is_wrong) {
  const temporary_directory directory;
  // 300 classes of names that are all escaped, and as many broken files.
  for (int i = 0; i < 300; ++i) {
    std::string cls = std::to_string(i) + std::string(180, '&');
    write_file(directory.path() / "set" / cls / (std::string(180, '<') + std::to_string(i % 7) + ".jpg"),
               i % 3 == 0 ? std::string("broken") : photo(static_cast<std::uint64_t>(i / 2)));
  }
  const std::string path = (directory.path() / "check.html").string();
  EXPECT_EQ(run({"check", (directory.path() / "set").string(), "-o", path}).exit_code, 1);
  const std::string page = text_of(path);
  EXPECT_EQ(wrong_with_xml(page), "");
  EXPECT_LT(page.size(), 300'000U);
  EXPECT_THAT(page, HasSubstr("data:image/jpeg;base64,"));
}

TEST(check, the_summary_is_short_and_shows_no_name_as_it_is) {
  const sound_set set;
  set.add("a", "bad\n\x1b[31m.jpg", "hello");
  set.add("a", "twice.jpg", photo(100));
  const ended process = run({"check", set.path().string()});
  EXPECT_EQ(process.exit_code, 1) << process.err;
  EXPECT_LE(lines_of(process.out).size(), 22U) << process.out;
  EXPECT_THAT(process.out, AllOf(HasSubstr("bad\\n\\x1b[31m.jpg"), HasSubstr("1 unknown format"), HasSubstr("a/twice"),
                                 HasSubstr(".normalize({{"), Not(HasSubstr("\x1b"))));
}

TEST(check, writes_the_samples_to_leave_out_with_their_reasons) {
  const sound_set set;
  set.add("a", "bad\n.jpg", "hello");
  set.add("b", "written anew.jpg", photo_written_anew(105));
  const std::string path = set.beside("ids");
  EXPECT_EQ(run({"check", set.path().string(), "--ids", path}).exit_code, 1);
  const std::vector<std::string> lines = lines_of(text_of(path));
  ASSERT_EQ(lines.size(), 6U) << text_of(path);
  EXPECT_THAT(lines[0], HasSubstr("# "));
  EXPECT_THAT(lines[1], HasSubstr("# leat dataset: 10 samples, "));
  EXPECT_THAT(lines[2], AllOf(HasSubstr("4  # a/bad\\n.jpg: "), HasSubstr("unknown format")));
  EXPECT_THAT(lines[4], HasSubstr("# 9  # b/written anew.jpg: resembles sample 6"));
  EXPECT_THAT(lines[5], HasSubstr("# Written by leat check, which replaces it as long as it is not edited: "));
  EXPECT_EQ(run({"check", set.path().string(), "--ids", path}).exit_code, 1) << "it is replaced";
  const std::string edited = text_of(path).replace(text_of(path).find("# 9"), 2, "");
  write_file(path, edited);
  const ended refused = run({"check", set.path().string(), "--ids", path});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.err,
              HasSubstr("--ids " + path + " would replace a list that is not as leat check has written it"));
  EXPECT_EQ(text_of(path), edited);
}

TEST(check, says_what_is_wrong_with_an_option) {
  const sound_set set;
  const std::string source = set.path().string();
  const auto refused = [&](const std::vector<std::string>& more, int exit_code, const std::string& words) {
    std::vector<std::string> all{"check", source};
    all.insert(all.end(), more.begin(), more.end());
    const ended process = run(all);
    EXPECT_EQ(process.exit_code, exit_code) << process.err;
    EXPECT_THAT(process.err, HasSubstr(words));
    EXPECT_EQ(process.out, "");
    expect_one_line(process, "leat check: ");
  };
  refused({"--max-near", "11"}, 2, "--max-near");
  refused({"--max-near", "few"}, 2, "--max-near");
  refused({"--threads", "0"}, 2, "--threads");
  refused({"--json", "nowhere/at/all.json"}, 1, "nowhere");
  refused({"--ids", "nowhere/at/all"}, 1, "nowhere");
  refused({"--json", set.beside("x"), "--ids", set.beside("./x")}, 2, "--json and --ids name the same file");
  const fs::path here = fs::relative(set.beside(""));
  refused({"--json", (here / "x").string(), "--ids", "./" + (here / "x").string()}, 2, "name the same file");
  refused({"--json", "not_there.out", "--ids", "./not_there.out"}, 2, "--json and --ids name the same file");
  refused({"--host-bytes-max", "1KiB"}, 2, "--host-bytes-max of 1.00 KiB is too small");
  refused({"--json", "-", "--ids", "-"}, 2, "both write to standard output");
  refused({"--against", set.beside("not there")}, 2, "not there");
}

TEST(check, no_output_takes_the_place_of_a_sample) {
  const sound_set set;
  const std::string sample = (set.path() / "a" / "2.jpg").string();
  const std::string link = set.beside("link");
  const std::string other_name = (set.path().parent_path() / "." / "set" / "b" / ".." / "a" / "2.jpg").string();
  fs::create_symlink(sample, link);
  const auto refused = [&](const std::vector<std::string>& arguments, const std::string& words,
                           const std::string& why = "is one of the files that samples are read from") {
    const ended process = run(arguments);
    EXPECT_EQ(process.exit_code, 2) << process.err;
    EXPECT_THAT(process.err, AllOf(HasSubstr(words), HasSubstr(why)));
    EXPECT_EQ(text_of(sample), photo(102));
  };
  for (const std::string& each : {sample, link, other_name}) {
    for (const char* const option : {"--json", "--ids", "--out"}) {
      refused({"check", set.path().string(), option, each}, option + std::string(" "),
              "would replace a file that is no");
    }
  }
  refused({"epoch", set.path().string(), "--batch-size", "4", "--state", sample}, "--state");
  refused({"epoch", set.path().string(), "--journal", sample}, "journal", "would replace a file that is none");
  for (const char* const option : {"--batches", "--metrics", "--progress"}) {
    refused({"epoch", set.path().string(), "--batch-size", "4", option, sample}, option,
            "would replace a file that is no");
  }
  refused({"epoch", set.path().string(), "--trace", sample}, "--trace", "would replace a file that is no trace");
  // A sample that is of the kind that is written.
  const std::string lines = set.beside("lines.jsonl");
  write_file(lines, "{\"t_s\":1,\"seconds\":1,\"samples\":3}\n");
  const ended itself = run({"epoch", lines, "--progress", lines});
  EXPECT_EQ(itself.exit_code, 2);
  EXPECT_THAT(itself.err, AllOf(HasSubstr("--progress"), HasSubstr("is one of the files that samples are read from")));
}

TEST(check, a_sample_is_over_budget_where_a_loader_has_no_room_for_it) {
  const sound_set set;
  set.add("a", "large.jpg", photo(200));
  fs::resize_file(set.path() / "a" / "large.jpg", std::uintmax_t{20} << 20);
  EXPECT_TRUE(checked({set.path().string()}, 0).at("broken").empty());
  const json broken = checked({set.path().string(), "--host-bytes-max", "16MiB"}, 1).at("broken");
  EXPECT_THAT(names_in(broken), ElementsAre("a/large.jpg"));
  EXPECT_THAT(names_in(broken, "kind"), ElementsAre("over budget"));
  const ended epoch = run({"epoch", set.path().string(), "--batch-size", "1", "--size", "32", "--host-bytes-max",
                           "16MiB", "--on-corrupt", "skip", "--threads", "1"});
  EXPECT_EQ(epoch.exit_code, 0) << epoch.err;
  EXPECT_THAT(epoch.out, HasSubstr("1 over budget"));
  EXPECT_TRUE(checked({set.path().string(), "--host-bytes-max", "32MiB"}, 0).at("broken").empty());
}

// By batch and place: sample and digest.
std::map<std::pair<std::uint64_t, std::size_t>, std::pair<std::uint64_t, std::string>> rows_in(
    const std::string& path) {
  std::map<std::pair<std::uint64_t, std::size_t>, std::pair<std::uint64_t, std::string>> rows;
  for (const std::string& line : lines_of(text_of(path))) {
    const json batch = json::parse(line);
    for (std::size_t row = 0; row < batch.at("ids").size(); ++row) {
      rows[{batch.at("batch"), row}] = {batch["ids"][row], batch.at("rows")[row]};
    }
  }
  return rows;
}

TEST(check, what_it_found_is_left_out_of_a_run_whose_other_rows_keep_their_bytes) {
  const sound_set set;
  set.add("a", "twice.jpg", photo(100));
  set.add("b", "other class.jpg", photo(101));
  const std::string ids = set.beside("ids");
  const json found = checked({set.path().string(), "--ids", ids}, 1);
  const std::vector<std::uint64_t> out = found.at("exclude");
  ASSERT_EQ(out.size(), 3U);
  const auto epoch = [&](const std::string& lines, const std::vector<std::string>& more) {
    std::vector<std::string> all{"epoch",        set.path().string(), "--batch-size", "4",         "--size", "32",
                                 "--on-corrupt", "substitute",        "--rows",       "--batches", lines};
    all.insert(all.end(), more.begin(), more.end());
    const ended process = run(all);
    EXPECT_EQ(process.exit_code, 0) << process.err;
    return process.out;
  };
  epoch(set.beside("whole"), {});
  EXPECT_THAT(epoch(set.beside("left"), {"--exclude", ids}), HasSubstr("3 excluded"));
  const auto whole = rows_in(set.beside("whole"));
  const auto left = rows_in(set.beside("left"));
  ASSERT_EQ(whole.size(), 10U);
  ASSERT_EQ(left.size(), whole.size());
  for (const auto& [place, row] : whole) {
    EXPECT_EQ(std::count(out.begin(), out.end(), left.at(place).first), 0);
    if (std::count(out.begin(), out.end(), row.first) == 0) EXPECT_EQ(left.at(place), row);
  }
}

TEST(check, an_epoch_says_what_is_wrong_with_a_list_of_samples) {
  const sound_set set;
  const auto refused = [&](const std::string& list, const std::string& policy, const std::string& words) {
    const ended process = run({"epoch", set.path().string(), "--exclude", list, "--on-corrupt", policy});
    EXPECT_EQ(process.exit_code, 2) << process.err;
    EXPECT_THAT(process.err, HasSubstr(words));
    expect_one_line(process, "leat epoch: ");
  };
  const std::string list = set.beside("list");
  write_file(list, "# all is well\n 1 # here\n\nseven\n");
  refused(list, "skip", "line 4: 'seven' is no number of a sample");
  write_file(list,
             "\xEF\xBB\xBF"
             "8\n");
  refused(list, "skip", "line 1: there is no sample 8; the source has 8 samples");
  refused("/dev/zero", "skip", "line 1: is longer than 1.00 MiB");
  refused(list, "raise", "--on-corrupt raise ends the run at the first");
  write_file(list, "0\n1\n2\n3\n4\n5\n6\n7\n");
  refused(list, "substitute", "all 8 samples");
  refused(set.beside("not there"), "skip", "cannot read it");
  refused(set.path().string(), "skip", "cannot read it");
}

TEST(check, a_list_is_refused_for_another_dataset_and_taken_without_its_line) {
  const sound_set set;
  set.add("a", "twice.jpg", photo(100));
  const std::string ids = set.beside("ids");
  EXPECT_EQ(run({"check", set.path().string(), "--ids", ids}).exit_code, 0);
  const auto epoch = [&](const std::vector<std::string>& more = {}) {
    std::vector<std::string> all{"epoch", set.path().string(), "--exclude", ids, "--batch-size",
                                 "4",     "--on-corrupt",      "substitute"};
    all.insert(all.end(), more.begin(), more.end());
    return run(all);
  };
  ended process = epoch();
  EXPECT_EQ(process.exit_code, 0) << process.err;
  EXPECT_THAT(process.out, HasSubstr("1 excluded"));
  EXPECT_EQ(epoch({"--order", "balanced:cls"}).exit_code, 0) << "a column for the order is no other dataset";

  const auto refused = [&](const std::string& words) {
    process = epoch();
    EXPECT_EQ(process.exit_code, 2) << process.err;
    EXPECT_THAT(process.err, AllOf(HasSubstr("line 2: "), HasSubstr(words), HasSubstr("make it anew")));
    expect_one_line(process, "leat epoch: ");
  };
  fs::remove(set.path() / "a" / "0.jpg");
  refused("was made of a dataset of 9 samples, and the source has 8");
  set.add("a", "00.jpg", photo(321));  // as many, and others
  refused("was made of another dataset, ");
  const std::string text = text_of(ids);
  const std::size_t line = text.find("# leat dataset: ");
  write_file(ids, text.substr(0, line) + "# leat dataset: mine\n" + text.substr(text.find('\n', line) + 1));
  refused("says of no dataset");
  write_file(ids, text.substr(0, line) + text.substr(text.find('\n', line) + 1));
  process = epoch();
  EXPECT_EQ(process.exit_code, 0) << process.err;
  EXPECT_THAT(process.out, HasSubstr("1 excluded"));
}

}  // namespace
}  // namespace leat::testing
