// What takes too long is cancelled, and nothing is lost by it: a batch that is waited for so long and no longer, an epoch that
// ends at a deadline or at Ctrl-C, and errors as values.
#include <leat/loader.hpp>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/use_future.hpp>

#include <csignal>
#include <iostream>

namespace asio = boost::asio;
using namespace asio::experimental::awaitable_operators;
using namespace std::chrono_literals;

// Samples from far away: each comes 50 ms after it was asked for.
asio::awaitable<std::vector<std::byte>> fetch(std::uint64_t sample) {
  asio::steady_timer timer(co_await asio::this_coro::executor, 50ms);
  co_await timer.async_wait(asio::use_awaitable);
  co_return std::vector<std::byte>(1, std::byte(sample));
}

// Waits for the next batch for `patience` at most. False: it has not come yet, and the next call waits for the same one. Whichever
// side of || comes second has taken nothing.
asio::awaitable<bool> next_within(leat::loader& train, std::chrono::milliseconds patience,
                                  std::optional<leat::batch>& batch) {
  asio::steady_timer timer(co_await asio::this_coro::executor, patience);
  auto got = co_await (train.next(asio::use_awaitable) || timer.async_wait(asio::use_awaitable));
  if (got.index() == 1) co_return false;
  batch = std::move(std::get<0>(got));
  co_return true;
}

asio::awaitable<void> epoch(leat::loader& train, std::size_t& batches) {
  while (auto batch = co_await train.next()) ++batches;
}

asio::awaitable<void> run(leat::loader& train) {
  std::optional<leat::batch> one;
  int tries = 1;
  while (!co_await next_within(train, 5ms, one)) ++tries;
  std::cout << "batch " << one->index() << " came at try " << tries << '\n';
  one.reset();

  // Cancelling the coroutine cancels the next() that it waits in.
  std::size_t batches = 0;
  asio::steady_timer deadline(co_await asio::this_coro::executor, 500ms);
  asio::signal_set signals(co_await asio::this_coro::executor, SIGINT);
  const auto first = co_await (epoch(train, batches) || deadline.async_wait(asio::use_awaitable) ||
                               signals.async_wait(asio::use_awaitable));
  std::cout << (first.index() == 1   ? "the deadline"
                : first.index() == 2 ? "Ctrl-C"
                                     : "the epoch's end")
            << " after " << batches << " batches\n";

  train.stop();  // from here on next() fails, as it does when data cannot be read
  const auto [failure, batch] = co_await train.next(asio::as_tuple(asio::use_awaitable));
  try {
    if (failure) std::rethrow_exception(failure);
  } catch (const leat::error& stopped) {
    std::cout << "then: " << stopped.what() << '\n';
  }
}

int main() try {
  leat::loader train{
      leat::from_coroutine(100'000, fetch, {.field = "x", .bytes_max = 1}), {.batch_size = 100}, leat::bytes{"x"}};
  asio::io_context context;
  auto done = asio::co_spawn(context, run(train), asio::use_future);
  context.run();
  done.get();
} catch (const std::exception& problem) {
  std::cerr << problem.what() << '\n';
  return 1;
}
