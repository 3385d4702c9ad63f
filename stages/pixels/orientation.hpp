// EXIF's eight orientations as index arithmetic: stored pixel -> upright pixel.
#pragma once

#include "stages/pixels/geometry.hpp"

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace leat::pixels {

/// How the stored picture has to be turned: first left and right exchanged, then top and bottom, then rows and columns.
struct orientation {
  bool mirrored = false;
  bool upended = false;
  bool transposed = false;

  /// `exif` is 1..8: EXIF 2.32, tag 0x0112.
  explicit constexpr orientation(int exif) noexcept
      // 1 as it is, 2 mirrored, 3 turned by 180, 4 upended, 5 transposed, 6 turned clockwise, 7 transverse, 8 the other way
      : mirrored(exif == 2 || exif == 3 || exif == 7 || exif == 8),
        upended(exif == 3 || exif == 4 || exif == 6 || exif == 7),
        transposed(exif >= 5) {
    assert(exif >= 1 && exif <= 8);
  }

  [[nodiscard]] constexpr bool upright() const noexcept { return !mirrored && !upended && !transposed; }

  /// Width and height of the upright picture.
  [[nodiscard]] constexpr std::pair<int, int> size(int width, int height) const noexcept {
    return transposed ? std::pair{height, width} : std::pair{width, height};
  }

  /// Whether the upright picture's left edge (its upper edge) is the stored picture's right or lower one.
  [[nodiscard]] constexpr bool from_far_x() const noexcept { return transposed ? upended : mirrored; }
  [[nodiscard]] constexpr bool from_far_y() const noexcept { return transposed ? mirrored : upended; }

  /// Where a part of the upright picture lies in the stored one of width x height.
  [[nodiscard]] constexpr rectangle stored(rectangle upright_part, int width, int height) const noexcept {
    rectangle r = upright_part;
    if (transposed) {
      std::swap(r.x, r.y);
      std::swap(r.width, r.height);
    }
    if (mirrored) r.x = width - r.width - r.x;
    if (upended) r.y = height - r.height - r.y;
    return r;
  }

  /// From a place in the upright picture to one in the stored picture of width x height.
  [[nodiscard]] warp_matrix to_stored(int width, int height) const noexcept {
    const auto line = [](bool far, int side, bool second) -> std::array<double, 3> {
      const double step = far ? -1 : 1;
      return {second ? 0 : step, second ? step : 0, far ? static_cast<double>(side) : 0};
    };
    const std::array<double, 3> x = line(mirrored, width, transposed);
    const std::array<double, 3> y = line(upended, height, !transposed);
    return {x[0], x[1], x[2], y[0], y[1], y[2], 0, 0, 1};
  }

  /// One line of the upright part, gathered from the stored part (interleaved RGB, dense).
  void line(const std::uint8_t* part, const rectangle& stored_part, int y, std::uint8_t* to) const noexcept {
    const std::ptrdiff_t stride = std::ptrdiff_t{3} * stored_part.width;
    const int count = transposed ? stored_part.height : stored_part.width;
    // Along the line we walk down a column where the picture is transposed, else along a row.
    std::ptrdiff_t step = transposed ? stride : 3;
    if (from_far_x()) step = -step;
    const bool from_the_end = from_far_y();
    std::ptrdiff_t begin = 0;
    if (transposed) {
      begin = 3 * static_cast<std::ptrdiff_t>(from_the_end ? stored_part.width - 1 - y : y);
      if (upended) begin += stride * (stored_part.height - 1);
    } else {
      begin = stride * (from_the_end ? stored_part.height - 1 - y : y);
      if (mirrored) begin += std::ptrdiff_t{3} * (stored_part.width - 1);
    }
    const std::uint8_t* in = part + begin;
    for (int x = 0; x < count; ++x, in += step, to += 3) {
      to[0] = in[0];
      to[1] = in[1];
      to[2] = in[2];
    }
  }
};

}  // namespace leat::pixels
