#include "stages/observe/verdict.hpp"

#include "tests/support/virtual_line.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace leat::stages {
namespace {

using leat::testing::virtual_line;
using leat::testing::virtual_line_options;
using leat::testing::virtual_part;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr std::uint64_t second = 1'000'000'000;

// 10 s of a line of 2 decode threads: 100 batches of 64, each a step of 50 ms that the consumer waits as long for again.
constexpr line_counts waited_for = {.time_ns = 10 * second,
                                    .batches = 100,
                                    .planned = 6400,
                                    .samples = 6400,
                                    .reads = 6400,
                                    .read_ns = 6400 * (second / 1000),
                                    .rows_read = 6400,
                                    .io_awake_ns = second / 10,
                                    .rows_made = 6400,
                                    .decode_ns = 20 * second,
                                    .steps = 100,
                                    .step_ns = 5 * second,
                                    .stalled_ns = 5 * second};
constexpr line_setting two_threads = {.decode_threads = 2, .io_threads = 1, .reads_at_a_time = 32, .batches_max = 8};

TEST(verdict, is_the_smallest_capacity_and_the_second_is_what_it_would_give_if_that_were_free) {
  const verdict found = judge(waited_for, two_threads);
  EXPECT_EQ(found.who, bottleneck::decode);
  EXPECT_EQ(found.next, bottleneck::consumer);
  EXPECT_NEAR(found.decode.per_s, 640, 1e-6);
  EXPECT_NEAR(found.if_free.per_s, 1280, 1e-6);
  EXPECT_NEAR(found.read.per_s, 32'000, 1e-6);
  EXPECT_TRUE(found.read.at_least) << "nothing was held back";
  EXPECT_NEAR(found.stall_share, 0.5, 1e-9);
  EXPECT_EQ(found.to_string(), "decode: 2 threads give 640/s. If it were free: consumer, 1,280/s");
}

TEST(verdict, of_more_decode_threads_than_a_quota_has_cores_says_so) {
  line_setting confined = two_threads;
  confined.cores = 1;
  EXPECT_THAT(judge(waited_for, confined).to_string(),
              HasSubstr("2 threads share 1 core (by affinity or a control group"));
  confined.cpu_quota = 0.5;
  EXPECT_THAT(judge(waited_for, confined).why, HasSubstr("gives this process 0.50 of a core"));
  confined.cpu_quota = 0;
  confined.cores = 2;
  EXPECT_EQ(judge(waited_for, confined).why, "");
}

TEST(verdict, of_two_that_are_nearly_equal_names_both) {
  line_counts seen = waited_for;
  seen.step_ns = 19 * second / 2;
  seen.stalled_ns = second / 2;
  const verdict found = judge(seen, two_threads);
  EXPECT_EQ(found.who, bottleneck::decode);
  EXPECT_EQ(found.also, bottleneck::consumer);
  EXPECT_EQ(found.next, bottleneck::read);
  EXPECT_EQ(found.to_string(),
            "decode and consumer: 2 threads give 640/s, it takes 674/s. If both were free: read, at least 32,000/s");
}

TEST(verdict, is_exact_for_reads_while_the_depth_is_what_holds_them_back) {
  line_counts seen = waited_for;
  seen.decode_ns = second;
  seen.read_ns = 6400 * (second / 20);
  seen.held_back_ns = 9 * second;
  const verdict found = judge(seen, two_threads);
  EXPECT_EQ(found.who, bottleneck::read);
  EXPECT_FALSE(found.read.at_least);
  EXPECT_THAT(found.to_string(), StartsWith("read: 32 reads at a time give 640/s. If it were free: consumer, 1,280/s"));
}

// Of ten samples nine stay on the device: what reads give is of all of them, and says so.
TEST(verdict, says_of_how_many_samples_nothing_is_read) {
  line_counts seen = waited_for;
  seen.decode_ns = second;
  seen.reads = 640;
  seen.rows_held = 5760;
  seen.read_ns = 640 * (second / 2);
  seen.held_back_ns = 9 * second;
  EXPECT_THAT(judge(seen, two_threads).to_string(),
              StartsWith("read: 32 reads at a time give 640/s; nothing is read of 90.0 % of the samples, which stay on "
                         "the device. If it were free: consumer, 1,280/s"));
}

// Three samples that are being read are not most of those on their way, whatever else needs no read.
TEST(verdict, does_not_take_samples_that_stay_on_the_device_for_samples_that_are_being_read) {
  line_counts seen = waited_for;
  seen.decode_ns = second;
  seen.step_ns = second;
  seen.stalled_ns = 9 * second;
  seen.reads = 64;
  seen.read_ns = 30 * second;
  ASSERT_EQ(judge(seen, two_threads).why, "most samples are being read, and no other part is busy");
  seen.rows_held = 6336;
  const verdict found = judge(seen, two_threads);
  EXPECT_NE(found.who, bottleneck::read);
  EXPECT_NE(found.why, "most samples are being read, and no other part is busy");
}

// Of 32 that the kernel is given it has 24 in the mean, as the I/O thread does other things before it gives it the next.
TEST(verdict, of_reads_that_always_wait_is_what_they_gave) {
  line_counts seen = waited_for;
  seen.decode_ns = second;
  seen.read_ns = 24 * 10 * second;
  seen.held_back_ns = 10 * second;
  const verdict found = judge(seen, two_threads);
  EXPECT_EQ(found.who, bottleneck::read);
  EXPECT_NEAR(found.read.per_s, 640, 1e-6);
  EXPECT_FALSE(found.read.at_least);
}

TEST(verdict, is_read_where_the_thread_that_reads_has_no_time_left) {
  line_counts seen = waited_for;
  seen.decode_ns = 0;  // rows that the I/O thread makes
  seen.io_awake_ns = 10 * second;
  const verdict found = judge(seen, two_threads);
  EXPECT_EQ(found.who, bottleneck::read);
  EXPECT_TRUE(found.io_threads_limit);
  EXPECT_EQ(found.decode.per_s, 0);
  EXPECT_EQ(found.to_string(),
            "read: 1 I/O thread gives 640/s; the I/O thread is busy all the time: give more "
            "reader_options::io_threads, not a deeper "
            "queue. If it were free: consumer, 1,280/s");
  line_setting setting = two_threads;
  setting.io_threads = 2;
  seen.io_awake_ns = 20 * second;
  EXPECT_THAT(judge(seen, setting).to_string(), StartsWith("read: 2 I/O threads give 640/s; the I/O threads are busy"));
  seen.io_awake_ns = second;  // and a disk that is slower than they are
  seen.read_ns = 32 * 10 * second;
  seen.held_back_ns = 20 * second;
  EXPECT_THAT(judge(seen, setting).to_string(), StartsWith("read: 32 reads at a time give 640/s. If"));
}

TEST(verdict, of_sources_whose_depth_nobody_knows_is_read_where_most_samples_are_there) {
  line_counts seen = waited_for;
  seen.decode_ns = second;
  line_setting setting = two_threads;
  setting.reads_at_a_time = 0;
  seen.read_ns = 9 * second * 8 * 64;  // nearly all that there may be at a time
  const verdict found = judge(seen, setting);
  EXPECT_EQ(found.who, bottleneck::read);
  EXPECT_TRUE(found.read.at_least);
  EXPECT_NEAR(found.read.per_s, 640, 1);
  seen.read_ns = 2 * second;
  seen.decode_ns = 12 * second;
  EXPECT_EQ(judge(seen, setting).who, bottleneck::unclear) << "few are";
}

// A consumer that always has two of the eight leaves six to be read, and 3.5 of them are most.
TEST(verdict, of_sources_whose_depth_nobody_knows_counts_no_samples_that_the_consumer_holds) {
  line_counts seen = waited_for;
  seen.decode_ns = 12 * second;
  line_setting setting = two_threads;
  setting.reads_at_a_time = 0;
  seen.read_ns = 35 * second * 64;
  EXPECT_NE(judge(seen, setting).who, bottleneck::read);
  seen.out_ns = 20 * second;
  const verdict found = judge(seen, setting);
  EXPECT_EQ(found.who, bottleneck::read);
  EXPECT_NEAR(found.read.per_s, 640, 1);
}

TEST(verdict, names_a_store_that_is_away_or_throttles_with_its_figures) {
  line_setting setting = two_threads;
  setting.reads_at_a_time = 0;
  setting.store = {.requests_per_s_max = 300, .reads_waiting = 256, .requests = 1'000};
  line_counts seen = waited_for;
  seen.decode_ns = second;
  seen.read_ns = 9 * second * 8 * 64;
  EXPECT_THAT(
      judge(seen, setting).to_string(),
      StartsWith("read: its sources give at least 640/s; the store allows 300 requests/s, and 256 reads wait for it"));
  setting.store = {.away_s = 14, .reads_waiting = 1};
  const verdict nothing = judge({.time_ns = 14 * second, .stalled_ns = 14 * second}, setting);
  EXPECT_EQ(nothing.who, bottleneck::read);
  EXPECT_EQ(nothing.why, "the store has answered nothing of use for 14.0 s, and 1 read waits for it");
  setting.store = {.refusals = 400, .requests = 1'000};
  EXPECT_THAT(judge(seen, setting).why, StartsWith("the store has refused 400 of 1,000 requests"));
  // Who reads enough is held up by another part.
  setting.store = {.requests_per_s_max = 300, .reads_waiting = 256};
  EXPECT_EQ(judge(waited_for, setting).who, bottleneck::decode);
  EXPECT_EQ(judge(waited_for, setting).why, "");
}

TEST(verdict, is_the_consumer_where_it_holds_all_batches_and_says_so) {
  line_counts seen = waited_for;
  seen.decode_ns = second;
  seen.step_ns = 10 * second;
  seen.held_all_ns = 9 * second;
  seen.stalled_ns = 0;
  const verdict found = judge(seen, two_threads);
  EXPECT_EQ(found.who, bottleneck::consumer);
  EXPECT_THAT(found.to_string(), HasSubstr("it holds all 8 batches that there may be at a time"));
}

TEST(verdict, is_variance_where_each_part_could_do_more_and_the_consumer_still_waits) {
  line_counts seen = waited_for;
  seen.decode_ns = 10 * second;
  seen.step_ns = 88 * second / 10;
  seen.stalled_ns = 12 * second / 10;
  const verdict found = judge(seen, two_threads);
  EXPECT_EQ(found.who, bottleneck::variance);
  EXPECT_FALSE(found.next.has_value());
  seen.step_ns = 95 * second / 10;
  seen.stalled_ns = 5 * second / 10;
  EXPECT_EQ(judge(seen, two_threads).who, bottleneck::consumer);
  EXPECT_THAT(judge(seen, two_threads).why, StartsWith("it waits 5.00 % of the time all the same"));
}

// Two batches: while the consumer has one, the other is made; then it waits for that. Each has its place for 200 ms: 100 are decoding (64 jobs
// on 2 threads), 50 the step.
TEST(verdict, names_memory_for_batches_where_the_next_one_waits_for_its_place) {
  line_counts seen = waited_for;
  seen.decode_ns = 10 * second;
  seen.batch_wait_ns = 9 * second;
  line_setting setting = two_threads;
  setting.batches_max = 2;
  setting.short_of_memory = true;
  const verdict found = judge(seen, setting);
  EXPECT_EQ(found.who, bottleneck::variance) << "a line that is short of batches is not unclear";
  EXPECT_EQ(found.to_string(),
            "variance: the consumer waits 50.0 % of the time, though each part could do more than it takes; there may "
            "be 2 batches at a time, and the next one waits for its place 90.0 % of the time: give a larger "
            "loader_options::host_bytes_max");
  setting.short_of_memory = false;
  EXPECT_THAT(judge(seen, setting).why, ::testing::EndsWith("give more loader_options::prefetch_batches"));
  // Whoever has a part to blame has memory enough.
  EXPECT_EQ(judge(waited_for, setting).who, bottleneck::decode);
  setting.batches_max = 8;
  EXPECT_EQ(judge(seen, setting).who, bottleneck::unclear) << "800 ms each, and nobody knows where they are";
  setting.batches_max = 2;
  seen.batch_wait_ns = 4 * second;
  EXPECT_EQ(judge(seen, setting).who, bottleneck::unclear) << "there is room for more";
  // And a pause of 30 s, in which the line is full.
  seen.time_ns += 30 * second;
  seen.pause_ns = 30 * second;
  seen.batch_wait_ns += 30 * second;
  seen.ready_ns = 2 * 30 * second;
  EXPECT_EQ(judge(seen, setting).who, bottleneck::unclear) << "there is room for more while somebody asks";
  seen.batch_wait_ns += 5 * second;
  EXPECT_THAT(judge(seen, setting).why, HasSubstr("waits for its place 90.0 % of the time"));
  setting.batches_max = 8;
  seen.ready_ns = 8 * 30 * second;
  EXPECT_EQ(judge(seen, setting).who, bottleneck::unclear) << "what is ready in the pause explains no 800 ms";
}

TEST(verdict, is_unclear_where_the_part_that_it_would_be_was_idle) {
  line_counts seen = waited_for;
  seen.decode_ns = 10 * second;
  seen.step_ns = second;
  seen.stalled_ns = 9 * second;
  const verdict found = judge(seen, two_threads);
  EXPECT_EQ(found.who, bottleneck::unclear);
  EXPECT_THAT(found.to_string(), StartsWith("unclear: decode could do 1,280/s, and was idle"));
}

TEST(verdict, of_a_device_takes_no_word_from_what_the_host_sees_of_copies_and_steps) {
  line_setting setting = two_threads;
  setting.on_device = true;
  line_counts seen = waited_for;
  seen.transferred_rows = 6400;
  seen.transfer_ns = second / 100;
  EXPECT_EQ(judge(seen, setting).who, bottleneck::decode);
  EXPECT_EQ(judge(seen, setting).consumer.per_s, 0);
  seen.decode_ns = 4 * second;
  const verdict found = judge(seen, setting);
  EXPECT_EQ(found.who, bottleneck::unclear);
  EXPECT_THAT(found.to_string(), HasSubstr("what copies and steps take on the device is not known"));
  seen.stalled_ns = 0;  // a trainer that waits for its device somewhere else
  EXPECT_EQ(judge(seen, setting).who, bottleneck::unclear);
}

// A wait in next() is no stall there, and none is no proof of the contrary.
TEST(verdict, of_a_device_takes_what_was_timed_there) {
  line_setting setting = two_threads;
  setting.on_device = true;
  line_counts seen = waited_for;
  seen.decode_ns = seen.decode_ns / 8;
  seen.timed_batches = 2;
  seen.timed_rows = 128;
  seen.device_copy_ns = second / 100;
  seen.device_step_ns = second / 5;
  verdict found = judge(seen, setting);
  EXPECT_EQ(found.who, bottleneck::consumer) << found.to_string();
  EXPECT_NEAR(found.consumer.per_s, 640, 1e-6);
  EXPECT_NEAR(found.transfer.per_s, 12'800, 1e-6);
  EXPECT_EQ(found.stall_share, 0);
  seen.device_copy_ns = second / 5;
  seen.device_step_ns = second / 20;
  seen.device_stall_ns = 3 * second / 20;
  found = judge(seen, setting);
  EXPECT_EQ(found.who, bottleneck::transfer) << found.to_string();
  EXPECT_NEAR(found.stall_share, 0.75, 1e-9);
}

TEST(verdict, leaves_out_the_time_between_two_epochs) {
  line_counts seen = waited_for;
  seen.time_ns += 30 * second;
  seen.pause_ns = 30 * second;
  const verdict found = judge(seen, two_threads);
  EXPECT_EQ(found.who, bottleneck::decode);
  EXPECT_NEAR(found.samples_per_s, 640, 1e-6);
  EXPECT_NEAR(found.stall_share, 0.5, 1e-9);
}

TEST(verdict, of_nothing_is_unknown) {
  EXPECT_EQ(judge({}, two_threads).who, bottleneck::unknown);
  line_counts still = waited_for;
  still.time_ns = 0;
  EXPECT_EQ(judge(still, two_threads).who, bottleneck::unknown) << "a clock that stands still";
  line_counts idle = waited_for;
  idle.decode_ns = idle.read_ns = idle.reads = idle.step_ns = 0;
  EXPECT_EQ(judge(idle, two_threads).who, bottleneck::unknown) << "steps of 0 ms, and nothing to read or decode";
}

// --- in virtual time, where the truth is known: the part whose removal gains most -------------------------------------------

//   wide_disk   reads do not slow one another down, so that what one takes tells what many would
enum class condition : std::uint8_t { steady, wide_disk, bursts, tails, drift, others_on_the_disk };

virtual_line_options draw(std::mt19937_64& random, condition under) {
  const auto between = [&](double a, double b) {
    return std::exp(std::uniform_real_distribution<double>(std::log(a), std::log(b))(random));
  };
  virtual_line_options line{.read_s = between(80e-6, 2e-3),
                            .bus_s = between(8e-6, 60e-6),
                            .decode_s = between(3e-4, 4e-3),
                            .decode_sigma = between(0.2, 0.8),
                            .copy_s = between(25e-6, 5e-4),
                            .step_s = between(1e-3, 1e-2),
                            .batch = 16,
                            .decode_threads = static_cast<unsigned>(1 + random() % 12),
                            .reads_at_a_time = 1U << (random() % 8),
                            .batches = static_cast<unsigned>(4 + random() % 12),
                            .seed = random()};
  if (under == condition::wide_disk) {
    line.bus_s = 0;
    line.channels = 128;
  }
  if (under == condition::bursts) line.burst_s = line.step_s * static_cast<double>(4 + random() % 20);
  if (under == condition::tails) line.decode_tail = 0.01;
  if (under == condition::drift) line.read_drift = 0.1;
  if (under == condition::others_on_the_disk) line.read_others = 0.7;
  // One part becomes the slowest more often than chance has it, the copies too.
  const double slower = 1.5 + static_cast<double>(random() % 400) / 100;
  switch (random() % 4) {
    case 0:
      line.read_s *= slower;
      line.bus_s *= slower;
      break;
    case 1:
      line.decode_s *= slower;
      break;
    case 2:
      line.copy_s *= slower * 4;
      break;
    default:
      line.step_s *= slower;
  }
  return line;
}

// What the others' rules say of the same counters: SPDL's tables, read as its guide does (the stage whose items take longest), and
// tf.data's (a consumer that waits less than 50 us for a batch is not input-bound; else the stage that takes longest).
bottleneck longest_item(const line_counts& seen) {
  const auto mean = [](std::uint64_t ns, std::uint64_t items) {
    return static_cast<double>(ns) / static_cast<double>(std::max<std::uint64_t>(items, 1));
  };
  const std::array<double, 4> item_ns = {mean(seen.read_ns, seen.rows_read), mean(seen.decode_ns, seen.rows_made),
                                         mean(seen.transfer_ns, seen.transferred_rows),
                                         mean(seen.step_ns, seen.planned)};
  return static_cast<bottleneck>(std::max_element(item_ns.begin(), item_ns.end()) - item_ns.begin());
}
bottleneck tf_data(const line_counts& seen) {
  if (seen.stalled_ns / seen.batches <= 50'000) return bottleneck::consumer;
  line_counts input = seen;
  input.step_ns = 0;
  return longest_item(input);
}

struct tally {
  int clear = 0;
  int right = 0;
  int others_right = 0;
  int tf_data_right = 0;
  int confident_and_wrong = 0;
  std::vector<double> capacity_errors;
  std::vector<double> free_errors;
  std::string wrong;
  std::string missed;
};

tally judge_many(condition under, int cases_wanted, std::uint64_t seed) {
  tally all;
  std::mt19937_64 random(seed);
  const bool is_steady = under == condition::steady || under == condition::wide_disk;
  for (int tried = 0; (is_steady ? all.clear : tried) < cases_wanted && tried < 4 * cases_wanted; ++tried) {
    const virtual_line_options options = draw(random, under);
    virtual_line line(options);
    static_cast<void>(line.run(30));
    const line_counts seen = line.run(100);
    const verdict found = judge(seen, line.setting());
    const double base = static_cast<double>(seen.planned) / (static_cast<double>(seen.time_ns) * 1e-9);
    std::array<double, 4> freed{};
    for (std::size_t i = 0; i < freed.size(); ++i) {
      freed[i] = throughput_of(without(options, static_cast<virtual_part>(i)));
    }
    const auto truth = static_cast<std::size_t>(std::max_element(freed.begin(), freed.end()) - freed.begin());
    const auto who = static_cast<std::size_t>(found.who);
    const bool names_it = who == truth || (found.also && static_cast<std::size_t>(*found.also) == truth);
    const double gain = freed[truth] / base;
    // Of a part that gains nothing where another gains something, clear or not.
    if (who < freed.size() && !names_it && freed[who] < 1.05 * base && gain > 1.1) {
      ++all.confident_and_wrong;
      all.wrong += found.to_string() + " (seed " + std::to_string(options.seed) + ")\n";
    }
    const bool is_clear = gain >= 1.2;
    if (!is_clear) continue;
    ++all.clear;
    all.others_right += longest_item(seen) == static_cast<bottleneck>(truth) ? 1 : 0;
    all.tf_data_right += tf_data(seen) == static_cast<bottleneck>(truth) ? 1 : 0;
    all.right += names_it ? 1 : 0;
    if (!names_it) {
      all.missed += std::string(name(static_cast<bottleneck>(truth))) + " x " + std::to_string(freed[truth] / base) +
                    ", not " + found.to_string() + " (seed " + std::to_string(options.seed) + ")\n";
    }
    if (who != truth || found.also) continue;
    all.capacity_errors.push_back(std::abs(found.capacity_of(found.who)->per_s / base - 1));
    if (found.next) all.free_errors.push_back(std::abs(found.if_free.per_s / freed[truth] - 1));
  }
  return all;
}

double share_of(std::vector<double> errors, double share) {
  std::sort(errors.begin(), errors.end());
  return errors.empty() ? 0 : errors[static_cast<std::size_t>(share * static_cast<double>(errors.size() - 1))];
}

TEST(verdict_in_virtual_time, is_right_in_all_of_400_lines_with_one_clear_bottleneck) {
  const tally all = judge_many(condition::steady, 400, 20);
  EXPECT_EQ(all.clear, 400);
  EXPECT_EQ(all.right, 400) << all.missed;
  EXPECT_EQ(all.confident_and_wrong, 0) << all.wrong;
  EXPECT_LE(share_of(all.capacity_errors, 0.5), 0.03);
  EXPECT_LE(share_of(all.capacity_errors, 0.9), 0.08);
  // Beyond are disks that nobody had pushed, whose reads then slow one another down.
  EXPECT_LE(share_of(all.free_errors, 0.5), 0.03);
  EXPECT_LE(share_of(all.free_errors, 0.95), 0.10);
  RecordProperty("if_free_median", std::to_string(share_of(all.free_errors, 0.5)));
  RecordProperty("if_free_95", std::to_string(share_of(all.free_errors, 0.95)));
  RecordProperty("if_free_most", std::to_string(share_of(all.free_errors, 1)));
  RecordProperty("longest_item_right", all.others_right);
  RecordProperty("tf_data_right", all.tf_data_right);
  EXPECT_LT(all.others_right, 300) << "the longest item";
  EXPECT_LT(all.tf_data_right, 380) << "tf.data's rule";
}

TEST(verdict_in_virtual_time, says_within_10_percent_what_the_line_would_give_if_its_part_were_free) {
  const tally all = judge_many(condition::wide_disk, 80, 22);
  EXPECT_EQ(all.right, 80) << all.missed;
  ASSERT_GE(all.free_errors.size(), 60U);
  // But for one line in a hundred, which has too few batches for what is then the slowest part.
  EXPECT_LE(share_of(all.free_errors, 0.98), 0.10);
}

// Whose truth is the same line with room for more of them.
TEST(verdict_in_virtual_time, asks_for_more_batches_only_where_they_gain) {
  std::mt19937_64 random(23);
  std::vector<double> gains;
  for (int tried = 0; tried < 80; ++tried) {
    virtual_line_options options = draw(random, condition::steady);
    options.batches = 2;
    virtual_line line(options);
    static_cast<void>(line.run(30));
    const verdict found = judge(line.run(100), line.setting());
    if (found.why.find("prefetch_batches") == std::string::npos || found.who != bottleneck::variance) continue;
    virtual_line_options more = options;
    more.batches = 8;
    gains.push_back(throughput_of(more) / found.samples_per_s);
    EXPECT_GT(gains.back(), 1.05) << found.to_string() << " (seed " << options.seed << ")";
  }
  EXPECT_GE(gains.size(), 10U);
  RecordProperty("asked", static_cast<int>(gains.size()));
  RecordProperty("least_gain", std::to_string(share_of(gains, 0)));
  RecordProperty("median_gain", std::to_string(share_of(gains, 0.5)));
}

TEST(verdict_in_virtual_time, is_never_confident_and_wrong_under_bursts_tails_drift_and_others_on_the_disk) {
  for (const condition under : {condition::bursts, condition::tails, condition::drift, condition::others_on_the_disk}) {
    const tally all = judge_many(under, 60, 21);
    EXPECT_GT(all.clear, 20);
    EXPECT_EQ(all.confident_and_wrong, 0) << static_cast<int>(under) << ": " << all.wrong;
    EXPECT_GE(all.right, all.clear / 3) << static_cast<int>(under) << ": " << all.missed;
  }
}

}  // namespace
}  // namespace leat::stages
