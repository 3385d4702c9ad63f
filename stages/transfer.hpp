// The last stage: a collated batch goes where the trainer wants it, and its memory comes home. Hand-over in both
// directions is by events; this is the interface and its host twin, the CUDA half has the same shape.
#pragma once

#include "async/mutex.hpp"
#include "io/lease_pool.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace leat::stages {

/// One batch on its way. Intrusive, as io::read_operation: the owner keeps it still until handed_over() was called.
struct transfer_operation {
  std::span<std::byte> memory;  ///< what holds rows, from the start of the batch's block
  /// The batch may be handed to the trainer. Called once, on any thread; out of order is allowed, since the loader
  /// hands over in order.
  void (*handed_over)(transfer_operation&) noexcept = nullptr;
};

/// Shared by the loader and the batches it handed out, since a batch may outlive its loader.
class transfer {
 public:
  transfer() = default;
  transfer(const transfer&) = delete;
  transfer& operator=(const transfer&) = delete;
  virtual ~transfer() = default;

  /// Thread: the I/O thread.
  virtual void send(transfer_operation& operation) noexcept = 0;

  /// The consumer's thread is done with a batch; its memory goes home when the consumer's event has fired.
  /// Thread: any.
  virtual void give_back(io::lease memory) noexcept = 0;

  /// Waits until nothing sent is under way. Called once nothing more is sent.
  virtual void drain() noexcept = 0;
};

/// Host memory is where the trainer wants it already: both events fire at once.
class host_transfer final : public transfer {
 public:
  void send(transfer_operation& operation) noexcept override { operation.handed_over(operation); }
  void give_back(io::lease memory) noexcept override { const io::lease home = std::move(memory); }
  void drain() noexcept override {}
};

/// A host twin whose events fire when somebody says so, in the order they say: for showing that nothing depends on
/// when or in which order they do.
class delayed_transfer final : public transfer {
 public:
  ~delayed_transfer() override;
  void send(transfer_operation& operation) noexcept override;
  void give_back(io::lease memory) noexcept override;
  void drain() noexcept override;

  /// Events that have not fired.
  [[nodiscard]] std::size_t sends_pending() const;
  [[nodiscard]] std::size_t returns_pending() const;
  /// Fires the event of the index-th oldest pending one. Thread: any.
  bool fire_send(std::size_t index);
  bool fire_return(std::size_t index);
  /// From now on everything fires at once, and so does what is pending.
  void release_all();

 private:
  void fire(transfer_operation& operation) noexcept ABSL_LOCKS_EXCLUDED(mutex_);

  mutable async::mutex mutex_;
  async::condition_variable fired_;
  std::size_t firing_ ABSL_GUARDED_BY(mutex_) = 0;  // events that are telling the loader right now
  std::vector<transfer_operation*> sends_ ABSL_GUARDED_BY(mutex_);
  std::vector<io::lease> returns_ ABSL_GUARDED_BY(mutex_);
  bool open_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace leat::stages
