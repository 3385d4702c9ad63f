#include "stages/plan.hpp"

#include "io/source.hpp"
#include "io/text.hpp"
#include "stages/range.hpp"

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

void mark_corrupt(sample_slot& slot, std::string reason) {
  slot.corrupt = true;
  slot.in_trouble().reason = std::move(reason);
}

std::string missing_field(const datasets::dataset_model& dataset, const field_program& program, std::uint64_t sample) {
  std::string text =
      io::str_cat("no field '", dataset.fields()[program.reads().front()].name, "' in this sample; it has");
  datasets::part_list parts;
  dataset.parts(sample, parts);
  std::string_view separator = " ";
  for (const datasets::part& part : parts) {
    io::str_append(text, separator, dataset.fields()[part.field].name);
    separator = ", ";
  }
  return parts.empty() ? io::str_cat(text, " none") : text;
}

read_slot& new_read(batch_in_flight& batch, sample_slot& slot, const placed_part& first) {
  const std::uint32_t index = batch.add_read();
  slot.reads.push_back(index);
  ++slot.reads_missing;
  read_slot& read = batch.reads[index];
  read.owner = &batch;
  read.source = first.where.source;
  read.file = first.where.file;
  read.offset = first.where.offset;
  read.bytes = 0;
  read.data = {};
  read.failure = 0;
  read.straight_to.reset();
  read.lease_bytes = 0;
  read.row_by_row = false;
  read.rows_settled = 0;
  read.parts.clear();
  read.rows.clear();
  read.rows.push_back(slot.row);
  read.rows_left.store(1, std::memory_order_relaxed);
  read.holder = index;
  read.users.store(0, std::memory_order_relaxed);
  return read;
}

void add_part(read_slot& read, std::uint32_t row, const placed_part& part) {
  read.bytes = std::max(read.bytes, part.where.offset + part.where.stored_bytes - read.offset);
  read.parts.push_back({row, part.program, part.where.offset, part.where.stored_bytes});
}

bool are_one_place(const placed_part& a, const placed_part& b) {
  return a.where.source == b.where.source && a.where.file == b.where.file && a.where.offset == b.where.offset &&
         a.where.stored_bytes == b.where.stored_bytes;
}

bool lies_near(const read_slot& read, std::uint64_t bytes, const placed_part& part) {
  return read.source == part.where.source && read.file == part.where.file && read.offset <= part.where.offset &&
         part.where.offset <= read.offset + bytes + planner::gap_bytes_max;
}

}  // namespace

bool reads_into_rows(const datasets::dataset_model& dataset, const field_program& program) {
  if (!program.verbatim() || program.reads().empty()) return false;
  const std::size_t row_bytes = program.outputs().front().row_bytes();
  const auto reads = program.reads();
  return std::all_of(reads.begin(), reads.end(), [&](std::uint16_t field) {
    const field_info& info = dataset.fields()[field];
    return dataset.origin(field) == datasets::field_origin::extents && info.alignment == io::alignment_max_bytes &&
           info.bytes_max == row_bytes && row_bytes % io::alignment_max_bytes == 0;
  });
}

planner::planner(const datasets::dataset_model& dataset, std::span<const std::unique_ptr<field_program>> programs,
                 const batch_layout& layout, settings how)
    : dataset_(dataset), programs_(programs), layout_(layout), how_(how) {
  std::uint16_t outputs = 0;
  for (const auto& program : programs_) {
    straight_.push_back(reads_into_rows(dataset_, *program));
    first_output_.push_back(outputs);
    outputs = static_cast<std::uint16_t>(outputs + program->outputs().size());
    for (const std::uint16_t field : program->reads()) {
      if (std::find(wanted_.begin(), wanted_.end(), field) != wanted_.end()) continue;
      wanted_.push_back(field);
      if (dataset_.origin(field) == datasets::field_origin::extents) {
        needs_.push_back({.field = field, .seed = how.seed});
      }
    }
  }
  for (const auto& program : programs_) {
    std::size_t largest = 0;
    for (const std::uint16_t field : program->reads()) {
      largest = std::max<std::size_t>(largest, dataset_.fields()[field].bytes_max);
    }
    for (const output_spec& output : program->outputs()) {
      if (output.ragged) ragged_bytes_max_.push_back(largest);
    }
  }
}

