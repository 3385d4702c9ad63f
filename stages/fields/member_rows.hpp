// The members of a sample that a function of the user's gets together: each is kept in the batch until all are there.
#pragma once

#include "stages/batch/field_model.hpp"

#include <leat/description.hpp>
#include <leat/field.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace leat::stages {

/// Keeps one member. The first of several has the user's outputs too, behind its own.
class member_rows_program : public field_program, ragged_facet {
 public:
  ///   digested   the member's bytes are part of the row's digest
  member_rows_program(const std::string& name, std::uint16_t field, bool digested,
                      std::vector<output_spec> outputs = {});

  std::size_t ragged_bytes(std::size_t output, std::size_t encoded_bytes) const final {
    return output == 0 ? encoded_bytes : outputs_[output].row_bytes_max;
  }
  outcome<void> decode(field_scratch& scratch, const decode_input& input, std::span<row_target> rows) const final;
};

/// The output that keeps member `number`, counted from the first of the program that has `own` outputs besides.
[[nodiscard]] constexpr std::size_t output_of_member(std::size_t number, std::size_t own) noexcept {
  return number == 0 ? 0 : own + number;
}

/// Names the user's function for a description, or says how to name it.
void describe_function(const std::string& described_as, description& out);

/// The dataset's field of each member.
///   throws   error{errc::usage} as throw_no_field()
[[nodiscard]] std::vector<std::uint16_t> fields_of(const datasets::dataset_model& dataset,
                                                   const std::vector<std::string>& members, const std::string& output);

}  // namespace leat::stages
