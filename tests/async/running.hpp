// How the tests of async/ run coroutines: one to its end on a loop, or many side by side with their own way to be
// cancelled.
#pragma once

#include "async/simple_loop.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/use_future.hpp>
#include <boost/system/system_error.hpp>
#include <gtest/gtest.h>

#include <chrono>
#include <exception>
#include <future>
#include <utility>

namespace leat::async::testing {

/// Runs `body` on `runs` until nothing is left to do, and gives back what it returns or throws.
template <class Result>
Result run(simple_loop& runs, asio::awaitable<Result> body) {
  std::future<Result> result = asio::co_spawn(runs.get_executor(), std::move(body), asio::use_future);
  runs.run();
  if (result.wait_for(std::chrono::seconds(0)) != std::future_status::ready) {
    throw std::logic_error("the coroutine waits for something that nobody will do");
  }
  return result.get();
}

/// Runs what there is to run on `runs`, and what that posts, but waits for nothing.
inline void settle(simple_loop& runs) {
  const auto bound = runs.bind_to_this_thread();
  while (runs.run_posted() != 0) {
  }
}

/// Lets everything that can run on the loop of this thread do so; the turns are counted, not timed.
inline asio::awaitable<void> turn(int turns = 1) {
  for (int i = 0; i < turns; ++i) co_await asio::post(asio::use_awaitable);
}

inline bool is_error(const std::exception_ptr& thrown, boost::system::error_code code) {
  if (!thrown) return false;
  try {
    std::rethrow_exception(thrown);
  } catch (const boost::system::system_error& failed) {
    return failed.code() == code;
  } catch (...) {
    return false;
  }
}

/// A coroutine on a strand of `executor`, to be cancelled from any thread.
class cancellable {
 public:
  cancellable(const asio::any_io_executor& executor, asio::awaitable<void> body)
      : strand_(asio::make_strand(executor)) {
    asio::co_spawn(strand_, std::move(body),
                   asio::bind_cancellation_slot(signal_.slot(), [this](std::exception_ptr thrown) {
                     thrown_ = std::move(thrown);
                     ended_.set_value();
                   }));
  }
  cancellable(const cancellable&) = delete;
  cancellable& operator=(const cancellable&) = delete;
  ~cancellable() {
    wait();
    // What cancel() posted refers to the signal.
    std::promise<void> last;
    asio::post(strand_, [&last] { last.set_value(); });
    last.get_future().get();
  }

  void cancel() {
    asio::post(strand_, [this] { signal_.emit(asio::cancellation_type::terminal); });
  }
  /// Waits for the end, on a thread that the coroutine does not need.
  std::exception_ptr wait() {
    if (!waited_) ended_.get_future().get();
    waited_ = true;
    return thrown_;
  }

 private:
  asio::any_io_executor strand_;
  asio::cancellation_signal signal_;
  std::exception_ptr thrown_;
  std::promise<void> ended_;
  bool waited_ = false;
};

}  // namespace leat::async::testing
