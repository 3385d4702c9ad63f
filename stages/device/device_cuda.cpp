// The table of a device's functions, filled by CUDA's runtime. Each is one call, in the device's own context whatever thread it
// comes from, which finds its own again; what they mean stands in device.hpp. A third of the file is the table of what a person can do
// about each of CUDA's errors.

// What a null stream means to leat is not what the project that builds it says (--default-stream per-thread).
#undef CUDA_API_PER_THREAD_DEFAULT_STREAM

#include "base/mutex.hpp"
#include "base/option_words.hpp"
#include "base/text.hpp"
#include "stages/device/driver_cuda.hpp"
#include "stages/device/kernels_cuda.hpp"
#include "stages/device/nvjpeg.hpp"
#include "stages/device/open_device.hpp"

#include <leat/error.hpp>

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <cmath>
#include <memory>
#include <new>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

namespace leat::stages {
namespace {

/// What of CUDA's driver the runtime has no like of: a thread's contexts. By name, so that a binary runs without a driver.
struct driver_calls {
  decltype(&cuDeviceGet) device_of = nullptr;
  decltype(&cuDevicePrimaryCtxRetain) retain = nullptr;
  decltype(&cuDevicePrimaryCtxRelease) release = nullptr;
  decltype(&cuCtxGetCurrent) current = nullptr;
  decltype(&cuCtxPushCurrent) push = nullptr;
  decltype(&cuCtxPopCurrent) pop = nullptr;
  decltype(&cuCtxGetDevice) current_device = nullptr;
  decltype(&cuStreamGetCtx) context_of = nullptr;
  decltype(&cuEventQuery) query = nullptr;
  // Not of every driver: null where they are not there.
  decltype(&cuDeviceGetAttribute) attribute = nullptr;
  decltype(&cuStreamWriteValue64) write_value = nullptr;
  decltype(&cuMemHostGetFlags) host_flags = nullptr;
  decltype(&cuDevicePrimaryCtxGetState) primary_state = nullptr;
  CUresult (*record_context)(CUcontext, CUevent) = nullptr;  // cuCtxRecordEvent, in headers from CUDA 12.5 on
};

// By the names that the driver exports, where an older function may have the name without a version. All are as old as
// CUDA 11.0, and none is one of those that a default stream of threads changes.
struct driver_symbol {
  const char* name;
  void (*found_at)(driver_calls& all, void* address);
};
template <auto member>
void found_at(driver_calls& all, void* address) {
  all.*member = reinterpret_cast<std::remove_reference_t<decltype(all.*member)>>(address);
}
constexpr driver_symbol driver_symbols[] = {{"cuDeviceGet", found_at<&driver_calls::device_of>},
                                            {"cuDevicePrimaryCtxRetain", found_at<&driver_calls::retain>},
                                            {"cuDevicePrimaryCtxRelease_v2", found_at<&driver_calls::release>},
                                            {"cuCtxGetCurrent", found_at<&driver_calls::current>},
                                            {"cuCtxPushCurrent_v2", found_at<&driver_calls::push>},
                                            {"cuCtxPopCurrent_v2", found_at<&driver_calls::pop>},
                                            {"cuCtxGetDevice", found_at<&driver_calls::current_device>},
                                            {"cuStreamGetCtx", found_at<&driver_calls::context_of>},
                                            {"cuEventQuery", found_at<&driver_calls::query>}};

// By the name of its second version, which needs no leave of the driver's administrator (CUDA 11.7).
constexpr driver_symbol newer_driver_symbols[] = {
    {"cuDeviceGetAttribute", found_at<&driver_calls::attribute>},
    {"cuStreamWriteValue64_v2", found_at<&driver_calls::write_value>},
    {"cuMemHostGetFlags", found_at<&driver_calls::host_flags>},
    {"cuDevicePrimaryCtxGetState", found_at<&driver_calls::primary_state>},
    {"cuCtxRecordEvent", found_at<&driver_calls::record_context>}};

/// The first that has to be there and is not; null where all are.
const char* find(driver_calls& all) noexcept {
  for (const driver_symbol& each : driver_symbols) {
    void* const address = find_in_driver(each.name);
    if (address == nullptr) return each.name;
    each.found_at(all, address);
  }
  for (const driver_symbol& each : newer_driver_symbols) {
    if (void* const address = find_in_driver(each.name)) each.found_at(all, address);
  }
  return nullptr;
}

// The driver's codes are the runtime's, by number.
cudaError_t as_runtime(CUresult code) noexcept { return static_cast<cudaError_t>(code); }

/// The primary context of a device, which the driver makes for the first who retains it, and takes down with the last who
/// releases it. Released when this ends, unless kept: by then it is on no stack of ours.
class primary_context {
 public:
  primary_context(const driver_calls& driver, int index) noexcept : driver_(driver) {
    status_ = as_runtime(driver.device_of(&device_, index));
    if (status_ == cudaSuccess) status_ = as_runtime(driver.retain(&context_, device_));
  }
  primary_context(const primary_context&) = delete;
  primary_context& operator=(const primary_context&) = delete;
  ~primary_context() {
    if (status_ == cudaSuccess && !kept_) static_cast<void>(driver_.release(device_));
  }

