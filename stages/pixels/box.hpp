// Boxes in a picture.
#pragma once

#include "stages/pixels/matrix.hpp"

#include <algorithm>
#include <span>

namespace leat::pixels {

/// In pixels, from the upper left corner.
struct box {
  double left = 0;
  double top = 0;
  double right = 0;
  double bottom = 0;

  [[nodiscard]] double area() const noexcept {
    return right > left && bottom > top ? (right - left) * (bottom - top) : 0;
  }
  friend bool operator==(const box&, const box&) = default;
};

[[nodiscard]] inline box common(const box& a, const box& b) noexcept {
  return {std::max(a.left, b.left), std::max(a.top, b.top), std::min(a.right, b.right), std::min(a.bottom, b.bottom)};
}

/// By a matrix that only scales, mirrors, moves and exchanges axes.
[[nodiscard]] inline box moved(const warp_matrix& m, const box& of) noexcept {
  const auto [x1, y1, w1] = seen_from(m, of.left, of.top);
  const auto [x2, y2, w2] = seen_from(m, of.right, of.bottom);
  return {std::min(x1, x2), std::min(y1, y2), std::max(x1, x2), std::max(y1, y2)};
}

/// The boxes of one sample that a crop looks at. Refers to memory of a decode thread.
///   all         of the picture as it is stored
///   in_shares   of its sides, and not in pixels
struct picture_boxes {
  std::span<const box> all;
  bool in_shares = false;
};

/// The same where they are looked at.
///   to_seen   from a place that `all` is of to one in the picture that is seen
struct seen_boxes {
  std::span<const box> all;
  warp_matrix to_seen = identity_matrix;
};

}  // namespace leat::pixels
