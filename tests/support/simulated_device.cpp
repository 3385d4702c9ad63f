#include "tests/support/simulated_device.hpp"

#include "base/clock.hpp"
#include "stages/device/finish_pictures.hpp"
#include "stages/device/gather_rows.hpp"
#include "stages/device/prepare_pictures.hpp"
#include "stages/device/tile_pictures.hpp"
#include "stages/pixels/picture_decoder.hpp"

#include <pthread.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

namespace leat::testing {
namespace {

using stages::device_event;
using stages::device_ok;
using stages::device_status;

constexpr std::size_t alignment_bytes = 256;
constexpr std::byte rubbish{0xDB};

enum code : device_status {
  out_of_memory = 2,
  invalid_handle = 400,
  already_pinned = 712,
  capture_isolation = 905,
  captured_event = 907,
  refused_picture = 20'003
};

// Handles say whose they are, and leave room for the small ones that stand for default streams.
constexpr unsigned owner_shift = 32;

// What CUDA would answer with an error, or not notice at all, is a bug of ours.
void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "simulated device: %s\n", what);
  std::abort();
}

#if defined(__has_attribute) && __has_attribute(no_sanitize)
__attribute__((no_sanitize("address", "thread", "undefined"), noinline))
#endif
void copy_unchecked(std::byte* to, const std::byte* from, std::size_t bytes) noexcept {
  const volatile std::byte* const seen = from;  // Else the compiler makes it memcpy, which is checked.
  for (std::size_t i = 0; i < bytes; ++i) to[i] = seen[i];
}

}  // namespace

/// All that are there.
struct simulated_device::registry {
  leat::mutex mutex;
  std::set<simulated_device*> all ABSL_GUARDED_BY(mutex);
};

simulated_device::registry& simulated_device::there() {
  static auto* const one = new registry;  // Devices may live as long as the process.
  return *one;
}

simulated_device::simulated_device(const simulated_device_options& options) : options_(options), random_(options.seed) {
  {
    const mutex_lock lock(mutex_);
    add_queue(nullptr, options_.consumer);
  }
  const mutex_lock lock(there().mutex);
  there().all.insert(this);
}

// A device executes what it was given, whoever has gone meanwhile.
simulated_device::~simulated_device() {
  finish_everything();
  const mutex_lock lock(there().mutex);
  there().all.erase(this);
}

simulated_device* simulated_device::holding(const void* memory) {
  const mutex_lock lock(there().mutex);
  for (simulated_device* const each : there().all) {
    const mutex_lock its(each->mutex_);
    if (each->is_mine(memory, 0)) return each;
  }
  return nullptr;
}

// --- order ----------------------------------------------------------------------------------------------------------------

simulated_device::queue& simulated_device::queue_of(stream in) {
  if (in == per_thread()) {
    queue*& own = of_threads_[thread_number()];
    if (own == nullptr) {
      own = &add_queue(reinterpret_cast<CUstream_st*>(next_handle()), options_.consumer);
      own->blocking = true;
    }
    return *own;
  }
  const auto found = streams_.find(in.handle());
  require(found != streams_.end() && !found->second->ended, "a stream that was never made, or was freed");
  return *found->second;
}

const std::shared_ptr<simulated_device::event_state>& simulated_device::state_of(device_event event) {
  const auto found = events_.find(event);
  require(found != events_.end(), "an event that was never made, or was freed");
  return found->second;
}

stream simulated_device::add_stream(execution when) {
  auto* const handle = reinterpret_cast<CUstream_st*>(next_handle());
  add_queue(handle, when);
  return handle;
}

simulated_device::queue& simulated_device::add_queue(CUstream_st* handle, execution when) {
  auto made = std::make_unique<queue>();
  made->when = when;
  drifting_.push_back(made.get());
  return *streams_.emplace(handle, std::move(made)).first->second;
}

std::uintptr_t simulated_device::next_handle() {
  return (static_cast<std::uintptr_t>(options_.index) + 1) << owner_shift | ++handles_;
}

int simulated_device::owner_of(stream which) const {
  const auto handle = reinterpret_cast<std::uintptr_t>(which.handle());
  return handle >> owner_shift == 0 ? options_.index : static_cast<int>(handle >> owner_shift) - 1;
}

