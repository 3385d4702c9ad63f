#include "io/remote/request_patience.hpp"

#include <gtest/gtest.h>

#include <cstdint>

namespace leat::testing {
namespace {

TEST(request_patience, is_used_up_by_tries_and_pauses_alone) {
  io::request_patience some(100);
  EXPECT_EQ(some.left_ns(), 100U);
  some.use(60);
  EXPECT_EQ(some.left_ns(), 40U);
  EXPECT_FALSE(some.is_over());
  some.use(~std::uint64_t{0});
  EXPECT_EQ(some.left_ns(), 0U);
  EXPECT_TRUE(some.is_over());
}

TEST(request_patience, of_a_silent_request_is_its_own_where_many_that_came_later_were_answered) {
  const io::place_in_line of_many{.answers_before = 1'000, .beside = 256};
  EXPECT_FALSE(of_many.is_overtaken(1'000, 1));
  EXPECT_FALSE(of_many.is_overtaken(1'000 + 2 * 256, 1)) << "half of them may have come before it";
  EXPECT_TRUE(of_many.is_overtaken(1'000 + 3 * 256, 256));
  const io::place_in_line first{};
  EXPECT_FALSE(first.is_overtaken(12, 8)) << "others were asked at the same time";
  const io::place_in_line alone{};
  EXPECT_FALSE(alone.is_overtaken(0, 1)) << "the store is silent, and says for how long";
}

}  // namespace
}  // namespace leat::testing
