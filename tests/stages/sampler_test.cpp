#include <leat/error.hpp>
#include <leat/sampler.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

namespace leat {
namespace {

using ::testing::HasSubstr;
using ids = std::vector<std::uint64_t>;

ids batch_of(const sampler& order, std::uint32_t epoch, std::uint64_t batch) {
  std::vector<pick> rows(order.rows(epoch, batch));
  order.picks(epoch, batch, 0, order.rows(epoch, batch), rows);
  ids samples;
  for (const pick& row : rows) samples.push_back(row.sample);
  return samples;
}

ids epoch_of(const sampler& order, std::uint32_t epoch) {
  ids all;
  for (std::uint64_t batch = 0; batch < order.batches(epoch); ++batch) {
    const ids rows = batch_of(order, epoch, batch);
    all.insert(all.end(), rows.begin(), rows.end());
  }
  return all;
}

ids first_numbers(std::uint64_t count) {
  ids numbers(count);
  std::iota(numbers.begin(), numbers.end(), std::uint64_t{0});
  return numbers;
}

TEST(sampler, delivers_every_sample_once_per_epoch) {
  for (const std::uint64_t samples : {1U, 2U, 63U, 64U, 65U, 256U, 257U, 1000U, 20'000U}) {
    for (const std::uint32_t batch_size : {1U, 7U, 64U, 4096U}) {
      const global_sampler order(samples, {.seed = 5, .batch_size = batch_size});
      for (const std::uint32_t epoch : {0U, 1U, 4'000'000'000U}) {
        ids all = epoch_of(order, epoch);
        std::sort(all.begin(), all.end());
        ASSERT_EQ(all, first_numbers(samples)) << samples << " samples in batches of " << batch_size;
      }
    }
  }
}

TEST(sampler, without_shuffle_keeps_the_order_of_the_dataset) {
  const global_sampler order(1000, {.shuffle = false, .seed = 5, .batch_size = 64});
  EXPECT_EQ(epoch_of(order, 0), first_numbers(1000));
  EXPECT_EQ(epoch_of(order, 1), first_numbers(1000));
}

TEST(sampler, shuffles_each_epoch_and_each_seed_anew_and_the_same_ones_alike) {
  const auto epoch = [](std::uint64_t seed, std::uint32_t number) {
    return epoch_of(global_sampler(1000, {.seed = seed, .batch_size = 64}), number);
  };
  EXPECT_EQ(epoch(5, 0), epoch(5, 0));
  EXPECT_NE(epoch(5, 0), epoch(5, 1));
  EXPECT_NE(epoch(5, 0), epoch(6, 0));
  EXPECT_NE(epoch(5, 0), first_numbers(1000));
}

TEST(sampler, counts_batches_and_rows) {
  const auto shape = [](std::uint64_t samples, std::uint32_t batch_size, bool drop_last) {
    const global_sampler order(samples,
                               {.batch_size = batch_size, .last = drop_last ? last_batch::drop : last_batch::keep});
    std::vector<std::uint32_t> rows;
    for (std::uint64_t batch = 0; batch < order.batches(0); ++batch) rows.push_back(order.rows(0, batch));
    return rows;
  };
  using rows = std::vector<std::uint32_t>;
  EXPECT_EQ(shape(0, 4, false), (rows{}));
  EXPECT_EQ(shape(1, 4, false), (rows{1}));
  EXPECT_EQ(shape(1, 4, true), (rows{}));
  EXPECT_EQ(shape(8, 4, false), (rows{4, 4}));
  EXPECT_EQ(shape(8, 4, true), (rows{4, 4}));
  EXPECT_EQ(shape(9, 4, false), (rows{4, 4, 1}));
  EXPECT_EQ(shape(9, 4, true), (rows{4, 4}));
  EXPECT_EQ(shape(3, 4'000'000'000U, false), (rows{3}));
}

// What ranks will need: any rows of a global batch, asked alone, are those rows of it.
TEST(sampler, gives_any_rows_of_a_batch_alone) {
  for (const bool shuffle : {false, true}) {
    const global_sampler order(1000, {.shuffle = shuffle, .seed = 9, .batch_size = 64});
    std::vector<pick> whole(order.rows(2, 15));
    order.picks(2, 15, 0, order.rows(2, 15), whole);
    ASSERT_EQ(whole.size(), 1000U - 15 * 64);
    for (std::uint32_t begin = 0; begin <= whole.size(); begin += 5) {
      for (std::uint32_t end = begin; end <= whole.size(); ++end) {
        std::vector<pick> part(end - begin);
        order.picks(2, 15, begin, end, part);
        ASSERT_EQ(part, std::vector<pick>(whole.begin() + begin, whole.begin() + end)) << begin << ".." << end;
      }
    }
  }
}

TEST(sampler, keys_each_row_by_its_sample_and_the_epoch) {
  for (const bool shuffle : {false, true}) {
    const global_sampler order(1000, {.shuffle = shuffle, .seed = 9, .batch_size = 600});
    std::vector<pick> rows(600);
    order.picks(3, 0, 0, 600, rows);
    for (const pick& row : rows) EXPECT_EQ(row, (pick{.sample = row.sample, .draw = row.sample, .epoch = 3}));
  }
}

TEST(sampler, counts_the_rows_of_an_epoch_and_of_its_largest_batch) {
  const auto order = [](std::uint64_t samples, bool drop_last) {
    return global_sampler(samples, {.batch_size = 64, .last = drop_last ? last_batch::drop : last_batch::keep});
  };
  EXPECT_EQ(order(100, false).samples(0), 100U);
  EXPECT_EQ(order(100, true).samples(0), 64U);
  EXPECT_EQ(order(100, true).sampler::samples(0), 64U) << "the sum of the batches' rows is the same";
  EXPECT_EQ(order(100, false).rows_max(), 64U);
  EXPECT_EQ(order(10, false).rows_max(), 10U);
  EXPECT_EQ(order(0, false).rows_max(), 1U);
}

// What a sampler gets that says nothing of substitutes.
TEST(sampler, draws_substitutes_from_the_picks_of_the_epoch) {
  const global_sampler order(100, {.seed = 9, .batch_size = 64, .last = last_batch::drop});
  ASSERT_EQ(order.sampler::substitutes(2, 0), 64U);
  std::vector<pick> rows(64);
  order.picks(2, 0, 0, 64, rows);
  for (std::uint64_t n = 0; n < 64; ++n) EXPECT_EQ(order.sampler::substitute(2, 0, n), rows[n]);
  const global_sampler small(10, {.seed = 9, .batch_size = 4});
  rows.resize(2);
  small.picks(2, 2, 0, 2, rows);
  EXPECT_EQ(small.sampler::substitute(2, 0, 9), rows[1]);
}

TEST(sampler, does_not_depend_on_the_batch_size) {
  const global_sampler small(1000, {.seed = 3, .batch_size = 8}), large(1000, {.seed = 3, .batch_size = 500});
  EXPECT_EQ(epoch_of(small, 4), epoch_of(large, 4));
}

TEST(sampler, drop_last_leaves_out_what_the_order_puts_last_and_not_always_the_same) {
  const global_sampler all(10, {.seed = 3, .batch_size = 4}),
      dropped(10, {.seed = 3, .batch_size = 4, .last = last_batch::drop});
  std::vector<bool> ever_left_out(10);
  for (std::uint32_t epoch = 0; epoch < 50; ++epoch) {
    const ids whole = epoch_of(all, epoch);
    EXPECT_EQ(epoch_of(dropped, epoch), ids(whole.begin(), whole.begin() + 8));
    ever_left_out[whole[8]] = ever_left_out[whole[9]] = true;
  }
  EXPECT_EQ(std::count(ever_left_out.begin(), ever_left_out.end(), true), 10);
}

TEST(sampler, pads_the_last_batch_with_the_beginning_of_its_own_epoch) {
  for (const bool shuffle : {false, true}) {
    for (std::uint64_t samples = 0; samples < 40; ++samples) {
      for (const std::uint32_t batch_size : {1U, 3U, 8U, 100U}) {
        const global_sampler kept(samples, {.shuffle = shuffle, .seed = 3, .batch_size = batch_size});
        const global_sampler padded(samples,
                                    {.shuffle = shuffle, .seed = 3, .batch_size = batch_size, .last = last_batch::pad});
        const ids whole = epoch_of(kept, 5);
        ids filled = epoch_of(padded, 5);
        ASSERT_EQ(filled.size() % batch_size, 0U);
        ASSERT_EQ(padded.samples(5), filled.size());
        ASSERT_LT(filled.size(), whole.size() + batch_size);
        for (std::size_t i = 0; i < filled.size(); ++i) ASSERT_EQ(filled[i], whole[i % whole.size()]);
        std::uint64_t there_to_fill = 0;
        for (std::uint64_t batch = 0; batch < padded.batches(5); ++batch) {
          ASSERT_EQ(padded.rows(5, batch), batch_size);
          ASSERT_EQ(padded.rows_max(), batch_size);
          there_to_fill += padded.padded(5, batch);
          ASSERT_EQ(kept.padded(5, batch), 0U);
        }
        ASSERT_EQ(there_to_fill, filled.size() - whole.size());
        ASSERT_EQ(padded.repeats(), samples != 0 && samples < batch_size);
      }
    }
  }
}

TEST(sampler, gives_any_rows_of_a_padded_batch_alone) {
  for (const std::uint64_t samples : {3U, 20U}) {
    const global_sampler order(samples, {.seed = 9, .batch_size = 16, .last = last_batch::pad});
    const std::uint64_t last = order.batches(2) - 1;
    std::vector<pick> whole(16);
    order.picks(2, last, 0, 16, whole);
    for (std::uint32_t begin = 0; begin <= 16; ++begin) {
      for (std::uint32_t end = begin; end <= 16; ++end) {
        std::vector<pick> part(end - begin);
        order.picks(2, last, begin, end, part);
        ASSERT_EQ(part, std::vector<pick>(whole.begin() + begin, whole.begin() + end)) << begin << ".." << end;
      }
    }
  }
}

TEST(sampler, answers_far_into_an_epoch_of_2_to_the_48_samples_at_once) {
  const std::uint64_t samples = std::uint64_t{1} << 48;
  const global_sampler order(samples, {.seed = 3, .batch_size = 256});
  const ids last = batch_of(order, 7, order.batches(7) - 1);
  ASSERT_EQ(last.size(), 256U);
  EXPECT_TRUE(std::all_of(last.begin(), last.end(), [&](std::uint64_t id) { return id < samples; }));
}

TEST(sampler, refuses_what_cannot_be) {
  const auto message = [](std::uint64_t samples, std::uint32_t batch_size) -> std::string {
    try {
      const global_sampler order(samples, {.batch_size = batch_size});
    } catch (const error& e) {
      EXPECT_EQ(e.code(), errc::usage);
      return e.what();
    }
    return "no error";
  };
  EXPECT_THAT(message(10, 0), HasSubstr("batch_size is 0"));
  EXPECT_THAT(message((std::uint64_t{1} << 48) + 1, 4), HasSubstr("281474976710657 samples"));
}

}  // namespace
}  // namespace leat
