// A device on the wall clock, and no data: its copies and its trainer's steps take the time that they would take, and nothing is
// copied or computed. What the CPU does about them is then as it would be beside a device, but for what CUDA's calls cost.
#pragma once

#include "base/mutex.hpp"
#include "stages/device/device.hpp"

#include <leat/stream.hpp>

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace leat::testing {

struct timed_device_options {
  double bytes_per_s = 25e9;      ///< host to device: PCIe 4.0 x16, pinned
  std::uint64_t ns_per_copy = 0;  ///< of each, beside that
};

/// When everything will have passed is known the moment that it is queued, so that there is no thread behind it: query() looks
/// at the clock, and synchronize() sleeps until then, as cudaEventBlockingSync does until the interrupt. Thread: any.
class timed_device final : public stages::device_calls {
 public:
  explicit timed_device(const timed_device_options& options) : options_(options) {}

  // --- the trainer's ---------------------------------------------------------------------------------------------------

  /// Puts work of `ns` into the stream.
  void step(stream in, std::uint64_t ns) noexcept;

  // --- what it saw -----------------------------------------------------------------------------------------------------

  struct counters {
    std::uint64_t queries = 0;  ///< cudaEventQuery
    std::uint64_t waits = 0;    ///< cudaEventSynchronize
  };
  [[nodiscard]] counters count() const noexcept;
  /// When the latest copy from there passes or has passed, as now_ns(); 0 where there was none.
  [[nodiscard]] std::uint64_t passes_ns(const std::byte* from) const noexcept;

  // --- the table of calls ------------------------------------------------------------------------------------------------

  [[nodiscard]] device where() const noexcept override { return cuda(0); }
  [[nodiscard]] std::string name() const override { return "a timed device"; }
  [[nodiscard]] std::string describe(stages::device_status code) const override;
  [[nodiscard]] bool is_lost(stages::device_status /*code*/) const noexcept override { return false; }
  stages::device_status take_memory(std::size_t bytes, std::byte*& memory, stream in) noexcept override;
  stages::device_status free_memory(std::byte* memory, stream in) noexcept override;
  stages::device_status pin(std::span<std::byte> /*memory*/) noexcept override { return stages::device_ok; }
  stages::device_status unpin(std::span<std::byte> /*memory*/) noexcept override { return stages::device_ok; }
  stages::device_status make_stream(stream& made) noexcept override;
  stages::device_status free_stream(stream /*made*/) noexcept override { return stages::device_ok; }
  stages::device_status make_event(stages::device_event& made) noexcept override;
  stages::device_status make_timed_event(stages::device_event& made) noexcept override { return make_event(made); }
  stages::device_status elapsed_ns(stages::device_event from, stages::device_event to,
                                   std::int64_t& ns) noexcept override;
  stages::device_status free_event(stages::device_event /*made*/) noexcept override { return stages::device_ok; }
  stages::device_status finish(stream in) noexcept override;
  stages::device_status copy(std::byte* to, const std::byte* from, std::size_t bytes, stream in) noexcept override;
  stages::device_status copy_rows(std::byte* to, const std::byte* from, std::size_t /*stride*/, std::size_t row_bytes,
                                  std::uint32_t rows, stream in) noexcept override {
    return copy(to, from, rows * row_bytes, in);
  }
  // As slow as over the bus, which it does not take.
  stages::device_status copy_within(std::byte* to, const std::byte* from, std::size_t bytes,
                                    stream in) noexcept override {
    return copy(to, from, bytes, in);
  }
  stages::device_status launch(const stages::device_kernel& kernel, const void* arguments, stream in) noexcept override;
  stages::device_status wait(stream in, stages::device_event fired) noexcept override;
  stages::device_status record(stages::device_event fires, stream in) noexcept override;
  stages::device_status look_at(stream which, stages::stream_facts& told) noexcept override;
  [[nodiscard]] bool is_of_thread(stream /*which*/) const noexcept override { return false; }
  stages::device_status query(stages::device_event fired) noexcept override;
  stages::device_status synchronize(stages::device_event fired) noexcept override;

 private:
  std::uint64_t& end_of(stream which) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::uint64_t& firing(stages::device_event which) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  /// From now or from the end of what is there.
  void put(stream in, std::uint64_t ns) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const timed_device_options options_;
  mutable mutex mutex_;
  std::vector<std::uint64_t> ends_ns_ ABSL_GUARDED_BY(mutex_);   // of streams
  std::vector<std::uint64_t> fires_ns_ ABSL_GUARDED_BY(mutex_);  // of events
  std::map<const std::byte*, std::uint64_t> passes_ns_ ABSL_GUARDED_BY(mutex_);
  counters counted_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace leat::testing
