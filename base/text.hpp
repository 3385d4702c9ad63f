// Strings for messages: put together across Abseil's border, and with numbers as people read them. Debian 12 builds Abseil
// as C++14, where absl::string_view is a type of its own; later distributions alias it to std::string_view. This
// compiles with both.
#pragma once

#include <absl/strings/str_cat.h>
#include <absl/strings/string_view.h>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

namespace leat {

/// The same characters for Abseil's functions.
[[nodiscard]] inline absl::string_view as_absl(std::string_view text) noexcept { return {text.data(), text.size()}; }

namespace detail {
template <class T>
decltype(auto) for_absl(const T& value) {
  if constexpr (std::is_same_v<T, std::string_view>) {
    return as_absl(value);
  } else {
    return (value);
  }
}
}  // namespace detail

/// absl::StrCat and absl::StrAppend that take std::string_view too.
template <class... Pieces>
[[nodiscard]] std::string str_cat(const Pieces&... pieces) {
  return absl::StrCat(detail::for_absl(pieces)...);
}
template <class... Pieces>
void str_append(std::string& text, const Pieces&... pieces) {
  absl::StrAppend(&text, detail::for_absl(pieces)...);
}

/// 1234567 is "1,234,567".
[[nodiscard]] std::string count_text(std::uint64_t count);

enum class rounding : std::uint8_t {
  nearest,
  up  ///< for amounts that somebody is told to give: what is read is enough
};

/// Three digits that count, whatever the size: 9.87, 98.7, 987.
[[nodiscard]] std::string three_digits(double value, rounding how = rounding::nearest);

/// Three digits and the unit that fits, each of `units` `base` times the one before; whole numbers of the first.
[[nodiscard]] std::string scaled(double value, double base, std::span<const char* const> units,
                                 rounding how = rounding::nearest);

/// Bytes in memory and of files, by powers of 1024: "0 B", "117 KiB", "1.21 GiB".
[[nodiscard]] std::string bytes_text(std::uint64_t bytes, rounding how = rounding::nearest);

}  // namespace leat
