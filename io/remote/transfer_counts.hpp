// What the network and the cache have done for the objects of one description, whoever reads them.
#pragma once

#include <atomic>
#include <cstdint>

namespace leat::io {

/// As leat::remote_stats has them. Thread: any.
struct transfer_counts {
  using counter = std::atomic<std::uint64_t>;
  counter requests{0};
  counter bytes{0};
  counter bytes_from_cache{0};
  counter retries{0};
  counter hedges{0};
  counter wait_ns{0};
  counter connections{0};
  counter cached_blocks{0};
  counter damaged_reads{0};
  counter refusals{0};
  counter waiting{0};  ///< now, for a store that is away or throttled

  static void add(counter& to, std::uint64_t count) noexcept { to.fetch_add(count, std::memory_order_relaxed); }
};

}  // namespace leat::io