  [[nodiscard]] cudaError_t status() const noexcept { return status_; }
  [[nodiscard]] CUcontext get() const noexcept { return context_; }
  /// For as long as the process lives, as the runtime keeps its own.
  void keep() noexcept { kept_ = true; }

 private:
  const driver_calls& driver_;
  CUdevice device_ = 0;
  CUcontext context_ = nullptr;
  cudaError_t status_ = cudaSuccess;
  bool kept_ = false;
};

bool is_in_use(const driver_calls& driver, int index) noexcept {
  CUdevice device = 0;
  unsigned flags = 0;
  int active = 0;
  return driver.device_of(&device, index) == CUDA_SUCCESS &&
         driver.primary_state(device, &flags, &active) == CUDA_SUCCESS && active != 0;
}

/// A context as the calling thread's for a while. Not by cudaSetDevice(): to go back to "the device before" would make a
/// context on the first GPU where the thread had none at all, which cudaGetDevice() does not tell, and takes some hundred MB
/// there. Nor does a capture that the trainer has begun, in the mode that forbids others most calls, concern ours: none of
/// them touches a stream that is being captured.
class in_context {
 public:
  in_context(const driver_calls& driver, CUcontext context) noexcept : driver_(driver) {
    CUcontext before = nullptr;
    status_ = as_runtime(driver_.current(&before));
    if (status_ != cudaSuccess) return;
    if (before != context) {
      status_ = as_runtime(driver_.push(context));
      pushed_ = status_ == cudaSuccess;
    }
    if (status_ == cudaSuccess) status_ = cudaThreadExchangeStreamCaptureMode(&capture_);
    exchanged_ = status_ == cudaSuccess;
  }
  in_context(const in_context&) = delete;
  in_context& operator=(const in_context&) = delete;
  ~in_context() {
    if (exchanged_) static_cast<void>(cudaThreadExchangeStreamCaptureMode(&capture_));
    CUcontext ours = nullptr;
    if (pushed_) static_cast<void>(driver_.pop(&ours));
  }

  /// What fails is told by what this returns, and by nothing else: a trainer that asks for its thread's last error means its
  /// own calls.
  template <class Call>
  device_status run(Call&& call) const noexcept {
    const cudaError_t status = status_ == cudaSuccess ? call() : status_;
    if (status != cudaSuccess) static_cast<void>(cudaGetLastError());
    return static_cast<device_status>(status);
  }

