// subset, slice, split and concat.
#include "datasets/files/sample_counts.hpp"
#include "datasets/model/model.hpp"
#include "datasets/model/sample_blocks.hpp"
#include "datasets/views/shuffle.hpp"
#include "tests/datasets/archive.hpp"
#include "tests/support/temporary_directory.hpp"

#include <leat/error.hpp>
#include <leat/open_folder.hpp>
#include <leat/open_tar.hpp>
#include <leat/own_samples.hpp>
#include <leat/samples.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <random>
#include <set>
#include <string>
#include <vector>

namespace leat {
namespace {

namespace fs = std::filesystem;
using testing::archive;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::temporary_directory;

// Samples named by their number, of as many bytes.
dataset numbers(std::uint64_t count) {
  return from_function(
      count, [](std::uint64_t i) { return std::vector<std::byte>(i); },
      {.field = "bytes", .bytes_max = count + 1, .name = [](std::uint64_t i) { return std::to_string(i); }});
}

std::vector<std::string> names(const dataset& of) {
  std::vector<std::string> all;
  for (std::uint64_t i = 0; i < of.size(); ++i) all.push_back(of.name(i));
  return all;
}

void put(const fs::path& path, const std::string& content) {
  fs::create_directories(path.parent_path());
  std::ofstream(path) << content;
}

dataset pets(const temporary_directory& root, const std::vector<std::string>& classes) {
  for (const std::string& name : classes) put(root.path() / name / (name + ".jpg"), name);
  return open_folder(root.path().string());
}

errc code_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const error& caught) {
    return caught.code();
  }
  ADD_FAILURE() << "nothing was thrown";
  return errc::io;
}

TEST(subset, is_these_samples_in_this_order) {
  const dataset some = numbers(10).subset({7, 0, 7, 3});
  EXPECT_THAT(names(some), ElementsAre("7", "0", "7", "3"));
  EXPECT_EQ(some.read(3).size(), 3U);
  EXPECT_THAT(names(some.subset({3, 0})), ElementsAre("3", "7"));
  EXPECT_EQ(some.subset({}).size(), 0U);
  EXPECT_EQ(code_of([] { static_cast<void>(numbers(10).subset({10})); }), errc::usage);
}

TEST(subset, a_slice_is_a_range) {
  EXPECT_THAT(names(numbers(10).slice(8, 2)), ElementsAre("8", "9"));
  EXPECT_EQ(numbers(10).slice(10, 0).size(), 0U);
  EXPECT_EQ(code_of([] { static_cast<void>(numbers(10).slice(8, 3)); }), errc::usage);
  EXPECT_EQ(code_of([] { static_cast<void>(numbers(10).slice(11, ~std::uint64_t{0})); }), errc::usage);
}

TEST(subset, knows_the_largest_of_its_own_samples) {
  const temporary_directory root;
  put(root.path() / "1.jpg", "1");
  put(root.path() / "2.jpg", "22");
  put(root.path() / "3.jpg", "333");
  const field_info field = open_folder(root.path().string()).subset({1, 0, 1}).fields()[0];
  EXPECT_EQ(field.bytes_max, 2U);
  EXPECT_EQ(field.bytes_total, 5U);
  EXPECT_EQ(field.samples, 3U);
}

TEST(subset, keeps_labels_classes_and_defects) {
  const temporary_directory root;
  put(root.path() / "a/1.jpg", "1");
  put(root.path() / "b/2.jpg", "2");
  fs::create_symlink("gone", root.path() / "b/3.jpg");
  const dataset some = open_folder(root.path().string()).subset({2, 0});
  EXPECT_EQ(some.label(0), 1);
  EXPECT_EQ(some.label(1), 0);
  EXPECT_THAT(some.classes(), ElementsAre("a", "b"));
  EXPECT_EQ(some.model()->defects(), 1U);
  EXPECT_TRUE(some.model()->defect_of(0));
}

