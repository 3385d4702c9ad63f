#pragma once

// A picture through the steps of colour alone, without a decoder.

#include "stages/pixels/row_writer.hpp"
#include "tests/support/make_picture.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <vector>

namespace leat::testing {

/// A chain whose row has a picture's size: nothing but colour happens to it.
inline pixels::pipeline chain_for(const rgb_picture& picture, const std::vector<transform>& steps) {
  std::vector<transform> all = {transforms::center_crop{picture.height, picture.width}};
  all.insert(all.end(), steps.begin(), steps.end());
  return pixels::pipeline(all);
}

/// The row that `passes` make of a picture.
inline std::vector<std::byte> row_of(const rgb_picture& picture, const pixels::recipe& passes, const pixels::store& how,
                                     std::string* reason = nullptr) {
  pixels::scratch_budget budget(std::size_t{64} << 20);
  pixels::scratch_arena arena(budget);
  arena.begin();
  std::vector<std::byte> row(how.row_bytes(picture.height, picture.width), std::byte{0xEE});
  pixels::row_writer writer(how, &passes, picture.height, picture.width, row.data());
  EXPECT_TRUE(arena.reserve(writer.scratch_bytes()));
  const std::size_t before = arena.used();
  EXPECT_TRUE(writer.start(arena));
  EXPECT_LE(arena.used() - before, writer.scratch_bytes());
  const auto width = static_cast<std::size_t>(picture.width);
  for (int y = 0; y < picture.height; ++y) {
    // Of exactly this size, so that AddressSanitizer sees who reads beyond.
    std::vector<std::uint8_t> line(width * 3);
    for (std::size_t x = 0; x < width; ++x) {
      for (std::size_t c = 0; c < 3; ++c) {
        const std::size_t at = writer.line_order() == layout::nchw ? c * width + x : 3 * x + c;
        line[at] = picture.at(static_cast<int>(x), y)[c];
      }
    }
    writer.take(line.data(), y);
  }
  const stages::outcome<void> finished = writer.finish();
  if (reason != nullptr) *reason = finished ? "" : finished.reason();
  arena.end();
  return row;
}

/// The same as a picture.
inline rgb_picture coloured(const rgb_picture& picture, const pixels::recipe& passes) {
  const std::vector<std::byte> row =
      row_of(picture, passes, pixels::store::from(dtype::u8, layout::nhwc, std::nullopt));
  rgb_picture made{picture.width, picture.height, {}};
  for (const std::byte each : row) made.pixels.push_back(std::to_integer<std::uint8_t>(each));
  return made;
}

}  // namespace leat::testing
