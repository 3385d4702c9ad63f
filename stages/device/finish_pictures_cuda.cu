// finish_pictures() on the GPU: one launch, stores of 16 bytes (of 8 where a line is no multiple of 16), and bytes loaded four at
// a time, mirrored or not. It is bound by memory: a pixel is 3 bytes in and 6 or 12 out, and a handful of instructions. Only
// pictures whose lines are no multiple of 4 elements are read and written one by one.
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

struct as_f32 {
  using element = float;
  static __device__ float from(float value) { return value; }
  static __device__ float value_of(float element) { return element; }
};
struct as_f16 {
  using element = __half;
  static __device__ __half from(float value) { return __float2half_rn(value); }
  static __device__ float value_of(__half element) { return __half2float(element); }
};
struct as_bf16 {
  using element = __nv_bfloat16;
  static __device__ __nv_bfloat16 from(float value) { return __float2bfloat16_rn(value); }
  static __device__ float value_of(__nv_bfloat16 element) { return __bfloat162float(element); }
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

/// Elements of the widest store, which is of 16 bytes; and of the narrowest, which is as many as one word of pixels has.
template <class As>
constexpr unsigned elements_per_store = 16 / sizeof(typename As::element);
constexpr unsigned elements_per_store_least = 4;

template <class As, unsigned count>
struct alignas(count * sizeof(typename As::element)) store_of {
  typename As::element values[count];
};

/// How pictures lie in memory, and what is done to them.
struct source {
  const std::uint8_t* from;
  const std::uint8_t* flips;
  const mix_row* mixed;
  unsigned rows;
  unsigned plane;
  unsigned width;

  [[nodiscard]] __device__ bool mirrored(unsigned row) const { return flips != nullptr && flips[row] != 0; }
  [[nodiscard]] __device__ unsigned partner(unsigned row) const { return row + 1 == rows ? 0 : row + 1; }
};

// How a row is mixed is the same for all threads of a block, which therefore take the same branches; and the partner is loaded only by
// those that use it.
[[nodiscard]] __device__ inline bool is_blended(const mix_row& how) { return how.other != 0; }
/// Whether any of `count` pixels from x on lie in the box.
[[nodiscard]] __device__ inline bool meets_box(const mix_row& how, unsigned x, unsigned count, unsigned y) {
  return x + count > how.left && x < how.right && y >= how.top && y < how.bottom;
}

template <class As>
__device__ typename As::element blended(const mix_row& how, typename As::element own, typename As::element other) {
  return As::from(__fadd_rn(__fmul_rn(how.own, As::value_of(own)), __fmul_rn(how.other, As::value_of(other))));
}

/// Past the caches: a batch is larger than they are, and what they hold is the trainer's.
template <class Store>
__device__ void store_streaming(Store* to, const Store& made) {
  static_assert(sizeof(Store) == 8 || sizeof(Store) == 16);
  if constexpr (sizeof(Store) == 16) {
    uint4 bits;
    memcpy(&bits, &made, sizeof bits);
    __stcs(reinterpret_cast<uint4*>(to), bits);
  } else {
    uint2 bits;
    memcpy(&bits, &made, sizeof bits);
    __stcs(reinterpret_cast<uint2*>(to), bits);
  }
}

/// Pixels side by side, as many as one store holds of a plane. A plane's width is a multiple of that, so that they lie in
/// one line, mirrored or not.
template <class As, unsigned pixels>
struct run_of_pixels {
  std::uint32_t words[pixels * 3 / 4];
  bool mirrored;

  __device__ run_of_pixels(const source& pictures, unsigned row, unsigned first) : mirrored(pictures.mirrored(row)) {
    unsigned at = first;
    if (mirrored) {
      const unsigned x = first % pictures.width;
      at = first - x + (pictures.width - pixels - x);
    }
    const auto* const packed =
        reinterpret_cast<const std::uint32_t*>(pictures.from + (std::size_t{row} * pictures.plane + at) * 3);
#pragma unroll
    for (unsigned i = 0; i < pixels * 3 / 4; ++i) words[i] = packed[i];
  }

