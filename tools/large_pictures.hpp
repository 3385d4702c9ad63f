// Pictures that end a run, since decoding them takes more memory than a loader gives one: found before the run (leat inspect).
#pragma once

#include <leat/dataset.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace leat::tools {

struct large_picture {
  std::uint64_t sample = 0;
  std::string name;
  std::size_t bytes = 0;  ///< of memory to decode it
};

/// What was found, the largest first.
///   host_bytes_max     the loader's budget that was looked at
///   looked_at          pictures: the largest files, where there are many
///   host_bytes_enough  the budget that does for all of them
struct large_pictures {
  std::size_t host_bytes_max = 0;
  std::uint64_t looked_at = 0;
  std::vector<large_picture> over;
  std::size_t host_bytes_enough = 0;
};

/// How far it is, for a status line. Thread: read on any.
struct measuring_progress {
  std::atomic<std::uint64_t> measured = 0;
  std::atomic<std::uint64_t> pictures = 0;  ///< that will be measured; 0 until that is known
};

/// Reads the largest pictures, at most a few hundred, and decodes those that may take too much, as the loader would.
[[nodiscard]] large_pictures find_large_pictures(const dataset& samples, std::size_t host_bytes_max,
                                                 measuring_progress& so_far);

}  // namespace leat::tools
