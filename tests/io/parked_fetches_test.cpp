// Fetches that wait for their store, by no connection.
#include "io/remote/parked_fetches.hpp"

#include "io/remote/fetch_progress.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>

namespace leat::testing {
namespace {

class parked : public ::testing::Test {
 protected:
  void add(std::uint32_t lane, std::uint64_t wanted_ns, const std::string& name) {
    auto one = std::make_shared<io::fetch>();
    one->state = std::make_shared<io::fetch::progress>();
    one->state->wanted_ns = wanted_ns;
    one->state->lane = lane;
    one->why = name;
    all_.add(lane, std::move(one));
  }
  // The next one, where a lane is let go after so long.
  std::string take(std::uint64_t wait_of_lane_1) {
    const auto [one, least] =
        all_.take([&](const io::fetch& each) { return each.state->lane == 1 ? wait_of_lane_1 : 0; });
    return one != nullptr ? one->why : std::to_string(least);
  }

  io::parked_fetches all_;
};

TEST_F(parked, go_by_age_whatever_came_first) {
  add(1, 30, "c");
  add(1, 20, "b");
  add(1, 10, "a");
  EXPECT_EQ(all_.size(), 3U);
  EXPECT_EQ(take(0), "a");
  EXPECT_EQ(take(0), "b");
  EXPECT_EQ(take(0), "c");
  EXPECT_EQ(all_.size(), 0U);
}

// Else a prefix that refuses, and whose reads are the oldest, would have all of a store's rate, and ask for ever whether the store is back.
TEST_F(parked, of_several_prefixes_go_in_turns) {
  for (const char* const name : {"a", "b", "c"}) add(1, 10, name);
  add(2, 20, "d");
  add(4, 30, "e");
  std::string taken;
  while (all_.size() != 0) taken += take(0);
  EXPECT_EQ(taken, "adebc");
}

TEST_F(parked, of_a_prefix_that_is_throttled_hold_up_no_others) {
  add(1, 10, "a");
  add(2, 20, "b");
  EXPECT_TRUE(all_.are_in(2));
  EXPECT_EQ(take(7), "b");
  EXPECT_FALSE(all_.are_in(2));
  EXPECT_EQ(take(7), "7") << "how long until one may go";
  EXPECT_EQ(take(0), "a");
}

TEST_F(parked, that_are_given_up_leave_the_others_in_their_order) {
  for (std::uint64_t i = 0; i < 6; ++i) add(1 + i % 2, i, std::string(1, static_cast<char>('a' + i)));
  const auto over = all_.take_all([](const io::fetch& each) { return each.state->wanted_ns < 3; });
  EXPECT_EQ(over.size(), 3U);
  EXPECT_EQ(take(0), "e");
  EXPECT_EQ(take(0), "d");
  EXPECT_EQ(take(0), "f");
}

}  // namespace
}  // namespace leat::testing
