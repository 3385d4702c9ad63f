// A transfer for tests of everything that waits for one.
#pragma once

#include "base/mutex.hpp"
#include "io/arena/lease_pool.hpp"
#include "stages/batch/transfer.hpp"

#include <cstddef>
#include <vector>

namespace leat::testing {

/// A host twin whose events fire when somebody says so, in the order they say: for showing that nothing depends on
/// when or in which order they do.
class delayed_transfer final : public stages::transfer {
 public:
  ~delayed_transfer() override;
  void send(stages::transfer_operation& operation) noexcept override;
  void give_back(io::lease memory, bool was_handed_out) noexcept override;
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
  void fire(stages::transfer_operation& operation) noexcept ABSL_LOCKS_EXCLUDED(mutex_);

  mutable mutex mutex_;
  condition_variable fired_;
  std::size_t firing_ ABSL_GUARDED_BY(mutex_) = 0;  // events that are telling the loader right now
  std::vector<stages::transfer_operation*> sends_ ABSL_GUARDED_BY(mutex_);
  std::vector<io::lease> returns_ ABSL_GUARDED_BY(mutex_);
  bool open_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace leat::testing
