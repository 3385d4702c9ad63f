// As much of CUDA's language and runtime as our kernels use, on the host: a launch is a loop over blocks and threads. What
// a kernel computes can so be tested on every machine; what it costs, and how its threads meet, cannot.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#define __global__
#define __device__
#define __launch_bounds__(...)
#define __grid_constant__

struct dim3 {
  unsigned x = 1, y = 1, z = 1;
};
inline thread_local dim3 blockIdx, threadIdx, gridDim;

struct uint2 {
  unsigned x, y;
};
struct alignas(16) uint4 {
  unsigned x, y, z, w;
};
template <class Bits>
void __stcs(Bits* to, Bits bits) {
  *to = bits;
}

struct CUstream_st;
using cudaStream_t = CUstream_st*;
enum cudaError_t { cudaSuccess = 0, cudaErrorInvalidValue = 1 };
struct cudaLaunchConfig_t {
  dim3 gridDim, blockDim;
  std::size_t dynamicSmemBytes = 0;
  cudaStream_t stream = nullptr;
};

/// Launches since the program began, and the blocks that the last one had for a row.
inline thread_local std::size_t emulated_launches = 0;
inline thread_local std::size_t emulated_blocks = 0;

template <class... Parameters, class... Arguments>
cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t* how, void (*kernel)(Parameters...), Arguments&&... arguments) {
  ++emulated_launches;
  emulated_blocks = how->gridDim.x;
  gridDim = how->gridDim;
  for (blockIdx.y = 0; blockIdx.y < how->gridDim.y; ++blockIdx.y) {
    for (blockIdx.x = 0; blockIdx.x < how->gridDim.x; ++blockIdx.x) {
      for (threadIdx.x = 0; threadIdx.x < how->blockDim.x; ++threadIdx.x) kernel(arguments...);
    }
  }
  return cudaSuccess;
}

struct cudaFuncAttributes {};
/// Kernels that were asked about since the program began.
inline thread_local std::size_t emulated_loads = 0;

template <class... Parameters>
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes*, void (*)(Parameters...)) {
  ++emulated_loads;
  return cudaSuccess;
}

inline float __fmul_rn(float a, float b) { return a * b; }
inline float __fadd_rn(float a, float b) { return a + b; }
inline std::uint32_t __float_as_uint(float value) { return std::bit_cast<std::uint32_t>(value); }
inline float __uint_as_float(std::uint32_t bits) { return std::bit_cast<float>(bits); }
/// Four of the eight bytes of `low` and then `high`, each named by 4 bits of the selector, of which the last is not used here.
inline std::uint32_t __byte_perm(std::uint32_t low, std::uint32_t high, std::uint32_t selector) {
  const std::uint64_t all = std::uint64_t{high} << 32 | low;
  std::uint32_t made = 0;
  for (unsigned i = 0; i < 4; ++i)
    made |= static_cast<std::uint32_t>(all >> (selector >> i * 4 & 7) * 8 & 0xFF) << i * 8;
  return made;
}
