// A trainer's source that holds streams as CUDA's: compiled by the C++ compiler, by nvcc (cuda_consumer.cu), and by nvcc where
// null means the thread's own stream. Needs no GPU: on the host any stream will do.
#include "cuda_consumer.hpp"

#include <leat/cuda.hpp>

namespace leat::testing::CUDA_CONSUMER {

bool same_stream(cudaStream_t handle) { return cuda_handle(cuda_stream(handle)) == handle; }

stream stream_of_null() { return cuda_stream(nullptr); }

std::uint64_t step(batch& from, cudaStream_t trainer) {
  wait_on(from, trainer);
  const std::uint64_t sample = from.ids()[0];
  release_on(from, trainer);
  return sample;
}

device chosen_device() { return current_device(); }

}  // namespace leat::testing::CUDA_CONSUMER
