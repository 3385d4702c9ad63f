#include "io/arena/lease_pool.hpp"

#include "base/clock.hpp"
#include "base/fork_guard.hpp"
#include "base/intrusive_list.hpp"
#include "base/mutex.hpp"
#include "base/sanitizers.hpp"
#include "base/text.hpp"

#include <leat/error.hpp>

#include <boost/asio/error.hpp>
#include <boost/system/system_error.hpp>

#include <algorithm>
#include <atomic>
#include <cassert>
#include <functional>
#include <vector>

#if LEAT_ADDRESS_SANITIZER
#include <sanitizer/asan_interface.h>
#endif

namespace leat::io {
namespace {

// What the tightest file system wants of an address for O_DIRECT, and a page for everybody else.
constexpr std::size_t unit_bytes = alignment_max_bytes;

std::size_t whole_units(std::size_t bytes) {
  return (std::max<std::size_t>(bytes, 1) + unit_bytes - 1) / unit_bytes * unit_bytes;
}

// Memory that nobody holds is poisoned under AddressSanitizer, so a row written after its lease went home is found.
void poison([[maybe_unused]] std::span<std::byte> memory) {
#if LEAT_ADDRESS_SANITIZER
  ASAN_POISON_MEMORY_REGION(memory.data(), memory.size());
#endif
}
void unpoison([[maybe_unused]] std::span<std::byte> memory) {
#if LEAT_ADDRESS_SANITIZER
  ASAN_UNPOISON_MEMORY_REGION(memory.data(), memory.size());
#endif
}

/// Free ranges in address order, neighbours joined.
class free_list {
 public:
  ///   on_pieces   a range that is larger than a piece of the arena begins with one, if there is such a place
  free_list(std::size_t bytes, bool on_pieces) : ranges_{{0, bytes}}, on_pieces_(on_pieces) {}

  /// Makes sure that giving back never allocates: with n leases out there are at most n + 1 free ranges.
  void prepare(std::size_t leases_out) {
    if (ranges_.capacity() < leases_out + 2) ranges_.reserve(2 * leases_out + 16);
  }

  /// The first place for `bytes` within one piece of the arena, or for a larger range at the start of one; if there is none, the
  /// first place of all.
  [[nodiscard]] std::optional<std::size_t> take(std::size_t bytes) noexcept {
    constexpr std::size_t piece = arena::piece_bytes;
    if (bytes <= piece || on_pieces_) {
      for (auto it = ranges_.begin(); it != ranges_.end(); ++it) {
        const bool straddles =
            bytes <= piece ? it->offset / piece != (it->offset + bytes - 1) / piece : it->offset % piece != 0;
        const std::size_t at = straddles ? (it->offset / piece + 1) * piece : it->offset;
        if (at + bytes <= it->offset + it->bytes) return cut(it, at, bytes);
      }
    }
    for (auto it = ranges_.begin(); it != ranges_.end(); ++it) {
      if (it->bytes >= bytes) return cut(it, it->offset, bytes);
    }
    return std::nullopt;
  }

  void give_back(std::size_t offset, std::size_t bytes) noexcept {
    const auto after = std::lower_bound(ranges_.begin(), ranges_.end(), offset,
                                        [](const range& r, std::size_t at) { return r.offset < at; });
    const bool joins_after = after != ranges_.end() && offset + bytes == after->offset;
    const bool joins_before = after != ranges_.begin() && std::prev(after)->offset + std::prev(after)->bytes == offset;
    assert(after == ranges_.end() || offset + bytes <= after->offset);
    if (joins_before) {
      std::prev(after)->bytes += bytes + (joins_after ? after->bytes : 0);
      if (joins_after) ranges_.erase(after);
    } else if (joins_after) {
      after->offset = offset;
      after->bytes += bytes;
    } else {
      assert(ranges_.size() < ranges_.capacity());
      ranges_.insert(after, {offset, bytes});
    }
  }

 private:
  struct range {
    std::size_t offset;
    std::size_t bytes;
  };

  std::size_t cut(std::vector<range>::iterator from, std::size_t at, std::size_t bytes) noexcept {
    const std::size_t before = at - from->offset;
    const std::size_t behind = from->bytes - before - bytes;
    if (before == 0 && behind == 0) {
      ranges_.erase(from);
    } else if (before == 0) {
      *from = {at + bytes, behind};
    } else {
      from->bytes = before;
      if (behind != 0) ranges_.insert(from + 1, {at + bytes, behind});
    }
    return at;
  }

