// What the simulated device promises, on a real one. Needs a GPU; skips where there is none and says why.
#include "io/arena/arena.hpp"
#include "io/arena/lease_pool.hpp"
#include "stages/device/decode_photos.hpp"
#include "stages/device/device_transfer.hpp"
#include "stages/device/driver_cuda.hpp"
#include "stages/device/finish_pictures.hpp"
#include "stages/device/gather_rows.hpp"
#include "stages/device/nvjpeg.hpp"
#include "stages/device/open_device.hpp"
#include "stages/device/photo_operation.hpp"
#include "stages/device/photo_plan.hpp"
#include "stages/device/picture_operation.hpp"
#include "stages/device/pinned_transfer.hpp"
#include "stages/device/write_program.hpp"
#include "stages/pixels/picture_decoder.hpp"
#include "stages/pixels/recipe.hpp"
#include "stages/pixels/store.hpp"
#include "tests/device/cuda_trap.hpp"
#include "tests/device/watched_calls.hpp"
#include "tests/loader/running.hpp"
#include "tests/support/batch_view.hpp"
#include "tests/support/failures.hpp"
#include "tests/support/fake_dataset.hpp"
#include "tests/support/make_picture.hpp"
#include "tests/support/seeded_random.hpp"
#include "tests/support/watchdog.hpp"

#include <leat/dlpack.h>
#include <leat/loading.hpp>
#include <leat/open.hpp>
#include <leat/photo_pack.hpp>