std::vector<std::size_t> planner::largest_ragged_batch() const {
  const std::size_t rows = layout_.rows_max();
  std::vector<std::size_t> sums;
  for (const std::size_t largest : ragged_bytes_max_) sums.push_back(rows * largest);
  const bool little = std::all_of(sums.begin(), sums.end(), [](std::size_t sum) { return sum <= ragged_bytes_little; });
  if (little || how_.substitutes || how_.repeats) return sums;

  std::vector<std::vector<std::size_t>> largest(sums.size());  // heaps, the least of the largest in front
  std::vector<std::size_t> bytes(sums.size());
  for (std::uint64_t sample = 0; sample < dataset_.size(); ++sample) {
    std::fill(bytes.begin(), bytes.end(), 0);
    add_ragged_bytes(sample, bytes);
    for (std::size_t r = 0; r < sums.size(); ++r) {
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
    sums[r] = std::accumulate(largest[r].begin(), largest[r].end(), std::size_t{0});
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
      bool found = false;
      if (dataset_.origin(field) != datasets::field_origin::extents) {
        found = dataset_.makes(sample, field);
        if (found) taken = dataset_.fields()[field].bytes_max;
      }
      for (const datasets::part& part : parts) {
        if (part.field != field) continue;
        found = true;
        taken += part.where.decoded_bytes;
      }
      if (found) break;
    }
    for (const output_spec& output : program->outputs()) {
      if (output.ragged) bytes[ragged++] += taken;
    }
  }
}

void planner::begin_batch(batch_in_flight& batch) const {
  batch.rows = static_cast<std::uint32_t>(batch.picks.size());
  assert(batch.rows <= layout_.rows_max());
  // Later rows are planned while earlier ones are read and decoded.
  batch.reads.reserve(batch.rows * programs_.size());
  batch.reads_used = 0;
  batch.reads_idle.store(0, std::memory_order_relaxed);
  batch.next_read = 0;
  while (batch.samples.size() < batch.rows) batch.samples.emplace_back();
  batch.encoded.assign(batch.rows * programs_.size(), {});
  batch.chosen.assign(batch.rows * programs_.size(), batch_in_flight::no_field);
  batch.ragged_capacity.assign(layout_.ragged_count(), 0);
  batch.ragged_offset.assign(layout_.ragged_count(), 0);
  batch.ragged.assign(batch.rows * layout_.ragged_count(), {});
}

void planner::plan_rows(batch_in_flight& batch, std::uint32_t first, std::uint32_t end) const {
  const range profiled(work_of::plan);
  assert(in_steps() || (first == 0 && end == batch.rows));
  needs_of_row needs(needs_.begin(), needs_.end());
  joinable before(programs_.size());
  std::vector<std::size_t>& used = batch.ragged_capacity;
  absl::InlinedVector<std::size_t, 2> needed;
  for (std::uint32_t row = first; row < end; ++row) {
    sample_slot& slot = batch.samples[row];
    slot.owner = &batch;
    slot.row = row;
    slot.trouble.reset();
    needed.assign(used.size(), 0);
    plan_sample(batch, slot, needs, {needed.data(), needed.size()}, before);
    const std::span<ragged_row> ragged = batch.ragged_of(row);
    for (std::size_t r = 0; r < used.size(); ++r) {
      // Whoever takes the row of a corrupt sample may be larger than it.
      ragged[r] = {.offset = used[r], .capacity = how_.substitutes ? ragged_bytes_max_[r] : needed[r]};
      used[r] += ragged[r].capacity;
    }
  }

  std::size_t offset = layout_.fixed_bytes();
  for (std::size_t r = 0; r < used.size(); ++r) {
    batch.ragged_offset[r] = offset;
    offset += align_tensor(used[r]);
  }
}

