#include "stages/pixels/placed_quad.hpp"

#include "base/portable_math.hpp"

#include <array>
#include <cassert>
#include <cmath>
#include <cstddef>
#include <optional>
#include <span>
#include <utility>

namespace leat::pixels {
namespace {

using corner = std::array<double, 2>;

// A polygon of a few corners.
class cut_polygon {
 public:
  explicit cut_polygon(const quadrilateral& of) {
    for (const corner& each : of) add(each);
  }

  // Leaves what has a * x + b * y + c >= 0. Where the rest is in several parts, lines of no area join them.
  //   source   Sutherland and Hodgman, "Reentrant polygon clipping", 1974
  void cut(double a, double b, double c) noexcept {
    const cut_polygon whole = *this;
    count_ = 0;
    const auto side = [&](const corner& of) { return a * of[0] + b * of[1] + c; };
    for (std::size_t i = 0; i < whole.count_; ++i) {
      const corner& here = whole.corners_[i];
      const corner& next = whole.corners_[i + 1 == whole.count_ ? 0 : i + 1];
      const double at = side(here);
      const double then = side(next);
      if (at >= 0) add(here);
      if ((at >= 0) == (then >= 0)) continue;
      const double share = at / (at - then);
      add({here[0] + share * (next[0] - here[0]), here[1] + share * (next[1] - here[1])});
    }
  }
  void cut(const box& to) noexcept {
    cut(1, 0, -to.left);
    cut(-1, 0, to.right);
    cut(0, 1, -to.top);
    cut(0, -1, to.bottom);
  }
  template <class Move>
  void move(const Move& to) noexcept {
    for (corner& each : std::span(corners_).first(count_)) each = to(each);
  }
  [[nodiscard]] double area() const noexcept {
    double twice = 0;
    for (std::size_t i = 1; i + 1 < count_; ++i) {
      const corner& first = corners_[0];
      const corner& a = corners_[i];
      const corner& b = corners_[i + 1];
      twice += (a[0] - first[0]) * (b[1] - first[1]) - (b[0] - first[0]) * (a[1] - first[1]);
    }
    return std::abs(twice) / 2;
  }

 private:
  // Each of eight cuts leaves at most half as many corners again.
  static constexpr std::size_t corners_max = 104;

  void add(const corner& one) noexcept {
    assert(count_ < corners_max);
    corners_[count_++] = one;
  }

  std::array<corner, corners_max> corners_{};
  std::size_t count_ = 0;
};

// Of what lies on a line rounding may leave some.
constexpr double no_area = 1e-9;

double turn_of_corner(const corner& a, const corner& b, const corner& c) noexcept {
  return (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0]);
}

bool cross(const corner& a, const corner& b, const corner& c, const corner& d) noexcept {
  return turn_of_corner(a, b, c) * turn_of_corner(a, b, d) < 0 && turn_of_corner(c, d, a) * turn_of_corner(c, d, b) < 0;
}

}  // namespace

placed_quad place_quad(const placed_picture& where, const quadrilateral& of) noexcept {
  placed_quad made;
  if (!where.to_row) return made;
  for (std::size_t i = 0; i < of.size(); ++i) {
    const std::optional<corner> placed = place_in_row(where, of[i][0], of[i][1]);
    if (!placed) return made;
    made.in_row[i] = *placed;
  }
  made.whole_area = cut_polygon(made.in_row).area();
  if (where.geometry.mirrored) {
    std::swap(made.in_row[0], made.in_row[1]);
    std::swap(made.in_row[2], made.in_row[3]);
  }
  cut_polygon left(of);
  left.cut(where.seen);
  // Between corners that are before the horizon nothing lies behind it.
  left.move([&](const corner& each) { return place_in_row(where, each[0], each[1]).value_or(each); });
  left.cut({0, 0, static_cast<double>(where.geometry.row_width), static_cast<double>(where.geometry.row_height)});
  const double area = left.area();
  made.area = area > no_area ? area : 0;
  return made;
}

bool sides_cross(const quadrilateral& of) noexcept {
  return cross(of[0], of[1], of[2], of[3]) || cross(of[1], of[2], of[3], of[0]);
}

quadrilateral rotated_box(double middle_x, double middle_y, double width, double height, double degrees) noexcept {
  const auto [sine, cosine] = portable_sine_and_cosine(degrees);
  const double across_x = width / 2 * cosine;
  const double across_y = -width / 2 * sine;
  const double down_x = height / 2 * sine;
  const double down_y = height / 2 * cosine;
  return {{{middle_x - across_x - down_x, middle_y - across_y - down_y},
           {middle_x + across_x - down_x, middle_y + across_y - down_y},
           {middle_x + across_x + down_x, middle_y + across_y + down_y},
           {middle_x - across_x + down_x, middle_y - across_y + down_y}}};
}

}  // namespace leat::pixels