  [[nodiscard]] __device__ typename As::element finished_at(unsigned i, unsigned c, const channels& how) const {
    const unsigned ahead = i * 3 + c;
    const unsigned behind = (pixels - 1 - i) * 3 + c;
    const unsigned pixel_ahead = words[ahead / 4] >> ahead % 4 * 8 & 0xFFU;
    const unsigned pixel_behind = words[behind / 4] >> behind % 4 * 8 & 0xFFU;
    return finished<As>(mirrored ? pixel_behind : pixel_ahead, how.scale[c], how.bias[c]);
  }
};

/// One thread: a run of pixels in all three planes.
template <class As, bool mixed, unsigned pixels>
__global__ void __launch_bounds__(threads_per_block)
    to_planes(source pictures, typename As::element* to, channels how) {
  const unsigned first = (blockIdx.x * threads_per_block + threadIdx.x) * pixels;
  if (first >= pictures.plane) return;
  for (unsigned row = blockIdx.y; row < pictures.rows; row += gridDim.y) {
    const run_of_pixels<As, pixels> own(pictures, row, first);
    store_of<As, pixels> made[3];
#pragma unroll
    for (unsigned c = 0; c < 3; ++c) {
#pragma unroll
      for (unsigned i = 0; i < pixels; ++i) made[c].values[i] = own.finished_at(i, c, how);
    }
    if constexpr (mixed) {
      const mix_row mix = pictures.mixed[row];
      const unsigned y = first / pictures.width;
      const unsigned x = first - y * pictures.width;
      if (is_blended(mix)) {
        const run_of_pixels<As, pixels> other(pictures, pictures.partner(row), first);
#pragma unroll
        for (unsigned c = 0; c < 3; ++c) {
#pragma unroll
          for (unsigned i = 0; i < pixels; ++i) {
            made[c].values[i] = blended<As>(mix, made[c].values[i], other.finished_at(i, c, how));
          }
        }
      }
      if (meets_box(mix, x, pixels, y)) {
        const run_of_pixels<As, pixels> other(pictures, pictures.partner(row), first);
#pragma unroll
        for (unsigned c = 0; c < 3; ++c) {
#pragma unroll
          for (unsigned i = 0; i < pixels; ++i) {
            if (meets_box(mix, x + i, 1, y)) made[c].values[i] = other.finished_at(i, c, how);
          }
        }
      }
    }
#pragma unroll
    for (unsigned c = 0; c < 3; ++c) {
      auto* const at = to + (std::size_t{row} * 3 + c) * pictures.plane + first;
      store_streaming(reinterpret_cast<store_of<As, pixels>*>(at), made[c]);
    }
  }
}

/// Four bytes of `low` and then `high`, from the `first`-th of these eight on: 0 to 4.
[[nodiscard]] __device__ inline std::uint32_t four_bytes(std::uint32_t low, std::uint32_t high, unsigned first) {
  return static_cast<std::uint32_t>((std::uint64_t{high} << 32 | low) >> first * 8);
}

/// Elements side by side, as many as one store holds. A line is a multiple of that, and so of words. A thread that stored a
/// whole run of pixels, as to_planes does, would leave 32 bytes between its stores, and each sector of memory would be
/// written twice by half: here the stores of a warp lie side by side, mirrored or not.
template <class As, unsigned elements>
struct run_of_elements {
  static constexpr unsigned word_count = elements / 4;
  std::uint32_t words[word_count];

  __device__ run_of_elements(const source& pictures, unsigned row, unsigned first) {
    const auto* const picture =
        reinterpret_cast<const std::uint32_t*>(pictures.from + std::size_t{row} * pictures.plane * 3);
    if (!pictures.mirrored(row)) {
#pragma unroll
      for (unsigned i = 0; i < word_count; ++i) words[i] = picture[first / 4 + i];
      return;
    }
    const unsigned first_pixel = first / 3;
    const unsigned y = first_pixel / pictures.width;
    load_mirrored(picture + y * (pictures.width * 3 / 4), pictures.width - (first_pixel - y * pictures.width),
                  first - first_pixel * 3);
  }

