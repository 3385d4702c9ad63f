#include "async/simple_loop.hpp"
#include "tests/support/seeds.hpp"

#include <leat/completion.hpp>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/bind_allocator.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/use_future.hpp>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <optional>
#include <random>
#include <thread>

namespace leat {
namespace {

using async::simple_loop;
using boost::system::error_code;
using answer = completion<void(error_code, int)>;

/// An operation that ends when the test says so.
struct operation {
  answer waiting;

  template <class Token>
  auto async_wait(Token&& token) {
    return asio::async_initiate<Token, void(error_code, int)>(
        [this](auto handler) { waiting = answer(std::move(handler)); }, token);
  }
};

TEST(completion, is_empty_until_made_and_after_being_moved_or_completed) {
  simple_loop loop;
  answer empty;
  EXPECT_FALSE(empty);
  int got = 0;
  answer first(asio::bind_executor(loop.get_executor(), [&got](error_code, int value) { got = value; }));
  EXPECT_TRUE(first);
  answer second = std::move(first);
  EXPECT_FALSE(first);  // NOLINT(bugprone-use-after-move)
  second.complete({}, 7);
  EXPECT_FALSE(second);
  EXPECT_EQ(got, 0) << "the handler ran inside complete()";
  EXPECT_EQ(loop.run(), 1U);
  EXPECT_EQ(got, 7);
}

TEST(completion, posts_even_on_the_handlers_own_thread) {
  simple_loop loop;
  const auto bound = loop.bind_to_this_thread();
  bool ran = false;
  answer(asio::bind_executor(loop.get_executor(), [&ran](error_code, int) { ran = true; })).complete({}, 1);
  EXPECT_FALSE(ran);
  loop.run_posted();
  EXPECT_TRUE(ran);
}

TEST(completion, keeps_work_outstanding_until_the_handler_has_run) {
  simple_loop loop;
  answer waiting(
      asio::bind_executor(loop.get_executor(), [&loop](error_code, int) { EXPECT_TRUE(loop.has_outstanding_work()); }));
  EXPECT_TRUE(loop.has_outstanding_work());
  std::thread other([&waiting] { waiting.complete({}, 1); });
  EXPECT_EQ(loop.run(), 1U);
  other.join();
  EXPECT_FALSE(loop.has_outstanding_work());
}

TEST(completion, uses_the_fallback_executor_for_a_handler_without_one) {
  simple_loop loop;
  bool ran = false;
  answer waiting([&ran](error_code, int) { ran = true; }, loop.get_executor());
  waiting.complete({}, 1);
  EXPECT_EQ(loop.run(), 1U);
  EXPECT_TRUE(ran);
}

TEST(completion, serves_awaitables_futures_and_deferred) {
  simple_loop loop;
  operation op;
  const auto awaits = [](operation& o) -> asio::awaitable<int> {
    const int first = co_await o.async_wait(asio::use_awaitable);
    const int second = co_await o.async_wait(asio::deferred);
    co_return first + second;
  };
  auto sum = asio::co_spawn(loop.get_executor(), awaits(op), asio::use_future);
  const auto guard = asio::make_work_guard(loop);
  loop.run_for(std::chrono::milliseconds(0));
  op.waiting.complete({}, 1);
  loop.run_for(std::chrono::milliseconds(0));
  op.waiting.complete({}, 2);
  loop.run_for(std::chrono::milliseconds(0));
  EXPECT_EQ(sum.get(), 3);

  auto future = op.async_wait(asio::use_future);
  op.waiting.complete({}, 9);
  EXPECT_EQ(future.get(), 9);

  auto failing = op.async_wait(asio::use_future);
  op.waiting.complete(asio::error::operation_aborted, 0);
  EXPECT_THROW(failing.get(), boost::system::system_error);
}

TEST(completion, carries_move_only_results) {
  simple_loop loop;
  using owning = completion<void(std::exception_ptr, std::optional<std::unique_ptr<int>>)>;
  int got = 0;
  owning waiting(asio::bind_executor(loop.get_executor(),
                                     [&got](std::exception_ptr, std::optional<std::unique_ptr<int>> v) { got = **v; }));
  waiting.complete(nullptr, std::make_unique<int>(5));
  loop.run();
  EXPECT_EQ(got, 5);
}

template <class T>
struct counting_allocator {
  using value_type = T;
  explicit counting_allocator(int* live) : live_count(live) {}
  template <class U>
  counting_allocator(const counting_allocator<U>& other) : live_count(other.live_count) {}
  T* allocate(std::size_t n) {
    ++*live_count;
    return std::allocator<T>().allocate(n);
  }
  void deallocate(T* p, std::size_t n) {
    --*live_count;
    std::allocator<T>().deallocate(p, n);
  }
  template <class U>
  bool operator==(const counting_allocator<U>& other) const {
    return live_count == other.live_count;
  }
  int* live_count;
};

TEST(completion, allocates_with_the_handlers_allocator_and_frees_before_the_handler_runs) {
  simple_loop loop;
  int live = 0;
  answer waiting(
      asio::bind_allocator(counting_allocator<void>(&live),
                           asio::bind_executor(loop.get_executor(), [&live](error_code, int) { EXPECT_EQ(live, 0); })));
  EXPECT_EQ(live, 1);
  waiting.complete({}, 1);
  EXPECT_EQ(loop.run(), 1U);
}

TEST(completion, destroyed_without_completing_destroys_the_handler) {
  simple_loop loop;
  const auto alive = std::make_shared<int>(1);
  asio::cancellation_signal signal;
  {
    answer waiting(asio::bind_cancellation_slot(
        signal.slot(), asio::bind_executor(loop.get_executor(), [alive](error_code, int) { FAIL(); })));
    waiting.on_cancel([](asio::cancellation_type) { FAIL() << "cancelled after its end"; });
    EXPECT_EQ(alive.use_count(), 2);
  }
  EXPECT_EQ(alive.use_count(), 1);
  EXPECT_FALSE(loop.has_outstanding_work());
  signal.emit(asio::cancellation_type::all);
  EXPECT_EQ(loop.run(), 0U);
}

TEST(completion, posted_to_a_context_that_ends_destroys_the_handler) {
  const auto alive = std::make_shared<int>(1);
  {
    simple_loop loop;
    answer(asio::bind_executor(loop.get_executor(), [alive](error_code, int) { FAIL(); })).complete({}, 1);
  }
  EXPECT_EQ(alive.use_count(), 1);
}

TEST(completion, cancel_function_may_complete_and_the_slot_is_clear_when_the_handler_runs) {
  simple_loop loop;
  asio::cancellation_signal signal;
  error_code got;
  answer waiting;
  waiting = answer(
      asio::bind_cancellation_slot(signal.slot(), asio::bind_executor(loop.get_executor(), [&](error_code error, int) {
                                     got = error;
                                     EXPECT_FALSE(signal.slot().has_handler());
                                   })));
  waiting.on_cancel([&waiting](asio::cancellation_type) { waiting.complete(asio::error::operation_aborted, 0); });
  signal.emit(asio::cancellation_type::terminal);
  signal.emit(asio::cancellation_type::terminal);
  EXPECT_EQ(loop.run(), 1U);
  EXPECT_EQ(got, asio::error::operation_aborted);
}

TEST(completion, cancel_function_is_called_again_while_the_operation_stays_open) {
  simple_loop loop;
  asio::cancellation_signal signal;
  int asked = 0;
  answer waiting(
      asio::bind_cancellation_slot(signal.slot(), asio::bind_executor(loop.get_executor(), [](error_code, int) {})));
  waiting.on_cancel([&asked](asio::cancellation_type) { ++asked; });
  signal.emit(asio::cancellation_type::partial);
  signal.emit(asio::cancellation_type::terminal);
  EXPECT_EQ(asked, 2);
  waiting.complete({}, 1);
  signal.emit(asio::cancellation_type::terminal);
  EXPECT_EQ(asked, 2) << "cancelled after its end";
  loop.run();
}

// Each round races one cancel, on the handler's thread, with one complete, on another. What the cancel function refers
// to is freed as soon as complete() has returned: a late cancel would be a use after free.
TEST(completion, complete_and_cancel_race_without_touching_what_is_gone) {
  testing::for_each_seed(30, [](std::uint64_t seed) {
    struct state {
      std::atomic<bool> asked{false};
    };
    simple_loop loop;
    auto guard = asio::make_work_guard(loop);
    std::thread runner([&loop] { loop.run(); });
    std::minstd_rand random(static_cast<unsigned>(seed));
    for (int round = 0; round < 40; ++round) {
      auto shared = std::make_unique<state>();
      asio::cancellation_signal signal;
      std::atomic<int> delivered{0};
      answer waiting(asio::bind_cancellation_slot(
          signal.slot(), asio::bind_executor(loop.get_executor(), [&delivered](error_code, int) { ++delivered; })));
      waiting.on_cancel([s = shared.get()](asio::cancellation_type) { s->asked = true; });
      std::promise<void> emitted;
      asio::post(loop.get_executor(), [&] {
        signal.emit(asio::cancellation_type::terminal);
        emitted.set_value();
      });
      for (auto spins = random() % 2000; spins != 0; --spins) std::atomic_signal_fence(std::memory_order_seq_cst);
      waiting.complete({}, round);
      shared.reset();
      emitted.get_future().get();
      std::promise<void> turned;
      asio::post(loop.get_executor(), [&turned] { turned.set_value(); });
      turned.get_future().get();
      ASSERT_EQ(delivered, 1);
    }
    guard.reset();
    runner.join();
  });
}

}  // namespace
}  // namespace leat
