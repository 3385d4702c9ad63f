#include "async/hop.hpp"

#include "async/thread_pool.hpp"
#include "tests/async/running.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <gtest/gtest.h>

#include <memory>
#include <stdexcept>
#include <string>

namespace leat::async {
namespace {

using testing::run;

TEST(hop, run_on_runs_there_and_comes_back_here) {
  simple_loop loop;
  thread_pool pool({.thread_count = 1, .name = "test"});
  auto body = [](simple_loop& home, thread_pool& away) -> asio::awaitable<int> {
    auto function = [&] {
      EXPECT_TRUE(away.running_in_this_thread());
      return std::make_unique<int>(7);
    };
    const auto seven = co_await run_on(away.get_executor(), std::move(function));
    EXPECT_TRUE(home.running_in_this_thread());
    bool ran = false;
    co_await run_on(asio::any_io_executor(away.get_executor()), [&ran] { ran = true; });
    EXPECT_TRUE(ran);
    co_return *seven;
  };
  EXPECT_EQ(run(loop, body(loop, pool)), 7);
}

TEST(hop, run_on_brings_exceptions_back) {
  simple_loop loop;
  thread_pool pool({.thread_count = 1, .name = "test"});
  auto fail = []() -> int { throw std::runtime_error("from the pool"); };
  try {
    run(loop, run_on(pool.get_executor(), fail));
    FAIL() << "no exception";
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "from the pool");
  }
}

TEST(hop, run_on_a_stopped_pool_is_an_error_and_not_a_hang) {
  simple_loop loop;
  thread_pool pool({.thread_count = 1, .name = "test"});
  pool.stop(thread_pool::stop_mode::drop);
  auto work = [] { FAIL() << "must not run"; };
  EXPECT_THROW(run(loop, run_on(pool.get_executor(), work)), boost::system::system_error);
}

TEST(hop, resume_on_moves_the_coroutine_until_its_next_wait) {
  simple_loop loop;
  thread_pool pool({.thread_count = 1, .name = "test"});
  auto body = [](simple_loop& home, thread_pool& away) -> asio::awaitable<void> {
    EXPECT_TRUE(home.running_in_this_thread());
    co_await resume_on(away.get_executor());
    EXPECT_TRUE(away.running_in_this_thread());
    co_await resume_on(home.get_executor());
    EXPECT_TRUE(home.running_in_this_thread());
  };
  run(loop, body(loop, pool));
}

}  // namespace
}  // namespace leat::async
