// The batches in the consumer's hands.
#pragma once

#include "stages/observe/occupancy.hpp"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace leat::stages {

/// How many there are, over time, and which. Thread: any, and no lock, as occupancy.
class batches_out {
 public:
  using place = std::pair<std::uint32_t, std::uint64_t>;  ///< epoch, and the batch's number in it

  /// Returns what remove() takes.
  std::size_t add(std::uint64_t now_ns, const place& of) noexcept {
    count_.add(now_ns);
    for (std::size_t slot = 0; slot < slots_.size(); ++slot) {
      std::uint64_t expected = 0;
      if (slots_[slot].compare_exchange_strong(expected, packed(of), std::memory_order_relaxed)) return slot;
    }
    return slots_.size();
  }
  void remove(std::uint64_t now_ns, std::size_t slot) noexcept {
    count_.remove(now_ns);
    if (slot < slots_.size()) slots_[slot].store(0, std::memory_order_relaxed);
  }

  [[nodiscard]] std::uint64_t count() const noexcept { return count_.count(); }
  [[nodiscard]] std::uint64_t stays_ns(std::uint64_t now_ns) const noexcept { return count_.stays_ns(now_ns); }
  /// Of the first of many, in no order.
  [[nodiscard]] std::vector<place> places() const {
    std::vector<place> all;
    for (const std::atomic<std::uint64_t>& slot : slots_) {
      const std::uint64_t value = slot.load(std::memory_order_relaxed);
      if (value != 0) all.emplace_back(static_cast<std::uint32_t>((value - 1) >> index_bits), (value - 1) & index_mask);
    }
    return all;
  }

 private:
  static constexpr unsigned index_bits = 40;
  static constexpr std::uint64_t index_mask = (std::uint64_t{1} << index_bits) - 1;
  static constexpr std::uint64_t packed(const place& of) noexcept {
    return ((std::uint64_t{of.first} << index_bits) | (of.second & index_mask)) + 1;
  }

  occupancy count_;
  std::array<std::atomic<std::uint64_t>, 16> slots_ = {};  // 0: free
};

}  // namespace leat::stages
