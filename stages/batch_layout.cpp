#include "stages/batch_layout.hpp"

#include "io/text.hpp"

#include <leat/error.hpp>

#include <algorithm>

namespace leat::stages {

batch_layout::batch_layout(std::vector<output_spec> outputs, std::uint32_t rows_max) : rows_max_(rows_max) {
  for (output_spec& spec : outputs) {
    slot place;
    place.offset = fixed_bytes_;
    if (spec.ragged) {
      place.ragged_index = ragged_count_++;
      fixed_bytes_ += align_tensor((std::size_t{rows_max} + 1) * sizeof(std::int64_t));
    } else {
      place.row_bytes = spec.decoded_row_bytes();
      fixed_bytes_ += align_tensor(rows_max * place.row_bytes);
    }
    if (spec.by_device()) {
      place.finished_offset = finished_bytes_;
      finished_bytes_ += align_tensor(rows_max * spec.row_bytes());
      finished_row_bytes_ += spec.row_bytes();
      // The flags are the next output.
      finish_.push_back({*spec.picture, place.offset, fixed_bytes_, place.finished_offset, std::nullopt});
    }
    if (std::find(names_.begin(), names_.end(), spec.name) != names_.end()) {
      throw error(errc::usage, io::str_cat("two outputs of a batch are called '", spec.name,
                                           "'; give one of the fields another name"));
    }
    if (!spec.internal) names_.push_back(spec.name);
    if (spec.ragged) names_.push_back(spec.name + ".offsets");
    place.spec = std::move(spec);
    slots_.push_back(std::move(place));
  }
  const auto mixed = std::find_if(slots_.begin(), slots_.end(),
                                  [](const slot& each) { return each.spec.internal && each.spec.name == mixed_rows; });
  if (mixed == slots_.end()) return;
  for (finish_step& step : finish_) step.mixed = mixed->offset;
}

std::size_t batch_layout::bytes(std::span<const std::size_t> ragged_bytes) const noexcept {
  std::size_t total = fixed_bytes_;
  for (const std::size_t size : ragged_bytes) total += align_tensor(size);
  return total;
}

}  // namespace leat::stages
