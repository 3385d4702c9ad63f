// Batches to a device, and nobody waits but streams for one another. Per batch, into a stream of the loader's own:
//
//     side stream       wait(consumed) ─ copy ─ write(word) ─ record(arrived) ─────────── wait(consumed) ─ copy ─ ...
//                                                                 │                            ▲
//     consumer's stream                                       wait(arrived) ─ step ─ record(consumed)
//
// Where the device makes something of the bytes that were copied, that is done by a second stream, so that the next copy goes on beside it:
//
//     side stream       wait(consumed) ─ copy ─ write(word) ─ record(copied) ─ wait(consumed) ─ copy ─ ...
//                                                                 │
//     working stream                                          wait(copied) ─ operations ─ record(arrived) ─ wait(copied) ─ ...
//
//   word        tells the host that the copy has read its memory, which is then returned
//   arrived     one event per copy. wait_on() has the consumer's stream wait for it
//   consumed    one event per buffer of device memory and stream that read it, recorded when the batch ends. The buffer goes
//               back to the pool at that moment, since the next copy into it waits on the device; where nobody has waited for the batch,
//               for what the working stream then holds
#pragma once

#include "base/fork_guard.hpp"
#include "base/mutex.hpp"
#include "stages/batch/transfer.hpp"
#include "stages/device/copies_in_flight.hpp"
#include "stages/device/copy_plan.hpp"
#include "stages/device/device.hpp"
#include "stages/device/device_buffers.hpp"
#include "stages/device/device_cache.hpp"
#include "stages/device/device_failure.hpp"
#include "stages/device/device_timing.hpp"
#include "stages/device/pinned_memory.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <thread>
#include <vector>

namespace leat::stages {

struct device_transfer_options {
  std::uint32_t batches = 3;  ///< buffers of device memory
  std::size_t bytes_max = 0;  ///< of them together, of the operations' scratch and of a cache; 0 is no bound
};

/// The device's half of the line. Copies are put into the side stream in the batches' turns: a batch that got ahead of
/// its turn would take the buffer that the oldest one needs.
///
///   memory     buffers, events and the stream are made by prepare(); nothing is allocated on the device afterwards. A third
///              stream that reads a batch has an event made for its buffer, once
///   pinning    host memory is pinned where a batch first leaves from it; where that fails it stays pageable, which
///              report() tells
///   threads    the I/O thread makes no call to the device: CUDA's queries and enqueues may wait for the driver's locks, and for room in
///              a stream. One thread, the sender, pins memory and queues each batch; another waits for copies where somebody
///              starves for host memory or awaits ready()
///   consumers  streams of the same device. A per-thread default stream is the thread's that named it: where the batch ends on
///              another one, the device's default stream is recorded in its place, which waits for all of those. Streams that
///              are being captured can neither wait for a batch nor end one. Where only the default stream cannot be recorded, because
///              one that waits for it is being captured, the buffer waits until that is over
///   fork()     in the child nothing of this is there: batches from before can be destroyed, and whatever else they are
///              asked for is a usage error
///   errors     the first failing call, in words, is every later batch's failure. From then on no call is made: see device_failure.
///              A picture that the device refuses is the failure of its own batch alone: the device is well
class device_transfer final : public transfer, public std::enable_shared_from_this<device_transfer> {
 public:
  device_transfer(std::shared_ptr<device_calls> calls, const device_transfer_options& options);
  /// Waits for nobody, where the device has pools of memory: what consumers still read is freed behind them.
  ~device_transfer() override;

