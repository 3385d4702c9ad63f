#include "stages/cache_cost.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <cstdint>

namespace leat::stages {

std::optional<std::string> describe_cache_cost(const bound_run& run) {
  io::cache_room room;
  std::uint32_t reads = 0;
  for (const auto& each : run.dataset().sources()) {
    const std::optional<io::cache_room> one = each->cached();
    if (!one) continue;
    room.bytes_max = std::max(room.bytes_max, one->bytes_max);  // they share it
    room.bytes_all += one->bytes_all;
    reads = std::max(reads, each->in_flight().reads);
  }
  if (room.bytes_all <= room.bytes_max) return std::nullopt;
  const double missing = 1 - static_cast<double>(room.bytes_max) / static_cast<double>(room.bytes_all);
  const std::uint64_t samples = run.epoch_samples();
  std::uint64_t requests = samples;
  if (run.order().in_order()) requests = std::min(samples, run.epoch_bytes() / planner::joined_bytes_max + 1);
  return str_cat("the cache has room for ", bytes_text(room.bytes_max), " of ", bytes_text(room.bytes_all),
                 ": each epoch asks for what has none by samples, in about ",
                 static_cast<std::uint64_t>(static_cast<double>(requests) * missing), " requests by up to ", reads,
                 " connections; with cache_bytes of ", bytes_text(room.bytes_all, rounding::up),
                 " later epochs ask for nothing");
}

}  // namespace leat::stages
