// What formats and views share when they describe themselves (dataset_model::describe()).
#pragma once

#include "datasets/model/model.hpp"
#include "io/files/file_table.hpp"

#include <leat/description.hpp>

#include <string_view>

namespace leat::datasets {

/// Format, samples, fields with their dtypes and sizes, names of columns and classes: what a model knows without asking for a sample.
void describe_model(description& out, std::string_view format, const dataset_model& model);

/// Names of files below the folder that they share, and sizes.
void describe_files(description& out, const io::file_table& files);

}  // namespace leat::datasets
