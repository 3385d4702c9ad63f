// What next(), stop() and the destructor promise, on the fake disk.
#include "stages/batch/transfer.hpp"
#include "tests/loader/running.hpp"
#include "tests/support/delayed_transfer.hpp"
#include "tests/support/fake_dataset.hpp"
#include "tests/support/seeded_random.hpp"
#include "tests/support/seeds.hpp"
#include "tests/support/watchdog.hpp"

#include <leat/loading.hpp>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/use_future.hpp>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <deque>
#include <future>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

namespace leat {
namespace {

namespace asio = boost::asio;
using testing::loader;
using testing::loader_options;

using testing::fake_dataset;
using testing::fake_dataset_options;
using testing::label_only;
using testing::labels;
using testing::make_samples;
using testing::message_of;
using testing::seen_batch;
using testing::small_options;
using testing::trainer;
using testing::watchdog;

// A sample of nothing but its class: for tests in which thousands of loaders are made.
// Lets the loader get somewhere. Without giving up the processor: on a busy machine a yield can take milliseconds.
void pass_time(std::chrono::microseconds time) {
  const auto end = std::chrono::steady_clock::now() + time;
  while (std::chrono::steady_clock::now() < end) {
  }
}

// What a run of this dataset delivers, batch by batch.
std::vector<seen_batch> expected_of(const dataset& samples, loader_options options) {
  return testing::run_all(samples, options, label_only()).batches;
}

// --- next() as an Asio operation ------------------------------------------------------------------------------------

TEST(next, can_be_awaited) {
  const watchdog dog("next, awaited");
  const fake_dataset fake(labels(20));
  const auto expected = expected_of(fake, small_options());
  asio::io_context context;
  loader train(fake, small_options(), label_only());
  std::vector<seen_batch> seen;
  const auto here = std::this_thread::get_id();
  const auto consume = [&](loader& from) -> asio::awaitable<void> {
    for (int epoch = 0; epoch < 2; ++epoch) {
      while (auto got = co_await from.next(asio::use_awaitable)) {
        EXPECT_EQ(std::this_thread::get_id(), here);
        seen.push_back(testing::look_at(*got));
      }
    }
  };
  auto done = asio::co_spawn(context, consume(train), asio::use_future);
  context.run();
  done.get();
  EXPECT_EQ(seen, expected);
}

TEST(next, can_be_a_future) {
  const watchdog dog("next, a future");
  const fake_dataset fake(labels(5));
  loader train(fake, small_options(), label_only());
  std::future<std::optional<batch>> future = train.next(asio::use_future);
  const std::optional<batch> got = future.get();
  ASSERT_TRUE(got);
  EXPECT_EQ(got->valid_rows(), 5U);
  EXPECT_FALSE(train.next(asio::use_future).get());
}

TEST(next, can_be_deferred_and_starts_when_it_is_launched) {
  const watchdog dog("next, deferred");
  const fake_dataset fake(labels(5));
  asio::io_context context;
  loader train(fake, small_options(), label_only());
  auto later = train.next(asio::deferred);
  EXPECT_EQ(train.stats().next.count, 0U);
  bool completed = false;
  std::move(later)(asio::bind_executor(context, [&](std::exception_ptr failure, std::optional<batch> got) {
    completed = failure == nullptr && got.has_value();
  }));
  context.run();
  EXPECT_TRUE(completed);
}

TEST(next, completes_on_the_associated_executor_and_never_inside_the_call) {
  const watchdog dog("next, executor");
  const fake_dataset fake(labels(40));
  asio::thread_pool pool(1);
  loader train(fake, small_options(), label_only());
  std::thread::id pool_thread;
  asio::post(pool, [&] { pool_thread = std::this_thread::get_id(); });
  for (int i = 0; i < 5; ++i) {
    std::promise<std::thread::id> where;
    std::atomic<bool> inside{true};
    train.next(asio::bind_executor(pool.get_executor(), [&](std::exception_ptr, std::optional<batch>) {
      where.set_value(std::this_thread::get_id());
    }));
    inside = false;
    EXPECT_EQ(where.get_future().get(), pool_thread);
  }
  pool.join();
  trainer one(train);
  const auto asked = one.ask();
  EXPECT_FALSE(asked->completed);
  one.wait();
  EXPECT_TRUE(asked->completed);
}

TEST(next, keeps_its_context_running_until_it_completes) {
  const watchdog dog("next, outstanding work");
  const fake_dataset fake(labels(8));
  loader train(fake, small_options(), label_only());
  trainer one(train);
  const auto asked = one.ask();
  one.wait();  // io_context::run() returns when there is no work.
  EXPECT_TRUE(asked->completed);
}

TEST(next, refuses_a_second_call_while_one_waits_and_goes_on_with_the_first) {
  const watchdog dog("next, second call");
  fake_dataset fake(labels(8));
  fake.damage(0, "cls", testing::read_fault::never);
  loader train(fake, small_options(), label_only());
  trainer one(train);
  const auto first = one.ask();
  const auto second = one.ask();
  one.turn();
  EXPECT_FALSE(first->completed);
  ASSERT_TRUE(second->completed);
  EXPECT_EQ(testing::code_of(second->failure), errc::usage);
  EXPECT_NE(message_of(errc::usage, [&] { std::rethrow_exception(second->failure); }).find("next()"),
            std::string::npos);
  train.stop();
  one.wait();
  EXPECT_EQ(testing::code_of(first->failure), errc::cancelled);
}

TEST(next, works_with_awaitable_operators) {
  const watchdog dog("next, awaitable operators");
  fake_dataset fake(labels(8));
  fake.damage(0, "cls", testing::read_fault::never);
  asio::io_context context;
  loader train(fake, small_options(), label_only());
  bool timed_out = false;
  const auto consume = [&](loader& from) -> asio::awaitable<void> {
    using namespace asio::experimental::awaitable_operators;
    asio::steady_timer soon(context, std::chrono::milliseconds(1));
    auto outcome = co_await (from.next(asio::use_awaitable) || soon.async_wait(asio::use_awaitable));
    timed_out = outcome.index() == 1;
  };
  auto done = asio::co_spawn(context, consume(train), asio::use_future);
  context.run();
  done.get();
  EXPECT_TRUE(timed_out);
}

TEST(next, can_be_awaited_by_every_token_that_can_be_awaited) {
  const watchdog dog("next, awaited by other tokens");
  const fake_dataset fake(labels(48));
  const auto expected = expected_of(fake, small_options());
  asio::io_context context;
  loader train(fake, small_options(), label_only());
  asio::cancellation_signal unused;
  std::vector<seen_batch> seen;
  const auto consume = [&](loader& from) -> asio::awaitable<void> {
    const auto here = std::this_thread::get_id();
    const auto take = [&](std::optional<batch> got) {
      EXPECT_EQ(std::this_thread::get_id(), here);
      ASSERT_TRUE(got);
      seen.push_back(testing::look_at(*got));
    };
    take(co_await from.next(asio::deferred));
    auto packed = from.next(asio::deferred);  // launched when it is awaited, and on this coroutine's executor
    take(co_await std::move(packed));
    take(co_await from.next(asio::bind_cancellation_slot(unused.slot(), asio::use_awaitable)));
    take(co_await from.next(asio::bind_executor(context, asio::use_awaitable)));
    std::optional<batch> last = co_await asio::co_spawn(
        context, [&from]() -> asio::awaitable<std::optional<batch>> { co_return co_await from.next(asio::deferred); },
        asio::use_awaitable);
    take(std::move(last));
  };
  auto done = asio::co_spawn(context, consume(train), asio::use_future);
  context.run();
  done.get();
  EXPECT_EQ(seen, (std::vector<seen_batch>(expected.begin(), expected.begin() + 5)));
}

// The first sample never arrives, so that next() waits until it is cancelled.
TEST(next, is_cancelled_through_every_token) {
  const watchdog dog("next, cancelled through every token");
  fake_dataset fake(labels(8));
  fake.damage(0, "cls", testing::read_fault::never);
  asio::io_context context;
  loader train(fake, small_options(), label_only());
  const auto aborted = [](auto&& call) {
    try {
      call();
    } catch (const boost::system::system_error& failure) {
      return failure.code() == asio::error::operation_aborted;
    }
    return false;
  };

  // A signal is emitted on the handler's executor, so a future that can be cancelled has one.
  asio::cancellation_signal future_signal;
  std::future<std::optional<batch>> future =
      train.next(asio::bind_cancellation_slot(future_signal.slot(), asio::bind_executor(context, asio::use_future)));
  future_signal.emit(asio::cancellation_type::total);
  context.run();
  context.restart();
  EXPECT_TRUE(aborted([&] { static_cast<void>(future.get()); }));

  asio::cancellation_signal deferred_signal;
  std::exception_ptr told;
  train.next(asio::deferred)(asio::bind_cancellation_slot(
      deferred_signal.slot(),
      asio::bind_executor(context, [&](std::exception_ptr failure, std::optional<batch>) { told = failure; })));
  deferred_signal.emit(asio::cancellation_type::terminal);
  context.run();
  EXPECT_TRUE(testing::is_operation_aborted(told));

  // A coroutine: its own slot reaches what it awaits, by either token. (By default it lets only `terminal` through.)
  for (const bool by_deferred : {false, true}) {
    asio::cancellation_signal signal;
    const auto wait = [&](loader& from) -> asio::awaitable<void> {
      if (by_deferred) {
        static_cast<void>(co_await from.next(asio::deferred));
      } else {
        static_cast<void>(co_await from.next(asio::use_awaitable));
      }
    };
    auto done = asio::co_spawn(context, wait(train), asio::bind_cancellation_slot(signal.slot(), asio::use_future));
    context.restart();
    context.poll();
    signal.emit(asio::cancellation_type::terminal);
    context.restart();
    context.run();
    EXPECT_TRUE(aborted([&] { done.get(); })) << by_deferred;
  }
}

TEST(next, loses_no_batch_when_it_is_cancelled) {
  const fake_dataset reference(labels(64));
  loader_options options = small_options();
  options.batch_size = 4;
  const auto expected = expected_of(reference, options);
  testing::for_each_seed(40, [&](std::uint64_t seed) {
    watchdog dog("next, cancelled");
    testing::seeded_random random(seed);
    fake_dataset_options where;
    where.disk.seed = seed;
    const fake_dataset fake(labels(64), where);
    loader train(fake, options, label_only());
    trainer one(train);
    std::vector<seen_batch> seen;
    for (std::uint32_t epoch = 0; epoch < options.epochs;) {
      asio::cancellation_signal stop;
      const auto asked = one.ask(stop.slot());
      for (std::uint64_t turns = random.below(4); turns > 0; --turns) one.turn();
      // total, terminal and partial: next() has no effects until it completes.
      constexpr asio::cancellation_type types[] = {asio::cancellation_type::total, asio::cancellation_type::partial,
                                                   asio::cancellation_type::terminal};
      if (random.chance(0.7)) stop.emit(types[random.below(3)]);
      one.wait();
      ASSERT_TRUE(asked->completed);
      if (asked->got) {
        seen.push_back(testing::look_at(*asked->got));
      } else if (asked->failure == nullptr) {
        ++epoch;
      } else {
        ASSERT_TRUE(testing::is_operation_aborted(asked->failure));
      }
    }
    EXPECT_EQ(seen, expected);
  });
}

// --- epochs -----------------------------------------------------------------------------------------------------------

TEST(epochs, end_with_nullopt_and_the_last_one_for_ever) {
  const watchdog dog("epochs");
  const fake_dataset fake(labels(20));
  loader train(fake, small_options(), label_only());
  EXPECT_EQ(train.batches(), 3U);
  for (std::uint32_t epoch = 0; epoch < 2; ++epoch) {
    for (std::uint64_t index = 0; index < 3; ++index) {
      const auto got = train.next_blocking();
      ASSERT_TRUE(got);
      EXPECT_EQ(got->epoch(), epoch);
      EXPECT_EQ(got->index(), index);
      EXPECT_EQ(got->valid_rows(), index == 2 ? 4U : 8U);
    }
    EXPECT_FALSE(train.next_blocking());
  }
  for (int again = 0; again < 3; ++again) EXPECT_FALSE(train.next_blocking());
  EXPECT_EQ(train.stats().epochs_finished, 2U);
}

TEST(epochs, go_on_without_end_where_none_was_set) {
  const watchdog dog("epochs, endless");
  const fake_dataset fake(labels(20));
  loader_options options = small_options();
  options.epochs = 0;
  loader train(fake, options, label_only());
  for (std::uint32_t epoch = 0; epoch < 30; ++epoch) {
    EXPECT_EQ(testing::run_epochs(train, 1).size(), 3U) << "epoch " << epoch;
  }
}

TEST(epochs, the_next_one_is_prefetched_before_this_one_has_ended) {
  watchdog dog("epochs, prefetched");
  const fake_dataset fake(labels(8));  // one batch per epoch
  loader_options options = small_options();
  options.epochs = 5;
  options.prefetch_batches = 3;
  const loader train(fake, options, label_only());
  // Nobody asks for anything: the disk is asked for the epochs that fit, and for no more.
  while (train.stats().batches_ready < 4) std::this_thread::yield();
  EXPECT_GE(fake.count().reads, 16U);
}

TEST(epochs, prefetch_stops_at_the_last_one) {
  const watchdog dog("epochs, last");
  const fake_dataset fake(labels(20));
  loader_options options = small_options();
  options.epochs = 1;
  loader train(fake, options, label_only());
  EXPECT_EQ(testing::run_epochs(train, 1).size(), 3U);
  EXPECT_EQ(train.stats().decode.count, 20U);
  EXPECT_FALSE(train.next_blocking());
  train.stop();
  EXPECT_EQ(train.stats().decode.count, 20U);
}

TEST(epochs, of_a_limited_number_of_batches) {
  const watchdog dog("epochs, limited");
  const fake_dataset fake(labels(100));
  loader_options options = small_options();
  options.batches_max = 3;
  loader train(fake, options, label_only());
  EXPECT_EQ(train.batches(), 3U);
  EXPECT_EQ(testing::run_epochs(train, 2).size(), 6U);
  EXPECT_EQ(train.stats().decode.count, 48U);
}

TEST(epochs, leave_out_the_last_rows_with_drop_last) {
  const watchdog dog("epochs, drop_last");
  const fake_dataset fake(labels(20));
  loader_options options = small_options();
  options.drop_last = true;
  loader train(fake, options, label_only());
  EXPECT_EQ(train.batches(), 2U);
  const auto seen = testing::run_epochs(train, 2);
  ASSERT_EQ(seen.size(), 4U);
  for (const seen_batch& each : seen) EXPECT_EQ(each.ids.size(), 8U);
}

TEST(epochs, of_a_dataset_smaller_than_a_batch) {
  const watchdog dog("epochs, small dataset");
  for (const std::size_t count : {std::size_t{1}, std::size_t{7}}) {
    const fake_dataset fake(labels(count));
    loader train(fake, small_options(), label_only());
    const auto seen = testing::run_epochs(train, 2);
    ASSERT_EQ(seen.size(), 2U);
    EXPECT_EQ(seen[1].ids.size(), count);
    EXPECT_EQ(seen[1].epoch, 1U);
  }
  loader_options options = small_options();
  options.drop_last = true;
  const fake_dataset fake(labels(7));
  loader train(fake, options, label_only());
  EXPECT_EQ(train.batches(), 0U);
  EXPECT_FALSE(train.next_blocking());
  EXPECT_FALSE(train.next_blocking());
  EXPECT_EQ(train.stats().epochs_finished, 2U) << "an epoch without a batch is one too";
}

TEST(epochs, of_an_empty_dataset_end_at_once) {
  const watchdog dog("epochs, empty");
  const fake_dataset fake(labels(3));
  for (const std::uint32_t count : {0U, 1U, 2U}) {
    loader_options options = small_options();
    options.epochs = count;
    loader train(fake.get().slice(0, 0), options, label_only());
    EXPECT_EQ(train.batches(), 0U);
    for (int again = 0; again < 4; ++again) EXPECT_FALSE(train.next_blocking());
    EXPECT_EQ(train.stats().epochs_finished, count == 0 ? 4U : count);
  }
}

TEST(epochs, in_the_datasets_order_without_shuffle) {
  const watchdog dog("epochs, in order");
  const fake_dataset fake(labels(20));
  loader_options options = small_options();
  options.shuffle = false;
  loader train(fake, options, label_only());
  std::uint64_t expected = 0;
  for (const seen_batch& each : testing::run_epochs(train, 2)) {
    for (const std::uint64_t id : each.ids) EXPECT_EQ(id, expected++ % 20);
  }
  EXPECT_EQ(expected, 40U);
}

TEST(blocking, can_be_left_in_the_middle_and_taken_up_again) {
  const watchdog dog("blocking");
  const fake_dataset fake(labels(40));
  const auto expected = expected_of(fake, small_options());
  loader train(fake, small_options(), label_only());
  std::vector<seen_batch> seen;
  for (const batch& each : train.blocking()) {
    seen.push_back(testing::look_at(each));
    if (seen.size() == 2) break;
  }
  for (const batch& each : train.blocking()) seen.push_back(testing::look_at(each));
  EXPECT_EQ(seen, (std::vector<seen_batch>(expected.begin(), expected.begin() + 5)));
}

// --- batches in the trainer's hands -----------------------------------------------------------------------------------

TEST(batches, outlive_their_loader) {
  const watchdog dog("batch outlives loader");
  std::optional<batch> kept;
  {
    const fake_dataset fake(make_samples(1, 10));
    loader train(fake, small_options(), testing::all_fields());
    kept = train.next_blocking();
  }
  ASSERT_TRUE(kept);
  EXPECT_EQ(kept->valid_rows(), 8U);
  EXPECT_EQ(testing::look_at(*kept).labels()[3], 1000 + static_cast<std::int64_t>(kept->ids()[3]));
  kept.reset();
}

// Backpressure: who keeps batches gets as many as the plan says and then waits, and what comes home is used again.
TEST(batches, held_back_hold_the_loader_and_not_the_program) {
  watchdog dog("batches held back");
  const fake_dataset fake(labels(400));
  loader_options options = small_options();
  options.batch_size = 4;
  const auto expected = expected_of(fake, options);
  for (const std::uint32_t prefetch : {1U, 2U, 4U}) {
    options.prefetch_batches = prefetch;
    loader train(fake, options, label_only());
    trainer one(train);
    EXPECT_EQ(train.plan().batches, prefetch + 1);
    const std::uint32_t on_device = train.stats().device.batches;
    const std::uint32_t most = on_device != 0 ? on_device : train.plan().batches;
    std::deque<batch> held;
    std::vector<seen_batch> seen;
    while (held.size() < most) {
      auto asked = one.ask_and_wait();
      ASSERT_TRUE(asked->got);
      seen.push_back(testing::look_at(*asked->got));
      held.push_back(std::move(*asked->got));
    }
    EXPECT_EQ(train.stats().batches_out, most);
    auto waiting = one.ask();
    one.turn();
    EXPECT_FALSE(waiting->completed) << "a batch more than the memory holds";
    // In any order home, one after the other.
    testing::seeded_random random(prefetch);
    for (int i = 0; i < 60; ++i) {
      const auto home = static_cast<std::ptrdiff_t>(random.below(held.size()));
      held.erase(held.begin() + home);
      one.wait();
      ASSERT_TRUE(waiting->completed && waiting->got);
      seen.push_back(testing::look_at(*waiting->got));
      held.push_back(std::move(*waiting->got));
      waiting = one.ask();
      one.turn();
    }
    EXPECT_EQ(seen,
              (std::vector<seen_batch>(expected.begin(), expected.begin() + static_cast<std::ptrdiff_t>(seen.size()))));
    train.stop();
    one.wait();
  }
}

TEST(batches, are_not_copied_by_looking_at_them_and_lie_in_one_block) {
  const watchdog dog("one block");
  const fake_dataset fake(make_samples(1, 8));
  loader train(fake, small_options(), testing::all_fields());
  const auto got = train.next_blocking();
  ASSERT_TRUE(got);
  const auto* first = static_cast<const std::byte*>((*got)["jpg"].data);
  for (const std::string& name : got->outputs()) {
    const tensor view = (*got)[name];
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(view.data) % 256, 0U) << name;
    EXPECT_LT(static_cast<const std::byte*>(view.data) - first, 1 << 20) << name;
    EXPECT_EQ(view.data, (*got)[name].data);
  }
  EXPECT_NE(message_of(errc::not_found, [&] { static_cast<void>((*got)["nothing"]); }).find("jpg, cls, txt"),
            std::string::npos);
}

// --- the transfer's events --------------------------------------------------------------------------------------------

TEST(transfers, that_signal_late_and_out_of_order_change_nothing) {
  const auto samples = labels(96);
  loader_options options = small_options();
  options.batch_size = 4;
  const auto expected = expected_of(fake_dataset(samples), options);
  testing::for_each_seed(30, [&](std::uint64_t seed) {
    watchdog dog("transfers out of order");
    testing::seeded_random random(seed);
    fake_dataset_options where;
    where.disk.seed = seed;
    const fake_dataset fake(samples, where);
    const auto events = std::make_shared<testing::delayed_transfer>();
    options.transfer = events;
    std::vector<seen_batch> seen;
    {
      loader train(fake, options, label_only());
      // The device: fires events of its own accord, in any order, on a thread of its own.
      std::atomic<bool> ended{false};
      std::thread device([&, random]() mutable {
        while (!ended.load(std::memory_order_relaxed)) {
          const std::size_t sends = events->sends_pending();
          if (sends > 0) events->fire_send(random.below(sends));
          const std::size_t returns = events->returns_pending();
          if (returns > 0) events->fire_return(random.below(returns));
          if (sends == 0 && returns == 0) std::this_thread::yield();
        }
      });
      seen = testing::run_epochs(train, 2);
      ended = true;
      device.join();
    }
    EXPECT_EQ(seen, expected);
    EXPECT_EQ(events->sends_pending(), 0U);
  });
}

TEST(transfers, that_never_signal_hold_a_batch_and_its_memory) {
  const watchdog dog("transfers that never signal");
  // One thread and a disk that keeps the order: the first batch is sent first.
  fake_dataset_options where;
  where.disk.order = testing::delivery::in_order;
  where.disk.faults = {.short_read = 0, .again = 0, .held_back = 0};
  const fake_dataset fake(labels(64), where);
  const auto events = std::make_shared<testing::delayed_transfer>();
  loader_options options = small_options();
  options.transfer = events;
  options.prefetch_batches = 2;
  options.decode_threads = 1;
  loader train(fake, options, label_only());
  trainer one(train);
  const auto asked = one.ask();
  while (events->sends_pending() < 3) std::this_thread::yield();
  one.turn();
  EXPECT_FALSE(asked->completed);
  // The second before the first: still nothing may be handed out.
  ASSERT_TRUE(events->fire_send(1));
  one.turn();
  EXPECT_FALSE(asked->completed);
  ASSERT_TRUE(events->fire_send(0));
  one.wait();
  ASSERT_TRUE(asked->got);
  EXPECT_EQ(asked->got->index(), 0U);
  const auto second = one.ask_and_wait();
  ASSERT_TRUE(second->got);
  EXPECT_EQ(second->got->index(), 1U);
  // Two batches given back whose event has not fired: their memory is not used again.
  asked->got.reset();
  second->got.reset();
  EXPECT_EQ(events->returns_pending(), 2U);
  EXPECT_EQ(events->sends_pending(), 1U);
  ASSERT_TRUE(events->fire_return(1));
  while (events->sends_pending() < 2) std::this_thread::yield();
  EXPECT_EQ(events->sends_pending(), 2U);
}

TEST(transfers, are_drained_by_the_destructor) {
  testing::for_each_seed(30, [](std::uint64_t seed) {
    watchdog dog("transfers drained");
    testing::seeded_random random(seed);
    const fake_dataset fake(labels(64));
    const auto events = std::make_shared<testing::delayed_transfer>();
    loader_options options = small_options();
    options.transfer = events;
    std::atomic<bool> ended{false};
    std::optional<loader> train;
    train.emplace(fake, options, label_only());
    std::thread device([&, choice = testing::seeded_random(~seed)]() mutable {
      while (!ended.load(std::memory_order_relaxed)) events->fire_send(choice.below(3));
    });
    trainer one(*train);
    pass_time(std::chrono::microseconds(random.below(500)));
    const auto asked = one.ask();
    train.reset();
    ended = true;
    device.join();
    one.wait();
    EXPECT_TRUE(asked->completed);
  });
}

// --- errors -----------------------------------------------------------------------------------------------------------

TEST(errors, are_given_again_at_every_further_call_and_the_loader_can_be_stopped) {
  const watchdog dog("node_local error");
  fake_dataset fake(labels(64));
  loader_options options = small_options();
  options.shuffle = false;
  // The environment's failure, not a sample's: EACCES ends the run under every policy.
  options.on_corrupt = corrupt_policy::skip;
  fake.damage(20, "cls", EACCES);
  loader train(fake, options, label_only());
  std::string first;
  std::size_t delivered = 0;
  for (int calls = 0; calls < 12; ++calls) {
    try {
      const auto got = train.next_blocking();
      ASSERT_TRUE(first.empty()) << "a batch after an error";
      ASSERT_TRUE(got);
      ++delivered;
    } catch (const error& failure) {
      if (first.empty()) first = failure.what();
      EXPECT_EQ(first, failure.what());
    }
  }
  EXPECT_NE(first.find("shard-"), std::string::npos) << first;
  EXPECT_LE(delivered, 2U);
  train.stop();
  EXPECT_EQ(message_of(errc::permission, [&] { static_cast<void>(train.next_blocking()); }), first);
}

TEST(errors, of_a_timeout_end_the_run_and_name_the_file) {
  const watchdog dog("timeout");
  fake_dataset fake(labels(64));
  loader_options options = small_options();
  options.on_corrupt = corrupt_policy::substitute;
  fake.damage(20, "cls", ETIMEDOUT);
  const testing::seen_run run = testing::run_all(fake, options, label_only());
  EXPECT_EQ(run.failed, errc::io);
  EXPECT_NE(run.message.find("shard-"), std::string::npos) << run.message;
}

TEST(errors, of_a_users_function_reach_next) {
  const watchdog dog("user's exception");
  const fake_dataset fake(labels(64));
  loader train(fake, small_options(),
               custom("cls", dtype::u8, {1},
                      [](std::span<const std::byte> bytes, const sample_context& context, std::span<std::byte> row) {
                        if (context.sample == 9) throw std::runtime_error("thrown by the user");
                        row[0] = bytes[0];
                        return std::string();
                      }));
  std::string what;
  try {
    for (int i = 0; i < 30; ++i) static_cast<void>(train.next_blocking());
  } catch (const error& thrown) {
    what = thrown.what();
    EXPECT_THROW(std::rethrow_if_nested(thrown), std::runtime_error);
  }
  EXPECT_NE(what.find("sample/9 (number 9), field 'cls'"), std::string::npos) << what;
  EXPECT_NE(what.find("thrown by the user"), std::string::npos) << what;
}

TEST(options, that_cannot_be_right_are_refused_with_what_to_do) {
  const fake_dataset fake(make_samples(1, 4));
  const auto refused = [&](errc code, const std::function<void(loader_options&)>& change, std::vector<field> fields) {
    loader_options options = small_options();
    change(options);
    return message_of(code, [&] { const loader never(fake, options, std::move(fields)); });
  };
  EXPECT_NE(
      refused(errc::usage, [](auto& o) { o.batch_size = 0; }, label_only()).find("batch_size"), std::string::npos);
  EXPECT_NE(
      refused(errc::usage, [](auto& o) { o.decode_threads = 5000; }, label_only()).find("1024"), std::string::npos);
  const std::string missing = refused(errc::usage, [](auto&) {}, {label("class")});
  EXPECT_NE(missing.find("'class'"), std::string::npos) << missing;
  EXPECT_NE(missing.find("jpg"), std::string::npos) << missing;
  EXPECT_NE(refused(errc::usage, [](auto&) {}, {label("cls"), bytes("cls")}).find("two outputs"), std::string::npos);
  EXPECT_NE(refused(errc::usage, [](auto&) {}, {label("raw.offsets").from("cls"), bytes("raw").from("cls")})
                .find("two outputs"),
            std::string::npos);
  const std::string no_folder =
      refused(errc::not_found, [](auto& o) { o.journal = "/nowhere/at/all.jsonl"; }, label_only());
  EXPECT_NE(no_folder.find("/nowhere/at/all.jsonl"), std::string::npos) << no_folder;
  EXPECT_NE(no_folder.find("make its folder first"), std::string::npos) << no_folder;
}

TEST(budget, that_is_too_small_is_refused_with_the_least_that_does) {
  watchdog dog("budget");
  const auto samples = make_samples(1, 60);
  for (const std::uint32_t threads : {1U, 4U}) {
    for (const std::uint32_t batch_size : {1U, 16U, 60U}) {
      const fake_dataset fake(samples);
      loader_options options = small_options();
      options.decode_threads = threads;
      options.batch_size = batch_size;
      const auto expected = testing::run_all(fake, options, testing::all_fields()).batches;
      options.host_bytes_max = 1 << 20;
      const std::string said =
          message_of(errc::limit, [&] { const loader never(fake, options, testing::all_fields()); });
      const std::size_t begin = said.find('(', said.find("at least"));
      ASSERT_NE(begin, std::string::npos) << said;
      const std::size_t least = std::stoull(said.substr(begin + 1));
      options.host_bytes_max = least - 1;
      EXPECT_EQ(message_of(errc::limit, [&] { const loader never(fake, options, testing::all_fields()); })
                    .find("loader_options::host_bytes_max"),
                0U);
      options.host_bytes_max = least;
      const testing::seen_run run = testing::run_all(fake, options, testing::all_fields());
      EXPECT_FALSE(run.failed) << run.message;
      EXPECT_EQ(run.batches, expected);
    }
  }
}

// With the least that one thread needs, which is too little for one on every core.
TEST(budget, decides_how_many_threads_decode_where_nobody_said) {
  const testing::watchdog dog("automatic threads");
  const fake_dataset set(testing::make_samples(1, 20));
  loader_options options = small_options();
  options.decode_threads = 1;
  options.host_bytes_max = loader(set, options, testing::all_fields()).plan().host_bytes_least;
  const testing::seen_run expected = testing::run_all(set, options, testing::all_fields());
  EXPECT_FALSE(expected.failed) << expected.message;
  options.decode_threads = 0;
  EXPECT_EQ(loader(set, options, testing::all_fields()).plan().decode_threads, 1U);
  const testing::seen_run got = testing::run_all(set, options, testing::all_fields());
  EXPECT_FALSE(got.failed) << got.message;
  EXPECT_EQ(got.batches, expected.batches);

  options.decode_threads = 500;
  const std::string refused =
      testing::message_of(errc::limit, [&] { const loader train(set, options, testing::all_fields()); });
  EXPECT_NE(refused.find("the decoders of 500 threads"), std::string::npos) << refused;
}

TEST(budget, holds_one_huge_text_among_small_ones) {
  const watchdog dog("budget, one huge text");
  std::vector<testing::fake_sample> samples(64);
  for (std::size_t i = 0; i < samples.size(); ++i) {
    samples[i].members = {{"txt", std::vector<std::byte>(i == 40 ? std::size_t{5} << 20 : i, std::byte{'x'})}};
  }
  const fake_dataset fake(samples);
  loader_options options = small_options();
  options.batch_size = 32;
  options.epochs = 1;
  options.host_bytes_max = std::size_t{20} << 20;  // 32 of the largest would take 160 MiB
  loader train(fake, options, text("txt"));
  std::size_t rows = 0;
  for (const batch& got : train.blocking()) {
    for (std::size_t row = 0; row < got.valid_rows(); ++row, ++rows) {
      EXPECT_EQ(testing::row_of(got, "txt", row).size(), samples[got.ids()[row]].members[0].bytes.size());
    }
  }
  EXPECT_EQ(rows, 64U);
}

// --- fork -------------------------------------------------------------------------------------------------------------

TEST(fork, leaves_the_child_a_clear_error_and_the_parent_its_loader) {
  watchdog dog("fork");
  const fake_dataset fake(labels(64));
  const auto expected = expected_of(fake, small_options());
  std::optional<loader> train;
  train.emplace(fake, small_options(), label_only());
  std::vector<seen_batch> seen;
  seen.push_back(testing::look_at(*train->next_blocking()));
  auto later = train->next(asio::deferred);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    ::alarm(20);  // A hang ends in a signal, which the parent sees.
    const auto refused = [](const std::exception_ptr& failure) {
      try {
        std::rethrow_exception(failure);
      } catch (const error& usage) {
        return usage.code() == errc::usage && std::string(usage.what()).find("fork()") != std::string::npos;
      } catch (...) {
        return false;
      }
    };
    int wrong = 0;
    try {
      static_cast<void>(train->next_blocking());
      wrong |= 1;
    } catch (...) {
      if (!refused(std::current_exception())) wrong |= 2;
    }
    // Whatever it would complete on, and at once.
    try {
      static_cast<void>(train->next(asio::use_future));
      wrong |= 4;
    } catch (...) {
      if (!refused(std::current_exception())) wrong |= 8;
    }
    try {
      trainer(*train).ask();
      wrong |= 16;
    } catch (...) {
      if (!refused(std::current_exception())) wrong |= 32;
    }
    // What was deferred before the fork and is launched after it has nobody to throw to.
    bool told = false;
    asio::io_context context;
    std::move(later)(asio::bind_executor(
        context, [&](std::exception_ptr failure, std::optional<batch>) { told = refused(failure); }));
    context.run();
    if (!told) wrong |= 64;
    train->stop();
    train.reset();
    ::_exit(wrong);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status);
  EXPECT_EQ(WEXITSTATUS(status), 0);
  while (auto got = train->next_blocking()) seen.push_back(testing::look_at(*got));
  EXPECT_EQ(seen, (std::vector<seen_batch>(expected.begin(), expected.begin() + 8)));
}

