#include "stages/order/permutation.hpp"

#include "tests/support/chi_square.hpp"
#include "tests/support/seeds.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <random>
#include <vector>

namespace leat::stages {
namespace {

using leat::testing::deviation;
using leat::testing::deviation_max;
using leat::testing::for_each_seed;

__extension__ using uint128 = unsigned __int128;

std::size_t bin(std::uint64_t value, std::uint64_t n, std::uint64_t bins) {
  return static_cast<std::size_t>(static_cast<uint128>(value) * bins / n);
}

std::vector<std::uint64_t> order_of(const permutation& order) {
  std::vector<std::uint64_t> all(order.size());
  order(0, all);
  return all;
}

bool is_bijection(const permutation& order) {
  std::vector<bool> seen(order.size());
  for (std::uint64_t i = 0; i < order.size(); ++i) {
    const std::uint64_t image = order(i);
    if (image >= order.size() || seen[image] || order.place_of(image) != i) return false;
    seen[image] = true;
  }
  return true;
}

// How often each thing came to each place, over so many keys.
template <class Shuffle>
std::vector<std::uint32_t> place_counts(std::uint64_t n, std::uint32_t keys, Shuffle shuffle) {
  std::vector<std::uint32_t> counts(n * n);
  std::vector<std::uint64_t> order(n);
  for (std::uint32_t key = 0; key < keys; ++key) {
    shuffle(key, order);
    for (std::uint64_t i = 0; i < n; ++i) ++counts[i * n + order[i]];
  }
  return counts;
}

// Rows and columns of the counts have fixed sums, which leaves (n-1)^2 of n^2 free and shrinks the statistic by
// (n-1)/n: (X - f) / sqrt(2f) is computed for X (n-1)/n.
double place_deviation(const std::vector<std::uint32_t>& counts, std::uint64_t n) {
  const auto size = static_cast<double>(n);
  const double freedom = (size - 1) * (size - 1);
  const double chi_square = deviation(counts, freedom) * std::sqrt(2 * freedom) + freedom;
  return (chi_square * (size - 1) / size - freedom) / std::sqrt(2 * freedom);
}

TEST(permutation, is_a_bijection_for_every_size_up_to_3000) {
  for (std::uint64_t n = 1; n <= 3000; ++n) ASSERT_TRUE(is_bijection(permutation(n, n * 0x9e3779b9, 3))) << "n = " << n;
}

TEST(permutation, is_a_bijection_for_large_sizes) {
  EXPECT_TRUE(is_bijection(permutation(1'281'167, 7, 0)));
  for_each_seed(6, [](std::uint64_t seed) {
    std::mt19937_64 draws(seed);
    const std::uint64_t n = 3000 + draws() % 1'000'000;
    EXPECT_TRUE(is_bijection(permutation(n, draws(), static_cast<std::uint32_t>(draws())))) << "n = " << n;
  });
}

TEST(permutation, stays_inside_the_largest_size_and_repeats_nothing_there) {
  const std::uint64_t n = std::uint64_t{1} << 48;
  const permutation order(n, 1, 2);
  std::vector<std::uint64_t> images(200'000);
  order(n - images.size(), images);
  EXPECT_LT(*std::max_element(images.begin(), images.end()), n);
  std::sort(images.begin(), images.end());
  EXPECT_EQ(std::adjacent_find(images.begin(), images.end()), images.end());
}

TEST(permutation, of_nothing_can_be_made_and_asked_for_nothing) {
  const permutation order(0, 1, 2);
  EXPECT_EQ(order.size(), 0U);
  order(0, {});
}

TEST(permutation, answers_the_same_in_a_row_and_one_by_one) {
  for (const std::uint64_t n : {std::uint64_t{200}, std::uint64_t{1000}, std::uint64_t{123'457}}) {
    const permutation order(n, 11, 5);
    std::vector<std::uint64_t> row(100);
    order(n - 150, row);
    for (std::uint64_t k = 0; k < row.size(); ++k) ASSERT_EQ(row[k], order(n - 150 + k));
  }
}

// An order that changes breaks every resumed run and every recorded digest: these numbers may never be edited.
TEST(permutation, never_changes) {
  const auto first = [](std::uint64_t n, std::uint64_t seed, std::uint32_t epoch) {
    std::vector<std::uint64_t> places(std::min<std::uint64_t>(n, 6));
    permutation(n, seed, epoch)(0, places);
    return places;
  };
  using ids = std::vector<std::uint64_t>;
  EXPECT_EQ(first(5, 0, 0), (ids{1, 4, 0, 3, 2}));
  EXPECT_EQ(first(256, 7, 1), (ids{183, 42, 1, 102, 130, 35}));
  EXPECT_EQ(first(257, 7, 1), (ids{160, 170, 112, 150, 59, 240}));
  EXPECT_EQ(first(1'281'167, 7, 0), (ids{4758, 140362, 446780, 185543, 622307, 817122}));
  EXPECT_EQ(first(1'281'167, 7, 1), (ids{775983, 153945, 857847, 714826, 738784, 167130}));
  EXPECT_EQ(first(std::uint64_t{1} << 48, 0xdeadbeefcafe, 4'000'000'000U),
            (ids{117734419485876, 203419594866489, 197174450528679, 13076284302176, 37689418445096, 208438302256233}));
}

TEST(permutation, takes_every_order_of_up_to_5_things_equally_often) {
  for (const std::uint64_t n : {2U, 3U, 4U, 5U}) {
    std::vector<std::uint64_t> order(n), sorted(n);
    std::iota(sorted.begin(), sorted.end(), 0U);
    std::vector<std::vector<std::uint64_t>> orders;
    do orders.push_back(sorted);
    while (std::next_permutation(sorted.begin(), sorted.end()));
    std::vector<std::uint32_t> counts(orders.size());
    for (std::uint32_t key = 0; key < 60'000; ++key) {
      permutation(n, key / 4, key % 4)(0, order);
      ++counts[static_cast<std::size_t>(std::lower_bound(orders.begin(), orders.end(), order) - orders.begin())];
    }
    EXPECT_LT(std::abs(deviation(counts)), deviation_max) << "n = " << n;
  }
}

TEST(permutation, puts_everything_everywhere_as_evenly_as_fisher_yates) {
  for (const std::uint64_t n : {2U, 3U, 4U, 5U, 6U, 7U, 8U, 17U, 100U, 255U, 256U, 257U, 258U, 289U, 290U, 500U}) {
    const std::uint32_t keys = n < 100 ? 50'000 : 10'000;
    const auto ours = place_counts(
        n, keys, [n](std::uint32_t key, std::vector<std::uint64_t>& order) { permutation(n, key, key % 7)(0, order); });
    std::mt19937_64 draws(n);
    const auto theirs = place_counts(n, keys, [&](std::uint32_t, std::vector<std::uint64_t>& order) {
      std::iota(order.begin(), order.end(), std::uint64_t{0});
      std::shuffle(order.begin(), order.end(), draws);
    });
    EXPECT_LT(std::abs(place_deviation(ours, n)), deviation_max) << "n = " << n;
    EXPECT_LT(std::abs(place_deviation(theirs, n)), deviation_max) << "Fisher-Yates, n = " << n;
  }
}

TEST(permutation, puts_single_places_of_large_sizes_anywhere) {
  for (const std::uint64_t n : {std::uint64_t{10'000}, std::uint64_t{10'000'000}, std::uint64_t{1} << 48}) {
    for (const std::uint64_t place : {std::uint64_t{0}, std::uint64_t{1}, n / 2, n - 1}) {
      std::vector<std::uint32_t> counts(100);
      for (std::uint32_t key = 0; key < 50'000; ++key) ++counts[bin(permutation(n, 3, key)(place), n, 100)];
      EXPECT_LT(std::abs(deviation(counts)), deviation_max) << "place " << place << " of " << n;
    }
  }
}

// The smallest networks are the least fair ones, and to pairs in one row of their grid above all: with 4 rounds instead
// of 10 those fail by 60 deviations.
TEST(permutation, treats_all_pairs_of_images_alike) {
  for (const std::uint64_t n : {257U, 300U}) {
    const auto row = static_cast<std::uint64_t>(std::ceil(std::sqrt(static_cast<double>(n))));
    for (const std::uint64_t distance : {std::uint64_t{1}, row - 1}) {
      std::vector<std::uint32_t> counts(n * (n - 1));
      for (std::uint32_t key = 0; key < 500'000; ++key) {
        const permutation order(n, key, 9);
        const std::uint64_t x = order(3);
        const std::uint64_t y = order(3 + distance);
        ++counts[x * (n - 1) + (y > x ? y - 1 : y)];
      }
      EXPECT_LT(std::abs(deviation(counts)), deviation_max) << "n = " << n << ", " << distance << " apart";
    }
  }
}

// Inside one order: where a sample stands says nothing of where its neighbours stand, in a row or across rows of the
// network's grid, in pairs, in steps, in steps of steps, in threes.
TEST(permutation, scatters_neighbours) {
  for_each_seed(2, [](std::uint64_t seed) {
    for (const std::uint64_t n : {std::uint64_t{1} << 16, std::uint64_t{1} << 20, std::uint64_t{1'281'167}}) {
      const auto row = static_cast<std::uint64_t>(std::ceil(std::sqrt(static_cast<double>(n))));
      const std::vector<std::uint64_t> order = order_of(permutation(n, seed, 1));
      for (const std::uint64_t distance : {std::uint64_t{1}, row - 1, row, row + 1}) {
        std::vector<std::uint32_t> pairs(1024), steps(1024), bends(1024), triples(4096);
        for (std::uint64_t i = 0; i + 2 * distance < n; ++i) {
          const std::uint64_t x = order[i], y = order[i + distance], z = order[i + 2 * distance];
          ++pairs[bin(x, n, 32) * 32 + bin(y, n, 32)];
          ++steps[bin((y + n - x) % n, n, 1024)];
          ++bends[bin((z + x + 2 * (n - y)) % n, n, 1024)];
          ++triples[bin(x, n, 16) * 256 + bin(y, n, 16) * 16 + bin(z, n, 16)];
        }
        const auto context = [&] { return ::testing::Message() << "n = " << n << ", " << distance << " apart"; };
        EXPECT_LT(std::abs(deviation(pairs)), deviation_max) << context();
        EXPECT_LT(std::abs(deviation(steps)), deviation_max) << context();
        EXPECT_LT(std::abs(deviation(bends)), deviation_max) << context();
        EXPECT_LT(std::abs(deviation(triples)), deviation_max) << context();
      }
    }
  });
}

// Two independent orders agree in Poisson(1) places and their ranks do not correlate.
TEST(permutation, of_other_epochs_and_seeds_have_nothing_in_common) {
  const std::uint64_t n = 20'000;
  std::vector<std::vector<std::uint64_t>> orders;
  for (std::uint32_t epoch = 0; epoch < 4; ++epoch) orders.push_back(order_of(permutation(n, 7, epoch)));
  for (std::uint64_t seed : {0U, 1U, 6U, 8U}) orders.push_back(order_of(permutation(n, seed, 0)));
  orders.push_back(order_of(permutation(n, std::uint64_t{7} << 32, 0)));
  for (std::size_t first = 0; first < orders.size(); ++first) {
    for (std::size_t second = first + 1; second < orders.size(); ++second) {
      std::uint64_t same = 0;
      double covariance = 0;
      const double middle = static_cast<double>(n - 1) / 2;
      for (std::uint64_t i = 0; i < n; ++i) {
        same += orders[first][i] == orders[second][i] ? 1U : 0U;
        covariance +=
            (static_cast<double>(orders[first][i]) - middle) * (static_cast<double>(orders[second][i]) - middle);
      }
      const double variance = static_cast<double>(n) * (static_cast<double>(n) * static_cast<double>(n) - 1) / 12;
      EXPECT_LT(same, 12U) << first << " and " << second;
      EXPECT_LT(std::abs(covariance / variance) * std::sqrt(static_cast<double>(n)), 5.0) << first << " and " << second;
    }
  }
}

}  // namespace
}  // namespace leat::stages
