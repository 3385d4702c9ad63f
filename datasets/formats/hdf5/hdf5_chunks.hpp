// Where HDF5 keeps the chunks of a dataset: six kinds of index.
#pragma once

#include "datasets/formats/hdf5/hdf5_bytes.hpp"
#include "datasets/tables/chunked_array.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace leat::datasets {

enum class hdf5_index : std::uint8_t { old_tree, single, implicit, fixed_array, extensible_array, tree };

/// What a layout message says of a chunked dataset.
///   shape, shape_max   shape_max: ~0 for an axis that may grow for ever
///   chunk_bytes        of a chunk that no filter has changed
///   single             of hdf5_index::single with filters: stored bytes and mask
struct hdf5_chunking {
  hdf5_index index = hdf5_index::old_tree;
  std::uint64_t address = hdf5_cursor::undefined;
  std::vector<std::uint64_t> shape;
  std::vector<std::uint64_t> shape_max;
  std::vector<std::uint64_t> chunk;
  std::uint64_t chunk_bytes = 0;
  std::uint64_t single_bytes = 0;
  std::uint32_t single_skipped = 0;
};

/// The places of all chunks of the grid, in C order.
///   throws   error{errc::format} an index that is damaged, and one with more chunks than the file has room for
///   source   HDF5 File Format Specification 3.0, III.A.1, VII
[[nodiscard]] std::vector<chunk_place> read_chunk_index(hdf5_bytes& file, const hdf5_chunking& what);

}  // namespace leat::datasets
