// A rank's rows of a global batch, by arithmetic: for every world and every last batch they are the batch.
#include "stages/plan/run_spec.hpp"
#include "tests/support/fake_dataset.hpp"

#include <leat/error.hpp>
#include <leat/loading.hpp>
#include <leat/world.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <numeric>
#include <vector>

namespace leat::stages {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr last_batch rules[] = {last_batch::keep, last_batch::drop, last_batch::pad};

std::vector<pick> rows_of(const sampler& order, std::uint32_t epoch, std::uint64_t batch, std::uint32_t begin,
                          std::uint32_t end) {
  std::vector<pick> rows(end - begin);
  order.picks(epoch, batch, begin, end, rows);
  return rows;
}

TEST(world, the_ranks_rows_in_rank_order_are_the_global_batch) {
  std::vector<std::uint32_t> sizes(48);
  std::iota(sizes.begin(), sizes.end(), 1U);
  sizes.insert(sizes.end(), {63, 64, 65, 127, 128, 200});
  for (const std::uint32_t samples : sizes) {
    for (const last_batch last : rules) {
      const global_sampler order(samples, {.seed = samples, .batch_size = 1 + samples * 7 % 64, .last = last});
      for (std::uint64_t batch = 0; batch < order.batches(1); ++batch) {
        const std::uint32_t n = order.rows(1, batch);
        const std::vector<pick> whole = rows_of(order, 1, batch, 0, n);
        for (std::uint32_t size = 1; size <= 16; ++size) {
          std::vector<pick> joined;
          for (std::uint32_t rank = 0; rank < size; ++rank) {
            const world here{.rank = rank, .size = size};
            ASSERT_EQ(here.row_begin(n), joined.size());
            ASSERT_LE(here.row_end(n) - here.row_begin(n), here.rows_max(order.rows_max()));
            const std::vector<pick> part = rows_of(order, 1, batch, here.row_begin(n), here.row_end(n));
            joined.insert(joined.end(), part.begin(), part.end());
          }
          ASSERT_EQ(joined, whole) << samples << " samples, world " << size << ", batch " << batch;
        }
      }
    }
  }
}

TEST(world, shares_differ_by_a_row_at_most_and_do_not_overflow) {
  constexpr std::uint32_t most = std::numeric_limits<std::uint32_t>::max();
  for (const std::uint32_t size : {1U, 2U, 3U, 7U, 16'384U, most}) {
    for (const std::uint32_t rows : {0U, 1U, 2U, 1000U, most}) {
      for (const std::uint32_t rank : {0U, size / 2, size - 1}) {
        const world here{.rank = rank, .size = size};
        const std::uint32_t share = here.row_end(rows) - here.row_begin(rows);
        EXPECT_GE(share, rows / size);
        EXPECT_LE(share, here.rows_max(rows));
        EXPECT_LE(here.rows_max(rows), std::uint64_t{rows} / size + 1);
      }
      EXPECT_EQ((world{.rank = 0, .size = size}.row_begin(rows)), 0U);
      EXPECT_EQ((world{.rank = size - 1, .size = size}.row_end(rows)), rows);
    }
  }
}

loader_options of_world(std::uint32_t rank, std::uint32_t size, last_batch last, std::uint32_t global) {
  loader_options options;
  options.seed = 5;
  options.last = last;
  options.global_batch_size = global;
  options.world = {.rank = rank, .size = size};
  return options;
}

// The run that a loader is built on, with all that it plans: picks, padded rows, the rows of an epoch, the most of a batch.
TEST(world, a_run_of_a_rank_plans_its_rows_of_every_batch_and_no_others) {
  const testing::fake_dataset samples(testing::make_samples(1, 45));
  const std::vector<field> fields{label("cls")};
  for (const last_batch last : rules) {
    const run_spec alone(samples, fields, of_world(0, 1, last, 8));
    for (const std::uint32_t size : {2U, 3U, 8U, 11U}) {
      std::uint64_t planned = 0;
      for (std::uint32_t rank = 0; rank < size; ++rank) {
        const run_spec run(samples, fields, of_world(rank, size, last, 8));
        ASSERT_EQ(run.batches(0), alone.batches(0));
        EXPECT_EQ(run.layout()->rows_max(), (8 + size - 1) / size);
        planned += run.epoch_samples();
      }
      EXPECT_EQ(planned, alone.epoch_samples());
      for (std::uint64_t batch = 0; batch < alone.batches(1); ++batch) {
        std::vector<pick> joined;
        std::uint32_t padded = 0;
        for (std::uint32_t rank = 0; rank < size; ++rank) {
          const run_spec run(samples, fields, of_world(rank, size, last, 8));
          std::vector<pick> rows{{.sample = 99}};
          run.pick_rows(1, batch, rows);
          ASSERT_LE(rows.size(), run.layout()->rows_max());
          const std::uint32_t own = run.padded(1, batch);
          ASSERT_LE(own, rows.size());
          // Padded rows are the last of all: who has some and is not the first of them has no other rows.
          if (padded != 0) EXPECT_EQ(own, rows.size());
          padded += own;
          joined.insert(joined.end(), rows.begin(), rows.end());
        }
        std::vector<pick> whole;
        alone.pick_rows(1, batch, whole);
        EXPECT_EQ(joined, whole);
        EXPECT_EQ(padded, alone.padded(1, batch));
        EXPECT_EQ(padded, last == last_batch::pad && batch + 1 == alone.batches(1) ? 3U : 0U);
      }
    }
  }
}

TEST(world, a_substitute_is_drawn_from_the_whole_order_by_every_rank) {
  const testing::fake_dataset samples(testing::make_samples(1, 45));
  const std::vector<field> fields{label("cls")};
  const run_spec alone(samples, fields, of_world(0, 1, last_batch::keep, 8));
  for (std::uint32_t rank = 0; rank < 3; ++rank) {
    const run_spec run(samples, fields, of_world(rank, 3, last_batch::keep, 8));
    ASSERT_EQ(run.substitutes(0, 2), 45U);
    for (std::uint64_t n = 0; n < 45; ++n) EXPECT_EQ(run.substitute(0, 2, 0, n), alone.substitute(0, 2, 5, n));
  }
}

TEST(world, a_global_batch_is_that_of_each_rank_times_their_number_unless_it_is_given) {
  loader_options options;
  options.batch_size = 6;
  options.world = {.rank = 1, .size = 4};
  EXPECT_EQ(global_batch_size(checked(options)), 24U);
  options.global_batch_size = 7;
  EXPECT_EQ(global_batch_size(checked(options)), 7U);
}

TEST(world, that_cannot_be_is_refused) {
  const auto refusal = [](const world& given, std::uint32_t batch_size = 64) -> std::string {
    loader_options options;
    options.world = given;
    options.batch_size = batch_size;
    try {
      static_cast<void>(checked(options));
    } catch (const error& refused) {
      EXPECT_EQ(refused.code(), errc::usage);
      return refused.what();
    }
    return "";
  };
  EXPECT_EQ(refusal({.rank = 3, .size = 4}), "");
  EXPECT_THAT(refusal({.rank = 4, .size = 4}), HasSubstr("loader_options::world: rank 4 of 4"));
  EXPECT_THAT(refusal({.rank = 0, .size = 0}), HasSubstr("a world of 0 ranks"));
  EXPECT_THAT(refusal({.rank = 0, .size = 4, .local_rank = 1}), HasSubstr("local rank 1 of 1"));
  EXPECT_THAT(refusal({.rank = 0, .size = 4, .local_rank = 0, .local_size = 0}), HasSubstr("local rank 0 of 0"));
  EXPECT_THAT(refusal({.rank = 0, .size = 1000}, 5'000'000),
              AllOf(HasSubstr("5000000000 rows"), HasSubstr("lower loader_options::batch_size")));
}

}  // namespace
}  // namespace leat::stages
