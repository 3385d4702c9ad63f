// Strings for messages: put together, and with numbers as people read them.
#pragma once

#include <charconv>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

namespace leat {

namespace detail {

// What a message is put together from: characters of somebody else's, or the digits of a number. Whatever the locale is.
class text_piece {
 public:
  template <class Text>
    requires requires(const Text& text) {
      { text.data() } -> std::convertible_to<const char*>;
      { text.size() } -> std::convertible_to<std::size_t>;
    }
  text_piece(const Text& text) noexcept : text_(text.data(), text.size()) {}
  text_piece(const char* text) noexcept : text_(text == nullptr ? std::string_view() : std::string_view(text)) {}
  template <class Number>
    requires std::is_arithmetic_v<Number> && (!std::is_same_v<Number, char>)
  text_piece(Number value) noexcept {
    if constexpr (std::is_floating_point_v<Number>) {
      set(static_cast<double>(value));
    } else if constexpr (std::is_same_v<Number, bool>) {
      set(std::int64_t{value});
    } else if constexpr (std::is_signed_v<Number>) {
      set(static_cast<std::int64_t>(value));
    } else {
      set(static_cast<std::uint64_t>(value));
    }
  }
  text_piece(const text_piece&) = delete;
  text_piece& operator=(const text_piece&) = delete;

  [[nodiscard]] std::string_view text() const noexcept { return text_; }

 private:
  void set(std::int64_t value) noexcept;
  void set(std::uint64_t value) noexcept;
  void set(double value) noexcept;  // six digits, as %g

  char digits_[24];
  std::string_view text_;
};

void append(std::string& text, std::initializer_list<std::string_view> pieces);

}  // namespace detail

/// The pieces one after another: texts, and numbers (of a fraction six digits, as %g has them).
template <class... Pieces>
void str_append(std::string& text, const Pieces&... pieces) {
  detail::append(text, {detail::text_piece(pieces).text()...});
}
template <class... Pieces>
[[nodiscard]] std::string str_cat(const Pieces&... pieces) {
  std::string text;
  detail::append(text, {detail::text_piece(pieces).text()...});
  return text;
}

/// The elements of a range one after another, and `between` two of them.
template <class Range>
[[nodiscard]] std::string joined(const Range& range, std::string_view between) {
  std::string text;
  bool is_first = true;
  for (const auto& each : range) {
    if (!is_first) text += between;
    is_first = false;
    str_append(text, each);
  }
  return text;
}

/// Of a number with a fraction: as %.<digits>f, and as %.<digits>g.
[[nodiscard]] std::string with_decimals(double value, int decimals);
[[nodiscard]] std::string with_digits(double value, int digits);

/// With blanks before it, or behind it, until it is so wide.
[[nodiscard]] std::string to_right(std::string_view text, std::size_t width);
[[nodiscard]] std::string to_left(std::string_view text, std::size_t width);

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
