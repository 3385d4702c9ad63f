// next(), wait() and next_of() awaited: by coroutines of any runtime, raced against others, and cancelled at any moment.
#include "tests/loader/running.hpp"
#include "tests/support/watchdog.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/experimental/co_spawn.hpp>
#include <boost/asio/experimental/coro.hpp>
#include <boost/asio/experimental/parallel_group.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/use_future.hpp>

#include <chrono>
#include <condition_variable>
#include <coroutine>
#include <deque>
#include <map>
#include <mutex>
#include <thread>

namespace leat {
namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;
using testing::fake_dataset;
using testing::fake_dataset_options;
using testing::label_only;
using testing::labels;
using testing::loader;
using testing::loader_options;
using testing::seen_batch;
using testing::small_options;
using testing::watchdog;

// --- a runtime of one's own: a task and a run loop -----------------------------------------------------------------

class run_loop {
 public:
  void post(std::coroutine_handle<> what) {
    const std::lock_guard lock(mutex_);
    ready_.push_back(what);
    changed_.notify_one();
  }
  void finish() {
    const std::lock_guard lock(mutex_);
    finished_ = true;
    changed_.notify_one();
  }
  void run() {
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [&] { return finished_ || !ready_.empty(); });
      if (ready_.empty()) return;
      const std::coroutine_handle<> first = ready_.front();
      ready_.pop_front();
      lock.unlock();
      first.resume();
      lock.lock();
    }
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::coroutine_handle<>> ready_;
  bool finished_ = false;
};

// Begins when it is made, and its maker waits for it, or destroys it.
class task {
 public:
  struct promise_type {
    task get_return_object() { return task(std::coroutine_handle<promise_type>::from_promise(*this)); }
    std::suspend_never initial_suspend() noexcept { return {}; }
    auto final_suspend() noexcept {
      struct tell {
        bool await_ready() noexcept { return false; }
        void await_suspend(std::coroutine_handle<promise_type> of) noexcept { of.promise().ended.set_value(); }
        void await_resume() noexcept {}
      };
      return tell();
    }
    void return_void() {}
    void unhandled_exception() { failure = std::current_exception(); }

    std::exception_ptr failure;
    std::promise<void> ended;
  };

  explicit task(std::coroutine_handle<promise_type> of) : of_(of) {}
  task(task&& other) noexcept : of_(std::exchange(other.of_, {})) {}
  ~task() {
    if (of_) of_.destroy();
  }
  void get() {
    of_.promise().ended.get_future().wait();
    if (of_.promise().failure) std::rethrow_exception(of_.promise().failure);
  }

 private:
  std::coroutine_handle<promise_type> of_;
};

task read_all(loader& from, std::uint32_t epochs, std::vector<seen_batch>& seen) {
  for (std::uint32_t epoch = 0; epoch < epochs; ++epoch) {
    while (auto got = co_await from.next()) seen.push_back(testing::look_at(*got));
  }
}

TEST(awaiting, needs_no_token_in_a_coroutine_of_asio) {
  const watchdog dog("awaiting, asio");
  const fake_dataset fake(labels(20));
  const auto expected = testing::run_all(fake, small_options(), label_only()).batches;
  asio::io_context context;
  loader train(fake, small_options(), label_only());
  std::vector<seen_batch> seen;
  const auto here = std::this_thread::get_id();
  const auto consume = [&]() -> asio::awaitable<void> {
    for (int epoch = 0; epoch < 2; ++epoch) {
      co_await train.wait();
      while (auto got = co_await train.next()) {
        EXPECT_EQ(std::this_thread::get_id(), here);
        seen.push_back(testing::look_at(*got));
      }
    }
  };
  auto done = asio::co_spawn(context, consume(), asio::use_future);
  context.run();
  done.get();
  EXPECT_EQ(seen, expected);
}

