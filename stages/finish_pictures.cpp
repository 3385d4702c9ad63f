#include "stages/finish_pictures.hpp"

#include "stages/pixels/store.hpp"

#include <bit>
#include <cassert>
#include <cstddef>
#include <cstring>
#include <memory>
#include <vector>

namespace leat::stages {
namespace {

std::size_t elements_per_row(const picture_batch& pictures) noexcept {
  return std::size_t{pictures.height} * pictures.width * 3;
}

// What the bits of an f16 are worth: all of them, since a look-up is five times faster than the arithmetic.
const float* values_of_f16() {
  static const std::vector<float> values = [] {
    std::vector<float> made(65536);
    for (std::uint32_t bits = 0; bits < made.size(); ++bits) {
      const std::uint32_t sign = (bits & 0x8000U) << 16;
      const std::uint32_t exponent = bits >> 10 & 0x1FU;
      const std::uint32_t fraction = bits & 0x3FFU;
      if (exponent == 0) {  // zero and subnormals: multiples of 2^-24
        const float magnitude = static_cast<float>(fraction) * 0x1p-24F;
        made[bits] = sign != 0 ? -magnitude : magnitude;
      } else {
        const std::uint32_t shifted = exponent == 31 ? 0xFFU : exponent + 112;
        made[bits] = std::bit_cast<float>(sign | shifted << 23 | fraction << 13);
      }
    }
    return made;
  }();
  return values.data();
}

struct as_f32 {
  using element = float;
  float value_of(element bits) const noexcept { return bits; }
  static element rounded(float value) noexcept { return value; }
};
struct as_f16 {
  using element = std::uint16_t;
  const float* values = values_of_f16();
  float value_of(element bits) const noexcept { return values[bits]; }
  static element rounded(float value) noexcept { return pixels::f16_bits(value); }
};
struct as_bf16 {
  using element = std::uint16_t;
  float value_of(element bits) const noexcept { return std::bit_cast<float>(std::uint32_t{bits} << 16); }
  static element rounded(float value) noexcept { return pixels::bf16_bits(value); }
};

template <class As>
void mix_elements(const mix_row& mixed, typename As::element* row, const typename As::element* partner,
                  std::size_t count) noexcept {
  const As as;
  for (std::size_t i = 0; i < count; ++i) {
    // Three statements: each rounds once.
    const float own = mixed.own * as.value_of(row[i]);
    const float other = mixed.other * as.value_of(partner[i]);
    const float sum = own + other;
    row[i] = As::rounded(sum);
  }
}

template <class As>
void finish_row(const picture_batch& pictures, std::size_t row, typename As::element* to) noexcept {
  const std::size_t height = pictures.height;
  const std::size_t width = pictures.width;
  const bool flip = pictures.flips != nullptr && pictures.flips[row] != 0;
  for (std::size_t y = 0; y < height; ++y) {
    for (std::size_t x = 0; x < width; ++x) {
      const std::size_t from_x = flip ? width - 1 - x : x;
      for (std::size_t c = 0; c < 3; ++c) {
        const std::uint8_t pixel = pictures.from[((row * height + y) * width + from_x) * 3 + c];
        // Two statements: each rounds once (-ffp-contract=off keeps them apart).
        const float scaled = static_cast<float>(pixel) * pictures.scale[c];
        const float value = scaled + pictures.bias[c];
        to[pictures.order == layout::nchw ? (c * height + y) * width + x : (y * width + x) * 3 + c] =
            As::rounded(value);
      }
    }
  }
}

}  // namespace

picture_batch pictures_of(const pixels::store& how, std::uint32_t height, std::uint32_t width) noexcept {
  return {.height = height,
          .width = width,
          .type = how.type,
          .order = how.order,
          .scale = {how.scale[0], how.scale[1], how.scale[2]},
          .bias = {how.bias[0], how.bias[1], how.bias[2]}};
}

void finish_picture(const picture_batch& pictures, std::uint32_t row, void* to) noexcept {
  assert(fits_a_picture(pictures.height, pictures.width));
  if (pictures.type == dtype::f32) return finish_row<as_f32>(pictures, row, static_cast<float*>(to));
  if (pictures.type == dtype::f16) return finish_row<as_f16>(pictures, row, static_cast<std::uint16_t*>(to));
  assert(pictures.type == dtype::bf16);
  finish_row<as_bf16>(pictures, row, static_cast<std::uint16_t*>(to));
}

void mix_picture(const picture_batch& how, const mix_row& mixed, void* row, const void* partner) noexcept {
  if (mixed.other != 0) {
    const std::size_t count = elements_per_row(how);
    if (how.type == dtype::f32) {
      mix_elements<as_f32>(mixed, static_cast<float*>(row), static_cast<const float*>(partner), count);
    } else if (how.type == dtype::f16) {
      mix_elements<as_f16>(mixed, static_cast<std::uint16_t*>(row), static_cast<const std::uint16_t*>(partner), count);
    } else {
      assert(how.type == dtype::bf16);
      mix_elements<as_bf16>(mixed, static_cast<std::uint16_t*>(row), static_cast<const std::uint16_t*>(partner), count);
    }
  }
  if (mixed.left >= mixed.right) return;
  // A line of the box is one piece in each plane, or in all of them together.
  const std::size_t element = size_bytes(how.type);
  const std::size_t planes = how.order == layout::nchw ? 3 : 1;
  const std::size_t pixel = how.order == layout::nchw ? element : 3 * element;
  for (std::size_t plane = 0; plane < planes; ++plane) {
    for (std::size_t y = mixed.top; y < mixed.bottom; ++y) {
      const std::size_t at = ((plane * how.height + y) * how.width + mixed.left) * pixel;
      std::memcpy(static_cast<std::byte*>(row) + at, static_cast<const std::byte*>(partner) + at,
                  std::size_t{mixed.right} * pixel - mixed.left * pixel);
    }
  }
}

void finish_pictures(const picture_batch& pictures) noexcept {
  const std::size_t row_bytes = elements_per_row(pictures) * size_bytes(pictures.type);
  auto* const to = static_cast<std::byte*>(pictures.to);
  std::vector<std::byte> partner(pictures.mixed != nullptr ? row_bytes : 0);
  for (std::uint32_t row = 0; row < pictures.rows; ++row) {
    finish_picture(pictures, row, to + row * row_bytes);
    if (pictures.mixed == nullptr) continue;
    finish_picture(pictures, partner_of(row, pictures.rows), partner.data());
    mix_picture(pictures, pictures.mixed[row], to + row * row_bytes, partner.data());
  }
}

}  // namespace leat::stages
