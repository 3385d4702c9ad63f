// Which part of a line the others wait for, as a function of what was counted.
#pragma once

#include <leat/stats.hpp>

#include <cstdint>

namespace leat::stages {

/// What a loader has counted since it began.
///   decode_busy_s, decode_wait_s   summed over the decode threads
///   collated, transferred          batches
struct line_snapshot {
  double elapsed_s = 0;
  double next_wait_s = 0;
  double decode_busy_s = 0;
  double decode_wait_s = 0;
  std::uint32_t decode_threads = 1;
  std::uint64_t collated = 0;
  std::uint64_t transferred = 0;
};

/// Whoever waits least is what the others wait for: a consumer that never waits; else decoders that are never idle; else the copies,
/// where batches wait for memory that is out; else whichever of disk and decoders waits less.
[[nodiscard]] bottleneck slowest_of(const line_snapshot& seen) noexcept;

}  // namespace leat::stages
