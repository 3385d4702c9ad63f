#include "stages/tokenize/word_model.hpp"

#include "base/hash_map.hpp"
#include "base/text.hpp"
#include "stages/tokenize/reference_letters.hpp"
#include "stages/tokenize/token_tree.hpp"

#include <leat/error.hpp>

#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <utility>

namespace leat::stages {
namespace {

class byte_pairs_model final : public word_model {
 public:
  explicit byte_pairs_model(const tokenizer_parts& parts) : pairs_(parts.vocabulary, parts.merges, parts.whole_words) {}
  void encode(std::string_view word, word_scratch& scratch, std::vector<std::uint32_t>& ids) const override {
    pairs_.encode(word, scratch.merging, ids);
  }

 private:
  byte_pairs pairs_;
};

// Ids of the tree's entries.
std::vector<std::uint32_t> ids_of(const std::vector<vocabulary_entry>& vocabulary) {
  std::vector<std::uint32_t> ids;
  for (const vocabulary_entry& each : vocabulary) ids.push_back(each.id);
  return ids;
}

class word_pieces final : public word_model {
 public:
  explicit word_pieces(const tokenizer_parts& parts)
      : tree_(parts.vocabulary),
        ids_(ids_of(parts.vocabulary)),
        further_(tree_.walk(parts.prefix)),
        letters_max_(parts.letters_max),
        unknown_(*parts.unknown) {}

  void encode(std::string_view word, word_scratch&, std::vector<std::uint32_t>& ids) const override {
    const std::size_t before = ids.size();
    if (!encode_known(word, ids)) {
      ids.resize(before);
      ids.push_back(unknown_);
    }
  }

 private:
  bool encode_known(std::string_view word, std::vector<std::uint32_t>& ids) const {
    const auto begins = [](char byte) { return (static_cast<unsigned char>(byte) & 0xC0) != 0x80; };
    if (word.size() > letters_max_ &&
        static_cast<std::size_t>(std::count_if(word.begin(), word.end(), begins)) > letters_max_) {
      return false;
    }
    for (std::size_t at = 0; at < word.size();) {
      std::uint32_t node = at == 0 ? token_tree::root : further_;
      std::uint32_t found = token_tree::none;
      std::size_t end = at;
      for (std::size_t i = at; node != token_tree::none && i < word.size(); ++i) {
        node = tree_.next(node, static_cast<unsigned char>(word[i]));
        if (node == token_tree::none || tree_.entry(node) == token_tree::none) continue;
        found = tree_.entry(node);
        end = i + 1;
      }
      if (found == token_tree::none) return false;
      ids.push_back(ids_[found]);
      at = end;
    }
    return true;
  }

  token_tree tree_;
  std::vector<std::uint32_t> ids_;
  std::uint32_t further_;
  std::size_t letters_max_;
  std::uint32_t unknown_;
};

class letter_pairs final : public word_model {
 public:
  explicit letter_pairs(const tokenizer_parts& parts)
      : pairs_(parts.merges), of_bytes_(parts.of_bytes), unknown_(parts.unknown), fuse_(parts.fuse_unknown) {
    for (const vocabulary_entry& each : parts.vocabulary) {
      if (each.bytes.empty()) continue;
      if (parts.whole_words) words_[each.bytes] = each.id;
      const letter_in first = letter_at(each.bytes, 0);
      if (first.bytes != each.bytes.size()) continue;
      if (first.letter < of_letter_.size()) {
        of_letter_[first.letter] = each.id;
      } else {
        further_[first.letter] = each.id;
      }
    }
  }

  void encode(std::string_view word, word_scratch& scratch, std::vector<std::uint32_t>& ids) const override {
    if (!words_.empty()) {
      if (const auto whole = words_.find(std::string(word)); whole != words_.end()) {
        ids.push_back(whole->second);
        return;
      }
    }
    std::vector<std::uint32_t>& symbols = scratch.symbols;
    symbols.clear();
    bool is_unknown = false;  // one is due
    for (std::size_t at = 0; at < word.size();) {
      const letter_in here = letter_at(word, at);
      if (const std::uint32_t id = find(here.letter); id != none) {
        if (is_unknown) symbols.push_back(*unknown_);
        is_unknown = false;
        symbols.push_back(id);
      } else if (!of_bytes_.empty()) {
        for (std::size_t i = 0; i < here.bytes; ++i) {
          symbols.push_back(of_bytes_[static_cast<unsigned char>(word[at + i])]);
        }
      } else if (unknown_) {
        if (is_unknown && !fuse_) symbols.push_back(*unknown_);
        is_unknown = true;
      }
      at += here.bytes;
    }
    if (is_unknown) symbols.push_back(*unknown_);
    if (!symbols.empty()) pairs_.merge(symbols, scratch.merging, ids);
  }

