// The steps of picture_program.hpp that take a pixel by itself. Compiled by nvcc for the device, and by the host's compiler as its twin. The
// same bits as pixels/colour makes: f32, each operation rounded by itself.
#pragma once

#include "stages/device/picture_program.hpp"

#include <cstdint>

#ifdef __CUDACC__
#define LEAT_OF_PICTURES __device__ __forceinline__
#define LEAT_OF_PICTURES_UNROLLED _Pragma("unroll")
#else
#define LEAT_OF_PICTURES inline
#define LEAT_OF_PICTURES_UNROLLED
#endif

namespace leat::stages::picture_threads {

// Never fused, whatever the flags say.
LEAT_OF_PICTURES float times(float a, float b) {
#ifdef __CUDA_ARCH__
  return __fmul_rn(a, b);
#else
  return a * b;
#endif
}
LEAT_OF_PICTURES float plus(float a, float b) {
#ifdef __CUDA_ARCH__
  return __fadd_rn(a, b);
#else
  return a + b;
#endif
}
LEAT_OF_PICTURES float divided(float a, float b) {
#ifdef __CUDA_ARCH__
  return __fdiv_rn(a, b);
#else
  return a / b;
#endif
}
LEAT_OF_PICTURES float minus(float a, float b) { return plus(a, -b); }
/// 1 / a of a whole number of 1..255, rounded once.
LEAT_OF_PICTURES float inverse_of(float a) {
#ifdef __CUDA_ARCH__
  // One step of Newton's gives that for all of them from whatever is wrong by up to two units in the last place, as this may be.
  // What __frcp_rn() looks at besides cannot be here.
  const float rough = __fdividef(1.0F, a);
  return __fmaf_rn(rough, __fmaf_rn(-a, rough, 1.0F), rough);
#else
  return 1.0F / a;
#endif
}
// Below 2^22 by an addition, where a conversion would take four times as long: the sum has no room for binary places.
LEAT_OF_PICTURES float floor_of(float value) {
#ifdef __CUDA_ARCH__
  return __fadd_rn(__fadd_rd(value, 12582912.0F), -12582912.0F);
#else
  return __builtin_floorf(value);
#endif
}
// One instruction each; numbers are numbers here, and whether a zero is negative is lost when it becomes whole.
LEAT_OF_PICTURES float less(float a, float b) {
#ifdef __CUDA_ARCH__
  return fminf(a, b);
#else
  return a < b ? a : b;
#endif
}
LEAT_OF_PICTURES float more(float a, float b) {
#ifdef __CUDA_ARCH__
  return fmaxf(a, b);
#else
  return a < b ? b : a;
#endif
}
LEAT_OF_PICTURES float of_0_to_1(float value) {
#ifdef __CUDA_ARCH__
  return __saturatef(value);  // half the instructions
#else
  return less(more(value, 0.0F), 1.0F);
#endif
}
/// Clamped to 0..255, and truncated.
LEAT_OF_PICTURES float as_value(float value) { return floor_of(less(more(value, 0.0F), 255.0F)); }
/// Of a whole number of 0..255.
LEAT_OF_PICTURES std::uint32_t index_of(float value) {
#ifdef __CUDA_ARCH__
  return __float_as_uint(__fadd_rn(value, 8388608.0F)) & 0xFFU;
#else
  return static_cast<std::uint32_t>(value);
#endif
}

/// Whole numbers of 0..255.
struct pixel {
  float c[3];
};

LEAT_OF_PICTURES float floor_of_grey(const pixel& of) {
  const float first = times(of.c[0], 0.2989F);
  const float second = plus(first, times(of.c[1], 0.587F));
  return floor_of(plus(second, times(of.c[2], 0.114F)));
}

// docs/decisions/0005-hue.md
LEAT_OF_PICTURES void turn_hue(pixel& of, float turn) {
  const float red = of.c[0];
  const float green = of.c[1];
  const float blue = of.c[2];
  const float most = more(red, more(green, blue));
  const float least = less(red, less(green, blue));
  const float chroma = minus(most, least);
  const float inverse = inverse_of(more(chroma, 1.0F));
  const bool red_most = most == red;
  const bool green_most = most == green;
  const float difference = minus(red_most     ? green
                                 : green_most ? blue
                                              : red,
                                 red_most     ? blue
                                 : green_most ? red
                                              : green);
  const float from = red_most ? 0.0F : green_most ? 2.0F : 4.0F;
  float hue = plus(plus(times(difference, inverse), from), turn);
  hue = minus(hue, times(floor_of(times(hue, 1.0F / 6.0F)), 6.0F));
  LEAT_OF_PICTURES_UNROLLED
  for (std::int32_t c = 0; c < 3; ++c) {
    float k = plus(hue, static_cast<float>(5 - 2 * c));
    if (k >= 6.0F) k = plus(k, -6.0F);
    const float part = of_0_to_1(less(k, minus(4.0F, k)));
    of.c[c] = floor_of(times(minus(most, times(chroma, part)), 255.999F / 255.0F));  // of 0..255.999 by itself
  }
}

LEAT_OF_PICTURES void permute(pixel& of, std::uint32_t order) {
  // 012 021 102 120 201 210
  const float a = of.c[0];
  const float b = of.c[1];
  const float c = of.c[2];
  of.c[0] = order < 2 ? a : order < 4 ? b : c;
  of.c[1] = order == 0 || order == 5 ? b : order == 2 || order == 4 ? a : c;
  of.c[2] = order == 0 || order == 2 ? c : order == 1 || order == 4 ? b : a;
}

/// `count` pixels by one step. Of a step that looks at the picture nothing: somebody has made another one of it.
///   record   the row's, in which the step's tables lie
template <std::uint32_t count>
LEAT_OF_PICTURES void run_step(const program_step& step, const std::uint8_t* record, pixel (&all)[count]) {
  switch (step.what) {
    case step_kind::map: {
      const std::uint8_t* const table = record + step.at;
      LEAT_OF_PICTURES_UNROLLED
      for (pixel& of : all) {
        LEAT_OF_PICTURES_UNROLLED
        for (std::uint32_t c = 0; c < 3; ++c) of.c[c] = static_cast<float>(table[c * step.apart + index_of(of.c[c])]);
      }
      break;
    }
    case step_kind::scale:
      LEAT_OF_PICTURES_UNROLLED
      for (pixel& of : all) {
        LEAT_OF_PICTURES_UNROLLED
        for (float& value : of.c) value = as_value(plus(times(value, step.a), step.b));
      }
      break;
    case step_kind::saturate:
      LEAT_OF_PICTURES_UNROLLED
      for (pixel& of : all) {
        const float grey = times(floor_of_grey(of), step.b);
        LEAT_OF_PICTURES_UNROLLED
        for (float& value : of.c) value = as_value(plus(times(value, step.a), grey));
      }
      break;
    case step_kind::turn_hue:
      LEAT_OF_PICTURES_UNROLLED
      for (pixel& of : all) turn_hue(of, step.a);
      break;
    case step_kind::grey:
      LEAT_OF_PICTURES_UNROLLED
      for (pixel& of : all) of.c[0] = of.c[1] = of.c[2] = floor_of_grey(of);
      break;
    case step_kind::permute:
      LEAT_OF_PICTURES_UNROLLED
      for (pixel& of : all) permute(of, step.number);
      break;
    default:
      break;
  }
}

LEAT_OF_PICTURES program_step step_of(const std::uint8_t* record, std::uint32_t number) {
  return reinterpret_cast<const program_step*>(record + program_head_bytes)[number];
}

/// How many steps a record of so many bytes has: no more than fit it.
LEAT_OF_PICTURES std::uint32_t step_count_of(const picture_program& program, std::uint32_t record_bytes) {
  const std::uint32_t room = (record_bytes - program_head_bytes) / static_cast<std::uint32_t>(sizeof(program_step));
  return program.step_count < room ? program.step_count : room;
}

/// Whether what it refers to lies in the record. A step that does not is left out.
LEAT_OF_PICTURES bool is_inside(const program_step& step, std::uint32_t record_bytes) {
  if (step.at > record_bytes) return false;
  const std::uint32_t room = record_bytes - step.at;
  if (step.what == step_kind::map) return step.apart <= 256 && 2U * step.apart + 256 <= room;
  if (step.what == step_kind::warp) return step.at % 8 == 0 && sizeof(program_warp) <= room;
  return step.what != step_kind::blur ||
         (step.at % 4 == 0 && step.number <= blur_radius_max && (step.number + 1U) * 8 <= room);
}

/// Steps first .. end - 1.
template <std::uint32_t count>
LEAT_OF_PICTURES void run_steps(const std::uint8_t* record, std::uint32_t record_bytes, std::uint32_t first,
                                std::uint32_t end, pixel (&all)[count]) {
  for (std::uint32_t number = first; number < end; ++number) {
    const program_step step = step_of(record, number);
    if (is_inside(step, record_bytes)) run_step(step, record, all);
  }
}

}  // namespace leat::stages::picture_threads
