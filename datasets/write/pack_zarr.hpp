// Writes the rows of a dataset as arrays of a Zarr hierarchy, version 3.
#pragma once

#include "datasets/write/pack.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <stop_token>
#include <string>

namespace leat::datasets {

/// What a chunk is packed by: codecs that every reader of Zarr has.
enum class zarr_codec : std::uint8_t {
  none,
  lz4,   ///< the codec "blosc" with lz4, bytes of elements shuffled
  zstd,  ///< level 3
  gzip   ///< level 5
};

struct pack_zarr_options {
  zarr_codec codec = zarr_codec::zstd;
  std::uint64_t rows_per_chunk =
      0;  ///< of every array; 0: as many as make 1 MiB, at least one. Not more than there are rows
  std::uint64_t chunks_per_shard =
      0;  ///< chunks of a file, which ends with its index (`sharding_indexed`); 0: each chunk is a file of its own
  bool shuffle = false;  ///< in an order drawn from the seed; else in the dataset's
  std::uint64_t seed = 0;
  unsigned threads = 0;                                     ///< that pack chunks; 0: as many as the machine has
  std::function<void(const pack_progress&)> progress = {};  ///< called now and then, on the calling thread
  std::stop_token stop = {};
};

/// Writes the group `out`: each field is the array of its name, [samples, row shape...] of its dtype, "train/images" being one in the group
/// "train"; each column one of int64 or of its floats, [samples]. Fields are written one after another.
///
/// The folder gets its name when it is whole and on the disk; killed at any moment, this leaves at most a .NAME.partial, which is no group
/// of Zarr and which the next run uses up.
///   out      is not there, or an empty folder
///   returns  as shards the one folder, with the bytes of all its files
///   memory   twice 16 MiB of rows, or a chunk for each thread (256 MiB at most, one chunk at least), and what they become; 8 bytes per
///            sample where shuffled
///   throws   error{errc::usage} a field that is no field_kind::tensor, is missing in some samples, or whose name cannot be that of an
///            array; chunks above 1 GiB, or more than 2^24 of them; a folder that is not empty; error{errc::limit} disk full;
///            error{errc::changed} as pack(); error{errc::cancelled} on stop; what reading and writing throw. In each case what was begun is removed
///   source   zarr-specs: v3 core, codecs bytes, gzip, blosc, crc32c, sharding-indexed 1.0; zstd as zarr-python has it
[[nodiscard]] pack_result pack_zarr(const dataset& from, const std::string& out, const pack_zarr_options& options = {});

}  // namespace leat::datasets