// Leases come and go on other threads all the time: some child finds the pool's lock held by a thread that it does not
// have, and what lies at the arena's address is not the arena.
TEST(fork, lets_the_child_destroy_batches_from_before) {
  watchdog dog("fork, with a batch in hand");
  const fake_dataset fake(labels(4096));
  loader_options options = small_options();
  options.epochs = 0;
  options.batch_size = 1;
  options.digests = false;
  loader train(fake, options, label_only());
  for (int i = 0; i < 50; ++i) {
    std::optional<batch> held = train.next_blocking();
    ASSERT_TRUE(held);
    // Another thread gives leases back while we fork.
    std::atomic<bool> forked{false};
    std::thread consumer([&] {
      while (!forked) static_cast<void>(train.next_blocking());
    });
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      ::alarm(20);
      held.reset();
      ::_exit(0);
    }
    forked = true;
    consumer.join();
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status);
  }
}

// --- stop and the destructor ------------------------------------------------------------------------------------------

TEST(stop, completes_a_call_that_waits_and_every_further_one_and_may_be_called_again) {
  const watchdog dog("stop");
  fake_dataset fake(labels(8));
  fake.damage(0, "cls", testing::read_fault::never);
  loader train(fake, small_options(), label_only());
  trainer one(train);
  const auto asked = one.ask();
  // Both epochs are under way, and of each one read never ends.
  while (fake.count().reads < 16 || fake.count().reads_in_flight > 2) std::this_thread::yield();
  one.turn();
  EXPECT_FALSE(asked->completed);
  train.stop();
  one.wait();
  EXPECT_EQ(testing::code_of(asked->failure), errc::cancelled);
  train.stop();
  EXPECT_EQ(testing::code_of(one.ask_and_wait()->failure), errc::cancelled);
  EXPECT_EQ(fake.count().reads_in_flight, 0U);
  EXPECT_EQ(fake.count().cancelled, 2U);
}

