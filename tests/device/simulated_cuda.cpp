#include "tests/device/simulated_cuda.hpp"

#include "stages/device/decode_photos.hpp"
#include "stages/device/driver_cuda.hpp"
#include "stages/device/finish_pictures.hpp"
#include "stages/device/gather_rows.hpp"
#include "stages/device/prepare_pictures.hpp"
#include "stages/device/tile_pictures.hpp"

#include <cuda.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <map>
#include <mutex>
#include <utility>

// What the headers declare and we define.
struct CUctx_st {
  int device = 0;
  int retained = 0;         // by who calls the driver
  bool of_runtime = false;  // which keeps what it has made
  bool elsewhere = false;   // a green one, current to another thread
  [[nodiscard]] bool active() const { return retained > 0 || of_runtime; }
};
struct CUstream_st {
  int device = 0;
  CUctx_st* context = nullptr;  // where it is not the device's primary one
  bool capturing = false;
  bool blocking_capture = false;
  int priority = 0;
};
struct CUevent_st {
  int device = 0;
  bool timed = false;
};

namespace leat::testing::simulated_cuda {
namespace {

constexpr int device_count = 2;
constexpr std::size_t page_bytes = 4096;

struct process {
  std::mutex mutex;
  CUctx_st contexts[device_count] = {{.device = 0}, {.device = 1}};  // primary ones
  CUctx_st other = {.device = 0};
  CUctx_st green = {.device = 0, .elsewhere = true};
  std::map<std::string, cudaError_t> failing;
  std::set<std::string> hidden;  // of the driver
  std::vector<std::string> log;
  std::set<cudaStream_t> streams;
  std::set<cudaEvent_t> events;
  std::set<void*> pages;  // of the host, pinned
  bool has_pools = true;
  bool has_writes = true;
  std::uint64_t generation = 0;
};
process& all() {
  static process one;
  return one;
}

struct thread_state {
  std::uint64_t generation = 0;
  std::vector<CUctx_st*> stack;  // of the driver; the last is current
  int chosen = 0;                // by cudaSetDevice()
  cudaError_t last_error = cudaSuccess;
  cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;
};
thread_state& here() {
  thread_local thread_state state;
  if (state.generation != all().generation) {
    state = {};
    state.generation = all().generation;
  }
  return state;
}

/// Of every call that may set the thread's last error.
cudaError_t answer(cudaError_t code) {
  if (code != cudaSuccess) here().last_error = code;
  return code;
}

/// "If no CUcontext is current to the calling thread when a CUDA Runtime API call which requires an active context is made,
/// then the primary context for a device will be selected, made current to the calling thread, and initialized."
CUctx_st& need_context() {
  thread_state& thread = here();
  if (thread.stack.empty()) {
    thread.stack.push_back(&all().contexts[thread.chosen]);
    thread.stack.back()->of_runtime = true;
  }
  return *thread.stack.back();
}

/// A call of the runtime that requires a context: its device, and whether it is to fail.
class call {
 public:
  explicit call(const std::string& name) : lock_(all().mutex), context_(need_context()) {
    all().log.push_back(name + " on " + std::to_string(context_.device) +
                        (here().mode == cudaStreamCaptureModeRelaxed ? ", relaxed" : ", strict"));
    if (!context_.active()) failure_ = cudaErrorContextIsDestroyed;
    if (const auto found = all().failing.find(name); found != all().failing.end()) {
      failure_ = found->second;
      all().failing.erase(found);
    }
  }
  [[nodiscard]] int device() const { return context_.device; }
  /// For the driver's, which leave no last error.
  [[nodiscard]] cudaError_t failure() const { return failure_; }
  template <class Work>
  cudaError_t run(Work&& work) {
    return answer(failure_ != cudaSuccess ? failure_ : work());
  }

