// What the fields share when they are bound to a dataset.
#pragma once

#include "datasets/model/model.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
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

/// The error for a member that the field `output` makes nothing of in any sample: says what it holds, and what reads that.
[[noreturn]] void throw_wrong_kind(const field_info& member, std::string_view output);

/// What bytes_max() of the field `name` says; any number where it was not called.
///   throws   error{errc::usage} 0, which no sample has room in
[[nodiscard]] std::size_t bytes_max_or_any(std::optional<std::size_t> bytes_max, std::string_view name);
/// Why a sample of so many bytes is corrupt.
[[nodiscard]] std::string too_many_bytes(std::size_t bytes, std::size_t bytes_max);

}  // namespace leat::stages
