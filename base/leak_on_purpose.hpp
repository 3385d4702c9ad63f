// Keeps memory that the kernel may still write to, at an unknown time, until the process ends.
#pragma once

#include <atomic>
#include <utility>

namespace leat {

/// Takes `what`, and never destroys it. Thread: any.
template <class T>
void leak_on_purpose(T what) {
  struct kept {
    T what;
    kept* before;
  };
  // In a list, so that LeakSanitizer finds a pointer to it.
  static std::atomic<kept*> all{nullptr};
  auto* const keep = new kept{std::move(what), all.load(std::memory_order_relaxed)};
  while (!all.compare_exchange_weak(keep->before, keep, std::memory_order_release)) {
  }
}

}  // namespace leat
