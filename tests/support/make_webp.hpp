#pragma once

// WebP pictures for tests, by libwebp's encoder, in containers of our own making.

#include "tests/support/make_picture.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace leat::testing {

/// How a WebP is written.
///   method        0 fast .. 6 slow: which tools a lossless picture uses
///   alpha         an alpha channel with something in it
///   extended      a chunk of features even where nothing asks for one
///   orientation   0: no EXIF
///   xmp           a packet of its own; empty: none
struct webp_options {
  bool lossless = false;
  int quality = 80;
  int method = 4;
  bool alpha = false;
  bool extended = false;
  int orientation = 0;
  std::string xmp = {};
};

/// `seen` is set to what the file holds as 8-bit RGB, alpha dropped: libwebp's own decoding of the whole.
std::vector<std::byte> make_webp(const rgb_picture& picture, const webp_options& options, rgb_picture& seen);

/// The file as libwebp decodes it whole, as RGB; empty where it refuses it.
rgb_picture decode_whole_webp(const std::vector<std::byte>& encoded);

}  // namespace leat::testing