TEST(awaiting, needs_no_token_in_an_experimental_coro) {
  const watchdog dog("awaiting, coro");
  const fake_dataset fake(labels(20));
  const auto expected = testing::run_all(fake, small_options(), label_only()).batches;
  asio::io_context context;
  loader train(fake, small_options(), label_only());
  std::vector<seen_batch> seen;
  const auto consume = [&](asio::any_io_executor) -> asio::experimental::coro<void> {
    for (int epoch = 0; epoch < 2; ++epoch) {
      while (auto got = co_await train.next()) seen.push_back(testing::look_at(*got));
    }
  };
  // Its coroutine ends where its handler runs, so that is the context: a future would let the test end before.
  bool ended = false;
  asio::experimental::co_spawn(consume(context.get_executor()),
                               asio::bind_executor(context, [&](std::exception_ptr failure) { ended = !failure; }));
  context.run();
  EXPECT_TRUE(ended);
  EXPECT_EQ(seen, expected);
}

TEST(awaiting, needs_neither_token_nor_executor_in_a_coroutine_of_ones_own) {
  const watchdog dog("awaiting, a task");
  const fake_dataset fake(labels(40));
  const auto expected = testing::run_all(fake, small_options(), label_only()).batches;
  loader train(fake, small_options(), label_only());
  std::vector<seen_batch> seen;
  read_all(train, 2, seen).get();
  EXPECT_EQ(seen, expected);
}

TEST(awaiting, a_coroutine_without_executor_may_block_and_may_end_the_loader) {
  const watchdog dog("awaiting, a task that owns its loader");
  const fake_dataset fake(labels(40));
  const auto expected = testing::run_all(fake, small_options(), label_only()).batches;
  std::vector<seen_batch> seen;
  const auto train = [&]() -> task {
    auto mine = std::make_unique<loader>(fake, small_options(), label_only());
    co_await mine->wait();
    for (int epoch = 0; epoch < 2; ++epoch) {
      while (auto got = co_await mine->next()) {
        seen.push_back(testing::look_at(*got));
        if (seen.size() == 3) {  // Waits for what the loader's own threads do meanwhile.
          while (mine->stats().batches_ready == 0) std::this_thread::yield();
        }
      }
    }
    mine.reset();
  };
  train().get();
  EXPECT_EQ(seen, expected);
}

TEST(awaiting, goes_on_where_it_is_told) {
  const watchdog dog("awaiting, resume_on");
  const fake_dataset fake(labels(40));
  const auto expected = testing::run_all(fake, small_options(), label_only()).batches;
  {
    loader train(fake, small_options(), label_only());
    run_loop mine;
    std::vector<seen_batch> seen;
    const auto here = std::this_thread::get_id();
    const auto consume = [&]() -> task {
      for (int epoch = 0; epoch < 2; ++epoch) {
        while (auto got = co_await train.next().resume_on([&](std::coroutine_handle<> h) { mine.post(h); })) {
          EXPECT_EQ(std::this_thread::get_id(), here);
          seen.push_back(testing::look_at(*got));
        }
      }
      mine.finish();
    };
    task running = consume();
    mine.run();
    running.get();
    EXPECT_EQ(seen, expected);
  }
  asio::io_context context;
  loader train(fake, small_options(), label_only());
  auto more = asio::make_work_guard(context);
  std::vector<seen_batch> seen;
  const auto consume = [&]() -> task {
    for (int epoch = 0; epoch < 2; ++epoch) {
      while (auto got = co_await train.next().resume_on(context)) seen.push_back(testing::look_at(*got));
    }
    more.reset();
  };
  task running = consume();
  context.run();
  running.get();
  EXPECT_EQ(seen, expected);
}

TEST(awaiting, tells_a_coroutine_of_ones_own_what_went_wrong) {
  const watchdog dog("awaiting, errors");
  const fake_dataset fake(labels(8, {3}));
  loader train(fake, small_options(), label_only());
  std::vector<seen_batch> seen;
  testing::message_of(errc::corrupt, [&] { read_all(train, 1, seen).get(); });
  fake_dataset stuck(labels(8));
  stuck.damage(0, "cls", testing::read_fault::never);
  loader held(stuck, small_options(), label_only());
  task waiting = read_all(held, 1, seen);
  testing::message_of(errc::usage, [&] { read_all(held, 1, seen).get(); });
  held.stop();
  testing::message_of(errc::cancelled, [&] { waiting.get(); });
}

