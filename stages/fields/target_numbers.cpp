#include "stages/fields/target_numbers.hpp"

#include "base/corrupt_kind.hpp"
#include "base/text.hpp"
#include "datasets/wire/json_value.hpp"

#include <cmath>
#include <utility>

namespace leat::stages {

template <class To>
outcome<void> read_list(std::string_view text, const std::string& key, std::vector<To>& to, inner_lists* lists) {
  std::string_view list = text;
  std::string what = "the list";
  if (!key.empty()) {
    std::optional<datasets::json_fault> fault;
    const std::optional<datasets::json_member> found = datasets::find_member(text, key, fault);
    if (fault) return corrupt(str_cat("no JSON: ", fault->why, ", at byte ", fault->at));
    if (!found) return corrupt(str_cat("the JSON has no member '", key, "'"), corrupt_kinds::incomplete);
    what = str_cat("member '", key, "'");
    if (found->kind != datasets::json_kind::list) return corrupt(str_cat(what, " is no list of numbers"));
    list = found->written;
  }
  const std::size_t begin = list.find_first_not_of(" \t\r\n");
  if (begin == std::string_view::npos || list[begin] != '[') return corrupt(str_cat(what, " is no list of JSON"));
  to.resize(elements_max(std::nullopt, list.size()));
  row_writer<To> row{.at = reinterpret_cast<std::byte*>(to.data()), .room = to.size()};
  if (std::optional<std::string> wrong = read_text(list, row, lists)) return corrupt(str_cat(what, ": ", *wrong));
  to.resize(row.count);
  if (lists != nullptr && lists->count != 0 && lists->count * lists->length != row.count) {
    return corrupt(str_cat(what, " has numbers beside its lists"));
  }
  return {};
}

template outcome<void> read_list(std::string_view, const std::string&, std::vector<double>&, inner_lists*);
template outcome<void> read_list(std::string_view, const std::string&, std::vector<std::int64_t>&, inner_lists*);

outcome<void> read_elements(std::span<const std::byte> bytes, dtype stored, std::vector<double>& to) {
  to.resize(bytes.size() / size_bytes(stored));
  row_writer<double> row{.at = reinterpret_cast<std::byte*>(to.data()), .room = to.size()};
  if (std::optional<std::string> wrong = read_stored(bytes, stored, row)) return corrupt(std::move(*wrong));
  return {};
}

std::string element_text(std::string_view what, std::size_t number, std::span<const double> numbers) {
  std::string text = str_cat(what, " ", number, " (");
  for (std::size_t i = 0; i < numbers.size(); ++i) str_append(text, i == 0 ? "" : ", ", numbers[i]);
  return text + ")";
}

std::optional<std::string> not_finite(std::span<const double> numbers, std::size_t number, std::string_view what) {
  for (const double each : numbers) {
    if (!std::isfinite(each)) return str_cat(element_text(what, number, numbers), " has a number that is not finite");
  }
  return std::nullopt;
}

}  // namespace leat::stages
