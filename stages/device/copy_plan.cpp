#include "stages/device/copy_plan.hpp"

#include <algorithm>
#include <limits>

namespace leat::stages {

// The best way to copy the first n rows ends with some group, before which the best way for fewer is taken.
void plan_copies(std::span<const std::size_t> used, std::vector<copied_rows>& groups,
                 std::vector<std::size_t>& scratch) {
  constexpr std::size_t rows_max = 64;
  const std::size_t rows = used.size();
  scratch.resize(2 * (rows + 1));
  const std::span<std::size_t> cost = std::span(scratch).first(rows + 1);
  const std::span<std::size_t> begin = std::span(scratch).last(rows + 1);  // of the last group
  cost[0] = 0;
  for (std::size_t end = 1; end <= rows; ++end) {
    cost[end] = std::numeric_limits<std::size_t>::max();
    std::size_t widest = 0;
    for (std::size_t first = end; first-- > 0 && end - first <= rows_max;) {
      widest = std::max(widest, used[first]);
      const std::size_t sum = cost[first] + (end - first) * widest + bytes_of_a_call;
      if (sum >= cost[end]) continue;
      cost[end] = sum;
      begin[end] = first;
    }
  }
  groups.clear();
  for (std::size_t end = rows; end != 0; end = begin[end]) {
    const std::span<const std::size_t> of = used.subspan(begin[end], end - begin[end]);
    groups.push_back({.first = static_cast<std::uint32_t>(begin[end]),
                      .count = static_cast<std::uint32_t>(of.size()),
                      .row_bytes = *std::max_element(of.begin(), of.end())});
  }
  std::reverse(groups.begin(), groups.end());
}

}  // namespace leat::stages