  std::vector<range> ranges_;
  const bool on_pieces_;
};

}  // namespace

class lease_pool::state final : public leat::detail::lease_owner,
                                public std::enable_shared_from_this<lease_pool::state> {
 public:
  state(std::shared_ptr<arena> memory, lease_pool_options options)
      : arena_(std::move(memory)),
        region_(arena_->reserve(options.bytes_max, options.pinned_first)),
        bytes_max_(region_.bytes.size()),
        name_(std::move(options.name)),
        first_touch_(options.first_touch),
        in_pieces_(options.in_pieces),
        as_one_(options.as_one),
        free_(bytes_max_, options.as_one),
        limit_(bytes_max_) {}
  ~state() { unpoison(region_.bytes); }

  [[nodiscard]] std::optional<lease> try_lease(std::size_t bytes) {
    check(bytes);
    std::optional<std::size_t> place;
    {
      const mutex_lock lock(mutex_);
      if (closed_ || !waiters_.empty()) return std::nullopt;
      free_.prepare(out_ + 1);
      place = take(whole_units(bytes));
    }
    if (!place) return std::nullopt;
    return make(*place, bytes);
  }

  void start(std::size_t bytes, lease_completion done) {
    try {
      check(bytes);
    } catch (const error&) {
      return done.complete(std::current_exception(), {});
    }
    std::optional<std::size_t> place;
    {
      const mutex_lock lock(mutex_);
      if (!closed_) {
        free_.prepare(out_ + waiters_.size() + 1);
        if (waiters_.empty()) place = take(whole_units(bytes));
        if (!place) {
          auto waiting = std::make_unique<waiter>(bytes, std::move(done));
          // The state outlives its waiters, which the pool's destructor ends.
          waiting->done.on_cancel([this, w = waiting.get()](asio::cancellation_type) { cancel(*w); });
          waiters_.push_back(*waiting.release());
          return;
        }
      }
    }
    if (place) {
      complete(std::move(done), *place, bytes);
    } else {
      done.complete(closed_error(), {});
    }
  }

  void give_back(std::span<std::byte> memory) noexcept override {
    // A child of fork() has the lease and not the memory, and the lock as some thread of the parent held it.
    if (forked_.in_child()) return;
    const auto offset = static_cast<std::size_t>(memory.data() - region_.bytes.data());
    const std::size_t bytes = whole_units(memory.size());
    // It counts as leased for ever. Waiters might wait for this memory, so the pool closes.
    if (arena_->is_given_up(region_.bytes.subspan(offset, bytes))) {
      lost_.store(true, std::memory_order_relaxed);
      return close();
    }
    poison(region_.bytes.subspan(offset, bytes));
    bool somebody_waits = false;
    {
      const mutex_lock lock(mutex_);
      free_.give_back(offset, bytes);
      used_ -= bytes;
      --out_;
      somebody_waits = !waiters_.empty();
    }
    if (somebody_waits) serve();
  }

  [[nodiscard]] bool populate_next(const lease& memory) {
    return arena_->populate_next(region_, memory.bytes(), first_touch_);
  }

  void pinning_done(const lease& memory) noexcept {
    arena_->pinning_done(region_, {memory.data(), whole_units(memory.size())});
  }

  [[nodiscard]] read_target target_at(std::span<std::byte> memory) const noexcept {
    const std::less_equal<const std::byte*> before;  // `memory` may lie outside of the pool: < would be undefined
    const std::byte* const begin = region_.bytes.data();
    const bool ours =
        before(begin, memory.data()) && before(memory.data() + memory.size(), begin + region_.bytes.size());
    if (!ours || memory.empty()) return {memory, read_target::no_piece};
    return {memory, arena::piece_at(memory.data(), begin, region_.first_piece)};
  }

  void set_limit(std::size_t bytes) noexcept {
    {
      const mutex_lock lock(mutex_);
      limit_ = bytes;
    }
    serve();
  }

  void close() noexcept {
    intrusive_list<waiter> ended;
    {
      const mutex_lock lock(mutex_);
      closed_ = true;
      while (!waiters_.empty()) ended.push_back(waiters_.pop_front());
    }
    while (!ended.empty()) {
      const std::unique_ptr<waiter> owned(&ended.pop_front());
      owned->done.complete(closed_error(), {});
    }
  }

  [[nodiscard]] counters count() const {
    const mutex_lock lock(mutex_);
    counters made = counters_;
    made.bytes_used = used_;
    made.leases_out = out_;
    made.waiting = waiters_.size();
    return made;
  }
  [[nodiscard]] std::size_t bytes_max() const noexcept { return bytes_max_; }

 private:
  /// One who waits, freed by whoever takes it out of the queue, after completing it.
  struct waiter : list_hook {
    waiter(std::size_t wanted, lease_completion&& completion)
        : bytes(wanted), done(std::move(completion)), since_ns(now_ns()) {}
    std::size_t bytes;
    lease_completion done;
    std::uint64_t since_ns;
  };

  void check(std::size_t bytes) const {
    if (bytes > bytes_max_) {
      throw error(errc::limit, str_cat(name_, ": one lease of ", bytes, " bytes is more than the ", bytes_max_,
                                       " bytes there are in all; raise the memory budget to fit it"));
    }
  }
  [[nodiscard]] std::exception_ptr closed_error() const {
    if (lost_.load(std::memory_order_relaxed)) {
      return std::make_exception_ptr(
          error(errc::io, str_cat(name_,
                                  ": a ring has failed while reads were in flight, and the kernel may still write to "
                                  "their memory; make a new reader or loader")));
    }
    return std::make_exception_ptr(error(errc::cancelled, str_cat(name_, ": closed while waiting for a lease")));
  }

  /// Counts and cuts. `bytes` are whole units.
  [[nodiscard]] std::optional<std::size_t> take(std::size_t bytes) noexcept ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (used_ + bytes > limit_ && out_ != 0) return std::nullopt;
    const std::optional<std::size_t> place = free_.take(bytes);
    if (!place) return std::nullopt;
    used_ += bytes;
    ++out_;
    ++counters_.leases;
    counters_.bytes_used_peak = std::max(counters_.bytes_used_peak, used_);
    return place;
  }

