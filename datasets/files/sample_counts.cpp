#include "datasets/files/sample_counts.hpp"

#include "datasets/files/index_cache.hpp"

#include <leat/error.hpp>

#include <algorithm>
#include <functional>
#include <numeric>

namespace leat::datasets {

sample_counts::sample_counts(section_reader& from, std::uint64_t samples, std::size_t fields) : samples_(samples) {
  bool is_ours = true;
  std::uint64_t sum = 0;
  for (std::uint64_t left = from.number(); left > 0; --left) {
    field_set& set = sets_.emplace_back();
    const auto members = from.all<std::uint32_t>();
    set.fields.assign(members.begin(), members.end());
    set.samples = from.number();
    const auto first = from.all<std::uint64_t>();
    set.first.assign(first.begin(), first.end());
    is_ours = is_ours && set.samples <= samples - sum &&
              set.first.size() == std::min<std::uint64_t>(set.samples, field_set::first_max) &&
              std::all_of(members.begin(), members.end(), [&](std::uint32_t each) { return each < fields; }) &&
              std::all_of(first.begin(), first.end(), [&](std::uint64_t each) { return each < samples; });
    sum += is_ours ? set.samples : 0;
  }
  for (std::uint64_t left = from.number(); left > 0; --left) {
    const auto bytes = from.all<std::uint64_t>();
    largest_.emplace_back(bytes.begin(), bytes.end());
  }
  if (!is_ours || sum != samples || largest_.size() > fields) {
    throw error(errc::format, "what it has counted is not of its samples");
  }
}

sample_counts::sample_counts(const sample_counts& all, std::span<const std::int32_t> numbers) : samples_(all.samples_) {
  for (const field_set& before : all.sets_) {
    std::vector<std::uint32_t> fields;
    for (const std::uint32_t field : before.fields) {
      if (numbers[field] >= 0) fields.push_back(static_cast<std::uint32_t>(numbers[field]));
    }
    std::sort(fields.begin(), fields.end());
    const auto [found, is_new] = places_.try_emplace(fields, sets_.size());
    if (is_new) sets_.emplace_back().fields = std::move(fields);
    field_set& set = sets_[found->second];
    set.samples += before.samples;
    set.first.insert(set.first.end(), before.first.begin(), before.first.end());
    std::sort(set.first.begin(), set.first.end());
    set.first.resize(std::min(set.first.size(), field_set::first_max));
  }
  for (std::size_t field = 0; field < all.largest_.size(); ++field) {
    if (numbers[field] < 0) continue;
    const auto number = static_cast<std::size_t>(numbers[field]);
    if (number >= largest_.size()) largest_.resize(number + 1);
    largest_[number] = all.largest_[field];
  }
}

void sample_counts::save(section_writer& into) const {
  into.add(sets_.size());
  for (const field_set& set : sets_) {
    into.add_all(std::span(set.fields));
    into.add(set.samples);
    into.add_all(std::span(set.first));
  }
  into.add(largest_.size());
  for (const std::vector<std::uint64_t>& bytes : largest_) into.add_all(std::span(bytes));
}

void sample_counts::add(std::span<const std::uint32_t> fields) {
  sorted_.assign(fields.begin(), fields.end());
  std::sort(sorted_.begin(), sorted_.end());
  sorted_.erase(std::unique(sorted_.begin(), sorted_.end()), sorted_.end());
  // Neighbours are alike, nearly always.
  if (sets_.empty() || sets_[place_].fields != sorted_) {
    const auto [found, is_new] = places_.try_emplace(sorted_, sets_.size());
    place_ = found->second;
    if (is_new) sets_.emplace_back().fields = sorted_;
  }
  field_set& set = sets_[place_];
  if (++set.samples <= field_set::first_max) set.first.push_back(samples_);
  ++samples_;
}

void sample_counts::add_bytes(std::size_t field, std::uint64_t bytes) {
  if (field >= largest_.size()) largest_.resize(field + 1);
  std::vector<std::uint64_t>& heap = largest_[field];
  if (heap.size() == largest_max) {
    if (bytes <= heap.front()) return;
    std::pop_heap(heap.begin(), heap.end(), std::greater<>());
    heap.pop_back();
  }
  heap.push_back(bytes);
  std::push_heap(heap.begin(), heap.end(), std::greater<>());
}

std::uint64_t sample_counts::largest_bytes(std::span<const std::uint16_t> fields, std::uint64_t samples) const {
  std::vector<std::uint64_t> all;
  std::uint64_t least_kept = 0;  // Of fields with unknown sizes: none of these is larger.
  for (const std::uint16_t field : fields) {
    if (field >= largest_.size()) continue;
    const std::vector<std::uint64_t>& heap = largest_[field];
    all.insert(all.end(), heap.begin(), heap.end());
    if (heap.size() == largest_max) least_kept = std::max(least_kept, heap.front());
  }
  const std::size_t known = std::min<std::uint64_t>(samples, all.size());
  std::partial_sort(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(known), all.end(), std::greater<>());
  // A size that one field's full list lacks may be larger than a listed size of another field.
  for (std::uint64_t& each : std::span(all).first(known)) each = std::max(each, least_kept);
  return std::accumulate(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(known), std::uint64_t{0}) +
         (samples - known) * least_kept;
}

}  // namespace leat::datasets
