// What each thread and each batch of a line did when: its tracks, and the file that a viewer of traces shows.
#pragma once

#include "base/mutex.hpp"
#include "stages/observe/marks.hpp"
#include "stages/observe/timeline_track.hpp"

#include <leat/stats.hpp>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace leat::stages {

/// The tracks of a line. Without memory there are none, and each is null.
class timeline {
 public:
  ///   bytes   of all rings together; 0: nothing is noted
  timeline(std::size_t bytes, std::uint32_t batches, std::uint32_t io_threads, std::uint32_t decode_threads);

  [[nodiscard]] bool on() const noexcept { return trainer_ != nullptr; }
  [[nodiscard]] timeline_track* trainer() const noexcept { return trainer_.get(); }
  [[nodiscard]] stages::marks* marks() const noexcept { return marks_.get(); }
  [[nodiscard]] timeline_track* batch(std::size_t number) const noexcept { return of(batches_, number); }
  [[nodiscard]] timeline_track* io_thread(std::size_t number) const noexcept { return of(io_threads_, number); }
  [[nodiscard]] timeline_track* decode_thread(std::size_t number) const noexcept { return of(decode_threads_, number); }
  [[nodiscard]] read_track* reads(std::size_t io_thread) const noexcept {
    return io_thread < reads_.size() ? reads_[io_thread].get() : nullptr;
  }
  [[nodiscard]] block_track* blocks() const noexcept { return blocks_.get(); }
  [[nodiscard]] timeline_track* device() const noexcept { return device_.get(); }
  /// How long a queue is now. Thread: one at a time.
  void note(line_queue which, std::uint64_t at_ns, std::uint64_t length) const noexcept;

  /// A setting was changed. There are few of these: the last ones are kept beside the rings. Thread: any.
  void note(std::uint64_t at_ns, const tuning_step& step) ABSL_LOCKS_EXCLUDED(steps_mutex_);

  /// All spans as Chrome's trace events (JSON), which ui.perfetto.dev shows. A batch is tied by an arrow to the call of next() that got it.
  /// Reads that overlap are on several lines. What a device did begins where it was queued, and is as long as the device says.
  /// Times are microseconds since "baseTimeNanoseconds" of the system's clock, in eighths; that moment is torch.profiler's.
  ///   rank   the process in the file
  [[nodiscard]] std::string to_json(std::uint32_t rank) const;

 private:
  static constexpr std::size_t steps_kept = 100;
  using tracks = std::vector<std::unique_ptr<timeline_track>>;

  [[nodiscard]] static timeline_track* of(const tracks& all, std::size_t number) noexcept {
    return number < all.size() ? all[number].get() : nullptr;
  }

  std::unique_ptr<timeline_track> trainer_;
  std::unique_ptr<stages::marks> marks_;
  tracks batches_;
  tracks io_threads_;
  std::vector<std::unique_ptr<read_track>> reads_;
  tracks decode_threads_;
  std::unique_ptr<block_track> blocks_;
  std::unique_ptr<timeline_track> device_;
  std::unique_ptr<timeline_track> queues_;
  struct step_at {
    std::uint64_t at_ns = 0;
    tuning_step step;
  };
  [[nodiscard]] std::deque<step_at> steps() const ABSL_LOCKS_EXCLUDED(steps_mutex_);
  mutable mutex steps_mutex_;
  std::deque<step_at> steps_ ABSL_GUARDED_BY(steps_mutex_);
};

}  // namespace leat::stages
