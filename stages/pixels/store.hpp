// How a pixel becomes an element of the batch: normalise, cast, layout. The last of the compiled slots, and the rule that
// makes host and GPU agree bit by bit:
//
//   f32 = round(round(u8 * scale[c]) + bias[c])   two roundings, never a fused multiply-add
//   f16, bf16 = that f32, rounded to nearest even
#pragma once

#include <leat/tensor.hpp>
#include <leat/transforms.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace leat::pixels {

/// One field's store. A value; scale and bias are computed in double and rounded once.
///   channels   3, or 1: red, green and blue become grey as by Pillow's convert("L"), and rows are one plane (order is nchw)
struct store {
  dtype type = dtype::f32;
  layout order = layout::nchw;
  int channels = 3;
  std::array<float, 3> scale = {1, 1, 1};
  std::array<float, 3> bias = {0, 0, 0};
  /// Bits of the f16 or bf16 of every channel and pixel value; zero for other types.
  std::array<std::array<std::uint16_t, 256>, 3> half_bits = {};

  /// Floats are u8 / 255, or (u8 / 255 - mean) / deviation with `statistics`; u8 is the pixel itself.
  /// Of one channel, which is one plane in either order, with the statistics of the first.
  /// Throws error{errc::usage} for u8 with statistics, for a deviation that is not positive, for other types.
  [[nodiscard]] static store from(dtype type, layout order, const std::optional<normalization>& statistics,
                                  int channels = 3);

  /// Bytes of one dense row.
  [[nodiscard]] std::size_t row_bytes(int height, int width) const noexcept {
    return static_cast<std::size_t>(height) * static_cast<std::size_t>(width) * static_cast<std::size_t>(channels) *
           size_bytes(type);
  }
};

/// Stores one line of a picture.
///   line         3 * width pixels values: three planes one after the other (nchw), or interleaved (nhwc)
///   line_order   which of both; that of the row, or nchw
///   y            the line's number, 0..height-1
///   row          where the picture begins in the batch, aligned to the element's size
void store_line(const store& how, layout line_order, const std::uint8_t* line, int y, int height, int width,
                std::byte* row) noexcept;

/// Bytes of the elements of all values of all channels.
[[nodiscard]] inline std::size_t element_table_bytes(const store& how) noexcept {
  return 3 * 256 * size_bytes(how.type);
}

/// What store_line() makes of each value of each channel once `by` has changed it: a table that costs no more than store itself.
///   elements   element_table_bytes(), aligned to the element's size
void make_element_table(const store& how, const table& by, void* elements) noexcept;

/// Stores one planar line of a picture by such a table; of three channels.
void store_line_by(const store& how, const void* elements, const std::uint8_t* line, int y, int height, int width,
                   std::byte* row) noexcept;

/// The bits of a number as an element of the row. Of u8: clamped and rounded to nearest.
///   to   size_bytes(how.type)
void store_number(const store& how, float value, std::byte* to) noexcept;

}  // namespace leat::pixels
