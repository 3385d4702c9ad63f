#include "stages/decode.hpp"

#include "io/text.hpp"
#include "stages/digest.hpp"
#include "stages/journal.hpp"
#include "stages/range.hpp"

#include <absl/container/inlined_vector.h>

#include <algorithm>
#include <ctime>
#include <exception>

namespace leat::stages {
namespace {

std::uint64_t thread_cpu_ns() noexcept {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000U + static_cast<std::uint64_t>(now.tv_nsec);
}

}  // namespace

decoder::decoder(const datasets::dataset_model& dataset, std::span<const std::unique_ptr<field_program>> programs,
                 const batch_layout& layout, const decode_settings& settings, pixels::scratch_budget& budget,
                 std::uint32_t threads)
    : dataset_(dataset), programs_(programs), layout_(layout), settings_(settings), threads_(threads) {
  for (thread_state& own : threads_) {
    for (const auto& program : programs_) own.scratch.push_back(program->make_scratch(budget));
    std::size_t outputs = 0;
    for (const auto& program : programs_) outputs += program->outputs().size();
    own.rows.resize(outputs);
    own.finished.resize(outputs);
    for (std::size_t o = 0; o < outputs && settings_.digests; ++o) {
      const output_spec& spec = layout_.slots()[o].spec;
      if (spec.by_device()) own.finished[o].resize(spec.row_bytes());
    }
  }
}

void decoder::run(sample_slot& slot, std::uint32_t thread, const std::atomic<bool>& stop) {
  const range profiled(work_of::decode);
  thread_state& own = threads_[thread];
  if (!slot.corrupt) decode_fields(slot, own, stop);
  if (stop.load(std::memory_order_relaxed)) return;  // Nobody will look at this row.
  if (slot.over_budget) return describe_over_budget(slot);
  if (slot.corrupt) return describe_corrupt(slot);
  if (settings_.digests) add_digest(slot, own);
  if (settings_.names) slot.name = dataset_.name(slot.sample);
}

std::uint64_t decoder::bytes_copied() const noexcept {
  std::uint64_t bytes = 0;
  for (const thread_state& each : threads_) bytes += each.bytes_copied.load(std::memory_order_relaxed);
  return bytes;
}

void decoder::decode_fields(sample_slot& slot, thread_state& own, const std::atomic<bool>& stop) const {
  work& batch = *slot.owner;
  std::byte* const base = batch.memory.bytes().data();
  std::size_t output = 0;
  for (std::size_t p = 0; p < programs_.size(); ++p) {
    const field_program& program = *programs_[p];
    const std::size_t first_output = output;
    for (; output < first_output + program.outputs().size(); ++output) {
      const batch_layout::slot& place = layout_.slots()[output];
      const std::size_t r = place.ragged_index;
      own.rows[output] =
          place.spec.ragged
              ? row_target{.bytes = {base + batch.ragged_offset[r] + slot.ragged_offset[r], slot.ragged_capacity[r]}}
              : row_target{.bytes = {base + place.offset + slot.row * place.row_bytes, place.row_bytes}};
    }

    const std::size_t index = slot.row * programs_.size() + p;
    decode_input input{.sample = slot.sample,
                       .epoch = batch.epoch,
                       .seed = settings_.seed,
                       .dataset = &dataset_,
                       .encoded = batch.encoded[index],
                       .present = batch.chosen[index] != work::no_field,
                       .stop = &stop};
    if (input.present && dataset_.origin(batch.chosen[index]) == datasets::field_origin::call) {
      try {
        input.encoded = dataset_.produce(slot.sample, batch.chosen[index], own.produced);
      } catch (const std::exception& problem) {
        slot.corrupt = true;
        slot.field_at_fault = batch.chosen[index];
        slot.reason = io::str_cat(program.outputs().front().name, ": ", problem.what());
        return;
      }
    }
    if (program.verbatim() && input.present && input.encoded.data() == own.rows[first_output].bytes.data()) {
      continue;  // read into it
    }
    const outcome<void> result =
        program.decode(*own.scratch[p], input, {own.rows.data() + first_output, output - first_output});
    if (!result) {
      (result.kind() == outcome_kind::over_budget ? slot.over_budget : slot.corrupt) = true;
      slot.field_at_fault = batch.chosen[index];
      slot.reason = io::str_cat(program.outputs().front().name, ": ", result.reason());
      return;
    }
    if (const std::size_t copied = program.bytes_copied(input.encoded.size()); copied != 0) {
      own.bytes_copied.store(own.bytes_copied.load(std::memory_order_relaxed) + copied, std::memory_order_relaxed);
    }
    for (std::size_t o = first_output; o < output; ++o) {
      const batch_layout::slot& place = layout_.slots()[o];
      if (place.spec.ragged) slot.ragged_bytes[place.ragged_index] = own.rows[o].used;
    }
  }
}

// The row is still in this core's cache.
void decoder::add_digest(sample_slot& slot, thread_state& own) {
  const std::uint64_t begin_ns = thread_cpu_ns();
  absl::InlinedVector<row_output, 8> outputs;
  for (std::size_t o = 0; o < own.rows.size(); ++o) {
    const output_spec& spec = layout_.slots()[o].spec;
    if (spec.ragged) {
      const auto bytes = own.rows[o].bytes.first(own.rows[o].used);
      outputs.push_back({spec.name, spec.type, {static_cast<std::int64_t>(bytes.size())}, bytes});
    } else if (spec.by_device()) {
      outputs.push_back({spec.name, spec.type, spec.row_shape, finished(o, own)});
    } else if (!spec.internal) {
      outputs.push_back({spec.name, spec.type, spec.row_shape, own.rows[o].bytes});
    }
  }
  slot.content = row_digest(slot.sample, outputs);
  digest_ns_.fetch_add(thread_cpu_ns() - begin_ns, std::memory_order_relaxed);
}

// What the device will make of the row: the digest is of what the trainer sees.
std::span<const std::byte> decoder::finished(std::size_t output, thread_state& own) const {
  picture_batch pictures = *layout_.slots()[output].spec.picture;
  pictures.from = reinterpret_cast<const std::uint8_t*>(own.rows[output].bytes.data());
  pictures.flips = reinterpret_cast<const std::uint8_t*>(own.rows[output + 1].bytes.data());
  finish_picture(pictures, 0, own.finished[output].data());
  return own.finished[output];
}

// Here, on a decode thread, since a name inside a shard may have to be read from it.
decoder::address decoder::find(std::uint64_t sample, std::uint32_t epoch, std::uint16_t field_at_fault) const {
  address found;
  try {
    found.name = dataset_.name(sample);
  } catch (const std::exception&) {
    found.name = io::str_cat("sample ", sample);  // The shard that holds its name is damaged too.
  }
  if (const auto defect = dataset_.defects() != 0 ? dataset_.defect_of(sample) : std::nullopt) {
    found.source = dataset_.sources()[defect->source]->file_name(defect->file);
    found.offset = defect->offset;
    return found;
  }
  // Every field, as the plan would ask: where a window of tokens lies depends on the epoch.
  std::vector<datasets::need> needs;
  for (std::uint16_t field = 0; field < dataset_.fields().size(); ++field) {
    if (dataset_.origin(field) != datasets::field_origin::extents) continue;
    needs.push_back({.field = field, .seed = settings_.seed, .epoch = epoch});
  }
  datasets::part_list parts;
  dataset_.parts(sample, needs, parts);
  if (parts.empty()) return found;
  // The member that is to blame; where one is missing, the sample's first.
  auto blamed = std::find_if(parts.begin(), parts.end(),
                             [&](const datasets::part& each) { return each.field == field_at_fault; });
  if (blamed == parts.end()) blamed = parts.begin();
  found.source = dataset_.sources()[blamed->where.source]->file_name(blamed->where.file);
  found.offset = dataset_.header_offset(sample, blamed->where);
  return found;
}

// For the journal.
void decoder::describe_corrupt(sample_slot& slot) const {
  if (slot.quarantined) return;  // A substitute: it will be counted in its own place.
  slot.quarantined = true;
  slot.planned_reason = slot.reason;
  address found = find(slot.planned, slot.owner->epoch, slot.field_at_fault);
  slot.planned_name = std::move(found.name);
  slot.planned_source = std::move(found.source);
  slot.planned_offset = found.offset;
}

// For the error that ends the run. A substitute may be what does not fit.
void decoder::describe_over_budget(sample_slot& slot) const {
  const address found = find(slot.sample, slot.owner->epoch, slot.field_at_fault);
  slot.reason = io::str_cat("sample ", found.name, place_text(found.source, found.offset), ": ", slot.reason);
}

}  // namespace leat::stages
