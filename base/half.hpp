// IEEE 754 binary16 and bfloat16 as bits, without a branch, so that loops over them become vector code.
#pragma once

#include <bit>
#include <cstdint>

namespace leat {

/// Rounded to nearest even; infinities and NaNs stay what they are.
[[nodiscard]] inline std::uint16_t f16_bits(float value) noexcept {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = bits >> 16 & 0x8000U;
  const std::uint32_t magnitude = bits & 0x7FFFFFFFU;
  // 13 bits are lost; half of what they hold is added, or a little less where the number would stay even.
  const std::uint32_t normal = (magnitude - (112U << 23) + 0x0FFFU + (magnitude >> 13 & 1U)) >> 13;
  // Below 2^-14 an f16 is a multiple of 2^-24, which is what the last place of a sum in [0.5, 1) is worth.
  const float sum = std::bit_cast<float>(magnitude) + 0.5F;
  const std::uint32_t subnormal = std::bit_cast<std::uint32_t>(sum) - 0x3F000000U;
  const std::uint32_t not_a_number = 0x7E00U | (magnitude >> 13 & 0x01FFU);
  std::uint32_t half = magnitude < 0x38800000U ? subnormal : normal;
  // 65520, halfway between the largest f16 and the next power of two, is the first to round to infinity.
  half = magnitude >= 0x477FF000U ? 0x7C00U : half;
  half = magnitude > 0x7F800000U ? not_a_number : half;
  return static_cast<std::uint16_t>(sign | half);
}

[[nodiscard]] inline std::uint16_t bf16_bits(float value) noexcept {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t rounded = (bits + 0x7FFFU + (bits >> 16 & 1U)) >> 16;
  const std::uint32_t not_a_number = bits >> 16 | 0x0040U;
  return static_cast<std::uint16_t>((bits & 0x7FFFFFFFU) > 0x7F800000U ? not_a_number : rounded);
}

/// What the bits are worth, exactly.
[[nodiscard]] inline float f16_value(std::uint16_t half) noexcept {
  const std::uint32_t sign = (half & 0x8000U) << 16;
  const std::uint32_t magnitude = half & 0x7FFFU;
  const std::uint32_t normal = (magnitude << 13) + (112U << 23);
  const std::uint32_t infinite = (magnitude << 13) + (224U << 23);  // and NaN
  const float multiple = static_cast<float>(static_cast<std::int32_t>(magnitude)) * 0x1p-24F;
  std::uint32_t bits = magnitude < 0x0400U ? std::bit_cast<std::uint32_t>(multiple) : normal;
  bits = magnitude >= 0x7C00U ? infinite : bits;
  return std::bit_cast<float>(sign | bits);
}

[[nodiscard]] inline float bf16_value(std::uint16_t half) noexcept {
  return std::bit_cast<float>(std::uint32_t{half} << 16);
}

}  // namespace leat