  /// The pixels wanted lie before the `end`-th of the line, the last of them first, and its first `channel` elements left
  /// out: words are loaded where they begin, shifted to the pixels' end, their pixels turned round, and shifted again.
  __device__ void load_mirrored(const std::uint32_t* line, unsigned end, unsigned channel) {
    constexpr unsigned turned_count = word_count + 1;  // all of the pixels that `elements` may touch
    const unsigned end_word = (end * 3 + 3) / 4;
    std::uint32_t loaded[turned_count + 1];
#pragma unroll
    for (unsigned i = 0; i <= turned_count; ++i) {
      const unsigned at = end_word + i;  // The first may lie before the line, and is not looked at then.
      loaded[i] = line[at > turned_count ? at - (turned_count + 1) : 0];
    }
    std::uint32_t ahead[turned_count];
#pragma unroll
    for (unsigned i = 0; i < turned_count; ++i) ahead[i] = four_bytes(loaded[i], loaded[i + 1], (end * 3 + 3) % 4 + 1);
    std::uint32_t turned[turned_count] = {};
#pragma unroll
    for (unsigned i = 0; i < turned_count * 4 / 3 * 3; ++i) {
      const unsigned from = turned_count * 4 - (i / 3 + 1) * 3 + i % 3;
      turned[i / 4] |= (ahead[from / 4] >> from % 4 * 8 & 0xFFU) << i % 4 * 8;
    }
#pragma unroll
    for (unsigned i = 0; i < word_count; ++i) words[i] = four_bytes(turned[i], turned[i + 1], channel);
  }

