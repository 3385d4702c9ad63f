// A text as the tokenizer's vocabulary is written: other forms of letters, other spaces.
#pragma once

#include "stages/tokenize/piece_normalizer.hpp"
#include "stages/tokenize/precompiled_map.hpp"
#include "stages/tokenize/tokenizer_parts.hpp"
#include "stages/tokenize/word_pattern.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace leat::stages {

/// One thread's memory for normalising. It grows with the longest text.
class normalize_scratch {
 public:
  explicit normalize_scratch(const class text_normalizer& of);

 private:
  friend class text_normalizer;
  std::vector<std::int32_t> letters_;
  std::string text_;
  std::string other_;
  std::vector<word_pattern::matcher> matchers_;
};

/// Thread: any, each with a scratch of its own. Immutable.
class text_normalizer {
 public:
  ///   throws   error, as word_pattern and precompiled_map do
  explicit text_normalizer(const std::vector<normal_step>& steps);

  ///   text      UTF-8, not empty
  ///   returns   the text itself, or what lies in the scratch until it is used again
  [[nodiscard]] std::string_view normalized(std::string_view text, normalize_scratch& scratch) const;

  [[nodiscard]] bool is_nothing() const noexcept { return steps_.empty(); }
  /// Of SentencePiece's: a text need not be UTF-8, and what comes of it is.
  [[nodiscard]] bool takes_any_bytes() const noexcept {
    return !steps_.empty() && steps_.front().what.what == normal_step::kind::sentencepiece;
  }
  /// How many times as many bytes a text has at most, by any one of the steps; and how many more.
  [[nodiscard]] std::size_t factor() const noexcept { return factor_; }
  [[nodiscard]] std::size_t more() const noexcept { return more_; }

 private:
  friend class normalize_scratch;
  struct step {
    normal_step what;
    std::optional<word_pattern> pattern;    // of a replacement by an expression
    std::optional<precompiled_map> mapped;  // of a precompiled one
    std::optional<piece_normalizer> pieces;
  };
  std::string_view apply(const step& by, std::string_view text, std::string& to, std::size_t matcher,
                         normalize_scratch& scratch) const;

  std::vector<step> steps_;
  std::size_t factor_ = 1;
  std::size_t more_ = 0;
};

}  // namespace leat::stages
