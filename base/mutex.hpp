// std::mutex and std::condition_variable under names that clang's -Wthread-safety can follow. Thin wrappers: the ones
// of Abseil raise false races under ThreadSanitizer when they come from a package built without it.
#pragma once

#include <absl/base/thread_annotations.h>

#include <chrono>
#include <condition_variable>
#include <mutex>

namespace leat {

/// A std::mutex; guard what it protects with ABSL_GUARDED_BY(mutex_). Never held across a co_await, nor while a
/// completion is completed.
class ABSL_LOCKABLE mutex {
 public:
  mutex() = default;
  mutex(const mutex&) = delete;
  mutex& operator=(const mutex&) = delete;

  void lock() ABSL_EXCLUSIVE_LOCK_FUNCTION() { mutex_.lock(); }
  void unlock() ABSL_UNLOCK_FUNCTION() { mutex_.unlock(); }
  [[nodiscard]] bool try_lock() ABSL_EXCLUSIVE_TRYLOCK_FUNCTION(true) { return mutex_.try_lock(); }

 private:
  friend class condition_variable;
  std::mutex mutex_;
};

/// Holds a mutex for the rest of the block. unlock() and lock() open a window in the middle of it.
class ABSL_SCOPED_LOCKABLE mutex_lock {
 public:
  explicit mutex_lock(mutex& m) ABSL_EXCLUSIVE_LOCK_FUNCTION(m) : mutex_(m) { mutex_.lock(); }
  ~mutex_lock() ABSL_UNLOCK_FUNCTION() {
    if (held_) mutex_.unlock();
  }
  mutex_lock(const mutex_lock&) = delete;
  mutex_lock& operator=(const mutex_lock&) = delete;

  void unlock() ABSL_UNLOCK_FUNCTION() {
    mutex_.unlock();
    held_ = false;
  }
  void lock() ABSL_EXCLUSIVE_LOCK_FUNCTION() {
    mutex_.lock();
    held_ = true;
  }

 private:
  mutex& mutex_;
  bool held_ = true;
};

/// A std::condition_variable for mutex. There is no overload with a predicate: the analysis cannot see into a
/// lambda, so the caller writes the loop, and spurious wake-ups are its business.
class condition_variable {
 public:
  void notify_one() noexcept { condition_.notify_one(); }
  void notify_all() noexcept { condition_.notify_all(); }

  /// Unlocks `m`, sleeps until notified (or spuriously) and locks `m` again.
  void wait(mutex& m) ABSL_EXCLUSIVE_LOCKS_REQUIRED(m) {
    std::unique_lock<std::mutex> lock(m.mutex_, std::adopt_lock);
    condition_.wait(lock);
    lock.release();
  }

  /// As wait(); returns false once `deadline` has passed.
  template <class Clock, class Duration>
  bool wait_until(mutex& m, const std::chrono::time_point<Clock, Duration>& deadline) ABSL_EXCLUSIVE_LOCKS_REQUIRED(m) {
    std::unique_lock<std::mutex> lock(m.mutex_, std::adopt_lock);
    const std::cv_status status = condition_.wait_until(lock, deadline);
    lock.release();
    return status == std::cv_status::no_timeout;
  }

 private:
  std::condition_variable condition_;
};

}  // namespace leat
