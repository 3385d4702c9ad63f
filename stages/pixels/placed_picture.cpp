#include "stages/pixels/placed_picture.hpp"

#include "stages/pixels/box.hpp"
#include "stages/pixels/orientation.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

namespace leat::pixels {
namespace {

double determinant(const warp_matrix& m) noexcept {
  return m[0] * (m[4] * m[8] - m[5] * m[7]) - m[1] * (m[3] * m[8] - m[5] * m[6]) + m[2] * (m[3] * m[7] - m[4] * m[6]);
}

std::optional<std::array<double, 2>> looked_at(const warp_matrix& m, double x, double y) noexcept {
  const auto [px, py, w] = seen_from(m, x, y);
  if (!(w > horizon)) return std::nullopt;
  return std::array{px / w, py / w};
}

}  // namespace

picture_geometry geometry_of(const geometry& drawn, const warp_matrix& from_row, int width, int height,
                             int turned) noexcept {
  picture_geometry made{.picture_width = width,
                        .picture_height = height,
                        .row_width = drawn.out_width,
                        .row_height = drawn.out_height,
                        .turned = turned};
  made.matrix = turned == 1 ? from_row : followed(orientation(turned).to_stored(width, height), from_row);
  made.mirrored = determinant(made.matrix) < 0;
  return made;
}

picture_geometry geometry_of(const pipeline& steps, const draw_key& key, int width, int height, int turned) noexcept {
  const auto [upright_width, upright_height] = orientation(turned).size(width, height);
  const geometry drawn = steps.compile(upright_width, upright_height, key, turned);
  recipe passes;
  steps.draw_colour(key, passes);
  return geometry_of(drawn, followed(drawn.from_row(), passes.from_row()), width, height, turned);
}

void place(const pipeline& steps, const draw_key& key, const picture_geometry& of, placed_picture& out) noexcept {
  out.geometry = of;
  out.to_row = inverse(of.matrix);
  out.bound_count = 0;
  const auto [width, height] = orientation(of.turned).size(of.picture_width, of.picture_height);
  const geometry drawn = steps.compile(width, height, key, of.turned);
  recipe passes;
  steps.draw_colour(key, passes);
  const box row{0, 0, static_cast<double>(of.row_width), static_cast<double>(of.row_height)};
  // From the row back: each warp looks into the row before it.
  warp_matrix from = identity_matrix;
  bool in_mix = false;
  for (std::size_t i = passes.count; i > 0; --i) {
    const colour_pass& pass = passes.passes[i - 1];
    if (pass.what == pass_kind::mix_add && pass.number == 1) in_mix = true;
    if (pass.what == pass_kind::mix_begin) in_mix = false;
    if (pass.what != pass_kind::warp || in_mix) continue;
    from = followed(pass.from, from);
    out.bounds[out.bound_count++] = {from, row};
  }
  box inside{0, 0, static_cast<double>(width), static_cast<double>(height)};
  box seen = inside;
  if (!drawn.warp) {
    inside = {static_cast<double>(drawn.box.x), static_cast<double>(drawn.box.y),
              static_cast<double>(drawn.box.x + drawn.box.width), static_cast<double>(drawn.box.y + drawn.box.height)};
    seen = common(inside, moved(drawn.from_row(), row));
    // The row is fill, also where the picture would lie.
    if (drawn.crop_x >= drawn.scaled_width || drawn.crop_y >= drawn.scaled_height) {
      inside = {1, 1, 0, 0};  // which no place is in
      seen = {};
    }
  }
  out.bounds[out.bound_count++] = {followed(drawn.from_row(), from), inside};
  const warp_matrix to_stored = orientation(of.turned).to_stored(of.picture_width, of.picture_height);
  out.seen = moved(to_stored, seen);
  out.shown.reset();
  if (!drawn.warp && out.bound_count == 1) {
    out.shown = moved(to_stored, drawn.window ? *drawn.window : moved(drawn.from_row(), row));
  }
}

std::vector<double> geometry_probes(const pipeline& steps, bool turns) {
  std::vector<double> all{static_cast<double>(steps.out_height()), static_cast<double>(steps.out_width()),
                          turns ? 1.0 : 0.0};
  constexpr std::array<box, 2> things{{{0.1, 0.2, 0.4, 0.6}, {0.5, 0.3, 0.9, 0.9}}};
  const picture_boxes boxes{.all = things, .in_shares = true};
  // So many that steps done with slightly other probabilities differ in one.
  for (std::uint64_t probe = 0; probe < 256; ++probe) {
    const draw_key key{.seed = probe, .epoch = 0, .draw = probe, .boxes = &boxes};
    const auto [width, height] = probe % 2 == 0 ? std::pair(640, 480) : std::pair(333, 500);
    const geometry drawn = steps.compile(width, height, key);
    warp_matrix from = drawn.from_row();
    if (!drawn.warp) {
      recipe more;
      steps.draw_steps(key, more);
      from = followed(from, more.from_row());
    }
    all.insert(all.end(), from.begin(), from.end());
  }
  return all;
}

bool is_shown(const placed_picture& where, double x, double y) noexcept {
  const auto inside = [](const box& of, double px, double py) {
    return px >= of.left && px <= of.right && py >= of.top && py <= of.bottom;
  };
  const picture_geometry& of = where.geometry;
  if (!inside({0, 0, static_cast<double>(of.row_width), static_cast<double>(of.row_height)}, x, y)) return false;
  const auto bounds = where.all_bounds();
  return std::all_of(bounds.begin(), bounds.end(), [&](const placed_picture::bound& each) {
    const auto at = looked_at(each.from_row, x, y);
    return at && inside(each.inside, (*at)[0], (*at)[1]);
  });
}

bool is_inside(const placed_picture& where, double x, double y) noexcept {
  const auto holds = [](const box& of, double px, double py) {
    return px > of.left && px < of.right && py > of.top && py < of.bottom;
  };
  if (where.shown) return holds(*where.shown, x, y);
  const auto at = place_in_row(where, x, y);
  const picture_geometry& of = where.geometry;
  return at && holds({0, 0, static_cast<double>(of.row_width), static_cast<double>(of.row_height)}, (*at)[0], (*at)[1]);
}

std::optional<std::array<double, 2>> place_in_row(const placed_picture& where, double x, double y) noexcept {
  return where.to_row ? looked_at(*where.to_row, x, y) : std::nullopt;
}

namespace {

// The upright hull of where the corners go. What of the box lies behind the horizon has none.
box hull_in_row(const warp_matrix& to_row, const box& of) noexcept {
  constexpr double most = std::numeric_limits<double>::infinity();
  box hull{most, most, -most, -most};
  const auto add = [&](double x, double y, double w) {
    hull = {std::min(hull.left, x / w), std::min(hull.top, y / w), std::max(hull.right, x / w),
            std::max(hull.bottom, y / w)};
  };
  const double xs[] = {of.left, of.right, of.right, of.left};
  const double ys[] = {of.top, of.top, of.bottom, of.bottom};
  std::array<double, 3> before = seen_from(to_row, xs[3], ys[3]);
  for (std::size_t i = 0; i < 4; ++i) {
    const std::array<double, 3> here = seen_from(to_row, xs[i], ys[i]);
    if ((before[2] > horizon) != (here[2] > horizon)) {
      const double share = (horizon - before[2]) / (here[2] - before[2]);
      add(before[0] + share * (here[0] - before[0]), before[1] + share * (here[1] - before[1]), horizon);
    }
    if (here[2] > horizon) add(here[0], here[1], here[2]);
    before = here;
  }
  return hull;
}

}  // namespace

placed_box place_box(const placed_picture& where, const box& of) noexcept {
  placed_box made;
  if (!where.to_row) return made;
  made.whole_area = hull_in_row(*where.to_row, of).area();
  const box left = common(of, where.seen);
  if (left.area() == 0) return made;
  const picture_geometry& row = where.geometry;
  made.in_row = common(hull_in_row(*where.to_row, left),
                       {0, 0, static_cast<double>(row.row_width), static_cast<double>(row.row_height)});
  if (made.in_row.area() == 0) made.in_row = {};
  return made;
}

}  // namespace leat::pixels
