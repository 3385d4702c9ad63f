#include "stages/run/decode.hpp"

#include "base/cpu_clock.hpp"
#include "base/exception_text.hpp"
#include "base/text.hpp"
#include "stages/batch/range.hpp"
#include "stages/device/mosaic.hpp"
#include "stages/pixels/placed_picture.hpp"
#include "stages/plan/lowering.hpp"
#include "stages/plan/shared_members.hpp"
#include "stages/state/digest.hpp"
#include "stages/state/journal.hpp"
#include "stages/state/receipt_row.hpp"

#include <absl/container/inlined_vector.h>

#include <algorithm>
#include <cassert>
#include <cstring>
#include <exception>
#include <string>
#include <utility>

namespace leat::stages {
namespace {

// In batch_in_flight::encoded: the program's row was made when its block was expanded.
constexpr std::byte made_of_block_mark{};

// What it reads is there as it is stored, and its rows lie where their numbers say.
bool is_plain(const datasets::dataset_model& dataset, const field_program& program) {
  const program_facets& facets = program.facets();
  const auto reads = program.reads();
  const auto outputs = program.outputs();
  return facets.choosing == nullptr && facets.checking == nullptr && facets.leading == nullptr &&
         facets.following == nullptr && facets.looking == nullptr && facets.boxing == nullptr &&
         facets.fetching == nullptr &&
         std::all_of(reads.begin(), reads.end(),
                     [&](std::uint16_t field) { return lower(dataset, field).as_stored; }) &&
         std::none_of(outputs.begin(), outputs.end(),
                      [](const output_spec& output) { return output.ragged || output.is_slot() || output.picture; });
}

}  // namespace

decoder::decoder(const datasets::dataset_model& dataset, std::span<const std::unique_ptr<field_program>> programs,
                 const batch_layout& layout, const decode_settings& settings, pixels::scratch_budget& budget,
                 std::uint32_t threads)
    : dataset_(dataset),
      programs_(programs),
      layout_(layout),
      leaders_(decode_leaders(programs)),
      scratch_of_(scratch_owners(programs)),
      followers_(programs.size(), 0),
      pictures_(pictures_followed(programs)),
      boxed_by_(boxes_looked_at(programs)),
      plain_(programs.size() == 1 && is_plain(dataset, *programs.front())),
      shown_(output_of_shown(layout)),
      settings_(settings),
      threads_(threads) {
  std::size_t outputs = 0;
  for (std::size_t p = 0; p < programs_.size(); ++p) {
    if (leaders_[p] != p) ++followers_[leaders_[p]];
    looks_at_boxes_ = looks_at_boxes_ || boxed_by_[p] != p;
    first_output_.push_back(outputs);
    outputs += programs_[p]->outputs().size();
  }
  for (thread_state& own : threads_) {
    for (std::size_t p = 0; p < programs_.size(); ++p) {
      own.scratch.push_back(scratch_of_[p] == p ? programs_[p]->make_scratch(budget) : nullptr);
    }
    own.produced.resize(programs_.size());
    own.encoded.resize(programs_.size());
    own.boxes.resize(looks_at_boxes_ ? programs_.size() : 0);
    own.rows.resize(outputs);
    own.made.resize(outputs);
    for (std::size_t o = 0; o < outputs && settings_.digests; ++o) {
      const output_spec& spec = layout_.outputs()[o].spec;
      if (spec.made_by == nullptr) continue;
      own.made[o].resize(scratch_behind(spec.row_bytes()) + spec.made_by->make_row_bytes());
    }
  }
}

void decoder::run(sample_in_flight& sample, std::uint32_t thread, const std::atomic<bool>& stop) {
  const range profiled(work_of::decode);
  thread_state& own = threads_[thread];
  if (!sample.corrupt && !sample.out_of_memory() && !sample.threw()) decode_fields(sample, own, stop);
  if (stop.load(std::memory_order_relaxed)) return;  // Nobody will look at this row.
  if (sample.out_of_memory()) return describe_out_of_memory(sample);
  if (sample.corrupt) return describe_corrupt(sample);
  if (settings_.digests && sample.held() == nullptr) add_digest(sample, own);
  if (!settings_.names && !settings_.receipts) return;
  std::string name = dataset_.name(sample.pick().sample);
  if (settings_.receipts) {
    sample.owner->receipts[sample.row] = receipt_row_of(name, sample.owner->row_digests[sample.row]);
  }
  if (settings_.names) sample.owner->names[sample.row] = std::move(name);
}

std::uint32_t decoder::make_rows(batch_in_flight& batch, std::uint32_t first, std::uint32_t end, std::uint32_t thread,
                                 const std::atomic<bool>& stop) noexcept {
  thread_state& own = threads_[thread];
  for (std::uint32_t row = first; row != end; ++row) {
    sample_in_flight& sample = batch.samples[row];
    try {
      decode_fields(sample, own, stop);
    } catch (...) {
      sample.in_trouble().failure = std::current_exception();
    }
    if (sample.corrupt) return row;
  }
  return end;
}

std::uint64_t decoder::bytes_copied() const noexcept {
  std::uint64_t bytes = 0;
  for (const thread_state& each : threads_) bytes += each.bytes_copied.load(std::memory_order_relaxed);
  return bytes;
}

// Where each output's row lies.
void decoder::place_rows(const sample_in_flight& sample, thread_state& own) const {
  const batch_in_flight& batch = *sample.owner;
  std::byte* const base = batch.memory.bytes().data();
  const std::span<const batch_plan::ragged_row> ragged = batch.ragged_of(sample.row);
  for (std::size_t output = 0; output < own.rows.size(); ++output) {
    const batch_layout::output_place& place = layout_.outputs()[output];
    const std::size_t r = place.ragged_index;
    if (place.spec.is_slot()) {
      const std::size_t bytes = place.spec.row_bytes();
      own.rows[output] = {.bytes = own.rows[place.whole].bytes.subspan(place.spec.slot.number * bytes, bytes)};
      continue;
    }
    own.rows[output] =
        place.spec.ragged
            ? row_target{.bytes = {base + batch.plan.buffers[r].offset + ragged[r].offset, ragged[r].capacity}}
            : row_target{.bytes = {base + place.offset + sample.row * place.row_bytes, place.row_bytes}};
  }
}

// The bytes that were read for the program, expanded where they are stored in another form, or those that a call makes: once for all
// programs that read the field. Returns a reason where there are none.
std::optional<value_fault> decoder::find_encoded(const sample_in_flight& sample, std::size_t program,
                                                 thread_state& own) const {
  const batch_in_flight& batch = *sample.owner;
  const std::size_t first = sample.row * programs_.size();
  const std::uint16_t field = batch.plan.fields[first + program];
  own.encoded[program] = batch.encoded[first + program];
  if (field == batch_plan::no_field) return std::nullopt;
  const row_step step = batch.plan.step_of(sample.row, program);
  if (step == row_step::take_boxes) own.encoded[program] = boxes_of(sample, program, own);
  if (step != row_step::expand && step != row_step::produce) return std::nullopt;
  for (std::size_t before = 0; before < program; ++before) {
    if (batch.plan.fields[first + before] != field) continue;
    own.encoded[program] = own.encoded[before];
    return std::nullopt;
  }
  if (step == row_step::expand) return expand(sample, program, field, own);
  own.encoded[program] = dataset_.produce(sample.pick().sample, field, own.produced[program]);
  return std::nullopt;
}

// Where they were put together.
std::span<const std::byte> decoder::boxes_of(const sample_in_flight& sample, std::size_t program,
                                             thread_state& own) const {
  const batch_in_flight& batch = *sample.owner;
  const auto staged = layout_.staging_row(batch.memory.bytes().subspan(batch.plan.staging), program, sample.row);
  return staged.empty() ? rows_of(program, own).front().bytes : staged;
}

// A block that is a whole row becomes that row; any other goes to this thread's memory.
std::optional<value_fault> decoder::expand(const sample_in_flight& sample, std::size_t program, std::uint16_t field,
                                           thread_state& own) const {
  const pick& row = sample.pick();
  const datasets::need wanted[] = {{.field = field, .seed = settings_.seed, .draw = row.draw, .epoch = row.epoch}};
  datasets::part_list parts;
  dataset_.parts(row.sample, wanted, parts);
  assert(parts.size() == 1);
  const datasets::part& part = parts.front();
  std::span<std::byte> to = rows_of(program, own).front().bytes;
  if (!expands_into_row(*programs_[program], part.where.decoded_bytes)) {
    own.produced[program].resize(part.where.decoded_bytes);
    to = own.produced[program];
  }
  std::optional<value_fault> fault = dataset_.expand(row.sample, part, own.encoded[program], to);
  own.encoded[program] = to;
  return fault;
}

// The rows of all that are decoded with `leader`, where one pass over the picture makes them.
bool decoder::decode_together(std::size_t leader, const decode_input& input, batch_in_flight& batch, std::uint32_t row,
                              thread_state& own) const {
  own.together.clear();
  for (std::size_t p = leader; p < programs_.size(); ++p) {
    if (leaders_[p] != leader) continue;
    own.together.push_back({&programs_[p]->maker(), rows_of(p, own), geometry_of(batch, row, p),
                            boxed_by_[p] != p ? &own.boxes[p].seen : nullptr});
  }
  return programs_[leader]->facets().sharing->decode_together(*own.scratch[scratch_of_[leader]], input, own.together);
}

decode_input decoder::input_of(const sample_in_flight& sample, std::size_t program, const thread_state& own,
                               const std::atomic<bool>& stop) const {
  const pick& row = sample.pick();
  batch_in_flight& batch = *sample.owner;
  const std::uint16_t picture = pictures_[program];
  return {.sample = row.sample,
          .draw = row.draw,
          .epoch = row.epoch,
          .seed = settings_.seed,
          .dataset = &dataset_,
          .encoded = own.encoded[program],
          .present = batch.plan.field_of(sample.row, program) != batch_plan::no_field,
          .stop = &stop,
          .boxes = boxed_by_[picture] != picture ? &own.boxes[picture].seen : nullptr,
          .geometry = geometry_of(batch, sample.row, program)};
}

void decoder::count_made(batch_in_flight& batch, std::uint32_t row, std::size_t program, std::size_t encoded_bytes,
                         thread_state& own) const {
  if (const std::size_t copied = programs_[program]->bytes_copied(encoded_bytes); copied != 0) {
    own.bytes_copied.store(own.bytes_copied.load(std::memory_order_relaxed) + copied, std::memory_order_relaxed);
  }
  note_used(batch, row, program, own);
}

void decoder::note_used(batch_in_flight& batch, std::uint32_t row, std::size_t program, thread_state& own) const {
  const std::span<row_target> rows = rows_of(program, own);
  for (std::size_t o = 0; o < rows.size(); ++o) {
    const batch_layout::output_place& place = layout_.outputs()[first_output_[program] + o];
    if (place.spec.ragged) batch.ragged_used(row)[place.ragged_index] = rows[o].used;
  }
}

void decoder::make_of_block(block_in_flight& block, const block_in_flight::use& use,
                            std::span<const std::byte> expanded, std::uint32_t thread, const std::atomic<bool>& stop) {
  if (stop.load(std::memory_order_relaxed)) return;  // Nobody will look at this row.
  thread_state& own = threads_[thread];
  batch_in_flight& batch = *block.owner;
  const sample_in_flight& sample = batch.samples[use.row];
  const std::size_t p = use.program;
  const std::uint16_t field = batch.plan.field_of(use.row, p);
  const auto fault = [&](const failure& why, std::exception_ptr thrown) {
    block.faults.push_back({.row = use.row,
                            .reason = str_cat(programs_[p]->outputs().front().name, ": ", why.reason),
                            .kind = why.counted_as(),
                            .bytes_needed = why.bytes_needed,
                            .out_of_memory = why.kind == outcome_kind::no_memory,
                            .failure = std::move(thrown)});
  };
  try {
    const pick& row = sample.pick();
    const datasets::need wanted{.field = field, .seed = settings_.seed, .draw = row.draw, .epoch = row.epoch};
    datasets::part_list parts;
    dataset_.parts(row.sample, {&wanted, 1}, parts);
    assert(parts.size() == 1);
    own.produced[p].resize(parts.front().value_bytes);
    std::span<std::byte> value = own.produced[p];
    if (const auto none = dataset_.take_value(row.sample, parts.front(), expanded, value)) {
      return fault(corrupt(none->reason, none->kind), nullptr);
    }
    own.encoded[p] = value;
    place_rows(sample, own);
    decode_input input = input_of(sample, p, own, stop);
    input.boxes = nullptr;  // They may lie in another block.
    const outcome<void> result = programs_[p]->decode(*own.scratch[scratch_of_[p]], input, rows_of(p, own));
    if (!result) return fault(result.error(), nullptr);
    count_made(batch, use.row, p, input.encoded.size(), own);
    batch.encoded[use.row * programs_.size() + p] = {&made_of_block_mark, 0};
  } catch (...) {
    fault(corrupt(current_exception_text()), std::current_exception());
  }
}

void decoder::join_pieces(batch_in_flight& batch, const sample_in_flight& sample) {
  for (const std::uint32_t number : sample.reads) {
    const read_in_flight& rows = batch.reads[number];
    if (!rows.inside) continue;
    const read_in_flight& first = batch.reads[*rows.inside];
    for (const read_part& part : first.parts) {
      if (part.offset + part.bytes <= rows.offset) continue;  // of a member before it
      const std::byte* const head = first.data.data() + (part.offset - first.offset);
      std::byte* const memory = first.into.bytes.data();
      std::byte* const begin = memory + (rows.data.data() - memory) - (rows.offset - part.offset);
      std::span<const std::byte>& encoded = batch.encoded[sample.row * batch.plan.programs + part.program];
      if (encoded.data() == head) std::memmove(begin, head, first.offset + first.bytes - part.offset);
      for (const read_part& each : first.parts) {
        if (each.offset != part.offset) continue;
        batch.encoded[sample.row * batch.plan.programs + each.program] = {begin, each.bytes};
      }
    }
  }
}

bool decoder::take_row_of_block(const sample_in_flight& sample, std::size_t program, thread_state& own) const {
  const batch_in_flight& batch = *sample.owner;
  if (batch.encoded[sample.row * programs_.size() + program].data() != &made_of_block_mark) return false;
  const std::span<row_target> rows = rows_of(program, own);
  for (std::size_t o = 0; o < rows.size(); ++o) {
    const batch_layout::output_place& place = layout_.outputs()[first_output_[program] + o];
    if (place.spec.ragged) rows[o].used = sample.owner->ragged_used(sample.row)[place.ragged_index];
  }
  return true;
}

bool decoder::find_or_refuse(sample_in_flight& sample, std::size_t program, thread_state& own) const {
  std::optional<value_fault> missing;
  try {
    missing = find_encoded(sample, program, own);
  } catch (const std::exception& problem) {
    missing = problem.what();
  } catch (...) {
    missing = current_exception_text();
  }
  if (!missing) return true;
  sample.corrupt = true;
  sample.in_trouble().field_at_fault = sample.owner->plan.field_of(sample.row, program);
  sample.trouble->reason = str_cat(programs_[program]->outputs().front().name, ": ", missing->reason);
  sample.trouble->kind = missing->kind;
  return false;
}

// A field of boxes may stand behind the picture.
bool decoder::look_at_boxes(sample_in_flight& sample, thread_state& own) const {
  for (std::size_t p = 0; p < programs_.size(); ++p) {
    if (!take_row_of_block(sample, p, own) && !find_or_refuse(sample, p, own)) return false;
  }
  for (std::size_t p = 0; p < programs_.size(); ++p) {
    const std::size_t by = boxed_by_[p];
    if (by == p) continue;
    const outcome<void> found = programs_[by]->facets().boxing->boxes_of(
        *own.scratch[scratch_of_[by]], own.encoded[by], rows_of(by, own), own.boxes[p].made, own.boxes[p].seen);
    if (found) continue;
    refuse(sample, by, found.error());
    return false;
  }
  return true;
}

// All of it that is not on the device.
void decoder::take_held(sample_in_flight& sample, thread_state& own, const std::atomic<bool>& stop) const {
  batch_in_flight& batch = *sample.owner;
  const held_row& held = *sample.held();
  held.of->write_short_rows(held, sample.row, batch.memory.bytes().data());
  std::copy(held.geometries.begin(), held.geometries.end(),
            batch.geometries.begin() + static_cast<std::ptrdiff_t>(sample.row * layout_.picture_count()));
  if (settings_.digests) batch.row_digests[sample.row] = held.row_digest;
  if (held.packs.empty()) return;
  place_rows(sample, own);
  for (std::size_t p = 0; p < programs_.size(); ++p) {
    const keeping_facet* const keeping = programs_[p]->facets().keeping;
    const auto pack = std::find_if(held.packs.begin(), held.packs.end(),
                                   [&](const held_row::pack_head& each) { return each.output == first_output_[p]; });
    if (keeping == nullptr || pack == held.packs.end()) continue;
    std::vector<std::byte>& value = own.produced[p];
    value.resize(pack->value_bytes);
    std::copy(pack->bytes.begin(), pack->bytes.end(), value.begin());
    own.encoded[p] = value;
    decode_input input = input_of(sample, p, own, stop);
    input.present = true;
    if (keeping->decode_held(*own.scratch[scratch_of_[p]], input, rows_of(p, own))) continue;
    batch.on_device[sample.row].lacks_bytes = true;
    return;
  }
}

void decoder::decode_fields(sample_in_flight& sample, thread_state& own, const std::atomic<bool>& stop) const {
  if (sample.held() != nullptr) return take_held(sample, own, stop);
  if (plain_) return decode_plain(sample, own, stop);
  batch_in_flight& batch = *sample.owner;
  join_pieces(batch, sample);
  place_rows(sample, own);
  if (looks_at_boxes_ && !look_at_boxes(sample, own)) return;
  absl::InlinedVector<bool, 8> made;  // of each program: by the decode of one before
  for (std::size_t p = 0; p < programs_.size(); ++p) {
    const field_program& program = *programs_[p];
    const std::span<row_target> rows = rows_of(p, own);
    if (!made.empty() && made[p]) continue;
    if (take_row_of_block(sample, p, own)) {
      if (boxed_by_[p] == p) continue;
      own.encoded[p] = rows.back().bytes.first(rows.back().used);  // kept until its boxes were there
    } else if (!looks_at_boxes_ && !find_or_refuse(sample, p, own)) {
      return;
    }
    const decode_input input = input_of(sample, p, own, stop);
    if (takes_bytes_as_they_are(program) && input.present && input.encoded.data() == rows.front().bytes.data()) {
      continue;  // read into it
    }
    if (followers_[p] != 0 && decode_together(p, input, batch, sample.row, own)) {
      made.resize(programs_.size(), false);
      for (std::size_t q = p; q < programs_.size(); ++q) made[q] = made[q] || leaders_[q] == p;
      continue;
    }
    const outcome<void> result = program.decode(*own.scratch[scratch_of_[p]], input, rows);
    if (!result) return refuse(sample, p, result.error());
    count_made(batch, sample.row, p, input.encoded.size(), own);
  }
  if (!make_following(sample, own, stop)) return;
  if (shown_) note_shown(sample, own, stop);
  for (std::size_t p = 0; p < programs_.size(); ++p) {
    std::optional<std::string> wrong;
    if (programs_[p]->facets().checking != nullptr) {
      decode_input input = input_of(sample, p, own, stop);
      if (pictures_[p] != p) input.geometry = geometry_of(*sample.owner, sample.row, pictures_[p]);
      wrong = programs_[p]->check(input, std::span(own.rows).subspan(first_output_[p]));
    }
    if (!wrong) {
      note_used(batch, sample.row, p, own);
      continue;
    }
    sample.corrupt = true;
    sample.in_trouble().field_at_fault = batch.plan.field_of(sample.row, p);
    sample.trouble->reason = std::move(*wrong);
    return;
  }
}

void decoder::decode_plain(sample_in_flight& sample, thread_state& own, const std::atomic<bool>& stop) const {
  const batch_in_flight& batch = *sample.owner;
  const field_program& program = *programs_.front();
  std::byte* const base = batch.memory.bytes().data();
  for (std::size_t output = 0; output < own.rows.size(); ++output) {
    const batch_layout::output_place& place = layout_.outputs()[output];
    own.rows[output].bytes = {base + place.offset + sample.row * place.row_bytes, place.row_bytes};
  }
  const pick& row = sample.pick();
  const decode_input input{.sample = row.sample,
                           .draw = row.draw,
                           .epoch = row.epoch,
                           .seed = settings_.seed,
                           .dataset = &dataset_,
                           .encoded = batch.encoded[sample.row],
                           .present = batch.plan.fields[sample.row] != batch_plan::no_field,
                           .stop = &stop};
  const bool is_there = program.facts().verbatim && input.encoded.data() == own.rows.front().bytes.data();
  if (input.present && is_there) return;  // read into it
  const outcome<void> made = program.decode(*own.scratch.front(), input, own.rows);
  if (!made) return refuse(sample, 0, made.error());
  if (const std::size_t copied = program.bytes_copied(input.encoded.size()); copied != 0) {
    own.bytes_copied.store(own.bytes_copied.load(std::memory_order_relaxed) + copied, std::memory_order_relaxed);
  }
}

void decoder::refuse(sample_in_flight& sample, std::size_t program, const failure& why) const {
  (why.kind == outcome_kind::no_memory ? sample.in_trouble().out_of_memory : sample.corrupt) = true;
  const std::uint16_t field = sample.owner->plan.field_of(sample.row, program);
  const field_program& of = *programs_[program];
  sample.in_trouble().field_at_fault = field;
  sample.trouble->reason = str_cat(of.outputs().front().name, ": ", why.reason);
  if (of.facts().names_member && field != batch_plan::no_field) {
    sample.trouble->reason =
        str_cat(of.outputs().front().name, " of '", dataset_.fields()[field].name, "': ", why.reason);
  }
  sample.trouble->kind = why.counted_as();
  sample.trouble->bytes_needed = why.bytes_needed;
}

picture_geometry* decoder::geometry_of(batch_in_flight& batch, std::uint32_t row, std::size_t program) const {
  const batch_layout::output_place& place = layout_.outputs()[first_output_[program]];
  if (!place.spec.picture || batch.geometries.empty()) return nullptr;
  return &batch.geometries[row * layout_.picture_count() + place.picture_index];
}

bool decoder::make_following(sample_in_flight& sample, thread_state& own, const std::atomic<bool>& stop) const {
  for (std::size_t p = 0; p < programs_.size(); ++p) {
    if (pictures_[p] == p) continue;
    const picture_geometry* const picture = geometry_of(*sample.owner, sample.row, pictures_[p]);
    const outcome<void> made = programs_[p]->facets().following->make(
        *own.scratch[scratch_of_[p]], input_of(sample, p, own, stop), *picture, rows_of(p, own));
    if (!made) {
      refuse(sample, p, made.error());
      return false;
    }
  }
  return true;
}

void decoder::note_shown(const sample_in_flight& sample, const thread_state& own, const std::atomic<bool>& stop) const {
  const batch_layout::output_place& shown = layout_.outputs()[*shown_];
  std::byte* const row = sample.owner->memory.bytes().data() + shown.offset + sample.row * shown.row_bytes;
  pixels::placed_picture where;
  for (std::size_t p = 0; p < programs_.size(); ++p) {
    const picture_geometry* const picture = geometry_of(*sample.owner, sample.row, p);
    if (picture == nullptr) continue;
    const leading_facet* const leading = programs_[p]->facets().leading;
    assert(leading != nullptr);
    leading->place(input_of(sample, p, own, stop), *picture, where);
    const pixel_box box = shown_box(where);
    std::memcpy(row + layout_.outputs()[first_output_[p]].picture_index * sizeof box, &box, sizeof box);
  }
}

// The row is still in this core's cache.
void decoder::add_digest(sample_in_flight& sample, thread_state& own) {
  const std::uint64_t begin_ns = thread_cpu_ns();
  absl::InlinedVector<row_output, 8> outputs;
  for (std::size_t o = 0; o < own.rows.size(); ++o) {
    const batch_layout::output_place& place = layout_.outputs()[o];
    const output_spec& spec = place.spec;
    if (spec.of_batch || !spec.digested) continue;
    if (spec.ragged) {
      const auto bytes = own.rows[o].bytes.first(own.rows[o].used);
      outputs.push_back({spec.name, spec.type, spec.ragged_shape(bytes.size()), bytes});
    } else if (spec.made_by != nullptr) {
      outputs.push_back({spec.name, spec.type, spec.row_shape, made_row(o, own)});
    } else if (!place.hidden) {
      outputs.push_back({spec.name, spec.type, spec.row_shape, own.rows[o].bytes});
    }
  }
  sample.owner->row_digests[sample.row] = row_digest(sample.pick().sample, outputs);
  digest_ns_.fetch_add(thread_cpu_ns() - begin_ns, std::memory_order_relaxed);
}

// What the device will make of the row: the digest is of what the trainer sees.
std::span<const std::byte> decoder::made_row(std::size_t output, thread_state& own) const {
  const batch_layout::output_place& place = layout_.outputs()[output];
  absl::InlinedVector<const std::byte*, 4> from;
  for (const std::size_t other : place.made_from) {
    if (other < own.rows.size()) from.push_back(own.rows[other].bytes.data());  // else not the field's own
  }
  const std::span<std::byte> made = own.made[output];
  const std::size_t row_bytes = place.spec.row_bytes();
  place.spec.made_by->make_row(from, 0, made.data(), made.data() + scratch_behind(row_bytes));
  return made.first(row_bytes);
}

// On a decode thread, because the name of a sample in a shard may have to be read from the shard.
decoder::address decoder::find(const pick& of, std::uint16_t field_at_fault) const {
  address found;
  try {
    found.name = dataset_.name(of.sample);
  } catch (const std::exception&) {
    found.name = str_cat("sample ", of.sample);  // The shard that holds its name is damaged too.
  }
  if (const auto defect = dataset_.defects() != 0 ? dataset_.defect_of(of.sample) : std::nullopt) {
    if (defect->source >= dataset_.sources().size()) return found;  // Excluded, and in no file.
    found.source = dataset_.sources()[defect->source]->file_name(defect->file);
    found.offset = defect->offset;
    return found;
  }
  // Every field, as the plan would ask: where a window of tokens lies is drawn.
  std::vector<datasets::need> needs;
  for (std::uint16_t field = 0; field < dataset_.fields().size(); ++field) {
    needs.push_back({.field = field, .seed = settings_.seed, .draw = of.draw, .epoch = of.epoch});
  }
  datasets::part_list parts;
  dataset_.parts(of.sample, needs, parts);
  const auto lies_nowhere = [](const datasets::part& each) { return each.is_made(); };
  // What is made of a file says itself where it was in it; another member's file is whole.
  if (std::any_of(parts.begin(), parts.end(),
                  [&](const datasets::part& each) { return each.field == field_at_fault && lies_nowhere(each); })) {
    return found;
  }
  parts.erase(std::remove_if(parts.begin(), parts.end(), lies_nowhere), parts.end());
  if (parts.empty()) return found;
  // The member that is to blame; where one is missing, the sample's first.
  auto blamed = std::find_if(parts.begin(), parts.end(),
                             [&](const datasets::part& each) { return each.field == field_at_fault; });
  if (blamed == parts.end()) blamed = parts.begin();
  found.source = dataset_.sources()[blamed->where.source]->file_name(blamed->where.file);
  found.offset = dataset_.header_offset(of.sample, blamed->where);
  return found;
}

// For the journal.
void decoder::describe_corrupt(sample_in_flight& sample) const {
  sample_trouble& trouble = sample.in_trouble();
  if (trouble.quarantined) return;  // A substitute: it will be counted in its own place.
  trouble.quarantined = true;
  trouble.planned_reason = trouble.reason;
  trouble.planned_kind = trouble.kind;
  trouble.planned_bytes_needed = trouble.bytes_needed;
  trouble.planned_field_at_fault = trouble.field_at_fault;
  trouble.planned_read_failure = trouble.read_failure;
  trouble.planned_unreadable = trouble.unreadable;
  address found = find(sample.planned(), trouble.field_at_fault);
  trouble.planned_name = std::move(found.name);
  trouble.planned_source = std::move(found.source);
  trouble.planned_offset = found.offset;
}

// For the error that ends the run.
void decoder::describe_out_of_memory(sample_in_flight& sample) const {
  sample_trouble& trouble = sample.in_trouble();
  const address found = find(sample.pick(), trouble.field_at_fault);
  trouble.reason = str_cat("sample ", found.name, place_text(found.source, found.offset), ": ", trouble.reason);
}

}  // namespace leat::stages
