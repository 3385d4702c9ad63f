#include "async/histogram.hpp"

#include "tests/support/seeds.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <random>
#include <thread>
#include <vector>

namespace leat::async {
namespace {

TEST(histogram, of_nothing_is_all_zero) {
  const auto times = std::make_unique<histogram>();
  const auto all = times->summarize();
  EXPECT_EQ(all.count, 0U);
  EXPECT_EQ(all.p50_ns, 0U);
  EXPECT_EQ(all.p999_ns, 0U);
  EXPECT_EQ(all.max_ns, 0U);
}

TEST(histogram, is_exact_where_it_is_linear) {
  const auto times = std::make_unique<histogram>();
  for (std::uint64_t ns = 0; ns < 32; ++ns) times->record(ns);
  for (std::uint64_t ns = 0; ns < 32; ++ns) {
    EXPECT_EQ(times->quantile_ns(static_cast<double>(ns + 1) / 32), ns);
  }
}

TEST(histogram, knows_every_duration_to_one_in_64) {
  for (std::uint64_t ns = 1; ns < std::uint64_t{1} << 42; ns += 1 + ns / 7) {
    const auto times = std::make_unique<histogram>();
    times->record(ns);
    times->record(std::uint64_t{1} << 43);  // so that the maximum does not help
    const auto seen = static_cast<double>(times->quantile_ns(0.5));
    ASSERT_LE(std::abs(seen - static_cast<double>(ns)), static_cast<double>(ns) / 64) << ns;
  }
}

TEST(histogram, counts_what_is_too_long_and_keeps_the_maximum_exact) {
  const auto times = std::make_unique<histogram>();
  times->record(5);
  times->record(std::numeric_limits<std::uint64_t>::max());
  const auto all = times->summarize();
  EXPECT_EQ(all.count, 2U);
  EXPECT_EQ(all.p50_ns, 5U);
  EXPECT_EQ(all.p99_ns, std::numeric_limits<std::uint64_t>::max());
  EXPECT_EQ(all.max_ns, std::numeric_limits<std::uint64_t>::max());
  times->reset();
  EXPECT_EQ(times->summarize().count, 0U);
}

TEST(histogram, agrees_with_sorting) {
  leat::testing::for_each_seed(5, [](std::uint64_t seed) {
    std::mt19937_64 random(seed);
    std::lognormal_distribution<double> draw(12, 2);
    const auto times = std::make_unique<histogram>();
    std::vector<std::uint64_t> all;
    for (int i = 0; i < 5000; ++i) {
      all.push_back(static_cast<std::uint64_t>(draw(random)));
      times->record(all.back());
    }
    std::sort(all.begin(), all.end());
    for (const double quantile : {0.01, 0.5, 0.9, 0.99, 0.999, 1.0}) {
      const auto rank = static_cast<std::size_t>(std::ceil(quantile * 5000)) - 1;
      const auto exact = static_cast<double>(all[rank]);
      EXPECT_NEAR(static_cast<double>(times->quantile_ns(quantile)), exact, exact / 64 + 1) << quantile;
    }
    EXPECT_EQ(times->summarize().max_ns, all.back());
  });
}

TEST(histogram, loses_no_recording_from_any_thread) {
  const auto times = std::make_unique<histogram>();
  std::vector<std::thread> threads;
  for (std::uint64_t t = 0; t < 3; ++t) {
    threads.emplace_back([&times, t] {
      for (std::uint64_t i = 0; i < 20'000; ++i) times->record(i * (t + 1));
    });
  }
  for (auto& thread : threads) thread.join();
  const auto all = times->summarize();
  EXPECT_EQ(all.count, 60'000U);
  EXPECT_EQ(all.sum_ns, 6U * (19'999U * 20'000U / 2));
  EXPECT_EQ(all.max_ns, 59'997U);
}

}  // namespace
}  // namespace leat::async
