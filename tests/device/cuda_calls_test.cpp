// The table that CUDA fills, on a simulated CUDA: whose contexts it makes, and what it leaves behind on a trainer's threads.
#include "stages/device/decode_photos.hpp"
#include "stages/device/device.hpp"
#include "stages/device/finish_pictures.hpp"
#include "stages/device/gather_rows.hpp"
#include "stages/device/open_device.hpp"
#include "stages/device/prepare_pictures.hpp"
#include "stages/device/tile_pictures.hpp"
#include "tests/device/simulated_cuda.hpp"

#include <leat/error.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace leat::stages {
namespace {

namespace simulated = testing::simulated_cuda;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// What open_device() calls one after another, in a context of the device or to get there.
constexpr const char* ways_to_fail[] = {
    "cuDevicePrimaryCtxRetain", "cuCtxGetCurrent",      "cuCtxPushCurrent",      "cudaThreadExchangeStreamCaptureMode",
    "cudaGetDeviceProperties",  "load_finish_pictures", "load_prepare_pictures", "load_decode_photos",
    "load_tile_pictures",       "load_gather_rows"};

class cuda_table : public ::testing::Test {
 protected:
  void TearDown() override { simulated::reset(); }

  static std::shared_ptr<device_calls> open(int index) {
    opened_device opened = open_device(cuda(index));
    EXPECT_NE(opened.calls, nullptr) << opened.why_not;
    return std::move(opened.calls);
  }

