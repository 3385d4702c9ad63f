#include "stages/tokenize/text_normalizer.hpp"

#include "stages/tokenize/reference_letters.hpp"

#include <utf8proc.h>

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>

namespace leat::stages {
namespace {

bool is_ascii(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char letter) { return static_cast<signed char>(letter) >= 0; });
}

template <class Each>
void for_each_letter(std::string_view text, const Each& each) {
  for (std::size_t at = 0; at < text.size();) {
    const letter_in found = letter_at(text, at);
    each(found.letter);
    at += found.bytes;
  }
}

int class_of(std::int32_t letter) {
  if ((letter_kinds(static_cast<char32_t>(letter)) & letter_kind::unknown) != 0) return 0;
  return ::utf8proc_get_property(letter)->combining_class;
}

// Those of one class stay as they stand: a key is the class, the place and the letter.
void sort_by_class(std::span<std::int32_t> marks) {
  std::vector<std::uint64_t> keys;
  for (std::size_t i = 0; i < marks.size(); ++i) {
    keys.push_back(static_cast<std::uint64_t>(class_of(marks[i])) << 56 | std::uint64_t{i} << 21 |
                   static_cast<std::uint64_t>(marks[i]));
  }
  std::sort(keys.begin(), keys.end());
  for (std::size_t i = 0; i < marks.size(); ++i) marks[i] = static_cast<std::int32_t>(keys[i] & 0x1FFFFF);
}

bool is_unknown(std::int32_t letter) {
  return letter >= 0xA0 && (letter_kinds(static_cast<char32_t>(letter)) & letter_kind::unknown) != 0;
}

// utf8proc_decompose() without the letters that the reference does not know. Returns whether there are such.
bool decompose(std::string_view text, bool compatible, std::vector<std::int32_t>& letters) {
  const auto options = static_cast<utf8proc_option_t>(static_cast<unsigned>(UTF8PROC_STABLE) |
                                                      static_cast<unsigned>(UTF8PROC_DECOMPOSE) |
                                                      (compatible ? static_cast<unsigned>(UTF8PROC_COMPAT) : 0U));
  letters.clear();
  bool has_unknown = false;
  for_each_letter(text, [&](char32_t letter) {
    if (letter < 0xA0 || is_unknown(static_cast<std::int32_t>(letter))) {
      has_unknown = has_unknown || letter >= 0xA0;
      letters.push_back(static_cast<std::int32_t>(letter));
      return;
    }
    utf8proc_int32_t made[32];  // U+FDFA becomes 18, the most
    int boundary = 0;
    const utf8proc_ssize_t count =
        ::utf8proc_decompose_char(static_cast<utf8proc_int32_t>(letter), made, 32, options, &boundary);
    letters.insert(letters.end(), made, made + count);
  });
  // Marks in the order of their classes; those of one class as they stand.
  for (std::size_t at = 0; at < letters.size();) {
    if (letters[at] < 0x300 || class_of(letters[at]) == 0) {
      ++at;
      continue;
    }
    std::size_t end = at + 1;
    while (end < letters.size() && class_of(letters[end]) != 0) ++end;
    if (end - at > 1) sort_by_class(std::span(letters).subspan(at, end - at));
    at = end;
  }
  return has_unknown;
}

// In place. Returns how many there are then. Of unknown letters none is composed: their primary composites are unknown too.
std::size_t compose(std::span<std::int32_t> letters) {
  return static_cast<std::size_t>(
      ::utf8proc_normalize_utf32(letters.data(), static_cast<utf8proc_ssize_t>(letters.size()),
                                 static_cast<utf8proc_option_t>(static_cast<unsigned>(UTF8PROC_STABLE) |
                                                                static_cast<unsigned>(UTF8PROC_COMPOSE))));
}

// An unknown mark is no mark to the reference: what follows it is not composed with what stands before it.
std::size_t compose_between_unknown(std::span<std::int32_t> letters) {
  std::size_t made = 0;
  for (std::size_t at = 0; at < letters.size();) {
    std::size_t end = at + 1;
    while (end < letters.size() && !is_unknown(letters[end])) ++end;
    const std::size_t count = compose(letters.subspan(at, end - at));
    std::copy_n(letters.begin() + static_cast<std::ptrdiff_t>(at), count,
                letters.begin() + static_cast<std::ptrdiff_t>(made));
    made += count;
    at = end;
  }
  return made;
}

