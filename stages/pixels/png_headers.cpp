// A PNG's headers, and the chunks that may hold its orientation: W3C PNG 3rd edition.
#include "stages/pixels/exif.hpp"
#include "stages/pixels/format_headers.hpp"

#include <zlib.h>

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace leat::pixels {
namespace {

using stages::corrupt;

// As Pillow: a longer text is not unpacked.
constexpr std::size_t text_bytes_max = std::size_t{1} << 20;

/// A text chunk: its bytes as they stand, and whether they are to be inflated.
struct png_text {
  byte_span content;
  bool compressed = false;
};

// Nothing where it is damaged or too long.
std::string inflated(byte_span from) {
  z_stream stream{};
  if (inflateInit(&stream) != Z_OK) return {};
  stream.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(from.data()));
  stream.avail_in = static_cast<uInt>(from.size());
  std::string text;
  int status = Z_OK;
  while (status == Z_OK && text.size() <= text_bytes_max) {
    char some[4096];
    stream.next_out = reinterpret_cast<Bytef*>(some);
    stream.avail_out = sizeof some;
    status = inflate(&stream, Z_NO_FLUSH);
    text.append(some, sizeof some - stream.avail_out);
  }
  inflateEnd(&stream);
  return status == Z_STREAM_END && text.size() <= text_bytes_max ? text : std::string();
}

std::string unpacked(const png_text& text) {
  return text.compressed ? inflated(text.content) : std::string(text_of(text.content));
}

// What stands behind a keyword and its zero byte, and `skipped` bytes more; empty where the chunk has another keyword.
byte_span behind_keyword(byte_span chunk, std::string_view keyword, std::size_t skipped) noexcept {
  const std::size_t at = keyword.size() + 1 + skipped;
  const bool has = stands_at(chunk, 0, keyword) && chunk.size() >= at && byte_at(chunk, keyword.size()) == 0;
  return has ? chunk.subspan(at) : byte_span();
}

// iTXt: two bytes about compression, a language and a translated keyword, each with a zero byte, the text.
png_text international_text(byte_span chunk, std::string_view keyword) noexcept {
  byte_span rest = behind_keyword(chunk, keyword, 0);
  if (rest.size() < 2 || (byte_at(rest, 0) != 0 && byte_at(rest, 1) != 0)) return {};
  const bool compressed = byte_at(rest, 0) != 0;
  rest = rest.subspan(2);
  for (int i = 0; i < 2; ++i) {
    const std::size_t zero = text_of(rest).find('\0');
    if (zero == std::string_view::npos) return {};
    rest = rest.subspan(zero + 1);
  }
  return {rest, compressed};
}

/// The chunks of a PNG that may hold its orientation.
struct orientation_chunks {
  byte_span exif;
  png_text profile;  // of EXIF in hexadecimal digits, as ImageMagick wrote it before eXIf was there
  png_text xmp;

  void see(byte_span file, std::size_t type_at, byte_span chunk) noexcept {
    if (stands_at(file, type_at, "eXIf")) exif = chunk;
    if (stands_at(file, type_at, "iTXt")) {
      const png_text text = international_text(chunk, "XML:com.adobe.xmp");
      if (!text.content.empty()) xmp = text;
    }
    const bool compressed = stands_at(file, type_at, "zTXt");
    if (!compressed && !stands_at(file, type_at, "tEXt")) return;
    for (const std::string_view keyword : {"Raw profile type APP1", "Raw profile type exif"}) {
      const byte_span text = behind_keyword(chunk, keyword, compressed ? 1 : 0);
      if (!text.empty()) profile = {text, compressed};
    }
  }
};

int digit_of(char letter) noexcept {
  if (letter >= '0' && letter <= '9') return letter - '0';
  if (letter >= 'a' && letter <= 'f') return letter - 'a' + 10;
  if (letter >= 'A' && letter <= 'F') return letter - 'A' + 10;
  return -1;
}

// "\nexif\n    1234\n" and lines of digits.
std::vector<std::byte> profile_bytes(std::string_view text) {
  for (int line = 0; line < 3; ++line) {
    const std::size_t end = text.find('\n');
    if (end == std::string_view::npos) return {};
    text.remove_prefix(end + 1);
  }
  std::vector<std::byte> bytes;
  bytes.reserve(text.size() / 2);
  int high = -1;
  for (const char letter : text) {
    const int digit = digit_of(letter);
    if (digit < 0) continue;
    if (high >= 0) bytes.push_back(static_cast<std::byte>(high << 4 | digit));
    high = high >= 0 ? -1 : digit;
  }
  return bytes;
}

// These chunks may come before or after the data.
int orientation_of_chunks(byte_span encoded, std::size_t at) {
  orientation_chunks found;
  while (encoded.size() - at >= 12) {
    const std::size_t length = big32(encoded, at);
    if (length > encoded.size() - at - 12) break;
    found.see(encoded, at + 4, encoded.subspan(at + 8, length));
    at += 12 + length;
  }
  orientation_finder upright;
  upright.see_exif(found.exif);
  if (found.exif.empty() && !found.profile.content.empty()) upright.see_exif(profile_bytes(unpacked(found.profile)));
  if (!found.xmp.content.empty()) upright.see_xmp(unpacked(found.xmp));
  return upright.found();
}

}  // namespace

outcome<picture_info> peek_png(byte_span encoded, look_for what) {
  constexpr std::size_t header_end = 8 + 8 + 13 + 4;
  if (encoded.size() < header_end) return corrupt("PNG ends inside its header");
  constexpr std::uint32_t ihdr = 0x49484452;
  if (big32(encoded, 8) != 13 || big32(encoded, 12) != ihdr) return corrupt("PNG without a header chunk");
  const std::uint32_t width = big32(encoded, 16);
  const std::uint32_t height = big32(encoded, 20);
  if (width == 0 || height == 0 || width > 0x7FFFFFFF || height > 0x7FFFFFFF) {
    return corrupt("PNG of " + std::to_string(width) + " x " + std::to_string(height) + " pixels");
  }
  picture_info info{.what = format::png, .width = static_cast<int>(width), .height = static_cast<int>(height)};
  switch (byte_at(encoded, 25)) {
    case 0:
      info.channels = 1;
      break;
    case 4:
      info.channels = 2;
      break;
    case 2:
    case 3:
      info.channels = 3;
      break;
    case 6:
      info.channels = 4;
      break;
    default:
      return corrupt("PNG of colour type " + std::to_string(byte_at(encoded, 25)));
  }
  info.progressive = byte_at(encoded, 28) != 0;

  if (what == look_for::orientation) info.orientation = orientation_of_chunks(encoded, header_end);
  return info;
}

}  // namespace leat::pixels
