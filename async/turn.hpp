// Letting others run: for who has long work to do on a loop that looks after more than that.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/cancellation_type.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/system/system_error.hpp>

namespace leat::async {

namespace asio = boost::asio;

/// Goes on in the next turn of the coroutine's executor: what is queued there, and the loop's own work, comes first.
///   cancellation   total: system_error(operation_aborted) where the coroutine was cancelled by then
inline asio::awaitable<void> next_turn() {
  co_await asio::post(asio::use_awaitable);
  const asio::cancellation_state state = co_await asio::this_coro::cancellation_state;
  if (state.cancelled() != asio::cancellation_type::none) {
    throw boost::system::system_error(asio::error::operation_aborted);
  }
}

}  // namespace leat::async
