#include "stages/tokenize/reference_letters.hpp"

#include <utf8proc.h>

#include <algorithm>
#include <memory>
#include <span>

namespace leat::stages {
namespace {

struct letter_range {
  char32_t first;
  char32_t last;
};
struct lowered_range {
  char32_t first;
  char32_t last;
  std::int32_t by;
};

#include "stages/tokenize/reference_letters.inc"

// Of each letter, 1.1 MB: a search in ranges takes longer than all else that is done with a letter.
constexpr std::size_t letters = 0x110000;

const std::uint8_t* kinds() {
  static const std::unique_ptr<const std::uint8_t[]> table = [] {
    auto made = std::make_unique<std::uint8_t[]>(letters);
    const auto mark_all = [&](std::span<const letter_range> of, std::uint8_t kind) {
      for (const letter_range& each : of) {
        for (char32_t letter = each.first; letter <= each.last; ++letter) made[letter] |= kind;
      }
    };
    mark_all(removed_letters, letter_kind::removed);
    mark_all(nonspacing_letters, letter_kind::nonspacing);
    mark_all(marks_letters, letter_kind::mark);
    mark_all(punctuation_letters, letter_kind::punctuation);
    mark_all(unknown_letters, letter_kind::unknown);
    made[0] |= letter_kind::removed;
    return made;
  }();
  return table.get();
}

}  // namespace

std::uint8_t letter_kinds(char32_t letter) noexcept {
  static const std::uint8_t* const of = kinds();
  return of[letter];
}

char32_t lowered(char32_t letter) noexcept {
  if (letter < 0x80) return letter >= 'A' && letter <= 'Z' ? letter + 32 : letter;
  for (const lowered_range& each : lowered_letters) {
    if (letter >= each.first && letter <= each.last) {
      return static_cast<char32_t>(static_cast<std::int32_t>(letter) + each.by);
    }
  }
  return static_cast<char32_t>(::utf8proc_tolower(static_cast<utf8proc_int32_t>(letter)));
}

}  // namespace leat::stages
