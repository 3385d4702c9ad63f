#include "stages/pixels/picture_info.hpp"

#include "stages/pixels/format_headers.hpp"
#include "stages/pixels/photo_pack_layout.hpp"

#include <algorithm>

namespace leat::pixels {
namespace {

// From the JPEG's head that the pack keeps. The pack's own head is checked when it is decoded.
outcome<picture_info> peek_photo_pack(byte_span encoded, look_for what) {
  const byte_span head = what == look_for::begin_size
                             ? encoded.subspan(std::min(encoded.size(), photo_pack_head::bytes))
                             : jpeg_head_of_pack(encoded);
  const outcome<picture_info> found = peek_jpeg(head, what);
  if (!found) return stages::corrupt("photo pack: " + found.reason());
  picture_info info = *found;
  info.what = format::photo_pack;
  return info;
}

}  // namespace

bool begins_as_photo_pack(byte_span bytes) noexcept { return stands_at(bytes, 0, photo_pack_head::magic); }

byte_span jpeg_head_of_pack(byte_span pack) noexcept {
  if (!begins_as_photo_pack(pack) || pack.size() < photo_pack_head::bytes) return {};
  const std::size_t bytes = little32(pack, 12);
  if (bytes > pack.size() - photo_pack_head::bytes) return {};
  return pack.subspan(photo_pack_head::bytes, bytes);
}

outcome<picture_info> peek(std::span<const std::byte> encoded, look_for what) {
  if (encoded.empty()) return stages::corrupt("empty: zero bytes", corrupt_kinds::empty);
  const format found = format_of(encoded);
  if (found == format::tiff && reads_tiff()) return peek_tiff(encoded, what);
  switch (found) {
    case format::jpeg:
      return peek_jpeg(encoded, what);
    case format::photo_pack:
      return peek_photo_pack(encoded, what);
    case format::png:
      return peek_png(encoded, what);
    case format::webp:
    case format::animated_webp:
      return peek_webp(encoded, what);
    case format::bmp:
      return peek_bmp(encoded, what);
    case format::gif:
      return peek_gif(encoded, what);
    default:
      return {stages::failure{stages::outcome_kind::unsupported, why_not_read(encoded), kind_of_unread(found)}};
  }
}

}  // namespace leat::pixels
