#include "stages/pixels/store.hpp"

#include "base/half.hpp"
#include "stages/pixels/colour/kernels.hpp"

#include <leat/error.hpp>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstring>
#include <string>

namespace leat::pixels {
namespace {

// Two statements: each rounds to f32 once, on every machine (and -ffp-contract=off keeps them apart).
inline float stored(std::uint8_t value, float scale, float bias) noexcept {
  const float scaled = static_cast<float>(value) * scale;
  return scaled + bias;
}

void store_plane(const std::uint8_t* from, int count, float scale, float bias, float* to) noexcept {
  for (int i = 0; i < count; ++i) to[i] = stored(from[i], scale, bias);
}

void store_pixels(const std::uint8_t* from, int count, const store& how, float* to) noexcept {
  const float s0 = how.scale[0], s1 = how.scale[1], s2 = how.scale[2];
  const float b0 = how.bias[0], b1 = how.bias[1], b2 = how.bias[2];
  for (int i = 0; i < count; ++i) {
    to[3 * i + 0] = stored(from[3 * i + 0], s0, b0);
    to[3 * i + 1] = stored(from[3 * i + 1], s1, b1);
    to[3 * i + 2] = stored(from[3 * i + 2], s2, b2);
  }
}

void store_plane(const std::uint8_t* from, int count, const std::uint16_t* bits, std::uint16_t* to) noexcept {
  for (int i = 0; i < count; ++i) to[i] = bits[from[i]];
}

void store_pixels(const std::uint8_t* from, int count, const store& how, std::uint16_t* to) noexcept {
  for (int i = 0; i < count; ++i) {
    for (int c = 0; c < 3; ++c) to[3 * i + c] = how.half_bits[static_cast<std::size_t>(c)][from[3 * i + c]];
  }
}

// Of three planes to interleaved elements.
template <class Element, class Make>
void interleave(const std::uint8_t* planes, std::size_t count, Element* to, const Make& make) noexcept {
  for (std::size_t i = 0; i < count; ++i) {
    to[3 * i + 0] = make(0, planes[i]);
    to[3 * i + 1] = make(1, planes[count + i]);
    to[3 * i + 2] = make(2, planes[2 * count + i]);
  }
}

void interleave_line(const store& how, const std::uint8_t* line, std::size_t pixels, std::byte* to) noexcept {
  if (how.type == dtype::u8) {
    interleave(line, pixels, reinterpret_cast<std::uint8_t*>(to), [](std::size_t, std::uint8_t v) { return v; });
  } else if (how.type == dtype::f32) {
    interleave(line, pixels, reinterpret_cast<float*>(to),
               [&](std::size_t c, std::uint8_t v) { return stored(v, how.scale[c], how.bias[c]); });
  } else {
    interleave(line, pixels, reinterpret_cast<std::uint16_t*>(to),
               [&](std::size_t c, std::uint8_t v) { return how.half_bits[c][v]; });
  }
}

// Pillow's convert("L"). Grey stays what it is: the weights sum to 2^16.
inline std::uint8_t grey_of(std::uint32_t red, std::uint32_t green, std::uint32_t blue) noexcept {
  return static_cast<std::uint8_t>((red * 19595 + green * 38470 + blue * 7471 + 0x8000) >> 16);
}

template <class Element, class Make>
void store_grey(const std::uint8_t* planes, std::size_t count, Element* to, const Make& make) noexcept {
  for (std::size_t i = 0; i < count; ++i) to[i] = make(grey_of(planes[i], planes[count + i], planes[2 * count + i]));
}

void store_grey_line(const store& how, const std::uint8_t* line, std::size_t pixels, std::byte* to) noexcept {
  if (how.type == dtype::u8) {
    store_grey(line, pixels, reinterpret_cast<std::uint8_t*>(to), [](std::uint8_t v) { return v; });
  } else if (how.type == dtype::f32) {
    store_grey(line, pixels, reinterpret_cast<float*>(to),
               [scale = how.scale[0], bias = how.bias[0]](std::uint8_t v) { return stored(v, scale, bias); });
  } else {
    store_grey(line, pixels, reinterpret_cast<std::uint16_t*>(to),
               [bits = how.half_bits[0].data()](std::uint8_t v) { return bits[v]; });
  }
}

std::byte* line_of_row(const store& how, std::size_t channel, int y, int height, std::size_t pixels,
                       std::byte* row) noexcept {
  const std::size_t element = size_bytes(how.type);
  if (how.order == layout::nhwc) return row + static_cast<std::size_t>(y) * pixels * 3 * element;
  return row + (channel * static_cast<std::size_t>(height) + static_cast<std::size_t>(y)) * pixels * element;
}

template <class Element>
void store_by(const store& how, const Element* elements, const std::uint8_t* line, int y, int height,
              std::size_t pixels, std::byte* row) noexcept {
  if (how.order == layout::nhwc) {
    interleave(line, pixels, reinterpret_cast<Element*>(line_of_row(how, 0, y, height, pixels, row)),
               [&](std::size_t c, std::uint8_t v) { return elements[256 * c + v]; });
    return;
  }
  for (std::size_t c = 0; c < 3; ++c) {
    const std::uint8_t* const from = line + c * pixels;
    const Element* const of = elements + 256 * c;
    auto* const to = reinterpret_cast<Element*>(line_of_row(how, c, y, height, pixels, row));
    if constexpr (sizeof(Element) == 1) {
      map_values(from, pixels, of, to);
    } else {
      for (std::size_t i = 0; i < pixels; ++i) to[i] = of[from[i]];
    }
  }
}

}  // namespace

store store::from(dtype type, layout order, const std::optional<normalization>& statistics, int channels) {
  assert(channels == 1 || channels == 3);
  store result;
  result.type = type;
  result.order = channels == 1 ? layout::nchw : order;
  result.channels = channels;
  if (type == dtype::u8) {
    if (statistics) {
      throw error(errc::usage,
                  "normalize() with u8: the pixel itself would be lost; use f32, f16 or bf16, or normalise "
                  "after the batch has arrived");
    }
    return result;
  }
  if (type != dtype::f32 && type != dtype::f16 && type != dtype::bf16) {
    throw error(errc::usage, "pixels as " + std::string(name(type)) + ": choose u8, f16, bf16 or f32");
  }
  const normalization none;
  const normalization& given = statistics ? *statistics : none;
  for (std::size_t c = 0; c < 3; ++c) {
    const double mean = given.mean[c];
    const double deviation = given.deviation[c];
    if (!(deviation > 0.0) || !(mean - mean == 0.0) || !(deviation - deviation == 0.0)) {
      throw error(errc::usage, "normalize(): mean " + std::to_string(mean) + " and deviation " +
                                   std::to_string(deviation) + " of channel " + std::to_string(c) +
                                   "; both must be finite and the deviation above 0");
    }
    result.scale[c] = static_cast<float>(1.0 / (255.0 * deviation));
    result.bias[c] = static_cast<float>(0.0 - mean / deviation);
    if (type == dtype::f32) continue;
    for (std::size_t value = 0; value < 256; ++value) {
      const float full = stored(static_cast<std::uint8_t>(value), result.scale[c], result.bias[c]);
      result.half_bits[c][value] = type == dtype::f16 ? f16_bits(full) : bf16_bits(full);
    }
  }
  return result;
}

void store_line(const store& how, layout line_order, const std::uint8_t* line, int y, int height, int width,
                std::byte* row) noexcept {
  assert(y >= 0 && y < height);
  assert(line_order == how.order || line_order == layout::nchw);
  const auto pixels = static_cast<std::size_t>(width);
  if (how.order == layout::nhwc) {
    std::byte* const to = line_of_row(how, 0, y, height, pixels, row);
    if (line_order == layout::nchw) {
      interleave_line(how, line, pixels, to);
    } else if (how.type == dtype::u8) {
      std::memcpy(to, line, pixels * 3);
    } else if (how.type == dtype::f32) {
      store_pixels(line, width, how, reinterpret_cast<float*>(to));
    } else {
      store_pixels(line, width, how, reinterpret_cast<std::uint16_t*>(to));
    }
    return;
  }
  if (how.channels == 1) return store_grey_line(how, line, pixels, line_of_row(how, 0, y, height, pixels, row));
  for (std::size_t c = 0; c < 3; ++c) {
    const std::uint8_t* const from = line + c * pixels;
    std::byte* const to = line_of_row(how, c, y, height, pixels, row);
    if (how.type == dtype::u8) {
      std::memcpy(to, from, pixels);
    } else if (how.type == dtype::f32) {
      store_plane(from, width, how.scale[c], how.bias[c], reinterpret_cast<float*>(to));
    } else {
      store_plane(from, width, how.half_bits[c].data(), reinterpret_cast<std::uint16_t*>(to));
    }
  }
}

void make_element_table(const store& how, const table& by, void* elements) noexcept {
  for (std::size_t c = 0; c < 3; ++c) {
    for (std::size_t v = 0; v < 256; ++v) {
      const std::uint8_t value = by.values[c][v];
      if (how.type == dtype::u8) {
        static_cast<std::uint8_t*>(elements)[256 * c + v] = value;
      } else if (how.type == dtype::f32) {
        static_cast<float*>(elements)[256 * c + v] = stored(value, how.scale[c], how.bias[c]);
      } else {
        static_cast<std::uint16_t*>(elements)[256 * c + v] = how.half_bits[c][value];
      }
    }
  }
}

void store_line_by(const store& how, const void* elements, const std::uint8_t* line, int y, int height, int width,
                   std::byte* row) noexcept {
  assert(y >= 0 && y < height && how.channels == 3);
  const auto pixels = static_cast<std::size_t>(width);
  if (how.type == dtype::u8) {
    store_by(how, static_cast<const std::uint8_t*>(elements), line, y, height, pixels, row);
  } else if (how.type == dtype::f32) {
    store_by(how, static_cast<const float*>(elements), line, y, height, pixels, row);
  } else {
    store_by(how, static_cast<const std::uint16_t*>(elements), line, y, height, pixels, row);
  }
}

void store_number(const store& how, float value, std::byte* to) noexcept {
  if (how.type == dtype::u8) {
    *to = static_cast<std::byte>(static_cast<int>(std::nearbyint(std::clamp(value, 0.0F, 255.0F))));
  } else if (how.type == dtype::f32) {
    std::memcpy(to, &value, sizeof value);
  } else {
    const std::uint16_t bits = how.type == dtype::f16 ? f16_bits(value) : bf16_bits(value);
    std::memcpy(to, &bits, sizeof bits);
  }
}

}  // namespace leat::pixels
