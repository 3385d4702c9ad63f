#include "stages/run/delivery.hpp"

#include "base/clock.hpp"
#include "stages/state/digest.hpp"

#include <leat/error.hpp>

#include <boost/asio/error.hpp>
#include <boost/system/system_error.hpp>

#include <algorithm>
#include <utility>

namespace leat::stages {
namespace {

// A thread waits here for one completion, which the completing thread stores directly. No executor is involved, whose threads a
// child of fork() would not have.
struct waiter {
  leat::mutex mutex;
  condition_variable changed;
  bool done ABSL_GUARDED_BY(mutex) = false;
  std::exception_ptr failure ABSL_GUARDED_BY(mutex);
  std::optional<batch> got ABSL_GUARDED_BY(mutex);

  void tell(std::exception_ptr why, std::optional<batch> what) {
    const mutex_lock lock(mutex);
    failure = std::move(why);
    got = std::move(what);
    done = true;
    changed.notify_one();  // Under the lock: the waiting thread may destroy this object as soon as it has the lock.
  }
};

// An item that is dropped keeps only its place in the order.
delivery_item placeholder_of(const delivery_item& item) {
  delivery_item left;
  left.epoch = item.epoch;
  left.index = item.index;
  left.end_of_epoch = item.end_of_epoch;
  return left;
}

}  // namespace

void delivery::put(std::uint64_t sequence, delivery_item item) {
  delivery_item dropped;  // Destroyed outside the lock, with its batch.
  {
    const mutex_lock lock(mutex_);
    if (is_skipped(item)) dropped = std::exchange(item, placeholder_of(item));
    arrived_.emplace(sequence, std::move(item));
    ready_.add(now_ns());
    pass_skipped();
  }
  pump();
}

void delivery::end(std::uint64_t sequence, std::uint64_t empty_epochs) {
  {
    const mutex_lock lock(mutex_);
    end_sequence_ = sequence;
    empty_epochs_ = empty_epochs;
  }
  pump();
}

void delivery::fail(std::exception_ptr why) {
  {
    const mutex_lock lock(mutex_);
    if (failure_ == nullptr) failure_ = std::move(why);
  }
  pump();
}

void delivery::close(std::exception_ptr why) {
  std::map<std::uint64_t, delivery_item> dropped;  // Batches go home outside the lock.
  {
    const mutex_lock lock(mutex_);
    dropped.swap(arrived_);
    for (std::size_t i = 0; i < dropped.size(); ++i) ready_.remove(now_ns());
    closed_ = true;
    if (failure_ == nullptr) failure_ = std::move(why);
  }
  pump();
}

void delivery::next(next_completion done) {
  {
    mutex_lock lock(mutex_);
    if (busy_) {
      lock.unlock();
      done.complete(std::make_exception_ptr(
                        error(errc::usage, "next() was called before the last next() had completed; one at a time")),
                    std::nullopt);
      return;
    }
    busy_ = true;
    ++counted_.next_count;
    asked_ns_ = now_ns();
    begin_to_want(asked_ns_);
    profiled_.begin(work_of::next);
    done.on_cancel([this](asio::cancellation_type) { cancel(); });
    waiting_ = std::move(done);
  }
  pump();
}

next_result delivery::next_blocking(std::optional<std::chrono::steady_clock::time_point> deadline) {
  waiter here;
  next(next_completion([&here](std::exception_ptr failure, std::optional<batch> got) {
    here.tell(std::move(failure), std::move(got));
  }));
  mutex_lock lock(here.mutex);
  while (!here.done) {
    if (!deadline) {
      here.changed.wait(here.mutex);
    } else if (!here.changed.wait_until(here.mutex, *deadline) && !here.done) {
      lock.unlock();
      if (abandon()) return next_result(next_status::not_ready);
      deadline.reset();  // Too late: its batch is being delivered.
      lock.lock();
    }
  }
  if (here.failure != nullptr) std::rethrow_exception(here.failure);
  return here.got ? next_result(std::move(*here.got)) : next_result(next_status::end_of_epoch);
}

next_result delivery::try_next() {
  {
    const mutex_lock lock(mutex_);
    if (!busy_ && !has_next()) {
      begin_to_want(now_ns());
      return next_result(next_status::not_ready);
    }
  }
  return next_blocking();
}

// As cancel(), for a thread that waits itself, so that nothing is completed. False if its batch is being delivered already.
bool delivery::abandon() {
  next_completion done;
  const mutex_lock lock(mutex_);
  if (!waiting_) return false;
  done = std::move(waiting_);
  profiled_.end();
  busy_ = false;
  return true;
}

std::optional<std::uint32_t> delivery::skip_epoch() {
  std::vector<delivery_item> dropped;
  const mutex_lock lock(mutex_);
  if (busy_) {
    throw error(errc::usage, "skip_epoch() was called before the last next() had completed; cancel it, or wait for it");
  }
  if (closed_ || !epoch_) return std::nullopt;
  skip_before_ = *epoch_ + 1;
  progress_.begin_epoch(skip_before_);
  epoch_.reset();
  for (auto& [sequence, item] : arrived_) {
    if (is_skipped(item)) dropped.push_back(std::exchange(item, placeholder_of(item)));
  }
  pass_skipped();
  return skip_before_;
}

// The caller calls pump() after it, unless no call waits.
void delivery::pass_skipped() {
  for (auto first = arrived_.find(next_sequence_); first != arrived_.end() && is_skipped(first->second);
       first = arrived_.find(next_sequence_)) {
    if (first->second.end_of_epoch) ++counted_.epochs_finished;
    arrived_.erase(first);
    ready_.remove(now_ns());
    ++next_sequence_;
  }
}

void delivery::cancel() {
  next_completion done;
  {
    const mutex_lock lock(mutex_);
    if (!waiting_) return;  // Its batch is on the way: it succeeds.
    done = std::move(waiting_);
    profiled_.end();
    busy_ = false;
    end_to_want(now_ns(), false);
  }
  done.complete(std::make_exception_ptr(boost::system::system_error(asio::error::operation_aborted)), std::nullopt);
}

// The consumer asks for what it does not have; it may do so more than once, by try_next() or with a limit to its patience.
void delivery::begin_to_want(std::uint64_t now_ns) {
  if (wants_since_ns_ != 0) return;
  wants_since_ns_ = now_ns;
  held_all_ = batches_out_->count() >= batches_max_;
  if (returned_ns_ == 0) return;
  const std::uint64_t away_ns = now_ns - returned_ns_;
  counted_.steps += returned_batch_ ? 1 : 0;
  (returned_batch_ ? counted_.step_ns : counted_.pause_ns) += away_ns;
}

// It has got something, or asks no more.
void delivery::end_to_want(std::uint64_t now_ns, bool got_batch) {
  add_wait(counted_, now_ns - std::exchange(wants_since_ns_, 0));
  returned_ns_ = now_ns;
  returned_batch_ = got_batch;
}

void delivery::add_wait(counters& to, std::uint64_t waited_ns) const {
  if (held_all_) to.held_all_ns += waited_ns;
  // Before the first batch the line fills: nobody holds it up.
  (to.batches == 0 ? to.pause_ns : held_all_ ? to.step_ns : to.stalled_ns) += waited_ns;
}

// Whether a call would get something at once.
bool delivery::has_next() const {
  return (!closed_ && arrived_.contains(next_sequence_)) || failure_ != nullptr ||
         (end_sequence_ && next_sequence_ >= *end_sequence_);
}

// Serves the call that waits, if there is one and something to serve it with.
void delivery::pump() {
  delivery_item item;
  next_completion done;
  {
    const mutex_lock lock(mutex_);
    if (!waiting_ || !has_next()) return;
    const auto first = arrived_.find(next_sequence_);
    if (first != arrived_.end() && !closed_) {
      item = std::move(first->second);
      arrived_.erase(first);
      ready_.remove(now_ns());
      ++next_sequence_;
      epoch_.reset();
      if (item.finished != nullptr) epoch_ = item.epoch;
      if (item.failure != nullptr) {
        closed_ = true;
        if (failure_ == nullptr) failure_ = item.failure;
      }
    } else if (failure_ != nullptr) {
      closed_ = true;  // From here on nothing else is handed out, whatever still arrives.
      item.failure = failure_;
    } else if (empty_epochs_ > 0) {
      --empty_epochs_;
      item.epoch = progress_.epoch;
      item.end_of_epoch = true;
    }
    done = std::move(waiting_);
    profiled_.end();
  }
  hand_out(std::move(item), std::move(done));
}

void delivery::hand_out(delivery_item item, next_completion done) {
  std::unique_ptr<batch::state> refused;
  if (item.failure == nullptr) {
    if (const std::optional<error> too_many = watch_.see(item)) {
      // As with a corrupt sample under `raise`: the batch is not delivered, and its other rows count neither as delivered nor
      // as lost.
      refused = std::move(item.finished);
      item.failure = std::make_exception_ptr(*too_many);
      item.planned = item.quarantined;
      item.samples = item.substituted = item.bytes = item.padded = 0;
      item.end_of_epoch = false;
      for (journal_entry& entry : item.journal) {
        entry.action = "raised";
        entry.substitute.reset();
      }
    }
  }
  std::exception_ptr failure = item.failure;
  try {
    for (const journal_entry& entry : item.journal) journal_.append(entry);
  } catch (...) {
    if (failure == nullptr) failure = std::current_exception();
  }
  std::optional<batch> handed;
  std::uint64_t now = 0;
  std::uint64_t batches = 0;
  {
    const mutex_lock lock(mutex_);
    // Not before the lock: count() may have counted the wait up to a later moment meanwhile, and what it says never falls.
    now = now_ns();
    waits_.record(now - asked_ns_);
    end_to_want(now, item.finished != nullptr);
    // What the journal could not tell of is not handed out, and so not counted.
    if (failure == item.failure) {
      counted_.planned += item.planned;
      counted_.padded += item.padded;
      counted_.samples += item.samples;
      counted_.quarantined += item.quarantined;
      for (const journal_entry& entry : item.journal) ++counted_.quarantined_as[entry.kind];
      counted_.substituted += item.substituted;
      counted_.bytes += item.bytes;
      if (item.finished != nullptr) ++counted_.batches;
      if (item.end_of_epoch) ++counted_.epochs_finished;
    }
    if (failure == nullptr) go_on_after(item);
    if (item.finished != nullptr) item.finished->after = progress_;
    if (failure != nullptr) {
      closed_ = true;
      if (failure_ == nullptr) failure_ = failure;
    }
    batches = counted_.batches;
    busy_ = false;
  }
  if (failure == nullptr && item.finished != nullptr) {
    batches_out_->add(now);
    item.finished->batches_out = batches_out_;
    handed.emplace(std::move(item.finished));
    if (handed_out_) handed_out_(now, batches);
  }
  done.complete(std::move(failure), std::move(handed));
}

// The batch, or the end of the epoch, was handed out.
void delivery::go_on_after(const delivery_item& item) {
  state_counters& counted = progress_.counted;
  counted.planned += item.planned;
  counted.samples += item.samples;
  counted.quarantined += item.quarantined;
  counted.substituted += item.substituted;
  counted.bytes += item.bytes;
  counted.epoch_corrupt = watch_.epoch_corrupt();
  counted.epoch_unreadable = watch_.epoch_unreadable();
  progress_.journal_bytes = journal_.bytes();
  if (item.end_of_epoch) {
    ++counted.epochs_finished;
    progress_.begin_epoch(item.epoch + 1);
  } else if (item.finished != nullptr) {
    ++counted.batches;
    progress_.epoch = item.epoch;
    progress_.batch = item.index + 1;
    const std::optional<digest>& content = item.finished->content;
    progress_.run = progress_.run && content ? std::optional(chain_digest(*progress_.run, *content)) : std::nullopt;
  }
}

run_progress delivery::progress() const {
  const mutex_lock lock(mutex_);
  return progress_;
}

delivery::counters delivery::count() const {
  const mutex_lock lock(mutex_);
  counters now = counted_;
  const std::uint64_t at_ns = now_ns();
  if (wants_since_ns_ != 0) {
    add_wait(now, at_ns - std::min(at_ns, wants_since_ns_));
    if (!held_all_) now.waiting_ns = at_ns - std::min(at_ns, wants_since_ns_);
  }
  now.ready_ns = ready_.stays_ns(at_ns);
  now.out_ns = batches_out_->stays_ns(at_ns);
  // Those that next() could hand out now: a later one that is done before its turn is not among them.
  for (auto one = arrived_.begin(); one != arrived_.end() && one->first == next_sequence_ + now.ready; ++one)
    ++now.ready;
  now.out = batches_out_->count();
  return now;
}

}  // namespace leat::stages
