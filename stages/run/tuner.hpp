// What a line should work with, window by window: a function of verdicts, without a clock or a thread.
#pragma once

#include "stages/run/loader_parts.hpp"

#include <leat/verdict.hpp>

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace leat::stages {

/// What is to be set now, and for which reason; as leat::tuning_step has it.
struct tuning_change {
  concurrency_limits from;
  concurrency_limits to;
  std::string_view why;
};

/// What decode threads have done since the loader began. A job counts when it ends, but its CPU time as it passes.
///   threads   that take jobs
struct decode_work {
  std::uint64_t jobs = 0;
  std::uint64_t busy_ns = 0;
  std::uint64_t cpu_ns = 0;
  std::uint32_t threads = 1;
};

/// Of the jobs between the two: the share of their time in which they had a core. 1 where it is not known: nothing was done, or so few jobs
/// that those at the edges of the window decide it.
[[nodiscard]] double share_on_cores(const decode_work& before, const decode_work& now) noexcept;

/// Looks at one window after the other. While the trainer waits, more is given to the part that the verdict names; the window after it
/// judges, and what has gained nothing is undone and rests, each time for twice as long. Where the trainer hardly waits, decode threads
/// are given back; where decode threads wait for cores, fewer are tried, which leaves cores to the trainer and to I/O threads. Ten windows
/// without a change end it, until the trainer waits again.
class tuner {
 public:
  /// Of its time the trainer may wait.
  static constexpr double little_stall = 0.01;
  /// Windows without a change until it is frozen; windows of more than 2 x little_stall, one after the other, until it goes on.
  static constexpr std::uint32_t quiet_windows = 10;
  static constexpr std::uint32_t stalled_windows = 3;

  ///   now    what the line works with
  ///   most   that it may work with: never more is asked for
  tuner(const concurrency_limits& now, const concurrency_limits& most) noexcept : now_(now), most_(most) {}

  /// What to set after this window; nothing where all stays as it is. Windows that say nothing are passed over.
  ///   decode_on_cores   share of their jobs' time in which decode threads had a core; 1: all of it, or not known
  [[nodiscard]] std::optional<tuning_change> see(const verdict& window, double decode_on_cores = 1);

  [[nodiscard]] const concurrency_limits& now() const noexcept { return now_; }
  [[nodiscard]] bool is_frozen() const noexcept { return quiet_ >= quiet_windows; }

 private:
  enum knob : std::uint8_t { threads, depth, batches, readers, lines, knobs };
  enum class reason : std::uint8_t { grows, gives_back, makes_room };
  struct tried {
    concurrency_limits before;
    double samples_per_s = 0;
    reason why = reason::grows;
    bool takes_back = false;  // decode threads that were given back
  };

  [[nodiscard]] bool has_failed(const tried& change, const verdict& window, bool is_crowded) const noexcept;
  void let_rest(const concurrency_limits& other, std::uint32_t windows) noexcept;
  [[nodiscard]] bool rests(knob which) const noexcept { return window_ < rests_until_[which]; }
  [[nodiscard]] std::optional<tuning_change> grow(const verdict& window) const;
  void grow_for(bottleneck part, const verdict& window, concurrency_limits& to) const noexcept;
  void grow_io_threads(const verdict& window, concurrency_limits& to) const noexcept;
  [[nodiscard]] std::optional<tuning_change> give_back(const verdict& window) const;
  [[nodiscard]] std::optional<tuning_change> make_room(const verdict& window, double decode_on_cores) const;
  [[nodiscard]] std::uint32_t least_threads() const noexcept;

  concurrency_limits now_;
  const concurrency_limits most_;
  std::optional<tried> tried_;
  std::uint32_t window_ = 0;
  std::uint32_t quiet_ = 0;
  std::uint32_t stalled_ = 0;
  std::uint32_t too_few_threads_ = 0;  // that were too few when the rest was given back
  std::uint32_t given_back_to_ = 0;    // the last time
  std::array<std::uint32_t, knobs> rests_until_ = {};
  std::array<std::uint32_t, knobs> failures_ = {};
};

}  // namespace leat::stages
