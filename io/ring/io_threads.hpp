// The threads that read: each with a ring, or with a loop and a few preadv threads behind it.
#pragma once

#include "async/histogram.hpp"
#include "async/loop.hpp"
#include "base/memory_available.hpp"
#include "io/arena/arena.hpp"
#include "io/files/source.hpp"

#include <leat/reader.hpp>
#include <leat/stats.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace leat {
class core_binding;
}

namespace leat::io {

/// How many there are: one unless told.
[[nodiscard]] constexpr std::uint32_t io_thread_count(const reader_options& options) noexcept {
  return options.io_threads != 0 ? options.io_threads : 1;
}

/// What the I/O threads have done, summed over them.
struct io_counters {
  std::uint64_t reads = 0;       ///< operations done, failed ones too
  std::uint64_t bytes_read = 0;  ///< from the kernel, alignment included
  std::uint64_t opens = 0;
  std::uint64_t retries = 0;    ///< reads that went on after a short one, EINTR or EAGAIN
  std::uint64_t turns = 0;      ///< of the loops: one io_uring_enter each, at least
  std::uint64_t wait_ns = 0;    ///< asleep, waiting for completions or posts
  std::uint64_t in_flight = 0;  ///< operations taken and not done, now
  /// Time in which reads waited because the kernel had as many as it is given.
  std::uint64_t held_back_ns = 0;
  std::uint64_t awake_ns = 0;  ///< up to the last sleep
};

/// One of the threads.
struct io_thread_counters {
  std::uint64_t awake_ns = 0;  ///< up to its last sleep
  std::uint64_t wait_ns = 0;   ///< asleep
  std::uint64_t cpu_ns = 0;    ///< that in calls which submit reads and then sleep is in it
};

/// Several loops' or readers' fallbacks as one: backends that differ are named once each, anything else is in use "partly", with
/// the reason of one where it is not.
void join_backends(fallback& all, const fallback& other);
void join_fallbacks(fallback& all, const fallback& other);

/// The threads that read. Built first, destroyed last: sources are connected to its loops, coordination coroutines
/// run on their executors.
///
/// Thread: any, unless said otherwise.
class io_threads {
 public:
  /// Starts options.io_threads threads and waits until each has its ring, or has fallen back.
  ///   memory   what reads go into; its pieces are registered by each ring when it first reads into them, and they do not await
  ///            pinning
  ///   cores    that they run on, and the threads of preadv with them; null: those of the calling thread. It outlives them
  ///   throws   error: unsupported (io_uring asked for and not there, with a remedy), limit (threads, descriptors,
  ///            memory)
  io_threads(const reader_options& options, std::shared_ptr<arena> memory, core_binding* cores = nullptr);
  io_threads(const io_threads&) = delete;
  io_threads& operator=(const io_threads&) = delete;
  /// Every source is gone, every coroutine on the executors has ended. Joins.
  ~io_threads();

  [[nodiscard]] std::uint32_t size() const noexcept;

  /// Thread k as what sources are connected to.
  [[nodiscard]] connector& loop(std::uint32_t k) noexcept;
  /// Thread k as an executor: what runs there must not block.
  [[nodiscard]] async::loop::executor_type executor(std::uint32_t k) noexcept;

  /// What an epoch reads, so that direct = automatic can choose; before connect_files(). Where it is never called, it chooses O_DIRECT.
  void set_epoch_bytes(std::uint64_t bytes, const memory_available& memory = find_memory_available());

  /// How many reads each ring gives the kernel at a time from now on: 1 to queue_depth_max(), or 0, by bytes. Reads that are under way
  /// stay so. Threads of preadv read as many as they are. Thread: any.
  void set_queue_depth(std::uint32_t reads) noexcept;
  [[nodiscard]] std::uint32_t queue_depth_max() const noexcept;

  /// Has `callback` called once for each read that outlives the timeout, on the read's I/O thread, with the error it will
  /// end with: the kernel may hold its memory for ever, and until it lets go done() cannot be called. For failing
  /// early, and loudly. Before the first operation.
  void on_overdue(std::function<void(const error&)> callback);
  /// Sets a function that is called on an I/O thread whose ring has failed; at once, where one has failed before. The operations of
  /// that thread end with loop_failed, and functions that are posted to it still run. Call it before the first operation.
  void on_failure(std::function<void(const error&)> callback);
  /// Why an I/O thread has failed; nothing as long as none has.
  [[nodiscard]] std::optional<error> failure() const;
  /// Whatever others have posted to the loops has run when this returns. Thread: any but theirs.
  void wait_until_quiet() noexcept;
  /// Has each ring let go of its registered buffers, and returns when the kernel has. Nothing is read any more, nor will be.
  /// Thread: any but theirs.
  void unregister_buffers() noexcept;
  /// The reads that outlived their timeout and that the kernel still holds: file and offset, for who waits in stop().
  [[nodiscard]] std::vector<std::string> overdue() const;

  /// The fallbacks in use, each with its reason.
  [[nodiscard]] reader_report report() const;
  [[nodiscard]] io_counters count() const noexcept;
  /// The threads' own, those of preadv not among them. Asks the system for each thread's CPU time.
  [[nodiscard]] std::vector<io_thread_counters> count_threads() const;
  /// Adds what each read has taken in the kernel: from its submission to its completion, of preadv the call.
  void add_to(async::histogram_sum& sum) const noexcept;
  /// Reads of this size that the kernel is given at a time, over all threads.
  [[nodiscard]] std::uint32_t depth_of(std::uint64_t read_bytes) const noexcept;

  class implementation;

 private:
  std::unique_ptr<implementation> implementation_;
};

}  // namespace leat::io
