// The state of a leat::read_queue: operations that are reused, and two lists of completions, one that fills while the user looks
// at the other.
#pragma once

#include "async/loop.hpp"
#include "base/fork_guard.hpp"
#include "base/intrusive_list.hpp"
#include "base/mutex.hpp"
#include "io/files/source.hpp"

#include <leat/completion.hpp>
#include <leat/error.hpp>
#include <leat/read_queue.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <future>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace leat::io {

/// The part of a reader that its queues use.
class read_queue_host {
 public:
  read_queue_host(const read_queue_host&) = delete;
  read_queue_host& operator=(const read_queue_host&) = delete;

  // Thread: any.
  [[nodiscard]] virtual bool knows(std::uint32_t file) const noexcept = 0;
  [[nodiscard]] virtual read_target target_at(std::span<std::byte> memory) const noexcept = 0;
  [[nodiscard]] virtual error explain(const read_completion& failed) const = 0;
  // Thread: the loop's.
  /// The source of a file that knows() knows. It does not change while operations are in flight.
  [[nodiscard]] virtual source& source_of(std::uint32_t file) = 0;
  /// The queue has no read in flight any more.
  virtual void on_idle(class read_queue_state& queue) noexcept = 0;
  /// The queue ends; it has no read in flight.
  virtual void forget(class read_queue_state& queue) noexcept = 0;

 protected:
  read_queue_host() = default;
  ~read_queue_host() = default;
};

/// Shared by the read_queue and by functions that were posted to the loop. Thread: any, unless said otherwise.
class read_queue_state final : public std::enable_shared_from_this<read_queue_state>, public list_hook {
 public:
  using wait_completion = completion<void(std::exception_ptr, std::span<const read_completion>)>;

  ///   loop, executor   of the same I/O thread
  read_queue_state(read_queue_host& host, connector& loop, async::loop::executor_type executor,
                   std::uint32_t reads_max);

  // The members of read_queue.
  void check() const;
  void push(std::span<const read_request> reads);
  void wait(wait_completion done);
  void cancel();
  [[nodiscard]] std::size_t size() const noexcept { return size_.load(std::memory_order_relaxed); }
  [[nodiscard]] std::size_t reads_max() const noexcept { return reads_max_; }
  [[nodiscard]] async::loop::executor_type executor() const noexcept { return executor_; }
  [[nodiscard]] error explain(const read_completion& failed) const;
  /// Cancels all reads and waits for their end. No call may follow.
  void close() noexcept;

  // For the host. Thread: the loop's.
  [[nodiscard]] bool idle() const noexcept { return in_flight_ == 0; }
  /// Cancels the reads in flight; reads that are pushed later end with ECANCELED.
  void end() noexcept;
  /// The host and its loop end. Thread: any; the queue has no reads, and no other call is running.
  void orphan() noexcept { orphaned_.store(true); }

 private:
  struct operation : read_operation {
    read_queue_state* owner = nullptr;
    source* from = nullptr;  // null: not in flight
    std::uint64_t tag = 0;
    std::uint32_t number = 0;  // of the file, in the host's count
    operation* next_free = nullptr;
  };

  template <class Function>
  void post(Function function) {
    executor_.require(async::asio::execution::blocking.never).execute([self = shared_from_this(), function] {
      function(*self);
    });
  }
  [[nodiscard]] std::string wrong_with(const read_request& asked) const;
  void take(std::size_t count);

  // Thread: the loop's.
  void take_incoming();
  void begin(std::span<const read_request> reads);
  [[nodiscard]] source& source_of(std::uint32_t file);
  void on_completion(operation& ended) noexcept;
  void after_completions() noexcept;
  void begin_wait(wait_completion done, std::uint64_t number);
  void cancel_wait(std::uint64_t number) noexcept;
  void deliver() noexcept;
  void cancel_all() noexcept;
  void begin_close() noexcept;
  void close_if_idle() noexcept;

  read_queue_host& host_;
  connector& loop_;
  const async::loop::executor_type executor_;
  const std::uint32_t reads_max_;
  const fork_guard forked_;
  std::atomic<bool> orphaned_{false};
  std::atomic<std::size_t> size_{0};  // pushed and not given back
  std::atomic<std::uint64_t> waits_{0};

  mutex mutex_;
  std::vector<read_request> incoming_ ABSL_GUARDED_BY(mutex_);  // from other threads
  bool incoming_posted_ ABSL_GUARDED_BY(mutex_) = false;

  // Thread: the loop's.
  const std::unique_ptr<operation[]> operations_;
  operation* free_ = nullptr;
  std::vector<source*> sources_;  // by file, where asked for
  std::vector<read_operation*> starting_;
  std::vector<read_request> begun_;  // taken from incoming_, to be started without the lock
  std::vector<read_completion> ready_;
  std::vector<read_completion> given_;  // what the last completed() gave
  wait_completion waiter_;
  std::uint64_t waiter_number_ = 0;
  std::size_t in_flight_ = 0;
  bool collecting_ = false;  // a call by after_completions() is due
  bool ended_ = false;
  bool closing_ = false;
  std::promise<void> closed_;
  std::shared_ptr<read_queue_state> kept_;  // itself, so that it is never destroyed in a child of fork()
};

}  // namespace leat::io
