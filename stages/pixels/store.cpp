#include "stages/pixels/store.hpp"

#include "base/half.hpp"

#include <leat/error.hpp>

#include <bit>
#include <cassert>
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

}  // namespace

store store::from(dtype type, layout order, const std::optional<normalization>& statistics) {
  store result;
  result.type = type;
  result.order = order;
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

void store_line(const store& how, const std::uint8_t* line, int y, int height, int width, std::byte* row) noexcept {
  assert(y >= 0 && y < height);
  const auto pixels = static_cast<std::size_t>(width);
  const std::size_t element = size_bytes(how.type);
  if (how.order == layout::nhwc) {
    std::byte* const to = row + static_cast<std::size_t>(y) * pixels * 3 * element;
    if (how.type == dtype::u8) {
      std::memcpy(to, line, pixels * 3);
    } else if (how.type == dtype::f32) {
      store_pixels(line, width, how, reinterpret_cast<float*>(to));
    } else {
      store_pixels(line, width, how, reinterpret_cast<std::uint16_t*>(to));
    }
    return;
  }
  for (std::size_t c = 0; c < 3; ++c) {
    const std::uint8_t* const from = line + c * pixels;
    std::byte* const to = row + (c * static_cast<std::size_t>(height) + static_cast<std::size_t>(y)) * pixels * element;
    if (how.type == dtype::u8) {
      std::memcpy(to, from, pixels);
    } else if (how.type == dtype::f32) {
      store_plane(from, width, how.scale[c], how.bias[c], reinterpret_cast<float*>(to));
    } else {
      store_plane(from, width, how.half_bits[c].data(), reinterpret_cast<std::uint16_t*>(to));
    }
  }
}

}  // namespace leat::pixels
