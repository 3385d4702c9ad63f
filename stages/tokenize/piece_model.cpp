// SentencePiece's models, as its own program computes them.
//   source   google/sentencepiece 0.2.3: unigram_model.cc, EncodeOptimized(); bpe_model.cc, SampleEncode()
#include "stages/tokenize/byte_pairs.hpp"
#include "stages/tokenize/reference_letters.hpp"
#include "stages/tokenize/token_tree.hpp"
#include "stages/tokenize/word_model.hpp"

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

namespace leat::stages {
namespace {

constexpr std::uint32_t nowhere = token_tree::none;

// What becomes of letters that no token has: their bytes' tokens, or one unknown token for all in a row.
class unknown_letters {
 public:
  explicit unknown_letters(const tokenizer_parts& parts) : of_bytes_(parts.of_bytes), unknown_(*parts.unknown) {}

  //   is_further   the token before was unknown, too
  void write(std::string_view text, bool is_further, std::vector<std::uint32_t>& ids) const {
    if (of_bytes_.empty()) {
      if (!is_further) ids.push_back(unknown_);
      return;
    }
    for (const char byte : text) ids.push_back(of_bytes_[static_cast<unsigned char>(byte)]);
  }

 private:
  std::vector<std::uint32_t> of_bytes_;
  std::uint32_t unknown_;
};

// Sums are of single precision, over all of a text: which of two nearly equal ways is taken may follow from what stands before. So they
// go on from word to word.
class piece_unigram final : public word_model {
 public:
  explicit piece_unigram(const tokenizer_parts& parts)
      : tree_(parts.known), unknown_(parts), unknown_score_(static_cast<float>(parts.unknown_score)) {
    for (std::size_t i = 0; i < parts.known.size(); ++i) {
      pieces_.push_back({.score = static_cast<float>(parts.scores[i]), .id = parts.known[i].id});
    }
  }

  [[nodiscard]] bool is_of_word_alone() const noexcept override { return false; }

  void encode(std::string_view word, word_scratch& scratch, std::vector<std::uint32_t>& ids) const override {
    std::vector<word_scratch::piece_step>& steps = scratch.piece_steps;
    steps.assign(word.size() + 1, {.score = 0, .begin = nowhere, .id = nowhere});
    steps.front().score = scratch.score_before;
    std::size_t furthest = 0;
    for (std::size_t at = 0; at < word.size();) {
      if (steps[at].score < -score_most || steps[at].score > score_most) lower(steps, at, furthest);
      const float here = steps[at].score;
      const std::size_t letter = std::min(letter_bytes(word[at]), word.size() - at);
      bool is_single = false;
      const auto reach = [&](std::size_t end, float score, std::uint32_t id) {
        furthest = std::max(furthest, end);
        word_scratch::piece_step& to = steps[end];
        if (to.begin == nowhere || score > to.score) to = {score, static_cast<std::uint32_t>(at), id};
      };
      std::uint32_t node = token_tree::root;
      for (std::size_t i = at; i < word.size(); ++i) {
        node = tree_.next(node, static_cast<unsigned char>(word[i]));
        if (node == nowhere) break;
        const std::uint32_t entry = tree_.entry(node);
        if (entry == nowhere) continue;
        reach(i + 1, pieces_[entry].score + here, pieces_[entry].id);
        is_single = is_single || i + 1 - at == letter;
      }
      if (!is_single) reach(at + letter, unknown_score_ + here, nowhere);
      at += letter;
    }
    scratch.score_before = steps.back().score;
    write(word, scratch, ids);
  }

 private:
  // source: kScoreResetThreshold
  static constexpr float score_most = 100000.0F;
  struct scored {
    float score;
    std::uint32_t id;
  };

  static void lower(std::vector<word_scratch::piece_step>& steps, std::size_t from, std::size_t furthest) {
    const float by = steps[from].score;
    for (std::size_t i = from; i <= furthest; ++i) {
      if (i == from || steps[i].begin != nowhere) steps[i].score -= by;
    }
    steps[from].score = 0;
  }

  // The way back.
  void write(std::string_view word, word_scratch& scratch, std::vector<std::uint32_t>& ids) const {
    std::vector<std::uint32_t>& way = scratch.symbols;
    way.clear();
    for (std::size_t at = word.size(); at > 0; at = scratch.piece_steps[at].begin)
      way.push_back(static_cast<std::uint32_t>(at));
    bool was_unknown = false;
    for (std::size_t i = way.size(); i-- > 0;) {
      const word_scratch::piece_step& step = scratch.piece_steps[way[i]];
      if (step.id == nowhere) {
        unknown_.write(word.substr(step.begin, way[i] - step.begin), was_unknown, ids);
      } else {
        ids.push_back(step.id);
      }
      was_unknown = step.id == nowhere;
    }
  }

