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
    const std::optional<tuning_change> change = tuned.see(found, line.decode_on_cores());
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

// Machines of 2 to 8 cores, up to half of which a trainer's steps compute on. Jobs take 0.3 to 1.2 times the cores that are left.
virtual_line_options draw_machine_with_a_trainer_that_computes(std::mt19937_64& random) {
  virtual_line_options drawn = draw_machine(random);
  drawn.cores = std::uniform_int_distribution<unsigned>(2, 8)(random);
  drawn.step_cores = std::uniform_int_distribution<unsigned>(1, drawn.cores / 2)(random);
  drawn.step_s = 20e-3;
  drawn.read_s = 100e-6;
  drawn.bus_s = 1e-6;
  drawn.copy_s = 1e-5;
  const double left = std::uniform_real_distribution<double>(0.3, 1.2)(random) * (drawn.cores - drawn.step_cores);
  drawn.decode_s = left * drawn.step_s / drawn.batch;
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

// As many decode threads as cores take them from a trainer that computes: its steps take longer, and nothing seems to wait.
TEST(tuner, leaves_cores_to_a_trainer_that_computes_on_100_machines) {
  std::mt19937_64 random(11);
  int good = 0;
  int slow_at_first = 0;
  int undisturbed = 0;
  int could_be = 0;
  std::string missed;
  for (int i = 0; i < 100; ++i) {
    virtual_line_options options = draw_machine_with_a_trainer_that_computes(random);
    const concurrency_limits start = {
        .batches = 12, .queue_depth = 256, .decode_threads = options.cores, .io_threads = 1};
    const tuned_run seen = tune(options, start, 40);
    options.reads_at_a_time = start.queue_depth;
    options.batches = start.batches;
    double best = 0;
    for (unsigned threads = 1; threads <= options.cores; ++threads) {
      options.decode_threads = threads;
      best = std::max(best, leat::testing::throughput_of(options));
    }
    EXPECT_FALSE(seen.exceeded);
    const auto late = std::count_if(seen.changes.begin(), seen.changes.end(), [](std::size_t at) { return at >= 30; });
    EXPECT_LE(late, 4) << "of 10 windows, seed " << options.seed;
    const double at_the_end = mean_of_last(seen.rates, 10);
    good += at_the_end >= 0.95 * best ? 1 : 0;
    slow_at_first += seen.rates.front() < 0.95 * best ? 1 : 0;
    const double alone = options.batch / options.step_s;
    could_be += best >= 0.97 * alone ? 1 : 0;
    undisturbed += best >= 0.97 * alone && at_the_end >= alone / 1.05 ? 1 : 0;
    if (at_the_end < 0.95 * best) {
      missed += std::to_string(at_the_end / best) + " of " + std::to_string(best / alone) + ", " +
                std::to_string(options.cores) + " cores less " + std::to_string(options.step_cores) + ", from " +
                std::to_string(seen.rates.front() / best) + " with " + std::to_string(seen.at_the_end.decode_threads) +
                " (seed " + std::to_string(options.seed) + ")\n";
    }
  }
  EXPECT_GE(slow_at_first, 40);
  EXPECT_GE(good, 95) << missed;
  EXPECT_GE(could_be, 40);
  EXPECT_GE(undisturbed, could_be * 95 / 100) << "of " << could_be;
  RecordProperty("good", good);
  RecordProperty("slow_at_first", slow_at_first);
  RecordProperty("undisturbed", undisturbed);
  RecordProperty("could_be", could_be);
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

TEST(tuner, tries_fewer_threads_where_they_wait_for_cores_that_the_trainer_computes_on) {
  const concurrency_limits two = {.batches = 12, .queue_depth = 256, .decode_threads = 2};
  verdict crowded = window_of(bottleneck::consumer, 1'000, 0);
  crowded.decode.per_s = 1'600;  // two thirds of what a thread makes that has a core
  crowded.consumer.per_s = 1'000;
  tuner tuned(two, most);
  EXPECT_FALSE(tuned.see(crowded, 1)) << "800 are too few";
  const auto fewer = tuned.see(crowded, 0.66);
  ASSERT_TRUE(fewer);
  EXPECT_EQ(fewer->to.decode_threads, 1U);
  EXPECT_EQ(fewer->why, "to spare");
  // Steps take less time by more than the trainer waits.
  static_cast<void>(tuned.see(window_of(bottleneck::consumer, 1'100, 0.03), 1));
  EXPECT_EQ(tuned.now().decode_threads, 1U);

  // More of them ended the wait, and made the trainer slower by more than that.
  tuner grown({.batches = 12, .queue_depth = 256, .decode_threads = 1}, two);
  ASSERT_TRUE(grown.see(window_of(bottleneck::decode, 1'000, 0.03), 1));
  EXPECT_EQ(grown.now().decode_threads, 2U);
  const auto undone = grown.see(window_of(bottleneck::consumer, 900, 0), 0.66);
  ASSERT_TRUE(undone);
  EXPECT_EQ(undone->to.decode_threads, 1U);
  EXPECT_EQ(undone->why, "no gain");

  for (const verdict& worse : {window_of(bottleneck::decode, 1'000, 0.03), window_of(bottleneck::decode, 970, 0)}) {
    tuner other(two, most);
    ASSERT_TRUE(other.see(crowded, 0.66));
    const auto again = other.see(worse, 1);
    ASSERT_TRUE(again) << worse.samples_per_s;
    EXPECT_EQ(again->to.decode_threads, 2U);
    EXPECT_EQ(again->why, "missed");
    EXPECT_FALSE(other.see(crowded, 0.66)) << "it rests";
  }
}

TEST(tuner, keeps_what_ended_a_stall_and_takes_no_cores_though_the_rate_is_a_little_lower) {
  const concurrency_limits start = {.batches = 4, .queue_depth = 32, .decode_threads = 4, .connections = 32};
  concurrency_limits allowed = most;
  allowed.connections = 64;
  for (const bottleneck part : {bottleneck::variance, bottleneck::read}) {
    tuner tuned(start, allowed);
    ASSERT_TRUE(tuned.see(window_of(part, 1'000, 0.03), 0.66));
    const concurrency_limits grown = tuned.now();
    EXPECT_EQ(grown.decode_threads, 4U);
    EXPECT_FALSE(tuned.see(window_of(bottleneck::consumer, 970, 0), 0.66)) << name(part);
    EXPECT_EQ(tuned.now(), grown);
  }
}

TEST(tuner, knows_the_share_on_cores_only_of_windows_with_many_jobs) {
  constexpr std::uint64_t ms = 1'000'000;
  const decode_work none{.threads = 2};
  // Jobs of 1.5 s in windows of 2 s: three ended, of which one began before, and the threads never waited.
  EXPECT_EQ(share_on_cores(none, {.jobs = 3, .busy_ns = 4'500 * ms, .cpu_ns = 4'000 * ms, .threads = 2}), 1);
  EXPECT_EQ(share_on_cores(none, {.jobs = 40, .busy_ns = 4'000 * ms, .cpu_ns = 2'400 * ms, .threads = 2}), 0.6);
  EXPECT_EQ(share_on_cores(none, {.jobs = 40, .busy_ns = 4'000 * ms, .cpu_ns = 4'100 * ms, .threads = 2}), 1);
  EXPECT_EQ(share_on_cores({.threads = 12}, {.jobs = 40, .busy_ns = 4'000 * ms, .cpu_ns = 2'400 * ms, .threads = 2}), 1)
      << "ten threads ended jobs that they had begun before";
  EXPECT_EQ(share_on_cores(none, none), 1);
}

// Of twelve decode threads three are enough for a trainer that hardly waits.
//   idle   a window of those three
void give_back_to_three(tuner& tuned, verdict& idle) {
  idle = window_of(bottleneck::consumer, 1'000, 0);
  idle.decode.per_s = 6'000;
  idle.consumer.per_s = 1'000;
  ASSERT_TRUE(tuned.see(idle));
  EXPECT_EQ(tuned.now().decode_threads, 3U);
  idle.decode.per_s = 1'500;
  EXPECT_FALSE(tuned.see(idle));
}

TEST(tuner, remembers_how_many_were_too_few_some_windows_after_the_rest_was_given_back) {
  tuner tuned({.batches = 12, .queue_depth = 256, .decode_threads = 12}, most);
  verdict idle;
  ASSERT_NO_FATAL_FAILURE(give_back_to_three(tuned, idle));
  ASSERT_TRUE(tuned.see(window_of(bottleneck::decode, 700, 0.3)));
  EXPECT_EQ(tuned.now().decode_threads, 6U);
  idle.decode.per_s = 3'000;
  ASSERT_TRUE(tuned.see(idle));
  EXPECT_EQ(tuned.now().decode_threads, 5U) << "half way to the three that were too few";
}

TEST(tuner, gives_back_to_as_few_again_where_more_were_no_help) {
  tuner tuned({.batches = 4, .queue_depth = 256, .decode_threads = 12}, most);
  verdict idle;
  ASSERT_NO_FATAL_FAILURE(give_back_to_three(tuned, idle));
  // A neighbour slows the line for two windows.
  const verdict slow = window_of(bottleneck::decode, 700, 0.3);
  ASSERT_TRUE(tuned.see(slow));
  EXPECT_EQ(tuned.now().decode_threads, 6U);
  const auto undone = tuned.see(slow);
  ASSERT_TRUE(undone);
  EXPECT_EQ(undone->why, "no gain");
  EXPECT_EQ(tuned.now().decode_threads, 3U);
  // Threads rest; another setting changes meanwhile, so that it is not frozen.
  for (int i = 0; i < 5; ++i) EXPECT_FALSE(tuned.see(idle));
  ASSERT_TRUE(tuned.see(window_of(bottleneck::variance, 1'000, 0.03)));
  idle.decode.per_s = 6'000;
  for (int i = 0; i < 8; ++i) static_cast<void>(tuned.see(idle));
  EXPECT_EQ(tuned.now().decode_threads, 1U) << "three were not too few";
}

TEST(tuner, remembers_how_many_were_too_few_some_windows_after_it_made_room) {
  const concurrency_limits two = {.batches = 12, .queue_depth = 256, .decode_threads = 2};
  verdict crowded = window_of(bottleneck::consumer, 1'000, 0);
  crowded.decode.per_s = 1'600;
  crowded.consumer.per_s = 1'000;
  tuner tuned(two, two);
  ASSERT_TRUE(tuned.see(crowded, 0.66));
  EXPECT_EQ(tuned.now().decode_threads, 1U);
  EXPECT_FALSE(tuned.see(window_of(bottleneck::consumer, 1'000, 0), 1));
  ASSERT_TRUE(tuned.see(window_of(bottleneck::decode, 900, 0.1), 1));
  EXPECT_EQ(tuned.now().decode_threads, 2U);
  EXPECT_FALSE(tuned.see(crowded, 0.66)) << "one was too few";
}

// As of records beside other programs, which stop the one I/O thread now and then.
TEST(tuner, tries_more_of_the_slower_part_where_the_counts_contradict_each_other) {
  const concurrency_limits start = {.batches = 12, .queue_depth = 256, .decode_threads = 4, .io_threads = 1};
  verdict odd = window_of(bottleneck::unclear, 1'000, 0.9);
  odd.next.reset();
  odd.read = {.per_s = 1'400};
  odd.io_threads_limit = true;
  odd.decode.per_s = 0;  // nothing to do
  tuner of_reads(start, most);
  const auto more = of_reads.see(odd);
  ASSERT_TRUE(more);
  EXPECT_EQ(more->to.io_threads, 2U);
  EXPECT_EQ(more->to.decode_threads, 4U);
  EXPECT_EQ(more->why, "unclear");
  const auto undone = of_reads.see(odd);
  ASSERT_TRUE(undone);
  EXPECT_EQ(undone->to.io_threads, 1U);
  EXPECT_FALSE(of_reads.see(odd)) << "it rests";

  odd.decode.per_s = 1'300;
  tuner of_decode(start, most);
  const auto threads = of_decode.see(odd);
  ASSERT_TRUE(threads);
  EXPECT_EQ(threads->to.decode_threads, 8U);
  EXPECT_EQ(threads->to.io_threads, 1U);
}

TEST(tuner, gives_an_io_thread_the_core_that_decode_threads_take_from_it) {
  const concurrency_limits all = {.batches = 12, .queue_depth = 256, .decode_threads = 2, .io_threads = 4};
  verdict slow = window_of(bottleneck::read, 1'000, 0.9);
  slow.io_threads_limit = true;
  slow.decode.per_s = 3'000;
  tuner tuned(all, most);
  EXPECT_FALSE(tuned.see(slow, 1));
  const auto fewer = tuned.see(slow, 0.6);
  ASSERT_TRUE(fewer);
  EXPECT_EQ(fewer->to.decode_threads, 1U);
  EXPECT_EQ(fewer->why, "read");
  const auto again = tuned.see(slow, 0.6);
  ASSERT_TRUE(again) << "no gain";
  EXPECT_EQ(again->to.decode_threads, 2U);
  // With decode threads that are busy all the time it is the cores that are too few.
  tuner busy(all, most);
  slow.decode.per_s = 1'000;
  EXPECT_FALSE(busy.see(slow, 0.6));
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
