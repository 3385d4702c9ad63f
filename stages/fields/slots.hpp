// Several fields whose rows lie beside one another in one output: stack, columns, views, clip.
#pragma once

#include "datasets/model/model.hpp"
#include "stages/batch/field_model.hpp"

#include <leat/field.hpp>
#include <leat/tensor.hpp>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace leat::stages {

/// Binds the fields, whose rows are to be alike.
///   name       of the output
///   finished   as field_model::bind() has it. add_slots() takes those that a device does the same to, as it does to fields of one image
///   throws     error{errc::usage} where they are not; error{errc::unsupported} for rows of too many axes
[[nodiscard]] std::vector<std::unique_ptr<field_program>> bind_slots(const std::string& name,
                                                                     const std::vector<field>& fields,
                                                                     const datasets::dataset_model& dataset,
                                                                     finished_by finished);
///   lie_apart   pictures that draw alike, each with a crop of its own
///   axes        of the slots, which are as many as these have elements; empty: one
struct slots_layout {
  bool lie_apart = false;
  dimensions axes = {};
};
/// For rows of several pictures.
///   kind      of the field: "clip"
///   what      have several: "clips"
///   throws    error{errc::usage} for jpeg_decoder::nvjpeg
void refuse_nvjpeg_of_slots(std::string_view kind, const std::string& name, std::string_view what, const image& of);
/// The first has the output [axes..., shape...], and the others write into its rows.
void add_slots(const std::string& name, std::vector<std::unique_ptr<field_program>> slots,
               std::vector<std::unique_ptr<field_program>>& out, const slots_layout& how = {});

}  // namespace leat::stages
