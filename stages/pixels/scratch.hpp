// Memory for decoding, counted to the byte. A budget is shared by the decode threads; each decoder has an arena from
// which everything of one sample is cut, front to back, and given back at once.
//
// An arena keeps what it was granted for its next sample, so that nothing is allocated once the largest has been seen.
// What it keeps is not lost to the others: a thread that needs more takes it from arenas between two samples.
#pragma once

#include "base/mutex.hpp"
#include "base/outcome.hpp"
#include "base/sanitizers.hpp"

#include <leat/error.hpp>

#include <absl/base/thread_annotations.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace leat::pixels {

class scratch_arena;

/// Bytes of scratch for all decode threads together, part of the loader's budget.
class scratch_budget {
 public:
  /// What one sample of a loader may take: a function of the budget alone, so that neither the number of threads nor
  /// anything else decides which pictures are too large.
  [[nodiscard]] static constexpr std::size_t sample_bytes_max(std::size_t host_bytes_max) noexcept {
    return host_bytes_max / 4;
  }
  /// The least host_bytes_max that leaves `bytes` beside that: three quarters of it, rounded up, are `bytes`.
  [[nodiscard]] static constexpr std::size_t host_bytes_least(std::size_t bytes) noexcept {
    return bytes == 0 ? 0 : bytes + (bytes - 1) / 3;
  }

  /// bytes_max        for all arenas; nothing is taken yet
  /// host_bytes_max   the loader's own budget: a sample gets sample_bytes_max() of it, and a refusal names the budget that would
  ///                  do. 0: there is none, and a sample gets what bytes_max has
  /// of_run           what a sample of the run gets, whatever the budget: more is refused. Where the budget has less, what lies
  ///                  between says nothing of the sample (no_memory), since another part of the run has loaded it
  explicit scratch_budget(std::size_t bytes_max, std::size_t host_bytes_max = 0,
                          std::uint64_t of_run = ~std::uint64_t{0});
  ~scratch_budget();
  scratch_budget(const scratch_budget&) = delete;
  scratch_budget& operator=(const scratch_budget&) = delete;

  /// Wakes all threads that wait in reserve(), now and later: their samples are cancelled. Thread: any.
  void stop();

  [[nodiscard]] std::size_t bytes_max() const noexcept { return bytes_max_; }
  /// Bytes granted to arenas, idle ones included: what the process may hold in memory for scratch.
  [[nodiscard]] std::size_t used() const;
  [[nodiscard]] std::size_t peak() const;
  /// How often a sample had to wait for others to finish.
  [[nodiscard]] std::uint64_t waits() const;

 private:
  friend class scratch_arena;

  void join(scratch_arena& arena);
  void leave(scratch_arena& arena);
  stages::outcome<void> grow(scratch_arena& arena, std::size_t bytes);
  bool make_room(const scratch_arena& arena, std::size_t bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  [[nodiscard]] bool can_ever_grow_to(std::size_t bytes) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void reclaim(scratch_arena& arena) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  [[nodiscard]] std::size_t can_give() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  [[nodiscard]] stages::failure refusal(std::size_t bytes) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  [[nodiscard]] std::uint64_t given_in_run() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::size_t bytes_max_;
  const std::size_t host_bytes_max_;
  const std::uint64_t of_run_;  // ~0: what the budget gives
  mutable mutex mutex_;
  condition_variable changed_;
  std::vector<scratch_arena*> arenas_ ABSL_GUARDED_BY(mutex_);
  std::size_t used_ ABSL_GUARDED_BY(mutex_) = 0;
  std::size_t peak_ ABSL_GUARDED_BY(mutex_) = 0;
  std::uint64_t waits_ ABSL_GUARDED_BY(mutex_) = 0;
  // Waiters are served in the order of their tickets: a large picture is not starved by small ones.
  std::uint64_t next_ticket_ ABSL_GUARDED_BY(mutex_) = 0;
  std::uint64_t serving_ ABSL_GUARDED_BY(mutex_) = 0;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  std::atomic<int> waiting_ = 0;  // read without the mutex by arenas that finish a sample
};

/// One decoder's memory. Belongs to one thread; only reclaiming comes from others, and only between samples.
class scratch_arena {
 public:
  /// What every arena holds as long as it lives: enough to read any header.
  static constexpr std::size_t base_bytes = std::size_t{64} << 10;
  /// Grants are rounded up to this.
  static constexpr std::size_t step_bytes = std::size_t{64} << 10;
  /// What take() aligns to: the widest vector of any machine we know, and two lines of its cache.
  static constexpr std::size_t alignment_bytes = 128;

