// What the tuner does with windows: of lines in virtual time, whose best settings are known, and of windows that were made up.
#include "stages/run/tuner.hpp"

#include "stages/observe/verdict.hpp"
#include "tests/support/virtual_line.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace leat::stages {
namespace {

using leat::testing::virtual_line;
using leat::testing::virtual_line_options;

// As machines are in the lab: reads of 80 us to 2 ms, jobs of 0.3 to 4 ms, 16 cores of which the trainer has one.
virtual_line_options draw_machine(std::mt19937_64& random) {
  const auto between = [&](double a, double b) {
    return std::exp(std::uniform_real_distribution<double>(std::log(a), std::log(b))(random));
  };
  return {.read_s = between(80e-6, 2e-3),
          .bus_s = between(8e-6, 60e-6),
          .decode_s = between(3e-4, 4e-3),
          .decode_sigma = between(0.2, 0.8),
          .copy_s = between(25e-6, 5e-4),
          .step_s = between(1e-3, 1e-2),
          .cores = 16,
          .batch = 16,
          .seed = random()};
}

constexpr concurrency_limits most = {.batches = 12, .queue_depth = 256, .decode_threads = 15, .io_threads = 4};
constexpr concurrency_limits most_of_a_store = {
    .batches = 12, .queue_depth = 256, .decode_threads = 15, .io_threads = 1, .connections = 512};

struct tuned_run {
  std::vector<double> rates;         // of each window
  std::vector<std::size_t> changes;  // the windows after which something was changed
  concurrency_limits at_the_end;
  double stall_at_the_end = 0;
  bool frozen = false;
  bool exceeded = false;
};

tuned_run tune(virtual_line_options options, const concurrency_limits& start, std::size_t windows) {
  const concurrency_limits& allowed = options.is_remote ? most_of_a_store : most;
  const auto set = [](virtual_line& line, const concurrency_limits& to) {
    line.set({.decode_threads = to.decode_threads,
              .reads_at_a_time = to.connections != 0 ? to.connections : to.queue_depth * to.io_threads,
              .batches = to.batches,
              .io_threads = to.io_threads});
  };
  virtual_line line(options);
  set(line, start);
  tuner tuned(start, allowed);
  tuned_run seen;
  static_cast<void>(line.run(8));
  for (std::size_t window = 0; window < windows; ++window) {
    const line_counts counts = line.run(24);
    const verdict found = judge(counts, line.setting());
    seen.rates.push_back(found.samples_per_s);
    seen.stall_at_the_end = found.stall_share;
    const std::optional<tuning_change> change = tuned.see(found);
    if (!change) continue;
    seen.changes.push_back(window);
    EXPECT_EQ(change->to, tuned.now());
    seen.exceeded |= change->to.decode_threads > allowed.decode_threads ||
                     change->to.queue_depth > allowed.queue_depth || change->to.batches > allowed.batches ||
                     change->to.io_threads > allowed.io_threads || change->to.connections > allowed.connections ||
                     change->to.decode_threads == 0 || change->to.batches == 0 || change->to.io_threads == 0;
    set(line, change->to);
  }
  seen.at_the_end = tuned.now();
  seen.frozen = tuned.is_frozen();
  return seen;
}

// More of anything does no harm in these lines, as there are cores for all threads.
double best_rate(virtual_line_options options) {
  options.decode_threads = most.decode_threads;
  options.reads_at_a_time = most.queue_depth;
  options.batches = most.batches;
  options.io_threads = most.io_threads;
  return leat::testing::throughput_of(options);
}

// Of a store, of a grid: more connections than it allows may do harm.
double best_rate_of_store(virtual_line_options options) {
  options.decode_threads = most_of_a_store.decode_threads;
  options.batches = most_of_a_store.batches;
  double best = 0;
  for (unsigned connections = 32; connections <= most_of_a_store.connections; connections *= 4) {
    options.reads_at_a_time = connections;
    best = std::max(best, leat::testing::throughput_of(options));
  }
  return best;
}

double mean_of_last(const std::vector<double>& rates, std::size_t count) {
  double sum = 0;
  for (std::size_t i = rates.size() - count; i < rates.size(); ++i) sum += rates[i];
  return sum / static_cast<double>(count);
}

struct machines_tally {
  int good = 0;
  int restless = 0;
  int exceeded = 0;
  std::vector<std::size_t> windows_to_good;
  std::string missed;
};

// The same machines, where one I/O thread gives the trainer a third of what it takes, or all of it.
virtual_line_options draw_machine_with_dear_reads(std::mt19937_64& random) {
  virtual_line_options drawn = draw_machine(random);
  drawn.io_s = std::uniform_real_distribution<double>(1, 3)(random) * drawn.step_s / drawn.batch;
  return drawn;
}

// The same machines beside a store: answers take 5 to 60 ms, and it gives 48 to 512 at a time.
virtual_line_options draw_machine_with_a_store(std::mt19937_64& random) {
  virtual_line_options drawn = draw_machine(random);
  const auto between = [&](double a, double b) {
    return std::exp(std::uniform_real_distribution<double>(std::log(a), std::log(b))(random));
  };
  drawn.is_remote = true;
  drawn.read_s = between(5e-3, 60e-3);
  drawn.channels = static_cast<unsigned>(between(48, 512));
  drawn.batch = 32;
  drawn.step_s *= 2;
  return drawn;
}

machines_tally tune_many(int machines, const concurrency_limits& start, std::uint64_t seed,
                         virtual_line_options (*draw)(std::mt19937_64&) = draw_machine) {
  constexpr std::size_t windows = 40;
  std::mt19937_64 random(seed);
  machines_tally all;
  for (int i = 0; i < machines; ++i) {
    const virtual_line_options options = draw(random);
    const double best = options.is_remote ? best_rate_of_store(options) : best_rate(options);
    const tuned_run seen = tune(options, start, windows);
    const double at_the_end = mean_of_last(seen.rates, 10) / best;
    all.good += at_the_end >= 0.95 ? 1 : 0;
    if (at_the_end < 0.95) all.missed += std::to_string(at_the_end) + " (seed " + std::to_string(options.seed) + ")\n";
    const auto late = std::count_if(seen.changes.begin(), seen.changes.end(),
                                    [&](std::size_t window) { return window >= windows - 10; });
    all.restless += late > 4 ? 1 : 0;
    all.exceeded += seen.exceeded ? 1 : 0;
    const auto reached = std::find_if(seen.rates.begin(), seen.rates.end(), [&](double x) { return x >= 0.95 * best; });
    all.windows_to_good.push_back(static_cast<std::size_t>(reached - seen.rates.begin()));
  }
  std::sort(all.windows_to_good.begin(), all.windows_to_good.end());
  return all;
}

TEST(tuner, finds_95_percent_of_the_best_on_95_percent_of_200_machines_from_few_threads) {
  const machines_tally all = tune_many(200, {.batches = 2, .queue_depth = 8, .decode_threads = 2}, 5);
  EXPECT_GE(all.good, 190) << all.missed;
  EXPECT_EQ(all.restless, 0);
  EXPECT_EQ(all.exceeded, 0);
  EXPECT_LE(all.windows_to_good[100], 4U);
  EXPECT_LE(all.windows_to_good[180], 10U);
  RecordProperty("good", all.good);
  RecordProperty("windows_median", static_cast<int>(all.windows_to_good[100]));
  RecordProperty("windows_p90", static_cast<int>(all.windows_to_good[180]));
}

TEST(tuner, finds_how_many_io_threads_200_machines_take) {
  const machines_tally all = tune_many(200, {.batches = 12, .queue_depth = 32, .decode_threads = 15, .io_threads = 1},
                                       9, draw_machine_with_dear_reads);
  EXPECT_GE(all.good, 190) << all.missed;
  EXPECT_EQ(all.restless, 0);
  EXPECT_EQ(all.exceeded, 0);
  EXPECT_LE(all.windows_to_good[180], 10U);
  RecordProperty("good", all.good);
  RecordProperty("windows_p90", static_cast<int>(all.windows_to_good[180]));
}

TEST(tuner, finds_how_many_connections_200_stores_take) {
  const concurrency_limits start = {
      .batches = 12, .queue_depth = 256, .decode_threads = 15, .io_threads = 1, .connections = 32};
  const machines_tally all = tune_many(200, start, 10, draw_machine_with_a_store);
  EXPECT_GE(all.good, 190) << all.missed;
  EXPECT_EQ(all.restless, 0);
  EXPECT_EQ(all.exceeded, 0);
  EXPECT_LE(all.windows_to_good[189], 10U);
  // They are what it takes: none that it begins with is as fast everywhere.
  std::mt19937_64 random(10);
  int slow_at_first = 0;
  for (int i = 0; i < 40; ++i) {
    virtual_line_options options = draw_machine_with_a_store(random);
    const double best = best_rate_of_store(options);
    options.decode_threads = start.decode_threads;
    options.batches = start.batches;
    options.reads_at_a_time = start.connections;
    slow_at_first += leat::testing::throughput_of(options) < 0.95 * best ? 1 : 0;
  }
  EXPECT_GE(slow_at_first, 10) << "of 40";
  RecordProperty("good", all.good);
  RecordProperty("slow_at_first", slow_at_first);
  RecordProperty("windows_p95", static_cast<int>(all.windows_to_good[189]));
}

// As a loader begins.
TEST(tuner, keeps_95_percent_of_the_best_on_200_machines_when_it_begins_with_all) {
  const machines_tally all = tune_many(200, most, 6);
  EXPECT_GE(all.good, 190) << all.missed;
  EXPECT_EQ(all.restless, 0);
  EXPECT_EQ(all.exceeded, 0);
  RecordProperty("good", all.good);
}

TEST(tuner, gives_back_the_cores_that_a_slow_trainer_does_not_need) {
  std::mt19937_64 random(7);
  int given_back = 0;
  for (int i = 0; i < 50; ++i) {
    virtual_line_options options = draw_machine(random);
    options.step_s = 16 * options.decode_s;  // a batch of 16 takes one thread
    options.bus_s = options.decode_s / 10;
    options.read_s = options.decode_s;
    options.copy_s = options.decode_s;
    const tuned_run seen = tune(options, most, 40);
    given_back += seen.at_the_end.decode_threads <= 3 ? 1 : 0;
    EXPECT_GE(mean_of_last(seen.rates, 10), 0.97 * 16 / options.step_s) << options.seed;
  }
  EXPECT_GE(given_back, 45);
  RecordProperty("given_back", given_back);
}

TEST(tuner, is_never_restless_with_tails_bursts_drift_and_neighbours) {
  std::mt19937_64 random(8);
  for (int i = 0; i < 100; ++i) {
    virtual_line_options options = draw_machine(random);
    switch (i % 4) {
      case 0:
        options.decode_tail = 0.01;
        break;
      case 1:
        options.burst_s = 8 * options.step_s;
        break;
      case 2:
        options.read_drift = 0.02;
        break;
      default:
        options.read_others = 0.7;
    }
    const tuned_run seen = tune(options, most, 100);
    EXPECT_FALSE(seen.exceeded);
    const auto late =
        std::count_if(seen.changes.begin(), seen.changes.end(), [](std::size_t window) { return window >= 60; });
    EXPECT_LE(late, 10) << "of 40 windows, seed " << options.seed;
  }
}

verdict window_of(bottleneck who, double rate, double stall) {
  verdict made;
  made.who = who;
  made.samples_per_s = rate;
  made.stall_share = stall;
  made.window_s = 2;
  made.decode = {.per_s = rate};
  made.consumer = {.per_s = 4 * rate};
  made.next = bottleneck::consumer;
  made.if_free = made.consumer;
  made.reads_at_a_time = 32;
  made.io_threads = 1;
  return made;
}

TEST(tuner, undoes_what_gains_nothing_and_tries_it_less_and_less_often) {
  tuner tuned({.batches = 12, .queue_depth = 256, .decode_threads = 4}, most);
  std::vector<std::uint32_t> tried_at;
  for (std::uint32_t window = 0; window < 300; ++window) {
    const auto change = tuned.see(window_of(bottleneck::decode, 1'000, 0.5));
    if (!change) continue;
    if (change->to.decode_threads > 4) {
      EXPECT_EQ(change->to.decode_threads, 8U) << "at most twice as many";
      EXPECT_EQ(change->why, "decode");
      tried_at.push_back(window);
    } else {
      EXPECT_EQ(change->to.decode_threads, 4U);
      EXPECT_EQ(change->why, "no gain");
    }
  }
  EXPECT_EQ(tuned.now().decode_threads, 4U);
  ASSERT_GE(tried_at.size(), 3U);
  EXPECT_LE(tried_at.size(), 6U);
  for (std::size_t i = 2; i < tried_at.size(); ++i) {
    EXPECT_GT(tried_at[i] - tried_at[i - 1], tried_at[i - 1] - tried_at[i - 2]);
  }
}

TEST(tuner, is_frozen_after_ten_quiet_windows_and_goes_on_when_the_trainer_waits_again) {
  tuner tuned({.batches = 12, .queue_depth = 256, .decode_threads = 4}, most);
  const verdict quiet = window_of(bottleneck::consumer, 1'000, 0.001);
  for (int i = 0; i < 10; ++i) {
    EXPECT_FALSE(tuned.is_frozen());
    EXPECT_FALSE(tuned.see(quiet));
  }
  EXPECT_TRUE(tuned.is_frozen());
  const verdict slow = window_of(bottleneck::decode, 1'000, 0.3);
  EXPECT_FALSE(tuned.see(slow));
  EXPECT_FALSE(tuned.see(quiet)) << "one hiccup is none";
  EXPECT_FALSE(tuned.see(slow));
  EXPECT_FALSE(tuned.see(slow));
  EXPECT_TRUE(tuned.see(slow));
  EXPECT_FALSE(tuned.is_frozen());
}

TEST(tuner, gives_what_was_given_back_again_when_it_is_missed) {
  tuner tuned({.batches = 12, .queue_depth = 256, .decode_threads = 12}, most);
  verdict idle = window_of(bottleneck::consumer, 1'000, 0);
  idle.decode.per_s = 6'000;
  idle.consumer.per_s = 1'000;
  const auto given = tuned.see(idle);
  ASSERT_TRUE(given);
  EXPECT_EQ(given->to.decode_threads, 3U) << "1.2 times what the trainer asks for";
  EXPECT_EQ(given->why, "to spare");
  const auto taken = tuned.see(window_of(bottleneck::decode, 700, 0.3));
  ASSERT_TRUE(taken);
  EXPECT_EQ(taken->to.decode_threads, 12U);
  EXPECT_EQ(taken->why, "missed");
}

TEST(tuner, asks_a_store_by_twice_as_many_connections_and_undoes_what_gains_nothing) {
  tuner tuned({.batches = 12, .queue_depth = 0, .decode_threads = 4, .connections = 32},
              {.batches = 12, .queue_depth = 256, .decode_threads = 4, .connections = 100});
  verdict slow = window_of(bottleneck::read, 1'000, 0.5);
  slow.reads_at_a_time = 0;
  const auto grown = tuned.see(slow);
  ASSERT_TRUE(grown);
  EXPECT_EQ(grown->to.connections, 64U);
  EXPECT_EQ(grown->to.queue_depth, 0U);
  EXPECT_EQ(grown->why, "read");
  slow.samples_per_s = 1'900;
  const auto again = tuned.see(slow);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->to.connections, 100U) << "never more than were planned";
  const auto undone = tuned.see(slow);
  ASSERT_TRUE(undone);
  EXPECT_EQ(undone->to.connections, 64U);
  EXPECT_EQ(undone->why, "no gain");
}

TEST(tuner, passes_over_windows_that_say_nothing) {
  tuner tuned({.batches = 2, .queue_depth = 8, .decode_threads = 4}, most);
  ASSERT_TRUE(tuned.see(window_of(bottleneck::decode, 1'000, 0.5)));
  EXPECT_FALSE(tuned.see(window_of(bottleneck::unknown, 10, 1)));
  EXPECT_EQ(tuned.now().decode_threads, 8U) << "not judged by it";
}

}  // namespace
}  // namespace leat::stages