void simulated_device::push(stream in, operation added) {
  queue& to = queue_of(in);
  if (to.capturing) {
    if (added.what == operation::kind::run) ++to.captured_kernels;
    return;
  }
  if (is_captured_beside(in)) {
    ++counts_.captures_broken;
    return;
  }
  for (const auto& [handle, each] : streams_) {
    if (in == stream() && each->blocking) follow(to, *each);
  }
  if (to.blocking) follow(to, *streams_.at(nullptr));
  to.operations.push_back(std::move(added));
  drift();
}

// Whether it is the default stream, and one that waits for it is being captured.
bool simulated_device::is_captured_beside(stream which) const {
  return which == stream() && std::any_of(streams_.begin(), streams_.end(), [](const auto& each) {
           return each.second->blocking && each.second->capturing;
         });
}

// What comes next in `later` waits for all that `earlier` holds.
void simulated_device::follow(queue& later, queue& earlier) {
  if (earlier.operations.empty()) return;
  const auto passed = std::make_shared<event_state>();
  passed->recorded = 1;
  earlier.operations.push_back(
      {.what = operation::kind::record, .function = {}, .event = passed, .target = 1, .behind = nullptr});
  later.operations.push_back(
      {.what = operation::kind::wait, .function = {}, .event = passed, .target = 1, .behind = &earlier});
}

bool simulated_device::is_left_out(const queue& waits, const event_state& event) const {
  const bool for_copy = event.behind != nullptr && event.behind->of_loader;
  return waits.of_loader ? (for_copy ? options_.left_out.operation_for_copy : options_.left_out.copy_for_consumer)
                         : options_.left_out.consumer_for_copy && for_copy;
}

void simulated_device::note_wait() {
  ++counts_.waits_for_device;
  char name[16] = {};
  ::pthread_getname_np(::pthread_self(), name, sizeof name);
  waiting_threads_.insert(name);
}

// Executes the next operation of a stream if it may run now.
bool simulated_device::step(queue& in) {
  if (in.operations.empty()) return false;
  if (const operation& next = in.operations.front();
      next.what == operation::kind::wait && next.event->fired < next.target) {
    return false;
  }
  operation next = std::move(in.operations.front());
  in.operations.pop_front();
  if (next.what == operation::kind::record) {
    next.event->fired = std::max(next.event->fired, next.target);
    if (next.event->timed) next.event->fired_ns = now_ns();
  }
  if (next.what == operation::kind::run) next.function();
  return true;
}

// What happens by itself whenever somebody calls.
void simulated_device::drift() {
  for (bool moved = true; moved;) {
    moved = false;
    for (queue* const each : drifting_) {
      if (each->when == execution::early) {
        while (step(*each)) moved = true;
      }
    }
    if (drifting_.empty() || random_.below(4) == 0) continue;
    queue& chosen = *drifting_[random_.below(drifting_.size())];
    if (chosen.when == execution::random && step(chosen)) moved = true;
  }
  std::erase_if(drifting_, [](const queue* each) { return each->ended && each->operations.empty(); });
  std::erase_if(streams_, [](const auto& each) { return each.second->ended && each.second->operations.empty(); });
}

void simulated_device::force_front(queue& in) {
  const operation& next = in.operations.front();
  if (next.what == operation::kind::wait) force(*next.event, next.target, next.behind);
  require(step(in), "an operation that waits for what will never be");
}

// The record lies in one stream; all before it there has to be executed, and nothing else but what that depends on.
void simulated_device::force(event_state& event, std::uint64_t target, queue* behind) {
  while (event.fired < target) {
    require(behind != nullptr && !behind->operations.empty(), "an event whose record is nowhere");
    force_front(*behind);
  }
}

void simulated_device::force_all(queue& in) {
  while (!in.operations.empty()) force_front(in);
}

// --- a trainer --------------------------------------------------------------------------------------------------------------

stream simulated_device::make_consumer() {
  const mutex_lock lock(mutex_);
  return add_stream(options_.consumer);
}

stream simulated_device::make_blocking_consumer() {
  const mutex_lock lock(mutex_);
  const stream made = add_stream(options_.consumer);
  queue_of(made).blocking = true;
  return made;
}

stream simulated_device::consumer_beside() {
  const mutex_lock lock(mutex_);
  if (!beside_) beside_ = add_stream(options_.consumer);
  return *beside_;
}

