#include "tools/pixels_back.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <cmath>
#include <cstdint>
#include <cstring>

namespace leat::tools {
namespace {

float from_f16(std::uint16_t bits) {
  const int exponent = (bits >> 10) & 0x1F;
  const int mantissa = bits & 0x3FF;
  const double sign = (bits & 0x8000) != 0 ? -1.0 : 1.0;
  if (exponent == 31) return static_cast<float>(mantissa == 0 ? sign * HUGE_VAL : NAN);
  const double value = exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(mantissa + 1024, exponent - 25);
  return static_cast<float>(sign * value);
}

float element(dtype type, std::span<const std::byte> row, std::size_t index) {
  std::uint16_t half = 0;
  float value = 0;
  switch (type) {
    case dtype::f16:
      std::memcpy(&half, &row[index * 2], sizeof half);
      return from_f16(half);
    case dtype::bf16:
      std::memcpy(&half, &row[index * 2], sizeof half);
      return std::bit_cast<float>(static_cast<std::uint32_t>(half) << 16);
    default:
      std::memcpy(&value, &row[index * 4], sizeof value);
      return value;
  }
}

}  // namespace

rgb_picture pixels_back(const image::settings& how, const dimensions& shape, std::span<const std::byte> row) {
  assert(shape.size() == 3);
  const bool planes = how.order == layout::nchw;
  const auto height = static_cast<std::size_t>(shape[planes ? 1 : 0]);
  const auto width = static_cast<std::size_t>(shape[planes ? 2 : 1]);
  const normalization statistics = how.statistics.value_or(normalization{});
  rgb_picture picture{static_cast<std::uint32_t>(width), static_cast<std::uint32_t>(height),
                      std::vector<std::uint8_t>(width * height * 3)};
  for (std::size_t pixel = 0; pixel < width * height; ++pixel) {
    for (std::size_t channel = 0; channel < 3; ++channel) {
      const std::size_t from = planes ? channel * width * height + pixel : pixel * 3 + channel;
      std::uint8_t& to = picture.rgb[pixel * 3 + channel];
      if (how.type == dtype::u8) {
        to = static_cast<std::uint8_t>(row[from]);
        continue;
      }
      const double value = element(how.type, row, from);
      const double level = (value * statistics.deviation[channel] + statistics.mean[channel]) * 255;
      to = static_cast<std::uint8_t>(std::lround(std::clamp(level, 0.0, 255.0)));
    }
  }
  return picture;
}

}  // namespace leat::tools
