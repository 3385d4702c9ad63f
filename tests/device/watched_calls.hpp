// Stands between leat and a device: writes down every call, and makes the one fail that a test names.
#pragma once

#include "base/mutex.hpp"
#include "stages/device/device.hpp"

#include <gtest/gtest.h>

#include <pthread.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace leat::testing {

/// Thread: any.
class watched_calls final : public stages::device_calls {
 public:
  explicit watched_calls(std::shared_ptr<stages::device_calls> behind) : behind_(std::move(behind)) {}

  /// Since the last time, each as its name with the numbers of its stream and event, in the order in which they were made.
  [[nodiscard]] std::vector<std::string> take_log() {
    const mutex_lock lock(mutex_);
    return std::exchange(log_, {});
  }
  /// The `nth` call of this name from now on, from 1, answers `code` and is not made.
  void fail(std::string call, std::size_t nth, stages::device_status code) {
    const mutex_lock lock(mutex_);
    failing_ = std::move(call);
    failing_in_ = nth;
    code_ = code;
  }
  /// From now on every call of this name answers `code` and is not made.
  void refuse(std::string call, stages::device_status code) {
    const mutex_lock lock(mutex_);
    refused_ = std::move(call);
    refusal_ = code;
  }
  /// From now on a call of this name waits until let_go().
  void hold(std::string call) {
    const mutex_lock lock(mutex_);
    held_ = std::move(call);
  }
  void let_go() {
    const mutex_lock lock(mutex_);
    held_.clear();
    changed_.notify_all();
  }
  /// Returns once a call is being held.
  void wait_until_held() {
    const mutex_lock lock(mutex_);
    while (holding_ == 0) changed_.wait(mutex_);
  }
  /// How often each call was made in all.
  [[nodiscard]] std::map<std::string, std::size_t> counts() {
    const mutex_lock lock(mutex_);
    return counts_;
  }

  /// The names of the threads that made it.
  [[nodiscard]] std::set<std::string> threads_of(const std::string& call) {
    const mutex_lock lock(mutex_);
    return threads_[call];
  }

  /// Of the device, where it is not empty. Set before the first call.
  std::string pci_address;
  [[nodiscard]] stages::device_facts facts() const override {
    stages::device_facts found = behind_->facts();
    if (!pci_address.empty()) found.pci_address = pci_address;
    return found;
  }

  /// Called when pin() has been answered, whatever the answer, and before unpin() is made. Set before the first call.
  std::function<void(std::span<std::byte>)> on_pin, on_unpin;

  [[nodiscard]] device where() const noexcept override { return behind_->where(); }
  [[nodiscard]] std::string name() const override { return behind_->name(); }
  [[nodiscard]] std::string describe(stages::device_status code) const override { return behind_->describe(code); }
  [[nodiscard]] std::string describe_pinning(stages::device_status code) const override {
    return behind_->describe_pinning(code);
  }
  [[nodiscard]] bool is_lost(stages::device_status code) const noexcept override { return behind_->is_lost(code); }
  [[nodiscard]] bool is_full(stages::device_status code) const noexcept override { return behind_->is_full(code); }