void simulated_device::launch(stream in, std::function<void()> kernel) {
  const mutex_lock lock(mutex_);
  if (lost_ != device_ok) return;
  operation added;
  added.function = std::move(kernel);
  push(in, std::move(added));
}

void simulated_device::begin_capture(stream in) {
  const mutex_lock lock(mutex_);
  queue_of(in).capturing = true;
}

std::size_t simulated_device::end_capture(stream in) {
  const mutex_lock lock(mutex_);
  queue& ended = queue_of(in);
  ended.capturing = false;
  return std::exchange(ended.captured_kernels, 0);
}

std::set<std::string> simulated_device::waiting_threads() const {
  const mutex_lock lock(mutex_);
  return waiting_threads_;
}

void simulated_device::lose(device_status code) {
  const mutex_lock lock(mutex_);
  lost_ = code;
  for (const auto& [handle, each] : streams_) each->operations.clear();
  for (const auto& [handle, each] : events_) each->fired = each->recorded;
}

simulated_device::counts simulated_device::count() const {
  const mutex_lock lock(mutex_);
  counts now = counts_;
  now.memory = memory_.size() - freed_.size();
  now.pinned = pinned_.size();
  now.words = words_.size();
  now.streams = static_cast<std::size_t>(std::count_if(streams_.begin(), streams_.end(),
                                                       [](const auto& each) { return !each.second->ended; })) -
                1 - of_threads_.size() - (gathering_ != nullptr ? 1 : 0);  // the default streams are there always
  now.events = events_.size();
  return now;
}

// --- the table ----------------------------------------------------------------------------------------------------------------

std::string simulated_device::describe(device_status code) const {
  switch (code) {
    case out_of_memory:
      return "out of memory (cudaErrorMemoryAllocation)";
    case already_pinned:
      return "this memory is pinned already (cudaErrorHostMemoryAlreadyRegistered)";
    default:
      return "error " + std::to_string(code);
  }
}

std::string simulated_device::describe_pinning(device_status code) const {
  return code == out_of_memory ? "no host memory to be had (cudaErrorMemoryAllocation)" : describe(code);
}

bool simulated_device::is_full(device_status code) const noexcept { return code == out_of_memory; }

device_status simulated_device::take_memory(std::size_t bytes, std::byte*& memory, stream /*in*/) noexcept {
  const mutex_lock lock(mutex_);
  if (lost_ != device_ok) return lost_;
  auto storage = std::make_unique<std::byte[]>(bytes + alignment_bytes);
  const auto address = reinterpret_cast<std::uintptr_t>(storage.get());
  memory = storage.get() + (alignment_bytes - address % alignment_bytes);
  std::fill_n(memory, bytes, rubbish);
  memory_.emplace(memory, std::move(storage));
  memory_bytes_[memory] = bytes;
  ++counts_.memory_taken_in_all;
  return device_ok;
}

device_status simulated_device::free_memory(std::byte* memory, stream in) noexcept {
  const mutex_lock lock(mutex_);
  if (lost_ != device_ok) return lost_;
  end_what_nobody_waited_for();
  require(memory_.contains(memory) && freed_.insert(memory).second, "memory that was never taken is freed");
  operation added;
  added.function = [this, memory]() ABSL_NO_THREAD_SAFETY_ANALYSIS {  // with the mutex held, as all that is executed
    freed_.erase(memory);
    memory_.erase(memory);
    memory_bytes_.erase(memory);
  };
  push(in, std::move(added));
  return device_ok;
}

device_status simulated_device::take_word(std::atomic<std::uint64_t>*& word) noexcept {
  const mutex_lock lock(mutex_);
  word = nullptr;
  if (lost_ != device_ok) return lost_;
  if (!options_.can_write_words) return device_ok;
  auto made = std::make_unique<std::atomic<std::uint64_t>>(0);
  word = made.get();
  words_.emplace(word, std::move(made));
  return device_ok;
}

device_status simulated_device::free_word(const std::atomic<std::uint64_t>* word) noexcept {
  const mutex_lock lock(mutex_);
  require(words_.erase(word) == 1, "a word that was never taken is freed");
  return device_ok;
}

