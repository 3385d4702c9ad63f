// A text becomes the numbers of its tokens.
#pragma once

#include "stages/tokenize/byte_pairs.hpp"
#include "stages/tokenize/text_normalizer.hpp"
#include "stages/tokenize/tokenizer_parts.hpp"
#include "stages/tokenize/word_model.hpp"
#include "stages/tokenize/word_pattern.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace leat::stages {

/// Words that were encoded before: a fixed number of them, the newest in place of an older one.
class word_cache {
 public:
  static constexpr std::size_t words = std::size_t{1} << 15;
  static constexpr std::size_t word_bytes_max = 30;
  static constexpr std::size_t ids_max = 8;

  struct entry {
    std::uint8_t bytes = 0;  // 0: free
    std::uint8_t count = 0;
    char word[word_bytes_max] = {};
    std::uint32_t ids[ids_max] = {};
  };
  static_assert(sizeof(entry) == 64, "a cache line");

  word_cache() : entries_(words) {}
  [[nodiscard]] entry& of(std::string_view word) noexcept;

 private:
  std::vector<entry> entries_;
};

/// One thread's memory for encoding. It grows with the longest text.
class encode_scratch {
 public:
  explicit encode_scratch(const class text_encoder& of);
  /// What it takes before it grows: the words.
  static constexpr std::size_t bytes_least = word_cache::words * sizeof(word_cache::entry);

 private:
  friend class text_encoder;
  std::vector<std::optional<word_pattern::matcher>> matchers_;  // of each cut
  word_scratch word_;
  word_cache cache_;
  normalize_scratch normalizing_;
  std::string repaired_;
  std::string prefixed_;
  std::string spaced_;  // of metaspace
};

/// special_in_text   special tokens that a text spells are those tokens; else they are text
/// around            the tokens that the file puts before and behind each text
/// is_begin          the text is the first of what it is part of: pre-tokenisers may give that a space
/// ids_max           no more than these are wanted; the first of the text, with those before and behind it
struct encode_options {
  bool special_in_text = false;
  bool around = true;
  bool is_begin = true;
  std::size_t ids_max = static_cast<std::size_t>(-1);
};

/// Thread: any, each with a scratch of its own. Immutable.
class text_encoder {
 public:
  ///   throws   error, as byte_pairs and word_pattern do
  explicit text_encoder(const tokenizer_parts& parts);

  /// Appends the text's tokens. What is no UTF-8 is U+FFFD, one for each run of bytes that begins a character and does not end it
  /// (Unicode 15, table 3-8), as Python's errors="replace" has it.
  ///   returns   why there are none, where a word is longer than byte_pairs::word_bytes_max; nothing otherwise
  ///   throws    error{errc::limit}, as word_pattern::matcher::find()
  [[nodiscard]] std::optional<std::string> encode(std::string_view text, const encode_options& options,
                                                  encode_scratch& scratch, std::vector<std::uint32_t>& ids) const;

  /// The most tokens that a text of so many bytes of UTF-8 has, without those around it.
  [[nodiscard]] std::size_t ids_most(std::size_t text_bytes) const noexcept;
  [[nodiscard]] std::optional<std::uint32_t> find(std::string_view token) const;
  [[nodiscard]] std::size_t ids_around() const noexcept { return before_.size() + behind_.size(); }
  /// One more than the largest number of a token.
  [[nodiscard]] std::uint32_t vocabulary() const noexcept { return vocabulary_; }

 private:
  friend class encode_scratch;
  struct cut {
    split_rule rule;
    std::optional<word_pattern> pattern;
  };
  /// begin of the first added token that is met; token is -1: none
  struct met_token {
    std::int32_t token = -1;
    std::size_t end = 0;
  };
  struct node {
    std::uint32_t next = 0;   // the next node that begins with the same text; 0: none
    std::uint32_t child = 0;  // the first with one more byte; 0: none
    unsigned char byte = 0;
    std::int32_t token = -1;  // in added_
  };
  /// The added tokens of one kind that may be met in a text, as a tree.
  struct finder {
    std::vector<node> nodes{1};
    bool begins[256] = {};
    void add(std::string_view text, std::int32_t token);
  };
  struct run {
    const encode_options& options;
    encode_scratch& scratch;
    std::vector<std::uint32_t>& ids;
    std::size_t end;  // of ids that are wanted
    std::optional<std::string> wrong;
    [[nodiscard]] bool is_over() const { return ids.size() >= end || wrong.has_value(); }
  };

  template <class Piece>
  void by_added(const finder& of, std::string_view text, run& now, const Piece& piece) const;
  [[nodiscard]] static met_token longest_at(const finder& of, std::string_view text, std::size_t at);
  void normalize_piece(std::string_view text, bool is_first, run& now) const;
  void cut_piece(std::string_view text, bool is_first, run& now) const;
  void cut_further(std::string_view text, std::size_t cut, bool is_first, run& now) const;
  void cut_by_pattern(std::string_view text, std::size_t cut, bool is_first, run& now) const;
  void cut_by_letters(std::string_view text, std::size_t cut, bool is_first, run& now) const;
  void cut_by_metaspace(std::string_view text, std::size_t cut, bool is_first, run& now) const;
  void encode_word(std::string_view word, run& now) const;

  std::unique_ptr<const word_model> model_;
  std::vector<added_token> added_;
  finder plain_;       // looked for in the text
  finder normalized_;  // looked for in the normalised text
  text_normalizer normalizer_;
  bool prefix_space_;
  std::vector<cut> cuts_;
  std::vector<std::uint32_t> before_;
  std::vector<std::uint32_t> behind_;
  std::vector<std::pair<std::string, std::uint32_t>> names_;  // sorted
  std::uint32_t vocabulary_ = 0;
};

}  // namespace leat::stages
