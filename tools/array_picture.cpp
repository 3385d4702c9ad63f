#include "tools/array_picture.hpp"

#include "tools/row_text.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace leat::tools {
namespace {

constexpr std::int64_t side_max = 128;
constexpr std::int64_t elements_least = 8;
constexpr std::int64_t picture_side_least = 8;
constexpr std::uint32_t line_height = 48;

using colour = std::array<std::uint8_t, 3>;

/// Where the elements of a row lie that are pixels.
struct pixel_grid {
  std::int64_t height = 0;
  std::int64_t width = 0;
  std::int64_t channels = 1;
  std::int64_t down = 0;    // elements from one line to the next
  std::int64_t across = 1;  // and from one column
  std::int64_t deep = 0;    // and from one channel
};

bool is_side(std::int64_t extent) { return extent >= picture_side_least; }
bool is_channels(std::int64_t extent) { return extent == 1 || extent == 3; }

// A picture's shape, or nothing.
std::optional<pixel_grid> grid_of_picture(std::span<const std::int64_t> shape) {
  if (shape.size() == 2 && is_side(shape[0]) && is_side(shape[1])) {
    return pixel_grid{.height = shape[0], .width = shape[1], .down = shape[1]};
  }
  if (shape.size() != 3) return std::nullopt;
  if (is_channels(shape[2]) && is_side(shape[0]) && is_side(shape[1])) {
    return pixel_grid{shape[0], shape[1], shape[2], shape[1] * shape[2], shape[2], 1};
  }
  if (is_channels(shape[0]) && is_side(shape[1]) && is_side(shape[2])) {
    return pixel_grid{shape[1], shape[2], shape[0], shape[2], 1, shape[1] * shape[2]};
  }
  return std::nullopt;
}

// Dark blue, violet, orange, light yellow: lighter is more, also for who sees no colours.
colour heat(double part) {
  constexpr double stops[][3] = {{13, 8, 135}, {126, 3, 168}, {225, 100, 98}, {252, 166, 54}, {240, 249, 33}};
  const double at = std::clamp(part, 0.0, 1.0) * 4;
  const auto below = std::min<std::size_t>(static_cast<std::size_t>(at), 3);
  colour made{};
  for (std::size_t k = 0; k < 3; ++k) {
    made[k] = static_cast<std::uint8_t>(
        std::lround(std::lerp(stops[below][k], stops[below + 1][k], at - static_cast<double>(below))));
  }
  return made;
}

/// A row, its numbers from 0 (the least) to 1.
class scaled_row {
 public:
  scaled_row(const tensor& rows, std::size_t row, std::int64_t elements)
      : rows_(rows), first_(row * static_cast<std::size_t>(elements)) {
    for (std::int64_t k = 0; k < elements; ++k) {
      const double value = value_at(k);
      if (!std::isfinite(value)) continue;
      least_ = std::min(least_, value);
      most_ = std::max(most_, value);
    }
  }
  [[nodiscard]] double value_at(std::int64_t k) const {
    return element_value(rows_, first_ + static_cast<std::size_t>(k));
  }
  /// NaN is NaN.
  [[nodiscard]] double part_at(std::int64_t k) const {
    return most_ > least_ ? (value_at(k) - least_) / (most_ - least_) : value_at(k) - value_at(k) + 0.5;
  }

 private:
  const tensor& rows_;
  const std::size_t first_;
  double least_ = std::numeric_limits<double>::infinity();
  double most_ = -std::numeric_limits<double>::infinity();
};

std::int64_t step_of(const pixel_grid& grid) {
  return std::max<std::int64_t>((std::max(grid.height, grid.width) + side_max - 1) / side_max, 1);
}

template <class Pixel>
rgb_picture paint(const pixel_grid& grid, Pixel&& pixel) {
  const std::int64_t step = step_of(grid);
  rgb_picture made;
  made.width = static_cast<std::uint32_t>(std::max<std::int64_t>(grid.width / step, 1));
  made.height = static_cast<std::uint32_t>(std::max<std::int64_t>(grid.height / step, 1));
  for (std::int64_t y = 0; y < made.height; ++y) {
    for (std::int64_t x = 0; x < made.width; ++x) {
      const colour one = pixel(y * step * grid.down + x * step * grid.across);
      made.rgb.insert(made.rgb.end(), one.begin(), one.end());
    }
  }
  return made;
}

rgb_picture line_of(const scaled_row& row, std::int64_t elements) {
  constexpr colour paper = {245, 244, 240};
  constexpr colour ink = {217, 72, 15};
  const std::int64_t width = std::min(elements, side_max);
  rgb_picture made{static_cast<std::uint32_t>(width), line_height, {}};
  for (std::uint32_t k = 0; k < made.width * made.height; ++k)
    made.rgb.insert(made.rgb.end(), paper.begin(), paper.end());
  const auto height_of = [&](std::int64_t k) {
    return std::isfinite(row.part_at(k)) ? std::lround((1 - row.part_at(k)) * (line_height - 1)) : -1L;
  };
  long before = -1;
  for (std::int64_t x = 0; x < width; ++x) {
    // From the least to the greatest of what a column stands for, and to the column before.
    long top = line_height;
    long bottom = -1;
    for (std::int64_t k = x * elements / width; k < (x + 1) * elements / width; ++k) {
      const long y = height_of(k);
      if (y < 0) continue;
      top = std::min({top, y, before < 0 ? y : before});
      bottom = std::max({bottom, y, before});
      before = y;
    }
    for (long y = top; y <= bottom; ++y) {
      std::copy(ink.begin(), ink.end(), made.rgb.begin() + (y * width + x) * 3);
    }
  }
  return made;
}

}  // namespace

std::optional<rgb_picture> draw_row(const tensor& rows, std::size_t row) {
  const std::span<const std::int64_t> shape(rows.shape.begin() + 1, rows.shape.end());
  std::int64_t elements = 1;
  for (const std::int64_t extent : shape) elements *= extent;
  if (elements < elements_least) return std::nullopt;
  const scaled_row numbers(rows, row, elements);
  if (const std::optional<pixel_grid> grid = grid_of_picture(shape)) {
    const bool levels = rows.type == dtype::u8;
    if (levels || grid->channels == 3) {
      return paint(*grid, [&](std::int64_t at) {
        colour made{};
        for (std::int64_t k = 0; k < 3; ++k) {
          const std::int64_t of = at + (grid->channels == 3 ? k * grid->deep : 0);
          const double level = levels ? numbers.value_at(of) : 255 * numbers.part_at(of);
          made[static_cast<std::size_t>(k)] = static_cast<std::uint8_t>(std::isfinite(level) ? std::lround(level) : 0);
        }
        return made;
      });
    }
    return paint(*grid,
                 [&](std::int64_t at) { return heat(std::isfinite(numbers.part_at(at)) ? numbers.part_at(at) : 0); });
  }
  const std::int64_t width = shape.back();
  if (shape.size() == 1 || width == elements || width == 1) return line_of(numbers, elements);
  const pixel_grid folded{.height = elements / width, .width = width, .down = width};
  return paint(folded,
               [&](std::int64_t at) { return heat(std::isfinite(numbers.part_at(at)) ? numbers.part_at(at) : 0); });
}

}  // namespace leat::tools
