// The arrays of an HDF5 file.
#pragma once

#include "datasets/files/file_bytes.hpp"
#include "datasets/files/input_files.hpp"
#include "datasets/formats/hdf5/hdf5_attributes.hpp"
#include "datasets/tables/chunked_array.hpp"

#include <memory>
#include <span>
#include <string>
#include <vector>

namespace leat::datasets {

///   attributes   those that are wanted, of all objects
///   linked   other files, which external links lead to: file 1, file 2 and so on of the places
struct hdf5_contents {
  std::vector<chunked_array> arrays;
  std::vector<placed_values> values;
  std::shared_ptr<const hdf5_attributes> attributes;
  std::vector<std::string> notes;  ///< what was left out, with the reason and what to do about it
  std::vector<sized_file> linked;
};

/// Reads headers and indexes; this file is file 0 of the places.
///   wanted   arrays by their paths in the file, "train/images"; empty: all that can be read
///   attributes   names of attributes; one that is no number and no text is refused
///   beside   files that external links may lead to, by their names; null: such links are refused
///   throws   error{errc::format} a damaged file; error{errc::unsupported} a wanted array of a kind that leat does not read, and a file
///            that is open for writing; error{errc::not_found} a wanted one that is not there
///   source   HDF5 File Format Specification 3.0
[[nodiscard]] hdf5_contents read_hdf5(const file_bytes& file, std::span<const std::string> wanted = {},
                                      const input_files* beside = nullptr,
                                      std::span<const std::string> attributes = {});

}  // namespace leat::datasets
