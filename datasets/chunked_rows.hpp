// Rows of chunked arrays as a dataset: sample i is row i of each array, or a window of rows, out of one or more chunks.
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

/// Which rows a sample has: those from i * stride on.
///   window   0: one row, without an axis for it
struct row_windows {
  std::uint64_t window = 0;
  std::uint64_t stride = 1;

  [[nodiscard]] std::uint64_t count() const noexcept { return window == 0 ? 1 : window; }
  [[nodiscard]] std::uint64_t first_of(std::uint64_t sample) const noexcept { return sample * stride; }
};

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
  row_windows rows = {};
};

/// The paths that a reader has to find, as array_options::fields names them: none where these may be parts of paths.
[[nodiscard]] std::span<const std::string> wanted_by_path(const array_options& options) noexcept;

/// Leaves those that become fields: in the order of options.fields; without any, those that share the commonest length of the first
/// axis (of several that are as common, the first array's), and a note names the rest. Where arrays are samples, they are joined.
///   title    names the source in errors
///   throws   error{errc::not_found} a name that is not there, with those that are; error{errc::usage} arrays of different lengths,
///            an array without axes, or none at all; as arrays_as_samples()
void choose_arrays(std::vector<chunked_array>& arrays, const array_options& options, const std::string& title,
                   std::vector<std::string>& notes);

/// One-dimensional arrays of integers become columns; where samples are windows of rows, and of floats, they become fields that are kept in
/// memory. Either is read and expanded at once. The others are fields of field_kind::tensor that are read when they are wanted.
///   throws   error{errc::format} a chunk that lies beyond its file, or damaged bytes of a one-dimensional array;
///            error{errc::limit} chunks or rows of more than 1 TiB; error{errc::unsupported} rows of more axes than leat::dimensions
///            has; error{errc::usage} a stride of 0, and fewer rows than a window
[[nodiscard]] dataset chunked_rows(chunked_table table);

}  // namespace leat::datasets
