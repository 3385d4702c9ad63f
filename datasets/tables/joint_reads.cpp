#include "datasets/tables/joint_reads.hpp"

#include "base/excluded_kind.hpp"
#include "datasets/tables/read_part.hpp"

#include <leat/error.hpp>

#include <algorithm>
#include <tuple>
#include <utility>

namespace leat::datasets {
namespace {

// Bytes between two values that are read over rather than left out: a page, which a drive reads anyway.
constexpr std::uint64_t gap_max = 4096;
// Of one value that is read alone: while a piece is copied no more than it is held twice.
constexpr std::uint64_t piece_bytes = std::uint64_t{4} << 20;

}  // namespace

std::uint64_t byte_gate::take(std::uint64_t bytes) {
  bytes = std::min(bytes, bytes_max_);
  std::unique_lock lock(mutex_);
  given_.wait(lock, [&] { return left_ >= bytes; });
  left_ -= bytes;
  return bytes;
}

void byte_gate::give(std::uint64_t taken) {
  {
    const std::lock_guard lock(mutex_);
    left_ += taken;
  }
  given_.notify_all();
}

joint_limits limits_within(std::uint64_t bytes_max, std::uint32_t threads, std::span<const std::uint16_t> fields,
                           byte_gate& gate) {
  // What is read together is there twice while it is copied; and expanded blocks beside it.
  const std::uint64_t of_thread = bytes_max / (4 * std::uint64_t{threads});
  joint_limits limits{.fields = {fields.begin(), fields.end()},
                      .first_field = true,
                      .value_bytes_max = bytes_max - bytes_max / 4,
                      .gate = &gate};
  limits.together_bytes = std::min(limits.together_bytes, of_thread / 2);
  limits.blocks_bytes = std::min(limits.blocks_bytes, of_thread);
  return limits;
}

joint_reads::joint_reads(const dataset_model& model, joint_limits limits)
    : model_(model), limits_(std::move(limits)), sources_(opening_loop::traffic::many, limits_.blocks_bytes) {
  for (const std::uint16_t field : limits_.fields) needs_.push_back({.field = field});
  for (std::uint16_t field = 0; limits_.fields.empty() && field < model.fields().size(); ++field) {
    needs_.push_back({.field = field});
  }
}

std::span<const joint_reads::one> joint_reads::read_from(std::uint64_t first, std::uint64_t end) {
  release();
  std::size_t count = 0;
  std::uint64_t bytes = 0;
  for (std::uint64_t sample = first; sample < end; ++sample, ++count) {
    if (ones_.size() == count) ones_.emplace_back();
    one& now = ones_[count];
    now.sample = sample;
    find_parts(now);
    std::uint64_t more = 0;
    std::uint64_t alone = 0;
    for (const part& each : now.parts) {
      if (!is_joined(each)) continue;
      more += each.where.stored_bytes;
      // What is expanded, and the tokens or numbers that are made of it.
      alone += each.where.stored_bytes + 2 * each.where.decoded_bytes;
    }
    if (count != 0 && bytes + more > limits_.together_bytes) break;
    bytes += more;
    if (more > limits_.together_bytes && limits_.gate != nullptr) taken_ = limits_.gate->take(alone);
  }
  const std::span<one> all(ones_.data(), count);
  read(all);
  return all;
}

void joint_reads::release() {
  if (limits_.gate != nullptr && taken_ != 0) limits_.gate->give(std::exchange(taken_, 0));
  for (std::vector<std::byte>* const each : {&bytes_, &alone_}) {
    if (each->capacity() > 2 * limits_.together_bytes) *each = {};
  }
}

void joint_reads::find_parts(one& of) const {
  of.parts.clear();
  if (model_.defects() != 0) {
    // What is excluded is there, and its number moves no other sample's.
    const std::optional<defect> found = model_.defect_of(of.sample);
    if (found && found->kind != corrupt_kinds::excluded) return;
  }
  model_.parts(of.sample, needs_, of.parts);
  if (limits_.first_field) {
    for (const std::uint16_t field : limits_.fields) {
      const auto is_other = [field](const part& each) { return each.field != field; };
      if (std::all_of(of.parts.begin(), of.parts.end(), is_other)) continue;
      of.parts.erase(std::remove_if(of.parts.begin(), of.parts.end(), is_other), of.parts.end());
      break;
    }
  }
  // Parts of a field side by side, in their order.
  for (auto each = of.parts.begin(); each != of.parts.end(); ++each) {
    const auto place =
        std::upper_bound(of.parts.begin(), each, *each, [](const part& a, const part& b) { return a.field < b.field; });
    std::rotate(place, each, each + 1);
  }
}

void joint_reads::read(std::span<one> all) {
  parts_.clear();
  for (std::size_t i = 0; i < all.size(); ++i) {
    all[i].at.assign(all[i].parts.size(), read_alone);
    for (std::size_t p = 0; p < all[i].parts.size(); ++p) {
      const part& each = all[i].parts[p];
      if (!is_joined(each)) continue;
      const extent& where = each.where;
      parts_.push_back({where.source, where.file, where.offset, where.offset + where.stored_bytes, i, p, 0});
    }
  }
  std::sort(parts_.begin(), parts_.end(), [](const range& a, const range& b) {
    return std::tie(a.source, a.file, a.begin, a.sample, a.part) <
           std::tie(b.source, b.file, b.begin, b.sample, b.part);
  });
  joined_.clear();
  std::size_t bytes = 0;
  for (range& each : parts_) {
    const bool goes_on = !joined_.empty() && joined_.back().source == each.source && joined_.back().file == each.file &&
                         each.begin <= joined_.back().end + gap_max;
    if (!goes_on) {
      if (!joined_.empty()) bytes += joined_.back().end - joined_.back().begin;
      joined_.push_back(each);
      joined_.back().at = bytes;
    }
    joined_.back().end = std::max(joined_.back().end, each.end);
    each.at = joined_.back().at + (each.begin - joined_.back().begin);
  }
  if (!joined_.empty()) bytes += joined_.back().end - joined_.back().begin;
  if (bytes_.size() < bytes) bytes_.resize(bytes);
  // Those of a source together; what has failed is left to be read alone.
  for (std::size_t begin = 0, part = 0; begin < joined_.size();) {
    const std::uint32_t source = joined_[begin].source;
    const auto of_source = [source](const range& each) { return each.source == source; };
    const std::size_t end = static_cast<std::size_t>(
        std::find_if_not(joined_.begin() + static_cast<std::ptrdiff_t>(begin), joined_.end(), of_source) -
        joined_.begin());
    const std::size_t parts_end = static_cast<std::size_t>(
        std::find_if_not(parts_.begin() + static_cast<std::ptrdiff_t>(part), parts_.end(), of_source) - parts_.begin());
    read_ranges(all, std::span(joined_).subspan(begin, end - begin), std::span(parts_).subspan(part, parts_end - part));
    begin = end;
    part = parts_end;
  }
}

void joint_reads::read_ranges(std::span<one> all, std::span<const range> joined, std::span<const range> parts) {
  std::vector<blocking_source::request> requests;
  std::vector<blocking_source::request> pieces;  // of what is read alone
  for (const range& each : joined) {
    const std::uint64_t bytes = each.end - each.begin;
    if (bytes <= piece_bytes || joined.size() > 1) {
      requests.push_back({each.file, each.begin, std::span(bytes_).subspan(each.at, bytes)});
      continue;
    }
    for (std::uint64_t done = 0; done < bytes; done += piece_bytes) {
      pieces.push_back({each.file, each.begin + done,
                        std::span(bytes_).subspan(each.at + done, std::min(piece_bytes, bytes - done))});
    }
  }
  try {
    blocking_source& from = sources_.of(*model_.sources()[joined.front().source]);
    if (!requests.empty()) from.read(requests);
    for (const blocking_source::request& each : pieces) from.read({&each, 1});
    for (const range& each : parts) all[each.sample].at[each.part] = each.at;
  } catch (const error&) {
    // Which one it was is told when each is read by itself.
  }
}

std::optional<std::uint64_t> joint_reads::bytes_over(const one& of, std::size_t first_part) const {
  std::uint64_t largest = 0;
  for (std::size_t i = first_part; i < of.parts.size() && of.parts[i].field == of.parts[first_part].field; ++i) {
    if (is_over(of.parts[i])) largest = std::max(largest, bytes_of(of.parts[i]));
  }
  return largest == 0 ? std::nullopt : std::optional(largest);
}

std::span<const std::byte> joint_reads::field_of(const one& of, std::size_t first_part) {
  const std::uint16_t field = of.parts[first_part].field;
  std::size_t end = first_part;
  bool is_read = true;
  while (end < of.parts.size() && of.parts[end].field == field) is_read &= of.at[end++] != read_alone;
  const auto stored = [&](std::size_t i) {
    return std::span<const std::byte>(bytes_).subspan(of.at[i], of.parts[i].where.stored_bytes);
  };
  if (is_read && end == first_part + 1 && of.parts[first_part].form == part_form::stored) return stored(first_part);
  alone_.clear();
  if (!is_read) {
    append_field(model_, of.sample, field, {of.parts.data(), of.parts.size()}, sources_, alone_);
    return alone_;
  }
  for (std::size_t i = first_part; i < end; ++i) append_expanded(model_, of.sample, of.parts[i], stored(i), alone_);
  return alone_;
}

std::uint64_t joint_reads::bytes_of(const part& each) noexcept {
  return std::max(each.where.stored_bytes, each.where.decoded_bytes);
}

bool joint_reads::is_over(const part& each) const {
  return bytes_of(each) > limits_.value_bytes_max && (limits_.limited.empty() || limits_.limited[each.field]);
}

bool joint_reads::is_joined(const part& each) const {
  return (each.form == part_form::stored || each.form == part_form::coded) && each.where.stored_bytes != 0 &&
         !is_over(each);
}

}  // namespace leat::datasets
