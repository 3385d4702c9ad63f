// Numbers of a member, as text or as elements of a dtype, to a row of another dtype.
#pragma once

#include "base/text.hpp"
#include "base/with_type.hpp"

#include <leat/samples.hpp>
#include <leat/tensor.hpp>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace leat::stages {

/// Elements of a row, one after another, up to so many.
template <class To>
struct row_writer {
  std::byte* at = nullptr;
  std::size_t room = 0;   // elements
  std::size_t count = 0;  // of all that were given, written or not

  void add(To value) {
    if (count < room) std::memcpy(at + count * sizeof value, &value, sizeof value);
    ++count;
  }
};

/// Whether converted() takes every value.
template <class To, class From>
constexpr bool takes_all() {
  if constexpr (std::is_integral_v<From> && std::is_integral_v<To>) {
    return std::in_range<To>(std::numeric_limits<From>::min()) && std::in_range<To>(std::numeric_limits<From>::max());
  } else {
    return std::is_floating_point_v<To> && !(std::is_same_v<To, float> && std::is_same_v<From, double>);
  }
}

/// Nothing where To has no such value.
template <class To, class From>
std::optional<To> converted(From value) {
  if constexpr (std::is_integral_v<To> && std::is_integral_v<From>) {
    if (!std::in_range<To>(value)) return std::nullopt;
  } else if constexpr (std::is_integral_v<To>) {
    // Beyond 2^63 a double is no number of To's any more; all below are exact where they are whole.
    constexpr double most = 9223372036854775808.0;
    const auto real = static_cast<double>(value);
    if (std::trunc(real) != real || std::abs(real) >= most || (real < 0 && std::is_unsigned_v<To>)) return std::nullopt;
    const auto whole = static_cast<std::int64_t>(real);
    if (!std::in_range<To>(whole)) return std::nullopt;
    return static_cast<To>(whole);
  } else if constexpr (std::is_same_v<To, float> && std::is_same_v<From, double>) {
    if (std::isfinite(value) && std::abs(value) > static_cast<double>(std::numeric_limits<float>::max()))
      return std::nullopt;
  }
  return static_cast<To>(value);
}

/// Lists in a list, all of one length.
struct inner_lists {
  std::size_t count = 0;
  std::size_t length = 0;
};

/// Reads a list as JSON has it, or numbers with blanks or commas between them. Returns what is wrong.
///   lists   what there is of lists in the list, whose elements are taken one after another; null: there may be none
template <class To>
std::optional<std::string> read_text(std::string_view text, row_writer<To>& row, inner_lists* lists = nullptr) {
  constexpr std::string_view between = " \t\r\n,";
  const auto skip = [&] { text.remove_prefix(std::min(text.find_first_not_of(between), text.size())); };
  const auto bad = [&](std::string_view why) {
    std::string shown;
    for (const char letter : text.substr(0, 20)) shown += letter >= ' ' && letter <= '~' ? letter : '.';
    return str_cat("element ", row.count, " is '", shown, "', ", why);
  };
  skip();
  int depth = 0;
  const bool is_list = text.starts_with('[');
  if (is_list) {
    depth = 1;
    text.remove_prefix(1);
  }
  std::size_t begin = 0;  // of the list within it
  for (skip(); !text.empty(); skip()) {
    if (text.front() == '[' && depth == 1 && lists == nullptr) return bad("no number");
    if (text.front() == '[' && depth == 1) {
      depth = 2;
      begin = row.count;
      text.remove_prefix(1);
      continue;
    }
    if (text.front() == ']' && depth == 2) {
      if (lists->count != 0 && row.count - begin != lists->length) return "lists of different lengths";
      depth = 1;
      ++lists->count;
      lists->length = row.count - begin;
      text.remove_prefix(1);
      continue;
    }
    if (text.front() == ']') break;
    if (text.front() == '+') text.remove_prefix(1);
    std::int64_t whole = 0;
    const char* const end = text.data() + text.size();
    auto [next, failure] = std::from_chars(text.data(), end, whole);
    std::optional<To> value;
    constexpr std::string_view of_real = ".eE";
    if (failure == std::errc{} && (next == end || of_real.find(*next) == std::string_view::npos)) {
      value = converted<To>(whole);
    } else {
      double real = 0;
      const auto read = std::from_chars(text.data(), end, real);
      if (read.ec != std::errc{}) return bad("no number");
      next = read.ptr;
      value = converted<To>(real);
    }
    if (!value) return bad("which does not fit the elements' type");
    if (next != end && between.find(*next) == std::string_view::npos && *next != ']') return bad("no number");
    text.remove_prefix(static_cast<std::size_t>(next - text.data()));
    row.add(*value);
  }
  if (is_list) {
    if (depth == 2 || !text.starts_with(']')) return "a list without an end";
    text.remove_prefix(1);
    skip();
  }
  if (!text.empty()) return bad("behind the end of the list");
  return std::nullopt;
}

