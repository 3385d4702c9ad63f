// A device that is not there: streams and events as queues of operations, executed as late as the rules of their order
// allow, as early, or at random. What relies on luck instead of an event shows as a wrong digest.
#pragma once

#include "base/mutex.hpp"
#include "base/thread_number.hpp"
#include "stages/device/device.hpp"
#include "tests/support/seeded_random.hpp"

#include <leat/stream.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

namespace leat::testing {

/// When a stream executes what it may execute.
///   late     only what somebody on the CPU waits for, and what that depends on
///   early    at once
///   random   some, at every call of anybody
enum class execution : std::uint8_t { late, early, random };

/// Waits that a device does not keep to, as if nobody had asked for them: to show what each is there for.
struct waits_left_out {
  bool copy_for_consumer = false;  ///< the loader's stream does not wait for who reads what a copy overwrites
  bool consumer_for_copy = false;  ///< a consumer's stream does not wait for the copy
  bool host_for_copy = false;      ///< who asks whether a copy has passed is told that it has
  bool operation_for_copy =
      false;  ///< of the loader's streams none waits for another: for copies, or for operations on what they overwrite

  [[nodiscard]] bool any() const noexcept {
    return copy_for_consumer || consumer_for_copy || host_for_copy || operation_for_copy;
  }
};

struct simulated_device_options {
  std::uint64_t seed = 1;
  execution loader = execution::random;    ///< streams made through the table of calls
  execution consumer = execution::random;  ///< streams made by make_consumer()
  bool can_pin = true;                     ///< else every pin() is refused
  bool can_write_words = true;             ///< else take_word() gives none
  bool can_decode_jpegs = true;            ///< else prepare_jpegs() says why not
  /// Its number: a process may have several.
  int index = 0;
  /// With any of them, copies look at memory that is not theirs any more without being stopped by a sanitizer.
  waits_left_out left_out = {};
};

/// As CUDA orders it: a stream executes its operations in turn, streams know of each other by waits alone, and an event
/// stands for its latest record(). The memory of the device is host memory, filled with rubbish when it is taken.
///
///   default streams   stream() is there always. per_thread() is another one for each thread; the default stream waits for
///                     all that lies in those, and they wait for it
///   pageable memory   a copy from it waits on the CPU for all that its stream holds, and then reads at once
///   captures          what is put into a stream that is captured is not executed; who waits for an event that was recorded
///                     there would be drawn into the capture, which is a bug of ours
///   other devices     one of their streams may wait for our events, and not record them
///
///   blocking streams  as cudaStreamCreate makes them: the default stream waits for all that lies in those as well, and they for it
///   what is freed     goes when its turn in the stream comes; an ended stream executes what it holds
///
/// It counts what it gave, so that a test can ask whether all came home, and asserts what CUDA would refuse.
/// Thread: any.
class simulated_device final : public stages::device_calls {
 public:
  explicit simulated_device(const simulated_device_options& options = {});
  ~simulated_device() override;

  /// The one in whose memory this lies; null where none does.
  [[nodiscard]] static simulated_device* holding(const void* memory);

  // --- what a trainer does ------------------------------------------------------------------------------------------

  /// A stream like any of a trainer's; the default stream, stream(), is there always.
  [[nodiscard]] stream make_consumer();
  [[nodiscard]] stream make_blocking_consumer();
  /// Another one, always the same: made when it is first asked for.
  [[nodiscard]] stream consumer_beside();
  /// As cudaStreamPerThread: the calling thread's own default stream.
  [[nodiscard]] static stream per_thread() noexcept { return reinterpret_cast<CUstream_st*>(2); }
  /// Runs `kernel` when its turn in `in` comes, on any thread. It must not call the device.
  void launch(stream in, std::function<void()> kernel);
  /// Executes all that `in` holds, and what it depends on.
  void finish_all(stream in) { static_cast<void>(finish(in)); }
  /// All that any stream holds.
  void finish_everything();

  /// What is put into `in` from here on goes into a graph, of which the second gives the number of kernels.
  void begin_capture(stream in);
  std::size_t end_capture(stream in);

  /// As after a fault in some kernel: nothing is executed any more, and every call answers `code`.
  void lose(stages::device_status code);

