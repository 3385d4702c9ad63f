// The index of a shard: where its chunks lie in it.
#pragma once

#include "datasets/tables/chunked_array.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace leat::datasets {

/// Bytes of the index as it is stored.
///   filters   that it went through: crc32c only
[[nodiscard]] std::uint64_t shard_index_bytes(std::uint64_t chunks, std::span<const filter> filters) noexcept;

/// Places within the shard, in C order of its chunks; absent for those that were never written.
///   stored        shard_index_bytes() of them
///   shard_bytes   of the whole shard
///   where         names the shard and the index in errors
///   throws        error{errc::format} an index that is damaged, or has a chunk beyond the shard
///   source        zarr-specs: codecs sharding-indexed 1.0
[[nodiscard]] std::vector<chunk_place> parse_shard_index(std::span<const std::byte> stored, std::uint64_t chunks,
                                                         std::span<const filter> filters, std::uint64_t shard_bytes,
                                                         const std::string& where);

}  // namespace leat::datasets
