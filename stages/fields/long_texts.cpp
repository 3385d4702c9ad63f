#include "stages/fields/long_texts.hpp"

#include "base/corrupt_kind.hpp"
#include "base/text.hpp"
#include "datasets/files/blocking_source.hpp"
#include "datasets/tables/read_part.hpp"

#include <leat/error.hpp>

#include <algorithm>
#include <utility>

namespace leat::stages {

long_texts::long_texts() = default;
long_texts::~long_texts() = default;

void long_texts::keep_at_most(std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  bytes_max_ = bytes;
}

std::shared_ptr<const long_texts::text> long_texts::of(const datasets::dataset_model& dataset,
                                                       std::span<const std::uint16_t> fields, std::uint64_t sample,
                                                       std::span<const std::byte> encoded, const tokens_of& make) {
  const std::shared_ptr<text> found = find(sample);
  const std::lock_guard lock(found->mutex);
  if (found->is_made) return found;
  std::vector<std::byte> bytes;
  if (encoded.empty()) {
    found->wrong = read(dataset, fields, sample, bytes);
    encoded = bytes;
  }
  if (!found->wrong) found->wrong = make(encoded, found->ids);
  found->is_made = true;
  count(sample, found->ids.capacity() * sizeof(std::uint32_t));
  return found;
}

std::shared_ptr<long_texts::text> long_texts::find(std::uint64_t sample) {
  const std::lock_guard lock(mutex_);
  const auto known = places_.find(sample);
  if (known == places_.end()) {
    kept_.push_front({.sample = sample, .of = std::make_shared<text>()});
    places_.emplace(sample, kept_.begin());
  } else {
    kept_.splice(kept_.begin(), kept_, known->second);
  }
  return kept_.front().of;
}

void long_texts::count(std::uint64_t sample, std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  const auto known = places_.find(sample);
  if (known == places_.end()) return;  // Others took its place while it was made.
  // It may be counted twice: where it was dropped while it was made, and is asked for again.
  bytes_ -= std::exchange(known->second->bytes, bytes);
  bytes_ += bytes;
  // Whoever is copying from one that goes holds it.
  while (bytes_ > bytes_max_ && kept_.size() > 1) {
    bytes_ -= kept_.back().bytes;
    places_.erase(kept_.back().sample);
    kept_.pop_back();
  }
}

std::optional<failure> long_texts::read(const datasets::dataset_model& dataset, std::span<const std::uint16_t> fields,
                                        std::uint64_t sample, std::vector<std::byte>& to) {
  std::vector<datasets::need> needs;
  for (const std::uint16_t field : fields) needs.push_back({.field = field});
  datasets::part_list parts;
  dataset.parts(sample, needs, parts);
  const auto has = [&](std::uint16_t field) {
    return std::any_of(parts.begin(), parts.end(), [field](const datasets::part& each) { return each.field == field; });
  };
  const auto field = std::find_if(fields.begin(), fields.end(), has);
  if (field == fields.end()) return corrupt("has no text", corrupt_kinds::incomplete);
  const std::lock_guard lock(reading_);
  if (!sources_) sources_ = std::make_unique<datasets::blocking_sources>();
  try {
    datasets::append_field(dataset, sample, *field, parts, *sources_, to);
  } catch (const datasets::read_failure& why) {
    if (why.whose() == io::fault::environment) throw;
    return corrupt(why.what(), corrupt_kinds::unreadable);
  } catch (const error& why) {
    if (why.code() != errc::corrupt) throw;
    return corrupt(why.what());
  }
  return std::nullopt;
}

}  // namespace leat::stages
