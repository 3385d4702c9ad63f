// The tuner of a line that runs: it sees each window, changes the depths, and remembers what it did.
#pragma once

#include "base/mutex.hpp"
#include "stages/run/concurrency_limits.hpp"
#include "stages/run/decode_stage.hpp"
#include "stages/run/tuner.hpp"

#include <leat/stats.hpp>
#include <leat/verdict.hpp>

#include <cstddef>
#include <cstdint>
#include <deque>

namespace leat::stages {

class timeline;

/// Refers to its arguments, which the loader keeps.
class line_tuner {
 public:
  static constexpr std::size_t steps_kept = 100;

  ///   on   otherwise it changes nothing
  ///   seen   each step is noted there
  line_tuner(bool on, depth_control& depths, const decode_stage& rows, timeline& seen)
      : on_(on), depths_(depths), rows_(rows), seen_(seen), tuner_(depths.now(), depths.most()) {}

  [[nodiscard]] bool on() const noexcept { return on_; }
  /// A window has ended. Thread: the one that hands out batches, one at a time.
  ///   at_s, at_ns   since the loader began, and of the clock
  void see(const verdict& window, double at_s, std::uint64_t at_ns);
  /// Thread: any.
  [[nodiscard]] tuning_stats count() const;

 private:
  /// As share_on_cores, since the last call.
  double decode_on_cores();
  void remember(const tuning_change& change, const verdict& window, double at_s, std::uint64_t at_ns)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const bool on_;
  depth_control& depths_;
  const decode_stage& rows_;
  timeline& seen_;
  // Of the thread that hands out:
  tuner tuner_;
  decode_work work_before_;
  mutable mutex mutex_;
  std::deque<tuning_step> steps_ ABSL_GUARDED_BY(mutex_);
  std::uint64_t steps_in_all_ ABSL_GUARDED_BY(mutex_) = 0;
  bool frozen_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace leat::stages
