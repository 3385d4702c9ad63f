// dataset::where(), of whom it leaves open how sizes of pictures are told.
#pragma once

#include "datasets/views/picture_sizes.hpp"

#include <leat/samples.hpp>

#include <functional>
#include <span>
#include <string_view>

namespace leat::datasets {

/// Tells sizes, as measure_pictures().
using picture_measure =
    std::function<measured_pictures(const dataset_model& model, std::span<const asked_picture> asked)>;

///   measure  called for what the condition asks of pictures
///   throws   as dataset::where(); as measure_pictures()
[[nodiscard]] dataset samples_where(const dataset& samples, std::string_view condition, const picture_measure& measure);

}  // namespace leat::datasets
