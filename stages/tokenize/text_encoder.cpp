#include "stages/tokenize/text_encoder.hpp"

#include "base/text.hpp"
#include "base/utf8.hpp"

#include <leat/error.hpp>

#include <utf8proc.h>
#include <xxhash.h>

#include <algorithm>
#include <cassert>
#include <cstring>
#include <new>
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

// White_Space of Unicode.
bool is_space(std::int32_t letter) {
  return (letter >= 9 && letter <= 13) || letter == 32 || letter == 0x85 || letter == 0xA0 || letter == 0x1680 ||
         (letter >= 0x2000 && letter <= 0x200A) || letter == 0x2028 || letter == 0x2029 || letter == 0x202F ||
         letter == 0x205F || letter == 0x3000;
}
// The letter at `from`, and behind it.
std::pair<std::int32_t, std::size_t> letter_at(std::string_view text, std::size_t from) {
  utf8proc_int32_t letter = 0;
  const auto bytes = ::utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(text.data()) + from,
                                        static_cast<utf8proc_ssize_t>(text.size() - from), &letter);
  assert(bytes > 0 && "texts were repaired");
  return {letter, from + static_cast<std::size_t>(bytes)};
}
std::size_t letter_before(std::string_view text, std::size_t from) {
  do {
    --from;
  } while ((static_cast<unsigned char>(text[from]) & 0xC0) == 0x80);
  return from;
}

bool is_ascii(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char letter) { return static_cast<signed char>(letter) >= 0; });
}

}  // namespace

word_cache::entry& word_cache::of(std::string_view word) noexcept {
  return entries_[XXH3_64bits(word.data(), word.size()) & (words - 1)];
}

encode_scratch::encode_scratch(const text_encoder& of) {
  for (const text_encoder::cut& each : of.cuts_) matchers_.emplace_back(each.pattern);
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
  nodes[at].token = token;
}

