// The first call to a device that failed. After it no call is made any more, and nothing that the device may be using is reused, freed or
// unpinned until the process ends: handles may be invalid (cudaDeviceReset), and work that was queued before may still run.
#pragma once

#include "base/mutex.hpp"
#include "io/arena/lease_pool.hpp"
#include "stages/device/device.hpp"

#include <leat/error.hpp>

#include <atomic>
#include <exception>
#include <functional>
#include <memory>

namespace leat::stages {

/// Refers to the table of calls, for its words. Thread: any.
class device_failure {
 public:
  explicit device_failure(const device_calls& calls) : calls_(calls) {}

  /// Called once, by who notes the first failure, with nothing locked. Set before the first call.
  void on_first(std::function<void()> callback) { on_first_ = std::move(callback); }

  [[nodiscard]] bool happened() const noexcept { return happened_.load(std::memory_order_acquire); }
  /// The first; null where there is none.
  [[nodiscard]] std::exception_ptr why() const noexcept ABSL_LOCKS_EXCLUDED(mutex_);
  /// Returns the first, which this may be.
  std::exception_ptr note(const failed_call& call) noexcept;
  std::exception_ptr note(std::exception_ptr why) noexcept ABSL_LOCKS_EXCLUDED(mutex_);

  [[nodiscard]] error describe(const failed_call& call) const;

 private:
  const device_calls& calls_;
  std::function<void()> on_first_;
  std::atomic<bool> happened_{false};
  mutable mutex mutex_;
  std::exception_ptr why_ ABSL_GUARDED_BY(mutex_);
};

/// Until the process ends. Thread: any.
void keep_for_good(io::lease memory);
void keep_for_good(std::shared_ptr<const void> what);

}  // namespace leat::stages
