#include "stages/device/mosaic.hpp"

#include "stages/pixels/placed_picture.hpp"
#include "tests/support/seeded_random.hpp"
#include "tests/support/seeds.hpp"

#include <leat/mosaic.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <vector>

namespace leat::stages {
namespace {

TEST(mosaic, draws_centres_within_0_3_and_0_7_and_as_many_as_its_probability_says) {
  int ones = 0;
  double sum = 0;
  for (std::uint64_t draw = 0; draw < 10000; ++draw) {
    const drawn_mosaic drawn = draw_mosaic(0.25, 3, 1, draw, 400, 1000);
    if (!drawn.is_one) {
      ASSERT_EQ(drawn.x, 1000);
      ASSERT_EQ(drawn.y, 400);
      continue;
    }
    ++ones;
    sum += drawn.x;
    ASSERT_TRUE(drawn.x >= 300 && drawn.x < 700 && drawn.y >= 120 && drawn.y < 280) << drawn.x << ", " << drawn.y;
  }
  EXPECT_NEAR(ones, 2500, 5 * 43.3);
  EXPECT_NEAR(sum / ones, 500, 5 * 115.5 / 50);
  EXPECT_TRUE(draw_mosaic(1, 3, 1, 7, 9, 9).is_one);
}

TEST(mosaic, puts_rows_in_a_circle_that_seed_epoch_and_batch_draw) {
  const auto drawn = [](std::uint64_t seed, std::uint32_t epoch, std::uint64_t batch) {
    std::vector<std::uint32_t> rows(32);
    draw_circle(seed, epoch, batch, rows);
    return rows;
  };
  std::vector<std::uint32_t> sorted = drawn(1, 2, 3);
  std::sort(sorted.begin(), sorted.end());
  std::vector<std::uint32_t> all(32);
  std::iota(all.begin(), all.end(), 0U);
  EXPECT_EQ(sorted, all);
  EXPECT_EQ(drawn(1, 2, 3), drawn(1, 2, 3));
  EXPECT_NE(drawn(1, 2, 3), drawn(2, 2, 3));
  EXPECT_NE(drawn(1, 2, 3), drawn(1, 3, 3));
  EXPECT_NE(drawn(1, 2, 3), drawn(1, 2, 4));
}

TEST(mosaic, sees_where_a_row_shows_its_picture) {
  pixels::placed_picture of;
  of.geometry = {.picture_width = 20, .picture_height = 10, .row_width = 40, .row_height = 40};
  of.bound_count = 1;
  of.bounds[0] = {{1, 0, -10, 0, 1, -15, 0, 0, 1}, {0, 0, 20, 10}};  // as it is, in the middle
  EXPECT_EQ(shown_box(of), (pixel_box{10, 15, 30, 25}));
  of.bounds[0].from_row = {-0.5, 0, 20, 0, 0.25, 0, 0, 0, 1};  // mirrored
  EXPECT_EQ(shown_box(of), (pixel_box{0, 0, 40, 40}));
  of.bounds[1] = {{1, 0, 4, 0, 1, -6, 0, 0, 1}, {0, 0, 40, 40}};  // and moved
  of.bound_count = 2;
  EXPECT_EQ(shown_box(of), (pixel_box{0, 6, 36, 40}));
  of.bounds[0].from_row = {1, 0, 100, 0, 1, 0, 0, 0, 1};  // beside it
  EXPECT_EQ(shown_box(of), (pixel_box{0, 0, 40, 40}));
}

// Pixel by pixel, out of a copy.
TEST(mosaic, writes_tiles_that_meet_in_the_centre) {
  testing::for_each_seed(200, [](std::uint64_t seed) {
    testing::seeded_random random(seed);
    const int height = static_cast<int>(2 + random.below(20));
    const int width = static_cast<int>(2 + random.below(20));
    const pixel_planes how{.planes = static_cast<std::size_t>(1 + random.below(3)),
                           .height = height,
                           .width = width,
                           .pixel_bytes = static_cast<std::size_t>(1 + random.below(5))};
    const std::size_t bytes =
        how.planes * static_cast<std::size_t>(height) * static_cast<std::size_t>(width) * how.pixel_bytes;
    std::array<std::vector<std::byte>, 4> rows;
    std::array<pixel_box, 4> shown;
    for (std::size_t k = 0; k < rows.size(); ++k) {
      rows[k].resize(bytes);
      for (std::byte& each : rows[k]) each = static_cast<std::byte>(random.below(256));
      const auto part = [&](int size) {
        const int first = static_cast<int>(random.below(static_cast<std::uint64_t>(size)));
        return std::pair(first, first + 1 + static_cast<int>(random.below(static_cast<std::uint64_t>(size - first))));
      };
      const auto [left, right] = part(width);
      const auto [top, bottom] = part(height);
      shown[k] = {left, top, right, bottom};
    }
    const int x = static_cast<int>(random.below(static_cast<std::uint64_t>(width)));
    const int y = static_cast<int>(random.below(static_cast<std::uint64_t>(height)));
    const std::array<mosaic_tile, 4> tiles = tiles_around(x, y, shown, height, width);
    std::vector<std::byte> made = rows[0];
    write_tile(how, tiles[0], made.data(), made.data());
    for (std::size_t k = 1; k < tiles.size(); ++k) write_tile(how, tiles[k], made.data(), rows[k].data());

    std::vector<std::byte> expected(bytes);
    for (int to_y = 0; to_y < height; ++to_y) {
      for (int to_x = 0; to_x < width; ++to_x) {
        const std::size_t k = (to_x >= x ? 1U : 0U) + (to_y >= y ? 2U : 0U);
        const int across = to_x >= x ? shown[k].left + (to_x - x) : shown[k].right - (x - to_x);
        const int down = to_y >= y ? shown[k].top + (to_y - y) : shown[k].bottom - (y - to_y);
        const int from_x = across < 0 ? width - 1 : across >= width ? 0 : across;
        const int from_y = down < 0 ? height - 1 : down >= height ? 0 : down;
        for (std::size_t p = 0; p < how.planes; ++p) {
          const auto at = [&](int px, int py) {
            return ((p * static_cast<std::size_t>(height) + static_cast<std::size_t>(py)) *
                        static_cast<std::size_t>(width) +
                    static_cast<std::size_t>(px)) *
                   how.pixel_bytes;
          };
          std::memcpy(expected.data() + at(to_x, to_y), rows[k].data() + at(from_x, from_y), how.pixel_bytes);
        }
      }
    }
    ASSERT_EQ(made, expected);
  });
}

}  // namespace
}  // namespace leat::stages
