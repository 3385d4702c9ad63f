// Integers kept beside the samples, as narrow as their values allow.
#pragma once

#include <leat/dataset.hpp>
#include <leat/description.hpp>

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
  [[nodiscard]] std::int64_t value(std::uint64_t sample, std::size_t column) const noexcept {
    const values& from = values_[column];
    return from.narrow.empty() ? from.wide[sample] : from.narrow[sample];
  }
  /// Each column's values, by digest.
  void describe(description& out) const;
  [[nodiscard]] std::uint64_t memory_bytes() const noexcept;

 private:
  struct values {
    std::vector<std::int32_t> narrow;
    std::vector<std::int64_t> wide;
  };
  std::uint64_t samples_;
  std::vector<std::string> names_;
  std::vector<values> values_;
};

}  // namespace leat::datasets