 private:
  const driver_calls& driver_;
  cudaStreamCaptureMode capture_ = cudaStreamCaptureModeRelaxed;  // the thread's own, in between
  cudaError_t status_ = cudaSuccess;
  bool pushed_ = false;
  bool exchanged_ = false;
};

cudaEvent_t native(device_event event) noexcept { return reinterpret_cast<cudaEvent_t>(event); }

// Codes that the headers of CUDA 12 do not have.
constexpr int error_contained = 226;           // cudaErrorContained
constexpr int error_tensor_memory_leak = 721;  // cudaErrorTensorMemoryLeak

/// What a person can do about it; empty where that is not known.
std::string remedy(cudaError_t code) {
  switch (static_cast<int>(code)) {
    case cudaErrorMemoryAllocation:
      return str_cat("; the device is full: lower ", spelled(option_id::batch_size), ", ",
                     spelled(option_id::device_batches), " or ", spelled(option_id::device_bytes_max),
                     ", or see with nvidia-smi who has it");
    case cudaErrorInsufficientDriver:
    case cudaErrorCallRequiresNewerDriver:
      return "; this build needs a newer NVIDIA driver, or is there none?";
    case cudaErrorStubLibrary:
      return "; its libcuda.so.1 is the CUDA toolkit's stub: take its `stubs` folder off LD_LIBRARY_PATH";
    case cudaErrorInitializationError:
      return "; was CUDA in use before fork()? A child can use it only after exec, as a process that is spawned";
    case cudaErrorNoDevice:
      return "; is the driver loaded, and CUDA_VISIBLE_DEVICES not empty?";
    case cudaErrorDeviceNotLicensed:
      return "; this virtual GPU has no licence: `nvidia-smi -q` and the log of nvidia-gridd say why";
    case cudaErrorNoKernelImageForDevice:
      return "; this build has no code for this GPU: it was built for certain ones (LEAT_CUDA_ARCHITECTURES, native "
             "say), or this one is older than compute capability 8.0";
    case cudaErrorUnsupportedPtxVersion:
    case cudaErrorJitCompilerNotFound:
    case cudaErrorJitCompilationDisabled:
      return "; this build has no machine code for this GPU, and the driver cannot make it: install a newer driver, "
             "or build with -DLEAT_CUDA_ARCHITECTURES=native";
    case cudaErrorDevicesUnavailable:
    case cudaErrorDeviceAlreadyInUse:
      return "; another process has the device to itself (`nvidia-smi -q -d COMPUTE` says its mode)";
    case cudaErrorSharedObjectSymbolNotFound:
      return "; its libcuda.so.1 is older than this build, or none of NVIDIA's";
    case cudaErrorInvalidResourceHandle:
      return "; does the stream belong to another GPU, or has it been destroyed?";
    case cudaErrorOperatingSystem:
      return "; the kernel refused the driver something: are /dev/nvidia* and /dev/nvidia-uvm here, in a container "
             "too? dmesg may say more";
    case cudaErrorSystemNotReady:
      return "; GPUs joined by NVSwitch wait for the fabric manager: `systemctl status nvidia-fabricmanager`, which "
             "has to be of the driver's version";
    case cudaErrorSystemDriverMismatch:
      return "; the driver in the kernel (/proc/driver/nvidia/version) and libcuda.so.1 are of different versions: "
             "after an update restart the machine; in a container take the host's library";
    case cudaErrorCompatNotSupportedOnDevice:
      return "; this GPU cannot use the forward compatibility package: take its `compat` folder off LD_LIBRARY_PATH, "
             "or install a newer driver";
    case cudaErrorMpsConnectionFailed:
    case cudaErrorMpsRpcFailure:
    case cudaErrorMpsServerNotReady:
      return "; the MPS server does not answer: is nvidia-cuda-mps-control running, by the same user, and "
             "CUDA_MPS_PIPE_DIRECTORY the same?";
    case cudaErrorMpsMaxClientsReached:
    case cudaErrorMpsMaxConnectionsReached:
      return "; the MPS server has as many clients as it takes: end some, or use fewer processes";
    case cudaErrorMpsClientTerminated:
      return "; the MPS server has ended this process, as it does when another of its clients fails: its server.log "
             "says why; start the process again";
    case cudaErrorContextIsDestroyed:
      return "; somebody has called cudaDeviceReset() or destroyed the context: end all loaders and batches before "
             "that";
    case cudaErrorLaunchTimeout:
      return "; a kernel of this process ran for longer than a GPU with a display lets it, and the GPU is lost to "
             "it: make it shorter, or use another GPU";
    case cudaErrorECCUncorrectable:
    case cudaErrorNvlinkUncorrectable:
    case error_contained:
    case cudaErrorExternalDevice:
      return "; the hardware has failed and the GPU is lost to this process: `dmesg | grep Xid` says how; start it "
             "again, and if it fails again have the GPU reset or replaced";
    case cudaErrorIllegalAddress:
    case cudaErrorIllegalInstruction:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorHardwareStackError:
    case cudaErrorLaunchFailure:
    case cudaErrorMisalignedAddress:
    case cudaErrorAssert:
    case error_tensor_memory_leak:
      return "; a kernel of this process has failed and the GPU is lost to it: compute-sanitizer says which";
    default:
      return "";
  }
}

/// The same for cudaHostRegister, where it is the host that has too little.
std::string remedy_of_pinning(cudaError_t code) {
  switch (code) {
    case cudaErrorMemoryAllocation:
    case cudaErrorOperatingSystem:
      return str_cat(
          "; the host's memory could not be locked: `ulimit -l` and the limit of the container say how much may "
          "be, and a smaller ",
          spelled(option_id::batch_size), " or ", spelled(option_id::prefetch_batches), " needs less");
    case cudaErrorHostMemoryAlreadyRegistered:
      return "; something else in this process has registered memory of the loader's with CUDA, and should not";
    case cudaErrorNotSupported:
    case cudaErrorNotPermitted:
      return "; this machine does not let a process pin memory of its own";
    default:
      return remedy(code);
  }
}

std::string in_words(cudaError_t code, std::string_view what_to_do) {
  return str_cat(cudaGetErrorString(code), " (", cudaGetErrorName(code), ")", what_to_do);
}
std::string in_words(cudaError_t code) { return in_words(code, remedy(code)); }

/// Words of pinned memory that any GPU can write to. They are kept for the next loader and never freed, which would wait for the GPU.
class pinned_words {
 public:
  using word = std::atomic<std::uint64_t>;

