#pragma once

// Pictures for tests: seeded textures as plain RGB, and their encodings by libjpeg and libpng with every knob that a
// decoder may meet.

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace leat::testing {

/// 8-bit RGB, rows one after the other.
struct rgb_picture {
  int width = 0;
  int height = 0;
  std::vector<std::uint8_t> pixels;

  [[nodiscard]] const std::uint8_t* at(int x, int y) const {
    return pixels.data() +
           3 * (static_cast<std::size_t>(y) * static_cast<std::size_t>(width) + static_cast<std::size_t>(x));
  }
  [[nodiscard]] std::uint8_t* at(int x, int y) { return const_cast<std::uint8_t*>(std::as_const(*this).at(x, y)); }

  friend bool operator==(const rgb_picture&, const rgb_picture&) = default;
};

/// Waves, edges and some noise: something to lose in every band of frequencies.
rgb_picture make_texture(std::uint64_t seed, int width, int height);

/// Nothing but noise, which nobody can compress.
rgb_picture make_noise(std::uint64_t seed, int width, int height);

/// The part of a picture; it must lie inside.
rgb_picture crop(const rgb_picture& from, int x, int y, int width, int height);

/// Turned as EXIF's orientation `exif` asks for, by the definition: where each corner goes.
rgb_picture turn_upright(const rgb_picture& stored, int exif);

enum class jpeg_colours : std::uint8_t { ycbcr, rgb, grey, cmyk, ycck };

/// How a JPEG is written.
///   h, v               luma samples per chroma sample, across and down
///   separate_scans     one scan per component, not progressive
///   band_scans         progressive: the first coefficients in one scan, then so many others in each, a component at a
///                      time; 0: libjpeg's own script
///   restart_interval   in MCUs; 0 for none
///   orientation        0: no EXIF
struct jpeg_options {
  jpeg_colours colours = jpeg_colours::ycbcr;
  int h = 2;
  int v = 2;
  int quality = 90;
  bool progressive = false;
  bool separate_scans = false;
  int band_scans = 0;
  bool arithmetic = false;
  unsigned restart_interval = 0;
  int orientation = 0;
  bool orientation_big_endian = false;
  bool optimise = false;
};

std::vector<std::byte> make_jpeg(const rgb_picture& picture, const jpeg_options& options);

/// The whole picture by plain libjpeg calls, as RGB: ISLOW, fancy upsampling, no guessing at incomplete scans.
rgb_picture decode_whole_jpeg(const std::vector<std::byte>& encoded, int decimation);

enum class png_colours : std::uint8_t { rgb, rgba, grey, grey_alpha, palette };

/// How a PNG is written.
///   depth          bits per sample: 8, 16; grey and palette also 1, 2, 4
///   transparency   a tRNS chunk
///   filter         of all lines, 0 to 4 (W3C PNG, section 9); -1: libpng chooses for each
struct png_options {
  png_colours colours = png_colours::rgb;
  int depth = 8;
  bool interlaced = false;
  bool transparency = false;
  int orientation = 0;
  int filter = -1;
};

/// `seen` is set to what the file holds as 8-bit RGB, alpha dropped.
std::vector<std::byte> make_png(const rgb_picture& picture, const png_options& options, rgb_picture& seen);

/// Numbers of pixels, line after line, as a PNG stores them.
///   depth     1, 2, 4, 8 or 16 bits
///   palette   they are indexes into colours, of which none is grey; depth at most 8
std::vector<std::byte> make_mask_png(int width, int height, const std::vector<std::uint16_t>& numbers, int depth,
                                     bool palette, bool interlaced = false);

/// The same of 16 bits, interleaved.
///   channels   1: grey, 2: with alpha, 3: RGB, 4: with alpha
std::vector<std::byte> make_png16(int width, int height, int channels, const std::vector<std::uint16_t>& numbers,
                                  bool interlaced = false);

}  // namespace leat::testing
