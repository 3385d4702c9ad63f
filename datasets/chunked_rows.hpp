// Rows of chunked arrays as a dataset: sample i is row i of each array, a box out of one or more chunks.
#pragma once

#include "datasets/chunked_array.hpp"
#include "io/file_table.hpp"
#include "io/source.hpp"

#include <leat/dataset.hpp>

#include <memory>
#include <span>
#include <string>
#include <vector>

namespace leat::datasets {

/// What the reader of a format found out.
///   format   for dataset_model::describe(): "hdf5"
///   title    what a person calls the whole: the file, or the folder
///   arrays   of one number of rows; chunk_place::file indexes `files`
struct chunked_table {
  std::string format;
  std::string title;
  std::shared_ptr<const io::file_table> files;
  std::shared_ptr<const io::source_description> source;  ///< of the same files
  std::vector<chunked_array> arrays;
  std::vector<std::string> notes;
};

/// Leaves those that become fields, in the order of `wanted`; without any, those that share the commonest length of the first axis
/// (of several that are as common, the first array's), and a note names the rest.
///   title    names the source in errors
///   throws   error{errc::not_found} a name that is not there, with those that are; error{errc::usage} arrays of different lengths,
///            an array without axes, or none at all
void choose_arrays(std::vector<chunked_array>& arrays, std::span<const std::string> wanted, const std::string& title,
                   std::vector<std::string>& notes);

/// One-dimensional arrays of integers become columns, which are read and expanded at once. The others are fields of field_kind::tensor.
///   throws   error{errc::format} a chunk that lies beyond its file, or damaged bytes of a column; error{errc::limit} chunks or
///            rows of more than 1 TiB; error{errc::unsupported} rows of more axes than leat::dimensions has
[[nodiscard]] dataset chunked_rows(chunked_table table);

}  // namespace leat::datasets