  /// In a context. 0 at first.
  cudaError_t take(const driver_calls& driver, word*& taken) noexcept {
    const mutex_lock lock(mutex_);
    unsigned flags = 0;
    while (!free_.empty()) {
      taken = free_.back();
      free_.pop_back();
      // Else gone with cudaDeviceReset().
      if (driver.host_flags(&flags, taken) == CUDA_SUCCESS) {
        taken->store(0);
        return cudaSuccess;
      }
    }
    taken = nullptr;
    void* page = nullptr;
    const cudaError_t status = cudaHostAlloc(&page, page_bytes, cudaHostAllocPortable | cudaHostAllocMapped);
    if (status != cudaSuccess) return status;
    try {
      free_.reserve(free_.size() + page_bytes / apart_bytes);
    } catch (const std::bad_alloc&) {
      return cudaErrorMemoryAllocation;
    }
    for (std::size_t at = 0; at < page_bytes; at += apart_bytes) {
      free_.push_back(::new (static_cast<std::byte*>(page) + at) word(0));
    }
    taken = free_.back();
    free_.pop_back();
    return cudaSuccess;
  }
  // take() has made room.
  void give_back(word* taken) noexcept {
    const mutex_lock lock(mutex_);
    free_.push_back(taken);
  }

 private:
  static constexpr std::size_t page_bytes = 4096;
  static constexpr std::size_t apart_bytes = 64;  // a cache line, which the GPU writes whole

  mutex mutex_;
  std::vector<word*> free_ ABSL_GUARDED_BY(mutex_);
};

pinned_words& all_words() {
  static auto* const all = new pinned_words;  // as long as the process, as the memory
  return *all;
}

/// Thread: any, as CUDA's runtime.
class cuda_calls final : public device_calls {
 public:
  cuda_calls(int index, std::string name, const driver_calls& driver, CUcontext context)
      : index_(index), name_(std::move(name)), driver_(driver), context_(context) {}
  // What was freed in the order of a stream may not have been reached: the pool goes when it has.
  ~cuda_calls() override {
    if (jpegs_ != nullptr) {
      const in_context its = here();
      jpegs_.reset();
    }
    if (pool_ != nullptr) static_cast<void>(here().run([&] { return cudaMemPoolDestroy(pool_); }));
    if (gathering_ != nullptr) static_cast<void>(here().run([&] { return cudaStreamDestroy(gathering_); }));
  }

  [[nodiscard]] device where() const noexcept override { return cuda(index_); }
  [[nodiscard]] std::string name() const override { return name_; }
  [[nodiscard]] std::string describe(device_status code) const override {
    if (std::string words = describe_nvjpeg(code); !words.empty()) return words;
    return in_words(static_cast<cudaError_t>(code));
  }
  [[nodiscard]] std::string describe_pinning(device_status code) const override {
    return in_words(static_cast<cudaError_t>(code), remedy_of_pinning(static_cast<cudaError_t>(code)));
  }
  // "The only way to continue using CUDA is to terminate and relaunch the process", say the runtime's pages of these.
  [[nodiscard]] bool is_lost(device_status code) const noexcept override {
    switch (code) {
      case cudaErrorIllegalAddress:
      case cudaErrorIllegalInstruction:
      case cudaErrorInvalidAddressSpace:
      case cudaErrorInvalidPc:
      case cudaErrorMisalignedAddress:
      case cudaErrorHardwareStackError:
      case cudaErrorLaunchFailure:
      case cudaErrorLaunchTimeout:
      case cudaErrorAssert:
      case cudaErrorECCUncorrectable:
      case cudaErrorNvlinkUncorrectable:
      case cudaErrorContextIsDestroyed:  // cudaDeviceReset() by the trainer, with all that we had there
      case cudaErrorMpsClientTerminated:
      case cudaErrorExternalDevice:
      case error_contained:
      case error_tensor_memory_leak:
        return true;
      default:  // cudaErrorUnknown, too, which promises nothing
        return false;
    }
  }
  [[nodiscard]] bool is_full(device_status code) const noexcept override { return code == cudaErrorMemoryAllocation; }
  // What one of them does not say is left out.
  [[nodiscard]] device_facts facts() const override {
    device_facts facts;
    const in_context here(driver_, context_);
    here.run([&] { return cudaDriverGetVersion(&facts.driver_cuda); });
    here.run([&] { return cudaRuntimeGetVersion(&facts.runtime_cuda); });
    int major = 0;
    int minor = 0;
    here.run([&] { return cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, index_); });
    here.run([&] { return cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, index_); });
    facts.capability = 10 * major + minor;
    here.run([&] { return cudaMemGetInfo(&facts.memory_free_bytes, &facts.memory_bytes); });
    char address[32] = {};
    if (here.run([&] { return cudaDeviceGetPCIBusId(address, sizeof address, index_); }) == device_ok) {
      facts.pci_address = address;
    }
    return facts;
  }

