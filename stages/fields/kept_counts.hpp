// What was found out about all samples, and is kept between runs, as indexes are.
#pragma once

#include "datasets/views/picture_sizes.hpp"
#include "stages/batch/field_model.hpp"

#include <leat/digest.hpp>
#include <leat/index_options.hpp>

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace leat::stages {

///   is_final   false: some depend on this run, since a sample could not be read, or was too large for the budget
struct counted_rows {
  row_counts counts;
  bool is_final = true;
};

/// Numbers of whatever kind.
///   why_not_final   not empty: they are not to be kept
struct kept_numbers {
  std::vector<std::uint32_t> numbers;
  std::string why_not_final = {};
};

///   samples   of the dataset that they are of
///   numbers   how many there are
///   asked     pictures that they depend on alone; none: on all files. In the order in which `how` has them
struct kept_size {
  std::uint64_t samples = 0;
  std::uint64_t numbers = 0;
  std::optional<std::span<const datasets::asked_picture>> asked = std::nullopt;
};

/// As kept_counts() below.
[[nodiscard]] kept_numbers keep_numbers(const datasets::dataset_model& dataset, const index_options& where,
                                        const std::string& what, const digest& how, const kept_size& size,
                                        const std::function<kept_numbers()>& find);

/// Those of an earlier run, or what `count` returns, which are kept if they are final. They lie under the absolute names of the dataset's
/// files and `how`, with what tells that the files are the same: sizes, times and inodes, of objects what their server tells of a version.
/// Blocks.
///   what   "tokens of 'text'", for reports
///   how    all that decides them, but for the dataset
///   throws error{errc::changed}: the dataset's files have changed since it was opened
[[nodiscard]] counted_rows kept_counts(const datasets::dataset_model& dataset, const index_options& where,
                                       const std::string& what, const digest& how,
                                       const std::function<counted_rows()>& count);

}  // namespace leat::stages
