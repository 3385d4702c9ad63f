#include "async/loop.hpp"

#include "async/simple_loop.hpp"
#include "tests/support/seeds.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/use_future.hpp>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <memory>
#include <random>
#include <stdexcept>
#include <thread>
#include <vector>

namespace leat::async {
namespace {

using namespace std::chrono_literals;

static_assert(asio::execution::is_executor<loop::executor_type>::value);
static_assert(std::is_convertible_v<loop::executor_type, asio::any_io_executor>);
static_assert(std::is_nothrow_move_constructible_v<loop::executor_type>);
// What any_io_executor holds without a heap allocation.
static_assert(sizeof(asio::strand<loop::executor_type>) <= sizeof(std::shared_ptr<void>) + sizeof(void*));

TEST(loop, runs_what_was_posted_in_order_and_not_what_that_posts) {
  simple_loop loop;
  const auto bound = loop.bind_to_this_thread();
  std::vector<int> ran;
  asio::post(loop.get_executor(), [&] {
    ran.push_back(1);
    asio::post(loop.get_executor(), [&ran] { ran.push_back(3); });
  });
  asio::post(loop.get_executor(), [&ran] { ran.push_back(2); });
  EXPECT_EQ(loop.run_posted(), 2U);
  EXPECT_EQ(ran, (std::vector<int>{1, 2}));
  EXPECT_EQ(loop.run_posted(), 1U);
  EXPECT_EQ(ran, (std::vector<int>{1, 2, 3}));
}

TEST(loop, dispatches_inline_on_its_own_thread_and_posts_from_others) {
  simple_loop loop;
  bool ran = false;
  asio::dispatch(loop.get_executor(), [&ran] { ran = true; });
  EXPECT_FALSE(ran);
  EXPECT_EQ(loop.run(), 1U);
  EXPECT_TRUE(ran);

  const auto bound = loop.bind_to_this_thread();
  EXPECT_TRUE(loop.running_in_this_thread());
  ran = false;
  asio::dispatch(asio::any_io_executor(loop.get_executor()), [&ran] { ran = true; });
  EXPECT_TRUE(ran);
}

TEST(loop, nests_on_one_thread) {
  simple_loop outer;
  simple_loop inner;
  const auto bound = outer.bind_to_this_thread();
  asio::post(inner.get_executor(), [&] {
    EXPECT_TRUE(inner.running_in_this_thread());
    EXPECT_FALSE(outer.running_in_this_thread());
  });
  EXPECT_EQ(inner.run(), 1U);
  EXPECT_TRUE(outer.running_in_this_thread());
}

TEST(loop, does_not_go_to_sleep_on_a_queued_function) {
  simple_loop loop;
  const auto bound = loop.bind_to_this_thread();
  asio::post(loop.get_executor(), [] {});
  EXPECT_FALSE(loop.prepare_sleep());
  loop.run_posted();
  std::thread([&loop] { asio::post(loop.get_executor(), [] {}); }).join();
  EXPECT_FALSE(loop.prepare_sleep());
  loop.run_posted();
  EXPECT_TRUE(loop.prepare_sleep());
  loop.cancel_sleep();
}

class counting_loop final : public loop {
 public:
  ~counting_loop() { retire(); }
  std::atomic<int> wakes{0};

