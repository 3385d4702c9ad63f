#include "stages/plan/plan.hpp"

#include "base/text.hpp"
#include "datasets/files/sample_counts.hpp"
#include "datasets/model/value_runs.hpp"
#include "io/files/source.hpp"
#include "stages/batch/range.hpp"
#include "stages/device/mosaic.hpp"
#include "stages/order/packing.hpp"
#include "stages/plan/array_crop.hpp"
#include "stages/plan/lowering.hpp"

#include <leat/error.hpp>

#include <algorithm>
#include <cassert>
#include <functional>
#include <numeric>
#include <tuple>

namespace leat::stages {
namespace {

// Less than that is given away rather than counted.
constexpr std::size_t ragged_bytes_little = std::size_t{4} << 20;

std::string missing_field(const datasets::dataset_model& dataset, std::uint16_t field, std::uint64_t sample) {
  std::string text = str_cat("no field '", dataset.fields()[field].name, "' in this sample; it has");
  datasets::part_list parts;
  dataset.parts(sample, parts);
  std::string_view separator = " ";
  for (const datasets::part& part : parts) {
    str_append(text, separator, dataset.fields()[part.field].name);
    separator = ", ";
  }
  return parts.empty() ? str_cat(text, " none") : text;
}

// Returns its number.
std::uint32_t add_read(batch_plan& plan, std::uint32_t row, const placed_part& first) {
  const auto number = static_cast<std::uint32_t>(plan.reads.size());
  plan.reads.push_back({.source = first.where.source,
                        .file = first.where.file,
                        .offset = first.where.offset,
                        .first_row = row,
                        .holder = number});
  return number;
}

void add_part_of(batch_plan& plan, std::uint32_t number, std::uint32_t row, const placed_part& part) {
  plan.parts.push_back({.row = row,
                        .read = number,
                        .program = part.program,
                        .offset = part.where.offset,
                        .bytes = part.where.stored_bytes});
}

// The same, and the read gets all of it.
void add_part(batch_plan& plan, std::uint32_t number, std::uint32_t row, const placed_part& part) {
  batch_plan::read& read = plan.reads[number];
  read.bytes = std::max(read.bytes, part.where.offset + part.where.stored_bytes - read.offset);
  add_part_of(plan, number, row, part);
}

bool are_one_place(const placed_part& a, const placed_part& b) {
  return a.where.source == b.where.source && a.where.file == b.where.file && a.where.offset == b.where.offset &&
         a.where.stored_bytes == b.where.stored_bytes;
}

bool lies_near(const batch_plan::read& read, std::uint64_t bytes, const placed_part& part,
               std::uint64_t gap_bytes_max = planner::gap_bytes_max) {
  return read.source == part.where.source && read.file == part.where.file && read.offset <= part.where.offset &&
         part.where.offset <= read.offset + bytes + gap_bytes_max;
}

// Room for the bytes up to `end`, in the lease where those of the read lie. A read inside another's room begins a page later than it does
// in the file (reader_stage::place_reads()).
void make_room(batch_plan& plan, std::uint32_t number, std::uint64_t end) {
  const bool is_inside = plan.reads[number].inside.has_value();
  batch_plan::read& room = plan.reads[plan.reads[number].inside.value_or(number)];
  const std::uint64_t bytes = io::aligned_bytes(room.offset, end - room.offset);
  room.lease_bytes = std::max(room.lease_bytes, bytes + (is_inside ? io::alignment_max_bytes : 0));
}

void extend(batch_plan::read& read, std::uint64_t end) { read.bytes = std::max(read.bytes, end - read.offset); }

// The last read gets the value's head, and what is wanted of the rest if that is near; else it becomes a read inside that one's room, which
// has place for the whole value. No page is read twice: the gap between the two is longer than one.
void add_pieces(batch_plan& plan, std::uint32_t row, const placed_part& part, std::uint32_t holder) {
  static_assert(planner::piece_gap_bytes_max >= io::alignment_max_bytes);
  const auto number = static_cast<std::uint32_t>(plan.reads.size() - 1);
  const std::uint64_t begin = part.where.offset + part.first;
  const std::uint64_t end = part.where.offset + part.end;
  const std::uint64_t head_end = part.where.offset + part.head_bytes;
  extend(plan.reads[number], head_end);
  if (begin <= head_end + part.gap_bytes_max) {
    extend(plan.reads[number], end);
  } else if (begin != end) {
    plan.reads.push_back({.source = part.where.source,
                          .file = part.where.file,
                          .offset = begin,
                          .bytes = end - begin,
                          .first_row = row,
                          .holder = holder,
                          .inside = number});
  }
  make_room(plan, static_cast<std::uint32_t>(plan.reads.size() - 1), part.where.offset + part.where.stored_bytes);
}

// The fields of a program of which the first that the sample has is read.
class fields_wanted {
 public:
  fields_wanted(const field_program& program, const pick& row, std::uint64_t seed,
                std::span<const datasets::part> parts)
      : all_(program.reads()) {
    const picking_facet* const picking = program.facets().picking;
    if (picking != nullptr) picked_ = picking->field_of(row, seed, parts);
  }
  [[nodiscard]] std::span<const std::uint16_t> in_order() const noexcept {
    return picked_ ? std::span<const std::uint16_t>(&*picked_, 1) : all_;
  }

