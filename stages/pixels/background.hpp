// A colour that pictures with alpha are laid over.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace leat::pixels {

/// Red, green and blue.
using rgb_colour = std::array<std::uint8_t, 3>;

/// round((value * alpha + behind * (255 - alpha)) / 255): 255 is odd, so that there are no ties.
[[nodiscard]] constexpr std::uint8_t blended(std::uint32_t value, std::uint32_t alpha, std::uint32_t behind) noexcept {
  return static_cast<std::uint8_t>((value * alpha + behind * (255 - alpha) + 127) / 255);
}

/// Makes RGB of so many pixels of RGBA. Both may begin at the same place.
inline void blend_line(const std::uint8_t* rgba, std::size_t pixels, const rgb_colour& behind,
                       std::uint8_t* rgb) noexcept {
  for (std::size_t i = 0; i < pixels; ++i, rgba += 4, rgb += 3) {
    const std::uint32_t alpha = rgba[3];
    for (std::size_t c = 0; c < 3; ++c) rgb[c] = blended(rgba[c], alpha, behind[c]);
  }
}

}  // namespace leat::pixels