void to_form(std::string_view text, normal_form form, std::vector<std::int32_t>& letters, std::string& to) {
  const bool has_unknown = decompose(text, form == normal_form::nfkc || form == normal_form::nfkd, letters);
  if (form == normal_form::nfc || form == normal_form::nfkc)
    letters.resize(has_unknown ? compose_between_unknown(letters) : compose(letters));
  for (const std::int32_t letter : letters) append_letter(to, static_cast<char32_t>(letter));
}

void lower(std::string_view text, std::string& to) {
  for_each_letter(text, [&](char32_t letter) {
    if (letter == 0x130) {
      to += "i\u0307";
    } else {
      append_letter(to, lowered(letter));
    }
  });
}

void without(std::string_view text, letter_kind kind, std::string& to) {
  for_each_letter(text, [&](char32_t letter) {
    if ((letter_kinds(letter) & kind) == 0) append_letter(to, letter);
  });
}

// Those that BERT's own program names: without a part of extension E.
bool is_chinese(char32_t letter) {
  return (letter >= 0x4E00 && letter <= 0x9FFF) || (letter >= 0x3400 && letter <= 0x4DBF) ||
         (letter >= 0x20000 && letter <= 0x2A6DF) || (letter >= 0x2A700 && letter <= 0x2B81F) ||
         (letter >= 0x2B920 && letter <= 0x2CEAF) || (letter >= 0xF900 && letter <= 0xFAFF) ||
         (letter >= 0x2F800 && letter <= 0x2FA1F);
}

void clean(std::string_view text, const normal_step& how, std::string& to) {
  for_each_letter(text, [&](char32_t letter) {
    if (how.clean) {
      if ((letter_kinds(letter) & letter_kind::removed) != 0) return;
      if (is_space(letter)) letter = ' ';
    }
    const bool is_alone = how.chinese && is_chinese(letter);
    if (is_alone) to += ' ';
    append_letter(to, letter);
    if (is_alone) to += ' ';
  });
}

// The map looks at clusters of letters first, if they are short, and then at each letter. What is found of a cluster's begin stands for
// all of it: as the reference has it.
constexpr std::size_t cluster_bytes_max = 5;

void map_letters(std::string_view text, const precompiled_map& map, std::string& to) {
  utf8proc_int32_t state = 0;
  for (std::size_t at = 0; at < text.size();) {
    std::size_t end = at;
    letter_in here = letter_at(text, at);
    state = 0;
    for (;;) {
      end += here.bytes;
      if (end == text.size()) break;
      const letter_in next = letter_at(text, end);
      if (here.letter < 0x300 && next.letter < 0x300 && here.letter != '\r' && here.letter >= 0x20 &&
          next.letter >= 0x20)
        break;
      if (::utf8proc_grapheme_break_stateful(static_cast<utf8proc_int32_t>(here.letter),
                                             static_cast<utf8proc_int32_t>(next.letter), &state)) {
        break;
      }
      here = next;
    }
    const std::string_view cluster = text.substr(at, end - at);
    at = end;
    if (cluster.size() <= cluster_bytes_max) {
      if (const precompiled_map::found found = map.shortest(cluster); found.bytes != 0) {
        to += found.into;
        continue;
      }
    }
    for (std::size_t i = 0; i < cluster.size();) {
      const std::string_view letter = cluster.substr(i, letter_bytes(cluster[i]));
      i += letter.size();
      const precompiled_map::found found = map.shortest(letter);
      to += found.bytes != 0 ? found.into : letter;
    }
  }
}

std::string_view stripped(std::string_view text, bool left, bool right) {
  while (left && !text.empty()) {
    const letter_in first = letter_at(text, 0);
    if (!is_space(first.letter)) break;
    text.remove_prefix(first.bytes);
  }
  while (right && !text.empty()) {
    std::size_t last = text.size() - 1;
    while ((static_cast<unsigned char>(text[last]) & 0xC0) == 0x80) --last;
    if (!is_space(letter_at(text, last).letter)) break;
    text.remove_suffix(text.size() - last);
  }
  return text;
}

void replace(std::string_view text, std::string_view what, std::string_view by, std::string& to) {
  for (;;) {
    const std::size_t at = text.find(what);
    to += text.substr(0, at);
    if (at == std::string_view::npos) return;
    to += by;
    text.remove_prefix(at + what.size());
  }
}

