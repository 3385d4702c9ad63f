#include "tests/support/memory_watch.hpp"

#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <utility>

namespace leat::testing {

void fail_hard(const std::string& what) noexcept {
  std::fprintf(stderr, "%s\n", what.c_str());
  std::fflush(stderr);
  std::abort();
}

void memory_watch::claim(std::span<const std::byte> memory, std::string by) {
  if (memory.empty()) return;
  const auto begin = reinterpret_cast<std::uintptr_t>(memory.data());
  const std::uintptr_t end = begin + memory.size();
  const mutex_lock lock(mutex_);
  auto after = claims_.lower_bound(begin);
  // Claims do not overlap each other, so only the neighbours can be in the way.
  auto other = claims_.end();
  if (after != claims_.end() && after->first < end) other = after;
  if (after != claims_.begin() && std::prev(after)->second.end > begin) other = std::prev(after);
  if (other != claims_.end()) {
    fail_hard("memory lent twice: " + by + " was given bytes that still belong to " + other->second.by +
              "; a lease went home, or was passed on, before its operation was done");
  }
  claims_.emplace_hint(after, begin, claimed{end, std::move(by)});
}

void memory_watch::release(std::span<const std::byte> memory) {
  if (memory.empty()) return;
  const auto begin = reinterpret_cast<std::uintptr_t>(memory.data());
  const mutex_lock lock(mutex_);
  const auto found = claims_.find(begin);
  if (found == claims_.end() || found->second.end != begin + memory.size()) {
    fail_hard("memory released that nobody holds");
  }
  claims_.erase(found);
}

}  // namespace leat::testing
