// Batches stay on the host, in pinned memory, from which the trainer copies by DMA: to(device, non_blocking). No copy of the trainer's is
// known here, and it may still be queued when its batch ends. So memory is returned behind all that the GPUs were asked for by then:
//
//     trainer's streams   ─── copy from batch 7 ─── step 7 ─── ...
//     who ends the batch              record_all(passed)
//     thread leat-pin                         query(passed) ... query(passed) ─── memory of batch 7 is returned to its pool
#pragma once

#include "base/fork_guard.hpp"
#include "base/mutex.hpp"
#include "stages/batch/transfer.hpp"
#include "stages/device/device.hpp"
#include "stages/device/device_failure.hpp"
#include "stages/device/pinned_memory.hpp"

#include <chrono>
#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <span>
#include <thread>
#include <vector>

namespace leat::stages {

///   pinning    each lease once, when a batch first leaves in it; where that fails it stays pageable, which report() tells
///   threads    one thread pins, and returns memory. Who ends a batch records an event, so that what is put into streams later does not
///              count. A batch that was never handed out returns at once, without an event. The I/O thread makes no call to the device
///   captures   a batch that ends while a stream is captured breaks that capture. Its memory stays out, and an event is recorded again when
///              the next batch ends, or every 100 ms, which breaks what is captured then
///   the end    drain() waits for what the GPUs were asked for, and unpins. What a batch holds that outlives the loader is unpinned where
///              that batch ends; where the GPUs are not done then, by a thread that is made for it and that nobody joins
///   fork()     in the child no call is made
///   errors     the first call that fails ends the loader: nobody knows then who still reads. All memory stays pinned and mapped until the
///              process ends, and none is used again
class pinned_transfer final : public transfer, public std::enable_shared_from_this<pinned_transfer> {
 public:
  explicit pinned_transfer(std::shared_ptr<device_calls> calls);
  ~pinned_transfer() override;

  [[nodiscard]] bool pins() const noexcept override { return true; }
  void prepare(transfer_needs needs) override;
  void send(transfer_operation& operation) noexcept override ABSL_LOCKS_EXCLUDED(mutex_);
  void give_back(io::lease memory, bool was_handed_out) noexcept override ABSL_LOCKS_EXCLUDED(mutex_);
  void drain() noexcept override ABSL_LOCKS_EXCLUDED(mutex_);
  [[nodiscard]] device_report report() const override;

 private:
  /// Where leases lie that have been seen.
  struct place {
    std::span<std::byte> memory;
    bool pinned = false;
    bool lent = false;  ///< a batch is there that was handed over, or copies from it may be queued
  };
  struct returning {
    io::lease memory;
    device_event passed = device_event::none;  ///< none: not recorded yet
    bool in_capture = false;                   ///< for that reason
  };

  [[nodiscard]] place* find(const io::lease& memory) noexcept ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void run() noexcept ABSL_LOCKS_EXCLUDED(mutex_);
  void pin_and_hand_over(transfer_operation& operation) noexcept ABSL_LOCKS_EXCLUDED(mutex_);
  bool take_returned() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool return_passed() noexcept ABSL_LOCKS_EXCLUDED(mutex_);
  [[nodiscard]] failed_call record(returning& each) noexcept ABSL_LOCKS_EXCLUDED(recording_, events_mutex_);
  [[nodiscard]] bool wait_until_passed(returning& each) noexcept;
  void return_later(returning its) noexcept;
  void return_to_pool(returning& each) noexcept ABSL_LOCKS_EXCLUDED(mutex_);
  void free_events() noexcept ABSL_LOCKS_EXCLUDED(events_mutex_);
  void unpin_what_is_not_lent() noexcept ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void fail(const failed_call& failed) noexcept;

  const fork_guard forked_;
  const std::shared_ptr<device_calls> calls_;
  device_failure failure_;
  pinned_memory pinned_;

  // By prepare(), for good.
  std::function<void(std::exception_ptr)> tell_loader_;
  std::shared_ptr<const void> host_memory_;

  // Of the thread, and of drain() after it.
  std::vector<returning> in_flight_;                       // in the order in which they came back
  std::chrono::steady_clock::time_point record_again_at_;  // those that have no event; not before

  mutex recording_;  // record_all() is one thread's at a time; CUDA may make it wait, so that nobody else needs this
  mutex events_mutex_;
  std::vector<device_event> free_events_ ABSL_GUARDED_BY(events_mutex_);

  mutable mutex mutex_;
  condition_variable something_to_do_;
  std::vector<place> places_ ABSL_GUARDED_BY(mutex_);
  std::vector<transfer_operation*> to_pin_ ABSL_GUARDED_BY(mutex_);
  std::vector<returning> returned_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  bool drained_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace leat::stages
