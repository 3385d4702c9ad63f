// Where next() waits: batches arrive in any order and leave in theirs, one call at a time.
#pragma once

#include "async/histogram.hpp"
#include "base/corrupt_kind.hpp"
#include "base/mutex.hpp"
#include "stages/batch/batch_state.hpp"
#include "stages/batch/range.hpp"
#include "stages/observe/run_progress.hpp"
#include "stages/run/corrupt_watch.hpp"
#include "stages/state/journal.hpp"

#include <leat/batch.hpp>
#include <leat/completion.hpp>
#include <leat/next_result.hpp>

#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

namespace leat::stages {

/// What next() hands out in one place of the run's order: a batch, the end of an epoch, or an error.
struct delivery_item {
  std::uint32_t epoch = 0;
  std::uint64_t index = 0;  ///< the batch's number in it
  std::unique_ptr<batch::state> finished;
  std::exception_ptr failure;
  // What is counted and written when it is handed out, not before.
  std::uint64_t planned = 0;
  std::uint32_t padded = 0;  ///< of them
  std::uint64_t samples = 0;
  std::uint64_t quarantined = 0;
  std::uint64_t substituted = 0;
  std::uint64_t bytes = 0;
  bool end_of_epoch = false;
  std::vector<journal_entry> journal;
};

/// Thread: put(), fail() and end() from any; next(), its variants and skip_epoch() from one at a time.
class delivery {
 public:
  using next_completion = completion<void(std::exception_ptr, std::optional<batch>)>;

  struct counters {
    std::uint64_t planned = 0;
    std::uint64_t padded = 0;
    std::uint64_t samples = 0;
    std::uint64_t quarantined = 0;
    std::map<corrupt_kind, std::uint64_t> quarantined_as;
    std::uint64_t substituted = 0;
    std::uint64_t batches = 0;
    std::uint64_t bytes = 0;
    std::uint32_t epochs_finished = 0;
    std::uint64_t next_count = 0;
    std::uint64_t ready = 0;  ///< batches waiting to be asked for
    std::uint64_t out = 0;    ///< batches in the consumer's hands
    // Sums over time; what goes on now is in them.
    std::uint64_t steps = 0;        ///< of the consumer: from a batch that was handed out to the next call
    std::uint64_t step_ns = 0;      ///< of them; and of calls that had to wait because the consumer held all batches
    std::uint64_t held_all_ns = 0;  ///< of these calls
    std::uint64_t stalled_ns = 0;   ///< of all other calls that waited
    std::uint64_t waiting_ns = 0;   ///< of the call that waits now, for no batch that the consumer holds
    std::uint64_t pause_ns = 0;     ///< until the first batch, and from the end of an epoch to the next call
    std::uint64_t ready_ns = 0;     ///< that items were here
    std::uint64_t out_ns = 0;       ///< that batches were in the consumer's hands
  };

  ///   from          what was handed out before, by a run that is resumed
  ///   batches_max   that there may be at a time
  explicit delivery(journal log, const corrupt_limits& limits = {}, const run_progress& from = {},
                    std::uint32_t batches_max = ~std::uint32_t{0})
      : batches_max_(batches_max),
        progress_(from),
        watch_(limits, from.epoch, from.counted),
        journal_(std::move(log)) {}

  /// Sets what is called when a batch was handed out and counted, before the consumer has it, on the thread that delivers it; with the
  /// time and the number of batches. Before the first put().
  void on_handed_out(std::function<void(std::uint64_t now_ns, std::uint64_t batches)> callback) {
    handed_out_ = std::move(callback);
  }

  /// The item of place `sequence`; places are 0, 1, 2, ... and each is put once.
  void put(std::uint64_t sequence, delivery_item item);
  /// Nothing comes at `sequence` or after it: from there on next() says nullopt. The first `empty_epochs` of these are
  /// ends of epochs that have no batch.
  void end(std::uint64_t sequence, std::uint64_t empty_epochs = 0);
  /// An error outside the order: handed out as soon as what is ready before it has been, and for ever after.
  void fail(std::exception_ptr why);
  /// As fail(), and drops what is ready: for stop().
  void close(std::exception_ptr why);

