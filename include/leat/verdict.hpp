// Which part of a line the others wait for, by how much, and what it would give if that part were free.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace leat {

/// Whom the others wait for; or why nobody can be named:
///   variance   every part could do more than the line does, and still the consumer waits now and then: more batches even that out
///   unclear    what was counted contradicts itself
///   unknown    too little was counted
enum class bottleneck : std::uint8_t { read, decode, transfer, consumer, variance, unclear, unknown };

[[nodiscard]] constexpr std::string_view name(bottleneck who) noexcept {
  constexpr std::string_view names[] = {"read", "decode", "transfer", "consumer", "variance", "unclear", "unknown"};
  return names[static_cast<std::size_t>(who)];
}

/// What a part of the line can do, in samples a second, from what one item takes it and how many it works on at a time.
///   per_s      0: it has nothing to do, or nothing is known
///   at_least   it was never given so much that more could not have been possible
struct capacity {
  double per_s = 0;
  bool at_least = false;
};

/// Of a window of time.
struct verdict {
  bottleneck who = bottleneck::unknown;
  std::optional<bottleneck> also;  ///< the second, where it is within 10 % of the first
  std::optional<bottleneck> next;  ///< whom the others would wait for if `who`, and `also`, were free
  capacity if_free;                ///< what the line would then do
  double samples_per_s = 0;        ///< what it did
  double stall_share = 0;          ///< of the time the consumer waited
  double window_s = 0;             ///< 0: none was long enough
  capacity read, decode, transfer, consumer;
  std::uint32_t decode_threads = 0;
  std::uint32_t reads_at_a_time = 0;  ///< that the kernel is given; 0: sources that are no files decide it
  std::uint32_t io_threads = 0;
  bool io_threads_limit = false;  ///< `read` is what the I/O threads' own work allows: a deeper queue would not help
  std::string why;                ///< what else there is to say of it

  /// Null for a word that is no part.
  [[nodiscard]] const capacity* capacity_of(bottleneck part) const noexcept {
    const capacity* const all[] = {&read, &decode, &transfer, &consumer};
    return part <= bottleneck::consumer ? all[static_cast<std::size_t>(part)] : nullptr;
  }

  /// One sentence or two: "decode: 2 threads give 1,690/s. If it were free: consumer, 2,980/s".
  [[nodiscard]] std::string to_string() const;
};

}  // namespace leat