  [[nodiscard]] bool runs_operations() const noexcept override { return true; }
  [[nodiscard]] std::string prepare_jpegs() override { return calls_->prepare_jpegs(); }
  [[nodiscard]] bool pins() const noexcept override { return true; }
  /// Throws error{errc::limit}: bytes_max has no room for one batch, or the device none for all of them; error{errc::device}.
  void prepare(transfer_needs needs) override;
  void send(transfer_operation& operation) noexcept override ABSL_LOCKS_EXCLUDED(mutex_);
  void collect() noexcept override { copies_.collect(); }
  void starve(bool waiting) override { copies_.starve(waiting); }
  [[nodiscard]] device_cache* cache() noexcept override { return cache_ ? &*cache_ : nullptr; }
  void give_back(io::lease memory, bool /*was_handed_out*/) noexcept override {
    const io::lease home = std::move(memory);
  }
  void drain() noexcept override ABSL_LOCKS_EXCLUDED(mutex_);
  [[nodiscard]] device_times times() const override { return timing_.times(); }
  [[nodiscard]] device_report report() const override;
  /// device_facts::pci_address.
  [[nodiscard]] std::string pci_address() const { return calls_->facts().pci_address; }

 private:
  class sent_batch;

  void prepare_cache(const cache_needs& needs, std::size_t bytes_of_batches);
  void send_in_order() noexcept ABSL_LOCKS_EXCLUDED(mutex_);
  [[nodiscard]] bool next_can_go() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ship(transfer_operation& operation) noexcept;
  [[nodiscard]] std::exception_ptr refusal(const failed_call& failed, const transfer_operation& of) const noexcept;
  [[nodiscard]] failed_call queue(transfer_operation& operation, const device_buffer& to, const copy_in_flight& copy,
                                  bool& may_be_read);
  [[nodiscard]] failed_call copy(const transfer_operation& operation, std::byte* to, bool& may_be_read);
  [[nodiscard]] failed_call run_operations(const transfer_operation& operation, const device_buffer& in) noexcept;
  void release(device_buffer& buffer, copy_in_flight& copy, std::span<const consumer> consumers,
               timed_end* end) noexcept ABSL_LOCKS_EXCLUDED(mutex_);
  void check_consumer(stream of_consumer, std::string_view call) const;
  void wait_on(const copy_in_flight& copy, stream of_consumer);
  /// Before a batch ends that no stream has waited for. A failure is noted.
  void wait_until_released(const copy_in_flight& copy, stream of_consumer) noexcept;
  [[nodiscard]] error failure_of_caller(const failed_call& call) const;
  void failure_noted() noexcept ABSL_LOCKS_EXCLUDED(mutex_);

  const fork_guard forked_;
  const std::shared_ptr<device_calls> calls_;
  const device_transfer_options options_;
  mutable device_failure failure_;
  pinned_memory pinned_;
  device_buffers buffers_;
  copies_in_flight copies_;
  device_timing timing_;

  // By prepare(), for good.
  std::function<void(std::exception_ptr)> tell_loader_;
  std::function<std::string(std::uint64_t)> name_of_;
  std::shared_ptr<const void> host_memory_;
  stream side_;
  stream working_;
  bool has_stream_ = false;
  bool has_working_ = false;
  std::size_t buffer_bytes_ = 0;
  std::size_t made_bytes_ = 0;    // of a buffer, at its front
  std::byte* scratch_ = nullptr;  // of all operations, which run one by one
  std::size_t scratch_bytes_ = 0;
  std::optional<device_cache> cache_;
  std::byte* cache_memory_ = nullptr;
  std::size_t cache_bytes_ = 0;
  fallback cache_use_{"off", "not asked for"};

  // Of the sender.
  std::vector<std::size_t> used_;
  std::vector<std::vector<copied_rows>> plans_;  // of the steps whose rows are not full
  std::vector<std::size_t> scratch_of_plan_;

  mutable mutex mutex_;
  bool drained_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<transfer_operation*> pending_ ABSL_GUARDED_BY(mutex_);  // by number
  std::uint64_t next_number_ ABSL_GUARDED_BY(mutex_) = 0;
  bool unreported_ ABSL_GUARDED_BY(mutex_) = false;  // a failure that no batch has told the loader
  condition_variable something_to_send_;
  std::thread sender_;
};

}  // namespace leat::stages