  void next(next_completion done);
  /// As next(), and waits on the caller's thread until `deadline`, or without limit. Throws the error that next() gives.
  [[nodiscard]] next_result next_blocking(std::optional<std::chrono::steady_clock::time_point> deadline = {});
  /// What next() would give at once, if anything.
  [[nodiscard]] next_result try_next();

  /// Drops the rest of the consumer's epoch with its end: items that are here, and items that are put later. Returns the first
  /// epoch that is still wanted; nothing if the consumer is between two epochs. Throws error{errc::usage} while a next() waits.
  std::optional<std::uint32_t> skip_epoch();

  [[nodiscard]] counters count() const;
  /// What each next() has waited.
  [[nodiscard]] async::histogram::summary waits() const noexcept { return waits_.summarize(); }
  /// After the last batch, or end of an epoch, that was handed out or skipped.
  [[nodiscard]] run_progress progress() const;

 private:
  void cancel();
  [[nodiscard]] bool abandon();
  void begin_to_want(std::uint64_t now_ns) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void end_to_want(std::uint64_t now_ns, bool got_batch) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void add_wait(counters& to, std::uint64_t waited_ns) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  [[nodiscard]] bool has_next() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  [[nodiscard]] bool is_skipped(const delivery_item& item) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return item.epoch < skip_before_;
  }
  void pass_skipped() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void pump() ABSL_LOCKS_EXCLUDED(mutex_);
  void hand_out(delivery_item item, next_completion done);
  void go_on_after(const delivery_item& item) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::uint32_t batches_max_;
  std::function<void(std::uint64_t, std::uint64_t)> handed_out_;
  mutable mutex mutex_;
  std::map<std::uint64_t, delivery_item> arrived_ ABSL_GUARDED_BY(mutex_);
  std::uint64_t next_sequence_ ABSL_GUARDED_BY(mutex_) = 0;
  std::optional<std::uint64_t> end_sequence_ ABSL_GUARDED_BY(mutex_);
  std::uint64_t empty_epochs_ ABSL_GUARDED_BY(mutex_) = 0;
  std::optional<std::uint32_t> epoch_ ABSL_GUARDED_BY(mutex_);  // the consumer's, from its first batch to its end
  std::uint32_t skip_before_ ABSL_GUARDED_BY(mutex_) = 0;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  std::exception_ptr failure_ ABSL_GUARDED_BY(mutex_);
  next_completion waiting_ ABSL_GUARDED_BY(mutex_);
  std::uint64_t asked_ns_ ABSL_GUARDED_BY(mutex_) = 0;
  bool held_all_ ABSL_GUARDED_BY(mutex_) = false;             // by the consumer, when it asked
  std::uint64_t wants_since_ns_ ABSL_GUARDED_BY(mutex_) = 0;  // 0: it has not asked
  std::uint64_t returned_ns_ ABSL_GUARDED_BY(mutex_) = 0;     // when it last got something; 0: never
  bool returned_batch_ ABSL_GUARDED_BY(mutex_) = false;
  long_range profiled_ ABSL_GUARDED_BY(mutex_);  // while `waiting_` waits
  // From next() to its completion: one call at a time, also while what it gets is being written to the journal.
  bool busy_ ABSL_GUARDED_BY(mutex_) = false;
  counters counted_ ABSL_GUARDED_BY(mutex_);
  run_progress progress_ ABSL_GUARDED_BY(mutex_);
  // Used only by the thread that delivers, and there is one at a time.
  corrupt_watch watch_;
  journal journal_;
  async::histogram waits_;
  occupancy ready_;
  std::shared_ptr<occupancy> batches_out_ = std::make_shared<occupancy>();
};

}  // namespace leat::stages
