#pragma once

// TIFF files for tests, by libtiff's encoder, with every knob that a reader may meet.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace leat::testing {

/// How a TIFF is written.
///   bits, kind    8, 16 or 32; libtiff's SAMPLEFORMAT: 1 whole, 2 signed, 3 float
///   tile          0: strips of `rows` lines
///   compression   libtiff's COMPRESSION
///   photometric   libtiff's PHOTOMETRIC
///   fill_order    2: the bits of each byte turned round
///   alpha         the last channel is alpha; premultiplied: the others are multiplied by it
struct tiff_options {
  int bits = 16;
  int kind = 1;
  int tile = 0;
  int rows = 7;
  int compression = 1;
  int predictor = 1;
  int photometric = 1;
  bool planar = false;
  bool alpha = false;
  bool premultiplied = false;
  bool big_endian = false;
  bool big_tiff = false;
  int orientation = 0;
  int fill_order = 1;
};

/// Numbers line after line, interleaved.
std::vector<std::byte> make_tiff(int width, int height, int channels, std::span<const double> numbers,
                                 const tiff_options& options);

}  // namespace leat::testing
