#pragma once

// One picture through a decoder, as a test wants it: u8, interleaved, in a picture of its own.

#include "stages/pixels/picture_decoder.hpp"
#include "tests/support/make_picture.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <random>
#include <string>
#include <vector>

namespace leat::testing {

/// The geometry that takes a box as it is.
inline pixels::geometry plain_box(int x, int y, int width, int height) {
  return {.box = {x, y, width, height},
          .scaled_width = width,
          .scaled_height = height,
          .crop_x = 0,
          .crop_y = 0,
          .out_width = width,
          .out_height = height,
          .flip = false,
          .how = filter::bilinear};
}

/// The box scaled to a size.
inline pixels::geometry scaled_box(pixels::rectangle box, int width, int height, filter how) {
  pixels::geometry drawn = plain_box(box.x, box.y, width, height);
  drawn.box = box;
  drawn.how = how;
  return drawn;
}

struct one_decoder {
  pixels::scratch_budget budget{std::size_t{256} << 20};
  pixels::picture_decoder decoder{budget};

  /// The row, or the failure's reason in `reason`.
  rgb_picture decode(const std::vector<std::byte>& encoded, const pixels::geometry& drawn,
                     const pixels::decode_options& options = {}) {
    const auto how = pixels::store::from(dtype::u8, layout::nhwc, std::nullopt);
    rgb_picture out{drawn.out_width, drawn.out_height, {}};
    // Not a byte more than the row, so that AddressSanitizer sees one written past it.
    out.pixels.assign(how.row_bytes(drawn.out_height, drawn.out_width), 0xEE);
    const auto result =
        decoder.decode(encoded, drawn, how, options, reinterpret_cast<std::byte*>(out.pixels.data()), nullptr);
    kind = result.kind();
    reason = result ? "" : result.reason();
    decimation = result ? result->decimation : 0;
    return out;
  }

  stages::outcome_kind kind = stages::outcome_kind::ok;
  std::string reason;
  int decimation = 0;
};

/// The whole of `encoded` decodes to `stored`, and `count` regions at random to their parts of it.
inline void expect_every_region(one_decoder& one, const std::vector<std::byte>& encoded, const rgb_picture& stored,
                                std::mt19937_64& random, int count, const pixels::decode_options& options = {}) {
  const auto between = [&](int from, int to) { return std::uniform_int_distribution<int>(from, to)(random); };
  for (int i = 0; i <= count; ++i) {
    const int w = i == 0 ? stored.width : between(1, stored.width);
    const int h = i == 0 ? stored.height : between(1, stored.height);
    const int x = between(0, stored.width - w);
    const int y = between(0, stored.height - h);
    const rgb_picture got = one.decode(encoded, plain_box(x, y, w, h), options);
    ASSERT_EQ(one.reason, "");
    ASSERT_EQ(got, crop(stored, x, y, w, h)) << x << ' ' << y << ' ' << w << ' ' << h;
  }
}

/// The largest difference of two pictures of the same size.
inline int largest_difference(const rgb_picture& a, const rgb_picture& b) {
  EXPECT_EQ(a.width, b.width);
  EXPECT_EQ(a.height, b.height);
  if (a.pixels.size() != b.pixels.size()) return 256;
  int most = 0;
  for (std::size_t i = 0; i < a.pixels.size(); ++i) most = std::max(most, std::abs(a.pixels[i] - b.pixels[i]));
  return most;
}

}  // namespace leat::testing
