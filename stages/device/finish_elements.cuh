// What kernels that finish pictures have in common: elements of each type, how they are stored and mixed, and how a kernel is launched.
#pragma once

#include "stages/device/finish_pictures.hpp"

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace leat::stages {
namespace {

constexpr unsigned threads_per_block = 256;
constexpr unsigned grid_rows_max = 65535;  // of gridDim.y, CUDA C++ Programming Guide, "Technical Specifications"
/// Of a multiprocessor: what bounds the registers of a thread. Mixing f32 by four would spill on compute capability 10.0 and later.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 1000
constexpr unsigned blocks_that_mix = 3;
#else
constexpr unsigned blocks_that_mix = 4;
#endif
template <bool mixed>
constexpr unsigned blocks_at_once = mixed ? blocks_that_mix : 6;
/// The most rows that a thread finishes, but where there are more than the grid has numbers for; and fewer than there would be blocks for all
/// multiprocessors.
constexpr unsigned rows_in_turn_max = 4;
constexpr std::size_t blocks_wanted = 1024;

/// The bits of two elements.
template <class Pair>
__device__ std::uint32_t word_of(const Pair& pair) {
  std::uint32_t word;
  memcpy(&word, &pair, sizeof word);
  return word;
}

// An element in a word of what is stored; of 16 bits two.
struct as_f32 {
  using element = float;
  static constexpr unsigned per_word = 1;
  static __device__ float from(float value) { return value; }
  static __device__ float value_of(float element) { return element; }
  static __device__ std::uint32_t packed(const float (&values)[1]) { return __float_as_uint(values[0]); }
  static __device__ void unpack(std::uint32_t word, float (&values)[1]) { values[0] = __uint_as_float(word); }
};
struct as_f16 {
  using element = __half;
  static constexpr unsigned per_word = 2;
  static __device__ __half from(float value) { return __float2half_rn(value); }
  static __device__ float value_of(__half element) { return __half2float(element); }
  static __device__ std::uint32_t packed(const float (&values)[2]) {
    return word_of(__floats2half2_rn(values[0], values[1]));
  }
  static __device__ void unpack(std::uint32_t word, float (&values)[2]) {
    __half2 pair;
    memcpy(&pair, &word, sizeof pair);
    values[0] = __low2float(pair);
    values[1] = __high2float(pair);
  }
};
struct as_bf16 {
  using element = __nv_bfloat16;
  static constexpr unsigned per_word = 2;
  static __device__ __nv_bfloat16 from(float value) { return __float2bfloat16_rn(value); }
  static __device__ float value_of(__nv_bfloat16 element) { return __bfloat162float(element); }
  static __device__ std::uint32_t packed(const float (&values)[2]) {
    return word_of(__floats2bfloat162_rn(values[0], values[1]));
  }
  static __device__ void unpack(std::uint32_t word, float (&values)[2]) {
    values[0] = __uint_as_float(word << 16);
    values[1] = __uint_as_float(word & 0xFFFF0000U);
  }
};

/// Pixels themselves. Not mixed.
struct as_u8 {
  using element = std::uint8_t;
  static constexpr unsigned per_word = 4;
  static __device__ std::uint8_t from(float value) { return static_cast<std::uint8_t>(value); }
  static __device__ std::uint32_t packed(const float (&values)[4]) {
    std::uint32_t word = 0;
#pragma unroll
    for (unsigned i = 0; i < 4; ++i) word |= static_cast<std::uint32_t>(values[i]) << i * 8;
    return word;
  }
};

/// scale and bias of three channels, beginning with any of them.
struct channels {
  float scale[3];
  float bias[3];

  [[nodiscard]] __device__ channels beginning_with(unsigned c) const {
    if (c == 0) return *this;
    if (c == 1) return {{scale[1], scale[2], scale[0]}, {bias[1], bias[2], bias[0]}};
    return {{scale[2], scale[0], scale[1]}, {bias[2], bias[0], bias[1]}};
  }
};

// Two roundings. The intrinsics are never fused, whatever the flags say.
__device__ inline float finished(float pixel, float scale, float bias) {
  return __fadd_rn(__fmul_rn(pixel, scale), bias);
}

/// The i-th byte of some words as a number, without a conversion. The bits of 2^23 + b are those of 2^23 with b at their end: that is put
/// together and 2^23 taken away, exactly.
__device__ inline float byte_of(const std::uint32_t* words, unsigned i) {
  return __fadd_rn(__uint_as_float(__byte_perm(words[i / 4], 0x4B000000U, 0x7440U + i % 4)), -8388608.0F);
}

/// Elements of the widest store, which is of 16 bytes; and of the narrowest, which is as many as one word of pixels has.
template <class As>
constexpr unsigned elements_per_store = 16 / sizeof(typename As::element);
constexpr unsigned elements_per_store_least = 4;

template <class As, unsigned count>
struct alignas(count * sizeof(typename As::element)) store_of {
  static constexpr unsigned word_count = count / As::per_word;
  std::uint32_t words[word_count];

  /// value(i): the i-th element's, not rounded to its type.
  template <class Value>
  __device__ void fill(Value&& value) {
#pragma unroll
    for (unsigned w = 0; w < word_count; ++w) {
      float values[As::per_word];
#pragma unroll
      for (unsigned k = 0; k < As::per_word; ++k) values[k] = value(w * As::per_word + k);
      words[w] = As::packed(values);
    }
  }
};

[[nodiscard]] __device__ inline bool is_blended(const mix_row& how) { return how.other != 0; }
/// Whether any of `count` pixels from x on lie in the box.
[[nodiscard]] __device__ inline bool meets_box(const mix_row& how, unsigned x, unsigned count, unsigned y) {
  return x + count > how.left && x < how.right && y >= how.top && y < how.bottom;
}

__device__ inline float blended(const mix_row& how, float own, float other) {
  return __fadd_rn(__fmul_rn(how.own, own), __fmul_rn(how.other, other));
}

template <class As, unsigned count>
__device__ void blend(const mix_row& how, store_of<As, count>& own, const store_of<As, count>& other) {
#pragma unroll
  for (unsigned w = 0; w < store_of<As, count>::word_count; ++w) {
    float values[As::per_word];
    float others[As::per_word];
    As::unpack(own.words[w], values);
    As::unpack(other.words[w], others);
#pragma unroll
    for (unsigned k = 0; k < As::per_word; ++k) values[k] = blended(how, values[k], others[k]);
    own.words[w] = As::packed(values);
  }
}

/// Past the caches: a batch is larger than they are, and what they hold is the trainer's.
template <class Store>
__device__ void store_streaming(Store* to, const Store& made) {
  static_assert(sizeof(Store) == 4 || sizeof(Store) == 8 || sizeof(Store) == 16);
  if constexpr (sizeof(Store) == 4) {
    __stcs(reinterpret_cast<unsigned*>(to), made.words[0]);
  } else if constexpr (sizeof(Store) == 16) {
    uint4 bits;
    memcpy(&bits, &made, sizeof bits);
    __stcs(reinterpret_cast<uint4*>(to), bits);
  } else {
    uint2 bits;
    memcpy(&bits, &made, sizeof bits);
    __stcs(reinterpret_cast<uint2*>(to), bits);
  }
}

/// Four bytes of `low` and then `high`, from the `first`-th of these eight on: 0 to 4.
[[nodiscard]] __device__ inline std::uint32_t four_bytes(std::uint32_t low, std::uint32_t high, unsigned first) {
  return __byte_perm(low, high, 0x3210U + first * 0x1111U);
}

/// The four pixels in three words, the last one first.
__device__ inline void turn(std::uint32_t* words) {
  const std::uint32_t a = words[0];
  const std::uint32_t b = words[1];
  const std::uint32_t c = words[2];
  words[0] = __byte_perm(c, b, 0x6321U);
  words[1] = __byte_perm(__byte_perm(b, c, 0x0043U), __byte_perm(b, a, 0x0007U), 0x5410U);
  words[2] = __byte_perm(a, b, 0x2105U);
}

// How a row is mixed is the same for all threads of a block, which therefore take the same branches.
template <class As, class Run>
__device__ void mix(const Run& run, const mix_row& how, typename Run::store (&own)[Run::store_count],
                    const typename Run::store (&partner)[Run::store_count]) {
  if (is_blended(how)) {
#pragma unroll
    for (unsigned c = 0; c < Run::store_count; ++c) blend<As>(how, own[c], partner[c]);
  }
  if (!run.meets(how)) return;
  constexpr std::uint32_t whole_element = As::per_word == 1 ? ~std::uint32_t{0} : 0xFFFF;
#pragma unroll
  for (unsigned w = 0; w < Run::store::word_count; ++w) {
    std::uint32_t inside = 0;
#pragma unroll
    for (unsigned k = 0; k < As::per_word; ++k) {
      if (run.meets(how, w * As::per_word + k)) inside |= whole_element << k * 16;
    }
#pragma unroll
    for (unsigned c = 0; c < Run::store_count; ++c) {
      own[c].words[w] = (own[c].words[w] & ~inside) | (partner[c].words[w] & inside);
    }
  }
}

// Not <<<>>>: this answers for the one launch, and leaves the trainer's last error to the trainer.
template <class... Parameters>
int launch(void (*kernel)(Parameters...), std::size_t threads, unsigned rows, stream in, Parameters... parameters) {
  cudaLaunchConfig_t how{};
  how.gridDim.x = static_cast<unsigned>((threads + threads_per_block - 1) / threads_per_block);
  how.gridDim.y = rows < grid_rows_max ? rows : grid_rows_max;
  how.blockDim.x = threads_per_block;
  how.stream = in.handle();
  return static_cast<int>(cudaLaunchKernelEx(&how, kernel, parameters...));
}

unsigned rows_in_turn(unsigned rows, std::size_t threads) {
  const std::size_t blocks = (threads - 1) / threads_per_block + 1;
  const auto for_all = static_cast<unsigned>(blocks * rows / blocks_wanted);
  const unsigned turns = for_all < 1 ? 1 : for_all < rows_in_turn_max ? for_all : rows_in_turn_max;
  const unsigned least = (rows - 1) / grid_rows_max + 1;
  return turns < least ? least : turns;
}

template <class... Parameters>
cudaError_t load(void (*kernel)(Parameters...)) {
  cudaFuncAttributes attributes{};
  return cudaFuncGetAttributes(&attributes, kernel);
}

}  // namespace
}  // namespace leat::stages
