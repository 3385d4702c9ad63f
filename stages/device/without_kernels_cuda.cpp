// In the place of kernels_cuda.cpp, in a program that is linked without leat::images: all kernels are of pictures. Weak: where both are, this
// is not taken.
#include "stages/device/kernels_cuda.hpp"

namespace leat::stages {

[[gnu::weak]] std::span<const cuda_kernel> all_kernels() noexcept { return {}; }

}  // namespace leat::stages
