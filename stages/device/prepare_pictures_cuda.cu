// prepare_pictures() on the GPU. A block has a picture from its beginning to its end: so its threads can meet, one launch does however many
// steps, and a batch of 256 fills a GPU.
#include "stages/device/picture_work.hpp"
#include "stages/device/prepare_pictures.hpp"

#include <cuda_runtime.h>

#include <cstdint>

namespace leat::stages {
namespace {

constexpr unsigned threads_per_block = 512;
/// Of a multiprocessor: a batch of 256 rows has no more for each. Compute capability 10.0 and later would spill.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 1000
constexpr unsigned blocks_at_once = 1;
#else
constexpr unsigned blocks_at_once = 2;
#endif
constexpr unsigned grid_blocks_max = 65535;

class team_of_threads {
 public:
  template <class F>
  __device__ __forceinline__ void run(const F& f) {
    f(threadIdx.x, threads_per_block);
  }
  __device__ __forceinline__ void barrier() { __syncthreads(); }
  template <class Number>
  static __device__ __forceinline__ void add(Number* to, Number what) {
    atomicAdd(to, what);
  }
};

__global__ void __launch_bounds__(threads_per_block, blocks_at_once)
    prepare(const __grid_constant__ picture_preparation pictures) {
  __shared__ picture_threads::picture_memory memory;
  team_of_threads team;
  for (unsigned row = blockIdx.x; row < pictures.rows; row += gridDim.x) {
    picture_threads::prepare_row(team, &memory, pictures, row);
    __syncthreads();
  }
}

}  // namespace

int load_prepare_pictures() noexcept {
  cudaFuncAttributes attributes{};
  return static_cast<int>(cudaFuncGetAttributes(&attributes, &prepare));
}

// Not <<<>>>: this answers for the one launch, and leaves the trainer's last error to the trainer.
int launch_prepare_pictures(const picture_preparation& pictures, stream in) noexcept {
  if (pictures.rows == 0 || pictures.height == 0 || pictures.width == 0) return 0;
  cudaLaunchConfig_t how{};
  how.gridDim.x = pictures.rows < grid_blocks_max ? pictures.rows : grid_blocks_max;
  how.blockDim.x = threads_per_block;
  how.stream = in.handle();
  return static_cast<int>(cudaLaunchKernelEx(&how, &prepare, pictures));
}

}  // namespace leat::stages
