// Numbers out of texts: white space at both ends and a plus are no mistake, anything else behind the number is. Whatever the locale is.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace leat {

/// Nothing where it is no whole number in decimal digits, or does not fit.
[[nodiscard]] std::optional<std::int64_t> parse_signed(std::string_view text) noexcept;
[[nodiscard]] std::optional<std::uint64_t> parse_unsigned(std::string_view text) noexcept;

/// Infinity and NaN too, by name. What is too large for a double is infinite, what is too small is zero.
[[nodiscard]] std::optional<double> parse_real(std::string_view text) noexcept;

}  // namespace leat
