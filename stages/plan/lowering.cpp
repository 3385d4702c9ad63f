#include "stages/plan/lowering.hpp"

#include "io/files/source.hpp"
#include "stages/plan/array_crop.hpp"

#include <algorithm>

namespace leat::stages {

lowered_field lower(const datasets::dataset_model& dataset, std::uint16_t field) {
  using datasets::part_form;
  const datasets::part_forms forms = dataset.forms(field);
  const field_info& info = dataset.fields()[field];
  lowered_field to{.in_blocks = forms.any_of(datasets::forms_in_blocks),
                   .is_fetched = !forms.only(datasets::forms_made),
                   .is_awaited = forms.has(part_form::awaited),
                   .as_stored = forms.only(part_form::stored)};
  if (forms.has(part_form::coded)) to.read_bytes_max = info.read_bytes_max();
  if (!forms.only(datasets::forms_in_blocks | part_form::coded)) {
    to.read_bytes_max = std::max(to.read_bytes_max, info.bytes_max);
  }
  return to;
}

bool reads_into_rows(const datasets::dataset_model& dataset, const field_program& program) {
  if (!program.facts().verbatim || program.reads().empty()) return false;
  const std::size_t row_bytes = program.outputs().front().row_bytes();
  const auto reads = program.reads();
  return std::all_of(reads.begin(), reads.end(), [&](std::uint16_t field) {
    const field_info& info = dataset.fields()[field];
    return lower(dataset, field).as_stored && info.alignment == io::alignment_max_bytes &&
           info.bytes_max == row_bytes && row_bytes % io::alignment_max_bytes == 0;
  });
}

bool takes_bytes_as_they_are(const field_program& program) {
  return program.facts().verbatim || program.facts().crop != nullptr;
}

bool expands_into_row(const field_program& program, std::uint64_t decoded_bytes) {
  return program.facts().verbatim && decoded_bytes == program.outputs().front().row_bytes();
}

std::size_t staging_row_bytes_of(const datasets::dataset_model& dataset, const field_program& program) {
  if (takes_bytes_as_they_are(program)) return 0;
  std::uint64_t bytes = 0;
  for (const std::uint16_t field : program.reads()) {
    if (dataset.forms(field).has(datasets::part_form::box)) bytes = std::max(bytes, dataset.fields()[field].bytes_max);
  }
  return bytes;
}

std::uint64_t blocks_wanted(const field_info& field, const field_program& program) {
  const array_crop* const crop = program.facts().crop;
  const std::size_t axes = field.shape.size();
  if (crop == nullptr || field.chunk.size() != axes + 1 || crop->shape().size() != axes) return field.blocks_max;
  std::uint64_t of_crop = 1;
  for (std::size_t axis = 0; axis < axes; ++axis) {
    const std::int64_t chunk = field.chunk[axis + 1];
    const std::int64_t all = (field.shape[axis] + chunk - 1) / chunk;
    of_crop *= static_cast<std::uint64_t>(std::min(all, (crop->shape()[axis] - 1) / chunk + 2));
  }
  return std::min(field.blocks_max, of_crop);
}

std::uint64_t expanded_bytes_of(const datasets::dataset_model& dataset, const field_program& program,
                                std::uint64_t value_bytes_max) {
  std::uint64_t largest = 0;
  for (const std::uint16_t field : program.reads()) {
    const std::uint64_t block = std::min(dataset.fields()[field].decoded_block_bytes_max, value_bytes_max);
    largest =
        std::max(largest, (expands_into_row(program, block) ? 0 : block) + dataset.fields()[field].expand_bytes_max);
  }
  return largest;
}

}  // namespace leat::stages
