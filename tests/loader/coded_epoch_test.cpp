// Compressed shards and tables: an epoch of them is that of the same files without compression.
#include "datasets/model/model.hpp"
#include "datasets/model/sample_blocks.hpp"
#include "tests/datasets/archive.hpp"
#include "tests/loader/running.hpp"
#include "tests/support/coded_forms.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/support/watchdog.hpp"

#include <leat/loading.hpp>
#include <leat/open.hpp>
#include <leat/samples.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace leat {
namespace {

using datasets::packing;
using testing::loader_options;
using testing::seen_batch;
using testing::seen_run;

constexpr std::size_t part_bytes = std::size_t{3} << 18;

/// A set as it is, and in each form that it may have in a compressed file.
struct coded_set {
  std::string plain;
  std::vector<std::string> coded;
};

class coded_epoch : public ::testing::Test {
 protected:
  // Three blocks and more, with values of many sizes: some are empty, and one is longer than a block.
  coded_set shards() const {
    testing::archive shard;
    for (unsigned i = 0; i < 60; ++i) {
      const std::string key = "k" + std::to_string(100 + i);
      const std::size_t bytes = i == 20 ? std::size_t{1500} << 10 : i % 7 == 0 ? 0 : 1000 * (i * 37 % 90);
      shard.file(key + ".txt", testing::some_text(bytes, i));
      if (i % 3 != 0) shard.file(key + ".json", testing::some_text(i, i + 1000));
      shard.file(key + ".cls", std::to_string(i));
    }
    return forms_of(shard.end().bytes(), ".tar");
  }
  coded_set lines() const {
    std::string all;
    for (unsigned i = 0; i < 300; ++i) {
      all +=
          R"({"cls": )" + std::to_string(i) + R"(, "txt": ")" + testing::some_text(100 * (i * 31 % 200), i) + "\"}\n";
      if (i % 50 == 0) all += "\n";
    }
    return forms_of(all, ".jsonl");
  }

  static loader_options options() {
    loader_options all = testing::small_options();
    all.host_bytes_max = std::size_t{200} << 20;
    return all;
  }
  static std::vector<field> fields() { return {label("cls"), text("txt")}; }

 private:
  coded_set forms_of(const std::string& bytes, const std::string& ending) const {
    const auto put = [&](const std::string& name, const std::string& content) {
      const std::string path = (root_.path() / name).string();
      testing::put(path, content);
      return path;
    };
    coded_set all{put("plain" + ending, bytes), {}};
    all.coded.push_back(put("one" + ending + ".gz", testing::coded(packing::gzip, bytes)));
    all.coded.push_back(put("parts" + ending + ".gz", testing::coded_in_parts(packing::gzip, bytes, part_bytes)));
    all.coded.push_back(put("small" + ending + ".gz", testing::coded_in_parts(packing::gzip, bytes, 60000)));
    all.coded.push_back(put("one" + ending + ".zst", testing::coded(packing::zstd, bytes)));
    all.coded.push_back(put("parts" + ending + ".zst", testing::coded_in_parts(packing::zstd, bytes, part_bytes)));
    return all;
  }

  testing::temporary_directory root_;
};

std::vector<std::string> contents(const seen_run& run) {
  std::vector<std::string> all;
  for (const seen_batch& each : run.batches) all.push_back(each.content);
  return all;
}

TEST_F(coded_epoch, has_the_digests_of_the_files_without_compression) {
  const testing::watchdog dog("epochs of compressed files");
  for (const coded_set& set : {shards(), lines()}) {
    for (const std::uint64_t seed : {3U, 4U}) {
      for (const bool is_shuffled : {true, false}) {
        loader_options how = options();
        how.seed = seed;
        if (!is_shuffled) how.order = sequential();
        const seen_run expected = testing::run_all(open(set.plain), how, fields());
        ASSERT_FALSE(expected.failed) << expected.message;
        for (const std::string& each : set.coded) {
          const seen_run got = testing::run_all(open(each), how, fields());
          ASSERT_FALSE(got.failed) << each << ": " << got.message;
          EXPECT_EQ(contents(got), contents(expected)) << each << ", seed " << seed;
        }
      }
    }
  }
}

TEST_F(coded_epoch, by_blocks_expands_each_block_about_once) {
  const testing::watchdog dog("compressed files by blocks");
  for (const coded_set& set : {shards(), lines()}) {
    loader_options how = options();
    how.epochs = 1;
    how.order = shuffled_blocks(2);
    const seen_run got = testing::run_all(open(set.coded.front()), how, fields());
    ASSERT_FALSE(got.failed) << got.message;
    const std::uint64_t blocks = open(set.coded.front()).model()->blocks().size();
    EXPECT_GT(blocks, 2U);
    EXPECT_LE(got.stats.expand.blocks, 2 * blocks);
    std::vector<std::int64_t> labels;
    for (const seen_batch& each : got.batches) labels.insert(labels.end(), each.labels().begin(), each.labels().end());
    std::sort(labels.begin(), labels.end());
    labels.erase(std::unique(labels.begin(), labels.end()), labels.end());
    EXPECT_EQ(labels.size(), open(set.plain).size());
  }
}

TEST_F(coded_epoch, goes_on_where_another_run_ended) {
  const testing::watchdog dog("a compressed set is resumed");
  const coded_set set = shards();
  const dataset samples = open(set.coded.front());
  const seen_run whole = testing::run_all(samples, options(), fields());
  testing::loader first(samples, options(), fields());
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(first.next_blocking());
  loader_options rest = options();
  rest.resume = loader_state::from_bytes(first.state().bytes());
  const seen_run got = testing::run_all(open(set.coded.front()), rest, fields());
  ASSERT_FALSE(got.failed) << got.message;
  std::vector<std::string> expected = contents(whole);
  expected.erase(expected.begin(), expected.begin() + 5);
  EXPECT_EQ(contents(got), expected);
}

TEST_F(coded_epoch, loses_the_samples_of_a_block_that_was_damaged_after_it_was_opened) {
  const testing::watchdog dog("a compressed block is damaged");
  const coded_set set = shards();
  const dataset samples = open(set.coded.front());
  const std::uint64_t blocks = samples.model()->blocks().size();
  {
    std::fstream file(set.coded.front(), std::ios::binary | std::ios::in | std::ios::out);
    file.seekg(0, std::ios::end);
    const auto end = file.tellg();
    file.seekp(end / 2);
    file.write("\x55\xaa\x55\xaa", 4);
  }
  loader_options how = options();
  how.epochs = 1;
  how.on_corrupt = corrupt_policy::skip;
  const seen_run got = testing::run_all(samples, how, fields());
  ASSERT_FALSE(got.failed) << got.message;
  EXPECT_GT(got.stats.quarantined, 0U);
  EXPECT_LE(got.stats.quarantined, samples.size() * 2 / blocks + 12);
  how.on_corrupt = corrupt_policy::raise;
  EXPECT_TRUE(testing::run_all(samples, how, fields()).failed);
}

}  // namespace
}  // namespace leat
