// Ends a test that hangs, saying where. A hang in a loader is a bug like any other: it must fail in seconds, with a name,
// and not as the whole suite's timeout.
#pragma once

#include "tests/support/seeds.hpp"

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

namespace leat::testing {

class watchdog {
 public:
  /// LEAT_WATCHDOG_S lengthens it, for debuggers.
  explicit watchdog(std::string what, std::chrono::seconds limit = std::chrono::seconds(60))
      : what_(std::move(what)),
        limit_(number_from_environment<std::int64_t>("LEAT_WATCHDOG_S", limit.count())),
        thread_([this] { watch(); }) {}
  watchdog(const watchdog&) = delete;
  watchdog& operator=(const watchdog&) = delete;
  ~watchdog() {
    {
      const std::lock_guard lock(mutex_);
      done_ = true;
    }
    changed_.notify_one();
    thread_.join();
  }

  /// Begins another span of time; `where` is what is shown if it is too long.
  void step(std::string where) {
    {
      const std::lock_guard lock(mutex_);
      where_ = std::move(where);
      ++steps_;
    }
    changed_.notify_one();
  }

 private:
  void watch() {
    std::unique_lock lock(mutex_);
    while (!done_) {
      const std::uint64_t before = steps_;
      const bool moved = changed_.wait_for(lock, limit_, [&] { return done_ || steps_ != before; });
      if (moved) continue;
      std::fprintf(stderr, "watchdog: %s: nothing for %lld s%s%s\n", what_.c_str(),
                   static_cast<long long>(limit_.count()), where_.empty() ? "" : ", in ", where_.c_str());
      std::abort();
    }
  }

  const std::string what_;
  const std::chrono::seconds limit_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::string where_;
  std::uint64_t steps_ = 0;
  bool done_ = false;
  std::thread thread_;
};

}  // namespace leat::testing
