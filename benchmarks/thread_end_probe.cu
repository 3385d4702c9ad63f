// Does a thread that used its own default stream end, where a dozen processes share a GPU and memory came of a pool? No leat in it.
//
// With NVIDIA's driver 580.159 it mostly does not: the end of the second such thread waits for a thread of the driver's that turns round in
// sched_yield() for ever. What it takes is memory of cudaMallocFromPoolAsync() and two threads, the first of which has no device of its own but
// has the context pushed for each call, as a library has to that leaves a thread its device. So it is CUDA's own, and here for its reporting:
//
//     nvcc -std=c++17 benchmarks/thread_end_probe.cu -o thread_end_probe -lcuda
//     for i in $(seq 12); do timeout 10 ./thread_end_probe & done; wait        # those that end say so; --without-pool: all do
//
// Where there is no GPU it says so and ends with 0.
#include <cuda.h>
#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

namespace {

constexpr std::size_t bytes = std::size_t{4} << 20;

void check(cudaError_t status, const char* call) {
  if (status == cudaSuccess) return;
  std::fprintf(stderr, "thread_end_probe: %s: %s\n", call, cudaGetErrorString(status));
  std::exit(1);
}

__global__ void touch(float* values, int count) {
  const int at = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (at < count) values[at] += 1;
}

}  // namespace

int main(int count, char** words) {
  const bool of_pool = !(count > 1 && std::strcmp(words[1], "--without-pool") == 0);
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
    std::puts("thread_end_probe: skipped, no GPU");
    return 0;
  }
  check(cudaSetDevice(0), "cudaSetDevice");
  check(cudaFree(nullptr), "cudaFree");
  CUcontext context = nullptr;
  cuCtxGetCurrent(&context);
  cudaStream_t side = nullptr;
  check(cudaStreamCreateWithFlags(&side, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
  cudaEvent_t copied = nullptr;
  cudaEvent_t consumed = nullptr;
  for (cudaEvent_t* const event : {&copied, &consumed}) {
    check(cudaEventCreateWithFlags(event, cudaEventDisableTiming | cudaEventBlockingSync), "cudaEventCreateWithFlags");
  }
  void* host = nullptr;
  check(cudaHostAlloc(&host, bytes, cudaHostAllocPortable), "cudaHostAlloc");
  float* values = nullptr;
  if (of_pool) {
    cudaMemPoolProps properties{};
    properties.allocType = cudaMemAllocationTypePinned;
    properties.location.type = cudaMemLocationTypeDevice;
    cudaMemPool_t pool = nullptr;
    check(cudaMemPoolCreate(&pool, &properties), "cudaMemPoolCreate");
    check(cudaMallocFromPoolAsync(reinterpret_cast<void**>(&values), bytes, pool, side), "cudaMallocFromPoolAsync");
  } else {
    check(cudaMalloc(&values, bytes), "cudaMalloc");
  }
  for (const bool has_device : {false, true}) {
    check(cudaMemcpyAsync(values, host, bytes, cudaMemcpyHostToDevice, side), "cudaMemcpyAsync");
    touch<<<1024, 256, 0, side>>>(values, 1 << 18);
    check(cudaEventRecord(copied, side), "cudaEventRecord");
    std::thread([&] {
      if (has_device) check(cudaSetDevice(0), "cudaSetDevice");
      const auto in_context = [&](auto&& call) {
        CUcontext before = nullptr;
        if (!has_device) cuCtxPushCurrent(context);
        cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
        check(cudaThreadExchangeStreamCaptureMode(&mode), "cudaThreadExchangeStreamCaptureMode");
        call();
        check(cudaThreadExchangeStreamCaptureMode(&mode), "cudaThreadExchangeStreamCaptureMode");
        if (!has_device) cuCtxPopCurrent(&before);
      };
      in_context([&] {
        cudaStreamCaptureStatus state = cudaStreamCaptureStatusNone;
        check(cudaStreamIsCapturing(cudaStreamPerThread, &state), "cudaStreamIsCapturing");
        CUcontext its = nullptr;
        cuStreamGetCtx(cudaStreamPerThread, &its);
      });
      in_context([&] { check(cudaStreamWaitEvent(cudaStreamPerThread, copied, 0), "cudaStreamWaitEvent"); });
      in_context([&] { check(cudaEventRecord(consumed, cudaStreamPerThread), "cudaEventRecord"); });
    }).join();
  }
  std::puts("ended");
  std::fflush(stdout);
  std::_Exit(0);
}
