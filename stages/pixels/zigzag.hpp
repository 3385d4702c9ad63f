// The order in which a block's coefficients are coded, ITU-T T.81 figure 5.
#pragma once

#include <array>
#include <cstdint>

namespace leat::pixels {

/// Where coefficient k of the zigzag lies in a block of rows.
inline constexpr std::array<std::uint8_t, 64> natural_of_zigzag = [] {
  std::array<std::uint8_t, 64> at{};
  std::size_t k = 0;
  for (int diagonal = 0; diagonal < 15; ++diagonal) {
    for (int step = 0; step <= diagonal; ++step) {
      const int x = diagonal % 2 == 0 ? step : diagonal - step;
      const int y = diagonal - x;
      if (x < 8 && y < 8) at[k++] = static_cast<std::uint8_t>(8 * y + x);
    }
  }
  return at;
}();

}  // namespace leat::pixels
