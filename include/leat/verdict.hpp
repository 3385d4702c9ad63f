// The bottleneck: which part of a loader the others wait for, and how fast it would be without that part.
#pragma once

#include <leat/compiler.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#pragma GCC visibility push(default)
namespace leat {

/// The part that the others wait for, or why none can be named:
///   variance   every part is fast enough on average, and still the consumer waits now and then: more batches ahead
///              help
///   unclear    the counts contradict each other
///   unknown    too little was counted
enum class bottleneck : std::uint8_t { read, decode, transfer, consumer, variance, unclear, unknown };

[[nodiscard]] constexpr std::string_view name(bottleneck who) noexcept {
  constexpr std::string_view names[] = {"read", "decode", "transfer", "consumer", "variance", "unclear", "unknown"};
  return names[static_cast<std::size_t>(who)];
}

/// What a part of the line can do, in samples a second: items at a time, divided by the time of one.
///   per_s      0: it has nothing to do, or nothing is known
///   at_least   it was never at its limit: it may be able to do more
struct capacity {
  double per_s = 0;
  bool at_least = false;
};

/// The bottleneck of a window of time.
struct verdict {
  bottleneck who = bottleneck::unknown;
  std::optional<bottleneck> also;  ///< a second one, if it is within 10 % of the first
  std::optional<bottleneck> next;  ///< the bottleneck if `who`, and `also`, took no time
  capacity if_free;                ///< the rate of the line then
  double samples_per_s = 0;        ///< the rate of the line in the window
  double stall_share = 0;          ///< share of the time that the consumer waited
  double window_s = 0;             ///< length of the window; 0: none was long enough
  capacity read, decode, transfer, consumer;
  std::uint32_t decode_threads = 0;
  std::uint32_t reads_at_a_time = 0;  ///< reads in the kernel at a time; 0: sources that are no files decide it
  std::uint32_t io_threads = 0;
  bool io_threads_limit = false;  ///< the I/O threads are what limits `read`: a deeper queue would not help
  std::string why;                ///< an explanation, if there is one

  /// Null for variance, unclear and unknown.
  [[nodiscard]] const capacity* capacity_of(bottleneck part) const noexcept {
    const capacity* const all[] = {&read, &decode, &transfer, &consumer};
    return part <= bottleneck::consumer ? all[static_cast<std::size_t>(part)] : nullptr;
  }

  /// One sentence or two: "decode: 2 threads give 1,690/s. If it were free: consumer, 2,980/s".
  [[nodiscard]] std::string to_string() const;
};

}  // namespace leat
#pragma GCC visibility pop