void planner::plan_substitute(batch_in_flight& batch, std::uint32_t row, const pick& substitute) const {
  assert(how_.substitutes);
  sample_slot& slot = batch.samples[row];
  slot.in_trouble().substitute = substitute;
  absl::InlinedVector<std::size_t, 2> needed(layout_.ragged_count(), 0);
  joinable nothing(programs_.size());  // The reads of its neighbours are over.
  needs_of_row needs(needs_.begin(), needs_.end());
  plan_sample(batch, slot, needs, {needed.data(), needed.size()}, nothing);
}

// The row's parts become reads and the room of its ragged outputs is known, or the sample is corrupt before a byte of
// it was read. `ragged_bytes` gets what each ragged output takes at most.
void planner::plan_sample(batch_in_flight& batch, sample_slot& slot, needs_of_row& needs,
                          std::span<std::size_t> ragged_bytes, joinable& before) const {
  slot.corrupt = false;
  if (slot.trouble != nullptr) {
    slot.trouble->failure = nullptr;
    slot.trouble->reason.clear();
    slot.trouble->read_failure = 0;
    slot.trouble->field_at_fault = batch_in_flight::no_field;
    slot.trouble->over_budget = false;
  }
  slot.reads.clear();
  slot.fetched.reset();
  slot.reads_missing = 0;
  slot.read_into = false;
  const std::size_t first = slot.row * programs_.size();
  for (std::size_t p = 0; p < programs_.size(); ++p) {
    batch.encoded[first + p] = {};
    batch.chosen[first + p] = batch_in_flight::no_field;
  }

  const pick row = slot.pick();
  for (datasets::need& each : needs) {
    each.draw = row.draw;
    each.epoch = row.epoch;
  }
  datasets::part_list parts;
  if (dataset_.defects() != 0) {
    if (const auto defect = dataset_.defect_of(row.sample)) return mark_corrupt(slot, defect->reason);
  }
  dataset_.parts(row.sample, needs, parts);

  absl::InlinedVector<placed_part, 4> placed;
  std::size_t output = 0;
  for (std::size_t p = 0; p < programs_.size(); ++p) {
    const field_program& program = *programs_[p];
    std::uint64_t bytes = 0;
    std::uint16_t& chosen = batch.chosen[first + p];
    for (const std::uint16_t field : program.reads()) {
      if (dataset_.origin(field) != datasets::field_origin::extents) {
        if (!dataset_.makes(row.sample, field)) continue;
        bytes = dataset_.fields()[field].bytes_max;
        chosen = field;
        break;
      }
      for (const datasets::part& part : parts) {
        if (part.field != field) continue;
        if (chosen == field) {
          slot.in_trouble().field_at_fault = field;
          return mark_corrupt(slot, io::str_cat("field '", dataset_.fields()[field].name,
                                                "' lies in several pieces, which cannot be joined yet"));
        }
        chosen = field;
        bytes = part.where.decoded_bytes;
        // Nothing to read of an empty member: decode sees it as it is.
        if (part.where.stored_bytes != 0) placed.push_back({part.where, static_cast<std::uint16_t>(p)});
      }
      if (chosen == field) break;
    }
    if (chosen == batch_in_flight::no_field && program.required(row.sample))
      return mark_corrupt(slot, missing_field(dataset_, program, row.sample));
    for (std::size_t o = 0; o < program.outputs().size(); ++o, ++output) {
      const batch_layout::slot& place = layout_.slots()[output];
      if (place.spec.ragged) ragged_bytes[place.ragged_index] = bytes;
    }
  }
  add_reads(batch, slot, {placed.data(), placed.size()}, before);
}

