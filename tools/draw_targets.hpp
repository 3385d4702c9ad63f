// Masks and boxes over the pictures that they belong to, for a person.
#pragma once

#include "tools/sheet.hpp"

#include <leat/tensor.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace leat::tools {

/// Tints each pixel by its number: those of 0 and of 255, which masks ignore, stay as they are.
///   numbers   of a mask as large as the picture
void draw_mask(dtype type, std::span<const std::byte> numbers, rgb_picture& over);

/// In pixels of the picture.
struct drawn_box {
  float left = 0;
  float top = 0;
  float right = 0;
  float bottom = 0;
  std::optional<std::int64_t> label = {};
};

/// Of a row of leat::boxes, and of its labels where it has some.
[[nodiscard]] std::vector<drawn_box> boxes_in(std::span<const std::byte> places, std::span<const std::byte> labels);
/// Frames, in the colours of their labels.
void draw_boxes(const std::vector<drawn_box>& boxes, rgb_picture& over);
/// "3: 10, 20 to 30, 44.5; 7: ...".
[[nodiscard]] std::string text_of(const std::vector<drawn_box>& boxes);

}  // namespace leat::tools
