#include "stages/pixels/array_reader.hpp"

#include "base/half.hpp"
#include "base/text.hpp"
#include "stages/pixels/resample_kernels.hpp"

#include <algorithm>
#include <cassert>
#include <concepts>
#include <cstring>

namespace leat::pixels {
namespace {

// Lines between two checks of `stop`.
constexpr int lines_per_look = 64;

struct f16_element {
  std::uint16_t bits;
  [[nodiscard]] double value() const noexcept { return f16_value(bits); }
};
struct bf16_element {
  std::uint16_t bits;
  [[nodiscard]] double value() const noexcept { return bf16_value(bits); }
};

template <class Element>
double number_of(Element element) noexcept {
  if constexpr (requires { element.value(); }) {
    return element.value();
  } else {
    return static_cast<double>(element);
  }
}

// Elements may lie at any address.
template <class Element>
Element element_at(const std::byte* at) noexcept {
  Element element;
  std::memcpy(&element, at, sizeof element);
  return element;
}

}  // namespace

stages::outcome<void> array_reader::open(std::span<const std::byte> encoded, const picture_info& /*info*/,
                                         const reading& how) {
  assert(how.array && encoded.size() == how.array->bytes());
  encoded_ = encoded;
  pixels_ = *how.array;
  stop_ = how.stop;
  background_ = pixels_.channels == 4 ? how.background : std::nullopt;
  return {};
}

bool array_reader::lies_as_lines() const noexcept {
  return pixels_.type == dtype::u8 && pixels_.white == 255 && pixels_.channels == 3 && !pixels_.planar;
}

std::size_t array_reader::scratch_bytes(const rectangle& region, int /*decimation*/) {
  return scratch_arena::rounded(rgb_line_bytes(region.width));
}

stages::outcome<void> array_reader::start(const rectangle& region, int decimation) {
  assert(decimation == 1);
  static_cast<void>(decimation);
  region_ = region;
  next_line_ = 0;
  line_ = arena_.take_array<std::uint8_t>(rgb_line_bytes(region.width));
  if (line_ == nullptr) return stages::unsupported("out of scratch memory");
  return {};
}

stages::outcome<lines> array_reader::read() {
  assert(next_line_ < region_.height);
  if (stop_ != nullptr && stop_->load(std::memory_order_relaxed)) return stages::cancelled();
  if (lies_as_lines()) {
    const lines some = some_in_place();
    if (some.count > 0) return some;
  }
  if (!convert_line(region_.y + next_line_++)) {
    return stages::corrupt(str_cat("has the number ", wrong_, " among its pixels, which are from 0 to ", pixels_.white,
                                   "; image::white() says which number is white"));
  }
  return lines{line_, rgb_line_bytes(region_.width), 1};
}

// Those that may be read to line_slack_bytes after their end: all but the last ones of the array.
lines array_reader::some_in_place() noexcept {
  const std::size_t stride = static_cast<std::size_t>(pixels_.width) * 3;
  const std::size_t begin =
      static_cast<std::size_t>(region_.y + next_line_) * stride + static_cast<std::size_t>(region_.x) * 3;
  int count = 0;
  for (std::size_t end = begin + rgb_line_bytes(region_.width);
       count < std::min(lines_per_look, region_.height - next_line_) && end <= encoded_.size(); end += stride) {
    ++count;
  }
  next_line_ += count;
  return {reinterpret_cast<const std::uint8_t*>(encoded_.data()) + begin, stride, count};
}

template <class Element>
bool array_reader::convert(int y) noexcept {
  const auto width = static_cast<std::size_t>(pixels_.width);
  const auto channels = static_cast<std::size_t>(pixels_.channels);
  const std::size_t plane = static_cast<std::size_t>(pixels_.height) * width;
  const std::size_t pixel = static_cast<std::size_t>(y) * width + static_cast<std::size_t>(region_.x);
  const std::size_t step = sizeof(Element) * (pixels_.planar ? 1 : channels);
  const std::size_t to_next_channel = sizeof(Element) * (pixels_.planar ? plane : 1);
  const std::byte* at = encoded_.data() + pixel * step;
  const double scale = 255 / pixels_.white;
  const bool is_plain = std::same_as<Element, std::uint8_t> && pixels_.white == 255;
  bool is_right = true;
  const auto value_at = [&](const std::byte* from) noexcept -> std::uint8_t {
    const auto element = element_at<Element>(from);
    if constexpr (std::same_as<Element, std::uint8_t>) {
      if (is_plain) return element;
    }
    const double number = number_of(element);
    if (!(number >= 0 && number <= pixels_.white)) {  // a NaN, too
      is_right = false;
      wrong_ = number;
      return 0;
    }
    return static_cast<std::uint8_t>(number * scale + 0.5);
  };
  std::uint8_t* to = line_;
  for (int x = 0; x < region_.width; ++x, at += step, to += 3) {
    to[0] = value_at(at);
    to[1] = channels == 1 ? to[0] : value_at(at + to_next_channel);
    to[2] = channels == 1 ? to[0] : value_at(at + 2 * to_next_channel);
    if (!background_) continue;
    const std::uint8_t alpha = value_at(at + 3 * to_next_channel);
    for (std::size_t c = 0; c < 3; ++c) to[c] = blended(to[c], alpha, (*background_)[c]);
  }
  return is_right;
}

bool array_reader::convert_line(int y) noexcept {
  switch (pixels_.type) {
    case dtype::u16:
      return convert<std::uint16_t>(y);
    case dtype::f16:
      return convert<f16_element>(y);
    case dtype::bf16:
      return convert<bf16_element>(y);
    case dtype::f32:
      return convert<float>(y);
    case dtype::f64:
      return convert<double>(y);
    default:
      return convert<std::uint8_t>(y);
  }
}

}  // namespace leat::pixels
