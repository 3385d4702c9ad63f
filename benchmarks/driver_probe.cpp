// What do CUDA's calls of the loop cost on another thread while a trainer keeps the driver busy?
//
// A trainer's thread runs in turn: nothing; a stream that it fills faster than the GPU empties it; cudaMalloc and cudaFree; the making
// of a graph. Meanwhile another thread times, call by call, what leat asks of CUDA for a batch: cudaEventQuery, an enqueue (a copy of 4 KiB
// and a record), cuStreamWriteValue64, and beside them the word of memory that it reads instead of a query. If a call takes long here, it
// waits for the driver's locks, and must not be made on an I/O thread.
//
//     driver_probe [seconds for each line, else 1] [--toy]
//
// CUDA_DEVICE_MAX_CONNECTIONS says how many hardware queues there are: scripts/gpu runs it with 1 and with 8. Without a GPU it says so.
#include "base/clock.hpp"
#include "benchmarks/arguments.hpp"
#include "stages/device/driver_cuda.hpp"

#include <leat/error.hpp>

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace leat::benchmarks {
namespace {

constexpr std::size_t small_bytes = 4096;
constexpr std::size_t large_bytes = std::size_t{64} << 20;
constexpr int nodes = 200;  // of a graph

void check(cudaError_t status, const char* call) {
  if (status != cudaSuccess) throw error(errc::device, str_cat(call, ": ", cudaGetErrorString(status)));
}

/// Microseconds, one for each call.
class times {
 public:
  void add(std::uint64_t began_ns) { us_.push_back(static_cast<double>(now_ns() - began_ns) * 1e-3); }
  [[nodiscard]] double at(double share) {
    if (us_.empty()) return 0;
    const auto where = us_.begin() + static_cast<std::ptrdiff_t>(share * static_cast<double>(us_.size() - 1));
    std::nth_element(us_.begin(), where, us_.end());
    return *where;
  }

 private:
  std::vector<double> us_;
};

/// A trainer's thread, which does the same again and again until told to end.
struct trainer {
  const char* does;
  std::function<void(const std::atomic<bool>& stop)> run;
};

struct device_memory {
  explicit device_memory(std::size_t bytes) { check(cudaMalloc(&at, bytes), "cudaMalloc"); }
  device_memory(const device_memory&) = delete;
  device_memory& operator=(const device_memory&) = delete;
  ~device_memory() { static_cast<void>(cudaFree(at)); }
  void* at = nullptr;
};

void fill_stream(const std::atomic<bool>& stop) {
  const device_memory memory(large_bytes);
  cudaStream_t stream = nullptr;
  check(cudaStreamCreate(&stream), "cudaStreamCreate");
  while (!stop) check(cudaMemsetAsync(memory.at, 1, large_bytes, stream), "cudaMemsetAsync");
  check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
  check(cudaStreamDestroy(stream), "cudaStreamDestroy");
}

void allocate(const std::atomic<bool>& stop) {
  while (!stop) const device_memory memory(large_bytes);
}

void make_graphs(const std::atomic<bool>& stop) {
  const device_memory memory(small_bytes);
  cudaStream_t stream = nullptr;
  check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
  while (!stop) {
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t made = nullptr;
    check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
    for (int i = 0; i < nodes; ++i) check(cudaMemsetAsync(memory.at, i, small_bytes, stream), "cudaMemsetAsync");
    check(cudaStreamEndCapture(stream, &graph), "cudaStreamEndCapture");
    check(cudaGraphInstantiate(&made, graph, 0), "cudaGraphInstantiate");
    check(cudaGraphLaunch(made, stream), "cudaGraphLaunch");
    check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
    check(cudaGraphExecDestroy(made), "cudaGraphExecDestroy");
    check(cudaGraphDestroy(graph), "cudaGraphDestroy");
  }
  check(cudaStreamDestroy(stream), "cudaStreamDestroy");
}

/// What leat's threads ask for, on this thread.
class prober {
 public:
  prober() {
    int least = 0;
    int greatest = 0;
    check(cudaDeviceGetStreamPriorityRange(&least, &greatest), "cudaDeviceGetStreamPriorityRange");
    check(cudaStreamCreateWithPriority(&side_, cudaStreamNonBlocking, greatest), "cudaStreamCreateWithPriority");
    for (cudaEvent_t* const each : {&fired_, &event_}) {
      check(cudaEventCreateWithFlags(each, cudaEventDisableTiming | cudaEventBlockingSync), "cudaEventCreateWithFlags");
    }
    check(cudaHostAlloc(&host_, small_bytes, cudaHostAllocPortable | cudaHostAllocMapped), "cudaHostAlloc");
    check(cudaEventRecord(fired_, side_), "cudaEventRecord");
    check(cudaStreamSynchronize(side_), "cudaStreamSynchronize");
    write_ = reinterpret_cast<decltype(&cuStreamWriteValue64)>(stages::find_in_driver("cuStreamWriteValue64_v2"));
  }
  prober(const prober&) = delete;
  prober& operator=(const prober&) = delete;
  ~prober() {
    static_cast<void>(cudaStreamSynchronize(side_));
    static_cast<void>(cudaFreeHost(host_));
    for (const cudaEvent_t each : {fired_, event_}) static_cast<void>(cudaEventDestroy(each));
    static_cast<void>(cudaStreamDestroy(side_));
  }

  /// For so long beside what the trainer does: a line of the table.
  void measure(const trainer& beside, double seconds) {
    std::atomic<bool> stop{false};
    std::string failure;
    std::thread thread([&] {
      try {
        beside.run(stop);
      } catch (const std::exception& problem) {
        failure = problem.what();
      }
    });
    times query;
    times enqueue;
    times write;
    times look;
    const std::uint64_t until_ns = now_ns() + static_cast<std::uint64_t>(seconds * 1e9);
    while (now_ns() < until_ns) probe(query, enqueue, write, look);
    stop = true;
    thread.join();
    if (!failure.empty()) throw error(errc::device, str_cat("a trainer that ", beside.does, ": ", failure));
    std::printf("| %s |", beside.does);
    for (times* const each : {&query, &enqueue, &write, &look}) {
      std::printf(" %.1f / %.1f / %.0f |", each->at(0.5), each->at(0.99), each->at(1));
    }
    std::printf("\n");
    std::fflush(stdout);
  }

 private:
  void probe(times& query, times& enqueue, times& write, times& look) {
    std::uint64_t began_ns = now_ns();
    check(cudaEventQuery(fired_), "cudaEventQuery");
    query.add(began_ns);
    began_ns = now_ns();
    check(cudaMemcpyAsync(memory_.at, host_, small_bytes / 2, cudaMemcpyHostToDevice, side_), "cudaMemcpyAsync");
    check(cudaEventRecord(event_, side_), "cudaEventRecord");
    enqueue.add(began_ns);
    auto* const word = reinterpret_cast<std::atomic<std::uint64_t>*>(static_cast<std::byte*>(host_) + small_bytes / 2);
    if (write_ != nullptr) {
      began_ns = now_ns();
      check(static_cast<cudaError_t>(write_(side_, reinterpret_cast<CUdeviceptr>(word), ++written_, 0)),
            "cuStreamWriteValue64");
      write.add(began_ns);
    }
    began_ns = now_ns();
    static_cast<void>(word->load(std::memory_order_acquire));
    look.add(began_ns);
    std::this_thread::sleep_for(std::chrono::microseconds(200));  // as often as batches come at their fastest
  }

  const device_memory memory_{small_bytes};
  cudaStream_t side_ = nullptr;
  cudaEvent_t fired_ = nullptr;
  cudaEvent_t event_ = nullptr;
  void* host_ = nullptr;
  decltype(&cuStreamWriteValue64) write_ = nullptr;
  std::uint64_t written_ = 0;
};

void probe_driver(double seconds) {
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
    std::printf("driver_probe: skipped, no GPU to be had\n");
    return;
  }
  const char* const connections = std::getenv("CUDA_DEVICE_MAX_CONNECTIONS");
  std::printf("CUDA_DEVICE_MAX_CONNECTIONS = %s; us, median / 99 %% / most\n\n",
              connections != nullptr ? connections : "not set");
  std::printf("| a trainer that | cudaEventQuery | copy and record | cuStreamWriteValue64 | a look at the word |\n");
  std::printf("| --- | --- | --- | --- | --- |\n");
  prober probes;
  const auto idle = [](const std::atomic<bool>& stop) {
    while (!stop) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  };
  const std::array<trainer, 4> trainers{{{"sleeps", idle},
                                         {"fills its stream", fill_stream},
                                         {"allocates and frees 64 MiB", allocate},
                                         {"makes graphs of 200 nodes", make_graphs}}};
  for (const trainer& each : trainers) probes.measure(each, seconds);
}

}  // namespace
}  // namespace leat::benchmarks

int main(int argc, char** argv) {
  return leat::benchmarks::run_benchmark("driver_probe", [&] {
    const std::string_view given = argc > 1 ? argv[1] : "1";
    leat::benchmarks::probe_driver(given == "--toy" ? 0.1 : leat::benchmarks::number<double>("seconds", given));
  });
}
