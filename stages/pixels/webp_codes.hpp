// Counts the groups of prefix codes of a lossless WebP before libwebp makes tables for them: a group may have a few bits in the
// file, and its tables take 12 to 20 KiB.
#pragma once

#include "stages/pixels/byte_reading.hpp"

#include <cstddef>
#include <optional>

namespace leat::pixels {

/// The codes of a lossless picture.
///   groups                  groups of five codes each
///   bytes_per_group         the size of libwebp's tables for one group
struct webp_codes {
  std::size_t groups = 1;
  std::size_t bytes_per_group = 0;

  [[nodiscard]] std::size_t bytes() const noexcept { return groups * bytes_per_group; }
};

/// The bits before the transforms of a chunk `VP8L`.
inline constexpr std::size_t webp_header_bits = 8 + 14 + 14 + 1 + 3;

/// Reads the content of a chunk `VP8L` up to its pixels: the transforms, and the image of code groups, which has a sixteenth of
/// the pixels at most. It keeps no pixels.
///   first_bit   of the transforms; a packed chunk `ALPH` has them behind its first byte
///   returns   nullopt if the chunk is damaged before its pixels
///   source    RFC 9649, sections 3.5 to 3.8; libwebp's src/dec/vp8l_dec.c, ReadHuffmanCodes()
[[nodiscard]] std::optional<webp_codes> count_webp_codes(byte_span picture, int width, int height,
                                                         std::size_t first_bit = webp_header_bits) noexcept;

}  // namespace leat::pixels