TEST(split, parts_are_disjoint_whole_and_of_exact_size) {
  for (const std::uint64_t n : {0U, 1U, 2U, 9U, 10U, 1000U}) {
    for (const std::vector<double>& fractions :
         {std::vector<double>{0.8, 0.1, 0.1}, {0.9}, {1.0}, {}, {0.5, 0.5}, {1.0 / 3, 1.0 / 3, 1.0 / 3}, {0, 1}}) {
      const std::vector<dataset> parts = numbers(n).split(7, fractions);
      const double sum = std::accumulate(fractions.begin(), fractions.end(), 0.0);
      EXPECT_EQ(parts.size(), fractions.size() + (sum < 0.999 ? 1 : 0));
      std::multiset<std::string> all;
      double before = 0;
      for (std::size_t k = 0; k < parts.size(); ++k) {
        const double share = k < fractions.size() ? fractions[k] : 1 - sum;
        EXPECT_EQ(parts[k].size(), static_cast<std::uint64_t>(std::llround(static_cast<double>(n) * (before + share)) -
                                                              std::llround(static_cast<double>(n) * before)));
        before += share;
        const std::vector<std::string> here = names(parts[k]);
        EXPECT_TRUE(std::is_sorted(here.begin(), here.end(), [](const std::string& a, const std::string& b) {
          return std::stoull(a) < std::stoull(b);
        }));
        all.insert(here.begin(), here.end());
      }
      EXPECT_EQ(all.size(), n);
      EXPECT_EQ(std::set<std::string>(all.begin(), all.end()).size(), n);
    }
  }
}

TEST(split, is_the_same_for_the_same_seed_for_ever) {
  EXPECT_EQ(names(numbers(1000).split(7, {0.5})[0]), names(numbers(1000).split(7, {0.5})[0]));
  EXPECT_NE(names(numbers(1000).split(7, {0.5})[0]), names(numbers(1000).split(8, {0.5})[0]));
  // Never to change: a model is compared on the same split years later.
  EXPECT_THAT(names(numbers(20).split(7, {0.25})[0]), ElementsAre("0", "4", "5", "11", "16"));
  EXPECT_THAT(datasets::shuffled(8, 1, "split"), ElementsAre(4, 6, 2, 5, 0, 3, 7, 1));
}

TEST(split, refuses_fractions_that_cannot_be) {
  EXPECT_EQ(code_of([] { static_cast<void>(numbers(4).split(1, {0.8, 0.3})); }), errc::usage);
  EXPECT_EQ(code_of([] { static_cast<void>(numbers(4).split(1, {-0.1})); }), errc::usage);
  EXPECT_EQ(code_of([] { static_cast<void>(numbers(4).split(1, {std::nan("")})); }), errc::usage);
}

TEST(split, draws_every_place_alike) {
  // Over many seeds each sample is in the first half about as often: 400 draws of 1/2, five standard deviations.
  std::vector<int> times(20, 0);
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    const std::vector<std::uint64_t> order = datasets::shuffled(20, seed, "split");
    for (std::size_t i = 0; i < 10; ++i) ++times[order[i]];
  }
  for (const int each : times) EXPECT_NEAR(each, 200, 50);
}

TEST(concat, is_one_after_the_other) {
  const dataset both = concat({numbers(2), numbers(0), numbers(3)});
  EXPECT_THAT(names(both), ElementsAre("0", "1", "0", "1", "2"));
  EXPECT_EQ(both.read(4).size(), 2U);
  EXPECT_EQ(both.fields()[0].samples, 5U);
  EXPECT_EQ(code_of([] { static_cast<void>(concat(std::span<const dataset>())); }), errc::usage);
}

TEST(concat, equal_classes_keep_their_numbers_and_others_get_the_unions) {
  const temporary_directory one, two, three;
  const dataset a = pets(one, {"cat", "dog"});
  const dataset same = pets(two, {"cat", "dog"});
  const dataset other = pets(three, {"ant", "dog"});
  EXPECT_THAT(concat({a, same}).classes(), ElementsAre("cat", "dog"));
  EXPECT_EQ(concat({a, same}).label(3), 1);
  const dataset joined = concat({a, other});
  EXPECT_THAT(joined.classes(), ElementsAre("ant", "cat", "dog"));
  EXPECT_EQ(joined.label(0), 1);
  EXPECT_EQ(joined.label(1), 2);
  EXPECT_EQ(joined.label(2), 0);
  EXPECT_EQ(joined.label(3), 2);
}

TEST(concat, numbers_without_names_cannot_follow_a_new_numbering) {
  const temporary_directory one, two, shards;
  archive().file("x.jpg", "1").file("x.cls", "0").end().save(shards.path() / "s.tar");
  const dataset labelled = open_tar((shards.path() / "s.tar").string());
  const dataset a = pets(one, {"cat"});
  const dataset b = pets(two, {"dog"});
  EXPECT_EQ(concat({a, labelled}).size(), 2U);
  EXPECT_EQ(code_of([&] { static_cast<void>(concat({a, b, labelled})); }), errc::usage);
}

