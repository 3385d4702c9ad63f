// The entropy stage of a photo pack, in the place of libjpeg-turbo's: coefficients as they would come from the JPEG that was packed.
#pragma once

#include "stages/pixels/entropy_door.hpp"
#include "stages/pixels/photo_pack_layout.hpp"
#include "stages/pixels/photo_rows.hpp"

#include <cstdint>

namespace leat::pixels {

/// One picture's. libjpeg sees its first member, as it sees its own decoder's.
struct photo_entropy {
  enum class installed : std::uint8_t { yes, door_is_shut, other_picture };

  jpeg_entropy_decoder methods;

  /// Takes the place of libjpeg's decoder after jpeg_start_decompress(), which has read the pack's JPEG head.
  ///   scratch   photo_row::scratch_bytes(pack.row_blocks()) bytes
  ///   damaged   called with a row that is damaged; does not return
  ///   plain     without vectors, for tests
  ///   returns   other_picture: the JPEG's head does not go with the pack's
  [[nodiscard]] installed install(j_decompress_ptr cinfo, const photo_pack_view& pack, std::uint8_t* scratch,
                                  void (*damaged)(j_decompress_ptr, std::uint32_t row), bool plain) noexcept;

  /// Not wanted are rows above `first_row` and MCUs of a row outside [first, last]: they are left zero, and cost nothing. Rows above are not
  /// looked at, and need not be there.
  void want(JDIMENSION first_row, JDIMENSION first, JDIMENSION last) noexcept;

  // The rest is its own.
  const photo_pack_view* pack_;
  const photo_row_reading* reading_;
  void (*damaged_)(j_decompress_ptr, std::uint32_t);
  photo_row reader_;
  std::uint8_t component_of_[D_MAX_BLOCKS_IN_MCU];
  int mcu_blocks_;
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
