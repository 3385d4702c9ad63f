// References to the chunks of arrays, as kerchunk writes them: other programs read HDF5 and Zarr by them, through fsspec.
#pragma once

#include "datasets/files/input_files.hpp"
#include "datasets/tables/chunked_array.hpp"

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace leat::datasets {

/// Arrays, and the files that their chunks lie in: chunk_place::file indexes them.
struct referable_arrays {
  std::vector<chunked_array> arrays;
  std::vector<sized_file> files;
};

/// The arrays that open() makes fields of.
///   source   an HDF5 file, a folder of Zarr, or references
///   fields   as open_options::fields
///   throws   as open(); error{errc::usage} a source of another format, or of several files
[[nodiscard]] referable_arrays arrays_to_refer_to(const std::string& source, std::span<const std::string> fields);

/// JSON of version 1: metadata of Zarr version 2 for each array, and [path, offset, length] for each chunk that was written. Paths are
/// absolute, since others take relative ones from the working directory. Chunks that are kept in memory are written into it.
///   write    called with one piece after another
///   throws   error{errc::unsupported} an array that Zarr version 2 and numcodecs have no words for, by name, with what it is; whatever
///            `write` throws
///   source   fsspec.github.io/kerchunk/spec.html; zarr-specs v2; numcodecs
void write_references(const referable_arrays& what, const std::function<void(std::string_view)>& write);

}  // namespace leat::datasets