  device_status take_memory(std::size_t bytes, std::byte*& memory, stream in) noexcept override {
    void* taken = nullptr;
    const device_status status = here().run([&] {
      const cudaMemPool_t pool = find_pool();
      return pool != nullptr ? cudaMallocFromPoolAsync(&taken, bytes, pool, in.handle()) : cudaMalloc(&taken, bytes);
    });
    memory = static_cast<std::byte*>(taken);
    return status;
  }
  device_status free_memory(std::byte* memory, stream in) noexcept override {
    return here().run([&] {
      if (find_pool() != nullptr) return cudaFreeAsync(memory, in.handle());
      const cudaError_t passed = cudaStreamSynchronize(in.handle());
      return passed == cudaSuccess ? cudaFree(memory) : passed;
    });
  }
  // Portable: other GPUs of the process may read it by DMA too.
  device_status pin(std::span<std::byte> memory) noexcept override {
    return here().run([&] { return cudaHostRegister(memory.data(), memory.size(), cudaHostRegisterPortable); });
  }
  device_status unpin(std::span<std::byte> memory) noexcept override {
    return here().run([&] { return cudaHostUnregister(memory.data()); });
  }
  device_status make_stream(stream& made) noexcept override {
    cudaStream_t handle = nullptr;
    const device_status status = here().run([&] {
      int least = 0;
      int greatest = 0;  // the lower number; both are 0 on a device without priorities
      const cudaError_t range = cudaDeviceGetStreamPriorityRange(&least, &greatest);
      return range == cudaSuccess ? cudaStreamCreateWithPriority(&handle, cudaStreamNonBlocking, greatest) : range;
    });
    made = handle;
    return status;
  }
  device_status free_stream(stream made) noexcept override {
    return here().run([&] { return cudaStreamDestroy(made.handle()); });
  }
  device_status make_event(device_event& made) noexcept override {
    cudaEvent_t handle = nullptr;
    const device_status status =
        here().run([&] { return cudaEventCreateWithFlags(&handle, cudaEventDisableTiming | cudaEventBlockingSync); });
    made = static_cast<device_event>(reinterpret_cast<std::uintptr_t>(handle));
    return status;
  }
  device_status make_stream_event(device_event& made) noexcept override {
    cudaEvent_t handle = nullptr;
    const device_status status = here().run([&] { return cudaEventCreateWithFlags(&handle, cudaEventDisableTiming); });
    made = static_cast<device_event>(reinterpret_cast<std::uintptr_t>(handle));
    return status;
  }
  device_status make_timed_event(device_event& made) noexcept override {
    cudaEvent_t handle = nullptr;
    const device_status status = here().run([&] { return cudaEventCreateWithFlags(&handle, cudaEventDefault); });
    made = static_cast<device_event>(reinterpret_cast<std::uintptr_t>(handle));
    return status;
  }
  device_status free_event(device_event made) noexcept override {
    return here().run([&] { return cudaEventDestroy(native(made)); });
  }
  // Unified addressing: the device writes to it by the host's address.
  device_status take_word(std::atomic<std::uint64_t>*& word) noexcept override {
    word = nullptr;
    int can_write = 0;
    CUdevice device = 0;
    const bool has_calls =
        driver_.attribute != nullptr && driver_.write_value != nullptr && driver_.host_flags != nullptr &&
        driver_.device_of(&device, index_) == CUDA_SUCCESS &&
        driver_.attribute(&can_write, CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS, device) == CUDA_SUCCESS;
    if (!has_calls || can_write == 0) return device_ok;
    return here().run([&] { return all_words().take(driver_, word); });
  }
  device_status free_word(const std::atomic<std::uint64_t>* word) noexcept override {
    all_words().give_back(const_cast<std::atomic<std::uint64_t>*>(word));
    return device_ok;
  }
  [[nodiscard]] std::string prepare_jpegs() override {
    if (jpegs_ != nullptr) return {};
    std::string why_not;
    const std::optional<found_nvjpeg> found = find_nvjpeg(why_not);
    if (!found) return why_not;
    const in_context its = here();  // of its end, too
    const device_status entered = its.run([] { return cudaSuccess; });
    auto made = std::make_unique<nvjpeg_decoder>(*this, found->functions);
    const failed_call failed = entered != device_ok ? failed_call{entered, "nvjpegCreateEx"} : made->open();
    if (failed.status != device_ok) {
      return str_cat(failed.name, " of ", found->from, " on ", name_, ": ", describe(failed.status));
    }
    jpegs_ = std::move(made);
    return {};
  }
  device_status finish(stream in) noexcept override {
    return here().run([&] { return cudaStreamSynchronize(in.handle()); });
  }

