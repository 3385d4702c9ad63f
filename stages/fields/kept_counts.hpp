// Counts of all rows that are kept between runs, as indexes are.
#pragma once

#include "stages/batch/field_model.hpp"

#include <leat/digest.hpp>
#include <leat/index_options.hpp>

#include <functional>
#include <string>

namespace leat::stages {

/// Those of an earlier run, or what `count` returns, which are kept. The key is the dataset, its files with their sizes and times, and
/// `how`. Blocks.
///   what   "tokens of 'text'", for reports
///   how    all that decides them, but for the dataset
[[nodiscard]] row_counts kept_counts(const datasets::dataset_model& dataset, const index_options& where,
                                     const std::string& what, const digest& how,
                                     const std::function<row_counts()>& count);

}  // namespace leat::stages
