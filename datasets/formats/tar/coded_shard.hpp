// A compressed tar shard: its members and the points where it can be entered, by reading it through once.
#pragma once

#include "datasets/codecs/coded_stream.hpp"
#include "datasets/files/coded_file.hpp"
#include "datasets/files/file_bytes.hpp"
#include "datasets/formats/tar/tar_walk.hpp"
#include "datasets/formats/tar/webdataset.hpp"

#include <cstdint>
#include <memory>

namespace leat::datasets {

/// Offsets of `members` are of what the shard becomes; members.file_bytes is of the shard as it is stored.
struct coded_shard {
  shard_index members;
  std::shared_ptr<const coded_file> file;
};

///   number        of the shard
///   stored_step   as coded_file
///   throws        as tar_walk and coded_file
[[nodiscard]] coded_shard index_coded_shard(const file_bytes& shard, std::uint32_t number, stream_coding coding,
                                            std::uint64_t stored_step, at_end_marker at_marker);

}  // namespace leat::datasets
