#include "stages/device/device_cache.hpp"

#include "stages/device/alignment.hpp"
#include "stages/device/copy_plan.hpp"
#include "stages/device/gather_rows.hpp"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <utility>

namespace leat::stages {
namespace {

using output_place = batch_layout::output_place;

// A slot lies in the row of another output.
bool has_rows(const output_place& of) noexcept { return !of.spec.ragged && !of.spec.is_slot() && of.row_bytes != 0; }

bool is_short(const output_place& of, row_stays how) noexcept {
  return how == row_stays::whole && has_rows(of) && of.row_bytes <= short_row_bytes_max;
}
bool is_long(const output_place& of, row_stays how) noexcept {
  return how != row_stays::made && has_rows(of) && !is_short(of, how);
}

bool has_full_rows(const output_place& of) noexcept {
  return of.spec.made_by == nullptr || of.spec.made_by->has_full_rows();
}

}  // namespace

std::size_t cached_row_bytes(const batch_layout& layout, std::span<const row_stays> outputs) {
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const output_place& each = layout.outputs()[i];
    if (is_long(each, outputs[i])) bytes += device_aligned(each.row_bytes);
  }
  return bytes;
}

device_cache::device_cache(const cache_needs& needs, std::span<std::byte> memory)
    : layout_(needs.layout), memory_(memory) {
  for (std::size_t i = 0; i < needs.outputs.size(); ++i) {
    const output_place& each = layout_->outputs()[i];
    assert(!each.spec.ragged);
    if (is_short(each, needs.outputs[i])) short_.push_back(&each);
    if (!is_long(each, needs.outputs[i])) continue;
    const bool packs = needs.outputs[i] == row_stays::pack;
    long_.push_back({.place = &each, .packs = packs ? each.spec.made_by->keeping() : nullptr});
    assert(!packs || long_.back().packs != nullptr);
  }
  std::sort(long_.begin(), long_.end(),
            [](const long_output& a, const long_output& b) { return a.place->offset < b.place->offset; });
}

void device_cache::write_short_rows(const held_row& held, std::uint32_t row, std::byte* block) const noexcept {
  const std::byte* next = held.short_rows.data();
  for (const output_place* const each : short_) {
    std::memcpy(block + each->offset + row * each->row_bytes, next, each->row_bytes);
    next += each->row_bytes;
  }
}

std::size_t device_cache::bytes_of_host(std::size_t offset, const std::byte* row) const noexcept {
  for (const long_output& each : long_) {
    if (each.place->offset == offset) return each.packs == nullptr ? 0 : each.packs->lacking_of(row).in_row.at;
  }
  return 0;
}

void device_cache::find(std::span<const pick> picks, std::vector<const held_row*>& held) const {
  held.assign(picks.size(), nullptr);
  const mutex_lock lock(mutex_);
  if (settled_ == 0) return;
  for (std::size_t row = 0; row < picks.size(); ++row) {
    const auto found = index_.find(picks[row].sample);
    if (found != index_.end() && found->second != nullptr && found->second->is_there) held[row] = found->second;
  }
}

device_cache::counters device_cache::count() const {
  const mutex_lock lock(mutex_);
  return {.rows = settled_, .bytes = used_, .rows_given = given_.load(std::memory_order_relaxed)};
}

void device_cache::plan(const transfer_operation& batch) {
  copies_.clear();
  left_out_.clear();
  new_.clear();
  held_ = {};
  if (batch.for_cache == nullptr) return;
  assert(batch.for_cache->held.size() == batch.rows);
  held_ = batch.for_cache->held;
  give_rows(batch);
  const mutex_lock lock(mutex_);
  choose_rows(batch);
  keep_rows(batch);
}

void device_cache::give_rows(const transfer_operation& batch) {
  const std::byte* const block = batch.memory->data();
  for (std::size_t o = 0; o < long_.size(); ++o) {
    const long_output& of = long_[o];
    const std::size_t first_left_out = left_out_.size();
    for (std::uint32_t row = 0; row < batch.rows; ++row) {
      if (held_[row] == nullptr) continue;
      const row_part& piece = held_[row]->on_device[o];
      const std::size_t at = offset_of(of, row);
      if (of.packs != nullptr) {
        const keeping_operation::lacking lacks = of.packs->lacking_of(block + at);
        add({.in_block = at + lacks.in_row.at,
             .in_cache = piece.at + lacks.in_kept,
             .bytes = lacks.in_row.bytes,
             .to_cache = false});
        continue;
      }
      add({.in_block = at, .in_cache = piece.at, .bytes = piece.bytes, .to_cache = false});
      if (!has_full_rows(*of.place)) continue;
      if (left_out_.size() == first_left_out || left_out_.back().end != at) left_out_.push_back({at, at});
      left_out_.back().end = at + of.place->row_bytes;
    }
  }
  // Another call takes as long as copying so many bytes that nobody needs.
  std::erase_if(left_out_, [](const range& each) { return each.end - each.begin < bytes_of_a_call; });
  const auto given = held_.size() - static_cast<std::size_t>(std::count(held_.begin(), held_.end(), nullptr));
  given_.fetch_add(given, std::memory_order_relaxed);
}

