#include "stages/device/copies_in_flight.hpp"

#include "base/start_thread.hpp"

#include <boost/asio/error.hpp>
#include <boost/system/system_error.hpp>

#include <pthread.h>

#include <algorithm>
#include <cassert>
#include <iterator>
#include <utility>

namespace leat::stages {

namespace asio = boost::asio;

// --- the start and the end -------------------------------------------------------------------------------------------------

void copies_in_flight::prepare(std::size_t count) {
  std::atomic<std::uint64_t>* word = nullptr;
  const failed_call taken = {calls_.take_word(word), "pinned memory for a word that the device writes", {}};
  if (taken.status != device_ok) throw failure_.describe(taken);
  read_up_to_ = word;
  const mutex_lock lock(mutex_);
  for (std::size_t i = 0; i < count; ++i) {
    if (const failed_call made = add_copy(); made.status != device_ok) throw failure_.describe(made);
  }
  watcher_ = start_thread({.what = "the thread that waits for copies"}, [this] { watch(); });
}

void copies_in_flight::end(std::span<const stream> streams) noexcept {
  {
    const mutex_lock lock(mutex_);
    ending_ = true;
    something_to_watch_.notify_all();
  }
  if (watcher_.joinable()) watcher_.join();
  for (const stream each : streams) {
    if (failure_.happened()) break;
    const failed_call ended = {calls_.finish(each), "cudaStreamSynchronize", {}};
    if (ended.status != device_ok) static_cast<void>(failure_.note(ended));
  }
  const std::exception_ptr failure = failure_.why();
  for (;;) {
    io::lease home;
    {
      const mutex_lock lock(mutex_);
      if (reading_.empty()) break;
      copy_in_flight& oldest = reading_.pop_front();
      home = std::move(oldest.host);
      if (failure == nullptr) arrived_ = oldest.number;
      leave_locked(oldest);
    }
    if (failure != nullptr) keep_for_good(std::move(home));
  }
  {
    const mutex_lock lock(mutex_);
    if (failure == nullptr) arrived_ = queued_;
  }
  complete_waits(~std::uint64_t{0}, failure);
}

void copies_in_flight::free_all() noexcept {
  if (failure_.happened()) return;
  const mutex_lock lock(mutex_);
  for (const copy_in_flight& each : copies_) static_cast<void>(calls_.free_event(each.arrived));
  if (read_up_to_ != nullptr) static_cast<void>(calls_.free_word(read_up_to_));
}

failed_call copies_in_flight::add_copy() {
  idle_.reserve(copies_.size() + 1);  // Room for all: they go back where nothing may throw.
  copy_in_flight& added = copies_.emplace_back();
  const device_status status = calls_.make_event(added.arrived);
  if (status != device_ok) {
    copies_.pop_back();
    return {status, "cudaEventCreateWithFlags", {}};
  }
  idle_.push_back(&added);
  return {};
}

// --- who queues -----------------------------------------------------------------------------------------------------------

copy_in_flight& copies_in_flight::take() {
  const mutex_lock lock(mutex_);
  // There are enough where each lease is a batch's share, as the loader's are; of smaller ones more are in flight at a time.
  if (idle_.empty()) {
    if (const failed_call made = add_copy(); made.status != device_ok) throw failure_.describe(made);
  }
  copy_in_flight& taken = *idle_.back();
  idle_.pop_back();
  taken.number = ++queued_;
  taken.users = 1;
  return taken;
}

failed_call copies_in_flight::mark_read(const copy_in_flight& copy, stream in) noexcept {
  if (read_up_to_ == nullptr) return {};
  return {calls_.write(*read_up_to_, copy.number, in), "cuStreamWriteValue64", {}};
}

void copies_in_flight::add(copy_in_flight& copy, io::lease host) noexcept {
  const mutex_lock lock(mutex_);
  ++copy.users;
  copy.host = std::move(host);
  reading_.push_back(copy);
  if (starving_) something_to_watch_.notify_one();
}

// --- the I/O thread ---------------------------------------------------------------------------------------------------------

void copies_in_flight::collect() noexcept {
  if (read_up_to_ != nullptr) return bring_home(read_up_to_->load(std::memory_order_acquire));
  const mutex_lock lock(mutex_);
  if (asked_ || reading_.empty()) return;
  asked_ = true;
  something_to_watch_.notify_one();
}

void copies_in_flight::starve(bool waiting) noexcept {
  const mutex_lock lock(mutex_);
  starving_ = waiting;
  if (starving_ && !reading_.empty()) something_to_watch_.notify_one();
}

// Each outside of the lock: a lease that is returned wakes who waits for it.
void copies_in_flight::bring_home(std::uint64_t up_to) noexcept {
  for (;;) {
    io::lease home;
    const mutex_lock lock(mutex_);
    if (failure_.happened() || reading_.empty() || reading_.front().number > up_to) return;
    copy_in_flight& oldest = reading_.pop_front();
    home = std::move(oldest.host);
    leave_locked(oldest);
  }
}

// --- the thread that waits --------------------------------------------------------------------------------------------------

copy_in_flight* copies_in_flight::next_to_watch() const noexcept {
  copy_in_flight* next = nullptr;
  if ((starving_ || asked_) && !reading_.empty()) next = &reading_.front();
  for (const waiter& each : waits_) {
    if (next == nullptr || each.copy->number < next->number) next = each.copy;
  }
  return next;
}

void copies_in_flight::watch() noexcept {
  ::pthread_setname_np(::pthread_self(), "leat-copies");
  mutex_lock lock(mutex_);
  while (!ending_) {
    if (failure_.happened()) {
      lock.unlock();
      complete_waits(~std::uint64_t{0}, failure_.why());
      lock.lock();
      if (!ending_ && waits_.empty()) something_to_watch_.wait(mutex_);
      continue;
    }
    copy_in_flight* const next = next_to_watch();
    if (next == nullptr) {
      asked_ = false;
      something_to_watch_.wait(mutex_);
      continue;
    }
    const std::uint64_t number = next->number;
    const bool must_wait = starving_ || !waits_.empty();
    ++next->users;  // Its event stays its own, whoever else finds out first.
    lock.unlock();
    const failed_call answer = must_wait ? failed_call{calls_.synchronize(next->arrived), "cudaEventSynchronize", {}}
                                         : failed_call{calls_.query(next->arrived), "cudaEventQuery", {}};
    if (answer.status != device_ok && answer.status != device_not_ready) static_cast<void>(failure_.note(answer));
    lock.lock();
    leave_locked(*next);
    if (answer.status == device_not_ready) asked_ = false;  // who asked will ask again
    if (answer.status != device_ok) continue;
    arrived_ = std::max(arrived_, number);
    lock.unlock();
    bring_home(number);
    complete_waits(number, nullptr);
    lock.lock();
  }
}

// --- any thread -------------------------------------------------------------------------------------------------------------

void copies_in_flight::leave(copy_in_flight& copy) noexcept {
  const mutex_lock lock(mutex_);
  leave_locked(copy);
}

void copies_in_flight::leave_locked(copy_in_flight& copy) noexcept {
  assert(copy.users > 0);
  if (--copy.users == 0) idle_.push_back(&copy);
}

void copies_in_flight::ready(copy_in_flight& copy, completion<void(std::exception_ptr)> done) {
  std::exception_ptr failure;
  try {
    if (const std::optional<std::exception_ptr> known = outcome_of(copy)) {
      failure = *known;
    } else if (const failed_call asked = {calls_.query(copy.arrived), "cudaEventQuery", {}};
               asked.status != device_not_ready) {
      if (asked.status != device_ok) failure = failure_.note(asked);
    } else if (await_arrival(copy, done)) {
      return;
    } else {
      failure = outcome_of(copy).value();  // meanwhile
    }
  } catch (...) {
    failure = std::current_exception();
  }
  done.complete(std::move(failure));
}

// Null where it has arrived; none where that is not known.
std::optional<std::exception_ptr> copies_in_flight::outcome_of(const copy_in_flight& copy) const noexcept {
  {
    const mutex_lock lock(mutex_);
    if (arrived_ >= copy.number) return nullptr;
  }
  if (!failure_.happened()) return std::nullopt;
  return failure_.why();
}

// False where the outcome is known by now. Whoever makes it known takes the mutex afterwards, and completes all who wait.
bool copies_in_flight::await_arrival(copy_in_flight& copy, completion<void(std::exception_ptr)>& done) {
  const mutex_lock lock(mutex_);
  if (arrived_ >= copy.number || failure_.happened()) return false;
  const auto added = waits_.emplace(waits_.end());
  added->copy = &copy;
  ++copy.users;
  try {
    done.on_cancel([this, added](asio::cancellation_type) { cancel_ready(added); });
  } catch (...) {
    waits_.erase(added);
    leave_locked(copy);
    throw;
  }
  added->done = std::move(done);
  something_to_watch_.notify_one();
  return true;
}

void copies_in_flight::complete_waits(std::uint64_t up_to, const std::exception_ptr& why) noexcept {
  wait_list ended;
  {
    const mutex_lock lock(mutex_);
    for (auto each = waits_.begin(); each != waits_.end();) {
      const auto next = std::next(each);
      if (each->copy->number <= up_to) {
        each->listed = false;
        ended.splice(ended.end(), waits_, each);
        leave_locked(*each->copy);
      }
      each = next;
    }
  }
  for (waiter& each : ended) each.done.complete(why);
}

void copies_in_flight::cancel_ready(wait_list::iterator which) noexcept {
  wait_list taken;
  {
    const mutex_lock lock(mutex_);
    if (!which->listed) return;  // It is being completed.
    which->listed = false;
    taken.splice(taken.end(), waits_, which);
    leave_locked(*which->copy);
  }
  taken.front().done.complete(std::make_exception_ptr(boost::system::system_error(asio::error::operation_aborted)));
}

void copies_in_flight::failure_noted() noexcept {
  const mutex_lock lock(mutex_);
  something_to_watch_.notify_one();
}

}  // namespace leat::stages
