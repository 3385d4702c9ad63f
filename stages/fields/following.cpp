#include "stages/fields/following.hpp"

#include "base/text.hpp"
#include "stages/fields/bind.hpp"
#include "stages/fields/copy_row.hpp"
#include "stages/plan/lowering.hpp"

#include <optional>
#include <utility>

namespace leat::stages {

output_spec kept_value_of(const std::string& output) {
  return {.name = output + ".member", .type = dtype::u8, .ragged = true, .hidden = true, .digested = false};
}

outcome<void> keep_value(const decode_input& input, row_target& kept) {
  if (input.encoded.size() > kept.bytes.size()) {
    return corrupt(
        str_cat("holds ", input.encoded.size(), " bytes where the dataset promised at most ", kept.bytes.size()));
  }
  if (!copy_row(input.encoded, kept.bytes.data(), input.stop)) return cancelled();
  kept.used = input.encoded.size();
  return {};
}

following_program::following_program(std::string leader, const datasets::dataset_model& dataset, std::uint16_t field,
                                     std::vector<output_spec> outputs)
    : field_program(std::move(outputs), {field}),
      leader_(std::move(leader)),
      keeps_(lower(dataset, field).in_blocks && staging_row_bytes_of(dataset, *this) == 0) {
  if (keeps_) {
    outputs_.push_back(kept_value_of(outputs_.front().name));
  }
  facets_.ragged = this;
  facets_.following = this;
}

outcome<void> following_program::decode(field_scratch&, const decode_input& input, std::span<row_target> rows) const {
  if (!keeps_) return {};
  if (input.encoded.size() > facts_.encoded_bytes_max) {
    return corrupt(too_many_bytes(input.encoded.size(), facts_.encoded_bytes_max));
  }
  return keep_value(input, rows.back());
}

outcome<void> following_program::make(field_scratch& scratch, const decode_input& input,
                                      const picture_geometry& picture, std::span<row_target> rows) const {
  pixels::placed_picture where;
  by_->place(input, picture, where);
  return make_rows(scratch, input, value_of(input.encoded, rows), where, keeps_ ? rows.first(rows.size() - 1) : rows);
}

std::uint16_t field_of_target(const datasets::dataset_model& dataset, const std::string& member,
                              const std::string& output) {
  const std::optional<std::uint16_t> field = dataset.find_field(member);
  if (!field) throw_no_field(dataset, member, output);
  return *field;
}

}  // namespace leat::stages