device_status simulated_device::pin(std::span<std::byte> memory) noexcept {
  const mutex_lock lock(mutex_);
  if (lost_ != device_ok) return lost_;
  if (!options_.can_pin) return out_of_memory;
  const auto after = pinned_.lower_bound(memory.data());
  const bool overlaps_after = after != pinned_.end() && after->first < memory.data() + memory.size();
  const bool overlaps_before =
      after != pinned_.begin() && std::prev(after)->first + std::prev(after)->second > memory.data();
  if (overlaps_after || overlaps_before) return already_pinned;
  pinned_.emplace(memory.data(), memory.size());
  return device_ok;
}

device_status simulated_device::unpin(std::span<std::byte> memory) noexcept {
  const mutex_lock lock(mutex_);
  require(pinned_.erase(memory.data()) == 1, "memory that was never pinned is unpinned");
  return device_ok;
}

device_status simulated_device::make_stream(stream& made) noexcept {
  const mutex_lock lock(mutex_);
  if (lost_ != device_ok) return lost_;
  made = add_stream(options_.loader);
  queue_of(made).of_loader = true;
  return device_ok;
}

// As cudaStreamDestroy: what it holds is still executed, by and by.
device_status simulated_device::free_stream(stream made) noexcept {
  const mutex_lock lock(mutex_);
  queue_of(made).ended = true;
  drift();
  return device_ok;
}

void simulated_device::finish_everything() {
  const mutex_lock lock(mutex_);
  force_everything();
}

void simulated_device::force_everything() {
  for (auto& [handle, each] : streams_) force_all(*each);
  drift();
}

// Whoever keeps to every wait cannot give back what somebody still uses.
void simulated_device::end_what_nobody_waited_for() {
  if (options_.left_out.any()) force_everything();
}

bool simulated_device::is_lost(device_status code) const noexcept {
  const mutex_lock lock(mutex_);
  return lost_ != device_ok && code == lost_;
}

device_status simulated_device::make_event(device_event& made) noexcept {
  const mutex_lock lock(mutex_);
  if (lost_ != device_ok) return lost_;
  made = static_cast<device_event>(next_handle());
  events_.emplace(made, std::make_shared<event_state>());
  return device_ok;
}

device_status simulated_device::make_timed_event(device_event& made) noexcept {
  if (const device_status status = make_event(made); status != device_ok) return status;
  const mutex_lock lock(mutex_);
  state_of(made)->timed = true;
  return device_ok;
}

device_status simulated_device::elapsed_ns(device_event from, device_event to, std::int64_t& ns) noexcept {
  const mutex_lock lock(mutex_);
  if (lost_ != device_ok) return lost_;
  for (const device_event each : {from, to}) {
    const event_state& event = *state_of(each);
    // Without waits what lies behind another event may have fired before it.
    require(event.timed && event.recorded != 0 && (event.fired == event.recorded || options_.left_out.any()),
            "a time is asked of an event that has none, or has not fired");
  }
  ns = static_cast<std::int64_t>(state_of(to)->fired_ns - state_of(from)->fired_ns);
  return device_ok;
}

device_status simulated_device::free_event(device_event made) noexcept {
  const mutex_lock lock(mutex_);
  end_what_nobody_waited_for();
  static_cast<void>(state_of(made));
  events_.erase(made);  // who waits for it keeps it
  return device_ok;
}

device_status simulated_device::finish(stream in) noexcept {
  const mutex_lock lock(mutex_);
  if (lost_ != device_ok) return lost_;
  note_wait();
  force_all(queue_of(in));
  return device_ok;
}

device_status simulated_device::copy(std::byte* to, const std::byte* from, std::size_t bytes, stream in) noexcept {
  return copy_rows(to, from, bytes, bytes, 1, in);
}

