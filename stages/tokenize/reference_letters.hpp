// What a letter of Unicode is to the library `tokenizers`: its tables are of older Unicodes than utf8proc's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace leat::stages {

/// What one letter is; bits of letter_kinds().
///   removed       BERT's clean_text leaves it out: controls, formats, private use
///   nonspacing    BERT's strip_accents leaves it out
///   mark          StripAccents leaves it out
///   punctuation   a word of its own to BERT
///   unknown       NFC and the others know of no decomposition and no order of it
enum letter_kind : std::uint8_t { removed = 1, nonspacing = 2, mark = 4, punctuation = 8, unknown = 16 };

/// letter   U+0000 to U+10FFFF
[[nodiscard]] std::uint8_t letter_kinds(char32_t letter) noexcept;

/// Lower case without U+0130, which becomes two letters.
[[nodiscard]] char32_t lowered(char32_t letter) noexcept;

/// White_Space of Unicode.
[[nodiscard]] inline bool is_space(char32_t letter) noexcept {
  return (letter >= 9 && letter <= 13) || letter == 32 || letter == 0x85 || letter == 0xA0 || letter == 0x1680 ||
         (letter >= 0x2000 && letter <= 0x200A) || letter == 0x2028 || letter == 0x2029 || letter == 0x202F ||
         letter == 0x205F || letter == 0x3000;
}

/// The bytes of the letter that begins with this one.
[[nodiscard]] inline std::size_t letter_bytes(char lead) noexcept {
  const auto byte = static_cast<unsigned char>(lead);
  return byte < 0xC0 ? 1 : byte < 0xE0 ? 2 : byte < 0xF0 ? 3 : 4;
}

/// A letter of a text that is UTF-8.
struct letter_in {
  char32_t letter = 0;
  std::size_t bytes = 0;
};
[[nodiscard]] inline letter_in letter_at(std::string_view text, std::size_t at) noexcept {
  const auto byte = [&](std::size_t i) { return static_cast<char32_t>(static_cast<unsigned char>(text[at + i])); };
  const char32_t lead = byte(0);
  if (lead < 0x80) return {lead, 1};
  if (lead < 0xE0) return {(lead & 0x1F) << 6 | (byte(1) & 0x3F), 2};
  if (lead < 0xF0) return {(lead & 0x0F) << 12 | (byte(1) & 0x3F) << 6 | (byte(2) & 0x3F), 3};
  return {(lead & 0x07) << 18 | (byte(1) & 0x3F) << 12 | (byte(2) & 0x3F) << 6 | (byte(3) & 0x3F), 4};
}

inline void append_letter(std::string& to, char32_t letter) {
  const auto put = [&](char32_t byte) { to += static_cast<char>(byte); };
  if (letter < 0x80) {
    put(letter);
  } else if (letter < 0x800) {
    put(0xC0 | letter >> 6);
    put(0x80 | (letter & 0x3F));
  } else if (letter < 0x10000) {
    put(0xE0 | letter >> 12);
    put(0x80 | (letter >> 6 & 0x3F));
    put(0x80 | (letter & 0x3F));
  } else {
    put(0xF0 | letter >> 18);
    put(0x80 | (letter >> 12 & 0x3F));
    put(0x80 | (letter >> 6 & 0x3F));
    put(0x80 | (letter & 0x3F));
  }
}

}  // namespace leat::stages
