// What is made of a collated batch as a whole: outputs that are of_batch.
#pragma once

#include "stages/batch/batch_state.hpp"
#include "stages/batch/field_model.hpp"

#include <memory>
#include <span>

namespace leat::stages {

/// Calls finish() of the programs that have it. Thread: a decode thread; nobody else has the batch.
///   throws   whatever they throw
void finish_outputs(batch::state& batch, std::span<const std::unique_ptr<field_program>> programs);

}  // namespace leat::stages
