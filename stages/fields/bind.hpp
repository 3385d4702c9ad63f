// What the fields share when they are bound to a dataset.
#pragma once

#include "datasets/model.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace leat::stages {

/// The dataset's fields of these names, in this order; those it lacks are left out.
[[nodiscard]] std::vector<std::uint16_t> find_fields(const datasets::dataset_model& dataset,
                                                     std::span<const std::string_view> names);

/// The error for a field that the dataset cannot serve: says what it has.
///   output   the field's name where it has a from(), and was perhaps taken for a name to be chosen freely; else empty
[[noreturn]] void throw_no_field(const datasets::dataset_model& dataset, std::string_view member,
                                 std::string_view output = {});

}  // namespace leat::stages
