#pragma once

#include "base/half.hpp"

#include <cmath>
#include <cstdint>

struct __half {
  std::uint16_t bits;
};
inline float __half2float(__half value) {
  const int sign = value.bits >> 15 != 0 ? -1 : 1;
  const int exponent = value.bits >> 10 & 0x1F;
  const int fraction = value.bits & 0x3FF;
  const float magnitude = exponent == 0 ? std::ldexp(static_cast<float>(fraction), -24)
                                        : std::ldexp(static_cast<float>(fraction + 1024), exponent - 25);
  return std::copysign(magnitude, static_cast<float>(sign));
}
inline __half __float2half_rn(float value) { return {leat::f16_bits(value)}; }
struct __half2 {
  __half x, y;
};
inline __half2 __floats2half2_rn(float x, float y) { return {__float2half_rn(x), __float2half_rn(y)}; }
inline float __low2float(__half2 pair) { return __half2float(pair.x); }
inline float __high2float(__half2 pair) { return __half2float(pair.y); }
