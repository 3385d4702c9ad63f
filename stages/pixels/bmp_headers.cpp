#include "stages/pixels/bmp_headers.hpp"

#include "stages/pixels/format_headers.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>

namespace leat::pixels {
namespace {

using stages::corrupt;
using stages::failure;
using stages::unsupported;

constexpr std::size_t file_header_bytes = 14;
constexpr std::uint32_t raw = 0;
constexpr std::uint32_t run_lengths_8 = 1;
constexpr std::uint32_t run_lengths_4 = 2;
constexpr std::uint32_t bit_fields = 3;

// The fields of the header, not yet checked.
struct header {
  std::size_t bytes = 0;
  std::uint32_t width = 0;
  std::uint32_t height = 0;
  bool top_down = false;
  std::uint32_t bits = 0;
  std::uint32_t compression = raw;
  std::uint32_t colours = 0;
  std::size_t palette_entry_bytes = 4;
  std::size_t end = 0;  // of the header, and of the masks behind a short one
  std::array<std::uint32_t, 4> masks{};
};

bool is_known_header(std::size_t bytes) noexcept {
  // OS/2 1, Windows 3, its versions with masks, OS/2 2, Windows versions 4 and 5.
  for (const std::size_t known : {12U, 40U, 52U, 56U, 64U, 108U, 124U}) {
    if (bytes == known) return true;
  }
  return false;
}

// BITFIELDS: in a header that has room for them, else behind it.
bool read_masks(byte_span encoded, header& found) noexcept {
  const std::size_t at = file_header_bytes + 40;
  const std::size_t count = found.bytes >= 56 ? 4 : 3;
  if (found.bytes < 52) found.end = at + 12;
  if (encoded.size() < found.end) return false;
  for (std::size_t i = 0; i < count; ++i) found.masks[i] = little32(encoded, at + 4 * i);
  return true;
}

outcome<header> read_header(byte_span encoded) {
  const failure too_short = corrupt("BMP ends inside its headers");
  if (encoded.size() < file_header_bytes + 4) return too_short;
  header found;
  found.bytes = little32(encoded, file_header_bytes);
  if (!is_known_header(found.bytes)) {
    return unsupported("unsupported BMP with a header of " + std::to_string(found.bytes) + " bytes");
  }
  found.end = file_header_bytes + found.bytes;
  if (encoded.size() < found.end) return too_short;
  if (found.bytes == 12) {
    found.width = little16(encoded, 18);
    found.height = little16(encoded, 20);
    found.bits = little16(encoded, 24);
    found.palette_entry_bytes = 3;
    return found;
  }
  found.width = little32(encoded, 18);
  found.height = little32(encoded, 22);
  // A negative height: rows from the top. As Pillow, by its highest byte.
  found.top_down = byte_at(encoded, 25) == 0xFF;
  if (found.top_down) found.height = 0U - found.height;
  found.bits = little16(encoded, 28);
  found.compression = little32(encoded, 30);
  found.colours = little32(encoded, 46);
  if (found.compression == bit_fields && !read_masks(encoded, found)) return too_short;
  return found;
}

struct byte_order {
  std::array<std::uint32_t, 4> masks;
  std::size_t red, green, blue;
  std::optional<std::size_t> alpha = std::nullopt;
};

// The layouts of 32 bits that Pillow reads, alpha's place included.
constexpr std::array<byte_order, 8> byte_orders = {{
    {{0x00FF0000, 0x0000FF00, 0x000000FF, 0x00000000}, 2, 1, 0},
    {{0xFF000000, 0x00FF0000, 0x0000FF00, 0x00000000}, 3, 2, 1},
    {{0xFF000000, 0x0000FF00, 0x000000FF, 0x00000000}, 3, 1, 0},
    {{0xFF000000, 0x00FF0000, 0x0000FF00, 0x000000FF}, 3, 2, 1, 0},
    {{0x000000FF, 0x0000FF00, 0x00FF0000, 0xFF000000}, 0, 1, 2, 3},
    {{0x00FF0000, 0x0000FF00, 0x000000FF, 0xFF000000}, 2, 1, 0, 3},
    {{0xFF000000, 0x0000FF00, 0x000000FF, 0x00FF0000}, 3, 1, 0, 2},
    {{0, 0, 0, 0}, 2, 1, 0, 3},
}};

failure other_masks(const header& found) {
  return unsupported("unsupported BMP of " + std::to_string(found.bits) + " bits with unusual bit masks");
}

outcome<void> set_pixels(const header& found, bmp_layout& layout) {
  const bool masked = found.compression == bit_fields;
  const auto masks_are = [&](std::uint32_t red, std::uint32_t green, std::uint32_t blue) {
    return found.masks[0] == red && found.masks[1] == green && found.masks[2] == blue;
  };
  switch (found.bits) {
    case 1:
    case 4:
    case 8:
      if (masked) return other_masks(found);
      layout.pixels = found.bits == 1   ? bmp_pixels::palette_1
                      : found.bits == 4 ? bmp_pixels::palette_4
                                        : bmp_pixels::palette_8;
      return {};
    case 16:
      layout.pixels = bmp_pixels::rgb_555;
      if (!masked || masks_are(0x7C00, 0x3E0, 0x1F)) return {};
      layout.pixels = bmp_pixels::rgb_565;
      if (masks_are(0xF800, 0x7E0, 0x1F)) return {};
      return other_masks(found);
    case 24:
      if (masked && !masks_are(0xFF0000, 0xFF00, 0xFF)) return other_masks(found);
      return {};
    case 32: {
      if (!masked) return {};
      const auto order = std::find_if(byte_orders.begin(), byte_orders.end(),
                                      [&](const byte_order& each) { return each.masks == found.masks; });
      if (order == byte_orders.end()) return other_masks(found);
      layout.red = order->red;
      layout.green = order->green;
      layout.blue = order->blue;
      layout.alpha = order->alpha;
      return {};
    }
    default:
      return unsupported("unsupported BMP with " + std::to_string(found.bits) + " bits per pixel");
  }
}

outcome<void> set_compression(const header& found, bmp_layout& layout) {
  switch (found.compression) {
    case raw:
    case bit_fields:
      return {};
    case run_lengths_8:
    case run_lengths_4:
      if (found.bits > 8) {
        return corrupt("BMP of " + std::to_string(found.bits) + " bits with run lengths, which are for palettes");
      }
      layout.compression = found.compression == run_lengths_8 ? bmp_compression::rle_8 : bmp_compression::rle_4;
      return {};
    case 4:
    case 5:
      return unsupported(std::string("unsupported BMP with a ") + (found.compression == 4 ? "JPEG" : "PNG") +
                         " inside");
    default:
      return unsupported("unsupported BMP compression " + std::to_string(found.compression));
  }
}

bool has_all_rows(byte_span encoded, const bmp_layout& layout) noexcept {
  const std::uint64_t there = encoded.size() - layout.data;
  // The last row needs no padding.
  const std::uint64_t row =
      (std::uint64_t{static_cast<unsigned>(layout.width)} * static_cast<unsigned>(layout.bits) + 7) / 8;
  return there >= row && (there - row) / layout.stride >= static_cast<unsigned>(layout.height) - 1;
}

std::string size_text(const header& found) {
  return std::to_string(found.width) + " x " + std::to_string(found.height) + " pixels";
}

bool has_sides(const header& found) noexcept {
  constexpr std::uint32_t side_max = 0x7FFFFFFF;
  return found.width != 0 && found.height != 0 && found.width <= side_max && found.height <= side_max;
}

}  // namespace

outcome<bmp_layout> read_bmp_headers(byte_span encoded) {
  const outcome<header> read = read_header(encoded);
  if (!read) return read.error();
  const header& found = *read;
  if (!has_sides(found)) return corrupt("BMP of " + size_text(found));
  bmp_layout layout{.width = static_cast<int>(found.width), .height = static_cast<int>(found.height)};
  layout.top_down = found.top_down;
  if (const outcome<void> set = set_pixels(found, layout); !set) return set.error();
  if (const outcome<void> set = set_compression(found, layout); !set) return set.error();
  layout.bits = static_cast<int>(found.bits);

  std::uint64_t after_headers = found.end;
  if (found.bits <= 8) {
    const std::uint64_t colours = found.colours != 0 ? found.colours : std::uint64_t{1} << found.bits;
    constexpr std::uint64_t colours_max = 65536;
    if (colours > colours_max) return corrupt("BMP with a palette of " + std::to_string(colours) + " colours");
    layout.palette = found.end;
    layout.palette_entry_bytes = found.palette_entry_bytes;
    layout.colours = std::min<std::size_t>({colours, 256, (encoded.size() - found.end) / found.palette_entry_bytes});
    after_headers += colours * found.palette_entry_bytes;
  }
  // A missing offset, or one that forgets the palette, is corrected as in Pillow.
  const std::uint64_t offset = little32(encoded, 10);
  const bool forgets_palette = found.bits <= 8 && offset == file_header_bytes + found.bytes;
  const std::uint64_t data = offset == 0 || forgets_palette ? after_headers : offset;
  if (data >= encoded.size()) return corrupt("BMP ends before its pixels");
  layout.data = data;

  if (layout.compression != bmp_compression::none) return layout;
  layout.stride = (static_cast<std::size_t>(layout.width) * found.bits + 31) / 32 * 4;
  if (!has_all_rows(encoded, layout)) return corrupt("BMP is too short for its " + size_text(found));
  return layout;
}

outcome<picture_info> peek_bmp(byte_span encoded, look_for what) {
  if (what == look_for::begin_size) {
    const outcome<header> read = read_header(encoded);
    if (!read) return read.error();
    if (!has_sides(*read)) return corrupt("BMP of " + size_text(*read));
    return picture_info{
        .what = format::bmp, .width = static_cast<int>(read->width), .height = static_cast<int>(read->height)};
  }
  const outcome<bmp_layout> layout = read_bmp_headers(encoded);
  if (!layout) return layout.error();
  return picture_info{
      .what = format::bmp, .width = layout->width, .height = layout->height, .channels = layout->bits == 32 ? 4 : 3};
}

}  // namespace leat::pixels