// A letter in UTF-8 is longer by so many times at most: three of a normal form, eleven of a compatible one (Unicode's FAQ on
// normalisation).
std::size_t factor_of(const normal_step& step) {
  switch (step.what) {
    case normal_step::kind::form:
      return step.form == normal_form::nfkc || step.form == normal_form::nfkd ? 11 : 3;
    case normal_step::kind::lowercase:
      return 2;  // U+023A has two bytes, and its lower case three
    case normal_step::kind::replace:
      return std::max<std::size_t>(1, (step.by.size() + step.text.size() - 1) / step.text.size());
    case normal_step::kind::replace_expression:
      return std::max<std::size_t>(1, step.by.size());
    default:
      return 1;
  }
}

}  // namespace

normalize_scratch::normalize_scratch(const text_normalizer& of) {
  for (const text_normalizer::step& each : of.steps_) {
    if (each.pattern) matchers_.emplace_back(*each.pattern);
  }
}

text_normalizer::text_normalizer(const std::vector<normal_step>& steps) {
  for (const normal_step& each : steps) {
    step made{.what = each, .pattern = {}, .mapped = {}, .pieces = {}};
    if (each.what == normal_step::kind::replace_expression) made.pattern.emplace(each.text);
    if (each.what == normal_step::kind::precompiled) {
      made.mapped.emplace(each.text);
      made.what.text.clear();
      factor_ = std::max(factor_, made.mapped->factor());
    }
    if (each.what == normal_step::kind::sentencepiece) {
      made.pieces.emplace(each);
      made.what.text.clear();
      factor_ = std::max(factor_, made.pieces->factor());
      more_ += made.pieces->more();
    }
    if (each.what == normal_step::kind::prepend) more_ += each.text.size();
    factor_ = std::max(factor_, factor_of(each));
    steps_.push_back(std::move(made));
  }
}

std::string_view text_normalizer::normalized(std::string_view text, normalize_scratch& scratch) const {
  std::string* to = &scratch.text_;
  std::string* other = &scratch.other_;
  std::size_t matcher = 0;
  for (const step& each : steps_) {
    const std::string_view made = apply(each, text, *to, matcher, scratch);
    if (each.pattern) ++matcher;
    if (made.data() == to->data()) std::swap(to, other);
    text = made;
  }
  return text;
}

std::string_view text_normalizer::apply(const step& by, std::string_view text, std::string& to, std::size_t matcher,
                                        normalize_scratch& scratch) const {
  const normal_step& how = by.what;
  to.clear();
  switch (how.what) {
    case normal_step::kind::form:
      if (is_ascii(text)) return text;
      to_form(text, how.form, scratch.letters_, to);
      return to;
    case normal_step::kind::lowercase:
      lower(text, to);
      return to;
    case normal_step::kind::strip_accents:
      if (is_ascii(text)) return text;
      without(text, letter_kind::mark, to);
      return to;
    case normal_step::kind::bert:
      break;
    case normal_step::kind::prepend:
      if (text.empty()) return text;
      to = how.text;
      to += text;
      return to;
    case normal_step::kind::replace:
      if (text.find(how.text) == std::string_view::npos) return text;
      replace(text, how.text, how.by, to);
      return to;
    case normal_step::kind::replace_expression: {
      std::size_t done = 0;
      while (const auto match = scratch.matchers_[matcher].find(text, done)) {
        to += text.substr(done, match->begin - done);
        to += how.by;
        done = match->end;
      }
      if (done == 0) return text;
      to += text.substr(done);
      return to;
    }
    case normal_step::kind::strip:
      return stripped(text, how.left, how.right);
    case normal_step::kind::precompiled:
      map_letters(text, *by.mapped, to);
      return to;
    case normal_step::kind::sentencepiece:
      by.pieces->normalize(text, to);
      return to;
  }
  // BERT's: each step that is asked for, one after another.
  if (how.clean || how.chinese) {
    clean(text, how, to);
    text = to;
  }
  if (how.accents && !is_ascii(text)) {
    std::string form;
    to_form(text, normal_form::nfd, scratch.letters_, form);
    std::string bare;
    without(form, letter_kind::nonspacing, bare);
    to = std::move(bare);
    text = to;
  }
  if (how.lower) {
    if (is_ascii(text)) {
      if (text.data() != to.data()) to = text;
      std::transform(to.begin(), to.end(), to.begin(),
                     [](char letter) { return static_cast<char>(lowered(static_cast<char32_t>(letter))); });
    } else {
      std::string small;
      lower(text, small);
      to = std::move(small);
    }
    text = to;
  }
  return text;
}

}  // namespace leat::stages
