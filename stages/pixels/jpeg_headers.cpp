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

/// A segment with its marker. The segments that have no length are passed over.
struct marker_segment {
  std::uint32_t marker = 0;
  byte_span content;
};

/// The next segment from `at` on, which moves behind it. For start of image, end of image and start of scan the content is not looked at.
outcome<marker_segment> next_segment(byte_span encoded, std::size_t& at) {
  for (;;) {
    // As in libjpeg, bytes between two segments are skipped, and so are fill bytes.
    while (at < encoded.size() && byte_at(encoded, at) != 0xFF) ++at;
    while (at < encoded.size() && byte_at(encoded, at) == 0xFF) ++at;
    if (at >= encoded.size()) return corrupt("JPEG ends inside its headers");
    const std::uint32_t marker = byte_at(encoded, at++);
    if (marker == 0x00 || marker == 0x01 || (marker >= 0xD0 && marker <= 0xD7)) continue;  // no segment follows
    if (marker == 0xD8 || marker == 0xD9 || marker == 0xDA) return marker_segment{marker, {}};
    if (encoded.size() - at < 2) return corrupt("JPEG ends inside its headers");
    const std::size_t length = big16(encoded, at);
    if (length < 2) return corrupt("JPEG with a header segment of length " + std::to_string(length));
    if (encoded.size() - at < length) return corrupt("JPEG ends inside its headers");
    const byte_span content = encoded.subspan(at + 2, length - 2);
    at += length;
    return marker_segment{marker, content};
  }
}

bool is_frame(std::uint32_t marker) noexcept {
  return marker >= 0xC0 && marker <= 0xCF && marker != 0xC4 && marker != 0xC8 && marker != 0xCC;
}

outcome<picture_info> read_frame(const marker_segment& frame) {
  const byte_span content = frame.content;
  if (content.size() < 6)
    return corrupt("JPEG with a frame header of " + std::to_string(content.size() + 2) + " bytes");
  // Lossless and hierarchical frames, which libjpeg-turbo 2 and 3 treat differently, are refused here alike.
  if (frame.marker != 0xC0 && frame.marker != 0xC1 && frame.marker != 0xC2 && frame.marker != 0xC9 &&
      frame.marker != 0xCA) {
    return unsupported("unsupported JPEG process (SOF" + std::to_string(frame.marker - 0xC0) + ")");
  }
  if (byte_at(content, 0) != 8) {
    return unsupported("unsupported JPEG with " + std::to_string(byte_at(content, 0)) + " bits per sample");
  }
  picture_info info{.what = format::jpeg};
  info.height = static_cast<int>(big16(content, 1));
  info.width = static_cast<int>(big16(content, 3));
  info.channels = static_cast<int>(byte_at(content, 5));
  info.progressive = frame.marker == 0xC2 || frame.marker == 0xCA;
  if (info.height == 0) return unsupported("unsupported JPEG without a height in its header (DNL)");
  if (info.width == 0) return corrupt("JPEG of width 0");
  if (info.channels != 1 && info.channels != 3 && info.channels != 4) {
    return unsupported("unsupported JPEG with " + std::to_string(info.channels) + " components");
  }
  return info;
}

// EXIF may stand behind the frame header too. What is damaged there shows when the picture is decoded.
void see_segments_to_scan(byte_span encoded, std::size_t at, orientation_finder& upright) {
  for (;;) {
    const outcome<marker_segment> next = next_segment(encoded, at);
    if (!next || (next->marker >= 0xD8 && next->marker <= 0xDA)) return;
    if (next->marker == 0xE1) see_app1(next->content, upright);
  }
}

}  // namespace

outcome<picture_info> peek_jpeg(byte_span encoded, look_for what) {
  orientation_finder upright;
  std::size_t at = 2;
  for (;;) {
    const outcome<marker_segment> next = next_segment(encoded, at);
    if (!next) return next.error();
    if (next->marker == 0xD8) return corrupt("JPEG with a second start marker in its headers");
    if (next->marker == 0xD9) return corrupt("JPEG without a picture: it ends before the first frame");
    if (next->marker == 0xDA) return corrupt("JPEG without a frame header before its data");
    if (next->marker == 0xE1 && what == look_for::orientation) see_app1(next->content, upright);
    if (!is_frame(next->marker)) continue;
    outcome<picture_info> info = read_frame(*next);
    if (info && what == look_for::orientation) {
      see_segments_to_scan(encoded, at, upright);
      info->orientation = upright.found();
    }
    return info;
  }
}

}  // namespace leat::pixels