device_status simulated_device::copy_rows(std::byte* to, const std::byte* from, std::size_t stride,
                                          std::size_t row_bytes, std::uint32_t rows, stream in) noexcept {
  const mutex_lock lock(mutex_);
  if (lost_ != device_ok) return lost_;
  require(rows != 0 && row_bytes <= stride, "rows that overlap");
  ++counts_.copies;
  counts_.bytes_copied += rows * row_bytes;
  const std::size_t span = (rows - 1) * stride + row_bytes;
  require_mine(to, span, "a copy to what is not the device's memory");
  const auto source = pinned_.upper_bound(from);
  const bool begins_pinned = source != pinned_.begin() && from < std::prev(source)->first + std::prev(source)->second;
  if (!begins_pinned) {
    ++counts_.copies_pageable;
  } else {
    require(from + span <= std::prev(source)->first + std::prev(source)->second,
            "a copy that crosses the border of pinned memory");
  }
  operation added;
  const bool unchecked = options_.left_out.any();
  if (!begins_pinned) {
    note_wait();
    force_all(queue_of(in));
    added.function = [=, staged = std::vector<std::byte>(from, from + span)] {
      for (std::size_t at = 0; at < span; at += stride) std::memcpy(to + at, staged.data() + at, row_bytes);
    };
    push(in, std::move(added));
    return device_ok;
  }
  added.function = [=] {
    for (std::size_t at = 0; at < span; at += stride) {
      if (unchecked) {
        copy_unchecked(to + at, from + at, row_bytes);
      } else {
        std::memcpy(to + at, from + at, row_bytes);
      }
    }
  };
  push(in, std::move(added));
  return device_ok;
}

device_status simulated_device::copy_within(std::byte* to, const std::byte* from, std::size_t bytes,
                                            stream in) noexcept {
  const mutex_lock lock(mutex_);
  if (lost_ != device_ok) return lost_;
  ++counts_.copies_within;
  require_mine(to, bytes, "a copy within the device to what is not its memory");
  require_mine(from, bytes, "a copy within the device from what is not its memory");
  operation added;
  added.function = [=] { std::memcpy(to, from, bytes); };
  push(in, std::move(added));
  return device_ok;
}

bool simulated_device::is_mine(const void* memory, std::size_t bytes) const {
  auto* const begin = static_cast<std::byte*>(const_cast<void*>(memory));
  const auto after = memory_bytes_.upper_bound(begin);
  return after != memory_bytes_.begin() && begin + bytes <= std::prev(after)->first + std::prev(after)->second;
}

void simulated_device::require_mine(const void* memory, std::size_t bytes, const char* what) const {
  require(is_mine(memory, bytes), what);
}

// Whatever kernel it is, a sanitizer sees where it reads and writes; of these also that none of it is the host's.
void simulated_device::require_memory_of(const stages::device_kernel& kernel, const void* arguments) const {
  if (&kernel == &stages::prepare_pictures_kernel) {
    const auto& pictures = *static_cast<const stages::picture_preparation*>(arguments);
    const std::size_t elements = std::size_t{pictures.rows} * pictures.height * pictures.width * 3;
    require_mine(pictures.from, elements, "a kernel reads pixels that are not the device's memory");
    require_mine(pictures.programs, std::size_t{pictures.rows} * pictures.program_bytes,
                 "a kernel reads records that are not the device's memory");
    require_mine(pictures.records, std::size_t{pictures.rows} * pictures.record_bytes,
                 "a kernel writes records to what is not the device's memory");
    if (pictures.noise != nullptr) {
      require_mine(pictures.noise, sizeof(float) * pictures.rows * std::size_t{pictures.noise_values},
                   "a kernel writes noise to what is not the device's memory");
    }
    if (pictures.made != nullptr) {
      require_mine(pictures.made, elements, "a kernel writes pixels to what is not the device's memory");
      require_mine(pictures.between, 2 * elements, "a kernel writes sums to what is not the device's memory");
    }
  }
  if (&kernel == &stages::tile_pictures_kernel) {
    const auto& pictures = *static_cast<const stages::tiled_batch*>(arguments);
    const std::size_t bytes = std::size_t{pictures.rows} * pictures.planes * pictures.height * pictures.width *
                              pictures.units * pictures.unit_bytes;
    require_mine(pictures.from, bytes, "a kernel reads rows that are not the device's memory");
    require_mine(pictures.to, bytes, "a kernel writes mosaics to what is not the device's memory");
    require_mine(pictures.tiles, pictures.rows * sizeof *pictures.tiles,
                 "a kernel reads tiles from what is not the device's memory");
  }
  if (&kernel == &stages::gather_rows_kernel) {
    const auto& pieces = *static_cast<const stages::gathered_pieces*>(arguments);
    for (std::uint32_t i = 0; i < pieces.count; ++i) {
      require_mine(pieces.each[i].from, pieces.each[i].bytes, "a kernel gathers what is not the device's memory");
      require_mine(pieces.each[i].to, pieces.each[i].bytes, "a kernel gathers to what is not the device's memory");
    }
  }
  if (&kernel != &stages::finish_pictures_kernel) return;
  const auto& pictures = *static_cast<const stages::picture_batch*>(arguments);
  const std::size_t elements = std::size_t{pictures.rows} * pictures.height * pictures.width * 3;
  require_mine(pictures.from, elements, "a kernel reads pixels that are not the device's memory");
  require_mine(pictures.to, elements * size_bytes(pictures.type), "a kernel writes what is not the device's memory");
  if (pictures.flips != nullptr) {
    require_mine(pictures.flips, pictures.rows, "a kernel reads flags that are not the device's memory");
  }
  if (pictures.programs != nullptr) {
    require_mine(pictures.programs, std::size_t{pictures.rows} * pictures.program_bytes,
                 "a kernel reads records that are not the device's memory");
  }
  if (pictures.noise != nullptr) {
    require_mine(pictures.noise, sizeof(float) * pictures.rows * std::size_t{pictures.noise_values},
                 "a kernel reads noise that is not the device's memory");
  }
  if (pictures.moved != nullptr) {
    require_mine(pictures.moved, elements, "a kernel reads moved pixels that are not the device's memory");
  }
  if (pictures.mixed != nullptr) {
    require_mine(pictures.mixed, pictures.rows * sizeof *pictures.mixed,
                 "a kernel reads how rows are mixed from what is not the device's memory");
  }
}

