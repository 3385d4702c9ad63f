#include "async/turn.hpp"

#include "tests/support/failures.hpp"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <gtest/gtest.h>

#include <exception>
#include <string>

namespace leat::async {
namespace {

TEST(turn, lets_what_is_queued_go_first) {
  asio::io_context loop;
  std::string order;
  asio::co_spawn(
      loop,
      [&]() -> asio::awaitable<void> {
        asio::post(loop, [&] { order += "queued "; });
        order += "before ";
        co_await next_turn();
        order += "after";
      },
      [](const std::exception_ptr& failure) { EXPECT_EQ(failure, nullptr); });
  loop.run();
  EXPECT_EQ(order, "before queued after");
}

TEST(turn, ends_a_coroutine_that_was_cancelled_meanwhile) {
  asio::io_context loop;
  asio::cancellation_signal stop;
  std::exception_ptr ended;
  int turns = 0;
  asio::co_spawn(
      loop,
      [&]() -> asio::awaitable<void> {
        for (;;) {
          if (++turns == 3) asio::post(loop, [&] { stop.emit(asio::cancellation_type::terminal); });
          co_await next_turn();
        }
      },
      asio::bind_cancellation_slot(stop.slot(), [&](const std::exception_ptr& failure) { ended = failure; }));
  loop.run();
  EXPECT_TRUE(leat::testing::is_operation_aborted(ended));
  EXPECT_EQ(turns, 3);
}

}  // namespace
}  // namespace leat::async
