// The last stage of the line: it copies a collated batch to where the trainer wants it, and takes its memory back. Events order both
// directions. This file has the interface, and the transfer of the host, where both events fire at once; device_transfer.hpp has the
// transfer to a device.
#pragma once

#include "io/arena/lease_pool.hpp"
#include "stages/batch/device_operation.hpp"
#include "stages/observe/timeline_track.hpp"

#include <leat/completion.hpp>
#include <leat/stats.hpp>
#include <leat/stream.hpp>
#include <leat/tensor.hpp>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>

namespace leat::stages {

class device_cache;
struct cache_needs;
struct batch_for_cache;

/// The device's part of a batch. It ends with the batch that owns it. leat::batch documents the calls.
class device_batch {
 public:
  device_batch() = default;
  device_batch(const device_batch&) = delete;
  device_batch& operator=(const device_batch&) = delete;
  virtual ~device_batch() = default;

  [[nodiscard]] virtual device where() const noexcept = 0;
  /// Where the batch's block begins there; null once released.
  [[nodiscard]] virtual std::byte* data() const noexcept = 0;
  /// Where the tensors begin that the device made of it; null once released.
  [[nodiscard]] virtual std::byte* made() const noexcept = 0;
  virtual void wait_on(stream consumer) = 0;
  virtual void release_on(stream consumer) = 0;
  virtual void ready(completion<void(std::exception_ptr)> done) = 0;
};

/// What copies and steps took on the device, of the batches that were timed there; sums since the start. See device_timing.hpp.
struct device_times {
  std::uint64_t batches = 0;
  std::uint64_t rows = 0;      ///< of them
  std::uint64_t copy_ns = 0;   ///< with the operations behind the copy
  std::uint64_t step_ns = 0;   ///< that the consumer's stream worked on them
  std::uint64_t stall_ns = 0;  ///< that it had nothing to do before they came
};

/// Whether the device times a batch. That takes the end of the one before it, too, so the line chooses both, within an epoch: what a
/// trainer does between two is no step.
enum class batch_timing : std::uint8_t { none, before, timed };
/// One batch in so many.
inline constexpr std::uint32_t timed_every = 16;
constexpr batch_timing timing_of(std::uint64_t index_in_epoch) noexcept {
  switch (index_in_epoch % timed_every) {
    case 1:
      return batch_timing::before;
    case 2:
      return batch_timing::timed;
    default:
      return batch_timing::none;
  }
}

/// One batch on its way. Intrusive, as io::read_operation: the owner keeps it still until handed_over() was called, or
/// until drain() has returned.
struct transfer_operation {
  std::uint64_t number = 0;  ///< 0, 1, 2, ... in the order of the run
  /// The batch's memory; a device takes the lease, and returns it after the copy. Null: there is no batch, and its turn passes.
  io::lease* memory = nullptr;
  std::size_t bytes = 0;  ///< used bytes at the start of the block
  std::uint32_t rows = 0;
  std::span<const std::uint64_t> samples = {};  ///< of the rows, for errors
  batch_timing timing = batch_timing::none;
  std::uint32_t epoch = 0;  ///< and its number there: for who looks at the timeline
  std::uint64_t index = 0;
  std::span<const device_step> steps = {};     ///< in this order; only where runs_operations()
  const batch_for_cache* for_cache = nullptr;  ///< only where there is a cache()

