#include "stages/order/share_schedule.hpp"

#include "base/random.hpp"

#include <algorithm>
#include <cassert>
#include <limits>
#include <numeric>

namespace leat::stages {

share_schedule::share_schedule(std::span<const double> shares) {
  const double sum = std::accumulate(shares.begin(), shares.end(), 0.0);
  std::uint64_t total = 0;
  for (const double share : shares) {
    shares_.push_back(std::max<std::uint64_t>(1, static_cast<std::uint64_t>(share / sum * static_cast<double>(whole))));
    total += shares_.back();
  }
  *std::max_element(shares_.begin(), shares_.end()) += whole - total;  // What rounding has lost.
  steps_max_ = whole / *std::min_element(shares_.begin(), shares_.end()) + 3;
}

void share_schedule::position::source::advance() noexcept {
  ++given;
  release = next;
  next += quotient;
  rest += remainder;
  if (rest >= share) {
    rest -= share;
    ++next;
  }
}

std::size_t share_schedule::position::step() noexcept {
  std::size_t first = 0;
  std::uint64_t earliest = std::numeric_limits<std::uint64_t>::max();
  for (std::size_t k = 0; k < sources_.size(); ++k) {
    const source& each = sources_[k];
    if (each.release > row_ || each.deadline() >= earliest) continue;
    earliest = each.deadline();
    first = k;
  }
  assert(earliest != std::numeric_limits<std::uint64_t>::max());
  sources_[first].advance();
  ++row_;
  return first;
}

share_schedule::position share_schedule::at(std::uint64_t n) const {
  position found;
  found.row_ = n > steps_max_ ? n - steps_max_ : 0;
  std::uint64_t given = 0;
  for (const std::uint64_t share : shares_) {
    position::source& added = found.sources_.emplace_back();
    added.share = share;
    added.quotient = whole / share;
    added.remainder = whole % share;
    added.given = static_cast<std::uint64_t>(static_cast<uint128>(found.row_) * share / whole);
    added.release = static_cast<std::uint64_t>(static_cast<uint128>(added.given) * whole / share);
    const uint128 next = static_cast<uint128>(added.given + 1) * whole;
    added.next = static_cast<std::uint64_t>(next / share);
    added.rest = static_cast<std::uint64_t>(next % share);
    given += added.given;
  }
  // Each has what is due; what is missing to as many rows goes to those that are in between two of theirs. To which of them
  // does not matter steps_max() rows later.
  for (std::size_t k = 0; given < found.row_; ++k) {
    position::source& each = found.sources_[k];
    if (static_cast<std::uint64_t>(static_cast<uint128>(found.row_) * each.share % whole) == 0) continue;
    each.advance();
    ++given;
  }
  go_on(found, n);
  return found;
}

}  // namespace leat::stages
