// The last stage: a collated batch goes where the trainer wants it, and its memory comes home. Hand-over in both
// directions is by events. Here: the interface, and the host, where both events fire at once; device_transfer.hpp has the
// device.
#pragma once

#include "io/lease_pool.hpp"
#include "stages/device/finish_pictures.hpp"

#include <leat/completion.hpp>
#include <leat/stats.hpp>
#include <leat/stream.hpp>
#include <leat/tensor.hpp>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

namespace leat::stages {

/// A batch that does not lie on the host, held by the batch; its end is the batch's. leat::batch documents the calls.
class landing {
 public:
  landing() = default;
  landing(const landing&) = delete;
  landing& operator=(const landing&) = delete;
  virtual ~landing() = default;

  [[nodiscard]] virtual device where() const noexcept = 0;
  /// Where the batch's block begins there; null once released.
  [[nodiscard]] virtual std::byte* data() const noexcept = 0;
  /// Where the tensors begin that the device made of it; null once released.
  [[nodiscard]] virtual std::byte* finished() const noexcept = 0;
  virtual void wait_on(stream consumer) = 0;
  virtual void release_on(stream consumer) = 0;
  virtual void ready(completion<void(std::exception_ptr)> done) = 0;
};

/// Pictures that the device makes of a block once it has arrived, before anybody is told that it has.
///   what     all but rows and pointers, which are
///   from     where the pixels begin in the block
///   flips    where the flags do
///   mixed    where it is said how rows are mixed, if they are
///   to       where the tensor begins in the memory that only the device has
struct finish_step {
  picture_batch what;
  std::size_t from = 0;
  std::size_t flips = 0;
  std::size_t to = 0;
  std::optional<std::size_t> mixed = {};
};

/// One batch on its way. Intrusive, as io::read_operation: the owner keeps it still until handed_over() was called, or
/// until drain() has returned.
struct transfer_operation {
  std::uint64_t turn = 0;  ///< 0, 1, 2, ... in the run's order
  /// The batch's block; a device takes the lease and returns it after the copy. Null: there is no batch, and its turn passes.
  io::lease* memory = nullptr;
  std::size_t bytes = 0;  ///< used bytes at the start of the block
  std::uint32_t rows = 0;
  std::span<const finish_step> finish = {};  ///< only where the transfer finishes rows

  std::unique_ptr<landing> landed;  ///< set where the batch went to a device
  std::exception_ptr failure;       ///< set where it did not get there
  /// The batch may be handed to the trainer. Called once, on any thread; out of order is allowed, since the loader
  /// hands over in order.
  void (*handed_over)(transfer_operation&) noexcept = nullptr;
};

/// What a transfer is told before the first batch.
struct transfer_needs {
  std::size_t batch_bytes_max = 0;
  std::size_t finished_bytes_max = 0;  ///< of what the device makes of a batch
  std::uint32_t host_batches = 0;      ///< leases of the size of a batch that there can be
  /// The transfer is over, and no batch may be left to tell it by. Thread: any; not after drain().
  std::function<void(std::exception_ptr)> failed;
  /// Has go_on() called soon on the I/O thread. Thread: any; not after drain().
  std::function<void()> wake;
  /// What this lease lies on has been pinned, or never will be. Once for each such place. Thread: any; not after drain().
  std::function<void(const io::lease&)> pinning_done = {};
};

/// Shared by the loader and the batches it handed out, since a batch may outlive its loader.
class transfer {
 public:
  transfer() = default;
  transfer(const transfer&) = delete;
  transfer& operator=(const transfer&) = delete;
  virtual ~transfer() = default;

  /// Whether batches get to a device, which can do the last stage of a row.
  [[nodiscard]] virtual bool finishes() const noexcept { return false; }

  /// Whether it pins the memory that batches leave from, when one first does. Who pins it as well does so after pinning_done, and
  /// undoes it before drain(), which unpins.
  [[nodiscard]] virtual bool pins() const noexcept { return false; }

  /// Once, before anything else. Throws error.
  virtual void prepare(transfer_needs needs) { static_cast<void>(needs); }

  /// Turns come in any order; a device copies in theirs, so that the oldest batch can always go on.
  /// Thread: the I/O thread.
  virtual void send(transfer_operation& operation) noexcept = 0;
  /// What `wake` asked for. Thread: the I/O thread.
  virtual void go_on() noexcept {}

  /// Memory for a batch is wanted: that of copies which have passed goes home. Never waits. Thread: the I/O thread.
  virtual void collect() noexcept {}
  /// Whether somebody waits for such memory from now on: then it goes home by itself as soon as its copy has passed.
  /// Thread: the I/O thread.
  virtual void starve(bool waiting) { static_cast<void>(waiting); }

  /// The consumer's thread is done with a batch on the host; its memory goes home when the consumer's event has fired.
  /// Thread: any.
  virtual void give_back(io::lease memory) noexcept = 0;

  /// Waits until nothing sent is under way. What still waits for its turn is forgotten. Called once nothing more is sent.
  virtual void drain() noexcept = 0;

  /// Where batches go, and why there.
  [[nodiscard]] virtual device_report report() const {
    return {.use = {"host", "asked for"}, .pinned = {"off", "there is no device to copy to"}};
  }
};

/// Host memory is where the trainer wants it already: both events fire at once.
class host_transfer final : public transfer {
 public:
  host_transfer() = default;
  /// A device was wanted and is not there: why.
  explicit host_transfer(std::string why) : why_(std::move(why)) {}

  void send(transfer_operation& operation) noexcept override { operation.handed_over(operation); }
  void give_back(io::lease memory) noexcept override { const io::lease home = std::move(memory); }
  void drain() noexcept override {}
  [[nodiscard]] device_report report() const override {
    device_report made = transfer::report();
    if (!why_.empty()) made.use.why = why_;
    return made;
  }

 private:
  std::string why_;
};

}  // namespace leat::stages