#include <boost/asio/use_future.hpp>
#include <gtest/gtest.h>

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <future>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace leat {
namespace {

using testing::batch_view;
using testing::fake_dataset;
using testing::loader;
using testing::loader_options;
using testing::watchdog;

#define EXPECT_CUDA(call) EXPECT_STREQ(cudaGetErrorName(call), "cudaSuccess")

constexpr std::size_t sample_count = 45;

const std::vector<testing::fake_sample>& samples() {
  static const std::vector<testing::fake_sample> made = testing::make_samples(1, sample_count);
  return made;
}

/// The calling thread's context as CUDA's driver has it; null where it has none.
CUcontext current_context() {
  static const auto get = reinterpret_cast<decltype(&cuCtxGetCurrent)>(stages::find_in_driver("cuCtxGetCurrent"));
  CUcontext current = nullptr;
  EXPECT_EQ(get(&current), CUDA_SUCCESS);
  return current;
}

/// A trainer's stream, whose step copies the batch back, so that its digest can be taken.
class consumer_stream {
 public:
  /// `late`: each step begins after a while, as if a long kernel ran before it.
  /// `which`: one that is there, as the default streams are; else a new one.
  explicit consumer_stream(bool late, std::optional<cudaStream_t> which = {})
      : late_(late), owned_(!which), handle_(which.value_or(nullptr)) {
    if (owned_) EXPECT_CUDA(cudaStreamCreateWithFlags(&handle_, cudaStreamNonBlocking));
    // Before the loop: taking pinned memory waits for the device, and would hide what this is to show.
    EXPECT_CUDA(cudaMallocHost(&copies_, steps_max * step_bytes_max));
  }
  consumer_stream(const consumer_stream&) = delete;
  consumer_stream& operator=(const consumer_stream&) = delete;
  ~consumer_stream() {
    EXPECT_CUDA(cudaStreamSynchronize(handle_));
    EXPECT_CUDA(cudaFreeHost(copies_));
    if (owned_) EXPECT_CUDA(cudaStreamDestroy(handle_));
  }

  [[nodiscard]] stream get() const noexcept { return handle_; }

  void read(const batch& from) {
    if (late_) {
      EXPECT_CUDA(cudaLaunchHostFunc(
          handle_, [](void*) { std::this_thread::sleep_for(std::chrono::milliseconds(2)); }, nullptr));
    }
    step added{.view = batch_view(from), .copy = nullptr};
    const auto bytes = added.view.bytes();
    ASSERT_LE(bytes.size(), step_bytes_max);
    ASSERT_LT(steps_.size(), steps_max);
    added.copy = static_cast<std::byte*>(copies_) + steps_.size() * step_bytes_max;
    for (const std::span<const std::byte> each : added.view.tensors()) {
      std::byte* const to = added.copy + (each.data() - bytes.data());
      EXPECT_CUDA(cudaMemcpyAsync(to, each.data(), each.size(), cudaMemcpyDeviceToHost, handle_));
    }
    steps_.push_back(std::move(added));
  }

  [[nodiscard]] std::vector<std::string> seen() const {
    EXPECT_CUDA(cudaStreamSynchronize(handle_));
    std::vector<std::string> all;
    for (const step& each : steps_) all.push_back(each.view.in(each.copy).content().hex());
    return all;
  }

 private:
  struct step {
    batch_view view;
    std::byte* copy;
  };
  static constexpr std::size_t steps_max = 16;
  static constexpr std::size_t step_bytes_max = std::size_t{1} << 20;
  const bool late_;
  const bool owned_;
  cudaStream_t handle_;
  void* copies_ = nullptr;
  std::deque<step> steps_;
};

/// Holds up what comes after it in a stream, until it is opened or ends.
class gate {
 public:
  explicit gate(stream in) {
    // Of CUDA's thread from here on.
    auto* const waits = new std::shared_future<void>(opens_.get_future());
    EXPECT_CUDA(cudaLaunchHostFunc(
        in.handle(),
        [](void* of) { std::unique_ptr<std::shared_future<void>>(static_cast<std::shared_future<void>*>(of))->wait(); },
        waits));
  }
  gate(const gate&) = delete;
  gate& operator=(const gate&) = delete;
  ~gate() { open(); }

  void open() {
    if (!std::exchange(open_, true)) opens_.set_value();
  }

 private:
  std::promise<void> opens_;
  bool open_ = false;
};

class on_a_gpu : public ::testing::Test {
 protected:
  void SetUp() override {
    stages::opened_device opened = stages::open_device(cuda(0));
    if (opened.calls == nullptr) GTEST_SKIP() << opened.why_not;
    calls = std::move(opened.calls);
  }
  std::shared_ptr<stages::device_calls> calls;
};

using loader_on_a_gpu = on_a_gpu;
using kernels_on_a_gpu = on_a_gpu;

loader_options options_on_gpu(int index = 0) {
  loader_options options = testing::small_options();
  options.device = cuda(index);
  return options;
}

TEST_F(loader_on_a_gpu, delivers_the_digests_of_the_host) {
  const auto expected =
      testing::run_all(fake_dataset(samples()), testing::small_options(), testing::all_fields()).batches;
  for (const bool late : {false, true}) {
    for (const bool default_stream : {false, true}) {
      for (const std::uint32_t blocks : {1U, 3U}) {
        const watchdog dog("gpu digests");
        loader_options options = testing::small_options();
        options.device = cuda(0);
        options.device_batches = blocks;
        consumer_stream consumer(late, default_stream ? std::optional<cudaStream_t>(nullptr) : std::nullopt);
        std::vector<std::string> stated;
        loader train(fake_dataset(samples()), options, testing::all_fields());
        for (std::uint32_t epoch = 0; epoch < options.epochs; ++epoch) {
          while (std::optional<batch> got = train.next_blocking()) {
            EXPECT_EQ((*got)["jpg"].where, cuda(0));
            got->wait_on(consumer.get());
            consumer.read(*got);
            stated.push_back(got->content_digest()->hex());
          }
        }
        EXPECT_EQ(train.stats().device.use.use, "cuda:0");
        EXPECT_EQ(train.stats().device.pinned.use, "on") << train.stats().device.pinned.why;
        EXPECT_EQ(consumer.seen(), stated);
        ASSERT_EQ(stated.size(), expected.size());
        for (std::size_t i = 0; i < stated.size(); ++i) EXPECT_EQ(stated[i], expected[i].content);
      }
    }
  }
}

TEST_F(loader_on_a_gpu, serves_two_streams_ready_and_an_early_release) {
  const watchdog dog("gpu consumers");
  loader_options options = testing::small_options();
  options.device = cuda(0);
  consumer_stream first(true);
  consumer_stream second(false);
  std::vector<std::string> stated;
  {
    loader train(fake_dataset(samples()), options, testing::all_fields());
    while (std::optional<batch> got = train.next_blocking()) {
      got->ready(boost::asio::use_future).get();
      got->wait_on(first.get());
      got->wait_on(second.get());
      first.read(*got);
      second.read(*got);
      stated.push_back(got->content_digest()->hex());
      got->release_on(first.get());
    }
  }
  EXPECT_EQ(first.seen(), stated);
  EXPECT_EQ(second.seen(), stated);
}

// A consumer that has not begun: as many batches as have memory are handed to it and end, and one more copy gets into its queue.
// Whoever waited on the CPU for any of it would wait for ever, until the watchdog ends the test. That copy waits on the device.
TEST_F(loader_on_a_gpu, has_nobody_wait_for_a_consumer_but_the_next_copy_on_the_device) {
  const watchdog dog("gpu, a consumer behind a gate", std::chrono::seconds(30));
  loader_options options = options_on_gpu();
  options.device_batches = 3;
  consumer_stream held(false);
  consumer_stream beside(false);
  std::vector<std::string> stated_to_held;
  std::vector<std::string> stated_beside;
  loader train(fake_dataset(samples()), options, testing::all_fields());
  const auto read_next = [&](consumer_stream& reader, std::vector<std::string>& stated) {
    std::optional<batch> got = train.next_blocking();
    if (!got) return got;
    got->wait_on(reader.get());
    reader.read(*got);
    stated.push_back(got->content_digest()->hex());
    return got;
  };
  // An epoch before that: memory is pinned as it is first used, which may wait for the device.
  while (read_next(beside, stated_beside)) continue;
  {
    gate before_the_steps(held.get());  // Open on every way out, before anything waits for the stream.
    for (std::uint32_t i = 0; i < options.device_batches; ++i) ASSERT_TRUE(read_next(held, stated_to_held));
    std::optional<batch> next = read_next(beside, stated_beside);
    ASSERT_TRUE(next);
    std::future<void> arrived = next->ready(boost::asio::use_future);
    // As long as thousands of such copies take.
    EXPECT_EQ(arrived.wait_for(std::chrono::milliseconds(100)), std::future_status::timeout);
    EXPECT_STREQ(cudaGetErrorName(cudaStreamQuery(beside.get().handle())), "cudaErrorNotReady");
    EXPECT_STREQ(cudaGetErrorName(cudaStreamQuery(held.get().handle())), "cudaErrorNotReady");
    static_cast<void>(cudaGetLastError());
    before_the_steps.open();
    arrived.get();
  }
  while (read_next(beside, stated_beside)) continue;
  EXPECT_EQ(held.seen(), stated_to_held);
  EXPECT_EQ(beside.seen(), stated_beside);
  EXPECT_EQ(stated_to_held.size() + stated_beside.size(), 12U);
}

TEST_F(loader_on_a_gpu, keeps_what_it_gave_as_dlpack_until_the_deleter_has_run) {
  const watchdog dog("gpu dlpack");
  loader_options options = testing::small_options();
  options.device = cuda(0);
  consumer_stream consumer(true);
  std::vector<std::string> stated;
  loader train(fake_dataset(samples()), options, testing::all_fields());
  std::optional<batch> got = train.next_blocking();
  while (got) {
    DLManagedTensorVersioned* const pixels = (*got)["jpg"].dlpack(consumer.get());
    cudaPointerAttributes where{};
    EXPECT_CUDA(cudaPointerGetAttributes(&where, pixels->dl_tensor.data));
    EXPECT_EQ(where.type, cudaMemoryTypeDevice);
    EXPECT_EQ(where.device, pixels->dl_tensor.device.device_id);
    EXPECT_EQ(pixels->dl_tensor.device.device_type, kDLCUDA);
    consumer.read(*got);  // Its stream waits for the whole of the batch.
    stated.push_back(got->content_digest()->hex());
    got = train.next_blocking();  // The batch has ended, and the tensor has not.
    pixels->deleter(pixels);
  }
  EXPECT_EQ(consumer.seen(), stated);
}

TEST_F(on_a_gpu, says_what_it_is) {
  const stages::device_facts told = calls->facts();
  EXPECT_GE(told.driver_cuda, told.runtime_cuda / 1000 * 1000);
  EXPECT_GE(told.runtime_cuda, 12000);
  EXPECT_GE(told.capability, 70);
  EXPECT_GE(told.memory_bytes, told.memory_free_bytes);
  EXPECT_GT(told.memory_free_bytes, 0U);
  EXPECT_NE(told.pci_address.find(':'), std::string::npos);
  EXPECT_FALSE(stages::list_devices().devices.empty());
}

TEST_F(loader_on_a_gpu, may_be_left_while_copies_fly_and_batches_are_out) {
  for (int taken = 0; taken < 4; ++taken) {
    const watchdog dog("gpu left");
    loader_options options = testing::small_options();
    options.device = cuda(0);
    consumer_stream consumer(true);
    std::optional<batch> kept;
    {
      loader train(fake_dataset(samples()), options, testing::all_fields());
      for (int i = 0; i < taken; ++i) kept = train.next_blocking();
    }
    if (!kept) continue;
    kept->wait_on(consumer.get());
    consumer.read(*kept);
    EXPECT_EQ(consumer.seen().front(), kept->content_digest()->hex());
  }
}

// What its thread may have put behind it waits for: the copies that the loader's end waits for are held up by it.
TEST_F(loader_on_a_gpu, may_be_left_while_copies_wait_for_a_consumer_that_is_late) {
  for (const bool stopped : {false, true}) {
    const watchdog dog("gpu left while copies wait");
    loader_options options = options_on_gpu();
    options.device_batches = 1;
    consumer_stream consumer(true);
    std::vector<std::string> stated;
    {
      loader train(fake_dataset(samples()), options, testing::all_fields());
      for (int i = 0; i < 3; ++i) {
        std::optional<batch> got = train.next_blocking();
        ASSERT_TRUE(got);
        got->wait_on(consumer.get());
        consumer.read(*got);
        stated.push_back(got->content_digest()->hex());
      }
      if (stopped) train.stop();
    }
    EXPECT_EQ(consumer.seen(), stated);
  }
}

TEST_F(loader_on_a_gpu, shares_it_with_another) {
  const watchdog dog("gpu, two loaders");
  loader_options options = options_on_gpu();
  const loader_options same = options;
  options.seed = 8;
  consumer_stream one(true);
  consumer_stream two(false);
  std::vector<std::string> stated_by_first;
  std::vector<std::string> stated_by_second;
  {
    loader first(fake_dataset(samples()), same, testing::all_fields());
    loader second(fake_dataset(samples()), options, testing::all_fields());
    for (int i = 0; i < 6; ++i) {
      std::optional<batch> from_first = first.next_blocking();
      std::optional<batch> from_second = second.next_blocking();
      ASSERT_TRUE(from_first && from_second);
      from_first->wait_on(one.get());
      from_second->wait_on(two.get());
      one.read(*from_first);
      two.read(*from_second);
      stated_by_first.push_back(from_first->content_digest()->hex());
      stated_by_second.push_back(from_second->content_digest()->hex());
    }
  }
  EXPECT_EQ(one.seen(), stated_by_first);
  EXPECT_EQ(two.seen(), stated_by_second);
  EXPECT_NE(stated_by_first, stated_by_second);
}

// A thread that has called nothing of CUDA has no context afterwards either, and no error; one that has, has its own.
TEST_F(loader_on_a_gpu, leaves_a_thread_its_context_its_last_error_and_its_mode_of_captures) {
  const watchdog dog("gpu, contexts");
  loader train(fake_dataset(samples()), options_on_gpu(), testing::all_fields());
  const auto take_one = [&] {
    std::optional<batch> got = train.next_blocking();
    ASSERT_TRUE(got);
    got->wait_on(stream());
    got->ready(boost::asio::use_future).get();
  };
  // Not on cudaStreamPerThread as well: where a dozen processes share a GPU, the end of a second thread that used it waits for a thread of the
  // driver's for ever, with leat and without (benchmarks/thread_end_probe.cu).
  std::thread([&] {
    EXPECT_EQ(current_context(), nullptr);
    take_one();
    EXPECT_EQ(current_context(), nullptr);
    EXPECT_CUDA(cudaPeekAtLastError());
  }).join();
  std::thread([&] {
    EXPECT_CUDA(cudaSetDevice(0));
    const CUcontext before = current_context();
    void* nothing = nullptr;
    EXPECT_STREQ(cudaGetErrorName(cudaMalloc(&nothing, std::size_t{1} << 60)), "cudaErrorMemoryAllocation");
    take_one();
    EXPECT_EQ(current_context(), before);
    EXPECT_STREQ(cudaGetErrorName(cudaGetLastError()), "cudaErrorMemoryAllocation") << "the thread's own";
    cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
    EXPECT_CUDA(cudaThreadExchangeStreamCaptureMode(&mode));
    EXPECT_EQ(mode, cudaStreamCaptureModeGlobal);
  }).join();
}

// The block is the only one, and what one thread put into its own default stream still reads it when another ends the batch.
TEST_F(loader_on_a_gpu, waits_for_a_threads_default_stream_wherever_the_batch_ends) {
  const watchdog dog("gpu, per-thread default streams");
  loader_options options = options_on_gpu();
  options.device_batches = 1;
  loader train(fake_dataset(samples()), options, testing::all_fields());
  std::vector<std::string> stated;
  std::vector<std::string> seen;
  std::thread([&] {
    consumer_stream own(true, cudaStreamPerThread);
    while (std::optional<batch> got = train.next_blocking()) {
      got->wait_on(own.get());
      own.read(*got);
      stated.push_back(got->content_digest()->hex());
      std::thread([&] { got.reset(); }).join();
    }
    seen = own.seen();
  }).join();
  EXPECT_EQ(seen, stated);
  EXPECT_EQ(stated.size(), 6U);
}

// What it put into its own default stream is still there when the thread is not.
TEST_F(loader_on_a_gpu, waits_for_the_default_stream_of_a_thread_that_has_ended) {
  const watchdog dog("gpu, the default stream of a thread that has ended");
  loader_options options = options_on_gpu();
  options.device_batches = 1;
  loader train(fake_dataset(samples()), options, testing::all_fields());
  std::vector<std::string> stated;
  std::vector<std::unique_ptr<consumer_stream>> threads;
  while (std::optional<batch> got = train.next_blocking()) {
    std::thread([&] {
      threads.push_back(std::make_unique<consumer_stream>(true, cudaStreamPerThread));
      got->wait_on(threads.back()->get());
      threads.back()->read(*got);
    }).join();
    stated.push_back(got->content_digest()->hex());
  }
  EXPECT_CUDA(cudaDeviceSynchronize());
  ASSERT_EQ(threads.size(), stated.size());
  for (std::size_t i = 0; i < threads.size(); ++i) EXPECT_EQ(threads[i]->seen().front(), stated[i]);
}

// Somebody captures a stream that the default stream waits for: its block waits for the end of the capture, which stays whole.
TEST_F(loader_on_a_gpu, goes_on_after_a_capture_that_kept_the_default_stream_from_being_recorded) {
  const watchdog dog("gpu, a capture beside the default stream");
  loader_options options = options_on_gpu();
  options.device_batches = 1;
  loader train(fake_dataset(samples()), options, testing::all_fields());
  consumer_stream consumer(true, cudaStreamLegacy);
  std::vector<std::string> stated;
  cudaStream_t captured = nullptr;
  EXPECT_CUDA(cudaStreamCreate(&captured));
  while (std::optional<batch> got = train.next_blocking()) {
    got->wait_on(consumer.get());
    consumer.read(*got);
    stated.push_back(got->content_digest()->hex());
    EXPECT_CUDA(cudaStreamBeginCapture(captured, cudaStreamCaptureModeThreadLocal));
    got.reset();
    std::this_thread::sleep_for(
        std::chrono::milliseconds(5));  // the sender tries meanwhile, and must not break the capture
    cudaGraph_t graph = nullptr;
    EXPECT_CUDA(cudaStreamEndCapture(captured, &graph));
    EXPECT_CUDA(cudaGraphDestroy(graph));
  }
  EXPECT_CUDA(cudaStreamDestroy(captured));
  EXPECT_EQ(consumer.seen(), stated);
}

// The capture goes on as if nothing had been asked, and so does the loader.
TEST_F(loader_on_a_gpu, refuses_a_stream_that_is_being_captured) {
  const watchdog dog("gpu, captures");
  loader train(fake_dataset(samples()), options_on_gpu(), testing::all_fields());
  for (const bool blocking : {false, true}) {
    std::optional<batch> got = train.next_blocking();
    ASSERT_TRUE(got);
    cudaStream_t captured = nullptr;
    EXPECT_CUDA(cudaStreamCreateWithFlags(&captured, blocking ? cudaStreamDefault : cudaStreamNonBlocking));
    EXPECT_CUDA(cudaStreamBeginCapture(captured, cudaStreamCaptureModeGlobal));
    testing::message_of(errc::usage, [&] { got->wait_on(captured); });
    testing::message_of(errc::usage, [&] { got->release_on(captured); });
    // The default stream would wait for a blocking one that is captured, and end the capture.
    if (blocking) testing::message_of(errc::usage, [&] { got->wait_on(cudaStreamLegacy); });
    // What the loader does meanwhile, on its own threads and on this one, is no part of it.
    std::optional<batch> next = train.next_blocking();
    ASSERT_TRUE(next);
    next->ready(boost::asio::use_future).get();
    cudaGraph_t graph = nullptr;
    EXPECT_CUDA(cudaStreamEndCapture(captured, &graph));
    std::size_t nodes = 1;
    EXPECT_CUDA(cudaGraphGetNodes(graph, nullptr, &nodes));
    EXPECT_EQ(nodes, 0U);
    EXPECT_CUDA(cudaGraphDestroy(graph));
    EXPECT_CUDA(cudaGetLastError());
    got->wait_on(captured);
    got->release_on(captured);
    EXPECT_CUDA(cudaStreamSynchronize(captured));
    next.reset();
    EXPECT_CUDA(cudaStreamDestroy(captured));
  }
  while (std::optional<batch> got = train.next_blocking()) got->wait_on(stream());
}

TEST_F(loader_on_a_gpu, fails_in_words_when_a_batch_ends_inside_a_capture) {
  const watchdog dog("gpu, a batch's end in a capture");
  loader train(fake_dataset(samples()), options_on_gpu(), testing::all_fields());
  std::optional<batch> got = train.next_blocking();
  ASSERT_TRUE(got);
  cudaStream_t captured = nullptr;
  EXPECT_CUDA(cudaStreamCreateWithFlags(&captured, cudaStreamNonBlocking));
  got->wait_on(captured);
  EXPECT_CUDA(cudaStreamBeginCapture(captured, cudaStreamCaptureModeThreadLocal));
  got.reset();
  cudaGraph_t graph = nullptr;
  EXPECT_CUDA(cudaStreamEndCapture(captured, &graph));
  EXPECT_CUDA(cudaGraphDestroy(graph));
  EXPECT_CUDA(cudaStreamDestroy(captured));
  const std::string message = testing::message_of(errc::usage, [&] {
    while (train.next_blocking()) continue;
  });
  EXPECT_NE(message.find("was being captured into a graph"), std::string::npos) << message;
}

/// A batch of the host's own, in memory that a transfer has pinned.
struct pinned_batch final : stages::transfer_operation {
  explicit pinned_batch(io::lease from) : lease(std::move(from)) {
    memory = &lease;
    handed_over = [](stages::transfer_operation& self) noexcept {
      static_cast<pinned_batch&>(self).pinned.set_value();
    };
  }
  io::lease lease;
  std::promise<void> pinned;
};

using pinned_batches_on_a_gpu = on_a_gpu;

TEST_F(pinned_batches_on_a_gpu, keep_their_memory_until_every_kind_of_stream_has_passed) {
  const watchdog dog("gpu, pinned batches");
  if (!calls->can_record_all()) GTEST_SKIP() << "the driver has no cuCtxRecordEvent";
  constexpr std::size_t bytes = std::size_t{1} << 20;
  io::lease_pool pool(std::make_shared<io::arena>(io::arena_options{.bytes_max = bytes, .pages = io::huge_pages::off}),
                      {.bytes_max = bytes, .name = "batches"});
  const auto pins = std::make_shared<stages::pinned_transfer>(calls);
  pins->prepare({.host_batches = 1, .failed = {}});
  cudaStream_t apart = nullptr;
  EXPECT_CUDA(cudaStreamCreateWithFlags(&apart, cudaStreamNonBlocking));
  for (const cudaStream_t each : {cudaStreamLegacy, cudaStreamPerThread, apart}) {
    pinned_batch one(std::move(*pool.try_lease(bytes)));
    pins->send(one);
    one.pinned.get_future().wait();
    ASSERT_EQ(one.failure, nullptr);
    gate closed{stream(each)};
    pins->give_back(std::move(one.lease), true);
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    EXPECT_EQ(pool.count().leases_out, 1U);
    closed.open();
    while (pool.count().leases_out != 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_CUDA(cudaStreamDestroy(apart));
  pins->drain();
}

TEST_F(pinned_batches_on_a_gpu, have_no_event_while_a_stream_is_captured) {
  if (!calls->can_record_all()) GTEST_SKIP() << "the driver has no cuCtxRecordEvent";
  stages::device_event event = stages::device_event::none;
  ASSERT_EQ(calls->make_event(event), stages::device_ok);
  cudaStream_t captured = nullptr;
  EXPECT_CUDA(cudaStreamCreateWithFlags(&captured, cudaStreamNonBlocking));
  EXPECT_CUDA(cudaStreamBeginCapture(captured, cudaStreamCaptureModeThreadLocal));
  EXPECT_EQ(calls->record_all(event), stages::device_captured_beside);
  cudaGraph_t graph = nullptr;
  static_cast<void>(cudaStreamEndCapture(captured, &graph));  // it is broken
  if (graph != nullptr) EXPECT_CUDA(cudaGraphDestroy(graph));
  static_cast<void>(cudaGetLastError());
  EXPECT_EQ(calls->record_all(event), stages::device_ok);
  EXPECT_EQ(calls->synchronize(event), stages::device_ok);
  EXPECT_CUDA(cudaStreamDestroy(captured));
  EXPECT_EQ(calls->free_event(event), stages::device_ok);
}

TEST_F(loader_on_a_gpu, has_its_like_on_a_second_one) {
  const watchdog dog("a second gpu");
  int count = 0;
  EXPECT_CUDA(cudaGetDeviceCount(&count));
  if (count < 2) GTEST_SKIP() << "there is one GPU here";
  EXPECT_CUDA(cudaSetDevice(0));
  consumer_stream of_first(true);
  EXPECT_CUDA(cudaSetDevice(1));
  consumer_stream of_second(false);
  EXPECT_CUDA(cudaSetDevice(0));
  std::vector<std::string> stated_by_first;
  std::vector<std::string> stated_by_second;
  {
    loader first(fake_dataset(samples()), options_on_gpu(0), testing::all_fields());
    loader second(fake_dataset(samples()), options_on_gpu(1), testing::all_fields());
    for (int i = 0; i < 6; ++i) {
      std::optional<batch> from_first = first.next_blocking();
      std::optional<batch> from_second = second.next_blocking();
      ASSERT_TRUE(from_first && from_second);
      EXPECT_EQ((*from_second)["jpg"].where, cuda(1));
      testing::message_of(errc::usage, [&] { from_first->wait_on(of_second.get()); });
      testing::message_of(errc::usage, [&] { from_second->wait_on(of_first.get()); });
      from_first->wait_on(of_first.get());
      from_second->wait_on(of_second.get());
      of_first.read(*from_first);
      of_second.read(*from_second);
      stated_by_first.push_back(from_first->content_digest()->hex());
      stated_by_second.push_back(from_second->content_digest()->hex());
    }
    int chosen = -1;
    EXPECT_CUDA(cudaGetDevice(&chosen));
    EXPECT_EQ(chosen, 0);
  }
  EXPECT_EQ(of_first.seen(), stated_by_first);
  EXPECT_EQ(of_second.seen(), stated_by_second);
  EXPECT_EQ(stated_by_first, stated_by_second);
}

// No call of the loop waits for the device, takes memory there or makes anything.
TEST_F(loader_on_a_gpu, makes_only_the_calls_of_the_loop_in_the_loop) {
  const watchdog dog("gpu calls");
  const auto watched = std::make_shared<testing::watched_calls>(calls);
  loader_options options = testing::small_options();
  options.device_calls = watched;
  consumer_stream consumer(false);
  loader train(fake_dataset(samples()), options, testing::all_fields());
  std::optional<batch> got = train.next_blocking();
  ASSERT_TRUE(got);
  const std::map<std::string, std::size_t> before = watched->counts();
  while (got) {
    got->wait_on(consumer.get());
    consumer.read(*got);
    got = train.next_blocking();
  }
  testing::expect_only_calls_of_the_loop(*watched, before);
}

// Where CUDA does not pin, as in containers with little memory to lock: the same batches, by copies that take their time on a
// thread that is there for it.
TEST_F(loader_on_a_gpu, delivers_the_digests_of_the_host_from_pageable_memory_too) {
  const auto expected =
      testing::run_all(fake_dataset(samples()), testing::small_options(), testing::all_fields()).batches;
  for (const bool late : {false, true}) {
    const watchdog dog("gpu, pageable");
    const auto watched = std::make_shared<testing::watched_calls>(calls);
    watched->refuse("pin", static_cast<stages::device_status>(cudaErrorOperatingSystem));
    loader_options options = testing::small_options();
    options.device_calls = watched;
    consumer_stream consumer(late);
    std::vector<std::string> stated;
    {
      loader train(fake_dataset(samples()), options, testing::all_fields());
      for (std::uint32_t epoch = 0; epoch < options.epochs; ++epoch) {
        while (std::optional<batch> got = train.next_blocking()) {
          got->wait_on(consumer.get());
          consumer.read(*got);
          stated.push_back(got->content_digest()->hex());
        }
      }
      const device_report told = train.stats().device;
      EXPECT_EQ(told.use.use, "cuda:0");
      EXPECT_EQ(told.pinned.use, "off");
      EXPECT_NE(told.pinned.why.find("cudaErrorOperatingSystem"), std::string::npos) << told.pinned.why;
      EXPECT_NE(told.pinned.why.find("ulimit -l"), std::string::npos) << told.pinned.why;
    }
    EXPECT_EQ(consumer.seen(), stated);
    ASSERT_EQ(stated.size(), expected.size());
    for (std::size_t i = 0; i < stated.size(); ++i) EXPECT_EQ(stated[i], expected[i].content);
    EXPECT_EQ(watched->threads_of("copy"), std::set<std::string>{"leat-send"});
  }
}

/// In a process of its own, to which the GPU is lost afterwards: a trainer's kernel traps while the loader goes on. Ends the
/// process with 0 where all is as it should be.
[[noreturn]] void lose_the_gpu() {
  const watchdog dog("a lost gpu", std::chrono::seconds(30));
  std::string message = "the run did not end";
  bool again = false;
  {
    loader train(fake_dataset(samples()), options_on_gpu(), testing::all_fields());
    std::optional<batch> kept = train.next_blocking();
    cudaStream_t wrong = nullptr;
    if (!kept || cudaStreamCreateWithFlags(&wrong, cudaStreamNonBlocking) != cudaSuccess) std::_Exit(2);
    kept->wait_on(wrong);
    if (testing::launch_trap(wrong) != cudaSuccess || cudaStreamSynchronize(wrong) == cudaSuccess) std::_Exit(3);
    try {
      // To the end of both epochs, which need more batches than are on their way.
      for (std::uint32_t epoch = 0; epoch < 2; ++epoch) {
        while (train.next_blocking()) continue;
      }
    } catch (const error& lost) {
      message = lost.code() == errc::device ? lost.what() : "another kind of error";
    }
    try {
      static_cast<void>(train.next_blocking());
    } catch (const error& lost) {
      again = message == lost.what();
    }
    // The batch that is out, and the loader, end as ever.
  }
  std::fprintf(stderr, "%s\n", message.c_str());
  std::_Exit(again ? 0 : 4);
}

TEST_F(loader_on_a_gpu, that_is_lost_ends_the_run_and_names_call_device_and_reason) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(lose_the_gpu(), ::testing::ExitedWithCode(0), "cuda.* on .* \\(cuda:0\\): .* \\(cudaError[A-Za-z]+\\)");
}

/// A row mixed in all of its elements, some by a box, one not at all.
std::vector<stages::mix_row> some_mixing(std::uint32_t rows, std::uint32_t height, std::uint32_t width) {
  std::vector<stages::mix_row> all(rows);
  for (std::uint32_t row = 1; row < rows; ++row) {
    if (row % 2 == 1) {
      all[row].own = 0.3F + 0.1F * static_cast<float>(row);
      all[row].other = 1.0F - all[row].own;
    } else {
      all[row].left = static_cast<std::uint16_t>(width / 4);
      all[row].right = static_cast<std::uint16_t>(width - width / 3);
      all[row].bottom = static_cast<std::uint16_t>(height - height / 4);
    }
  }
  return all;
}

/// What lies on the device, for one launch: all in one stream, so that nothing needs to be waited for but its end.
class on_device_memory {
 public:
  explicit on_device_memory(std::span<const std::byte> content) : bytes_(content.size()) {
    EXPECT_CUDA(cudaMalloc(&data_, bytes_));
    EXPECT_CUDA(cudaMemcpy(data_, content.data(), bytes_, cudaMemcpyHostToDevice));
  }
  on_device_memory(const on_device_memory&) = delete;
  on_device_memory& operator=(const on_device_memory&) = delete;
  ~on_device_memory() { EXPECT_CUDA(cudaFree(data_)); }

  template <class T>
  [[nodiscard]] T* as() const noexcept {
    return static_cast<T*>(data_);
  }
  [[nodiscard]] std::vector<std::byte> fetch() const {
    std::vector<std::byte> content(bytes_);
    EXPECT_CUDA(cudaMemcpy(content.data(), data_, bytes_, cudaMemcpyDeviceToHost));
    return content;
  }

 private:
  void* data_ = nullptr;
  std::size_t bytes_;
};

void expect_the_bits_of_the_host(dtype type, layout order, std::uint32_t height, std::uint32_t width, bool flipped,
                                 bool mixed) {
  constexpr std::uint32_t rows = 5;
  const std::size_t pixels = std::size_t{rows} * height * width * 3;
  std::vector<std::byte> from(pixels);
  testing::fill_seeded(height + width, 0, from);
  const std::vector<std::uint8_t> flips = {0, 1, 0, 255, 1};
  const std::vector<stages::mix_row> mixing = some_mixing(rows, height, width);
  std::vector<std::byte> expected(pixels * size_bytes(type));
  stages::picture_batch pictures = stages::pictures_of(pixels::store::from(type, order, imagenet), height, width);
  pictures.rows = rows;
  pictures.from = reinterpret_cast<const std::uint8_t*>(from.data());
  pictures.to = expected.data();
  if (flipped) pictures.flips = flips.data();
  if (mixed) pictures.mixed = mixing.data();
  stages::finish_pictures(pictures);

  const on_device_memory from_there(from);
  const on_device_memory to_there(std::vector<std::byte>(expected.size(), std::byte{0xA5}));
  const on_device_memory flips_there(std::as_bytes(std::span(flips)));
  const on_device_memory mixing_there(std::as_bytes(std::span(mixing)));
  pictures.from = from_there.as<const std::uint8_t>();
  pictures.to = to_there.as<void>();
  if (flipped) pictures.flips = flips_there.as<const std::uint8_t>();
  if (mixed) pictures.mixed = mixing_there.as<const stages::mix_row>();
  EXPECT_CUDA(static_cast<cudaError_t>(stages::launch_finish_pictures(pictures, {})));
  EXPECT_TRUE(to_there.fetch() == expected) << name(type) << (order == layout::nchw ? " nchw " : " nhwc ") << height
                                            << " x " << width << (flipped ? " flipped" : "") << (mixed ? " mixed" : "");
}

// Their code is tested beside the host's decoder without a GPU (decode_photos_test.cpp); here it is that warps do what their emulation does.
TEST_F(kernels_on_a_gpu, decode_photos_gives_the_bits_of_its_twin) {
  constexpr std::uint32_t height = 31;
  constexpr std::uint32_t width = 24;
  const stages::photo_operation how(height, width, layout::nhwc);
  const pixels::pipeline steps(
      {transforms::random_resized_crop{.height = height, .width = width}, transforms::random_flip{}});
  pixels::scratch_budget budget(std::size_t{64} << 20);
  pixels::picture_decoder decoder(budget);
  std::vector<std::byte> slots;
  std::uint32_t rows = 0;
  for (const auto& [h, v] : {std::pair{1, 1}, {2, 1}, {2, 2}, {1, 2}, {4, 1}}) {
    for (std::uint64_t draw = 0; draw < 8; ++draw, ++rows) {
      const std::vector<std::byte> pack =
          pack_photo(testing::make_jpeg(testing::make_texture(draw, 70 + 30 * h, 50 + 20 * v), {.h = h, .v = v}));
      const auto photo = decoder.look_at_photo(pack, steps, {.seed = 1, .epoch = 0, .draw = draw},
                                               {.decimate = draw % 2 == 0}, nullptr);
      ASSERT_TRUE(photo.has_value());
      const auto plan = stages::plan_photo(photo->layout, photo->info, photo->drawn, photo->decimation);
      ASSERT_TRUE(plan.has_value() && plan->scratch_bytes <= how.photo_scratch_bytes());
      slots.resize(slots.size() + how.decoded_row_bytes());
      const std::span<std::byte> slot = std::span(slots).last(how.decoded_row_bytes());
      if (!stages::write_photo_slot(*plan, photo->layout.pack, slot)) stages::write_pixels_slot(slot);
    }
  }
  std::vector<std::byte> scratch(rows * how.photo_scratch_bytes());
  std::vector<std::byte> expected(std::size_t{rows} * height * width * 3);
  std::vector<std::byte> damaged(4 * std::size_t{rows});
  stages::photo_batch photos{.slots = reinterpret_cast<const std::uint8_t*>(slots.data()),
                             .slot_bytes = how.decoded_row_bytes(),
                             .scratch = reinterpret_cast<std::uint8_t*>(scratch.data()),
                             .scratch_bytes = how.photo_scratch_bytes(),
                             .to = reinterpret_cast<std::uint8_t*>(expected.data()),
                             .damaged = reinterpret_cast<std::uint32_t*>(damaged.data()),
                             .photo_count = rows,
                             .out_height = height,
                             .out_width = width};
  stages::decode_photos(photos);

  const on_device_memory slots_there(slots);
  const on_device_memory scratch_there(scratch);
  const on_device_memory to_there(std::vector<std::byte>(expected.size(), std::byte{0xA5}));
  const on_device_memory damaged_there(damaged);
  photos.slots = slots_there.as<const std::uint8_t>();
  photos.scratch = scratch_there.as<std::uint8_t>();
  photos.to = to_there.as<std::uint8_t>();
  photos.damaged = damaged_there.as<std::uint32_t>();
  EXPECT_CUDA(static_cast<cudaError_t>(stages::launch_decode_photos(photos, {})));
  EXPECT_TRUE(to_there.fetch() == expected);
  EXPECT_TRUE(damaged_there.fetch() == damaged);
}

// Rows of 601 bytes are aligned to nothing on either side; those of 150,528 are on both.
TEST_F(kernels_on_a_gpu, gather_rows_gives_the_bytes_of_its_twin) {
  for (const std::uint32_t row_bytes : {601U, 150'528U}) {
    const std::size_t rows = stages::gathered_pieces_max;
    std::vector<std::byte> from(rows * row_bytes);
    testing::fill_seeded(row_bytes, 0, from);
    std::vector<std::byte> expected(from.size(), std::byte{0xA5});
    const on_device_memory from_there(from);
    const on_device_memory to_there(expected);
    stages::gathered_pieces here;
    stages::gathered_pieces there;
    for (std::size_t row = 0; row < rows; ++row) {
      if (row % 5 == 0) continue;
      const std::size_t source = row * 33 % rows * row_bytes;
      here.add(expected.data() + row * row_bytes, from.data() + source, row_bytes);
      there.add(to_there.as<std::byte>() + row * row_bytes, from_there.as<std::byte>() + source, row_bytes);
    }
    stages::gather_rows(here);
    EXPECT_CUDA(static_cast<cudaError_t>(stages::launch_gather_rows(there, {})));
    EXPECT_TRUE(to_there.fetch() == expected) << row_bytes;
  }
}

TEST_F(kernels_on_a_gpu, finish_pictures_gives_the_bits_of_the_host) {
  for (const dtype type : {dtype::f32, dtype::f16, dtype::bf16}) {
    for (const layout order : {layout::nchw, layout::nhwc}) {
      for (const auto& [height, width] : {std::pair<std::uint32_t, std::uint32_t>{1, 1},
                                          {3, 5},
                                          {5, 4},
                                          {4, 8},
                                          {3, 12},
                                          {2, 16},
                                          {3, 20},
                                          {7, 36},
                                          {33, 40},
                                          {224, 224}}) {
        for (const bool flipped : {false, true}) {
          for (const bool mixed : {false, true})
            expect_the_bits_of_the_host(type, order, height, width, flipped, mixed);
        }
      }
    }
  }
}

// As decode_photos above: that blocks of threads, atomics and barriers do what the twin does (picture_programs_test.cpp has the bits).
void expect_the_bits_of_the_twin(const char* steps, dtype type, layout order, std::uint32_t height, std::uint32_t width,
                                 bool mixed) {
  constexpr std::uint32_t rows = 5;
  SCOPED_TRACE(std::string(steps) + " " + std::string(name(type)) + (order == layout::nchw ? " nchw " : " nhwc ") +
               std::to_string(height) + " x " + std::to_string(width) + (mixed ? " mixed" : ""));
  std::vector<transform> chain = parse_transforms(steps);
  chain.insert(chain.begin(), transforms::resize{.height = static_cast<int>(height), .width = static_cast<int>(width)});
  const pixels::pipeline drawing(std::move(chain));
  const stages::program_layout layout_of_records = stages::layout_of(drawing);
  const std::size_t pixels = std::size_t{rows} * height * width * 3;
  std::vector<std::byte> from(pixels);
  testing::fill_seeded(height + width, 0, from);
  std::vector<std::byte> programs(std::size_t{rows} * layout_of_records.record_bytes);
  for (std::uint32_t row = 0; row < rows; ++row) {
    pixels::recipe drawn;
    drawing.draw_colour({.seed = height, .epoch = 0, .draw = row}, drawn);
    stages::write_program(
        layout_of_records, drawn, 0, row % 2 != 0,
        std::span(programs).subspan(std::size_t{row} * layout_of_records.record_bytes, layout_of_records.record_bytes));
  }
  const std::vector<stages::mix_row> mixing = some_mixing(rows, height, width);
  const stages::picture_operation how(
      stages::pictures_of(pixels::store::from(type, order, std::nullopt), height, width), layout_of_records);
  std::vector<std::byte> expected(pixels * size_bytes(type));
  const auto finished = [&](std::uint32_t row, std::byte* to) {
    std::vector<std::byte> scratch(how.make_row_bytes() + 16);
    const std::byte* const operands[] = {from.data(), programs.data()};
    void* aligned = scratch.data();
    std::size_t room = scratch.size();
    how.make_row(operands, row, to, static_cast<std::byte*>(std::align(16, how.make_row_bytes(), aligned, room)));
  };
  const std::size_t row_bytes = expected.size() / rows;
  for (std::uint32_t row = 0; row < rows; ++row) finished(row, expected.data() + row * row_bytes);
  if (mixed) {
    const std::vector<std::byte> before = expected;
    const stages::picture_batch like =
        stages::pictures_of(pixels::store::from(type, order, std::nullopt), height, width);
    for (std::uint32_t row = 0; row < rows; ++row) {
      stages::mix_picture(like, mixing[row], expected.data() + row * row_bytes,
                          before.data() + stages::partner_of(row, rows) * row_bytes);
    }
  }

  const on_device_memory from_there(from);
  const on_device_memory programs_there(programs);
  const on_device_memory mixing_there(std::as_bytes(std::span(mixing)));
  const on_device_memory to_there(std::vector<std::byte>(expected.size(), std::byte{0xA5}));
  const on_device_memory scratch_there(std::vector<std::byte>(how.scratch_bytes(rows) + 16, std::byte{0xA5}));
  std::vector<const std::byte*> operands = {from_there.as<const std::byte>(), programs_there.as<const std::byte>()};
  if (mixed) operands.push_back(mixing_there.as<const std::byte>());
  const stages::opened_device opened = stages::open_device(cuda(0));
  ASSERT_NE(opened.calls, nullptr) << opened.why_not;
  const stages::failed_call launched = how.launch(
      *opened.calls,
      {.from = operands, .rows = rows, .to = to_there.as<std::byte>(), .scratch = scratch_there.as<std::byte>()}, {});
  EXPECT_EQ(launched.status, stages::device_ok) << launched.name;
  EXPECT_CUDA(cudaDeviceSynchronize());
  EXPECT_TRUE(to_there.fetch() == expected);
}

TEST_F(kernels_on_a_gpu, steps_of_colour_give_the_bits_of_their_twin) {
  constexpr const char* chains[] = {
      "solarize(100) gamma(0.5..2) grayscale",
      "saturation(0..2) hue(-0.5..0.5) channel_permutation brightness(0.5..1.5)",
      "contrast(0.2..1.8) saturation(0..2) contrast(0.5..2)",
      "equalize autocontrast",
      "hue(-0.2..0.2) equalize invert autocontrast random_erasing(0.9)",
      "saturation(0..2) random_erasing(0.9, 0.02..0.9, 0.3..3.3, noise)",
      "sharpness(0..3) sharpness(0..3)",
      "rotate(-30..30) brightness(0.5..1.5) rotate(-30..30, bilinear) vertical_flip",
      "perspective(0.7, bilinear) perspective(0.7, nearest) equalize random_erasing(0.9)",
      "rand_augment(3, 20) random_apply(0.5, gaussian_blur(3, 0.1..2))",
      "gaussian_blur(3, 0.1..2) equalize gaussian_blur(3, 0.5..2) posterize(5)",
      "random_apply(0.8, color_jitter(0.4, 0.4, 0.4, 0.1)) random_apply(0.5, gaussian_blur(3, 0.1..2)) random_erasing"};
  for (const char* const steps : chains) {
    for (const dtype type : {dtype::f32, dtype::f16, dtype::bf16, dtype::u8}) {
      if (type == dtype::u8 && std::string_view(steps).ends_with("noise)")) continue;  // noise is not of u8
      for (const layout order : {layout::nchw, layout::nhwc}) {
        for (const auto& [height, width] :
             {std::pair<std::uint32_t, std::uint32_t>{3, 5}, {4, 8}, {33, 40}, {31, 37}, {224, 224}}) {
          if (height == 224 && (type != dtype::f16 || order != layout::nchw)) continue;
          expect_the_bits_of_the_twin(steps, type, order, height, width, false);
          if (type != dtype::u8) expect_the_bits_of_the_twin(steps, type, order, height, width, true);
        }
      }
    }
  }
}

/// How far pixels lie apart, in levels of 255.
struct level_differences {
  double sum = 0;
  std::size_t count = 0;
  int most = 0;

  void add(std::uint8_t a, std::uint8_t b) {
    const int apart = std::abs(int{a} - int{b});
    sum += apart;
    ++count;
    most = std::max(most, apart);
  }
  [[nodiscard]] double mean() const { return count == 0 ? 255 : sum / static_cast<double>(count); }
};

/// One picture's planes on the device.
struct planes_there {
  explicit planes_there(const testing::rgb_picture& like)
      : stride((static_cast<std::size_t>(like.width) + 15) / 16 * 16),
        memory(std::vector<std::byte>(3 * stride * static_cast<std::size_t>(like.height), std::byte{0xA5})) {}

  [[nodiscard]] stages::jpeg_on_device to_decode(std::span<const std::byte> file, int height) const {
    stages::jpeg_on_device made{.encoded = file, .planes = {}, .stride = stride};
    for (std::size_t c = 0; c < 3; ++c) {
      made.planes[c] = memory.as<std::uint8_t>() + c * stride * static_cast<std::size_t>(height);
    }
    return made;
  }
  void compare(const testing::rgb_picture& with, level_differences& to) const {
    const std::vector<std::byte> all = memory.fetch();
    const auto height = static_cast<std::size_t>(with.height);
    for (int y = 0; y < with.height; ++y) {
      for (int x = 0; x < with.width; ++x) {
        for (std::size_t c = 0; c < 3; ++c) {
          const std::size_t at = (c * height + static_cast<std::size_t>(y)) * stride + static_cast<std::size_t>(x);
          to.add(std::to_integer<std::uint8_t>(all[at]), with.at(x, y)[c]);
        }
      }
    }
  }

  std::size_t stride;
  on_device_memory memory;
};

using nvjpeg_on_a_gpu = on_a_gpu;

// The bounds are what tells a picture from another one, or from one with planes, lines or samples exchanged, which lie tens of levels apart.
// What is measured is printed, and recorded in the test's properties.
TEST_F(nvjpeg_on_a_gpu, decodes_to_within_a_few_levels_of_libjpeg_turbo) {
  std::string why_not;
  const std::optional<stages::found_nvjpeg> found = stages::find_nvjpeg(why_not);
  if (!found) GTEST_SKIP() << why_not;
  EXPECT_CUDA(cudaFree(nullptr));  // the device's context is this thread's
  stream side;
  ASSERT_EQ(calls->make_stream(side), stages::device_ok);
  for (const bool use_engine : {true, false}) {
    stages::nvjpeg_decoder decoder(*calls, found->functions, use_engine);
    const stages::failed_call opened = decoder.open();
    ASSERT_EQ(opened.status, stages::device_ok) << opened.name << ": " << calls->describe(opened.status);
    if (use_engine && !decoder.has_engine()) {
      std::printf("nvjpeg: this GPU has no JPEG engine, or does not give it to this process\n");
      continue;
    }
    for (const auto& [name, how] :
         {std::pair{"grey", testing::jpeg_options{.colours = testing::jpeg_colours::grey, .h = 1, .v = 1}},
          {"444", {.h = 1, .v = 1}},
          {"422", {.h = 2, .v = 1}},
          {"440", {.h = 1, .v = 2}},
          {"420", {.h = 2, .v = 2}},
          {"420_restarts", {.h = 2, .v = 2, .restart_interval = 5}}}) {
      std::vector<std::vector<std::byte>> files;
      std::vector<testing::rgb_picture> wanted;
      std::deque<planes_there> planes;
      std::vector<stages::jpeg_on_device> pictures;
      // More than the 50 that kernels need to decode Huffman codes themselves.
      for (int i = 0; i < 60; ++i) {
        files.push_back(
            testing::make_jpeg(testing::make_texture(static_cast<std::uint64_t>(i), 64 + 7 * i, 300 - 4 * i), how));
        wanted.push_back(testing::decode_whole_jpeg(files.back(), 1));
        planes.emplace_back(wanted.back());
      }
      for (std::size_t i = 0; i < files.size(); ++i) {
        pictures.push_back(planes[i].to_decode(files[i], wanted[i].height));
      }
      const stages::failed_call decoded = decoder.decode(pictures, side);
      ASSERT_EQ(decoded.status, stages::device_ok)
          << name << ": " << decoded.name << ": " << calls->describe(decoded.status)
          << (decoded.picture ? ", picture " + std::to_string(*decoded.picture) : "");
      ASSERT_EQ(calls->finish(side), stages::device_ok);
      level_differences apart;
      for (std::size_t i = 0; i < files.size(); ++i) planes[i].compare(wanted[i], apart);
      const std::string what = std::string(use_engine ? "engine_" : "kernels_") + name;
      std::printf("nvjpeg: %s: %.3f levels on average, %d at most\n", what.c_str(), apart.mean(), apart.most);
      RecordProperty(what + "_mean_levels", std::to_string(apart.mean()));
      RecordProperty(what + "_most_levels", apart.most);
      const bool is_subsampled = how.h * how.v != 1;
      EXPECT_LE(apart.mean(), is_subsampled ? 6 : 2) << what;
      if (!is_subsampled) EXPECT_LE(apart.most, 8) << what;
    }
  }
  EXPECT_EQ(calls->free_stream(side), stages::device_ok);
}

// Everything around it as on the simulated device, where the bits are compared: here it is that planes, streams and memory fit together.
TEST_F(nvjpeg_on_a_gpu, makes_a_loaders_rows_within_a_few_levels_of_the_hosts) {
  if (const std::string why_not = calls->prepare_jpegs(); !why_not.empty()) GTEST_SKIP() << why_not;
  const watchdog dog("nvjpeg");
  std::vector<testing::fake_sample> from(150);
  for (std::size_t i = 0; i < from.size(); ++i) {
    const int n = static_cast<int>(i);
    from[i].members = {{"jpg", testing::make_jpeg(testing::make_texture(i, 80 + n, 200 - n),
                                                  {.h = 1 + n % 2, .v = 1 + n / 2 % 2, .orientation = n % 9})}};
  }
  const auto rows = [&](jpeg_decoder decoder, loader_options options) {
    options.batch_size = 70;  // more than are decoded at a time
    options.digests = false;
    options.epochs = 3;
    loader train(fake_dataset(from), options,
                 {image("jpg")
                      .random_resized_crop(64)
                      .random_flip()
                      .as(dtype::u8)
                      .as(layout::nhwc)
                      .exif_orientation()
                      .decimate(false)
                      .decoder(decoder)});
    std::vector<std::byte> all;
    for (std::uint32_t epoch = 0; epoch < options.epochs; ++epoch) {
      while (auto delivered = train.next_blocking()) {
        cudaStream_t consumer = nullptr;
        if (decoder == jpeg_decoder::nvjpeg) delivered->wait_on(consumer);
        const tensor there = (*delivered)["jpg"];
        std::vector<std::byte> copy(there.bytes());
        EXPECT_CUDA(cudaMemcpy(copy.data(), there.data, copy.size(), cudaMemcpyDefault));
        all.insert(all.end(), copy.begin(), copy.end());
      }
    }
    if (decoder == jpeg_decoder::nvjpeg) {
      EXPECT_EQ(train.stats().device.jpegs_decoded, 3 * from.size());
      EXPECT_EQ(train.stats().device.jpegs_on_host, 0U);
    }
    return all;
  };
  loader_options on_host = testing::small_options();
  on_host.device = host;
  loader_options on_device = on_host;
  on_device.device = cuda(0);
  on_device.device_required = true;
  const std::vector<std::byte> wanted = rows(jpeg_decoder::turbo, on_host);
  const std::vector<std::byte> got = rows(jpeg_decoder::nvjpeg, on_device);
  ASSERT_EQ(got.size(), wanted.size());
  level_differences apart;
  for (std::size_t i = 0; i < got.size(); ++i) {
    apart.add(std::to_integer<std::uint8_t>(got[i]), std::to_integer<std::uint8_t>(wanted[i]));
  }
  std::printf("nvjpeg: rows of 64 x 64: %.3f levels on average, %d at most\n", apart.mean(), apart.most);
  RecordProperty("rows_mean_levels", std::to_string(apart.mean()));
  EXPECT_LE(apart.mean(), 5);
}

// Last, as nobody knows what a library makes of it.
TEST_F(nvjpeg_on_a_gpu, names_the_file_that_it_refuses_or_decodes_it) {
  if (const std::string why_not = calls->prepare_jpegs(); !why_not.empty()) GTEST_SKIP() << why_not;
  stream side;
  ASSERT_EQ(calls->make_stream(side), stages::device_ok);
  const testing::rgb_picture texture = testing::make_texture(1, 200, 120);
  const std::vector<std::byte> whole = testing::make_jpeg(texture, {});
  std::vector<std::byte> without_tables = whole;  // both Huffman tables of AC are no more
  for (std::size_t i = 0; i + 4 < without_tables.size(); ++i) {
    if (without_tables[i] == std::byte{0xFF} && without_tables[i + 1] == std::byte{0xC4} &&
        (without_tables[i + 4] & std::byte{0x10}) != std::byte{0}) {
      without_tables[i + 1] = std::byte{0xFE};  // a comment
    }
  }
  std::deque<planes_there> planes;
  std::vector<stages::jpeg_on_device> pictures;
  for (const auto* file : {&whole, &std::as_const(without_tables), &whole}) {
    planes.emplace_back(texture);
    pictures.push_back(planes.back().to_decode(*file, texture.height));
  }
  const stages::failed_call decoded = calls->decode_jpegs(pictures, side);
  std::printf("nvjpeg: of a file without tables: %s\n",
              decoded.status == stages::device_ok ? "nothing" : calls->describe(decoded.status).c_str());
  if (decoded.status != stages::device_ok) {
    ASSERT_TRUE(decoded.picture) << calls->describe(decoded.status);
    EXPECT_EQ(*decoded.picture, 1U);
  }
  ASSERT_EQ(calls->finish(side), stages::device_ok);
  // The device goes on.
  ASSERT_EQ(calls->decode_jpegs({pictures.data(), 1}, side).status, stages::device_ok);
  ASSERT_EQ(calls->finish(side), stages::device_ok);
  level_differences apart;
  planes.front().compare(testing::decode_whole_jpeg(whole, 1), apart);
  EXPECT_LE(apart.mean(), 6);
  EXPECT_EQ(calls->free_stream(side), stages::device_ok);
}

}  // namespace
}  // namespace leat
