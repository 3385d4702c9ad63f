// Shards of MosaicML's streaming library (MDS): their index, and where the values of a shard lie.
#pragma once

#include "datasets/files/file_bytes.hpp"
#include "datasets/tables/record_rows.hpp"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace leat::datasets {

/// A column of a shard.
///   bytes   of each value; 0: as each sample says
struct mds_column {
  std::string name;
  std::string encoding;
  std::uint32_t bytes = 0;
};

///   hashes   of the whole file: their kinds, and as digits
struct mds_shard {
  std::string path;
  std::uint64_t samples = 0;
  std::vector<mds_column> columns;
  std::string compression = {};  ///< as the index says: then `path` may be there, decompressed
  std::vector<std::pair<std::string, std::string>> hashes = {};
};

/// The shards of a folder, as its index.json lists them.
///   throws   error{errc::format} a member that is not there, or of another kind; error{errc::unsupported} other versions
[[nodiscard]] std::vector<mds_shard> read_mds_index(const std::string& folder, const file_bytes& file);

/// Where the values of each sample lie: the table of samples, and the sizes of their values, are read.
///   throws   error{errc::format} with file and offset
[[nodiscard]] record_table read_mds_shard(const file_bytes& file, const mds_shard& shard);

}  // namespace leat::datasets
