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
  EXPECT_EQ(clock.tell(now += second / 50) - began, 3 * second + second / 50);
  EXPECT_EQ(clock.tell(now - second), clock.tell(now - second)) << "two threads that told it in another order";
}

}  // namespace
}  // namespace leat::testing
