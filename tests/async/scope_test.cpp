#include "async/scope.hpp"

#include "async/error.hpp"
#include "async/thread_pool.hpp"
#include "tests/async/running.hpp"
#include "tests/support/seeds.hpp"

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/steady_timer.hpp>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace leat::async {
namespace {

using testing::run;
using testing::turn;

asio::awaitable<void> forever() {
  asio::steady_timer never(co_await asio::this_coro::executor, asio::steady_timer::time_point::max());
  co_await never.async_wait(asio::use_awaitable);
}

/// Says when a coroutine is over, whichever way.
struct noting_end {
  explicit noting_end(std::atomic<int>& count) : ended(count) {}
  ~noting_end() { ++ended; }
  std::atomic<int>& ended;
};

asio::awaitable<void> forever_noted(std::atomic<int>& ended) {
  const noting_end note(ended);
  co_await forever();
}

asio::awaitable<void> fail(int after_turns, std::string what) {
  co_await turn(after_turns);
  throw std::runtime_error(what);
}

TEST(scope, returns_when_all_children_have_ended) {
  simple_loop loop;
  int ended = 0;
  auto child = [](int turns, int& count) -> asio::awaitable<void> {
    co_await turn(turns);
    ++count;
  };
  run(loop, with_scope([&](scope& s) -> asio::awaitable<void> {
        for (int i = 0; i < 10; ++i) s.spawn(child(i, ended));
        EXPECT_EQ(s.size(), 11U) << "ten and the body";
        co_return;
      }));
  EXPECT_EQ(ended, 10);
}

TEST(scope, returns_what_its_body_returns_also_move_only) {
  simple_loop loop;
  auto made = run(loop, with_scope([](scope&) -> asio::awaitable<std::unique_ptr<int>> {
                    co_await turn();
                    co_return std::make_unique<int>(7);
                  }));
  EXPECT_EQ(*made, 7);
}

TEST(scope, a_failing_child_cancels_the_others_and_the_body_and_is_rethrown) {
  simple_loop loop;
  std::atomic<int> ended{0};
  try {
    run(loop, with_scope([&](scope& s) -> asio::awaitable<void> {
          s.spawn(forever_noted(ended));
          s.spawn(fail(3, "first"));
          s.spawn(fail(5, "second"));
          s.spawn(forever_noted(ended));
          const noting_end note(ended);
          co_await forever();
        }));
    FAIL() << "no exception";
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "first");
  }
  EXPECT_EQ(ended, 3);
}

TEST(scope, a_failing_body_cancels_and_still_waits_for_the_children) {
  simple_loop loop;
  std::atomic<int> ended{0};
  auto slow_to_stop = [](std::atomic<int>& count) -> asio::awaitable<void> {
    const noting_end note(count);
    try {
      co_await forever();
    } catch (const boost::system::system_error&) {
    }
    co_await asio::this_coro::reset_cancellation_state();
    co_await turn(20);
  };
  EXPECT_THROW(run(loop, with_scope([&](scope& s) -> asio::awaitable<void> {
                     s.spawn(slow_to_stop(ended));
                     co_await turn(2);
                     throw std::logic_error("body");
                   })),
               std::logic_error);
  EXPECT_EQ(ended, 1);
}

TEST(scope, an_error_is_worth_more_than_the_cancellation_before_it) {
  simple_loop loop;
  auto fails_when_cancelled = []() -> asio::awaitable<void> {
    try {
      co_await forever();
    } catch (const boost::system::system_error&) {
    }
    throw std::runtime_error("while cleaning up");
  };
  auto aborts = []() -> asio::awaitable<void> {
    co_await turn();
    throw boost::system::system_error(asio::error::operation_aborted);
  };
  EXPECT_THROW(run(loop, with_scope([&](scope& s) -> asio::awaitable<void> {
                     s.spawn(fails_when_cancelled());
                     s.spawn(aborts());
                     co_return;
                   })),
               std::runtime_error);
}

TEST(scope, cancel_ends_the_rest_without_an_error) {
  simple_loop loop;
  std::atomic<int> ended{0};
  const int result = run(loop, with_scope([&](scope& s) -> asio::awaitable<int> {
                           s.spawn(forever_noted(ended));
                           s.spawn(forever_noted(ended));
                           co_await turn(2);
                           EXPECT_FALSE(s.cancelled());
                           s.cancel();
                           EXPECT_TRUE(s.cancelled());
                           s.spawn(forever_noted(ended));  // comes too late: never begins
                           co_return 7;
                         }));
  EXPECT_EQ(result, 7);
  EXPECT_EQ(ended, 2);
}

TEST(scope, cancelling_the_parent_cancels_the_children_and_waits_for_them) {
  simple_loop loop;
  std::atomic<int> ended{0};
  asio::cancellation_signal signal;
  std::exception_ptr thrown;
  bool over = false;
  auto parent = [](std::atomic<int>& count) -> asio::awaitable<void> {
    co_await with_scope([&count](scope& s) -> asio::awaitable<void> {
      s.spawn(forever_noted(count));
      co_await with_scope([&count](scope& inner) -> asio::awaitable<void> {
        inner.spawn(forever_noted(count));
        co_await forever_noted(count);
      });
    });
  };
  asio::co_spawn(loop.get_executor(), parent(ended),
                 asio::bind_cancellation_slot(signal.slot(), [&](std::exception_ptr e) {
                   thrown = e;
                   over = true;
                 }));
  testing::settle(loop);
  EXPECT_FALSE(over);
  signal.emit(asio::cancellation_type::terminal);
  EXPECT_FALSE(over) << "cancelling asks; the end comes later";
  loop.run();
  EXPECT_TRUE(over);
  EXPECT_EQ(ended, 3);
  EXPECT_TRUE(testing::is_error(thrown, asio::error::operation_aborted));
}

TEST(scope, does_not_begin_in_a_coroutine_that_is_already_cancelled) {
  simple_loop loop;
  std::atomic<int> ended{0};
  asio::cancellation_signal signal;
  bool over = false;
  auto parent = [](std::atomic<int>& count) -> asio::awaitable<void> {
    try {
      co_await forever();
    } catch (const boost::system::system_error&) {
    }
    co_await asio::this_coro::throw_if_cancelled(false);
    EXPECT_THROW(co_await with_scope([&count](scope& s) -> asio::awaitable<void> {
                   s.spawn(forever_noted(count));
                   co_await forever_noted(count);
                 }),
                 boost::system::system_error);
    const bool throws = co_await asio::this_coro::throw_if_cancelled();
    EXPECT_FALSE(throws) << "left as it was found";
  };
  asio::co_spawn(loop.get_executor(), parent(ended),
                 asio::bind_cancellation_slot(signal.slot(), [&](std::exception_ptr e) {
                   EXPECT_EQ(e, nullptr);
                   over = true;
                 }));
  testing::settle(loop);
  signal.emit(asio::cancellation_type::terminal);
  loop.run();
  EXPECT_TRUE(over);
  EXPECT_EQ(ended, 0);
}

TEST(scope, joins_children_on_other_executors) {
  simple_loop loop;
  thread_pool pool({.thread_count = 2, .name = "test"});
  std::atomic<int> ended{0};
  auto child = [](thread_pool& where, std::atomic<int>& count) -> asio::awaitable<void> {
    const noting_end note(count);
    for (int i = 0; i < 10; ++i) {
      EXPECT_TRUE(where.running_in_this_thread());
      co_await turn();
    }
  };
  run(loop, with_scope([&](scope& s) -> asio::awaitable<void> {
        for (int i = 0; i < 5; ++i) s.spawn_on(pool.get_executor(), child(pool, ended));
        co_return;
      }));
  EXPECT_EQ(ended, 5);
}

TEST(scope, a_pool_stopped_under_its_child_is_an_error_and_not_a_hang) {
  simple_loop loop;
  thread_pool pool({.thread_count = 1, .name = "test"});
  auto child = [](std::atomic<bool>& started) -> asio::awaitable<void> {
    started = true;
    for (;;) co_await turn();
  };
  std::atomic<bool> started{false};
  std::thread stopper([&] {
    while (!started) std::this_thread::yield();
    pool.stop(thread_pool::stop_mode::drop);
  });
  try {
    run(loop, with_scope([&](scope& s) -> asio::awaitable<void> {
          s.spawn_on(pool.get_executor(), child(started));
          co_return;
        }));
    ADD_FAILURE() << "no exception";
  } catch (const boost::system::system_error& error) {
    EXPECT_EQ(error.code(), async_errc::closed);
  }
  stopper.join();
}

TEST(scope, destroyed_with_its_loop_destroys_its_children) {
  std::atomic<int> ended{0};
  {
    simple_loop loop;
    auto parent = [](std::atomic<int>& count) -> asio::awaitable<void> {
      co_await with_scope([&count](scope& s) -> asio::awaitable<void> {
        s.spawn(forever_noted(count));
        co_await forever_noted(count);
      });
    };
    asio::co_spawn(loop.get_executor(), parent(ended), [](std::exception_ptr) { FAIL() << "never ends"; });
    testing::settle(loop);
    EXPECT_EQ(ended, 0);
  }
  EXPECT_EQ(ended, 2);
}

// Trees of scopes with children here and on a pool that end, fail and are cancelled at any moment. Nothing outlives the
// scope that spawned it: the counter is local to each.
asio::awaitable<void> random_tree(thread_pool& pool, std::uint64_t seed, int depth) {
  std::minstd_rand random(static_cast<unsigned>(seed));
  std::atomic<int> alive{0};
  struct living {
    explicit living(std::atomic<int>& count) : alive(count) { ++alive; }
    ~living() { --alive; }
    std::atomic<int>& alive;
  };
  auto child = [](std::atomic<int>& count, unsigned what) -> asio::awaitable<void> {
    const living life(count);
    co_await turn(static_cast<int>(what % 5));
    if (what % 7 == 0) throw std::runtime_error("child");
    if (what % 3 == 0) co_await forever();
  };
  auto ends_the_scope = [](scope& s, int turns) -> asio::awaitable<void> {
    co_await turn(turns);
    s.cancel();
  };
  auto deeper = [](thread_pool& p, std::atomic<int>& count, std::uint64_t own_seed, int left) -> asio::awaitable<void> {
    const living life(count);
    co_await random_tree(p, own_seed, left);
  };
  std::exception_ptr thrown;
  try {
    co_await with_scope([&](scope& s) -> asio::awaitable<void> {
      for (int i = 0; i < 4; ++i) {
        const auto what = static_cast<unsigned>(random());
        if (what % 2 == 0) {
          s.spawn(child(alive, what / 2));
        } else {
          s.spawn_on(pool.get_executor(), child(alive, what / 2));
        }
      }
      if (depth > 0) s.spawn(deeper(pool, alive, random(), depth - 1));
      s.spawn(ends_the_scope(s, static_cast<int>(random() % 20)));
      co_await turn(static_cast<int>(random() % 3));
    });
  } catch (...) {
    thrown = std::current_exception();
  }
  EXPECT_EQ(alive, 0) << "a child outlived its scope";
  if (thrown && random() % 2 == 0) std::rethrow_exception(thrown);
}

TEST(scope, nothing_outlives_it_in_random_trees_on_several_threads) {
  thread_pool pool({.thread_count = 2, .name = "test"});
  leat::testing::for_each_seed(150, [&pool](std::uint64_t seed) {
    simple_loop loop;
    asio::cancellation_signal signal;
    bool over = false;
    asio::co_spawn(loop.get_executor(), random_tree(pool, seed, 3),
                   asio::bind_cancellation_slot(signal.slot(), [&over](std::exception_ptr) { over = true; }));
    if (seed % 3 == 0) {
      for (std::uint64_t i = 0; i < seed % 11; ++i) asio::post(loop.get_executor(), [] {});
      asio::post(loop.get_executor(), [&signal] { signal.emit(asio::cancellation_type::terminal); });
    }
    loop.run();
    ASSERT_TRUE(over);
  });
}

}  // namespace
}  // namespace leat::async
