// Threads that run on chosen cores alone.
#pragma once

#include <pthread.h>
#include <sched.h>

#include <atomic>
#include <cstdint>
#include <utility>
#include <vector>

namespace leat {

/// Each thread binds itself when it begins, so that its memory comes from their node, and the threads that it starts are bound with
/// it. One that cannot be runs where it may, and failure() says so. Thread: any.
class core_binding {
 public:
  explicit core_binding(std::vector<std::uint32_t> cores) : cores_(std::move(cores)) {}
  core_binding(const core_binding&) = delete;
  core_binding& operator=(const core_binding&) = delete;

  [[nodiscard]] const std::vector<std::uint32_t>& cores() const noexcept { return cores_; }

  void bind_this_thread() noexcept {
    cpu_set_t set;
    CPU_ZERO(&set);
    for (const std::uint32_t core : cores_) {
      if (core < CPU_SETSIZE) CPU_SET(core, &set);
    }
    const int failure = ::pthread_setaffinity_np(::pthread_self(), sizeof set, &set);
    if (failure != 0) failure_.store(failure, std::memory_order_relaxed);
  }
  /// The errno of a thread that could not be bound; 0: none.
  [[nodiscard]] int failure() const noexcept { return failure_.load(std::memory_order_relaxed); }

 private:
  const std::vector<std::uint32_t> cores_;
  std::atomic<int> failure_{0};
};

}  // namespace leat
