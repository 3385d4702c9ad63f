#pragma once

// BMP pictures for tests: every kind that is read, written by hand.

#include "tests/support/make_picture.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace leat::testing {

enum class bmp_masks : std::uint8_t { none, rgb_565, rgb_555, bgra, rgba, argb };

/// How a BMP is written.
///   bits           1, 4, 8, 16, 24, 32
///   header_bytes   12 (OS/2), 40, 52, 56, 64 (OS/2 2), 108, 124
///   run_lengths    of 4 and 8 bits
///   masks          of 16 and 32 bits: BITFIELDS
///   colours        entries of the palette; 0: as many as there can be, and the header says 0
struct bmp_options {
  int bits = 24;
  int header_bytes = 40;
  bool top_down = false;
  bool run_lengths = false;
  bmp_masks masks = bmp_masks::none;
  int colours = 0;
};

/// `seen` is set to what the file holds as 8-bit RGB.
std::vector<std::byte> make_bmp(const rgb_picture& picture, const bmp_options& options, rgb_picture& seen);

}  // namespace leat::testing
