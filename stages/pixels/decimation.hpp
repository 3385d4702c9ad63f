// By how much a decoder shrinks a picture while it decodes it.
#pragma once

#include "stages/pixels/geometry.hpp"
#include "stages/pixels/orientation.hpp"
#include "stages/pixels/picture_info.hpp"
#include "stages/pixels/resample.hpp"

namespace leat::pixels {

/// The most by which the box can shrink without becoming smaller than what it is scaled to: 1, 2, 4 or 8. It depends on sizes alone,
/// so that every machine chooses the same.
[[nodiscard]] inline int decimation_of(const geometry& drawn) noexcept {
  if (drawn.warp) {
    if (drawn.warp->how == filter::nearest) return 1;
    const pixel_density density = density_of(*drawn.warp);
    for (const int by : {8, 4, 2}) {
      if (density.across >= by && density.down >= by) return by;
    }
    return 1;
  }
  if (drawn.how == filter::nearest) return 1;
  for (const int by : {8, 4, 2}) {
    if (drawn.box.width >= by * drawn.scaled_width && drawn.box.height >= by * drawn.scaled_height) return by;
  }
  return 1;
}

[[nodiscard]] inline int shrunk(int size, int by) noexcept { return (size + by - 1) / by; }

/// Decimated sizes are rounded up at the stored picture's right and lower edge; the upright picture may begin there.
[[nodiscard]] inline decimated decimated_by(int by, const picture_info& info) noexcept {
  const orientation turn(info.orientation);
  const auto [width, height] = turn.size(info.width, info.height);
  const auto rounded_by = [&](int size) { return shrunk(size, by) - static_cast<double>(size) / by; };
  return {by, turn.from_far_x() ? rounded_by(width) : 0.0, turn.from_far_y() ? rounded_by(height) : 0.0};
}

}  // namespace leat::pixels
