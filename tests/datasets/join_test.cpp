// join(): two datasets paired by a key.
#include "datasets/model/model.hpp"
#include "tests/support/failures.hpp"
#include "tests/support/temporary_directory.hpp"

#include <leat/description.hpp>
#include <leat/error.hpp>
#include <leat/join.hpp>
#include <leat/open_folder.hpp>
#include <leat/own_samples.hpp>
#include <leat/samples.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace leat {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::message_of;
using testing::temporary_directory;

void put(const fs::path& path) {
  fs::create_directories(path.parent_path());
  std::ofstream(path) << path.filename().string();
}

dataset folder(const fs::path& path) {
  return open_folder(path.string(), {.classes = folder_options::class_folders::no});
}

std::string value(const dataset& of, std::uint64_t sample, std::string_view field) {
  const std::vector<std::byte> bytes = of.read(sample, field);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Samples of one field each, whose value and name are texts.
dataset texts(const std::string& field, std::vector<std::string> names) {
  const auto made = [names](std::uint64_t i) {
    const auto* const begin = reinterpret_cast<const std::byte*>(names[i].data());
    return std::vector<std::byte>(begin, begin + names[i].size());
  };
  function_options options{.field = field, .bytes_max = 100};
  options.name = [names](std::uint64_t i) { return names[i]; };
  options.described_as = "texts";
  return from_function(names.size(), made, options);
}

const join_options as_mask{.rename = {{"jpg", "mask"}}};

TEST(join, of_two_folders_pairs_files_of_one_stem_in_the_order_of_the_left_one) {
  const temporary_directory root;
  for (const char* const each : {"images/c.jpg", "images/a.jpg", "images/in/b.jpeg", "images/x.jpg", "masks/b.png",
                                 "masks/deep/a.png", "masks/y.png", "masks/c.png"}) {
    put(root.path() / each);
  }
  const dataset both = join(folder(root.path() / "images"), folder(root.path() / "masks"), by_stem(), as_mask);
  ASSERT_EQ(both.size(), 3U);
  EXPECT_EQ(both.name(0), "a.jpg");
  EXPECT_EQ(value(both, 0, "jpg"), "a.jpg");
  EXPECT_EQ(value(both, 0, "mask"), "a.png");
  EXPECT_EQ(value(both, 1, "mask"), "c.png");
  EXPECT_EQ(value(both, 2, "jpg"), "b.jpeg");
  EXPECT_EQ(value(both, 2, "mask"), "b.png");
  EXPECT_THAT(both.notes(), ElementsAre("join: 1 of 4 samples of the left side without a partner: x.jpg",
                                        "join: 1 of 4 samples of the right side without a partner: y.png"));
}

TEST(join, keeps_what_has_no_partner_as_corrupt_samples_where_it_is_asked_to) {
  const dataset both =
      join(texts("a", {"1", "2", "3"}), texts("b", {"3", "1"}), by_stem(), {.missing = without_partner::corrupt});
  ASSERT_EQ(both.size(), 3U);
  EXPECT_EQ(both.model()->defects(), 1U);
  ASSERT_TRUE(both.model()->defect_of(1));
  EXPECT_EQ(both.model()->defect_of(1)->kind, corrupt_kinds::incomplete);
  EXPECT_FALSE(both.model()->defect_of(0) || both.model()->defect_of(2));
  EXPECT_EQ(value(both, 2, "b"), "3");

  const dataset with_columns =
      join(texts("a", {"1", "2", "3"}).with_column("left", {1, 2, 3}),
           texts("b", {"3", "1"}).with_column("right", {30, 10}), by_stem(), {.missing = without_partner::corrupt});
  EXPECT_EQ(with_columns.column(1, "left"), 2);
  EXPECT_EQ(with_columns.column(1, "right"), std::nullopt) << "another sample's number";
  EXPECT_EQ(with_columns.column(0, "right"), 10);
  EXPECT_EQ(with_columns.column(2, "right"), 30);
}

TEST(join, by_columns_fields_and_names_pairs_their_values) {
  const dataset left = texts("a", {"x", "y", "z"}).with_column("id", {30, 10, 20});
  const dataset right = texts("b", {"p", "q", "r"}).with_column("image_id", {10, 20, 40});
  const dataset by_columns = join(left, right, by("id", "image_id"));
  ASSERT_EQ(by_columns.size(), 2U);
  EXPECT_EQ(value(by_columns, 0, "a"), "y");
  EXPECT_EQ(value(by_columns, 0, "b"), "p");
  EXPECT_EQ(value(by_columns, 1, "b"), "q");
  EXPECT_EQ(*by_columns.column(1, "image_id"), 20);

  const dataset of_fields =
      join(texts("file", {"in/a.jpg\n", "in/b.jpg"}), texts("b", {"b.jpg", "in/a.jpg"}), by("file", "name"));
  ASSERT_EQ(of_fields.size(), 1U);
  EXPECT_EQ(value(of_fields, 0, "b"), "in/a.jpg");

  const dataset of_paths = join(texts("a", {"1/x.jpg", "2/x.jpg"}), texts("b", {"2/x.png", "1/x.png"}), by("path"));
  ASSERT_EQ(of_paths.size(), 2U);
  EXPECT_EQ(value(of_paths, 0, "b"), "1/x.png");
}

// As python's: pathlib.PurePath(name).stem.
TEST(join, takes_stems_as_pathlib_does) {
  const std::vector<std::pair<std::string, std::string>> stems = {{"a/b.seg.png", "b.seg"},
                                                                  {".hidden", ".hidden"},
                                                                  {"x/.hidden", ".hidden"},
                                                                  {"train-0.tar/n01/17", "17"},
                                                                  {"a.b/c", "c"}};
  for (const auto& [name, stem] : stems) {
    EXPECT_EQ(join(texts("a", {name}), texts("b", {stem}), by("stem", "name")).size(), 1U) << name;
  }
}

TEST(join, refuses_keys_that_come_twice_with_both_names) {
  const std::string message = message_of(errc::usage, [] {
    static_cast<void>(join(texts("a", {"1/x.jpg", "y.jpg", "2/x.jpg"}), texts("b", {"x", "y"}), by_stem()));
  });
  EXPECT_THAT(message, HasSubstr("two samples of the left side have the key 'x': 1/x.jpg and 2/x.jpg"));
  EXPECT_THAT(message_of(errc::usage,
                         [] { static_cast<void>(join(texts("a", {"y"}), texts("b", {"x", "y", "x"}), by_stem())); }),
              HasSubstr("two samples of the right side have the key 'x'"));
}

TEST(join, refuses_names_of_both_sides_and_keys_that_are_not_there) {
  const auto refusal = [](errc code, const dataset& left, const dataset& right, const join_key& key,
                          const join_options& options = {}) {
    return message_of(code, [&] { static_cast<void>(join(left, right, key, options)); });
  };
  const dataset one = texts("jpg", {"x"});
  EXPECT_THAT(refusal(errc::usage, one, one, by_stem()), HasSubstr("both sides have 'jpg'; join_options::rename"));
  EXPECT_THAT(refusal(errc::usage, one, texts("b", {"x"}), by("jgp")), HasSubstr("did you mean 'jpg'"));
  EXPECT_THAT(refusal(errc::usage, one, one, by_stem(), {.rename = {{"png", "mask"}}}), HasSubstr("no field 'png'"));
  EXPECT_THAT(refusal(errc::usage, one, one, by_stem(), {.rename = {{"jpg", "jpg"}}}), HasSubstr("another field"));
  EXPECT_THAT(refusal(errc::not_found, one, texts("b", {"x_mask"}), by_stem()),
              HasSubstr("no sample has a partner: by stem the first of the left side is 'x', and by stem that of the "
                        "right side 'x_mask'"));
  EXPECT_THAT(refusal(errc::not_found, one, one.slice(0, 0), by_stem(), as_mask),
              HasSubstr("the right side has no sample"));
}

// What a saved run is resumed by.
TEST(join, is_described_by_both_sides_and_by_what_was_paired) {
  const auto words = [](const dataset& of) {
    description out;
    of.model()->describe(out);
    std::string text;
    for (const description::entry& each : out.entries()) text += each.key + "=" + each.value + "\n";
    return text;
  };
  const dataset left = texts("a", {"1", "2", "3"});
  const dataset right = texts("b", {"3", "2", "1"});
  const std::string all = words(join(left, right, by_stem()));
  EXPECT_EQ(all, words(join(left, right, by_stem())));
  EXPECT_NE(all, words(join(left, right.subset({0, 1}), by_stem())));
  EXPECT_NE(all, words(join(left, right.subset({2, 1, 0}), by_stem())));
  EXPECT_NE(all, words(join(left, right, by_stem(), {.rename = {{"b", "c"}}})));
}

// Against a plain nested loop, in any order and with gaps.
TEST(join, pairs_what_a_nested_loop_pairs) {
  std::mt19937_64 random(7);
  for (int round = 0; round < 20; ++round) {
    const auto some = [&] {
      std::vector<std::string> names;
      for (int i = 0; i < 400; ++i) {
        if (random() % 3 != 0) names.push_back("n/" + std::to_string(i) + (random() % 2 == 0 ? ".a" : ".b"));
      }
      std::shuffle(names.begin(), names.end(), random);
      return names;
    };
    const std::vector<std::string> left = some();
    const std::vector<std::string> right = some();
    const auto stem = [](const std::string& name) { return fs::path(name).stem().string(); };
    std::vector<std::pair<std::string, std::string>> expected;
    for (const std::string& l : left) {
      for (const std::string& r : right) {
        if (stem(l) == stem(r)) expected.emplace_back(l, r);
      }
    }
    const dataset both = join(texts("a", left), texts("b", right), by_stem());
    std::vector<std::pair<std::string, std::string>> got;
    for (std::uint64_t i = 0; i < both.size(); ++i) got.emplace_back(value(both, i, "a"), value(both, i, "b"));
    ASSERT_EQ(got, expected);
  }
}

}  // namespace
}  // namespace leat