// A sample that comes twice stays once. Rows that are no packs, where packs stay, are read in every epoch.
void device_cache::choose_rows(const transfer_operation& batch) {
  chosen_.clear();
  sums_.assign(long_.size(), 0);
  const std::byte* const block = batch.memory->data();
  for (std::uint32_t row = 0; row < batch.rows; ++row) {
    if (held_[row] != nullptr || index_.contains(batch.samples[row])) continue;
    std::size_t end = used_;
    bool all_stay = true;
    sums_with_.clear();
    for (std::size_t o = 0; o < long_.size(); ++o) {
      const std::size_t bytes = kept_part(long_[o], block + offset_of(long_[o], row)).bytes;
      all_stay = all_stay && bytes != 0;
      sums_with_.push_back(sums_[o] + bytes);
      end += device_aligned(sums_with_.back());
    }
    if (!all_stay) continue;
    if (end > memory_.size()) return full_.store(true, std::memory_order_relaxed);
    index_.emplace(batch.samples[row], nullptr);
    chosen_.push_back(row);
    sums_.swap(sums_with_);
  }
}

// Rows that follow one another in the block do so in the cache: one copy takes them there, and one back where they come so again.
void device_cache::keep_rows(const transfer_operation& batch) {
  const batch_for_cache& of_rows = *batch.for_cache;
  const std::byte* const block = batch.memory->data();
  const std::size_t pictures = layout_->picture_count();
  for (const std::uint32_t row : chosen_) {
    held_row& kept = rows_.emplace_back();
    index_.find(batch.samples[row])->second = &kept;
    new_.push_back(&kept);
    kept.of = this;
    for (const output_place* const each : short_) {
      const std::byte* const from = block + each->offset + row * each->row_bytes;
      kept.short_rows.insert(kept.short_rows.end(), from, from + each->row_bytes);
    }
    const auto geometries = of_rows.geometries.subspan(row * pictures, pictures);
    kept.geometries.assign(geometries.begin(), geometries.end());
    if (!of_rows.digests.empty()) kept.row_digest = of_rows.digests[row];
  }
  for (std::size_t o = 0; o < long_.size(); ++o) {
    const long_output& of = long_[o];
    std::size_t to = used_;
    for (std::size_t i = 0; i < chosen_.size(); ++i) {
      const std::size_t at = offset_of(of, chosen_[i]);
      const row_part part = kept_part(of, block + at);
      new_[i]->on_device.push_back({.at = to, .bytes = part.bytes});
      if (of.packs != nullptr) {
        const keeping_operation::kept pack = of.packs->kept_of(block + at);
        const std::byte* const head = block + at + pack.on_host.at;
        new_[i]->packs.push_back({.output = static_cast<std::size_t>(of.place - layout_->outputs().data()),
                                  .bytes = {head, head + pack.on_host.bytes},
                                  .value_bytes = pack.value_bytes});
      }
      add({.in_block = at + part.at, .in_cache = to, .bytes = part.bytes, .to_cache = true});
      to += part.bytes;
    }
    used_ += device_aligned(sums_[o]);
  }
}

void device_cache::add(const piece_copy& next) {
  if (next.bytes == 0) return;
  if (!copies_.empty()) {
    piece_copy& last = copies_.back();
    if (last.to_cache == next.to_cache && last.in_block + last.bytes == next.in_block &&
        last.in_cache + last.bytes == next.in_cache) {
      last.bytes += next.bytes;
      return;
    }
  }
  copies_.push_back(next);
}

row_part device_cache::kept_part(const long_output& of, const std::byte* row) noexcept {
  if (of.packs != nullptr) return of.packs->kept_of(row).on_device;
  return {.at = 0,
          .bytes = has_full_rows(*of.place) ? of.place->row_bytes : of.place->spec.made_by->used_row_bytes(row)};
}

// No piece of a batch goes to where another lies: what it gives lay in the cache before, and what it keeps goes behind all that does.
failed_call device_cache::copy(device_calls& calls, std::byte* block, stream in) const noexcept {
  const auto from = [&](const piece_copy& of) {
    return of.to_cache ? block + of.in_block : memory_.data() + of.in_cache;
  };
  const auto to = [&](const piece_copy& of) {
    return of.to_cache ? memory_.data() + of.in_cache : block + of.in_block;
  };
  if (copies_.size() == 1) {
    const piece_copy& only = copies_.front();
    return {calls.copy_within(to(only), from(only), only.bytes, in), "cudaMemcpyAsync within the device", only.bytes};
  }
  gathered_pieces pieces;
  const auto launch = [&] {
    const device_status status = pieces.count == 0 ? device_ok : calls.launch(gather_rows_kernel, &pieces, in);
    pieces.count = 0;
    return failed_call{status, gather_rows_kernel.name, {}};
  };
  for (const piece_copy& each : copies_) {
    for (std::size_t at = 0; at < each.bytes; at += gathered_piece_bytes_max) {
      if (!pieces.has_room()) {
        if (const failed_call failed = launch(); failed.status != device_ok) return failed;
      }
      const std::size_t bytes = std::min<std::size_t>(each.bytes - at, gathered_piece_bytes_max);
      pieces.add(to(each) + at, from(each) + at, static_cast<std::uint32_t>(bytes));
    }
  }
  return launch();
}

void device_cache::settle() noexcept {
  const mutex_lock lock(mutex_);
  for (held_row* const each : new_) each->is_there = true;
  settled_ += new_.size();
}

}  // namespace leat::stages
