// What a tokenizer's file says, as a value.
#pragma once

#include "stages/tokenize/byte_pairs.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
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

/// A step of normalising.
///   form                the normal form
///   lowercase           letter by letter
///   strip_accents       marks of all kinds are left out
///   bert                clean: controls are left out, spaces are a space; chinese: spaces around each such letter; accents: NFD without
///                       nonspacing marks; lower
///   prepend             `text`, before a text
///   replace             each `text` by `by`; replace_expression: each match of it
///   strip               spaces at the left, at the right
///   precompiled         `text` is SentencePiece's precompiled_charsmap
///   sentencepiece       all of SentencePiece's own: `text` is its map, or empty; `kept` are texts that stay as they are. dummy_prefix: a
///                       text is given a space, behind it if `suffix`; lone_spaces: one of several spaces stays, and none at the ends;
///                       escape: a space becomes U+2581. Bytes that are no UTF-8 become U+FFFD, one by one
struct normal_step {
  enum class kind : std::uint8_t {
    form,
    lowercase,
    strip_accents,
    bert,
    prepend,
    replace,
    replace_expression,
    strip,
    precompiled,
    sentencepiece
  };
  kind what = kind::form;
  normal_form form = normal_form::nfc;
  std::string text = {};  // The braces spare who names some members the others.
  std::string by = {};
  bool left = false;
  bool right = false;
  bool clean = false;
  bool chinese = false;
  bool accents = false;
  bool lower = false;
  std::vector<std::string> kept = {};
  bool dummy_prefix = false;
  bool lone_spaces = false;
  bool escape = false;
  bool suffix = false;
};

/// Cuts each piece of a text further.
///   what    matches of the expression; spaces and punctuation are single letters; metaspace: spaces become `expression`, a piece that
///           does not begin with it is given one (`prepends`), and the cuts are before each, if it `cuts`; runs: the cuts are before each
///           run of `expression`, which is a text; or, where it keeps `behind`, behind it
///   keeps   both: matches are pieces, and so is what lies between them; rest: matches are left out; matches: the rest is;
///           before, behind: the cut is before each match, or behind it
struct split_rule {
  enum class kind : std::uint8_t { expression, spaces, punctuation, metaspace, runs };
  enum class keeping : std::uint8_t { both, rest, matches, before, behind };
  enum class prepending : std::uint8_t { never, first, always };
  std::string expression = {};
  keeping keeps = keeping::both;
  kind what = kind::expression;
  prepending prepends = prepending::never;
  bool cuts = true;
};

/// What makes tokens of a word.
///   byte_pairs     merges, from bytes on
///   letter_pairs   merges, from letters on. Of a letter that is no token come its bytes' tokens, `of_bytes`, or `unknown`
///   unigram        the tokens of the greatest sum of scores, one for each entry of the vocabulary
///   word_pieces    the longest token from the left; behind the first one those that begin with `prefix`
///   piece_unigram, piece_pairs   SentencePiece's own: scores of single precision that are summed over a whole text; merges that begin
///                  from letters that are no tokens, too (`letters`), and leave `frozen` tokens alone
enum class word_model_kind : std::uint8_t {
  byte_pairs,
  letter_pairs,
  unigram,
  word_pieces,
  piece_unigram,
  piece_pairs
};

/// Steps in their order: added tokens, normalising, prefix_space, splits, the model.
///   whole_words     a word that is in the vocabulary is that token, before anything is merged
///   prefix_space    a piece that does not begin with a space is given one
///   of_bytes        256 of them, or none
///   fuse_unknown    unknown letters in a row are one token
///   letters_max     a longer word is unknown
///   before, behind  tokens around each text
///   known           of piece_unigram, with `scores`, and piece_pairs: the tokens that text becomes. The vocabulary has all
///   eos             the token that ends a text, where the file names it
struct tokenizer_parts {
  word_model_kind model = word_model_kind::byte_pairs;
  std::vector<vocabulary_entry> vocabulary;
  std::vector<token_merge> merges;
  std::vector<double> scores;
  bool whole_words = false;
  std::optional<std::uint32_t> unknown;
  bool fuse_unknown = false;
  std::vector<std::uint32_t> of_bytes;
  std::string prefix;
  std::size_t letters_max = 0;
  std::vector<added_token> added;
  std::vector<normal_step> normalizing;
  bool prefix_space = false;
  std::vector<split_rule> splits;
  std::vector<std::uint32_t> before;
  std::vector<std::uint32_t> behind;
  std::vector<vocabulary_entry> known = {};
  std::vector<vocabulary_entry> letters = {};
  std::vector<vocabulary_entry> frozen = {};
  double unknown_score = 0;
  std::optional<std::string> eos = {};
};

/// Of a tokenizer.json as the library `tokenizers` writes it.
///   throws   error: format (no such file, damaged), unsupported (what is not read, by name): nothing is approximated
[[nodiscard]] tokenizer_parts parse_tokenizer_json(std::string_view text);

/// Of a *.tiktoken: a token in base64 and its rank on each line.
///   name     of the encoding, which says how a text is cut and which special tokens it has: "cl100k_base", "o200k_base",
///            "p50k_base", "r50k_base", "gpt2"
///   throws   as parse_tokenizer_json()
[[nodiscard]] tokenizer_parts parse_tiktoken(std::string_view text, std::string_view name);

/// Of SentencePiece's tokenizer.model: unigram and bpe.
///   throws   as parse_tokenizer_json()
[[nodiscard]] tokenizer_parts parse_sentencepiece(std::string_view bytes);

}  // namespace leat::stages
