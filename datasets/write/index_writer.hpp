// Writes the indexes that lie beside tar shards (datasets/formats/tar/shard_index_file.hpp).
#pragma once

#include <leat/open_tar.hpp>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace leat::datasets {

struct written_index {
  std::string path;
  std::uint64_t shards = 0;
  std::uint64_t samples = 0;
  std::uint64_t bytes = 0;
};

/// Walks over shards and writes an index of all those of a folder whose names differ in their last digits only. One that is there is
/// replaced when the new one is whole.
///   shards    paths, or addresses as expand_addresses() gives them; not both
///   options   ignore_zeros is in the index, and shards_in_flight
///   folder    where they are written; empty: beside the shards
///   throws    as open_tar(); error{errc::usage} shards at addresses without a folder; as explain_write(), a file that cannot be written
[[nodiscard]] std::vector<written_index> write_indexes(std::span<const std::string> shards, const tar_options& options,
                                                       const remote_options& remote, const std::string& folder = {});

}  // namespace leat::datasets
