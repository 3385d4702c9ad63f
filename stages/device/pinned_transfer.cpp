#include "stages/device/pinned_transfer.hpp"

#include "base/start_thread.hpp"

#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <utility>

namespace leat::stages {
namespace {

// How soon it is looked whether memory is free, and how often at the most: nothing tells. A look takes a few microseconds.
constexpr std::chrono::microseconds pause_least{50};
constexpr std::chrono::microseconds pause_most{1000};
// How soon an event is recorded again that a capture was in the way of. Each attempt breaks what is captured then.
constexpr std::chrono::milliseconds pause_after_capture{100};

constexpr const char* recording = "cuCtxRecordEvent behind a batch that has ended";
constexpr const char* making_event = "cudaEventCreateWithFlags";
constexpr const char* looking = "cudaEventQuery behind a batch that has ended";
constexpr const char* waiting = "cudaEventSynchronize behind a batch that has ended";

}  // namespace

pinned_transfer::pinned_transfer(std::shared_ptr<device_calls> calls)
    : calls_(std::move(calls)), failure_(*calls_), pinned_(*calls_) {}

pinned_transfer::~pinned_transfer() {
  if (forked_.in_child()) {
    // Its end would call the device, and the thread is not there to be joined.
    static_cast<void>(new std::shared_ptr<device_calls>(calls_));
    if (thread_.joinable()) static_cast<void>(new std::thread(std::move(thread_)));
    return;
  }
  drain();
  if (failure_.happened()) keep_for_good(calls_);
}

void pinned_transfer::prepare(transfer_needs needs) {
  tell_loader_ = std::move(needs.failed);
  host_memory_ = std::move(needs.host_memory);
  pinned_.prepare(std::move(needs.pinning_done));
  in_flight_.reserve(needs.host_batches);
  {
    const mutex_lock lock(events_mutex_);
    free_events_.reserve(needs.host_batches);
  }
  const mutex_lock lock(mutex_);
  places_.reserve(needs.host_batches);
  to_pin_.reserve(needs.host_batches);
  returned_.reserve(needs.host_batches);
  thread_ = start_thread({.what = "the thread that pins batches"}, [this] { run(); });
}

pinned_transfer::place* pinned_transfer::find(const io::lease& memory) noexcept {
  const auto at = std::find_if(places_.begin(), places_.end(), [&](const place& known) {
    return known.memory.data() == memory.data() && known.memory.size() == memory.size();
  });
  return at == places_.end() ? nullptr : &*at;
}

// --- batches leave ----------------------------------------------------------------------------------------------------------

void pinned_transfer::send(transfer_operation& operation) noexcept {
  if (operation.memory != nullptr) {
    const mutex_lock lock(mutex_);
    place* const known = find(*operation.memory);
    if (known == nullptr) {
      to_pin_.push_back(&operation);
      return something_to_do_.notify_one();
    }
    known->lent = true;
  }
  operation.failure = failure_.why();
  operation.handed_over(operation);
}

void pinned_transfer::pin_and_hand_over(transfer_operation& operation) noexcept {
  operation.failure = failure_.why();
  if (operation.failure == nullptr) {
    try {
      const bool is_pinned = pinned_.pin(*operation.memory);
      const mutex_lock lock(mutex_);
      places_.push_back({.memory = operation.memory->bytes(), .pinned = is_pinned, .lent = true});
    } catch (...) {
      operation.failure = std::current_exception();
    }
  }
  operation.handed_over(operation);
}

// --- and come back ----------------------------------------------------------------------------------------------------------

void pinned_transfer::give_back(io::lease memory, bool was_handed_out) noexcept {
  if (forked_.in_child()) return;
  {
    const mutex_lock lock(mutex_);
    const place* const at = find(memory);
    if (at == nullptr || !at->pinned || !at->lent) return;  // which gives it back, with nothing locked
  }
  returning its{.memory = std::move(memory)};
  if (!was_handed_out) return return_to_pool(its);
  // Here and not on the thread: a capture that the caller begins next would be broken there.
  failed_call failed = record(its);
  if (failed.status == device_ok) failed = {calls_->query(its.passed), looking, {}};
  if (failed.status == device_ok) return return_to_pool(its);
  {
    const mutex_lock lock(mutex_);
    if (!drained_) {
      returned_.push_back(std::move(its));
      return something_to_do_.notify_one();
    }
  }
  // Later somebody else's capture would be broken.
  if (its.in_capture) return keep_for_good(std::move(its.memory));
  return_later(std::move(its));
}

// Where leat-pin has ended. Not on this thread: in Python it holds the GIL, for which a host function that is queued may wait.
void pinned_transfer::return_later(returning its) noexcept {
  std::shared_ptr<returning> last;
  try {
    last = std::make_shared<returning>(std::move(its));
    start_thread({.what = "the thread that returns a batch"}, [self = shared_from_this(), last] {
      ::pthread_setname_np(::pthread_self(), "leat-pin-last");
      if (self->wait_until_passed(*last)) self->return_to_pool(*last);
    }).detach();
  } catch (...) {  // Then here.
    returning& left = last != nullptr ? *last : its;
    if (wait_until_passed(left)) return_to_pool(left);
  }
}

void pinned_transfer::run() noexcept {
  ::pthread_setname_np(::pthread_self(), "leat-pin");
  std::chrono::microseconds pause = pause_least;
  mutex_lock lock(mutex_);
  while (!stopping_) {
    if (!to_pin_.empty()) {
      transfer_operation& next = *to_pin_.front();
      to_pin_.erase(to_pin_.begin());
      lock.unlock();
      pin_and_hand_over(next);
      lock.lock();
      continue;
    }
    const bool came = take_returned();
    lock.unlock();
    const bool went = return_passed();
    lock.lock();
    if (stopping_ || !to_pin_.empty() || !returned_.empty()) continue;
    if (came || went) pause = pause_least;
    if (in_flight_.empty()) {
      something_to_do_.wait(mutex_);
    } else {
      const bool lacks_event = in_flight_.front().passed == device_event::none;  // nothing behind it is looked at
      const auto next_look = lacks_event ? record_again_at_ : std::chrono::steady_clock::now() + pause;
      static_cast<void>(something_to_do_.wait_until(mutex_, next_look));
      pause = std::min(2 * pause, pause_most);
    }
  }
}

bool pinned_transfer::take_returned() {
  const bool came = !returned_.empty();
  for (returning& each : returned_) {
    // A capture was in the way just now, or is over.
    record_again_at_ = std::chrono::steady_clock::time_point();
    if (each.in_capture) record_again_at_ = std::chrono::steady_clock::now() + pause_after_capture;
    in_flight_.push_back(std::move(each));
  }
  returned_.clear();
  return came;
}

// Returns whether any was returned to its pool.
bool pinned_transfer::return_passed() noexcept {
  failed_call failed;
  const auto now = std::chrono::steady_clock::now();
  for (returning& each : in_flight_) {
    if (now < record_again_at_) break;
    if (each.passed != device_event::none) continue;
    failed = record(each);
    if (each.in_capture) record_again_at_ = now + pause_after_capture;
    if (failed.status != device_ok) break;
  }
  std::size_t passed = 0;
  if (failed.status == device_ok || failed.status == device_captured_beside) {
    failed = {};
    while (passed < in_flight_.size() && in_flight_[passed].passed != device_event::none) {
      const device_status status = calls_->query(in_flight_[passed].passed);
      if (status == device_not_ready) break;
      failed = {status, looking, {}};
      if (status != device_ok) break;
      return_to_pool(in_flight_[passed++]);
    }
    in_flight_.erase(in_flight_.begin(), in_flight_.begin() + static_cast<std::ptrdiff_t>(passed));
  }
  if (failed.status != device_ok) {
    const bool is_first = !failure_.happened();
    fail(failed);
    if (is_first && tell_loader_) tell_loader_(failure_.why());
  }
  return passed != 0;
}

// Behind all that the GPUs were asked for by now.
failed_call pinned_transfer::record(returning& each) noexcept {
  if (failure_.happened()) return {device_not_ready, recording, {}};
  device_event event = device_event::none;
  {
    const mutex_lock lock(events_mutex_);
    if (!free_events_.empty()) {
      event = free_events_.back();
      free_events_.pop_back();
    }
  }
  if (event == device_event::none) {
    const device_status made = calls_->make_event(event);
    if (made != device_ok) return {made, making_event, {}};
  }
  device_status recorded = device_ok;
  {
    const mutex_lock lock(recording_);
    recorded = calls_->record_all(event);
  }
  each.in_capture = recorded == device_captured_beside;
  if (recorded == device_ok) {
    each.passed = event;
  } else {
    const mutex_lock lock(events_mutex_);
    free_events_.push_back(event);
  }
  return {recorded, recording, {}};
}

void pinned_transfer::return_to_pool(returning& each) noexcept {
  if (each.passed != device_event::none) {
    const mutex_lock lock(events_mutex_);
    free_events_.push_back(each.passed);
  }
  bool was_last = false;
  {
    const mutex_lock lock(mutex_);
    if (failure_.happened()) {
      // It stays pinned. This lease nobody reads, or it would not be here.
    } else if (drained_) {
      pinned_.unpin(each.memory.bytes());
      std::erase_if(places_, [&](const place& known) { return known.memory.data() == each.memory.data(); });
      was_last = places_.empty();
    } else if (place* const at = find(each.memory)) {
      at->lent = false;
    }
  }
  if (was_last) free_events();
  each.memory.reset();
}

// Nobody knows any more who still reads what has come back, or will.
void pinned_transfer::fail(const failed_call& failed) noexcept {
  static_cast<void>(failure_.note(failed));
  for (returning& each : in_flight_) {
    if (each.memory) keep_for_good(std::move(each.memory));
  }
  in_flight_.clear();
  if (host_memory_ != nullptr) keep_for_good(host_memory_);
}

// --- the end ----------------------------------------------------------------------------------------------------------------

// Waits. False where nobody can tell: then the memory is kept for good. That is so for a stream that is being captured, too: it may be the
// caller's, who ends its capture later.
bool pinned_transfer::wait_until_passed(returning& each) noexcept {
  failed_call failed{device_not_ready, waiting, {}};
  if (!failure_.happened()) {
    failed.status = device_ok;
    if (each.passed == device_event::none) failed = record(each);
    if (failed.status == device_ok) failed = {calls_->synchronize(each.passed), waiting, {}};
    if (failed.status == device_ok) return true;
  }
  keep_for_good(std::move(each.memory));
  if (failed.status == device_captured_beside) return false;
  static_cast<void>(failure_.note(failed));
  if (host_memory_ != nullptr) keep_for_good(host_memory_);
  return false;
}

void pinned_transfer::free_events() noexcept {
  const mutex_lock lock(events_mutex_);
  for (const device_event each : free_events_) static_cast<void>(calls_->free_event(each));
  free_events_.clear();
}

// Batches may come back meanwhile, on any thread.
void pinned_transfer::drain() noexcept {
  {
    const mutex_lock lock(mutex_);
    if (drained_) return;
    stopping_ = true;
    to_pin_.clear();
    something_to_do_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
  bool is_last = false;
  for (;;) {
    {
      const mutex_lock lock(mutex_);
      if (!take_returned() && in_flight_.empty()) {
        drained_ = true;
        if (!failure_.happened()) unpin_what_is_not_lent();
        is_last = places_.empty();
        break;
      }
    }
    std::vector<returning> last = std::exchange(in_flight_, {});
    for (returning& each : last) {
      if (wait_until_passed(each)) return_to_pool(each);
    }
  }
  if (is_last) free_events();
}

// What is out is unpinned when it comes back.
void pinned_transfer::unpin_what_is_not_lent() noexcept {
  std::erase_if(places_, [this](const place& each) {
    if (each.pinned && !each.lent) pinned_.unpin(each.memory);
    return !each.pinned || !each.lent;
  });
}

device_report pinned_transfer::report() const {
  device_report made = transfer::report();
  made.pinned = pinned_.report();
  return made;
}

}  // namespace leat::stages
