#include "stages/device/device_buffers.hpp"

#include "base/text.hpp"
#include "base/thread_number.hpp"
#include "stages/device/device_timing.hpp"

#include <algorithm>
#include <cassert>
#include <utility>

namespace leat::stages {
namespace {

// Streams that read a batch: the step's, and one beside it. For more of them events are made in the loop, where a batch ends.
constexpr std::size_t consumers_expected = 2;

constexpr const char* looking_at_a_consumer = "cudaStreamIsCapturing or cuStreamGetCtx of a consumer's stream";

[[noreturn]] void throw_captured() {
  throw error(
      errc::usage,
      "a batch ended while a stream that reads it was being captured into a graph, so that nobody can tell when "
      "it has been read; end it, or call release_on(), before the capture or after it");
}

}  // namespace

void device_buffers::prepare(std::size_t count, std::size_t bytes, stream side, bool operates) {
  // No failure for later: nothing is in use yet, so that all that was taken is given back.
  const auto check = [&](const failed_call& call) {
    if (call.status != device_ok) throw failure_.describe(call);
  };
  buffers_.reserve(count);
  {
    const mutex_lock lock(mutex_);
    free_.reserve(count);
    parked_.reserve(count);
  }
  for (std::size_t i = 0; i < count; ++i) {
    device_buffer& added = buffers_.emplace_back();
    const failed_call taken = {calls_.take_memory(bytes, added.memory, side), "device memory for a batch", bytes};
    if (calls_.is_full(taken.status)) {
      throw error(errc::limit,
                  str_cat(failure_.describe(taken).what(), "; it had room for ", i, " of ", count, " batches"));
    }
    check(taken);
    for (std::size_t stream = 0; stream < consumers_expected; ++stream) check(add_event(added));
    if (operates) check({calls_.make_stream_event(added.copied), "cudaEventCreateWithFlags", {}});
    const mutex_lock lock(mutex_);
    free_.push_back(&added);
  }
}

void device_buffers::free_all(stream side) noexcept {
  retry_parked();
  for (device_buffer& each : buffers_) {
    if (failure_.happened() || !each.unrecorded.empty()) continue;
    if (const failed_call failed = wait_for_consumers(each, side); failed.status != device_ok) {
      static_cast<void>(failure_.note(failed));
      continue;
    }
    for (const device_event event : each.consumed) static_cast<void>(calls_.free_event(event));
    if (each.copied != device_event::none) static_cast<void>(calls_.free_event(each.copied));
    if (each.memory != nullptr) static_cast<void>(calls_.free_memory(each.memory, side));
  }
}

bool device_buffers::has_free() const noexcept {
  const mutex_lock lock(mutex_);
  return !free_.empty();
}

bool device_buffers::has_parked() const noexcept {
  const mutex_lock lock(mutex_);
  return !parked_.empty();
}

device_buffer& device_buffers::take() noexcept {
  const mutex_lock lock(mutex_);
  assert(!free_.empty());
  device_buffer* const taken = free_.front();
  free_.erase(free_.begin());
  return *taken;
}

stream device_buffers::as_seen_here(const consumer& from) const noexcept {
  const bool of_another = calls_.is_of_thread(from.which) && from.named_by != thread_number();
  return of_another ? stream() : from.which;
}

void device_buffers::give_back(device_buffer& buffer, std::span<const consumer> consumers) noexcept {
  if (failure_.happened()) return;
  buffer.recorded = 0;
  try {
    for (const consumer& each : consumers) buffer.unrecorded.push_back(as_seen_here(each));
  } catch (...) {
    static_cast<void>(failure_.note(std::current_exception()));
    return;
  }
  const recording now = record(buffer);
  if (now == recording::failed) return;
  const mutex_lock lock(mutex_);
  (now == recording::done ? free_ : parked_).push_back(&buffer);
}

void device_buffers::retry_parked() noexcept {
  for (std::size_t left = buffers_.size(); left != 0 && !failure_.happened(); --left) {
    device_buffer* buffer = nullptr;
    {
      const mutex_lock lock(mutex_);
      if (parked_.empty()) return;
      buffer = parked_.front();
      parked_.erase(parked_.begin());
    }
    const recording now = record(*buffer);
    if (now == recording::failed) return;
    const mutex_lock lock(mutex_);
    (now == recording::done ? free_ : parked_).push_back(buffer);
  }
}

// With nothing locked: CUDA makes a caller wait whose stream's queue is full. Until the buffer is given back it is this batch's alone. What
// can be recorded is recorded now: its stream may be destroyed when the batch has ended. What cannot is the default stream.
device_buffers::recording device_buffers::record(device_buffer& on) noexcept {
  std::size_t left = 0;
  try {
    while (left < on.unrecorded.size()) {
      const stream which = on.unrecorded[left];
      failed_call failed;
      if (on.recorded == on.consumed.size()) failed = add_event(on);
      stream_facts facts;
      if (failed.status == device_ok) failed = {calls_.look_at(which, facts), looking_at_a_consumer, {}};
      if (failed.status == device_ok && facts.capturing) throw_captured();
      if (failed.status == device_ok && !facts.captured_beside) {
        failed = {calls_.record(on.consumed[on.recorded], which), "cudaEventRecord of a batch's end", {}};
        if (failed.status == device_ok && on.timed != nullptr)
          failed = record_timed(*std::exchange(on.timed, nullptr), which);
      }
      if (facts.captured_beside || failed.status == device_captured_beside) {
        ++left;
        continue;
      }
      if (failed.status != device_ok) {
        static_cast<void>(failure_.note(failed));
        return recording::failed;
      }
      ++on.recorded;
      on.unrecorded.erase(on.unrecorded.begin() + static_cast<std::ptrdiff_t>(left));
    }
  } catch (...) {
    static_cast<void>(failure_.note(std::current_exception()));
    return recording::failed;
  }
  // What is recorded later than the batch ends has not the time of its end.
  if (on.timed != nullptr)
    std::exchange(on.timed, nullptr)->is.store(timed_end::state::lost, std::memory_order_release);
  return left == 0 ? recording::done : recording::parked;
}

failed_call device_buffers::record_timed(timed_end& end, stream in) noexcept {
  const failed_call recorded = {calls_.record(end.event, in), "cudaEventRecord of a batch's end", {}};
  if (recorded.status == device_ok) end.is.store(timed_end::state::recorded, std::memory_order_release);
  return recorded;
}

failed_call device_buffers::add_event(device_buffer& to) {
  to.consumed.reserve(to.consumed.size() + 1);
  device_event consumed = device_event::none;
  const device_status status = calls_.make_event(consumed);
  if (status != device_ok) return {status, "cudaEventCreateWithFlags", {}};
  to.consumed.push_back(consumed);
  return {};
}

failed_call device_buffers::wait_for_consumers(const device_buffer& buffer, stream in) noexcept {
  for (std::size_t i = 0; i < buffer.recorded; ++i) {
    const device_status status = calls_.wait(in, buffer.consumed[i]);
    if (status != device_ok) return {status, "cudaStreamWaitEvent", {}};
  }
  return {};
}

failed_call device_buffers::synchronize_with_consumers(const device_buffer& buffer) noexcept {
  for (std::size_t i = 0; i < buffer.recorded; ++i) {
    const device_status status = calls_.synchronize(buffer.consumed[i]);
    if (status != device_ok) return {status, "cudaEventSynchronize of a batch's end", {}};
  }
  return {};
}

}  // namespace leat::stages
