// The whole loader with one part made slow: what its verdict says, and what the line really does, by a clock of its own.
#pragma once

#include "stages/observe/windows.hpp"
#include "tests/support/slow_parts.hpp"

#include <leat/stats.hpp>

#include <chrono>
#include <cstdint>

namespace leat::testing {

/// Times of a line's parts. A batch has 8 samples, and there are 2 decode threads.
struct line_of_parts {
  static constexpr std::uint64_t batch_size = 8;

  std::chrono::microseconds read{0};  // of a sample
  std::chrono::microseconds decode{0};
  std::chrono::microseconds transfer{0};  // of a batch
  std::chrono::microseconds step{0};
  passing how = passing::asleep;  // of the slow part; the others sleep
  bottleneck slow = bottleneck::read;
  std::uint32_t prefetch_batches = 4;  // so that a short run is no run ahead
  bool on_device = false;              // copies and steps are a device's: the trainer queues them and waits for none
};

/// All parts take 4 ms a batch, but for one that takes so many times as long.
[[nodiscard]] line_of_parts with_slow(bottleneck part, double times, passing how, bool on_device = false);

/// The same line, in which the slow part takes no time.
[[nodiscard]] line_of_parts without_slow(line_of_parts parts);

struct run_of_parts {
  loader_stats stats;        // at the end; its verdict is of the last window
  double samples_per_s = 0;  // of that window, by the times at which the consumer got batches
};

/// Runs an epoch.
[[nodiscard]] run_of_parts run(const line_of_parts& parts, std::uint64_t batches,
                               const stages::window_options& windows = {});

}  // namespace leat::testing
