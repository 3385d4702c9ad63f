// The class behind the ring's loop. Its functions are in ring_loop.cpp (turns and deadlines), ring_files.cpp (open files),
// ring_reads.cpp (reads) and ring_failure.cpp (the end of a failed ring); no other file includes this.
//
// The rule of all of them: completions only change the state of the loop. Callbacks are called by finish_all(), when that state is
// consistent again, since they start more operations.
#pragma once

#include "base/hash_map.hpp"
#include "io/files/direct_policy.hpp"
#include "io/files/queue_depth.hpp"
#include "io/ring/make_ring_loop.hpp"
#include "io/ring/ring_state.hpp"
#include "io/ring/uring.hpp"

#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace leat::io::ring {

/// Thread: the loop's own, unless said otherwise.
class ring_loop final : public async::loop, public io_loop {
 public:
  ring_loop(io_context& context, const ring_limits& limits);
  ~ring_loop() override {
    retire();
    ::close(wake_descriptor_);
  }

  // connector
  [[nodiscard]] std::unique_ptr<source> connect_files(const file_table& files) override;
  void post(void (*function)(void*) noexcept, void* argument) override {
    // Later, also from the loop's own thread.
    get_executor().require(async::asio::execution::blocking.never).execute(bound_function{function, argument});
  }

  // io_loop
  [[nodiscard]] async::loop& run_loop() noexcept override { return *this; }
  void run() override;
  void unregister_buffers() noexcept override {
    buffer_of_.clear();
    if (ring_) ring_->unregister_buffers();
  }
  void after_completions(void (*function)(void*) noexcept, void* argument) override {
    after_completions_.push_back({function, argument});
  }
  void turn_until(bool (*over)(const void*) noexcept, const void* argument) override;
  void stop() noexcept override {
    const auto inside = visit();
    stopping_.store(true);
    interrupt();
  }
  [[nodiscard]] fallback backend() const override {
    const mutex_lock lock(report_mutex_);
    return backend_;
  }
  [[nodiscard]] bool wants_direct() const override { return context_.direct.wants_direct(); }
  [[nodiscard]] fallback registered_buffers() const override {
    const mutex_lock lock(report_mutex_);
    return buffers_report_;
  }
  void add_to(io_counters& sum) const noexcept override { count_.add_to(sum); }
  void add_to(async::histogram_sum& sum) const noexcept override { sum.add(kernel_times_); }
  [[nodiscard]] std::uint32_t depth_of(std::uint64_t read_bytes) const noexcept override {
    const unsigned depth = context_.queue_depth.load(std::memory_order_relaxed);
    return depth != 0 ? depth : queue_depth::of(read_bytes);
  }

  // For the sources. Loop thread.
  void start(file_set& set, std::span<read_operation* const> operations);
  void start(file_set& set, open_operation& operation);
  void cancel(read_operation& operation);
  /// A source has gone. Thread: any.
  void retire_set(std::unique_ptr<file_set> set);
  [[nodiscard]] io_context& context() noexcept { return context_; }

 private:
  static constexpr unsigned depth_max = 4096;
  // Opens under way. Each that misses the dentry cache holds one of the kernel's worker threads.
  static constexpr unsigned opens_max = 64;
  // A read that takes longer may be from a pipe that has replaced the file.
  static constexpr std::uint64_t slow_ns = 1'000'000'000;

  struct bound_function {
    void (*function)(void*) noexcept;
    void* argument;
    void operator()() const noexcept { function(argument); }
  };

  void wake() noexcept override;

  // ring_loop.cpp: turns.
  void set_up(const ring_limits& limits);
  unsigned reap() {
    return ring_->reap([this](std::uint64_t user_data, int result) { on_completion(user_data, result); });
  }
  void park_wake();
  void sleep(bool awake);
  void sleep_without_ring(int patience_ms);
  [[nodiscard]] bool is_over() const noexcept;
  [[nodiscard]] bool is_full() const noexcept;
  void on_completion(std::uint64_t user_data, int result);
  [[nodiscard]] std::uint64_t next_deadline_ns() const noexcept;
  void expire();
  void finish_all();
  /// Whether the kernel may still write to a file's slot, to a status query, or to the value of the wake-up.
  [[nodiscard]] bool kernel_has_books() const noexcept;
  void cancel_in_kernel(std::uint64_t user_data);
  void cancel_in_kernel(const chunk& part) { cancel_in_kernel(reinterpret_cast<std::uintptr_t>(&part) | tag_chunk); }
  void end_overdue(std::optional<overdue_list::entry>& entry) {
    if (entry) context_.overdue.remove(*entry);
    entry.reset();
  }

  // ring_failure.cpp: the kernel takes no more calls.
  void break_off_if_failed();
  void break_off(int failure);
  void collect_from_ring(std::uint64_t until_ns);
  void give_up_what_the_kernel_has();
  void fail_what_is_left();
  void keep_books();

