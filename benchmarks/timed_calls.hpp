// Stands between leat and a device, and has the device take the time of what the loader's own streams do: the copy of each
// batch, and the kernels behind it. Pinning, which the CPU does, is timed by its clock.
#pragma once

#include "base/mutex.hpp"
#include "benchmarks/measure.hpp"
#include "stages/device/device.hpp"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace leat::benchmarks {

/// Thread: any. No more than `batches_max` batches are timed; the others pass as they are.
class timed_calls final : public stages::device_calls {
 public:
  struct times {
    std::size_t bytes = 0;
    double copy_ms = 0;
    double kernels_ms = 0;  ///< behind the copy, on a stream of their own

    /// Copies go on beside kernels: what a batch takes of the longer of the two.
    [[nodiscard]] double longer_ms() const { return std::max(copy_ms, kernels_ms); }
  };

  timed_calls(std::shared_ptr<stages::device_calls> behind, std::size_t batches_max) : behind_(std::move(behind)) {
    timed_.resize(batches_max);
    for (batch_events& each : timed_) {
      for (cudaEvent_t* event : {&each.begin, &each.copied, &each.started, &each.finished}) {
        if (cudaEventCreate(event) != cudaSuccess) *event = nullptr;
      }
    }
  }
  ~timed_calls() override {
    for (const batch_events& each : timed_) {
      for (cudaEvent_t event : {each.begin, each.copied, each.started, each.finished})
        static_cast<void>(cudaEventDestroy(event));
    }
  }

  /// Of each batch in turn, as far as it has passed.
  [[nodiscard]] std::vector<times> taken() {
    const mutex_lock lock(mutex_);
    std::vector<times> all;
    for (std::size_t i = 0; i < copies_; ++i) {
      float copy_ms = 0;
      float kernels_ms = 0;
      if (cudaEventElapsedTime(&copy_ms, timed_[i].begin, timed_[i].copied) != cudaSuccess ||
          (timed_[i].has_kernel &&
           cudaEventElapsedTime(&kernels_ms, timed_[i].started, timed_[i].finished) != cudaSuccess)) {
        static_cast<void>(cudaGetLastError());
        break;
      }
      all.push_back({.bytes = timed_[i].bytes, .copy_ms = copy_ms, .kernels_ms = kernels_ms});
    }
    return all;
  }

  struct pinning {
    std::size_t calls = 0;
    double ms = 0;  ///< of all of them
  };
  [[nodiscard]] pinning pinned() {
    const mutex_lock lock(mutex_);
    return pinning_;
  }

  [[nodiscard]] device where() const noexcept override { return behind_->where(); }
  [[nodiscard]] std::string name() const override { return behind_->name(); }
  [[nodiscard]] stages::device_facts facts() const override { return behind_->facts(); }
  [[nodiscard]] std::string describe(stages::device_status code) const override { return behind_->describe(code); }
  [[nodiscard]] std::string describe_pinning(stages::device_status code) const override {
    return behind_->describe_pinning(code);
  }
  [[nodiscard]] bool is_lost(stages::device_status code) const noexcept override { return behind_->is_lost(code); }
  [[nodiscard]] bool is_full(stages::device_status code) const noexcept override { return behind_->is_full(code); }

  stages::device_status take_memory(std::size_t bytes, std::byte*& memory, stream in) noexcept override {
    return behind_->take_memory(bytes, memory, in);
  }
  stages::device_status free_memory(std::byte* memory, stream in) noexcept override {
    return behind_->free_memory(memory, in);
  }
  stages::device_status take_word(std::atomic<std::uint64_t>*& word) noexcept override {
    return behind_->take_word(word);
  }
  stages::device_status free_word(const std::atomic<std::uint64_t>* word) noexcept override {
    return behind_->free_word(word);
  }
  stages::device_status write(const std::atomic<std::uint64_t>& word, std::uint64_t value,
                              stream in) noexcept override {
    return behind_->write(word, value, in);
  }
  stages::device_status pin(std::span<std::byte> memory) noexcept override {
    const double began_s = wall_s();
    const stages::device_status status = behind_->pin(memory);
    const double took_s = wall_s() - began_s;
    const mutex_lock lock(mutex_);
    ++pinning_.calls;
    pinning_.ms += took_s * 1e3;
    return status;
  }
  stages::device_status unpin(std::span<std::byte> memory) noexcept override { return behind_->unpin(memory); }
  stages::device_status make_stream(stream& made) noexcept override { return behind_->make_stream(made); }
  stages::device_status free_stream(stream made) noexcept override { return behind_->free_stream(made); }
  stages::device_status make_event(stages::device_event& made) noexcept override { return behind_->make_event(made); }
  stages::device_status make_stream_event(stages::device_event& made) noexcept override {
    return behind_->make_stream_event(made);
  }
  stages::device_status free_event(stages::device_event made) noexcept override { return behind_->free_event(made); }
  stages::device_status make_timed_event(stages::device_event& made) noexcept override {
    return behind_->make_timed_event(made);
  }
  stages::device_status elapsed_ns(stages::device_event from, stages::device_event to,
                                   std::int64_t& ns) noexcept override {
    return behind_->elapsed_ns(from, to, ns);
  }
  stages::device_status finish(stream in) noexcept override { return behind_->finish(in); }

