// What packing into Zarr will write: arrays, their chunks and their metadata.
#pragma once

#include "datasets/codecs/compress.hpp"
#include "datasets/tables/row_reader.hpp"
#include "datasets/write/pack_zarr.hpp"

#include <leat/samples.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace leat::datasets {

/// An array that will be written.
///   place    its field, alone in a record
///   chunks   in all; of each, all rows are there on the disk, those beyond the last sample being zeros
struct zarr_array_plan {
  std::string name;
  row_place place;
  dtype type = dtype::u8;
  dimensions row_shape;
  std::uint64_t samples = 0;
  std::uint64_t rows_per_chunk = 1;
  std::uint64_t chunk_bytes = 0;  ///< before they are packed
  std::uint64_t chunks = 0;
  std::uint64_t chunks_per_shard = 0;  ///< 0: no shards

  [[nodiscard]] bool is_sharded() const noexcept { return chunks_per_shard != 0; }
};

struct zarr_plan {
  std::vector<zarr_array_plan> arrays;
  std::vector<std::string> groups;  ///< below the root, each before those within it
};

///   throws   error{errc::usage}, as pack_zarr()
[[nodiscard]] zarr_plan plan_zarr(const dataset& from, const pack_zarr_options& options);

/// zarr.json of a group, and of an array.
[[nodiscard]] std::string zarr_group_json();
[[nodiscard]] std::string zarr_array_json(const zarr_array_plan& array, zarr_codec codec);

/// How a chunk of this codec is packed.
[[nodiscard]] packing packing_of(zarr_codec codec) noexcept;

/// Where a chunk or shard lies below its array: "c/12/0/0".
[[nodiscard]] std::string zarr_chunk_key(const zarr_array_plan& array, std::uint64_t number);

}  // namespace leat::datasets
