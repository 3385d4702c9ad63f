#include "stages/observe/occupancy.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <thread>
#include <vector>

namespace leat::stages {
namespace {

constexpr std::uint64_t second = 1'000'000'000;

TEST(occupancy, sums_the_stays_of_those_who_left_and_of_those_who_are_there) {
  occupancy hall;
  const std::uint64_t begin = now_ns();
  hall.add(begin);
  hall.add(begin + 2 * second);
  EXPECT_EQ(hall.count(), 2U);
  EXPECT_NEAR(static_cast<double>(hall.stays_ns(begin + 5 * second)) * 1e-9, 5 + 3, 1e-3);
  hall.remove(begin + 6 * second);
  hall.remove(begin + 6 * second);
  EXPECT_EQ(hall.count(), 0U);
  EXPECT_NEAR(static_cast<double>(hall.stays_ns(begin + 100 * second)) * 1e-9, 6 + 4, 1e-3);
  // Long runs: what is taken off the sum borrows from the count, and is given back.
  for (std::uint64_t hour = 1; hour <= 1000; ++hour) {
    hall.add(begin + hour * 3600 * second);
    hall.remove(begin + (hour * 3600 + 1800) * second);
  }
  EXPECT_NEAR(static_cast<double>(hall.stays_ns(begin + 1001 * 3600 * second)) * 1e-9, 10 + 1000 * 1800, 1);
}

TEST(occupancy, is_changed_by_many_threads_at_once) {
  occupancy hall;
  const std::uint64_t begin = now_ns();
  std::vector<std::thread> guests;
  for (int i = 0; i < 4; ++i) {
    guests.emplace_back([&] {
      for (std::uint64_t k = 0; k < 2000; ++k) {
        hall.add(begin + k * 1'000'000);
        hall.remove(begin + (k + 1) * 1'000'000);
      }
    });
  }
  for (std::thread& each : guests) each.join();
  EXPECT_EQ(hall.count(), 0U);
  EXPECT_NEAR(static_cast<double>(hall.stays_ns(begin)) * 1e-9, 8, 0.2);
}

}  // namespace
}  // namespace leat::stages
