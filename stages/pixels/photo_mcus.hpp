// The MCUs of a photo pack, one after the other, as libjpeg's decompressor asks for them.
#pragma once

#include "stages/pixels/libjpeg.hpp"
#include "stages/pixels/photo_pack_layout.hpp"
#include "stages/pixels/photo_rows.hpp"

#include <cstdint>

namespace leat::pixels {

/// One picture's. Plain data: libjpeg's jumps may skip it.
struct photo_mcus {
  /// After jpeg_start_decompress(), which has read the pack's JPEG head. All are wanted.
  ///   scratch   photo_row::scratch_bytes(pack.row_blocks()) bytes
  ///   damaged   called with a row that is damaged; does not return
  ///   plain     without vectors, for tests
  ///   returns   false: the JPEG's head does not go with the pack's
  [[nodiscard]] bool begin(const jpeg_decompress_struct& cinfo, const photo_pack_view& pack, std::uint8_t* scratch,
                           void (*damaged)(j_decompress_ptr, std::uint32_t row), bool plain) noexcept;

  /// Not wanted are rows above `first_row` and MCUs of a row outside [first, last]: they cost nothing. Rows above are not looked at, and
  /// need not be there.
  void want(JDIMENSION first_row, JDIMENSION first, JDIMENSION last) noexcept;

  /// The next MCU. False, and nothing is written, where it is not wanted or `to` is null.
  bool next(j_decompress_ptr cinfo, std::int16_t* const* to);

  [[nodiscard]] JDIMENSION columns() const noexcept { return columns_; }
  [[nodiscard]] JDIMENSION column() const noexcept { return column_; }  ///< of the next one
  [[nodiscard]] JDIMENSION row() const noexcept { return row_; }
  [[nodiscard]] int blocks() const noexcept { return blocks_; }  ///< of an MCU
  [[nodiscard]] int component_of(int block) const noexcept { return component_of_[block]; }

  // The rest is its own.
  const photo_pack_view* pack_;
  const photo_row_reading* reading_;
  void (*damaged_)(j_decompress_ptr, std::uint32_t);
  photo_row reader_;
  std::uint8_t component_of_[D_MAX_BLOCKS_IN_MCU];
  int blocks_;
  JDIMENSION columns_;
  JDIMENSION first_row_wanted_;
  JDIMENSION first_wanted_;
  JDIMENSION last_wanted_;
  JDIMENSION column_;
  JDIMENSION row_;
  JDIMENSION begun_;  // the row that is being read, and its next MCU
  JDIMENSION next_column_;
};

}  // namespace leat::pixels
