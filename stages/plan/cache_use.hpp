// What a run makes of a cache that is smaller than its set.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace leat::stages {

class run_spec;

/// Of a run whose order goes through the set in pools, so that each block is fetched once an epoch and makes way for others when its
/// pool was read. All zero where that is not to be had.
///   passing_bytes   io::source_terms
///   ahead_bytes     how far ahead of this rank's reads somebody says what they will ask for, at least
struct pools_in_cache {
  std::uint64_t passing_bytes = 0;
  std::uint64_t ahead_bytes = 0;
};

///   warning   what a cache with too little room costs, for a person
struct cache_use {
  pools_in_cache pools = {};
  std::optional<std::string> warning = {};
};

///   batches      that this rank has at a time
///   io_threads   of it
struct line_depth {
  std::uint32_t batches = 1;
  std::uint32_t io_threads = 1;
};

[[nodiscard]] cache_use use_of_cache(const run_spec& run, const line_depth& depth);

}  // namespace leat::stages
