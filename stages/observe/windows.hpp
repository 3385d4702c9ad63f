// A run in windows of time: what was counted in each, for the last ones.
#pragma once

#include "base/mutex.hpp"
#include "stages/observe/verdict.hpp"

#include <leat/window.hpp>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

namespace leat::stages {

/// When a window ends: with the first batch that is handed out once both have passed.
///   batches, seconds   fewer batches than 24 make the mean of a step uncertain, less than 2 s that of a decode thread
///   first_batches      the first window is looked at before it ends, once it has so many
///   kept               older ones are forgotten
struct window_options {
  std::uint64_t batches = 24;
  double seconds = 2;
  std::uint64_t first_batches = 8;
  std::size_t kept = 60;
};

/// Owns the windows that have ended. There is no timer: who hands out a batch asks whether one ends with it.
class windows {
 public:
  explicit windows(const window_options& options) : options_(options) {}

  /// Whether the open window ends now. Thread: the one that hands out batches, one at a time.
  [[nodiscard]] bool is_due(std::uint64_t time_ns, std::uint64_t batches) const noexcept {
    return batches >= due_batches_ && time_ns >= due_ns_;
  }
  /// Ends it. Thread: as is_due().
  ///   counts   since the loader began
  void end(const line_counts& counts, const line_setting& setting);

  /// Of the last window that has ended; of the open one where there is none, or where nothing comes any more.
  [[nodiscard]] verdict judge_last(const line_counts& counts, const line_setting& setting) const;
  /// Of the whole run so far; as judge_last() where too little was handed out.
  [[nodiscard]] verdict judge_run(const line_counts& counts, const line_setting& setting) const;
  /// Those that are kept, the oldest first, and the open one.
  [[nodiscard]] std::vector<loader_window> all(const line_counts& counts, const line_setting& setting) const;

 private:
  struct ended {
    std::uint64_t begin_ns = 0;
    line_counts counts;
    line_setting setting;
  };

  const window_options options_;
  // Of the thread that hands out.
  std::uint64_t due_batches_ = options_.batches;
  std::uint64_t due_ns_ = static_cast<std::uint64_t>(options_.seconds * 1e9);

  mutable mutex mutex_;
  std::deque<ended> ended_ ABSL_GUARDED_BY(mutex_);
  line_counts before_ ABSL_GUARDED_BY(mutex_);  // the open window began with these
};

}  // namespace leat::stages
