// fork() copies the memory of a loader or reader but not its threads: in the child it would wait for ever. This notices.
#pragma once

#include <pthread.h>

#include <atomic>
#include <cstdint>

namespace leat {

/// Remembers in which process it was made. Costs one relaxed load to ask.
class fork_guard {
 public:
  fork_guard() noexcept : generation_(current().load(std::memory_order_relaxed)) {}
  [[nodiscard]] bool in_child() const noexcept { return current().load(std::memory_order_relaxed) != generation_; }

 private:
  static std::atomic<std::uint32_t>& current() noexcept {
    static std::atomic<std::uint32_t> generation{0};
    static const int registered =
        ::pthread_atfork(nullptr, nullptr, [] { generation.fetch_add(1, std::memory_order_relaxed); });
    static_cast<void>(registered);
    return generation;
  }

  std::uint32_t generation_;
};

}  // namespace leat
