#pragma once

// The eight bytes before a file that say which crop of it is decoded.

#include "tests/pixels/decode_one.hpp"

#include <cstddef>
#include <cstdint>

namespace leat::testing {

struct fuzz_crop {
  static constexpr std::size_t bytes = 8;
  std::uint8_t raw[bytes] = {};  // x, y, width, height of the box in parts of the picture; size scaled to; flags; spare

  /// Of a picture of this size. Any eight bytes are a crop that lies inside.
  [[nodiscard]] pixels::geometry of(int width, int height) const {
    const int w = 1 + raw[2] * (width - 1) / 255;
    const int h = 1 + raw[3] * (height - 1) / 255;
    const pixels::rectangle box{raw[0] * (width - w) / 255, raw[1] * (height - h) / 255, w, h};
    if ((raw[6] & 1U) == 0) return plain_box(box.x, box.y, w, h);
    return scaled_box(box, 1 + raw[4] % 12, 1 + raw[5] % 12, filter::bilinear);
  }
  [[nodiscard]] bool decimate() const noexcept { return (raw[6] & 2U) != 0; }
};

}  // namespace leat::testing
