#include "benchmarks/device_step.hpp"

#include <cuda_bf16.h>
#include <cuda_runtime.h>

#ifdef LEAT_HAVE_CUBLAS
#include <cublas_v2.h>
#endif

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>

namespace leat::benchmarks {
namespace {

void check(cudaError_t status, const char* call) {
  if (status == cudaSuccess) return;
  throw std::runtime_error(std::string(call) + ": " + cudaGetErrorString(status) + " (" + cudaGetErrorName(status) +
                           ")");
}

constexpr unsigned threads_per_block = 256;

__global__ void sum_words(const uint4* words, std::size_t count, unsigned long long* sum) {
  unsigned long long mine = 0;
  const std::size_t stride = std::size_t{gridDim.x} * blockDim.x;
  for (std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += stride) {
    const uint4 each = words[i];
    mine += std::uint64_t{each.x} + each.y + each.z + each.w;
  }
  for (unsigned offset = 16; offset > 0; offset /= 2) mine += __shfl_down_sync(0xFFFFFFFFU, mine, offset);
  if (threadIdx.x % 32 == 0) atomicAdd(sum, mine);
}

/// Numbers of either sign below 1 in magnitude: on zeros a GPU is faster than it would be.
template <class Element>
__global__ void fill(Element* to, std::size_t count, unsigned seed) {
  const std::size_t at = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (at >= count) return;
  unsigned bits = static_cast<unsigned>(at) * 2654435761U + seed;
  bits ^= bits >> 16;
  bits *= 0x85EBCA6BU;
  bits ^= bits >> 13;
  to[at] = static_cast<Element>(static_cast<float>(static_cast<int>(bits)) * 0x1p-31F);
}

#ifdef LEAT_HAVE_CUBLAS
using element = __nv_bfloat16;
constexpr unsigned side = 4096;
#else
using element = float;
constexpr unsigned side = 1024;
constexpr unsigned tile = 16;

/// c = a . b: one thread, one element.
__global__ void multiply(const float* a, const float* b, float* c) {
  __shared__ float of_a[tile][tile];
  __shared__ float of_b[tile][tile];
  const unsigned row = blockIdx.y * tile + threadIdx.y;
  const unsigned column = blockIdx.x * tile + threadIdx.x;
  float sum = 0;
  for (unsigned first = 0; first < side; first += tile) {
    of_a[threadIdx.y][threadIdx.x] = a[row * side + first + threadIdx.x];
    of_b[threadIdx.y][threadIdx.x] = b[(first + threadIdx.y) * side + column];
    __syncthreads();
    for (unsigned i = 0; i < tile; ++i) sum += of_a[threadIdx.y][i] * of_b[i][threadIdx.x];
    __syncthreads();
  }
  c[row * side + column] = sum;
}
#endif

}  // namespace

struct device_step::state {
  element* a = nullptr;
  element* b = nullptr;
  element* c = nullptr;
  unsigned long long* sum = nullptr;
#ifdef LEAT_HAVE_CUBLAS
  cublasHandle_t blas = nullptr;
#endif

  state() = default;
  state(const state&) = delete;
  state& operator=(const state&) = delete;
  ~state() {
#ifdef LEAT_HAVE_CUBLAS
    if (blas != nullptr) cublasDestroy(blas);
#endif
    for (void* each : {static_cast<void*>(a), static_cast<void*>(b), static_cast<void*>(c), static_cast<void*>(sum)}) {
      static_cast<void>(cudaFree(each));
    }
  }

