// A trainer's kernel that is wrong.
#pragma once

#include <cuda_runtime_api.h>

namespace leat::testing {

/// Launches a kernel that traps: once it has run, the GPU is lost to this process.
cudaError_t launch_trap(cudaStream_t in);

}  // namespace leat::testing
