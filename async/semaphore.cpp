#include "async/semaphore.hpp"

#include "base/clock.hpp"

#include <boost/asio/error.hpp>

#include <cassert>
#include <memory>

namespace leat::async {

using boost::system::error_code;

/// One who waits. Made by start_acquire(), and freed by whoever takes it out of the queue, after completing it.
struct semaphore::waiter : list_hook {
  waiter(std::size_t wanted, completion<void(error_code)>&& handler)
      : units(wanted), done(std::move(handler)), since_ns(now_ns()) {}
  std::size_t units;
  completion<void(error_code)> done;
  std::uint64_t since_ns;
  bool waiting = true;  // guarded by the mutex; linked() would not do, as those granted are in a list, too
};

semaphore::~semaphore() {
  const mutex_lock lock(mutex_);
  assert(waiters_.empty() && "close() the semaphore and join those who wait before destroying it");
}

void semaphore::start_acquire(std::size_t units, completion<void(error_code)> done) {
  error_code result;
  {
    const mutex_lock lock(mutex_);
    if (closed_) {
      result = async_errc::closed;
    } else if (units > capacity_) {
      result = async_errc::over_capacity;
    } else if (waiters_.empty() && units <= available_) {
      available_ -= units;
    } else {
      auto waiting = std::make_unique<waiter>(units, std::move(done));
      waiting->done.on_cancel([this, w = waiting.get()](asio::cancellation_type) { cancel(*w); });
      waiters_.push_back(*waiting.release());
      return;
    }
  }
  done.complete(result);
}

bool semaphore::try_acquire(std::size_t units) noexcept {
  const mutex_lock lock(mutex_);
  if (closed_ || !waiters_.empty() || units > available_) return false;
  available_ -= units;
  return true;
}

void semaphore::release(std::size_t units) noexcept {
  intrusive_list<waiter> granted;
  {
    const mutex_lock lock(mutex_);
    available_ += units;
    assert(available_ <= capacity_ && "more released than acquired");
    grant(granted);
  }
  complete_all(granted, {});
}

void semaphore::close() noexcept {
  intrusive_list<waiter> ended;
  {
    const mutex_lock lock(mutex_);
    closed_ = true;
    while (!waiters_.empty()) {
      waiter& next = waiters_.pop_front();
      next.waiting = false;
      ended.push_back(next);
    }
  }
  complete_all(ended, async_errc::closed);
}

void semaphore::cancel(waiter& waiting) noexcept {
  intrusive_list<waiter> cancelled;
  intrusive_list<waiter> granted;
  {
    const mutex_lock lock(mutex_);
    if (!waiting.waiting) return;  // granted on another thread, which waits in complete() for us to return
    waiters_.remove(waiting);
    waiting.waiting = false;
    cancelled.push_back(waiting);
    grant(granted);  // it may have been the large one at the head, with small ones behind it
  }
  complete_all(cancelled, asio::error::operation_aborted);
  complete_all(granted, {});
}

void semaphore::grant(intrusive_list<waiter>& granted) noexcept {
  if (waiters_.empty()) return;
  const std::uint64_t now = now_ns();
  while (!waiters_.empty() && waiters_.front().units <= available_) {
    waiter& next = waiters_.pop_front();
    next.waiting = false;
    available_ -= next.units;
    ++wait_count_;
    wait_ns_ += now - next.since_ns;
    granted.push_back(next);
  }
}

void semaphore::complete_all(intrusive_list<waiter>& ended, error_code error) noexcept {
  while (!ended.empty()) {
    const std::unique_ptr<waiter> next(&ended.pop_front());
    next->done.complete(error);
  }
}

std::size_t semaphore::available() const noexcept {
  const mutex_lock lock(mutex_);
  return available_;
}

semaphore::counters semaphore::count() const noexcept {
  const mutex_lock lock(mutex_);
  return {.wait_count = wait_count_, .wait_ns = wait_ns_, .waiting = waiters_.size()};
}

}  // namespace leat::async
