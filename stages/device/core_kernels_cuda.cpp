// In the place of kernels_cuda.cpp, in a program that is linked without leat::images, which has the kernels of pictures. Weak: where both are,
// this is not taken.
#include "stages/device/gather_rows.hpp"
#include "stages/device/kernels_cuda.hpp"

namespace leat::stages {

[[gnu::weak]] std::span<const cuda_kernel> all_kernels() noexcept {
  static constexpr cuda_kernel all[] = {
      {&gather_rows_kernel, &load_gather_rows, &launch_of<gathered_pieces, &launch_gather_rows>}};
  return all;
}

}  // namespace leat::stages
