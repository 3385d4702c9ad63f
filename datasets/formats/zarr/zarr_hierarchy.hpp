// The arrays of a Zarr hierarchy.
#pragma once

#include "datasets/files/input_files.hpp"
#include "datasets/tables/chunked_array.hpp"

#include <span>
#include <string>
#include <vector>

namespace leat::datasets {

class zarr_store;

struct zarr_contents {
  std::vector<chunked_array> arrays;  ///< chunk_place::file indexes `files`
  std::vector<sized_file> files;      ///< that chunks and shards lie in, and metadata
  std::vector<std::string> notes;     ///< what was left out, with the reason and what to do about it
};

/// Reads all metadata, finds all chunks, and reads the indexes of shards.
///   wanted    arrays by their paths below the root, "train/images"; empty: all that can be read. A root that is an array itself is
///             called as the folder or file, without ".zarr" or ".json"
///   threads   that look at files; 0: chosen from the machine
///   throws    error{errc::format} metadata or an index that is damaged, with its file; error{errc::unsupported} a wanted array of a kind
///             that leat does not read; error{errc::not_found} a wanted one that is not there; as zarr_store
///   source    zarr-specs: v2, v3 core, codecs sharding-indexed 1.0, bytes, gzip, blosc, crc32c, transpose; numcodecs
[[nodiscard]] zarr_contents read_zarr(zarr_store& store, std::span<const std::string> wanted = {},
                                      unsigned threads = 0);

}  // namespace leat::datasets
