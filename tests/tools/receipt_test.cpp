// leat epoch --receipts, and leat receipt: what was in a run, what was not, and proofs that are checked without the file.
#include "stages/state/receipts.hpp"
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
using ::testing::Not;

/// A run of two epochs over twelve photographs, and where its files are.
class receipt_of_photos {
 public:
  [[nodiscard]] std::string file(const std::string& name) const { return (directory_.path() / name).string(); }
  [[nodiscard]] std::string receipt() const { return file("run.receipt"); }
  [[nodiscard]] ended epoch(const std::vector<std::string>& more = {}) const {
    std::vector<std::string> all{"epoch", photos_.path().string(), "--size", "32",    "--seed", "4", "--epochs",
                                 "2",     "--batch-size",          "5",      "--json"};
    all.insert(all.end(), more.begin(), more.end());
    return run(all);
  }
  /// A run with all of its rows.
  void load() const {
    const ended process = epoch({"--receipts", receipt()});
    ASSERT_EQ(process.exit_code, 0) << process.err;
  }
  /// Those of the run.
  [[nodiscard]] std::vector<std::string> names() const {
    std::vector<std::string> all;
    for (const std::filesystem::path& each : photos_.files()) {
      all.push_back(each.lexically_relative(photos_.path()).string());
    }
    return all;
  }
  [[nodiscard]] json looked_up(const std::vector<std::string>& names) const {
    std::vector<std::string> all{"receipt", receipt(), "--json"};
    all.insert(all.end(), names.begin(), names.end());
    const ended process = run(all);
    EXPECT_EQ(process.exit_code, 0) << process.err;
    return process.json();
  }

 private:
  photo_folder photos_;
  temporary_directory directory_;
};

std::string refusal_of(const ended& process, int exit_code) {
  EXPECT_EQ(process.exit_code, exit_code) << process.out;
  EXPECT_EQ(process.out, "");
  expect_one_line(process, "leat receipt: ");
  return process.err;
}

TEST(receipt_command, says_of_every_sample_that_it_was_in_the_run_and_of_others_that_they_were_not) {
  const receipt_of_photos photos;
  photos.load();
  std::vector<std::string> names = photos.names();
  ASSERT_EQ(names.size(), 12U);
  for (const char* other : {"no.jpg", "a", ""}) names.emplace_back(other);
  const json found = photos.looked_up(names);
  EXPECT_EQ(found.at("receipt").at("rows"), 24);
  EXPECT_EQ(found.at("receipt").at("ended"), true);
  EXPECT_EQ(found.at("receipt").at("seed"), 4);
  ASSERT_EQ(found.at("names").size(), names.size());
  for (std::size_t i = 0; i < names.size(); ++i) {
    const json& each = found.at("names").at(i);
    EXPECT_EQ(each.at("name"), names[i]);
    EXPECT_EQ(each.at("in"), i < 12) << names[i];
    EXPECT_EQ(each.at("times"), i < 12 ? 2 : 0) << names[i];
  }
  const ended shown = run({"receipt", photos.receipt(), names[0], "no.jpg"});
  EXPECT_THAT(shown.out, AllOf(HasSubstr("24 rows"), HasSubstr(found.at("root").get<std::string>()),
                               HasSubstr("in, 2 times     " + names[0]), HasSubstr("not in          no.jpg")));
}

TEST(receipt_command, takes_every_name_behind_dashes) {
  const receipt_of_photos photos;
  photos.load();
  const std::vector<std::string> names{"-x", "--json", "--", "-", photos.names().front()};
  std::vector<std::string> line{photos.names().back(), "--"};
  line.insert(line.end(), names.begin(), names.end());
  const json found = photos.looked_up(line);
  ASSERT_EQ(found.at("names").size(), 6U);
  for (std::size_t i = 0; i < names.size(); ++i) EXPECT_EQ(found.at("names").at(i + 1).at("name"), names[i]);
  EXPECT_EQ(found.at("names").at(5).at("times"), 2);
}

