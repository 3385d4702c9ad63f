// A condition on samples as text, "width >= 224 and cls != 7", and what it says: a tree that names no dataset yet.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace leat::datasets {

/// A name, which a dataset gives a meaning.
struct predicate_name {
  std::string name;
};
/// What is compared: a whole number, one with a fraction, a text, or a name.
///   at   where it stands, counted from 1 in letters
struct predicate_value {
  std::variant<std::int64_t, double, std::string, predicate_name> is;
  std::size_t at = 0;

  [[nodiscard]] const std::string* name() const noexcept {
    const auto* const named = std::get_if<predicate_name>(&is);
    return named == nullptr ? nullptr : &named->name;
  }
};

enum class predicate_kind : std::uint8_t {
  all,         ///< and: of `inner`
  any,         ///< or: likewise
  negation,    ///< not: of the one of `inner`
  equal,       ///< the two of `values`
  less,        ///< the first of them is
  less_equal,  ///< likewise
  among,       ///< the first of `values` is one of the others
  matches,     ///< the first is as the pattern, the second: * stands for any letters, ? for one
  missing      ///< the first is
};

/// `!=` and `not in` are negations, `>` is `less` with its values exchanged.
struct predicate_node {
  predicate_kind kind = predicate_kind::all;
  std::vector<predicate_node> inner = {};
  std::vector<predicate_value> values = {};
};

///   text   as it was given, but for blanks, quotes and the case of words: two that are written alike are equal
struct parsed_predicate {
  predicate_node root;
  std::string text;

  /// Every name in it, each once, in their order.
  [[nodiscard]] std::vector<std::string> names() const;
};

/// Text is read no deeper and no longer.
inline constexpr std::size_t predicate_depth_max = 64;
inline constexpr std::size_t predicate_bytes_max = std::size_t{64} << 10;

///   throws   error{errc::usage} naming the letter at which it is wrong, counted from 1, and what would do
[[nodiscard]] parsed_predicate parse_predicate(std::string_view text);

/// "where, letter 9, at 'widht'": how an error about a place in it begins.
[[nodiscard]] std::string place_in_predicate(std::size_t at, std::string_view token);

}  // namespace leat::datasets