  /// Takes base_bytes, waiting for samples to end if others hold them. Throws error{errc::limit} where the bases of all
  /// arenas exceed the budget, or the system has no address space; error{errc::cancelled} after the budget's stop().
  explicit scratch_arena(scratch_budget& budget);
  ~scratch_arena();
  scratch_arena(const scratch_arena&) = delete;
  scratch_arena& operator=(const scratch_arena&) = delete;

  /// Begins a sample: empty, with base_bytes at least.
  void begin() noexcept;
  /// Makes room for `bytes` more, waiting for other samples to end if need be. At most once per sample, before more
  /// than base_bytes have been taken: so a waiting arena holds nothing that others wait for.
  ///   returns   over_budget where that much can never be given; no_memory where the system has none, or the budget
  ///             less than the run; cancelled after the budget's stop()
  stages::outcome<void> reserve(std::size_t bytes);
  /// The most that reserve() can ever give.
  [[nodiscard]] std::size_t most() const;
  /// The same where the run was begun: more than most() where that had a larger budget.
  [[nodiscard]] std::size_t most_of_run() const;
  /// Why a sample gets no memory that the run had for it: no_memory.
  [[nodiscard]] stages::failure less_than_run(std::size_t bytes) const;
  /// Cuts off `bytes`, uninitialised; null where they were not reserved.
  [[nodiscard]] void* take(std::size_t bytes) noexcept;
  /// Takes `bytes` of the reservation out of use, for memory that a library allocates itself; their pages go back to the system.
  /// False if they were not reserved.
  [[nodiscard]] bool lend(std::size_t bytes) noexcept;
  /// Ends the sample: everything taken is gone.
  void end() noexcept;

  template <class T>
  [[nodiscard]] T* take_array(std::size_t count) noexcept {
    return static_cast<T*>(take(count * sizeof(T)));
  }

  [[nodiscard]] std::size_t used() const noexcept { return used_; }
  [[nodiscard]] std::size_t held() const noexcept { return held_; }

  /// Bytes that take() cuts off for an object of `bytes`.
  [[nodiscard]] static constexpr std::size_t rounded(std::size_t bytes) noexcept {
    return (bytes + guard_bytes + alignment_bytes - 1) / alignment_bytes * alignment_bytes;
  }

 private:
  friend class scratch_budget;

  /// idle       between two samples; what lies above base_bytes may be taken away
  /// busy       its own
  /// waiting    in reserve(), under the budget's mutex; holds nothing above base_bytes and may be taken from
  /// reclaimed  being taken from, under the budget's mutex
  enum class phase : std::uint8_t { idle, busy, waiting, reclaimed };

  bool commit(std::size_t bytes) noexcept;
  void shrink() noexcept;

  // Between two objects, so that AddressSanitizer sees who writes past the end of one.
#if LEAT_ADDRESS_SANITIZER
  static constexpr std::size_t guard_bytes = 64;
#else
  static constexpr std::size_t guard_bytes = 0;
#endif

  scratch_budget& budget_;
  std::byte* memory_ = nullptr;  // bytes_max of the budget in addresses, held_ of them in memory
  std::size_t mapped_ = 0;
  std::size_t held_ = 0;  // changed under the budget's mutex, by the owner or, while not busy, by another
  std::size_t used_ = 0;
  std::atomic<phase> phase_ = phase::idle;
};

/// A sample's time in the arena.
class arena_use {
 public:
  explicit arena_use(scratch_arena& arena) noexcept : arena_(arena) { arena_.begin(); }
  ~arena_use() { arena_.end(); }
  arena_use(const arena_use&) = delete;
  arena_use& operator=(const arena_use&) = delete;

 private:
  scratch_arena& arena_;
};

}  // namespace leat::pixels
