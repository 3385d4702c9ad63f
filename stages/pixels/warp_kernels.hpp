// The inner loops of warps, compiled for several instruction sets and chosen when first called. All give the same bits.
#pragma once

#include <cstdint>

namespace leat::pixels {

/// A picture of lines that are three planes each, one behind the other, and what is done.
///   to_width   of the lines that are made, of three planes likewise
struct warp_source {
  const std::uint8_t* first = nullptr;
  int width = 0;
  int height = 0;
  int to_width = 0;
  bool bilinear = false;
  std::uint8_t fill[3] = {};
};

/// A line's places, with 32 binary digits behind the point: pixel i is at x + i * step_x, y + i * step_y. Of nearest ones floor() is the
/// pixel, of bilinear ones that at its upper left.
struct fixed_places {
  std::int64_t x = 0;
  std::int64_t y = 0;
  std::int64_t step_x = 0;
  std::int64_t step_y = 0;
};
/// Likewise: pixel i is at (x + i * step_x) / (w + i * step_w) - shift. What has no divisor above 0 lies outside.
struct projected_places {
  double x = 0;
  double y = 0;
  double w = 1;
  double step_x = 0;
  double step_y = 0;
  double step_w = 0;
  double shift = 0;
};

void warp_line(const warp_source& from, const fixed_places& places, std::uint8_t* to) noexcept;
void warp_line(const warp_source& from, const projected_places& places, std::uint8_t* to) noexcept;

}  // namespace leat::pixels
