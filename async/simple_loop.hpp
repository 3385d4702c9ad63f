// The run loop that waits on a condition variable: for threads without a ring, and for tests.
#pragma once

#include "async/loop.hpp"
#include "base/mutex.hpp"
#include "base/relaxed_counter.hpp"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace leat::async {

/// A complete run loop. One thread at a time runs it; get_executor(), stop() and posting are for any thread.
// Not final: asio::make_work_guard() finds out by deriving from it whether it is a context.
class simple_loop : public loop {
 public:
  simple_loop() = default;
  ~simple_loop() override { retire(); }

  /// Runs until stop(), or until nothing is queued and no work is outstanding, as io_context::run() does. A thread
  /// that is to stay keeps a work guard (asio::make_work_guard(loop)).
  ///   returns   how many functions ran
  std::size_t run() { return run_until_or_forever(std::nullopt); }

  /// As run(), and returns when `deadline` has passed.
  std::size_t run_until(std::chrono::steady_clock::time_point deadline) { return run_until_or_forever(deadline); }
  std::size_t run_for(std::chrono::steady_clock::duration time) {
    return run_until(std::chrono::steady_clock::now() + time);
  }

  /// Makes run() return after the functions of its present turn. Any thread; lasts until restart().
  void stop() noexcept {
    const auto inside = visit();
    stopped_.store(true);
    interrupt();
  }
  [[nodiscard]] bool stopped() const noexcept { return stopped_.load(); }
  void restart() noexcept { stopped_.store(false); }
  /// Time awake in run(), up to the last sleep; and asleep. Thread: any.
  [[nodiscard]] std::uint64_t awake_ns() const noexcept { return awake_ns_.get(); }
  [[nodiscard]] std::uint64_t slept_ns() const noexcept { return slept_ns_.get(); }

 private:
  void wake() noexcept override;
  std::size_t run_until_or_forever(std::optional<std::chrono::steady_clock::time_point> deadline);

  std::atomic<bool> stopped_{false};
  relaxed_counter awake_ns_;
  relaxed_counter slept_ns_;
  mutex mutex_;
  condition_variable woken_condition_;
  bool woken_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace leat::async
