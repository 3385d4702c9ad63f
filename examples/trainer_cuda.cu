// The model of trainer_cuda: every part of a step is one small function of an element's number, which a kernel calls for each
// thread and the CPU for each turn of a loop. Plain, not fast. No coroutines in here: those are in trainer_cuda.cpp, since
// nvcc's host compiler may be one that does not build them right (GCC 12).
#include "trainer_cuda.hpp"

#include <cuda_runtime.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

using clock_type = std::chrono::steady_clock;

void check(cudaError_t status, const char* call) {
  if (status == cudaSuccess) return;
  throw std::runtime_error(std::string(call) + ": " + cudaGetErrorString(status) + " (" + cudaGetErrorName(status) +
                           ")");
}

// --- a step, element by element ------------------------------------------------------------------------------------------

/// What a step works on: all of it on the device, or all of it on the host.
struct numbers {
  const float* pixels;         // [rows, inputs]
  const std::int64_t* labels;  // [rows]
  float* weights1;             // [inputs, hidden]
  float* bias1;                // [hidden]
  float* weights2;             // [hidden, classes]
  float* bias2;                // [classes]
  float* hidden_values;        // [rows, hidden]
  float* hidden_steps;         // [rows, hidden]
  float* class_steps;          // [rows, classes]
  float* losses;               // [rows], in the epoch's
  std::uint8_t* right;         // [rows], likewise
  std::size_t rows, inputs, hidden, classes;
  float rate;
};

struct first_layer {
  __host__ __device__ static void at(const numbers& of, std::size_t i) {
    const std::size_t row = i / of.hidden;
    const std::size_t h = i % of.hidden;
    float sum = of.bias1[h];
    for (std::size_t x = 0; x < of.inputs; ++x) sum += of.pixels[row * of.inputs + x] * of.weights1[x * of.hidden + h];
    of.hidden_values[i] = sum > 0 ? sum : 0;
  }
};

// The second layer, its softmax and its loss; and what the loss says of each logit.
struct classes_of_row {
  __host__ __device__ static void at(const numbers& of, std::size_t row) {
    float* const logits = of.class_steps + row * of.classes;
    const auto label = static_cast<std::size_t>(of.labels[row]);
    std::size_t best = 0;
    for (std::size_t c = 0; c < of.classes; ++c) {
      float sum = of.bias2[c];
      for (std::size_t h = 0; h < of.hidden; ++h) {
        sum += of.hidden_values[row * of.hidden + h] * of.weights2[h * of.classes + c];
      }
      logits[c] = sum;
      if (sum > logits[best]) best = c;
    }
    const float highest = logits[best];
    float sum = 0;
    for (std::size_t c = 0; c < of.classes; ++c) sum += logits[c] = expf(logits[c] - highest);
    for (std::size_t c = 0; c < of.classes; ++c) logits[c] /= sum;
    of.losses[row] = -logf(fmaxf(logits[label], 1e-12F));
    of.right[row] = best == label ? 1 : 0;
    logits[label] -= 1;
    for (std::size_t c = 0; c < of.classes; ++c) logits[c] /= static_cast<float>(of.rows);
  }
};

struct back_to_hidden {
  __host__ __device__ static void at(const numbers& of, std::size_t i) {
    const std::size_t row = i / of.hidden;
    const std::size_t h = i % of.hidden;
    float sum = 0;
    for (std::size_t c = 0; c < of.classes; ++c) {
      sum += of.class_steps[row * of.classes + c] * of.weights2[h * of.classes + c];
    }
    of.hidden_steps[i] = of.hidden_values[i] > 0 ? sum : 0;
  }
};

/// One weight of a layer, or, behind the last of them, one bias.
__host__ __device__ void descend(const numbers& of, std::size_t i, const float* values, std::size_t value_count,
                                 const float* steps, std::size_t step_count, float* weights, float* bias) {
  const std::size_t from = i / step_count;
  const std::size_t to = i % step_count;
  float sum = 0;
  for (std::size_t row = 0; row < of.rows; ++row) {
    const float step = steps[row * step_count + to];
    sum += from < value_count ? values[row * value_count + from] * step : step;
  }
  float& changed = from < value_count ? weights[i] : bias[to];
  changed -= of.rate * sum;
}

