#include "datasets/tables/column_table.hpp"

#include "base/hasher.hpp"
#include "base/text.hpp"
#include "datasets/files/integers.hpp"

#include <leat/error.hpp>

#include <algorithm>
#include <limits>
#include <utility>

namespace leat::datasets {

column_table::column_table(std::vector<column_values> columns, std::uint64_t samples,
                           std::vector<std::vector<std::uint64_t>> missing)
    : samples_(samples) {
  for (column_values& column : columns) {
    if (!column.values.empty() && !column.reals.empty()) {
      throw error(errc::usage,
                  str_cat("the column '", column.name, "' has whole numbers and real ones; give it one of them"));
    }
    if (column.size() != samples) {
      throw error(errc::usage,
                  str_cat("the column '", column.name, "' has ", column.size(), " values for ", samples, " samples"));
    }
    if (std::find(names_.begin(), names_.end(), column.name) != names_.end()) {
      throw error(errc::usage, str_cat("the column '", column.name, "' is given twice"));
    }
    if (!column.reals.empty() && is_integer(column.type)) {
      throw error(errc::usage, str_cat("the column '", column.name, "' has real numbers and is to be of ",
                                       name(column.type), "; give it f64, f32, f16 or bf16"));
    }
    values_.push_back(kept(column));
    names_.push_back(std::move(column.name));
    if (!missing.empty()) values_.back().missing = std::move(missing[values_.size() - 1]);
  }
}

column_table::values column_table::kept(column_values& from) {
  values kept;
  if (!from.reals.empty()) {
    kept.type = from.type;
    if (from.type == dtype::f64) {
      kept.reals = std::move(from.reals);
    } else {
      kept.narrow_reals.reserve(from.reals.size());
      for (const double value : from.reals) kept.narrow_reals.push_back(static_cast<float>(value));
    }
    return kept;
  }
  using narrow_limits = std::numeric_limits<std::int32_t>;
  const bool fits = std::all_of(from.values.begin(), from.values.end(), [](std::int64_t value) {
    return value >= narrow_limits::min() && value <= narrow_limits::max();
  });
  if (fits) {
    kept.narrow.reserve(from.values.size());
    for (const std::int64_t value : from.values) kept.narrow.push_back(static_cast<std::int32_t>(value));
  } else {
    kept.wide = std::move(from.values);
  }
  return kept;
}

void column_table::describe(description& out) const {
  for (std::size_t column = 0; column < names_.size(); ++column) {
    const values& each = values_[column];
    hasher hash;
    hash.add(std::as_bytes(std::span(each.narrow)));
    hash.add(std::as_bytes(std::span(each.wide)));
    if (each.type != dtype::i64) {
      hash.add(name(each.type));
      hash.add(std::as_bytes(std::span(each.narrow_reals)));
      hash.add(std::as_bytes(std::span(each.reals)));
    }
    out.add(str_cat("column ", names_[column]), hash.finish());
  }
}

std::uint64_t column_table::memory_bytes() const noexcept {
  std::uint64_t bytes = 0;
  for (const values& each : values_) {
    bytes += each.narrow.capacity() * sizeof(std::int32_t) + each.wide.capacity() * sizeof(std::int64_t) +
             each.narrow_reals.capacity() * sizeof(float) + each.reals.capacity() * sizeof(double) +
             each.missing.capacity() * sizeof(std::uint64_t);
  }
  return bytes;
}

}  // namespace leat::datasets
