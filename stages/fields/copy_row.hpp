// A row that is its sample's bytes as they are stored.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstring>
#include <span>

namespace leat::stages {

/// Copies `from` to `to`; false where `stop` was set meanwhile. It is looked at every 4 MiB: whoever stops the loader does not wait
/// for the copy of 1 GB into new memory.
[[nodiscard]] inline bool copy_row(std::span<const std::byte> from, std::byte* to, const std::atomic<bool>* stop) {
  constexpr std::size_t piece_bytes = std::size_t{4} << 20;
  for (std::size_t at = 0; at < from.size(); at += piece_bytes) {
    if (stop != nullptr && stop->load(std::memory_order_relaxed)) return false;
    std::memcpy(to + at, from.data() + at, std::min(piece_bytes, from.size() - at));
  }
  return true;
}

}  // namespace leat::stages
