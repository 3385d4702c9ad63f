// decode_photos() on the GPU. A warp has a row of MCUs, and shared memory of its own: a block's warps do not wait for one another. Pixels
// and outputs of the resampling are shared out among threads, neighbours next to one another.
#include "stages/device/decode_photos.hpp"
#include "stages/device/photo_threads.hpp"

#include <cuda_runtime.h>

#include <cstdint>

namespace leat::stages {
namespace {

constexpr unsigned warps_per_block = 4;
constexpr unsigned row_blocks_at_once = 4;     // of a multiprocessor: asked for no more, ptxas spills no registers
constexpr unsigned row_blocks_per_photo = 16;  // 64 warps: more than most crops have rows of MCUs
constexpr unsigned threads_per_block = 256;
constexpr unsigned blocks_per_photo = 32;
constexpr unsigned grid_rows_max = 65535;  // of gridDim.y, CUDA C++ Programming Guide, "Technical Specifications"

class warp_of_threads {
 public:
  template <class F>
  __device__ __forceinline__ void run(const F& f) {
    f(lane(), state_);
  }
  __device__ __forceinline__ void barrier() { __syncwarp(); }
  template <class F>
  __device__ __forceinline__ std::uint32_t ballot(const F& f) {
    return __ballot_sync(all, f(lane(), state_));
  }
  template <class F>
  __device__ __forceinline__ std::uint32_t sum(const F& f) {
    return __reduce_add_sync(all, f(lane(), state_));
  }
  template <class F>
  __device__ __forceinline__ std::uint32_t scan(const F& f) {
    const std::uint32_t own = f(lane(), state_);
    std::uint32_t sum = own;
#pragma unroll
    for (unsigned distance = 1; distance < photo_threads::lanes; distance *= 2) {
      const std::uint32_t before = __shfl_up_sync(all, sum, distance);
      if (lane() >= distance) sum += before;
    }
    state_.before = sum - own;
    return __shfl_sync(all, sum, photo_threads::lanes - 1);
  }

 private:
  static constexpr unsigned all = 0xFFFFFFFFU;
  static __device__ __forceinline__ std::uint32_t lane() { return threadIdx.x % photo_threads::lanes; }

  photo_threads::lane_state state_;
};

__global__ void __launch_bounds__(warps_per_block* photo_threads::lanes, row_blocks_at_once)
    decode_rows(const __grid_constant__ photo_batch photos) {
  __shared__ photo_threads::row_memory memory[warps_per_block];
  const unsigned warp_number = threadIdx.x / photo_threads::lanes;
  warp_of_threads warp;
  for (unsigned number = blockIdx.y; number < photos.photo_count; number += gridDim.y) {
    const photo_slot& slot = photo_threads::slot_of(photos, number);
    const unsigned rows = slot.is_pack != 0 ? slot.row_count : 0;
    for (unsigned row = blockIdx.x * warps_per_block + warp_number; row < rows; row += gridDim.x * warps_per_block) {
      photo_threads::decode_row(warp, memory + warp_number, photos, number, row);
    }
  }
}

// Of a grid's row, with a photo.
__device__ __forceinline__ unsigned thread_of_photo() { return blockIdx.x * threads_per_block + threadIdx.x; }
constexpr unsigned threads_of_photo = blocks_per_photo * threads_per_block;

__global__ void __launch_bounds__(threads_per_block) colour(const __grid_constant__ photo_batch photos) {
  for (unsigned number = blockIdx.y; number < photos.photo_count; number += gridDim.y) {
    photo_threads::colour_pixels(photos, number, thread_of_photo(), threads_of_photo);
  }
}

__global__ void __launch_bounds__(threads_per_block) across(const __grid_constant__ photo_batch photos) {
  for (unsigned number = blockIdx.y; number < photos.photo_count; number += gridDim.y) {
    photo_threads::resample_once(photos, number, thread_of_photo(), threads_of_photo);
  }
}

__global__ void __launch_bounds__(threads_per_block) rows_of_batch(const __grid_constant__ photo_batch photos) {
  for (unsigned number = blockIdx.y; number < photos.photo_count; number += gridDim.y) {
    photo_threads::make_row(photos, number, thread_of_photo(), threads_of_photo);
  }
}

// Not <<<>>>: this answers for the one launch, and leaves the trainer's last error to the trainer.
cudaError_t launch(void (*kernel)(photo_batch), dim3 grid, unsigned threads, const photo_batch& photos, stream in) {
  cudaLaunchConfig_t how{};
  how.gridDim = grid;
  how.blockDim.x = threads;
  how.stream = in.handle();
  return cudaLaunchKernelEx(&how, kernel, photos);
}

}  // namespace

int load_decode_photos() noexcept {
  for (void (*const kernel)(photo_batch) : {&decode_rows, &colour, &across, &rows_of_batch}) {
    cudaFuncAttributes attributes{};
    const cudaError_t status = cudaFuncGetAttributes(&attributes, kernel);
    if (status != cudaSuccess) return static_cast<int>(status);
  }
  return 0;
}

int launch_decode_photos(const photo_batch& photos, stream in) noexcept {
  if (photos.photo_count == 0 || photos.out_height == 0 || photos.out_width == 0) return 0;
  const unsigned photo_count = photos.photo_count < grid_rows_max ? photos.photo_count : grid_rows_max;
  const cudaError_t decoded =
      launch(&decode_rows, dim3(row_blocks_per_photo, photo_count), warps_per_block * photo_threads::lanes, photos, in);
  if (decoded != cudaSuccess) return static_cast<int>(decoded);
  const dim3 grid(blocks_per_photo, photo_count);
  for (void (*const kernel)(photo_batch) : {&colour, &across, &rows_of_batch}) {
    const cudaError_t status = launch(kernel, grid, threads_per_block, photos, in);
    if (status != cudaSuccess) return static_cast<int>(status);
  }
  return 0;
}

}  // namespace leat::stages
