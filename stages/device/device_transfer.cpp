#include "stages/device/device_transfer.hpp"

#include "base/start_thread.hpp"
#include "base/text.hpp"
#include "base/thread_number.hpp"
#include "io/budget_refusal.hpp"
#include "stages/batch_layout.hpp"
#include "stages/range.hpp"

#include <absl/container/inlined_vector.h>
#include <boost/asio/error.hpp>
#include <boost/system/system_error.hpp>

#include <pthread.h>

#include <algorithm>
#include <cassert>
#include <iterator>
#include <new>
#include <utility>

namespace leat::stages {

namespace {

// Streams that read a batch: the step's, and one beside it. For more of them events are made in the loop, where a batch ends.
constexpr std::size_t consumers_expected = 2;

constexpr const char* looking_at_a_consumer = "cudaStreamIsCapturing or cuStreamGetCtx of a consumer's stream";

bool is_in(std::span<const std::span<std::byte>> all, std::span<std::byte> memory) noexcept {
  return std::any_of(all.begin(), all.end(), [&](std::span<std::byte> known) {
    return known.data() == memory.data() && known.size() == memory.size();
  });
}

// Copies may be under way for all we know: what they read is never used again, and stays as long as the process.
void keep_for_good(io::lease memory) {
  static leat::mutex mutex;
  static auto* const kept = new std::vector<io::lease>;  // never destroyed
  const mutex_lock lock(mutex);
  kept->push_back(std::move(memory));
}

}  // namespace

/// What a batch holds of the device. Thread: one at a time, as the batch.
class device_transfer::landed_batch final : public landing {
 public:
  landed_batch(std::shared_ptr<device_transfer> owner, std::uint32_t index, std::byte* finished, std::byte* data)
      : owner_(std::move(owner)), index_(index), finished_(finished), data_(data) {}
  ~landed_batch() override {
    if (owner_->forked_.in_child()) {
      // Neither thread nor driver nor, perhaps, the mutex is there: all of it goes with the process. What would be the
      // last to let go of the transfer, which ends it, never does.
      static_cast<void>(new std::shared_ptr<device_transfer>(std::move(owner_)));
      return;
    }
    if (copy_ != nullptr) static_cast<void>(owner_->release(index_, *copy_, consumers_));
  }

  /// From here on the block is ours to give back.
  void hold(flight& copy) noexcept { copy_ = &copy; }

  [[nodiscard]] device where() const noexcept override { return owner_->calls_->where(); }
  [[nodiscard]] std::byte* data() const noexcept override { return data_; }
  [[nodiscard]] std::byte* finished() const noexcept override { return finished_; }

  // What may throw does so before any stream waits.
  void wait_on(stream consumer) override {
    check_process();
    consumers_.reserve(consumers_.size() + 1);
    owner_->check_consumer(consumer, "wait_on()");
    owner_->wait_on(*copy_, consumer);
    add(consumer);
  }

  void release_on(stream consumer) override {
    check_process();
    consumers_.reserve(consumers_.size() + 1);
    owner_->check_consumer(consumer, "release_on()");
    for (const device_transfer::consumer& each : consumers_) {
      owner_->check_consumer(owner_->as_seen_here(each), "release_on()");
    }
    add(consumer);
    finished_ = data_ = nullptr;
    const std::exception_ptr failure = owner_->release(index_, *std::exchange(copy_, nullptr), consumers_);
    if (failure != nullptr) std::rethrow_exception(failure);
  }

  void ready(completion<void(std::exception_ptr)> done) override {
    try {
      check_process();
    } catch (const error&) {
      return done.complete(std::current_exception());
    }
    owner_->ready(*copy_, std::move(done));
  }

 private:
  void check_process() const {
    if (!owner_->forked_.in_child()) return;
    throw error(errc::usage,
                "this batch was made before fork(): its device stayed with the parent; make a loader after fork()");
  }

  void add(stream consumer) {
    const std::uint64_t here = thread_number();
    const bool of_thread = owner_->calls_->is_of_thread(consumer);
    for (const device_transfer::consumer& known : consumers_) {
      if (known.which == consumer && (!of_thread || known.named_by == here)) return;
    }
    consumers_.push_back({consumer, here});
  }

