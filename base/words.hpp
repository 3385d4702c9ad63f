// Letters and words of ASCII, whatever the locale is.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace leat {

[[nodiscard]] constexpr bool is_digit(char each) noexcept { return each >= '0' && each <= '9'; }
[[nodiscard]] constexpr bool is_letter(char each) noexcept {
  return (each >= 'a' && each <= 'z') || (each >= 'A' && each <= 'Z');
}
[[nodiscard]] constexpr bool is_printable(char each) noexcept { return each >= ' ' && each <= '~'; }
[[nodiscard]] constexpr char lower_case(char each) noexcept {
  return each >= 'A' && each <= 'Z' ? static_cast<char>(each - 'A' + 'a') : each;
}
[[nodiscard]] std::string lower_case(std::string_view text);

[[nodiscard]] constexpr bool is_same_in_any_case(std::string_view one, std::string_view other) noexcept {
  return std::equal(one.begin(), one.end(), other.begin(), other.end(),
                    [](char a, char b) { return lower_case(a) == lower_case(b); });
}

/// Without white space at both ends.
[[nodiscard]] std::string_view trimmed(std::string_view text) noexcept;

/// What stands between any of `separators`, and is not empty.
[[nodiscard]] std::vector<std::string_view> words_of(std::string_view text, std::string_view separators);

}  // namespace leat
