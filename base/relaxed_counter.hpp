// A counter that one thread writes and any reads.
#pragma once

#include <atomic>
#include <cstdint>

namespace leat {

/// Written by one thread, or under a lock; read by any. No locked instruction is needed to add.
class relaxed_counter {
 public:
  void add(std::uint64_t n) noexcept { value_.store(get() + n, std::memory_order_relaxed); }
  void set(std::uint64_t n) noexcept { value_.store(n, std::memory_order_relaxed); }
  void subtract(std::uint64_t n) noexcept { value_.store(get() - n, std::memory_order_relaxed); }
  void raise_to(std::uint64_t n) noexcept {
    if (n > get()) set(n);
  }
  [[nodiscard]] std::uint64_t get() const noexcept { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> value_{0};
};

}  // namespace leat
