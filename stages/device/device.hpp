// All that leat asks of a device, as one table of functions: CUDA fills it in one file, a simulation in the tests, and
// whoever wants to see the calls or make one fail stands between. Every one of them is the like of one CUDA call.
#pragma once

#include "stages/device/device_kernel.hpp"

#include <leat/stream.hpp>
#include <leat/tensor.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace leat::stages {

/// An event of a device: a handle, owned by who made it.
enum class device_event : std::uintptr_t { none = 0 };

/// What a call answers: 0 is success, else the device's own code, which describe() puts into words.
using device_status = int;
inline constexpr device_status device_ok = 0;
/// Of query() alone: what the event was recorded behind has not passed yet.
inline constexpr device_status device_not_ready = -1;
/// Of record() and record_all() alone: nothing can be put into this stream now, as stream_facts::captured_beside says.
inline constexpr device_status device_captured_beside = -2;

/// A call that failed; its words are made when somebody has to hear them.
///   picture   which of decode_jpegs() was refused: its bytes are to blame, not the device
struct failed_call {
  device_status status = device_ok;
  const char* name = "";
  std::optional<std::size_t> bytes = {};
  std::optional<std::uint32_t> picture = {};
};

/// A JPEG file that the device decodes: its whole picture, as planes of red, green and blue, in memory of the device.
///   encoded   memory of the host, which stays until what the call has put into the stream has passed
///   stride    of each plane, in bytes
struct jpeg_on_device {
  std::span<const std::byte> encoded;
  std::uint8_t* planes[3] = {};
  std::size_t stride = 0;
};
/// The most that decode_jpegs() takes.
inline constexpr std::uint32_t jpegs_at_once = 64;

/// What people ask about a device; 0 and empty where it does not say.
struct device_facts {
  int driver_cuda = 0;   ///< the newest CUDA that the driver knows, as 13000
  int runtime_cuda = 0;  ///< that of this build
  int capability = 0;    ///< as 90
  std::uint64_t memory_bytes = 0;
  std::uint64_t memory_free_bytes = 0;
  std::string pci_address;  ///< "0000:17:00.0"
};

/// What a stream that a consumer names is at that moment.
struct stream_facts {
  int device = 0;  ///< whose it is, as device::index
  bool foreign_context =
      false;  ///< not of that device's primary context, which is ours: no event of ours can be recorded on it
  bool capturing = false;  ///< what is put into it becomes a graph's
  /// It is the default stream, and one that waits for it is being captured: until that is over nothing can be put into it.
  bool captured_beside = false;
};

/// Thread: any, several at a time; the thread's own device, its default stream's included, stays what it is, and so does
/// what it finds as its last error, unless one of these calls fails. No call throws. But for the construction of pools and the end of life, none waits for the
/// device except synchronize(), and copy() from memory that is not pinned.
class device_calls {
 public:
  device_calls() = default;
  device_calls(const device_calls&) = delete;
  device_calls& operator=(const device_calls&) = delete;
  virtual ~device_calls() = default;

  [[nodiscard]] virtual device where() const noexcept = 0;
  /// As people call it: "NVIDIA H200".
  [[nodiscard]] virtual std::string name() const = 0;
  [[nodiscard]] virtual device_facts facts() const { return {}; }
  /// A code in words, with what to do where that is known.
  [[nodiscard]] virtual std::string describe(device_status code) const = 0;
  /// The same of what pin() answered, which is about the host's memory.
  [[nodiscard]] virtual std::string describe_pinning(device_status code) const { return describe(code); }
  /// Whether after this code nothing of this process runs on the device any more. Any other code says that a call was
  /// refused, and nothing about what was asked for before.
  [[nodiscard]] virtual bool is_lost(device_status code) const noexcept = 0;
  /// Whether take_memory() answers this where the device has not that much.
  [[nodiscard]] virtual bool is_full(device_status /*code*/) const noexcept { return false; }

  // --- before the loop and after it: these may take milliseconds and wait for the device --------------------------