TEST(awaiting, a_coroutine_that_is_destroyed_has_taken_nothing) {
  const watchdog dog("awaiting, destroyed");
  const fake_dataset fake(labels(64));
  loader_options options = small_options();
  options.batch_size = 4;
  const auto expected = testing::run_all(fake, options, label_only()).batches;
  testing::for_each_seed(20, [&](std::uint64_t seed) {
    testing::seeded_random random(seed);
    fake_dataset_options where;
    where.disk.seed = seed;
    const fake_dataset slow(labels(64), where);
    asio::io_context context;  // Where it would go on.
    loader train(slow, options, label_only());
    std::vector<seen_batch> seen;
    std::uint32_t epoch = 0;
    const auto one = [&]() -> task {
      auto got = co_await train.next().resume_on(context);
      if (got) seen.push_back(testing::look_at(*got));
      if (!got) ++epoch;
    };
    while (epoch < options.epochs) {
      task running = one();
      for (std::uint64_t turns = random.below(3); turns > 0; --turns) {
        context.restart();
        context.poll();
        if (random.chance(0.3)) std::this_thread::yield();
      }
    }  // Whatever it has come to, it is destroyed.
    EXPECT_EQ(seen, expected);
  });
}

// --- races ------------------------------------------------------------------------------------------------------------

// Rows that came, by sample: each once an epoch.
using rows_seen = std::map<std::uint64_t, std::uint64_t>;
void note(rows_seen& to, const batch& got) {
  for (const std::uint64_t id : got.ids()) ++to[id];
}
void expect_each(const rows_seen& seen, std::size_t samples, std::uint64_t times) {
  EXPECT_EQ(seen.size(), samples);
  for (const auto& [id, count] : seen) EXPECT_EQ(count, times) << "sample " << id;
}

loader_options race_options() {
  loader_options options = small_options();
  options.batch_size = 2;
  options.epochs = 20;
  options.digests = false;
  return options;
}

TEST(races, of_two_loaders_by_or_lose_no_batch_and_give_none_twice) {
  const watchdog dog("races, or");
  testing::for_each_seed(4, [](std::uint64_t seed) {
    fake_dataset_options where;
    where.disk.seed = seed;
    const fake_dataset first(labels(60), where);
    const fake_dataset second(labels(50), where);
    asio::thread_pool pool(2);  // before the loaders, which hand over to it until they end
    loader a(first, race_options(), label_only());
    loader b(second, race_options(), label_only());
    rows_seen of_a;
    rows_seen of_b;
    const auto consume = [&]() -> asio::awaitable<void> {
      using namespace asio::experimental::awaitable_operators;
      while (!a.finished() && !b.finished()) {
        auto got = co_await (a.next(asio::use_awaitable) || b.next(asio::use_awaitable));
        if (got.index() == 0 && std::get<0>(got)) note(of_a, *std::get<0>(got));
        if (got.index() == 1 && std::get<1>(got)) note(of_b, *std::get<1>(got));
      }
      while (!a.finished()) {
        if (auto got = co_await a.next()) note(of_a, *got);
      }
      while (!b.finished()) {
        if (auto got = co_await b.next()) note(of_b, *got);
      }
    };
    asio::co_spawn(asio::make_strand(pool), consume(), asio::use_future).get();
    expect_each(of_a, 60, 20);
    expect_each(of_b, 50, 20);
  });
}

