// Which way up a picture is: EXIF's tag, or XMP's where EXIF says nothing, as Pillow's ImageOps.exif_transpose looks for it.
#pragma once

#include "stages/pixels/byte_reading.hpp"

#include <optional>
#include <string_view>

namespace leat::pixels {

/// The orientation in EXIF's TIFF structure, with or without "Exif\0\0" before it. Only the first directory is searched, where
/// the tag belongs.
///   returns   1..8; 1 for any other value; nullopt if there is no such tag, or the structure is damaged
///   source    EXIF 2.32 section 4.6.4 (tag 0x0112)
[[nodiscard]] std::optional<int> exif_orientation(byte_span tiff) noexcept;

/// The first tiff:Orientation of an XMP packet, as an attribute or an element; 1 if its value is not in 1..8.
[[nodiscard]] std::optional<int> xmp_orientation(std::string_view packet) noexcept;

/// Combines the orientations in a file: that of the first EXIF that has one, else that of the last XMP packet, else 1.
class orientation_finder {
 public:
  void see_exif(byte_span tiff) noexcept {
    if (!exif_) exif_ = exif_orientation(tiff);
  }
  void see_xmp(std::string_view packet) noexcept { xmp_ = xmp_orientation(packet); }
  [[nodiscard]] int found() const noexcept { return exif_.value_or(xmp_.value_or(1)); }

 private:
  std::optional<int> exif_;
  std::optional<int> xmp_;
};

}  // namespace leat::pixels