  /// cudaMallocFromPoolAsync of a pool of our own, or cudaMalloc where the device has no such pools: aligned to tensor_alignment_bytes.
  ///   in   whoever uses it comes behind this in that stream
  virtual device_status take_memory(std::size_t bytes, std::byte*& memory, stream in) noexcept = 0;
  /// cudaFreeAsync: when all that `in` holds has passed, for which nobody waits. Without a pool the calling thread does, and so may the
  /// whole device.
  virtual device_status free_memory(std::byte* memory, stream in) noexcept = 0;
  /// cudaHostRegister: what is copied from pinned memory goes by DMA, beside the CPU. Milliseconds, and other calls may wait
  /// for it.
  virtual device_status pin(std::span<std::byte> memory) noexcept = 0;
  virtual device_status unpin(std::span<std::byte> memory) noexcept = 0;
  /// cudaStreamCreateWithPriority(cudaStreamNonBlocking, the greatest there is): ordered by nothing but waits. Its short kernels go
  /// before those of the trainer's step, which holds the whole device for milliseconds.
  virtual device_status make_stream(stream& made) noexcept = 0;
  /// cudaStreamDestroy, cudaEventDestroy: what they hold is still executed, and nobody waits for that.
  virtual device_status free_stream(stream made) noexcept = 0;
  /// cudaEventCreateWithFlags(cudaEventDisableTiming | cudaEventBlockingSync).
  virtual device_status make_event(device_event& made) noexcept = 0;
  /// cudaEventCreateWithFlags(cudaEventDisableTiming): for streams alone. Where a thread may sleep for an event, CUDA wakes one of its own up each
  /// time that it is recorded.
  virtual device_status make_stream_event(device_event& made) noexcept { return make_event(made); }
  virtual device_status free_event(device_event made) noexcept = 0;
  /// cudaEventCreateWithFlags(cudaEventDefault): fires with a time.
  virtual device_status make_timed_event(device_event& made) noexcept = 0;
  /// A word of pinned host memory that streams can write to, 0 at first; null where the device cannot do that.
  virtual device_status take_word(std::atomic<std::uint64_t>*& word) noexcept {
    word = nullptr;
    return device_ok;
  }
  virtual device_status free_word(const std::atomic<std::uint64_t>* /*word*/) noexcept { return device_ok; }
  /// Makes decode_jpegs() possible. Returns why it is not, in words for a person; empty where it is.
  [[nodiscard]] virtual std::string prepare_jpegs() { return "this device decodes no JPEG files"; }
  /// cudaStreamSynchronize: at the end of life only.
  virtual device_status finish(stream in) noexcept = 0;

  // --- the loop: each puts an operation into a stream's queue and returns --------------------------------------------

  /// cudaMemcpyAsync, host to device. `from` is read when its turn comes: it has to stay until an event says that it did.
  /// What is not pinned goes by way of memory of CUDA's, for which the call may wait for all that `in` holds: never on an
  /// I/O thread.
  virtual device_status copy(std::byte* to, const std::byte* from, std::size_t bytes, stream in) noexcept = 0;
  /// cudaMemcpy2DAsync: the same of rows that lie `stride` bytes apart on both sides, `row_bytes` of each.
  virtual device_status copy_rows(std::byte* to, const std::byte* from, std::size_t stride, std::size_t row_bytes,
                                  std::uint32_t rows, stream in) noexcept = 0;
  /// cudaMemcpyAsync, within the device.
  virtual device_status copy_within(std::byte* to, const std::byte* from, std::size_t bytes, stream in) noexcept = 0;
  /// cudaLaunchKernelEx. The arguments are copied.
  virtual device_status launch(const device_kernel& kernel, const void* arguments, stream in) noexcept = 0;
  /// nvjpegDecodeBatched, after prepare_jpegs(): parses on the calling thread, and decodes in the order of `in`. May wait for what an earlier
  /// call has put into it: never on an I/O thread. One thread at a time.
  ///   pictures   at most jpegs_at_once
  [[nodiscard]] virtual failed_call decode_jpegs(std::span<const jpeg_on_device> /*pictures*/, stream /*in*/) noexcept {
    return {device_not_ready, "decode_jpegs() without prepare_jpegs()"};
  }
  /// cuStreamWriteValue64: the word becomes `value` when all that `in` holds so far has passed, and is seen to have.
  virtual device_status write(const std::atomic<std::uint64_t>& /*word*/, std::uint64_t /*value*/,
                              stream /*in*/) noexcept {
    return device_ok;
  }
  /// cudaStreamWaitEvent: what is put into `in` from here on waits for the latest record() of `fired`; an event that was
  /// never recorded holds nobody up.
  virtual device_status wait(stream in, device_event fired) noexcept = 0;
  /// cudaEventRecord: `fires` fires when what `in` holds so far has passed.
  virtual device_status record(device_event fires, stream in) noexcept = 0;

  // --- of all streams ------------------------------------------------------------------------------------------------

  /// Whether record_all() can be asked.
  [[nodiscard]] virtual bool can_record_all() const noexcept { return false; }
  /// cuCtxRecordEvent of each GPU's primary context that is in use: `fires` fires when what all their streams hold so far has passed.
  /// device_captured_beside while one of them is captured, which this breaks: call it again later. One thread at a time.
  virtual device_status record_all(device_event /*fires*/) noexcept { return device_not_ready; }

  // --- of a consumer's stream -----------------------------------------------------------------------------------------

  virtual device_status look_at(stream which, stream_facts& facts) noexcept = 0;
  /// Whether it is another stream on each thread: cudaStreamPerThread.
  [[nodiscard]] virtual bool is_of_thread(stream which) const noexcept = 0;

  // --- asked from the CPU --------------------------------------------------------------------------------------------

  /// cudaEventQuery of the latest record(): device_ok once it has fired, device_not_ready before.
  virtual device_status query(device_event fired) noexcept = 0;
  /// cudaEventElapsedTime between the latest record() of two timed events that have fired; negative where `to` fired first.
  virtual device_status elapsed_ns(device_event from, device_event to, std::int64_t& ns) noexcept = 0;
  /// cudaEventSynchronize of the latest record(). Sleeps; never on an I/O thread.
  virtual device_status synchronize(device_event fired) noexcept = 0;
};

}  // namespace leat::stages
