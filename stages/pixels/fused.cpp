#include "stages/pixels/fused.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>

namespace leat::pixels {
namespace {

constexpr double density_most = 2;
constexpr double density_made = 1.5;
constexpr int sides_most = 4;

struct range {
  double least = std::numeric_limits<double>::infinity();
  double most = -std::numeric_limits<double>::infinity();

  void take(double value) noexcept {
    least = std::min(least, value);
    most = std::max(most, value);
  }
};

//   seen   of places of pixels' middles, in decimated pixels
//   size   of the decimated picture
fused_axis axis_of(const range& seen, int size, double density, filter how, int most) noexcept {
  // Two taps reach half a pixel to either side, of pixels that are shrunk half of those; one pixel more, since places are rounded.
  const bool is_shrunk = how != filter::nearest && density > density_most;
  const double scale = is_shrunk ? density / density_made : 1;
  // A shrunk pixel at the region's rim lacks a part of what it is made of, so none of those is looked at.
  const double margin = is_shrunk ? 2 * std::ceil(2 * scale) + 1 : 2;
  const double begin = std::floor(seen.least - margin);
  const double end = std::ceil(seen.most + margin);
  if (!(end > 0 && begin < size)) return {};
  fused_axis made;
  made.begin = static_cast<int>(std::max(begin, 0.0));
  made.count = static_cast<int>(std::min(end, static_cast<double>(size))) - made.begin;
  made.shrunk_to = is_shrunk ? std::max(1, static_cast<int>(std::ceil(made.count / scale))) : made.count;
  if (how != filter::nearest) made.shrunk_to = std::min(made.shrunk_to, std::max(most, 1));
  return made;
}

}  // namespace

pixel_density density_of(const fused_warp& warp) noexcept {
  const warp_matrix& m = warp.from;
  const double right = warp.out_width;
  const double low = warp.out_height;
  const std::array<std::array<double, 2>, 5> places = {
      {{0, 0}, {right, 0}, {right, low}, {0, low}, {right / 2, low / 2}}};
  pixel_density least{std::numeric_limits<double>::infinity(), std::numeric_limits<double>::infinity()};
  for (const auto& [x, y] : places) {
    const auto [u, v, w] = seen_from(m, x, y);
    if (!(w > 0)) continue;
    const auto along = [&, divisor = w](double place, std::size_t row) {
      const double across = (m[row] - place / divisor * m[6]) / divisor;
      const double down = (m[row + 1] - place / divisor * m[7]) / divisor;
      return std::sqrt(across * across + down * down);
    };
    least.across = std::min(least.across, along(u, 0));
    least.down = std::min(least.down, along(v, 3));
  }
  if (!std::isfinite(least.across) || !std::isfinite(least.down)) return {};
  return least;
}

fused_plan plan_fused(const fused_warp& warp, int by, double shift_x, double shift_y) noexcept {
  const double part = 1.0 / by;
  const warp_matrix to_decimated = {part, 0, shift_x, 0, part, shift_y, 0, 0, 1};
  const warp_matrix from = followed(to_decimated, warp.from);
  const int width = (warp.picture_width + by - 1) / by;
  const int height = (warp.picture_height + by - 1) / by;
  range across;
  range down;
  int seen = 0;
  for (const double y : {0.5, warp.out_height - 0.5}) {
    for (const double x : {0.5, warp.out_width - 0.5}) {
      const auto [u, v, w] = seen_from(from, x, y);
      if (!(w > 0)) continue;
      across.take(u / w);
      down.take(v / w);
      ++seen;
    }
  }
  fused_plan plan;
  // All of the row lies behind the horizon.
  if (seen == 0) return plan;
  if (seen < 4) {
    // A part does, and before it places may be anywhere.
    across = {0, static_cast<double>(width)};
    down = {0, static_cast<double>(height)};
  }
  const pixel_density density = density_of(warp);
  const int most = sides_most * (warp.out_width + warp.out_height);
  plan.across = axis_of(across, width, density.across / by, warp.how, most);
  plan.down = axis_of(down, height, density.down / by, warp.how, most);
  if (plan.across.count == 0 || plan.down.count == 0) {
    plan.across = plan.down = {};
    return plan;
  }
  const double x = static_cast<double>(plan.across.shrunk_to) / plan.across.count;
  const double y = static_cast<double>(plan.down.shrunk_to) / plan.down.count;
  plan.from = followed({x, 0, -x * plan.across.begin, 0, y, -y * plan.down.begin, 0, 0, 1}, from);
  return plan;
}

}  // namespace leat::pixels