TEST(races, against_a_timer_lose_no_batch_by_either_way_to_write_them) {
  const watchdog dog("races, timer");
  testing::for_each_seed(4, [](std::uint64_t seed) {
    testing::seeded_random random(seed);
    fake_dataset_options where;
    where.disk.seed = seed;
    const fake_dataset fake(labels(100), where);
    for (const bool by_group : {false, true}) {
      asio::io_context context;
      loader train(fake, race_options(), label_only());
      rows_seen seen;
      const auto consume = [&]() -> asio::awaitable<void> {
        using namespace asio::experimental::awaitable_operators;
        while (!train.finished()) {
          asio::steady_timer soon(context, std::chrono::microseconds(random.below(60)));
          if (by_group) {
            auto [order, failure, got, timed_out] =
                co_await asio::experimental::make_parallel_group(
                    train.next(asio::bind_executor(context, asio::deferred)),
                    soon.async_wait(asio::bind_executor(context, asio::deferred)))
                    .async_wait(asio::experimental::wait_for_one(), asio::use_awaitable);
            if (failure == nullptr && got) note(seen, *got);
          } else {
            auto got = co_await (train.next(asio::use_awaitable) || soon.async_wait(asio::use_awaitable));
            if (got.index() == 0 && std::get<0>(got)) note(seen, *std::get<0>(got));
          }
        }
      };
      auto done = asio::co_spawn(context, consume(), asio::use_future);
      context.run();
      done.get();
      expect_each(seen, 100, 20);
    }
  });
}

// --- several loaders --------------------------------------------------------------------------------------------------

TEST(next_of, gives_every_batch_of_each_in_its_order) {
  const watchdog dog("next_of");
  testing::for_each_seed(4, [](std::uint64_t seed) {
    fake_dataset_options where;
    where.disk.seed = seed;
    const fake_dataset first(labels(60), where);
    const fake_dataset second(labels(50), where);
    const fake_dataset third(labels(12), where);
    for (const bool of_asio : {true, false}) {
      loader_options options = small_options();
      options.batch_size = 2;
      std::vector<std::vector<seen_batch>> expected;
      for (const fake_dataset* each : {&first, &second, &third}) {
        expected.push_back(testing::run_all(*each, options, label_only()).batches);
      }
      asio::io_context context;
      loader a(first, options, label_only());
      loader b(second, options, label_only());
      loader c(third, options, label_only());
      std::vector<leat::loader*> open = {&a, &b, &c};
      std::vector<std::vector<seen_batch>> seen(3);
      const auto take = [&](next_of_result now) {
        leat::loader* const from = open.at(now.index);
        const std::size_t which = from == &a ? 0 : from == &b ? 1 : 2;
        if (now.got) seen[which].push_back(testing::look_at(*now.got));
        if (from->finished()) open.erase(open.begin() + static_cast<std::ptrdiff_t>(now.index));
      };
      if (of_asio) {
        const auto consume = [&]() -> asio::awaitable<void> {
          while (!open.empty()) take(co_await loader::next_of(open));
        };
        auto done = asio::co_spawn(context, consume(), asio::use_future);
        context.run();
        done.get();
      } else {
        const auto consume = [&]() -> task {
          while (!open.empty()) take(co_await loader::next_of(open));
        };
        consume().get();
      }
      EXPECT_EQ(seen, expected);
    }
  });
}

TEST(next_of, gives_the_one_that_has_waited_longest_and_leaves_the_others_alone) {
  const watchdog dog("next_of, order");
  fake_dataset stuck(labels(8));
  stuck.damage(0, "cls", testing::read_fault::never);
  const fake_dataset fake(labels(80));
  loader never(stuck, small_options(), label_only());
  loader early(fake, small_options(), label_only());
  while (early.stats().batches_ready == 0) std::this_thread::yield();
  loader late(fake, small_options(), label_only());
  while (late.stats().batches_ready == 0) std::this_thread::yield();
  const auto next = [&] { return loader::next_of({&never, &late, &early}, asio::use_future).get(); };
  EXPECT_EQ(next().index, 2U);
  EXPECT_EQ(never.try_next().status(), next_status::not_ready) << "it was given up, and may be called again";
  ASSERT_TRUE(late.next_blocking());
  testing::message_of(errc::usage, [] { static_cast<void>(loader::next_of({})); });
}

