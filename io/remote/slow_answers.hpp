// Which answers are later than nearly all others of their size, and whether they may be asked for a second time.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace leat::io {

/// Of a client's answers. Sizes are told apart by powers of two.
class slow_answers {
 public:
  /// From its question to its last byte.
  void add(std::uint64_t bytes, std::uint64_t took_ns) {
    budget_bytes_ = std::min(budget_most, budget_bytes_ + share * static_cast<double>(bytes));
    group& of = group_of(bytes);
    if (of.took_ns.size() < kept) {
      of.took_ns.push_back(took_ns);
    } else {
      of.took_ns[of.next] = took_ns;
      of.next = (of.next + 1) % kept;
    }
    if (++of.since_counted < counted_every || of.took_ns.size() < least) return;
    of.since_counted = 0;
    std::vector<std::uint64_t> sorted = of.took_ns;
    const std::size_t place = sorted.size() - 1 - sorted.size() / 100;
    std::nth_element(sorted.begin(), sorted.begin() + static_cast<std::ptrdiff_t>(place), sorted.end());
    of.late_ns = sorted[place];
  }
  /// Longer than 99 of 100 took; for ever, where too few are known.
  [[nodiscard]] std::uint64_t late_ns(std::uint64_t bytes) { return group_of(bytes).late_ns; }

  /// Takes them from what may be asked for twice: a fiftieth of all that has come.
  [[nodiscard]] bool may_ask_again_for(std::uint64_t bytes) {
    if (budget_bytes_ < static_cast<double>(bytes)) return false;
    budget_bytes_ -= static_cast<double>(bytes);
    return true;
  }

 private:
  static constexpr std::size_t kept = 256;
  static constexpr std::size_t least = 100;
  static constexpr std::size_t counted_every = 16;
  static constexpr double share = 0.02;
  static constexpr double budget_most = 64U << 20;
  struct group {
    std::vector<std::uint64_t> took_ns;
    std::size_t next = 0;
    std::size_t since_counted = 0;
    std::uint64_t late_ns = std::numeric_limits<std::uint64_t>::max();
  };
  group& group_of(std::uint64_t bytes) { return groups_[std::bit_width(bytes)]; }

  std::array<group, 65> groups_;
  double budget_bytes_ = 0;
};

}  // namespace leat::io
