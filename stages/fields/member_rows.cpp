#include "stages/fields/member_rows.hpp"

#include "base/text.hpp"
#include "stages/fields/bind.hpp"
#include "stages/fields/copy_row.hpp"

#include <utility>

namespace leat::stages {

member_rows_program::member_rows_program(const std::string& name, std::uint16_t field, bool digested,
                                         std::vector<output_spec> outputs)
    : field_program({{.name = name, .type = dtype::u8, .ragged = true, .hidden = true, .digested = digested}},
                    {field}) {
  facets_.ragged = this;
  for (output_spec& each : outputs) outputs_.push_back(std::move(each));
}

outcome<void> member_rows_program::decode(field_scratch&, const decode_input& input, std::span<row_target> rows) const {
  row_target& row = rows.front();
  if (input.encoded.size() > row.bytes.size()) {
    return corrupt(
        str_cat("holds ", input.encoded.size(), " bytes where the dataset promised at most ", row.bytes.size()));
  }
  if (!copy_row(input.encoded, row.bytes.data(), input.stop)) return cancelled();
  row.used = input.encoded.size();
  return {};
}

void describe_function(const std::string& described_as, description& out) {
  if (described_as.empty()) {
    out.add_unnamed("function", "name it: .described_as(\"...\"), another name whenever it writes other bytes");
  } else {
    out.add("function", described_as);
  }
}

std::vector<std::uint16_t> fields_of(const datasets::dataset_model& dataset, const std::vector<std::string>& members,
                                     const std::string& output) {
  std::vector<std::uint16_t> fields;
  for (const std::string& member : members) {
    const std::optional<std::uint16_t> field = dataset.find_field(member);
    if (!field) throw_no_field(dataset, member, output);
    fields.push_back(*field);
  }
  return fields;
}

}  // namespace leat::stages
