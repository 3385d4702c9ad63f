// dataset::where() with sizes of pictures that an earlier run has found.
#pragma once

#include <leat/index_options.hpp>
#include <leat/samples.hpp>

#include <string_view>

namespace leat::stages {

/// As dataset::where(). What the condition asks of sizes is kept, as an index is: reading the beginning of each picture takes longer than
/// looking at its file.
[[nodiscard]] dataset samples_where(const dataset& samples, std::string_view condition, const index_options& index);

}  // namespace leat::stages
