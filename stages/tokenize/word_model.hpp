// What makes tokens of one word.
#pragma once

#include "stages/tokenize/byte_pairs.hpp"
#include "stages/tokenize/tokenizer_parts.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

namespace leat::stages {

/// One thread's memory for a word. It grows with the longest one.
struct word_scratch {
  /// The best way to a place of a word: where its last token begins, and which one that is.
  struct step {
    double score;
    std::uint32_t begin;
    std::uint32_t entry;
  };
  merge_scratch merging;
  std::vector<std::uint32_t> symbols;
  std::vector<step> steps;
  /// Likewise, of SentencePiece's.
  struct piece_step {
    float score;
    std::uint32_t begin;
    std::uint32_t id;
  };
  std::vector<piece_step> piece_steps;
  std::vector<std::uint32_t> merged;
  float score_before = 0;  // of the text's words before this one, where is_of_word_alone() is false
};

/// Thread: any, each with a scratch of its own. Immutable.
class word_model {
 public:
  virtual ~word_model() = default;
  /// Appends the word's tokens.
  ///   word   UTF-8, 1 to byte_pairs::word_bytes_max bytes
  virtual void encode(std::string_view word, word_scratch& scratch, std::vector<std::uint32_t>& ids) const = 0;
  /// Whether equal words have equal tokens wherever they stand.
  [[nodiscard]] virtual bool is_of_word_alone() const noexcept { return true; }

 protected:
  word_model() = default;
  word_model(const word_model&) = default;
  word_model& operator=(const word_model&) = default;
};

///   throws   error, as byte_pairs and token_tree do
[[nodiscard]] std::unique_ptr<const word_model> make_word_model(const tokenizer_parts& parts);
/// SentencePiece's own.
[[nodiscard]] std::unique_ptr<const word_model> make_piece_model(const tokenizer_parts& parts);

}  // namespace leat::stages
