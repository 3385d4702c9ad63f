// What a .zarray or a zarr.json says of an array.
#pragma once

#include "datasets/formats/zarr/zarr_store.hpp"
#include "datasets/tables/chunked_array.hpp"

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace leat::datasets {

/// How the files of an array are named, and what is in one.
///   array        all but its places
///   file_chunk   elements of a file along each axis: of a chunk, or of a shard, which holds whole chunks
///   prefix, separator
///                the file of coordinates 0, 2 is prefix + "0" + separator + "2"
///   index_filters, index_at_end
///                of shards: what became of the index, and where it lies
struct zarr_layout {
  chunked_array array;
  std::vector<std::uint64_t> file_chunk;
  std::string prefix;
  char separator = '.';
  bool sharded = false;
  std::vector<filter> index_filters;
  bool index_at_end = true;
};

///   name     of the array
///   throws   zarr_not_read; error{errc::format} with `where`
[[nodiscard]] zarr_layout zarr_layout_v2(const nlohmann::json& metadata, const std::string& name,
                                         const std::string& where);
[[nodiscard]] zarr_layout zarr_layout_v3(const nlohmann::json& metadata, const std::string& name,
                                         const std::string& where);

}  // namespace leat::datasets
