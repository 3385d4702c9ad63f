// Counts the work outstanding on an execution context, and those who may still be touching the context while its owner
// is about to destroy it.
#pragma once

#include <atomic>
#include <cstdint>
#include <thread>

namespace leat::async {

/// The count behind outstanding_work.tracked. Any thread.
///
/// The last thing that a context waits for, a post or the end of the last work, may end it: then its owner destroys it
/// while the thread that did that last thing is still on its way out. Such a thread holds a visit, and the destructor
/// waits for visitors.
class outstanding_work {
 public:
  class visit {
   public:
    explicit visit(outstanding_work& visited) noexcept : visited_(visited) { visited_.visitors_.fetch_add(1); }
    ~visit() { visited_.visitors_.fetch_sub(1); }
    visit(const visit&) = delete;
    visit& operator=(const visit&) = delete;

   private:
    outstanding_work& visited_;
  };

  [[nodiscard]] bool any() const noexcept { return count_.load() != 0; }

  void started() noexcept { count_.fetch_add(1, std::memory_order_relaxed); }

  /// Calls `wake()` if that was the last.
  template <class Wake>
  void finished(const Wake& wake) noexcept {
    // Whoever is not the last touches nothing afterwards, and need not be waited for.
    std::int64_t before = count_.load();
    while (before > 1) {
      if (count_.compare_exchange_weak(before, before - 1)) return;
    }
    const visit inside(*this);
    if (count_.fetch_sub(1) == 1) wake();
  }

  /// For the destructor of the context: waits until nobody is inside any more. They are on their last instructions.
  void wait_for_visitors() const noexcept {
    while (visitors_.load() != 0) std::this_thread::yield();
  }

 private:
  std::atomic<std::int64_t> count_{0};
  std::atomic<std::uint32_t> visitors_{0};
};

}  // namespace leat::async
