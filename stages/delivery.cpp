#include "stages/delivery.hpp"

#include "async/clock.hpp"

#include <leat/error.hpp>

#include <boost/asio/error.hpp>
#include <boost/system/system_error.hpp>

#include <algorithm>
#include <utility>

namespace leat::stages {

void delivery::put(std::uint64_t sequence, delivery_item item) {
  {
    const async::mutex_lock lock(mutex_);
    arrived_.emplace(sequence, std::move(item));
  }
  pump();
}

void delivery::end(std::uint64_t sequence, std::uint64_t empty_epochs) {
  {
    const async::mutex_lock lock(mutex_);
    end_sequence_ = sequence;
    empty_epochs_ = empty_epochs;
  }
  pump();
}

void delivery::fail(std::exception_ptr why) {
  {
    const async::mutex_lock lock(mutex_);
    if (failure_ == nullptr) failure_ = std::move(why);
  }
  pump();
}

void delivery::close(std::exception_ptr why) {
  std::map<std::uint64_t, delivery_item> dropped;  // Batches go home outside the lock.
  {
    const async::mutex_lock lock(mutex_);
    dropped.swap(arrived_);
    closed_ = true;
    if (failure_ == nullptr) failure_ = std::move(why);
  }
  pump();
}

void delivery::next(next_completion done) {
  {
    async::mutex_lock lock(mutex_);
    if (busy_) {
      lock.unlock();
      done.complete(std::make_exception_ptr(
                        error(errc::usage, "next() was called before the last next() had completed; one at a time")),
                    std::nullopt);
      return;
    }
    busy_ = true;
    ++counted_.next_count;
    asked_ns_ = async::now_ns();
    profiled_.begin(work_of::next);
    done.on_cancel([this](asio::cancellation_type) { cancel(); });
    waiting_ = std::move(done);
  }
  pump();
}

void delivery::cancel() {
  next_completion done;
  {
    const async::mutex_lock lock(mutex_);
    if (!waiting_) return;  // Its batch is on the way: it succeeds.
    done = std::move(waiting_);
    profiled_.end();
    busy_ = false;
  }
  done.complete(std::make_exception_ptr(boost::system::system_error(asio::error::operation_aborted)), std::nullopt);
}

// Serves the call that waits, if there is one and something to serve it with.
void delivery::pump() {
  delivery_item item;
  next_completion done;
  std::uint64_t asked_ns = 0;
  {
    const async::mutex_lock lock(mutex_);
    if (!waiting_) return;
    const auto first = arrived_.find(next_sequence_);
    if (first != arrived_.end() && !closed_) {
      item = std::move(first->second);
      arrived_.erase(first);
      ++next_sequence_;
      if (item.failure != nullptr) {
        closed_ = true;
        if (failure_ == nullptr) failure_ = item.failure;
      }
    } else if (failure_ != nullptr) {
      closed_ = true;  // From here on nothing else is handed out, whatever still arrives.
      item.failure = failure_;
    } else if (!end_sequence_ || next_sequence_ < *end_sequence_) {
      return;
    } else if (empty_epochs_ > 0) {
      --empty_epochs_;
      item.end_of_epoch = true;
    }
    done = std::move(waiting_);
    profiled_.end();
    asked_ns = asked_ns_;
  }
  hand_out(std::move(item), std::move(done), asked_ns);
}

void delivery::hand_out(delivery_item item, next_completion done, std::uint64_t asked_ns) {
  std::exception_ptr failure = item.failure;
  try {
    for (const journal_entry& entry : item.journal) journal_.append(entry);
  } catch (...) {
    if (failure == nullptr) failure = std::current_exception();
  }
  waits_.record(async::now_ns() - asked_ns);
  std::optional<batch> handed;
  {
    const async::mutex_lock lock(mutex_);
    // What the journal could not tell of is not handed out, and so not counted.
    if (failure == item.failure) {
      counted_.planned += item.planned;
      counted_.samples += item.samples;
      counted_.quarantined += item.quarantined;
      counted_.substituted += item.substituted;
      counted_.bytes += item.bytes;
      if (item.finished != nullptr) ++counted_.batches;
      if (item.end_of_epoch) ++counted_.epochs_finished;
    }
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

delivery::counters delivery::count() const {
  const async::mutex_lock lock(mutex_);
  counters now = counted_;
  // Those that next() could hand out now: a later one that is done before its turn is not among them.
  for (auto one = arrived_.begin(); one != arrived_.end() && one->first == next_sequence_ + now.ready; ++one)
    ++now.ready;
  now.out = static_cast<std::uint64_t>(std::max<std::int64_t>(batches_out_->load(std::memory_order_relaxed), 0));
  now.waits = waits_.summarize();
  return now;
}

bool delivery::starving() const {
  const async::mutex_lock lock(mutex_);
  return static_cast<bool>(waiting_);
}

}  // namespace leat::stages
