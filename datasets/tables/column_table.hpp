// Numbers kept beside the samples, as narrow as their values allow.
#pragma once

#include "datasets/model/model.hpp"

#include <leat/description.hpp>
#include <leat/samples.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace leat::datasets {

class column_table {
 public:
  ///   throws   error{errc::usage} a column that has not one value per sample, or a name given twice
  column_table(std::vector<column_values> columns, std::uint64_t samples);

  [[nodiscard]] std::uint64_t samples() const noexcept { return samples_; }
  [[nodiscard]] std::span<const std::string> names() const noexcept { return names_; }
  /// i64, or of real numbers theirs.
  [[nodiscard]] dtype type(std::size_t column) const noexcept { return values_[column].type; }
  [[nodiscard]] column_value value(std::uint64_t sample, std::size_t column) const noexcept {
    const values& from = values_[column];
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
  };
  static values kept(column_values& from);

  std::uint64_t samples_;
  std::vector<std::string> names_;
  std::vector<values> values_;
};

}  // namespace leat::datasets
