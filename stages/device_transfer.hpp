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

#include "async/fork_guard.hpp"
#include "async/mutex.hpp"
#include "stages/device.hpp"
#include "stages/transfer.hpp"

#include <leat/error.hpp>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace leat::stages {

/// For tests, which show what each wait is there for by leaving it out.
struct waits_left_out {
  bool copy_for_consumer = false;  ///< the copy does not wait for who reads what it overwrites
  bool consumer_for_copy = false;  ///< wait_on() does nothing
  bool host_for_copy = false;      ///< host memory goes home before its copy has passed
};

struct device_transfer_options {
  std::uint32_t batches = 3;  ///< blocks of device memory
  std::size_t bytes_max = 0;  ///< of them together; 0 is no bound
  waits_left_out leave_out = {};
};

/// The device's half of the line. Copies are put into the side stream in the batches' turns: a batch that got ahead of
/// its turn would take the block that the oldest one needs.
///
///   memory     blocks, events and the stream are made by prepare(); nothing is allocated on the device afterwards
///   pinning    host memory is pinned where a batch first leaves from it; where that fails it stays pageable, which
///              report() tells
///   threads    CUDA's queues are filled on the I/O thread, and asked there whether a copy has passed. A thread that waits
///              for copies is started when one is first needed: somebody starves for host memory, or awaits ready()
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
  /// Throws error{errc::limit}: bytes_max or the device has no room for one batch; error{errc::device}.
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
  struct flight {
    device_event arrived = device_event::none;
    io::lease host;
    bool passed = true;
    int users = 0;  ///< the list of those in flight, the batch, and each who waits for it
  };
  /// A block of device memory: what is made of a batch, then the batch.
  struct block {
    std::byte* memory = nullptr;
    std::vector<device_event> consumed;  ///< made when they are first needed: one for each stream of a consumer
    std::size_t recorded = 0;            ///< of those, by the last batch that lay here
  };
  struct waiter {
    flight* copy = nullptr;
    bool listed = true;  ///< nobody has taken it up yet
    completion<void(std::exception_ptr)> done;
  };
  using wait_list = std::list<waiter>;
  /// What is let go of once the mutex is free.
  struct released {
    std::vector<io::lease> memory;
    wait_list done;
    std::exception_ptr failure;
    bool tell_loader = false;
  };

  void take_memory(std::size_t block_bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void pump() noexcept ABSL_LOCKS_EXCLUDED(mutex_);
  void issue(transfer_operation& operation, released& home) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void finish(const transfer_operation& operation, std::byte* to) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void pin(std::span<std::byte> memory) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  [[nodiscard]] flight& take_flight() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void leave(flight& copy) noexcept ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void pass(flight& copy, released& home) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void pass_oldest(released& home) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void settle_oldest(device_status status, std::string_view call, released& home) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void let_go(released& home) noexcept ABSL_LOCKS_EXCLUDED(mutex_);

  void wait_on(flight& copy, stream consumer) ABSL_LOCKS_EXCLUDED(mutex_);
  [[nodiscard]] std::exception_ptr release(std::uint32_t index, flight& copy,
                                           std::span<const stream> consumers) noexcept ABSL_LOCKS_EXCLUDED(mutex_);
  void ready(flight& copy, completion<void(std::exception_ptr)> done) ABSL_LOCKS_EXCLUDED(mutex_);
  void cancel_ready(wait_list::iterator which) noexcept ABSL_LOCKS_EXCLUDED(mutex_);

  void start_watching() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void watch() noexcept ABSL_LOCKS_EXCLUDED(mutex_);

  [[nodiscard]] error describe(device_status status, std::string_view call) const;
  void check(device_status status, std::string_view call) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  [[nodiscard]] std::exception_ptr fail(device_status status, std::string_view call)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const async::fork_guard forked_;
  const std::shared_ptr<device_calls> calls_;
  const device_transfer_options options_;

  mutable async::mutex mutex_;
  std::function<void()> wake_ ABSL_GUARDED_BY(mutex_);
  std::function<void(std::exception_ptr)> failed_;  // by prepare(), for good
  stream side_ ABSL_GUARDED_BY(mutex_);
  bool prepared_ ABSL_GUARDED_BY(mutex_) = false;
  bool drained_ ABSL_GUARDED_BY(mutex_) = false;
  std::exception_ptr failure_ ABSL_GUARDED_BY(mutex_);
  std::size_t block_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  std::size_t finished_bytes_ ABSL_GUARDED_BY(mutex_) = 0;  // of a block, at its front
  std::vector<block> blocks_ ABSL_GUARDED_BY(mutex_);
  // First in, first out: who has waited longest is the likeliest to have been passed by its consumer.
  std::deque<std::uint32_t> free_blocks_ ABSL_GUARDED_BY(mutex_);
  std::map<std::uint64_t, transfer_operation*> pending_ ABSL_GUARDED_BY(mutex_);
  std::uint64_t next_turn_ ABSL_GUARDED_BY(mutex_) = 0;

  std::deque<flight> flights_ ABSL_GUARDED_BY(mutex_);
  std::vector<flight*> idle_flights_ ABSL_GUARDED_BY(mutex_);
  std::deque<flight*> in_flight_ ABSL_GUARDED_BY(mutex_);  // oldest first: one stream passes them in this order
  std::vector<io::lease> stuck_ ABSL_GUARDED_BY(mutex_);   // whose copy no event tells of: for drain()
  std::size_t handing_over_ ABSL_GUARDED_BY(mutex_) = 0;   // those that are telling the loader right now
  async::condition_variable handed_over_;

  std::vector<std::span<std::byte>> pinned_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::span<std::byte>> pageable_ ABSL_GUARDED_BY(mutex_);
  std::string why_pageable_ ABSL_GUARDED_BY(mutex_);

  bool starving_ ABSL_GUARDED_BY(mutex_) = false;
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
  wait_list waits_ ABSL_GUARDED_BY(mutex_);
  async::condition_variable something_to_watch_;
  std::thread watcher_;  // started under the mutex, joined by drain()
};

}  // namespace leat::stages
