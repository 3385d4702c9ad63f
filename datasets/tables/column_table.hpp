// Numbers kept beside the samples, as narrow as their values allow.
#pragma once

#include "datasets/model/columns.hpp"

#include <leat/description.hpp>
#include <leat/samples.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace leat::datasets {

class column_table final : public columns_facet {
 public:
  ///   missing   samples without a value, ascending, of each column or of none. Of real numbers these are NaN
  ///   throws    error{errc::usage} a column that has not one value per sample, or a name given twice
  column_table(std::vector<column_values> columns, std::uint64_t samples,
               std::vector<std::vector<std::uint64_t>> missing = {});
  column_table(const column_table&) = delete;
  column_table& operator=(const column_table&) = delete;

  [[nodiscard]] std::uint64_t samples() const noexcept { return samples_; }
  [[nodiscard]] std::span<const std::uint64_t> missing(std::size_t column) const noexcept {
    return values_[column].missing;
  }

  std::span<const std::string> column_names() const noexcept override { return names_; }
  dtype column_type(std::size_t column) const override { return values_[column].type; }
  std::uint64_t column_gaps(std::size_t column) const override {
    return values_[column].type == dtype::i64 ? values_[column].missing.size() : 0;
  }
  std::optional<column_value> column(std::uint64_t sample, std::size_t column) const override {
    const values& from = values_[column];
    if (!from.missing.empty() && std::binary_search(from.missing.begin(), from.missing.end(), sample)) {
      if (from.type == dtype::i64) return std::nullopt;
      return std::numeric_limits<double>::quiet_NaN();
    }
    if (!from.narrow.empty()) return std::int64_t{from.narrow[sample]};
    if (!from.wide.empty()) return from.wide[sample];
    return from.narrow_reals.empty() ? from.reals[sample] : double{from.narrow_reals[sample]};
  }
  /// Each column's values, by digest.
  void describe(description& out) const;
  [[nodiscard]] std::uint64_t memory_bytes() const noexcept;

 private:
  struct values {
    dtype type = dtype::i64;
    std::vector<std::int32_t> narrow = {};
    std::vector<std::int64_t> wide = {};
    std::vector<float> narrow_reals = {};
    std::vector<double> reals = {};
    std::vector<std::uint64_t> missing = {};
  };
  static values kept(column_values& from);

  std::uint64_t samples_;
  std::vector<std::string> names_;
  std::vector<values> values_;
};

}  // namespace leat::datasets
