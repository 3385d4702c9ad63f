// Where next() waits: batches arrive in any order and leave in theirs, one call at a time.
#pragma once

#include "async/histogram.hpp"
#include "base/corrupt_kind.hpp"
#include "base/mutex.hpp"
#include "stages/batch/batch_state.hpp"
#include "stages/batch/range.hpp"
#include "stages/observe/batches_out.hpp"
#include "stages/observe/occupancy.hpp"
#include "stages/observe/read_record.hpp"
#include "stages/observe/run_progress.hpp"
#include "stages/observe/timeline.hpp"
#include "stages/run/corrupt_watch.hpp"
#include "stages/state/journal.hpp"
#include "stages/state/receipts.hpp"

#include <leat/batch.hpp>
#include <leat/next_result.hpp>
#include <leat/operation.hpp>
#include <leat/option.hpp>

#include <atomic>
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
  std::uint64_t arrived_ns = 0;
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
  read_recorder* record = nullptr;  ///< null: it is not recorded
  recorded_batch recorded;
  std::vector<journal_entry> journal;
  std::vector<receipt_row> receipts;
};

///   batches_max     that the consumer may hold before no more come
///   more_batches    the option that decides how many that are
///   held_patience   how long a call waits while the consumer holds all of these; 0: for ever
///   long_wait       waits that are longer are counted
struct delivery_limits {
  corrupt_limits corrupt = {};
  std::uint32_t batches_max = ~std::uint32_t{0};
  option_id more_batches = option_id::prefetch_batches;
  std::chrono::nanoseconds held_patience = {};
  std::chrono::nanoseconds long_wait = std::chrono::nanoseconds::max();
};

