// The table of a device's functions, filled by CUDA's runtime. Each is one call, on the right device whatever thread it
// comes from; what they mean stands in device.hpp.
#include "io/text.hpp"
#include "stages/open_device.hpp"

#include <leat/error.hpp>

#include <cuda_runtime_api.h>

#include <utility>

namespace leat::stages {
namespace {

/// Makes `index` the thread's device for a while. A trainer's thread keeps the one that it has chosen: a call for another
/// device must not leave ours behind. Nor does a capture that the trainer has begun, in the mode that forbids others most
/// calls, concern ours: none of them touches a stream that is being captured but those that the trainer gives us.
class on_device {
 public:
  explicit on_device(int index) noexcept {
    static_cast<void>(cudaThreadExchangeStreamCaptureMode(&capture_));
    status_ = cudaGetDevice(&before_);
    if (status_ != cudaSuccess || before_ == index) return;
    status_ = cudaSetDevice(index);
    changed_ = status_ == cudaSuccess;
  }
  on_device(const on_device&) = delete;
  on_device& operator=(const on_device&) = delete;
  ~on_device() {
    if (changed_) static_cast<void>(cudaSetDevice(before_));
    static_cast<void>(cudaThreadExchangeStreamCaptureMode(&capture_));
  }

  template <class Call>
  device_status run(Call&& call) const noexcept {
    return static_cast<device_status>(status_ == cudaSuccess ? call() : status_);
  }

 private:
  cudaStreamCaptureMode capture_ = cudaStreamCaptureModeRelaxed;  // the thread's own, in between
  int before_ = 0;
  cudaError_t status_ = cudaSuccess;
  bool changed_ = false;
};

cudaEvent_t native(device_event event) noexcept { return reinterpret_cast<cudaEvent_t>(event); }

/// What a person can do about it; empty where that is not known.
std::string_view remedy(cudaError_t code) noexcept {
  switch (code) {
    case cudaErrorMemoryAllocation:
      return "; the device is full: lower device_batches or batch_size, or see with nvidia-smi who has its memory";
    case cudaErrorInsufficientDriver:
      return "; this build needs a newer NVIDIA driver, or is there none?";
    case cudaErrorNoDevice:
      return "; is the driver loaded, and CUDA_VISIBLE_DEVICES not empty?";
    case cudaErrorNoKernelImageForDevice:
      return "; this build has no code for this GPU: it knows compute capability 8.0 and newer (cmake/cuda.cmake lists "
             "them)";
    case cudaErrorInvalidResourceHandle:
      return "; does the stream belong to another GPU, or has it been destroyed?";
    case cudaErrorOperatingSystem:
      return "; is memlock limited (`ulimit -l`)?";
    case cudaErrorIllegalAddress:
    case cudaErrorLaunchFailure:
    case cudaErrorMisalignedAddress:
    case cudaErrorECCUncorrectable:
      return "; a kernel of this process has failed and the GPU is lost to it: compute-sanitizer says which";
    default:
      return "";
  }
}

std::string in_words(cudaError_t code) {
  return io::str_cat(cudaGetErrorString(code), " (", cudaGetErrorName(code), ")", remedy(code));
}

/// Thread: any, as CUDA's runtime.
class cuda_calls final : public device_calls {
 public:
  cuda_calls(int index, std::string name) : index_(index), name_(std::move(name)) {}

  [[nodiscard]] device where() const noexcept override { return cuda(index_); }
  [[nodiscard]] std::string name() const override { return name_; }
  [[nodiscard]] std::string describe(device_status code) const override {
    return in_words(static_cast<cudaError_t>(code));
  }
  // "The only way to continue using CUDA is to terminate and relaunch the process", say the runtime's pages of these.
  [[nodiscard]] bool is_lost(device_status code) const noexcept override {
    switch (static_cast<cudaError_t>(code)) {
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
        return true;
      default:
        return false;
    }
  }
  // What one of them does not say is left out.
  [[nodiscard]] device_facts facts() const override {
    device_facts told;
    static_cast<void>(cudaDriverGetVersion(&told.driver_cuda));
    static_cast<void>(cudaRuntimeGetVersion(&told.runtime_cuda));
    int major = 0;
    int minor = 0;
    if (cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, index_) == cudaSuccess &&
        cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, index_) == cudaSuccess) {
      told.capability = 10 * major + minor;
    }
    std::size_t free_bytes = 0;
    std::size_t bytes = 0;
    if (here().run([&] { return cudaMemGetInfo(&free_bytes, &bytes); }) == device_ok) {
      told.memory_bytes = bytes;
      told.memory_free_bytes = free_bytes;
    }
    char address[32] = {};
    if (cudaDeviceGetPCIBusId(address, sizeof address, index_) == cudaSuccess) told.pci_address = address;
    return told;
  }

