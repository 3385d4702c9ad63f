// Bytes as hexadecimal digits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace leat {

/// Two lower-case digits for each byte.
[[nodiscard]] inline std::string to_hex(std::span<const std::uint8_t> bytes) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string text;
  text.reserve(2 * bytes.size());
  for (const std::uint8_t each : bytes) {
    text += digits[each >> 4U];
    text += digits[each & 15U];
  }
  return text;
}

/// Fills `into` by digits of either case. False where the text is not two of them for each byte.
[[nodiscard]] inline bool from_hex(std::string_view text, std::span<std::uint8_t> into) noexcept {
  if (text.size() != 2 * into.size()) return false;
  const auto value = [](char digit) {
    if (digit >= '0' && digit <= '9') return digit - '0';
    if (digit >= 'a' && digit <= 'f') return digit - 'a' + 10;
    return digit >= 'A' && digit <= 'F' ? digit - 'A' + 10 : -1;
  };
  for (std::size_t i = 0; i < into.size(); ++i) {
    const int high = value(text[2 * i]);
    const int low = value(text[2 * i + 1]);
    if (high < 0 || low < 0) return false;
    into[i] = static_cast<std::uint8_t>(16 * high + low);
  }
  return true;
}

}  // namespace leat
