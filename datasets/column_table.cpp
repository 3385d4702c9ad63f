#include "datasets/column_table.hpp"

#include "base/hasher.hpp"
#include "base/text.hpp"

#include <leat/error.hpp>

#include <algorithm>
#include <limits>
#include <utility>

namespace leat::datasets {

column_table::column_table(std::vector<column_values> columns, std::uint64_t samples) : samples_(samples) {
  for (column_values& column : columns) {
    if (column.values.size() != samples) {
      throw error(errc::usage, str_cat("the column '", column.name, "' has ", column.values.size(), " values for ",
                                       samples, " samples"));
    }
    if (std::find(names_.begin(), names_.end(), column.name) != names_.end()) {
      throw error(errc::usage, str_cat("the column '", column.name, "' is given twice"));
    }
    using narrow_limits = std::numeric_limits<std::int32_t>;
    const bool fits = std::all_of(column.values.begin(), column.values.end(), [](std::int64_t value) {
      return value >= narrow_limits::min() && value <= narrow_limits::max();
    });
    values kept;
    if (fits) {
      kept.narrow.reserve(column.values.size());
      for (const std::int64_t value : column.values) kept.narrow.push_back(static_cast<std::int32_t>(value));
    } else {
      kept.wide = std::move(column.values);
    }
    names_.push_back(std::move(column.name));
    values_.push_back(std::move(kept));
  }
}

void column_table::describe(description& out) const {
  for (std::size_t column = 0; column < names_.size(); ++column) {
    hasher hash;
    hash.add(std::as_bytes(std::span(values_[column].narrow)));
    hash.add(std::as_bytes(std::span(values_[column].wide)));
    out.add(str_cat("column ", names_[column]), hash.finish());
  }
}

std::uint64_t column_table::memory_bytes() const noexcept {
  std::uint64_t bytes = 0;
  for (const values& each : values_) {
    bytes += each.narrow.capacity() * sizeof(std::int32_t) + each.wide.capacity() * sizeof(std::int64_t);
  }
  return bytes;
}

}  // namespace leat::datasets
