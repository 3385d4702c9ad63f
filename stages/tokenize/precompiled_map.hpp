// SentencePiece's precompiled_charsmap: a double array of texts, and what stands for each of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace leat::stages {

/// Thread: any. Immutable.
class precompiled_map {
 public:
  ///   blob     the array's size in bytes (u32, little-endian), the array, and texts that end in a zero
  ///   throws   error{errc::format} naming what of it is damaged: an entry that leads out of the array, or to no text
  ///   space    how many bytes become of a space, for factor()
  explicit precompiled_map(std::string_view blob, std::size_t space = 1);

  /// What a text begins with. `bytes` is 0: with nothing of the map.
  struct found {
    std::size_t bytes = 0;
    std::string_view into;
  };
  [[nodiscard]] found shortest(std::string_view text) const noexcept { return find(text, false); }
  [[nodiscard]] found longest(std::string_view text) const noexcept { return find(text, true); }

  /// Whether something of the map begins with this text.
  [[nodiscard]] bool leads_on(std::string_view text) const noexcept;

  /// How many bytes come of one at most.
  [[nodiscard]] std::size_t factor() const noexcept { return factor_; }

 private:
  [[nodiscard]] found find(std::string_view text, bool longest) const noexcept;
  void walk(std::size_t space);

  std::vector<std::uint32_t> units_;
  std::string texts_;
  std::size_t factor_ = 1;
};

}  // namespace leat::stages
