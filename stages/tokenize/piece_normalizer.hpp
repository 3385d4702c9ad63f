// SentencePiece's own way to normalise a text: letters by its map, spaces as a letter.
#pragma once

#include "stages/tokenize/precompiled_map.hpp"
#include "stages/tokenize/token_tree.hpp"
#include "stages/tokenize/tokenizer_parts.hpp"

#include <bitset>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace leat::stages {

/// Thread: any. Immutable.
class piece_normalizer {
 public:
  ///   throws   error, as precompiled_map and token_tree do
  explicit piece_normalizer(const normal_step& how);

  ///   text   any bytes
  ///   to     is appended to; empty before
  void normalize(std::string_view text, std::string& to) const;

  /// How many bytes come of one at most, and how many more.
  [[nodiscard]] std::size_t factor() const noexcept { return factor_; }
  [[nodiscard]] std::size_t more() const noexcept { return dummy_prefix_ ? space_.size() : 0; }

 private:
  struct prefix {
    std::string_view into;
    std::size_t bytes;
  };
  [[nodiscard]] prefix first(std::string_view text) const noexcept;
  [[nodiscard]] std::size_t plain_bytes(std::string_view text) const noexcept;

  precompiled_map map_;
  std::optional<token_tree> kept_;
  std::string_view space_;
  bool dummy_prefix_;
  bool lone_spaces_;
  bool suffix_;
  std::size_t factor_ = 1;
  // Of two bytes of ASCII one after another: whether the first one stays as it is.
  std::bitset<128 * 128> plain_;
};

}  // namespace leat::stages