  /// `turned`: beginning with the first element's channel.
  [[nodiscard]] __device__ typename As::element finished_at(unsigned i, const channels& turned) const {
    const unsigned pixel = words[i / 4] >> i % 4 * 8 & 0xFFU;
    return finished<As>(pixel, turned.scale[i % 3], turned.bias[i % 3]);
  }
};

/// One thread: a run of elements.
template <class As, bool mixed, unsigned elements>
__global__ void __launch_bounds__(threads_per_block)
    to_pixels(source pictures, typename As::element* to, channels how) {
  const unsigned first = (blockIdx.x * threads_per_block + threadIdx.x) * elements;
  if (first >= pictures.plane * 3) return;
  const unsigned first_pixel = first / 3;
  const unsigned first_channel = first - first_pixel * 3;
  const channels turned = how.beginning_with(first_channel);
  for (unsigned row = blockIdx.y; row < pictures.rows; row += gridDim.y) {
    const run_of_elements<As, elements> own(pictures, row, first);
    store_of<As, elements> made;
#pragma unroll
    for (unsigned i = 0; i < elements; ++i) made.values[i] = own.finished_at(i, turned);
    if constexpr (mixed) {
      const mix_row mix = pictures.mixed[row];
      const unsigned y = first_pixel / pictures.width;
      const unsigned x = first_pixel - y * pictures.width;
      if (is_blended(mix)) {
        const run_of_elements<As, elements> other(pictures, pictures.partner(row), first);
#pragma unroll
        for (unsigned i = 0; i < elements; ++i) {
          made.values[i] = blended<As>(mix, made.values[i], other.finished_at(i, turned));
        }
      }
      if (meets_box(mix, x, (first_channel + elements + 2) / 3, y)) {
        const run_of_elements<As, elements> other(pictures, pictures.partner(row), first);
#pragma unroll
        for (unsigned i = 0; i < elements; ++i) {
          if (meets_box(mix, x + (first_channel + i) / 3, 1, y)) made.values[i] = other.finished_at(i, turned);
        }
      }
    }
    auto* const at = to + std::size_t{row} * pictures.plane * 3 + first;
    store_streaming(reinterpret_cast<store_of<As, elements>*>(at), made);
  }
}

/// One thread, one pixel: pictures whose lines are no multiple of a store.
template <class As, bool mixed>
__global__ void __launch_bounds__(threads_per_block)
    one_by_one(source pictures, typename As::element* to, bool planes, channels how) {
  const unsigned at = blockIdx.x * threads_per_block + threadIdx.x;
  if (at >= pictures.plane) return;
  const unsigned y = at / pictures.width;
  const unsigned x = at - y * pictures.width;
  const auto pixel_of = [&](unsigned row) {
    const unsigned from_x = pictures.mirrored(row) ? pictures.width - 1 - x : x;
    return pictures.from + (std::size_t{row} * pictures.plane + y * pictures.width + from_x) * 3;
  };
  for (unsigned row = blockIdx.y; row < pictures.rows; row += gridDim.y) {
    typename As::element* const picture = to + std::size_t{row} * pictures.plane * 3;
#pragma unroll
    for (unsigned c = 0; c < 3; ++c) {
      typename As::element made = finished<As>(pixel_of(row)[c], how.scale[c], how.bias[c]);
      if constexpr (mixed) {
        const mix_row mix = pictures.mixed[row];
        const auto other = finished<As>(pixel_of(pictures.partner(row))[c], how.scale[c], how.bias[c]);
        if (is_blended(mix)) made = blended<As>(mix, made, other);
        if (meets_box(mix, x, 1, y)) made = other;
      }
      picture[planes ? std::size_t{c} * pictures.plane + at : std::size_t{at} * 3 + c] = made;
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

template <class As, bool mixed, unsigned elements>
int launch_in_runs(const picture_batch& pictures, const source& from, typename As::element* to, const channels& how,
                   stream in) {
  if (pictures.order == layout::nchw) {
    return launch(&to_planes<As, mixed, elements>, pictures, from.plane / elements, in, from, to, how);
  }
  return launch(&to_pixels<As, mixed, elements>, pictures, std::size_t{from.plane} * 3 / elements, in, from, to, how);
}

template <class As, bool mixed>
int launch_as(const picture_batch& pictures, stream in) {
  const source from{pictures.from, pictures.flips, pictures.mixed, pictures.rows, pictures.height * pictures.width,
                    pictures.width};
  const channels how{{pictures.scale[0], pictures.scale[1], pictures.scale[2]},
                     {pictures.bias[0], pictures.bias[1], pictures.bias[2]}};
  auto* const to = static_cast<typename As::element*>(pictures.to);
  if (pictures.width % elements_per_store<As> == 0) {
    return launch_in_runs<As, mixed, elements_per_store<As>>(pictures, from, to, how, in);
  }
  if (pictures.width % elements_per_store_least == 0) {
    return launch_in_runs<As, mixed, elements_per_store_least>(pictures, from, to, how, in);
  }
  return launch(&one_by_one<As, mixed>, pictures, from.plane, in, from, to, pictures.order == layout::nchw, how);
}

template <class As>
int launch_as(const picture_batch& pictures, stream in) {
  return pictures.mixed != nullptr ? launch_as<As, true>(pictures, in) : launch_as<As, false>(pictures, in);
}

template <class... Parameters>
cudaError_t load(void (*kernel)(Parameters...)) {
  cudaFuncAttributes attributes{};
  return cudaFuncGetAttributes(&attributes, kernel);
}

template <class As, bool mixed, unsigned elements>
cudaError_t load_in_runs() {
  const cudaError_t status = load(&to_planes<As, mixed, elements>);
  return status != cudaSuccess ? status : load(&to_pixels<As, mixed, elements>);
}

template <class As, bool mixed>
cudaError_t load_as() {
  cudaError_t status = load_in_runs<As, mixed, elements_per_store<As>>();
  if constexpr (elements_per_store<As> != elements_per_store_least) {
    if (status == cudaSuccess) status = load_in_runs<As, mixed, elements_per_store_least>();
  }
  return status != cudaSuccess ? status : load(&one_by_one<As, mixed>);
}

template <class As>
cudaError_t load_as() {
  const cudaError_t status = load_as<As, false>();
  return status != cudaSuccess ? status : load_as<As, true>();
}

}  // namespace

int load_finish_pictures() noexcept {
  cudaError_t status = load_as<as_f32>();
  if (status == cudaSuccess) status = load_as<as_f16>();
  if (status == cudaSuccess) status = load_as<as_bf16>();
  return static_cast<int>(status);
}

int launch_finish_pictures(const picture_batch& pictures, stream in) noexcept {
  if (pictures.rows == 0 || pictures.height == 0 || pictures.width == 0) return 0;
  if (!fits_a_picture(pictures.height, pictures.width)) return static_cast<int>(cudaErrorInvalidValue);
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
