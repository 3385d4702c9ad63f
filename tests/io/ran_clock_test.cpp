#include "io/remote/ran_clock.hpp"

#include <gtest/gtest.h>

namespace leat::testing {
namespace {

constexpr std::uint64_t second = 1'000'000'000;

TEST(ran_clock, leaves_out_what_a_process_was_stopped_for) {
  io::ran_clock clock;
  std::uint64_t now = 5'000 * second;
  const std::uint64_t began = clock.tell(now);
  EXPECT_NE(began, 0U);
  for (int i = 0; i < 100; ++i) clock.tell(now += second / 50);
  EXPECT_EQ(clock.tell(now) - began, 2 * second);
  clock.tell(now += 120 * second);
  EXPECT_EQ(clock.tell(now += second / 50) - began, 2 * second + io::ran_clock::gap_max_ns + second / 50);
  EXPECT_EQ(clock.tell(now - second), clock.tell(now - second)) << "two threads that told it in another order";
}

// One of two threads was held up between asking for the time and telling it, again and again.
TEST(ran_clock, does_not_count_twice_what_one_thread_tells_late) {
  io::ran_clock clock;
  std::uint64_t now = second;
  const std::uint64_t began = clock.tell(now);
  for (int i = 0; i < 100; ++i) {
    clock.tell(now += second / 10);
    clock.tell(now - second / 11);
  }
  EXPECT_EQ(clock.tell(now) - began, 10 * second);
}

}  // namespace
}  // namespace leat::testing
