// A file of its own: only this kernel uses AVX3_DL, so only this one is compiled for it too.
#define HWY_WANT_AVX3_DL 1

#include "stages/pixels/colour/kernels.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "stages/pixels/colour/map_values.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace leat::pixels::HWY_NAMESPACE {

// A table in four vectors, looked up for 64 values at once: by their lower seven bits in both halves, of which the highest bit chooses one.
// Other instruction sets have no lookup in so large a table that is faster than one value after the other.
void map_values(const std::uint8_t* from, std::size_t count, const std::uint8_t* by, std::uint8_t* to) {
  std::size_t i = 0;
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3_DL
  const __m512i part[4] = {_mm512_loadu_si512(by), _mm512_loadu_si512(by + 64), _mm512_loadu_si512(by + 128),
                           _mm512_loadu_si512(by + 192)};
  const auto mapped = [&](__m512i value) HWY_ATTR {
    return _mm512_mask_blend_epi8(_mm512_movepi8_mask(value), _mm512_permutex2var_epi8(part[0], value, part[1]),
                                  _mm512_permutex2var_epi8(part[2], value, part[3]));
  };
  for (; i + 64 <= count; i += 64) _mm512_storeu_si512(to + i, mapped(_mm512_loadu_si512(from + i)));
  if (i < count) {
    const __mmask64 rest = (__mmask64{1} << (count - i)) - 1;
    _mm512_mask_storeu_epi8(to + i, rest, mapped(_mm512_maskz_loadu_epi8(rest, from + i)));
    i = count;
  }
#endif
  for (; i < count; ++i) to[i] = by[from[i]];
}

}  // namespace leat::pixels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "stages/pixels/vectors/instruction_sets.hpp"

namespace leat::pixels {

LEAT_KERNEL(map_values);

void map_values(const std::uint8_t* from, std::size_t count, const std::uint8_t* by, std::uint8_t* to) noexcept {
  LEAT_BEST(map_values)(from, count, by, to);
}

}  // namespace leat::pixels
#endif