  stages::device_status take_memory(std::size_t bytes, std::byte*& memory, stream in) noexcept override {
    return call("take_memory", " in " + number(in), [&] { return behind_->take_memory(bytes, memory, in); });
  }
  stages::device_status free_memory(std::byte* memory, stream in) noexcept override {
    return call("free_memory", " in " + number(in), [&] { return behind_->free_memory(memory, in); });
  }
  stages::device_status take_word(std::atomic<std::uint64_t>*& word) noexcept override {
    return call("take_word", "", [&] { return behind_->take_word(word); });
  }
  stages::device_status free_word(const std::atomic<std::uint64_t>* word) noexcept override {
    return call("free_word", "", [&] { return behind_->free_word(word); });
  }
  stages::device_status write(const std::atomic<std::uint64_t>& word, std::uint64_t value,
                              stream in) noexcept override {
    return call("write", " " + std::to_string(value) + " in " + number(in),
                [&] { return behind_->write(word, value, in); });
  }
  stages::device_status pin(std::span<std::byte> memory) noexcept override {
    const stages::device_status status = call("pin", "", [&] { return behind_->pin(memory); });
    if (on_pin) on_pin(memory);
    return status;
  }
  stages::device_status unpin(std::span<std::byte> memory) noexcept override {
    if (on_unpin) on_unpin(memory);
    return call("unpin", "", [&] { return behind_->unpin(memory); });
  }
  stages::device_status make_stream(stream& made) noexcept override {
    return call("make_stream", "", [&] { return behind_->make_stream(made); });
  }
  stages::device_status free_stream(stream made) noexcept override {
    return call("free_stream", " " + number(made), [&] { return behind_->free_stream(made); });
  }
  stages::device_status make_event(stages::device_event& made) noexcept override {
    return call("make_event", "", [&] { return behind_->make_event(made); });
  }
  stages::device_status free_event(stages::device_event made) noexcept override {
    return call("free_event", "", [&] { return behind_->free_event(made); });
  }
  stages::device_status make_timed_event(stages::device_event& made) noexcept override {
    return call("make_timed_event", "", [&] { return behind_->make_timed_event(made); });
  }
  stages::device_status elapsed_ns(stages::device_event from, stages::device_event to,
                                   std::int64_t& ns) noexcept override {
    return call("elapsed_ns", " " + number(from) + " " + number(to), [&] { return behind_->elapsed_ns(from, to, ns); });
  }
  [[nodiscard]] std::string prepare_jpegs() override { return behind_->prepare_jpegs(); }
  [[nodiscard]] stages::failed_call decode_jpegs(std::span<const stages::jpeg_on_device> pictures,
                                                 stream in) noexcept override {
    stages::failed_call failed;
    const stages::device_status status =
        call("decode_jpegs", " " + std::to_string(pictures.size()) + " in " + number(in), [&] {
          failed = behind_->decode_jpegs(pictures, in);
          return failed.status;
        });
    if (failed.status == stages::device_ok) failed.status = status;
    return failed;
  }
  stages::device_status finish(stream in) noexcept override {
    return call("finish", " " + number(in), [&] { return behind_->finish(in); });
  }
  stages::device_status copy(std::byte* to, const std::byte* from, std::size_t bytes, stream in) noexcept override {
    return call("copy", " " + std::to_string(bytes) + " in " + number(in),
                [&] { return behind_->copy(to, from, bytes, in); });
  }
  stages::device_status copy_within(std::byte* to, const std::byte* from, std::size_t bytes,
                                    stream in) noexcept override {
    return call("copy_within", " in " + number(in), [&] { return behind_->copy_within(to, from, bytes, in); });
  }
  stages::device_status copy_rows(std::byte* to, const std::byte* from, std::size_t stride, std::size_t row_bytes,
                                  std::uint32_t rows, stream in) noexcept override {
    return call("copy_rows", " " + std::to_string(rows) + " of " + std::to_string(row_bytes) + " in " + number(in),
                [&] { return behind_->copy_rows(to, from, stride, row_bytes, rows, in); });
  }
  stages::device_status launch(const stages::device_kernel& kernel, const void* arguments,
                               stream in) noexcept override {
    return call("launch", " " + std::string(kernel.name) + " in " + number(in),
                [&] { return behind_->launch(kernel, arguments, in); });
  }
  stages::device_status wait(stream in, stages::device_event fired) noexcept override {
    return call("wait", " in " + number(in) + " for " + number(fired), [&] { return behind_->wait(in, fired); });
  }
  stages::device_status record(stages::device_event fires, stream in) noexcept override {
    return call("record", " " + number(fires) + " in " + number(in), [&] { return behind_->record(fires, in); });
  }
  [[nodiscard]] bool can_record_all() const noexcept override { return behind_->can_record_all(); }
  stages::device_status record_all(stages::device_event fires) noexcept override {
    return call("record_all", " " + number(fires), [&] { return behind_->record_all(fires); });
  }
  stages::device_status look_at(stream which, stages::stream_facts& told) noexcept override {
    return call("look_at", " " + number(which), [&] { return behind_->look_at(which, told); });
  }
  [[nodiscard]] bool is_of_thread(stream which) const noexcept override { return behind_->is_of_thread(which); }
  stages::device_status query(stages::device_event fired) noexcept override {
    return call("query", " " + number(fired), [&] { return behind_->query(fired); });
  }
  stages::device_status synchronize(stages::device_event fired) noexcept override {
    return call("synchronize", " " + number(fired), [&] { return behind_->synchronize(fired); });
  }

  static std::string number(stream which) {
    return "s" + std::to_string(reinterpret_cast<std::uintptr_t>(which.handle()));
  }
  static std::string number(stages::device_event which) {
    return "e" + std::to_string(static_cast<std::uintptr_t>(which));
  }

 private:
  template <class Call>
  stages::device_status call(const std::string& name, const std::string& arguments, Call&& made) {
    {
      const mutex_lock lock(mutex_);
      ++counts_[name];
      char thread[16] = {};
      ::pthread_getname_np(::pthread_self(), thread, sizeof thread);
      threads_[name].insert(thread);
      log_.push_back(name + arguments);
      if (name == refused_) return refusal_;
      if (name == failing_ && --failing_in_ == 0) {
        failing_.clear();
        return code_;
      }
      while (name == held_) {
        ++holding_;
        changed_.notify_all();
        changed_.wait(mutex_);
        --holding_;
      }
    }
    return made();
  }

  const std::shared_ptr<stages::device_calls> behind_;
  mutex mutex_;
  std::vector<std::string> log_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, std::size_t> counts_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, std::set<std::string>> threads_ ABSL_GUARDED_BY(mutex_);
  std::string failing_ ABSL_GUARDED_BY(mutex_);
  std::size_t failing_in_ ABSL_GUARDED_BY(mutex_) = 0;
  std::string refused_ ABSL_GUARDED_BY(mutex_);
  stages::device_status refusal_ ABSL_GUARDED_BY(mutex_) = stages::device_ok;
  std::string held_ ABSL_GUARDED_BY(mutex_);
  std::size_t holding_ ABSL_GUARDED_BY(mutex_) = 0;
  condition_variable changed_;
  stages::device_status code_ ABSL_GUARDED_BY(mutex_) = stages::device_ok;
};

/// That a loop made no call that takes or gives back what is the device's, or waits for all of it; and that who may wait
/// in one of the others are threads which are there for it.
///   before   counts() when the loop began
inline void expect_only_calls_of_the_loop(watched_calls& watched, const std::map<std::string, std::size_t>& before) {
  std::map<std::string, std::size_t> after = watched.counts();
  for (const char* call : {"take_memory", "free_memory", "make_event", "make_timed_event", "free_event", "make_stream",
                           "free_stream", "unpin", "finish", "take_word", "free_word"}) {
    EXPECT_EQ(after[call], before.contains(call) ? before.at(call) : 0) << call;
  }
  // One thread queues batches, and pins their memory as they first leave; another waits for a copy while the line starves. The I/O
  // thread calls nothing.
  for (const char* call : {"pin", "copy", "write", "launch"}) {
    for (const std::string& each : watched.threads_of(call)) EXPECT_EQ(each, "leat-send") << call;
  }
  for (const std::string& each : watched.threads_of("synchronize")) EXPECT_EQ(each, "leat-copies");
}

}  // namespace leat::testing
