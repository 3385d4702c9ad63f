#include "stages/run/batch_in_flight.hpp"

#include <algorithm>
#include <utility>

namespace leat::stages {

void read_in_flight::begin(batch_in_flight& batch, const batch_plan::read& planned, std::uint32_t held_by) {
  owner = &batch;
  source = planned.source;
  file = planned.file;
  offset = planned.offset;
  bytes = planned.bytes;
  data = {};
  failure = 0;
  holder = held_by;
  direct_to_row = planned.direct_to_row;
  lease_bytes = planned.lease_bytes;
  inside.reset();
  first_row = planned.first_row;
  rows = planned.rows;
  parts.resize(0);  // clear() would give its memory back
  row_by_row = false;
  rows_settled = 0;
  rows_left.store(planned.rows, std::memory_order_relaxed);
  users.store(planned.direct_to_row ? 0 : planned.rows, std::memory_order_relaxed);
}

void block_in_flight::begin(batch_in_flight& batch, const batch_plan::block& planned) {
  owner = &batch;
  of = planned;
  source = planned.source;
  file = planned.file;
  offset = planned.offset;
  bytes = planned.bytes;
  data = {};
  failure = 0;
  uses.clear();
  memory = {};
  decoded = {};
  damaged = false;
  faults.clear();
  reason.clear();
  kind = {};
  unreadable = false;
  shared.reset();
  expands_shared = false;
}

datasets::part block_in_flight::part() const noexcept {
  return {.field = of.field,
          .form = of.form,
          .codec = of.codec,
          .where = {.source = of.source,
                    .file = of.file,
                    .offset = of.offset,
                    .stored_bytes = of.bytes,
                    .decoded_bytes = of.decoded_bytes},
          .block = of.number};
}

void batch_in_flight::begin() {
  const std::size_t cells = plan.fields.size();
  // Later rows are planned while earlier ones are read and decoded.
  reads.reserve(reads_of_program_max * cells);
  if (record != nullptr) recorded.begin();
  reads_used = 0;
  reads_idle.store(0, std::memory_order_relaxed);
  next_read = 0;
  blocks_used = 0;
  // Once: other threads look at it while later rows are planned.
  row_blocks.assign(plan.in_blocks ? rows() : 0, {});
  while (samples.size() < rows()) samples.emplace_back();
  encoded.assign(cells, {});
  ragged_bytes.assign(plan.ragged.size(), 0);
}

void batch_in_flight::take_rows(std::uint32_t first, std::uint32_t end) {
  auto next = samples.begin() + first;
  for (std::uint32_t row = first; row < end; ++row, ++next) {
    sample_in_flight& sample = *next;
    sample.owner = this;
    sample.row = row;
    sample.trouble.reset();
    sample.begin_reads();
  }
  take_reads();
}

void batch_in_flight::take_substitute(std::uint32_t row, const pick& substitute) {
  sample_in_flight& sample = samples[row];
  sample_trouble& trouble = sample.in_trouble();
  trouble.substitute = substitute;
  trouble.failure = nullptr;
  trouble.reason.clear();
  trouble.kind = {};
  trouble.read_failure = 0;
  trouble.unreadable = false;
  trouble.field_at_fault = batch_plan::no_field;
  trouble.bytes_needed = 0;
  trouble.out_of_memory = false;
  begin_again(row);
}

void batch_in_flight::take_again(std::uint32_t row) {
  on_device[row] = {};
  begin_again(row);
}

void batch_in_flight::begin_again(std::uint32_t row) {
  samples[row].begin_reads();
  if (!row_blocks.empty()) row_blocks[row] = {};
  std::fill_n(encoded.begin() + static_cast<std::ptrdiff_t>(row * plan.programs), plan.programs,
              std::span<const std::byte>());
  take_reads();
}

// The plan's reads come in the order in which they were made: a read's holder is before it, or itself.
void batch_in_flight::take_reads() {
  number_of_.clear();
  bool straight = false;
  for (const batch_plan::read& planned : plan.reads) {
    const std::uint32_t number = add_read();
    number_of_.push_back(number);
    read_in_flight& read = reads[number];
    const std::uint32_t holder = number_of_[planned.holder];
    read.begin(*this, planned, holder);
    if (planned.inside) read.inside = number_of_[*planned.inside];
    straight = straight || read.direct_to_row;
    // Nobody else has these reads yet.
    if (holder != number) reads[holder].users.fetch_add(read.rows, std::memory_order_relaxed);
    for (std::uint32_t row = read.first_row; row < read.end_row(); ++row) {
      sample_in_flight& sample = samples[row];
      sample.reads.push_back(number);
      sample.wait_for_one_more();
    }
  }
  for (const batch_plan::part& part : plan.parts) {
    reads[number_of_[part.read]].parts.push_back({part.row, part.program, part.offset, part.bytes});
    if (!straight) continue;
    sample_in_flight& sample = samples[part.row];
    const auto is_straight = [&](std::uint32_t number) { return reads[number].direct_to_row.has_value(); };
    sample.read_into =
        sample.reads.size() == plan.programs && std::all_of(sample.reads.begin(), sample.reads.end(), is_straight);
  }
  take_blocks();
  for (batch_plan::corrupt_row& each : plan.corrupt) {
    sample_in_flight& sample = samples[each.row];
    sample.corrupt = true;
    sample.in_trouble().reason = std::move(each.reason);
    sample.trouble->kind = each.kind;
    sample.trouble->bytes_needed = each.bytes_needed;
    sample.trouble->field_at_fault = each.field;
  }
  plan.reads.clear();
  plan.parts.clear();
  plan.corrupt.clear();
}

void batch_in_flight::take_blocks() {
  if (plan.block_uses.empty()) return;
  const std::size_t first = blocks_used;
  for (const batch_plan::block& planned : plan.blocks) {
    if (blocks_used == blocks.size()) blocks.emplace_back();
    blocks_of_row& row = row_blocks[planned.first_row];
    if (row.count++ == 0) row.first = static_cast<std::uint32_t>(blocks_used);
    blocks[blocks_used++].begin(*this, planned);
  }
  // Uses come row by row, and of a row program by program.
  const batch_plan::block_use* before = nullptr;
  for (const batch_plan::block_use& each : plan.block_uses) {
    blocks[first + each.block].uses.push_back({each.row, each.program});
    sample_in_flight& sample = samples[each.row];
    blocks_of_row& row = row_blocks[each.row];
    if (row.programs == 0) sample.wait_for_one_more();
    if (before == nullptr || before->row != each.row || before->program != each.program) ++row.programs;
    sample.wait_for_one_more();
    row.staged = row.staged || each.staged;
    sample.read_into = sample.reads.empty() && row.programs == plan.programs && !row.staged;
    before = &each;
  }
  plan.blocks.clear();
  plan.block_uses.clear();
}

// The number of a read in flight to fill in: one whose samples are all done, or a new one. Others do not move.
std::uint32_t batch_in_flight::add_read() {
  // Reads end about in the order in which they began, so a search round the table meets few that have not.
  if (reads_idle.load(std::memory_order_acquire) != 0) {
    std::size_t found = next_read++ % reads_used;
    while (reads[found].rows_left.load(std::memory_order_acquire) != 0) found = next_read++ % reads_used;
    reads_idle.fetch_sub(1, std::memory_order_relaxed);
    return static_cast<std::uint32_t>(found);
  }
  if (reads_used == reads.size()) reads.emplace_back();
  return static_cast<std::uint32_t>(reads_used++);
}

}  // namespace leat::stages
