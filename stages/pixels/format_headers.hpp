// Reads the headers of each picture format, in one function and file per format; peek() in picture_info.hpp chooses among them.
#pragma once

#include "stages/pixels/byte_reading.hpp"
#include "stages/pixels/picture_info.hpp"

namespace leat::pixels {

[[nodiscard]] outcome<picture_info> peek_jpeg(byte_span encoded, look_for what);
[[nodiscard]] outcome<picture_info> peek_png(byte_span encoded, look_for what);
[[nodiscard]] outcome<picture_info> peek_webp(byte_span encoded, look_for what);
[[nodiscard]] outcome<picture_info> peek_bmp(byte_span encoded, look_for what);
[[nodiscard]] outcome<picture_info> peek_gif(byte_span encoded, look_for what);
[[nodiscard]] outcome<picture_info> peek_tiff(byte_span encoded, look_for what);

}  // namespace leat::pixels
