// Objects that are fetched into a cache before anybody wants them.
#pragma once

#include <leat/remote.hpp>
#include <leat/stats.hpp>

#include <atomic>
#include <cstdint>
#include <span>
#include <stop_token>
#include <string>

namespace leat::datasets {

/// How far it is. Thread: any.
struct warming {
  std::atomic<std::uint64_t> objects{0};  ///< that were read through
  std::atomic<std::uint64_t> bytes{0};    ///< likewise
  std::atomic<std::uint64_t> bytes_all{0};
};

/// Reads a little of each block of these objects, in their order, so that the cache fetches what it lacks. It ends early where the cache
/// has no room for more, or is off.
///   addresses   as expand_addresses() gives them
///   options     with a cache, or LEAT_CACHE is set
///   returns     what the network and the cache did
///   throws      as io::describe_objects(), and the error of an object that cannot be read; error{errc::cancelled} by `stop`;
///               error{errc::usage} without a cache
struct warmed {
  remote_stats counts;
  bool is_whole = false;  ///< each block is there
  std::string why;        ///< else
};
[[nodiscard]] warmed warm_cache(std::span<const std::string> addresses, const remote_options& options, warming& so_far,
                                const std::stop_token& stop);

}  // namespace leat::datasets
