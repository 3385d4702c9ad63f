#include "stages/pixels/mask_shapes.hpp"

#include <cmath>
#include <cstdlib>
#include <utility>

namespace leat::pixels {
namespace {

// A pixel has so many steps along each axis; its column is crossed between the steps 2 and 3 of it.
constexpr int steps_of_pixel = 5;
constexpr int step_before = 2;
constexpr int step_behind = 3;

struct outline_corner {
  int x;
  int y;
};

outline_corner corner_at(std::span<const double> places, std::size_t i) noexcept {
  return {static_cast<int>(steps_of_pixel * places[2 * i] + .5),
          static_cast<int>(steps_of_pixel * places[2 * i + 1] + .5)};
}

class outline_marker {
 public:
  outline_marker(int picture_height, const rectangle& part, std::uint8_t* marks) noexcept
      : picture_height_(picture_height), part_(part), marks_(marks), found_{part.x + part.width, part.x} {}

  // Points of a line are those of the axis along which it is longer; the other place of each is rounded.
  void line(outline_corner from, outline_corner to) noexcept {
    const int across = std::abs(to.x - from.x);
    const int down = std::abs(to.y - from.y);
    if (across == 0) return;
    const bool is_flat = across >= down;
    if (is_flat ? from.x > to.x : from.y > to.y) std::swap(from, to);
    const int left = std::min(from.x, to.x);
    const int right = left + across;
    // Of the columns that are looked at those with left < 5 * column + 3 <= right.
    const int first = std::max(part_.x, left < step_behind ? 0 : (left - step_behind) / steps_of_pixel + 1);
    const int last =
        std::min(part_.x + part_.width - 1, right < step_behind ? -1 : (right - step_behind) / steps_of_pixel);
    if (is_flat) {
      const double slope = static_cast<double>(to.y - from.y) / across;
      const auto y_at = [&](int t) { return static_cast<int>(from.y + slope * t + .5); };
      for (int column = first; column <= last; ++column) {
        const int t = steps_of_pixel * column + step_behind - from.x;
        mark(column, std::min(y_at(t - 1), y_at(t)));
      }
      return;
    }
    const double slope = static_cast<double>(to.x - from.x) / down;
    const auto x_at = [&](int t) { return static_cast<int>(from.x + slope * t + .5); };
    for (int column = first; column <= last; ++column) {
      const int before = steps_of_pixel * column + step_before;
      const auto is_behind = [&](int t) { return slope > 0 ? x_at(t) > before : x_at(t) <= before; };
      // The first point behind the column's middle, by a guess that rounding may have moved.
      int t = std::clamp(static_cast<int>((before + .5 - from.x) / slope), 1, down);
      while (t > 1 && is_behind(t - 1)) --t;
      while (t < down && !is_behind(t)) ++t;
      if (is_behind(t)) mark(column, from.y + t - 1);
    }
  }

  [[nodiscard]] column_range found() const noexcept { return found_; }

 private:
  void mark(int column, int y) noexcept {
    const double place =
        std::ceil(std::clamp((y + .5) / steps_of_pixel - .5, 0.0, static_cast<double>(picture_height_)));
    const int line = std::max(static_cast<int>(place) - part_.y, 0);
    if (line >= part_.height) return;
    marks_[static_cast<std::size_t>(column - part_.x) * static_cast<std::size_t>(part_.height) +
           static_cast<std::size_t>(line)] ^= 1;
    found_.begin = std::min(found_.begin, column);
    found_.end = std::max(found_.end, column + 1);
  }

  int picture_height_;
  const rectangle& part_;
  std::uint8_t* marks_;
  column_range found_;
};

}  // namespace

column_range mark_outline(std::span<const double> places, int picture_height, const rectangle& part,
                          std::uint8_t* marks) noexcept {
  outline_marker to(picture_height, part, marks);
  const std::size_t corners = places.size() / 2;
  for (std::size_t i = 0; i < corners; ++i) {
    to.line(corner_at(places, i), corner_at(places, i + 1 == corners ? 0 : i + 1));
  }
  return to.found();
}

}  // namespace leat::pixels
