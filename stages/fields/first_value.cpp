#include "stages/fields/first_value.hpp"

#include "base/text.hpp"
#include "datasets/files/blocking_source.hpp"
#include "datasets/tables/read_part.hpp"

#include <leat/error.hpp>

#include <algorithm>
#include <vector>

namespace leat::stages {

std::string look_at_first_values(const datasets::dataset_model& dataset, std::uint16_t field,
                                 const std::function<std::string(std::span<const std::byte>)>& look,
                                 std::uint64_t samples) {
  const datasets::need wanted[] = {{.field = field}};
  datasets::blocking_sources sources;
  datasets::part_list parts;
  std::string why = "no sample has it";
  for (std::uint64_t sample = 0; sample < std::min(samples, dataset.size()); ++sample) {
    parts.clear();
    dataset.parts(sample, wanted, parts);
    if (parts.empty() || dataset.defect_of(sample)) continue;
    try {
      std::vector<std::byte> bytes;
      datasets::append_field(dataset, sample, field, {parts.data(), parts.size()}, sources, bytes);
      why = look(bytes);
      if (why.empty()) return why;
    } catch (const error& failure) {
      if (failure.code() != errc::format && failure.code() != errc::corrupt) throw;
      why = failure.what();
    }
  }
  return why;
}

bool holds_npy_files(const datasets::dataset_model& dataset, std::uint16_t field) {
  const field_info& info = dataset.fields()[field];
  return info.kind == field_kind::bytes && datasets::is_npy_member(info.name) &&
         !dataset.forms(field).any_of(datasets::forms_made) && dataset.size() != 0;
}

datasets::npy_header first_npy(const datasets::dataset_model& dataset, std::uint16_t field) {
  const std::string& member = dataset.fields()[field].name;
  datasets::npy_header first;
  const std::string why = look_at_first_values(dataset, field, [&](std::span<const std::byte> bytes) -> std::string {
    first = datasets::read_npy_header(member, bytes);
    return "";
  });
  if (why.empty()) return first;
  throw error(errc::format,
              str_cat("the field '", member, "' is no .npy in any of the first ",
                      std::min(samples_looked_at, dataset.size()), " samples, which say what its rows are: ", why));
}

}  // namespace leat::stages
