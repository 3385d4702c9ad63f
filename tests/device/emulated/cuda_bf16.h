#pragma once

#include "base/half.hpp"

#include <bit>
#include <cstdint>

struct __nv_bfloat16 {
  std::uint16_t bits;
};
inline float __bfloat162float(__nv_bfloat16 value) { return std::bit_cast<float>(std::uint32_t{value.bits} << 16); }
inline __nv_bfloat16 __float2bfloat16_rn(float value) { return {leat::bf16_bits(value)}; }
struct __nv_bfloat162 {
  __nv_bfloat16 x, y;
};
inline __nv_bfloat162 __floats2bfloat162_rn(float x, float y) {
  return {__float2bfloat16_rn(x), __float2bfloat16_rn(y)};
}
