#include "stages/run/collate.hpp"

#include "stages/batch/range.hpp"
#include "stages/state/digest.hpp"

#include <algorithm>
#include <cstring>

namespace leat::stages {
namespace {

// Moves the rows that are left to the front of an output whose rows are equally long.
//   row_bytes     of each row
//   bytes_taken   of it, no more: what is behind them is padding
void close_holes(const batch_in_flight& batch, std::size_t row_bytes, std::size_t bytes_taken, std::byte* tensor) {
  std::size_t to = 0;
  for (std::uint32_t row = 0; row < batch.rows(); ++row) {
    if (batch.samples[row].corrupt) continue;
    std::byte* const here = tensor + to++ * bytes_taken;
    const std::byte* const from = tensor + row * row_bytes;
    if (here != from) std::memmove(here, from, bytes_taken);
  }
}

// Puts the rows of a ragged output side by side and writes its offsets.
void join_ragged(const batch_in_flight& batch, std::size_t ragged, std::size_t element_bytes, std::byte* buffer,
                 std::byte* offsets) {
  std::size_t used = 0;
  std::size_t row_to = 0;
  const auto write_offset = [&] {
    const auto value = static_cast<std::int64_t>(used / element_bytes);
    std::memcpy(offsets + row_to++ * sizeof value, &value, sizeof value);
  };
  write_offset();
  for (std::uint32_t row = 0; row < batch.rows(); ++row) {
    const sample_in_flight& sample = batch.samples[row];
    if (sample.corrupt) continue;
    const std::size_t from = batch.ragged_of(row)[ragged].offset;
    const std::size_t bytes = batch.ragged_used(row)[ragged];
    if (from != used) std::memmove(buffer + used, buffer + from, bytes);
    used += bytes;
    write_offset();
  }
}

// What the rows that are left have of each ragged output.
void add_ragged_bytes(const batch_in_flight& batch, batch::state& state) {
  state.raggeds.resize(batch.plan.buffers.size());
  if (state.raggeds.empty()) return;
  state.ragged_bytes.reserve(state.rows * state.raggeds.size());
  for (std::uint32_t row = 0; row < batch.rows(); ++row) {
    if (batch.samples[row].corrupt) continue;
    for (std::size_t r = 0; r < state.raggeds.size(); ++r) {
      const std::size_t bytes = batch.ragged_used(row)[r];
      state.ragged_bytes.push_back(bytes);
      state.raggeds[r].own_bytes += bytes;
      state.raggeds[r].longest = std::max(state.raggeds[r].longest, bytes);
    }
  }
}

}  // namespace

std::unique_ptr<batch::state> collate(batch_in_flight& batch, std::shared_ptr<const batch_layout> layout, bool digests,
                                      bool names) {
  const range profiled(work_of::collate);
  auto state = std::make_unique<batch::state>();
  state->layout = std::move(layout);
  state->epoch = batch.plan.epoch;
  state->index = batch.plan.index;
  state->ids.reserve(batch.rows());
  const std::size_t pictures = state->layout->picture_count();
  state->geometries.reserve(batch.rows() * pictures);
  for (std::uint32_t row = 0; row < batch.rows(); ++row) {
    sample_in_flight& sample = batch.samples[row];
    if (sample.corrupt) continue;
    state->ids.push_back(sample.pick().sample);
    if (row >= batch.rows() - batch.plan.padded) ++state->padded;
    if (pictures != 0) {
      const auto geometries = std::span(batch.geometries).subspan(row * pictures, pictures);
      state->geometries.insert(state->geometries.end(), geometries.begin(), geometries.end());
    }
    if (digests) state->row_digests.push_back(batch.row_digests[row]);
    if (names) state->names.push_back(std::move(batch.names[row]));
  }
  state->rows = static_cast<std::uint32_t>(state->ids.size());
  if (digests) state->content = batch_digest(batch.plan.epoch, batch.plan.index, state->row_digests);

  std::byte* const base = batch.memory.bytes().data();
  const bool has_holes = state->rows != batch.rows();
  add_ragged_bytes(batch, *state);
  for (const batch_layout::output_place& place : state->layout->outputs()) {
    if (place.spec.ragged) {
      const std::size_t r = place.ragged_index;
      const batch_plan::ragged_buffer& buffer = batch.plan.buffers[r];
      std::byte* const tensor = base + buffer.offset;
      batch::state::ragged& made = state->raggeds[r];
      made.offset = buffer.offset;
      made.row_bytes = buffer.row_bytes;
      if (place.spec.narrowed) made.row_bytes = std::min(made.row_bytes, place.spec.padded_bytes(made.longest));
      made.bytes = place.spec.has_offsets() ? made.own_bytes : state->rows * made.row_bytes;
      made.capacity = buffer.bytes;
      const std::size_t longest = made.row_bytes != 0 ? made.row_bytes : made.longest;
      made.room_bytes = place.spec.is_packed() ? buffer.bytes : state->rows * longest;
      if (place.spec.has_offsets()) {
        join_ragged(batch, r, place.spec.row_bytes(), tensor, base + place.offset);
      } else if (place.spec.is_padded() && (has_holes || made.row_bytes != buffer.row_bytes)) {
        close_holes(batch, buffer.row_bytes, made.row_bytes, tensor);
      }
    } else if (has_holes) {
      close_holes(batch, place.row_bytes, place.row_bytes, base + place.offset);
    }
  }
  state->memory = std::move(batch.memory);
  return state;
}

std::size_t bytes_used(const batch::state& batch) {
  std::size_t end = 0;
  for (const batch_layout::output_place& place : batch.layout->outputs()) {
    const std::size_t bytes =
        place.spec.has_offsets() ? (std::size_t{batch.rows} + 1) * sizeof(std::int64_t) : batch.rows * place.row_bytes;
    end = std::max(end, place.offset + bytes);
  }
  for (const batch_layout::output_place& place : batch.layout->outputs()) {
    if (!place.spec.ragged || place.hidden) continue;
    const batch::state::ragged& buffer = batch.raggeds[place.ragged_index];
    end = std::max(end, buffer.offset + buffer.bytes);
  }
  return end;
}

std::size_t output_bytes(const batch::state& batch) {
  std::size_t sum = 0;
  for (const batch_layout::output_place& place : batch.layout->outputs()) {
    if (place.hidden) continue;
    if (place.spec.has_offsets()) sum += (std::size_t{batch.rows} + 1) * sizeof(std::int64_t);
    sum += place.spec.ragged ? batch.raggeds[place.ragged_index].bytes : batch.rows * place.spec.row_bytes();
  }
  return sum;
}

}  // namespace leat::stages
