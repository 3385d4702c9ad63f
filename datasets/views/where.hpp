// dataset::where(), of whom it leaves open how sizes of pictures are told.
#pragma once

#include "datasets/views/picture_sizes.hpp"

#include <leat/samples.hpp>

#include <string_view>

namespace leat::datasets {

///   tell     called for what the condition asks of pictures whose size no index has
///   throws   as dataset::where(); as measure_pictures()
[[nodiscard]] dataset samples_where(const dataset& samples, std::string_view condition, size_reader tell);

}  // namespace leat::datasets