TEST(concat, fields_are_matched_by_name_and_sources_renumbered) {
  const temporary_directory root, shards;
  archive().file("x.json", "{}").file("x.jpg", "shard").end().save(shards.path() / "s.tar");
  const dataset folder = pets(root, {"cat"});
  const dataset tar = open_tar((shards.path() / "s.tar").string());
  const dataset both = concat({folder, tar, folder});
  EXPECT_EQ(both.model()->sources().size(), 2U);
  const std::vector<field_info> fields = both.fields();
  EXPECT_EQ(fields[0].name, "jpg");
  EXPECT_EQ(fields[0].samples, 3U);
  EXPECT_EQ(fields[1].name, "json");
  EXPECT_EQ(fields[2].name, "cls");
  EXPECT_EQ(fields[2].samples, 2U);
  EXPECT_EQ(both.subset({1, 2}).fields()[2].samples, 1U);
  const auto text = [&](std::uint64_t sample, std::string_view field) {
    const std::vector<std::byte> bytes = both.read(sample, field);
    return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  };
  EXPECT_EQ(text(0, "jpg"), "cat");
  EXPECT_EQ(text(1, "jpg"), "shard");
  EXPECT_EQ(text(1, "json"), "{}");
  EXPECT_EQ(text(2, "jpg"), "cat");
  EXPECT_EQ(both.label(0), 0);
  EXPECT_EQ(both.label(1), std::nullopt);
  datasets::part_list parts;
  const datasets::need json{.field = 1};
  both.model()->parts(1, {&json, 1}, parts);
  ASSERT_EQ(parts.size(), 1U);
  EXPECT_EQ(parts[0].where.source, 1U);
  EXPECT_EQ(parts[0].field, 1U);
  parts.clear();
  both.model()->parts(0, {&json, 1}, parts);
  EXPECT_TRUE(parts.empty());
}

TEST(concat, the_same_field_of_two_kinds_is_refused) {
  const temporary_directory root;
  const dataset folder = pets(root, {"cat"});
  const std::vector<std::uint8_t> numbers(4);
  const dataset rows = from_tensors(
      {{"jpg", tensor(dtype::u8, {1, 4}, {4, 1}, const_cast<std::uint8_t*>(numbers.data()), host)}}, nullptr);
  EXPECT_EQ(code_of([&] { static_cast<void>(concat({folder, rows})); }), errc::usage);
}

// --- columns -----------------------------------------------------------------------------------------------------------

TEST(with_fields, leaves_the_others_out) {
  const temporary_directory root;
  archive made;
  made.file("a.jpg", "picture of a").file("a.txt", "text of a").file("a.cls", "1");
  made.file("b.jpg", "picture of b").file("b.txt", "text of b").file("b.cls", "2");
  const dataset all = open_tar(made.end().save(root.path() / "s.tar")).with_column("weight", {5, 6});
  const std::vector<std::string> wanted = {"cls", "weight", "jpg"};
  const dataset some = concat({all, all}).with_fields(wanted).slice(1, 2);
  std::vector<std::string> found;
  for (const field_info& each : some.fields()) found.push_back(each.name);
  EXPECT_THAT(found, ElementsAre("cls", "jpg", "weight"));
  EXPECT_EQ(some.read(0, "jpg"), all.read(1, "jpg"));
  EXPECT_EQ(some.read(1, "cls"), all.read(0, "cls"));
  EXPECT_EQ(some.column(0, "weight"), 6);
  EXPECT_EQ(some.name(0), all.name(1));
  EXPECT_EQ(code_of([&] { static_cast<void>(some.read(0, "txt")); }), errc::not_found);
  datasets::part_list parts;
  some.model()->parts(0, parts);
  EXPECT_EQ(parts.size(), 2U);
  EXPECT_EQ(code_of([&] { static_cast<void>(all.with_fields(std::vector<std::string>{"npy"})); }), errc::usage);
  // What was counted when the shard was opened is counted for these fields.
  const dataset counted = open_tar((root.path() / "s.tar").string()).with_fields(std::vector<std::string>{"txt"});
  ASSERT_NE(counted.model()->counts(), nullptr);
  ASSERT_EQ(counted.model()->counts()->sets().size(), 1U);
  EXPECT_EQ(counted.model()->counts()->sets().front().samples, 2U);
  EXPECT_EQ(counted.model()->counts()->largest_bytes(std::vector<std::uint16_t>{0}, 1), 9U);
}