struct descend_second {
  __host__ __device__ static void at(const numbers& of, std::size_t i) {
    descend(of, i, of.hidden_values, of.hidden, of.class_steps, of.classes, of.weights2, of.bias2);
  }
};
struct descend_first {
  __host__ __device__ static void at(const numbers& of, std::size_t i) {
    descend(of, i, of.pixels, of.inputs, of.hidden_steps, of.hidden, of.weights1, of.bias1);
  }
};

template <class Part>
__global__ void run_part(numbers of, std::size_t count) {
  const std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i < count) Part::at(of, i);
}

}  // namespace

struct two_layers::state {
  leat::device where;
  shape of;
  cudaStream_t in = nullptr;
  std::vector<void*> memory;
  numbers all{};
  std::size_t epoch_rows = 0;
  std::size_t steps = 0;
  // Before and behind each wait for data, and behind the epoch's last step. On the CPU the clock's own.
  std::vector<cudaEvent_t> events;
  std::vector<clock_type::time_point> times;

  [[nodiscard]] bool on_gpu() const { return where.type == leat::device::kind::cuda; }

  template <class Element>
  Element* take(std::size_t count) {
    void* taken = nullptr;
    if (on_gpu()) {
      check(cudaMalloc(&taken, count * sizeof(Element)), "cudaMalloc");
      memory.push_back(taken);
      // Into our stream, which does not wait for the default one.
      check(cudaMemsetAsync(taken, 0, count * sizeof(Element), in), "cudaMemsetAsync");
    } else {
      taken = ::operator new(count * sizeof(Element));
      memory.push_back(taken);
      std::fill_n(static_cast<Element*>(taken), count, Element{});
    }
    return static_cast<Element*>(taken);
  }

  void fill(float* to, std::size_t count, std::size_t inputs, std::uint32_t seed) const {
    std::vector<float> values(count);
    const float scale = std::sqrt(3.0F / static_cast<float>(inputs));
    for (float& each : values) {
      seed = seed * 1664525U + 1013904223U;
      each = scale * (static_cast<float>(seed >> 8) * 0x1p-23F - 1);
    }
    if (on_gpu()) {
      check(cudaMemcpyAsync(to, values.data(), count * sizeof(float), cudaMemcpyHostToDevice, in),
            "cudaMemcpyAsync of the weights");
      check(cudaStreamSynchronize(in), "cudaStreamSynchronize of the weights");  // `values` goes.
    } else {
      std::copy(values.begin(), values.end(), to);
    }
  }

  template <class Part>
  void run(std::size_t count) const {
    if (count == 0) return;
    if (on_gpu()) {
      constexpr unsigned threads = 128;
      run_part<Part><<<static_cast<unsigned>((count + threads - 1) / threads), threads, 0, in>>>(all, count);
      check(cudaGetLastError(), "a kernel of the step");
    } else {
      for (std::size_t i = 0; i < count; ++i) Part::at(all, i);
    }
  }

  void mark(std::size_t which) {
    if (!on_gpu()) {
      times.resize(std::max(times.size(), which + 1));
      times[which] = clock_type::now();
      return;
    }
    while (events.size() <= which) {
      cudaEvent_t made = nullptr;
      check(cudaEventCreate(&made), "cudaEventCreate");
      events.push_back(made);
    }
    check(cudaEventRecord(events[which], in), "cudaEventRecord");
  }
  [[nodiscard]] double seconds(std::size_t from, std::size_t to) const {
    if (!on_gpu()) return std::chrono::duration<double>(times[to] - times[from]).count();
    float ms = 0;
    check(cudaEventElapsedTime(&ms, events[from], events[to]), "cudaEventElapsedTime");
    return 1e-3 * ms;
  }

  template <class Element>
  [[nodiscard]] std::vector<Element> fetch(const Element* from, std::size_t count) const {
    std::vector<Element> values(count);
    if (!on_gpu()) {
      std::copy_n(from, count, values.begin());
    } else {
      check(cudaMemcpyAsync(values.data(), from, count * sizeof(Element), cudaMemcpyDeviceToHost, in),
            "cudaMemcpyAsync");
      check(cudaStreamSynchronize(in), "cudaStreamSynchronize of the epoch");
    }
    return values;
  }

