// Batches to a device, and nobody waits but streams for one another. Per batch, into one stream of the loader's own:
//
//     side stream       wait(consumed) ─ copy ─ finish ─ record(arrived) ────── wait(consumed) ─ copy ─ finish ─ record ...
//                                                            │                       ▲
//     consumer's stream                                  wait(arrived) ─ step ─ record(consumed)
//
//   finish     the kernel that makes pictures of the pixels that were copied, where there are any
//   arrived    one event per copy. wait_on() has the consumer's stream wait for it. The host memory goes home when it has
//              fired, which is asked when such memory is wanted, and waited for only when there is none left
//   consumed   one event per block of device memory and stream that read it, recorded when the batch ends. The block goes
//              back to the pool at that moment, since the next copy into it waits on the device
#pragma once

#include "base/fork_guard.hpp"
#include "base/intrusive_list.hpp"
#include "base/mutex.hpp"
#include "stages/device/device.hpp"
#include "stages/transfer.hpp"

#include <leat/error.hpp>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace leat::stages {

struct device_transfer_options {
  std::uint32_t batches = 3;  ///< blocks of device memory
  std::size_t bytes_max = 0;  ///< of them together; 0 is no bound
};

/// The device's half of the line. Copies are put into the side stream in the batches' turns: a batch that got ahead of
/// its turn would take the block that the oldest one needs.
///
///   memory     blocks, events and the stream are made by prepare(); nothing is allocated on the device afterwards. A third
///              stream that reads a batch has an event made for its block, once
///   pinning    host memory is pinned where a batch first leaves from it; where that fails it stays pageable, which
///              report() tells
///   threads    CUDA's queues are filled on the I/O thread, and asked there whether a copy has passed. What takes its time is
///              done by two other threads, each started when first needed. The sender fills the queues of batches whose memory
///              is not pinned: pinning takes milliseconds, and a copy from pageable memory may wait for its stream, that is
///              for the trainer. The watcher waits for copies while somebody starves for host memory, or awaits ready()
///   consumers  streams of the same device. A per-thread default stream is the thread's that named it: where the batch ends on
///              another one, the device's default stream is recorded in its place, which waits for all of those. Streams that
///              are being captured can neither wait for a batch nor end one
///   fork()     in the child nothing of this is there: batches from before can be destroyed, and whatever else they are
///              asked for is a usage error
///   errors     the first failing call, in words, is every later batch's failure. Whether a copy has passed when asking for
///              it was refused nobody knows: its host memory stays out of use until the side stream has ended
class device_transfer final : public transfer, public std::enable_shared_from_this<device_transfer> {
 public:
  device_transfer(std::shared_ptr<device_calls> calls, const device_transfer_options& options);
  /// Waits for what consumers have put into their streams: their memory goes.
  ~device_transfer() override;

  [[nodiscard]] bool finishes() const noexcept override { return true; }
  [[nodiscard]] bool pins() const noexcept override { return true; }
  /// Throws error{errc::limit}: bytes_max has no room for one batch, or the device none for all of them; error{errc::device}.
  void prepare(transfer_needs needs) override;
  void send(transfer_operation& operation) noexcept override;
  void go_on() noexcept override;
  void collect() noexcept override;
  void starve(bool waiting) override;
  void give_back(io::lease memory) noexcept override { const io::lease home = std::move(memory); }
  void drain() noexcept override;
  [[nodiscard]] device_report report() const override;

 private:
  class landed_batch;

  /// A copy: its event, and the host memory it reads.
  struct flight : list_hook {
    device_event arrived = device_event::none;
    io::lease host;
    bool passed = true;
    bool stuck = false;          ///< no event tells when `host` is no longer read: it stays until drain()
    int users = 0;               ///< the list of those in flight, the batch, and each who waits for it
    std::exception_ptr failure;  ///< why it is not known to have arrived, though nobody waits for it any more
  };
  /// A stream that reads a batch, and the thread that named it.
  struct consumer {
    stream which;
    std::uint64_t named_by = 0;  ///< thread_number()
  };
  /// A block of device memory: what is made of a batch, then the batch.
  struct block {
    std::byte* memory = nullptr;
    std::vector<device_event> consumed;  ///< one for each stream of a consumer; more are made where they are needed
    std::size_t recorded = 0;            ///< of those, by the last batch that lay here
    bool in_doubt = false;               ///< nobody knows until when it is used: not for another batch, and not freed
  };
  struct waiter {
    flight* copy = nullptr;
    bool listed = true;  ///< nobody has taken it up yet
    completion<void(std::exception_ptr)> done;
  };
  using wait_list = std::list<waiter>;
  /// What is let go of once the mutex is free: never more than one copy's, so that nothing has to be allocated for it.
  struct released {
    io::lease memory;
    wait_list done;
    std::exception_ptr failure;
    bool tell_loader = false;
  };
  /// A call that failed; its words are made when somebody has to hear them.
  struct failed_call {
    device_status status = device_ok;
    const char* name = "";
    std::optional<std::size_t> bytes;
  };
  /// What became of recording that its consumers have done with a batch.
  struct end_of_batch {
    failed_call failed;
    bool captured = false;
    std::exception_ptr thrown;
  };
  /// A batch between its turn and its hand-over: what filling the side stream's queue needs, which is done without the mutex
  /// by one thread at a time.
  struct shipment {
    transfer_operation* operation = nullptr;
    block* to = nullptr;
    flight* copy = nullptr;
    std::unique_ptr<landed_batch> landed;
    stream side;
    std::size_t finished_bytes = 0;
    bool pinned = false;                   ///< its host memory
    bool pageable = false;                 ///< known to be
    std::optional<device_status> pinning;  ///< what it came to, where it was tried now
    bool may_be_read = false;              ///< the copy is in the queue
    failed_call failed;
  };