 private:
  std::lock_guard<std::mutex> lock_;
  CUctx_st& context_;
  cudaError_t failure_ = cudaSuccess;
};

bool is_default(cudaStream_t which) {
  return which == nullptr || which == cudaStreamLegacy || which == cudaStreamPerThread;
}
bool is_known(cudaStream_t which) { return is_default(which) || all().streams.contains(which); }
int device_of(cudaStream_t which, int current) { return is_default(which) ? current : which->device; }

// --- the driver, by name ------------------------------------------------------------------------------------------------

/// What a test has said that the next call of `name` answers.
CUresult next_failure(const char* name) {
  const std::lock_guard lock(all().mutex);
  const auto found = all().failing.find(name);
  if (found == all().failing.end()) return CUDA_SUCCESS;
  const auto code = static_cast<CUresult>(found->second);
  all().failing.erase(found);
  return code;
}

CUresult device_get(CUdevice* device, int ordinal) {
  *device = ordinal;
  return ordinal < device_count ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}
CUresult retain(CUcontext* context, CUdevice device) {
  if (const CUresult failed = next_failure("cuDevicePrimaryCtxRetain"); failed != CUDA_SUCCESS) return failed;
  const std::lock_guard lock(all().mutex);
  *context = &all().contexts[device];
  ++(*context)->retained;
  return CUDA_SUCCESS;
}
// "Releasing a primary context that has not been previously retained will fail with CUDA_ERROR_INVALID_CONTEXT." It pops it from
// no stack.
CUresult release(CUdevice device) {
  const std::lock_guard lock(all().mutex);
  if (all().contexts[device].retained == 0) return CUDA_ERROR_INVALID_CONTEXT;
  --all().contexts[device].retained;
  return CUDA_SUCCESS;
}
CUcontext current() { return here().stack.empty() ? nullptr : here().stack.back(); }
CUresult get_current(CUcontext* context) {
  if (const CUresult failed = next_failure("cuCtxGetCurrent"); failed != CUDA_SUCCESS) return failed;
  *context = current();
  return CUDA_SUCCESS;
}
CUresult push_current(CUcontext context) {
  if (const CUresult failed = next_failure("cuCtxPushCurrent"); failed != CUDA_SUCCESS) return failed;
  if (context->elsewhere) return CUDA_ERROR_INVALID_CONTEXT;
  here().stack.push_back(context);
  return CUDA_SUCCESS;
}
CUresult pop_current(CUcontext* context) {
  if (here().stack.empty()) return CUDA_ERROR_INVALID_CONTEXT;
  *context = here().stack.back();
  here().stack.pop_back();
  return CUDA_SUCCESS;
}
CUresult current_device(CUdevice* device) {
  if (const CUresult failed = next_failure("cuCtxGetDevice"); failed != CUDA_SUCCESS) return failed;
  if (here().stack.empty()) return CUDA_ERROR_INVALID_CONTEXT;
  *device = here().stack.back()->device;
  return CUDA_SUCCESS;
}
CUresult context_of(CUstream stream, CUcontext* context) {
  if (const CUresult failed = next_failure("cuStreamGetCtx"); failed != CUDA_SUCCESS) return failed;
  const std::lock_guard lock(all().mutex);
  if (!is_known(stream)) return CUDA_ERROR_INVALID_HANDLE;
  *context = is_default(stream)           ? current()
             : stream->context != nullptr ? stream->context
                                          : &all().contexts[stream->device];
  return CUDA_SUCCESS;
}
CUresult attribute(int* value, CUdevice_attribute which, CUdevice) {
  const std::lock_guard lock(all().mutex);
  *value = which == CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS && all().has_writes ? 1 : 0;
  return CUDA_SUCCESS;
}
CUresult write_value(CUstream, CUdeviceptr to, cuuint64_t value, unsigned) {
  call made("cuStreamWriteValue64");
  if (made.failure() == cudaSuccess) *reinterpret_cast<cuuint64_t*>(to) = value;
  return static_cast<CUresult>(made.failure());
}
CUresult host_flags(unsigned* flags, void* memory) {
  const std::lock_guard lock(all().mutex);
  const auto after = all().pages.upper_bound(memory);
  *flags = CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP;
  const bool known = after != all().pages.begin() &&
                     static_cast<std::byte*>(memory) < static_cast<std::byte*>(*std::prev(after)) + page_bytes;
  return known ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
CUresult primary_state(CUdevice device, unsigned* flags, int* active) {
  const std::lock_guard lock(all().mutex);
  *flags = 0;
  *active = all().contexts[device].active() ? 1 : 0;
  return CUDA_SUCCESS;
}
// "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED if the specified context hCtx has a stream in the capture mode."
CUresult record_context(CUcontext context, CUevent event) {
  call made("cuCtxRecordEvent");
  if (made.failure() != cudaSuccess) return static_cast<CUresult>(made.failure());
  if (!all().events.contains(event) || event->device != context->device) return CUDA_ERROR_INVALID_HANDLE;
  for (const cudaStream_t each : all().streams) {
    if (each->capturing && each->device == context->device) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  }
  return CUDA_SUCCESS;
}
CUresult event_query(CUevent) {
  call made("cuEventQuery");
  return static_cast<CUresult>(made.failure());
}

}  // namespace

void reset() {
  process& one = all();
  const std::lock_guard lock(one.mutex);
  for (CUctx_st& each : one.contexts) each = {.device = each.device};
  one.failing.clear();
  one.hidden.clear();
  one.log.clear();
  for (cudaStream_t each : one.streams) delete each;
  for (cudaEvent_t each : one.events) delete each;
  for (void* each : one.pages) std::free(each);
  one.streams.clear();
  one.events.clear();
  one.pages.clear();
  one.has_pools = one.has_writes = true;
  ++one.generation;
}

std::set<int> contexts() {
  const std::lock_guard lock(all().mutex);
  std::set<int> active;
  for (const CUctx_st& each : all().contexts) {
    if (each.active()) active.insert(each.device);
  }
  return active;
}

int retained(int device) {
  const std::lock_guard lock(all().mutex);
  return all().contexts[device].retained;
}

std::vector<int> of_this_thread() {
  std::vector<int> devices;
  for (const CUctx_st* const each : here().stack) devices.push_back(each->device);
  return devices;
}

void fail_next(std::string call, cudaError_t code) {
  const std::lock_guard lock(all().mutex);
  all().failing[std::move(call)] = code;
}

void take_away_pools() {
  const std::lock_guard lock(all().mutex);
  all().has_pools = false;
}
void take_away_writes() {
  const std::lock_guard lock(all().mutex);
  all().has_writes = false;
}

void hide(std::string symbol) {
  const std::lock_guard lock(all().mutex);
  all().hidden.insert(std::move(symbol));
}

std::vector<std::string> log() {
  const std::lock_guard lock(all().mutex);
  return all().log;
}

namespace {
cudaStream_t stream_of(CUctx_st& context) {
  const std::lock_guard lock(all().mutex);
  auto* const made = new CUstream_st{.device = context.device, .context = &context};
  all().streams.insert(made);
  return made;
}
}  // namespace

cudaStream_t stream_of_another_context() { return stream_of(all().other); }
cudaStream_t stream_of_a_green_context() { return stream_of(all().green); }

void begin_capture(cudaStream_t of, bool blocking) {
  const std::lock_guard lock(all().mutex);
  of->capturing = true;
  of->blocking_capture = blocking;
}
void end_capture(cudaStream_t of) {
  const std::lock_guard lock(all().mutex);
  of->capturing = of->blocking_capture = false;
}

}  // namespace leat::testing::simulated_cuda

// --- the driver's library -----------------------------------------------------------------------------------------------

namespace leat::stages {

void* find_in_driver(const char* symbol) noexcept {
  using namespace testing::simulated_cuda;  // NOLINT: this function stands for a library of C
  static const std::map<std::string, void*> known = {
      {"cuDeviceGet", reinterpret_cast<void*>(&device_get)},
      {"cuDevicePrimaryCtxRetain", reinterpret_cast<void*>(&retain)},
      {"cuDevicePrimaryCtxRelease_v2", reinterpret_cast<void*>(&release)},
      {"cuCtxGetCurrent", reinterpret_cast<void*>(&get_current)},
      {"cuCtxPushCurrent_v2", reinterpret_cast<void*>(&push_current)},
      {"cuCtxPopCurrent_v2", reinterpret_cast<void*>(&pop_current)},
      {"cuCtxGetDevice", reinterpret_cast<void*>(&current_device)},
      {"cuStreamGetCtx", reinterpret_cast<void*>(&context_of)},
      {"cuEventQuery", reinterpret_cast<void*>(&event_query)},
      {"cuMemHostGetFlags", reinterpret_cast<void*>(&host_flags)},
      {"cuDevicePrimaryCtxGetState", reinterpret_cast<void*>(&primary_state)},
      {"cuCtxRecordEvent", reinterpret_cast<void*>(&record_context)},
      {"cuDeviceGetAttribute", reinterpret_cast<void*>(&attribute)},
      {"cuStreamWriteValue64_v2", reinterpret_cast<void*>(&write_value)}};
  const std::lock_guard lock(all().mutex);
  const auto at = known.find(symbol);
  return at == known.end() || all().hidden.contains(symbol) ? nullptr : at->second;
}

}  // namespace leat::stages

// --- the runtime ------------------------------------------------------------------------------------------------------------

using namespace leat::testing::simulated_cuda;  // NOLINT: this file stands for a library of C

cudaError_t cudaGetLastError() { return std::exchange(here().last_error, cudaSuccess); }
cudaError_t cudaPeekAtLastError() { return here().last_error; }
const char* cudaGetErrorName(cudaError_t code) {
  return code == cudaErrorMemoryAllocation ? "cudaErrorMemoryAllocation" : "cudaErrorOther";
}
const char* cudaGetErrorString(cudaError_t) { return "in words"; }

// None of these needs a context.
cudaError_t cudaGetDeviceCount(int* count) {
  *count = device_count;
  return cudaSuccess;
}
cudaError_t cudaGetDevice(int* device) {
  *device = here().stack.empty() ? here().chosen : here().stack.back()->device;
  return cudaSuccess;
}
cudaError_t cudaDriverGetVersion(int* version) {
  *version = 13000;
  return cudaSuccess;
}
cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = 13000;
  return cudaSuccess;
}

