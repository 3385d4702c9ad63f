#include "stages/device/device_transfer.hpp"

#include "base/option_words.hpp"
#include "base/start_thread.hpp"
#include "base/text.hpp"
#include "base/thread_number.hpp"
#include "io/arena/budget_refusal.hpp"
#include "stages/batch/batch_layout.hpp"
#include "stages/batch/range.hpp"

#include <leat/error.hpp>

#include <absl/container/inlined_vector.h>

#include <pthread.h>

#include <algorithm>
#include <cassert>
#include <chrono>
#include <utility>

namespace leat::stages {

namespace {

constexpr const char* looking_at_a_consumer = "cudaStreamIsCapturing or cuStreamGetCtx of a consumer's stream";

// How often it is looked whether somebody's capture is over, while the line waits for the buffer that it keeps from use. Nothing tells.
constexpr std::chrono::milliseconds between_retries{1};

}  // namespace

/// What a batch holds of the device. Thread: one at a time, as the batch.
class device_transfer::sent_batch final : public device_batch {
 public:
  sent_batch(std::shared_ptr<device_transfer> owner, device_buffer& buffer)
      : owner_(std::move(owner)), buffer_(buffer), made_(buffer.memory), data_(buffer.memory + owner_->made_bytes_) {}
  ~sent_batch() override {
    if (owner_->forked_.in_child()) {
      // Neither thread nor driver nor, perhaps, the mutex is there: all of it goes with the process. What would be the
      // last to let go of the transfer, which ends it, never does.
      static_cast<void>(new std::shared_ptr<device_transfer>(std::move(owner_)));
      return;
    }
    if (copy_ != nullptr) owner_->release(buffer_, *copy_, consumers_, end_);
  }

  /// From here on buffer and copy are ours to give back.
  void hold(copy_in_flight& copy, timed_end* end) noexcept {
    copy_ = &copy;
    end_ = end;
  }

  [[nodiscard]] device where() const noexcept override { return owner_->calls_->where(); }
  [[nodiscard]] std::byte* data() const noexcept override { return data_; }
  [[nodiscard]] std::byte* made() const noexcept override { return made_; }

  // What may throw does so before any stream waits.
  void wait_on(stream of_consumer) override {
    check_process();
    consumers_.reserve(consumers_.size() + 1);
    owner_->check_consumer(of_consumer, "wait_on()");
    owner_->wait_on(*copy_, of_consumer);
    add(of_consumer);
  }

  void release_on(stream of_consumer) override {
    check_process();
    consumers_.reserve(consumers_.size() + 1);
    owner_->check_consumer(of_consumer, "release_on()");
    for (const consumer& each : consumers_) {
      owner_->check_consumer(owner_->buffers_.as_seen_here(each), "release_on()");
    }
    // What is copied here next waits for consumers alone: so one of them waits for this batch's operations, also where
    // nobody looked at it. Without that wait the memory would be written too early, so that a failure of it is the loader's.
    if (consumers_.empty()) owner_->wait_until_released(*copy_, of_consumer);
    add(of_consumer);
    made_ = data_ = nullptr;
    owner_->release(buffer_, *std::exchange(copy_, nullptr), consumers_, end_);
    if (const std::exception_ptr failure = owner_->failure_.why()) std::rethrow_exception(failure);
  }

  void ready(completion<void(std::exception_ptr)> done) override {
    try {
      check_process();
    } catch (const error&) {
      return done.complete(std::current_exception());
    }
    owner_->copies_.ready(*copy_, std::move(done));
  }

 private:
  void check_process() const {
    if (!owner_->forked_.in_child()) return;
    throw error(errc::usage,
                "this batch was made before fork(): its device stayed with the parent; make a loader after fork()");
  }

  void add(stream of_consumer) {
    const std::uint64_t here = thread_number();
    const bool of_thread = owner_->calls_->is_of_thread(of_consumer);
    for (const consumer& known : consumers_) {
      if (known.which == of_consumer && (!of_thread || known.named_by == here)) return;
    }
    consumers_.push_back({of_consumer, here});
  }

