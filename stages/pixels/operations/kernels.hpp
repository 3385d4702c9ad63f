// What operations on whole pictures spend their time on, for each instruction set: integers, and so the same bits on all of them.
#pragma once

#include "stages/pixels/colour/neighbours.hpp"

#include <array>
#include <cstddef>
#include <cstdint>

namespace leat::pixels {

/// Bytes that vectors may touch behind the last value of a line.
inline constexpr std::size_t median_room = 64;

/// Writes the medians of squares of side x side values, 3, 5 or 7, that begin at each of the first `width` places of `side` lines. Behind
/// the last square lines have median_room more bytes.
///   scratch   side * (width + side + median_room) bytes
void median_of_lines(const std::uint8_t* const* lines, int side, std::size_t width, std::uint8_t* scratch,
                     std::uint8_t* to) noexcept;

/// A picture as a JPEG without its entropy coding: luma in whole pairs of blocks, as MCUs are, and chroma in blocks.
struct jpeg_planes {
  std::size_t wide, high, half_wide, half_high;

  jpeg_planes(int height, int width) noexcept
      : wide((static_cast<std::size_t>(width) + 15) / 16 * 16),
        high((static_cast<std::size_t>(height) + 15) / 16 * 16),
        half_wide(wide / 2),
        half_high(high / 2) {}
  /// Of three planes, two of half the size, and some lines; aligned for vectors.
  [[nodiscard]] std::size_t bytes() const noexcept {
    return 3 * wide * high + 2 * half_wide * half_high + 8 * (wide + 16) * sizeof(std::int32_t);
  }
};

/// Changes `to` into what is left of it in a JPEG with these quantisation tables.
///   scratch   jpeg_planes::bytes()
void recode_as_jpeg(const picture& to, const std::array<std::int32_t, 64>& luma,
                    const std::array<std::int32_t, 64>& chroma, void* scratch) noexcept;

}  // namespace leat::pixels
