// The arithmetic of a chunked array: which chunks a region of it touches, and how elements of a chunk get to their places in the region.
#pragma once

#include "datasets/tables/chunked_array.hpp"

#include <leat/tensor.hpp>

#include <absl/container/inlined_vector.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace leat::datasets {

/// Elements of a chunked array, from `first` on along each axis: the first axis is that of rows. Rows have as many axes as a batch's have.
struct array_region {
  using axes = absl::InlinedVector<std::uint64_t, dimensions::rank_max>;

  axes first;
  axes count;
};

class chunk_grid {
 public:
  using axes = array_region::axes;

  ///   where    names the array in errors
  ///   throws   error{errc::usage} an axis without elements; error{errc::limit} rows or chunks of more than 1 TiB, and rows in too many
  ///            chunks
  chunk_grid(const chunked_array& array, const std::string& where);

  [[nodiscard]] std::size_t rank() const noexcept { return shape_.size(); }
  [[nodiscard]] std::uint64_t element_bytes() const noexcept { return element_bytes_; }
  /// Of a row, dense.
  [[nodiscard]] std::uint64_t row_bytes() const noexcept { return row_bytes_; }
  /// Of a whole chunk when its filters are undone, also beyond the shape.
  [[nodiscard]] std::uint64_t chunk_bytes() const noexcept { return chunk_bytes_; }
  [[nodiscard]] std::uint64_t rows_in_chunk() const noexcept { return chunk_.front(); }
  /// Chunks that a row lies in.
  [[nodiscard]] std::uint64_t chunks_in_row() const noexcept { return chunks_in_row_; }
  /// Whether chunks hold rows as they are, one after another: no filter, the elements in order, no row in several chunks,
  /// and all chunks in files.
  [[nodiscard]] bool rows_as_stored() const noexcept { return rows_as_stored_; }

  /// Rows from `first` on, all of them.
  [[nodiscard]] array_region rows(std::uint64_t first, std::uint64_t count) const;

  /// Numbers of the chunks that have an element of the region, ascending.
  template <typename Function>
  void for_each_chunk(const array_region& region, Function&& function) const;

  /// The part of the array that a chunk holds.
  [[nodiscard]] array_region region_of(std::uint64_t chunk) const;
  /// Bytes of a chunk stored without filters and without the rows beyond the array's end.
  [[nodiscard]] std::uint64_t bytes_within(std::uint64_t chunk) const;
  /// Whether the chunk expands to the region's bytes as they are.
  [[nodiscard]] bool is_whole(std::uint64_t chunk, const array_region& region) const;

  /// Copies the elements that a chunk and the region share.
  ///   chunk      its number
  ///   expanded   chunk_bytes() of it
  ///   to         the region, dense
  void copy(std::uint64_t chunk, std::span<const std::byte> expanded, const array_region& region,
            std::span<std::byte> to) const;
  /// The same of rows that are stored as they are.
  ///   rows   whole rows, dense
  void copy(const array_region& rows, std::span<const std::byte> stored, const array_region& region,
            std::span<std::byte> to) const;

 private:
  [[nodiscard]] axes dense_strides(const axes& count) const;
  void copy_shared(const array_region& held, const std::byte* from, const axes& from_stride, const array_region& region,
                   std::span<std::byte> to) const;
  void copy_elements(const std::byte* from, const axes& from_stride, std::byte* to, const axes& to_stride,
                     const axes& count) const;

  axes shape_;
  axes chunk_;
  axes cells_;  // chunks along each axis
  std::uint64_t chunks_in_row_ = 1;
  axes stride_;  // bytes from one element of a chunk to the next, along each axis
  std::uint64_t element_bytes_ = 1;
  std::uint64_t record_offset_ = 0;
  bool turned_ = false;              // elements are big-endian
  std::uint64_t first_element_ = 0;  // of a chunk, in bytes
  std::uint64_t row_bytes_ = 0;
  std::uint64_t chunk_bytes_ = 0;
  bool in_order_ = true;  // a chunk's elements lie one after another, the last axis fastest
  bool rows_as_stored_ = false;
};

template <typename Function>
void chunk_grid::for_each_chunk(const array_region& region, Function&& function) const {
  const std::size_t axes_count = rank();
  axes first(axes_count);
  axes last(axes_count);
  for (std::size_t axis = 0; axis < axes_count; ++axis) {
    first[axis] = region.first[axis] / chunk_[axis];
    last[axis] = (region.first[axis] + region.count[axis] - 1) / chunk_[axis];
  }
  axes at = first;
  for (;;) {
    std::uint64_t number = 0;
    for (std::size_t axis = 0; axis < axes_count; ++axis) number = number * cells_[axis] + at[axis];
    function(number);
    std::size_t axis = axes_count;
    while (axis > 0 && at[axis - 1] == last[axis - 1]) {
      --axis;
      at[axis] = first[axis];
    }
    if (axis == 0) return;
    ++at[axis - 1];
  }
}

}  // namespace leat::datasets
