// Nodes that keep to their shares, as loaders: what a rank reads, and what it never does.
#include "tests/datasets/archive.hpp"
#include "tests/loader/running.hpp"
#include "tests/support/raw_files.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/support/watchdog.hpp"

#include <leat/loading.hpp>
#include <leat/open_tar.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace leat {
namespace {

using testing::loader;
using testing::loader_options;
using testing::small_options;
using testing::temporary_directory;
using testing::watchdog;

constexpr int shards = 8;
constexpr int samples_of_shard = 9;

/// Labels 0, 1, ...; those of `corrupt` are no numbers.
std::string labelled_shard(int number, const std::set<int>& corrupt = {}) {
  testing::archive made;
  for (int i = samples_of_shard * number; i < samples_of_shard * (number + 1); ++i) {
    made.file(std::to_string(i) + ".cls", corrupt.contains(i) ? "cat" : std::to_string(i));
  }
  return std::move(made.end().bytes());
}

std::filesystem::path path_of(const temporary_directory& folder, int shard) {
  return folder.path() / ("train-" + std::to_string(shard) + ".tar");
}

dataset shards_in(const temporary_directory& folder, const std::set<int>& corrupt = {}) {
  for (int i = 0; i < shards; ++i) testing::write_file(path_of(folder, i), labelled_shard(i, corrupt));
  return open_tar((folder.path() / "train-{0..7}.tar").string());
}

loader_options of_nodes(std::uint32_t nodes, std::uint32_t rank, std::uint32_t size) {
  loader_options options = small_options();
  options.batch_size = 1;  // says nothing then
  options.global_batch_size = 8;
  options.order = node_local(shuffled(), nodes);
  options.world = {.rank = rank, .size = size};
  return options;
}

std::vector<std::vector<std::int64_t>> labels_of(const dataset& samples, const loader_options& options) {
  loader line(samples, options, testing::label_only());
  std::vector<std::vector<std::int64_t>> batches;
  while (!line.finished()) {
    if (const std::optional<batch> got = line.next_blocking()) {
      batches.push_back(testing::values_of<std::int64_t>(*got, "cls"));
      batches.back().resize(got->valid_rows());
    }
  }
  return batches;
}

TEST(node_local_loader, reads_no_shard_of_another_node) {
  const watchdog limit("nodes that keep to their shards");
  for (std::uint32_t node = 0; node < 4; ++node) {
    const temporary_directory folder;
    const dataset samples = shards_in(folder);
    for (int shard = 0; shard < shards; ++shard) {
      // A read of any of these is a read behind the end.
      if (shard / 2 != static_cast<int>(node)) std::filesystem::resize_file(path_of(folder, shard), 0);
    }
    for (const std::uint32_t ranks : {1U, 2U}) {
      std::multiset<std::int64_t> seen;
      for (std::uint32_t rank = node * ranks; rank < (node + 1) * ranks; ++rank) {
        for (const auto& labels : labels_of(samples, of_nodes(4, rank, 4 * ranks))) {
          seen.insert(labels.begin(), labels.end());
        }
      }
      EXPECT_EQ(seen.size(), 2U * 2 * samples_of_shard);
      for (int i = 0; i < 2 * samples_of_shard; ++i) {
        EXPECT_EQ(seen.count(2 * samples_of_shard * static_cast<int>(node) + i), 2U) << "once in each epoch";
      }
    }
  }
}

TEST(node_local_loader, replaces_corrupt_samples_by_those_of_the_node_alike_in_every_world) {
  const watchdog limit("nodes that keep to their shards");
  const temporary_directory folder;
  const dataset samples = shards_in(folder, {3, 4, 5, 20, 70});
  const auto joined = [&](std::uint32_t size) {
    std::vector<std::vector<std::int64_t>> all;
    for (std::uint32_t rank = 0; rank < size; ++rank) {
      loader_options options = of_nodes(2, rank, size);
      options.on_corrupt = corrupt_policy::substitute;
      const auto own = labels_of(samples, options);
      all.resize(own.size());
      for (std::size_t batch = 0; batch < own.size(); ++batch) {
        all[batch].insert(all[batch].end(), own[batch].begin(), own[batch].end());
      }
    }
    return all;
  };
  const auto alone = joined(1);
  ASSERT_EQ(alone.size(), 2U * 9);
  for (const auto& labels : alone) {
    ASSERT_EQ(labels.size(), 8U);
    for (std::size_t row = 0; row < labels.size(); ++row) {
      EXPECT_EQ(labels[row] / (4 * samples_of_shard), static_cast<std::int64_t>(row / 4));
    }
  }
  for (const std::uint32_t size : {2U, 4U, 6U}) EXPECT_EQ(joined(size), alone) << "world of " << size;
}

TEST(node_local_loader, says_in_its_plan_what_an_epoch_leaves_out) {
  const temporary_directory folder;
  const dataset samples = shards_in(folder);
  const auto plan_of = [&](const dataset& of, const order& by) {
    loader_options options = of_nodes(2, 0, 2);
    options.order = by;
    return loader(of, options, testing::label_only()).plan();
  };
  const dataset uneven = samples.slice(0, 70);
  EXPECT_THAT(
      plan_of(uneven, node_local(sequential(), 2)).notes,
      ::testing::Contains("nodes: each of 2 reads a share of its own; an epoch leaves out 2 of 70 samples (2.9 %), "
                          "the same in each"));
  const loader_plan plan = plan_of(samples.slice(0, 5 * samples_of_shard), node_local(shuffled(), 2));
  EXPECT_THAT(plan.warnings,
              ::testing::Contains(::testing::HasSubstr(
                  "leaves out 9 of 45 samples (20.0 %): shares are whole blocks (shards, chunks); write")));
}

TEST(node_local_loader, does_not_go_on_with_other_nodes) {
  const watchdog limit("nodes that keep to their shards");
  const temporary_directory folder;
  const dataset samples = shards_in(folder);
  loader_options options = of_nodes(4, 0, 4);
  options.resume = loader(samples, options, testing::label_only()).state();
  options.order = node_local(shuffled(), 2);
  EXPECT_THAT(testing::message_of(errc::usage, [&] { loader(samples, options, testing::label_only()); }),
              ::testing::HasSubstr("the order's nodes is 2, and was 4"));
  options.order = shuffled();
  EXPECT_THAT(testing::message_of(errc::usage, [&] { loader(samples, options, testing::label_only()); }),
              ::testing::HasSubstr("the order's nodes was 4"));
}

}  // namespace
}  // namespace leat
