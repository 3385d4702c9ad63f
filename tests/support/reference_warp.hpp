// What a warp is, in double precision, one value at a time.
#pragma once

#include "stages/pixels/warp.hpp"

#include <cmath>
#include <cstddef>
#include <optional>

namespace leat::testing {

/// Channel c of pixel (x, y), unrounded. Nothing where a nearest pixel is nearer to another than 2^-8.
///   value(c, x, y)   of a pixel of the old picture, which is height x width
template <class Value>
std::optional<double> warped_value(const pixels::warp& how, int height, int width, int c, int x, int y,
                                   const Value& value) {
  const pixels::warp_matrix& m = how.from;
  const double fill = how.fill[static_cast<std::size_t>(c)];
  const auto at = [&](double at_x, double at_y) -> double {
    if (at_x < 0 || at_y < 0 || at_x >= width || at_y >= height) return fill;
    return value(c, static_cast<int>(at_x), static_cast<int>(at_y));
  };
  const double w = m[6] * (x + 0.5) + m[7] * (y + 0.5) + m[8];
  if (!(w > 0)) return fill;
  const double u = (m[0] * (x + 0.5) + m[1] * (y + 0.5) + m[2]) / w;
  const double v = (m[3] * (x + 0.5) + m[4] * (y + 0.5) + m[5]) / w;
  if (how.how == filter::nearest) {
    const auto is_near = [](double place) { return std::abs(place - std::nearbyint(place)) < 1.0 / 256; };
    if (is_near(u) || is_near(v)) return std::nullopt;
    return at(std::floor(u), std::floor(v));
  }
  const double left = std::floor(u - 0.5);
  const double top = std::floor(v - 0.5);
  const double right = u - 0.5 - left;
  const double down = v - 0.5 - top;
  return (at(left, top) * (1 - right) + at(left + 1, top) * right) * (1 - down) +
         (at(left, top + 1) * (1 - right) + at(left + 1, top + 1) * right) * down;
}

}  // namespace leat::testing