  std::shared_ptr<device_transfer> owner_;  // the batch may outlive the loader
  const std::uint32_t index_;
  std::byte* finished_;
  std::byte* data_;
  flight* copy_ = nullptr;
  absl::InlinedVector<device_transfer::consumer, 2> consumers_;
};

device_transfer::device_transfer(std::shared_ptr<device_calls> calls, const device_transfer_options& options)
    : calls_(std::move(calls)), options_(options) {}

device_transfer::~device_transfer() {
  if (!drained_) drain();
  // Copies may be under way for all we know: their blocks, events and stream stay as long as the process.
  if (copies_in_doubt_) return;
  // No batch is left. What their consumers still read has to be passed before it is freed, since cudaFree() may wait for the
  // device and need not; a call that fails here has nobody to tell it to.
  bool lost = lost_;
  for (block& each : blocks_) {
    for (std::size_t i = 0; i < each.recorded; ++i) {
      const device_status status = calls_->synchronize(each.consumed[i]);
      lost = lost || calls_->is_lost(status);
      each.in_doubt = each.in_doubt || status != device_ok;
    }
    if (each.in_doubt && !lost) continue;
    for (const device_event event : each.consumed) static_cast<void>(calls_->free_event(event));
    if (each.memory != nullptr) static_cast<void>(calls_->free_memory(each.memory));
  }
  for (const flight& each : flights_) static_cast<void>(calls_->free_event(each.arrived));
  if (prepared_) static_cast<void>(calls_->free_stream(side_));
}

// --- the start ----------------------------------------------------------------------------------------------------------

void device_transfer::prepare(transfer_needs needs) {
  const mutex_lock lock(mutex_);
  if (prepared_) throw error(errc::usage, "this device transfer serves a loader already; give each loader its own");
  check(calls_->make_stream(side_), "cudaStreamCreateWithPriority");
  prepared_ = true;
  wake_ = std::move(needs.wake);
  failed_ = std::move(needs.failed);
  pinning_done_ = std::move(needs.pinning_done);
  finished_bytes_ = align_tensor(needs.finished_bytes_max);
  take_memory(finished_bytes_ + align_tensor(std::max<std::size_t>(needs.batch_bytes_max, 1)));
  // One for each copy whose host memory is out and one for each batch in its block, which may be another's.
  const std::size_t copies = blocks_.size() + needs.host_batches;
  for (std::size_t i = 0; i < copies; ++i) add_flight();
  pending_.reserve(needs.host_batches);
  pinned_.reserve(needs.host_batches);
}

void device_transfer::take_memory(std::size_t block_bytes) {
  block_bytes_ = block_bytes;
  std::size_t wanted = std::max<std::uint32_t>(options_.batches, 1);
  if (options_.bytes_max != 0) wanted = std::min(wanted, options_.bytes_max / block_bytes);
  if (wanted == 0) {
    throw io::budget_refusal(str_cat("device_bytes_max of ", options_.bytes_max,
                                     " bytes is too small: one batch takes ", block_bytes,
                                     "; give at least that, or a smaller batch"));
  }
  blocks_.reserve(wanted);
  free_blocks_.reserve(wanted);
  for (std::uint32_t i = 0; i < wanted; ++i) {
    block& added = blocks_.emplace_back();
    const failed_call taken = {calls_->take_memory(block_bytes, added.memory), "cudaMalloc of a batch", block_bytes};
    if (calls_->is_full(taken.status)) {
      throw error(errc::limit, str_cat(describe(taken).what(), "; it had room for ", i, " of ", wanted, " batches"));
    }
    check(taken.status, taken.name, taken.bytes);
    for (std::size_t stream = 0; stream < consumers_expected; ++stream) {
      const failed_call made = add_consumed(added);
      check(made.status, made.name);
    }
    free_blocks_.push_back(i);
  }
}

// --- copies ---------------------------------------------------------------------------------------------------------------

void device_transfer::send(transfer_operation& operation) noexcept {
  {
    const mutex_lock lock(mutex_);
    const auto later = std::find_if(pending_.begin(), pending_.end(),
                                    [&](const transfer_operation* each) { return each->turn > operation.turn; });
    pending_.insert(later, &operation);
  }
  pump(false);
}

void device_transfer::go_on() noexcept { pump(false); }

// Whose turn it is, as far as there are blocks. On the I/O thread, where nothing may wait, and on the sender.
void device_transfer::pump(bool may_wait) noexcept {
  for (;;) {
    shipment next;
    {
      const mutex_lock lock(mutex_);
      if (!next_can_go()) return;
      const bool takes_time = failure_ == nullptr && pending_.front()->memory != nullptr &&
                              !is_in(pinned_, pending_.front()->memory->bytes());
      if (takes_time && !may_wait && leave_to_sender()) return;
      next = take_next();
    }
    ship(next);
    transfer_operation& operation = *next.operation;
    released home;
    {
      const mutex_lock lock(mutex_);
      settle(next, home);
      shipping_ = false;
    }
    let_go(home);
    // Not under the mutex: what the loader does with a batch may end another, which comes back to us.
    operation.handed_over(operation);
    const mutex_lock lock(mutex_);
    --handing_over_;
    handed_over_.notify_all();
  }
}

bool device_transfer::next_can_go() const {
  if (drained_ || shipping_ || pending_.empty() || pending_.front()->turn != next_turn_) return false;
  return failure_ != nullptr || !free_blocks_.empty() || pending_.front()->memory == nullptr;
}

// False where there is no such thread to be had: then nothing goes any more.
bool device_transfer::leave_to_sender() noexcept {
  try {
    if (!sender_.joinable())
      sender_ = start_thread({.what = "the thread that queues copies"}, [this] { send_what_takes_time(); });
    something_to_send_.notify_one();
    return true;
  } catch (...) {
    failure_ = std::current_exception();
    return false;
  }
}

void device_transfer::send_what_takes_time() noexcept {
  ::pthread_setname_np(::pthread_self(), "leat-send");
  mutex_lock lock(mutex_);
  for (;;) {
    while (!ending_ && !next_can_go()) something_to_send_.wait(mutex_);
    if (ending_) return;
    lock.unlock();
    pump(true);
    lock.lock();
  }
}

// All that may throw, before anything is in a queue.
device_transfer::shipment device_transfer::take_next() noexcept {
  shipment next;
  next.operation = pending_.front();
  pending_.erase(pending_.begin());
  ++next_turn_;
  ++handing_over_;
  shipping_ = true;
  next.operation->failure = failure_;
  if (failure_ != nullptr || next.operation->memory == nullptr) return next;
  try {
    const std::uint32_t index = free_blocks_.front();
    block& to = blocks_[index];
    assert(next.operation->bytes <= block_bytes_ - finished_bytes_);
    next.side = side_;
    next.finished_bytes = finished_bytes_;
    next.pinned = is_in(pinned_, next.operation->memory->bytes());
    next.pageable = is_in(pageable_, next.operation->memory->bytes());
    pinned_.reserve(pinned_.size() + 1);
    pageable_.reserve(pageable_.size() + 1);
    next.landed = std::make_unique<landed_batch>(shared_from_this(), index, to.memory, to.memory + finished_bytes_);
    next.copy = &take_flight();
    next.to = &to;
    free_blocks_.erase(free_blocks_.begin());
  } catch (...) {
    if (failure_ == nullptr) failure_ = std::current_exception();
    next.operation->failure = failure_;
  }
  return next;
}

// Whole leases, as they are copied whole: a copy must not cross the border of two registered ranges, which CUDA refuses.
// A pool hands out the same few again and again, so that this happens once for each of them. Where it fails, a copy waits for
// what its stream holds, on the thread that asks for it: the consumers are waited for before, by a call that is made for it.
void device_transfer::ship(shipment& next) noexcept {
  if (next.to == nullptr) return;
  const range profiled(work_of::transfer);
  if (!next.pinned && !next.pageable) {
    next.pinning = calls_->pin(next.operation->memory->bytes());
    next.pinned = *next.pinning == device_ok;
    if (pinning_done_) pinning_done_(*next.operation->memory);
  }
  if (!next.pinned) {
    for (std::size_t i = 0; i < next.to->recorded && next.failed.status == device_ok; ++i) {
      next.failed = {calls_->synchronize(next.to->consumed[i]), "cudaEventSynchronize of a batch's end", {}};
    }
  }
  if (next.failed.status == device_ok) next.failed = queue(next);
}

// Exactly: wait for each consumer of what lay here, copy, finish, record.
device_transfer::failed_call device_transfer::queue(shipment& next) noexcept {
  const transfer_operation& operation = *next.operation;
  for (std::size_t i = 0; i < next.to->recorded; ++i) {
    const device_status status = calls_->wait(next.side, next.to->consumed[i]);
    if (status != device_ok) return {status, "cudaStreamWaitEvent", {}};
  }
  if (operation.bytes != 0) {
    std::byte* const to = next.to->memory + next.finished_bytes;
    const device_status status = calls_->copy(to, operation.memory->data(), operation.bytes, next.side);
    if (status != device_ok) return {status, "cudaMemcpyAsync", operation.bytes};
    next.may_be_read = true;
  }
  const failed_call finished = finish(next);
  if (finished.status != device_ok) return finished;
  return {calls_->record(next.copy->arrived, next.side), "cudaEventRecord", {}};
}

device_transfer::failed_call device_transfer::finish(const shipment& next) noexcept {
  if (next.operation->rows == 0) return {};
  const std::byte* const copied = next.to->memory + next.finished_bytes;
  for (const finish_step& step : next.operation->finish) {
    picture_batch pictures = step.what;
    pictures.from = reinterpret_cast<const std::uint8_t*>(copied + step.from);
    pictures.flips = reinterpret_cast<const std::uint8_t*>(copied + step.flips);
    if (step.mixed) pictures.mixed = reinterpret_cast<const mix_row*>(copied + *step.mixed);
    pictures.to = next.to->memory + step.to;
    pictures.rows = next.operation->rows;
    const device_status status = calls_->finish_pictures(pictures, next.side);
    if (status != device_ok) return {status, "the kernel that finishes pictures", {}};
  }
  return {};
}

// Nothing here throws: a copy may be reading the batch's memory.
void device_transfer::settle(shipment& next, released& home) noexcept {
  if (next.to == nullptr) return;
  transfer_operation& operation = *next.operation;
  flight& copy = *next.copy;
  if (next.pinning) note_pinning(next);
  if (next.failed.status != device_ok) {
    operation.failure = fail(next.failed);
    if (next.may_be_read) {
      copy.host = std::move(*operation.memory);
      copy.stuck = true;
    } else {
      idle_flights_.push_back(&copy);
    }
    return;
  }
  next.to->recorded = 0;
  copy.users = 2;
  copy.passed = false;
  copy.failure = nullptr;
  copy.host = std::move(*operation.memory);
  in_flight_.push_back(copy);
  next.landed->hold(copy);
  operation.landed = std::move(next.landed);
  if (!starving_) return;
  try {
    start_watching();
  } catch (...) {
    if (failure_ == nullptr) failure_ = std::current_exception();
    home.failure = failure_;
    home.tell_loader = true;
  }
  something_to_watch_.notify_one();
}

void device_transfer::note_pinning(shipment& next) noexcept {
  const std::span<std::byte> memory = next.operation->memory->bytes();
  (next.pinned ? pinned_ : pageable_).push_back(memory);  // take_next() made room
  has_pinned_ = has_pinned_ || next.pinned;
  if (next.pinned || !why_pageable_.empty()) return;
  try {
    why_pageable_ = str_cat("cudaHostRegister of ", memory.size(), " bytes: ", calls_->describe_pinning(*next.pinning));
  } catch (const std::bad_alloc&) {
    return;  // The next one says why.
  }
}

/// For one more copy.
void device_transfer::add_flight() {
  idle_flights_.reserve(flights_.size() + 1);  // Room for all: they go back where nothing may throw.
  device_event arrived = device_event::none;
  flight& added = flights_.emplace_back();
  const device_status status = calls_->make_event(arrived);
  if (status != device_ok) flights_.pop_back();
  check(status, "cudaEventCreateWithFlags");
  added.arrived = arrived;
  idle_flights_.push_back(&added);
}

device_transfer::flight& device_transfer::take_flight() {
  // There are enough where each lease is a batch's share, as the loader's are; of smaller ones more fly at a time.
  if (idle_flights_.empty()) add_flight();
  flight& taken = *idle_flights_.back();
  idle_flights_.pop_back();
  return taken;
}

void device_transfer::leave(flight& copy) noexcept {
  assert(copy.users > 0);
  if (--copy.users == 0 && !copy.stuck) idle_flights_.push_back(&copy);
}

// --- host memory goes home -----------------------------------------------------------------------------------------------

void device_transfer::pass_oldest(released& home) noexcept {
  flight& copy = in_flight_.pop_front();
  copy.passed = true;
  if (!copy.stuck) home.memory = std::move(copy.host);
  for (auto each = waits_.begin(); each != waits_.end();) {
    const auto next = std::next(each);
    if (each->copy == &copy) {
      each->listed = false;
      home.done.splice(home.done.end(), waits_, each);
      leave(copy);
    }
    each = next;
  }
  leave(copy);
}

// Whether its copy has passed, as far as `status` says so. Where the device is lost nothing reads this memory any more; any
// other code is about the call, and the copy may be under way.
void device_transfer::settle_oldest(device_status status, const char* call, released& home) noexcept {
  if (status != device_ok) {
    home.failure = fail({status, call, {}});
    home.tell_loader = true;
    flight& oldest = in_flight_.front();
    oldest.failure = home.failure;
    oldest.stuck = static_cast<bool>(oldest.host) && !calls_->is_lost(status);
  }
  pass_oldest(home);
}

// Neither under the mutex: a lease that goes home wakes who waits for it, and a handler may be destroyed.
void device_transfer::let_go(released& home) noexcept {
  home.memory.reset();
  for (waiter& each : home.done) each.done.complete(home.failure);
  home.done.clear();
  if (home.tell_loader && failed_) failed_(home.failure);
}

void device_transfer::collect() noexcept {
  for (;;) {
    flight* oldest = nullptr;
    {
      const mutex_lock lock(mutex_);
      if (in_flight_.empty()) return;
      oldest = &in_flight_.front();
      ++oldest->users;  // as in watch()
    }
    const device_status status = calls_->query(oldest->arrived);
    released home;
    {
      const mutex_lock lock(mutex_);
      if (status != device_not_ready && !oldest->passed) settle_oldest(status, "cudaEventQuery", home);
      leave(*oldest);
    }
    if (status == device_not_ready) return;
    let_go(home);
  }
}

void device_transfer::starve(bool waiting) {
  const mutex_lock lock(mutex_);
  starving_ = waiting;
  if (!starving_ || in_flight_.empty()) return;
  start_watching();
  something_to_watch_.notify_one();
}

void device_transfer::start_watching() {
  if (watcher_.joinable() || ending_) return;
  watcher_ = start_thread({.what = "the thread that waits for copies"}, [this] { watch(); });
}

// Waits for the oldest copy while somebody needs to know.
void device_transfer::watch() noexcept {
  ::pthread_setname_np(::pthread_self(), "leat-copies");
  mutex_lock lock(mutex_);
  for (;;) {
    while (!ending_ && (in_flight_.empty() || (!starving_ && waits_.empty()))) something_to_watch_.wait(mutex_);
    if (ending_) return;
    flight& oldest = in_flight_.front();
    ++oldest.users;  // Its event stays its own, whoever else finds out first.
    lock.unlock();
    const device_status status = calls_->synchronize(oldest.arrived);
    released home;
    lock.lock();
    if (!oldest.passed) {
      assert(&in_flight_.front() == &oldest);
      settle_oldest(status, "cudaEventSynchronize", home);
    }
    leave(oldest);
    lock.unlock();
    let_go(home);
    lock.lock();
  }
}

// --- the consumer's side, on any thread ------------------------------------------------------------------------------------

// Before anything depends on it: CUDA would take another device's stream here, and refuse it when the batch ends; and what is
// captured is in a graph, where no event fires.
void device_transfer::check_consumer(stream of_consumer, std::string_view call) const {
  stream_facts told;
  const device_status status = calls_->look_at(of_consumer, told);
  if (status != device_ok) throw describe({status, looking_at_a_consumer, {}});
  if (told.device != calls_->where().index) {
    throw error(errc::usage, str_cat(call, ": the stream is one of cuda:", told.device,
                                     ", and the batch lies on cuda:", calls_->where().index,
                                     "; give a stream of that device, and have the other one wait for it"));
  }
  if (told.foreign_context) {
    throw error(errc::usage, str_cat(call, ": the stream is of another CUDA context of cuda:", told.device,
                                     " than the primary one (a green one, or what cuCtxCreate made), in which "
                                     "the batch's events are; give one that "
                                     "cudaStreamCreate made, and have the other one wait for it"));
  }
  if (told.capturing) {
    throw error(errc::usage,
                str_cat(call,
                        ": the stream is being captured into a graph, or is the default stream while one that "
                        "waits for it is; call this before the capture, or after it"));
  }
}

// With nothing locked: CUDA makes a caller wait whose stream's queue is full, and the I/O thread must not wait with it. The
// event stays the batch's as long as there is one.
void device_transfer::wait_on(flight& copy, stream of_consumer) {
  const device_status status = calls_->wait(of_consumer, copy.arrived);
  if (status != device_ok) throw describe({status, "cudaStreamWaitEvent of wait_on()", {}});
}

/// The stream whose end is that of `from`, for the calling thread: of another thread's default stream nothing can be said here,
/// but the device's default stream waits for it.
stream device_transfer::as_seen_here(const consumer& from) const noexcept {
  const bool of_another = calls_->is_of_thread(from.which) && from.named_by != thread_number();
  return of_another ? stream() : from.which;
}

// With nothing locked, as in wait_on(): until the block is given back its events are this batch's alone.
device_transfer::end_of_batch device_transfer::record_all(block& on, std::span<const consumer> consumers) noexcept {
  end_of_batch end;
  try {
    for (std::size_t i = 0; i < consumers.size(); ++i) {
      if (i == on.consumed.size()) end.failed = add_consumed(on);
      if (end.failed.status != device_ok) break;
      const stream which = as_seen_here(consumers[i]);
      stream_facts told;
      end.failed = {calls_->look_at(which, told), looking_at_a_consumer, {}};
      if (end.failed.status != device_ok) break;
      end.captured = told.capturing;
      if (end.captured) break;
      end.failed = {calls_->record(on.consumed[i], which), "cudaEventRecord of a batch's end", {}};
      if (end.failed.status != device_ok) break;
    }
  } catch (...) {
    end.thrown = std::current_exception();
  }
  return end;
}

device_transfer::failed_call device_transfer::add_consumed(block& to) {
  to.consumed.reserve(to.consumed.size() + 1);
  device_event consumed = device_event::none;
  const device_status status = calls_->make_event(consumed);
  if (status != device_ok) return {status, "cudaEventCreateWithFlags", {}};
  to.consumed.push_back(consumed);
  return {};
}

std::exception_ptr device_transfer::release(std::uint32_t index, flight& copy,
                                            std::span<const consumer> consumers) noexcept {
  block* here = nullptr;
  {
    const mutex_lock lock(mutex_);
    here = &blocks_[index];
  }
  const end_of_batch end = record_all(*here, consumers);

  const mutex_lock lock(mutex_);
  std::exception_ptr failure;
  if (end.thrown != nullptr) {
    if (failure_ == nullptr) failure_ = end.thrown;
    failure = failure_;
  } else if (end.captured) {
    failure = fail_for_capture();
  } else if (end.failed.status != device_ok) {
    failure = fail(end.failed);
  }
  leave(copy);
  if (failure == nullptr) {
    here->recorded = consumers.size();
    free_blocks_.push_back(index);
  } else {
    here->in_doubt = true;
  }
  if (wake_ && !pending_.empty()) wake_();
  return failure;
}

void device_transfer::ready(flight& copy, completion<void(std::exception_ptr)> done) {
  std::exception_ptr failure;
  try {
    // With nothing locked, as in wait_on(). That it has passed may be known already, or by the time that we look again.
    const device_status status = calls_->query(copy.arrived);
    const mutex_lock lock(mutex_);
    if (status == device_not_ready && !copy.passed) {
      start_watching();
      const auto added = waits_.emplace(waits_.end());
      added->copy = &copy;
      ++copy.users;
      try {
        done.on_cancel([this, added](asio::cancellation_type) { cancel_ready(added); });
      } catch (...) {
        waits_.erase(added);
        leave(copy);
        throw;
      }
      added->done = std::move(done);
      something_to_watch_.notify_one();
      return;
    }
    if (copy.passed) {
      failure = copy.failure;
    } else if (status != device_ok) {
      failure = fail({status, "cudaEventQuery", {}});
    }
  } catch (...) {
    failure = std::current_exception();
  }
  done.complete(std::move(failure));
}

void device_transfer::cancel_ready(wait_list::iterator which) noexcept {
  wait_list taken;
  {
    const mutex_lock lock(mutex_);
    if (!which->listed) return;  // It is being completed.
    which->listed = false;
    taken.splice(taken.end(), waits_, which);
    leave(*which->copy);
  }
  taken.front().done.complete(std::make_exception_ptr(boost::system::system_error(asio::error::operation_aborted)));
}

// --- the end ----------------------------------------------------------------------------------------------------------------

void device_transfer::drain() noexcept {
  stream side;
  bool prepared = false;
  {
    const mutex_lock lock(mutex_);
    drained_ = true;
    wake_ = nullptr;
    pending_.clear();
    ending_ = true;
    something_to_watch_.notify_all();
    something_to_send_.notify_all();
    while (handing_over_ != 0) handed_over_.wait(mutex_);
    side = side_;
    prepared = prepared_;
  }
  if (watcher_.joinable()) watcher_.join();
  if (sender_.joinable()) sender_.join();
  const device_status status = prepared ? calls_->finish(side) : device_ok;
  const bool ended = status == device_ok || calls_->is_lost(status);
  std::vector<std::span<std::byte>> pinned;
  std::exception_ptr failure;
  {
    const mutex_lock lock(mutex_);
    if (status != device_ok) failure = fail({status, "cudaStreamSynchronize", {}});
    lost_ = status != device_ok && ended;
    copies_in_doubt_ = !ended;
    pinned.swap(pinned_);
    // What copies may still read stays pinned, and mapped.
    if (!ended) {
      for (const flight& each : flights_) {
        if (each.host)
          std::erase_if(pinned, [&](std::span<std::byte> known) { return known.data() == each.host.bytes().data(); });
      }
    }
  }
  // Before the leases go home, and the arena with the last of them.
  for (const std::span<std::byte> memory : pinned) static_cast<void>(calls_->unpin(memory));
  for (;;) {
    released home;
    {
      const mutex_lock lock(mutex_);
      if (in_flight_.empty()) break;
      in_flight_.front().failure = failure;
      pass_oldest(home);
    }
    home.failure = failure;
    if (!ended) keep_for_good(std::move(home.memory));
    let_go(home);
  }
  for (io::lease left = take_stuck(); left; left = take_stuck()) {
    if (!ended) keep_for_good(std::move(left));
  }
}

/// Host memory of a copy that no event tells of; none where there is no more.
io::lease device_transfer::take_stuck() noexcept {
  const mutex_lock lock(mutex_);
  const auto stuck = std::find_if(flights_.begin(), flights_.end(), [](const flight& each) { return bool{each.host}; });
  return stuck == flights_.end() ? io::lease() : std::move(stuck->host);
}

// --- what it says -------------------------------------------------------------------------------------------------------------

error device_transfer::describe(const failed_call& call) const {
  const std::string amount = call.bytes ? str_cat(" of ", *call.bytes, " bytes") : "";
  return {errc::device, str_cat(call.name, amount, " on ", calls_->name(), " (cuda:", calls_->where().index,
                                "): ", calls_->describe(call.status))};
}

std::exception_ptr device_transfer::fail(const failed_call& call) noexcept {
  if (failure_ != nullptr) return failure_;
  try {
    failure_ = std::make_exception_ptr(describe(call));
  } catch (...) {
    failure_ = std::current_exception();  // no memory for words
  }
  return failure_;
}

std::exception_ptr device_transfer::fail_for_capture() noexcept {
  if (failure_ != nullptr) return failure_;
  try {
    throw error(
        errc::usage,
        "a batch ended while a stream that reads it was being captured into a graph, so that nobody can tell when "
        "it has been read; end it, or call release_on(), before the capture or after it");
  } catch (...) {
    failure_ = std::current_exception();
  }
  return failure_;
}

void device_transfer::check(device_status status, const char* call, std::optional<std::size_t> bytes) {
  if (status != device_ok) std::rethrow_exception(fail({status, call, bytes}));
}

device_report device_transfer::report() const {
  const mutex_lock lock(mutex_);
  device_report made{
      .use = {str_cat("cuda:", calls_->where().index), calls_->name()},
      .pinned = {has_pinned_ ? "on" : "not yet", "by cudaHostRegister, as batches leave for the first time"},
      .batches = static_cast<std::uint32_t>(blocks_.size()),
      .bytes = blocks_.size() * block_bytes_};
  if (!pageable_.empty()) made.pinned = {has_pinned_ ? "partly" : "off", why_pageable_};
  return made;
}

}  // namespace leat::stages
