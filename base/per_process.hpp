// What each process has for itself: in a child of fork() the threads of its parent's are not there, nor are its locks to be trusted.
#pragma once

#include "base/fork_guard.hpp"

#include <atomic>
#include <memory>
#include <utility>

namespace leat {

/// A T that is made when it is first asked for, and anew in a child of fork(). There the parent's is left as it is: its memory goes with
/// the process. Thread: any.
template <class T>
class per_process {
 public:
  constexpr per_process() noexcept = default;
  per_process(const per_process&) = delete;
  per_process& operator=(const per_process&) = delete;
  ~per_process() {
    held* const there = held_.load(std::memory_order_acquire);
    if (there != nullptr && !there->forked.in_child()) delete there;
  }

  /// That of this process.
  ///   make   (const T* of_parent), null in no child, to std::unique_ptr<T>; where two threads ask at once, one of theirs is dropped
  template <class Make>
  [[nodiscard]] T& get(const Make& make) {
    held* there = held_.load(std::memory_order_acquire);
    if (there != nullptr && !there->forked.in_child()) return *there->value;
    const T* const of_parent = there == nullptr ? nullptr : there->value.get();
    auto made = std::make_unique<held>(make(of_parent));
    if (!held_.compare_exchange_strong(there, made.get(), std::memory_order_acq_rel)) return *there->value;
    return *made.release()->value;
  }

 private:
  struct held {
    explicit held(std::unique_ptr<T> made) : value(std::move(made)) {}
    const std::unique_ptr<T> value;
    const fork_guard forked;
  };
  std::atomic<held*> held_{nullptr};
};

}  // namespace leat