// Parts that lie near each other in a file become one read: those of a sample, and, where samples come in the dataset's
// order, those of samples in neighbouring rows that need no other.
void planner::add_reads(batch_in_flight& batch, sample_slot& slot, std::span<placed_part> parts,
                        joinable& before) const {
  // A part of another size than the row is left to the field, which will say what is wrong.
  const auto leased = std::partition(parts.begin(), parts.end(), [&](const placed_part& part) {
    return straight_[part.program] && part.where.stored_bytes == place_of(part.program).row_bytes;
  });
  std::size_t read_into = 0;
  const auto serve = [&](const placed_part& part, auto last) {
    const auto same =
        std::find_if(parts.begin(), last, [&](const placed_part& each) { return are_one_place(each, part); });
    if (same == last) return false;
    add_part(batch.reads[before.straight[same->program]], slot.row, part);
    return true;
  };
  for (auto part = parts.begin(); part != leased; ++part) {
    if (serve(*part, part)) continue;
    add_straight_read(batch, slot, *part, before);
    ++read_into;
  }
  slot.read_into = read_into == programs_.size();

  // What is read to one program's row serves the others from there.
  const auto rest = std::partition(leased, parts.end(), [&](const placed_part& part) { return serve(part, leased); });
  std::sort(rest, parts.end(), [](const placed_part& a, const placed_part& b) {
    return std::tie(a.where.source, a.where.file, a.where.offset) <
           std::tie(b.where.source, b.where.file, b.where.offset);
  });
  parts = parts.subspan(static_cast<std::size_t>(rest - parts.begin()));

  before.leased = join(batch, slot, parts, before.leased) ? before.leased : add_leased_reads(batch, slot, parts);
}

// Returns the read that serves the row where it is the only one.
std::uint32_t planner::add_leased_reads(batch_in_flight& batch, sample_slot& slot, std::span<const placed_part> parts) {
  read_slot* read = nullptr;
  std::uint32_t reads = 0;
  std::uint32_t holder = joinable::none;
  for (const placed_part& part : parts) {
    if (read == nullptr || !lies_near(*read, read->bytes, part)) {
      read = &new_read(batch, slot, part);
      if (reads++ == 0) holder = read->holder;
      read->holder = holder;
      batch.reads[holder].users.fetch_add(1, std::memory_order_relaxed);
    }
    add_part(*read, slot.row, part);
    read->lease_bytes = io::aligned_bytes(read->offset, read->bytes);
  }
  return reads == 1 ? holder : joinable::none;
}

// Has the read of the row before serve this one too, if it can. The lease has room for each row by itself: if the read
// fails they are read one by one.
bool planner::join(batch_in_flight& batch, sample_slot& slot, std::span<const placed_part> parts,
                   std::uint32_t index) const {
  if (!how_.in_order || parts.empty() || index == joinable::none) return false;
  read_slot& read = batch.reads[index];
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
  read.rows.push_back(slot.row);
  read.rows_left.fetch_add(1, std::memory_order_relaxed);
  read.users.fetch_add(1, std::memory_order_relaxed);
  slot.reads.push_back(index);
  ++slot.reads_missing;
  for (const placed_part& part : parts) add_part(read, slot.row, part);
  return true;
}

void planner::add_straight_read(batch_in_flight& batch, sample_slot& slot, const placed_part& part,
                                joinable& before) const {
  std::uint32_t& known = before.straight[part.program];
  if (known != joinable::none) {
    read_slot& read = batch.reads[known];
    const bool follows = read.source == part.where.source && read.file == part.where.file &&
                         read.offset + read.bytes == part.where.offset && read.rows.back() + 1 == slot.row;
    if (follows && read.bytes + part.where.stored_bytes <= joined_rows_bytes_max) {
      add_part(read, slot.row, part);
      read.rows.push_back(slot.row);
      read.rows_left.fetch_add(1, std::memory_order_relaxed);
      slot.reads.push_back(known);
      ++slot.reads_missing;
      return;
    }
  }
  read_slot& read = new_read(batch, slot, part);
  known = read.holder;
  const batch_layout::slot& place = place_of(part.program);
  read.straight_to = place.offset + slot.row * place.row_bytes;
  add_part(read, slot.row, part);
}

}  // namespace leat::stages
