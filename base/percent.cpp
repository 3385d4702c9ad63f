#include "base/percent.hpp"

#include <charconv>
#include <cstddef>

namespace leat {

std::string percent_encoded(std::string_view text, std::string_view marks) {
  std::string out;
  for (const char letter : text) {
    const bool is_word =
        (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') || (letter >= '0' && letter <= '9');
    if (is_word || marks.find(letter) != std::string_view::npos) {
      out += letter;
    } else {
      append_percent_code(out, letter);
    }
  }
  return out;
}

void append_percent_code(std::string& text, char byte, hex_digits digits) {
  const char* const of = digits == hex_digits::upper ? "0123456789ABCDEF" : "0123456789abcdef";
  const auto code = static_cast<unsigned char>(byte);
  text += '%';
  text += of[code >> 4U];
  text += of[code & 15U];
}

std::optional<char> leading_percent_code(std::string_view text) noexcept {
  constexpr std::size_t code = 3;
  if (text.size() < code || text.front() != '%') return std::nullopt;
  unsigned value = 0;
  const char* const end = text.data() + code;
  if (std::from_chars(text.data() + 1, end, value, 16).ptr != end) return std::nullopt;
  return static_cast<char>(value);
}

std::string percent_decoded(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::optional<char> code = leading_percent_code(text);
    out += code.value_or(text.front());
    text.remove_prefix(code ? 3 : 1);
  }
  return out;
}

}  // namespace leat
