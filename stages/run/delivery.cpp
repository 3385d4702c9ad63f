#include "stages/run/delivery.hpp"

#include "base/clock.hpp"
#include "base/option_words.hpp"
#include "base/text.hpp"
#include "stages/observe/probes.hpp"
#include "stages/state/digest.hpp"

#include <leat/error.hpp>

#include <algorithm>
#include <cassert>
#include <string>
#include <utility>

namespace leat::stages {
namespace {

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
  put_untold(sequence, std::move(item));
  tell();
}

void delivery::put_untold(std::uint64_t sequence, delivery_item item) {
  delivery_item dropped;  // Destroyed outside the lock, with its batch.
  const mutex_lock lock(mutex_);
  if (is_skipped(item)) dropped = std::exchange(item, placeholder_of(item));
  item.arrived_ns = now_ns();
  ready_.add(item.arrived_ns);
  arrived_.emplace(sequence, std::move(item));
  pass_skipped();
}

void delivery::end(std::uint64_t sequence, std::uint64_t empty_epochs) {
  {
    const mutex_lock lock(mutex_);
    end_sequence_ = sequence;
    empty_epochs_ = empty_epochs;
  }
  tell();
}

void delivery::fail(std::exception_ptr why) {
  {
    const mutex_lock lock(mutex_);
    if (failure_ == nullptr) failure_ = std::move(why);
  }
  tell();
}

void delivery::close(std::exception_ptr why) {
  std::map<std::uint64_t, delivery_item> dropped;  // Batches are returned outside the lock.
  {
    const mutex_lock taking(taking_);  // What is being taken is counted before the loader ends.
    const mutex_lock lock(mutex_);
    dropped.swap(arrived_);
    for (std::size_t i = 0; i < dropped.size(); ++i) ready_.remove(now_ns());
    closed_ = true;
    receipts_.close(progress_.epoch);
    if (failure_ == nullptr) failure_ = std::move(why);
  }
  tell();
}

void delivery::begin_call(std::uint64_t call) {
  if (call_ != 0) {
    throw error(errc::usage, "next() was called before the last next() had completed; one at a time");
  }
  call_ = call;
  ++counted_.next_count;
  asked_ns_ = now_ns();
  begin_to_want(asked_ns_);
  profiled_.begin(work_of::next);
}

// The call that waits has something to take, or is told why it never will.
void delivery::serve() {
  // Not before the lock: count() may have counted the wait up to a later moment meanwhile, and what it says never falls.
  const std::uint64_t now = now_ns();
  waits_.record(now - asked_ns_);
  end_to_want(now);
  profiled_.end();
}

bool delivery::begin(std::uint64_t call, detail::wait_completion done) {
  bool waits_for_consumer = false;
  try {
    const mutex_lock lock(mutex_);
    begin_call(call);
    waits_for_consumer = held_all_ && limits_.held_patience.count() > 0 && !has_next();
    done.on_cancel([this, call](asio::cancellation_type) {
      if (detail::wait_completion waiting = end_waiting(call)) waiting.complete(detail::operation_aborted());
    });
    waiting_ = std::move(done);
  } catch (const error&) {
    done.complete(std::current_exception());
    return false;
  }
  tell();
  return waits_for_consumer;
}

bool delivery::is_served(std::uint64_t call) const {
  const mutex_lock lock(mutex_);
  return call_ == call && !waiting_;
}

bool delivery::begin_if_ready(std::uint64_t call) {
  const mutex_lock lock(mutex_);
  if (call_ != 0 || !has_next()) return false;
  begin_call(call);
  serve();
  return true;
}

void delivery::give_up(std::uint64_t call) noexcept {
  if (detail::wait_completion waiting = end_waiting(call)) return waiting.complete(detail::operation_aborted());
  const mutex_lock lock(mutex_);
  if (call_ == call) call_ = 0;
}

// Empty if the call does not wait: it has been served.
detail::wait_completion delivery::end_waiting(std::uint64_t call) {
  const mutex_lock lock(mutex_);
  if (call_ != call || !waiting_) return {};
  profiled_.end();
  end_to_want(now_ns());
  call_ = 0;
  return std::move(waiting_);
}

error delivery::held_all_error() const {
  std::string which;
  std::vector<batches_out::place> places = batches_out_->places();
  std::sort(places.begin(), places.end());
  for (const auto& [epoch, index] : places) {
    str_append(which, which.empty() ? ": " : ", ", "batch ", index, " of epoch ", epoch);
  }
  return {errc::usage,
          str_cat("you hold all ", limits_.batches_max, " batches that this loader has memory for", which,
                  "; let go of one, with the tensors that dlpack() gave of it, before next(), or raise ",
                  spelled(limits_.more_batches)),
          limits_.more_batches};
}

void delivery::refuse_if_held_all(std::uint64_t call) {
  if (!holds_all()) return;
  if (detail::wait_completion waiting = end_waiting(call)) waiting.complete(std::make_exception_ptr(held_all_error()));
}

std::uint64_t delivery::ready_since_ns() const {
  const mutex_lock lock(mutex_);
  if (failure_ != nullptr) return 0;
  const auto first = arrived_.find(next_sequence_);
  return first != arrived_.end() && !closed_ ? first->second.arrived_ns : ~std::uint64_t{0};
}

next_result delivery::next_blocking(std::optional<std::chrono::steady_clock::time_point> deadline) {
  const std::uint64_t call = new_call();
  {
    mutex_lock lock(mutex_);
    begin_call(call);
    std::optional<std::chrono::steady_clock::time_point> held;
    if (held_all_ && limits_.held_patience.count() > 0) {
      // Calls with a limit, one after another, are one wait. What the consumer does between them is none.
      const std::chrono::nanoseconds left = limits_.held_patience - std::chrono::nanoseconds(waited_in_calls_ns_);
      held = std::chrono::steady_clock::now() + left;
    }
    blocks_ = true;
    while (!has_next()) {
      const auto until = !held || (deadline && *deadline < *held) ? deadline : held;
      if (!until) {
        changed_.wait(mutex_);
      } else if (!changed_.wait_until(mutex_, *until) && !has_next()) {
        const bool refused = until == held && holds_all();
        if (until == held && !refused) {
          held.reset();
          continue;
        }
        blocks_ = false;
        profiled_.end();
        call_ = 0;
        if (!refused) {
          waited_in_calls_ns_ += now_ns() - asked_ns_;
          return next_result(next_status::not_ready);
        }
        end_to_want(now_ns());
        throw held_all_error();
      }
    }
    blocks_ = false;
    serve();
  }
  taken now = take(call);
  if (now.failure != nullptr) std::rethrow_exception(now.failure);
  return now.got ? next_result(*std::move(now.got)) : next_result(next_status::end_of_epoch);
}

next_result delivery::try_next() {
  {
    const mutex_lock lock(mutex_);
    if (call_ == 0 && !has_next()) {
      begin_to_want(now_ns());
      return next_result(next_status::not_ready);
    }
  }
  return next_blocking();
}

std::optional<std::uint32_t> delivery::skip_epoch() {
  std::vector<delivery_item> dropped;
  const mutex_lock lock(mutex_);
  if (call_ != 0) {
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

// The caller calls tell() after it, unless no call waits.
void delivery::pass_skipped() {
  for (auto first = arrived_.find(next_sequence_); first != arrived_.end() && is_skipped(first->second);
       first = arrived_.find(next_sequence_)) {
    if (first->second.end_of_epoch) ++counted_.epochs_finished;
    arrived_.erase(first);
    ready_.remove(now_ns());
    ++next_sequence_;
  }
}

// The consumer asks for what it does not have; it may do so more than once, by try_next() or with a limit to its patience.
void delivery::begin_to_want(std::uint64_t now_ns) {
  if (wants_since_ns_ != 0) return;
  wants_since_ns_ = now_ns;
  waited_in_calls_ns_ = 0;
  held_all_ = holds_all();
  is_empty_handed_ = !has_next();
  if (is_empty_handed_) probe::stall_begin(next_sequence_);
  if (returned_ns_ == 0) return;
  const std::uint64_t away_ns = now_ns - returned_ns_;
  if (track_ != nullptr && returned_batch_) {
    stepping_.end_ns = now_ns;
    track_->add(stepping_);
  }
  counted_.steps += returned_batch_ ? 1 : 0;
  (returned_batch_ ? counted_.step_ns : counted_.pause_ns) += away_ns;
}

// There is something for it, or it asks no more.
void delivery::end_to_want(std::uint64_t now_ns) {
  waited_ = {.of = activity::wait, .begin_ns = wants_since_ns_, .end_ns = now_ns};
  const std::uint64_t waited_ns = now_ns - std::exchange(wants_since_ns_, 0);
  if (is_empty_handed_) probe::stall_end(next_sequence_, waited_ns);
  add_wait(counted_, waited_ns);
  const bool stalled = counted_.batches != 0 && !held_all_;
  if (stalled && waited_ns > static_cast<std::uint64_t>(limits_.long_wait.count())) ++counted_.long_waits;
  returned_ns_ = now_ns;
  returned_batch_ = false;
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

void delivery::tell() {
  detail::wait_completion told;
  {
    const mutex_lock lock(mutex_);
    if (!has_next()) return;
    if (blocks_) changed_.notify_all();
    if (!waiting_) return;
    serve();
    told = std::move(waiting_);
  }
  told.complete(nullptr);
}

delivery::taken delivery::take(std::uint64_t call) {
  const mutex_lock taking(taking_);
  delivery_item item;
  {
    const mutex_lock lock(mutex_);
    assert(call_ == call && !waiting_ && has_next());
    static_cast<void>(call);
    item = take_item();
  }
  return hand_out(std::move(item));
}

delivery_item delivery::take_item() {
  delivery_item item;
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
  return item;
}

delivery::taken delivery::hand_out(delivery_item item) {
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
    if (item.record != nullptr) item.record->check();
    for (const journal_entry& entry : item.journal) journal_.append(entry);
    // The last of all that can fail: a receipt has the rows that were handed out.
    if (failure == nullptr) {
      receipts_.append(item.receipts);
      if (item.end_of_epoch) receipts_.mark(item.epoch + 1);
    }
  } catch (...) {
    if (failure == nullptr) failure = std::current_exception();
  }
  taken handed;
  std::uint64_t batches = 0;
  {
    const mutex_lock lock(mutex_);
    returned_batch_ = item.finished != nullptr;
    // What the journal or the receipts could not tell of is not handed out, and so not counted.
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
    if (item.finished != nullptr) {
      item.finished->after = progress_;
      probe::batch_handed_over(item.epoch, item.index, waited_.end_ns - waited_.begin_ns);
      waited_.epoch = item.epoch;
      waited_.batch = item.index;
      stepping_ = waited_;
      stepping_.of = activity::step;
      stepping_.begin_ns = waited_.end_ns;
      if (item.record != nullptr) {
        item.recorded.arrived_ns = item.arrived_ns;
        item.recorded.asked_ns = waited_.begin_ns;
        item.recorded.handed_ns = waited_.end_ns;
        item.record->add(item.recorded);
      }
    }
    if (track_ != nullptr) track_->add(waited_);
    if (failure != nullptr) {
      closed_ = true;
      if (failure_ == nullptr) failure_ = failure;
    }
    batches = counted_.batches;
    call_ = 0;
  }
  if (failure == nullptr && item.finished != nullptr) {
    const std::uint64_t now = now_ns();
    item.finished->out_slot = batches_out_->add(now, {item.epoch, item.index});
    item.finished->batches_out = batches_out_;
    handed.got.emplace(std::move(item.finished));
    if (handed_out_) handed_out_(now, batches);
  }
  handed.failure = std::move(failure);
  return handed;
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
