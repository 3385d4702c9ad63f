// A value of a JSON object, found without parsing the rest of it.
#pragma once

#include "datasets/model/value_picker.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace leat::datasets {

enum class json_kind : std::uint8_t { text, number, truth, list, object, null };

/// A member of an object, as it is written; of a text, the characters between its quotes.
struct json_member {
  std::string key;
  json_kind kind = json_kind::null;
  std::string_view written;
};

/// What is wrong with it, and where.
struct json_fault {
  std::string why;
  std::size_t at = 0;
};

/// All members of an object, in the order in which they stand; of one key, the last one counts. Lists and objects within are passed over, to a depth of 64.
///   source   RFC 8259
[[nodiscard]] std::optional<json_fault> read_members(std::string_view object, std::vector<json_member>& out);

/// The objects of a list that has nothing else, as they are written.
[[nodiscard]] std::optional<json_fault> read_objects(std::string_view list, std::vector<std::string_view>& out);

/// The member of this key, the last one as elsewhere; nothing where there is none.
///   fault   set where the object is damaged, or more stands behind it
[[nodiscard]] std::optional<json_member> find_member(std::string_view object, std::string_view key,
                                                     std::optional<json_fault>& fault);

/// The characters that a written text stands for.
///   into      at least as long; shortened to what was written
///   returns   a reason: an invalid escape, bytes that are no UTF-8
[[nodiscard]] std::optional<std::string> unescape(std::string_view written, std::span<std::byte>& into);

/// The pieces of a text as JSON writes it between quotes: each(piece), of any number.
template <class Each>
void for_each_escaped(std::string_view text, const Each& each) {
  constexpr std::string_view meanings = "\"\\\b\f\n\r\t";
  constexpr std::string_view letters = "\"\\bfnrt";
  constexpr std::string_view digits = "0123456789abcdef";
  std::size_t begin = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto code = static_cast<unsigned char>(text[i]);
    if (code >= 0x20 && code != '"' && code != '\\') continue;
    if (i > begin) each(text.substr(begin, i - begin));
    begin = i + 1;
    const std::size_t known = meanings.find(text[i]);
    const char written[] = {'\\', 'u', '0', '0', digits[code / 16], digits[code % 16]};
    const char with_letter[] = {'\\', known < letters.size() ? letters[known] : 'u'};
    each(known < letters.size() ? std::string_view(with_letter, 2) : std::string_view(written, sizeof written));
  }
  if (text.size() > begin) each(text.substr(begin));
}

/// Picks the member of this key: a text's characters, a number as it is written (also NaN and Infinity, as Python does), true and false as
/// 1 and 0, lists and objects as written.
///   nan_where_missing   where there is none, or null: "nan"
[[nodiscard]] std::shared_ptr<const value_picker> pick_json(std::string key, bool nan_where_missing = false);

/// Picks, of the member of this key, which is a list of objects, each object's member: a list of JSON, with null where an object has none.
[[nodiscard]] std::shared_ptr<const value_picker> pick_json_of_each(std::string key, std::string member);

}  // namespace leat::datasets
