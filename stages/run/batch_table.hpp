// The batches of a line that may be in flight at the same time.
#pragma once

#include "async/semaphore.hpp"
#include "base/mutex.hpp"
#include "stages/run/batch_in_flight.hpp"

#include <boost/asio/awaitable.hpp>

#include <cstdint>
#include <deque>
#include <vector>

namespace leat::stages {

/// Owns them. Thread: the first I/O thread, except where said.
class batch_table {
 public:
  ///   record   of the run; null: there is none
  batch_table(std::uint32_t batches, decode_stage& rows, hand_over& ending, const timeline& seen,
              read_recorder* record);

  /// A batch that nobody uses. try_take() gives null where there is none; take() waits until there is one.
  [[nodiscard]] batch_in_flight* try_take() noexcept { return free_count_.try_acquire(1) ? &pop() : nullptr; }
  [[nodiscard]] boost::asio::awaitable<batch_in_flight*> take();
  /// The batch that take() gave is not used any more.
  void retire(batch_in_flight& batch) noexcept;
  /// Waits until all batches are retired. take() is not called again.
  [[nodiscard]] boost::asio::awaitable<void> all_retired();

  /// Destroys the batches. Nothing is in flight. Thread: any.
  void clear() noexcept;
  /// What `look` returns, or `gone` after clear(), which does not run meanwhile. Thread: any.
  template <class Look, class Value>
  [[nodiscard]] Value while_there(Look look, Value gone) {
    const mutex_lock lock(mutex_);
    return cleared_ ? std::move(gone) : look();
  }

 private:
  [[nodiscard]] batch_in_flight& pop() noexcept;

  std::deque<batch_in_flight> batches_;  // never move: reads and jobs lie in them
  std::vector<batch_in_flight*> free_;
  async::semaphore free_count_;
  mutex mutex_;  // held by who looks at the batches from outside; not by the line
  bool cleared_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace leat::stages
