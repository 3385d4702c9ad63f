// What a leat::read_queue is made of: operations that are used again and again, and completions in two lists, one that
// fills while the other is looked at.
#pragma once

#include "async/fork_guard.hpp"
#include "async/intrusive_list.hpp"
#include "async/loop.hpp"
#include "async/mutex.hpp"
#include "io/source.hpp"

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

/// What a queue asks of the reader that it belongs to.
class read_queue_host {
 public:
  read_queue_host(const read_queue_host&) = delete;
  read_queue_host& operator=(const read_queue_host&) = delete;

  // Thread: any.
  [[nodiscard]] virtual bool knows(std::uint32_t file) const noexcept = 0;
  [[nodiscard]] virtual space space_at(std::span<std::byte> memory) const noexcept = 0;
  [[nodiscard]] virtual error explain(const read_completion& failed) const = 0;
  // Thread: the loop's.
  /// Of a file that is known; the same for as long as operations are begun.
  [[nodiscard]] virtual source& source_of(std::uint32_t file) = 0;
  /// No read of the queue's is under way any more.
  virtual void on_idle(class read_queue_state& queue) noexcept = 0;
  /// The queue ends, and has no read under way.
  virtual void forget(class read_queue_state& queue) noexcept = 0;

 protected:
  read_queue_host() = default;
  ~read_queue_host() = default;
};

/// Held by the handle, and by what is on its way to the loop. Thread: any, unless said otherwise.
class read_queue_state final : public std::enable_shared_from_this<read_queue_state>, public async::list_hook {
 public:
  using wait_completion = completion<void(std::exception_ptr, std::span<const read_completion>)>;

  ///   loop, executor   one and the same
  read_queue_state(read_queue_host& host, connector& loop, async::loop::executor_type executor,
                   std::uint32_t reads_max);

  // As read_queue has them.
  void check() const;
  void push(std::span<const read_request> reads);
  void wait(wait_completion done);
  void cancel();
  [[nodiscard]] std::size_t size() const noexcept { return size_.load(std::memory_order_relaxed); }
  [[nodiscard]] std::size_t reads_max() const noexcept { return reads_max_; }
  [[nodiscard]] async::loop::executor_type executor() const noexcept { return executor_; }
  [[nodiscard]] error explain(const read_completion& failed) const;
  /// Asks and waits. Last.
  void close() noexcept;

  // For the host. Thread: the loop's.
  [[nodiscard]] bool idle() const noexcept { return in_flight_ == 0; }
  /// Cancels what is under way; what is pushed from now on ends with ECANCELED.
  void end() noexcept;
  /// The host goes, and its loop with it. Thread: any; the queue is idle, and nobody uses it.
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
  void told(operation& ended) noexcept;
  void after_told() noexcept;
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
  const async::fork_guard forked_;
  std::atomic<bool> orphaned_{false};
  std::atomic<std::size_t> size_{0};  // pushed and not given back
  std::atomic<std::uint64_t> waits_{0};

  async::mutex mutex_;
  std::vector<read_request> incoming_ ABSL_GUARDED_BY(mutex_);  // from other threads
  bool incoming_posted_ ABSL_GUARDED_BY(mutex_) = false;

  // Thread: the loop's.
  const std::unique_ptr<operation[]> operations_;
  operation* free_ = nullptr;
  std::vector<source*> sources_;  // by file, where asked for
  std::vector<read_operation*> starting_;
  std::vector<read_request> begun_;  // what came in, outside the lock
  std::vector<read_completion> ready_;
  std::vector<read_completion> given_;  // the waiter's, until it asks again
  wait_completion waiter_;
  std::uint64_t waiter_number_ = 0;
  std::size_t in_flight_ = 0;
  bool collecting_ = false;  // after_told() is on its way
  bool ended_ = false;
  bool closing_ = false;
  std::promise<void> closed_;
  std::shared_ptr<read_queue_state> kept_;  // itself, in a child of fork(): for good
};

}  // namespace leat::io
