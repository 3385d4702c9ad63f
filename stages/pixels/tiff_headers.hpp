// What the first directory of a TIFF says of its first page. Read by ourselves, so that nothing of the file is believed before its
// claims are bounded.
#pragma once

#include "stages/pixels/byte_reading.hpp"
#include "stages/pixels/picture_info.hpp"
#include "stages/pixels/sample_kind.hpp"

#include <cstddef>
#include <cstdint>

namespace leat::pixels {

/// Page one.
///   samples        of a pixel, alpha among them
///   alpha          whether the last of them is alpha; premultiplied: colours are multiplied by it (ExtraSamples 1)
///   compression, photometric   their numbers in TIFF 6.0, section 8
///   predictor      of section 14; 3 is of floats
///   planar         channel after channel; else pixel after pixel
///   tiled          in tiles; else in strips, which are as wide as the picture
///   block_*        of a tile or strip
///   blocks         strips or tiles whose places the file lists
///   tag_bytes      of all values of all tags, as they are read
struct tiff_layout {
  int width = 0;
  int height = 0;
  int samples = 1;
  bool alpha = false;
  bool premultiplied = false;
  int bits = 1;
  sample_kind kind = sample_kind::whole;
  int compression = 1;
  int photometric = 1;
  int predictor = 1;
  bool big_endian = false;
  bool planar = false;
  bool tiled = false;
  int block_width = 0;
  int block_height = 0;
  std::size_t blocks = 0;
  std::size_t tag_bytes = 0;
  int orientation = 1;

  [[nodiscard]] int channels() const noexcept { return samples - (alpha ? 1 : 0); }
  [[nodiscard]] std::size_t sample_bytes() const noexcept { return static_cast<std::size_t>(bits) / 8; }
  /// Of a block, decoded: of a planar file that of one channel.
  [[nodiscard]] std::size_t block_bytes() const noexcept {
    return static_cast<std::size_t>(block_width) * static_cast<std::size_t>(block_height) *
           static_cast<std::size_t>(planar ? 1 : samples) * sample_bytes();
  }
};

inline constexpr int tiff_white_is_zero = 0;
inline constexpr int tiff_rgb = 2;
inline constexpr int tiff_palette = 3;
inline constexpr int tiff_cmyk = 5;
inline constexpr int tiff_ycbcr = 6;

/// Classic and big TIFF, of either order of bytes.
///   returns   corrupt: a directory that is cut or contradicts itself; unsupported: what no field reads, by name
///   source    TIFF 6.0, sections 2 and 8; the BigTIFF design of libtiff
[[nodiscard]] outcome<tiff_layout> read_tiff_headers(byte_span encoded);

}  // namespace leat::pixels
