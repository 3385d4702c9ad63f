// A JPEG's headers: ITU-T T.81 annex B.
#include "stages/pixels/exif.hpp"
#include "stages/pixels/format_headers.hpp"

#include <string>

namespace leat::pixels {
namespace {

using namespace std::string_view_literals;
using stages::corrupt;
using stages::unsupported;

void see_app1(byte_span segment, orientation_finder& upright) noexcept {
  constexpr std::string_view xmp = "http://ns.adobe.com/xap/1.0/\0"sv;
  if (stands_at(segment, 0, "Exif\0\0"sv)) upright.see_exif(segment);
  if (stands_at(segment, 0, xmp)) upright.see_xmp(text_of(segment.subspan(xmp.size())));
}

}  // namespace

outcome<picture_info> peek_jpeg(byte_span encoded, look_for what) {
  picture_info info{.what = format::jpeg};
  orientation_finder upright;
  std::size_t at = 2;
  for (;;) {
    // As in libjpeg, bytes between two segments are skipped, and so are fill bytes.
    while (at < encoded.size() && byte_at(encoded, at) != 0xFF) ++at;
    while (at < encoded.size() && byte_at(encoded, at) == 0xFF) ++at;
    if (at >= encoded.size()) return corrupt("JPEG ends inside its headers");
    const std::uint32_t marker = byte_at(encoded, at++);
    if (marker == 0x00 || marker == 0x01 || (marker >= 0xD0 && marker <= 0xD7)) continue;  // no segment follows
    if (marker == 0xD8) return corrupt("JPEG with a second start marker in its headers");
    if (marker == 0xD9) return corrupt("JPEG without a picture: it ends before the first frame");
    if (marker == 0xDA) return corrupt("JPEG without a frame header before its data");
    if (encoded.size() - at < 2) return corrupt("JPEG ends inside its headers");
    const std::size_t length = big16(encoded, at);
    if (length < 2) return corrupt("JPEG with a header segment of length " + std::to_string(length));
    if (encoded.size() - at < length) return corrupt("JPEG ends inside its headers");
    const byte_span segment = encoded.subspan(at + 2, length - 2);
    at += length;
    if (marker == 0xE1 && what == look_for::orientation) see_app1(segment, upright);
    const bool frame = marker >= 0xC0 && marker <= 0xCF && marker != 0xC4 && marker != 0xC8 && marker != 0xCC;
    if (!frame) continue;
    if (segment.size() < 6) return corrupt("JPEG with a frame header of " + std::to_string(length) + " bytes");
    // Lossless and hierarchical frames, which libjpeg-turbo 2 and 3 treat differently, are refused here alike.
    if (marker != 0xC0 && marker != 0xC1 && marker != 0xC2 && marker != 0xC9 && marker != 0xCA) {
      return unsupported("unsupported JPEG process (SOF" + std::to_string(marker - 0xC0) + ")");
    }
    if (byte_at(segment, 0) != 8) {
      return unsupported("unsupported JPEG with " + std::to_string(byte_at(segment, 0)) + " bits per sample");
    }
    info.height = static_cast<int>(big16(segment, 1));
    info.width = static_cast<int>(big16(segment, 3));
    info.channels = static_cast<int>(byte_at(segment, 5));
    info.progressive = marker == 0xC2 || marker == 0xCA;
    if (info.height == 0) return unsupported("unsupported JPEG without a height in its header (DNL)");
    if (info.width == 0) return corrupt("JPEG of width 0");
    if (info.channels != 1 && info.channels != 3 && info.channels != 4) {
      return unsupported("unsupported JPEG with " + std::to_string(info.channels) + " components");
    }
    info.orientation = upright.found();
    return info;
  }
}

}  // namespace leat::pixels
