// CUDA's runtime and driver without either: what stages/device/device_cuda.cpp calls, answered by the rules of contexts, current
// devices, last errors and captures as CUDA 12 and 13 document them. Two GPUs, on which nothing is computed. A program that
// links it links no libcudart.
#pragma once

#include <cuda_runtime_api.h>

#include <set>
#include <string>
#include <vector>

namespace leat::testing::simulated_cuda {

/// As a process that has called nothing of CUDA yet. Its streams and events are gone. Not while others call.
void reset();

/// Of a stream; the least is 0.
inline constexpr int greatest_priority = -5;

/// The devices that have a primary context: what nvidia-smi shows of a process.
[[nodiscard]] std::set<int> contexts();
/// How often the device's primary context has been retained and not released, the runtime's own left out.
[[nodiscard]] int retained(int device);
/// The devices whose contexts the calling thread has, the current one last; empty where it has none.
[[nodiscard]] std::vector<int> of_this_thread();

/// The next call of this name answers `code` and does nothing else.
void fail_next(std::string call, cudaError_t code);
/// As a GPU without pools of memory, and without writes of words by streams. Until reset().
void take_away_pools();
void take_away_writes();
/// As a driver that has no such function.
void hide(std::string symbol);
/// Of the calls since reset(): "cudaMalloc on 1, relaxed", in the order made.
[[nodiscard]] std::vector<std::string> log();

/// On the first GPU, as who made a context with cuCtxCreate() may have.
[[nodiscard]] cudaStream_t stream_of_another_context();
/// On the first GPU, of a green context that is current to some other thread, and can be to one only.
[[nodiscard]] cudaStream_t stream_of_a_green_context();

/// From here on `of` is being captured, and a blocking one makes the default stream of its device unusable.
void begin_capture(cudaStream_t of, bool blocking = false);
void end_capture(cudaStream_t of);

}  // namespace leat::testing::simulated_cuda
