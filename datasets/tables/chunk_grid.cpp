#include "datasets/tables/chunk_grid.hpp"

#include "base/text.hpp"

#include <leat/error.hpp>

#include <algorithm>
#include <cassert>
#include <cstring>

namespace leat::datasets {
namespace {

constexpr std::uint64_t bytes_max = std::uint64_t{1} << 40;
// A sample counts the chunks that it waits for.
constexpr std::uint64_t chunks_in_row_max = 8192;

std::uint64_t product(std::uint64_t a, std::uint64_t b, const std::string& where) {
  if (b != 0 && a > bytes_max / b) {
    throw error(errc::limit, str_cat(where, ": a row or a chunk has more than 1 TiB; leat has no room for it"));
  }
  return a * b;
}

// Elements need not be contiguous, in source or destination.
template <class Number>
void copy_turned(const std::byte* from, std::uint64_t from_step, std::byte* to, std::uint64_t to_step,
                 std::uint64_t count) {
  for (; count > 0; --count, from += from_step, to += to_step) {
    Number value;
    std::memcpy(&value, from, sizeof value);
    value = sizeof value == 2   ? static_cast<Number>(__builtin_bswap16(static_cast<std::uint16_t>(value)))
            : sizeof value == 4 ? static_cast<Number>(__builtin_bswap32(static_cast<std::uint32_t>(value)))
                                : static_cast<Number>(__builtin_bswap64(value));
    std::memcpy(to, &value, sizeof value);
  }
}

void copy_line_turned(const std::byte* from, std::uint64_t from_step, std::byte* to, std::uint64_t to_step,
                      std::uint64_t count, std::uint64_t element_bytes) {
  switch (element_bytes) {
    case 2:
      return copy_turned<std::uint16_t>(from, from_step, to, to_step, count);
    case 4:
      return copy_turned<std::uint32_t>(from, from_step, to, to_step, count);
    default:
      return copy_turned<std::uint64_t>(from, from_step, to, to_step, count);
  }
}

template <std::size_t bytes>
void copy_apart(const std::byte* from, std::uint64_t from_step, std::byte* to, std::uint64_t to_step,
                std::uint64_t count) {
  for (; count > 0; --count, from += from_step, to += to_step) std::memcpy(to, from, bytes);
}

void copy_line(const std::byte* from, std::uint64_t from_step, std::byte* to, std::uint64_t to_step,
               std::uint64_t count, std::uint64_t element_bytes) {
  switch (element_bytes) {
    case 1:
      return copy_apart<1>(from, from_step, to, to_step, count);
    case 2:
      return copy_apart<2>(from, from_step, to, to_step, count);
    case 4:
      return copy_apart<4>(from, from_step, to, to_step, count);
    default:
      return copy_apart<8>(from, from_step, to, to_step, count);
  }
}

}  // namespace

chunk_grid::chunk_grid(const chunked_array& array, const std::string& where)
    : shape_(array.shape.begin(), array.shape.end()),
      chunk_(array.chunk.begin(), array.chunk.end()),
      element_bytes_(size_bytes(array.type)),
      record_offset_(array.record_offset),
      turned_(array.big_endian && element_bytes_ > 1) {
  assert(!shape_.empty() && shape_.size() == chunk_.size());
  const std::size_t axes_count = shape_.size();
  const std::uint64_t step = array.record_bytes != 0 ? array.record_bytes : element_bytes_;
  assert(record_offset_ + element_bytes_ <= step && array.inner_axes < axes_count);
  in_order_ = step == element_bytes_ && !turned_;

  cells_.resize(axes_count);
  stride_.resize(axes_count);
  row_bytes_ = element_bytes_;
  bool rows_whole = true;
  for (std::size_t axis = 0; axis < axes_count; ++axis) {
    if (axis > 0 && shape_[axis] == 0) {
      throw error(errc::usage, str_cat(where, ": an axis has no elements: there is nothing to load"));
    }
    cells_[axis] = shape_[axis] / chunk_[axis] + (shape_[axis] % chunk_[axis] != 0);
    if (axis == 0) continue;
    chunks_in_row_ = product(chunks_in_row_, cells_[axis], where);
    row_bytes_ = product(row_bytes_, shape_[axis], where);
    rows_whole = rows_whole && shape_[axis] == chunk_[axis];
  }
  if (chunks_in_row_ > chunks_in_row_max) {
    throw error(errc::limit, str_cat(where, ": a row lies in ", chunks_in_row_, " chunks; leat has up to ",
                                     chunks_in_row_max, ": write it anew with larger ones"));
  }

  axes order(axes_count);  // axes as a chunk has them, slowest first
  for (std::size_t place = 0; place < axes_count; ++place) {
    order[place] = array.stored_axes.empty() ? place : array.stored_axes[place];
    in_order_ = in_order_ && order[place] == place;
  }
  rows_as_stored_ = rows_whole && in_order_ && array.filters.empty() && array.held.empty();
  chunk_bytes_ = array.inner_axes == 0 ? step : element_bytes_;
  for (std::size_t place = axes_count; place-- > 0;) {
    const std::size_t axis = order[place];
    if (array.inner_axes != 0 && place + array.inner_axes + 1 == axes_count) chunk_bytes_ = step;
    stride_[axis] = chunk_bytes_;
    // A chunk of rows that are stored as they are may be of any size: no reader needs a whole one.
    if (axis != 0 || !rows_as_stored_) chunk_bytes_ = product(chunk_bytes_, chunk_[axis], where);
  }
  assert(array.lead_bytes == 0 || !array.filters.empty());
  first_element_ = record_offset_ + array.lead_bytes;
  chunk_bytes_ += array.lead_bytes;
}

array_region chunk_grid::rows(std::uint64_t first, std::uint64_t count) const {
  array_region all{axes(rank(), 0), shape_};
  all.first.front() = first;
  all.count.front() = count;
  return all;
}

array_region chunk_grid::region_of(std::uint64_t chunk) const {
  array_region held{axes(rank()), axes(rank())};
  for (std::size_t axis = rank(); axis-- > 0;) {
    held.first[axis] = chunk % cells_[axis] * chunk_[axis];
    held.count[axis] = std::min(chunk_[axis], shape_[axis] - held.first[axis]);
    chunk /= cells_[axis];
  }
  return held;
}

std::uint64_t chunk_grid::bytes_within(std::uint64_t chunk) const {
  // If the first axis is not the slowest, rows beyond the shape are not at a chunk's end.
  const bool rows_slowest = stride_.front() * chunk_.front() == chunk_bytes_;
  return rows_slowest ? region_of(chunk).count.front() * stride_.front() : chunk_bytes_;
}

bool chunk_grid::is_whole(std::uint64_t chunk, const array_region& region) const {
  if (!in_order_ || first_element_ != 0) return false;
  const array_region held = region_of(chunk);
  return held.first == region.first && held.count == region.count && held.count == chunk_;
}

chunk_grid::axes chunk_grid::dense_strides(const axes& count) const {
  axes strides(count.size());
  std::uint64_t bytes = element_bytes_;
  for (std::size_t axis = count.size(); axis-- > 0;) {
    strides[axis] = bytes;
    bytes *= count[axis];
  }
  return strides;
}

void chunk_grid::copy(std::uint64_t chunk, std::span<const std::byte> expanded, const array_region& region,
                      std::span<std::byte> to) const {
  assert(expanded.size() == chunk_bytes_);
  copy_shared(region_of(chunk), expanded.data() + first_element_, stride_, region, to);
}

void chunk_grid::copy(const array_region& rows, std::span<const std::byte> stored, const array_region& region,
                      std::span<std::byte> to) const {
  assert(rows_as_stored_ && stored.size() == rows.count.front() * row_bytes_);
  copy_shared(rows, stored.data(), dense_strides(rows.count), region, to);
}

void chunk_grid::copy_shared(const array_region& held, const std::byte* from, const axes& from_stride,
                             const array_region& region, std::span<std::byte> to) const {
  const axes to_stride = dense_strides(region.count);
  assert(to.size() == to_stride.front() * region.count.front());
  std::byte* at = to.data();
  axes count(rank());
  for (std::size_t axis = 0; axis < rank(); ++axis) {
    const std::uint64_t first = std::max(held.first[axis], region.first[axis]);
    const std::uint64_t end = std::min(held.first[axis] + held.count[axis], region.first[axis] + region.count[axis]);
    assert(first < end);
    count[axis] = end - first;
    from += (first - held.first[axis]) * from_stride[axis];
    at += (first - region.first[axis]) * to_stride[axis];
  }
  copy_elements(from, from_stride, at, to_stride, count);
}

// Trailing axes that are contiguous in source and destination are one run of bytes.
void chunk_grid::copy_elements(const std::byte* from, const axes& from_stride, std::byte* to, const axes& to_stride,
                               const axes& count) const {
  std::size_t outer = rank();
  std::uint64_t run = element_bytes_;
  while (!turned_ && outer > 0 && from_stride[outer - 1] == run && to_stride[outer - 1] == run) run *= count[--outer];
  const bool apart = outer == rank();
  std::uint64_t line = 1;
  std::uint64_t line_from = 0;
  std::uint64_t line_to = 0;
  if (apart) {
    --outer;
    line = count[outer];
    line_from = from_stride[outer];
    line_to = to_stride[outer];
  }
  axes at(outer, 0);
  for (;;) {
    if (turned_) {
      copy_line_turned(from, line_from, to, line_to, line, element_bytes_);
    } else if (apart) {
      copy_line(from, line_from, to, line_to, line, element_bytes_);
    } else {
      std::memcpy(to, from, run);
    }
    std::size_t axis = outer;
    for (; axis > 0; --axis) {
      from += from_stride[axis - 1];
      to += to_stride[axis - 1];
      if (++at[axis - 1] < count[axis - 1]) break;
      from -= count[axis - 1] * from_stride[axis - 1];
      to -= count[axis - 1] * to_stride[axis - 1];
      at[axis - 1] = 0;
    }
    if (axis == 0) return;
  }
}

}  // namespace leat::datasets
