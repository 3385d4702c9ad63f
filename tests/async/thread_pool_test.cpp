#include "async/thread_pool.hpp"

#include "tests/async/running.hpp"
#include "tests/support/seeds.hpp"

#include <boost/asio/dispatch.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/steady_timer.hpp>
#include <gtest/gtest.h>

#include <pthread.h>

#include <array>
#include <atomic>
#include <chrono>
#include <latch>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace leat::async {
namespace {

static_assert(asio::execution::is_executor<thread_pool::executor_type>::value);
static_assert(std::is_convertible_v<thread_pool::executor_type, asio::any_io_executor>);

struct noting_job final : job {
  void run(worker_context& worker) noexcept override {
    index = worker.index;
    if (order != nullptr) {
      const mutex_lock lock(*guard);
      order->push_back(name);
    }
    ++runs;
    if (done != nullptr) done->count_down();
  }
  void drop() noexcept override {
    ++drops;
    if (done != nullptr) done->count_down();
  }
  int name = 0;
  std::size_t index = 99;
  int runs = 0;
  int drops = 0;
  std::latch* done = nullptr;
  mutex* guard = nullptr;
  std::vector<int>* order = nullptr;
};

/// Keeps a worker busy until told.
struct blocking_job final : job {
  void run(worker_context&) noexcept override {
    started.count_down();
    release.wait();
  }
  void drop() noexcept override { ADD_FAILURE() << "dropped"; }
  std::latch started{1};
  std::latch release{1};
};

TEST(thread_pool, runs_jobs_first_in_first_out) {
  thread_pool pool({.thread_count = 1, .name = "test"});
  mutex guard;
  std::vector<int> order;
  std::latch done(20);
  std::array<noting_job, 20> jobs;
  for (int i = 0; i < 20; ++i) {
    auto& one = jobs[static_cast<std::size_t>(i)];
    one.name = i;
    one.done = &done;
    one.guard = &guard;
    one.order = &order;
  }
  job_list bunch;
  for (std::size_t i = 0; i < 10; ++i) bunch.push_back(jobs[i]);
  EXPECT_EQ(bunch.size(), 10U);
  pool.post(std::move(bunch));
  for (std::size_t i = 10; i < 20; ++i) pool.post(jobs[i]);
  done.wait();
  const mutex_lock lock(guard);
  ASSERT_EQ(order.size(), 20U);
  for (int i = 0; i < 20; ++i) EXPECT_EQ(order[static_cast<std::size_t>(i)], i);
}

TEST(thread_pool, gives_each_thread_its_number_and_name) {
  thread_pool pool({.thread_count = 3, .name = "leat-decode"});
  EXPECT_EQ(pool.thread_count(), 3U);
  struct naming_job final : job {
    void run(worker_context& worker) noexcept override {
      index = worker.index;
      pthread_getname_np(pthread_self(), name.data(), name.size());
      all->arrive_and_wait();  // so that every thread takes one
    }
    void drop() noexcept override { ADD_FAILURE(); }
    std::array<char, 16> name{};
    std::size_t index = 0;
    std::latch* all = nullptr;
  };
  std::latch all(4);
  std::array<naming_job, 3> jobs;
  job_list bunch;
  for (auto& one : jobs) {
    one.all = &all;
    bunch.push_back(one);
  }
  pool.post(std::move(bunch));  // one wake-up: the woken must wake the others, or this never ends
  all.arrive_and_wait();
  pool.stop(thread_pool::stop_mode::drain);
  std::vector<bool> seen(3);
  for (const auto& one : jobs) {
    EXPECT_EQ(std::string(one.name.data()), "leat-decode-" + std::to_string(one.index));
    seen.at(one.index) = true;
  }
  EXPECT_EQ(seen, std::vector<bool>(3, true));
}

TEST(thread_pool, stop_drop_tells_what_is_queued_and_what_comes_later) {
  thread_pool pool({.thread_count = 1, .name = "test"});
  blocking_job first;
  noting_job queued;
  pool.post(first);
  first.started.wait();
  pool.post(queued);
  EXPECT_EQ(pool.count().queued, 1U);
  std::thread stopper([&pool] { pool.stop(thread_pool::stop_mode::drop); });
  first.release.count_down();
  stopper.join();
  // The job may have been taken before the stop was seen; told exactly once it is in either case.
  EXPECT_EQ(queued.runs + queued.drops, 1);
  noting_job late;
  pool.post(late);
  EXPECT_EQ(late.drops, 1);
  bool destroyed_unrun = true;
  asio::post(pool.get_executor(), [&destroyed_unrun] { destroyed_unrun = false; });
  EXPECT_TRUE(destroyed_unrun);
}

TEST(thread_pool, stop_drain_runs_all_and_what_that_posts_and_waits_for_coroutines) {
  thread_pool pool({.thread_count = 2, .name = "test"});
  std::atomic<int> ran{0};
  for (int i = 0; i < 50; ++i) {
    asio::post(pool.get_executor(), [&] {
      ++ran;
      asio::post(pool.get_executor(), [&ran] { ++ran; });
    });
  }
  auto body = [](std::atomic<int>& count) -> asio::awaitable<void> {
    asio::steady_timer timer(co_await asio::this_coro::executor, std::chrono::milliseconds(3));
    co_await timer.async_wait(asio::use_awaitable);
    count += 1000;
  };
  auto ended = asio::co_spawn(pool.get_executor(), body(ran), asio::use_future);
  pool.stop(thread_pool::stop_mode::drain);
  EXPECT_EQ(ran, 1100);
  EXPECT_EQ(ended.wait_for(std::chrono::seconds(0)), std::future_status::ready);
}

TEST(thread_pool, dispatches_inline_on_its_own_threads) {
  thread_pool pool({.thread_count = 1, .name = "test"});
  std::promise<bool> inlined;
  asio::post(pool.get_executor(), [&] {
    bool ran = false;
    asio::dispatch(pool.get_executor(), [&ran] { ran = true; });
    inlined.set_value(ran);
  });
  EXPECT_TRUE(inlined.get_future().get());
}

TEST(thread_pool, a_bunch_costs_its_poster_one_wake_up) {
  thread_pool pool({.thread_count = 4, .name = "test"});
  // All four asleep: an idle time shows only once a sleep has ended, so ask the pool with a round of jobs first.
  std::latch warmed(4);
  std::array<noting_job, 4> warm;
  for (auto& one : warm) {
    one.done = &warmed;
    pool.post(one);
  }
  warmed.wait();
  const auto before = pool.count().wake_count;
  std::latch done(16);
  std::array<noting_job, 16> jobs;
  job_list bunch;
  for (auto& one : jobs) {
    one.done = &done;
    bunch.push_back(one);
  }
  pool.post(std::move(bunch));
  done.wait();
  EXPECT_LE(pool.count().wake_count - before, 4U) << "more wake-ups than threads for one bunch";
  EXPECT_LE(pool.count().queued_max, 16U);
}

TEST(thread_pool, lets_only_the_active_threads_take_jobs) {
  thread_pool pool({.thread_count = 4});
  for (const std::size_t active : {1U, 3U, 2U, 4U, 1U}) {
    pool.set_active(active);
    constexpr int job_count = 200;
    std::latch done(job_count);
    std::vector<noting_job> jobs(job_count);
    for (noting_job& each : jobs) {
      each.done = &done;
      pool.post(each);
    }
    done.wait();
    for (const noting_job& each : jobs) EXPECT_LT(each.index, active);
  }
}

TEST(thread_pool, does_every_job_while_the_number_of_active_threads_changes) {
  leat::testing::for_each_seed(50, [](std::uint64_t seed) {
    std::mt19937_64 random(seed);
    const std::size_t threads = 1 + random() % 5;
    thread_pool pool({.thread_count = threads});
    constexpr int job_count = 300;
    std::latch done(job_count);
    std::vector<noting_job> jobs(job_count);
    for (noting_job& each : jobs) each.done = &done;
    for (noting_job& each : jobs) {
      if (random() % 4 == 0) pool.set_active(1 + random() % threads);
      if (random() % 16 == 0) std::this_thread::sleep_for(std::chrono::microseconds(random() % 100));
      pool.post(each);
    }
    done.wait();  // with however many take part now
    for (const noting_job& each : jobs) EXPECT_EQ(each.runs, 1);
  });
}

TEST(thread_pool, stops_with_threads_that_take_no_part) {
  for (const auto mode : {thread_pool::stop_mode::drain, thread_pool::stop_mode::drop}) {
    thread_pool pool({.thread_count = 3});
    pool.set_active(1);
    std::latch done(20);
    std::vector<noting_job> jobs(20);
    for (noting_job& each : jobs) {
      each.done = &done;
      pool.post(each);
    }
    pool.stop(mode);
    done.wait();
    for (const noting_job& each : jobs) EXPECT_EQ(each.runs + each.drops, 1);
  }
}

TEST(thread_pool, counts_jobs_time_and_occupancy) {
  thread_pool pool({.thread_count = 1, .name = "test"});
  blocking_job first;
  pool.post(first);
  first.started.wait();
  std::latch done(5);
  std::array<noting_job, 5> jobs;
  for (auto& one : jobs) {
    one.done = &done;
    pool.post(one);
  }
  EXPECT_EQ(pool.count().queued, 5U);
  first.release.count_down();
  done.wait();
  pool.stop(thread_pool::stop_mode::drain);
  const auto all = pool.count();
  EXPECT_EQ(all.job_count, 6U);
  EXPECT_EQ(all.queued, 0U);
  EXPECT_EQ(all.queued_max, 5U);
  EXPECT_GT(all.busy_ns, 0U);
  EXPECT_GT(all.queue_wait_ns, 0U);
  EXPECT_GT(pool.count_threads().front().cpu_ns, 0U);
}

// Many posters, jobs that repost themselves, and a stop at any moment: every job is run or dropped, exactly once.
TEST(thread_pool, runs_or_drops_every_job_exactly_once_whenever_it_is_stopped) {
  struct counted_job final : job {
    void run(worker_context&) noexcept override { ++runs; }
    void drop() noexcept override { ++drops; }
    std::atomic<int> runs{0};
    std::atomic<int> drops{0};
  };
  leat::testing::for_each_seed(30, [](std::uint64_t seed) {
    std::minstd_rand random(static_cast<unsigned>(seed));
    constexpr std::size_t poster_count = 3;
    constexpr std::size_t jobs_each = 200;
    std::vector<counted_job> jobs(poster_count * jobs_each);
    thread_pool pool({.thread_count = 1 + random() % 4, .name = "test"});
    std::vector<std::thread> posters;
    for (std::size_t p = 0; p < poster_count; ++p) {
      posters.emplace_back([&, p, own = std::minstd_rand(static_cast<unsigned>(seed * 7 + p))]() mutable {
        for (std::size_t i = 0; i < jobs_each;) {
          job_list bunch;
          for (std::size_t n = 1 + own() % 16; n != 0 && i < jobs_each; --n, ++i) {
            bunch.push_back(jobs[p * jobs_each + i]);
          }
          pool.post(std::move(bunch));
          if (own() % 4 == 0) std::this_thread::yield();
        }
      });
    }
    const auto mode = random() % 2 == 0 ? thread_pool::stop_mode::drain : thread_pool::stop_mode::drop;
    for (auto spins = random() % 20'000; spins != 0; --spins) std::atomic_signal_fence(std::memory_order_seq_cst);
    pool.stop(mode);
    for (auto& poster : posters) poster.join();
    for (const auto& one : jobs) ASSERT_EQ(one.runs + one.drops, 1);
    EXPECT_LE(pool.count().job_count, jobs.size());
  });
}

}  // namespace
}  // namespace leat::async
