// The machine code of each kernel, for builds with CUDA.
#pragma once

#include "stages/device/device_kernel.hpp"

#include <leat/stream.hpp>

#include <span>

namespace leat::stages {

/// Both return 0 or the cudaError_t.
///   load    onto the calling thread's device. By default CUDA does so at a kernel's first launch, which would take device memory, and
///           wait for the device, in the middle of the loop. Of a GPU that this build has no code for: cudaErrorNoKernelImageForDevice
///   launch  once, in the order of `in`
struct cuda_kernel {
  const device_kernel* which = nullptr;
  int (*load)() noexcept = nullptr;
  int (*launch)(const void* arguments, stream in) noexcept = nullptr;
};

/// A `launch`, of the function that takes the kernel's own arguments.
template <class Arguments, int (*launch)(const Arguments& arguments, stream in) noexcept>
int launch_of(const void* arguments, stream in) noexcept {
  return launch(*static_cast<const Arguments*>(arguments), in);
}

/// Every kernel of the library: a new one is added here. Where leat::images is not linked those of leat::core (core_kernels_cuda.cpp).
[[nodiscard]] std::span<const cuda_kernel> all_kernels() noexcept;

}  // namespace leat::stages
