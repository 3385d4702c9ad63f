#include "stages/pixels/picture_info.hpp"

#include "stages/pixels/format_headers.hpp"

namespace leat::pixels {

outcome<picture_info> peek(std::span<const std::byte> encoded, look_for what) {
  if (encoded.empty()) return stages::corrupt("empty: zero bytes");
  switch (format_of(encoded)) {
    case format::jpeg:
      return peek_jpeg(encoded, what);
    case format::png:
      return peek_png(encoded, what);
    case format::webp:
      return peek_webp(encoded, what);
    case format::bmp:
      return peek_bmp(encoded, what);
    default:
      return stages::unsupported(why_not_read(encoded));
  }
}

}  // namespace leat::pixels
