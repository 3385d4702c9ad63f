#include "stages/observe/windows.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>

namespace leat::stages {
namespace {

constexpr std::uint64_t second_ns = 1'000'000'000;
constexpr line_setting setting{.decode_threads = 2};

// What a loader has counted after so many batches of 8, one of which takes `batch_ns`.
line_counts after(std::uint64_t batches, std::uint64_t batch_ns = second_ns / 10) {
  return {.time_ns = batches * batch_ns,
          .batches = batches,
          .planned = batches * 8,
          .samples = batches * 7,
          .quarantined = batches,
          .rows_made = batches * 8,
          .decode_ns = batches * batch_ns * 2,
          .steps = batches,
          .step_ns = batches * batch_ns / 2,
          .stalled_ns = batches * batch_ns / 2};
}

TEST(windows, end_when_both_batches_and_time_have_passed) {
  const windows run(window_options{});
  EXPECT_FALSE(run.is_due(2 * second_ns, 23));
  EXPECT_FALSE(run.is_due(2 * second_ns - 1, 24));
  EXPECT_TRUE(run.is_due(2 * second_ns, 24));
}

TEST(windows, sum_to_what_was_counted_and_lose_none_but_the_oldest) {
  windows run({.kept = 60});
  line_counts last;
  for (std::uint64_t batches = 1; batches <= 1500; ++batches) {
    last = after(batches);
    if (run.is_due(last.time_ns, batches)) run.end(last, setting);
  }
  const auto all = run.all(last, setting);
  ASSERT_EQ(all.size(), 61U);
  std::uint64_t batches = 0;
  double at_s = all.front().begin_s;
  for (const loader_window& each : all) {
    EXPECT_EQ(each.samples + each.quarantined, each.planned);
    EXPECT_NEAR(each.begin_s, at_s, 1e-9);
    at_s += each.seconds;
    batches += each.batches;
    if (&each != &all.back()) EXPECT_EQ(each.verdict.who, bottleneck::decode);
  }
  EXPECT_EQ(batches, 1500 - 2 * 24U) << "1500 batches are 62 windows of 24, and 12";
  EXPECT_NEAR(at_s, 150, 1e-6);
}

TEST(windows, of_a_run_that_has_just_begun_say_so_and_then_judge_what_there_is) {
  const windows run(window_options{});
  const verdict none = run.judge_last(after(7), setting);
  EXPECT_EQ(none.who, bottleneck::unknown);
  EXPECT_EQ(none.to_string(), "unknown: 7 of the 8 batches that it takes were handed out");
  EXPECT_EQ(run.judge_last(after(8), setting).who, bottleneck::decode);
}

TEST(windows, the_last_that_has_ended_is_judged_whatever_the_open_one_holds) {
  windows run(window_options{});
  run.end(after(24), setting);
  line_counts later = after(40);
  later.decode_ns = after(24).decode_ns;  // nothing was decoded since
  EXPECT_EQ(run.judge_last(later, setting).who, bottleneck::decode);
}

// 24 batches that waited for decoding, and a last window that waited for the trainer: the run as a whole is the former.
TEST(windows, of_the_whole_run_the_verdict_is_not_that_of_its_last_seconds) {
  windows run(window_options{});
  run.end(after(240), setting);
  line_counts end = after(264);
  end.decode_ns = after(240).decode_ns;
  end.stalled_ns = after(240).stalled_ns;
  end.step_ns = after(240).step_ns + 24 * (second_ns / 10);
  run.end(end, setting);
  EXPECT_EQ(run.judge_last(end, setting).who, bottleneck::consumer);
  EXPECT_EQ(run.judge_run(end, setting).who, bottleneck::decode);
  EXPECT_EQ(windows(window_options{}).judge_run(after(7), setting).who, bottleneck::unknown);
}

// A disk that answers no more, say: what held the line up before is no news.
TEST(windows, say_when_nothing_comes_any_more) {
  windows run(window_options{});
  line_counts counts = after(24);
  run.end(counts, setting);
  const std::string before = run.judge_last(counts, setting).to_string();
  counts.waiting_ns = 1'900'000'000;
  EXPECT_EQ(run.judge_last(counts, setting).to_string(), before);
  counts.waiting_ns = 3'900'000'000;
  const verdict stuck = run.judge_last(counts, setting);
  EXPECT_EQ(stuck.to_string(),
            "unknown: nothing came for 3.90 s of next(); reads_under_way() names reads that nobody answers");
  EXPECT_EQ(stuck.stall_share, 1);
  EXPECT_DOUBLE_EQ(stuck.window_s, 3.9);
  counts.waiting_ns = 0;
  EXPECT_EQ(run.judge_last(counts, setting).to_string(), before) << "it goes on";
}

TEST(windows, give_a_slow_line_and_the_first_batch_their_time) {
  windows run(window_options{});
  line_counts slow = after(24);
  slow.time_ns = 24 * std::uint64_t{3'000'000'000};
  run.end(slow, setting);
  slow.waiting_ns = 6'000'000'000;
  EXPECT_NE(run.judge_last(slow, setting).who, bottleneck::unknown);
  slow.waiting_ns = 13'000'000'000;
  EXPECT_EQ(run.judge_last(slow, setting).who, bottleneck::unknown);
  line_counts first;
  first.time_ns = first.waiting_ns = 9'000'000'000;
  EXPECT_THAT(run.judge_last(first, setting).to_string(), ::testing::Not(::testing::HasSubstr("nothing came")));
  first.time_ns = first.waiting_ns = 11'000'000'000;
  EXPECT_THAT(run.judge_last(first, setting).to_string(), ::testing::HasSubstr("nothing came for 11.0 s"));
}

TEST(windows, of_a_clock_that_stands_still_are_unknown) {
  const windows run(window_options{});
  EXPECT_EQ(run.judge_last(after(30, 0), setting).who, bottleneck::unknown);
}

}  // namespace
}  // namespace leat::stages
