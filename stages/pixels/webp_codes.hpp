// How many groups of prefix codes a lossless WebP has, before libwebp makes a table for each: 12 to 20 KiB of memory for a
// few bits of the file.
#pragma once

#include "stages/pixels/byte_reading.hpp"

#include <cstddef>
#include <optional>

namespace leat::pixels {

/// The codes of a lossless picture.
///   groups                  of five codes each
///   bytes_per_group         of libwebp's tables for them
struct webp_codes {
  std::size_t groups = 1;
  std::size_t bytes_per_group = 0;

  [[nodiscard]] std::size_t bytes() const noexcept { return groups * bytes_per_group; }
};

/// Reads the content of a chunk `VP8L` as far as its pixels, keeping none: transforms, then the picture of code groups, a
/// sixteenth of the pixels at most.
///   returns   nullopt where it is damaged before that
///   source    RFC 9649, sections 3.5 to 3.8; libwebp's src/dec/vp8l_dec.c, ReadHuffmanCodes()
[[nodiscard]] std::optional<webp_codes> count_webp_codes(byte_span picture, int width, int height) noexcept;

}  // namespace leat::pixels