  std::shared_ptr<device_transfer> owner_;  // the batch may outlive the loader
  device_buffer& buffer_;
  std::byte* made_;
  std::byte* data_;
  copy_in_flight* copy_ = nullptr;
  timed_end* end_ = nullptr;
  absl::InlinedVector<consumer, 2> consumers_;
};

device_transfer::device_transfer(std::shared_ptr<device_calls> calls, const device_transfer_options& options)
    : calls_(std::move(calls)),
      options_(options),
      failure_(*calls_),
      pinned_(*calls_),
      buffers_(*calls_, failure_),
      copies_(*calls_, failure_),
      timing_(*calls_, failure_) {
  failure_.on_first([this] { failure_noted(); });
}

device_transfer::~device_transfer() {
  drain();
  buffers_.free_all(side_);
  copies_.free_all();
  timing_.free_all();
  if (scratch_ != nullptr && !failure_.happened()) static_cast<void>(calls_->free_memory(scratch_, side_));
  if (cache_memory_ != nullptr && !failure_.happened()) static_cast<void>(calls_->free_memory(cache_memory_, side_));
  if (has_working_ && !failure_.happened()) static_cast<void>(calls_->free_stream(working_));
  if (has_stream_ && !failure_.happened()) static_cast<void>(calls_->free_stream(side_));
  if (failure_.happened()) keep_for_good(calls_);
}

// --- the start ----------------------------------------------------------------------------------------------------------

void device_transfer::prepare(transfer_needs needs) {
  if (has_stream_) throw error(errc::usage, "this device transfer serves a loader already; give each loader its own");
  // No failure for later: nothing is in use yet, so that all that was taken is given back.
  const auto check = [&](const failed_call& call) {
    if (call.status != device_ok) throw failure_.describe(call);
  };
  made_bytes_ = align_tensor(needs.made_bytes_max);
  buffer_bytes_ = made_bytes_ + align_tensor(std::max<std::size_t>(needs.batch_bytes_max, 1));
  scratch_bytes_ = needs.scratch_bytes_max;
  std::size_t buffers = std::max<std::uint32_t>(options_.batches, 1);
  if (options_.bytes_max != 0) {
    buffers = std::min(buffers, (options_.bytes_max - std::min(options_.bytes_max, scratch_bytes_)) / buffer_bytes_);
  }
  if (buffers == 0) {
    throw io::budget_refusal(str_cat(spelled(option_id::device_bytes_max), " of ", options_.bytes_max,
                                     " bytes is too small: one batch takes ", buffer_bytes_ + scratch_bytes_,
                                     "; give at least that, or a smaller batch"),
                             option_id::device_bytes_max);
  }
  check({calls_->make_stream(side_), "cudaStreamCreateWithPriority", {}});
  has_stream_ = true;
  if (made_bytes_ != 0) {
    check({calls_->make_stream(working_), "cudaStreamCreateWithPriority", {}});
    has_working_ = true;
  }
  tell_loader_ = std::move(needs.failed);
  name_of_ = std::move(needs.name_of);
  host_memory_ = std::move(needs.host_memory);
  pinned_.prepare(std::move(needs.pinning_done));
  buffers_.prepare(buffers, buffer_bytes_, side_, has_working_);
  if (scratch_bytes_ != 0) {
    check({calls_->take_memory(scratch_bytes_, scratch_, side_), "device memory for the scratch of operations",
           scratch_bytes_});
  }
  if (needs.cache != nullptr) prepare_cache(*needs.cache, buffers * buffer_bytes_ + scratch_bytes_);
  // One for each copy whose host memory is out and one for each batch in its buffer, which may be another's.
  copies_.prepare(buffers + needs.host_batches);
  timing_.prepare(std::move(needs.seen));
  const mutex_lock lock(mutex_);
  pending_.reserve(needs.host_batches);
  sender_ = start_thread({.what = "the thread that queues copies"}, [this] { send_in_order(); });
}

// No more than all rows take, and than batches leave.
void device_transfer::prepare_cache(const cache_needs& needs, std::size_t bytes_of_batches) {
  cache_use_.why = needs.why_not;
  if (!cache_use_.why.empty()) return;
  if (cached_row_bytes(*needs.layout, needs.outputs) == 0) {
    cache_use_.why = str_cat("no output has rows of more than ", short_row_bytes_max, " bytes");
    return;
  }
  if (needs.rows == 0) {
    cache_use_.why = "there are no rows";
    return;
  }
  std::size_t bytes = std::min<std::uint64_t>(needs.bytes_max, needs.bytes_of_all);
  if (options_.bytes_max != 0) bytes = std::min(bytes, options_.bytes_max - bytes_of_batches);
  if (const std::uint64_t row_bytes = needs.bytes_of_all / needs.rows; bytes < row_bytes) {
    cache_use_.why = str_cat(
        "a row takes ", bytes_text(row_bytes), ", and there is room for ", bytes_text(bytes),
        options_.bytes_max != 0 ? str_cat(" of ", spelled(option_id::device_bytes_max), " beside batches") : "");
    return;
  }
  const failed_call taken{calls_->take_memory(bytes, cache_memory_, side_), "device memory for device_cache", bytes};
  if (calls_->is_full(taken.status)) throw error(errc::limit, failure_.describe(taken).what());
  if (taken.status != device_ok) throw failure_.describe(taken);
  cache_bytes_ = bytes;
  cache_.emplace(needs, std::span(cache_memory_, bytes));
  const bool all = bytes >= needs.bytes_of_all;
  const double share = static_cast<double>(bytes) / static_cast<double>(needs.bytes_of_all);
  const auto fit = static_cast<std::uint64_t>(share * static_cast<double>(needs.rows));
  cache_use_ = {str_cat("cuda:", calls_->where().index),
                str_cat(all ? "all " : str_cat(count_text(fit), " of "), count_text(needs.rows), " rows fit",
                        all ? "" : ", or more that are smaller", needs.where,
                        all && needs.where.empty() ? "" : "; the others are read in each epoch")};
}

// --- copies ---------------------------------------------------------------------------------------------------------------

void device_transfer::send(transfer_operation& operation) noexcept {
  const mutex_lock lock(mutex_);
  const auto later = std::find_if(pending_.begin(), pending_.end(),
                                  [&](const transfer_operation* each) { return each->number > operation.number; });
  pending_.insert(later, &operation);
  if (operation.number == next_number_) something_to_send_.notify_one();
}

void device_transfer::send_in_order() noexcept {
  ::pthread_setname_np(::pthread_self(), "leat-send");
  mutex_lock lock(mutex_);
  while (!drained_) {
    if (std::exchange(unreported_, false) && tell_loader_) {
      lock.unlock();
      tell_loader_(failure_.why());
      lock.lock();
      continue;
    }
    if (!next_can_go()) {
      const bool lacks_buffer = !pending_.empty() && pending_.front()->number == next_number_;
      if (!lacks_buffer || !buffers_.has_parked()) {
        something_to_send_.wait(mutex_);
        continue;
      }
      lock.unlock();
      buffers_.retry_parked();
      lock.lock();
      if (!drained_ && !next_can_go()) {
        static_cast<void>(something_to_send_.wait_until(mutex_, std::chrono::steady_clock::now() + between_retries));
      }
      continue;
    }
    transfer_operation& next = *pending_.front();
    pending_.erase(pending_.begin());
    ++next_number_;
    lock.unlock();
    ship(next);
    if (next.failure != nullptr) {
      const mutex_lock again(mutex_);
      unreported_ = false;  // this batch tells it, in its turn
    }
    // Not under the mutex: what the loader does with a batch may end another, which comes back to us.
    next.handed_over(next);
    lock.lock();
  }
}

// A batch that does not go to the device passes at once.
bool device_transfer::next_can_go() const {
  if (pending_.empty() || pending_.front()->number != next_number_) return false;
  return pending_.front()->memory == nullptr || failure_.happened() || buffers_.has_free();
}

// A copy from memory that is not pinned waits for what its stream holds, on the thread that asks for it: the consumers are waited for
// before, by a call that is made for it.
void device_transfer::ship(transfer_operation& operation) noexcept {
  operation.failure = failure_.why();
  if (operation.failure != nullptr || operation.memory == nullptr) return;
  const range profiled(work_of::transfer);
  try {
    device_buffer& to = buffers_.take();
    assert(operation.bytes <= buffer_bytes_ - made_bytes_);
    auto on_device = std::make_unique<sent_batch>(shared_from_this(), to);
    const bool is_pinned = pinned_.pin(*operation.memory);
    timed_end* const end = timing_.begin(operation);
    copy_in_flight& copy = copies_.take();
    bool may_be_read = false;
    failed_call failed;
    if (!is_pinned) failed = buffers_.synchronize_with_consumers(to);
    if (failed.status == device_ok) failed = queue(operation, to, copy, may_be_read);
    to.operated = !operation.steps.empty();
    if (failed.status != device_ok && !failed.picture) {
      operation.failure = failure_.note(failed);
      if (may_be_read) copies_.add(copy, std::move(*operation.memory));
      copies_.leave(copy);
      return;
    }
    if (cache_) cache_->settle();
    copies_.add(copy, std::move(*operation.memory));
    on_device->hold(copy, end);
    if (failed.picture) {
      operation.failure = refusal(failed, operation);  // the buffer goes back
    } else {
      operation.on_device = std::move(on_device);
    }
  } catch (...) {
    operation.failure = failure_.note(std::current_exception());
  }
}

// A picture that is refused is its sample's fault, and not the device's. Which one it is no host has decoded: no policy is asked any more.
std::exception_ptr device_transfer::refusal(const failed_call& failed, const transfer_operation& of) const noexcept {
  try {
    std::string which;
    if (*failed.picture < of.samples.size()) {
      const std::uint64_t sample = of.samples[*failed.picture];
      which = str_cat(" ", name_of_ ? name_of_(sample) : std::string(), name_of_ ? ", number " : "", sample);
    }
    throw error(errc::corrupt,
                str_cat("corrupt sample", which, ", in row ", *failed.picture, " of its batch: ", failed.name, " on ",
                        calls_->name(), ": ", calls_->describe(failed.status), "; ", spelled(option_id::on_corrupt),
                        " is not asked, as the file's headers were sound; take the sample out, or decode "
                        "with ",
                        spelled(option_id::jpeg_decoder, "turbo")),
                option_id::jpeg_decoder);
  } catch (...) {
    return std::current_exception();
  }
}

// Exactly: wait for each consumer of what lay here, copy, write the word, record; where there are operations, on their own stream wait for the
// copy, run them, record. The word says that the host's memory is free, so that it comes behind an operation that reads there. Where a picture
// is refused, what is queued by then ends as ever.
failed_call device_transfer::queue(transfer_operation& operation, const device_buffer& to, const copy_in_flight& copy,
                                   bool& may_be_read) {
  failed_call failed = buffers_.wait_for_consumers(to, side_);
  // Operations on what lay here, where nobody has waited for them.
  if (failed.status == device_ok && to.operated && to.recorded == 0) {
    failed = {calls_->record(to.copied, working_), "cudaEventRecord of operations", {}};
    if (failed.status == device_ok) failed = {calls_->wait(side_, to.copied), "cudaStreamWaitEvent of operations", {}};
  }
  if (failed.status == device_ok) failed = timing_.record_begun(side_);
  if (failed.status != device_ok) return failed;
  if (cache_) cache_->plan(operation);
  failed = this->copy(operation, to.memory + made_bytes_, may_be_read);
  if (failed.status != device_ok) return failed;
  const bool is_read_later = std::any_of(operation.steps.begin(), operation.steps.end(),
                                         [](const device_step& step) { return step.operation->reads_host(); });
  if (!is_read_later) failed = copies_.mark_read(copy, side_);
  if (cache_ && failed.status == device_ok) failed = cache_->copy(*calls_, to.memory + made_bytes_, side_);
  failed_call refused;
  const bool operates = !operation.steps.empty();
  const stream last = operates ? working_ : side_;
  if (operates) {
    if (failed.status == device_ok) failed = timing_.record_copied(side_);
    if (failed.status == device_ok) failed = {calls_->record(to.copied, side_), "cudaEventRecord of a copy", {}};
    if (failed.status == device_ok) failed = {calls_->wait(working_, to.copied), "cudaStreamWaitEvent of a copy", {}};
    if (failed.status == device_ok) failed = timing_.record_working(working_);
    if (failed.status == device_ok) failed = run_operations(operation, to);
    if (failed.picture) refused = std::exchange(failed, {});
    if (failed.status == device_ok && is_read_later) failed = copies_.mark_read(copy, working_);
  }
  // First, so that whoever has waited for the batch has waited for its time.
  if (failed.status == device_ok) failed = timing_.record_arrived(last);
  if (failed.status == device_ok) failed = {calls_->record(copy.arrived, last), "cudaEventRecord", {}};
  return failed.status == device_ok ? refused : failed;
}

// In one piece, but for rows that are not full: of those what is used, by groups. All of it is planned before the first copy: from there on
// nothing may throw, since the memory would return to its pool while it is read.
//   may_be_read   set once a copy is queued
failed_call device_transfer::copy(const transfer_operation& operation, std::byte* to, bool& may_be_read) {
  const std::byte* const from = operation.memory->data();
  std::size_t at = 0;
  std::span<const device_cache::range> left_out = cache_ ? cache_->left_out() : std::span<const device_cache::range>();
  const auto copy_piece = [&](std::size_t end) {
    if (at >= end) return failed_call{};
    const failed_call made{calls_->copy(to + at, from + at, end - at, side_), "cudaMemcpyAsync", end - at};
    may_be_read = may_be_read || made.status == device_ok;
    return made;
  };
  const auto copy_until = [&](std::size_t end) {
    for (; !left_out.empty() && left_out.front().begin < end; left_out = left_out.subspan(1)) {
      if (const failed_call failed = copy_piece(left_out.front().begin); failed.status != device_ok) return failed;
      at = left_out.front().end;
    }
    return copy_piece(end);
  };
  absl::InlinedVector<const device_step*, 4> partly;  // in the order in which their rows lie
  for (const device_step& step : operation.steps) {
    if (operation.rows != 0 && !step.operation->has_full_rows()) partly.push_back(&step);
  }
  std::sort(partly.begin(), partly.end(),
            [](const device_step* a, const device_step* b) { return a->from.front() < b->from.front(); });
  if (plans_.size() < partly.size()) plans_.resize(partly.size());
  for (std::size_t i = 0; i < partly.size(); ++i) {
    const std::byte* const begin = from + partly[i]->from.front();
    const device_operation& by = *partly[i]->operation;
    const std::size_t pieces = by.pieces_in_row();
    const std::size_t stride = by.decoded_row_bytes() / pieces;
    used_.clear();
    for (std::size_t row = 0; row < operation.rows; ++row) {
      const bool is_held = cache_ && cache_->is_held(row);
      for (std::size_t piece = row * pieces; piece < (row + 1) * pieces; ++piece) {
        const std::byte* const here = begin + piece * stride;
        used_.push_back(is_held ? cache_->bytes_of_host(partly[i]->from.front(), here) : by.used_piece_bytes(here));
      }
    }
    plan_copies(used_, plans_[i], scratch_of_plan_);
  }
  for (std::size_t i = 0; i < partly.size(); ++i) {
    const std::size_t begin = partly[i]->from.front();
    const device_operation& by = *partly[i]->operation;
    const std::size_t stride = by.decoded_row_bytes() / by.pieces_in_row();
    if (const failed_call failed = copy_until(begin); failed.status != device_ok) return failed;
    for (const copied_rows& group : plans_[i]) {
      if (group.row_bytes == 0) continue;
      const std::size_t first = begin + group.first * stride;
      const device_status status =
          calls_->copy_rows(to + first, from + first, stride, group.row_bytes, group.count, side_);
      if (status != device_ok) return {status, "cudaMemcpy2DAsync", group.count * group.row_bytes};
      may_be_read = true;
    }
    at = begin + operation.rows * by.decoded_row_bytes();
  }
  return copy_until(operation.bytes);
}

failed_call device_transfer::run_operations(const transfer_operation& operation, const device_buffer& in) noexcept {
  if (operation.rows == 0) return {};
  const std::byte* const copied = in.memory + made_bytes_;
  for (const device_step& step : operation.steps) {
    absl::InlinedVector<const std::byte*, 4> from;
    for (const std::size_t offset : step.from) from.push_back(copied + offset);
    const failed_call launched = step.operation->launch(*calls_,
                                                        {.from = from,
                                                         .rows = operation.rows,
                                                         .to = in.memory + step.to,
                                                         .scratch = scratch_,
                                                         .on_host = operation.memory->data() + step.from.front()},
                                                        working_);
    if (launched.status != device_ok) return launched;
  }
  return {};
}

// --- the consumer's side, on any thread ------------------------------------------------------------------------------------

// Before anything depends on it: CUDA would take another device's stream here, and refuse it when the batch ends; and what is
// captured is in a graph, where no event fires.
void device_transfer::check_consumer(stream of_consumer, std::string_view call) const {
  if (failure_.happened()) std::rethrow_exception(failure_.why());
  stream_facts facts;
  const device_status status = calls_->look_at(of_consumer, facts);
  if (status != device_ok) throw failure_of_caller({status, looking_at_a_consumer, {}});
  if (facts.device != calls_->where().index) {
    throw error(errc::usage, str_cat(call, ": the stream is one of cuda:", facts.device,
                                     ", and the batch lies on cuda:", calls_->where().index,
                                     "; give a stream of that device, and have the other one wait for it"));
  }
  if (facts.foreign_context) {
    throw error(errc::usage, str_cat(call, ": the stream is of another CUDA context of cuda:", facts.device,
                                     " than the primary one (a green one, or what cuCtxCreate made), in which "
                                     "the batch's events are; give one that "
                                     "cudaStreamCreate made, and have the other one wait for it"));
  }
  if (facts.capturing || facts.captured_beside) {
    throw error(errc::usage,
                str_cat(call,
                        ": the stream is being captured into a graph, or is the default stream while one that "
                        "waits for it is; call this before the capture, or after it"));
  }
}

// With nothing locked: CUDA makes a caller wait whose stream's queue is full, and the I/O thread must not wait with it. The
// event stays the batch's as long as there is one.
void device_transfer::wait_on(const copy_in_flight& copy, stream of_consumer) {
  const device_status status = calls_->wait(of_consumer, copy.arrived);
  if (status != device_ok) throw failure_of_caller({status, "cudaStreamWaitEvent of wait_on()", {}});
}

void device_transfer::wait_until_released(const copy_in_flight& copy, stream of_consumer) noexcept {
  if (failure_.happened()) return;
  const device_status status = calls_->wait(of_consumer, copy.arrived);
  if (status != device_ok) static_cast<void>(failure_.note({status, "cudaStreamWaitEvent of release_on()", {}}));
}

// Its own mistake, and nobody else's, unless it says that the device is gone.
error device_transfer::failure_of_caller(const failed_call& call) const {
  if (calls_->is_lost(call.status)) static_cast<void>(failure_.note(call));
  return failure_.describe(call);
}

void device_transfer::release(device_buffer& buffer, copy_in_flight& copy, std::span<const consumer> consumers,
                              timed_end* end) noexcept {
  buffer.timed = end;
  buffers_.give_back(buffer, consumers);
  copies_.leave(copy);
  const mutex_lock lock(mutex_);
  something_to_send_.notify_one();
}

// Nothing comes home any more: a loader that waits for memory would wait for ever.
void device_transfer::failure_noted() noexcept {
  copies_.failure_noted();
  const mutex_lock lock(mutex_);
  unreported_ = true;
  something_to_send_.notify_one();
}

// --- the end ----------------------------------------------------------------------------------------------------------------

void device_transfer::drain() noexcept {
  {
    const mutex_lock lock(mutex_);
    if (drained_) return;
    drained_ = true;
    pending_.clear();
    something_to_send_.notify_all();
  }
  if (sender_.joinable()) sender_.join();
  if (!has_stream_) return;
  const stream streams[] = {side_, working_};
  copies_.end(std::span(streams).first(has_working_ ? 2 : 1));
  if (!failure_.happened()) return pinned_.unpin_all();
  // What copies may still read stays pinned, and mapped.
  if (host_memory_ != nullptr) keep_for_good(host_memory_);
}

// --- what it says -------------------------------------------------------------------------------------------------------------

device_report device_transfer::report() const {
  const device_cache::counters kept = cache_ ? cache_->count() : device_cache::counters();
  return {.use = {str_cat("cuda:", calls_->where().index), calls_->name()},
          .pinned = pinned_.report(),
          .batches = static_cast<std::uint32_t>(buffers_.count()),
          .bytes = buffers_.count() * buffer_bytes_ + scratch_bytes_ + cache_bytes_,
          .cache = cache_use_,
          .cache_bytes_max = cache_bytes_,
          .cache_bytes = kept.bytes,
          .cached_rows = kept.rows,
          .rows_from_cache = kept.rows_given};
}

}  // namespace leat::stages
