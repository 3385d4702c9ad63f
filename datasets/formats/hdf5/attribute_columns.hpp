// Columns of what each sample of an HDF5 file has as an attribute.
#pragma once

#include "datasets/formats/hdf5/hdf5_attributes.hpp"
#include "datasets/tables/arrays_as_samples.hpp"
#include "datasets/tables/chunked_array.hpp"

#include <span>
#include <string>
#include <vector>

namespace leat::datasets {

/// One column of one file.
struct attribute_column {
  std::string name;
  std::vector<attribute_value> values;
};

/// The name of the attribute that a wanted column is made of: "label" of "image/label".
[[nodiscard]] std::string attribute_of(const std::string& column);

///   wanted   "label" of the sample's array or group, or of the one array in it that has it; "image/label" of its `image`
///   title    names the file in errors
///   throws   error{errc::usage} samples that are rows, or an attribute that several arrays of a sample have; error{errc::not_found} a sample
///            without it
[[nodiscard]] std::vector<attribute_column> attribute_columns(const sample_objects& objects,
                                                              const hdf5_attributes& attributes,
                                                              std::span<const std::string> wanted,
                                                              const std::string& title);

/// One column of several files: numbers, or classes where they are texts.
///   of        its part of each file
///   titles    of the files
///   classes   the texts, sorted; empty where they are numbers
///   throws    error{errc::format} numbers and texts; error{errc::limit} more than 65,536 texts
struct joined_column {
  std::vector<chunked_array> arrays;  ///< one for each file, held in memory
  std::vector<std::string> classes;
};
[[nodiscard]] joined_column join_columns(std::span<const attribute_column* const> of,
                                         std::span<const std::string> titles);

}  // namespace leat::datasets