 private:
  std::span<const std::uint16_t> all_;
  std::optional<std::uint16_t> picked_;
};

// All of the stored bytes of the one field that it reads.
bool takes_whole_values(const field_program& program) {
  const program_facets& facets = program.facets();
  return program.reads().size() == 1 && program.facts().crop == nullptr && facets.choosing == nullptr &&
         facets.fetching == nullptr && facets.picking == nullptr;
}

// Where values of a field lie that are one stored part each. Neighbours are asked for together, where the dataset can tell.
class stored_values {
 public:
  stored_values(const datasets::dataset_model& dataset, const datasets::value_runs* runs, const datasets::need& wanted)
      : dataset_(dataset), runs_(runs), wanted_(wanted) {}

  /// Null where it is something else, or nothing.
  [[nodiscard]] const extent* find(const pick& row) {
    if (row.sample - first_ >= run_.samples || row.epoch != wanted_.epoch) {
      first_ = row.sample;
      wanted_.draw = row.draw;
      wanted_.epoch = row.epoch;
      run_ = runs_ != nullptr ? runs_->run_from(row.sample, wanted_) : datasets::value_run();
      if (run_.samples == 0) return find_alone(row.sample);
    }
    here_ = run_.first;
    here_.offset += (row.sample - first_) * run_.step_bytes;
    return &here_;
  }

 private:
  // Where another draw of the sample may lie elsewhere.
  const extent* find_alone(std::uint64_t sample) {
    datasets::part_list parts;
    dataset_.parts(sample, {&wanted_, 1}, parts);
    if (parts.size() != 1 || parts.front().field != wanted_.field ||
        parts.front().form != datasets::part_form::stored || parts.front().where.stored_bytes == 0) {
      return nullptr;
    }
    here_ = parts.front().where;
    return &here_;
  }

