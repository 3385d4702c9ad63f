#include "stages/pixels/scratch.hpp"

#include "tests/support/seeds.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

namespace leat {
namespace {

using pixels::scratch_arena;
using pixels::scratch_budget;
using stages::outcome_kind;
using ::testing::HasSubstr;

constexpr std::size_t step = scratch_arena::step_bytes;
constexpr std::size_t base = scratch_arena::base_bytes;

TEST(scratch, counts_every_byte_it_grants) {
  scratch_budget budget(16 * step);
  EXPECT_EQ(budget.used(), 0U);
  {
    scratch_arena arena(budget);
    EXPECT_EQ(budget.used(), base);
    arena.begin();
    ASSERT_TRUE(arena.reserve(3 * step));
    EXPECT_EQ(budget.used(), 3 * step);
    void* const memory = arena.take(step + 1);
    ASSERT_NE(memory, nullptr);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory) % scratch_arena::alignment_bytes, 0U);
    std::memset(memory, 1, step + 1);
    EXPECT_EQ(arena.take(2 * step), nullptr) << "more than was reserved";
    EXPECT_NE(arena.take(step), nullptr);
    arena.end();
    EXPECT_EQ(budget.used(), 3 * step) << "kept for the next sample";
    EXPECT_EQ(arena.used(), 0U);
  }
  EXPECT_EQ(budget.used(), 0U);
  EXPECT_EQ(budget.peak(), 3 * step);
}

// What is too large must not depend on how many threads there are: it decides what a batch holds.
TEST(scratch, lets_in_the_same_samples_with_any_number_of_arenas) {
  constexpr std::size_t host_bytes_max = std::size_t{64} << 20;
  constexpr std::size_t largest = scratch_budget::sample_bytes_max(host_bytes_max);
  for (const std::size_t threads : {1U, 2U, 8U}) {
    scratch_budget budget(largest + threads * step, host_bytes_max);
    std::vector<std::unique_ptr<scratch_arena>> arenas;
    for (std::size_t i = 0; i < threads; ++i) arenas.push_back(std::make_unique<scratch_arena>(budget));
    scratch_arena& one = *arenas.front();
    one.begin();
    EXPECT_TRUE(one.reserve(largest)) << threads;
    one.end();
    one.begin();
    const auto refused = one.reserve(largest + 1);
    EXPECT_EQ(refused.kind(), outcome_kind::over_budget) << threads;
    EXPECT_THAT(refused.reason(), HasSubstr("host_bytes_max of 65 MiB would do")) << threads;
    one.end();
  }
}

TEST(scratch, refuses_what_never_fits_and_says_what_would) {
  scratch_budget budget(16 * step, std::size_t{100} << 20);
  scratch_arena one(budget);
  scratch_arena other(budget);
  one.begin();
  EXPECT_TRUE(one.reserve(15 * step - one.used())) << "all but the other's base";
  one.end();
  one.begin();
  const auto refused = one.reserve((std::size_t{20} << 20) + 1);
  EXPECT_EQ(refused.kind(), outcome_kind::over_budget);
  EXPECT_THAT(refused.reason(), HasSubstr("needs 21 MiB of scratch memory and the budget can give 1 MiB"));
  // 100 MiB, less 1 MiB that is scratch now, and 20 MiB + 1 step + the other's base.
  EXPECT_THAT(refused.reason(), HasSubstr("host_bytes_max of 120 MiB would do"));
  one.end();
  EXPECT_THROW(
      {
        std::vector<std::unique_ptr<scratch_arena>> many;
        for (int i = 0; i < 15; ++i) many.push_back(std::make_unique<scratch_arena>(budget));
      },
      error);
}

TEST(scratch, takes_from_arenas_at_rest) {
  scratch_budget budget(16 * step);
  scratch_arena one(budget);
  scratch_arena other(budget);
  one.begin();
  ASSERT_TRUE(one.reserve(12 * step));
  one.end();
  EXPECT_EQ(one.held(), 12 * step);
  other.begin();
  ASSERT_TRUE(other.reserve(10 * step)) << "one is at rest and need not be waited for";
  EXPECT_EQ(one.held(), base);
  EXPECT_EQ(other.held(), 10 * step);
  other.end();
  // And back.
  one.begin();
  ASSERT_TRUE(one.reserve(12 * step));
  std::memset(one.take(12 * step - base), 7, 12 * step - base);
  one.end();
  EXPECT_LE(budget.peak(), budget.bytes_max());
  EXPECT_EQ(budget.waits(), 0U);
}