  /// Each call once, in an order in which all can be made. `around` gets the CUDA call behind each, and makes it.
  static void make_every_call(device_calls& calls,
                              const std::function<void(const char*, std::function<device_status()>)>& around) {
    std::array<std::byte, 64> host{};
    std::byte* memory = nullptr;
    stream side;
    device_event event = device_event::none;
    device_event timed = device_event::none;
    std::int64_t elapsed_ns = 0;
    stream_facts told;
    const picture_batch none;
    const picture_preparation nothing;
    const photo_batch no_photos;
    const tiled_batch no_tiles;
    const gathered_pieces no_pieces{};
    std::atomic<std::uint64_t>* word = nullptr;
    around("cudaStreamCreateWithPriority", [&] { return calls.make_stream(side); });
    around("cudaMallocFromPoolAsync", [&] { return calls.take_memory(64, memory, side); });
    around("cudaHostRegister", [&] { return calls.pin(host); });
    around("cudaHostAlloc", [&] { return calls.take_word(word); });
    around("cuStreamWriteValue64", [&] { return calls.write(*word, 7, side); });
    EXPECT_EQ(word->load(), 7U);
    static_cast<void>(calls.free_word(word));
    around("cudaEventCreateWithFlags", [&] { return calls.make_event(event); });
    around("cudaEventCreateWithFlags", [&] { return calls.make_timed_event(timed); });
    around("cudaMemcpyAsync", [&] { return calls.copy(memory, host.data(), host.size(), side); });
    around("cudaMemcpyAsync", [&] { return calls.copy_within(memory, memory + 16, 16, side); });
    around("cudaMemcpy2DAsync", [&] { return calls.copy_rows(memory, host.data(), 32, 16, 2, side); });
    around("launch_finish_pictures", [&] { return calls.launch(finish_pictures_kernel, &none, side); });
    around("launch_prepare_pictures", [&] { return calls.launch(prepare_pictures_kernel, &nothing, side); });
    around("launch_decode_photos", [&] { return calls.launch(decode_photos_kernel, &no_photos, side); });
    around("launch_tile_pictures", [&] { return calls.launch(tile_pictures_kernel, &no_tiles, side); });
    around("launch_gather_rows", [&] { return calls.launch(gather_rows_kernel, &no_pieces, side); });
    around("cudaEventRecord", [&] { return calls.record(event, side); });
    around("cudaStreamWaitEvent", [&] { return calls.wait(side, event); });
    around("cudaStreamIsCapturing", [&] { return calls.look_at(side, told); });
    around("cuEventQuery", [&] { return calls.query(event); });
    around("cudaEventElapsedTime", [&] { return calls.elapsed_ns(timed, timed, elapsed_ns); });
    EXPECT_EQ(elapsed_ns, 1'500'000);
    around("cudaEventSynchronize", [&] { return calls.synchronize(event); });
    around("cudaStreamSynchronize", [&] { return calls.finish(side); });
    around("cudaEventDestroy", [&] { return calls.free_event(event); });
    static_cast<void>(calls.free_event(timed));
    around("cudaFreeAsync", [&] { return calls.free_memory(memory, side); });
    around("cudaStreamDestroy", [&] { return calls.free_stream(side); });
    around("cudaHostUnregister", [&] { return calls.unpin(host); });
    static_cast<void>(calls.facts());
  }
  static void make_every_call(device_calls& calls) {
    make_every_call(calls, [](const char* name, const std::function<device_status()>& call) {
      EXPECT_EQ(call(), device_ok) << name;
    });
  }
};

// A context takes some hundred MB of a GPU and shows up in nvidia-smi: on one that belongs to somebody else, say.
TEST_F(cuda_table, makes_no_context_on_a_device_that_nobody_asked_for) {
  std::shared_ptr<device_calls> calls;
  std::thread([&] { calls = open(1); }).join();
  EXPECT_EQ(simulated::contexts(), std::set<int>{1});
  std::thread([&] {
    make_every_call(*calls);
    EXPECT_THAT(simulated::of_this_thread(), IsEmpty()) << "as it was before";
  }).join();
  EXPECT_EQ(simulated::contexts(), std::set<int>{1});
}

// Nor where a call fails, or what is made around each: the context that was pushed is popped, and the thread's mode of captures
// is its own again.
TEST_F(cuda_table, leaves_a_thread_as_it_was_where_calls_fail) {
  const std::shared_ptr<device_calls> calls = open(1);
  for (const bool around : {false, true}) {
    std::thread([&] {
      make_every_call(*calls, [&](const char* name, const std::function<device_status()>& call) {
        simulated::fail_next(around ? "cudaThreadExchangeStreamCaptureMode" : name, cudaErrorMemoryAllocation);
        EXPECT_EQ(call(), static_cast<device_status>(cudaErrorMemoryAllocation)) << name;
        EXPECT_THAT(simulated::of_this_thread(), IsEmpty()) << name;
        EXPECT_EQ(cudaPeekAtLastError(), cudaSuccess) << name;
        EXPECT_EQ(call(), device_ok) << name;
        EXPECT_THAT(simulated::of_this_thread(), IsEmpty()) << name;
      });
      cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
      EXPECT_EQ(cudaThreadExchangeStreamCaptureMode(&mode), cudaSuccess);
      EXPECT_EQ(mode, cudaStreamCaptureModeGlobal);
    }).join();
  }
}

// Two loaders on two GPUs, called in turn from one thread, which has chosen one of them.
TEST_F(cuda_table, keeps_the_calls_of_two_gpus_apart_on_one_thread) {
  const std::shared_ptr<device_calls> tables[] = {open(0), open(1)};
  ASSERT_EQ(cudaSetDevice(1), cudaSuccess);
  stream sides[2];
  device_event events[2] = {};
  for (const int device : {0, 1}) {
    ASSERT_EQ(tables[device]->make_stream(sides[device]), device_ok);
    ASSERT_EQ(tables[device]->make_event(events[device]), device_ok);
  }
  for (int round = 0; round < 3; ++round) {
    for (const int device : {0, 1}) EXPECT_EQ(tables[device]->record(events[device], sides[device]), device_ok);
  }
  std::vector<std::string> records;
  for (const std::string& each : simulated::log()) {
    if (each.starts_with("cudaEventRecord")) records.push_back(each);
  }
  EXPECT_THAT(records, ElementsAre(HasSubstr("on 0"), HasSubstr("on 1"), HasSubstr("on 0"), HasSubstr("on 1"),
                                   HasSubstr("on 0"), HasSubstr("on 1")));
  EXPECT_THAT(simulated::of_this_thread(), ElementsAre(1));
}

TEST_F(cuda_table, leaves_a_trainers_thread_the_device_that_it_has_chosen) {
  const std::shared_ptr<device_calls> calls = open(1);
  for (const int chosen : {0, 1}) {
    ASSERT_EQ(cudaSetDevice(chosen), cudaSuccess);
    make_every_call(*calls);
    int now = -1;
    ASSERT_EQ(cudaGetDevice(&now), cudaSuccess);
    EXPECT_EQ(now, chosen);
    EXPECT_THAT(simulated::of_this_thread(), ElementsAre(chosen));
  }
}

TEST_F(cuda_table, makes_each_call_on_its_device_and_whatever_is_being_captured) {
  const std::shared_ptr<device_calls> calls = open(1);
  ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
  make_every_call(*calls);
  for (const std::string& each : simulated::log()) {
    if (each.starts_with("cudaThreadExchangeStreamCaptureMode")) continue;
    EXPECT_THAT(each, HasSubstr(" on 1, relaxed"));
  }
  cudaStreamCaptureMode mode = cudaStreamCaptureModeThreadLocal;
  ASSERT_EQ(cudaThreadExchangeStreamCaptureMode(&mode), cudaSuccess);
  EXPECT_EQ(mode, cudaStreamCaptureModeGlobal) << "the thread's own is back";
}

TEST_F(cuda_table, leaves_no_last_error_for_a_trainer_to_find) {
  const std::shared_ptr<device_calls> calls = open(1);
  make_every_call(*calls, [](const char* name, const std::function<device_status()>& call) {
    simulated::fail_next(name, cudaErrorMemoryAllocation);
    EXPECT_EQ(call(), static_cast<device_status>(cudaErrorMemoryAllocation)) << name;
    EXPECT_EQ(cudaPeekAtLastError(), cudaSuccess) << name;
    EXPECT_EQ(call(), device_ok) << name;
  });
}

TEST_F(cuda_table, leaves_a_trainer_its_own_last_error) {
  const std::shared_ptr<device_calls> calls = open(1);
  simulated::fail_next("cudaMalloc", cudaErrorMemoryAllocation);
  void* memory = nullptr;
  ASSERT_NE(cudaMalloc(&memory, 1), cudaSuccess);
  make_every_call(*calls);
  EXPECT_EQ(cudaGetLastError(), cudaErrorMemoryAllocation);
}

TEST_F(cuda_table, says_that_an_event_has_not_fired_and_leaves_no_error_of_it) {
  const std::shared_ptr<device_calls> calls = open(0);
  device_event event = device_event::none;
  ASSERT_EQ(calls->make_event(event), device_ok);
  simulated::fail_next("cuEventQuery", cudaErrorNotReady);
  EXPECT_EQ(calls->query(event), device_not_ready);
  EXPECT_EQ(cudaPeekAtLastError(), cudaSuccess);
  // Nor is the trainer's taken away: ready() asks on its thread.
  simulated::fail_next("cudaMalloc", cudaErrorMemoryAllocation);
  void* memory = nullptr;
  ASSERT_NE(cudaMalloc(&memory, 1), cudaSuccess);
  simulated::fail_next("cuEventQuery", cudaErrorNotReady);
  EXPECT_EQ(calls->query(event), device_not_ready);
  EXPECT_EQ(cudaGetLastError(), cudaErrorMemoryAllocation);
}

// Where streams share the hardware's queues, that of the batches is not to stand behind a step.
TEST_F(cuda_table, makes_streams_of_the_greatest_priority) {
  const std::shared_ptr<device_calls> calls = open(0);
  stream side;
  ASSERT_EQ(calls->make_stream(side), device_ok);
  int priority = 0;
  ASSERT_EQ(cudaStreamGetPriority(side.handle(), &priority), cudaSuccess);
  EXPECT_EQ(priority, simulated::greatest_priority);
  simulated::fail_next("cudaDeviceGetStreamPriorityRange", cudaErrorInvalidDevice);
  EXPECT_EQ(calls->make_stream(side), cudaErrorInvalidDevice);
}

// An event can be waited for across contexts, and recorded in its own only.
TEST_F(cuda_table, tells_a_stream_of_another_context_of_its_gpu) {
  const std::shared_ptr<device_calls> calls = open(0);
  stream own;
  ASSERT_EQ(calls->make_stream(own), device_ok);
  stream_facts told;
  ASSERT_EQ(calls->look_at(own, told), device_ok);
  EXPECT_FALSE(told.foreign_context);
  ASSERT_EQ(calls->look_at(stream(simulated::stream_of_another_context()), told), device_ok);
  EXPECT_EQ(told.device, 0);
  EXPECT_TRUE(told.foreign_context);
}

// A green context can be current to one thread only: while it is another's nobody else can ask whose it is.
TEST_F(cuda_table, tells_a_stream_of_a_green_context_that_another_thread_has) {
  const std::shared_ptr<device_calls> calls = open(0);
  ASSERT_EQ(cudaSetDevice(1), cudaSuccess);
  stream_facts told;
  ASSERT_EQ(calls->look_at(stream(simulated::stream_of_a_green_context()), told), device_ok);
  EXPECT_EQ(told.device, 0);
  EXPECT_TRUE(told.foreign_context);
  EXPECT_THAT(simulated::of_this_thread(), ElementsAre(1));
  EXPECT_EQ(cudaPeekAtLastError(), cudaSuccess);
}

TEST_F(cuda_table, tells_a_stream_of_another_gpu) {
  const std::shared_ptr<device_calls> first = open(0);
  const std::shared_ptr<device_calls> second = open(1);
  stream of_first;
  ASSERT_EQ(first->make_stream(of_first), device_ok);
  ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
  stream_facts told;
  ASSERT_EQ(second->look_at(of_first, told), device_ok);
  EXPECT_EQ(told.device, 0);
  ASSERT_EQ(first->look_at(of_first, told), device_ok);
  EXPECT_EQ(told.device, 0);
  for (const stream own : {stream(), stream(cudaStreamLegacy), stream(cudaStreamPerThread)}) {
    ASSERT_EQ(second->look_at(own, told), device_ok);
    EXPECT_EQ(told.device, 1) << "the default streams of the loader's device, whatever the thread has chosen";
  }
  EXPECT_THAT(simulated::of_this_thread(), ElementsAre(0));
}

TEST_F(cuda_table, tells_a_stream_that_is_being_captured_or_kept_from_use_by_one) {
  const std::shared_ptr<device_calls> calls = open(0);
  stream captured;
  ASSERT_EQ(calls->make_stream(captured), device_ok);
  stream_facts told;
  for (const bool blocking : {false, true}) {
    simulated::begin_capture(captured.handle(), blocking);
    ASSERT_EQ(calls->look_at(captured, told), device_ok);
    EXPECT_TRUE(told.capturing);
    ASSERT_EQ(calls->look_at(stream(), told), device_ok);
    EXPECT_FALSE(told.capturing);
    EXPECT_EQ(told.captured_beside, blocking);
    EXPECT_EQ(cudaPeekAtLastError(), cudaSuccess);
    device_event event = device_event::none;
    ASSERT_EQ(calls->make_event(event), device_ok);
    EXPECT_EQ(calls->record(event, stream()), blocking ? device_captured_beside : device_ok);
    EXPECT_EQ(cudaPeekAtLastError(), cudaSuccess);
    ASSERT_EQ(calls->free_event(event), device_ok);
    simulated::end_capture(captured.handle());
    ASSERT_EQ(calls->look_at(captured, told), device_ok);
    EXPECT_FALSE(told.capturing);
  }
}

// Whatever of it fails, on a thread that has this device, another one or none.
TEST_F(cuda_table, says_that_a_stream_cannot_be_looked_at_and_leaves_the_thread_as_it_was) {
  const std::shared_ptr<device_calls> calls = open(0);
  const stream foreign = simulated::stream_of_another_context();
  for (const int chosen : {-1, 0, 1}) {
    std::thread([&] {
      if (chosen >= 0) EXPECT_EQ(cudaSetDevice(chosen), cudaSuccess);
      const std::vector<int> before = simulated::of_this_thread();
      for (const char* call : {"cudaStreamIsCapturing", "cuStreamGetCtx", "cuCtxPushCurrent", "cuCtxGetDevice"}) {
        simulated::fail_next(call, cudaErrorContextIsDestroyed);
        stream_facts told;
        const device_status status = calls->look_at(foreign, told);
        EXPECT_EQ(status, static_cast<device_status>(cudaErrorContextIsDestroyed)) << call;
        EXPECT_TRUE(calls->is_lost(status));
        EXPECT_EQ(simulated::of_this_thread(), before) << call;
        EXPECT_EQ(cudaPeekAtLastError(), cudaSuccess) << call;
        EXPECT_EQ(calls->look_at(foreign, told), device_ok) << call;
      }
    }).join();
  }
}

TEST_F(cuda_table, leaves_a_trainer_its_own_last_error_where_a_stream_is_being_captured) {
  const std::shared_ptr<device_calls> calls = open(0);
  stream captured;
  ASSERT_EQ(calls->make_stream(captured), device_ok);
  simulated::begin_capture(captured.handle());
  simulated::fail_next("cudaMalloc", cudaErrorMemoryAllocation);
  void* memory = nullptr;
  ASSERT_NE(cudaMalloc(&memory, 1), cudaSuccess);
  stream_facts told;
  ASSERT_EQ(calls->look_at(captured, told), device_ok);
  EXPECT_TRUE(told.capturing);
  EXPECT_EQ(cudaGetLastError(), cudaErrorMemoryAllocation);
}

std::vector<std::string> logged(const char* call) {
  std::vector<std::string> found;
  for (const std::string& each : simulated::log()) {
    if (each.starts_with(call)) found.push_back(each);
  }
  return found;
}

// A trainer's copies from host memory may go to any of them.
TEST_F(cuda_table, records_an_event_behind_all_that_every_gpu_in_use_was_asked_for) {
  const std::shared_ptr<device_calls> calls = open(1);
  device_event event = device_event::none;
  ASSERT_EQ(calls->make_event(event), device_ok);
  ASSERT_EQ(calls->record_all(event), device_ok);
  EXPECT_THAT(logged("cuCtxRecordEvent"), ElementsAre("cuCtxRecordEvent on 1, relaxed"));
  EXPECT_THAT(logged("cudaEventRecord"), IsEmpty());
  EXPECT_EQ(simulated::contexts(), std::set<int>{1}) << "the other one is nobody's here";

  ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
  ASSERT_EQ(calls->record_all(event), device_ok);
  EXPECT_THAT(logged("cuCtxRecordEvent"), ElementsAre(HasSubstr("on 1"), HasSubstr("on 1"), HasSubstr("on 0")));
  EXPECT_EQ(logged("cudaStreamWaitEvent").size(), 2U) << "for both";
  EXPECT_EQ(logged("cudaEventRecord").size(), 1U) << "behind both";
  EXPECT_EQ(logged("cudaEventDestroy").size(), 1U);
  EXPECT_EQ(simulated::retained(0), 0);
  EXPECT_THAT(simulated::of_this_thread(), ElementsAre(0));
}

TEST_F(cuda_table, tells_what_of_recording_behind_all_has_failed_and_leaves_the_thread_as_it_was) {
  const std::shared_ptr<device_calls> calls = open(1);
  device_event event = device_event::none;
  ASSERT_EQ(calls->make_event(event), device_ok);
  ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
  for (const char* call :
       {"cuCtxPushCurrent", "cuCtxRecordEvent", "cudaStreamCreateWithFlags", "cuDevicePrimaryCtxRetain",
        "cudaEventCreateWithFlags", "cudaStreamWaitEvent", "cudaEventRecord", "cudaEventDestroy"}) {
    simulated::fail_next(call, cudaErrorMemoryAllocation);
    EXPECT_EQ(calls->record_all(event), static_cast<device_status>(cudaErrorMemoryAllocation)) << call;
    EXPECT_EQ(cudaPeekAtLastError(), cudaSuccess) << call;
    EXPECT_THAT(simulated::of_this_thread(), ElementsAre(0)) << call;
    EXPECT_EQ(simulated::retained(0), 0) << call;
  }
  for (const int device : {0, 1}) {
    const std::shared_ptr<device_calls> its = open(device);
    stream captured;
    ASSERT_EQ(its->make_stream(captured), device_ok);
    simulated::begin_capture(captured.handle());
    EXPECT_EQ(calls->record_all(event), device_captured_beside) << device;
    simulated::end_capture(captured.handle());
    EXPECT_EQ(calls->record_all(event), device_ok) << device;
  }
}

TEST_F(cuda_table, pins_in_a_context_that_is_there) {
  const auto index_there = [] {
    const opened_device opened = open_for_pinning();
    EXPECT_NE(opened.calls, nullptr) << opened.why_not;
    return opened.calls != nullptr ? opened.calls->where().index : -1;
  };
  std::thread([&] { EXPECT_EQ(index_there(), 0) << "CUDA's own choice"; }).join();
  simulated::reset();
  std::thread([] { EXPECT_EQ(cudaSetDevice(1), cudaSuccess); }).join();
  EXPECT_EQ(index_there(), 1) << "the one that the process uses";
  EXPECT_EQ(simulated::contexts(), std::set<int>{1});
  ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
  EXPECT_EQ(index_there(), 0) << "the thread's";
  EXPECT_THAT(logged("load_"), IsEmpty()) << "no kernels";
}

TEST_F(cuda_table, pins_nothing_where_the_driver_cannot_tell_when_copies_have_ended) {
  for (const char* missing : {"cuCtxRecordEvent", "cuDevicePrimaryCtxGetState"}) {
    simulated::hide(missing);
    const opened_device opened = open_for_pinning();
    EXPECT_EQ(opened.calls, nullptr) << missing;
    EXPECT_THAT(opened.why_not, HasSubstr("12.5"));
    EXPECT_NE(open_device(cuda(0)).calls, nullptr) << "batches may go to it";
    simulated::reset();
  }
  simulated::fail_next("cuDevicePrimaryCtxRetain", cudaErrorMemoryAllocation);
  EXPECT_THAT(open_for_pinning().why_not, HasSubstr("making a context on cuda:0"));
}

TEST_F(cuda_table, knows_the_default_stream_of_each_thread) {
  const std::shared_ptr<device_calls> calls = open(0);
  EXPECT_TRUE(calls->is_of_thread(cudaStreamPerThread));
  EXPECT_FALSE(calls->is_of_thread(stream()));
  EXPECT_FALSE(calls->is_of_thread(cudaStreamLegacy));
}

TEST_F(cuda_table, of_a_device_that_cannot_be_used_says_why) {
  for (const char* call : ways_to_fail) {
    simulated::fail_next(call, cudaErrorMemoryAllocation);
    const opened_device opened = open_device(cuda(1));
    EXPECT_EQ(opened.calls, nullptr) << call;
    EXPECT_THAT(opened.why_not, HasSubstr("cuda:1"));
    EXPECT_THAT(opened.why_not, HasSubstr("cudaErrorMemoryAllocation"));
    EXPECT_EQ(cudaPeekAtLastError(), cudaSuccess);
  }
  EXPECT_THROW(static_cast<void>(open_device(cuda(2))), error);
}

// A context takes its memory of the GPU as long as anybody retains it. It is taken down after it has left the thread's stack: a
// call in one that is gone would fail, and leave the thread's mode of captures as ours.
TEST_F(cuda_table, of_a_device_that_cannot_be_used_keeps_no_context) {
  for (const char* call : ways_to_fail) {
    simulated::fail_next(call, cudaErrorMemoryAllocation);
    EXPECT_EQ(open_device(cuda(1)).calls, nullptr);
    EXPECT_EQ(simulated::retained(1), 0) << call;
    EXPECT_THAT(simulated::contexts(), IsEmpty()) << call;
    EXPECT_THAT(simulated::of_this_thread(), IsEmpty()) << call;
    EXPECT_EQ(cudaPeekAtLastError(), cudaSuccess) << call;
  }
  // Nor does it take the context from who has it: a loader's, which is kept, or the trainer's.
  const std::shared_ptr<device_calls> calls = open(1);
  EXPECT_EQ(simulated::retained(1), 1);
  ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
  for (const int device : {0, 1}) {
    simulated::fail_next("load_finish_pictures", cudaErrorMemoryAllocation);
    EXPECT_EQ(open_device(cuda(device)).calls, nullptr);
    EXPECT_EQ(simulated::retained(device), device);
    EXPECT_THAT(simulated::of_this_thread(), ElementsAre(0));
  }
  EXPECT_EQ(simulated::contexts(), (std::set<int>{0, 1}));
  make_every_call(*calls);
  cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
  ASSERT_EQ(cudaThreadExchangeStreamCaptureMode(&mode), cudaSuccess);
  EXPECT_EQ(mode, cudaStreamCaptureModeGlobal);
}

TEST_F(cuda_table, of_a_driver_that_lacks_a_function_says_which) {
  for (const char* symbol : {"cuDevicePrimaryCtxRetain", "cuCtxPushCurrent_v2", "cuStreamGetCtx"}) {
    simulated::reset();
    simulated::hide(symbol);
    const opened_device opened = open_device(cuda(1));
    EXPECT_EQ(opened.calls, nullptr);
    EXPECT_THAT(opened.why_not, HasSubstr(std::string("looking for ") + symbol + " in the driver for cuda:1"));
    EXPECT_THAT(simulated::contexts(), IsEmpty());
  }
}

TEST_F(cuda_table, says_what_to_do_about_what_a_user_meets) {
  const std::shared_ptr<device_calls> calls = open(0);
  struct {
    cudaError_t code;
    const char* what;
  } const remedies[] = {{cudaErrorMemoryAllocation,
                         "the device is full: lower loader_options::batch_size, loader_options::device_batches or "
                         "loader_options::device_bytes_max"},
                        {cudaErrorInitializationError, "was CUDA in use before fork()?"},
                        {cudaErrorStubLibrary, "take its `stubs` folder off LD_LIBRARY_PATH"},
                        {cudaErrorUnsupportedPtxVersion, "install a newer driver"},
                        {cudaErrorOperatingSystem, "/dev/nvidia-uvm"},
                        {cudaErrorSystemNotReady, "systemctl status nvidia-fabricmanager"},
                        {cudaErrorSystemDriverMismatch, "after an update restart the machine"},
                        {cudaErrorCompatNotSupportedOnDevice, "take its `compat` folder off LD_LIBRARY_PATH"},
                        {cudaErrorMpsConnectionFailed, "is nvidia-cuda-mps-control running"},
                        {cudaErrorMpsClientTerminated, "its server.log says why"},
                        {cudaErrorContextIsDestroyed, "end all loaders and batches before that"},
                        {cudaErrorLaunchTimeout, "a GPU with a display"},
                        {cudaErrorIllegalAddress, "compute-sanitizer says which"},
                        {cudaErrorHardwareStackError, "compute-sanitizer says which"},
                        {cudaErrorECCUncorrectable, "dmesg | grep Xid"},
                        {cudaErrorNvlinkUncorrectable, "dmesg | grep Xid"}};
  for (const auto& [code, what] : remedies) {
    EXPECT_THAT(calls->describe(static_cast<device_status>(code)), HasSubstr(what)) << static_cast<int>(code);
  }
}

// After any of these codes the process has to be started again: none is without a sentence.
TEST_F(cuda_table, says_what_to_do_about_every_loss) {
  const std::shared_ptr<device_calls> calls = open(0);
  int lost = 0;
  for (device_status code = 1; code < 1000; ++code) {
    if (!calls->is_lost(code)) continue;
    ++lost;
    EXPECT_THAT(calls->describe(code), HasSubstr("; ")) << code;
  }
  EXPECT_EQ(lost, 16);
}

TEST_F(cuda_table, tells_a_device_that_is_full_from_a_call_that_fails) {
  const std::shared_ptr<device_calls> calls = open(0);
  simulated::fail_next("cudaMallocFromPoolAsync", cudaErrorMemoryAllocation);
  std::byte* memory = nullptr;
  EXPECT_TRUE(calls->is_full(calls->take_memory(64, memory, {})));
  simulated::fail_next("cudaMallocFromPoolAsync", cudaErrorInvalidValue);
  EXPECT_FALSE(calls->is_full(calls->take_memory(64, memory, {})));
}

// cudaFree() waits for the whole GPU, and a training step with it.
TEST_F(cuda_table, takes_memory_of_a_pool_of_its_own_and_waits_for_nothing_when_it_is_freed) {
  std::shared_ptr<device_calls> calls = open(0);
  stream side;
  ASSERT_EQ(calls->make_stream(side), device_ok);
  std::byte* memory[2] = {};
  for (std::byte*& each : memory) ASSERT_EQ(calls->take_memory(64, each, side), device_ok);
  for (std::byte* each : memory) ASSERT_EQ(calls->free_memory(each, side), device_ok);
  calls = nullptr;
  const std::vector<std::string> log = simulated::log();
  const auto count_of = [&](const std::string& name) {
    return std::count_if(log.begin(), log.end(),
                         [&](const std::string& each) { return each.rfind(name + " ", 0) == 0; });
  };
  EXPECT_EQ(count_of("cudaMemPoolCreate"), 1);
  EXPECT_EQ(count_of("cudaMallocFromPoolAsync"), 2);
  EXPECT_EQ(count_of("cudaFreeAsync"), 2);
  EXPECT_EQ(count_of("cudaMemPoolDestroy"), 1);
  for (const char* const waits : {"cudaFree", "cudaFreeHost", "cudaStreamSynchronize", "cudaDeviceSynchronize"}) {
    EXPECT_EQ(count_of(waits), 0) << waits;
  }
}

TEST_F(cuda_table, waits_for_the_stream_before_it_frees_memory_where_a_gpu_has_no_pools) {
  for (const bool refused : {false, true}) {
    SCOPED_TRACE(refused);
    simulated::reset();
    if (refused) simulated::fail_next("cudaMemPoolCreate", cudaErrorNotSupported);
    if (!refused) simulated::take_away_pools();
    const std::shared_ptr<device_calls> calls = open(0);
    stream side;
    ASSERT_EQ(calls->make_stream(side), device_ok);
    std::byte* memory = nullptr;
    ASSERT_EQ(calls->take_memory(64, memory, side), device_ok);
    EXPECT_EQ(cudaPeekAtLastError(), cudaSuccess);
    ASSERT_EQ(calls->free_memory(memory, side), device_ok);
    std::vector<std::string> log = simulated::log();
    std::erase_if(log, [](const std::string& each) { return each.rfind("cudaThreadExchange", 0) == 0; });
    ASSERT_GE(log.size(), 3U);
    EXPECT_THAT(log[log.size() - 3], HasSubstr("cudaMalloc on 0"));
    EXPECT_THAT(log[log.size() - 2], HasSubstr("cudaStreamSynchronize"));
    EXPECT_THAT(log[log.size() - 1], HasSubstr("cudaFree on 0"));
  }
}

TEST_F(cuda_table, gives_no_word_where_streams_cannot_write_one) {
  const auto word_of = [](device_calls& calls) {
    std::atomic<std::uint64_t>* word = nullptr;
    EXPECT_EQ(calls.take_word(word), device_ok);
    return word;
  };
  {
    const std::shared_ptr<device_calls> calls = open(0);
    EXPECT_NE(word_of(*calls), nullptr);
    simulated::take_away_writes();
    EXPECT_EQ(word_of(*calls), nullptr);
  }
  simulated::reset();
  simulated::hide("cuStreamWriteValue64_v2");
  EXPECT_EQ(word_of(*open(0)), nullptr) << "a driver from before CUDA 11.7";
}

// To free one would wait for the GPU. After cudaDeviceReset() those from before are gone.
TEST_F(cuda_table, keeps_words_for_the_next_loader_unless_the_device_was_reset) {
  const std::shared_ptr<device_calls> calls = open(0);
  std::atomic<std::uint64_t>* first = nullptr;
  std::atomic<std::uint64_t>* second = nullptr;
  ASSERT_EQ(calls->take_word(first), device_ok);
  ASSERT_EQ(calls->write(*first, 5, {}), device_ok);
  ASSERT_EQ(calls->free_word(first), device_ok);
  ASSERT_EQ(calls->take_word(second), device_ok);
  EXPECT_EQ(second, first);
  EXPECT_EQ(second->load(), 0U);
  ASSERT_EQ(calls->free_word(second), device_ok);
  simulated::reset();  // its pages are freed
  const std::shared_ptr<device_calls> again = open(0);
  ASSERT_EQ(again->take_word(first), device_ok);
  EXPECT_EQ(first->load(), 0U);
  EXPECT_EQ(cudaPeekAtLastError(), cudaSuccess);
  ASSERT_EQ(again->free_word(first), device_ok);
}

// What is pinned is the host's, where the same codes mean something else.
TEST_F(cuda_table, says_what_to_do_about_memory_that_cannot_be_pinned) {
  const std::shared_ptr<device_calls> calls = open(0);
  for (const cudaError_t code : {cudaErrorMemoryAllocation, cudaErrorOperatingSystem}) {
    const std::string said = calls->describe_pinning(static_cast<device_status>(code));
    EXPECT_THAT(said, HasSubstr("the host's memory could not be locked: `ulimit -l`"));
    EXPECT_THAT(said, ::testing::Not(HasSubstr("device")));
  }
  EXPECT_THAT(calls->describe_pinning(cudaErrorHostMemoryAlreadyRegistered),
              HasSubstr("something else in this process"));
  EXPECT_THAT(calls->describe_pinning(cudaErrorIllegalAddress), HasSubstr("compute-sanitizer says which"));
}

TEST_F(cuda_table, lists_what_cannot_be_used_beside_what_can) {
  simulated::fail_next("cuDevicePrimaryCtxRetain", cudaErrorDevicesUnavailable);  // of the first that is tried
  const device_list found = list_devices();
  ASSERT_EQ(found.devices.size(), 1U);
  EXPECT_EQ(found.devices[0]->where(), cuda(1));
  ASSERT_EQ(found.unusable.size(), 1U);
  EXPECT_EQ(found.unusable[0].which, cuda(0));
  EXPECT_THAT(found.unusable[0].why, HasSubstr("making a context on cuda:0"));
  EXPECT_THAT(found.unusable[0].why, HasSubstr("another process has the device to itself"));
  EXPECT_EQ(found.why_not, "");
}

TEST_F(cuda_table, lists_why_none_can_be_used) {
  simulated::hide("cuEventQuery");
  const device_list found = list_devices();
  EXPECT_THAT(found.devices, IsEmpty());
  EXPECT_EQ(found.unusable.size(), 2U);
  EXPECT_THAT(found.why_not, HasSubstr("cuEventQuery"));
}

TEST_F(cuda_table, lists_every_device_with_what_it_says_of_itself) {
  const device_list found = list_devices();
  ASSERT_EQ(found.devices.size(), 2U);
  EXPECT_THAT(found.unusable, IsEmpty());
  EXPECT_EQ(found.devices[1]->name(), "second");
  const device_facts told = found.devices[1]->facts();
  EXPECT_EQ(told.capability, 90);
  EXPECT_EQ(told.pci_address, "0000:17:00.0");
  EXPECT_EQ(told.memory_bytes, 2U);
}

}  // namespace
}  // namespace leat::stages
