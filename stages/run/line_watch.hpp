// What a line has done so far: its counters, its windows and the verdict on them, as loader::stats() has them.
#pragma once

#include "stages/observe/verdict.hpp"
#include "stages/run/decode_stage.hpp"
#include "stages/run/delivery.hpp"

#include <leat/loading.hpp>

#include <cstdint>
#include <vector>

namespace leat::async {
class histogram_sum;
}
namespace leat::io {
class arena;
class io_threads;
class lease_pool;
}  // namespace leat::io
namespace leat::pixels {
class scratch_budget;
}

namespace leat::stages {

class run_spec;
class hand_over;
class line_tuner;
class node_placement;
class prefetch;
class reader_stage;
class stall_files;
class transfer;
class windows;
struct memory_plan;

/// What has been read of a dataset's objects, by anybody.
[[nodiscard]] remote_stats remote_counts(const datasets::dataset_model& dataset);

/// Refers to the parts of a line, which the loader keeps. Thread: any, after begin().
class line_watch {
 public:
  struct parts {
    const run_spec& run;
    const loader_options& options;
    const remote_stats& remote_before;
    const memory_plan& memory;
    const node_placement& placed;
    const stages::transfer& transfer;
    const stages::delivery& delivery;
    stages::windows& windows;
    const io::arena& arena;
    const io::lease_pool& read_pool;
    const io::lease_pool& batch_pool;
    const io::io_threads& loops;
    const pixels::scratch_budget& scratch;
    const decode_stage& rows;
    const hand_over& ending;
    const reader_stage& reads;
    const stages::prefetch& prefetch;
    const stall_files& stalls;
    const line_tuner& tuner;
  };
  explicit line_watch(const parts& line);

  /// Time runs from here.
  void begin();
  /// On the thread that hands out a batch: ends a window that is long enough, and says whether it did.
  bool handed_out(std::uint64_t now, std::uint64_t batches);
  /// Of the last window that has ended.
  [[nodiscard]] verdict verdict_of_last() const;
  /// Since begin().
  [[nodiscard]] double seconds_at(std::uint64_t now_ns) const noexcept;

  [[nodiscard]] loader_stats stats() const;
  [[nodiscard]] verdict verdict_of_run() const;
  [[nodiscard]] std::vector<loader_window> windows() const;

 private:
  [[nodiscard]] async::histogram_sum read_times() const;
  [[nodiscard]] line_counts counts(const delivery::counters& handed, const decode_stage::counters& made,
                                   const async::histogram_sum& read_times) const;
  [[nodiscard]] line_setting setting(const line_counts& counts) const;
  [[nodiscard]] std::vector<leat::thread_stats> thread_stats_now() const;

  const parts line_;
  const std::uint32_t cores_;  // when the loader is built
  const double cpu_quota_;     // the same; 0: none
  std::uint64_t started_ns_ = 0;
};

}  // namespace leat::stages
