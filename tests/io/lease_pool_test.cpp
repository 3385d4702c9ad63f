#include "io/arena/lease_pool.hpp"

#include "tests/support/seeded_random.hpp"
#include "tests/support/seeds.hpp"

#include <leat/error.hpp>
#include <leat/units.hpp>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_future.hpp>
#include <boost/system/system_error.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <deque>
#include <future>
#include <thread>
#include <vector>

namespace leat::io {
namespace {

using namespace leat::literals;
using leat::testing::for_each_seed;
using leat::testing::seeded_random;
using ::testing::HasSubstr;
namespace asio = boost::asio;

std::shared_ptr<arena> memory_of(std::size_t bytes) {
  return std::make_shared<arena>(arena_options{.bytes_max = bytes});
}

TEST(lease_pool, grants_what_is_asked_for_and_takes_it_back) {
  lease_pool pool(memory_of(16_MiB), {.bytes_max = 16_MiB});
  std::optional<lease> one = pool.try_lease(10'000);
  ASSERT_TRUE(one.has_value());
  EXPECT_EQ(one->size(), 10'000U);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(one->data()) % alignment_max_bytes, 0U);
  EXPECT_EQ(pool.count().bytes_used, 12'288U);
  one->bytes()[9'999] = std::byte{1};
  lease moved = std::move(*one);
  EXPECT_FALSE(*one);
  one.reset();
  EXPECT_EQ(pool.count().leases_out, 1U);
  moved.reset();
  EXPECT_EQ(pool.count().leases_out, 0U);
  EXPECT_EQ(pool.count().bytes_used, 0U);
  EXPECT_EQ(pool.count().bytes_used_peak, 12'288U);
}

TEST(lease_pool, a_lease_as_one_begins_with_a_piece_and_is_one_buffer_and_all_of_its_memory_can_still_be_had) {
  const auto memory = memory_of(40_MiB);
  lease_pool pool(memory, {.bytes_max = 40_MiB, .as_one = true});
  const lease small = std::move(*pool.try_lease(4096));
  const lease large = std::move(*pool.try_lease(20_MiB + 4096));
  EXPECT_EQ(large.data(), small.data() + 4_MiB);
  EXPECT_EQ(memory->buffer_of(large.piece()).memory.data(), large.data());
  EXPECT_EQ(memory->buffer_of(large.piece()).memory.size(), 24_MiB);
  EXPECT_EQ(memory->buffer_of(small.piece()).memory.size(), 4_MiB);
  const read_target inside = pool.target_at(large.bytes().subspan(9_MiB, 4096));
  EXPECT_EQ(inside.piece, large.piece() + 2);
  std::byte own[16];
  EXPECT_EQ(pool.target_at(own).piece, read_target::no_piece);
  // What is left begins within a piece, and may be had all the same.
  const lease rest = std::move(*pool.try_lease(16_MiB - 4096));
  EXPECT_EQ(rest.data(), large.data() + 20_MiB + 4096);
}

TEST(lease_pool, refuses_more_than_it_has_in_all_and_names_both) {
  lease_pool pool(memory_of(1_MiB), {.bytes_max = 1_MiB, .name = "read buffers"});
  try {
    static_cast<void>(pool.try_lease(2_MiB));
    FAIL();
  } catch (const error& refused) {
    EXPECT_EQ(refused.code(), errc::limit);
    EXPECT_THAT(refused.what(), HasSubstr("read buffers"));
    EXPECT_THAT(refused.what(), HasSubstr("2097152"));
    EXPECT_THAT(refused.what(), HasSubstr("1048576"));
  }
  EXPECT_THROW(pool.async_lease(2_MiB, asio::use_future).get(), error);
}

TEST(lease_pool, always_fits_its_largest_lease_when_all_others_are_back) {
  for_each_seed(20, [](std::uint64_t seed) {
    seeded_random random(seed);
    const std::size_t bytes_max = 4096 * (1 + random.below(10'000));
    lease_pool pool(memory_of(bytes_max), {.bytes_max = bytes_max});
    std::vector<lease> out;
    for (int i = 0; i < 500; ++i) {
      if (random.chance(0.6)) {
        if (auto got = pool.try_lease(1 + random.below(std::min<std::uint64_t>(bytes_max, 700'000)))) {
          out.push_back(std::move(*got));
        }
      } else if (!out.empty()) {
        std::swap(out[random.below(out.size())], out.back());
        out.pop_back();
      }
    }
    out.clear();
    ASSERT_TRUE(pool.try_lease(bytes_max).has_value());
  });
}

TEST(lease_pool, never_lends_a_byte_twice) {
  for_each_seed(10, [](std::uint64_t seed) {
    seeded_random random(seed);
    lease_pool pool(memory_of(48_MiB), {.bytes_max = 40_MiB});
    std::vector<lease> out;
    for (int i = 0; i < 400; ++i) {
      if (random.chance(0.55)) {
        const std::size_t bytes = 1 + random.below(random.chance(0.05) ? 20_MiB : 400_KiB);
        if (auto got = pool.try_lease(bytes)) out.push_back(std::move(*got));
      } else if (!out.empty()) {
        std::swap(out[random.below(out.size())], out.back());
        out.pop_back();
      }
      std::vector<std::pair<std::byte*, std::byte*>> ranges;
      for (const lease& one : out) ranges.emplace_back(one.data(), one.data() + one.size());
      std::sort(ranges.begin(), ranges.end());
      for (std::size_t k = 1; k < ranges.size(); ++k) ASSERT_LE(ranges[k - 1].second, ranges[k].first);
      for (const lease& one : out) {
        // A small one does not straddle pieces unless nothing else is left.
        ASSERT_EQ(one.piece(), arena::piece_at(one.data(), one.data(), one.piece()));
      }
    }
  });
}

TEST(lease_pool, keeps_small_leases_within_a_piece_while_that_can_be_had) {
  lease_pool pool(memory_of(16_MiB), {.bytes_max = 16_MiB});
  const auto straddles = [](const lease& one) { return one.size() > arena::bytes_to_piece_end(one.data()); };
  std::vector<lease> large;
  for (int i = 0; i < 4; ++i) {
    large.push_back(std::move(*pool.try_lease(3_MiB)));
    EXPECT_FALSE(straddles(large.back())) << i;
  }
  std::vector<lease> small;
  for (int i = 0; i < 4; ++i) small.push_back(std::move(*pool.try_lease(1_MiB)));
  for (const lease& one : small) EXPECT_FALSE(straddles(one));
  EXPECT_FALSE(pool.try_lease(1).has_value());
  // 1 + 3 MiB in a row, in two pieces: straddling is better than waiting.
  small.erase(small.begin() + 1);
  large.erase(large.begin() + 2);
  std::optional<lease> between = pool.try_lease(4_MiB);
  ASSERT_TRUE(between.has_value());
  EXPECT_TRUE(straddles(*between));
}

TEST(lease_pool, leaves_the_memory_to_the_owner_piece_by_piece_where_it_is_told_to) {
  const auto memory = memory_of(24_MiB);
  lease_pool pool(memory, {.bytes_max = 24_MiB, .in_pieces = true});
  std::optional<lease> small = pool.try_lease(100);
  std::optional<lease> large = pool.try_lease(10_MiB);
  EXPECT_EQ(memory->bytes_populated(), 0U);
  for (const std::size_t pieces : {1U, 2U, 3U}) {
    EXPECT_TRUE(pool.populate_next(*large));
    EXPECT_EQ(memory->bytes_populated(), pieces * arena::piece_bytes);
  }
  EXPECT_FALSE(pool.populate_next(*large));
  EXPECT_FALSE(pool.populate_next(*small)) << "lies in a piece of the other's";
  std::fill(large->bytes().begin(), large->bytes().end(), std::byte{1});
}

TEST(lease_pool, grants_in_the_order_asked_and_lets_nobody_overtake_a_large_one) {
  asio::io_context context;
  lease_pool pool(memory_of(8_MiB), {.bytes_max = 8_MiB});
  std::vector<int> order;
  std::vector<lease> held;
  std::optional<lease> first = pool.try_lease(6_MiB);
  const auto ask = [&](int name, std::size_t bytes) {
    pool.async_lease(bytes, asio::bind_executor(context, [&order, &held, name](std::exception_ptr failed, lease got) {
                       ASSERT_FALSE(failed);
                       order.push_back(name);
                       held.push_back(std::move(got));
                     }));
  };
  ask(1, 8_MiB);
  ask(2, 4096);
  ask(3, 4096);
  EXPECT_FALSE(pool.try_lease(4096).has_value()) << "somebody waits";
  context.poll();
  EXPECT_TRUE(order.empty());
  first.reset();
  context.restart();
  context.poll();
  EXPECT_EQ(order, (std::vector<int>{1}));
  held.clear();
  context.restart();
  context.run();
  EXPECT_EQ(order, (std::vector<int>{1, 2, 3}));
  EXPECT_EQ(pool.count().waits, 3U);
  EXPECT_GT(pool.count().wait_ns, 0U);
}

TEST(lease_pool, lets_those_behind_a_cancelled_one_move_up) {
  asio::io_context context;
  lease_pool pool(memory_of(8_MiB), {.bytes_max = 8_MiB});
  std::optional<lease> first = pool.try_lease(6_MiB);
  asio::cancellation_signal stop;
  std::exception_ptr large_failed;
  bool small_got = false;
  pool.async_lease(8_MiB, asio::bind_executor(context, asio::bind_cancellation_slot(
                                                           stop.slot(), [&](std::exception_ptr failed, lease got) {
                                                             large_failed = failed;
                                                             EXPECT_FALSE(got);
                                                           })));
  pool.async_lease(4096, asio::bind_executor(context, [&](std::exception_ptr failed, lease got) {
                     EXPECT_FALSE(failed);
                     small_got = static_cast<bool>(got);
                   }));
  stop.emit(asio::cancellation_type::total);
  context.run();
  ASSERT_TRUE(large_failed);
  try {
    std::rethrow_exception(large_failed);
  } catch (const boost::system::system_error& aborted) {
    EXPECT_EQ(aborted.code(), asio::error::operation_aborted);
  }
  EXPECT_TRUE(small_got);
}

TEST(lease_pool, grants_no_more_than_its_limit_which_may_change_at_any_time) {
  asio::io_context context;
  lease_pool pool(memory_of(16_MiB), {.bytes_max = 16_MiB});
  pool.set_limit(2_MiB);
  std::optional<lease> first = pool.try_lease(1_MiB);
  std::optional<lease> second = pool.try_lease(1_MiB);
  ASSERT_TRUE(first && second);
  EXPECT_FALSE(pool.try_lease(1_MiB));

  std::vector<lease> granted;
  for (int k = 0; k < 2; ++k) {
    pool.async_lease(1_MiB, asio::bind_executor(context, [&](std::exception_ptr failure, lease got) {
                       EXPECT_FALSE(failure);
                       granted.push_back(std::move(got));
                     }));
  }
  context.poll();
  EXPECT_TRUE(granted.empty());
  pool.set_limit(3_MiB);
  context.restart();
  context.poll();
  EXPECT_EQ(granted.size(), 1U) << "the limit has room for one more";
  first.reset();
  context.restart();
  context.poll();
  EXPECT_EQ(granted.size(), 2U);

  // Lowered below what is out: nothing is taken back, and nothing granted until there is room.
  pool.set_limit(1_MiB);
  second.reset();
  EXPECT_FALSE(pool.try_lease(4096));
  granted.clear();
  EXPECT_TRUE(pool.try_lease(4096));
  EXPECT_TRUE(pool.try_lease(8_MiB)) << "alone";
  pool.set_limit(pool.bytes_max());
  EXPECT_TRUE(pool.try_lease(16_MiB));
}

TEST(lease_pool, fails_who_waits_when_it_is_closed_and_leaves_leases_good) {
  lease_pool pool(memory_of(8_MiB), {.bytes_max = 8_MiB});
  std::optional<lease> held = pool.try_lease(8_MiB);
  auto waiting = pool.async_lease(4096, asio::use_future);
  pool.close();
  EXPECT_THROW(waiting.get(), error);
  EXPECT_FALSE(pool.try_lease(1).has_value());
  held->bytes()[0] = std::byte{3};
}

TEST(lease_pool, may_go_before_its_leases_do) {
  std::optional<lease> survivor;
  {
    lease_pool pool(memory_of(8_MiB), {.bytes_max = 8_MiB});
    survivor = pool.try_lease(1_MiB);
  }
  survivor->bytes()[1_MiB - 1] = std::byte{9};
}

TEST(lease_pool, loses_no_byte_to_threads_that_ask_give_back_and_cancel) {
  for_each_seed(10, [](std::uint64_t seed) {
    lease_pool pool(memory_of(4_MiB), {.bytes_max = 4_MiB});
    std::atomic<std::size_t> granted{0};
    std::atomic<std::size_t> aborted{0};
    std::vector<std::thread> threads;
    for (unsigned t = 0; t < 4; ++t) {
      threads.emplace_back([&, t] {
        seeded_random random(seed * 10 + t);
        asio::io_context context;
        std::deque<asio::cancellation_signal> signals(200);
        std::vector<lease> held;
        for (auto& signal : signals) {
          pool.async_lease(1 + random.below(1_MiB),
                           asio::bind_executor(context, asio::bind_cancellation_slot(
                                                            signal.slot(), [&](std::exception_ptr failed, lease got) {
                                                              (failed ? aborted : granted).fetch_add(1);
                                                              if (!failed) held.push_back(std::move(got));
                                                            })));
          if (random.chance(0.4)) signal.emit(asio::cancellation_type::total);
          if (random.chance(0.7)) held.clear();
          context.restart();
          context.poll();
        }
        // What waits may wait for what we hold.
        context.restart();
        while (!context.stopped()) {
          held.clear();
          context.run_one_for(std::chrono::milliseconds(1));
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(granted.load() + aborted.load(), 800U);
    EXPECT_EQ(pool.count().leases_out, 0U);
    EXPECT_TRUE(pool.try_lease(4_MiB).has_value());
  });
}

}  // namespace
}  // namespace leat::io