TEST(next_of, is_cancelled_and_refused_as_next_is) {
  const watchdog dog("next_of, cancelled");
  fake_dataset stuck(labels(8));
  stuck.damage(0, "cls", testing::read_fault::never);
  loader a(stuck, small_options(), label_only());
  asio::io_context context;
  loader b(stuck, small_options(), label_only());
  asio::cancellation_signal stop;
  std::exception_ptr told;
  const auto ask = [&] {
    loader::next_of(
        {&a, &b},
        asio::bind_cancellation_slot(
            stop.slot(), asio::bind_executor(context, [&](std::exception_ptr why, next_of_result) { told = why; })));
  };
  ask();
  stop.emit(asio::cancellation_type::total);
  context.run();
  EXPECT_TRUE(testing::is_operation_aborted(told));
  auto waits = a.next(asio::use_future);  // Both may be called again; now one of them is.
  ask();
  context.restart();
  context.run();
  EXPECT_EQ(testing::code_of(told), errc::usage);
  auto other = b.next(asio::use_future);
  a.stop();
  b.stop();
  testing::message_of(errc::cancelled, [&] { static_cast<void>(waits.get()); });
  testing::message_of(errc::cancelled, [&] { static_cast<void>(other.get()); });
}

// --- wait() -----------------------------------------------------------------------------------------------------------

TEST(wait, takes_nothing) {
  const watchdog dog("wait");
  const fake_dataset fake(labels(20));
  const auto expected = testing::run_all(fake, small_options(), label_only()).batches;
  loader train(fake, small_options(), label_only());
  std::vector<seen_batch> seen;
  for (int epoch = 0; epoch < 2; ++epoch) {
    for (bool more = true; more;) {
      train.wait(asio::use_future).get();
      train.wait(asio::use_future).get();
      next_result got = train.try_next();
      ASSERT_NE(got.status(), next_status::not_ready);
      more = static_cast<bool>(got);
      if (got) seen.push_back(testing::look_at(*got));
    }
  }
  EXPECT_EQ(seen, expected);
}

// --- all batches held -------------------------------------------------------------------------------------------------

TEST(held_patience, ends_a_wait_that_only_the_trainer_can_end_and_names_what_it_holds) {
  const watchdog dog("held patience");
  const fake_dataset fake(labels(400));
  loader_options options = small_options();
  options.prefetch_batches = 2;
  options.held_patience = 50ms;
  loader train(fake, options, label_only());
  std::vector<batch> kept;
  const auto keep_all = [&] {
    for (int n = 0; n < 20; ++n) {
      auto got = train.next_blocking();
      ASSERT_TRUE(got);
      kept.push_back(*std::move(got));
    }
  };
  const std::string told = testing::message_of(errc::usage, [&] { keep_all(); });
  EXPECT_NE(told.find("you hold all "), std::string::npos) << told;
  EXPECT_NE(told.find("batch 0 of epoch 0, batch 1 of epoch 0"), std::string::npos) << told;
  const std::size_t most = kept.size();
  const std::string again =
      testing::message_of(errc::usage, [&] { static_cast<void>(train.next(asio::use_future).get()); });
  EXPECT_EQ(again, told);
  std::exception_ptr failure;
  const auto wait = [&]() -> task {
    try {
      static_cast<void>(co_await train.next());
    } catch (...) {
      failure = std::current_exception();
    }
  };
  wait().get();
  EXPECT_EQ(testing::code_of(failure), errc::usage);
  EXPECT_EQ(testing::message_of(errc::usage, [&] { train.wait(asio::use_future).get(); }), told);
  EXPECT_EQ(testing::message_of(errc::usage, [&] { loader::next_of({&train}, asio::use_future).get(); }), told);
  EXPECT_EQ(train.next_blocking(1ms).status(), next_status::not_ready) << "its own patience is shorter";
  kept.erase(kept.begin());  // Nothing was lost, and the run goes on.
  const auto next = train.next_blocking();
  ASSERT_TRUE(next);
  EXPECT_EQ(next->index(), most);
}

