// A trainer's source that holds streams as CUDA's: compiled by the C++ compiler, by nvcc (cuda_consumer.cu), and by nvcc where
// null means the thread's own stream. Needs no GPU: on the host any stream will do.
#include "cuda_consumer.hpp"

#include <leat/cuda.hpp>

namespace leat::testing::CUDA_CONSUMER {

bool same_stream(cudaStream_t handle) { return cuda_handle(cuda_stream(handle)) == handle; }

stream stream_of_null() { return cuda_stream(nullptr); }

std::uint64_t epoch(loader& train, cudaStream_t trainer) {
  std::uint64_t sum = 0;
  for (batch& each : train.blocking()) {
    wait_on(each, trainer);
    for (const std::uint64_t sample : each.ids()) sum += sample;
    release_on(each, trainer);
  }
  return sum;
}

device chosen_device() { return current_device(); }

}  // namespace leat::testing::CUDA_CONSUMER
