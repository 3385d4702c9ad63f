#include "tests/loader/place.hpp"

#include <leat/stream.hpp>

#include <gtest/gtest.h>

#include <cuda_runtime_api.h>

namespace leat::testing {

void choose_place(loader_options& options) { options.device = cuda(0); }

void read_from_device(batch& from, std::span<std::byte> copy, std::span<const std::byte> whole,
                      const std::vector<std::span<const std::byte>>& tensors) {
  from.wait_on(stream());
  for (const auto& each : tensors) {
    EXPECT_STREQ(cudaGetErrorName(cudaMemcpyAsync(copy.data() + (each.data() - whole.data()), each.data(), each.size(),
                                                  cudaMemcpyDeviceToHost, cudaStreamLegacy)),
                 "cudaSuccess");
  }
  EXPECT_STREQ(cudaGetErrorName(cudaStreamSynchronize(cudaStreamLegacy)), "cudaSuccess");
}

}  // namespace leat::testing