  // --- what a test asks ---------------------------------------------------------------------------------------------

  struct counts {
    std::size_t memory = 0, pinned = 0, streams = 0, events = 0, words = 0;  ///< given and not taken back
    std::size_t captures_broken = 0;  ///< by what was put into the default stream meanwhile
    std::size_t copies = 0, copies_pageable = 0, kernels = 0, waits_for_device = 0;
    std::size_t memory_taken_in_all = 0;
    std::size_t bytes_copied = 0;   ///< from the host
    std::size_t copies_within = 0;  ///< from the device to the device
    std::size_t jpegs = 0;          ///< decoded
  };
  [[nodiscard]] counts count() const;
  /// The names of the threads that made a call which may wait for the device.
  [[nodiscard]] std::set<std::string> waiting_threads() const;

  // --- stages::device_calls -------------------------------------------------------------------------------------------

  [[nodiscard]] device where() const noexcept override { return cuda(options_.index); }
  [[nodiscard]] std::string name() const override { return "simulated device"; }
  [[nodiscard]] std::string describe(stages::device_status code) const override;
  [[nodiscard]] std::string describe_pinning(stages::device_status code) const override;
  [[nodiscard]] bool is_lost(stages::device_status code) const noexcept override;
  [[nodiscard]] bool is_full(stages::device_status code) const noexcept override;
  stages::device_status take_memory(std::size_t bytes, std::byte*& memory, stream in) noexcept override;
  stages::device_status free_memory(std::byte* memory, stream in) noexcept override;
  stages::device_status pin(std::span<std::byte> memory) noexcept override;
  stages::device_status unpin(std::span<std::byte> memory) noexcept override;
  stages::device_status make_stream(stream& made) noexcept override;
  stages::device_status free_stream(stream made) noexcept override;
  stages::device_status make_event(stages::device_event& made) noexcept override;
  stages::device_status make_timed_event(stages::device_event& made) noexcept override;
  stages::device_status elapsed_ns(stages::device_event from, stages::device_event to,
                                   std::int64_t& ns) noexcept override;
  stages::device_status free_event(stages::device_event made) noexcept override;
  stages::device_status take_word(std::atomic<std::uint64_t>*& word) noexcept override;
  stages::device_status free_word(const std::atomic<std::uint64_t>* word) noexcept override;
  [[nodiscard]] std::string prepare_jpegs() override;
  /// By libjpeg-turbo, and so with its pixels. What libjpeg-turbo finds damaged is refused.
  stages::failed_call decode_jpegs(std::span<const stages::jpeg_on_device> pictures, stream in) noexcept override;
  stages::device_status finish(stream in) noexcept override;
  stages::device_status copy(std::byte* to, const std::byte* from, std::size_t bytes, stream in) noexcept override;
  stages::device_status copy_rows(std::byte* to, const std::byte* from, std::size_t stride, std::size_t row_bytes,
                                  std::uint32_t rows, stream in) noexcept override;
  stages::device_status copy_within(std::byte* to, const std::byte* from, std::size_t bytes,
                                    stream in) noexcept override;
  stages::device_status launch(const stages::device_kernel& kernel, const void* arguments, stream in) noexcept override;
  stages::device_status write(const std::atomic<std::uint64_t>& word, std::uint64_t value, stream in) noexcept override;
  stages::device_status wait(stream in, stages::device_event fired) noexcept override;
  stages::device_status record(stages::device_event fires, stream in) noexcept override;
  [[nodiscard]] bool can_record_all() const noexcept override { return true; }
  stages::device_status record_all(stages::device_event fires) noexcept override;
  stages::device_status look_at(stream which, stages::stream_facts& told) noexcept override;
  /// `which` is a stream of another context of this device from here on.
  void make_foreign(stream which) {
    const mutex_lock lock(mutex_);
    foreign_.insert(which.handle());
  }
  [[nodiscard]] bool is_of_thread(stream which) const noexcept override { return which == per_thread(); }
  stages::device_status query(stages::device_event fired) noexcept override;
  stages::device_status synchronize(stages::device_event fired) noexcept override;

