#include "stages/batch_layout.hpp"

#include "io/source.hpp"
#include "io/text.hpp"

#include <leat/error.hpp>

#include <algorithm>

namespace leat::stages {

namespace {

// What a process can address. Sizes come from the user: beyond 64 bits they would come out small, and fit.
constexpr std::size_t bytes_max = std::size_t{1} << 47;

std::size_t bytes_of_rows(std::uint32_t rows, std::size_t row_bytes, const std::string& output) {
  if (row_bytes == 0 || rows <= bytes_max / row_bytes) return align_tensor(rows * row_bytes);
  throw error(errc::limit, io::str_cat("'", output, "' takes ", row_bytes, " bytes a row, of which a batch has ", rows,
                                       ": more than a process can address; lower batch_size"));
}

}  // namespace

batch_layout::batch_layout(std::vector<output_spec> outputs, std::uint32_t rows_max) : rows_max_(rows_max) {
  for (output_spec& spec : outputs) {
    slot place;
    // Each row of it is a multiple of that, too.
    if (spec.read_into) fixed_bytes_ = io::aligned_bytes(0, fixed_bytes_);
    place.offset = fixed_bytes_;
    if (spec.ragged) {
      place.ragged_index = ragged_count_++;
      fixed_bytes_ += align_tensor((std::size_t{rows_max} + 1) * sizeof(std::int64_t));
    } else {
      place.row_bytes = spec.decoded_row_bytes();
      fixed_bytes_ += bytes_of_rows(rows_max, place.row_bytes, spec.name);
    }
    if (spec.by_device()) {
      place.finished_offset = finished_bytes_;
      finished_bytes_ += bytes_of_rows(rows_max, spec.row_bytes(), spec.name);
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
