#include "stages/tokenize/text_encoder.hpp"

#include "base/text.hpp"
#include "base/utf8.hpp"
#include "stages/tokenize/reference_letters.hpp"

#include <leat/error.hpp>

#include <xxhash.h>

#include <algorithm>
#include <cassert>
#include <cstring>
#include <span>
#include <utility>

namespace leat::stages {
namespace {

std::span<const std::byte> as_bytes(std::string_view text) { return std::as_bytes(std::span(text)); }

// How many bytes at the begin of an ill-formed text are replaced together: the begin of a character that does not end.
std::size_t broken_bytes(std::string_view text) {
  const auto at = [&](std::size_t i) { return static_cast<std::uint8_t>(text[i]); };
  const utf8_rest rest = utf8_rest::of(at(0));
  std::size_t good = 0;
  while (good < rest.bytes && good + 1 < text.size() && rest.takes(good, at(good + 1))) ++good;
  return good + 1;
}

// Of a text that is none as a whole.
void repair(std::string_view text, std::string& to) {
  to.clear();
  while (!text.empty()) {
    const std::optional<std::size_t> wrong = first_invalid_utf8(as_bytes(text));
    to += text.substr(0, wrong.value_or(text.size()));
    if (!wrong) return;
    text.remove_prefix(*wrong);
    to += "\xEF\xBF\xBD";
    text.remove_prefix(broken_bytes(text));
  }
}

std::size_t letter_before(std::string_view text, std::size_t from) {
  do {
    --from;
  } while ((static_cast<unsigned char>(text[from]) & 0xC0) == 0x80);
  return from;
}

}  // namespace

word_cache::entry& word_cache::of(std::string_view word) noexcept {
  return entries_[XXH3_64bits(word.data(), word.size()) & (words - 1)];
}

encode_scratch::encode_scratch(const text_encoder& of) : normalizing_(of.normalizer_) {
  for (const text_encoder::cut& each : of.cuts_) {
    matchers_.emplace_back();
    if (each.pattern) matchers_.back().emplace(*each.pattern);
  }
}

void text_encoder::finder::add(std::string_view text, std::int32_t token) {
  begins[static_cast<unsigned char>(text.front())] = true;
  std::uint32_t at = 0;
  for (const char letter : text) {
    const auto byte = static_cast<unsigned char>(letter);
    std::uint32_t child = nodes[at].child;
    while (child != 0 && nodes[child].byte != byte) child = nodes[child].next;
    if (child == 0) {
      child = static_cast<std::uint32_t>(nodes.size());
      nodes.push_back({.next = nodes[at].child, .byte = byte});
      nodes[at].child = child;
    }
    at = child;
  }
  // Of two tokens with one text the first is met.
  if (nodes[at].token < 0) nodes[at].token = token;
}

text_encoder::text_encoder(const tokenizer_parts& parts)
    : model_(make_word_model(parts)),
      added_(parts.added),
      normalizer_(parts.normalizing),
      prefix_space_(parts.prefix_space),
      before_(parts.before),
      behind_(parts.behind) {
  for (const split_rule& each : parts.splits) {
    cuts_.push_back({.rule = each, .pattern = {}});
    if (each.what == split_rule::kind::expression) cuts_.back().pattern.emplace(each.expression);
  }
  normalize_scratch normalizing(normalizer_);
  // Special ones first: of two with one text the first is met.
  for (const bool special : {true, false}) {
    for (std::size_t i = 0; i < added_.size(); ++i) {
      if (added_[i].special != special) continue;
      if (!added_[i].normalized) {
        plain_.add(added_[i].text, static_cast<std::int32_t>(i));
        continue;
      }
      // Where a token is looked for in normalised text, its own text is normalised too.
      const std::string_view text = normalizer_.normalized(added_[i].text, normalizing);
      if (text.empty()) {
        throw error(errc::unsupported, str_cat("the added token '", added_[i].text,
                                               "' is looked for in normalised text, and is nothing there"));
      }
      normalized_.add(text, static_cast<std::int32_t>(i));
    }
  }
  for (std::size_t i = 0; i < added_.size(); ++i) {
    names_.emplace_back(added_[i].text, added_[i].id);
    vocabulary_ = std::max(vocabulary_, added_[i].id + 1);
  }
  for (const vocabulary_entry& each : parts.vocabulary) {
    names_.emplace_back(each.bytes, each.id);
    vocabulary_ = std::max(vocabulary_, each.id + 1);
  }
  for (const std::vector<std::uint32_t>* const around : {&before_, &behind_}) {
    for (const std::uint32_t id : *around) vocabulary_ = std::max(vocabulary_, id + 1);
  }
  std::sort(names_.begin(), names_.end());
}

std::optional<std::uint32_t> text_encoder::find(std::string_view token) const {
  const auto found = std::lower_bound(names_.begin(), names_.end(), token,
                                      [](const auto& each, std::string_view wanted) { return each.first < wanted; });
  if (found == names_.end() || found->first != token) return std::nullopt;
  return found->second;
}

std::size_t text_encoder::ids_most(std::size_t text_bytes) const noexcept {
  // A byte is a token at most.
  std::size_t more = normalizer_.more() + (prefix_space_ ? 1 : 0);
  std::size_t factor = normalizer_.factor();
  for (const cut& each : cuts_) {
    if (each.rule.what != split_rule::kind::metaspace) continue;
    // A space of one byte becomes a letter of three, which bytes may stand for; and each piece may be given one.
    factor = std::max(factor, each.rule.expression.size());
    more += each.rule.expression.size();
  }
  return text_bytes * factor + more;
}

std::optional<std::string> text_encoder::encode(std::string_view text, const encode_options& options,
                                                encode_scratch& scratch, std::vector<std::uint32_t>& ids) const {
  if (!normalizer_.takes_any_bytes() && first_invalid_utf8(as_bytes(text))) {
    repair(text, scratch.repaired_);
    text = scratch.repaired_;
  }
  const std::size_t around = options.around ? before_.size() + behind_.size() : 0;
  const std::size_t first = ids.size();
  const std::size_t text_ids_max = options.ids_max > around ? options.ids_max - around : 0;
  if (options.around) ids.insert(ids.end(), before_.begin(), before_.end());
  const std::size_t begin = ids.size();
  run now{.options = options,
          .scratch = scratch,
          .ids = ids,
          .end = text_ids_max > ids.max_size() - begin ? ids.max_size() : begin + text_ids_max,
          .wrong = {}};
  by_added(plain_, text, now,
           [&](std::string_view piece, std::size_t at) { normalize_piece(piece, at == 0 && options.is_begin, now); });
  if (now.wrong) {
    ids.resize(first);
    return now.wrong;
  }
  if (ids.size() > now.end) ids.resize(now.end);
  if (options.around) ids.insert(ids.end(), behind_.begin(), behind_.end());
  return std::nullopt;
}

text_encoder::met_token text_encoder::longest_at(const finder& of, std::string_view text, std::size_t at) {
  met_token found;
  std::uint32_t here = 0;
  for (; at < text.size(); ++at) {
    std::uint32_t child = of.nodes[here].child;
    while (child != 0 && of.nodes[child].byte != static_cast<unsigned char>(text[at])) child = of.nodes[child].next;
    if (child == 0) break;
    here = child;
    if (of.nodes[here].token >= 0) found = {.token = of.nodes[here].token, .end = at + 1};
  }
  return found;
}

// The first added token from the left, the longest of those that begin there, and so on; piece() has what lies between them, and where
// that begins. A special token that is not to be met hides others that begin within it, as in the reference.
template <class Piece>
void text_encoder::by_added(const finder& of, std::string_view text, run& now, const Piece& piece) const {
  if (of.nodes.size() == 1) {
    if (!text.empty()) piece(text, std::size_t{0});
    return;
  }
  std::size_t done = 0;
  for (std::size_t at = 0; at < text.size() && !now.is_over();) {
    const met_token met = of.begins[static_cast<unsigned char>(text[at])] ? longest_at(of, text, at) : met_token{};
    if (met.token < 0) {
      ++at;
      continue;
    }
    const added_token& token = added_[static_cast<std::size_t>(met.token)];
    if (token.special && !now.options.special_in_text) {
      at = met.end;
      continue;
    }
    std::size_t begin = at;
    std::size_t end = met.end;
    if (token.lstrip) {
      while (begin > done && is_space(letter_at(text, letter_before(text, begin)).letter))
        begin = letter_before(text, begin);
    }
    if (token.rstrip) {
      while (end < text.size()) {
        const letter_in next = letter_at(text, end);
        if (!is_space(next.letter)) break;
        end += next.bytes;
      }
    }
    if (begin > done) piece(text.substr(done, begin - done), done);
    if (now.is_over()) return;
    now.ids.push_back(token.id);
    at = done = end;
  }
  if (done < text.size() && !now.is_over()) piece(text.substr(done), done);
}

void text_encoder::normalize_piece(std::string_view text, bool is_first, run& now) const {
  by_added(normalized_, normalizer_.normalized(text, now.scratch.normalizing_), now,
           [&](std::string_view piece, std::size_t at) { cut_piece(piece, is_first && at == 0, now); });
}

void text_encoder::cut_piece(std::string_view text, bool is_first, run& now) const {
  now.scratch.word_.score_before = 0;
  if (prefix_space_ && text.front() != ' ') {
    now.scratch.prefixed_.assign(1, ' ');
    now.scratch.prefixed_ += text;
    text = now.scratch.prefixed_;
  }
  cut_further(text, 0, is_first, now);
}

void text_encoder::cut_further(std::string_view text, std::size_t cut, bool is_first, run& now) const {
  if (cut == cuts_.size()) {
    encode_word(text, now);
    return;
  }
  switch (cuts_[cut].rule.what) {
    case split_rule::kind::expression:
      cut_by_pattern(text, cut, is_first, now);
      return;
    case split_rule::kind::metaspace:
      cut_by_metaspace(text, cut, is_first, now);
      return;
    default:
      cut_by_letters(text, cut, is_first, now);
  }
}

void text_encoder::cut_by_pattern(std::string_view text, std::size_t cut, bool is_first, run& now) const {
  using keeping = split_rule::keeping;
  const keeping keeps = cuts_[cut].rule.keeps;
  const auto further = [&](std::size_t begin, std::size_t end) {
    if (begin < end && !now.is_over())
      cut_further(text.substr(begin, end - begin), cut + 1, is_first && begin == 0, now);
  };
  std::size_t begin = 0;  // of what is not cut yet
  std::size_t done = 0;
  while (done < text.size() && !now.is_over()) {
    const std::optional<word_place> match = now.scratch.matchers_[cut]->find(text, done);
    if (!match) break;
    done = match->end;
    if (keeps == keeping::before) {
      further(begin, match->begin);
      begin = match->begin;
    } else if (keeps == keeping::behind) {
      further(begin, match->end);
      begin = match->end;
    } else {
      if (keeps != keeping::matches) further(begin, match->begin);
      if (keeps != keeping::rest) further(match->begin, match->end);
      begin = match->end;
    }
  }
  if (keeps != keeping::matches) further(begin, text.size());
}

void text_encoder::cut_by_letters(std::string_view text, std::size_t cut, bool is_first, run& now) const {
  const split_rule& rule = cuts_[cut].rule;
  const auto further = [&](std::size_t begin, std::size_t end) {
    if (begin < end && !now.is_over())
      cut_further(text.substr(begin, end - begin), cut + 1, is_first && begin == 0, now);
  };
  std::size_t begin = 0;
  if (rule.what == split_rule::kind::runs) {
    const std::string_view what = rule.expression;
    for (std::size_t at = text.find(what); at != std::string_view::npos && !now.is_over(); at = text.find(what, at)) {
      const std::size_t run_begin = at;
      while (text.substr(at).starts_with(what)) at += what.size();
      const std::size_t place = rule.keeps == split_rule::keeping::behind ? at : run_begin;
      further(begin, place);
      begin = place;
    }
    further(begin, text.size());
    return;
  }
  const bool of_spaces = rule.what == split_rule::kind::spaces;
  for (std::size_t at = 0; at < text.size() && !now.is_over();) {
    const letter_in here = letter_at(text, at);
    const std::size_t end = at + here.bytes;
    if (of_spaces ? is_space(here.letter) : (letter_kinds(here.letter) & letter_kind::punctuation) != 0) {
      further(begin, at);
      if (!of_spaces) further(at, end);
      begin = end;
    }
    at = end;
  }
  further(begin, text.size());
}

void text_encoder::cut_by_metaspace(std::string_view text, std::size_t cut, bool is_first, run& now) const {
  const split_rule& rule = cuts_[cut].rule;
  const std::string_view mark = rule.expression;
  std::string& spaced = now.scratch.spaced_;
  spaced.clear();
  const bool asked =
      rule.prepends == split_rule::prepending::always || (rule.prepends == split_rule::prepending::first && is_first);
  if (asked && text.front() != ' ' && !text.starts_with(mark)) spaced += mark;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t space = std::min(text.find(' ', at), text.size());
    spaced += text.substr(at, space - at);
    if (space < text.size()) spaced += mark;
    at = space + 1;
  }
  const std::string_view all = spaced;
  std::size_t begin = 0;
  for (std::size_t at = all.find(mark, 1); rule.cuts && at != std::string_view::npos && !now.is_over();
       at = all.find(mark, at + 1)) {
    cut_further(all.substr(begin, at - begin), cut + 1, is_first && begin == 0, now);
    begin = at;
  }
  if (!now.is_over()) cut_further(all.substr(begin), cut + 1, is_first && begin == 0, now);
}

void text_encoder::encode_word(std::string_view word, run& now) const {
  if (word.size() > byte_pairs::word_bytes_max) {
    now.wrong =
        str_cat("has a word of ", word.size(), " bytes; one of up to ", byte_pairs::word_bytes_max, " is encoded");
    return;
  }
  if (word.size() > word_cache::word_bytes_max || !model_->is_of_word_alone()) {
    model_->encode(word, now.scratch.word_, now.ids);
    return;
  }
  word_cache::entry& known = now.scratch.cache_.of(word);
  if (known.bytes == word.size() && std::memcmp(known.word, word.data(), word.size()) == 0) {
    now.ids.insert(now.ids.end(), known.ids, known.ids + known.count);
    return;
  }
  const std::size_t before = now.ids.size();
  model_->encode(word, now.scratch.word_, now.ids);
  const std::size_t count = now.ids.size() - before;
  if (count > word_cache::ids_max) return;
  known.bytes = static_cast<std::uint8_t>(word.size());
  known.count = static_cast<std::uint8_t>(count);
  std::memcpy(known.word, word.data(), word.size());
  std::copy_n(now.ids.begin() + static_cast<std::ptrdiff_t>(before), count, known.ids);
}

}  // namespace leat::stages
