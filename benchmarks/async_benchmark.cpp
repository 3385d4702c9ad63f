// What do the coroutine tools cost, beside Asio's own?
//
// They are paid for once per sample or batch, never per read: a photograph takes 1,300 us to decode, so all of them
// together may cost it a few. The baseline is an asio::post() to the same loop, the least an asynchronous completion can be.
#include "async/semaphore.hpp"
#include "async/simple_loop.hpp"
#include "async/thread_pool.hpp"

#include <leat/completion.hpp>

#include <benchmark/benchmark.h>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_future.hpp>

#include <cstdint>
#include <utility>

namespace leat::async {
namespace {

/// Runs what a coroutine does over and over on a loop of this thread. `body` gets the state and iterates.
template <class Body>
void on_a_loop(benchmark::State& state, Body body) {
  simple_loop loop;
  auto done = asio::co_spawn(loop.get_executor(), body(state, loop), asio::use_future);
  loop.run();
  done.get();
  state.SetItemsProcessed(state.iterations());
}

// ---- Completing a callback ------------------------------------------------------------------------------------------

void post_a_callback(benchmark::State& state) {
  simple_loop loop;
  const auto bound = loop.bind_to_this_thread();
  std::uint64_t told = 0;
  for (auto _ : state) {
    asio::post(loop.get_executor(), [&told] { ++told; });
    loop.run_posted();
  }
  benchmark::DoNotOptimize(told);
}

void complete_a_callback(benchmark::State& state) {
  simple_loop loop;
  const auto bound = loop.bind_to_this_thread();
  std::uint64_t told = 0;
  for (auto _ : state) {
    completion<void(int)> waiting(asio::bind_executor(loop.get_executor(), [&told](int) { ++told; }));
    waiting.complete(1);
    loop.run_posted();
  }
  benchmark::DoNotOptimize(told);
}

void complete_a_callback_that_can_be_cancelled(benchmark::State& state) {
  simple_loop loop;
  const auto bound = loop.bind_to_this_thread();
  asio::cancellation_signal signal;
  std::uint64_t told = 0;
  for (auto _ : state) {
    completion<void(int)> waiting(asio::bind_cancellation_slot(
        signal.slot(), asio::bind_executor(loop.get_executor(), [&told](int) { ++told; })));
    waiting.on_cancel([](asio::cancellation_type) {});
    waiting.complete(1);
    loop.run_posted();
  }
  benchmark::DoNotOptimize(told);
}

// ---- Resuming a coroutine -------------------------------------------------------------------------------------------

void await_a_post(benchmark::State& state) {
  on_a_loop(state, [](benchmark::State& timed, simple_loop&) -> asio::awaitable<void> {
    for (auto _ : timed) co_await asio::post(asio::deferred);
  });
}

void await_a_completion(benchmark::State& state) {
  on_a_loop(state, [](benchmark::State& timed, simple_loop&) -> asio::awaitable<void> {
    const auto at_once = [](auto handler) { completion<void()>(std::move(handler)).complete(); };
    for (auto _ : timed) co_await asio::async_initiate<const asio::deferred_t&, void()>(at_once, asio::deferred);
  });
}

// ---- Semaphore ------------------------------------------------------------------------------------------------------

void semaphore_that_has_units(benchmark::State& state) {
  on_a_loop(state, [](benchmark::State& timed, simple_loop&) -> asio::awaitable<void> {
    semaphore units(1);
    for (auto _ : timed) {
      co_await units.acquire(1);
      units.release(1);
    }
  });
}

void semaphore_that_grants_who_waits(benchmark::State& state) {
  simple_loop loop;
  const auto bound = loop.bind_to_this_thread();
  semaphore units(1);
  static_cast<void>(units.try_acquire(1));
  for (auto _ : state) {
    units.acquire(1, asio::bind_executor(loop.get_executor(), [](boost::system::error_code) {}));
    units.release(1);
    loop.run_posted();
  }
}

// ---- Another thread -------------------------------------------------------------------------------------------------

// There and back, both threads asleep when it begins: two wake-ups.
void post_to_an_idle_thread_and_back(benchmark::State& state) {
  thread_pool pool({.thread_count = 1, .name = "benchmark"});
  on_a_loop(state, [&pool](benchmark::State& timed, simple_loop&) -> asio::awaitable<void> {
    const auto there = pool.get_executor();
    for (auto _ : timed) {
      co_await asio::post(asio::bind_executor(there, asio::deferred));  // The coroutine goes on on the pool's thread,
      co_await asio::post(asio::deferred);                              // and is back on its own loop.
    }
  });
}

BENCHMARK(post_a_callback);
BENCHMARK(complete_a_callback);
BENCHMARK(complete_a_callback_that_can_be_cancelled);
BENCHMARK(await_a_post);
BENCHMARK(await_a_completion);
BENCHMARK(semaphore_that_has_units);
BENCHMARK(semaphore_that_grants_who_waits);
BENCHMARK(post_to_an_idle_thread_and_back)->UseRealTime();

}  // namespace
}  // namespace leat::async

BENCHMARK_MAIN();