  token_tree tree_;
  std::vector<scored> pieces_;
  unknown_letters unknown_;
  float unknown_score_;
};

class piece_pairs final : public word_model {
 public:
  explicit piece_pairs(const tokenizer_parts& parts)
      : pairs_(parts.merges),
        letters_tree_(letters_of(parts)),
        frozen_tree_(parts.frozen),
        frozen_(parts.frozen),
        letters_(letters_of(parts)),
        no_tokens_(parts.letters),
        first_letter_(static_cast<std::uint32_t>(parts.vocabulary.size())),
        unknown_(parts) {}

  void encode(std::string_view word, word_scratch& scratch, std::vector<std::uint32_t>& ids) const override {
    bool was_unknown = false;
    std::vector<std::uint32_t>& symbols = scratch.symbols;
    symbols.clear();
    for (std::size_t at = 0; at < word.size();) {
      if (const auto [entry, bytes] = longest_frozen(word.substr(at)); bytes != 0) {
        merge(scratch, was_unknown, ids);
        ids.push_back(frozen_[entry].id);
        was_unknown = false;
        at += bytes;
        continue;
      }
      const std::string_view letter = word.substr(at, letter_bytes(word[at]));
      at += letter.size();
      const std::uint32_t node = letters_tree_.walk(letter);
      if (node != nowhere && letters_tree_.entry(node) != nowhere) {
        symbols.push_back(letters_[letters_tree_.entry(node)].id);
        continue;
      }
      merge(scratch, was_unknown, ids);
      unknown_.write(letter, was_unknown, ids);
      was_unknown = true;
    }
    merge(scratch, was_unknown, ids);
  }

 private:
  // Tokens of one letter, and letters that are none and are merged.
  static std::vector<vocabulary_entry> letters_of(const tokenizer_parts& parts) {
    std::vector<vocabulary_entry> letters;
    for (const vocabulary_entry& each : parts.known) {
      if (letter_at(each.bytes, 0).bytes == each.bytes.size()) letters.push_back(each);
    }
    letters.insert(letters.end(), parts.letters.begin(), parts.letters.end());
    return letters;
  }

  struct frozen_place {
    std::uint32_t entry = 0;
    std::size_t bytes = 0;
  };
  [[nodiscard]] frozen_place longest_frozen(std::string_view text) const noexcept {
    frozen_place found;
    if (frozen_.empty()) return found;
    std::uint32_t node = token_tree::root;
    for (std::size_t i = 0; i < text.size(); ++i) {
      node = frozen_tree_.next(node, static_cast<unsigned char>(text[i]));
      if (node == nowhere) break;
      if (frozen_tree_.entry(node) != nowhere) found = {.entry = frozen_tree_.entry(node), .bytes = i + 1};
    }
    return found;
  }

  // Of the letters so far.
  void merge(word_scratch& scratch, bool& was_unknown, std::vector<std::uint32_t>& ids) const {
    if (scratch.symbols.empty()) return;
    scratch.merged.clear();
    pairs_.merge(scratch.symbols, scratch.merging, scratch.merged);
    scratch.symbols.clear();
    for (const std::uint32_t id : scratch.merged) {
      const bool is_unknown = id >= first_letter_;
      if (is_unknown) {
        unknown_.write(no_tokens_[id - first_letter_].bytes, was_unknown, ids);
      } else {
        ids.push_back(id);
      }
      was_unknown = is_unknown;
    }
  }

  byte_pairs pairs_;
  token_tree letters_tree_;
  token_tree frozen_tree_;
  std::vector<vocabulary_entry> frozen_;
  std::vector<vocabulary_entry> letters_;
  std::vector<vocabulary_entry> no_tokens_;  // those of the letters; their ids follow those of the tokens
  std::uint32_t first_letter_;
  unknown_letters unknown_;
};

}  // namespace

std::unique_ptr<const word_model> make_piece_model(const tokenizer_parts& parts) {
  assert(parts.unknown);
  if (parts.model == word_model_kind::piece_unigram) return std::make_unique<piece_unigram>(parts);
  return std::make_unique<piece_pairs>(parts);
}

}  // namespace leat::stages