  device_status copy(std::byte* to, const std::byte* from, std::size_t bytes, stream in) noexcept override {
    return here().run([&] { return cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, in.handle()); });
  }
  device_status copy_rows(std::byte* to, const std::byte* from, std::size_t stride, std::size_t row_bytes,
                          std::uint32_t rows, stream in) noexcept override {
    return here().run([&] {
      return cudaMemcpy2DAsync(to, stride, from, stride, row_bytes, rows, cudaMemcpyHostToDevice, in.handle());
    });
  }
  device_status copy_within(std::byte* to, const std::byte* from, std::size_t bytes, stream in) noexcept override {
    return here().run([&] { return cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, in.handle()); });
  }
  device_status launch(const device_kernel& kernel, const void* arguments, stream in) noexcept override {
    return here().run([&] {
      for (const cuda_kernel& each : all_kernels()) {
        if (each.which == &kernel) return static_cast<cudaError_t>(each.launch(arguments, in));
      }
      return cudaErrorInvalidDeviceFunction;
    });
  }
  [[nodiscard]] failed_call decode_jpegs(std::span<const jpeg_on_device> pictures, stream in) noexcept override {
    if (jpegs_ == nullptr) return device_calls::decode_jpegs(pictures, in);
    failed_call failed;
    const device_status entered = here().run([&] {
      failed = jpegs_->decode(pictures, in);
      return cudaSuccess;
    });
    if (entered != device_ok) return {entered, "making the device's context the thread's"};
    return failed;
  }
  device_status write(const std::atomic<std::uint64_t>& word, std::uint64_t value, stream in) noexcept override {
    return here().run([&] {
      const auto address = static_cast<CUdeviceptr>(reinterpret_cast<std::uintptr_t>(&word));
      return as_runtime(driver_.write_value(in.handle(), address, value, CU_STREAM_WRITE_VALUE_DEFAULT));
    });
  }
  device_status wait(stream in, device_event fired) noexcept override {
    return here().run([&] { return cudaStreamWaitEvent(in.handle(), native(fired), 0); });
  }
  device_status record(device_event fires, stream in) noexcept override {
    const device_status status = here().run([&] { return cudaEventRecord(native(fires), in.handle()); });
    return status == cudaErrorStreamCaptureImplicit ? device_captured_beside : status;
  }
  [[nodiscard]] bool can_record_all() const noexcept override {
    return driver_.record_context != nullptr && driver_.primary_state != nullptr;
  }
  // Where other GPUs are in use, a stream of ours waits for an event of each, and the event is recorded there.
  device_status record_all(device_event fires) noexcept override {
    const auto record_here = [&] { return as_runtime(driver_.record_context(context_, native(fires))); };
    device_status status = here().run(record_here);
    int count = 0;
    if (status == device_ok) status = here().run([&] { return cudaGetDeviceCount(&count); });
    bool gathers = false;
    for (int i = 0; i < count && status == device_ok; ++i) {
      if (i == index_ || !is_in_use(driver_, i)) continue;
      if (!std::exchange(gathers, true)) status = gather(native(fires));
      if (status == device_ok) status = gather_from(i);
    }
    if (gathers && status == device_ok) {
      status = here().run([&] { return cudaEventRecord(native(fires), gathering_); });
    }
    const bool captured = status == cudaErrorStreamCaptureUnsupported || status == cudaErrorStreamCaptureImplicit ||
                          status == cudaErrorStreamCaptureInvalidated;
    return captured ? device_captured_beside : status;
  }
  // By its context: cudaStreamGetDevice() is of CUDA 12.8, and a destroyed stream is undefined for either.
  device_status look_at(stream which, stream_facts& facts) noexcept override {
    return here().run([&] {
      facts = {.device = index_};
      cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
      cudaError_t status = cudaStreamIsCapturing(which.handle(), &capture);
      // The default stream, while one that waits for it is being captured.
      facts.captured_beside = status == cudaErrorStreamCaptureImplicit;
      facts.capturing = capture != cudaStreamCaptureStatusNone;
      if (status != cudaSuccess && facts.captured_beside) static_cast<void>(cudaGetLastError());
      if (facts.capturing || facts.captured_beside) return cudaSuccess;
      if (status != cudaSuccess) return status;
      CUcontext its = nullptr;
      status = as_runtime(driver_.context_of(which.handle(), &its));
      if (status != cudaSuccess || its == context_) return status;
      facts.foreign_context = true;
      status = as_runtime(driver_.push(its));
      // A green context is one thread's at a time, and may be another's now. It is not ours, which is enough to know.
      if (status != cudaSuccess) return is_lost(status) ? status : cudaSuccess;
      CUdevice device = 0;
      status = as_runtime(driver_.current_device(&device));
      static_cast<void>(driver_.pop(&its));
      facts.device = device;
      return status;
    });
  }
  [[nodiscard]] bool is_of_thread(stream which) const noexcept override {
    return which.handle() == cudaStreamPerThread;
  }
  device_status query(device_event fired) noexcept override {
    // The driver's: the runtime's "not ready" would take the place of an error that the trainer has yet to ask for.
    bool waiting = false;
    const device_status status = here().run([&] {
      const cudaError_t code = as_runtime(driver_.query(native(fired)));
      waiting = code == cudaErrorNotReady;
      return waiting ? cudaSuccess : code;
    });
    return waiting ? device_not_ready : status;
  }
  device_status elapsed_ns(device_event from, device_event to, std::int64_t& ns) noexcept override {
    float ms = 0;
    const device_status status = here().run([&] { return cudaEventElapsedTime(&ms, native(from), native(to)); });
    ns = std::llround(static_cast<double>(ms) * 1e6);
    return status;
  }
  device_status synchronize(device_event fired) noexcept override {
    return here().run([&] { return cudaEventSynchronize(native(fired)); });
  }

 private:
  // The default streams are those of the thread's device; the others know theirs, which costs nothing to say.
  [[nodiscard]] in_context here() const noexcept { return {driver_, context_}; }

  /// What is put into gathering_ waits for `event`.
  [[nodiscard]] device_status gather(cudaEvent_t event) noexcept {
    return here().run([&] {
      if (gathering_ == nullptr) {
        const cudaError_t made = cudaStreamCreateWithFlags(&gathering_, cudaStreamNonBlocking);
        if (made != cudaSuccess) return made;
      }
      return cudaStreamWaitEvent(gathering_, event, 0);
    });
  }
  /// And for all that another GPU was asked for.
  [[nodiscard]] device_status gather_from(int other) noexcept {
    const primary_context its(driver_, other);
    if (its.status() != cudaSuccess) return static_cast<device_status>(its.status());
    const in_context there(driver_, its.get());
    cudaEvent_t passed = nullptr;
    device_status status = there.run([&] { return cudaEventCreateWithFlags(&passed, cudaEventDisableTiming); });
    if (status != device_ok) return status;
    status = there.run([&] { return as_runtime(driver_.record_context(its.get(), passed)); });
    if (status == device_ok) status = gather(passed);
    const device_status freed = there.run([&] { return cudaEventDestroy(passed); });  // who waits for it does so
    return status == device_ok ? freed : status;
  }

  /// A pool of our own, so that memory comes and goes in the order of a stream: cudaFree() waits for the whole device, and the step of
  /// the trainer with it. Null where the device has none.
  [[nodiscard]] cudaMemPool_t find_pool() noexcept {
    const mutex_lock lock(mutex_);
    if (pool_sought_) return pool_;
    pool_sought_ = true;
    int has_pools = 0;
    cudaMemPoolProps properties{};
    properties.allocType = cudaMemAllocationTypePinned;
    properties.location = {};
    properties.location.type = cudaMemLocationTypeDevice;
    properties.location.id = index_;
    if (cudaDeviceGetAttribute(&has_pools, cudaDevAttrMemoryPoolsSupported, index_) != cudaSuccess || has_pools == 0 ||
        cudaMemPoolCreate(&pool_, &properties) != cudaSuccess) {
      static_cast<void>(cudaGetLastError());
      pool_ = nullptr;
    }
    return pool_;
  }

  const int index_;
  const std::string name_;
  const driver_calls driver_;
  const CUcontext context_;  // the device's primary one, which is kept
  mutex mutex_;
  bool pool_sought_ ABSL_GUARDED_BY(mutex_) = false;
  cudaMemPool_t pool_ = nullptr;
  cudaStream_t gathering_ = nullptr;       // of record_all()
  std::unique_ptr<nvjpeg_decoder> jpegs_;  // null before prepare_jpegs()
};