TEST(stop, can_be_called_by_several_threads_at_once) {
  testing::for_each_seed(20, [](std::uint64_t seed) {
    watchdog dog("stop by several threads");
    fake_dataset_options where;
    where.disk.seed = seed;
    where.disk.faults.never = 0.05;
    const fake_dataset fake(labels(64), where);
    loader train(fake, small_options(), label_only());
    std::vector<std::thread> threads;
    for (int i = 0; i < 3; ++i) threads.emplace_back([&] { train.stop(); });
    for (std::thread& each : threads) each.join();
    EXPECT_EQ(fake.count().reads_in_flight, 0U);
  });
}

// Lines of /proc/self/maps: an arena that never goes leaves some behind.
std::size_t mappings() {
  std::ifstream maps("/proc/self/maps");
  std::size_t lines = 0;
  for (std::string line; std::getline(maps, line);) ++lines;
  return lines;
}

// The fake disk aborts when a lease is used twice or a source goes with reads in flight; the watchdog when it hangs.
TEST(stop, returns_every_lease_at_any_moment_from_any_state) {
  watchdog dog("stop at any moment");
  std::size_t mappings_before = 0;
  int loaders = 0;
  testing::for_each_seed(300, [&](std::uint64_t seed) {
    dog.step("seed " + std::to_string(seed));
    testing::seeded_random random(seed);
    fake_dataset_options where;
    where.disk.seed = seed;
    where.disk.faults.never = random.chance(0.5) ? 0.03 : 0;
    where.disk.faults.io_error = random.chance(0.3) ? 0.05 : 0;
    where.disk.faults.timed_out = random.chance(0.1) ? 0.02 : 0;
    where.disk.faults.linger = random.chance(0.5) ? 0.95 : 0.5;
    where.disks = random.chance(0.3) ? 2 : 1;
    where.layout = random.chance(0.5) ? testing::fake_layout::shards : testing::fake_layout::file_per_member;
    std::vector<testing::fake_sample> samples = labels(50);
    for (std::size_t i = 0; i < samples.size(); i += 3) {
      samples[i].members.push_back({"txt", testing::to_bytes(std::string(random.below(9000), 'x'))});
    }
    if (random.chance(0.3)) samples[7].defect = "known to be damaged";
    const fake_dataset fake(samples, where);

    loader_options options = small_options();
    options.batch_size = static_cast<std::uint32_t>(1 + random.below(20));
    options.epochs = static_cast<std::uint32_t>(random.below(3));
    options.decode_threads = static_cast<std::uint32_t>(1 + random.below(3));
    options.prefetch_batches = static_cast<std::uint32_t>(random.below(4));
    options.reader.io_threads = random.chance(0.2) ? 2 : 1;
    options.on_corrupt = static_cast<corrupt_policy>(random.below(3));
    options.host_bytes_max = std::size_t{random.chance(0.5) ? 6U : 12U} << 20;
    options.digests = random.chance(0.5);
    std::vector<field> fields = label_only();
    if (random.chance(0.5)) {
      fields.push_back(custom("txt", dtype::u8, {1},
                              [](std::span<const std::byte> bytes, const sample_context&, std::span<std::byte> row) {
                                row[0] = bytes.empty() ? std::byte{0} : bytes[0];
                                return std::string();
                              }));
    }

    std::deque<batch> kept;
    {
      std::optional<loader> train;
      train.emplace(fake, options, fields);
      trainer one(*train);  // Its context outlives the loader: a call that waits is completed by the destructor.
      std::shared_ptr<trainer::result> asked;
      asio::cancellation_signal cancel;
      for (std::uint64_t calls = random.below(8); calls > 0; --calls) {
        asked = one.ask(cancel.slot());
        for (std::uint64_t patience = random.below(400); patience > 0 && !asked->completed; --patience) {
          if (random.chance(0.01)) static_cast<void>(train->stats());
          one.turn();
        }
        if (!asked->completed && random.chance(0.5)) cancel.emit(asio::cancellation_type::total);
        one.turn();
        if (!asked->completed) break;  // stop() finds a call that waits.
        if (asked->got && random.chance(0.3)) kept.push_back(std::move(*asked->got));
        if (kept.size() > 2) kept.pop_front();
        asked.reset();
      }
      pass_time(std::chrono::microseconds(random.below(500)));
      if (random.chance(0.3)) {
        train->stop();
        one.turn();
        if (asked) EXPECT_TRUE(asked->completed);
      }
      if (random.chance(0.3)) kept.clear();
      train.reset();
      one.turn();
      if (asked) EXPECT_TRUE(asked->completed);
    }
    EXPECT_EQ(fake.count().reads_in_flight, 0U);
    EXPECT_EQ(fake.count().bytes_in_flight, 0U);
    for (const batch& each : kept) EXPECT_LE(each.valid_rows(), options.batch_size);
    kept.clear();
    if (++loaders == 30) mappings_before = mappings();
  });
  if (loaders > 100) EXPECT_LT(mappings(), mappings_before + 40);
}

TEST(stop, interrupts_a_decoder_that_is_at_work) {
  const watchdog dog("stop while decoding");
  const fake_dataset fake(labels(64));
  std::atomic<int> begun{0};
  std::atomic<bool> go_on{false};
  loader train(
      fake, small_options(),
      custom("cls", dtype::u8, {1}, [&](std::span<const std::byte>, const sample_context&, std::span<std::byte>) {
        ++begun;
        while (!go_on) std::this_thread::yield();
        return std::string();
      }));
  auto waiting = train.next(boost::asio::use_future);
  while (begun == 0) std::this_thread::yield();
  std::thread stopper([&] { train.stop(); });
  // Once the call that waits has been told, every decoder that looks sees it too.
  EXPECT_THROW(static_cast<void>(waiting.get()), error);
  go_on = true;
  stopper.join();
  // What was queued behind them was not begun: one job per thread.
  EXPECT_LE(begun, 2);
}

}  // namespace
}  // namespace leat
