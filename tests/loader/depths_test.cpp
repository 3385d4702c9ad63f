// Depths that change while a loader runs: prefetch, reads in flight, decode threads.
#include "stages/run/concurrency_limits.hpp"
#include "stages/run/loader_parts.hpp"
#include "tests/loader/running.hpp"
#include "tests/support/fake_dataset.hpp"
#include "tests/support/seeded_random.hpp"
#include "tests/support/seeds.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/support/watchdog.hpp"

#include <leat/loading.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

namespace leat {
namespace {

using stages::concurrency_limits;
using stages::depths_max;
using stages::depths_of;
using stages::set_depths;
using testing::fake_dataset;
using testing::loader;
using testing::loader_options;
using testing::seen_batch;

loader_options deep_options() {
  loader_options options = testing::small_options();
  options.batch_size = 4;
  options.prefetch_batches = 6;
  options.decode_threads = 4;
  options.epochs = 3;
  return options;
}

std::uint32_t between(testing::seeded_random& random, std::uint32_t least, std::uint32_t most) {
  return least + static_cast<std::uint32_t>(random.below(most - least + 1));
}

concurrency_limits some_depths(testing::seeded_random& random, const concurrency_limits& most) {
  return {.batches = between(random, 2, most.batches),
          .queue_depth = between(random, 0, most.queue_depth),
          .decode_threads = between(random, 1, most.decode_threads),
          .io_threads = between(random, 1, most.io_threads)};
}

// All batches, while another thread moves the depths, until the run has ended.
std::vector<seen_batch> run_with_moving_depths(const dataset& samples, const loader_options& options,
                                               std::uint64_t seed) {
  loader train(samples, options, testing::all_fields());
  const concurrency_limits most = depths_max(train);
  EXPECT_EQ(most.decode_threads, options.decode_threads);
  EXPECT_EQ(most.batches, options.prefetch_batches + 1);
  std::atomic<bool> over{false};
  std::uint64_t moves = 0;
  std::thread mover([&] {
    testing::seeded_random random(seed);
    while (!over) {
      const concurrency_limits wanted = some_depths(random, most);
      set_depths(train, wanted);
      EXPECT_EQ(depths_of(train), wanted);
      ++moves;
      std::this_thread::sleep_for(std::chrono::microseconds(random.below(300)));
    }
  });
  std::vector<seen_batch> seen = testing::run_epochs(train, options.epochs);
  over = true;
  mover.join();
  EXPECT_GT(moves, 0U);
  return seen;
}

TEST(depths, that_change_at_random_moments_touch_no_byte) {
  const testing::watchdog dog("depths");
  const auto samples = testing::make_samples(5, 60);
  loader_options options = deep_options();
  loader plain(fake_dataset(samples), options, testing::all_fields());
  const std::vector<seen_batch> expected = testing::run_epochs(plain, options.epochs);
  testing::for_each_seed(12, [&](std::uint64_t seed) {
    const fake_dataset set(samples, {.disk = {.seed = seed}});
    options.reader.io_threads = 1 + static_cast<std::uint32_t>(seed % 3);
    EXPECT_EQ(run_with_moving_depths(set, options, seed), expected);
  });
}

TEST(depths, that_change_at_random_moments_touch_no_byte_of_files_on_any_fallback) {
  const testing::watchdog dog("depths, files");
  const testing::temporary_directory directory;
  const dataset files = testing::write_samples(testing::make_samples(6, 60), {}, directory.path());
  loader_options options = deep_options();
  loader plain(files, options, testing::all_fields());
  const std::vector<seen_batch> expected = testing::run_epochs(plain, options.epochs);
  testing::for_each_seed(8, [&](std::uint64_t seed) {
    options.reader.backend = seed % 2 == 0 ? read_backend::automatic : read_backend::preadv;
    options.reader.io_threads = 1 + static_cast<std::uint32_t>(seed % 2);
    options.shuffle = true;
    EXPECT_EQ(run_with_moving_depths(files, options, seed), expected);
  });
}

TEST(depths, of_a_loader_that_stops_while_they_move_do_not_keep_it) {
  const testing::watchdog dog("depths, stop");
  const auto samples = testing::make_samples(7, 60);
  testing::for_each_seed(20, [&](std::uint64_t seed) {
    const fake_dataset set(samples, {.disk = {.seed = seed}});
    testing::seeded_random random(seed);
    loader train(set, deep_options(), testing::all_fields());
    const concurrency_limits most = depths_max(train);
    for (std::uint64_t k = random.below(8); k != 0; --k) {
      set_depths(train, some_depths(random, most));
      static_cast<void>(train.next_blocking());
    }
    set_depths(train, {.batches = 1, .queue_depth = 1, .decode_threads = 1});
    train.stop();
    set_depths(train, most);
  });
}

// As many batches as the depth says are made ahead of a consumer that takes none, and more as soon as it is raised.
TEST(depths, bound_the_batches_that_there_are) {
  const testing::watchdog dog("depths, prefetch");
  loader_options options = deep_options();
  options.epochs = 0;
  const fake_dataset set(testing::make_samples(8, 60));
  loader train(set, options, testing::label_only());
  set_depths(train, {.batches = 3, .queue_depth = 0, .decode_threads = 1});
  // Those that were there before leave; then there are 3 with the one in hand.
  for (int k = 0; k < 12; ++k) static_cast<void>(train.next_blocking());
  const auto ready = [&] { return train.stats().batches_ready + train.stats().batches_out; };
  const auto settles_at = [&](std::uint64_t wanted) {
    // An end of an epoch that is ready counts as one.
    for (int k = 0; k < 10'000 && ready() < wanted; ++k) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    return ready() >= wanted && ready() <= wanted + 1;
  };
  EXPECT_TRUE(settles_at(3)) << ready();
  set_depths(train, {.batches = 6, .queue_depth = 0, .decode_threads = 1});
  EXPECT_TRUE(settles_at(6)) << ready();
}

TEST(depths, out_of_range_are_refused_with_the_range_and_change_nothing) {
  const fake_dataset set(testing::make_samples(9, 8));
  loader train(set, deep_options(), testing::label_only());
  const concurrency_limits before = depths_of(train);
  const concurrency_limits most = depths_max(train);
  const auto refusal = [&](concurrency_limits wanted) {
    return testing::message_of(errc::usage, [&] { set_depths(train, wanted); });
  };
  concurrency_limits wanted = most;
  wanted.batches = most.batches + 1;
  EXPECT_THAT(refusal(wanted), ::testing::HasSubstr("batches is " + std::to_string(wanted.batches)));
  wanted.batches = 0;
  EXPECT_THAT(refusal(wanted), ::testing::HasSubstr("give 1 to " + std::to_string(most.batches)));
  wanted = most;
  wanted.queue_depth = most.queue_depth + 1;
  EXPECT_THAT(refusal(wanted), ::testing::HasSubstr("queue_depth"));
  wanted = most;
  wanted.decode_threads = 0;
  EXPECT_THAT(refusal(wanted), ::testing::HasSubstr("decode_threads is 0"));
  wanted = most;
  wanted.io_threads = 2;
  EXPECT_THAT(refusal(wanted), ::testing::HasSubstr("io_threads is 2; give 1 to 1"));
  EXPECT_EQ(depths_of(train), before);
}

// Batches of one loop are read by its thread: the others read nothing any more.
TEST(depths, of_one_io_thread_leave_the_others_alone) {
  const testing::watchdog dog("depths, I/O threads");
  const testing::temporary_directory directory;
  const dataset files = testing::write_samples(testing::make_samples(10, 60), {}, directory.path());
  loader_options options = deep_options();
  options.epochs = 0;
  options.reader.io_threads = 3;
  options.timeline.bytes = std::size_t{1} << 20;
  loader train(files, options, testing::label_only());
  EXPECT_EQ(depths_of(train).io_threads, 3U);
  concurrency_limits one = depths_of(train);
  one.io_threads = 1;
  set_depths(train, one);
  // What was under way when that was set.
  for (int k = 0; k < 20; ++k) static_cast<void>(train.next_blocking());
  const auto cpu_of_others = [&] {
    const std::vector<thread_stats> threads = train.stats().threads;
    return threads.at(1).cpu_s + threads.at(2).cpu_s;
  };
  const double before = cpu_of_others();
  for (int k = 0; k < 60; ++k) static_cast<void>(train.next_blocking());
  EXPECT_EQ(cpu_of_others(), before);
  EXPECT_EQ(train.stats().verdict.io_threads, 1U);
}

}  // namespace
}  // namespace leat
