// Counts down from any thread; one coroutine waits for zero. "All rows of this batch are decoded" is such an event.
#pragma once

#include <leat/completion.hpp>

#include <boost/asio/async_result.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/error.hpp>
#include <boost/system/error_code.hpp>

#include <atomic>
#include <cassert>
#include <cstdint>
#include <utility>

namespace leat::async {

/// A latch that is awaited by one and counted down by many.
///
///   threads        count_down() from any; wait(), add() and reset() from the owner's. The waiter resumes on its
///                  handler's associated executor, by one post, at zero
///   cost           count_down() is one atomic operation
///   cancellation   total; the latch goes on counting and may be awaited again
///   lifetime       whoever is not the last to count down touches nothing afterwards, nor does the last once it has
///                  posted: the waiter may destroy the latch, or reset() it
class latch {
 public:
  explicit latch(std::uint32_t count = 0) noexcept { reset(count); }
  ~latch() { assert(!waiting_ && "destroyed while somebody waits"); }
  latch(const latch&) = delete;
  latch& operator=(const latch&) = delete;

  /// Starts anew with `count`. Nobody waits or counts down: the old count has reached zero or was never shared.
  void reset(std::uint32_t count) noexcept {
    assert(!waiting_);
    left_.store(std::int64_t{count} + waiter_share, std::memory_order_relaxed);
  }

  /// Adds to what is to be counted down, while something is still left or before anybody counts.
  void add(std::uint32_t count) noexcept { left_.fetch_add(count, std::memory_order_relaxed); }

  /// Counts `count` down; at zero the waiter is resumed, and sees all that was written before any count_down().
  void count_down(std::uint32_t count = 1) noexcept {
    const std::int64_t before = left_.fetch_sub(count, std::memory_order_acq_rel);
    assert(before >= count && "counted down more often than there was to count");
    if (before == count) fire({});
  }

  /// Whether the count has reached zero; asked by the owner while nobody waits.
  [[nodiscard]] bool ready() const noexcept { return left_.load(std::memory_order_acquire) <= waiter_share; }

  /// Completes at zero, void(error_code). One wait at a time.
  template <class Token>
  auto wait(Token&& token) {
    return asio::async_initiate<Token, void(boost::system::error_code)>(
        [this](auto handler) { start_wait(completion<void(boost::system::error_code)>(std::move(handler))); }, token);
  }

  /// As above, without suspending where the count is zero already. Throws boost::system::system_error.
  [[nodiscard]] asio::awaitable<void> wait() {
    const bool is_ready = ready();
    if (!is_ready) co_await wait(asio::deferred);
  }

 private:
  // One unit belongs to the waiter and is counted down by wait(): whoever reaches zero, waiter or counter, knows that
  // all have arrived.
  static constexpr std::int64_t waiter_share = 1;

  void start_wait(completion<void(boost::system::error_code)> done) {
    assert(!waiting_ && "one wait at a time");
    waiting_ = std::move(done);
    waiting_.on_cancel([this](asio::cancellation_type) { cancel(); });
    const std::int64_t before = left_.fetch_sub(waiter_share, std::memory_order_acq_rel);
    assert(before >= waiter_share && "reset() the latch before awaiting it again");
    if (before == waiter_share) fire({});
  }

  void cancel() noexcept {
    // Takes the waiter's share back, unless the count is at zero: then somebody is completing, and waits for us.
    std::int64_t left = left_.load(std::memory_order_relaxed);
    do {
      if (left == 0) return;
    } while (!left_.compare_exchange_weak(left, left + waiter_share, std::memory_order_acq_rel));
    fire(asio::error::operation_aborted);
  }

  void fire(boost::system::error_code error) noexcept {
    // Out of the latch first: after the post the latch may be gone.
    completion<void(boost::system::error_code)> done(std::move(waiting_));
    done.complete(error);
  }

  std::atomic<std::int64_t> left_{0};
  completion<void(boost::system::error_code)> waiting_;
};

}  // namespace leat::async