TEST(with_fields, a_picture_is_whichever_a_sample_has) {
  const temporary_directory root;
  archive made;
  made.file("a.jpg", "A").file("b.png", "B").file("b.txt", "text");
  const dataset some = open_tar(made.end().save(root.path() / "s.tar")).with_fields(std::vector<std::string>{"jpg"});
  EXPECT_EQ(some.fields().size(), 2U);
  EXPECT_EQ(some.read(1, "png").size(), 1U);
}

TEST(with_column, adds_integers_to_any_dataset_and_keeps_the_rest) {
  const dataset plain = numbers(5);
  const dataset with =
      plain.with_column("length", {5, 4, 3, 2, 1}).with_column("group", {0, 0, 1, 1, std::int64_t{1} << 40});
  EXPECT_EQ(names(with), names(plain));
  EXPECT_EQ(with.read(3), plain.read(3));
  EXPECT_EQ(with.column(1, "length"), 4);
  EXPECT_EQ(with.column(4, "group"), std::int64_t{1} << 40);
  EXPECT_EQ(with.column(4, "none"), std::nullopt);
  ASSERT_EQ(with.fields().size(), 3U);
  EXPECT_TRUE(with.fields()[2].column);
  EXPECT_EQ(with.fields()[2].samples, 5U);
  EXPECT_EQ(with.subset({4, 0}).column(0, "length"), 1);
  EXPECT_EQ(concat({with, plain}).column(2, "length"), 3);
  EXPECT_GE(with.memory().columns, 5 * (4 + 8));
  EXPECT_EQ(code_of([&] { static_cast<void>(plain.with_column("x", {1, 2})); }), errc::usage);
  EXPECT_EQ(code_of([&] { static_cast<void>(with.with_column("group", {1, 2, 3, 4, 5})); }), errc::usage);
}

TEST(with_column, keeps_real_numbers_as_they_are_given) {
  const dataset plain = numbers(3);
  const dataset with = plain.with_column({.name = "score", .reals = {0.1, -3, 1e300}})
                           .with_column({.name = "half", .reals = {0.5, 2, 3}, .type = dtype::f16})
                           .with_column("whole", {1, 2, 3});
  EXPECT_EQ(with.number(0, "score"), 0.1);
  EXPECT_EQ(with.column(0, "score"), std::nullopt);
  EXPECT_EQ(with.column(1, "score"), -3);
  EXPECT_EQ(with.column(2, "score"), std::nullopt) << "no std::int64_t holds it";
  EXPECT_EQ(with.number(2, "whole"), 3);
  const auto types_of = [](const dataset& of) {
    std::vector<dtype> types;
    for (const field_info& each : of.fields()) {
      if (each.column) types.push_back(each.type);
    }
    return types;
  };
  EXPECT_EQ(types_of(with), (std::vector{dtype::f64, dtype::f16, dtype::i64}));
  EXPECT_EQ(types_of(with.with_fields(std::vector<std::string>{"half"})), std::vector{dtype::f16});
  EXPECT_EQ(with.subset({2, 1}).number(0, "half"), 3);
  const dataset both = concat({with, plain.with_column("half", {7, 8, 9})});
  EXPECT_EQ(types_of(both), (std::vector{dtype::f64, dtype::f64, dtype::i64}));
  EXPECT_EQ(both.number(4, "half"), 8);
  EXPECT_EQ(both.number(4, "score"), std::nullopt);
  EXPECT_EQ(read_column(plain.with_column({.name = "k", .reals = {1, 2, 4}}), "k"),
            (std::vector<std::int64_t>{1, 2, 4}));
  EXPECT_EQ(code_of([&] { static_cast<void>(read_column(with, "score")); }), errc::corrupt);
  EXPECT_EQ(
      code_of([&] { static_cast<void>(plain.with_column({.name = "x", .values = {1, 2, 3}, .reals = {1, 2, 3}})); }),
      errc::usage);
  EXPECT_EQ(
      code_of([&] { static_cast<void>(plain.with_column({.name = "x", .reals = {1, 2, 3}, .type = dtype::u8})); }),
      errc::usage);
}

