// Which JPEG files any decoder reads, by their headers: for decoders other than libjpeg-turbo, which know less of the standard.
#pragma once

#include "stages/pixels/byte_reading.hpp"

namespace leat::pixels {

/// Whether a file is baseline (SOF0: Huffman codes, 8 bits) in one scan; grey, or YCbCr in 4:4:4, 4:2:2, 4:2:0 or 4:4:0; and ends with its end
/// marker behind the scan's data, which a file that was cut off does not. The data itself is not looked at.
///   source   ITU-T T.81 annex B; Adobe Technical Note 5116; libjpeg-turbo's default_decompress_parms() for what is YCbCr
[[nodiscard]] bool is_plain_jpeg(byte_span file) noexcept;

}  // namespace leat::pixels
