// finish_pictures() on the GPU: one launch, 16-byte stores, and bytes loaded four or eight at a time. It is bound by memory:
// a pixel is 3 bytes in and 6 or 12 out, and a handful of instructions.
#include "stages/finish_pictures.hpp"

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

namespace leat::stages {
namespace {

constexpr unsigned threads_per_block = 256;
constexpr unsigned grid_rows_max = 65535;  // of gridDim.y, CUDA C++ Programming Guide, "Technical Specifications"

struct as_f32 {
  using element = float;
  static __device__ float from(float value) { return value; }
};
struct as_f16 {
  using element = __half;
  static __device__ __half from(float value) { return __float2half_rn(value); }
};
struct as_bf16 {
  using element = __nv_bfloat16;
  static __device__ __nv_bfloat16 from(float value) { return __float2bfloat16_rn(value); }
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
template <class As>
__device__ typename As::element finished(unsigned pixel, float scale, float bias) {
  return As::from(__fadd_rn(__fmul_rn(static_cast<float>(pixel), scale), bias));
}

/// Elements of one 16-byte store.
template <class As>
constexpr unsigned elements_per_store = 16 / sizeof(typename As::element);

template <class As>
struct alignas(16) store_of {
  typename As::element values[elements_per_store<As>];
};

/// One thread: as many pixels side by side as one store holds of a plane, in all three planes. A plane's width is a
/// multiple of that, so that they lie in one line, mirrored or not.
template <class As>
__global__ void __launch_bounds__(threads_per_block)
    to_planes(const std::uint8_t* from, typename As::element* to, const std::uint8_t* flips, unsigned rows,
              unsigned plane, unsigned width, channels how) {
  constexpr unsigned pixels = elements_per_store<As>;
  constexpr unsigned words = pixels * 3 / 4;
  const unsigned first = (blockIdx.x * threads_per_block + threadIdx.x) * pixels;
  if (first >= plane) return;
  for (unsigned row = blockIdx.y; row < rows; row += gridDim.y) {
    const bool flip = flips != nullptr && flips[row] != 0;
    unsigned source = first;
    if (flip) {
      const unsigned x = first % width;
      source = first - x + (width - pixels - x);
    }
    const auto* const packed = reinterpret_cast<const std::uint32_t*>(from + (std::size_t{row} * plane + source) * 3);
    std::uint32_t loaded[words];
#pragma unroll
    for (unsigned i = 0; i < words; ++i) loaded[i] = packed[i];
#pragma unroll
    for (unsigned c = 0; c < 3; ++c) {
      store_of<As> made;
#pragma unroll
      for (unsigned i = 0; i < pixels; ++i) {
        const unsigned ahead = i * 3 + c;
        const unsigned mirrored = (pixels - 1 - i) * 3 + c;
        const unsigned pixel_ahead = loaded[ahead / 4] >> ahead % 4 * 8 & 0xFFU;
        const unsigned pixel_mirrored = loaded[mirrored / 4] >> mirrored % 4 * 8 & 0xFFU;
        made.values[i] = finished<As>(flip ? pixel_mirrored : pixel_ahead, how.scale[c], how.bias[c]);
      }
      *reinterpret_cast<store_of<As>*>(to + (std::size_t{row} * 3 + c) * plane + first) = made;
    }
  }
}

/// One thread: as many elements as one store holds. A line is a multiple of that.
template <class As>
__global__ void __launch_bounds__(threads_per_block)
    to_pixels(const std::uint8_t* from, typename As::element* to, const std::uint8_t* flips, unsigned rows,
              unsigned plane, unsigned width, channels how) {
  constexpr unsigned elements = elements_per_store<As>;
  const unsigned first = (blockIdx.x * threads_per_block + threadIdx.x) * elements;
  if (first >= plane * 3) return;
  const unsigned first_pixel = first / 3;
  const unsigned first_channel = first - first_pixel * 3;
  const channels turned = how.beginning_with(first_channel);
  for (unsigned row = blockIdx.y; row < rows; row += gridDim.y) {
    const std::size_t base = std::size_t{row} * plane * 3;
    const bool flip = flips != nullptr && flips[row] != 0;
    std::uint32_t loaded[elements / 4];
    if (!flip) {
      const auto* const packed = reinterpret_cast<const std::uint32_t*>(from + base + first);
#pragma unroll
      for (unsigned i = 0; i < elements / 4; ++i) loaded[i] = packed[i];
    } else {
      const unsigned line = first_pixel / width * width;
#pragma unroll
      for (unsigned i = 0; i < elements / 4; ++i) {
        loaded[i] = 0;
#pragma unroll
        for (unsigned j = 0; j < 4; ++j) {
          const unsigned steps = first_channel + i * 4 + j;
          const unsigned x = first_pixel - line + steps / 3;
          const unsigned at = (line + (width - 1 - x)) * 3 + steps % 3;
          loaded[i] |= std::uint32_t{from[base + at]} << j * 8;
        }
      }
    }
    store_of<As> made;
#pragma unroll
    for (unsigned i = 0; i < elements; ++i) {
      const unsigned pixel = loaded[i / 4] >> i % 4 * 8 & 0xFFU;
      made.values[i] = finished<As>(pixel, turned.scale[i % 3], turned.bias[i % 3]);
    }
    *reinterpret_cast<store_of<As>*>(to + base + first) = made;
  }
}

/// One thread, one pixel: pictures whose lines are no multiple of a store.
template <class As>
__global__ void __launch_bounds__(threads_per_block)
    one_by_one(const std::uint8_t* from, typename As::element* to, const std::uint8_t* flips, unsigned rows,
               unsigned plane, unsigned width, bool planes, channels how) {
  const unsigned at = blockIdx.x * threads_per_block + threadIdx.x;
  if (at >= plane) return;
  const unsigned x = at % width;
  for (unsigned row = blockIdx.y; row < rows; row += gridDim.y) {
    const bool flip = flips != nullptr && flips[row] != 0;
    const unsigned source = flip ? at - x + (width - 1 - x) : at;
    const std::uint8_t* const pixel = from + (std::size_t{row} * plane + source) * 3;
    typename As::element* const picture = to + std::size_t{row} * plane * 3;
#pragma unroll
    for (unsigned c = 0; c < 3; ++c) {
      picture[planes ? std::size_t{c} * plane + at : std::size_t{at} * 3 + c] =
          finished<As>(pixel[c], how.scale[c], how.bias[c]);
    }
  }
}

// Not <<<>>>: this answers for the one launch, and leaves the trainer's last error to the trainer.
template <class... Parameters>
int launch(void (*kernel)(Parameters...), const picture_batch& pictures, std::size_t threads, stream in,
           Parameters... parameters) {
  cudaLaunchConfig_t how{};
  how.gridDim.x = static_cast<unsigned>((threads + threads_per_block - 1) / threads_per_block);
  how.gridDim.y = pictures.rows < grid_rows_max ? pictures.rows : grid_rows_max;
  how.blockDim.x = threads_per_block;
  how.stream = in.handle();
  return static_cast<int>(cudaLaunchKernelEx(&how, kernel, parameters...));
}

template <class As>
int launch_as(const picture_batch& pictures, stream in) {
  const unsigned plane = pictures.height * pictures.width;
  const channels how{{pictures.scale[0], pictures.scale[1], pictures.scale[2]},
                     {pictures.bias[0], pictures.bias[1], pictures.bias[2]}};
  auto* const to = static_cast<typename As::element*>(pictures.to);
  constexpr unsigned elements = elements_per_store<As>;
  if (pictures.order == layout::nchw && pictures.width % elements == 0) {
    return launch(&to_planes<As>, pictures, plane / elements, in, pictures.from, to, pictures.flips, pictures.rows,
                  plane, pictures.width, how);
  }
  if (pictures.order == layout::nhwc && pictures.width * 3 % elements == 0) {
    return launch(&to_pixels<As>, pictures, std::size_t{plane} * 3 / elements, in, pictures.from, to, pictures.flips,
                  pictures.rows, plane, pictures.width, how);
  }
  return launch(&one_by_one<As>, pictures, plane, in, pictures.from, to, pictures.flips, pictures.rows, plane,
                pictures.width, pictures.order == layout::nchw, how);
}

}  // namespace

int launch_finish_pictures(const picture_batch& pictures, stream in) noexcept {
  if (pictures.rows == 0 || pictures.height == 0 || pictures.width == 0) return 0;
  switch (pictures.type) {
    case dtype::f32:
      return launch_as<as_f32>(pictures, in);
    case dtype::f16:
      return launch_as<as_f16>(pictures, in);
    case dtype::bf16:
      return launch_as<as_bf16>(pictures, in);
    default:
      return static_cast<int>(cudaErrorInvalidValue);
  }
}

}  // namespace leat::stages
