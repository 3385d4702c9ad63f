#include "stages/finish_pictures.hpp"

#include "stages/pixels/store.hpp"

#include <cassert>
#include <cstddef>

namespace leat::stages {

picture_batch pictures_of(const pixels::store& how, std::uint32_t height, std::uint32_t width) noexcept {
  return {.height = height,
          .width = width,
          .type = how.type,
          .order = how.order,
          .scale = {how.scale[0], how.scale[1], how.scale[2]},
          .bias = {how.bias[0], how.bias[1], how.bias[2]}};
}

void finish_pictures(const picture_batch& pictures) noexcept {
  assert(pictures.type == dtype::f32 || pictures.type == dtype::f16 || pictures.type == dtype::bf16);
  const std::size_t height = pictures.height;
  const std::size_t width = pictures.width;
  for (std::size_t row = 0; row < pictures.rows; ++row) {
    const bool flip = pictures.flips != nullptr && pictures.flips[row] != 0;
    for (std::size_t y = 0; y < height; ++y) {
      for (std::size_t x = 0; x < width; ++x) {
        for (std::size_t c = 0; c < 3; ++c) {
          const std::size_t from_x = flip ? width - 1 - x : x;
          const std::uint8_t pixel = pictures.from[((row * height + y) * width + from_x) * 3 + c];
          // Two statements: each rounds once (-ffp-contract=off keeps them apart).
          const float scaled = static_cast<float>(pixel) * pictures.scale[c];
          const float value = scaled + pictures.bias[c];
          const std::size_t at = pictures.order == layout::nchw ? ((row * 3 + c) * height + y) * width + x
                                                                : ((row * height + y) * width + x) * 3 + c;
          if (pictures.type == dtype::f32) {
            static_cast<float*>(pictures.to)[at] = value;
          } else {
            static_cast<std::uint16_t*>(pictures.to)[at] =
                pictures.type == dtype::f16 ? pixels::f16_bits(value) : pixels::bf16_bits(value);
          }
        }
      }
    }
  }
}

}  // namespace leat::stages
