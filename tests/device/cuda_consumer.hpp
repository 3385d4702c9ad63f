// What cuda_consumer.cpp holds once for each way to compile it.
#pragma once

#include <leat/loading.hpp>

#include <cuda_runtime_api.h>

#include <cstdint>

#define LEAT_DECLARE_CONSUMER(name)                         \
  namespace leat::testing::name {                           \
  bool same_stream(cudaStream_t handle);                    \
  stream stream_of_null();                                  \
  std::uint64_t epoch(loader& train, cudaStream_t trainer); \
  device chosen_device();                                   \
  }

LEAT_DECLARE_CONSUMER(host_compiler)
LEAT_DECLARE_CONSUMER(nvcc)
LEAT_DECLARE_CONSUMER(nvcc_per_thread)
