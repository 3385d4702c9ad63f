// Which format a picture is in, told by its content: the one place that knows formats by their first bytes and by name.
#pragma once

#include "base/corrupt_kind.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace leat::pixels {

/// Formats up to `gif` are read, and TIFF where leat is built with libtiff. The others are recognised, so that errors can name them.
enum class format : std::uint8_t {
  unknown,
  jpeg,
  png,
  webp,
  bmp,
  photo_pack,
  animated_webp,
  gif,
  tiff,
  netpbm,
  avif,
  heic,
  jpeg_xl,
  jpeg_2000,
  svg,
  ico,
  photoshop
};
inline constexpr std::size_t format_count = static_cast<std::size_t>(format::photoshop) + 1;

/// As many bytes from the beginning of a file as format_of() looks at.
inline constexpr std::size_t format_bytes = 512;

/// The format by content alone, since names of files may be wrong. `encoded` may be longer than format_bytes.
[[nodiscard]] format format_of(std::span<const std::byte> encoded) noexcept;

/// "JPEG", "PNG", "WebP"; "unknown".
[[nodiscard]] std::string_view name(format what) noexcept;

/// "image/png"; "application/octet-stream" for unknown formats.
[[nodiscard]] std::string_view media_type(format what) noexcept;

/// Whether leat is built with libtiff (LEAT_TIFF).
[[nodiscard]] bool reads_tiff() noexcept;

[[nodiscard]] inline bool is_read(format what) noexcept {
  return (what != format::unknown && what <= format::gif) || (what == format::tiff && reads_tiff());
}

/// What a sample in a format that is not read is counted as: by the format's name.
[[nodiscard]] inline corrupt_kind kind_of_unread(format what) noexcept {
  return what == format::unknown ? corrupt_kinds::unknown_format : corrupt_kind{name(what)};
}

/// The reason why a format is not read, with advice: "unsupported format: TIFF; JPEG, PNG, WebP, BMP and GIF are read: convert it". For
/// an unknown format it shows the first bytes.
[[nodiscard]] std::string why_not_read(std::span<const std::byte> encoded);

}  // namespace leat::pixels