  stages::device_status copy(std::byte* to, const std::byte* from, std::size_t bytes, stream in) noexcept override {
    return timed_copy(bytes, in, [&] { return behind_->copy(to, from, bytes, in); });
  }
  stages::device_status copy_rows(std::byte* to, const std::byte* from, std::size_t stride, std::size_t row_bytes,
                                  std::uint32_t rows, stream in) noexcept override {
    return timed_copy(rows * row_bytes, in, [&] { return behind_->copy_rows(to, from, stride, row_bytes, rows, in); });
  }
  stages::device_status copy_within(std::byte* to, const std::byte* from, std::size_t bytes,
                                    stream in) noexcept override {
    return behind_->copy_within(to, from, bytes, in);
  }
  [[nodiscard]] std::string prepare_jpegs() override { return behind_->prepare_jpegs(); }
  [[nodiscard]] stages::failed_call decode_jpegs(std::span<const stages::jpeg_on_device> pictures,
                                                 stream in) noexcept override {
    return behind_->decode_jpegs(pictures, in);
  }
  stages::device_status launch(const stages::device_kernel& kernel, const void* arguments,
                               stream in) noexcept override {
    const mutex_lock lock(mutex_);
    if (last_ != nullptr && !last_->has_kernel) record(last_->started, in);
    const stages::device_status status = behind_->launch(kernel, arguments, in);
    if (last_ != nullptr) {
      last_->has_kernel = true;
      record(last_->finished, in);
    }
    return status;
  }
  stages::device_status wait(stream in, stages::device_event fired) noexcept override {
    return behind_->wait(in, fired);
  }
  stages::device_status record(stages::device_event fires, stream in) noexcept override {
    const mutex_lock lock(mutex_);
    if (in == copying_in_) copying_in_ = {};  // the batch has been copied
    return behind_->record(fires, in);
  }
  stages::device_status look_at(stream which, stages::stream_facts& told) noexcept override {
    return behind_->look_at(which, told);
  }
  [[nodiscard]] bool is_of_thread(stream which) const noexcept override { return behind_->is_of_thread(which); }
  stages::device_status query(stages::device_event fired) noexcept override { return behind_->query(fired); }
  stages::device_status synchronize(stages::device_event fired) noexcept override {
    return behind_->synchronize(fired);
  }

 private:
  struct batch_events {
    cudaEvent_t begin = nullptr;
    cudaEvent_t copied = nullptr;
    cudaEvent_t started = nullptr;
    cudaEvent_t finished = nullptr;
    std::size_t bytes = 0;
    bool has_kernel = false;
  };

  /// Of a batch several follow one another.
  template <class Call>
  stages::device_status timed_copy(std::size_t bytes, stream in, Call&& made) {
    const mutex_lock lock(mutex_);
    if (in != copying_in_) {
      copying_in_ = in;
      last_ = copies_ == timed_.size() ? nullptr : &timed_[copies_++];
      if (last_ != nullptr) record(last_->begin, in);
    }
    const stages::device_status status = made();
    if (last_ == nullptr) return status;
    last_->bytes += bytes;
    record(last_->copied, in);
    return status;
  }
  // One that fails leaves its batch without a time, and the batch as it is.
  static void record(cudaEvent_t fires, stream in) noexcept { static_cast<void>(cudaEventRecord(fires, in.handle())); }

  const std::shared_ptr<stages::device_calls> behind_;
  mutex mutex_;
  std::vector<batch_events> timed_ ABSL_GUARDED_BY(mutex_);
  std::size_t copies_ ABSL_GUARDED_BY(mutex_) = 0;
  batch_events* last_ ABSL_GUARDED_BY(mutex_) = nullptr;
  stream copying_in_ ABSL_GUARDED_BY(mutex_);  // as long as the batch's copies come
  pinning pinning_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace leat::benchmarks