  std::unique_ptr<device_batch> on_device;  ///< set where the batch went to a device
  std::exception_ptr failure;               ///< set where it did not get there
  /// The batch may be handed to the trainer. Called once, on any thread; out of order is allowed, since the loader
  /// hands over in order.
  void (*handed_over)(transfer_operation&) noexcept = nullptr;
};

/// What a transfer is told before the first batch.
struct transfer_needs {
  std::size_t batch_bytes_max = 0;
  std::size_t made_bytes_max = 0;     ///< of what operations make of a batch
  std::size_t scratch_bytes_max = 0;  ///< of what one of them needs beside
  std::uint32_t host_batches = 0;     ///< leases of the size of a batch that there can be
  /// Called when the transfer has failed and no batch carries the error. Thread: any; not after drain().
  std::function<void(std::exception_ptr)> failed;
  /// Called once for each lease, when its memory has been pinned, or could not be. Thread: any; not after drain().
  std::function<void(const io::lease&)> pinning_done = {};
  /// A sample's name, for errors. Thread: any; not after drain().
  std::function<std::string(std::uint64_t sample)> name_of = {};
  /// Owns the memory of all leases. After a failure it is kept until the process ends, since a copy may still read it.
  std::shared_ptr<const void> host_memory = {};
  /// Where batches that are timed are noted; null: nowhere. Thread: one at a time.
  std::shared_ptr<timeline_track> seen = {};
  /// Rows that are to stay on the device; null: none are.
  std::shared_ptr<const cache_needs> cache = {};
};

/// Shared by the loader and the batches that it handed out, since a batch may outlive its loader.
class transfer {
 public:
  transfer() = default;
  transfer(const transfer&) = delete;
  transfer& operator=(const transfer&) = delete;
  virtual ~transfer() = default;

  /// Whether batches get to a device, where operations can make their rows.
  [[nodiscard]] virtual bool runs_operations() const noexcept { return false; }

  /// Whether operations can decode JPEG files: empty, or why not, in words for a person. Before prepare().
  [[nodiscard]] virtual std::string prepare_jpegs() { return "batches stay on the host"; }

  /// Whether it pins the memory of batches, each lease when a batch first leaves in it. io_uring registers this memory after
  /// pinning_done() and unregisters it before drain(), which unpins it.
  [[nodiscard]] virtual bool pins() const noexcept { return false; }

  /// Once, before anything else. Throws error.
  virtual void prepare(transfer_needs needs) { static_cast<void>(needs); }

  /// Operations come in any order; a device copies in the order of turns, so that the oldest batch can always go on.
  /// Thread: the I/O thread.
  virtual void send(transfer_operation& operation) noexcept = 0;

  /// Returns the memory of copies that have ended to its pool. Called when memory for a batch is needed. Never waits. Thread: the
  /// I/O thread.
  virtual void collect() noexcept {}
  /// Whether somebody waits for such memory from now on. While somebody does, memory is returned as soon as its copy has ended.
  /// Thread: the I/O thread.
  virtual void starve(bool waiting) { static_cast<void>(waiting); }

  /// A batch on the host has ended: its memory returns to its pool, at once or when nobody reads it any more. Thread: any.
  ///   was_handed_out   the trainer has had it. Of another batch nobody reads anything
  virtual void give_back(io::lease memory, bool was_handed_out) noexcept = 0;

  /// Waits until no copy is under way. Operations whose turn has not come are dropped. Called when nothing more is sent.
  virtual void drain() noexcept = 0;

  /// Thread: any.
  [[nodiscard]] virtual device_times times() const { return {}; }

  /// The rows that stay on the device; null where none do. After prepare(), and as long as this.
  [[nodiscard]] virtual device_cache* cache() noexcept { return nullptr; }

  /// Where batches go, and why there.
  [[nodiscard]] virtual device_report report() const {
    return {.use = {"host", "asked for"}, .pinned = {"off", "there is no device to copy to"}};
  }
};

/// Host memory is where the trainer wants it already: both events fire at once.
class host_transfer final : public transfer {
 public:
  host_transfer() = default;
  /// A device was wanted, or pinned memory, and is not there: why.
  explicit host_transfer(std::string why, std::string why_pageable = {})
      : why_(std::move(why)), why_pageable_(std::move(why_pageable)) {}

  void send(transfer_operation& operation) noexcept override { operation.handed_over(operation); }
  void give_back(io::lease memory, bool /*was_handed_out*/) noexcept override {
    const io::lease home = std::move(memory);
  }
  void drain() noexcept override {}
  [[nodiscard]] device_report report() const override {
    device_report made = transfer::report();
    if (!why_.empty()) made.use.why = why_;
    if (!why_pageable_.empty()) made.pinned.why = why_pageable_;
    return made;
  }

 private:
  std::string why_;
  std::string why_pageable_;
};

}  // namespace leat::stages