  const datasets::dataset_model& dataset_;
  const datasets::value_runs* const runs_;
  datasets::need wanted_;
  datasets::value_run run_;
  std::uint64_t first_ = 0;  // sample of the run
  extent here_;
};

row_step step_of(datasets::part_form form) noexcept {
  switch (form) {
    case datasets::part_form::stored:
      return row_step::take;
    case datasets::part_form::awaited:
      return row_step::await;
    case datasets::part_form::value:
      return row_step::none;
    case datasets::part_form::box:
      return row_step::take_boxes;
    case datasets::part_form::coded:
      return row_step::expand;
    case datasets::part_form::produced:
      return row_step::produce;
  }
  return row_step::none;
}

}  // namespace

planner::planner(const datasets::dataset_model& dataset, std::span<const std::unique_ptr<field_program>> programs,
                 const batch_layout& layout, settings how)
    : dataset_(dataset),
      runs_(dynamic_cast<const datasets::value_runs*>(&dataset)),
      programs_(programs),
      layout_(layout),
      how_(how) {
  std::uint16_t output = 0;
  for (const auto& program : programs_) {
    straight_.push_back(reads_into_rows(dataset_, *program));
    picks_ = picks_ || program->facets().picking != nullptr;
    first_output_.push_back(output);
    output = static_cast<std::uint16_t>(output + program->outputs().size());
    for (const std::uint16_t field : program->reads()) {
      if (std::find(wanted_.begin(), wanted_.end(), field) != wanted_.end()) continue;
      wanted_.push_back(field);
      in_blocks_ = in_blocks_ || lower(dataset_, field).in_blocks;
    }
  }
  for (const std::uint16_t field : wanted_) {
    const bool all_of_it = std::any_of(programs_.begin(), programs_.end(), [&](const auto& program) {
      const auto reads = program->reads();
      return program->facts().crop == nullptr && std::find(reads.begin(), reads.end(), field) != reads.end();
    });
    if (all_of_it) needs_.push_back({.field = field, .seed = how.seed});
  }
  measure_ragged_outputs();
}

void planner::measure_ragged_outputs() {
  ragged_outputs_.clear();
  ragged_bytes_max_.clear();
  ragged_times_.clear();
  for (const auto& program : programs_) {
    std::size_t largest = 0;
    for (const std::uint16_t field : program->reads()) {
      largest = std::max<std::size_t>(largest, dataset_.fields()[field].bytes_max);
    }
    largest = std::min<std::size_t>(largest, value_bytes_max_);
    largest = std::min(largest, program->facts().encoded_bytes_max);
    const std::span<const output_spec> outputs = program->outputs();
    for (std::size_t o = 0; o < outputs.size(); ++o) {
      if (!outputs[o].ragged) continue;
      ragged_times_.push_back(how_.mosaics && is_tiled_ragged(*program, o) ? mosaic_ragged_times : 1);
      const std::size_t bytes = program->ragged_bytes(o, largest);
      ragged_outputs_.push_back(&outputs[o]);
      ragged_bytes_max_.push_back(outputs[o].is_padded() ? outputs[o].padded_bytes(bytes) : bytes);
    }
  }
}

void planner::leave_out_above(std::uint64_t value_bytes_max) {
  value_bytes_max_ = value_bytes_max;
  measure_ragged_outputs();
  if (ragged_outputs_.empty()) return;
  std::vector<std::size_t> largest(ragged_outputs_.size(), 0);
  std::vector<std::size_t> bytes(ragged_outputs_.size());
  for (std::uint64_t sample = 0; sample < dataset_.size(); ++sample) {
    std::fill(bytes.begin(), bytes.end(), 0);
    add_ragged_bytes(sample, bytes);
    for (std::size_t r = 0; r < bytes.size(); ++r) largest[r] = std::max(largest[r], bytes[r]);
  }
  for (std::size_t r = 0; r < largest.size(); ++r) {
    const output_spec& output = *ragged_outputs_[r];
    ragged_bytes_max_[r] = output.is_padded() ? output.padded_bytes(largest[r]) : largest[r];
  }
}

bool planner::is_too_large(std::uint16_t field, std::span<const datasets::part> parts) const noexcept {
  if (value_bytes_max_ == no_limit) return false;
  return std::any_of(parts.begin(), parts.end(), [&](const datasets::part& each) {
    return each.field == field && std::max(each.where.stored_bytes, each.where.decoded_bytes) > value_bytes_max_;
  });
}

void planner::draw(needs_of_row& needs, const pick& row) noexcept {
  for (datasets::need& each : needs) {
    each.draw = row.draw;
    each.epoch = row.epoch;
  }
}

void planner::places(const pick& row, std::vector<extent>& out) const {
  if (dataset_.defects() != 0 && dataset_.defect_of(row.sample)) return;
  const auto add = [&](const extent& where) {
    if (where.stored_bytes != 0) out.push_back(where);
  };
  needs_of_row needs(needs_.begin(), needs_.end());
  draw(needs, row);
  datasets::part_list parts;
  dataset_.parts(row.sample, needs, parts);
  std::vector<bool> picked(picks_ ? dataset_.fields().size() : 0);
  for (const auto& program : programs_) {
    if (!picks_) break;
    const fields_wanted wanted(*program, row, how_.seed, {parts.data(), parts.size()});
    for (const std::uint16_t field : wanted.in_order()) picked[field] = true;
  }
  for (const datasets::part& each : parts) {
    if (!picks_ || picked[each.field]) add(each.where);
  }
  for (const auto& program : programs_) {
    if (program->facts().crop == nullptr) continue;
    for (const std::uint16_t field : program->reads()) {
      parts.clear();
      parts_of_crop(row, *program, field, parts);
      for (const datasets::part& each : parts) add(place(each, *program, 0, row).where);
    }
  }
}

std::vector<std::size_t> planner::largest_ragged_batch() const {
  std::vector<std::size_t> sums = largest_ragged_rows();
  std::transform(sums.begin(), sums.end(), ragged_times_.begin(), sums.begin(), std::multiplies<>());
  return sums;
}

std::size_t planner::mosaic_bytes(std::span<const std::size_t> batch) const noexcept {
  std::size_t bytes = 0;
  for (std::size_t r = 0; r < batch.size(); ++r) {
    bytes += batch[r] / ragged_times_[r] * (ragged_times_[r] - 1);
  }
  return bytes;
}

std::vector<std::size_t> planner::largest_ragged_rows() const {
  const std::uint32_t rows = layout_.rows_max();
  std::vector<std::size_t> sums;
  for (std::size_t r = 0; r < ragged_bytes_max_.size(); ++r) {
    const output_spec& output = *ragged_outputs_[r];
    const std::size_t largest = ragged_bytes_max_[r];
    sums.push_back(output.of_batch_bytes != 0 ? output.of_batch_bytes
                   : output.is_padded()       ? bytes_of_rows(rows, largest, output.name)
                                              : rows * largest);
  }
  bool little = true;
  for (std::size_t r = 0; r < sums.size(); ++r) {
    little = little && (sums[r] <= ragged_bytes_little || is_of_longest(r));
  }
  if (little || how_.substitutes || how_.repeats) return sums;

  const bool all_are_read = value_bytes_max_ == no_limit;
  if (const datasets::sample_counts* const counted = dataset_.counts(); counted != nullptr && all_are_read) {
    std::size_t r = 0;
    for (const auto& program : programs_) {
      const std::span<const output_spec> outputs = program->outputs();
      for (std::size_t o = 0; o < outputs.size(); ++o) {
        if (!outputs[o].ragged) continue;
        const std::size_t here = r++;
        if (is_of_longest(here)) continue;
        // As ragged_bytes() says, whose results are rounded for each row.
        const std::uint64_t largest = counted->largest_bytes(program->reads(), rows);
        const bool is_exact = program->ragged_bytes(o, 1) == 1 && program->ragged_bytes(o, 2) == 2;
        const std::size_t rounding = is_exact ? 0 : rows * outputs[o].row_bytes();
        sums[here] = std::min(sums[here], program->ragged_bytes(o, largest) + rounding);
      }
    }
    return sums;
  }
  std::vector<std::vector<std::size_t>> largest(sums.size());  // heaps, the least of the largest in front
  std::vector<std::size_t> bytes(sums.size());
  for (std::uint64_t sample = 0; sample < dataset_.size(); ++sample) {
    std::fill(bytes.begin(), bytes.end(), 0);
    add_ragged_bytes(sample, bytes);
    for (std::size_t r = 0; r < sums.size(); ++r) {
      if (is_of_longest(r)) continue;
      std::vector<std::size_t>& heap = largest[r];
      if (heap.size() == rows) {
        if (bytes[r] <= heap.front()) continue;
        std::pop_heap(heap.begin(), heap.end(), std::greater<>());
        heap.pop_back();
      }
      heap.push_back(bytes[r]);
      std::push_heap(heap.begin(), heap.end(), std::greater<>());
    }
  }
  for (std::size_t r = 0; r < sums.size(); ++r) {
    if (!is_of_longest(r)) sums[r] = std::accumulate(largest[r].begin(), largest[r].end(), std::size_t{0});
  }
  return sums;
}

// What each ragged output takes of this sample at most: as plan_sample() chooses, without planning.
void planner::add_ragged_bytes(std::uint64_t sample, std::span<std::size_t> bytes) const {
  if (dataset_.defects() != 0 && dataset_.defect_of(sample)) return;
  datasets::part_list parts;
  dataset_.parts(sample, needs_, parts);
  std::size_t ragged = 0;
  for (const auto& program : programs_) {
    std::size_t taken = 0;
    for (const std::uint16_t field : program->reads()) {
      const auto is_of_field = [&](const datasets::part& part) { return part.field == field; };
      if (std::none_of(parts.begin(), parts.end(), is_of_field)) continue;
      if (is_too_large(field, {parts.data(), parts.size()})) return;  // corrupt
      taken = datasets::size_of_value(dataset_.fields()[field], field, parts).bytes;
      break;
    }
    taken = std::min(taken, program->facts().encoded_bytes_max);
    for (std::size_t o = 0; o < program->outputs().size(); ++o) {
      if (program->outputs()[o].ragged) bytes[ragged++] += program->ragged_bytes(o, taken);
    }
  }
}

void planner::begin(batch_plan& plan) const {
  assert(plan.rows() <= layout_.rows_max());
  if (how_.packed != nullptr) {
    assert(plan.pieces.size() == plan.rows());
    plan.packed_rows = how_.packed->rows(plan.epoch, plan.index);
  }
  plan.programs = programs_.size();
  plan.in_blocks = in_blocks_;
  plan.fields.assign(plan.rows() * programs_.size(), batch_plan::no_field);
  plan.steps.assign(plan.fields.size(), row_step::none);
  plan.ragged.assign(plan.rows() * layout_.ragged_count(), {});
  plan.buffers.assign(layout_.ragged_count(), {});
  plan.staging = layout_.fixed_bytes();
  plan.memory_bytes = plan.staging + layout_.staging_bytes();
  plan.parts.clear();
  plan.reads.clear();
  plan.blocks.clear();
  plan.block_uses.clear();
  plan.corrupt.clear();
}

void planner::plan_rows(batch_plan& plan, std::uint32_t first, std::uint32_t end) const {
  const range profiled(work_of::plan);
  assert(in_steps() || (first == 0 && end == plan.rows()));
  needs_of_row needs(needs_.begin(), needs_.end());
  planned_before before(programs_.size());
  absl::InlinedVector<std::size_t, 2> needed;
  std::uint32_t row = first;
  // Short values in order, as windows of tokens, cost more to plan than to read: of what plan_row() looks for there is nothing.
  if (programs_.size() == 1 && takes_whole_values(*programs_.front()) && !straight_.front() && plan.buffers.empty() &&
      dataset_.defects() == 0 && value_bytes_max_ == no_limit) {
    const std::uint16_t field = programs_.front()->reads().front();
    stored_values values(dataset_, runs_, {.field = field, .seed = how_.seed});
    std::uint32_t& known = before.reads.leased;
    for (; row < end; ++row) {
      if (!plan.held.empty() && plan.held[row]) continue;
      const extent* const where = values.find(plan.picks[row]);
      if (where == nullptr) break;
      const placed_part placed{.where = *where};
      plan.fields[row] = field;
      plan.steps[row] = row_step::take;
      if (!join(plan, row, {&placed, 1}, known)) known = add_leased_reads(plan, row, {&placed, 1});
    }
  }
  for (; row < end; ++row) {
    if (!plan.held.empty() && plan.held[row]) continue;
    needed.assign(plan.buffers.size(), 0);
    plan_row(plan, row, plan.picks[row], needs, {needed.data(), needed.size()}, before);
    for (std::size_t r = 0; r < plan.buffers.size(); ++r) {
      // Whoever takes the row of a corrupt sample may be larger than it.
      const bool may_grow = how_.substitutes && !ragged_outputs_[r]->is_padded();
      batch_plan::ragged_row& place = plan.ragged[row * plan.buffers.size() + r];
      place = {.offset = plan.buffers[r].bytes, .capacity = may_grow ? ragged_bytes_max_[r] : needed[r]};
      plan.buffers[r].bytes += place.capacity;
    }
  }
  for (std::size_t r = 0; r < plan.buffers.size(); ++r) {
    if (ragged_outputs_[r]->is_padded()) place_padded_rows(plan, r);
    if (ragged_outputs_[r]->is_packed()) {
      place_pieces(plan, r);
      continue;
    }
    if (ragged_outputs_[r]->of_batch_bytes != 0) plan.buffers[r].bytes = ragged_outputs_[r]->of_batch_bytes;
    plan.buffers[r].bytes *= ragged_times_[r];
  }

  if (plan.buffers.empty()) return;  // As begin() has said: rows of earlier steps are being decoded.
  std::size_t offset = layout_.fixed_bytes();
  for (const bool hidden : {false, true}) {  // What a device needs is in front.
    for (std::size_t r = 0; r < plan.buffers.size(); ++r) {
      if (ragged_outputs_[r]->hidden != hidden) continue;
      plan.buffers[r].offset = offset;
      offset += align_tensor(plan.buffers[r].bytes);
    }
  }
  plan.staging = offset;
  plan.memory_bytes = offset + layout_.staging_bytes();
}

// Their capacities are what they need. Where no row of the batch can be read as it was planned, a substitute may be any sample.
void planner::place_padded_rows(batch_plan& plan, std::size_t ragged) const {
  batch_plan::ragged_buffer& buffer = plan.buffers[ragged];
  std::size_t longest = 0;
  for (std::uint32_t row = 0; row < plan.rows(); ++row) {
    longest = std::max(longest, plan.ragged[row * plan.buffers.size() + ragged].capacity);
  }
  const bool none = how_.substitutes && plan.corrupt.size() == plan.rows();
  buffer.row_bytes = none ? ragged_bytes_max_[ragged] : ragged_outputs_[ragged]->padded_bytes(longest);
  buffer.bytes = plan.rows() * buffer.row_bytes;
  for (std::uint32_t row = 0; row < plan.rows(); ++row) {
    plan.ragged[row * plan.buffers.size() + ragged] = {.offset = row * buffer.row_bytes, .capacity = buffer.row_bytes};
  }
}

// The tensor is packed rows, and decode() writes each piece where it stays.
void planner::place_pieces(batch_plan& plan, std::size_t ragged) const {
  const output_spec& output = *ragged_outputs_[ragged];
  const std::size_t element = size_bytes(output.type);
  plan.buffers[ragged].bytes = plan.packed_rows * output.packed_tokens * element;
  for (std::uint32_t row = 0; row < plan.rows(); ++row) {
    const packed_piece& piece = plan.pieces[row];
    plan.ragged[row * plan.buffers.size() + ragged] = {
        .offset = (piece.row * output.packed_tokens + piece.offset) * element, .capacity = piece.count * element};
  }
  plan.pieces = {};  // Only one program has such an output; the memory is not kept.
}

void planner::plan_substitute(batch_plan& plan, std::uint32_t row, const pick& substitute) const {
  assert(how_.substitutes);
  plan_alone(plan, row, substitute);
}

void planner::plan_again(batch_plan& plan, std::uint32_t row) const {
  assert(plan.held[row] && plan.buffers.empty());
  plan.held[row] = false;
  plan_alone(plan, row, plan.picks[row]);
}

void planner::plan_alone(batch_plan& plan, std::uint32_t row, const pick& of) const {
  absl::InlinedVector<std::size_t, 2> needed(layout_.ragged_count(), 0);
  planned_before nothing(programs_.size());  // The reads of its neighbours are over.
  needs_of_row needs(needs_.begin(), needs_.end());
  plan_row(plan, row, of, needs, {needed.data(), needed.size()}, nothing);
}

// The row's parts become reads and the room of its ragged outputs is known, or the sample is corrupt before a byte of
// it was read. `ragged_bytes` gets what each ragged output takes at most.
void planner::plan_row(batch_plan& plan, std::uint32_t number, const pick& row, needs_of_row& needs,
                       std::span<std::size_t> ragged_bytes, planned_before& before) const {
  const std::span<std::uint16_t> fields = std::span(plan.fields).subspan(number * programs_.size(), programs_.size());
  std::fill(fields.begin(), fields.end(), batch_plan::no_field);
  const auto corrupt = [&](std::string reason, corrupt_kind kind, std::uint16_t field = batch_plan::no_field) {
    plan.corrupt.push_back({.row = number, .field = field, .reason = std::move(reason), .kind = kind});
  };
  const auto corrupt_over_budget = [&](std::uint16_t field, std::span<const datasets::part> of_row) {
    std::uint64_t bytes = 0;
    for (const datasets::part& each : of_row) {
      if (each.field == field) bytes = std::max({bytes, each.where.stored_bytes, each.where.decoded_bytes});
    }
    corrupt(str_cat(dataset_.fields()[field].name, ": takes ", bytes_text(bytes, rounding::up), ", and the budget has ",
                    bytes_text(value_bytes_max_), " for a value, a quarter; host_bytes_max of ",
                    bytes_text(4 * bytes, rounding::up), " would do"),
            corrupt_kinds::over_budget, field);
    plan.corrupt.back().bytes_needed = bytes;
  };

  draw(needs, row);
  datasets::part_list parts;
  if (dataset_.defects() != 0) {
    if (const auto defect = dataset_.defect_of(row.sample)) return corrupt(defect->reason, defect->kind);
  }
  dataset_.parts(row.sample, needs, parts);

  absl::InlinedVector<placed_part, 4> placed;
  std::size_t output = 0;
  for (std::size_t p = 0; p < programs_.size(); ++p) {
    const field_program& program = *programs_[p];
    std::uint64_t bytes = 0;
    std::uint16_t& chosen = fields[p];
    const fields_wanted wanted(program, row, how_.seed, {parts.data(), parts.size()});
    for (const std::uint16_t field : wanted.in_order()) {
      const auto number_of_program = static_cast<std::uint16_t>(p);
      std::span<const datasets::part> of_row(parts.data(), parts.size());
      datasets::part_list cropped;
      if (program.facts().crop != nullptr) {
        parts_of_crop(row, program, field, cropped);
        of_row = {cropped.data(), cropped.size()};
      }
      const auto first = std::find_if(of_row.begin(), of_row.end(),
                                      [field](const datasets::part& part) { return part.field == field; });
      if (first == of_row.end()) continue;
      if (is_too_large(field, of_row)) return corrupt_over_budget(field, of_row);
      chosen = field;
      plan.steps[number * programs_.size() + p] = step_of(first->form);
      bytes = datasets::size_of_value(dataset_.fields()[field], field, of_row).bytes;
      if (first->is_in_block()) {
        add_block_uses(plan, number, of_row, field, number_of_program, before);
        break;
      }
      if (std::any_of(first + 1, of_row.end(), [field](const datasets::part& part) { return part.field == field; })) {
        return corrupt(
            str_cat("field '", dataset_.fields()[field].name, "' lies in several pieces, which cannot be joined yet"),
            corrupt_kinds::unsupported, field);
      }
      const fetching_facet* const fetching = program.facets().fetching;
      if (fetching != nullptr && !first->is_made() && fetching->fetches(row.sample)) {
        plan.steps[number * programs_.size() + p] = row_step::none;
        break;
      }
      // Nothing is read of what is made, and of an empty member: decode sees it as it is.
      if (first->where.stored_bytes != 0) placed.push_back(place(*first, program, number_of_program, row));
      break;
    }
    if (chosen == batch_plan::no_field && program.required()) {
      return corrupt(missing_field(dataset_, wanted.in_order().front(), row.sample), corrupt_kinds::incomplete);
    }
    bytes = std::min<std::uint64_t>(bytes, program.facts().encoded_bytes_max);
    for (std::size_t o = 0; o < program.outputs().size(); ++o, ++output) {
      const batch_layout::output_place& place = layout_.outputs()[output];
      if (place.spec.ragged) ragged_bytes[place.ragged_index] = program.ragged_bytes(o, bytes);
    }
  }
  settle_pieces({placed.data(), placed.size()});
  add_reads(plan, number, {placed.data(), placed.size()}, before.reads);
}

// No more of it than the program looks at. Values of which several fit in a read are joined to their neighbours instead of being read in
// pieces.
placed_part planner::place(const datasets::part& part, const field_program& program, std::uint16_t number,
                           const pick& row) const {
  placed_part placed{.where = part.where, .program = number};
  if (part.form != datasets::part_form::stored) return placed;
  const wanted_bytes wanted = program.bytes_wanted(part, how_.seed, row.epoch, row.draw);
  if (wanted.head_bytes == 0) {
    placed.where.offset += wanted.first;
    placed.where.stored_bytes = placed.where.decoded_bytes = wanted.end - wanted.first;
    return placed;
  }
  if (how_.in_order && part.where.stored_bytes <= joined_bytes_max / 2) return placed;
  placed.head_bytes = wanted.head_bytes;
  placed.first = wanted.first;
  placed.end = wanted.end;
  const bool is_drive = dataset_.sources()[part.where.source]->is_read_by_the_loop();
  placed.gap_bytes_max = is_drive ? piece_gap_bytes_max : piece_gap_bytes_max_elsewhere;
  return placed;
}

// Of a value that several programs read, each gets what all of them want. Where that is nearly all, it is read whole.
void planner::settle_pieces(std::span<placed_part> parts) {
  for (placed_part& part : parts) {
    if (!part.in_pieces()) continue;
    bool whole = false;
    for (const placed_part& other : parts) {
      if (!are_one_place(part, other)) continue;
      whole = whole || !other.in_pieces();
      if (whole || other.first == other.end) continue;
      const bool is_first = part.first == part.end;
      part.first = is_first ? other.first : std::min(part.first, other.first);
      part.end = is_first ? other.end : std::max(part.end, other.end);
    }
    const bool has_head = part.first <= part.head_bytes + part.gap_bytes_max;
    if (whole || (has_head && part.end + piece_gap_bytes_max >= part.where.stored_bytes)) part.head_bytes = 0;
  }
}

void planner::parts_of_crop(const pick& row, const field_program& program, std::uint16_t field,
                            datasets::part_list& out) const {
  const datasets::box box = program.facts().crop->box_of(how_.seed, row.epoch, row.draw);
  const datasets::need wanted{.field = field, .seed = how_.seed, .draw = row.draw, .epoch = row.epoch, .within = &box};
  dataset_.parts(row.sample, {&wanted, 1}, out);
}

void planner::add_block_uses(batch_plan& plan, std::uint32_t row, std::span<const datasets::part> parts,
                             std::uint16_t field, std::uint16_t program, planned_before& before) const {
  for (const datasets::part& part : parts) {
    if (part.field != field) continue;
    const extent& where = part.where;
    const auto next = static_cast<std::uint32_t>(plan.blocks.size());
    const auto [known, is_new] =
        before.blocks.try_emplace({part.codec, where.source, where.file, where.offset, part.block}, next);
    if (is_new) {
      plan.blocks.push_back({.source = where.source,
                             .file = where.file,
                             .offset = where.offset,
                             .bytes = where.stored_bytes,
                             .decoded_bytes = where.decoded_bytes,
                             .number = part.block,
                             .codec = part.codec,
                             .field = field,
                             .form = part.form,
                             .whole_row = part.whole,
                             .first_row = row});
    }
    plan.block_uses.push_back(
        {.block = known->second, .row = row, .program = program, .staged = layout_.staging_of(program).row_bytes != 0});
  }
}

// Parts that lie near each other in a file become one read: those of a sample, and, where samples come in the dataset's
// order, those of samples in neighbouring rows that need no other.
void planner::add_reads(batch_plan& plan, std::uint32_t row, std::span<placed_part> parts, joinable& before) const {
  // A part of another size than the row is left to the field, which will say what is wrong.
  const auto leased = std::partition(parts.begin(), parts.end(), [&](const placed_part& part) {
    return straight_[part.program] && part.where.stored_bytes == place_of(part.program).row_bytes;
  });
  const auto serve = [&](const placed_part& part, auto last) {
    const auto same =
        std::find_if(parts.begin(), last, [&](const placed_part& each) { return are_one_place(each, part); });
    if (same == last) return false;
    add_part(plan, before.straight[same->program], row, part);
    return true;
  };
  for (auto part = parts.begin(); part != leased; ++part) {
    if (!serve(*part, part)) add_straight_read(plan, row, *part, before);
  }

  // What is read to one program's row serves the others from there.
  const auto rest = std::partition(leased, parts.end(), [&](const placed_part& part) { return serve(part, leased); });
  std::sort(rest, parts.end(), [](const placed_part& a, const placed_part& b) {
    return std::tie(a.where.source, a.where.file, a.where.offset) <
           std::tie(b.where.source, b.where.file, b.where.offset);
  });
  parts = parts.subspan(static_cast<std::size_t>(rest - parts.begin()));

  before.leased = join(plan, row, parts, before.leased) ? before.leased : add_leased_reads(plan, row, parts);
}

// Returns the read that serves the row where it is the only one.
std::uint32_t planner::add_leased_reads(batch_plan& plan, std::uint32_t row, std::span<const placed_part> parts) {
  const auto first = static_cast<std::uint32_t>(plan.reads.size());
  const placed_part* in_pieces = nullptr;  // the last such part, and the read of its head
  std::uint32_t head = 0;
  for (const placed_part& part : parts) {
    if (in_pieces != nullptr && are_one_place(*in_pieces, part)) {
      add_part_of(plan, head, row, part);
      continue;
    }
    // Room for gaps between members is in the memory plan for gap_bytes_max; between a value's pieces the value itself has it.
    const std::uint64_t gap = in_pieces != nullptr ? std::min(in_pieces->gap_bytes_max, gap_bytes_max)
                              : part.in_pieces()   ? std::min(part.gap_bytes_max, gap_bytes_max)
                                                   : gap_bytes_max;
    const bool joins = plan.reads.size() != first && !(in_pieces != nullptr && part.in_pieces()) &&
                       lies_near(plan.reads.back(), plan.reads.back().bytes, part, gap);
    if (!joins) plan.reads[add_read(plan, row, part)].holder = first;
    const auto number = static_cast<std::uint32_t>(plan.reads.size() - 1);
    if (part.in_pieces()) {
      in_pieces = &part;
      head = number;
      add_part_of(plan, number, row, part);
      add_pieces(plan, row, part, first);
    } else {
      add_part(plan, number, row, part);
      make_room(plan, number, plan.reads[number].offset + plan.reads[number].bytes);
    }
  }
  return plan.reads.size() == first + 1 && in_pieces == nullptr ? first : joinable::none;
}

// Has the read of the row before serve this one too, if it can. The lease has room for each row by itself: if the read
// fails they are read one by one.
bool planner::join(batch_plan& plan, std::uint32_t row, std::span<const placed_part> parts,
                   std::uint32_t number) const {
  if (!how_.in_order || parts.empty() || number == joinable::none) return false;
  if (std::any_of(parts.begin(), parts.end(), [](const placed_part& each) { return each.in_pieces(); })) {
    return false;
  }
  batch_plan::read& read = plan.reads[number];
  if (read.first_row + read.rows != row)
    return false;  // A row between them is corrupt as planned, and waits for nothing.
  std::uint64_t end = read.offset + read.bytes;
  for (const placed_part& part : parts) {
    if (!lies_near(read, end - read.offset, part)) return false;
    end = std::max(end, part.where.offset + part.where.stored_bytes);
  }
  const std::uint64_t first = parts.front().where.offset;
  const std::uint64_t lease_bytes = std::max(read.lease_bytes + io::aligned_bytes(first, end - first),
                                             io::aligned_bytes(read.offset, end - read.offset));
  if (lease_bytes > joined_bytes_max) return false;

  read.lease_bytes = lease_bytes;
  ++read.rows;
  for (const placed_part& part : parts) add_part(plan, number, row, part);
  return true;
}

void planner::add_straight_read(batch_plan& plan, std::uint32_t row, const placed_part& part, joinable& before) const {
  std::uint32_t& known = before.straight[part.program];
  if (known != joinable::none) {
    batch_plan::read& read = plan.reads[known];
    const bool follows = read.source == part.where.source && read.file == part.where.file &&
                         read.offset + read.bytes == part.where.offset && read.first_row + read.rows == row;
    if (follows && read.bytes + part.where.stored_bytes <= joined_rows_bytes_max) {
      add_part(plan, known, row, part);
      ++read.rows;
      return;
    }
  }
  known = add_read(plan, row, part);
  const batch_layout::output_place& place = place_of(part.program);
  plan.reads[known].direct_to_row = place.offset + row * place.row_bytes;
  add_part(plan, known, row, part);
}

}  // namespace leat::stages
