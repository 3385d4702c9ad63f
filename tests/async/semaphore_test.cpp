#include "async/semaphore.hpp"

#include "async/scope.hpp"
#include "async/thread_pool.hpp"
#include "tests/async/running.hpp"
#include "tests/support/seeds.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <random>
#include <string>
#include <vector>

namespace leat::async {
namespace {

using testing::run;
using testing::turn;

asio::awaitable<void> take(semaphore& units, std::size_t count, std::vector<int>& order, int name) {
  co_await units.acquire(count);
  order.push_back(name);
}

TEST(semaphore, grants_in_fifo_order_and_a_large_waiter_is_not_overtaken) {
  simple_loop loop;
  semaphore units(10);
  std::vector<int> order;
  run(loop, with_scope([&](scope& s) -> asio::awaitable<void> {
        EXPECT_TRUE(units.try_acquire(8));
        s.spawn(take(units, 9, order, 1));
        s.spawn(take(units, 1, order, 2));
        s.spawn(take(units, 2, order, 3));
        co_await turn(3);
        EXPECT_TRUE(order.empty()) << "2 units are there, but the first in the queue wants 9";
        EXPECT_FALSE(units.try_acquire(1)) << "somebody waits";
        EXPECT_EQ(units.count().waiting, 3U);
        units.release(8);
        co_await turn(3);
        EXPECT_EQ(order, (std::vector<int>{1, 2}));
        units.release(9);
        co_await turn(3);
        EXPECT_EQ(order, (std::vector<int>{1, 2, 3}));
        units.release(3);
      }));
  EXPECT_EQ(units.available(), 10U);
  EXPECT_EQ(units.count().wait_count, 3U);
  EXPECT_GT(units.count().wait_ns, 0U);
}

TEST(semaphore, does_not_suspend_when_the_units_are_there) {
  simple_loop loop;
  semaphore units(2);
  bool passed = false;
  auto body = [](semaphore& s, bool& done) -> asio::awaitable<void> {
    co_await s.acquire(1);
    const auto permit = co_await s.acquire_permit(1);
    EXPECT_EQ(permit.units(), 1U);
    EXPECT_EQ(s.available(), 0U);
    done = true;
  };
  const auto bound = loop.bind_to_this_thread();
  asio::co_spawn(loop.get_executor(), body(units, passed), asio::use_future);
  EXPECT_TRUE(passed);
  loop.run_posted();
  loop.run_posted();
  EXPECT_EQ(units.available(), 1U) << "the permit went back";
  EXPECT_EQ(units.count().wait_count, 0U);
}

TEST(semaphore, a_cancelled_waiter_holds_nothing_and_those_behind_it_move_up) {
  simple_loop loop;
  semaphore units(4);
  std::vector<int> order;
  run(loop, with_scope([&](scope& s) -> asio::awaitable<void> {
        EXPECT_TRUE(units.try_acquire(2));
        asio::cancellation_signal signal;
        bool aborted = false;
        asio::co_spawn(s.get_executor(), take(units, 4, order, 1),
                       asio::bind_cancellation_slot(signal.slot(), [&aborted](std::exception_ptr thrown) {
                         aborted = testing::is_error(thrown, asio::error::operation_aborted);
                       }));
        s.spawn(take(units, 1, order, 2));
        s.spawn(take(units, 1, order, 3));
        co_await turn(3);
        EXPECT_TRUE(order.empty());
        signal.emit(asio::cancellation_type::terminal);
        co_await turn(3);
        EXPECT_TRUE(aborted);
        EXPECT_EQ(order, (std::vector<int>{2, 3}));
        EXPECT_EQ(units.available(), 0U);
      }));
}

TEST(semaphore, refuses_what_it_can_never_grant) {
  simple_loop loop;
  semaphore units(4);
  try {
    run(loop, units.acquire(5));
    FAIL() << "granted 5 of 4";
  } catch (const boost::system::system_error& failed) {
    EXPECT_EQ(failed.code(), async_errc::over_capacity);
    EXPECT_NE(std::string(failed.what()).find("than the semaphore has"), std::string::npos);
  }
}

TEST(semaphore, close_fails_those_who_wait_and_all_who_come) {
  simple_loop loop;
  semaphore units(1);
  EXPECT_TRUE(units.try_acquire(1));
  auto waits = [](semaphore& s) -> asio::awaitable<void> { co_await s.acquire(1); };
  auto first = asio::co_spawn(loop.get_executor(), waits(units), asio::use_future);
  testing::settle(loop);
  units.close();
  loop.run();
  try {
    first.get();
    FAIL() << "granted by a closed semaphore";
  } catch (const boost::system::system_error& failed) {
    EXPECT_EQ(failed.code(), async_errc::closed);
  }
  EXPECT_FALSE(units.try_acquire(0));
  EXPECT_THROW(run(loop, units.acquire(1)), boost::system::system_error);
  units.release(1);
  EXPECT_EQ(units.available(), 1U);
}

TEST(semaphore, serves_futures_from_threads_without_a_loop) {
  semaphore units(1);
  EXPECT_TRUE(units.try_acquire(1));
  auto granted = units.acquire(1, asio::use_future);
  units.release(1);
  granted.get();
  EXPECT_EQ(units.available(), 0U);
}

// Coroutines on several threads take and give back, and are cancelled at any moment. Never more is held than there is,
// everything comes back, and nobody waits for ever.
TEST(semaphore, holds_its_bound_while_takers_on_many_threads_are_cancelled) {
  leat::testing::for_each_seed(25, [](std::uint64_t seed) {
    static constexpr std::size_t capacity = 7;
    semaphore units(capacity);
    std::atomic<std::size_t> held{0};
    std::atomic<int> granted{0};
    auto taker = [](semaphore& s, std::atomic<std::size_t>& now, std::atomic<int>& count,
                    unsigned own_seed) -> asio::awaitable<void> {
      std::minstd_rand random(own_seed);
      for (int i = 0; i < 30; ++i) {
        const std::size_t wanted = 1 + random() % capacity;
        if (random() % 2 == 0) {
          co_await s.acquire(wanted, asio::use_awaitable);
        } else {
          co_await s.acquire(wanted);
        }
        EXPECT_LE(now.fetch_add(wanted) + wanted, capacity);
        ++count;
        // Nothing may throw between the grant and the release, as a cancelled co_await would.
        co_await asio::this_coro::throw_if_cancelled(false);
        if (random() % 2 == 0) co_await turn();
        now.fetch_sub(wanted);
        s.release(wanted);
        co_await asio::this_coro::throw_if_cancelled(true);
      }
    };
    thread_pool pool({.thread_count = 3, .name = "test"});
    std::minstd_rand random(static_cast<unsigned>(seed));
    int completed = 0;
    {
      std::vector<std::unique_ptr<testing::cancellable>> takers;
      for (unsigned i = 0; i < 8; ++i) {
        takers.push_back(std::make_unique<testing::cancellable>(
            pool.get_executor(), taker(units, held, granted, static_cast<unsigned>(seed) * 100 + i)));
      }
      for (int i = 0; i < 5; ++i) {
        for (auto spins = random() % 3000; spins != 0; --spins) std::atomic_signal_fence(std::memory_order_seq_cst);
        takers[random() % takers.size()]->cancel();
      }
      for (auto& one : takers) {
        const std::exception_ptr thrown = one->wait();
        if (!thrown) {
          ++completed;
        } else {
          ASSERT_TRUE(testing::is_error(thrown, asio::error::operation_aborted));
        }
      }
    }
    EXPECT_GE(completed, 3) << "five were cancelled at most";
    EXPECT_EQ(units.available(), capacity);
    EXPECT_EQ(units.count().waiting, 0U);
  });
}

}  // namespace
}  // namespace leat::async
