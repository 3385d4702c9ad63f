#include "stages/pixels/gif_headers.hpp"

#include "stages/pixels/format_headers.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace leat::pixels {
namespace {

using stages::corrupt;

constexpr std::size_t screen_end = 13;
constexpr std::size_t descriptor_bytes = 10;

// Bytes of a table of colours, by the byte that tells of it.
std::size_t palette_bytes(std::uint32_t flags) noexcept {
  return (flags & 0x80U) != 0 ? std::size_t{3} << ((flags & 7U) + 1) : 0;
}

// Where the sub-blocks that begin at `at` end, behind the empty one.
std::optional<std::size_t> end_of_blocks(byte_span file, std::size_t at) noexcept {
  while (at < file.size()) {
    const std::size_t bytes = byte_at(file, at);
    if (bytes == 0) return at + 1;
    if (bytes > file.size() - at - 1) return std::nullopt;
    at += 1 + bytes;
  }
  return std::nullopt;
}

// The frame whose descriptor begins at `at`.
outcome<void> read_frame(byte_span file, std::size_t at, gif_layout& found) {
  if (file.size() - at < descriptor_bytes) return corrupt("GIF ends inside the header of its frame");
  found.frame = {static_cast<int>(little16(file, at + 1)), static_cast<int>(little16(file, at + 3)),
                 static_cast<int>(little16(file, at + 5)), static_cast<int>(little16(file, at + 7))};
  const std::uint32_t flags = byte_at(file, at + 9);
  found.interlaced = (flags & 0x40U) != 0;
  at += descriptor_bytes;
  const std::size_t own = palette_bytes(flags);
  if (file.size() - at < own + 1) return corrupt("GIF ends inside the header of its frame");
  if (own != 0) found.palette = file.subspan(at, own);
  found.code_bits = static_cast<int>(byte_at(file, at + own));
  found.data = file.subspan(at + own + 1);
  if (found.code_bits < 1 || found.code_bits > 8) {
    return corrupt("GIF with codes for pixels of " + std::to_string(found.code_bits) + " bits");
  }
  found.width = std::max(found.width, found.frame.x + found.frame.width);
  found.height = std::max(found.height, found.frame.y + found.frame.height);
  if (found.frame.width == 0 || found.frame.height == 0) return corrupt("GIF with a frame of no pixels");
  return {};
}

}  // namespace

outcome<gif_layout> read_gif_headers(byte_span encoded) {
  if (encoded.size() < screen_end) return corrupt("GIF ends inside its header");
  gif_layout found;
  found.width = static_cast<int>(little16(encoded, 6));
  found.height = static_cast<int>(little16(encoded, 8));
  const std::size_t global = palette_bytes(byte_at(encoded, 10));
  if (encoded.size() - screen_end < global) return corrupt("GIF ends inside its palette");
  if (global != 0) found.palette = encoded.subspan(screen_end, global);
  std::size_t at = screen_end + global;
  while (at < encoded.size()) {
    const std::uint32_t kind = byte_at(encoded, at);
    if (kind == ',') {
      if (const outcome<void> read = read_frame(encoded, at, found); !read) return read.error();
      return found;
    }
    if (kind != '!' || encoded.size() - at < 3) break;
    // How the frame behind it is shown: the first bit of its flags is "a colour is transparent".
    const bool is_control = byte_at(encoded, at + 1) == 0xF9 && byte_at(encoded, at + 2) == 4;
    if (is_control && encoded.size() - at >= 8) {
      found.transparent = (byte_at(encoded, at + 3) & 1U) != 0 ? static_cast<int>(byte_at(encoded, at + 6)) : -1;
    }
    const std::optional<std::size_t> end = end_of_blocks(encoded, at + 2);
    if (!end) break;
    at = *end;
  }
  return corrupt("GIF without a picture");
}

outcome<picture_info> peek_gif(byte_span encoded, look_for /*what*/) {
  const outcome<gif_layout> layout = read_gif_headers(encoded);
  if (!layout) return layout.error();
  return picture_info{.what = format::gif,
                      .width = layout->width,
                      .height = layout->height,
                      .progressive = true,
                      .channels = layout->transparent < 0 ? 3 : 4};
}

}  // namespace leat::pixels
