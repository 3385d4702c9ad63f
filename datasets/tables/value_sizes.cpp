#include "datasets/tables/value_sizes.hpp"

#include "datasets/files/blocking_source.hpp"
#include "datasets/files/parallel.hpp"
#include "datasets/tables/read_part.hpp"

#include <leat/error.hpp>

#include <algorithm>
#include <cstddef>
#include <memory>

namespace leat::datasets {
namespace {

/// What is read of some samples, one after another.
class value_reader {
 public:
  value_reader(const dataset_model& model, std::uint16_t field) : model_(model), field_(field) {}

  [[nodiscard]] std::uint64_t size_of(std::uint64_t sample) {
    const need wanted[] = {{.field = field_}};
    parts_.clear();
    model_.parts(sample, wanted, parts_);
    if (parts_.empty()) return no_value;
    const value_size known = size_of_value(model_.fields()[field_], field_, parts_);
    if (known.is_exact) return known.bytes;
    if (!sources_) sources_ = std::make_unique<blocking_sources>();
    value_.clear();
    try {
      append_field(model_, sample, field_, parts_, *sources_, value_);
    } catch (const error& why) {
      if (why.code() != errc::corrupt) throw;
      return damaged_value;
    }
    return value_.size();
  }

 private:
  const dataset_model& model_;
  std::uint16_t field_;
  part_list parts_;
  std::unique_ptr<blocking_sources> sources_;
  std::vector<std::byte> value_;
};

}  // namespace

std::vector<std::uint64_t> value_sizes(const dataset_model& model, std::uint16_t field) {
  constexpr std::uint64_t samples_at_once = 16'384;
  std::vector<std::uint64_t> sizes(model.size());
  const std::size_t spans = (sizes.size() + samples_at_once - 1) / samples_at_once;
  for_each_parallel(spans, threads_for_walking(0), [&](std::size_t span) {
    value_reader reader(model, field);
    const std::uint64_t end = std::min<std::uint64_t>(sizes.size(), (span + 1) * samples_at_once);
    for (std::uint64_t sample = span * samples_at_once; sample < end; ++sample) sizes[sample] = reader.size_of(sample);
  });
  return sizes;
}

}  // namespace leat::datasets