 private:
  struct queue;
  /// `recorded` calls of record() were made, `fired` of them executed; `behind` is the stream of the latest.
  struct event_state {
    std::uint64_t recorded = 0;
    std::uint64_t fired = 0;
    queue* behind = nullptr;
    bool captured = false;  ///< the latest record() was put into a capture
    bool timed = false;
    std::uint64_t fired_ns = 0;
  };
  struct operation {
    enum class kind : std::uint8_t { run, wait, record };
    kind what = kind::run;
    std::function<void()> function;
    std::shared_ptr<event_state> event;  // who waits for it keeps it, as in CUDA
    std::uint64_t target = 0;  ///< of a wait: how often the event must have fired; of a record: which time this is
    queue* behind = nullptr;   ///< of a wait: where the record lies
  };
  struct queue {
    execution when = execution::late;
    bool of_loader = false;  ///< made through the table of calls
    bool blocking = false;   ///< a thread's default stream, or made as one that the default stream waits for
    bool ended = false;      ///< freed: goes when it is empty
    bool capturing = false;
    std::size_t captured_kernels = 0;
    std::deque<operation> operations;
  };

  [[nodiscard]] queue& queue_of(stream in) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  [[nodiscard]] const std::shared_ptr<event_state>& state_of(stages::device_event event)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  struct registry;
  static registry& there();
  /// Whether all of it lies in one piece of the device's memory.
  [[nodiscard]] bool is_mine(const void* memory, std::size_t bytes) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void require_memory_of(const stages::device_kernel& kernel, const void* arguments) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void require_mine(const void* memory, std::size_t bytes, const char* what) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  stream add_stream(execution when) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  queue& add_queue(CUstream_st* handle, execution when) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  [[nodiscard]] std::uintptr_t next_handle() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  [[nodiscard]] int owner_of(stream which) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void push(stream in, operation added) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  [[nodiscard]] bool is_captured_beside(stream which) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void follow(queue& later, queue& earlier) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  [[nodiscard]] bool is_left_out(const queue& waits, const event_state& event) const;
  void note_wait() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  [[nodiscard]] bool step(queue& in) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void drift() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void force(event_state& event, std::uint64_t target, queue* behind) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void force_all(queue& in) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void force_everything() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void end_what_nobody_waited_for() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void force_front(queue& in) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const simulated_device_options options_;
  mutable mutex mutex_;
  seeded_random random_ ABSL_GUARDED_BY(mutex_);
  std::map<std::byte*, std::unique_ptr<std::byte[]>> memory_ ABSL_GUARDED_BY(mutex_);
  std::map<std::byte*, std::size_t> memory_bytes_ ABSL_GUARDED_BY(mutex_);
  std::map<const std::byte*, std::size_t> pinned_ ABSL_GUARDED_BY(mutex_);
  std::set<const std::byte*> freed_ ABSL_GUARDED_BY(mutex_);  // and not gone yet
  std::map<const std::atomic<std::uint64_t>*, std::unique_ptr<std::atomic<std::uint64_t>>> words_
      ABSL_GUARDED_BY(mutex_);
  std::map<CUstream_st*, std::unique_ptr<queue>> streams_ ABSL_GUARDED_BY(mutex_);
  std::vector<queue*> drifting_ ABSL_GUARDED_BY(mutex_);
  std::map<stages::device_event, std::shared_ptr<event_state>> events_ ABSL_GUARDED_BY(mutex_);
  std::optional<stream> beside_ ABSL_GUARDED_BY(mutex_);
  queue* gathering_ ABSL_GUARDED_BY(mutex_) = nullptr;                  // of record_all()
  std::map<std::uint64_t, queue*> of_threads_ ABSL_GUARDED_BY(mutex_);  // by thread_number()
  std::set<CUstream_st*> foreign_ ABSL_GUARDED_BY(mutex_);
  std::set<std::string> waiting_threads_ ABSL_GUARDED_BY(mutex_);
  std::uintptr_t handles_ ABSL_GUARDED_BY(mutex_) = 0;
  stages::device_status lost_ ABSL_GUARDED_BY(mutex_) = stages::device_ok;
  counts counts_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace leat::testing
