// A field of one program, bound to a dataset without a loader.
#pragma once

#include "stages/batch/field_model.hpp"

#include <leat/field.hpp>

#include <memory>
#include <utility>
#include <vector>

namespace leat::testing {

[[nodiscard]] inline std::unique_ptr<stages::field_program> bound(
    const field& what, const datasets::dataset_model& dataset,
    stages::finished_by finished = stages::finished_by::host) {
  std::vector<std::unique_ptr<stages::field_program>> programs;
  what.model().bind(dataset, finished, programs);
  return std::move(programs.front());
}

}  // namespace leat::testing
