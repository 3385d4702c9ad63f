// What the first samples of a dataset hold, where a field has to know it before anything is loaded.
#pragma once

#include "datasets/formats/arrays/npy_header.hpp"
#include "datasets/model/model.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

namespace leat::stages {

/// As many corrupt samples in a row end a run.
inline constexpr std::uint64_t samples_looked_at = 1000;

/// Looks at the field's value of one sample after the other, until one is taken. Reads them, and blocks.
///   look      returns "", or why the value is none; what it throws of format and corrupt is such a reason
///   samples   at most
///   returns   "", or the last reason
[[nodiscard]] std::string look_at_first_values(const datasets::dataset_model& dataset, std::uint16_t field,
                                               const std::function<std::string(std::span<const std::byte>)>& look,
                                               std::uint64_t samples = samples_looked_at);

/// Whether the field's values are .npy files, which are read as they are stored.
[[nodiscard]] bool holds_npy_files(const datasets::dataset_model& dataset, std::uint16_t field);

/// Of the first of them that is whole. Reads it, and blocks.
///   throws   error{errc::format} where there is none
[[nodiscard]] datasets::npy_header first_npy(const datasets::dataset_model& dataset, std::uint16_t field);

}  // namespace leat::stages
