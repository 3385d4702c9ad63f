#include "stages/run/expand.hpp"

#include "base/clock.hpp"
#include "base/exception_text.hpp"
#include "base/text.hpp"
#include "stages/batch/range.hpp"
#include "stages/plan/array_crop.hpp"
#include "stages/run/chunk_cache.hpp"
#include "stages/run/decode.hpp"

#include <optional>
#include <string>

namespace leat::stages {

expander::expander(const datasets::dataset_model& dataset, std::span<const std::unique_ptr<field_program>> programs,
                   const batch_layout& layout, std::uint64_t seed)
    : dataset_(dataset), programs_(programs), layout_(layout), seed_(seed) {
  std::size_t outputs = 0;
  for (const auto& program : programs) {
    first_output_.push_back(outputs);
    outputs += program->outputs().size();
  }
}

void expander::run(block_in_flight& block, decoder& values, std::uint32_t thread,
                   const std::atomic<bool>& stop) noexcept {
  const range profiled(work_of::decode);
  const std::uint64_t begin_ns = now_ns();
  wait_ns_.fetch_add(begin_ns - block.posted_ns, std::memory_order_relaxed);
  try {
    expand(block, values, thread, stop);
  } catch (...) {
    block.damaged = true;
    block.reason = current_exception_text();
  }
  busy_ns_.fetch_add(now_ns() - begin_ns, std::memory_order_relaxed);
}

std::span<std::byte> expander::row_of(const block_in_flight& block, const block_in_flight::use& use) const {
  const std::span<std::byte> memory = block.owner->memory.bytes();
  const auto staged = layout_.staging_row(memory.subspan(block.owner->plan.staging), use.program, use.row);
  if (!staged.empty()) return staged;
  const batch_layout::output_place& place = layout_.outputs()[first_output_[use.program]];
  return memory.subspan(place.offset + use.row * place.row_bytes, place.row_bytes);
}

void expander::expand(block_in_flight& block, decoder& values, std::uint32_t thread, const std::atomic<bool>& stop) {
  const datasets::part part = block.part();
  const bool is_there = block.shared != nullptr && !block.expands_shared;  // a batch before has expanded it
  const std::span<std::byte> to = is_there         ? block.shared->decoded
                                  : block.to_row() ? row_of(block, block.uses.front())
                                                   : block.decoded;
  if (!is_there) {
    const std::uint64_t sample = block.owner->samples[block.uses.front().row].pick().sample;
    std::span<std::byte> expanded = to;
    if (const auto fault = dataset_.expand(sample, part, block.data, expanded)) {
      block.damaged = true;
      block.reason = str_cat(dataset_.fields()[block.of.field].name, ": ", fault->reason);
      block.kind = fault->kind;
      return;
    }
    blocks_.fetch_add(1, std::memory_order_relaxed);
    bytes_.fetch_add(block.of.decoded_bytes, std::memory_order_relaxed);
  }
  for (const block_in_flight::use& use : block.uses) {
    if (block.of.has_values()) {
      values.make_of_block(block, use, to, thread, stop);
    } else {
      fill(block, use, part, to);
    }
  }
  uses_.fetch_add(block.uses.size(), std::memory_order_relaxed);
}

// The block may be the whole row of its first use, and a part of others.
void expander::fill(const block_in_flight& block, const block_in_flight::use& use, const datasets::part& part,
                    std::span<const std::byte> expanded) const {
  const std::span<std::byte> row = row_of(block, use);
  if (row.data() == expanded.data()) return;
  const pick& of = block.owner->samples[use.row].pick();
  datasets::part mine = part;
  mine.field = block.owner->plan.fields[use.row * programs_.size() + use.program];
  if (const array_crop* const crop = programs_[use.program]->facts().crop; crop != nullptr) {
    const datasets::box box = crop->box_of(seed_, of.epoch, of.draw);
    dataset_.copy_box(of.sample, mine, &box, expanded, row);
  } else {
    dataset_.copy_box(of.sample, mine, nullptr, expanded, row);
  }
}

expand_stats expander::count() const noexcept {
  return {.blocks = blocks_.load(std::memory_order_relaxed),
          .uses = uses_.load(std::memory_order_relaxed),
          .bytes = bytes_.load(std::memory_order_relaxed),
          .busy_s = static_cast<double>(busy_ns_.load(std::memory_order_relaxed)) * 1e-9,
          .wait_s = static_cast<double>(wait_ns_.load(std::memory_order_relaxed)) * 1e-9};
}

}  // namespace leat::stages
