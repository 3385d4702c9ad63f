// Copies to a device that are queued. When a copy has read its host memory, that memory returns to its pool. ready() completes when the
// copy has arrived.
#pragma once

#include "base/intrusive_list.hpp"
#include "base/mutex.hpp"
#include "io/arena/lease_pool.hpp"
#include "stages/device/device.hpp"
#include "stages/device/device_failure.hpp"

#include <leat/completion.hpp>
#include <leat/stream.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <list>
#include <optional>
#include <span>
#include <thread>
#include <vector>

namespace leat::stages {

/// One copy: its event, and the host memory that it reads.
struct copy_in_flight : list_hook {
  device_event arrived = device_event::none;
  std::uint64_t number = 0;  ///< 1, 2, 3 ... in the order of their stream
  io::lease host;
  int users = 0;  ///< the list of those in flight, the batch, and each who waits for it
};

/// All copies are in one stream, which executes them in order. Behind each copy the stream writes the copy's number to
/// a word of pinned memory, which says that the host memory has been read. Operations that read host memory themselves
/// write it behind them, in their own stream: the batches of one loader either all have such operations or none has. Where
/// the device cannot write words, a thread queries the copy's event. That thread also waits for copies while the loader
/// lacks host memory or somebody awaits ready(): the I/O thread makes no call to the device. Refers to its arguments.
class copies_in_flight {
 public:
  copies_in_flight(device_calls& calls, device_failure& failure) : calls_(calls), failure_(failure) {}
  copies_in_flight(const copies_in_flight&) = delete;
  copies_in_flight& operator=(const copies_in_flight&) = delete;

  /// Before anything else: `count` copies at a time without a call that takes something. Throws error.
  void prepare(std::size_t count);
  /// Waits for all that `streams` have to do: copies, and operations where they have a stream. After a failure it waits
  /// for none, and keeps what they may still read. Nothing is queued any more.
  void end(std::span<const stream> streams) noexcept;
  /// No batch is left.
  void free_all() noexcept;

  // --- who queues: one thread at a time --------------------------------------------------------------------------------

  /// For the next copy. Throws error.
  [[nodiscard]] copy_in_flight& take();
  /// Nothing of it was queued.
  void put_back(copy_in_flight& copy) noexcept { leave(copy); }
  /// Behind the copy: its host memory has been read.
  [[nodiscard]] failed_call mark_read(const copy_in_flight& copy, stream in) noexcept;
  /// It is queued. Its batch holds it until leave().
  void add(copy_in_flight& copy, io::lease host) noexcept ABSL_LOCKS_EXCLUDED(mutex_);

  // --- the I/O thread -----------------------------------------------------------------------------------------------------

  /// Returns host memory that has been read to its pool, now or soon. Never waits, and makes no call to the device.
  void collect() noexcept;
  /// Whether somebody waits for such memory from now on.
  void starve(bool waiting) noexcept ABSL_LOCKS_EXCLUDED(mutex_);

  // --- any thread ---------------------------------------------------------------------------------------------------------

  /// The batch has ended.
  void leave(copy_in_flight& copy) noexcept ABSL_LOCKS_EXCLUDED(mutex_);
  /// Completes when the copy and the operations behind it have been executed, or with the failure after which nobody can tell.
  void ready(copy_in_flight& copy, completion<void(std::exception_ptr)> done) ABSL_LOCKS_EXCLUDED(mutex_);
  /// Completes all ready() with the failure that was noted. Not while the mutex is held.
  void failure_noted() noexcept ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct waiter {
    copy_in_flight* copy = nullptr;
    bool listed = true;  ///< nobody has taken it up yet
    completion<void(std::exception_ptr)> done;
  };
  using wait_list = std::list<waiter>;

  [[nodiscard]] failed_call add_copy() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Failures are noted with the mutex free: see failure_noted().
  void leave_locked(copy_in_flight& copy) noexcept ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  [[nodiscard]] std::optional<std::exception_ptr> outcome_of(const copy_in_flight& copy) const noexcept
      ABSL_LOCKS_EXCLUDED(mutex_);
  [[nodiscard]] bool await_arrival(copy_in_flight& copy, completion<void(std::exception_ptr)>& done)
      ABSL_LOCKS_EXCLUDED(mutex_);
  void cancel_ready(wait_list::iterator which) noexcept ABSL_LOCKS_EXCLUDED(mutex_);
  void bring_home(std::uint64_t up_to) noexcept ABSL_LOCKS_EXCLUDED(mutex_);
  void complete_waits(std::uint64_t up_to, const std::exception_ptr& why) noexcept ABSL_LOCKS_EXCLUDED(mutex_);
  void watch() noexcept ABSL_LOCKS_EXCLUDED(mutex_);
  /// What the watching thread has to find out about next; null where there is nothing.
  [[nodiscard]] copy_in_flight* next_to_watch() const noexcept ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  device_calls& calls_;
  device_failure& failure_;
  const std::atomic<std::uint64_t>* read_up_to_ =
      nullptr;  // by prepare(), for good; null where the device cannot write words

  mutable mutex mutex_;
  std::deque<copy_in_flight> copies_ ABSL_GUARDED_BY(mutex_);
  std::vector<copy_in_flight*> idle_ ABSL_GUARDED_BY(mutex_);
  intrusive_list<copy_in_flight> reading_ ABSL_GUARDED_BY(mutex_);  // oldest first; their host memory is not home
  std::uint64_t queued_ ABSL_GUARDED_BY(mutex_) = 0;                // numbers given
  std::uint64_t arrived_ ABSL_GUARDED_BY(mutex_) = 0;               // the greatest number that is known to have
  wait_list waits_ ABSL_GUARDED_BY(mutex_);
  bool starving_ ABSL_GUARDED_BY(mutex_) = false;
  bool asked_ ABSL_GUARDED_BY(mutex_) = false;  // by collect(), where there is no word
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
  condition_variable something_to_watch_;
  std::thread watcher_;
};

}  // namespace leat::stages
