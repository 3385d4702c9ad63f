// What orders want to know of each sample.
#pragma once

#include "stages/batch/row_counts.hpp"

#include <leat/field.hpp>
#include <leat/samples.hpp>

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace leat::stages {

/// The values of a column of whole numbers, whatever they are stored as.
///   order    its name, for errors
///   throws   error{errc::usage}: no such column, or a sample that has no value in it, or 1.5
[[nodiscard]] std::vector<std::int64_t> column_values_of(const dataset& samples, std::string_view column,
                                                         std::string_view order);

/// The values of a column; where there is none of this name, the elements that a field of the loader makes of each sample, if it tells;
/// else the bytes of a field's values.
///   throws   error{errc::usage}: none of these; a sample that lacks it; a negative value
[[nodiscard]] std::vector<std::uint64_t> lengths_of(const dataset& samples, std::string_view length,
                                                    std::string_view order, std::span<const field> fields,
                                                    const counting& how);

}  // namespace leat::stages
