// Pictures that a run would leave out, since decoding them takes more memory than a loader gives one: found before the
// run (leat inspect).
#pragma once

#include "stages/pixels/picture_decoder.hpp"

#include <leat/samples.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace leat::tools {

/// Decodes whole pictures, as a loader with this budget would. Thread: one at a time.
class picture_check {
 public:
  explicit picture_check(std::size_t host_bytes_max);

  /// Why it cannot be decoded: outcome_kind::over_budget among that. Nothing of it is kept.
  [[nodiscard]] stages::outcome<void> decode_whole(std::span<const std::byte> encoded);
  /// The memory that this takes, by its headers. `encoded` may be the beginning of a JPEG.
  [[nodiscard]] stages::outcome<std::size_t> bytes_of(std::span<const std::byte> encoded);

 private:
  pixels::scratch_budget budget_;
  pixels::picture_decoder decoder_;
  const pixels::pipeline steps_;
  const pixels::store how_;
  std::vector<std::byte> row_;
};

struct large_picture {
  std::uint64_t sample = 0;
  std::string name;
  std::size_t bytes = 0;  ///< of memory to decode it
};

/// What was found, the largest first.
///   host_bytes_max     the loader's budget that was looked at
///   looked_at          pictures: all; at addresses so many of the largest files
///   host_bytes_enough  the budget that does for all of them
struct large_pictures {
  std::size_t host_bytes_max = 0;
  std::uint64_t looked_at = 0;
  std::vector<large_picture> over;
  std::size_t host_bytes_enough = 0;
};

/// How far it is, for a status line. Thread: read on any.
struct measuring_progress {
  std::atomic<std::uint64_t> measured = 0;
  std::atomic<std::uint64_t> pictures = 0;  ///< that will be measured; 0 until that is known
};

/// Reads the beginnings of pictures, and those whole that may take too much, which are decoded as the loader would.
[[nodiscard]] large_pictures find_large_pictures(const dataset& samples, std::size_t host_bytes_max,
                                                 measuring_progress& so_far);

}  // namespace leat::tools
