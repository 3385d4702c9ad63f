// What a column of a table holds that states no types: by the values of its first rows, in all of its files.
#pragma once

#include "datasets/tables/record_rows.hpp"

#include <leat/open_tables.hpp>
#include <leat/samples.hpp>

#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <string_view>

namespace leat::datasets {

/// So many rows of each file are looked at.
inline constexpr std::size_t rows_looked_at = 1000;

struct seen_values {
  bool whole = false;
  bool real = false;
  bool text = false;
  bool other = false;  ///< lists, objects

  /// A number as it is written, or a text.
  void add(std::string_view written);
  void merge(const seen_values& more) noexcept;
  [[nodiscard]] bool any() const noexcept { return whole || real || text || other; }
};

/// Of each name what all files have there.
using seen_columns = std::map<std::string, seen_values, std::less<>>;

/// Sets the kind of the field, and the type of its numbers.
///   wishes   table_options::types
void set_kind(record_field& field, const seen_values& seen, std::span<const table_options::typed> wishes);

/// The type that was asked for; null where none was.
[[nodiscard]] const dtype* wish_for(std::string_view name, std::span<const table_options::typed> wishes) noexcept;

/// Whether a label of this type has NaN where there is no value.
[[nodiscard]] inline bool has_nan(dtype type) noexcept { return type == dtype::f32 || type == dtype::f64; }

/// What picking one of a field's values does where the row has none.
[[nodiscard]] inline bool is_nan_where_missing(const record_field& field) noexcept {
  return field.kind == field_kind::label && has_nan(field.type);
}

}  // namespace leat::datasets
