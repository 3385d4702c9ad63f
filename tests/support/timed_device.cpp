#include "tests/support/timed_device.hpp"

#include "base/clock.hpp"
#include "stages/batch/batch_layout.hpp"
#include "tests/support/sleep_until.hpp"

#include <algorithm>
#include <new>

namespace leat::testing {

using stages::device_event;
using stages::device_ok;
using stages::device_status;

namespace {

constexpr device_status no_such_call = 1;

}  // namespace

void timed_device::step(stream in, std::uint64_t ns) noexcept {
  const mutex_lock lock(mutex_);
  put(in, ns);
}

timed_device::counters timed_device::count() const noexcept {
  const mutex_lock lock(mutex_);
  return counted_;
}

std::uint64_t timed_device::passes_ns(const std::byte* from) const noexcept {
  const mutex_lock lock(mutex_);
  const auto known = passes_ns_.find(from);
  return known == passes_ns_.end() ? 0 : known->second;
}

std::string timed_device::describe(device_status /*code*/) const { return "a timed device has no such call"; }

// Addresses are all that is asked of it: nobody touches a page.
device_status timed_device::take_memory(std::size_t bytes, std::byte*& memory, stream /*in*/) noexcept {
  memory =
      static_cast<std::byte*>(::operator new(bytes, std::align_val_t{stages::tensor_alignment_bytes}, std::nothrow));
  return memory != nullptr ? device_ok : no_such_call;
}
device_status timed_device::free_memory(std::byte* memory, stream /*in*/) noexcept {
  ::operator delete(memory, std::align_val_t{stages::tensor_alignment_bytes});
  return device_ok;
}

// Handles count from 1.
device_status timed_device::make_stream(stream& made) noexcept {
  const mutex_lock lock(mutex_);
  ends_ns_.push_back(0);
  made = reinterpret_cast<CUstream_st*>(ends_ns_.size());  // NOLINT(performance-no-int-to-ptr)
  return device_ok;
}
device_status timed_device::make_event(device_event& made) noexcept {
  const mutex_lock lock(mutex_);
  fires_ns_.push_back(0);
  made = static_cast<device_event>(fires_ns_.size());
  return device_ok;
}
std::uint64_t& timed_device::end_of(stream which) {
  return ends_ns_.at(reinterpret_cast<std::uintptr_t>(which.handle()) - 1);
}
std::uint64_t& timed_device::firing(device_event which) { return fires_ns_.at(static_cast<std::size_t>(which) - 1); }

void timed_device::put(stream in, std::uint64_t ns) {
  std::uint64_t& end = end_of(in);
  end = std::max(end, now_ns()) + ns;
}

device_status timed_device::finish(stream in) noexcept {
  std::uint64_t end = 0;
  {
    const mutex_lock lock(mutex_);
    end = end_of(in);
  }
  sleep_until(end);
  return device_ok;
}

device_status timed_device::copy(std::byte* /*to*/, const std::byte* from, std::size_t bytes, stream in) noexcept {
  const mutex_lock lock(mutex_);
  put(in, options_.ns_per_copy + static_cast<std::uint64_t>(static_cast<double>(bytes) / options_.bytes_per_s * 1e9));
  passes_ns_[from] = end_of(in);
  return device_ok;
}

device_status timed_device::launch(const stages::device_kernel& /*kernel*/, const void* /*arguments*/,
                                   stream /*in*/) noexcept {
  return no_such_call;
}

device_status timed_device::wait(stream in, device_event fired) noexcept {
  const mutex_lock lock(mutex_);
  std::uint64_t& end = end_of(in);
  end = std::max(end, firing(fired));
  return device_ok;
}

device_status timed_device::record(device_event fires, stream in) noexcept {
  const mutex_lock lock(mutex_);
  firing(fires) = std::max(end_of(in), now_ns());
  return device_ok;
}

device_status timed_device::look_at(stream /*which*/, stages::stream_facts& told) noexcept {
  told = {};
  return device_ok;
}

device_status timed_device::query(device_event fired) noexcept {
  const mutex_lock lock(mutex_);
  ++counted_.queries;
  return now_ns() < firing(fired) ? stages::device_not_ready : device_ok;
}

device_status timed_device::elapsed_ns(device_event from, device_event to, std::int64_t& ns) noexcept {
  const mutex_lock lock(mutex_);
  ns = static_cast<std::int64_t>(firing(to) - firing(from));
  return device_ok;
}

device_status timed_device::synchronize(device_event fired) noexcept {
  std::uint64_t until = 0;
  {
    const mutex_lock lock(mutex_);
    ++counted_.waits;
    until = firing(fired);
  }
  sleep_until(until);
  return device_ok;
}

}  // namespace leat::testing
