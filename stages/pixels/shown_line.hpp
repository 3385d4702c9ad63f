// The pixels of a line that look into a box.
#pragma once

#include "stages/pixels/box.hpp"
#include "stages/pixels/matrix.hpp"

#include <algorithm>
#include <cmath>

namespace leat::pixels {

/// Pixels of a line, [begin, end).
struct pixel_run {
  int begin = 0;
  int end = 0;
};

/// Divisors that are not above it lie behind the horizon.
inline constexpr double horizon = 1e-9;

/// Leaves those i of the run for whose middles a * (i + 0.5) + b is not below 0.
inline void cut_run(double a, double b, pixel_run& run) noexcept {
  if (a == 0) {
    if (b < 0) run.end = run.begin;
    return;
  }
  const double root = std::clamp(-b / a - 0.5, -1.0, 1e9);
  if (a > 0) {
    run.begin = std::max(run.begin, static_cast<int>(std::ceil(root)));
  } else {
    run.end = std::min(run.end, static_cast<int>(std::floor(root)) + 1);
  }
}

/// Leaves those of line y whose middles look into the box by the matrix.
inline void cut_to_box(const warp_matrix& m, const box& inside, int y, pixel_run& run) noexcept {
  const double middle = y + 0.5;
  const double x0 = m[1] * middle + m[2];
  const double y0 = m[4] * middle + m[5];
  const double w0 = m[7] * middle + m[8];
  cut_run(m[6], w0 - horizon, run);
  cut_run(m[0] - inside.left * m[6], x0 - inside.left * w0, run);
  cut_run(inside.right * m[6] - m[0], inside.right * w0 - x0, run);
  cut_run(m[3] - inside.top * m[6], y0 - inside.top * w0, run);
  cut_run(inside.bottom * m[6] - m[3], inside.bottom * w0 - y0, run);
}

}  // namespace leat::pixels