// "Initializes the primary context for the specified device and makes it current to the calling thread."
cudaError_t cudaSetDevice(int device) {
  const std::lock_guard lock(all().mutex);
  thread_state& thread = here();
  thread.chosen = device;
  if (thread.stack.empty()) thread.stack.push_back(nullptr);
  thread.stack.back() = &all().contexts[device];
  thread.stack.back()->of_runtime = true;
  return cudaSuccess;
}

cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
  call made("cudaThreadExchangeStreamCaptureMode");
  return made.run([&] {
    std::swap(*mode, here().mode);
    return cudaSuccess;
  });
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  call made("cudaGetDeviceProperties");
  return made.run([&] {
    *properties = {};
    std::strncpy(properties->name, device == 0 ? "first" : "second", sizeof properties->name - 1);
    return cudaSuccess;
  });
}
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr which, int) {
  call made("cudaDeviceGetAttribute");
  return made.run([&] {
    *value = which == cudaDevAttrComputeCapabilityMajor                    ? 9
             : which == cudaDevAttrMemoryPoolsSupported && all().has_pools ? 1
                                                                           : 0;
    return cudaSuccess;
  });
}
cudaError_t cudaMemGetInfo(std::size_t* free_bytes, std::size_t* bytes) {
  call made("cudaMemGetInfo");
  return made.run([&] {
    *free_bytes = 1;
    *bytes = 2;
    return cudaSuccess;
  });
}
cudaError_t cudaDeviceGetPCIBusId(char* address, int bytes, int) {
  call made("cudaDeviceGetPCIBusId");
  return made.run([&] {
    std::strncpy(address, "0000:17:00.0", static_cast<std::size_t>(bytes) - 1);
    return cudaSuccess;
  });
}
cudaError_t cudaMalloc(void** memory, std::size_t bytes) {
  call made("cudaMalloc");
  return made.run([&] {
    *memory = std::malloc(bytes);
    return cudaSuccess;
  });
}
cudaError_t cudaMemPoolCreate(cudaMemPool_t* pool, const cudaMemPoolProps* properties) {
  call made("cudaMemPoolCreate");
  return made.run([&] {
    *pool = reinterpret_cast<cudaMemPool_t>(std::uintptr_t{1} + static_cast<unsigned>(properties->location.id));
    return cudaSuccess;
  });
}
cudaError_t cudaMemPoolDestroy(cudaMemPool_t) {
  call made("cudaMemPoolDestroy");
  return made.run([] { return cudaSuccess; });
}
cudaError_t cudaMallocFromPoolAsync(void** memory, std::size_t bytes, cudaMemPool_t, cudaStream_t) {
  call made("cudaMallocFromPoolAsync");
  return made.run([&] {
    *memory = std::malloc(bytes);
    return cudaSuccess;
  });
}
cudaError_t cudaFreeAsync(void* memory, cudaStream_t) {
  call made("cudaFreeAsync");
  return made.run([&] {
    std::free(memory);
    return cudaSuccess;
  });
}
cudaError_t cudaHostAlloc(void** memory, std::size_t bytes, unsigned flags) {
  call made("cudaHostAlloc");
  return made.run([&] {
    if (flags != (cudaHostAllocPortable | cudaHostAllocMapped)) return cudaErrorInvalidValue;
    *memory = std::aligned_alloc(page_bytes, bytes);
    all().pages.insert(*memory);
    return cudaSuccess;
  });
}
cudaError_t cudaFree(void* memory) {
  call made("cudaFree");
  return made.run([&] {
    std::free(memory);
    return cudaSuccess;
  });
}
cudaError_t cudaHostRegister(void*, std::size_t, unsigned flags) {
  call made("cudaHostRegister");
  return made.run([&] { return (flags & cudaHostRegisterPortable) != 0 ? cudaSuccess : cudaErrorInvalidValue; });
}
cudaError_t cudaHostUnregister(void*) {
  call made("cudaHostUnregister");
  return made.run([] { return cudaSuccess; });
}
cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  call made("cudaDeviceGetStreamPriorityRange");
  return made.run([&] {
    *least = 0;
    *greatest = leat::testing::simulated_cuda::greatest_priority;
    return cudaSuccess;
  });
}
cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int priority) {
  call made("cudaStreamCreateWithPriority");
  return made.run([&] {
    *stream = *all().streams.insert(new CUstream_st{.device = made.device(), .priority = priority}).first;
    return flags == cudaStreamNonBlocking ? cudaSuccess : cudaErrorInvalidValue;
  });
}
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  call made("cudaStreamCreateWithFlags");
  return made.run([&] {
    *stream = *all().streams.insert(new CUstream_st{.device = made.device()}).first;
    return flags == cudaStreamNonBlocking ? cudaSuccess : cudaErrorInvalidValue;
  });
}
cudaError_t cudaStreamGetPriority(cudaStream_t stream, int* priority) {
  call made("cudaStreamGetPriority");
  return made.run([&] {
    *priority = stream->priority;
    return cudaSuccess;
  });
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  call made("cudaStreamDestroy");
  return made.run([&] {
    if (all().streams.erase(stream) == 0) return cudaErrorInvalidResourceHandle;
    delete stream;
    return cudaSuccess;
  });
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  call made("cudaStreamSynchronize");
  return made.run([&] { return is_known(stream) ? cudaSuccess : cudaErrorInvalidResourceHandle; });
}
cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  call made("cudaStreamIsCapturing");
  return made.run([&] {
    *status = cudaStreamCaptureStatusNone;
    if (!is_known(stream)) return cudaErrorInvalidResourceHandle;
    if (stream == nullptr || stream == cudaStreamLegacy) {
      for (const cudaStream_t each : all().streams) {
        if (each->blocking_capture && each->device == made.device()) return cudaErrorStreamCaptureImplicit;
      }
    }
    if (!is_default(stream) && stream->capturing) *status = cudaStreamCaptureStatusActive;
    return cudaSuccess;
  });
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t, unsigned) {
  call made("cudaStreamWaitEvent");
  return made.run([&] {
    if (!is_known(stream)) return cudaErrorInvalidResourceHandle;
    return !is_default(stream) && stream->capturing ? cudaErrorStreamCaptureIsolation : cudaSuccess;
  });
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  call made("cudaEventCreateWithFlags");
  return made.run([&] {
    *event = *all().events.insert(new CUevent_st{.device = made.device(), .timed = flags == cudaEventDefault}).first;
    return flags == cudaEventDefault ||
                   (flags | cudaEventBlockingSync) == (cudaEventDisableTiming | cudaEventBlockingSync)
               ? cudaSuccess
               : cudaErrorInvalidValue;
  });
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  call made("cudaEventDestroy");
  return made.run([&] {
    if (all().events.erase(event) == 0) return cudaErrorInvalidResourceHandle;
    delete event;
    return cudaSuccess;
  });
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  call made("cudaEventRecord");
  return made.run([&] {
    if (!is_known(stream) || !all().events.contains(event)) return cudaErrorInvalidResourceHandle;
    if (stream == nullptr || stream == cudaStreamLegacy) {
      for (const cudaStream_t each : all().streams) {
        if (each->blocking_capture && each->device == made.device()) return cudaErrorStreamCaptureImplicit;
      }
    }
    return event->device == device_of(stream, made.device()) ? cudaSuccess : cudaErrorInvalidResourceHandle;
  });
}
cudaError_t cudaEventElapsedTime(float* ms, cudaEvent_t from, cudaEvent_t to) {
  call made("cudaEventElapsedTime");
  return made.run([&] {
    if (!all().events.contains(from) || !all().events.contains(to)) return cudaErrorInvalidResourceHandle;
    *ms = 1.5F;
    return from->timed && to->timed ? cudaSuccess : cudaErrorInvalidResourceHandle;
  });
}
cudaError_t cudaEventSynchronize(cudaEvent_t) {
  call made("cudaEventSynchronize");
  return made.run([] { return cudaSuccess; });
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind, cudaStream_t) {
  call made("cudaMemcpyAsync");
  return made.run([&] {
    std::memcpy(to, from, bytes);
    return cudaSuccess;
  });
}

