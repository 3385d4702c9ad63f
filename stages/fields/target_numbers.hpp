// Numbers of a target: a list of JSON, or elements of a list column.
#pragma once

#include "base/outcome.hpp"
#include "stages/fields/number_list.hpp"

#include <leat/tensor.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace leat::stages {

/// Reads the list of a key, or the whole text where `key` is empty.
///   to        gets its numbers, those of lists in it one after another
///   lists     of lists in the list
///   returns   corrupt: no JSON, no such key, something else than such a list, a number that the type has not
template <class To>
[[nodiscard]] outcome<void> read_list(std::string_view text, const std::string& key, std::vector<To>& to,
                                      inner_lists* lists);

extern template outcome<void> read_list(std::string_view, const std::string&, std::vector<double>&, inner_lists*);
extern template outcome<void> read_list(std::string_view, const std::string&, std::vector<std::int64_t>&, inner_lists*);

/// Elements of a dtype, as a list column of a table has them.
[[nodiscard]] outcome<void> read_elements(std::span<const std::byte> bytes, dtype stored, std::vector<double>& to);

/// Why one of the numbers of element `number` cannot be a place; nothing where all are finite.
[[nodiscard]] std::optional<std::string> not_finite(std::span<const double> numbers, std::size_t number,
                                                    std::string_view what);

/// "box 3 (10, 20, 5, 30)".
[[nodiscard]] std::string element_text(std::string_view what, std::size_t number, std::span<const double> numbers);

}  // namespace leat::stages
