// Which JPEG files any decoder reads, by their headers: for decoders other than libjpeg-turbo, which know less of the standard.
#pragma once

#include "stages/pixels/byte_reading.hpp"

namespace leat::pixels {

/// The file up to its end marker; empty unless it is baseline (SOF0: Huffman codes, 8 bits) in one scan; grey, or YCbCr in 4:4:4, 4:2:2, 4:2:0 or
/// 4:4:0; has all tables that it names; and its scan ends with the end marker, which a file that was cut off does not. What comes behind that,
/// as the further pictures of a camera's file, is left away. So there is one frame header, whose size no decoder reads otherwise. The codes
/// themselves are not looked at.
///   source   ITU-T T.81 annex B; Adobe Technical Note 5116; libjpeg-turbo's default_decompress_parms() for what is YCbCr
[[nodiscard]] byte_span plain_jpeg(byte_span file) noexcept;

}  // namespace leat::pixels
