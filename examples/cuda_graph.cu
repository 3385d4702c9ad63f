// A step as a CUDA graph that consumes leat's batches. What makes it possible: a loader takes its blocks of device memory once,
// loader_options::device_batches of them, and dense tensors lie at the same place in every block. So a step sees that many
// addresses and no more, and one graph is captured for each, times the numbers of rows that come (the last batch of an epoch
// unless drop_last; batches that corrupt_policy::skip has shortened).
//
// What cannot be captured, and stays between the launches:
//   next()        is the host's
//   wait_on()     waits for an event that was recorded outside of the capture, which CUDA refuses there
//                 (cudaErrorStreamCaptureIsolation). Called before the launch it orders the whole graph
//   the batch's end, or release_on()   records an event, which inside a capture would be a node of the graph and tell the
//                 loader nothing. After the launch it is behind the whole graph
//   bytes, text   ragged tensors, and whatever lies behind them in the block, begin and end elsewhere in each batch
//
// Captures are cudaStreamCaptureModeThreadLocal. In the global mode, CUDA refuses calls like cudaHostRegister and cudaMalloc to
// all other threads of the trainer while one captures. leat's own calls are made in the relaxed mode, and go through.
//
// The other way is one graph whose kernel nodes get each batch's addresses (cudaGraphExecKernelNodeSetParams) before each launch:
// less memory for graphs, and a call for every node that reads the batch in each step. For three blocks this way is simpler.
#include "cuda_graph.hpp"

#include <cuda_runtime.h>

#include <map>
#include <stdexcept>
#include <string>
#include <utility>

namespace {

void check(cudaError_t status, const char* call) {
  if (status == cudaSuccess) return;
  throw std::runtime_error(std::string(call) + ": " + cudaGetErrorString(status) + " (" + cudaGetErrorName(status) +
                           ")");
}

constexpr unsigned threads = 256;
constexpr unsigned blocks = 256;

/// [0..2] sums, [3..5] sums of squares
using total = unsigned long long;

__global__ void clear(total* sums) { sums[threadIdx.x] = 0; }

__global__ void add_up(const std::uint8_t* pixels, std::size_t count, total* sums) {
  total mine[6] = {};
  const std::size_t stride = std::size_t{gridDim.x} * blockDim.x;
  for (std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += stride) {
    for (unsigned c = 0; c < 3; ++c) {
      const total value = pixels[3 * i + c];
      mine[c] += value;
      mine[3 + c] += value * value;
    }
  }
  for (unsigned k = 0; k < 6; ++k) {
    for (unsigned offset = 16; offset > 0; offset /= 2) mine[k] += __shfl_down_sync(0xFFFFFFFFU, mine[k], offset);
    if (threadIdx.x % 32 == 0) atomicAdd(sums + k, mine[k]);
  }
}

__global__ void add_to(const total* batch, total* all) { all[threadIdx.x] += batch[threadIdx.x]; }

std::size_t pixels_of(const leat::tensor& pixels) { return pixels.bytes() / 3; }

}  // namespace

struct channel_sums::state {
  leat::device where;
  cudaStream_t in = nullptr;
  total* of_batch = nullptr;
  total* of_all = nullptr;
  std::map<std::pair<const void*, std::size_t>, cudaGraphExec_t> captured;  // by address and number of pixels
  sums on_host;

  [[nodiscard]] bool on_gpu() const { return where.type == leat::device::kind::cuda; }

  // Three kernels, so that there is something to gain from one launch.
  void put(const leat::tensor& pixels) const {
    clear<<<1, 6, 0, in>>>(of_batch);
    add_up<<<blocks, threads, 0, in>>>(static_cast<const std::uint8_t*>(pixels.data), pixels_of(pixels), of_batch);
    add_to<<<1, 6, 0, in>>>(of_batch, of_all);
    check(cudaGetLastError(), "a kernel of the step");
  }

  [[nodiscard]] cudaGraphExec_t capture(const leat::tensor& pixels) const {
    check(cudaStreamBeginCapture(in, cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
    cudaGraph_t graph = nullptr;
    try {
      put(pixels);
    } catch (...) {
      // A stream that captures on can do nothing else; what it has captured is of no use.
      if (cudaStreamEndCapture(in, &graph) == cudaSuccess) static_cast<void>(cudaGraphDestroy(graph));
      throw;
    }
    check(cudaStreamEndCapture(in, &graph), "cudaStreamEndCapture");
    cudaGraphExec_t made = nullptr;
    const cudaError_t status = cudaGraphInstantiate(&made, graph, 0);
    static_cast<void>(cudaGraphDestroy(graph));
    check(status, "cudaGraphInstantiate");
    return made;
  }

  ~state() {
    if (in != nullptr) static_cast<void>(cudaStreamSynchronize(in));
    for (const auto& [key, graph] : captured) static_cast<void>(cudaGraphExecDestroy(graph));
    static_cast<void>(cudaFree(of_batch));
    static_cast<void>(cudaFree(of_all));
    if (in != nullptr) static_cast<void>(cudaStreamDestroy(in));
  }
};

channel_sums::channel_sums(leat::device where) : state_(std::make_unique<state>()) {
  state_->where = where;
  if (!state_->on_gpu()) return;
  check(cudaSetDevice(where.index), "cudaSetDevice");
  check(cudaStreamCreateWithFlags(&state_->in, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
  check(cudaMalloc(reinterpret_cast<void**>(&state_->of_batch), 6 * sizeof(total)), "cudaMalloc");
  check(cudaMalloc(reinterpret_cast<void**>(&state_->of_all), 6 * sizeof(total)), "cudaMalloc");
  // Into our stream, which does not wait for the default one.
  check(cudaMemsetAsync(state_->of_all, 0, 6 * sizeof(total), state_->in), "cudaMemsetAsync");
}

channel_sums::~channel_sums() = default;

leat::stream channel_sums::stream() const { return state_->in; }

void channel_sums::step(const leat::tensor& pixels) {
  state& here = *state_;
  if (!here.on_gpu()) {
    const auto* const bytes = static_cast<const std::uint8_t*>(pixels.data);
    for (std::size_t i = 0; i < pixels.bytes(); ++i) {
      here.on_host.values[i % 3] += bytes[i];
      here.on_host.squares[i % 3] += std::uint64_t{bytes[i]} * bytes[i];
    }
    return;
  }
  const std::pair<const void*, std::size_t> key{pixels.data, pixels.bytes()};
  auto graph = here.captured.find(key);
  if (graph == here.captured.end()) graph = here.captured.emplace(key, here.capture(pixels)).first;
  check(cudaGraphLaunch(graph->second, here.in), "cudaGraphLaunch");
}

channel_sums::sums channel_sums::read() const {
  if (!state_->on_gpu()) return state_->on_host;
  total found[6] = {};
  check(cudaMemcpyAsync(found, state_->of_all, sizeof found, cudaMemcpyDeviceToHost, state_->in), "cudaMemcpyAsync");
  check(cudaStreamSynchronize(state_->in), "cudaStreamSynchronize");
  return {{found[0], found[1], found[2]}, {found[3], found[4], found[5]}};
}

std::size_t channel_sums::graphs() const { return state_->captured.size(); }
