// Where next() waits: batches arrive in any order and leave in theirs, one call at a time.
#pragma once

#include "async/histogram.hpp"
#include "async/mutex.hpp"
#include "stages/batch_state.hpp"
#include "stages/journal.hpp"
#include "stages/range.hpp"

#include <leat/batch.hpp>
#include <leat/completion.hpp>

#include <cstdint>
#include <exception>
#include <map>
#include <memory>
#include <optional>
#include <vector>

namespace leat::stages {

/// What next() hands out in one place of the run's order: a batch, the end of an epoch, or an error.
struct delivery_item {
  std::unique_ptr<batch::state> finished;
  std::exception_ptr failure;
  // What is counted and written when it is handed out, not before.
  std::uint64_t planned = 0;
  std::uint64_t samples = 0;
  std::uint64_t quarantined = 0;
  std::uint64_t substituted = 0;
  std::uint64_t bytes = 0;
  bool end_of_epoch = false;
  std::vector<journal_entry> journal;
};

/// Thread: put(), fail() and end() from any; next() from one at a time.
class delivery {
 public:
  using next_completion = completion<void(std::exception_ptr, std::optional<batch>)>;

  struct counters {
    std::uint64_t planned = 0;
    std::uint64_t samples = 0;
    std::uint64_t quarantined = 0;
    std::uint64_t substituted = 0;
    std::uint64_t batches = 0;
    std::uint64_t bytes = 0;
    std::uint32_t epochs_finished = 0;
    std::uint64_t next_count = 0;
    std::uint64_t ready = 0;  ///< batches waiting to be asked for
    std::uint64_t out = 0;    ///< batches in the consumer's hands
    async::histogram::summary waits;
  };

  explicit delivery(journal log) : journal_(std::move(log)) {}

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

  [[nodiscard]] counters count() const;
  /// Whether somebody waits in next() right now.
  [[nodiscard]] bool starving() const;

 private:
  void cancel();
  void pump() ABSL_LOCKS_EXCLUDED(mutex_);
  void hand_out(delivery_item item, next_completion done, std::uint64_t asked_ns);

  mutable async::mutex mutex_;
  std::map<std::uint64_t, delivery_item> arrived_ ABSL_GUARDED_BY(mutex_);
  std::uint64_t next_sequence_ ABSL_GUARDED_BY(mutex_) = 0;
  std::optional<std::uint64_t> end_sequence_ ABSL_GUARDED_BY(mutex_);
  std::uint64_t empty_epochs_ ABSL_GUARDED_BY(mutex_) = 0;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  std::exception_ptr failure_ ABSL_GUARDED_BY(mutex_);
  next_completion waiting_ ABSL_GUARDED_BY(mutex_);
  std::uint64_t asked_ns_ ABSL_GUARDED_BY(mutex_) = 0;
  long_range profiled_ ABSL_GUARDED_BY(mutex_);  // while `waiting_` waits
  // From next() to its completion: one call at a time, also while what it gets is being written to the journal.
  bool busy_ ABSL_GUARDED_BY(mutex_) = false;
  counters counted_ ABSL_GUARDED_BY(mutex_);
  journal journal_;  // only who hands out touches it, and only one does
  async::histogram waits_;
  std::shared_ptr<std::atomic<std::int64_t>> batches_out_ = std::make_shared<std::atomic<std::int64_t>>(0);
};

}  // namespace leat::stages
