// Shapes that a mask is painted of, as COCO's annotations have them: outlines, and runs of pixels.
#pragma once

#include "base/outcome.hpp"
#include "stages/pixels/geometry.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory_resource>
#include <span>
#include <vector>

namespace leat::pixels {

///   number       what its pixels become
///   is_ignored   they become what the mask ignores
///   object       which of the picture's it is, or a part of
///   first        of its numbers in mask_shapes
struct mask_shape {
  std::int64_t number = 0;
  std::uint32_t object = 0;
  bool is_ignored = false;
  bool is_outline = true;
  std::size_t first = 0;
  std::size_t count = 0;
};

/// Shapes of a picture.
///   all       later ones are painted over earlier ones, and those that are ignored below all others
///   numbers   of an outline x and y of each corner, within outline_place_max. Of runs whole numbers: pixels outside and inside in turns,
///             down the columns from the left, together all of the picture's
///   objects   of the picture, also those of no shape
struct mask_shapes {
  explicit mask_shapes(std::pmr::memory_resource* memory = std::pmr::get_default_resource())
      : all(memory), numbers(memory) {}

  std::pmr::vector<mask_shape> all;
  std::pmr::vector<double> numbers;
  std::size_t objects = 0;
};

/// Shapes that are made when there is memory for them.
class shape_source {
 public:
  /// The most that read() takes of the memory of `to`.
  [[nodiscard]] virtual std::size_t bytes() const = 0;
  ///   to   empty
  [[nodiscard]] virtual stages::outcome<void> read(mask_shapes& to) const = 0;

 protected:
  ~shape_source() = default;
};

/// A place further away is none of a picture.
inline constexpr double outline_place_max = 1e8;

/// Columns [begin, end).
struct column_range {
  int begin = 0;
  int end = 0;
};

/// Where an outline's inside begins or ends, in each column of a part of its picture.
///   places   x and y of each corner
///   marks    a byte for each pixel of `part`, down the columns: one at which it begins or ends is exchanged, 0 for 1. What is above
///            `part` counts for its first line
///   returns  the columns in which there are any
///   source   rleFrPoly() of pycocotools (cocoapi, common/maskApi.c): corners at fifths of a pixel, and lines between them at
///            whole fifths. Its inside is ours, to the pixel
column_range mark_outline(std::span<const double> places, int picture_height, const rectangle& part,
                          std::uint8_t* marks) noexcept;

/// Calls paint(x, begin, end) for the pixels of a shape within `part`: lines [begin, end) of column x.
///   marks   a byte for each pixel of `part`, all 0, and 0 again when this returns
template <class Paint>
void paint_shape(const mask_shapes& shapes, const mask_shape& shape, int picture_height, const rectangle& part,
                 std::uint8_t* marks, const Paint& paint) {
  const int bottom = part.y + part.height;
  if (shape.is_outline) {
    const auto places = std::span<const double>(shapes.numbers).subspan(shape.first, shape.count);
    const column_range columns = mark_outline(places, picture_height, part, marks);
    const auto lines = static_cast<std::size_t>(part.height);
    for (int x = columns.begin; x < columns.end; ++x) {
      std::uint8_t* const column = marks + static_cast<std::size_t>(x - part.x) * lines;
      std::uint8_t* at = column;
      int begin = -1;
      while ((at = static_cast<std::uint8_t*>(std::memchr(at, 1, lines - static_cast<std::size_t>(at - column)))) !=
             nullptr) {
        *at = 0;
        const int y = part.y + static_cast<int>(at - column);
        if (begin >= 0) paint(x, begin, y);
        begin = begin >= 0 ? -1 : y;
      }
      if (begin >= 0) paint(x, begin, bottom);
    }
    return;
  }
  const std::int64_t height = picture_height;
  std::int64_t at = 0;
  bool is_inside = false;
  for (const double run : std::span<const double>(shapes.numbers).subspan(shape.first, shape.count)) {
    const std::int64_t end = at + static_cast<std::int64_t>(run);
    if (is_inside) {
      const std::int64_t first = std::max(at, part.x * height);
      const std::int64_t last = std::min(end, (part.x + part.width) * height);
      for (std::int64_t pixel = first; pixel < last;) {
        const std::int64_t x = pixel / height;
        const std::int64_t next = std::min((x + 1) * height, last);
        const int begin = std::max(static_cast<int>(pixel - x * height), part.y);
        const int finish = std::min(static_cast<int>(next - x * height), bottom);
        if (begin < finish) paint(static_cast<int>(x), begin, finish);
        pixel = next;
      }
    }
    at = end;
    is_inside = !is_inside;
  }
}

}  // namespace leat::pixels