/// How many GPUs there are; where none, `why` there is none.
int count_devices(std::string& why) {
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  if (status == cudaSuccess && count > 0) return count;
  static_cast<void>(cudaGetLastError());
  why = str_cat("no GPU to be had: ", in_words(status != cudaSuccess ? status : cudaErrorNoDevice));
  return 0;
}

/// A GPU that is there and cannot be used is as good as none: batches stay on the host, with the reason.
opened_device open_calls(int index, std::span<const cuda_kernel> kernels) {
  const auto unusable = [&](std::string_view call, cudaError_t status) {
    static_cast<void>(cudaGetLastError());
    return opened_device{.calls = nullptr, .why_not = str_cat(call, " cuda:", index, ": ", in_words(status))};
  };
  driver_calls driver;
  if (const char* const missing = find(driver)) {
    return unusable(str_cat("looking for ", missing, " in the driver for"), cudaErrorSharedObjectSymbolNotFound);
  }
  primary_context context(driver, index);
  if (context.status() != cudaSuccess) return unusable("making a context on", context.status());
  const in_context here(driver, context.get());
  cudaDeviceProp properties{};
  device_status status = here.run([&] { return cudaGetDeviceProperties(&properties, index); });
  if (status != device_ok) return unusable("cudaGetDeviceProperties of", static_cast<cudaError_t>(status));
  for (const cuda_kernel& each : kernels) {
    status = here.run([&] { return static_cast<cudaError_t>(each.load()); });
    if (status != device_ok) {
      return unusable(str_cat("loading ", each.which->name, " onto ", properties.name, ","),
                      static_cast<cudaError_t>(status));
    }
  }
  auto calls = std::make_shared<cuda_calls>(index, properties.name, driver, context.get());
  context.keep();
  return {.calls = std::move(calls), .why_not = {}};
}

