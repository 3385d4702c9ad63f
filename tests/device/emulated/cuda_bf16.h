#pragma once

#include "stages/pixels/store.hpp"

#include <cstdint>

struct __nv_bfloat16 {
  std::uint16_t bits;
};
inline __nv_bfloat16 __float2bfloat16_rn(float value) { return {leat::pixels::bf16_bits(value)}; }
