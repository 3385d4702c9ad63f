// Several fields whose rows lie beside one another in one output: stack, columns, views, clip.
#pragma once

#include "datasets/model/model.hpp"
#include "stages/batch/field_program.hpp"

#include <leat/field.hpp>
#include <leat/tensor.hpp>

#include <memory>
#include <string>
#include <vector>

namespace leat::stages {

/// Binds the fields, whose rows are to be alike.
///   name     of the output
///   throws   error{errc::usage} where they are not; error{errc::unsupported} for rows of too many axes
[[nodiscard]] std::vector<std::unique_ptr<field_program>> bind_slots(const std::string& name,
                                                                     const std::vector<field>& fields,
                                                                     const datasets::dataset_model& dataset);
///   lie_apart   pictures that draw alike, each with a crop of its own
///   axes        of the slots, which are as many as these have elements; empty: one
struct slots_layout {
  bool lie_apart = false;
  dimensions axes = {};
};
/// The first has the output [axes..., shape...], and the others write into its rows.
void add_slots(const std::string& name, std::vector<std::unique_ptr<field_program>> slots,
               std::vector<std::unique_ptr<field_program>>& out, const slots_layout& how = {});

}  // namespace leat::stages
