// Numbers of a target: a list of JSON, or elements of a list column. They lie in scratch memory, as much of it as they need.
#pragma once

#include "base/outcome.hpp"
#include "stages/fields/number_list.hpp"
#include "stages/pixels/scratch.hpp"

#include <leat/tensor.hpp>

#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace leat {
struct field_info;
}

namespace leat::stages {

/// A sample's lists, in memory of the scratch budget. What they take beyond what was reserved throws std::bad_alloc.
class list_memory {
 public:
  explicit list_memory(pixels::scratch_arena& arena) : use_(arena), arena_(arena) {}

  ///   numbers   of all lists
  ///   returns   as scratch_arena::reserve()
  [[nodiscard]] outcome<void> reserve(std::size_t numbers, std::size_t lists);
  /// After reserve().
  [[nodiscard]] std::pmr::memory_resource* get() noexcept { return &*memory_; }

 private:
  pixels::arena_use use_;
  pixels::scratch_arena& arena_;
  std::optional<std::pmr::monotonic_buffer_resource> memory_;
};

/// The most numbers of a value that a target reads: text, or elements of a dtype.
[[nodiscard]] std::size_t numbers_max(std::span<const std::byte> value, std::optional<dtype> stored);

/// Of a usual sample, at most `bytes_max`.
[[nodiscard]] std::size_t usual_bytes(const field_info& member, std::size_t bytes_max);

/// What the lists of a usual sample take of the scratch budget (program_facts::scratch_bytes).
[[nodiscard]] std::size_t lists_scratch_bytes(const field_info& member, std::optional<dtype> stored,
                                              std::size_t bytes_max, std::size_t lists);

/// Reads the list of a key, or the whole text where `key` is empty.
///   to        gets its numbers, those of lists in it one after another
///   lists     of lists in the list
///   returns   corrupt: no JSON, no such key, something else than such a list, a number that the type has not
template <class To>
[[nodiscard]] outcome<void> read_list(std::string_view text, const std::string& key, std::pmr::vector<To>& to,
                                      inner_lists* lists);

extern template outcome<void> read_list(std::string_view, const std::string&, std::pmr::vector<double>&, inner_lists*);
extern template outcome<void> read_list(std::string_view, const std::string&, std::pmr::vector<std::int64_t>&,
                                        inner_lists*);

/// Elements of a dtype, as a list column of a table has them.
[[nodiscard]] outcome<void> read_elements(std::span<const std::byte> bytes, dtype stored, std::pmr::vector<double>& to);

/// Why one of the numbers of element `number` cannot be a place; nothing where all are finite.
[[nodiscard]] std::optional<std::string> not_finite(std::span<const double> numbers, std::size_t number,
                                                    std::string_view what);

/// "box 3 (10, 20, 5, 30)".
[[nodiscard]] std::string element_text(std::string_view what, std::size_t number, std::span<const double> numbers);

}  // namespace leat::stages