cudaError_t cudaMemcpy2DAsync(void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch,
                              std::size_t width, std::size_t height, cudaMemcpyKind, cudaStream_t) {
  call made("cudaMemcpy2DAsync");
  return made.run([&] {
    if (width > to_pitch || width > from_pitch) return cudaErrorInvalidPitchValue;
    for (std::size_t row = 0; row < height; ++row) {
      std::memcpy(static_cast<std::byte*>(to) + row * to_pitch, static_cast<const std::byte*>(from) + row * from_pitch,
                  width);
    }
    return cudaSuccess;
  });
}

// --- the kernels ------------------------------------------------------------------------------------------------------------

namespace leat::stages {

int load_finish_pictures() noexcept {
  call made("load_finish_pictures");
  return made.run([] { return cudaSuccess; });
}
int launch_finish_pictures(const picture_batch&, stream) noexcept {
  call made("launch_finish_pictures");
  return made.run([] { return cudaSuccess; });
}
int load_prepare_pictures() noexcept {
  call made("load_prepare_pictures");
  return made.run([] { return cudaSuccess; });
}
int launch_prepare_pictures(const picture_preparation&, stream) noexcept {
  call made("launch_prepare_pictures");
  return made.run([] { return cudaSuccess; });
}
int load_decode_photos() noexcept {
  call made("load_decode_photos");
  return made.run([] { return cudaSuccess; });
}
int launch_decode_photos(const photo_batch&, stream) noexcept {
  call made("launch_decode_photos");
  return made.run([] { return cudaSuccess; });
}
int load_tile_pictures() noexcept {
  call made("load_tile_pictures");
  return made.run([] { return cudaSuccess; });
}
int launch_tile_pictures(const tiled_batch&, stream) noexcept {
  call made("launch_tile_pictures");
  return made.run([] { return cudaSuccess; });
}
int load_gather_rows() noexcept {
  call made("load_gather_rows");
  return made.run([] { return cudaSuccess; });
}
int launch_gather_rows(const gathered_pieces&, stream) noexcept {
  call made("launch_gather_rows");
  return made.run([] { return cudaSuccess; });
}

}  // namespace leat::stages