  void take_memory(std::size_t block_bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void pump(bool may_wait) noexcept ABSL_LOCKS_EXCLUDED(mutex_);
  [[nodiscard]] bool next_can_go() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  [[nodiscard]] bool leave_to_sender() noexcept ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  [[nodiscard]] shipment take_next() noexcept ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ship(shipment& next) noexcept ABSL_LOCKS_EXCLUDED(mutex_);
  [[nodiscard]] failed_call queue(shipment& next) noexcept ABSL_LOCKS_EXCLUDED(mutex_);
  [[nodiscard]] failed_call finish(const shipment& next) noexcept ABSL_LOCKS_EXCLUDED(mutex_);
  void settle(shipment& next, released& home) noexcept ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void note_pinning(shipment& next) noexcept ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void send_what_takes_time() noexcept ABSL_LOCKS_EXCLUDED(mutex_);
  [[nodiscard]] flight& take_flight() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void add_flight() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void leave(flight& copy) noexcept ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void pass_oldest(released& home) noexcept ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void settle_oldest(device_status status, const char* call, released& home) noexcept
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void let_go(released& home) noexcept ABSL_LOCKS_EXCLUDED(mutex_);

  void check_consumer(stream consumer, std::string_view call) const;
  void wait_on(flight& copy, stream consumer) ABSL_LOCKS_EXCLUDED(mutex_);
  [[nodiscard]] stream as_seen_here(const consumer& from) const noexcept;
  [[nodiscard]] end_of_batch record_all(block& on, std::span<const consumer> consumers) noexcept
      ABSL_LOCKS_EXCLUDED(mutex_);
  [[nodiscard]] failed_call add_consumed(block& to);
  [[nodiscard]] io::lease take_stuck() noexcept;
  [[nodiscard]] std::exception_ptr release(std::uint32_t index, flight& copy,
                                           std::span<const consumer> consumers) noexcept ABSL_LOCKS_EXCLUDED(mutex_);
  void ready(flight& copy, completion<void(std::exception_ptr)> done) ABSL_LOCKS_EXCLUDED(mutex_);
  void cancel_ready(wait_list::iterator which) noexcept ABSL_LOCKS_EXCLUDED(mutex_);

  void start_watching() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void watch() noexcept ABSL_LOCKS_EXCLUDED(mutex_);

  [[nodiscard]] error describe(const failed_call& call) const;
  void check(device_status status, const char* call, std::optional<std::size_t> bytes = {})
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::exception_ptr fail(const failed_call& call) noexcept ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::exception_ptr fail_for_capture() noexcept ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const fork_guard forked_;
  const std::shared_ptr<device_calls> calls_;
  const device_transfer_options options_;

  mutable mutex mutex_;
  std::function<void()> wake_ ABSL_GUARDED_BY(mutex_);
  std::function<void(std::exception_ptr)> failed_;      // by prepare(), for good
  std::function<void(const io::lease&)> pinning_done_;  // likewise
  stream side_ ABSL_GUARDED_BY(mutex_);
  bool prepared_ ABSL_GUARDED_BY(mutex_) = false;
  bool drained_ ABSL_GUARDED_BY(mutex_) = false;
  std::exception_ptr failure_ ABSL_GUARDED_BY(mutex_);
  std::size_t block_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  std::size_t finished_bytes_ ABSL_GUARDED_BY(mutex_) = 0;  // of a block, at its front
  std::vector<block> blocks_ ABSL_GUARDED_BY(mutex_);
  bool lost_ ABSL_GUARDED_BY(mutex_) = false;             // nothing runs there any more
  bool copies_in_doubt_ ABSL_GUARDED_BY(mutex_) = false;  // nobody knows whether the side stream has ended
  // First in, first out: who has waited longest is the likeliest to have been passed by its consumer.
  std::vector<std::uint32_t> free_blocks_ ABSL_GUARDED_BY(mutex_);
  std::vector<transfer_operation*> pending_ ABSL_GUARDED_BY(mutex_);  // by turn
  std::uint64_t next_turn_ ABSL_GUARDED_BY(mutex_) = 0;
  bool shipping_ ABSL_GUARDED_BY(mutex_) = false;  // somebody is filling the side stream's queue

  std::deque<flight> flights_ ABSL_GUARDED_BY(mutex_);
  std::vector<flight*> idle_flights_ ABSL_GUARDED_BY(mutex_);
  intrusive_list<flight> in_flight_ ABSL_GUARDED_BY(mutex_);  // oldest first: one stream passes them in this order
  std::size_t handing_over_ ABSL_GUARDED_BY(mutex_) = 0;      // batches between their turn and their hand-over
  condition_variable handed_over_;

  std::vector<std::span<std::byte>> pinned_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::span<std::byte>> pageable_ ABSL_GUARDED_BY(mutex_);
  bool has_pinned_ ABSL_GUARDED_BY(mutex_) = false;  // also when it is unpinned again
  std::string why_pageable_ ABSL_GUARDED_BY(mutex_);

  bool starving_ ABSL_GUARDED_BY(mutex_) = false;
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
  wait_list waits_ ABSL_GUARDED_BY(mutex_);
  condition_variable something_to_watch_;
  std::thread watcher_;  // both started under the mutex, joined by drain()
  condition_variable something_to_send_;
  std::thread sender_;
};

}  // namespace leat::stages
