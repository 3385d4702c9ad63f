#include "tools/rewrite_tally.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <cstddef>

namespace leat::tools {

rewrite_tally::counts rewrite_tally::count() const {
  const std::lock_guard lock(mutex_);
  return count_;
}

std::vector<std::string> rewrite_tally::left() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> sorted = left_;  // Threads come in any order.
  std::sort(sorted.begin(), sorted.end());
  return sorted;
}

void rewrite_tally::add_rewritten(std::uint64_t bytes_before, std::uint64_t bytes_after) {
  const std::lock_guard lock(mutex_);
  ++count_.rewritten;
  count_.bytes_before += bytes_before;
  count_.bytes_after += bytes_after;
}

void rewrite_tally::add_as_it_was() {
  const std::lock_guard lock(mutex_);
  ++count_.as_they_were;
}

void rewrite_tally::leave(std::string_view member, std::string_view why) {
  constexpr std::size_t shown_max = 8;
  const std::lock_guard lock(mutex_);
  ++count_.left;
  if (left_.size() < shown_max) left_.push_back(str_cat(member, ": ", why));
}

}  // namespace leat::tools
