#include "base/near_miss.hpp"
#include "base/text.hpp"
#include "stages/batch/batch_state.hpp"

#include <leat/batch.hpp>
#include <leat/error.hpp>

#include <cassert>
#include <exception>
#include <utility>

namespace leat {
namespace {

using output_place = stages::batch_layout::output_place;

[[noreturn]] void throw_no_output(std::string_view name, std::span<const std::string> names) {
  throw error(errc::not_found, str_cat("no output '", name, "' in this batch; it holds ", joined(names, ", "),
                                       did_you_mean(name, names)));
}

}  // namespace

void batch::state::check_held() const {
  if (!released) return;
  throw error(errc::usage, "this batch was given back by release_on(): its memory belongs to a later batch");
}

std::span<const std::byte> batch::state::ragged_row(const output_place& place, std::size_t row) {
  const ragged& of = raggeds[place.ragged_index];
  const std::size_t bytes = ragged_bytes[row * raggeds.size() + place.ragged_index];
  std::size_t begin = row * of.row_bytes;
  if (place.spec.has_offsets()) {
    const auto* const offsets = reinterpret_cast<const std::int64_t*>(held().base() + place.offset);
    begin = static_cast<std::size_t>(offsets[row]) * place.spec.row_bytes();
  }
  return {held().base() + of.offset + begin, bytes};
}

batch::batch(std::unique_ptr<state> from) noexcept : state_(std::move(from)) {}
batch::batch(batch&&) noexcept = default;
batch& batch::operator=(batch&&) noexcept = default;
batch::~batch() = default;

void batch::wait_on(stream consumer) {
  state_->check_held();
  if (state_->held().on_device != nullptr) state_->held().on_device->wait_on(consumer);
}

void batch::release_on(stream consumer) {
  state_->check_held();
  // Of what is shared no tensor may be out any more; none comes to be but by this thread.
  const bool alone = state_->shared == nullptr || state_->shared.use_count() == 1;
  if (!alone) {
    // Their deleters may be running on other threads: the last of us all gives it back, and has to know this stream by then.
    if (state_->shared->on_device != nullptr) state_->shared->on_device->wait_on(consumer);
    state_->released = true;
    state_->shared.reset();
    return;
  }
  batch_hold& hold = state_->held();
  if (hold.on_device == nullptr) {
    state_->released = true;
    // What it called on the CPU has been done; the transfer waits for copies from pinned memory.
    if (hold.returns_to != nullptr) hold.returns_to->give_back(std::move(hold.memory), true);
    return;
  }
  try {
    hold.on_device->release_on(consumer);
    state_->released = true;
  } catch (...) {
    state_->released =
        hold.on_device->data() == nullptr;  // Else the stream cannot be, and the batch is held as before.
    throw;
  }
}

void batch::start_ready(ready_completion done) {
  if (state_->held().on_device != nullptr && !state_->released) return state_->held().on_device->ready(std::move(done));
  std::exception_ptr failure;
  try {
    state_->check_held();
  } catch (const error&) {
    failure = std::current_exception();
  }
  done.complete(std::move(failure));
}

batch_tensor batch::operator[](std::string_view name) const { return {view(name), *state_}; }

tensor batch::view(std::string_view name) const {
  state_->check_held();
  std::byte* const base = state_->held().base();
  const device where = state_->held().where();
  const std::int64_t rows = state_->rows;
  for (const output_place& place : state_->layout->outputs()) {
    const stages::output_spec& spec = place.spec;
    if (spec.name == name && spec.ragged && !place.hidden) {
      const auto& ragged = state_->raggeds[place.ragged_index];
      dimensions shape = ragged.shape;
      if (spec.is_padded()) shape = {rows, static_cast<std::int64_t>(ragged.row_bytes / size_bytes(spec.type))};
      if (spec.has_offsets()) {
        shape = spec.ragged_shape(ragged.bytes);
      }
      return {spec.type, shape, dense_strides(shape), base + ragged.offset, where};
    }
    if (spec.name == name && !place.hidden) {
      dimensions shape{rows};
      for (const std::int64_t extent : spec.row_shape) shape.push_back(extent);
      std::byte* const data =
          spec.made_by != nullptr ? state_->held().on_device->made() + place.made_offset : base + place.offset;
      return {spec.type, shape, dense_strides(shape), data, where};
    }
    if (spec.has_offsets() && !place.hidden && name == spec.offsets()) {
      return {dtype::i64, {rows + 1}, {1}, base + place.offset, where};
    }
  }
  throw_no_output(name, state_->layout->names());
}

std::span<const std::string> batch::outputs() const noexcept { return state_->layout->names(); }

std::span<const std::byte> batch::bytes(std::string_view name, std::size_t row) const {
  assert(row < state_->rows);
  state_->check_held();
  if (state_->held().where() != host) {
    throw error(errc::usage, "bytes() of a batch on a device: its rows are not in host memory; use operator[] there");
  }
  for (const output_place& place : state_->layout->outputs()) {
    if (place.spec.name != name || place.hidden) continue;
    if (place.spec.of_batch || place.spec.is_packed())
      throw error(errc::usage, str_cat("'", name, "' is made of the whole batch: it has no rows; operator[] has it"));
    const std::byte* const base = state_->held().base();
    if (!place.spec.ragged) return {base + place.offset + row * place.row_bytes, place.row_bytes};
    if (place.spec.has_offsets()) return state_->ragged_row(place, row);
    const state::ragged& ragged = state_->raggeds[place.ragged_index];
    return {base + ragged.offset + row * ragged.row_bytes, ragged.row_bytes};
  }
  throw_no_output(name, state_->layout->names());
}

picture_geometry batch::placement(std::string_view name, std::size_t row) const {
  if (row >= state_->rows) {
    throw error(errc::usage, str_cat("placement('", name, "', ", row, "): the batch has ", state_->rows, " rows"));
  }
  std::vector<std::string> pictures;
  for (const output_place& place : state_->layout->outputs()) {
    if (!place.spec.picture) continue;
    if (place.spec.name == name) {
      if (place.spec.row_shape.size() > 3) {
        throw error(errc::usage, str_cat("'", name, "' has several pictures in a row, each with a place of its own"));
      }
      const picture_geometry& of = state_->geometries[row * state_->layout->picture_count() + place.picture_index];
      if (of.row_width != 0) return of;
      throw error(errc::usage, str_cat("placement('", name, "', ", row,
                                       "): the row is a mosaic of four pictures, each with a place of its own; "
                                       "mix.tiles says whose they are"));
    }
    pictures.push_back(place.spec.name);
  }
  throw error(errc::not_found,
              str_cat("no picture '", name, "' in this batch; it holds ",
                      pictures.empty() ? "none" : joined(pictures, ", "), did_you_mean(name, pictures)));
}

std::uint32_t batch::valid_rows() const noexcept { return state_->rows; }
std::uint32_t batch::padded_rows() const noexcept { return state_->padded; }
std::uint32_t batch::epoch() const noexcept { return state_->epoch; }
std::uint64_t batch::index() const noexcept { return state_->index; }
std::span<const std::uint64_t> batch::ids() const noexcept { return state_->ids; }
std::span<const std::string> batch::names() const noexcept { return state_->names; }
std::optional<digest> batch::content_digest() const noexcept { return state_->content; }
std::span<const digest> batch::row_digests() const noexcept { return state_->row_digests; }

}  // namespace leat
