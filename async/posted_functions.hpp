// The functions that a part of a program has posted to loops and that have not run yet: they refer to the part, so it must not end before
// them.
#pragma once

#include "async/loop.hpp"
#include "base/mutex.hpp"

#include <boost/asio/execution.hpp>

#include <atomic>
#include <cassert>
#include <cstddef>
#include <utility>

namespace leat::async {

/// Posts functions, and counts them. Parts that post for one another share one. It ends before the loops, and none is left then.
/// Thread: any, where nothing else is said.
class posted_functions {
 public:
  posted_functions() = default;
  posted_functions(const posted_functions&) = delete;
  posted_functions& operator=(const posted_functions&) = delete;
  ~posted_functions() { assert_none(); }

  /// Runs `function` on the loop's thread, later, once. It does not throw.
  template <class Function>
  void post(const loop::executor_type& to, Function function) {
    left_.fetch_add(1, std::memory_order_relaxed);
    to.require(asio::execution::blocking.never).execute([this, posted = std::move(function)]() mutable noexcept {
      posted();
      has_run();
    });
  }

  /// Waits until all have run, and those that they have posted here. Thread: any but the loops'.
  void wait() noexcept {
    const mutex_lock lock(mutex_);
    while (left_.load(std::memory_order_relaxed) != 0) none_left_.wait(mutex_);
  }

  /// For the destructor of who has posted.
  void assert_none() const noexcept {
    assert(left_.load(std::memory_order_relaxed) == 0 && "a part ends before a function that it posted to a loop");
  }

 private:
  void has_run() noexcept {
    std::size_t left = left_.load(std::memory_order_relaxed);
    while (left > 1) {
      if (left_.compare_exchange_weak(left, left - 1, std::memory_order_acq_rel)) return;
    }
    // Under the lock: who waits may destroy this as soon as it sees that none is left.
    const mutex_lock lock(mutex_);
    if (left_.fetch_sub(1, std::memory_order_acq_rel) == 1) none_left_.notify_all();
  }

  std::atomic<std::size_t> left_{0};
  mutex mutex_;
  condition_variable none_left_;
};

}  // namespace leat::async
