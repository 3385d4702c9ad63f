#include "cuda_consumer.hpp"

#include <leat/loading.hpp>
#include <leat/own_samples.hpp>

#include <gtest/gtest.h>

#include <vector>

namespace leat::testing {
namespace {

TEST(cuda_header, a_stream_of_cudas_is_a_stream_and_comes_back) {
  const auto some = reinterpret_cast<cudaStream_t>(0x7F00'0000'1000);
  for (const auto same_stream : {host_compiler::same_stream, nvcc::same_stream, nvcc_per_thread::same_stream}) {
    EXPECT_TRUE(same_stream(some));
    EXPECT_TRUE(same_stream(cudaStreamLegacy));
    EXPECT_TRUE(same_stream(cudaStreamPerThread));
  }
}

TEST(cuda_header, a_null_stream_is_what_its_translation_unit_means_by_it) {
  EXPECT_EQ(host_compiler::stream_of_null(), stream());
  EXPECT_EQ(nvcc::stream_of_null(), stream());
  EXPECT_EQ(nvcc_per_thread::stream_of_null(), stream(cudaStreamPerThread));
}

TEST(cuda_header, a_trainers_loop_compiles_with_each_compiler_and_runs_on_the_host) {
  const dataset numbers = from_function(8, [](std::uint64_t sample) { return std::vector{std::byte(sample)}; },
                                        {.field = "n", .bytes_max = 1});
  for (const auto epoch : {host_compiler::epoch, nvcc::epoch, nvcc_per_thread::epoch}) {
    loader train(numbers, {.batch_size = 3, .epochs = 1, .host_bytes_max = std::size_t{16} << 20}, bytes("n"));
    EXPECT_EQ(epoch(train, nullptr), 0U + 1 + 2 + 3 + 4 + 5 + 6 + 7);
  }
}

TEST(cuda_header, the_chosen_device_is_the_host_where_there_is_no_gpu) {
  int count = 0;
  const bool any = cudaGetDeviceCount(&count) == cudaSuccess && count > 0;
  EXPECT_EQ(host_compiler::chosen_device().type, any ? device::kind::cuda : device::kind::host);
  EXPECT_EQ(nvcc::chosen_device(), host_compiler::chosen_device());
}

}  // namespace
}  // namespace leat::testing