  void multiply_once(cudaStream_t in) {
#ifdef LEAT_HAVE_CUBLAS
    const float one = 1;
    const float zero = 0;
    const cublasStatus_t status =
        cublasGemmEx(blas, CUBLAS_OP_N, CUBLAS_OP_N, side, side, side, &one, a, CUDA_R_16BF, side, b, CUDA_R_16BF, side,
                     &zero, c, CUDA_R_16BF, side, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT);
    if (status != CUBLAS_STATUS_SUCCESS) {
      throw std::runtime_error("cublasGemmEx: " + std::string(cublasGetStatusString(status)));
    }
    static_cast<void>(in);  // which the handle has been told
#else
    multiply<<<dim3(side / tile, side / tile), dim3(tile, tile), 0, in>>>(a, b, c);
    check(cudaGetLastError(), "the product's kernel");
#endif
  }
};

device_step::device_step() : state_(std::make_unique<state>()) {
  constexpr std::size_t elements = std::size_t{side} * side;
  for (element** each : {&state_->a, &state_->b, &state_->c}) {
    check(cudaMalloc(reinterpret_cast<void**>(each), elements * sizeof(element)), "cudaMalloc of a matrix");
    fill<<<static_cast<unsigned>(elements / threads_per_block), threads_per_block>>>(
        *each, elements, static_cast<unsigned>(each - &state_->a));
    check(cudaGetLastError(), "the kernel that fills a matrix");
  }
  check(cudaMalloc(reinterpret_cast<void**>(&state_->sum), sizeof *state_->sum), "cudaMalloc");
  check(cudaMemset(state_->sum, 0, sizeof *state_->sum), "cudaMemset");
#ifdef LEAT_HAVE_CUBLAS
  if (const cublasStatus_t status = cublasCreate(&state_->blas); status != CUBLAS_STATUS_SUCCESS) {
    throw std::runtime_error("cublasCreate: " + std::string(cublasGetStatusString(status)));
  }
#endif
  check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
}

device_step::~device_step() = default;

std::string device_step::name() const {
  const std::string number = std::to_string(side);
#ifdef LEAT_HAVE_CUBLAS
  return "cuBLAS, bf16, " + number + " x " + number + " x " + number;
#else
  return "a kernel of our own (built without cuBLAS), f32, " + number + " x " + number + " x " + number;
#endif
}

unsigned device_step::products_for(double duration_ms) {
  cudaStream_t in = nullptr;
  cudaEvent_t begin = nullptr;
  cudaEvent_t end = nullptr;
  check(cudaStreamCreateWithFlags(&in, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
  check(cudaEventCreate(&begin), "cudaEventCreate");
  check(cudaEventCreate(&end), "cudaEventCreate");
  float took_ms = 0;
  constexpr unsigned products = 50;
  // The first round is warm-up: cuBLAS loads its kernels, and the clocks rise.
  for (unsigned round = 0; round < 4; ++round) {
    check(cudaEventRecord(begin, in), "cudaEventRecord");
    launch(nullptr, 0, products, in);
    check(cudaEventRecord(end, in), "cudaEventRecord");
    check(cudaEventSynchronize(end), "cudaEventSynchronize of the products");
    check(cudaEventElapsedTime(&took_ms, begin, end), "cudaEventElapsedTime");
  }
  check(cudaEventDestroy(begin), "cudaEventDestroy");
  check(cudaEventDestroy(end), "cudaEventDestroy");
  check(cudaStreamDestroy(in), "cudaStreamDestroy");
  return std::max(1U, static_cast<unsigned>(std::lround(duration_ms * products / std::max(took_ms, 1e-3F))));
}

void device_step::launch(const void* data, std::size_t bytes, unsigned products, stream in) {
  if (bytes != 0) {
    constexpr unsigned blocks = 1024;
    sum_words<<<blocks, threads_per_block, 0, in.handle()>>>(static_cast<const uint4*>(data), bytes / sizeof(uint4),
                                                             state_->sum);
    check(cudaGetLastError(), "the kernel that reads a batch");
  }
#ifdef LEAT_HAVE_CUBLAS
  if (products != 0 && cublasSetStream(state_->blas, in.handle()) != CUBLAS_STATUS_SUCCESS) {
    throw std::runtime_error("cublasSetStream failed");
  }
#endif
  for (unsigned i = 0; i < products; ++i) state_->multiply_once(in.handle());
}

std::uint64_t device_step::take_checksum(stream in) {
  unsigned long long sum = 0;
  check(cudaMemcpyAsync(&sum, state_->sum, sizeof sum, cudaMemcpyDeviceToHost, in.handle()), "cudaMemcpyAsync");
  check(cudaMemsetAsync(state_->sum, 0, sizeof sum, in.handle()), "cudaMemsetAsync");
  check(cudaStreamSynchronize(in.handle()), "cudaStreamSynchronize");
  return sum;
}

}  // namespace leat::benchmarks