/// Reads elements of the dtype `stored`. Returns what is wrong.
template <class To>
std::optional<std::string> read_stored(std::span<const std::byte> bytes, dtype stored, row_writer<To>& row) {
  const std::size_t each = size_bytes(stored);
  if (bytes.size() % each != 0) return str_cat("has ", bytes.size(), " bytes, no whole number of ", name(stored));
  std::optional<std::string> reason;
  with_type(stored, [&](auto value) {
    using from = decltype(value);
    if constexpr (takes_all<To, from>()) {
      // What compilers make vector instructions of.
      const std::size_t elements = std::min(bytes.size() / each, row.room);
      const std::byte* const stored_at = bytes.data();
      std::byte* const at = row.at;  // What is written could be the row itself, for all a compiler knows.
      for (std::size_t i = 0; i < elements; ++i) {
        from each_value{};
        std::memcpy(&each_value, stored_at + i * sizeof each_value, sizeof each_value);
        const auto to = static_cast<To>(each_value);
        std::memcpy(at + i * sizeof to, &to, sizeof to);
      }
      row.count = bytes.size() / each;
    } else {
      for (std::size_t i = 0; i < bytes.size() && !reason; i += each) {
        std::memcpy(&value, bytes.data() + i, each);
        if (const auto to = converted<To>(value)) {
          row.add(*to);
        } else {
          reason = str_cat("element ", i / each, " does not fit the elements' type");
        }
      }
    }
  });
  return reason;
}

/// Whether elements of such a dtype can be read and made.
[[nodiscard]] inline bool has_numbers(dtype type) {
  return with_type(type, [](auto) {});
}

/// Of the elements that a field's bytes are; nothing where they are text. Lists of a table are bytes of their elements' type: those of u8
/// look as any bytes do.
[[nodiscard]] inline std::optional<dtype> stored_type_of(const field_info& field) {
  if (field.kind == field_kind::tensor || field.kind == field_kind::tokens) return field.type;
  if (field.kind == field_kind::bytes && field.type != dtype::u8) return field.type;
  return std::nullopt;
}

/// The most numbers that a text can have, as lists, as read_text() reads them, or between other parts of JSON: pieces between blanks,
/// commas, brackets and what else stands there.
[[nodiscard]] inline std::size_t numbers_max(std::string_view text) noexcept {
  const auto is_between = [](char letter) {
    // What is not ASCII is below a blank where char is signed, and above '~' on AArch64.
    return letter <= ' ' || letter > '~' || letter == ',' || letter == '[' || letter == ']' || letter == ':' ||
           letter == '{' || letter == '}';
  };
  std::size_t count = 0;
  bool was_between = true;
  for (const char letter : text) {
    const bool is = is_between(letter);
    count += was_between && !is ? 1 : 0;
    was_between = is;
  }
  return count;
}

/// The most elements in so many bytes: of a text each but the last takes two characters.
[[nodiscard]] inline std::size_t elements_max(std::optional<dtype> stored, std::size_t bytes) {
  return stored ? bytes / size_bytes(*stored) : (bytes + 1) / 2;
}

}  // namespace leat::stages
