#include "stages/plan/block_uses.hpp"

#include "tests/support/seeds.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <random>
#include <set>
#include <vector>

namespace leat::stages {
namespace {

// Rows of blocks in an exact order within pools of `near` blocks, each batch expanding its blocks anew.
double expansions_counted(std::size_t blocks, std::size_t rows_of_block, std::size_t near, std::size_t batch_rows,
                          std::mt19937_64& random) {
  std::size_t expanded = 0;
  for (std::size_t pool = 0; pool < blocks / near; ++pool) {
    std::vector<std::size_t> rows(near * rows_of_block);
    std::iota(rows.begin(), rows.end(), std::size_t{0});
    std::shuffle(rows.begin(), rows.end(), random);
    for (std::size_t first = 0; first < rows.size(); first += batch_rows) {
      std::set<std::size_t> wanted;
      for (std::size_t i = first; i < std::min(first + batch_rows, rows.size()); ++i) {
        wanted.insert(rows[i] / rows_of_block);
      }
      expanded += wanted.size();
    }
  }
  return static_cast<double>(expanded) / static_cast<double>(blocks);
}

TEST(block_uses, are_those_that_are_counted_where_nothing_is_kept) {
  testing::for_each_seed(20, [](std::uint64_t seed) {
    std::mt19937_64 random(seed);
    const std::size_t near = std::size_t{8} << random() % 4;
    const std::size_t blocks = near * (std::size_t{1} << random() % 4);
    const std::size_t rows_of_block = 2 + random() % 40;
    // A batch within a pool: pools are so many batches.
    const std::size_t batch_rows = near * rows_of_block / (1 + random() % 8);
    const double counted = expansions_counted(blocks, rows_of_block, near, batch_rows, random);
    const double said = expansions_of({.rows = static_cast<double>(blocks * rows_of_block),
                                       .batch_rows = static_cast<double>(batch_rows),
                                       .blocks = static_cast<double>(blocks),
                                       .near = static_cast<double>(near)});
    EXPECT_NEAR(said, counted, 0.15 * counted) << blocks << " " << rows_of_block << " " << near << " " << batch_rows;
  });
}

TEST(block_uses, are_one_expansion_for_all_where_blocks_are_kept_or_rows_are_in_order) {
  const block_order exact{.rows = 1600, .batch_rows = 10, .blocks = 100, .near = 100};
  EXPECT_GT(expansions_of(exact), 14);
  block_order kept = exact;
  kept.kept = 1;
  EXPECT_DOUBLE_EQ(expansions_of(kept), 1);
  kept.kept = 0.5;
  EXPECT_DOUBLE_EQ(expansions_of(kept), (1 + expansions_of(exact)) / 2);
  block_order in_order = exact;
  in_order.near = 1;
  in_order.batch_rows = 32;
  EXPECT_DOUBLE_EQ(expansions_of(in_order), 1);
}

TEST(block_uses, are_fewer_than_one_where_a_rank_has_few_rows_of_each_block) {
  EXPECT_DOUBLE_EQ(expansions_of({.rows = 25, .batch_rows = 5, .blocks = 100, .near = 100}), 0.25);
}

}  // namespace
}  // namespace leat::stages
