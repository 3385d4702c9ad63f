#include "stages/pixels/webp_headers.hpp"

#include "stages/pixels/exif.hpp"
#include "stages/pixels/format_headers.hpp"

#include <algorithm>
#include <cstdint>
#include <string>

namespace leat::pixels {
namespace {

using stages::corrupt;
using stages::unsupported;

constexpr std::size_t chunk_header_bytes = 8;
constexpr std::size_t file_header_bytes = 12;

// The fewest bits of a macroblock of 16 x 16 pixels: its modes take 3.4 bits or more (RFC 6386, section 11, with the fixed
// probabilities of key frames).
constexpr std::uint64_t lossy_bits_per_block = 3;

// A lossless picture of one colour has no bits for its pixels. Drawings have up to some thousand pixels for a byte. A large
// picture with more than that is refused, since it would only take memory from others.
constexpr std::uint64_t harmless_pixels = std::uint64_t{1} << 24;
constexpr std::uint64_t pixels_per_byte_max = 10'000;

std::string size_text(int width, int height) {
  return std::to_string(width) + " x " + std::to_string(height) + " pixels";
}

outcome<void> read_lossy(webp_layout& found) {
  const byte_span p = found.picture;
  if (p.size() < 10) return corrupt("WebP ends inside its picture's header");
  const std::uint32_t tag = little24(p, 0);
  if ((tag & 1U) != 0 || big16(p, 3) != 0x9D01 || byte_at(p, 5) != 0x2A) return corrupt("WebP without a key frame");
  found.frame.width = static_cast<int>(little16(p, 6) & 0x3FFF);
  found.frame.height = static_cast<int>(little16(p, 8) & 0x3FFF);
  if (found.frame.width == 0 || found.frame.height == 0)
    return corrupt("WebP of " + size_text(found.frame.width, found.frame.height));
  const std::uint64_t blocks =
      static_cast<std::uint64_t>((found.frame.width + 15) / 16) * static_cast<unsigned>((found.frame.height + 15) / 16);
  if ((p.size() + 8) * 8 < blocks * lossy_bits_per_block) {
    return corrupt("WebP is too short for its " + size_text(found.frame.width, found.frame.height));
  }
  return {};
}

outcome<void> read_lossless(webp_layout& found) {
  const byte_span p = found.picture;
  if (p.size() < 6) return corrupt("WebP ends inside its picture's header");
  const std::uint32_t bits = little32(p, 1);
  if (byte_at(p, 0) != 0x2F || bits >> 29 != 0) return corrupt("WebP with a lossless picture of another version");
  found.lossless = true;
  found.frame.width = static_cast<int>(bits & 0x3FFF) + 1;
  found.frame.height = static_cast<int>(bits >> 14 & 0x3FFF) + 1;
  found.has_alpha = (bits >> 28 & 1) != 0;
  const std::uint64_t pixels =
      static_cast<std::uint64_t>(found.frame.width) * static_cast<unsigned>(found.frame.height);
  if (pixels > harmless_pixels && pixels / pixels_per_byte_max > p.size()) {
    return unsupported("WebP of " + size_text(found.frame.width, found.frame.height) + " in " +
                       std::to_string(p.size()) + " bytes: so much of nothing is meant to harm");
  }
  return {};
}

outcome<void> read_picture(webp_layout& found) {
  const byte_span p = found.picture;
  return !p.empty() && byte_at(p, 0) == 0x2F ? read_lossless(found) : read_lossy(found);
}

// A chunk, all of which lies in the file.
struct chunk {
  byte_span content;
  std::size_t end = 0;  // its padding included
};

outcome<chunk> read_chunk(byte_span file, std::size_t at) {
  if (file.size() - at < chunk_header_bytes) return corrupt("WebP ends inside the header of a chunk");
  const std::size_t bytes = little32(file, at + 4);
  const std::size_t begin = at + chunk_header_bytes;
  if (bytes > file.size() - begin) return corrupt("WebP with a chunk that is longer than the file");
  // The last chunk may lack its byte of padding.
  return chunk{file.subspan(begin, bytes), std::min(begin + bytes + bytes % 2, file.size())};
}

outcome<void> read_chunks(byte_span file, std::size_t at, bool in_frame, webp_layout& found);

// Where it lies, how large it is and how long it is shown, and then chunks of its own: the picture is among them.
outcome<void> read_frame(byte_span frame, webp_layout& found) {
  constexpr std::size_t frame_header_bytes = 16;
  if (frame.size() < frame_header_bytes) return corrupt("WebP with a frame that ends inside its header");
  found.frame.x = 2 * static_cast<int>(little24(frame, 0));
  found.frame.y = 2 * static_cast<int>(little24(frame, 3));
  return read_chunks(frame, frame_header_bytes, true, found);
}

// A frame holds no frames.
outcome<void> read_chunks(byte_span file, std::size_t at, bool in_frame, webp_layout& found) {
  std::size_t alpha_at = 0;
  while (file.size() - at >= chunk_header_bytes) {
    const outcome<chunk> next = read_chunk(file, at);
    if (!next) return next.error();
    const bool is_picture = stands_at(file, at, "VP8 ") || stands_at(file, at, "VP8L");
    if (stands_at(file, at, "ALPH") && found.alpha.empty() && found.picture.empty()) {
      found.alpha = next->content;
      alpha_at = at;
    }
    if (is_picture && found.picture.empty()) {
      found.picture = next->content;
      if (!found.alpha.empty()) found.with_alpha = file.subspan(alpha_at, next->end - alpha_at);
    }
    if (!in_frame && stands_at(file, at, "ANMF") && found.picture.empty()) {
      const outcome<void> frame = read_frame(next->content, found);
      if (!frame) return frame;
    }
    if (stands_at(file, at, "EXIF") && found.exif.empty()) found.exif = next->content;
    if (stands_at(file, at, "XMP ") && found.xmp.empty()) found.xmp = next->content;
    at = next->end;
  }
  return {};
}

// Features, then chunks of all kinds: the picture among them, EXIF and XMP behind it.
outcome<webp_layout> read_extended(byte_span file) {
  const outcome<chunk> features = read_chunk(file, file_header_bytes);
  if (!features) return features.error();
  if (features->content.size() < 10) return corrupt("WebP with a chunk of features that is too short");
  webp_layout found;
  if (const outcome<void> read = read_chunks(file, features->end, false, found); !read) return read.error();
  if (found.picture.empty()) return corrupt("WebP without a picture");
  if (const outcome<void> read = read_picture(found); !read) return read.error();
  const byte_span f = features->content;
  found.has_alpha = (byte_at(f, 0) & 0x10U) != 0;
  found.width = static_cast<int>(little24(f, 4)) + 1;
  found.height = static_cast<int>(little24(f, 7)) + 1;
  const bool is_animated = (byte_at(f, 0) & 2U) != 0;
  const rectangle& frame = found.frame;
  const bool fits = frame.width <= found.width - frame.x && frame.height <= found.height - frame.y;
  if (is_animated ? !fits : frame.width != found.width || frame.height != found.height || frame.x + frame.y != 0) {
    return corrupt("WebP of " + size_text(found.width, found.height) + " with a picture of " +
                   size_text(frame.width, frame.height) +
                   (frame.x + frame.y != 0 ? " at " + std::to_string(frame.x) + ", " + std::to_string(frame.y) : ""));
  }
  return found;
}

// The first chunk has the size, of the canvas or of the only picture.
outcome<picture_info> peek_begin(byte_span encoded) {
  constexpr std::size_t content = file_header_bytes + chunk_header_bytes;
  if (encoded.size() < content + 10) return corrupt("WebP ends inside its header");
  const byte_span p = encoded.subspan(content);
  picture_info info{.what = format::webp};
  if (stands_at(encoded, file_header_bytes, "VP8X")) {
    info.width = static_cast<int>(little24(p, 4)) + 1;
    info.height = static_cast<int>(little24(p, 7)) + 1;
    return info;
  }
  if (stands_at(encoded, file_header_bytes, "VP8L") && byte_at(p, 0) == 0x2F) {
    const std::uint32_t bits = little32(p, 1);
    info.width = static_cast<int>(bits & 0x3FFF) + 1;
    info.height = static_cast<int>(bits >> 14 & 0x3FFF) + 1;
    return info;
  }
  const bool is_key_frame = (byte_at(p, 0) & 1U) == 0 && big16(p, 3) == 0x9D01 && byte_at(p, 5) == 0x2A;
  if (!stands_at(encoded, file_header_bytes, "VP8 ") || !is_key_frame) return corrupt("WebP without a picture");
  info.width = static_cast<int>(little16(p, 6) & 0x3FFF);
  info.height = static_cast<int>(little16(p, 8) & 0x3FFF);
  if (info.width == 0 || info.height == 0) return corrupt("WebP of " + size_text(info.width, info.height));
  return info;
}

}  // namespace

outcome<webp_layout> read_webp_headers(byte_span encoded) {
  if (encoded.size() < file_header_bytes + chunk_header_bytes) return corrupt("WebP ends inside its header");
  // Bytes behind the container are ignored.
  const std::size_t bytes = std::size_t{little32(encoded, 4)} + chunk_header_bytes;
  if (bytes > encoded.size()) {
    return corrupt("WebP ends after " + std::to_string(encoded.size()) + " of its " + std::to_string(bytes) + " bytes");
  }
  const byte_span file = encoded.first(bytes);
  if (file.size() < file_header_bytes + chunk_header_bytes) return corrupt("WebP ends inside its header");
  if (stands_at(file, file_header_bytes, "VP8X")) return read_extended(file);
  if (!stands_at(file, file_header_bytes, "VP8 ") && !stands_at(file, file_header_bytes, "VP8L")) {
    return corrupt("WebP without a picture");
  }
  const outcome<chunk> only = read_chunk(file, file_header_bytes);
  if (!only) return only.error();
  webp_layout found;
  found.picture = only->content;
  if (const outcome<void> read = read_picture(found); !read) return read.error();
  found.width = found.frame.width;
  found.height = found.frame.height;
  return found;
}

outcome<picture_info> peek_webp(byte_span encoded, look_for what) {
  if (what == look_for::begin_size) return peek_begin(encoded);
  const outcome<webp_layout> layout = read_webp_headers(encoded);
  if (!layout) return layout.error();
  picture_info info{.what = format::webp,
                    .width = layout->width,
                    .height = layout->height,
                    .progressive = layout->lossless,
                    .channels = layout->has_alpha ? 4 : 3};
  if (what == look_for::orientation) {
    orientation_finder upright;
    upright.see_exif(layout->exif);
    upright.see_xmp(text_of(layout->xmp));
    info.orientation = upright.found();
  }
  return info;
}

}  // namespace leat::pixels
