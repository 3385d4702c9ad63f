#include "io/text.hpp"
#include "stages/batch_state.hpp"

#include <leat/batch.hpp>
#include <leat/error.hpp>

#include <absl/strings/str_join.h>

#include <cassert>
#include <exception>
#include <utility>

namespace leat {
namespace {

using slot = stages::batch_layout::slot;

const std::int64_t* offsets_of(const batch::state& state, const slot& place) {
  return reinterpret_cast<const std::int64_t*>(state.memory.data() + place.offset);
}

void check_held(const batch::state& state) {
  if (!state.released) return;
  throw error(errc::usage, "this batch was given back by release_on(): its memory belongs to a later batch");
}

}  // namespace

batch::batch(std::unique_ptr<state> from) noexcept : state_(std::move(from)) {}
batch::batch(batch&&) noexcept = default;
batch& batch::operator=(batch&&) noexcept = default;
batch::~batch() = default;

void batch::wait_on(stream consumer) {
  check_held(*state_);
  if (state_->landed != nullptr) state_->landed->wait_on(consumer);
}

void batch::release_on(stream consumer) {
  check_held(*state_);
  state_->released = true;
  if (state_->landed != nullptr) {
    state_->landed->release_on(consumer);
  } else if (state_->way_home != nullptr) {
    // On the host what the trainer has called has been done.
    state_->way_home->give_back(std::move(state_->memory));
  }
}

void batch::start_ready(ready_completion done) {
  if (state_->landed != nullptr && !state_->released) return state_->landed->ready(std::move(done));
  std::exception_ptr failure;
  try {
    check_held(*state_);
  } catch (const error&) {
    failure = std::current_exception();
  }
  done.complete(std::move(failure));
}

tensor batch::operator[](std::string_view name) const {
  check_held(*state_);
  std::byte* const base = state_->base();
  const device where = state_->where();
  const std::int64_t rows = state_->rows;
  for (const slot& place : state_->layout->slots()) {
    const stages::output_spec& spec = place.spec;
    if (spec.name == name && spec.ragged) {
      const auto& ragged = state_->raggeds[place.ragged_index];
      return {spec.type, {static_cast<std::int64_t>(ragged.bytes)}, {1}, base + ragged.offset, where};
    }
    if (spec.name == name && !spec.internal) {
      dimensions shape{rows};
      for (const std::int64_t extent : spec.row_shape) shape.push_back(extent);
      std::byte* const data = spec.finish ? state_->landed->finished() + place.finished_offset : base + place.offset;
      return {spec.type, shape, dense_strides(shape), data, where};
    }
    if (spec.ragged && name == spec.name + ".offsets") {
      return {dtype::i64, {rows + 1}, {1}, base + place.offset, where};
    }
  }
  throw error(errc::not_found, io::str_cat("no output '", name, "' in this batch; it holds ",
                                           absl::StrJoin(state_->layout->names(), ", ")));
}

std::span<const std::string> batch::outputs() const noexcept { return state_->layout->names(); }

std::span<const std::byte> batch::bytes(std::string_view name, std::size_t row) const {
  assert(row < state_->rows);
  check_held(*state_);
  if (state_->where() != host) {
    throw error(errc::usage, "bytes() of a batch on a device: its rows are not in host memory; use operator[] there");
  }
  for (const slot& place : state_->layout->slots()) {
    if (place.spec.name != name) continue;
    const std::byte* const base = state_->memory.data();
    if (!place.spec.ragged) return {base + place.offset + row * place.row_bytes, place.row_bytes};
    const std::int64_t* const offsets = offsets_of(*state_, place);
    const auto begin = static_cast<std::size_t>(offsets[row]);
    const auto end = static_cast<std::size_t>(offsets[row + 1]);
    return {base + state_->raggeds[place.ragged_index].offset + begin, end - begin};
  }
  throw error(errc::not_found, io::str_cat("no output '", name, "' in this batch; it holds ",
                                           absl::StrJoin(state_->layout->names(), ", ")));
}

std::uint32_t batch::valid_rows() const noexcept { return state_->rows; }
std::uint32_t batch::epoch() const noexcept { return state_->epoch; }
std::uint64_t batch::index() const noexcept { return state_->index; }
std::span<const std::uint64_t> batch::ids() const noexcept { return state_->ids; }
std::span<const std::string> batch::names() const noexcept { return state_->names; }
std::optional<digest> batch::content_digest() const noexcept { return state_->content; }
std::span<const digest> batch::row_digests() const noexcept { return state_->row_digests; }

}  // namespace leat