text_encoder::text_encoder(const tokenizer_parts& parts)
    : pairs_(parts.vocabulary, parts.merges, parts.whole_words),
      added_(parts.added),
      forms_(parts.forms),
      prefix_space_(parts.prefix_space),
      before_(parts.before),
      behind_(parts.behind) {
  for (const split_rule& each : parts.splits) cuts_.push_back({word_pattern(each.expression), each.keeps});
  for (std::size_t i = 0; i < added_.size(); ++i) {
    finder& to = added_[i].normalized ? normalized_ : plain_;
    // Where a token is looked for in normalised text, so is its own text written.
    to.add(added_[i].text, static_cast<std::int32_t>(i));
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
  // A byte is a token at most. A normal form may write letters with more bytes: three times as many, and eleven with compatible ones
  // (Unicode's FAQ on normalisation, UTF-8).
  std::size_t factor = 1;
  for (const normal_form form : forms_) {
    const bool is_compatible = form == normal_form::nfkc || form == normal_form::nfkd;
    factor = std::max<std::size_t>(factor, is_compatible ? 11 : 3);
  }
  return text_bytes * factor + (prefix_space_ ? 1 : 0);
}

std::optional<std::string> text_encoder::encode(std::string_view text, const encode_options& options,
                                                encode_scratch& scratch, std::vector<std::uint32_t>& ids) const {
  if (first_invalid_utf8(as_bytes(text))) {
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
  by_added(plain_, text, now, [&](std::string_view piece) { normalize_piece(piece, now); });
  if (now.wrong) {
    ids.resize(first);
    return now.wrong;
  }
  if (ids.size() > now.end) ids.resize(now.end);
  if (options.around) ids.insert(ids.end(), behind_.begin(), behind_.end());
  return std::nullopt;
}

const added_token* text_encoder::longest_at(const finder& of, std::string_view text, std::size_t at,
                                            bool special) const {
  const added_token* found = nullptr;
  std::uint32_t here = 0;
  for (; at < text.size(); ++at) {
    std::uint32_t child = of.nodes[here].child;
    while (child != 0 && of.nodes[child].byte != static_cast<unsigned char>(text[at])) child = of.nodes[child].next;
    if (child == 0) break;
    here = child;
    const std::int32_t token = of.nodes[here].token;
    if (token < 0) continue;
    const added_token& met = added_[static_cast<std::size_t>(token)];
    if (!met.special || special) found = &met;
  }
  return found;
}

// The first added token from the left, the longest of those that begin there, and so on; piece() has what lies between them.
template <class Piece>
void text_encoder::by_added(const finder& of, std::string_view text, run& now, const Piece& piece) const {
  if (of.nodes.size() == 1) {
    if (!text.empty()) piece(text);
    return;
  }
  std::size_t done = 0;
  for (std::size_t at = 0; at < text.size() && !now.is_over();) {
    const added_token* const met = of.begins[static_cast<unsigned char>(text[at])]
                                       ? longest_at(of, text, at, now.options.special_in_text)
                                       : nullptr;
    if (met == nullptr) {
      ++at;
      continue;
    }
    std::size_t begin = at;
    std::size_t end = at + met->text.size();
    if (met->lstrip) {
      while (begin > done && is_space(letter_at(text, letter_before(text, begin)).first))
        begin = letter_before(text, begin);
    }
    if (met->rstrip) {
      while (end < text.size()) {
        const auto [letter, behind] = letter_at(text, end);
        if (!is_space(letter)) break;
        end = behind;
      }
    }
    if (begin > done) piece(text.substr(done, begin - done));
    if (now.is_over()) return;
    now.ids.push_back(met->id);
    at = done = end;
  }
  if (done < text.size() && !now.is_over()) piece(text.substr(done));
}

void text_encoder::normalize_piece(std::string_view text, run& now) const {
  by_added(normalized_, normalized(text, now.scratch), now, [&](std::string_view piece) { cut_piece(piece, now); });
}

std::string_view text_encoder::normalized(std::string_view text, encode_scratch& scratch) const {
  if (forms_.empty() || is_ascii(text)) return text;
  for (const normal_form form : forms_) {
    unsigned options = UTF8PROC_STABLE;
    if (form == normal_form::nfc || form == normal_form::nfkc) options |= UTF8PROC_COMPOSE;
    if (form == normal_form::nfd || form == normal_form::nfkd) options |= UTF8PROC_DECOMPOSE;
    if (form == normal_form::nfkc || form == normal_form::nfkd) options |= UTF8PROC_COMPAT;
    const auto how = static_cast<utf8proc_option_t>(options);
    std::vector<std::int32_t>& letters = scratch.letters_;
    if (letters.size() < text.size() + 1) letters.resize(text.size() + 1);
    const auto room = [&] { return static_cast<utf8proc_ssize_t>(letters.size() - 1); };
    const auto* const bytes = reinterpret_cast<const utf8proc_uint8_t*>(text.data());
    const auto count = static_cast<utf8proc_ssize_t>(text.size());
    utf8proc_ssize_t made = ::utf8proc_decompose(bytes, count, letters.data(), room(), how);
    if (made > room()) {
      letters.resize(static_cast<std::size_t>(made) + 1);
      made = ::utf8proc_decompose(bytes, count, letters.data(), room(), how);
    }
    assert(made >= 0 && "texts were repaired");
    // Composes in place, if asked to; a letter in UTF-8 is no longer than its four bytes.
    made = ::utf8proc_reencode(letters.data(), made, how);
    assert(made >= 0);
    scratch.normalized_.assign(reinterpret_cast<const char*>(letters.data()), static_cast<std::size_t>(made));
    text = scratch.normalized_;
  }
  return text;
}

void text_encoder::cut_piece(std::string_view text, run& now) const {
  if (prefix_space_ && text.front() != ' ') {
    now.scratch.prefixed_.assign(1, ' ');
    now.scratch.prefixed_ += text;
    text = now.scratch.prefixed_;
  }
  cut_further(text, 0, now);
}

void text_encoder::cut_further(std::string_view text, std::size_t cut, run& now) const {
  if (cut == cuts_.size()) {
    encode_word(text, now);
    return;
  }
  const split_rule::keeping keeps = cuts_[cut].keeps;
  const auto rest = [&](std::size_t begin, std::size_t end) {
    if (keeps != split_rule::keeping::matches && begin < end)
      cut_further(text.substr(begin, end - begin), cut + 1, now);
  };
  std::size_t done = 0;
  while (done < text.size() && !now.is_over()) {
    const std::optional<word_place> match = now.scratch.matchers_[cut].find(text, done);
    if (!match) break;
    rest(done, match->begin);
    if (keeps != split_rule::keeping::rest && !now.is_over()) {
      cut_further(text.substr(match->begin, match->end - match->begin), cut + 1, now);
    }
    done = match->end;
  }
  if (!now.is_over()) rest(done, text.size());
}

void text_encoder::encode_word(std::string_view word, run& now) const {
  if (word.size() > byte_pairs::word_bytes_max) {
    now.wrong =
        str_cat("has a word of ", word.size(), " bytes; one of up to ", byte_pairs::word_bytes_max, " is encoded");
    return;
  }
  if (word.size() > word_cache::word_bytes_max) {
    pairs_.encode(word, now.scratch.merging_, now.ids);
    return;
  }
  word_cache::entry& known = now.scratch.cache_.of(word);
  if (known.bytes == word.size() && std::memcmp(known.word, word.data(), word.size()) == 0) {
    now.ids.insert(now.ids.end(), known.ids, known.ids + known.count);
    return;
  }
  const std::size_t before = now.ids.size();
  pairs_.encode(word, now.scratch.merging_, now.ids);
  const std::size_t count = now.ids.size() - before;
  if (count > word_cache::ids_max) return;
  known.bytes = static_cast<std::uint8_t>(word.size());
  known.count = static_cast<std::uint8_t>(count);
  std::memcpy(known.word, word.data(), word.size());
  std::copy_n(now.ids.begin() + static_cast<std::ptrdiff_t>(before), count, known.ids);
}

}  // namespace leat::stages