TEST(receipt_command, takes_names_from_a_file) {
  const receipt_of_photos photos;
  photos.load();
  const std::vector<std::string> names = photos.names();
  std::string lines = "\nno.jpg \xff\n";
  for (const std::string& each : names) lines += each + "\n";
  lines += "last";
  std::ofstream(photos.file("names")) << lines;
  const ended shown = run({"receipt", photos.receipt(), "first", "--names", photos.file("names")});
  EXPECT_EQ(shown.exit_code, 0) << shown.err;
  EXPECT_THAT(shown.out, AllOf(HasSubstr("not in          first"), HasSubstr("not in          last"),
                               HasSubstr("in, 2 times     " + names.back()), HasSubstr("12 of 15 names are in")));
  EXPECT_THAT(refusal_of(run({"receipt", photos.receipt(), "--names", photos.file("none")}), 2), HasSubstr("none"));
  std::ofstream(photos.file("of-windows")) << names.front() << "\r\n";
  EXPECT_THAT(refusal_of(run({"receipt", photos.receipt(), "--names", photos.file("of-windows")}), 2),
              HasSubstr("carriage return"));
  std::ofstream many(photos.file("many"));
  for (int i = 0; i <= 20'000; ++i) many << i << "\n";
  many.close();
  EXPECT_THAT(refusal_of(run({"receipt", photos.receipt(), "--names", photos.file("many"), "--proof", "p"}), 2),
              HasSubstr("at most 20,000 names"));
}

TEST(receipt_command, has_the_digests_that_batches_rows_has) {
  const receipt_of_photos photos;
  const ended process =
      photos.epoch({"--receipts", photos.receipt(), "--batches", photos.file("lines"), "--rows", "--no-shuffle"});
  ASSERT_EQ(process.exit_code, 0) << process.err;
  std::vector<std::string> expected;
  for (const std::string& line : lines_of(text_of(photos.file("lines")))) {
    const json batch = json::parse(line);
    for (const json& row : batch.at("rows")) expected.push_back(row.get<std::string>().substr(0, 8));
  }
  std::vector<std::string> seen;
  const json found = photos.looked_up(photos.names());
  for (const json& each : found.at("names")) {
    for (const json& row : each.at("digests")) seen.push_back(row.get<std::string>());
  }
  EXPECT_THAT(seen, ::testing::UnorderedElementsAreArray(expected));
}

TEST(receipt_command, writes_proofs_that_are_checked_without_the_receipt) {
  const receipt_of_photos photos;
  photos.load();
  const std::string name = photos.names().front();
  const std::string proof = photos.file("proof.json");
  const ended made = run({"receipt", photos.receipt(), name, "no.jpg", "bytes \xff", "--proof", proof, "--json"});
  ASSERT_EQ(made.exit_code, 0) << made.err;
  const std::string root = made.json().at("root");
  std::filesystem::remove(photos.receipt());

  const ended checked = run({"receipt", "--verify", proof, "--root", root, "--json"});
  ASSERT_EQ(checked.exit_code, 0) << checked.err;
  EXPECT_EQ(checked.json().at("verified"), true);
  EXPECT_EQ(checked.json().at("names"), made.json().at("names"));
  EXPECT_EQ(checked.json().at("receipt"), made.json().at("receipt"));
  std::string other = root;
  other[0] = other[0] == '0' ? '1' : '0';
  EXPECT_THAT(refusal_of(run({"receipt", "--verify", proof, "--root", other}), 1), HasSubstr("not of --root"));

  const json good = json::parse(text_of(proof));
  const auto said_of = [&](auto&& change) {
    json bad = good;
    change(bad);
    std::ofstream(photos.file("bad.json")) << bad.dump();
    return refusal_of(run({"receipt", "--verify", photos.file("bad.json"), "--root", root}), 1);
  };
  EXPECT_THAT(said_of([](json& bad) { bad["names"][0]["name"] = "no.jpg"; }), HasSubstr("rows prove 0"));
  EXPECT_THAT(said_of([&](json& bad) { bad["names"][1]["name"] = name; }), HasSubstr("rows prove 2"));
  EXPECT_THAT(said_of([](json& bad) { bad["names"][0]["times"] = 1; }), HasSubstr("it says 1 time"));
  EXPECT_THAT(said_of([](json& bad) { bad["run"]["seed"] = 5; }), HasSubstr("not of --root"));
  EXPECT_THAT(said_of([](json& bad) { bad["run"]["ended"] = false; }), HasSubstr("not of --root"));
  EXPECT_THAT(said_of([](json& bad) { bad["run"]["rows"] = 25; }), HasSubstr("does not hold"));
  EXPECT_THAT(said_of([](json& bad) { bad["names"][0]["rows"].erase(0); }), HasSubstr("does not hold"));
  EXPECT_THAT(said_of([](json& bad) { bad["names"][0]["rows"][0] = std::string(32, '0'); }),
              HasSubstr("not of --root"));
  EXPECT_THAT(said_of([](json& bad) { bad["names"][0]["rows"][0] = "zz"; }), HasSubstr("no hexadecimal number"));
  EXPECT_THAT(said_of([](json& bad) { bad["names"][0].erase("siblings"); }), HasSubstr("is missing"));
  EXPECT_THAT(said_of([](json& bad) { bad["names"] = json::array(); }), HasSubstr("proves nothing of any name"));
  EXPECT_THAT(said_of([](json& bad) { bad["leat_receipt_proof"] = 2; }), HasSubstr("version 2 of a proof"));
  EXPECT_THAT(said_of([](json& bad) { bad = json::array(); }), HasSubstr("is no proof"));
}

TEST(receipt_command, refuses_a_file_that_was_changed_or_cut) {
  const receipt_of_photos photos;
  photos.load();
  const std::string whole = text_of(photos.receipt());
  ASSERT_EQ(whole.size(), stages::receipt_head::bytes + 24 * sizeof(stages::receipt_row));
  const auto said_of = [&](const std::string& bytes) {
    std::ofstream(photos.receipt(), std::ios::binary) << bytes;
    return refusal_of(run({"receipt", photos.receipt()}), 1);
  };
  EXPECT_THAT(said_of(whole.substr(0, whole.size() - 16)), HasSubstr("has 23 rows of 24: it was cut"));
  EXPECT_THAT(said_of(whole.substr(0, 100)), HasSubstr("it was cut"));
  EXPECT_THAT(said_of(""), HasSubstr("is no receipt of a run"));
  std::string changed = whole;
  changed[200] = static_cast<char>(changed[200] ^ 1);
  EXPECT_THAT(said_of(changed), HasSubstr("damaged, or was changed"));
}

TEST(receipt_command, has_one_root_for_any_threads_and_a_resumed_run) {
  const receipt_of_photos photos;
  photos.load();
  const std::string whole = text_of(photos.receipt());
  const std::vector<std::string> same = {"--receipts", photos.receipt(), "--state", photos.file("state"), "--resume",
                                         "auto",       "--threads",      "1",       "--stop-after",       "2"};
  for (int part = 0; part < 4; ++part) ASSERT_EQ(photos.epoch(same).exit_code, 0);
  EXPECT_EQ(text_of(photos.receipt()), whole);
}

TEST(receipt_command, needs_digests_and_a_file_for_each_rank) {
  const receipt_of_photos photos;
  EXPECT_THAT(photos.epoch({"--receipts", photos.receipt(), "--digest", "off"}).err,
              HasSubstr("--digest off makes none"));
  EXPECT_THAT(photos.epoch({"--receipts", photos.receipt(), "--rank", "0", "--world", "2"}).err, HasSubstr("%r"));
  ASSERT_EQ(photos.epoch({"--receipts", photos.file("%r.receipt"), "--rank", "1", "--world", "2"}).exit_code, 0);
  const ended shown = run({"receipt", photos.file("1.receipt")});
  EXPECT_THAT(shown.out, HasSubstr("of rank 1 of 2, seed 4; the run has ended, after 2 epochs"));
}

TEST(receipt_command, says_what_is_missing_on_its_command_line) {
  EXPECT_THAT(refusal_of(run({"receipt"}), 2), HasSubstr("RUN.receipt is needed"));
  EXPECT_THAT(refusal_of(run({"receipt", "/none"}), 2), HasSubstr("/none"));
  EXPECT_THAT(refusal_of(run({"receipt", "--verify", "p"}), 2), HasSubstr("belong together"));
  EXPECT_THAT(refusal_of(run({"receipt", "--verify", "p", "--root", "5f"}), 2), HasSubstr("64 hexadecimal digits"));
  EXPECT_THAT(refusal_of(run({"receipt", "r", "--proof", "p"}), 2), HasSubstr("at least one NAME"));
  EXPECT_THAT(refusal_of(run({"receipt", "r", "--verify", "p", "--root", "5f"}), 2), HasSubstr("leave out"));
  EXPECT_THAT(run({"receipt", "--help"}).out, Not(HasSubstr("required")));
}

}  // namespace
}  // namespace leat::testing