  /// What was cut becomes a lease. Its memory is faulted in outside the lock, or later.
  [[nodiscard]] lease make(std::size_t place, std::size_t bytes) {
    const std::span<std::byte> whole = region_.bytes.subspan(place, whole_units(bytes));
    unpoison(whole);
    lease made(whole.first(bytes), region_.first_piece + static_cast<std::uint32_t>(place / arena::piece_bytes),
               shared_from_this());
    if (as_one_ && whole.size() > arena::piece_bytes) {  // a throw gives the lease back
      arena_->populate_as_one(region_, whole);
    } else if (!in_pieces_) {
      arena_->populate(region_, whole, first_touch_);
    }
    return made;
  }

  void complete(lease_completion done, std::size_t place, std::size_t bytes) noexcept {
    try {
      lease granted = make(place, bytes);
      done.complete(nullptr, std::move(granted));
    } catch (...) {
      done.complete(std::current_exception(), {});
    }
  }

  /// Grants what can be granted, from the head of the queue. With no lock held: completing may have to wait for a
  /// cancellation that wants it.
  void serve() noexcept {
    for (;;) {
      std::unique_ptr<waiter> served;
      std::optional<std::size_t> place;
      {
        const mutex_lock lock(mutex_);
        if (waiters_.empty()) return;
        waiter& head = waiters_.front();
        place = take(whole_units(head.bytes));
        if (!place) return;
        waiters_.remove(head);
        ++counters_.waits;
        counters_.wait_ns += now_ns() - head.since_ns;
        served.reset(&head);
      }
      complete(std::move(served->done), *place, served->bytes);
    }
  }

  void cancel(waiter& waiting) noexcept {
    std::unique_ptr<waiter> owned;
    {
      const mutex_lock lock(mutex_);
      if (!waiting.linked()) return;  // granted or closed, and on its way
      waiters_.remove(waiting);
      owned.reset(&waiting);
    }
    owned->done.complete(std::make_exception_ptr(boost::system::system_error(asio::error::operation_aborted)), {});
    serve();  // It may have stood in the way of smaller ones.
  }

  // Leases hold the state, and the state the memory.
  const std::shared_ptr<arena> arena_;
  const arena::region region_;
  const std::size_t bytes_max_;
  const std::string name_;
  const bool first_touch_;
  const bool in_pieces_;
  const bool as_one_;
  const fork_guard forked_;
  std::atomic<bool> lost_{false};  // some memory was given up

  mutable mutex mutex_;
  free_list free_ ABSL_GUARDED_BY(mutex_);
  intrusive_list<waiter> waiters_ ABSL_GUARDED_BY(mutex_);
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  std::size_t limit_ ABSL_GUARDED_BY(mutex_);
  std::size_t used_ ABSL_GUARDED_BY(mutex_) = 0;
  std::size_t out_ ABSL_GUARDED_BY(mutex_) = 0;
  counters counters_ ABSL_GUARDED_BY(mutex_);
};

lease_pool::lease_pool(std::shared_ptr<arena> memory, lease_pool_options options)
    : state_(std::make_shared<state>(std::move(memory), std::move(options))) {}

lease_pool::~lease_pool() { state_->close(); }

std::optional<lease> lease_pool::try_lease(std::size_t bytes) { return state_->try_lease(bytes); }
void lease_pool::start(std::size_t bytes, lease_completion done) { state_->start(bytes, std::move(done)); }
bool lease_pool::populate_next(const lease& memory) { return state_->populate_next(memory); }
void lease_pool::pinning_done(const lease& memory) noexcept { state_->pinning_done(memory); }
read_target lease_pool::target_at(std::span<std::byte> memory) const noexcept { return state_->target_at(memory); }
void lease_pool::set_limit(std::size_t bytes) noexcept { state_->set_limit(bytes); }
void lease_pool::close() noexcept { state_->close(); }
lease_pool::counters lease_pool::count() const { return state_->count(); }
std::size_t lease_pool::bytes_max() const noexcept { return state_->bytes_max(); }

}  // namespace leat::io