// No context is made on a GPU that the process leaves to others, where one is in use.
int index_for_pinning(int count) {
  driver_calls driver;
  CUcontext current = nullptr;
  CUdevice device = 0;
  int index = 0;
  if (find(driver) != nullptr) return index;
  if (driver.current(&current) == CUDA_SUCCESS && current != nullptr &&
      driver.current_device(&device) == CUDA_SUCCESS) {
    return device;  // as the runtime numbers them
  }
  for (int i = 0; i < count && driver.primary_state != nullptr; ++i) {
    if (is_in_use(driver, i)) return i;
  }
  if (cudaGetDevice(&index) != cudaSuccess) static_cast<void>(cudaGetLastError());
  return index;
}

}  // namespace

opened_device open_device(device which) {
  std::string why_not;
  const int count = count_devices(why_not);
  if (count == 0) return {.calls = nullptr, .why_not = std::move(why_not)};
  if (which.index < 0 || which.index >= count) {
    throw error(errc::not_found, str_cat("there is no cuda:", which.index, " here: GPUs are numbered 0 to ", count - 1,
                                         ", and CUDA_VISIBLE_DEVICES says which of the machine's they are"));
  }
  return open_calls(which.index, all_kernels());
}

opened_device open_for_pinning() {
  std::string why_not;
  const int count = count_devices(why_not);
  if (count == 0) return {.calls = nullptr, .why_not = std::move(why_not)};
  opened_device opened = open_calls(index_for_pinning(count), {});
  if (opened.calls == nullptr || opened.calls->can_record_all()) return opened;
  return {.calls = nullptr,
          .why_not =
              "the driver has no cuCtxRecordEvent, which tells when copies from a batch have ended; install one "
              "of CUDA 12.5 or newer"};
}

device_list list_devices() {
  device_list found{.devices = {}, .unusable = {}, .why_not = {}, .built_with_cuda = true};
  const int count = count_devices(found.why_not);
  for (int i = 0; i < count; ++i) {
    opened_device opened = open_device(cuda(i));
    if (opened.calls != nullptr) {
      found.devices.push_back(std::move(opened.calls));
    } else {
      found.unusable.push_back({.which = cuda(i), .why = std::move(opened.why_not)});
    }
  }
  if (found.devices.empty() && !found.unusable.empty()) found.why_not = found.unusable.front().why;
  return found;
}

}  // namespace leat::stages
