#include "stages/pixels/warp.hpp"

#include "stages/pixels/warp_kernels.hpp"

#include <cmath>
#include <cstddef>

namespace leat::pixels {

warper::warper(const warp& how, const picture& from) noexcept
    : how_(how), from_(from), is_affine_(how.from[6] == 0 && how.from[7] == 0 && how.from[8] == 1) {
  if (!is_affine_) return;
  // The first pixel's middle, and where a bilinear one's upper left neighbour has its own.
  const warp_matrix& m = how.from;
  const double shift = how.how == filter::bilinear ? 0.5 : 0;
  const double numbers[] = {m[0], m[1], (m[0] + m[1]) * 0.5 + m[2] - shift,
                            m[3], m[4], (m[3] + m[4]) * 0.5 + m[5] - shift};
  for (std::size_t i = 0; i < fixed_.size(); ++i) {
    fixed_[i] = static_cast<std::int64_t>(std::nearbyint(numbers[i] * 4294967296.0));
  }
}

void warper::line(int y, std::uint8_t* to) const noexcept {
  const warp_source source{.first = from_.first,
                           .width = from_.width,
                           .height = from_.height,
                           .bilinear = how_.how == filter::bilinear,
                           .fill = {how_.fill[0], how_.fill[1], how_.fill[2]}};
  if (is_affine_) {
    warp_line(
        source,
        fixed_places{
            .x = fixed_[1] * y + fixed_[2], .y = fixed_[4] * y + fixed_[5], .step_x = fixed_[0], .step_y = fixed_[3]},
        to);
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
