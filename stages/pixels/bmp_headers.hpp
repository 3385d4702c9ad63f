// A BMP's headers: where its pixels lie and what they mean.
#pragma once

#include "base/outcome.hpp"
#include "stages/pixels/byte_reading.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>

namespace leat::pixels {

/// How one stored pixel becomes RGB.
enum class bmp_pixels : std::uint8_t {
  palette_1,  ///< 1, 4 and 8 bits: an index
  palette_4,
  palette_8,
  rgb_555,  ///< 16 bits
  rgb_565,
  bytes  ///< 24 and 32 bits: three bytes of a pixel's three or four
};

enum class bmp_compression : std::uint8_t { none, rle_4, rle_8 };

/// The checked contents of the headers: everything lies within the file.
///   top_down              the first stored row is the picture's first
///   data                  where the pixels begin; without run lengths all rows are there
///   stride                bytes from one stored row to the next; 0 for run lengths
///   palette, colours      where the entries begin, and how many of them are used: 256 at most
///   palette_entry_bytes   4, or 3 of OS/2's first version; blue first
///   red, green, blue      places of the bytes in a pixel of bmp_pixels::bytes; alpha's where masks tell of it
struct bmp_layout {
  int width = 0;
  int height = 0;
  bool top_down = false;
  bmp_pixels pixels = bmp_pixels::bytes;
  bmp_compression compression = bmp_compression::none;
  int bits = 24;
  std::size_t data = 0;
  std::size_t stride = 0;
  std::size_t palette = 0;
  std::size_t colours = 0;
  std::size_t palette_entry_bytes = 4;
  std::size_t red = 2;
  std::size_t green = 1;
  std::size_t blue = 0;
  std::optional<std::size_t> alpha = std::nullopt;
};

///   returns   corrupt: it ends too early, or makes no sense; unsupported: a header, a depth, masks or a compression that
///             Pillow does not read either, by name
///   source    Pillow's BmpImagePlugin.py, whose pixels ours are; Microsoft's BITMAPINFOHEADER to BITMAPV5HEADER
[[nodiscard]] stages::outcome<bmp_layout> read_bmp_headers(byte_span encoded);

}  // namespace leat::pixels
