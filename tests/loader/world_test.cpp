// Many ranks, each a loader of its own: what they deliver is what one process delivers, divided.
#include "tests/loader/running.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/support/watchdog.hpp"

#include <leat/loading.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace leat {
namespace {

using testing::fake_dataset;
using testing::loader;
using testing::loader_options;
using testing::small_options;
using testing::watchdog;

constexpr std::size_t samples_in_all = 45;

/// A row as its trainer has it.
struct seen_row {
  std::uint64_t id = 0;
  digest content;
  std::vector<std::byte> picture;
  bool padded = false;

  friend bool operator==(const seen_row&, const seen_row&) = default;
};

struct rank_run {
  std::vector<std::vector<seen_row>> batches;  // of all epochs
  loader_stats stats;
};

rank_run run_rank(const dataset& samples, loader_options options, std::uint32_t rank, std::uint32_t size) {
  options.world = {.rank = rank, .size = size};
  loader line(samples, options, testing::all_fields());
  rank_run seen;
  for (std::uint32_t epoch = 0; epoch < options.epochs; ++epoch) {
    std::uint64_t index = 0;
    while (std::optional<batch> got = line.next_blocking()) {
      EXPECT_EQ(got->index(), index++);
      EXPECT_EQ(got->epoch(), epoch);
      testing::look_at(*got);
      std::vector<seen_row>& rows = seen.batches.emplace_back();
      for (std::uint32_t row = 0; row < got->valid_rows(); ++row) {
        rows.push_back({.id = got->ids()[row],
                        .content = got->row_digests()[row],
                        .picture = testing::row_of(*got, "jpg", row),
                        .padded = row >= got->valid_rows() - got->padded_rows()});
      }
    }
    EXPECT_EQ(index, line.batches()) << "rank " << rank << " of " << size;
  }
  seen.stats = line.stats();
  return seen;
}

struct joined_run {
  std::vector<std::vector<seen_row>> batches;
  std::uint64_t planned = 0;
  std::uint64_t padded = 0;
  std::uint64_t quarantined = 0;
};

joined_run run_world(const dataset& samples, const loader_options& options, std::uint32_t size) {
  joined_run all;
  for (std::uint32_t rank = 0; rank < size; ++rank) {
    rank_run one = run_rank(samples, options, rank, size);
    if (rank == 0) all.batches.resize(one.batches.size());
    EXPECT_EQ(one.batches.size(), all.batches.size());
    for (std::size_t b = 0; b < std::min(all.batches.size(), one.batches.size()); ++b) {
      all.batches[b].insert(all.batches[b].end(), one.batches[b].begin(), one.batches[b].end());
    }
    all.planned += one.stats.planned;
    all.padded += one.stats.padded;
    all.quarantined += one.stats.quarantined;
  }
  return all;
}

loader_options with_global_batch(std::uint32_t rows, last_batch last = last_batch::keep) {
  loader_options options = small_options();
  options.batch_size = 1;  // says nothing then
  options.global_batch_size = rows;
  options.last = last;
  return options;
}

TEST(loader_world, the_ranks_rows_are_the_single_process_s_batches_byte_for_byte) {
  const watchdog limit("many ranks");
  const fake_dataset samples(testing::make_samples(1, samples_in_all));
  for (const last_batch last : {last_batch::keep, last_batch::drop, last_batch::pad}) {
    const loader_options options = with_global_batch(8, last);
    const joined_run alone = run_world(samples, options, 1);
    ASSERT_EQ(alone.batches.size(), last == last_batch::drop ? 10U : 12U);
    EXPECT_EQ(alone.padded, last == last_batch::pad ? 6U : 0U);
    for (const std::uint32_t size : {2U, 3U, 5U, 8U}) {
      const joined_run ranks = run_world(samples, options, size);
      EXPECT_EQ(ranks.batches, alone.batches) << "world of " << size;
      EXPECT_EQ(ranks.planned, alone.planned);
      EXPECT_EQ(ranks.padded, alone.padded);
    }
  }
}

TEST(loader_world, a_rank_without_rows_has_every_batch_nonetheless) {
  const watchdog limit("many ranks");
  const fake_dataset samples(testing::make_samples(1, 9));
  const loader_options options = with_global_batch(3);
  const joined_run alone = run_world(samples, options, 1);
  // More ranks than rows, and than samples.
  for (const std::uint32_t size : {4U, 16U}) {
    EXPECT_EQ(run_world(samples, options, size).batches, alone.batches) << "world of " << size;
  }
  const rank_run first = run_rank(samples, options, 0, 16);
  EXPECT_EQ(first.batches.size(), 6U);
  EXPECT_EQ(first.stats.batches, 6U);
  EXPECT_EQ(first.stats.planned, 0U);
  for (const auto& rows : first.batches) EXPECT_TRUE(rows.empty());
}

TEST(loader_world, a_batch_of_no_rows_has_its_outputs_digests_and_mixing) {
  const watchdog limit("many ranks");
  const fake_dataset samples(testing::make_samples(1, 9));
  loader_options options = with_global_batch(3);
  options.mix = mixup(0.4);
  options.names = true;
  options.world = {.rank = 0, .size = 16};
  leat::loader line(samples, options,
                    {image("jpg").random_resized_crop(12).normalize(imagenet), label("cls"), text("txt")});
  for (std::uint32_t epoch = 0; epoch < options.epochs; ++epoch) {
    std::uint64_t batches = 0;
    while (std::optional<batch> got = line.next_blocking()) {
      ++batches;
      EXPECT_EQ(got->valid_rows(), 0U);
      EXPECT_EQ(got->padded_rows(), 0U);
      EXPECT_TRUE(got->content_digest().has_value());
      for (const std::string& output : got->outputs()) {
        const tensor view = (*got)[output];
        EXPECT_EQ(view.shape[0], output == "txt.offsets" ? 1 : 0) << output;
      }
      got->wait_on(stream());
    }
    EXPECT_EQ(batches, 3U);
  }
}

TEST(loader_world, a_batch_size_is_that_of_a_rank) {
  const watchdog limit("many ranks");
  const fake_dataset samples(testing::make_samples(1, samples_in_all));
  loader_options options = small_options();
  options.batch_size = 4;
  const rank_run second = run_rank(samples, options, 1, 3);
  ASSERT_EQ(second.batches.size(), 2 * 4U);
  EXPECT_EQ(second.batches[0].size(), 4U);
  EXPECT_EQ(second.batches[3].size(), 3U) << "of the 9 that are left";
}

TEST(loader_world, corrupt_samples_are_left_out_or_replaced_alike_in_every_world) {
  const watchdog limit("many ranks");
  for (const corrupt_policy policy : {corrupt_policy::skip, corrupt_policy::substitute}) {
    std::vector<testing::fake_sample> made = testing::make_samples(1, samples_in_all);
    for (const std::size_t corrupt : {3U, 4U, 17U, 30U, 44U}) made[corrupt].remove("cls");
    const fake_dataset samples(made);
    loader_options options = with_global_batch(8, last_batch::pad);
    options.on_corrupt = policy;
    const joined_run alone = run_world(samples, options, 1);
    EXPECT_GE(alone.quarantined, 10U);
    for (const std::uint32_t size : {2U, 3U, 7U}) {
      const joined_run ranks = run_world(samples, options, size);
      EXPECT_EQ(ranks.batches, alone.batches) << "world of " << size;
      EXPECT_EQ(ranks.quarantined, alone.quarantined);
    }
  }
}

TEST(loader_world, batch_at_gives_the_rank_s_rows) {
  const watchdog limit("many ranks");
  const fake_dataset samples(testing::make_samples(1, samples_in_all));
  loader_options options = with_global_batch(8);
  options.device = host;
  options.world = {.rank = 1, .size = 3};
  leat::loader line(samples, options, testing::all_fields());
  std::optional<batch> first = line.next_blocking();
  ASSERT_TRUE(first);
  const batch again = line.batch_at(0, 0);
  EXPECT_EQ(again.content_digest(), first->content_digest());
  EXPECT_TRUE(std::equal(again.ids().begin(), again.ids().end(), first->ids().begin(), first->ids().end()));
  EXPECT_EQ(again.valid_rows(), 3U);  // rows 2, 3 and 4 of 8
}

// What a trainer saves is one state; whichever ranks there are then go on from it.
TEST(loader_world, a_run_goes_on_in_other_worlds_and_loses_and_repeats_nothing) {
  const watchdog limit("many ranks");
  const fake_dataset samples(testing::make_samples(1, samples_in_all));
  for (const last_batch last : {last_batch::keep, last_batch::drop, last_batch::pad}) {
    loader_options options = small_options();
    options.batch_size = 1;  // of each of the first 8
    options.last = last;
    options.epochs = 3;
    const joined_run alone = run_world(
        samples,
        [&] {
          loader_options one = options;
          one.global_batch_size = 8;
          return one;
        }(),
        1);
    std::vector<std::vector<seen_row>> chained;
    std::optional<loader_state> from;
    const std::uint32_t worlds[] = {8, 6, 3, 1};
    for (const std::uint32_t size : worlds) {
      const std::size_t begun = chained.size();
      const std::size_t take = size == 1 ? alone.batches.size() : 4;
      std::optional<loader_state> next;
      for (std::uint32_t rank = 0; rank < size; ++rank) {
        loader_options own = options;
        own.world = {.rank = rank, .size = size};
        own.resume = from;
        leat::loader line(samples, own, testing::all_fields());
        for (std::size_t taken = 0; taken < take && !line.finished();) {
          std::optional<batch> got = line.next_blocking();
          if (!got) continue;
          if (rank == 0) chained.emplace_back();
          std::vector<seen_row>& rows = chained.at(begun + taken++);
          for (std::uint32_t row = 0; row < got->valid_rows(); ++row) {
            rows.push_back({.id = got->ids()[row],
                            .content = got->row_digests()[row],
                            .picture = testing::row_of(*got, "jpg", row),
                            .padded = row >= got->valid_rows() - got->padded_rows()});
          }
          if (taken == take) {
            const loader_state after = line.state_after(*got);
            EXPECT_EQ(after.rank, rank);
            EXPECT_EQ(after.world, size);
            EXPECT_EQ(after.global_batch_size, 8U);
            EXPECT_EQ(after.run_digest.has_value(), size == 8) << "only the rank's own batches are known to it";
            if (next) EXPECT_EQ(after.batch, next->batch);
            if (rank == size / 2) next = loader_state::from_bytes(after.bytes());
          }
        }
      }
      from = next;
    }
    EXPECT_EQ(chained, alone.batches);
  }
}

/// An order, the dataset that it is over, and worlds that may have it.
struct ordered {
  std::string name;
  dataset samples;
  order by;
  std::vector<std::uint32_t> worlds = {2, 3, 11};
};

std::vector<ordered> all_orders() {
  const fake_dataset samples(testing::make_samples(1, samples_in_all));
  std::vector<std::int64_t> groups(samples_in_all);
  std::vector<double> weights(samples_in_all);
  for (std::size_t i = 0; i < samples_in_all; ++i) {
    groups[i] = i < 3 ? 0 : i < 12 ? 1 : 2;
    weights[i] = static_cast<double>(i % 7);
  }
  const dataset grouped = dataset(samples).with_column("group", groups);
  const mixture mixed({{dataset(samples).slice(0, 9), 0.5}, {dataset(samples).slice(9, samples_in_all - 9), 0.5}});
  return {{"sequential", samples, sequential()},
          {"shuffled", samples, shuffled()},
          {"repeated", samples, repeated(3)},
          {"weighted", samples, weighted(weights, 50)},
          {"weighted without replacement", samples, weighted(weights, 30, replacement::no)},
          {"balanced", grouped, balanced("group")},
          {"bucketed", samples, bucketed({.length = "txt", .tokens_max = 400, .rows_max = 9})},
          {"mixture", mixed, mixed},
          {"node_local", samples, node_local(shuffled(), 4), {2, 4, 12}}};
}

TEST(loader_world, of_every_order_the_ranks_rows_are_the_single_process_s_batches) {
  const watchdog limit("many ranks of every order");
  for (const ordered& each : all_orders()) {
    SCOPED_TRACE(each.name);
    loader_options options = with_global_batch(8);
    options.order = each.by;
    const joined_run alone = run_world(each.samples, options, 1);
    EXPECT_GE(alone.batches.size(), 8U);
    for (const std::uint32_t size : each.worlds) {
      const joined_run ranks = run_world(each.samples, options, size);
      EXPECT_EQ(ranks.batches, alone.batches) << "world of " << size;
      EXPECT_EQ(ranks.planned, alone.planned);
    }
  }
}

TEST(loader_world, of_every_order_a_rank_goes_on_at_any_batch) {
  const watchdog limit("every order resumed");
  for (const ordered& each : all_orders()) {
    SCOPED_TRACE(each.name);
    loader_options options = with_global_batch(8);
    options.order = each.by;
    options.world = {.rank = 1, .size = 2};
    std::vector<std::pair<testing::seen_batch, loader_state>> run;
    {
      loader line(each.samples, options, testing::all_fields());
      while (!line.finished()) {
        if (std::optional<batch> got = line.next_blocking())
          run.emplace_back(testing::look_at(*got), line.state_after(*got));
      }
    }
    ASSERT_GE(run.size(), 8U);
    // As another process finds the state of each.
    for (std::size_t at = 0; at + 1 < run.size(); ++at) {
      options.resume = loader_state::from_bytes(run[at].second.bytes());
      loader line(each.samples, options, testing::all_fields());
      std::optional<batch> next = line.next_blocking();
      if (!next) next = line.next_blocking();  // That was the end of an epoch.
      ASSERT_TRUE(next) << "after batch " << at;
      EXPECT_EQ(testing::look_at(*next), run[at + 1].first) << "after batch " << at;
    }
  }
}

TEST(loader_world, another_batch_size_is_refused_where_a_run_goes_on) {
  const watchdog limit("many ranks");
  const fake_dataset samples(testing::make_samples(1, samples_in_all));
  loader_options options = small_options();
  options.batch_size = 2;
  options.world = {.rank = 0, .size = 4};
  options.resume = loader(samples, options, testing::label_only()).state();
  options.world = {.rank = 2, .size = 3};
  EXPECT_EQ(loader(samples, options, testing::label_only()).state().global_batch_size, 8U);
  options.batch_size = 4;
  EXPECT_THAT(testing::message_of(errc::usage, [&] { loader(samples, options, testing::label_only()); }),
              ::testing::HasSubstr("global_batch_size is 12, and was 8"));
}

TEST(loader_world, a_journal_that_is_there_is_left_alone_in_another_world) {
  const watchdog limit("many ranks");
  const testing::temporary_directory directory;
  const fake_dataset samples(testing::make_samples(1, samples_in_all));
  loader_options options = small_options();
  options.journal = directory.path() / "0.jsonl";
  options.world = {.rank = 0, .size = 4};
  options.resume = loader(samples, options, testing::label_only()).state();
  std::ofstream(options.journal) << "lines of rank 0 of 4\n";
  options.world.size = 2;
  EXPECT_THAT(testing::message_of(errc::usage, [&] { loader(samples, options, testing::label_only()); }),
              ::testing::HasSubstr("the state is of rank 0 of 4, not 0 of 2"));
  EXPECT_EQ(testing::whole_file(options.journal), "lines of rank 0 of 4\n");
}

TEST(loader_world, mixed_rows_are_those_of_the_rank) {
  const watchdog limit("many ranks");
  const fake_dataset samples(testing::make_samples(1, samples_in_all));
  loader_options options = with_global_batch(8);
  options.mix = mixup(1.0);
  const auto first_digest = [&](std::uint32_t rank, std::uint32_t size) {
    options.world = {.rank = rank, .size = size};
    leat::loader line(samples, options, {image("jpg").random_resized_crop(12).normalize(imagenet), label("cls")});
    const std::optional<batch> got = line.next_blocking();
    return std::pair(*got->content_digest(), std::vector<digest>(got->row_digests().begin(), got->row_digests().end()));
  };
  const auto alone = first_digest(0, 1);
  const auto half = first_digest(0, 2);
  // Row digests are those before mixing, and the same in every world.
  EXPECT_TRUE(std::equal(half.second.begin(), half.second.end(), alone.second.begin()));
  EXPECT_NE(half.first, alone.first);
}

}  // namespace
}  // namespace leat