/// One call at a time waits for the next batch, from its begin until it takes it or gives up. It is told once there is something, and
/// what that is is decided when it takes it.
/// Thread: put(), put_untold(), tell(), fail(), end() and give_up() from any; calls and skip_epoch() from one at a time.
class delivery final : public detail::turn_giver {
 public:
  /// What next() gives: a batch, the end of an epoch, or why there is none.
  struct taken {
    std::exception_ptr failure;
    std::optional<batch> got;
  };

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
    std::uint64_t long_waits = 0;   ///< of those that stalled it and have ended: longer than delivery_limits::long_wait
    std::uint64_t pause_ns = 0;     ///< until the first batch, and from the end of an epoch to the next call
    std::uint64_t ready_ns = 0;     ///< that items were here
    std::uint64_t out_ns = 0;       ///< that batches were in the consumer's hands
  };

  ///   from   what was handed out before, by a run that is resumed
  ///   seen   what the trainer does is noted there
  ///   rows   gets the rows that are handed out
  explicit delivery(journal log, const delivery_limits& limits = {}, const run_progress& from = {},
                    std::shared_ptr<const timeline> seen = nullptr, receipts rows = {})
      : seen_(std::move(seen)),
        track_(seen_ != nullptr ? seen_->trainer() : nullptr),
        limits_(limits),
        progress_(from),
        watch_(limits.corrupt, from.epoch, from.counted),
        journal_(std::move(log)),
        receipts_(std::move(rows)) {}

  /// Sets what is called when a batch was handed out and counted, before the consumer has it, on the thread that delivers it; with the
  /// time and the number of batches. Before the first put(). Not after close().
  void on_handed_out(std::function<void(std::uint64_t now_ns, std::uint64_t batches)> callback) {
    handed_out_ = std::move(callback);
  }

  /// The item of place `sequence`; places are 0, 1, 2, ... and each is put once.
  void put(std::uint64_t sequence, delivery_item item);
  /// The same for one of several that come at once: tell() follows the last of them.
  void put_untold(std::uint64_t sequence, delivery_item item);
  /// Tells the call that waits, if there is one and something for it.
  void tell() ABSL_LOCKS_EXCLUDED(mutex_);
  /// Nothing comes at `sequence` or after it: from there on next() says nullopt. The first `empty_epochs` of these are
  /// ends of epochs that have no batch.
  void end(std::uint64_t sequence, std::uint64_t empty_epochs = 0);
  /// An error outside the order: handed out as soon as what is ready before it has been, and for ever after.
  void fail(std::exception_ptr why);
  /// As fail(), and drops what is ready: for stop().
  void close(std::exception_ptr why);

  /// Names a call. Thread: any.
  [[nodiscard]] std::uint64_t new_call() noexcept { return last_call_.fetch_add(1, std::memory_order_relaxed) + 1; }
  /// Begins it, and completes `done` when there is something to take. Then take() or give_up() ends the call. A call that was refused or
  /// cancelled has ended: `done` says why.
  ///   returns   whether it waits while the consumer holds all batches that there may be
  bool begin(std::uint64_t call, detail::wait_completion done);
  /// Whether it has something to take.
  [[nodiscard]] bool is_served(std::uint64_t call) const;
  /// Begins it if there is something to take now.
  [[nodiscard]] bool begin_if_ready(std::uint64_t call);
  [[nodiscard]] taken take(std::uint64_t call);
  void give_up(std::uint64_t call) noexcept override;
  /// Ends a call that waits while the consumer holds all batches, with an error that names them.
  void refuse_if_held_all(std::uint64_t call);
  [[nodiscard]] bool holds_all() const noexcept { return batches_out_->count() >= limits_.batches_max; }
  [[nodiscard]] error held_all_error() const;
  /// When the item came that a call would get; the latest time if there is none, or only the end of the run.
  [[nodiscard]] std::uint64_t ready_since_ns() const;

  /// Begins a call, waits on the caller's thread until `deadline`, or without limit, and takes. Throws the error that it takes.
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
  void begin_call(std::uint64_t call) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void serve() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  [[nodiscard]] detail::wait_completion end_waiting(std::uint64_t call) ABSL_LOCKS_EXCLUDED(mutex_);
  [[nodiscard]] delivery_item take_item() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void begin_to_want(std::uint64_t now_ns) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void end_to_want(std::uint64_t now_ns) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void add_wait(counters& to, std::uint64_t waited_ns) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  [[nodiscard]] bool has_next() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  [[nodiscard]] bool is_skipped(const delivery_item& item) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return item.epoch < skip_before_;
  }
  void pass_skipped() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  [[nodiscard]] taken hand_out(delivery_item item) ABSL_EXCLUSIVE_LOCKS_REQUIRED(taking_);
  void go_on_after(const delivery_item& item) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_, taking_);

  const std::shared_ptr<const timeline> seen_;
  timeline_track* const track_;  // of it; null: nothing is noted
  std::function<void(std::uint64_t, std::uint64_t)> handed_out_;
  const delivery_limits limits_;
  std::atomic<std::uint64_t> last_call_{0};
  mutex taking_;  // from what is taken until it is counted; before mutex_
  mutable mutex mutex_;
  condition_variable changed_;  // for a thread that waits
  std::map<std::uint64_t, delivery_item> arrived_ ABSL_GUARDED_BY(mutex_);
  std::uint64_t next_sequence_ ABSL_GUARDED_BY(mutex_) = 0;
  std::optional<std::uint64_t> end_sequence_ ABSL_GUARDED_BY(mutex_);
  std::uint64_t empty_epochs_ ABSL_GUARDED_BY(mutex_) = 0;
  std::optional<std::uint32_t> epoch_ ABSL_GUARDED_BY(mutex_);  // the consumer's, from its first batch to its end
  std::uint32_t skip_before_ ABSL_GUARDED_BY(mutex_) = 0;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  std::exception_ptr failure_ ABSL_GUARDED_BY(mutex_);
  std::uint64_t call_ ABSL_GUARDED_BY(mutex_) = 0;           // that has begun and not ended; 0: none
  detail::wait_completion waiting_ ABSL_GUARDED_BY(mutex_);  // of it
  bool blocks_ ABSL_GUARDED_BY(mutex_) = false;              // a thread waits for it
  std::uint64_t asked_ns_ ABSL_GUARDED_BY(mutex_) = 0;
  bool held_all_ ABSL_GUARDED_BY(mutex_) = false;                 // by the consumer, when it asked
  bool is_empty_handed_ ABSL_GUARDED_BY(mutex_) = false;          // there was nothing for it then
  std::uint64_t wants_since_ns_ ABSL_GUARDED_BY(mutex_) = 0;      // 0: it has not asked
  std::uint64_t waited_in_calls_ns_ ABSL_GUARDED_BY(mutex_) = 0;  // since then, in calls whose limit has passed
  std::uint64_t returned_ns_ ABSL_GUARDED_BY(mutex_) = 0;         // when it last got something; 0: never
  bool returned_batch_ ABSL_GUARDED_BY(mutex_) = false;
  timeline_span waited_ ABSL_GUARDED_BY(mutex_);    // of the call that was served, until it is known what it gets
  timeline_span stepping_ ABSL_GUARDED_BY(mutex_);  // of the batch that it got
  long_range profiled_ ABSL_GUARDED_BY(mutex_);     // while `waiting_` waits
  counters counted_ ABSL_GUARDED_BY(mutex_);
  run_progress progress_ ABSL_GUARDED_BY(mutex_);
  corrupt_watch watch_ ABSL_GUARDED_BY(taking_);
  journal journal_ ABSL_GUARDED_BY(taking_);
  receipts receipts_ ABSL_GUARDED_BY(taking_);
  async::histogram waits_;
  occupancy ready_;
  std::shared_ptr<batches_out> batches_out_ = std::make_shared<batches_out>();
};

}  // namespace leat::stages
