#include "stages/delivery.hpp"

#include "base/clock.hpp"
#include "stages/digest.hpp"

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

std::string_view kind_of(const journal_entry& corrupt) {
  return corrupt.read_failure != 0 ? "unreadable" : corrupt_kind(corrupt.reason);
}

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
    if (!busy_ && !has_next()) return next_result(next_status::not_ready);
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
  }
  done.complete(std::make_exception_ptr(boost::system::system_error(asio::error::operation_aborted)), std::nullopt);
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
  std::uint64_t asked_ns = 0;
  {
    const mutex_lock lock(mutex_);
    if (!waiting_ || !has_next()) return;
    const auto first = arrived_.find(next_sequence_);
    if (first != arrived_.end() && !closed_) {
      item = std::move(first->second);
      arrived_.erase(first);
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
    asked_ns = asked_ns_;
  }
  hand_out(std::move(item), std::move(done), asked_ns);
}

void delivery::hand_out(delivery_item item, next_completion done, std::uint64_t asked_ns) {
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
  waits_.record(now_ns() - asked_ns);
  std::optional<batch> handed;
  {
    const mutex_lock lock(mutex_);
    // What the journal could not tell of is not handed out, and so not counted.
    if (failure == item.failure) {
      counted_.planned += item.planned;
      counted_.padded += item.padded;
      counted_.samples += item.samples;
      counted_.quarantined += item.quarantined;
      for (const journal_entry& entry : item.journal) ++counted_.quarantined_as[std::string(kind_of(entry))];
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
    busy_ = false;
  }
  if (failure == nullptr && item.finished != nullptr) {
    batches_out_->fetch_add(1, std::memory_order_relaxed);
    item.finished->batches_out = batches_out_;
    handed.emplace(std::move(item.finished));
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
  // Those that next() could hand out now: a later one that is done before its turn is not among them.
  for (auto one = arrived_.begin(); one != arrived_.end() && one->first == next_sequence_ + now.ready; ++one)
    ++now.ready;
  now.out = static_cast<std::uint64_t>(std::max<std::int64_t>(batches_out_->load(std::memory_order_relaxed), 0));
  now.waits = waits_.summarize();
  return now;
}

}  // namespace leat::stages
