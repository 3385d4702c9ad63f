// What a tokenizer's file says, as a value.
#pragma once

#include "stages/tokenize/byte_pairs.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace leat::stages {

/// A token that is looked for in the text itself, before it is cut into words.
///   special      it stands for no text ("<|endoftext|>"): in a user's text it is text, unless it is asked for
///   normalized   it is looked for in the normalised text
///   lstrip, rstrip   spaces before it, or behind it, are part of it
struct added_token {
  std::string text;
  std::uint32_t id = 0;
  bool special = false;
  bool normalized = false;
  bool lstrip = false;
  bool rstrip = false;
};

enum class normal_form : std::uint8_t { nfc, nfd, nfkc, nfkd };

/// Cuts each piece of a text further.
///   keeps   both: matches are pieces, and so is what lies between them; rest: matches are left out; matches: the rest is
struct split_rule {
  enum class keeping : std::uint8_t { both, rest, matches };
  std::string expression;
  keeping keeps = keeping::both;
};

/// Steps in their order: added tokens, normal forms, prefix_space, splits, merges.
///   prefix_space    a piece that does not begin with a space is given one
///   before, behind  tokens around each text
struct tokenizer_parts {
  std::vector<vocabulary_entry> vocabulary;
  std::vector<token_merge> merges;
  bool whole_words = false;
  std::vector<added_token> added;
  std::vector<normal_form> forms;
  bool prefix_space = false;
  std::vector<split_rule> splits;
  std::vector<std::uint32_t> before;
  std::vector<std::uint32_t> behind;
};

/// Of a tokenizer.json as the library `tokenizers` writes it.
///   throws   error: format (no such file, damaged), unsupported (what is not read, by name): nothing is approximated
[[nodiscard]] tokenizer_parts parse_tokenizer_json(std::string_view text);

/// Of a *.tiktoken: a token in base64 and its rank on each line.
///   name     of the encoding, which says how a text is cut and which special tokens it has: "cl100k_base", "o200k_base",
///            "p50k_base", "r50k_base", "gpt2"
///   throws   as parse_tokenizer_json()
[[nodiscard]] tokenizer_parts parse_tiktoken(std::string_view text, std::string_view name);

}  // namespace leat::stages
