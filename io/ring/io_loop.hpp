// What the ring's loop and the preadv loop have in common for who runs them.
#pragma once

#include "async/histogram.hpp"
#include "async/loop.hpp"
#include "base/mutex.hpp"
#include "base/relaxed_counter.hpp"
#include "io/arena/arena.hpp"
#include "io/files/direct_policy.hpp"
#include "io/files/source.hpp"
#include "io/ring/io_threads.hpp"

#include <leat/reader.hpp>
#include <leat/stats.hpp>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace leat::io {

/// The reads and opens that the kernel has had for longer than the timeout. Thread: any.
class overdue_list {
 public:
  using entry = std::list<std::string>::iterator;

  /// Before the first operation.
  void on_overdue(std::function<void(const error&)> callback) { callback_ = std::move(callback); }

  entry add(std::string what, const error& why) {
    entry added;
    {
      const mutex_lock lock(mutex_);
      added = entries_.insert(entries_.end(), std::move(what));
    }
    if (callback_) callback_(why);  // after the entry is in the list, which the callback may ask for
    return added;
  }
  void remove(entry which) {
    const mutex_lock lock(mutex_);
    entries_.erase(which);
  }
  [[nodiscard]] std::vector<std::string> list() const {
    const mutex_lock lock(mutex_);
    return {entries_.begin(), entries_.end()};
  }

 private:
  std::function<void(const error&)> callback_;
  mutable mutex mutex_;
  std::list<std::string> entries_ ABSL_GUARDED_BY(mutex_);
};

/// The failure of operations whose loop has lost its ring (read_operation::failure, open_operation::failure). It is no errno, and
/// no fault of a file.
inline constexpr int loop_failed = ENOTRECOVERABLE;

/// Why loops have failed: the reason of the first one that did. Thread: any.
class loop_failure {
 public:
  /// A failure that was there before is reported at once: a ring may fail as soon as its thread runs.
  void on_failure(std::function<void(const error&)> callback) {
    std::optional<error> before;
    {
      const mutex_lock lock(mutex_);
      callback_ = callback;
      before = why_;
    }
    if (before && callback) callback(*before);
  }

  void set(const error& why) {
    std::function<void(const error&)> callback;
    {
      const mutex_lock lock(mutex_);
      if (!why_) why_ = why;
      callback = callback_;
    }
    if (callback) callback(why);
  }
  [[nodiscard]] std::optional<error> get() const {
    const mutex_lock lock(mutex_);
    return why_;
  }

 private:
  mutable mutex mutex_;
  std::function<void(const error&)> callback_ ABSL_GUARDED_BY(mutex_);
  std::optional<error> why_ ABSL_GUARDED_BY(mutex_);
};

/// What all loops share; outlives them.
struct io_context {
  reader_options options;
  std::shared_ptr<arena> memory;  // as leases do: the ring must not outlive what it has registered
  direct_policy direct;
  overdue_list overdue;
  loop_failure failure;
  /// Reads that each ring gives the kernel at a time; 0: by bytes (io/files/queue_depth.hpp). It may change at any time.
  std::atomic<unsigned> queue_depth;

  io_context(const reader_options& from, std::shared_ptr<arena> arena_in_use)
      : options(from), memory(std::move(arena_in_use)), direct(from.direct), queue_depth(from.queue_depth) {}
};

struct loop_counters {
  relaxed_counter reads, bytes_read, opens, retries, turns, wait_ns, in_flight, held_back_ns, awake_ns;

  void add_to(io_counters& sum) const noexcept {
    sum.reads += reads.get();
    sum.bytes_read += bytes_read.get();
    sum.opens += opens.get();
    sum.retries += retries.get();
    sum.turns += turns.get();
    sum.wait_ns += wait_ns.get();
    sum.in_flight += in_flight.get();
    sum.held_back_ns += held_back_ns.get();
    sum.awake_ns += awake_ns.get();
  }
};

/// One I/O thread's loop. Made on that thread, destroyed on any after run() has returned.
class io_loop : public connector {
 public:
  virtual ~io_loop() = default;

  /// The queue and executor.
  [[nodiscard]] virtual async::loop& run_loop() noexcept = 0;
  [[nodiscard]] async::loop::executor_type executor() noexcept final { return run_loop().get_executor(); }

  /// Turns until stop(). No operation is left then.
  virtual void run() = 0;
  /// When this returns the kernel has let go of them. No operation is under way, nor comes. Thread: the loop's.
  virtual void unregister_buffers() noexcept {}
  /// Thread: any.
  virtual void stop() noexcept = 0;

  // Thread: any.
  [[nodiscard]] virtual fallback backend() const = 0;
  [[nodiscard]] virtual fallback registered_buffers() const = 0;
  virtual void add_to(io_counters& sum) const noexcept = 0;
  /// What each read took in the kernel.
  virtual void add_to(async::histogram_sum& sum) const noexcept = 0;
  /// Reads of this size that the kernel is given at a time.
  [[nodiscard]] virtual std::uint32_t depth_of(std::uint64_t read_bytes) const noexcept = 0;
};

}  // namespace leat::io
