#include "datasets/model/member_key.hpp"

#include "base/percent.hpp"
#include "datasets/model/hidden_names.hpp"

#include <algorithm>
#include <cstddef>
#include <optional>

namespace leat::datasets {
namespace {

bool is_escaped_in_names(char letter) noexcept {
  return letter == '/' || letter == '%' || (letter >= 'A' && letter <= 'Z') ||
         static_cast<unsigned char>(letter) < 0x20 || letter == 0x7F;
}

// Of "%2f" and the like.
std::optional<char> escaped_letter(std::string_view escape) noexcept {
  const std::optional<char> letter = leading_percent_code(escape);
  return letter && is_escaped_in_names(*letter) ? letter : std::nullopt;
}

}  // namespace

namespace {

// What an escape stands for: a dot, a percent sign, or the first letter of a hidden name.
char escaped(std::string_view escape) noexcept {
  if (escape == "%2E") return '.';
  if (escape == "%25") return '%';
  if (escape == "%5F") return '_';
  if (escape == "%54") return 'T';
  if (escape == "%40") return '@';
  return '\0';
}

}  // namespace

std::string encode_key(std::string_view stem) {
  const std::size_t base = stem.rfind('/') + 1;  // npos + 1 is 0.
  std::string key;
  key.reserve(stem.size() + 8);
  for (std::size_t i = 0; i < stem.size(); ++i) {
    const bool begins_part = i == 0 || stem[i - 1] == '/';
    if (begins_part && is_hidden_name(stem.substr(i, stem.find('/', i) - i))) {
      append_percent_code(key, stem[i]);
    } else if (stem[i] == '%') {
      key += "%25";
    } else if (stem[i] == '.' && i >= base) {
      key += "%2E";
    } else {
      key += stem[i];
    }
  }
  if (base == stem.size()) key += '%';
  return key;
}

std::string number_key(std::string_view key, std::uint64_t n) {
  std::string numbered(key);
  if (n > 0) numbered += "%~" + std::to_string(n);
  return numbered;
}

std::string decode_key(std::string_view key) {
  if (const std::size_t mark = key.rfind("%~"); mark != std::string_view::npos && mark + 2 < key.size()) {
    const std::string_view digits = key.substr(mark + 2);
    if (std::all_of(digits.begin(), digits.end(), [](char c) { return c >= '0' && c <= '9'; }))
      key = key.substr(0, mark);
  }
  std::string stem;
  stem.reserve(key.size());
  for (std::size_t i = 0; i < key.size(); ++i) {
    const std::string_view escape = key.substr(i, 3);
    if (const char meant = escaped(escape); meant != '\0') {
      stem += meant;
      i += 2;
    } else if (key[i] == '%' && i + 1 == key.size() && (i == 0 || key[i - 1] == '/')) {
      continue;
    } else {
      stem += key[i];
    }
  }
  return stem;
}

std::string encode_field_name(std::string_view name) {
  std::string extension;
  extension.reserve(name.size());
  for (const char letter : name) {
    if (!is_escaped_in_names(letter)) {
      extension += letter;
    } else {
      append_percent_code(extension, letter, hex_digits::lower);
    }
  }
  return extension;
}

std::string decode_field_name(std::string_view extension) {
  std::string name;
  name.reserve(extension.size());
  for (std::size_t i = 0; i < extension.size(); ++i) {
    const std::optional<char> escaped = escaped_letter(extension.substr(i, 3));
    name += escaped.value_or(extension[i]);
    if (escaped) i += 2;
  }
  return name;
}

}  // namespace leat::datasets
