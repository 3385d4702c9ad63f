// What each format's headers say, one function and one file for each format; picture_info.hpp's peek() chooses.
#pragma once

#include "stages/pixels/byte_reading.hpp"
#include "stages/pixels/picture_info.hpp"

namespace leat::pixels {

[[nodiscard]] outcome<picture_info> peek_jpeg(byte_span encoded, look_for what);
[[nodiscard]] outcome<picture_info> peek_png(byte_span encoded, look_for what);
[[nodiscard]] outcome<picture_info> peek_webp(byte_span encoded, look_for what);
[[nodiscard]] outcome<picture_info> peek_bmp(byte_span encoded, look_for what);

}  // namespace leat::pixels
