// Units of something bounded (bytes of memory, slots in a table), granted in the order asked.
#pragma once

#include "async/error.hpp"
#include "base/intrusive_list.hpp"
#include "base/mutex.hpp"

#include <leat/completion.hpp>

#include <boost/asio/async_result.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/deferred.hpp>

#include <cstddef>
#include <cstdint>
#include <utility>

namespace leat::async {

/// A counting semaphore to await.
///
///   fairness       first come, first served: who asks for much is not overtaken by those who ask for little, so while
///                  anybody waits try_acquire() fails, even if what it wants is there
///   threads        any thread may call anything; a waiter resumes on its handler's associated executor, by post
///   cancellation   total: a cancelled acquire() holds nothing, and those who queued behind it move up. Where the grant
///                  came first, the operation succeeds and the units are the caller's
///   errors         asio::error::operation_aborted, async_errc::closed, async_errc::over_capacity
///   lifetime       until all its operations have completed; destroying it with somebody waiting is a bug
class semaphore {
 public:
  /// How often and how long acquire() had to wait, granted waits only.
  struct counters {
    std::uint64_t wait_count = 0;
    std::uint64_t wait_ns = 0;
    std::size_t waiting = 0;  ///< right now
  };
  class permit;

  explicit semaphore(std::size_t capacity) noexcept : capacity_(capacity), available_(capacity) {}
  ~semaphore();
  semaphore(const semaphore&) = delete;
  semaphore& operator=(const semaphore&) = delete;

  /// Completes when `units` are granted, void(error_code). Even then through a post: where the units are likely to be
  /// there, try_acquire() first or co_await acquire(units) costs less.
  template <class Token>
  auto acquire(std::size_t units, Token&& token) {
    return asio::async_initiate<Token, void(boost::system::error_code)>(initiate_acquire{this}, token, units);
  }

  /// As above, without suspending where the units are there. Throws boost::system::system_error.
  [[nodiscard]] asio::awaitable<void> acquire(std::size_t units) {
    if (!try_acquire(units)) co_await acquire(units, asio::deferred);
  }

  /// As above; the units go back when the permit does.
  [[nodiscard]] asio::awaitable<permit> acquire_permit(std::size_t units);

  /// Takes `units` if they are there, nobody waits and it is not closed.
  [[nodiscard]] bool try_acquire(std::size_t units) noexcept;

  /// Gives `units` back and grants waiters what they wait for.
  void release(std::size_t units) noexcept;

  /// Fails those who wait and all who come, with async_errc::closed. Units held may still be released.
  void close() noexcept;

  [[nodiscard]] std::size_t capacity() const noexcept { return capacity_; }
  [[nodiscard]] std::size_t available() const noexcept;
  [[nodiscard]] counters count() const noexcept;

 private:
  struct waiter;
  // Has a name, since Asio keeps the names of operations as text, and that of a lambda holds the path of its file.
  struct initiate_acquire {
    semaphore* self;
    template <class Handler>
    void operator()(Handler handler, std::size_t units) const {
      self->start_acquire(units, completion<void(boost::system::error_code)>(std::move(handler)));
    }
  };

  void start_acquire(std::size_t units, completion<void(boost::system::error_code)> done);
  void cancel(waiter& waiting) noexcept;
  void grant(intrusive_list<waiter>& granted) noexcept ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  static void complete_all(intrusive_list<waiter>& ended, boost::system::error_code error) noexcept;

  const std::size_t capacity_;
  mutable mutex mutex_;
  std::size_t available_ ABSL_GUARDED_BY(mutex_);
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  intrusive_list<waiter> waiters_ ABSL_GUARDED_BY(mutex_);
  std::uint64_t wait_count_ ABSL_GUARDED_BY(mutex_) = 0;
  std::uint64_t wait_ns_ ABSL_GUARDED_BY(mutex_) = 0;
};

/// Units of a semaphore, given back at the end of the scope. Move-only.
class [[nodiscard]] semaphore::permit {
 public:
  permit() noexcept = default;
  /// Takes charge of `units` that were acquired from `from`.
  permit(semaphore& from, std::size_t units) noexcept : from_(&from), units_(units) {}
  permit(permit&& other) noexcept
      : from_(std::exchange(other.from_, nullptr)), units_(std::exchange(other.units_, 0)) {}
  permit& operator=(permit&& other) noexcept {
    permit taken(std::move(other));
    std::swap(from_, taken.from_);
    std::swap(units_, taken.units_);
    return *this;
  }
  ~permit() {
    if (from_ != nullptr) from_->release(units_);
  }

  [[nodiscard]] std::size_t units() const noexcept { return units_; }

 private:
  semaphore* from_ = nullptr;
  std::size_t units_ = 0;
};

inline asio::awaitable<semaphore::permit> semaphore::acquire_permit(std::size_t units) {
  if (!try_acquire(units)) co_await acquire(units, asio::deferred);
  co_return permit(*this, units);
}

}  // namespace leat::async
