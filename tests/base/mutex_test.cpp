#include "base/mutex.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

namespace leat::async {
namespace {

struct counter {
  mutex guard;
  condition_variable changed;
  int value ABSL_GUARDED_BY(guard) = 0;
};

TEST(mutex, excludes_other_threads) {
  counter shared;
  const auto count = [&shared] {
    for (int i = 0; i < 10'000; ++i) {
      const mutex_lock lock(shared.guard);
      ++shared.value;
    }
  };
  std::thread first(count);
  std::thread second(count);
  first.join();
  second.join();
  const mutex_lock lock(shared.guard);
  EXPECT_EQ(shared.value, 20'000);
}

TEST(mutex, lock_opens_a_window_in_the_middle_of_a_block) {
  mutex guard;
  mutex_lock lock(guard);
  lock.unlock();
  std::thread([&guard] {
    const bool taken = guard.try_lock();
    EXPECT_TRUE(taken);
    if (taken) guard.unlock();
  }).join();
  lock.lock();
}

TEST(condition_variable, hands_a_value_from_thread_to_thread) {
  counter shared;
  std::thread other([&shared] {
    mutex_lock lock(shared.guard);
    for (int next = 1; next < 200; next += 2) {
      while (shared.value != next) shared.changed.wait(shared.guard);
      ++shared.value;
      shared.changed.notify_one();
    }
  });
  {
    const mutex_lock lock(shared.guard);
    for (int next = 0; next < 200; next += 2) {
      while (shared.value != next) shared.changed.wait(shared.guard);
      ++shared.value;
      shared.changed.notify_one();
    }
  }
  other.join();
  const mutex_lock lock(shared.guard);
  EXPECT_EQ(shared.value, 200);
}

TEST(condition_variable, wait_until_says_that_the_deadline_passed) {
  counter shared;
  const mutex_lock lock(shared.guard);
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(2);
  while (shared.changed.wait_until(shared.guard, deadline)) {
  }
  EXPECT_GE(std::chrono::steady_clock::now(), deadline);
}

}  // namespace
}  // namespace leat::async