 private:
  static constexpr std::uint32_t none = token_tree::none;
  [[nodiscard]] std::uint32_t find(char32_t letter) const noexcept {
    if (letter < of_letter_.size()) return of_letter_[letter];
    const auto found = further_.find(letter);
    return found == further_.end() ? none : found->second;
  }

  byte_pairs pairs_;
  std::vector<std::uint32_t> of_letter_ = std::vector<std::uint32_t>(0x10000, none);
  hash_map<char32_t, std::uint32_t> further_;
  hash_map<std::string, std::uint32_t> words_;
  std::vector<std::uint32_t> of_bytes_;
  std::optional<std::uint32_t> unknown_;
  bool fuse_;
};

// source: kUnkPenalty of SentencePiece
constexpr double unknown_penalty = 10.0;

class unigram final : public word_model {
 public:
  explicit unigram(const tokenizer_parts& parts)
      : tree_(parts.vocabulary),
        ids_(ids_of(parts.vocabulary)),
        scores_(parts.scores),
        of_bytes_(parts.of_bytes),
        unknown_(parts.unknown.value_or(none)) {
    double least = std::numeric_limits<double>::infinity();
    for (const double score : scores_) least = std::min(least, score);
    unknown_score_ = least - unknown_penalty;
  }

  void encode(std::string_view word, word_scratch& scratch, std::vector<std::uint32_t>& ids) const override {
    std::vector<word_scratch::step>& steps = scratch.steps;
    steps.assign(word.size() + 1, {.score = 0, .begin = none, .entry = none});
    for (std::size_t at = 0; at < word.size();) {
      const double here = steps[at].score;
      const std::size_t letter = letter_bytes(word[at]);
      bool is_single = false;
      const auto reach = [&](std::size_t end, double score, std::uint32_t entry) {
        word_scratch::step& to = steps[end];
        // Of equal ones the longer token stays: it was met first.
        if (to.begin != none && !(score > to.score)) return;
        to = {.score = score, .begin = static_cast<std::uint32_t>(at), .entry = entry};
      };
      std::uint32_t node = token_tree::root;
      for (std::size_t i = at; i < word.size(); ++i) {
        node = tree_.next(node, static_cast<unsigned char>(word[i]));
        if (node == none) break;
        const std::uint32_t entry = tree_.entry(node);
        if (entry == none) continue;
        reach(i + 1, scores_[entry] + here, entry);
        is_single = is_single || i + 1 - at == letter;
      }
      if (!is_single) reach(at + letter, unknown_score_ + here, none);
      at += letter;
    }
    write(word, steps, scratch.symbols, ids);
  }

 private:
  static constexpr std::uint32_t none = token_tree::none;

  // The way back. Unknown letters in a row are one token.
  void write(std::string_view word, const std::vector<word_scratch::step>& steps, std::vector<std::uint32_t>& way,
             std::vector<std::uint32_t>& ids) const {
    way.clear();
    for (std::size_t at = word.size(); at > 0; at = steps[at].begin) way.push_back(static_cast<std::uint32_t>(at));
    for (std::size_t i = way.size(); i-- > 0;) {
      const word_scratch::step& step = steps[way[i]];
      if (!is_unknown(step)) {
        ids.push_back(ids_[step.entry]);
        continue;
      }
      while (i > 0 && is_unknown(steps[way[i - 1]])) --i;
      write_unknown(word.substr(step.begin, way[i] - step.begin), ids);
    }
  }
  [[nodiscard]] bool is_unknown(const word_scratch::step& step) const {
    return step.entry == none || ids_[step.entry] == unknown_;
  }
  void write_unknown(std::string_view text, std::vector<std::uint32_t>& ids) const {
    // A text that spells the unknown token several times may be another one.
    if (const std::uint32_t node = tree_.walk(text); node != none && tree_.entry(node) != none) {
      ids.push_back(ids_[tree_.entry(node)]);
    } else if (!of_bytes_.empty()) {
      for (const char byte : text) ids.push_back(of_bytes_[static_cast<unsigned char>(byte)]);
    } else {
      ids.push_back(unknown_);
    }
  }

  token_tree tree_;
  std::vector<std::uint32_t> ids_;
  std::vector<double> scores_;
  std::vector<std::uint32_t> of_bytes_;
  std::uint32_t unknown_;
  double unknown_score_ = 0;
};

}  // namespace

std::unique_ptr<const word_model> make_word_model(const tokenizer_parts& parts) {
  switch (parts.model) {
    case word_model_kind::byte_pairs:
      return std::make_unique<byte_pairs_model>(parts);
    case word_model_kind::letter_pairs:
      return std::make_unique<letter_pairs>(parts);
    case word_model_kind::unigram:
      return std::make_unique<unigram>(parts);
    case word_model_kind::word_pieces:
      return std::make_unique<word_pieces>(parts);
    case word_model_kind::piece_unigram:
    case word_model_kind::piece_pairs:
      return make_piece_model(parts);
  }
  return nullptr;
}

}  // namespace leat::stages
