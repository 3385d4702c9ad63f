// One io_uring: setting it up as well as this kernel can, submitting and waiting. The only header that sees liburing.
#pragma once

#include <liburing.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <string>

namespace leat::io {

/// What the constructor of uring throws.
struct uring_refusal {
  int code = 0;      ///< errno
  std::string call;  ///< what the kernel refused
  std::string hint;  ///< and what may stand behind it

  /// Whether a user would want to read with threads instead: io_uring is forbidden, missing or too old here, has no memory
  /// or threads left for this user, or does not work. Not when no descriptor is left, since the threads would fail as well.
  [[nodiscard]] bool means_absent() const noexcept;
};

/// A ring that has shown that it can read. All members on the thread that made it: with IORING_SETUP_SINGLE_ISSUER
/// the kernel insists.
class uring {
 public:
  ///   entries   of the submission queue
  ///   files     size wanted of the table of direct descriptors
  ///   buffers   size wanted of the table of registered buffers; 0: none
  uring(unsigned entries, unsigned files, unsigned buffers);
  ~uring();
  uring(const uring&) = delete;
  uring& operator=(const uring&) = delete;

  /// Setup flags in use, in words.
  [[nodiscard]] const std::string& flags() const noexcept { return flags_; }
  /// Entries of the table of direct descriptors; 0 where the kernel has none (before 5.19).
  [[nodiscard]] unsigned files() const noexcept { return files_; }
  /// Entries of the table of registered buffers, all empty; 0 where there is none, and why.
  [[nodiscard]] unsigned buffers() const noexcept { return buffers_; }
  [[nodiscard]] const std::string& why_no_buffers() const noexcept { return why_no_buffers_; }

  /// Registers `memory` as buffer `index`. Returns 0 or an errno: ENOMEM is RLIMIT_MEMLOCK.
  [[nodiscard]] int register_buffer(unsigned index, std::span<std::byte> memory) noexcept;

  /// All of them, and their table. When this returns the kernel has let go of the memory, which after the ring's own end it does
  /// some time later. No read to any of them is under way.
  void unregister_buffers() noexcept;

  /// An entry to be prepared. Submits the queue first if it is full. If the kernel takes no entries at this moment, the entry
  /// waits and is submitted later in its turn, or never: see failure().
  [[nodiscard]] io_uring_sqe* next_sqe();

  /// Submits, and lets finished work show.
  void submit();

  /// Submits, then sleeps until `count` completions are there, or after `patience_ns` at least one, or `deadline_ns`
  /// (from now; 0: none) has passed. May return early.
  void submit_and_wait(unsigned count, std::uint64_t patience_ns, std::uint64_t deadline_ns);

  /// The errno of io_uring_enter(2) that has ended this ring; 0 while it works. EAGAIN and EBUSY are tried again, at growing
  /// intervals for two seconds, and so is EINTR of calls that submit or do not wait; every other errno ends it at once. From then on nothing is submitted; the kernel still
  /// has the entries that were submitted before: see fetch().
  [[nodiscard]] int failure() const noexcept { return failure_; }

  /// For a failed ring: takes back the entries that the kernel has not taken. Calls `each(user_data)`, which may use next_sqe().
  template <class Function>
  void take_back(Function&& each);

  /// Asks for completions and submits nothing. False if the kernel refused.
  [[nodiscard]] bool fetch() noexcept;

  /// Calls `each(user_data, result)` for every completion that is there. `each` may use next_sqe().
  template <class Function>
  unsigned reap(Function&& each) {
    unsigned reaped = 0;
    for (;;) {
      // In bunches: entries are given back before more are looked for.
      io_uring_cqe* bunch[64];
      const unsigned count = io_uring_peek_batch_cqe(&ring_, bunch, 64);
      if (count == 0) return reaped;
      // The operations have left the cache since they were submitted. Prefetching all of them overlaps the misses.
      for (unsigned i = 0; i < count; ++i) {
        const auto* const about =
            reinterpret_cast<const char*>(bunch[i]->user_data);  // if it is no address, nothing happens
        __builtin_prefetch(about);
        __builtin_prefetch(about + 64);
      }
      for (unsigned i = 0; i < count; ++i) each(bunch[i]->user_data, bunch[i]->res);
      io_uring_cq_advance(&ring_, count);
      reaped += count;
    }
  }

 private:
  void set_up(unsigned entries);
  void check_operations();
  void check_reading();
  void make_tables(unsigned files, unsigned buffers);
  [[nodiscard]] bool submit_waiting();
  void note(int result) noexcept;

  io_uring ring_{};
  std::deque<io_uring_sqe> waiting_;  // entries that found no room in the queue
  int failure_ = 0;
  unsigned refusals_ = 0;  // in a row
  std::uint64_t first_refused_ns_ = 0;
  std::uint64_t last_refused_ns_ = 0;
  std::string flags_;
  unsigned files_ = 0;
  unsigned buffers_ = 0;
  std::string why_no_buffers_;
};

template <class Function>
void uring::take_back(Function&& each) {
  // The queue's entries are those between the kernel's head and our tail, flushed or not: entry n in its place n.
  io_uring_sq& queue = ring_.sq;
  for (unsigned n = __atomic_load_n(queue.khead, __ATOMIC_ACQUIRE); n != queue.sqe_tail; ++n) {
    each(queue.sqes[n & queue.ring_mask].user_data);
  }
  queue.sqe_head = queue.sqe_tail = __atomic_load_n(queue.khead, __ATOMIC_ACQUIRE);
  while (!waiting_.empty()) {
    const std::uint64_t user_data = waiting_.front().user_data;
    waiting_.pop_front();
    each(user_data);
  }
}

}  // namespace leat::io