 private:
  void wake() noexcept override { ++wakes; }
};

TEST(loop, is_woken_once_for_any_number_of_posts) {
  counting_loop loop;
  const auto bound = loop.bind_to_this_thread();
  ASSERT_TRUE(loop.prepare_sleep());
  std::thread([&loop] {
    for (int i = 0; i < 5; ++i) asio::post(loop.get_executor(), [] {});
    loop.interrupt();
  }).join();
  EXPECT_EQ(loop.wakes, 1);
  loop.cancel_sleep();
  EXPECT_EQ(loop.run_posted(), 5U);
  std::thread([&loop] { asio::post(loop.get_executor(), [] {}); }).join();
  EXPECT_EQ(loop.wakes, 1) << "an awake loop was woken";
  loop.run_posted();
}

TEST(loop, keeps_the_functions_behind_one_that_throws) {
  simple_loop loop;
  int ran = 0;
  asio::post(loop.get_executor(), [] { throw std::runtime_error("thrown"); });
  asio::post(loop.get_executor(), [&ran] { ++ran; });
  EXPECT_THROW(loop.run(), std::runtime_error);
  EXPECT_EQ(ran, 0);
  EXPECT_EQ(loop.run(), 1U);
  EXPECT_EQ(ran, 1);
}

TEST(loop, destroys_unrun_what_is_still_queued) {
  const auto alive = std::make_shared<int>(7);
  {
    simple_loop loop;
    asio::post(loop.get_executor(), [alive] { FAIL() << "must not run"; });
    const auto bound = loop.bind_to_this_thread();
    asio::post(loop.get_executor(), [alive] { FAIL() << "must not run"; });
    EXPECT_EQ(alive.use_count(), 3);
  }
  EXPECT_EQ(alive.use_count(), 1);
}

TEST(loop, destroys_the_coroutines_that_never_finished) {
  const auto alive = std::make_shared<int>(7);
  {
    simple_loop loop;
    auto body = [](std::shared_ptr<int> kept) -> asio::awaitable<void> {
      asio::steady_timer timer(co_await asio::this_coro::executor, 1h);
      co_await timer.async_wait(asio::use_awaitable);
      EXPECT_EQ(*kept, 7);
    };
    asio::co_spawn(loop.get_executor(), body(alive),
                   asio::bind_executor(loop.get_executor(), [](std::exception_ptr) {}));
    loop.run_for(1ms);
    EXPECT_EQ(alive.use_count(), 2);
  }
  EXPECT_EQ(alive.use_count(), 1);
}

TEST(loop, posts_large_functions_too) {
  simple_loop loop;
  std::array<char, 1000> large{};
  large[999] = 'x';
  char seen = 0;
  asio::post(loop.get_executor(), [large, &seen] { seen = large[999]; });
  loop.run();
  EXPECT_EQ(seen, 'x');
}

TEST(simple_loop, returns_when_no_work_is_outstanding) {
  simple_loop loop;
  EXPECT_EQ(loop.run(), 0U);
  auto guard = std::make_unique<asio::executor_work_guard<loop::executor_type>>(asio::make_work_guard(loop));
  EXPECT_TRUE(loop.has_outstanding_work());
  std::thread other([&] {
    asio::post(loop.get_executor(), [] {});
    guard.reset();
  });
  EXPECT_EQ(loop.run(), 1U);
  other.join();
  EXPECT_FALSE(loop.has_outstanding_work());
}

TEST(simple_loop, stops_from_inside_and_from_outside) {
  simple_loop loop;
  const auto guard = asio::make_work_guard(loop);
  asio::post(loop.get_executor(), [&loop] { loop.stop(); });
  EXPECT_EQ(loop.run(), 1U);
  EXPECT_EQ(loop.run(), 0U) << "stop() lasts until restart()";
  loop.restart();
  std::thread other([&loop] { loop.stop(); });
  loop.run();
  other.join();
}

TEST(simple_loop, runs_until_a_deadline) {
  simple_loop loop;
  const auto guard = asio::make_work_guard(loop);
  const auto deadline = std::chrono::steady_clock::now() + 3ms;
  EXPECT_EQ(loop.run_until(deadline), 0U);
  EXPECT_GE(std::chrono::steady_clock::now(), deadline);
}

TEST(simple_loop, serves_steady_timers_strands_and_futures) {
  simple_loop loop;
  auto guard = asio::make_work_guard(loop);
  std::thread thread([&loop] { loop.run(); });
  const auto body = [](simple_loop& runs) -> asio::awaitable<int> {
    asio::steady_timer timer(co_await asio::this_coro::executor, 1ms);
    co_await timer.async_wait(asio::use_awaitable);
    EXPECT_TRUE(runs.running_in_this_thread());
    const auto strand = asio::make_strand(runs.get_executor());
    co_await asio::post(asio::bind_executor(strand, asio::use_awaitable));
    EXPECT_TRUE(runs.running_in_this_thread());
    co_return 7;
  };
  EXPECT_EQ(asio::co_spawn(loop.get_executor(), body(loop), asio::use_future).get(), 7);
  guard.reset();
  thread.join();
}

// The owner destroys the loop the moment the other thread's post has had its effect, while that thread may still be
// inside wake(): what retire() is for.
TEST(simple_loop, may_be_destroyed_while_the_last_post_returns) {
  for (int round = 0; round < testing::seed_count(500); ++round) {
    auto loop = std::make_unique<simple_loop>();
    auto guard = std::make_unique<asio::executor_work_guard<loop::executor_type>>(asio::make_work_guard(*loop));
    std::thread other([&] {
      if (round % 3 == 0) {
        loop->stop();
      } else if (round % 3 == 1) {
        guard.reset();
      } else {
        asio::post(loop->get_executor(), [&loop] { loop->stop(); });
      }
    });
    loop->run();
    if (round % 3 != 1) guard.reset();
    loop.reset();
    other.join();
  }
}

TEST(loop, loses_no_post_and_no_wake_up) {
  testing::for_each_seed(20, [](std::uint64_t seed) {
    simple_loop loop;
    auto guard = asio::make_work_guard(loop);
    std::atomic<int> ran{0};
    std::vector<std::thread> producers;
    constexpr int producer_count = 3;
    constexpr int posts_each = 300;
    std::vector<std::vector<int>> order(producer_count);
    for (int p = 0; p < producer_count; ++p) {
      producers.emplace_back([&, p] {
        std::minstd_rand random(static_cast<unsigned>(seed * 10 + static_cast<unsigned>(p)));
        for (int i = 0; i < posts_each; ++i) {
          asio::post(loop.get_executor(), [&, p, i] {
            order[static_cast<std::size_t>(p)].push_back(i);
            if (++ran == producer_count * posts_each) guard.reset();
          });
          if (random() % 8 == 0) std::this_thread::yield();
          if (random() % 64 == 0) loop.interrupt();
        }
      });
    }
    EXPECT_EQ(loop.run(), static_cast<std::size_t>(producer_count * posts_each));
    for (auto& producer : producers) producer.join();
    for (const auto& one : order) {
      ASSERT_EQ(one.size(), static_cast<std::size_t>(posts_each));
      for (int i = 0; i < posts_each; ++i) ASSERT_EQ(one[static_cast<std::size_t>(i)], i);
    }
  });
}

}  // namespace
}  // namespace leat::async
