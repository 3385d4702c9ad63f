#include "stages/fields/target_numbers.hpp"

#include "base/corrupt_kind.hpp"
#include "base/text.hpp"
#include "datasets/wire/json_value.hpp"

#include <leat/samples.hpp>

#include <algorithm>
#include <cmath>
#include <utility>

namespace leat::stages {

outcome<void> list_memory::reserve(std::size_t numbers, std::size_t lists) {
  const std::size_t bytes = numbers * sizeof(double) + lists * alignof(std::max_align_t);
  outcome<void> reserved = arena_.reserve(pixels::scratch_arena::rounded(bytes));
  if (!reserved) return reserved;
  void* const first = arena_.take(bytes);
  if (first == nullptr) return unsupported("more scratch memory was needed than had been reserved");
  memory_.emplace(first, bytes, std::pmr::null_memory_resource());
  return {};
}

std::size_t numbers_max(std::span<const std::byte> value, std::optional<dtype> stored) {
  if (stored) return value.size() / size_bytes(*stored);
  return numbers_max(std::string_view(reinterpret_cast<const char*>(value.data()), value.size()));
}

std::size_t usual_bytes(const field_info& member, std::size_t bytes_max) {
  const std::uint64_t mean = member.bytes_total / std::max<std::uint64_t>(member.samples, 1);
  return static_cast<std::size_t>(std::min<std::uint64_t>(mean, bytes_max));
}

std::size_t lists_scratch_bytes(const field_info& member, std::optional<dtype> stored, std::size_t bytes_max,
                                std::size_t lists) {
  constexpr std::size_t letters_usual = 5;  // of a number, with what stands behind it
  const std::size_t numbers = usual_bytes(member, bytes_max) / (stored ? size_bytes(*stored) : letters_usual);
  return pixels::scratch_arena::base_bytes + lists * numbers * sizeof(double);
}

template <class To>
outcome<void> read_list(std::string_view text, const std::string& key, std::pmr::vector<To>& to, inner_lists* lists) {
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
  to.resize(numbers_max(list));
  row_writer<To> row{.at = reinterpret_cast<std::byte*>(to.data()), .room = to.size()};
  if (std::optional<std::string> wrong = read_text(list, row, lists)) return corrupt(str_cat(what, ": ", *wrong));
  to.resize(row.count);
  if (lists != nullptr && lists->count != 0 && lists->count * lists->length != row.count) {
    return corrupt(str_cat(what, " has numbers beside its lists"));
  }
  return {};
}

template outcome<void> read_list(std::string_view, const std::string&, std::pmr::vector<double>&, inner_lists*);
template outcome<void> read_list(std::string_view, const std::string&, std::pmr::vector<std::int64_t>&, inner_lists*);

outcome<void> read_elements(std::span<const std::byte> bytes, dtype stored, std::pmr::vector<double>& to) {
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
