// Rows of chunked arrays as a dataset: sample i is row i of each array, or a window of rows, out of one or more chunks.
#pragma once

#include "datasets/model/columns.hpp"
#include "datasets/tables/chunked_array.hpp"
#include "datasets/tables/row_windows.hpp"
#include "io/files/file_table.hpp"
#include "io/files/source.hpp"

#include <leat/samples.hpp>

#include <memory>
#include <string>
#include <vector>

namespace leat::datasets {

class file_staleness;

/// What the reader of a format found out.
///   format   for dataset_model::describe(): "hdf5"
///   title    what a person calls the whole: the file, or the folder
///   classes   of a column; null: none
///   arrays, values   all with the same number of rows; their file numbers index `files`
struct chunked_table {
  std::string format;
  std::string title;
  std::shared_ptr<const io::file_table> files;
  std::shared_ptr<const io::source_description> source;  ///< of the same files
  std::shared_ptr<const file_staleness> watch =
      nullptr;  ///< of the same files; null if they are not checked for any changes
  std::vector<chunked_array> arrays;
  std::vector<placed_values> values;
  std::vector<std::string> notes;
  row_windows rows = {};
  std::shared_ptr<const class_names> classes = {};
};

/// A one-dimensional array becomes a column; if it has floats, or samples are windows of rows, it becomes a field that is kept in
/// memory. Both are read and expanded here. The other arrays are fields of field_kind::tensor that are read when they are wanted.
///   throws   error{errc::format} a chunk that lies beyond its file, or damaged bytes of a one-dimensional array;
///            error{errc::limit} chunks or rows of more than 1 TiB; error{errc::unsupported} rows of more axes than leat::dimensions
///            has; error{errc::usage} a stride of 0, and fewer rows than a window
[[nodiscard]] dataset chunked_rows(chunked_table table);

}  // namespace leat::datasets
