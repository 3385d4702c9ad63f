// Fields that make something of a chunked array's rows, where the rows themselves are not what the batch has: leat::custom, text of a
// fixed length. Each row is put together out of its boxes first, in a hidden output of the batch.
#pragma once

#include "datasets/model.hpp"
#include "stages/field_model.hpp"

#include <memory>

namespace leat::stages {

/// `program`, with a hidden output behind its own where it needs one (field_program::assembled_output()): where it reads a chunked array and is
/// neither verbatim() nor a crop.
[[nodiscard]] std::unique_ptr<field_program> with_assembled_row(std::unique_ptr<field_program> program,
                                                                const datasets::dataset_model& dataset);

}  // namespace leat::stages