  ~state() {
    // Steps may be under way where an epoch has not come to its end.
    if (in != nullptr) static_cast<void>(cudaStreamSynchronize(in));
    for (const cudaEvent_t each : events) static_cast<void>(cudaEventDestroy(each));
    for (void* const each : memory) {
      if (on_gpu()) {
        static_cast<void>(cudaFree(each));
      } else {
        ::operator delete(each);
      }
    }
    if (in != nullptr) static_cast<void>(cudaStreamDestroy(in));
  }
};

two_layers::two_layers(leat::device where, const shape& of) : state_(std::make_unique<state>()) {
  state& made = *state_;
  made.where = where;
  made.of = of;
  if (made.on_gpu()) {
    check(cudaSetDevice(where.index), "cudaSetDevice");
    check(cudaStreamCreateWithFlags(&made.in, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
  }
  made.all.inputs = of.inputs;
  made.all.hidden = of.hidden;
  made.all.classes = of.classes;
  made.all.weights1 = made.take<float>(of.inputs * of.hidden);
  made.all.bias1 = made.take<float>(of.hidden);
  made.all.weights2 = made.take<float>(of.hidden * of.classes);
  made.all.bias2 = made.take<float>(of.classes);
  made.all.hidden_values = made.take<float>(of.rows_max * of.hidden);
  made.all.hidden_steps = made.take<float>(of.rows_max * of.hidden);
  made.all.class_steps = made.take<float>(of.rows_max * of.classes);
  made.all.losses = made.take<float>(of.epoch_rows_max);
  made.all.right = made.take<std::uint8_t>(of.epoch_rows_max);
  made.fill(made.all.weights1, of.inputs * of.hidden, of.inputs, 1);
  made.fill(made.all.weights2, of.hidden * of.classes, of.hidden, 2);
}

two_layers::~two_layers() = default;

leat::stream two_layers::stream() const { return state_->in; }

void two_layers::wait_begins() { state_->mark(2 * state_->steps); }

void two_layers::step(const leat::tensor& pixels, const leat::tensor& labels, float rate) {
  state& here = *state_;
  const auto rows = static_cast<std::size_t>(labels.shape[0]);
  if (rows > here.of.rows_max || here.epoch_rows + rows > here.of.epoch_rows_max) {
    throw std::runtime_error("a batch of " + std::to_string(rows) + " rows is more than the model was made for");
  }
  here.mark(2 * here.steps + 1);
  numbers& all = here.all;
  all.pixels = static_cast<const float*>(pixels.data);
  all.labels = static_cast<const std::int64_t*>(labels.data);
  all.rows = rows;
  all.rate = rate;
  here.run<first_layer>(rows * all.hidden);
  here.run<classes_of_row>(rows);
  here.run<back_to_hidden>(rows * all.hidden);
  here.run<descend_second>((all.hidden + 1) * all.classes);
  here.run<descend_first>((all.inputs + 1) * all.hidden);
  all.losses += rows;
  all.right += rows;
  here.epoch_rows += rows;
  ++here.steps;
}

two_layers::epoch_result two_layers::end_epoch() {
  state& here = *state_;
  here.mark(2 * here.steps);
  epoch_result sum;
  sum.rows = here.epoch_rows;
  here.all.losses -= here.epoch_rows;
  here.all.right -= here.epoch_rows;
  for (const float loss : here.fetch(here.all.losses, here.epoch_rows)) sum.loss += loss;
  for (const std::uint8_t right : here.fetch(here.all.right, here.epoch_rows)) sum.right += right;
  if (sum.rows != 0) sum.loss /= static_cast<double>(sum.rows);
  sum.took_s = here.seconds(0, 2 * here.steps);
  for (std::size_t i = 0; i < here.steps; ++i) sum.stalled_s += here.seconds(2 * i, 2 * i + 1);
  here.epoch_rows = 0;
  here.steps = 0;
  return sum;
}
