// Which bytes of rows that are not full are copied: against the best of all ways to cut them into groups.
#include "stages/device/copy_plan.hpp"

#include "tests/support/seeded_random.hpp"
#include "tests/support/seeds.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace leat::stages {
namespace {

std::vector<copied_rows> plan(const std::vector<std::size_t>& used) {
  std::vector<copied_rows> groups(3);
  std::vector<std::size_t> scratch(1);
  plan_copies(used, groups, scratch);
  return groups;
}

std::size_t cost(const std::vector<copied_rows>& groups) {
  std::size_t sum = 0;
  for (const copied_rows& each : groups) sum += each.count * each.row_bytes + bytes_of_a_call;
  return sum;
}

// Every way to cut few rows.
std::size_t least_cost(const std::vector<std::size_t>& used) {
  std::size_t least = SIZE_MAX;
  for (std::uint32_t cuts = 0; cuts < std::uint32_t{1} << (used.size() - 1); ++cuts) {
    std::size_t sum = 0;
    std::size_t begin = 0;
    for (std::size_t end = 1; end <= used.size(); ++end) {
      if (end < used.size() && (cuts >> (end - 1) & 1U) == 0) continue;
      const auto at = [&](std::size_t i) { return used.begin() + static_cast<std::ptrdiff_t>(i); };
      sum += (end - begin) * *std::max_element(at(begin), at(end)) + bytes_of_a_call;
      begin = end;
    }
    least = std::min(least, sum);
  }
  return least;
}

TEST(copy_plan, copies_what_is_used_of_each_row_by_the_cheapest_groups) {
  testing::for_each_seed(50, [](std::uint64_t seed) {
    testing::seeded_random random(seed);
    std::vector<std::size_t> used(1 + random.below(10));
    for (std::size_t& each : used) each = random.below(400'000);
    const std::vector<copied_rows> groups = plan(used);
    std::size_t row = 0;
    for (const copied_rows& each : groups) {
      ASSERT_EQ(each.first, row);
      for (std::uint32_t i = 0; i < each.count; ++i) EXPECT_GE(each.row_bytes, used[row++]);
    }
    EXPECT_EQ(row, used.size());
    EXPECT_EQ(cost(groups), least_cost(used));
  });
}

TEST(copy_plan, takes_small_rows_together_and_lets_a_large_one_alone) {
  EXPECT_TRUE(plan({}).empty());
  EXPECT_EQ(plan({7}), (std::vector<copied_rows>{{0, 1, 7}}));
  EXPECT_EQ(plan({100, 200, 150}), (std::vector<copied_rows>{{0, 3, 200}}));
  EXPECT_EQ(plan({1000, 1000, 900'000, 1000, 1000}),
            (std::vector<copied_rows>{{0, 2, 1000}, {2, 1, 900'000}, {3, 2, 1000}}));
  EXPECT_EQ(plan(std::vector<std::size_t>(1000, 16)).size(), 16U) << "64 rows at the most";
}

}  // namespace
}  // namespace leat::stages