  // ring_files.cpp: a pending_read gets a slot, the slot its file.
  void close_files_of(const file_set& set);
  [[nodiscard]] bool place(pending_read& placed);
  void place_waiting();
  [[nodiscard]] file_slot* take_slot();
  void begin_open(file_slot& slot);
  void ask_status(file_slot& slot);
  void ask_again(const file_set& set, std::uint32_t directory);
  void open_now(file_slot& slot, file_mode mode);
  void on_slot(file_slot& slot, int result);
  void on_status(file_slot& slot, int result);
  void on_open(file_slot& slot, int result);
  void fail_open(file_slot& slot, int failure);
  void wait_for_descriptors(file_slot& slot, int failure);
  void detach(pending_read& leaving);
  void forget(file_slot& slot);
  void close_file(file_slot& slot);
  void enqueue(intrusive_list<file_slot>& queue, file_slot& slot);
  void dequeue(file_slot& slot);
  [[nodiscard]] int type_of_open(file_slot& slot, int descriptor);
  void ask(status_query& begun);
  void on_query(status_query& done, int result);
  void check_slow_reads();
  void fail_reads_of(const file_slot& slot, int failure);

  // ring_reads.cpp: a pending_read whose file is open becomes chunks, and when they are done it is.
  void make_ready(pending_read& ready);
  void pump();
  [[nodiscard]] bool admits(std::uint64_t bytes) const noexcept;
  [[nodiscard]] bool may_issue(const pending_read& asking);
  void issue(pending_read& from, std::uint64_t bytes);
  void ask(chunk& part);
  [[nodiscard]] std::optional<std::uint32_t> registered(std::uint32_t piece);
  void on_chunk(chunk& part, int result);
  void end_chunk(chunk& part);
  void read_again_buffered(pending_read& refused);
  void enqueue(intrusive_list<pending_read>& queue, pending_read& queued);
  void dequeue(pending_read& queued);
  void finish(pending_read& ended);
  void deliver(pending_read& ended);

  io_context& context_;
  const std::uint64_t timeout_ns_;
  const bool insists_on_buffers_;
  std::optional<uring>
      ring_;              // made and destroyed on the loop's thread; empty outside of run(), and after it has failed
  bool failing_ = false;  // nothing is submitted to it any more
  std::atomic<bool> stopping_{false};
  int wake_descriptor_ = -1;
  std::unique_ptr<std::uint64_t> wake_value_ = std::make_unique<std::uint64_t>();
  bool wake_parked_ = false;
  std::uint64_t now_ = 0;  // of this turn: when its completions were collected, and then when its reads are submitted

  bool direct_descriptors_ = false;
  std::vector<std::unique_ptr<file_slot>> slots_;
  std::vector<file_slot*> free_slots_;
  hash_map<std::uint64_t, file_slot*> slot_of_;
  intrusive_list<file_slot> idle_;     // open, without users; least recently used first
  intrusive_list<file_slot> opening_;  // the kernel looks at or opens them, oldest first
  intrusive_list<file_slot> asking_;   // another slot asks about their directory
  intrusive_list<file_slot> late_;     // as opening_, and older than the timeout
  unsigned closing_ = 0;               // closes, cancels: whatever the kernel has that nobody waits for
  std::uint64_t open_again_at_ns_ = 0;
  unsigned opens_refused_ = 0;  // in a row, for want of descriptors

  stock<pending_read> reads_;
  stock<chunk> chunks_;
  stock<status_query> queries_;
  intrusive_list<pending_read> unplaced_;  // no slot yet
  intrusive_list<pending_read> ready_;     // their file is open
  intrusive_list<pending_read> finished_;  // done() is still to be called
  intrusive_list<chunk> in_kernel_;        // oldest first
  intrusive_list<chunk> late_chunks_;
  intrusive_list<status_query> querying_;
  intrusive_list<status_query> late_queries_;
  intrusive_list<status_query> own_queries_;  // the loop's own, for no operation
  std::deque<open_operation*> queries_done_;  // done() is still to be called
  std::vector<bound_function> after_completions_;
  std::uint64_t bytes_in_kernel_ = 0;

  // For each piece of the arena: 1 + the number of its registered buffer; 0: not registered. Empty without a table of buffers.
  std::vector<std::uint32_t> buffer_of_;
  unsigned register_refusals_ = 0;
  std::uint64_t register_again_at_ns_ = 0;
  std::uint32_t buffers_registered_ = 0;

  mutable mutex report_mutex_;
  fallback backend_ ABSL_GUARDED_BY(report_mutex_);
  fallback buffers_report_ ABSL_GUARDED_BY(report_mutex_);
  loop_counters count_;
  async::histogram kernel_times_;
  std::uint64_t woke_ns_ = 0;
  bool held_back_ = false;  // after the last pump(), at pumped_ns_
  std::uint64_t pumped_ns_ = 0;
};

}  // namespace leat::io::ring
