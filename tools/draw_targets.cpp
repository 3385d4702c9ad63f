#include "tools/draw_targets.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <array>
#include <cstring>

namespace leat::tools {
namespace {

using colour = std::array<std::uint8_t, 3>;

// Hues far from one another for numbers beside one another: steps of the golden ratio round the colour circle.
colour colour_of(std::uint64_t number) {
  const std::uint64_t hue = number * 947 % 1536;
  const auto rising = static_cast<std::uint8_t>(hue % 256);
  const auto falling = static_cast<std::uint8_t>(255 - rising);
  switch (hue / 256) {
    case 0:
      return {255, rising, 0};
    case 1:
      return {falling, 255, 0};
    case 2:
      return {0, 255, rising};
    case 3:
      return {0, falling, 255};
    case 4:
      return {rising, 0, 255};
    default:
      return {255, 0, falling};
  }
}

std::uint64_t number_at(const std::byte* at, std::size_t bytes) {
  std::uint64_t number = 0;
  std::memcpy(&number, at, bytes);
  return number;
}

void paint(rgb_picture& over, std::int64_t x, std::int64_t y, const colour& with) {
  if (x < 0 || y < 0 || x >= over.width || y >= over.height) return;
  std::copy(with.begin(), with.end(), over.rgb.data() + 3 * (y * over.width + x));
}

}  // namespace

void draw_mask(dtype type, std::span<const std::byte> numbers, rgb_picture& over) {
  const std::size_t bytes = size_bytes(type);
  const std::size_t pixels = std::size_t{over.width} * over.height;
  if (numbers.size() != pixels * bytes) return;
  // What leat::mask ignores, unless it is told otherwise.
  const std::uint64_t ignored = type == dtype::u16 ? 65'535 : 255;
  for (std::size_t i = 0; i < pixels; ++i) {
    const std::uint64_t number = number_at(numbers.data() + i * bytes, bytes);
    if (number == 0 || number == ignored) continue;
    const colour tint = colour_of(number);
    for (std::size_t c = 0; c < 3; ++c) {
      std::uint8_t& value = over.rgb[3 * i + c];
      value = static_cast<std::uint8_t>((value + tint[c]) / 2);
    }
  }
}

std::vector<drawn_box> boxes_in(std::span<const std::byte> places, std::span<const std::byte> labels) {
  std::vector<drawn_box> boxes;
  constexpr std::size_t box_bytes = 4 * sizeof(float);
  for (std::size_t i = 0; i < places.size() / box_bytes; ++i) {
    std::array<float, 4> place{};
    std::memcpy(place.data(), places.data() + i * box_bytes, box_bytes);
    drawn_box& made = boxes.emplace_back(drawn_box{place[0], place[1], place[2], place[3]});
    std::int64_t label = 0;
    if (labels.size() < (i + 1) * sizeof label) continue;
    std::memcpy(&label, labels.data() + i * sizeof label, sizeof label);
    made.label = label;
  }
  return boxes;
}

void draw_boxes(const std::vector<drawn_box>& boxes, rgb_picture& over) {
  for (const drawn_box& each : boxes) {
    const colour with = colour_of(static_cast<std::uint64_t>(each.label.value_or(0)) + 1);
    const auto left = static_cast<std::int64_t>(each.left);
    const auto top = static_cast<std::int64_t>(each.top);
    const auto right = std::min<std::int64_t>(static_cast<std::int64_t>(each.right), std::int64_t{over.width} - 1);
    const auto bottom = std::min<std::int64_t>(static_cast<std::int64_t>(each.bottom), std::int64_t{over.height} - 1);
    for (std::int64_t x = left; x <= right; ++x) {
      paint(over, x, top, with);
      paint(over, x, bottom, with);
    }
    for (std::int64_t y = top; y <= bottom; ++y) {
      paint(over, left, y, with);
      paint(over, right, y, with);
    }
  }
}

std::string text_of(const std::vector<drawn_box>& boxes) {
  std::string text;
  for (const drawn_box& each : boxes) {
    str_append(text, text.empty() ? "" : "; ");
    if (each.label) str_append(text, *each.label, ": ");
    str_append(text, each.left, ", ", each.top, " to ", each.right, ", ", each.bottom);
  }
  return text.empty() ? "none" : text;
}

}  // namespace leat::tools
