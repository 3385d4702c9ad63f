// Which rows of an array a sample has: one, or a window of them.
#pragma once

#include "base/text.hpp"

#include <leat/error.hpp>
#include <leat/samples.hpp>
#include <leat/tensor.hpp>

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace leat::datasets {

///   window   rows of a sample, a first axis of it; 0: one row, without that axis
///   stride   rows from the first one of a sample to that of the next
struct row_windows {
  std::uint64_t window = 0;
  std::uint64_t stride = 1;

  [[nodiscard]] std::uint64_t count() const noexcept { return window == 0 ? 1 : window; }
  [[nodiscard]] std::uint64_t first_of(std::uint64_t sample) const noexcept { return sample * stride; }

  /// How many samples so many rows are.
  ///   title    what a person calls the array, for messages
  ///   throws   error{errc::usage} a stride of 0, and fewer rows than a window
  [[nodiscard]] std::uint64_t samples_of(std::uint64_t rows, std::string_view title) const {
    if (stride == 0) throw error(errc::usage, str_cat(title, ": a stride of 0 rows; give 1 or more"));
    if (rows < count() && window != 0) {
      throw error(errc::usage, str_cat(title, ": windows of ", window, " rows, and it has ", rows));
    }
    return rows < count() ? 0 : (rows - count()) / stride + 1;
  }

  /// Keeps of the numbers of an array, which stand from `first` on, those of its samples.
  template <class Numbers>
  void take_strided(Numbers& numbers, std::size_t first, std::uint64_t samples) const {
    for (std::uint64_t sample = 0; stride > 1 && sample < samples; ++sample) {
      numbers[first + sample] = numbers[first + first_of(sample)];
    }
    numbers.resize(first + samples);
  }

  /// The shape of a sample that has rows of this shape.
  ///   throws   error{errc::unsupported} more axes than leat::dimensions has, beside that of a batch
  [[nodiscard]] dimensions shape_of(const dimensions& row, std::string_view title) const {
    if (window == 0) return row;
    if (row.size() + 2 > dimensions::rank_max) {
      throw error(errc::unsupported, str_cat(title, ": windows of rows of ", row.size(), " axes have ", row.size() + 1,
                                             ", and a batch one more; leat has up to ", dimensions::rank_max));
    }
    dimensions shape;
    shape.push_back(static_cast<std::int64_t>(window));
    for (const std::int64_t axis : row) shape.push_back(axis);
    return shape;
  }
};

}  // namespace leat::datasets