TEST(held_patience, is_of_calls_with_a_limit_together_that_ask_one_after_another) {
  const watchdog dog("held patience, by turns");
  const fake_dataset fake(labels(400));
  loader_options options = small_options();
  options.prefetch_batches = 2;
  options.held_patience = 200ms;
  loader train(fake, options, label_only());
  std::vector<batch> kept;
  int turns_without = 0;
  const std::string told = testing::message_of(errc::usage, [&] {
    for (;;) {
      next_result got = train.next_blocking(5ms);
      if (got) {
        turns_without = 0;
        kept.push_back(*std::move(got));
      } else {
        ++turns_without;
      }
    }
  });
  EXPECT_NE(told.find("you hold all "), std::string::npos) << told;
  EXPECT_GT(turns_without, 1) << "no call waited as long as the patience";
  const std::size_t most = kept.size();
  EXPECT_EQ(train.next_blocking(1ms).status(), next_status::not_ready) << "what was said is not said at once again";
  kept.pop_back();
  const auto next = train.next_blocking();
  ASSERT_TRUE(next);
  EXPECT_EQ(next->index(), most);
}

TEST(held_patience, is_of_what_calls_wait_and_not_of_what_the_trainer_does_between_them) {
  const watchdog dog("held patience, and a long step");
  const fake_dataset fake(labels(400));
  loader_options options = small_options();
  options.prefetch_batches = 2;
  options.held_patience = 300ms;
  loader train(fake, options, label_only());
  std::vector<batch> kept;
  testing::message_of(errc::usage, [&] {
    for (;;) kept.push_back(train.next_blocking().value());
  });
  EXPECT_EQ(train.try_next().status(), next_status::not_ready);
  EXPECT_EQ(train.next_blocking(0ms).status(), next_status::not_ready);
  std::this_thread::sleep_for(400ms);
  EXPECT_EQ(train.next_blocking(0ms).status(), next_status::not_ready);
}

TEST(held_patience, of_a_call_for_several_ends_when_the_batches_of_all_are_held_and_not_before) {
  const watchdog dog("held patience, several");
  const fake_dataset fake(labels(400));
  loader_options options = small_options();
  options.prefetch_batches = 2;
  options.held_patience = 50ms;
  loader held(fake, options, label_only());
  options.held_patience = 60ms;
  loader other(fake, options, label_only());
  std::vector<batch> of_held;
  std::vector<batch> of_other;
  const auto keep_all_of = [](loader& from, std::vector<batch>& to) {
    testing::message_of(errc::usage, [&] {
      for (;;) to.push_back(*from.next_blocking());
    });
  };
  const auto next = [&] { return loader::next_of({&held, &other}, asio::use_future).get(); };
  keep_all_of(held, of_held);
  while (of_other.size() < of_held.size()) {
    next_of_result got = next();
    ASSERT_EQ(got.index, 1U) << "what one loader cannot give, the other can";
    of_other.push_back(*std::move(got.got));
  }
  const std::string told = testing::message_of(errc::usage, [&] { next(); });
  EXPECT_NE(told.find("of loader 0: you hold all "), std::string::npos) << told;
  EXPECT_NE(told.find("; of loader 1: you hold all "), std::string::npos) << told;
  const std::uint64_t following = of_held.size();
  of_held.pop_back();
  const next_of_result got = next();
  EXPECT_EQ(got.index, 0U);
  ASSERT_TRUE(got.got);
  EXPECT_EQ(got.got->index(), following) << "nothing was lost";
}

TEST(held_patience, a_loader_that_ends_meanwhile_does_not_wait_for_it) {
  const watchdog dog("held patience, end");
  const fake_dataset fake(labels(400));
  loader_options options = small_options();
  options.prefetch_batches = 2;
  options.held_patience = 24h;
  std::vector<batch> kept;
  std::future<std::optional<batch>> waiting;
  {
    loader train(fake, options, label_only());
    while (kept.size() < train.plan().batches) {
      next_result got = train.next_blocking(100ms);
      if (!got) break;
      kept.push_back(*std::move(got));
    }
    waiting = train.next(asio::use_future);
  }
  testing::message_of(errc::cancelled, [&] { static_cast<void>(waiting.get()); });
}

}  // namespace
}  // namespace leat
