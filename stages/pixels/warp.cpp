#include "stages/pixels/warp.hpp"

#include "stages/pixels/warp_kernels.hpp"

#include <cmath>
#include <cstddef>

namespace leat::pixels {

namespace {

// Whether sums of 32 digits before the point and 32 behind it hold every place, and those that are looked at beyond the line's end.
bool fits(const warp_matrix& m, int height, int width) noexcept {
  constexpr double most = 2147483648.0;
  constexpr int beyond = 128;
  const auto largest = [&](std::size_t row) {
    return std::abs(m[row]) * (width + beyond) + std::abs(m[row + 1]) * (height + 1) + std::abs(m[row + 2]) + 1;
  };
  return largest(0) < most && largest(3) < most;
}

}  // namespace

std::optional<std::array<std::int64_t, 6>> fixed_numbers(const warp& how, int height, int width) noexcept {
  const warp_matrix& m = how.from;
  if (m[6] != 0 || m[7] != 0 || m[8] != 1 || !fits(m, height, width)) return std::nullopt;
  // The first pixel's middle, and where a bilinear one's upper left neighbour has its own.
  const double shift = how.how == filter::bilinear ? 0.5 : 0;
  const double numbers[] = {m[0], m[1], (m[0] + m[1]) * 0.5 + m[2] - shift,
                            m[3], m[4], (m[3] + m[4]) * 0.5 + m[5] - shift};
  std::array<std::int64_t, 6> fixed{};
  for (std::size_t i = 0; i < fixed.size(); ++i) {
    fixed[i] = static_cast<std::int64_t>(std::nearbyint(numbers[i] * 4294967296.0));
  }
  return fixed;
}

warper::warper(const warp& how, const picture& from, int height, int width) noexcept
    : how_(how), from_(from), width_(width), fixed_(fixed_numbers(how, height, width)) {}

void warper::line(int y, std::uint8_t* to) const noexcept {
  const warp_source source{.first = from_.first,
                           .width = from_.width,
                           .height = from_.height,
                           .to_width = width_,
                           .bilinear = how_.how == filter::bilinear,
                           .fill = {how_.fill[0], how_.fill[1], how_.fill[2]}};
  if (fixed_) {
    const std::array<std::int64_t, 6>& n = *fixed_;
    warp_line(source, fixed_places{.x = n[1] * y + n[2], .y = n[4] * y + n[5], .step_x = n[0], .step_y = n[3]}, to);
    return;
  }
  const warp_matrix& m = how_.from;
  const double middle = y + 0.5;
  const auto start = [&](std::size_t row) { return m[row] * 0.5 + (m[row + 1] * middle + m[row + 2]); };
  warp_line(source,
            projected_places{.x = start(0),
                             .y = start(3),
                             .w = start(6),
                             .step_x = m[0],
                             .step_y = m[3],
                             .step_w = m[6],
                             .shift = source.bilinear ? 0.5 : 0},
            to);
}

}  // namespace leat::pixels
