#include "stages/device_transfer.hpp"

#include "io/text.hpp"
#include "stages/batch_layout.hpp"
#include "stages/range.hpp"

#include <absl/container/inlined_vector.h>
#include <boost/asio/error.hpp>
#include <boost/system/system_error.hpp>

#include <pthread.h>

#include <algorithm>
#include <cassert>
#include <iterator>
#include <utility>

namespace leat::stages {

namespace {

// Copies may be under way for all we know: what they read is never used again, and stays as long as the process.
void keep_for_good(std::vector<io::lease> memory) {
  static async::mutex mutex;
  static auto* const kept = new std::vector<io::lease>;  // never destroyed
  const async::mutex_lock lock(mutex);
  std::move(memory.begin(), memory.end(), std::back_inserter(*kept));
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

  void wait_on(stream consumer) override {
    check_process();
    owner_->wait_on(*copy_, consumer);
    add(consumer);
  }

  void release_on(stream consumer) override {
    check_process();
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
    if (std::find(consumers_.begin(), consumers_.end(), consumer) == consumers_.end()) consumers_.push_back(consumer);
  }

  std::shared_ptr<device_transfer> owner_;  // the batch may outlive the loader
  const std::uint32_t index_;
  std::byte* finished_;
  std::byte* data_;
  flight* copy_ = nullptr;
  absl::InlinedVector<stream, 2> consumers_;
};

device_transfer::device_transfer(std::shared_ptr<device_calls> calls, const device_transfer_options& options)
    : calls_(std::move(calls)), options_(options) {}

device_transfer::~device_transfer() {
  if (!drained_) drain();
  // No batch is left. What their consumers still read has to be passed before it is freed; a call that fails here has
  // nobody to tell it to.
  for (const block& each : blocks_) {
    for (std::size_t i = 0; i < each.recorded; ++i) static_cast<void>(calls_->synchronize(each.consumed[i]));
    for (const device_event event : each.consumed) static_cast<void>(calls_->free_event(event));
    if (each.memory != nullptr) static_cast<void>(calls_->free_memory(each.memory));
  }
  for (const flight& each : flights_) static_cast<void>(calls_->free_event(each.arrived));
  if (prepared_) static_cast<void>(calls_->free_stream(side_));
}

// --- the start ----------------------------------------------------------------------------------------------------------

void device_transfer::prepare(transfer_needs needs) {
  const async::mutex_lock lock(mutex_);
  if (prepared_) throw error(errc::usage, "this device transfer serves a loader already; give each loader its own");
  check(calls_->make_stream(side_), "cudaStreamCreateWithFlags");
  prepared_ = true;
  wake_ = std::move(needs.wake);
  failed_ = std::move(needs.failed);
  finished_bytes_ = align_tensor(needs.finished_bytes_max);
  take_memory(finished_bytes_ + align_tensor(std::max<std::size_t>(needs.batch_bytes_max, 1)));
  // One for each copy whose host memory is out and one for each batch in its block, which may be another's.
  const std::size_t copies = blocks_.size() + needs.host_batches;
  for (std::size_t i = 0; i < copies; ++i) {
    device_event arrived = device_event::none;
    check(calls_->make_event(arrived), "cudaEventCreateWithFlags");
    idle_flights_.push_back(&flights_.emplace_back());
    flights_.back().arrived = arrived;
  }
}

void device_transfer::take_memory(std::size_t block_bytes) {
  block_bytes_ = block_bytes;
  std::size_t wanted = std::max<std::uint32_t>(options_.batches, 1);
  if (options_.bytes_max != 0) wanted = std::min(wanted, options_.bytes_max / block_bytes);
  if (wanted == 0) {
    throw error(errc::limit,
                io::str_cat("device_bytes_max of ", options_.bytes_max, " bytes is too small: one batch takes ",
                            block_bytes, "; give at least that, or a smaller batch"));
  }
  blocks_.reserve(wanted);
  for (std::uint32_t i = 0; i < wanted; ++i) {
    block& added = blocks_.emplace_back();
    check(calls_->take_memory(block_bytes, added.memory),
          io::str_cat("cudaMalloc of batch ", i + 1, " of ", wanted, ", ", block_bytes, " bytes,"));
    device_event consumed = device_event::none;
    check(calls_->make_event(consumed), "cudaEventCreateWithFlags");
    added.consumed.push_back(consumed);
    free_blocks_.push_back(i);
  }
}

// --- copies, on the I/O thread --------------------------------------------------------------------------------------------

void device_transfer::send(transfer_operation& operation) noexcept {
  {
    const async::mutex_lock lock(mutex_);
    pending_.emplace(operation.turn, &operation);
  }
  pump();
}

void device_transfer::go_on() noexcept { pump(); }

// Whose turn it is, as far as there are blocks.
void device_transfer::pump() noexcept {
  released home;
  absl::InlinedVector<transfer_operation*, 4> sent;
  {
    const async::mutex_lock lock(mutex_);
    while (!drained_ && !pending_.empty() && pending_.begin()->first == next_turn_) {
      if (failure_ == nullptr && free_blocks_.empty()) break;
      transfer_operation& operation = *pending_.begin()->second;
      pending_.erase(pending_.begin());
      ++next_turn_;
      operation.failure = failure_;
      try {
        if (failure_ == nullptr) issue(operation, home);
      } catch (...) {
        operation.failure = std::current_exception();
      }
      sent.push_back(&operation);
    }
    handing_over_ += sent.size();
  }
  let_go(home);
  // Not under the mutex: what the loader does with a batch may end another, which comes back to us.
  for (transfer_operation* const each : sent) each->handed_over(*each);
  if (sent.empty()) return;
  const async::mutex_lock lock(mutex_);
  handing_over_ -= sent.size();
  handed_over_.notify_all();
}

// Exactly: wait for each consumer of what lay here, copy, finish, record.
void device_transfer::issue(transfer_operation& operation, released& home) {
  const range profiled(work_of::transfer);
  const std::uint32_t index = free_blocks_.front();
  block& to = blocks_[index];
  std::byte* const copied = to.memory + finished_bytes_;
  auto landed = std::make_unique<landed_batch>(shared_from_this(), index, to.memory, copied);
  flight& copy = take_flight();
  assert(operation.bytes <= block_bytes_ - finished_bytes_);
  pin(operation.memory->bytes());
  if (!options_.leave_out.copy_for_consumer) {
    for (std::size_t i = 0; i < to.recorded; ++i) check(calls_->wait(side_, to.consumed[i]), "cudaStreamWaitEvent");
  }
  if (operation.bytes != 0) {
    check(calls_->copy(copied, operation.memory->data(), operation.bytes, side_),
          io::str_cat("cudaMemcpyAsync of ", operation.bytes, " bytes"));
  }
  try {
    finish(operation, to.memory);
    check(calls_->record(copy.arrived, side_), "cudaEventRecord");
  } catch (...) {
    stuck_.push_back(std::move(*operation.memory));
    throw;
  }
  to.recorded = 0;
  free_blocks_.pop_front();
  idle_flights_.pop_back();
  copy.users = 2;
  copy.passed = false;
  copy.host = std::move(*operation.memory);
  in_flight_.push_back(&copy);
  landed->hold(copy);
  operation.landed = std::move(landed);
  if (options_.leave_out.host_for_copy) home.memory.push_back(std::move(copy.host));
  if (!starving_) return;
  start_watching();
  something_to_watch_.notify_one();
}

void device_transfer::finish(const transfer_operation& operation, std::byte* to) {
  if (operation.rows == 0) return;
  const std::byte* const copied = to + finished_bytes_;
  for (const finish_step& step : operation.finish) {
    picture_batch pictures = step.what;
    pictures.from = reinterpret_cast<const std::uint8_t*>(copied + step.from);
    pictures.flips = reinterpret_cast<const std::uint8_t*>(copied + step.flips);
    if (step.mixed) pictures.mixed = reinterpret_cast<const mix_row*>(copied + *step.mixed);
    pictures.to = to + step.to;
    pictures.rows = operation.rows;
    check(calls_->finish_pictures(pictures, side_), io::str_cat("the kernel for ", operation.rows, " pictures"));
  }
}

// Whole leases, as they are copied whole: a copy must not cross the border of two registered ranges, which CUDA refuses.
// A pool hands out the same few again and again, so that this happens once for each of them.
void device_transfer::pin(std::span<std::byte> memory) {
  const auto is_this = [&](std::span<std::byte> known) {
    return known.data() == memory.data() && known.size() == memory.size();
  };
  if (std::any_of(pinned_.begin(), pinned_.end(), is_this) ||
      std::any_of(pageable_.begin(), pageable_.end(), is_this)) {
    return;
  }
  const device_status status = calls_->pin(memory);
  if (status == device_ok) {
    pinned_.push_back(memory);
    return;
  }
  pageable_.push_back(memory);
  if (why_pageable_.empty()) {
    why_pageable_ = io::str_cat("cudaHostRegister of ", memory.size(), " bytes: ", calls_->describe(status));
  }
}

/// The one that is used next; taken by who pops it.
device_transfer::flight& device_transfer::take_flight() {
  if (idle_flights_.empty()) {
    // More of them only while somebody waits in ready() for batches that have ended.
    device_event arrived = device_event::none;
    check(calls_->make_event(arrived), "cudaEventCreateWithFlags");
    idle_flights_.push_back(&flights_.emplace_back());
    flights_.back().arrived = arrived;
  }
  return *idle_flights_.back();
}

void device_transfer::leave(flight& copy) noexcept {
  assert(copy.users > 0);
  if (--copy.users == 0) idle_flights_.push_back(&copy);
}

// --- host memory goes home -----------------------------------------------------------------------------------------------

void device_transfer::pass(flight& copy, released& home) {
  copy.passed = true;
  if (copy.host) home.memory.push_back(std::move(copy.host));
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

void device_transfer::pass_oldest(released& home) {
  flight& oldest = *in_flight_.front();
  in_flight_.pop_front();
  pass(oldest, home);
}

// Whether its copy has passed, as far as `status` says so. Where the device is lost nothing reads this memory any more; any
// other code is about the call, and the copy may be under way.
void device_transfer::settle_oldest(device_status status, std::string_view call, released& home) {
  if (status != device_ok) {
    home.failure = fail(status, call);
    home.tell_loader = true;
    flight& oldest = *in_flight_.front();
    if (oldest.host && !calls_->is_lost(status)) stuck_.push_back(std::move(oldest.host));
  }
  pass_oldest(home);
}

// Neither under the mutex: a lease that goes home wakes who waits for it, and a handler may be destroyed.
void device_transfer::let_go(released& home) noexcept {
  home.memory.clear();
  for (waiter& each : home.done) each.done.complete(home.failure);
  home.done.clear();
  if (home.tell_loader && failed_) failed_(home.failure);
}

void device_transfer::collect() noexcept {
  released home;
  {
    const async::mutex_lock lock(mutex_);
    while (!in_flight_.empty()) {
      const device_status status = calls_->query(in_flight_.front()->arrived);
      if (status == device_not_ready) break;
      settle_oldest(status, "cudaEventQuery", home);
    }
  }
  let_go(home);
}

void device_transfer::starve(bool waiting) {
  const async::mutex_lock lock(mutex_);
  starving_ = waiting;
  if (!starving_ || in_flight_.empty()) return;
  start_watching();
  something_to_watch_.notify_one();
}

void device_transfer::start_watching() {
  if (watcher_.joinable() || ending_) return;
  watcher_ = std::thread([this] { watch(); });
  ::pthread_setname_np(watcher_.native_handle(), "leat-copies");
}

// Waits for the oldest copy while somebody needs to know.
void device_transfer::watch() noexcept {
  async::mutex_lock lock(mutex_);
  for (;;) {
    while (!ending_ && (in_flight_.empty() || (!starving_ && waits_.empty()))) something_to_watch_.wait(mutex_);
    if (ending_) return;
    flight& oldest = *in_flight_.front();
    ++oldest.users;  // Its event stays its own, whoever else finds out first.
    lock.unlock();
    const device_status status = calls_->synchronize(oldest.arrived);
    released home;
    lock.lock();
    if (!oldest.passed) {
      assert(in_flight_.front() == &oldest);
      settle_oldest(status, "cudaEventSynchronize", home);
    }
    leave(oldest);
    lock.unlock();
    let_go(home);
    lock.lock();
  }
}

// --- the consumer's side, on any thread ------------------------------------------------------------------------------------

void device_transfer::wait_on(flight& copy, stream consumer) {
  device_status status = device_ok;
  {
    const async::mutex_lock lock(mutex_);
    if (!options_.leave_out.consumer_for_copy) status = calls_->wait(consumer, copy.arrived);
  }
  if (status != device_ok) throw describe(status, "cudaStreamWaitEvent of wait_on()");
}

std::exception_ptr device_transfer::release(std::uint32_t index, flight& copy,
                                            std::span<const stream> consumers) noexcept {
  const async::mutex_lock lock(mutex_);
  block& here = blocks_[index];
  std::exception_ptr failure;
  for (std::size_t i = 0; i < consumers.size() && failure == nullptr; ++i) {
    device_status status = device_ok;
    if (i == here.consumed.size()) {
      device_event consumed = device_event::none;
      status = calls_->make_event(consumed);
      if (status != device_ok) {
        failure = fail(status, "cudaEventCreateWithFlags");
        break;
      }
      here.consumed.push_back(consumed);
    }
    status = calls_->record(here.consumed[i], consumers[i]);
    if (status != device_ok) failure = fail(status, "cudaEventRecord of a batch's end");
  }
  leave(copy);
  if (failure == nullptr) {
    here.recorded = consumers.size();
    free_blocks_.push_back(index);
  }
  // Else nobody knows until when it is read: it is never used again.
  if (wake_ && !pending_.empty()) wake_();
  return failure;
}

void device_transfer::ready(flight& copy, completion<void(std::exception_ptr)> done) {
  std::exception_ptr failure;
  try {
    const async::mutex_lock lock(mutex_);
    const device_status status = copy.passed ? device_ok : calls_->query(copy.arrived);
    if (status == device_not_ready) {
      start_watching();
      const auto added = waits_.emplace(waits_.end());
      added->copy = &copy;
      ++copy.users;
      done.on_cancel([this, added](asio::cancellation_type) { cancel_ready(added); });
      added->done = std::move(done);
      something_to_watch_.notify_one();
      return;
    }
    if (status != device_ok) failure = fail(status, "cudaEventQuery");
  } catch (...) {
    failure = std::current_exception();
  }
  done.complete(std::move(failure));
}

void device_transfer::cancel_ready(wait_list::iterator which) noexcept {
  wait_list taken;
  {
    const async::mutex_lock lock(mutex_);
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
    const async::mutex_lock lock(mutex_);
    drained_ = true;
    wake_ = nullptr;
    pending_.clear();
    ending_ = true;
    something_to_watch_.notify_all();
    while (handing_over_ != 0) handed_over_.wait(mutex_);
    side = side_;
    prepared = prepared_;
  }
  if (watcher_.joinable()) watcher_.join();
  const device_status status = prepared ? calls_->finish(side) : device_ok;
  released home;
  {
    const async::mutex_lock lock(mutex_);
    if (status != device_ok) home.failure = fail(status, "cudaStreamSynchronize");
    while (!in_flight_.empty()) pass_oldest(home);
    std::move(stuck_.begin(), stuck_.end(), std::back_inserter(home.memory));
    stuck_.clear();
    if (status == device_ok || calls_->is_lost(status)) {
      // Before the leases go home, and the arena with the last of them.
      for (const std::span<std::byte> memory : pinned_) static_cast<void>(calls_->unpin(memory));
    } else {
      keep_for_good(std::exchange(home.memory, {}));
    }
    pinned_.clear();
  }
  let_go(home);
}

// --- what it says -------------------------------------------------------------------------------------------------------------

error device_transfer::describe(device_status status, std::string_view call) const {
  return {errc::device,
          io::str_cat(call, " on ", calls_->name(), " (cuda:", calls_->where().index, "): ", calls_->describe(status))};
}

std::exception_ptr device_transfer::fail(device_status status, std::string_view call) {
  if (failure_ == nullptr) failure_ = std::make_exception_ptr(describe(status, call));
  return failure_;
}

void device_transfer::check(device_status status, std::string_view call) {
  if (status != device_ok) std::rethrow_exception(fail(status, call));
}

device_report device_transfer::report() const {
  const async::mutex_lock lock(mutex_);
  device_report made{.use = {io::str_cat("cuda:", calls_->where().index), calls_->name()},
                     .pinned = {"on", "by cudaHostRegister, as batches leave for the first time"},
                     .batches = static_cast<std::uint32_t>(blocks_.size()),
                     .bytes = blocks_.size() * block_bytes_};
  if (!pageable_.empty()) made.pinned = {pinned_.empty() ? "off" : "partly", why_pageable_};
  return made;
}

}  // namespace leat::stages
