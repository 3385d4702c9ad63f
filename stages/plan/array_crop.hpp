// Which part of its row an array takes: drawn for each sample, or always the same.
#pragma once

#include "datasets/model/box.hpp"

#include <leat/description.hpp>
#include <leat/sampler.hpp>
#include <leat/tensor.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace leat::stages {

/// As the user wrote it, before the shape of a row is known.
///   slices   axes of a row, from the end where negative, in the order given; each within what those before have left
///   size     of the crop along the last axes; empty: there is none
///   random   where the crop lies is drawn; else it is in the middle
struct array_cut {
  struct slice {
    std::int64_t axis = 0;
    std::int64_t first = 0;
    std::int64_t count = 0;
  };
  std::vector<slice> slices;
  std::vector<std::int64_t> size;
  bool random = false;

  [[nodiscard]] bool is_whole() const noexcept { return slices.empty() && size.empty(); }
  void describe(description& out) const;
};

/// The same for rows of one shape.
class array_crop {
 public:
  ///   where    names the field in errors
  ///   throws   error{errc::usage} an axis that the rows lack; a range or a crop that does not fit
  array_crop(const array_cut& cut, dtype type, const dimensions& row, const std::string& where);

  /// Of what is taken.
  [[nodiscard]] const dimensions& shape() const noexcept { return shape_; }
  [[nodiscard]] bool random() const noexcept { return random_; }
  /// Whether it has more than one place.
  [[nodiscard]] bool varies() const noexcept { return random_ && room_ != shape_; }
  [[nodiscard]] std::size_t row_bytes() const noexcept;

  /// Draws as the `number`-th view of its member, from 1, which it is by itself.
  void set_view(std::uint32_t number);

  /// What the sample takes. Crops of several fields that have as much room are the same box.
  [[nodiscard]] datasets::box box_of(std::uint64_t seed, std::uint32_t epoch, std::uint64_t draw) const;

  /// Bytes of a whole row, dense, that have the box: from the first element of the first axis to the last.
  struct byte_range {
    std::size_t first = 0;
    std::size_t bytes = 0;
  };
  [[nodiscard]] byte_range slab_of(const datasets::box& box) const;

  /// Copies the box out of a whole row, or out of slab_of(box) of it: its size tells.
  ///   to        shape(), dense
  ///   returns   false where `from` is neither
  [[nodiscard]] bool copy(const datasets::box& box, std::span<const std::byte> from, std::span<std::byte> to) const;

 private:
  std::size_t element_bytes_;
  dimensions row_;
  dimensions first_;  // of the room in which the crop lies
  dimensions room_;
  dimensions shape_;
  bool random_;
  std::string operation_ = "array_crop";
};

}  // namespace leat::stages