TEST(read_column, reads_integers_out_of_shards) {
  const temporary_directory root;
  std::vector<std::int64_t> classes;
  std::vector<std::string> shards;
  for (int shard = 0; shard < 3; ++shard) {
    archive tar;
    for (int i = 0; i < 2000; ++i) {
      const std::int64_t value = (shard * 7919 + i * 31) % 1000 - 5;
      const std::string key = std::to_string(shard) + "-" + std::to_string(i);
      tar.file(key + ".cls", (i % 3 == 0 ? " " : "") + std::to_string(value) + (i % 2 == 0 ? "\n" : ""));
      tar.file(key + ".txt", "some text");
      classes.push_back(value);
    }
    shards.push_back(tar.end().save(root.path() / (std::to_string(shard) + ".tar")));
  }
  const dataset set = open_tar(shards);
  EXPECT_EQ(read_column(set, "cls"), classes);
  const dataset with = set.with_column("cls", read_column(set, "cls"));
  EXPECT_EQ(with.label(4321), classes[4321]);
  EXPECT_EQ(read_column(with, "cls"), classes) << "of a column itself";
  const std::vector<std::uint64_t> some = {5999, 7, 2500};
  EXPECT_EQ(read_column(set.subset(some), "cls"),
            (std::vector<std::int64_t>{classes[5999], classes[7], classes[2500]}));
}

TEST(sample_blocks, of_one_length_take_no_memory_and_others_8_bytes_each) {
  const auto sizes_of = [](const datasets::sample_blocks& blocks) {
    std::vector<std::uint64_t> sizes;
    for (std::uint64_t block = 0; block < blocks.size(); ++block) {
      sizes.push_back(blocks.samples_of(block));
      for (std::uint64_t k = 0; k < sizes.back(); ++k) EXPECT_EQ(blocks.block_of(blocks.first(block) + k), block);
    }
    return sizes;
  };
  std::mt19937 draws(3);
  for (int round = 0; round < 400; ++round) {
    // Blocks of a length, of which the first and the last one may have others, or any number may.
    std::vector<std::uint64_t> sizes(1 + draws() % 9, 1 + draws() % 6);
    sizes.front() = 1 + draws() % 9;
    sizes.back() = 1 + draws() % 9;
    if (round % 3 == 0) sizes[draws() % sizes.size()] += 1;
    datasets::sample_blocks blocks(std::accumulate(sizes.begin(), sizes.end(), std::uint64_t{0}));
    std::uint64_t first = 0;
    for (const std::uint64_t size : sizes) {
      blocks.begin_block(first);
      first += size;
    }
    ASSERT_EQ(sizes_of(blocks), sizes);
    const bool alike =
        sizes.size() < 4 ||
        std::all_of(sizes.begin() + 1, sizes.end() - 1, [&](std::uint64_t size) { return size == sizes[1]; });
    EXPECT_EQ(blocks.memory_bytes() == 0, alike);
    const std::uint64_t ends = std::max(sizes.front(), sizes.back());
    EXPECT_EQ(blocks.equal() != 0, alike && (sizes.size() < 3 || ends <= sizes[1]));
  }
  EXPECT_EQ(sizes_of({10, 4}), (std::vector<std::uint64_t>{4, 4, 2}));
  EXPECT_EQ(sizes_of({3, 4}), (std::vector<std::uint64_t>{3}));
  EXPECT_TRUE(datasets::sample_blocks().empty());
}

TEST(read_column, says_what_is_no_integer_and_what_is_not_there) {
  const temporary_directory root;
  const auto refused = [&](errc code, const std::string& value, std::string_view name) {
    archive tar;
    tar.file("a.cls", "3").file("a.txt", "x").file("b.cls", value).file("b.txt", "x");
    if (value == "4") tar.file("c.txt", "x");
    const dataset set = open_tar(tar.end().save(root.path() / "x.tar"));
    try {
      static_cast<void>(read_column(set, name));
    } catch (const error& failure) {
      EXPECT_EQ(failure.code(), code) << failure.what();
      return std::string(failure.what());
    }
    return std::string("no error");
  };
  EXPECT_THAT(refused(errc::corrupt, "four", "cls"), HasSubstr("read_column 'cls': sample 1"));
  EXPECT_THAT(refused(errc::corrupt, "", "cls"), HasSubstr("is no integer"));
  EXPECT_THAT(refused(errc::corrupt, "99999999999999999999", "cls"), HasSubstr("is no integer"));
  EXPECT_THAT(refused(errc::corrupt, std::string(100, '1'), "cls"), HasSubstr("has 100 bytes and is no integer"));
  EXPECT_THAT(refused(errc::corrupt, "4", "cls"), HasSubstr("sample 2"));
  EXPECT_THAT(refused(errc::usage, "4", "clss"), HasSubstr("it has cls, txt; did you mean 'cls'?"));
}

}  // namespace
}  // namespace leat
