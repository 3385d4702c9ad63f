// The headers of many shards, read through a source: each shard is a walk that waits for one read at a time, and as many
// shards as the drive needs are walked at once on each loop's thread. The loops take shards from one counter.
#pragma once

#include "datasets/formats/tar/webdataset.hpp"
#include "io/files/source.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace leat::datasets {

struct tar_index_options {
  std::uint32_t shards_in_flight = 64;  ///< of all loops together; at least one each
  at_end_marker at_marker = at_end_marker::stop;
  /// Up to this distance from header to header, reading over costs less than skipping. 20 KiB apart, 24,000 headers took 280 ms read over
  /// and 440 ms skipped, on a virtual disk of 3 GiB/s; 55 KiB apart (photographs with labels) skipping won.
  std::uint64_t stride_read_over_max = 24 << 10;
  std::uint64_t buffer_bytes_max = 256 << 10;  ///< of what is read over
};

/// What reading the headers took.
struct tar_index_report {
  std::uint64_t reads = 0;
  std::uint64_t bytes = 0;
  std::uint64_t members = 0;
};

/// Indexes every file of `shards` as a tar archive. Blocks the calling thread, which must be none of the loops'.
///   loops     at least one
///   returns   one index per file, in order
///   throws    the error of the first shard that failed: first in the list, not in time
[[nodiscard]] std::vector<shard_index> index_tar_shards(const io::source_description& shards,
                                                        std::span<io::connector* const> loops,
                                                        const tar_index_options& options,
                                                        tar_index_report* report = nullptr);

}  // namespace leat::datasets
