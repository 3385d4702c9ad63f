#include "async/latch.hpp"

#include "async/thread_pool.hpp"
#include "tests/async/running.hpp"
#include "tests/support/seeds.hpp"

#include <boost/asio/executor_work_guard.hpp>
#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <thread>
#include <vector>

namespace leat::async {
namespace {

using testing::run;

TEST(latch, is_ready_at_zero_and_then_does_not_suspend) {
  simple_loop loop;
  latch none;
  EXPECT_TRUE(none.ready());
  latch two(2);
  EXPECT_FALSE(two.ready());
  two.count_down();
  EXPECT_FALSE(two.ready());
  two.count_down();
  EXPECT_TRUE(two.ready());
  run(loop, two.wait());
}

TEST(latch, wakes_its_waiter_at_zero_and_can_start_anew) {
  simple_loop loop;
  latch rows;
  for (std::uint32_t count = 1; count < 5; ++count) {
    rows.reset(count);
    auto waited = asio::co_spawn(loop.get_executor(), rows.wait(), asio::use_future);
    testing::settle(loop);
    for (std::uint32_t i = 0; i < count; ++i) {
      EXPECT_NE(waited.wait_for(std::chrono::seconds(0)), std::future_status::ready);
      rows.count_down();
    }
    loop.run();
    waited.get();
  }
}

TEST(latch, counts_several_at_once_and_more_may_be_added) {
  latch rows(3);
  rows.add(2);
  rows.count_down(4);
  EXPECT_FALSE(rows.ready());
  rows.count_down();
  EXPECT_TRUE(rows.ready());
}

TEST(latch, a_cancelled_wait_leaves_the_count_and_may_be_repeated) {
  simple_loop loop;
  latch rows(2);
  asio::cancellation_signal signal;
  std::exception_ptr thrown;
  asio::co_spawn(loop.get_executor(), rows.wait(),
                 asio::bind_cancellation_slot(signal.slot(), [&thrown](std::exception_ptr e) { thrown = e; }));
  testing::settle(loop);
  rows.count_down();
  signal.emit(asio::cancellation_type::terminal);
  loop.run();
  EXPECT_TRUE(testing::is_error(thrown, asio::error::operation_aborted));
  EXPECT_FALSE(rows.ready());
  auto waited = asio::co_spawn(loop.get_executor(), rows.wait(), asio::use_future);
  testing::settle(loop);
  rows.count_down();
  loop.run();
  waited.get();
}

// The waiter destroys the latch as soon as it is resumed, or cancelled, while the counters are on their way out.
TEST(latch, races_counters_waiter_and_cancellation) {
  leat::testing::for_each_seed(25, [](std::uint64_t seed) {
    thread_pool pool({.thread_count = 2, .name = "test"});
    simple_loop loop;
    auto guard = asio::make_work_guard(loop);
    std::thread runner([&loop] { loop.run(); });
    std::minstd_rand random(static_cast<unsigned>(seed));
    auto waits = [](std::unique_ptr<latch> rows) -> asio::awaitable<void> {
      bool again = false;
      try {
        co_await rows->wait(asio::use_awaitable);
      } catch (const boost::system::system_error&) {
        again = true;  // the counters still use it
      }
      co_await asio::this_coro::reset_cancellation_state();
      if (again) co_await rows->wait(asio::use_awaitable);
      rows.reset();
    };
    for (int round = 0; round < 30; ++round) {
      const auto count = static_cast<std::uint32_t>(1 + random() % 6);
      auto owned = std::make_unique<latch>(count);
      latch& rows = *owned;
      testing::cancellable waiter(loop.get_executor(), waits(std::move(owned)));
      for (std::uint32_t i = 0; i < count; ++i) asio::post(pool.get_executor(), [&rows] { rows.count_down(); });
      if (random() % 2 == 0) waiter.cancel();
      ASSERT_EQ(waiter.wait(), nullptr);
    }
    guard.reset();
    runner.join();
  });
}

}  // namespace
}  // namespace leat::async
