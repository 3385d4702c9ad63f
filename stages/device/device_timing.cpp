#include "stages/device/device_timing.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

namespace leat::stages {

void device_timing::prepare(std::shared_ptr<timeline_track> seen) {
  seen_ = std::move(seen);
  for (sample& each : samples_) {
    for (device_event* const made :
         {&each.before.event, &each.consumed.event, &each.begun, &each.copied, &each.working, &each.arrived}) {
      const failed_call call = {calls_.make_timed_event(*made), "cudaEventCreateWithFlags", {}};
      if (call.status != device_ok) throw failure_.describe(call);
    }
  }
}

void device_timing::free_all() noexcept {
  for (const sample& each : samples_) {
    for (const device_event made :
         {each.before.event, each.consumed.event, each.begun, each.copied, each.working, each.arrived}) {
      if (made != device_event::none && !failure_.happened()) static_cast<void>(calls_.free_event(made));
    }
  }
}

timed_end* device_timing::begin(const transfer_operation& batch) noexcept {
  collect(batch.number);
  current_ = nullptr;
  if (batch.timing == batch_timing::none) return nullptr;
  if (batch.timing == batch_timing::before) {
    const auto unused = std::find_if(samples_.begin(), samples_.end(), [](const sample& each) { return !each.used; });
    if (unused == samples_.end()) return nullptr;
    unused->number = batch.number + 1;
    unused->used = true;
    unused->queued = false;
    unused->before.is.store(timed_end::state::pending, std::memory_order_relaxed);
    return &unused->before;
  }
  const auto begun = std::find_if(samples_.begin(), samples_.end(), [&](const sample& each) {
    return each.used && !each.queued && each.number == batch.number;
  });
  if (begun == samples_.end()) return nullptr;
  current_ = &*begun;
  current_->rows = batch.rows;
  current_->epoch = batch.epoch;
  current_->index = batch.index;
  current_->queued = true;
  current_->operates = false;
  current_->consumed.is.store(timed_end::state::pending, std::memory_order_relaxed);
  return &current_->consumed;
}

failed_call device_timing::record_begun(stream side) noexcept {
  if (current_ == nullptr) return {};
  current_->queued_ns = noted_now(seen_.get());
  return {calls_.record(current_->begun, side), "cudaEventRecord of a copy's beginning", {}};
}

failed_call device_timing::record_copied(stream side) noexcept {
  if (current_ == nullptr) return {};
  return {calls_.record(current_->copied, side), "cudaEventRecord of a copy's end", {}};
}

failed_call device_timing::record_working(stream working) noexcept {
  if (current_ == nullptr) return {};
  current_->operates = true;
  return {calls_.record(current_->working, working), "cudaEventRecord of an operation's beginning", {}};
}

failed_call device_timing::record_arrived(stream side) noexcept {
  if (current_ == nullptr) return {};
  return {calls_.record(current_->arrived, side), "cudaEventRecord of a copy's end", {}};
}

// A sample whose batch never came, or whose end nobody could record, is dropped.
void device_timing::collect(std::uint64_t next_number) noexcept {
  for (sample& each : samples_) {
    if (!each.used || failure_.happened()) continue;
    const auto before = each.before.is.load(std::memory_order_acquire);
    if (before == timed_end::state::pending) continue;
    if (!each.queued) {
      if (each.number < next_number) each.used = false;
      continue;
    }
    const auto consumed = each.consumed.is.load(std::memory_order_acquire);
    if (consumed == timed_end::state::pending) continue;
    const bool is_lost = before == timed_end::state::lost || consumed == timed_end::state::lost;
    if (is_lost || count(each)) each.used = false;
  }
}

// False where the device has yet to get there.
bool device_timing::count(const sample& ended) noexcept {
  // A stream may have ended a batch that it never waited for.
  for (const device_event last : {ended.arrived, ended.before.event, ended.consumed.event}) {
    const failed_call asked = {calls_.query(last), "cudaEventQuery", {}};
    if (asked.status == device_not_ready) return false;
    if (asked.status != device_ok) {
      static_cast<void>(failure_.note(asked));
      return false;
    }
  }
  std::int64_t copy_ns = 0;
  std::int64_t working_ns = 0;
  std::int64_t stall_ns = 0;
  std::int64_t rest_ns = 0;
  for (const auto& [from, to, ns] :
       {std::tuple(ended.begun, ended.operates ? ended.copied : ended.arrived, &copy_ns),
        std::tuple(ended.operates ? ended.working : ended.arrived, ended.arrived, &working_ns),
        std::tuple(ended.before.event, ended.arrived, &stall_ns),
        std::tuple(ended.arrived, ended.consumed.event, &rest_ns)}) {
    if (from == to) continue;
    const failed_call asked = {calls_.elapsed_ns(from, to, *ns), "cudaEventElapsedTime", {}};
    if (asked.status == device_ok) continue;
    static_cast<void>(failure_.note(asked));
    return false;
  }
  // Where the batch was there before the step before it had ended, its own step begins with that end.
  const std::int64_t step_ns = rest_ns + std::min<std::int64_t>(stall_ns, 0);
  const auto add = [](std::atomic<std::uint64_t>& to, std::int64_t ns) {
    to.fetch_add(static_cast<std::uint64_t>(std::max<std::int64_t>(ns, 0)), std::memory_order_relaxed);
  };
  add(copy_ns_, std::max(copy_ns, working_ns));
  add(stall_ns_, stall_ns);
  add(step_ns_, step_ns);
  rows_.fetch_add(ended.rows, std::memory_order_relaxed);
  batches_.fetch_add(1, std::memory_order_relaxed);
  note(ended, copy_ns, ended.operates ? working_ns : 0);
  return true;
}

// The two clocks share no moment: what the device took is shown from when it was asked.
void device_timing::note(const sample& ended, std::int64_t copy_ns, std::int64_t working_ns) noexcept {
  if (seen_ == nullptr) return;
  timeline_span span{.of = activity::copy,
                     .begin_ns = ended.queued_ns,
                     .end_ns = ended.queued_ns + static_cast<std::uint64_t>(std::max<std::int64_t>(copy_ns, 0)),
                     .epoch = ended.epoch,
                     .batch = ended.index};
  seen_->add(span);
  if (working_ns <= 0) return;
  span.of = activity::compute;
  span.begin_ns = std::exchange(span.end_ns, span.end_ns + static_cast<std::uint64_t>(working_ns));
  seen_->add(span);
}

device_times device_timing::times() const noexcept {
  return {.batches = batches_.load(std::memory_order_relaxed),
          .rows = rows_.load(std::memory_order_relaxed),
          .copy_ns = copy_ns_.load(std::memory_order_relaxed),
          .step_ns = step_ns_.load(std::memory_order_relaxed),
          .stall_ns = stall_ns_.load(std::memory_order_relaxed)};
}

}  // namespace leat::stages
