// Buffers of device memory, each for one batch, and the streams that read what lies in them.
#pragma once

#include "base/mutex.hpp"
#include "stages/device/device.hpp"
#include "stages/device/device_failure.hpp"

#include <leat/stream.hpp>

#include <absl/container/inlined_vector.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace leat::stages {

struct timed_end;

/// A stream that reads a batch, and the thread that named it: cudaStreamPerThread is another stream on each.
struct consumer {
  stream which;
  std::uint64_t named_by = 0;  ///< thread_number()
};

/// One buffer. From take() to give_back() its holder's.
struct device_buffer {
  std::byte* memory = nullptr;
  device_event copied = device_event::none;  ///< of the latest copy, where operations follow on another stream
  bool operated = false;                     ///< on what the latest batch copied
  std::vector<device_event> consumed;        ///< one for each stream of a consumer; more are made where they are needed
  std::size_t recorded = 0;                  ///< of those, by the last batch that lay here
  absl::InlinedVector<stream, 2> unrecorded;  ///< streams that the next ones have yet to be recorded on
  timed_end* timed = nullptr;                 ///< recorded on the first of them that can be
};

/// All buffers are allocated at the start. A buffer is free again when its batch ends, though consumers may still read it: an event is
/// recorded on each of their streams, and the next copy into the buffer waits for these events on the device. Refers to its arguments.
class device_buffers {
 public:
  device_buffers(device_calls& calls, device_failure& failure) : calls_(calls), failure_(failure) {}
  device_buffers(const device_buffers&) = delete;
  device_buffers& operator=(const device_buffers&) = delete;

  /// Before anything else. Throws error{errc::limit} where the device has not that much, error{errc::device}.
  ///   side        the stream of copies, in whose order memory is taken and freed
  ///   operates    buffers have an event `copied`
  void prepare(std::size_t count, std::size_t bytes, stream side, bool operates);
  /// Frees all buffers in the order of `side`, behind all that consumers have put into their streams. Nobody waits, where the device has
  /// memory pools. A buffer whose consumers cannot be recorded is not freed. No batch is left.
  void free_all(stream side) noexcept;

  [[nodiscard]] std::size_t count() const noexcept { return buffers_.size(); }
  [[nodiscard]] bool has_free() const noexcept ABSL_LOCKS_EXCLUDED(mutex_);
  /// The one that has been free for longest: its consumers are the likeliest to have passed. There is one.
  [[nodiscard]] device_buffer& take() noexcept ABSL_LOCKS_EXCLUDED(mutex_);
  /// Its batch has ended. An event that cannot be recorded is a failure.
  /// Thread: any. The caller holds no lock, since CUDA may have the thread wait for room in the consumer's stream.
  void give_back(device_buffer& buffer, std::span<const consumer> consumers) noexcept ABSL_LOCKS_EXCLUDED(mutex_);

  /// Whether a buffer cannot be used because a blocking stream is being captured: nothing can be recorded on the default stream until that
  /// capture ends.
  [[nodiscard]] bool has_parked() const noexcept ABSL_LOCKS_EXCLUDED(mutex_);
  /// Records what can be recorded by now. Thread: one at a time.
  void retry_parked() noexcept ABSL_LOCKS_EXCLUDED(mutex_);

  /// Has the device, or the calling thread, wait until the buffer's consumers have read it.
  [[nodiscard]] failed_call wait_for_consumers(const device_buffer& buffer, stream in) noexcept;
  [[nodiscard]] failed_call synchronize_with_consumers(const device_buffer& buffer) noexcept;

  /// The stream whose end is that of `from`, for the calling thread: of another thread's default stream nothing can be said here, but
  /// the device's default stream waits for it.
  [[nodiscard]] stream as_seen_here(const consumer& from) const noexcept;

 private:
  enum class recording : std::uint8_t { done, parked, failed };
  [[nodiscard]] recording record(device_buffer& on) noexcept;
  [[nodiscard]] failed_call record_timed(timed_end& end, stream in) noexcept;
  [[nodiscard]] failed_call add_event(device_buffer& to);

  device_calls& calls_;
  device_failure& failure_;
  std::vector<device_buffer> buffers_;  // by prepare(), for good

  mutable mutex mutex_;
  std::vector<device_buffer*> free_ ABSL_GUARDED_BY(mutex_);  // first in, first out
  std::vector<device_buffer*> parked_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace leat::stages
