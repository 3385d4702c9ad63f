// The tokens of a vocabulary as a tree of their bytes: which of them does a text begin with?
#pragma once

#include "stages/tokenize/byte_pairs.hpp"

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string_view>
#include <vector>

namespace leat::stages {

/// A double array: a step is one place of memory. Thread: any. Immutable.
class token_tree {
 public:
  static constexpr std::uint32_t none = std::numeric_limits<std::uint32_t>::max();
  static constexpr std::uint32_t root = 0;
  /// A text is looked through from each of its places, so far at most.
  static constexpr std::size_t token_bytes_max = 1024;

  /// Of two entries with the same bytes the last counts. Those without bytes are left out.
  ///   throws   error{errc::unsupported} naming a token that is longer than token_bytes_max
  explicit token_tree(std::span<const vocabulary_entry> vocabulary);

  /// The node one byte further, or none.
  [[nodiscard]] std::uint32_t next(std::uint32_t node, unsigned char byte) const noexcept {
    const std::size_t at = std::size_t{units_[node].base} + byte;
    return units_[at].parent == node ? static_cast<std::uint32_t>(at) : none;
  }
  /// The node of a text, or none.
  [[nodiscard]] std::uint32_t walk(std::string_view text, std::uint32_t node = root) const noexcept;
  /// The token that ends there, as the place of its entry; or none.
  [[nodiscard]] std::uint32_t entry(std::uint32_t node) const noexcept { return units_[node].entry; }

 private:
  struct unit {
    std::uint32_t base = 0;
    std::uint32_t parent = none;
    std::uint32_t entry = none;
  };
  std::vector<unit> units_;
};

}  // namespace leat::stages
