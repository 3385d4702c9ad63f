#include "stages/order/dealt_rows.hpp"

#include <leat/world.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <random>
#include <vector>

namespace leat::stages {
namespace {

std::vector<std::uint32_t> as_they_come(std::size_t rows) {
  std::vector<std::uint32_t> order(rows);
  std::iota(order.begin(), order.end(), 0U);
  return order;
}

// Rows of 4,096 tokens with texts of log-normal lengths end to end, cut where a row ends: what a pretraining corpus is like.
std::vector<double> costs_of_packed_rows(std::size_t rows, std::mt19937& draw) {
  constexpr std::uint64_t row_tokens = 4096;
  std::lognormal_distribution<double> length(6.5, 1.3);
  std::vector<double> costs(rows);
  std::uint64_t left = 0;
  for (double& cost : costs) {
    for (std::uint64_t at = 0; at < row_tokens;) {
      if (left == 0) left = 1 + static_cast<std::uint64_t>(length(draw));
      const std::uint64_t piece = std::min(left, row_tokens - at);
      cost += static_cast<double>(piece) * static_cast<double>(piece);
      at += piece;
      left -= piece;
    }
  }
  return costs;
}

TEST(dealt_rows, each_rank_has_as_many_rows_as_before_and_each_row_is_dealt_once) {
  std::mt19937 draw(1);
  for (const std::uint32_t ranks : {1U, 2U, 3U, 7U, 16U}) {
    for (const std::size_t rows : {0U, 1U, 5U, 16U, 61U}) {
      const std::vector<double> costs = costs_of_packed_rows(rows, draw);
      const std::vector<std::uint32_t> order = deal_rows(costs, ranks);
      std::vector<std::uint32_t> sorted = order;
      std::sort(sorted.begin(), sorted.end());
      EXPECT_EQ(sorted, as_they_come(rows));
      for (std::uint32_t rank = 0; rank < ranks; ++rank) {
        const world here{.rank = rank, .size = ranks};
        const auto all = static_cast<std::uint32_t>(rows);
        EXPECT_TRUE(std::is_sorted(order.begin() + here.row_begin(all), order.begin() + here.row_end(all)));
      }
      EXPECT_LE(slowest_share(costs, order, ranks), slowest_share(costs, as_they_come(rows), ranks) + 1e-9);
      EXPECT_EQ(deal_rows(costs, ranks), order);
    }
  }
}

TEST(dealt_rows, the_slowest_of_64_ranks_is_within_2_percent_of_the_mean) {
  constexpr std::uint32_t ranks = 64;
  std::mt19937 draw(7);
  for (const std::size_t rows_of_rank : {8U, 16U, 32U}) {
    double before = 0;
    for (int batch = 0; batch < 20; ++batch) {
      const std::vector<double> costs = costs_of_packed_rows(ranks * rows_of_rank, draw);
      EXPECT_LE(slowest_share(costs, deal_rows(costs, ranks), ranks), 1.02) << rows_of_rank << " rows a rank";
      before += slowest_share(costs, as_they_come(costs.size()), ranks) / 20;
    }
    EXPECT_GT(before, 1.2) << "there was something to do";
  }
}

TEST(dealt_rows, the_best_is_found_where_it_is_plain) {
  // Of 2 ranks with 2 rows each: 10 + 1 and 6 + 5.
  EXPECT_EQ(deal_rows(std::vector<double>{10, 6, 5, 1}, 2), (std::vector<std::uint32_t>{0, 3, 1, 2}));
  EXPECT_DOUBLE_EQ(slowest_share(std::vector<double>{10, 6, 5, 1}, std::vector<std::uint32_t>{0, 3, 1, 2}, 2), 1);
  EXPECT_DOUBLE_EQ(slowest_share(std::vector<double>{10, 6, 5, 1}, as_they_come(4), 2), 16.0 / 11);
  EXPECT_DOUBLE_EQ(slowest_share(std::vector<double>{0, 0}, as_they_come(2), 2), 1) << "nothing costs anything";
}

}  // namespace
}  // namespace leat::stages
