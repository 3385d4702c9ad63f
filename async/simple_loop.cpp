#include "async/simple_loop.hpp"

#include "base/clock.hpp"

namespace leat::async {

void simple_loop::wake() noexcept {
  // Notified under the lock: the condition variable must not be destroyed between the unlock and the notify.
  const mutex_lock lock(mutex_);
  woken_ = true;
  woken_condition_.notify_one();
}

std::size_t simple_loop::run_until_or_forever(std::optional<std::chrono::steady_clock::time_point> deadline) {
  const auto bound = bind_to_this_thread();
  std::size_t count = 0;
  std::uint64_t woke_ns = now_ns();
  while (!stopped_.load()) {
    count += run_posted();
    if (deadline && std::chrono::steady_clock::now() >= *deadline) break;
    if (!prepare_sleep()) continue;
    // Asked after prepare_sleep(): whoever stops us or ends the last work later will find us asleep, and wake us.
    if (stopped_.load() || !has_outstanding_work()) {
      cancel_sleep();
      // The end of the last work may have been preceded by a post that came in just now.
      const std::size_t last = stopped_.load() ? 0 : run_posted();
      count += last;
      if (last == 0) break;
      continue;
    }
    const std::uint64_t from_ns = now_ns();
    awake_ns_.add(from_ns - woke_ns);
    {
      const mutex_lock lock(mutex_);
      while (!woken_) {
        if (!deadline) {
          woken_condition_.wait(mutex_);
        } else if (!woken_condition_.wait_until(mutex_, *deadline)) {
          break;
        }
      }
      woken_ = false;
    }
    woke_ns = now_ns();
    slept_ns_.add(woke_ns - from_ns);
    cancel_sleep();
  }
  return count;
}

}  // namespace leat::async
