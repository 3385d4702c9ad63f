// Which way up a picture is: EXIF's tag, or XMP's where EXIF says nothing, as Pillow's ImageOps.exif_transpose looks for it.
#pragma once

#include "stages/pixels/byte_reading.hpp"

#include <optional>
#include <string_view>

namespace leat::pixels {

/// EXIF's orientation out of a TIFF structure, with or without "Exif\0\0" before it; only the first directory is looked at,
/// where the tag belongs.
///   returns   1..8; 1 where the tag's value is none of them; nullopt where the tag is not there, or the structure makes no
///             sense
///   source    EXIF 2.32 section 4.6.4 (tag 0x0112)
[[nodiscard]] std::optional<int> exif_orientation(byte_span tiff) noexcept;

/// The first tiff:Orientation of an XMP packet, as an attribute or an element; 1 where its value is none of 1..8.
[[nodiscard]] std::optional<int> xmp_orientation(std::string_view packet) noexcept;

/// What a file says in its several places: EXIF comes before XMP, whatever it says; 1 where neither says anything.
class orientation_finder {
 public:
  void see_exif(byte_span tiff) noexcept {
    if (!exif_) exif_ = exif_orientation(tiff);
  }
  void see_xmp(std::string_view packet) noexcept {
    if (!xmp_) xmp_ = xmp_orientation(packet);
  }
  [[nodiscard]] int found() const noexcept { return exif_.value_or(xmp_.value_or(1)); }

 private:
  std::optional<int> exif_;
  std::optional<int> xmp_;
};

}  // namespace leat::pixels
