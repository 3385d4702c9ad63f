// The arrays of a Zarr hierarchy in a folder.
#pragma once

#include "datasets/chunked_array.hpp"
#include "datasets/input_files.hpp"

#include <span>
#include <string>
#include <vector>

namespace leat::datasets {

struct zarr_contents {
  std::vector<chunked_array> arrays;  ///< chunk_place::file indexes `files`
  std::vector<sized_file> files;      ///< chunks and shards that are there
  std::vector<std::string> notes;     ///< what was left out, with the reason and what to do about it
};

/// Whether the folder is a group or an array of Zarr, version 2 or 3.
[[nodiscard]] bool is_zarr(const std::string& folder);

/// Reads all metadata, the sizes of all chunks, and the indexes of shards.
///   wanted    arrays by their paths below the folder, "train/images"; empty: all that can be read. A folder that is an array itself is
///             called as the folder, without ".zarr"
///   threads   that look at files; 0: chosen from the machine
///   throws    error{errc::format} metadata or an index that is damaged, with its file; error{errc::unsupported} a wanted array of a kind
///             that leat does not read; error{errc::not_found} a wanted one that is not there
///   source    zarr-specs: v2, v3 core, codecs sharding-indexed 1.0, bytes, gzip, blosc, crc32c; numcodecs
[[nodiscard]] zarr_contents read_zarr(const std::string& folder, std::span<const std::string> wanted = {},
                                      unsigned threads = 0);

}  // namespace leat::datasets
