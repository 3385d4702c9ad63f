// Where our own entropy stages are put into libjpeg-turbo: cinfo->entropy, which is internal to libjpeg.
#pragma once

#include "stages/pixels/libjpeg.hpp"

#if __has_include(<jpegint.h>) && LIBJPEG_TURBO_VERSION_NUMBER >= 2000000 && LIBJPEG_TURBO_VERSION_NUMBER < 4000000
#define LEAT_ENTROPY_DOOR 1
#define JPEG_INTERNALS
#include <jpegint.h>
#undef JPEG_INTERNALS
#else
// A libjpeg-turbo with unknown internals: the door stays closed, and everything works without our stages.
struct jpeg_entropy_decoder {
  void (*start_pass)(j_decompress_ptr cinfo);
  boolean (*decode_mcu)(j_decompress_ptr cinfo, JBLOCKROW* mcu);
};
#endif

namespace leat::pixels {

/// Whether `methods` are functions of the libjpeg that the header describes, so that another entropy decoder may take their place.
[[nodiscard]] bool entropy_door_is_open(const jpeg_entropy_decoder& methods) noexcept;

/// Whether the scan that jpeg_start_decompress() found is sequential, of 8 bits, and has all components: the kind that our stages know.
[[nodiscard]] bool is_one_plain_scan(const jpeg_decompress_struct& cinfo) noexcept;

}  // namespace leat::pixels