  device_status take_memory(std::size_t bytes, std::byte*& memory) noexcept override {
    void* taken = nullptr;
    const device_status status = here().run([&] { return cudaMalloc(&taken, bytes); });
    memory = static_cast<std::byte*>(taken);
    return status;
  }
  device_status free_memory(std::byte* memory) noexcept override {
    return here().run([&] { return cudaFree(memory); });
  }
  // Portable: other GPUs of the process may read it by DMA too.
  device_status pin(std::span<std::byte> memory) noexcept override {
    return here().run([&] {
      const cudaError_t status = cudaHostRegister(memory.data(), memory.size(), cudaHostRegisterPortable);
      if (status != cudaSuccess) static_cast<void>(cudaGetLastError());  // We go on without.
      return status;
    });
  }
  device_status unpin(std::span<std::byte> memory) noexcept override {
    return here().run([&] { return cudaHostUnregister(memory.data()); });
  }
  device_status make_stream(stream& made) noexcept override {
    cudaStream_t handle = nullptr;
    const device_status status = here().run([&] { return cudaStreamCreateWithFlags(&handle, cudaStreamNonBlocking); });
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
  device_status free_event(device_event made) noexcept override {
    return here().run([&] { return cudaEventDestroy(native(made)); });
  }
  device_status finish(stream in) noexcept override {
    return here().run([&] { return cudaStreamSynchronize(in.handle()); });
  }

  device_status copy(std::byte* to, const std::byte* from, std::size_t bytes, stream in) noexcept override {
    return here().run([&] { return cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, in.handle()); });
  }
  device_status finish_pictures(const picture_batch& pictures, stream in) noexcept override {
    return here().run([&] { return static_cast<cudaError_t>(launch_finish_pictures(pictures, in)); });
  }
  device_status wait(stream in, device_event fired) noexcept override {
    return here().run([&] { return cudaStreamWaitEvent(in.handle(), native(fired), 0); });
  }
  device_status record(device_event fires, stream in) noexcept override {
    return here().run([&] { return cudaEventRecord(native(fires), in.handle()); });
  }
  device_status query(device_event fired) noexcept override {
    const device_status status = here().run([&] { return cudaEventQuery(native(fired)); });
    if (status != static_cast<device_status>(cudaErrorNotReady)) return status;
    static_cast<void>(cudaGetLastError());  // "Not ready" is an answer and stays nobody's last error.
    return device_not_ready;
  }
  device_status synchronize(device_event fired) noexcept override {
    return here().run([&] { return cudaEventSynchronize(native(fired)); });
  }

 private:
  // The default stream is the default stream of the thread's device; the others know theirs, which costs nothing to say.
  [[nodiscard]] on_device here() const noexcept { return on_device(index_); }

  const int index_;
  const std::string name_;
};

/// How many GPUs there are; where none, `why` there is none.
int count_devices(std::string& why) {
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  if (status == cudaSuccess && count > 0) return count;
  static_cast<void>(cudaGetLastError());
  why = io::str_cat("no GPU to be had: ", in_words(status != cudaSuccess ? status : cudaErrorNoDevice));
  return 0;
}

}  // namespace

opened_device open_device(device which) {
  std::string why_not;
  const int count = count_devices(why_not);
  if (count == 0) return {.calls = nullptr, .why_not = std::move(why_not)};
  if (which.index < 0 || which.index >= count) {
    throw error(errc::not_found,
                io::str_cat("there is no cuda:", which.index, " here: GPUs are numbered 0 to ", count - 1,
                            ", and CUDA_VISIBLE_DEVICES says which of the machine's they are"));
  }
  // A GPU that is there and cannot be used is as good as none: batches stay on the host, with the reason.
  const auto unusable = [&](std::string_view call, cudaError_t status) {
    static_cast<void>(cudaGetLastError());
    return opened_device{.calls = nullptr, .why_not = io::str_cat(call, " cuda:", which.index, ": ", in_words(status))};
  };
  cudaDeviceProp properties{};
  if (const cudaError_t failed = cudaGetDeviceProperties(&properties, which.index); failed != cudaSuccess) {
    return unusable("cudaGetDeviceProperties of", failed);
  }
  const int loaded = on_device(which.index).run([] { return static_cast<cudaError_t>(load_finish_pictures()); });
  if (loaded != device_ok) {
    return unusable(io::str_cat("loading the kernels onto ", properties.name, ","), static_cast<cudaError_t>(loaded));
  }
  return {.calls = std::make_shared<cuda_calls>(which.index, properties.name), .why_not = {}};
}

device_list list_devices() {
  device_list found{.devices = {}, .why_not = {}, .built_with_cuda = true};
  const int count = count_devices(found.why_not);
  for (int i = 0; i < count; ++i) {
    opened_device opened = open_device(cuda(i));
    if (opened.calls != nullptr) {
      found.devices.push_back(std::move(opened.calls));
    } else {
      found.why_not = std::move(opened.why_not);
    }
  }
  return found;
}

}  // namespace leat::stages
