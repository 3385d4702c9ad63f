// How many reads the kernel is given at a time where nobody says: by bytes, not by count.
//
// What keeps a drive busy is bytes in flight, at least its rate times its latency: 14 GB/s x 100 us = 1.4 MB for the fastest
// of today's NVMe drives. Five times as much has room for drives that answer later; more only makes reads wait there
// instead of here, where they could still be cancelled. Small reads are limited in number as well: 128 of 4 KiB are as many as
// a drive's million reads a second and 100 us ask for. Large ones are at least 8, so that one slow read is not all there is.
#pragma once

#include <algorithm>
#include <cstdint>

namespace leat::io {

struct queue_depth {
  static constexpr std::uint64_t bytes = std::uint64_t{7} << 20;
  static constexpr std::uint32_t reads_min = 8;
  static constexpr std::uint32_t reads_max = 128;

  /// Whether another read of so many bytes is given to the kernel, which has `reads` of `in_flight` bytes together.
  [[nodiscard]] static constexpr bool admits(std::uint64_t reads, std::uint64_t in_flight,
                                             std::uint64_t read_bytes) noexcept {
    return reads < reads_min || (reads < reads_max && in_flight + read_bytes <= bytes);
  }

  /// Reads in flight where all are of this size.
  ///   bytes_wanted, reads_most   of a source that is no drive
  [[nodiscard]] static constexpr std::uint32_t of(std::uint64_t read_bytes, std::uint64_t bytes_wanted = bytes,
                                                  std::uint32_t reads_most = reads_max) noexcept {
    return static_cast<std::uint32_t>(
        std::clamp<std::uint64_t>(bytes_wanted / std::max<std::uint64_t>(read_bytes, 1), reads_min, reads_most));
  }
};

}  // namespace leat::io
