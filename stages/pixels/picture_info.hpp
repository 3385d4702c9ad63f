// What the first bytes of a picture say about it, before anything is decoded.
#pragma once

#include "base/outcome.hpp"
#include "stages/pixels/picture_format.hpp"

#include <cstddef>
#include <cstdint>
#include <span>

namespace leat::pixels {

template <class T>
using outcome = stages::outcome<T>;

/// What peek() looks for. The orientation may be anywhere in a file; with the others it is not searched for, and is 1. `begin_size` takes
/// what the beginning of a file says of the size, of which the rest may be missing: only width, height and the format are told.
enum class look_for : std::uint8_t { size, orientation, begin_size };

/// A picture as it is stored.
///   width, height   in pixels, before any EXIF orientation
///   orientation     EXIF's 1..8 (exif.hpp); 1 if the file has none, or an invalid one
///   progressive     must be in memory as a whole: a progressive JPEG, an interlaced PNG, a GIF
///   channels        in the file: 1, 3, 4 of a JPEG; 1 to 4 of a PNG (a palette counts as 3)
struct picture_info {
  format what = format::unknown;
  int width = 0;
  int height = 0;
  int orientation = 1;
  bool progressive = false;
  int channels = 0;
};

/// Reads headers only: no memory is taken, no pixel is decoded.
///   returns   the picture's info; `corrupt` if it is empty or ends before its size is known; `unsupported` for a format that
///             is not read, with its name or first bytes (picture_format.hpp)
outcome<picture_info> peek(std::span<const std::byte> encoded, look_for what = look_for::orientation);

}  // namespace leat::pixels
