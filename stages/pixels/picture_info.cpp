#include "stages/pixels/picture_info.hpp"

#include <algorithm>
#include <array>
#include <string>

namespace leat::pixels {
namespace {

using stages::corrupt;
using stages::unsupported;

using bytes = std::span<const std::byte>;

std::uint32_t byte_at(bytes from, std::size_t at) noexcept { return std::to_integer<std::uint32_t>(from[at]); }

std::uint32_t big16(bytes from, std::size_t at) noexcept { return byte_at(from, at) << 8 | byte_at(from, at + 1); }

std::uint32_t big32(bytes from, std::size_t at) noexcept { return big16(from, at) << 16 | big16(from, at + 2); }

std::string magic_of(bytes encoded) {
  constexpr char digits[] = "0123456789abcdef";
  std::string text;
  for (const std::byte b : encoded.first(std::min<std::size_t>(encoded.size(), 8))) {
    if (!text.empty()) text += ' ';
    const auto value = std::to_integer<unsigned>(b);
    text += digits[value >> 4];
    text += digits[value & 15];
  }
  return text;
}

// EXIF's orientation out of a TIFF structure: 1 where it is not there, or the structure makes no sense. Only the first
// directory is looked at, where the tag belongs.
int orientation_of(bytes tiff) noexcept {
  if (tiff.size() < 8) return 1;
  const std::uint32_t order = big16(tiff, 0);
  if (order != 0x4949 && order != 0x4D4D) return 1;
  const bool little = order == 0x4949;
  const auto u16 = [&](std::size_t at) {
    return little ? byte_at(tiff, at) | byte_at(tiff, at + 1) << 8 : big16(tiff, at);
  };
  const auto u32 = [&](std::size_t at) { return little ? u16(at) | u16(at + 2) << 16 : big32(tiff, at); };
  if (u16(2) != 42) return 1;
  const std::size_t directory = u32(4);
  if (directory > tiff.size() - 2) return 1;
  const std::size_t entries = u16(directory);
  for (std::size_t i = 0; i < entries; ++i) {
    const std::size_t at = directory + 2 + i * 12;
    if (at + 12 > tiff.size()) return 1;
    if (u16(at) != 0x0112) continue;
    constexpr std::uint32_t type_short = 3;
    const std::uint32_t value = u16(at + 8);
    return u16(at + 2) == type_short && u32(at + 4) == 1 && value >= 1 && value <= 8 ? static_cast<int>(value) : 1;
  }
  return 1;
}

int exif_orientation(bytes segment) noexcept {
  constexpr std::array<std::uint32_t, 6> tag{'E', 'x', 'i', 'f', 0, 0};
  if (segment.size() < tag.size()) return 1;
  for (std::size_t i = 0; i < tag.size(); ++i) {
    if (byte_at(segment, i) != tag[i]) return 1;
  }
  return orientation_of(segment.subspan(tag.size()));
}

outcome<picture_info> peek_jpeg(bytes encoded) {
  picture_info info{.what = format::jpeg};
  bool seen_exif = false;
  std::size_t at = 2;
  for (;;) {
    // As libjpeg: whatever stands between two segments is skipped, and fill bytes are.
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
    const bytes segment = encoded.subspan(at + 2, length - 2);
    at += length;
    if (marker == 0xE1 && !seen_exif) {
      info.orientation = exif_orientation(segment);
      seen_exif = info.orientation != 1;
    }
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
    return info;
  }
}

outcome<picture_info> peek_png(bytes encoded) {
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

  // eXIf stands before or behind the data; before it is all we look for, since pixels do not wait.
  std::size_t at = header_end;
  while (encoded.size() - at >= 12) {
    constexpr std::uint32_t idat = 0x49444154;
    constexpr std::uint32_t exif = 0x65584966;
    const std::size_t length = big32(encoded, at);
    const std::uint32_t type = big32(encoded, at + 4);
    if (type == idat || length > encoded.size() - at - 12) break;
    if (type == exif) {
      info.orientation = orientation_of(encoded.subspan(at + 8, length));
      break;
    }
    at += 12 + length;
  }
  return info;
}

}  // namespace

outcome<picture_info> peek(bytes encoded) {
  if (encoded.empty()) return corrupt("empty: zero bytes");
  constexpr std::array<std::uint32_t, 8> png{0x89, 'P', 'N', 'G', '\r', '\n', 0x1A, '\n'};
  const auto begins_with = [&](std::size_t count, auto expected) {
    if (encoded.size() < count) return false;
    for (std::size_t i = 0; i < count; ++i) {
      if (byte_at(encoded, i) != expected(i)) return false;
    }
    return true;
  };
  // SOI alone is enough for us as it is for libjpeg, which allows garbage before the next marker.
  if (begins_with(2, [](std::size_t i) { return i == 0 ? 0xFFU : 0xD8U; })) return peek_jpeg(encoded);
  if (begins_with(8, [&](std::size_t i) { return png[i]; })) return peek_png(encoded);
  return unsupported("unsupported format (magic " + magic_of(encoded) + ")");
}

}  // namespace leat::pixels