device_status simulated_device::launch(const stages::device_kernel& kernel, const void* arguments, stream in) noexcept {
  const mutex_lock lock(mutex_);
  if (lost_ != device_ok) return lost_;
  ++counts_.kernels;
  require_memory_of(kernel, arguments);
  const auto* const begin = static_cast<const std::byte*>(arguments);
  // Copied as bytes to memory that is aligned for anything.
  push(in, {.what = operation::kind::run,
            .function = [run = kernel.run_on_host,
                         copied = std::vector<std::byte>(begin, begin + kernel.argument_bytes)] { run(copied.data()); },
            .event = {},
            .behind = nullptr});
  return device_ok;
}

device_status simulated_device::write(const std::atomic<std::uint64_t>& word, std::uint64_t value, stream in) noexcept {
  const mutex_lock lock(mutex_);
  if (lost_ != device_ok) return lost_;
  const auto found = words_.find(&word);
  require(found != words_.end(), "a word that was never taken is written");
  if (options_.left_out.host_for_copy) {
    found->second->store(value, std::memory_order_release);
    return device_ok;
  }
  operation added;
  added.function = [to = found->second.get(), value] { to->store(value, std::memory_order_release); };
  push(in, std::move(added));
  return device_ok;
}

device_status simulated_device::wait(stream in, device_event fired) noexcept {
  const mutex_lock lock(mutex_);
  if (lost_ != device_ok) return lost_;
  const std::shared_ptr<event_state>& event = state_of(fired);
  if (owner_of(in) != options_.index) return device_ok;  // Its device is another's business.
  if (queue_of(in).capturing && !event->captured) return capture_isolation;
  require(!event->captured, "a stream that waits for an event of a capture is drawn into it");
  if (is_left_out(queue_of(in), *event)) return device_ok;
  push(in, {.what = operation::kind::wait,
            .function = {},
            .event = event,
            .target = event->recorded,
            .behind = event->behind});
  return device_ok;
}

std::string simulated_device::prepare_jpegs() {
  return options_.can_decode_jpegs ? "" : "a simulated device without nvJPEG";
}

