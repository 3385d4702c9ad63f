// Leaving an epoch before its end: what `break` does, and what skip_epoch() does.
#include "tests/loader/running.hpp"
#include "tests/support/fake_dataset.hpp"
#include "tests/support/seeded_random.hpp"
#include "tests/support/seeds.hpp"
#include "tests/support/watchdog.hpp"

#include <leat/loading.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

namespace leat {
namespace {

using testing::fake_dataset;
using testing::label_only;
using testing::labels;
using testing::loader;
using testing::loader_options;
using testing::seen_batch;
using testing::watchdog;

loader_options options_for(std::uint32_t epochs) {
  loader_options options = testing::small_options();
  options.epochs = epochs;
  return options;
}

// What whole epochs hold, batch by batch: [epoch][index].
std::vector<std::vector<seen_batch>> whole_epochs(const dataset& samples, const loader_options& options,
                                                  const std::vector<field>& fields) {
  std::vector<std::vector<seen_batch>> epochs(options.epochs);
  loader_options here = options;
  testing::choose_place(here);
  loader train(samples, here, fields);
  for (std::vector<seen_batch>& epoch : epochs) {
    while (const auto got = train.next_blocking()) epoch.push_back(testing::look_at(*got));
  }
  return epochs;
}

TEST(a_break, leaves_the_epoch_where_it_is_and_the_next_range_goes_on_behind_it) {
  const watchdog dog("break");
  const fake_dataset set(labels(64));
  const auto expected = whole_epochs(set, options_for(1), label_only());
  loader train(set, options_for(1), label_only());
  std::vector<seen_batch> seen;
  for (const batch& got : train.blocking()) {
    seen.push_back(testing::look_at(got));
    if (seen.size() == 3) break;
  }
  for (const batch& got : train.blocking()) seen.push_back(testing::look_at(got));
  EXPECT_EQ(seen, expected[0]);
  EXPECT_EQ(train.stats().epochs_finished, 1U);
}

TEST(skip_epoch, begins_the_next_one_after_a_break) {
  const watchdog dog("break and skip");
  const fake_dataset set(labels(64));
  const auto expected = whole_epochs(set, options_for(3), label_only());
  loader train(set, options_for(3), label_only());
  for (std::uint32_t epoch = 0; epoch < 3; ++epoch) {
    std::vector<seen_batch> seen;
    for (const batch& got : train.blocking()) {
      seen.push_back(testing::look_at(got));
      if (seen.size() == epoch + 1) break;
    }
    train.skip_epoch();
    EXPECT_EQ(seen, (std::vector<seen_batch>(expected[epoch].begin(), expected[epoch].begin() + epoch + 1)));
  }
  for (int again = 0; again < 3; ++again) EXPECT_FALSE(train.next_blocking()) << "the last epoch was skipped as well";
  EXPECT_EQ(train.stats().epochs_finished, 3U);
  EXPECT_EQ(train.stats().batches, 6U);
  EXPECT_EQ(train.stats().planned, 48U) << "what was dropped is not counted";
}

TEST(skip_epoch, does_nothing_between_two_epochs_nor_a_second_time) {
  const watchdog dog("skip between epochs");
  const fake_dataset set(labels(24));
  const auto expected = whole_epochs(set, options_for(3), label_only());
  loader train(set, options_for(3), label_only());
  train.skip_epoch();  // before the first batch
  std::vector<seen_batch> seen;
  for (const batch& got : train.blocking()) seen.push_back(testing::look_at(got));
  EXPECT_EQ(seen, expected[0]);
  train.skip_epoch();  // the loop has seen the end
  EXPECT_EQ(testing::look_at(*train.next_blocking()), expected[1][0]);
  train.skip_epoch();
  train.skip_epoch();
  EXPECT_EQ(testing::look_at(*train.next_blocking()), expected[2][0]);
}

TEST(skip_epoch, takes_the_end_along_where_all_batches_have_been_handed_out) {
  const watchdog dog("skip of nothing but the end");
  const fake_dataset set(labels(24));
  loader train(set, options_for(2), label_only());
  for (std::uint64_t index = 0; index < 3; ++index) EXPECT_EQ(train.next_blocking()->index(), index);
  train.skip_epoch();
  const auto got = train.next_blocking();
  ASSERT_TRUE(got);
  EXPECT_EQ(got->epoch(), 1U);
  EXPECT_EQ(got->index(), 0U);
}

TEST(skip_epoch, changes_no_batch_that_is_delivered_at_any_moment_on_any_machine) {
  const auto samples = testing::make_samples(1, 100);
  const auto fields = testing::all_fields();
  const auto expected = whole_epochs(fake_dataset(samples), options_for(6), fields);
  watchdog dog("skip at any moment");
  testing::for_each_seed(40, [&](std::uint64_t seed) {
    dog.step("seed " + std::to_string(seed));
    testing::seeded_random random(seed);
    testing::fake_dataset_options where;
    where.disk.seed = seed;
    const fake_dataset set(samples, where);
    loader_options options = options_for(6);
    options.decode_threads = static_cast<std::uint32_t>(1 + random.below(4));
    options.prefetch_batches = static_cast<std::uint32_t>(random.below(20));
    options.reader.io_threads = random.chance(0.3) ? 2 : 1;
    loader train(set, options, fields);
    std::vector<batch> held;
    for (std::uint32_t epoch = 0; epoch < 6; ++epoch) {
      const std::uint64_t taken = 1 + random.below(expected[epoch].size());
      for (std::uint64_t index = 0; index < taken; ++index) {
        auto got = train.next_blocking();
        ASSERT_TRUE(got);
        ASSERT_EQ(testing::look_at(*got), expected[epoch][index]);
        if (random.chance(0.1)) held.push_back(*std::move(got));
        if (held.size() > 1) held.erase(held.begin());
      }
      if (random.chance(0.3)) std::this_thread::yield();
      train.skip_epoch();
    }
    EXPECT_FALSE(train.next_blocking());
    EXPECT_EQ(train.stats().samples, train.stats().planned);
  });
}

TEST(skip_epoch, reads_no_more_of_the_epoch_than_was_under_way) {
  const watchdog dog("reads after a skip");
  const fake_dataset set(labels(8192));
  loader_options options = options_for(2);
  options.prefetch_batches = 4;
  loader train(set, options, label_only());
  ASSERT_TRUE(train.next_blocking());
  train.skip_epoch();
  std::uint64_t batches = 0;
  while (train.next_blocking()) ++batches;
  EXPECT_EQ(batches, 1024U);
  // What is taken and the four ahead, one that is planned, and one that was planned when the batch was handed out; of
  // the whole epoch it would be 8,192 reads.
  EXPECT_LE(train.stats().read.count, 8192U + 8 * 12);
}

TEST(skip_epoch, drops_what_would_have_ended_the_run) {
  const watchdog dog("skip of a corrupt sample");
  auto samples = labels(64);
  samples[40].members[0].bytes = testing::to_bytes("none");
  loader_options options = options_for(2);
  options.shuffle = false;
  options.batches_max = 6;  // of which the last has the sample
  const fake_dataset set(samples);
  loader train(set, options, label_only());
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(train.next_blocking());
  // It is there, and waits for its turn.
  while (train.stats().decode.count < 48) std::this_thread::yield();
  train.skip_epoch();
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(train.next_blocking());
  EXPECT_THAT(testing::message_of(errc::corrupt, [&] { static_cast<void>(train.next_blocking()); }),
              ::testing::HasSubstr("sample/40"));
  EXPECT_EQ(train.stats().quarantined, 1U);
}

TEST(skip_epoch, is_quick_and_gives_the_memory_back_through_a_thousand_epochs) {
  const watchdog dog("a thousand skips");
  const fake_dataset set(labels(512));
  loader_options options = options_for(0);
  options.digests = false;
  loader train(set, options, label_only());
  for (std::uint32_t epoch = 0; epoch < 1000; ++epoch) {
    const auto got = train.next_blocking();
    ASSERT_TRUE(got);
    ASSERT_EQ(got->epoch(), epoch);
    ASSERT_EQ(got->index(), 0U);
    train.skip_epoch();
  }
  // An epoch is 512 samples; of a thousand of them there are no more than those that were under way.
  EXPECT_LT(train.stats().read.count, 1000U * 256);
}

TEST(skip_epoch, is_refused_while_a_next_waits_and_leaves_it_alone) {
  const watchdog dog("skip while next waits");
  const fake_dataset set(labels(64));
  std::atomic<bool> go_on{false};
  loader train(
      set, options_for(1),
      custom("cls", dtype::u8, {1}, [&](std::span<const std::byte>, const sample_context&, std::span<std::byte> row) {
        while (!go_on) std::this_thread::yield();
        row[0] = std::byte{1};
        return std::string();
      }));
  testing::trainer one(train);
  const auto asked = one.ask();
  EXPECT_THAT(testing::message_of(errc::usage, [&] { train.skip_epoch(); }), ::testing::HasSubstr("next()"));
  go_on = true;
  one.wait();
  ASSERT_TRUE(asked->got);
  EXPECT_EQ(asked->got->index(), 0U);
}

TEST(skip_epoch, of_a_loader_that_was_stopped_or_has_failed_does_nothing) {
  const watchdog dog("skip after the end");
  const fake_dataset set(labels(64));
  loader train(set, options_for(2), label_only());
  ASSERT_TRUE(train.next_blocking());
  train.stop();
  train.skip_epoch();
  EXPECT_THROW(static_cast<void>(train.next_blocking()), error);
}

}  // namespace
}  // namespace leat