TEST(scratch, waits_for_samples_to_end_and_wakes_on_stop) {
  scratch_budget budget(16 * step);
  scratch_arena one(budget);
  scratch_arena other(budget);
  one.begin();
  ASSERT_TRUE(one.reserve(12 * step));
  std::atomic<int> got{0};
  std::thread waiter([&] {
    other.begin();
    got = other.reserve(10 * step) ? 1 : 2;
    other.end();
  });
  while (budget.waits() == 0) std::this_thread::yield();
  EXPECT_EQ(got, 0);
  one.end();
  waiter.join();
  EXPECT_EQ(got, 1);

  one.begin();
  ASSERT_TRUE(one.reserve(12 * step));
  outcome_kind kind = outcome_kind::ok;
  std::thread stopped([&] {
    other.begin();
    kind = other.reserve(10 * step).kind();
    other.end();
  });
  while (budget.waits() == 1) std::this_thread::yield();
  budget.stop();
  stopped.join();
  EXPECT_EQ(kind, outcome_kind::cancelled);
  one.end();
}

// A large request at the head of the queue is not overtaken by small ones that would fit.
TEST(scratch, serves_in_the_order_of_asking) {
  scratch_budget budget(16 * step);
  scratch_arena holder(budget);
  scratch_arena large(budget);
  scratch_arena small(budget);
  holder.begin();
  ASSERT_TRUE(holder.reserve(10 * step));
  std::atomic<int> order{0};
  int large_at = 0;
  int small_at = 0;
  std::thread first([&] {
    large.begin();
    ASSERT_TRUE(large.reserve(13 * step));
    large_at = ++order;
    large.end();
  });
  while (budget.waits() < 1) std::this_thread::yield();
  std::thread second([&] {
    small.begin();
    ASSERT_TRUE(small.reserve(3 * step));  // fits at once, but it is not its turn
    small_at = ++order;
    small.end();
  });
  while (budget.waits() < 2) std::this_thread::yield();
  EXPECT_EQ(order, 0);
  holder.end();
  first.join();
  second.join();
  EXPECT_EQ(large_at, 1);
  EXPECT_EQ(small_at, 2);
}

// Threads with more appetite than there is: nobody waits for ever, nobody sees another's bytes, the sum stays below the
// budget. Meant for ThreadSanitizer and AddressSanitizer too.
TEST(scratch, survives_many_hungry_threads) {
  testing::for_each_seed(3, [&](std::uint64_t seed) {
    scratch_budget budget(24 * step);
    std::vector<std::thread> threads;
    std::atomic<int> wrong{0};
    for (unsigned id = 1; id <= 6; ++id) {
      threads.emplace_back([&, id] {
        std::mt19937_64 random(seed * 100 + id);
        scratch_arena arena(budget);
        for (int i = 0; i < 200; ++i) {
          const std::size_t bytes = 1 + random() % (18 * step);
          arena.begin();
          auto* const header = arena.take_array<unsigned char>(100);
          std::memset(header, static_cast<int>(id), 100);
          if (!arena.reserve(scratch_arena::rounded(bytes))) ++wrong;
          auto* const memory = arena.take_array<unsigned char>(bytes);
          if (memory == nullptr) {
            ++wrong;
          } else {
            for (std::size_t at = 0; at < bytes; at += 4096) memory[at] = static_cast<unsigned char>(id);
            for (std::size_t at = 0; at < bytes; at += 4096) wrong += memory[at] == id ? 0 : 1;
          }
          wrong += header[50] == id ? 0 : 1;
          arena.end();
        }
      });
    }
    for (std::thread& t : threads) t.join();
    EXPECT_EQ(wrong, 0);
    EXPECT_LE(budget.peak(), budget.bytes_max());
    EXPECT_EQ(budget.used(), 0U);
  });
}

}  // namespace
}  // namespace leat