// The files are read when their turn comes, as late as a GPU may.
stages::failed_call simulated_device::decode_jpegs(std::span<const stages::jpeg_on_device> pictures,
                                                   stream in) noexcept {
  constexpr const char* name = "decoding JPEG files";
  require(options_.can_decode_jpegs && pictures.size() <= stages::jpegs_at_once, "JPEG files that it cannot decode");
  for (std::uint32_t i = 0; i < pictures.size(); ++i) {
    const stages::jpeg_on_device picture = pictures[i];
    pixels::scratch_budget budget(std::size_t{256} << 20);
    pixels::picture_decoder decoder(budget);
    const auto seen = decoder.decode_whole(picture.encoded, {});
    if (!seen) return {refused_picture, name, {}, i};
    const auto width = static_cast<std::size_t>(seen->width);
    const auto height = static_cast<std::size_t>(seen->height);
    const mutex_lock lock(mutex_);
    if (lost_ != device_ok) return {lost_, name};
    for (std::uint8_t* const plane : picture.planes) {
      require_mine(plane, picture.stride * (height - 1) + width, "a plane of a JPEG file");
    }
    ++counts_.jpegs;
    operation added;
    added.function = [picture, width, height] {
      pixels::scratch_budget own(std::size_t{256} << 20);
      pixels::picture_decoder its(own);
      const auto whole = its.decode_whole(picture.encoded, {});
      require(
          whole && static_cast<std::size_t>(whole->width) == width && static_cast<std::size_t>(whole->height) == height,
          "a JPEG file that has changed before its turn came");
      for (std::size_t y = 0; y < height; ++y) {
        for (std::size_t x = 0; x < width; ++x) {
          for (std::size_t c = 0; c < 3; ++c) {
            picture.planes[c][y * picture.stride + x] =
                std::to_integer<std::uint8_t>(whole->rgb[(y * width + x) * 3 + c]);
          }
        }
      }
    };
    push(in, std::move(added));
  }
  return {};
}

device_status simulated_device::record(device_event fires, stream in) noexcept {
  const mutex_lock lock(mutex_);
  if (lost_ != device_ok) return lost_;
  const std::shared_ptr<event_state>& event = state_of(fires);
  if (owner_of(in) != options_.index) return invalid_handle;
  event->captured = queue_of(in).capturing;
  if (event->captured) return device_ok;
  if (is_captured_beside(in)) {
    ++counts_.captures_broken;
    return stages::device_captured_beside;
  }
  event->behind = &queue_of(in);
  push(in, {.what = operation::kind::record,
            .function = {},
            .event = event,
            .target = ++event->recorded,
            .behind = nullptr});
  return device_ok;
}

device_status simulated_device::record_all(device_event fires) noexcept {
  const mutex_lock lock(mutex_);
  if (lost_ != device_ok) return lost_;
  const bool captured =
      std::any_of(streams_.begin(), streams_.end(), [](const auto& each) { return each.second->capturing; });
  if (captured) {
    ++counts_.captures_broken;
    return stages::device_captured_beside;
  }
  if (gathering_ == nullptr) {
    gathering_ = &add_queue(reinterpret_cast<CUstream_st*>(next_handle()), options_.loader);
    gathering_->of_loader = true;
  }
  for (const auto& [handle, each] : streams_) {
    if (each.get() != gathering_) follow(*gathering_, *each);
  }
  const std::shared_ptr<event_state>& event = state_of(fires);
  event->captured = false;
  event->behind = gathering_;
  gathering_->operations.push_back({.what = operation::kind::record,
                                    .function = {},
                                    .event = event,
                                    .target = ++event->recorded,
                                    .behind = nullptr});
  drift();
  return device_ok;
}

device_status simulated_device::look_at(stream which, stages::stream_facts& told) noexcept {
  const mutex_lock lock(mutex_);
  if (lost_ != device_ok) return lost_;
  told = {.device = owner_of(which)};
  if (told.device != options_.index) return device_ok;
  told.foreign_context = foreign_.contains(which.handle());
  told.capturing = queue_of(which).capturing;
  told.captured_beside = is_captured_beside(which);
  return device_ok;
}

device_status simulated_device::query(device_event fired) noexcept {
  const mutex_lock lock(mutex_);
  if (lost_ != device_ok) return lost_;
  drift();
  const event_state& event = *state_of(fired);
  if (event.captured) return captured_event;
  if (options_.left_out.host_for_copy && event.behind != nullptr && event.behind->of_loader) return device_ok;
  return event.fired == event.recorded ? device_ok : stages::device_not_ready;
}

device_status simulated_device::synchronize(device_event fired) noexcept {
  const mutex_lock lock(mutex_);
  if (lost_ != device_ok) return lost_;
  note_wait();
  drift();
  event_state& event = *state_of(fired);
  if (event.captured) return captured_event;
  if (options_.left_out.host_for_copy && event.behind != nullptr && event.behind->of_loader) return device_ok;
  force(event, event.recorded, event.behind);
  return device_ok;
}

}  // namespace leat::testing
