#include "base/numbers.hpp"

#include "base/words.hpp"

#include <charconv>
#include <limits>
#include <system_error>

namespace leat {
namespace {

// A text that std::from_chars() takes, or an empty one.
std::string_view without_plus(std::string_view text) noexcept {
  text = trimmed(text);
  if (!text.starts_with('+')) return text;
  text.remove_prefix(1);
  return text.starts_with('-') ? std::string_view() : text;
}

template <class Integer>
std::optional<Integer> parse(std::string_view text) noexcept {
  text = without_plus(text);
  Integer value = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failure != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// Of a number that no double holds, which std::from_chars() does not tell apart: whether it is too large, and not too small.
bool is_too_large(std::string_view digits) noexcept {
  const std::size_t mark = std::min(digits.find_first_of("eE"), digits.size());
  const std::string_view mantissa = digits.substr(0, mark);
  const std::size_t point = std::min(mantissa.find('.'), mantissa.size());
  const std::size_t first = std::min(mantissa.find_first_of("123456789"), mantissa.size());
  const auto power = static_cast<std::int64_t>(point) - static_cast<std::int64_t>(first);
  if (mark == digits.size()) return power > 0;
  const std::string_view written = digits.substr(mark + 1);
  // An exponent that does not fit says it by its sign.
  const std::int64_t exponent = parse<std::int64_t>(written).value_or(written.starts_with('-') ? -1 : 1);
  return exponent > -power;
}

}  // namespace

std::optional<std::int64_t> parse_signed(std::string_view text) noexcept { return parse<std::int64_t>(text); }
std::optional<std::uint64_t> parse_unsigned(std::string_view text) noexcept { return parse<std::uint64_t>(text); }

std::optional<double> parse_real(std::string_view text) noexcept {
  text = without_plus(text);
  double value = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (end != text.data() + text.size()) return std::nullopt;
  if (failure == std::errc::result_out_of_range) {
    const bool negative = text.starts_with('-');
    value = is_too_large(negative ? text.substr(1) : text) ? std::numeric_limits<double>::infinity() : 0;
    return negative ? -value : value;
  }
  if (failure != std::errc()) return std::nullopt;
  return value;
}

}  // namespace leat
