// Indexes beside shards: written, read, and refused where they are not of what is there.
#include "datasets/formats/tar/shard_index_file.hpp"

#include "datasets/write/index_writer.hpp"
#include "tests/datasets/archive.hpp"
#include "tests/support/raw_files.hpp"
#include "tests/support/temporary_directory.hpp"

#include <leat/error.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace leat {
namespace {

using datasets::shard_index;
using testing::archive;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::temporary_directory;

std::vector<std::byte> content_of(const std::string& path) {
  const std::string text = testing::file_text(path);
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

/// Why it is refused; empty where it is not.
template <class Parse>
std::string refusal_of(const Parse& parse) {
  try {
    static_cast<void>(parse());
    return {};
  } catch (const error& refused) {
    EXPECT_EQ(refused.code(), errc::format);
    return refused.what();
  }
}

std::vector<std::string> places_of(const shard_index& index) {
  std::vector<std::string> all;
  std::uint32_t begin = 0;
  for (const std::uint32_t end : index.ends) {
    std::string sample;
    for (; begin < end; ++begin) {
      const auto& each = index.records[begin];
      sample +=
          index.fields[each.field()] + "@" + std::to_string(each.offset()) + "+" + std::to_string(each.bytes()) + " ";
    }
    all.push_back(sample);
  }
  return all;
}

TEST(shard_index_file, is_named_after_what_the_shards_have_in_common) {
  using datasets::index_name_of;
  EXPECT_EQ(index_name_of("train-000012.tar"), "train.index");
  EXPECT_EQ(index_name_of("train_v2-7.tar"), "train_v2.index");
  EXPECT_EQ(index_name_of("0007.tar"), "shards.index");
  EXPECT_EQ(index_name_of("photos"), "photos.index");
  EXPECT_EQ(datasets::wds_index_name_of("train-000.v1.tar"), "train-000.idx");
  EXPECT_EQ(datasets::wds_index_name_of("shard"), "shard.idx");
}

TEST(shard_index_file, holds_what_a_walk_has_found_and_refuses_what_is_not_whole) {
  const temporary_directory folder;
  archive good;
  good.file("a/1.jpg", std::string(700, 'x'))
      .file("a/1.cls", "3")
      .file("2.jpg", "")
      .end()
      .save(folder.path() / "s-0.tar");
  archive bad;
  bad.file("1.jpg", "x").file("1.jpg", "twice").file("README", "no sample").file("2.cls", std::string(600, 'x'));
  bad.cut_to(bad.size() - 600).save(folder.path() / "s-1.tar");
  const std::vector<std::string> shards = {(folder.path() / "s-0.tar").string(), (folder.path() / "s-1.tar").string()};
  const auto written = datasets::write_indexes(shards, {}, {});
  ASSERT_EQ(written.size(), 1U);
  EXPECT_EQ(written[0].path, (folder.path() / "s.index").string());
  EXPECT_EQ(written[0].shards, 2U);
  EXPECT_EQ(written[0].samples, 4U);
  const std::vector<std::byte> content = content_of(written[0].path);
  EXPECT_EQ(content.size(), written[0].bytes);
  const datasets::parsed_shard_indexes parsed = datasets::parse_shard_indexes(content);
  ASSERT_EQ(parsed.shards.size(), 2U);
  EXPECT_EQ(parsed.shards[0].name, "s-0.tar");
  EXPECT_EQ(parsed.shards[0].index.file_bytes, good.size());
  EXPECT_THAT(places_of(parsed.shards[0].index), ElementsAre("jpg@512+700 cls@2048+1 ", "jpg@3072+0 "));
  const shard_index& damaged = parsed.shards[1].index;
  ASSERT_EQ(damaged.defects.size(), 2U);
  EXPECT_THAT(damaged.defects[0].reason, HasSubstr("twice"));
  EXPECT_THAT(damaged.defects[1].reason, HasSubstr("it was cut"));
  EXPECT_THAT(damaged.notes, ElementsAre(": 1 member skipped that belong to no sample"));
  const auto one = datasets::parse_shard_indexes(content, [](std::string_view name) { return name == "s-1.tar"; });
  ASSERT_EQ(one.shards.size(), 1U);
  EXPECT_EQ(one.shards[0].name, "s-1.tar");
  // Whatever byte is another one.
  for (std::size_t i = 0; i < content.size(); i += i < 64 ? 1 : 13) {
    std::vector<std::byte> other = content;
    other[i] ^= std::byte{4};
    EXPECT_NE(refusal_of([&] { return datasets::parse_shard_indexes(other); }), "") << i;
  }
  for (std::size_t bytes = 0; bytes < content.size(); bytes += 7)
    EXPECT_NE(refusal_of([&] { return datasets::parse_shard_indexes(std::span(content).first(bytes)); }), "") << bytes;
}

TEST(shard_index_file, refuses_places_that_are_not_in_the_shard_though_the_checksum_is_right) {
  using record = datasets::extent_table::record;
  const auto refusal = [](const shard_index& index) {
    const datasets::indexed_shard one{"a.tar", index};
    return refusal_of([&] {
      return datasets::parse_shard_indexes(datasets::write_shard_indexes({&one, 1}, datasets::at_end_marker::stop));
    });
  };
  shard_index sound;
  sound.records = {record(512, 700, 0, 0), record(2048, 1, 0, 1), record(3072, 10, 0, 0)};
  sound.ends = {2, 3};
  sound.fields = {"jpg", "cls"};
  sound.file_bytes = 4096;
  EXPECT_EQ(refusal(sound), "");
  const auto with = [&](auto change) {
    shard_index other = sound;
    change(other);
    return refusal(other);
  };
  EXPECT_THAT(with([](shard_index& each) { each.file_bytes = 3081; }), HasSubstr("not in the shard"));
  EXPECT_THAT(with([](shard_index& each) { each.records[1] = record(1024, 1, 0, 1); }), HasSubstr("not in the shard"));
  EXPECT_THAT(with([](shard_index& each) { each.records[0] = record(500, 7, 0, 0); }), HasSubstr("not in the shard"));
  EXPECT_THAT(with([](shard_index& each) { each.records[2] = record(3072, 10, 0, 2); }), HasSubstr("not in the shard"));
  EXPECT_THAT(with([](shard_index& each) { each.records[1] = record(2048, 1, 0, 0); }), HasSubstr("a field twice"));
  for (const std::vector<std::uint32_t>& ends : {std::vector<std::uint32_t>{2}, {2, 1}, {0, 3}, {2, 3, 4}, {2, 3, 3}})
    EXPECT_THAT(with([&](shard_index& each) { each.ends = ends; }), HasSubstr("do not belong together"));
  EXPECT_THAT(with([](shard_index& each) { each.defects = {{2, 0, "none"}}; }), HasSubstr("damage of a sample"));
  EXPECT_THAT(with([](shard_index& each) { each.fields[1] = "jpg"; }), HasSubstr("two fields of one name"));
  EXPECT_THAT(with([](shard_index& each) { each.fields.push_back("txt"); }), HasSubstr("a field that no sample has"));
}

TEST(shard_index_file, holds_hard_links_and_refuses_those_that_lead_nowhere) {
  using record = datasets::extent_table::record;
  using link = shard_index::link;
  shard_index linked;
  linked.records = {record(512, 700, 0, 0), record(2048, 0, 0, 1), record(2560, 10, 0, 0)};
  linked.ends = {2, 3};
  linked.fields = {"jpg", "cls"};
  linked.file_bytes = 4096;
  const auto parsed_with = [&](std::vector<link> links) {
    linked.links = std::move(links);
    const datasets::indexed_shard one{"a.tar", linked};
    return datasets::parse_shard_indexes(datasets::write_shard_indexes({&one, 1}, datasets::at_end_marker::stop));
  };
  const auto good = parsed_with({{1, 0}});
  ASSERT_EQ(good.shards.at(0).index.links.size(), 1U);
  EXPECT_EQ(good.shards[0].index.links[0].record, 1U);
  EXPECT_EQ(good.shards[0].index.links[0].target, 0U);
  for (const std::vector<link>& links :
       {std::vector<link>{{0, 0}}, {{1, 2}}, {{1, 1}}, {{2, 0}}, {{3, 0}}, {{1, 0}, {1, 0}}}) {
    EXPECT_THAT(refusal_of([&] { return parsed_with(links); }), HasSubstr("links to members that there are not"));
  }
}

TEST(shard_index_file, reads_what_wds2idx_writes) {
  const shard_index named =
      datasets::parse_wds_index("v1.2 2\njpg 512 700 a/1.jpg cls 2048 1 a/1.cls\nJPG 3072 0 2.JPG\n", 10'240);
  EXPECT_THAT(places_of(named), ElementsAre("jpg@512+700 cls@2048+1 ", "jpg@3072+0 "));
  EXPECT_EQ(named.file_bytes, 10'240U);
  const shard_index nameless = datasets::parse_wds_index("v1.1 2\r\njpg 512 700 cls 2048 1\r\njpg 3072 0", 10'240);
  EXPECT_EQ(places_of(nameless), places_of(named));
  const auto refusal = [](std::string_view text) {
    return refusal_of([&] { return datasets::parse_wds_index(text, 10'240); });
  };
  EXPECT_THAT(refusal(""), HasSubstr("neither v1.1 nor v1.2"));
  EXPECT_THAT(refusal("v1.3 1\njpg 512 7 a.jpg\n"), HasSubstr("neither v1.1 nor v1.2"));
  EXPECT_THAT(refusal("v1.2"), HasSubstr("cut"));
  EXPECT_THAT(refusal("v1.2 2\njpg 512 7 a.jpg\n"), HasSubstr("fewer lines"));
  EXPECT_THAT(refusal("v1.2 1\njpg 512 7 a.jpg\njpg 1536 7 b.jpg\n"), HasSubstr("more lines"));
  EXPECT_THAT(refusal("v1.2 1\njpg 512 7\n"), HasSubstr("cut"));
  EXPECT_THAT(refusal("v1.2 1\njpg 512 7 a b.jpg\n"), HasSubstr("cut")) << "a name with a blank";
  EXPECT_THAT(refusal("v1.2 1\njpg 512 -7 a.jpg\n"), HasSubstr("no number"));
  EXPECT_THAT(refusal("v1.2 1\njpg 512 99999999999999999999 a.jpg\n"), HasSubstr("no number"));
  EXPECT_THAT(refusal("v1.2 1\njpg 512 10000 a.jpg\n"), HasSubstr("not in the shard"));
  EXPECT_THAT(refusal("v1.2 1\njpg 18446744073709551104 512 a.jpg\n"), HasSubstr("not in the shard"));
  EXPECT_THAT(refusal("v1.2 1\njpg 100 7 a.jpg\n"), HasSubstr("not in the shard"));
  EXPECT_THAT(refusal("v1.2 2\njpg 2048 7 a.jpg\njpg 512 7 b.jpg\n"), HasSubstr("not in the shard")) << "backwards";
}

}  // namespace
}  // namespace leat
