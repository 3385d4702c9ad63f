// Which of the host's memory is pinned, so that copies from it go by DMA, beside the CPU.
#pragma once

#include "base/mutex.hpp"
#include "io/arena/lease_pool.hpp"
#include "stages/device/device.hpp"

#include <leat/stats.hpp>

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace leat::stages {

/// Leases are pinned whole, as they are copied whole: a copy must not cross the border of two pinned ranges, which CUDA refuses. A pool
/// hands out the same few again and again, so that this happens once for each of them. Refers to the table of calls.
class pinned_memory {
 public:
  explicit pinned_memory(device_calls& calls) : calls_(calls) {}

  /// `done` is called for each lease that is seen for the first time, when it is pinned or known not to be.
  void prepare(std::function<void(const io::lease&)> done) { done_ = std::move(done); }

  /// Returns whether the memory is pinned, after pinning it if it was never seen before. That takes milliseconds.
  /// Thread: one at a time; no I/O thread. Throws std::bad_alloc.
  [[nodiscard]] bool pin(const io::lease& memory);
  /// Nothing is copied any more: from this lease's memory, or from any.
  void unpin(std::span<std::byte> memory) noexcept;
  void unpin_all() noexcept;

  /// Thread: any.
  [[nodiscard]] fallback report() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  device_calls& calls_;
  std::function<void(const io::lease&)> done_;
  std::vector<std::span<std::byte>> pinned_;
  std::vector<std::span<std::byte>> pageable_;

  mutable mutex mutex_;
  bool some_pinned_ ABSL_GUARDED_BY(mutex_) = false;  // also when it is unpinned again
  std::string why_pageable_ ABSL_GUARDED_BY(mutex_);  // empty where none is
};

}  // namespace leat::stages
