#include "tests/device/cuda_trap.hpp"

#include <cuda_runtime.h>

namespace leat::testing {
namespace {

__global__ void trap() { __trap(); }

}  // namespace

cudaError_t launch_trap(cudaStream_t in) {
  trap<<<1, 1, 0, in>>>();
  return cudaGetLastError();
}

}  // namespace leat::testing
