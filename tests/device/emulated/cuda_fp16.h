#pragma once

#include "stages/pixels/store.hpp"

#include <cstdint>

struct __half {
  std::uint16_t bits;
};
inline __half __float2half_rn(float value) { return {leat::pixels::f16_bits(value)}; }
