// Bytes written as %XX: in addresses, in the keys of tars, in the words of a proxy.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace leat {

/// Letters and digits of ASCII, and these marks, stay; every other byte is written as %XX.
[[nodiscard]] std::string percent_encoded(std::string_view text, std::string_view marks);

enum class hex_digits : std::uint8_t { upper, lower };

/// Appends one byte as %XX.
void append_percent_code(std::string& text, char byte, hex_digits digits = hex_digits::upper);

/// The byte that `text` begins with as %XX, in digits of either case; none where it begins otherwise.
[[nodiscard]] std::optional<char> leading_percent_code(std::string_view text) noexcept;

/// What is no code stays as it is.
[[nodiscard]] std::string percent_decoded(std::string_view text);

}  // namespace leat
