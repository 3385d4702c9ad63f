// Rotated boxes against what their pixels say, counted.
#include "stages/pixels/placed_quad.hpp"

#include "tests/support/seeded_random.hpp"

#include <leat/transforms.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace leat::pixels {
namespace {

namespace tr = transforms;

// torchvision.ops.box_convert(boxes, "cxcywhr", "xyxyxyxy").
TEST(placed_quad, has_the_corners_that_torchvision_gives_a_rotated_box) {
  const quadrilateral turned = rotated_box(10, 20, 8, 4, 90);
  const quadrilateral expected = {{{8, 24}, {8, 16}, {12, 16}, {12, 24}}};
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_NEAR(turned[i][0], expected[i][0], 1e-12);
    EXPECT_NEAR(turned[i][1], expected[i][1], 1e-12);
  }
  const quadrilateral upright = rotated_box(10, 20, 8, 4, 0);
  EXPECT_EQ(upright, (quadrilateral{{{6, 18}, {14, 18}, {14, 22}, {6, 22}}}));
}

// The C library's sine and cosine differ in their last bit where a processor has no FMA.
TEST(placed_quad, has_the_same_corners_on_every_processor) {
  EXPECT_EQ(rotated_box(0, 0, 8, 4, 90), (quadrilateral{{{-2, 4}, {-2, -4}, {2, -4}, {2, 4}}}));
  EXPECT_EQ(rotated_box(0, 0, 8, 4, -127.3), (quadrilateral{{{0x1.00f4217d733adp+2, -0x1.f84c7d12a293cp+0},
                                                             {-0x1.aa7fd8a2be946p-1, 0x1.19352d8d8e2bap+2},
                                                             {-0x1.00f4217d733adp+2, 0x1.f84c7d12a293cp+0},
                                                             {0x1.aa7fd8a2be946p-1, -0x1.19352d8d8e2bap+2}}}));
}

TEST(placed_quad, whose_sides_cross_is_known) {
  EXPECT_TRUE(sides_cross({{{0, 0}, {4, 4}, {4, 0}, {0, 4}}}));
  EXPECT_TRUE(sides_cross({{{0, 0}, {4, 0}, {0, 4}, {4, 4}}}));
  EXPECT_FALSE(sides_cross({{{0, 0}, {4, 0}, {4, 4}, {0, 4}}}));
  EXPECT_FALSE(sides_cross({{{0, 0}, {4, 0}, {1, 1}, {0, 4}}}));  // a dent
  EXPECT_FALSE(sides_cross({{{0, 0}, {4, 0}, {4, 0}, {0, 0}}}));  // a line
}

// Even and odd, for any polygon.
bool is_within(const quadrilateral& of, double x, double y) {
  bool inside = false;
  for (std::size_t i = 0; i < 4; ++i) {
    const auto& a = of[i];
    const auto& b = of[(i + 1) % 4];
    if ((a[1] > y) != (b[1] > y) && x < a[0] + (y - a[1]) / (b[1] - a[1]) * (b[0] - a[0])) inside = !inside;
  }
  return inside;
}

// The row is cut into small squares; the middle of each is looked up in the stored picture.
double counted_area(const placed_picture& where, const quadrilateral& of) {
  constexpr int fine = 8;
  const picture_geometry& row = where.geometry;
  double squares = 0;
  for (int i = 0; i < row.row_height * fine; ++i) {
    for (int k = 0; k < row.row_width * fine; ++k) {
      const auto [x, y, w] = seen_from(row.matrix, (k + 0.5) / fine, (i + 0.5) / fine);
      const box& seen = where.seen;
      const bool is_seen = x / w >= seen.left && x / w <= seen.right && y / w >= seen.top && y / w <= seen.bottom;
      if (is_seen && is_within(of, x / w, y / w)) ++squares;
    }
  }
  return squares / (fine * fine);
}

TEST(placed_quad, has_the_area_of_its_pixels_in_the_row) {
  constexpr int width = 60;
  constexpr int height = 44;
  testing::seeded_random random(5);
  const auto between = [&](double from, double to) {
    return from + (to - from) * static_cast<double>(random.below(100'000)) / 100'000;
  };
  const std::vector<std::vector<transform>> chains{
      {tr::resize{.height = 40, .width = 30}},
      {tr::center_crop{24, 32}},
      {tr::center_crop{24, 32}, tr::random_flip{1}},
      {tr::center_crop{30, 30}, tr::affine{.degrees = {20, 50}, .translate = {0.1, 0.1}}},
      {tr::resize{.height = 36, .width = 36}, tr::perspective{.distortion = 0.5}}};
  std::size_t in_part = 0;
  for (const std::vector<transform>& steps : chains) {
    const pipeline chain(steps);
    placed_picture where;
    for (std::uint64_t draw = 0; draw < 12; ++draw) {
      const draw_key key{.seed = 3, .epoch = 1, .draw = draw};
      place(chain, key, geometry_of(chain, key, width, height, 1), where);
      quadrilateral of = rotated_box(between(-5, width + 5), between(-5, height + 5), between(4, 50), between(4, 30),
                                     between(-180, 180));
      if (draw % 3 == 2)
        of[2] = {(of[0][0] + of[1][0] + of[3][0]) / 3, (of[0][1] + of[1][1] + of[3][1]) / 3};  // a dent
      const placed_quad placed = place_quad(where, of);
      const double counted = counted_area(where, of);
      EXPECT_NEAR(placed.area, counted, 2 + counted / 50) << draw;
      EXPECT_LE(placed.area, placed.whole_area + 1e-6);
      in_part += placed.area > 0 && placed.area < 0.99 * placed.whole_area ? 1 : 0;
      // Corners lie where the row's matrix finds them.
      for (std::size_t i = 0; i < 4 && placed.whole_area > 0; ++i) {
        const auto [x, y, w] = seen_from(where.geometry.matrix, placed.in_row[i][0], placed.in_row[i][1]);
        const auto& stored = of[where.geometry.mirrored ? i ^ 1U : i];
        EXPECT_NEAR(x / w, stored[0], 1e-6);
        EXPECT_NEAR(y / w, stored[1], 1e-6);
      }
    }
  }
  EXPECT_GT(in_part, 15U);
}

TEST(placed_quad, keeps_its_corners_going_round_in_a_mirrored_picture) {
  const pipeline chain({tr::center_crop{30, 40}, tr::random_flip{1}});
  placed_picture where;
  place(chain, {}, geometry_of(chain, {}, 40, 30, 1), where);
  EXPECT_EQ(place_quad(where, {{{2, 3}, {12, 3}, {12, 9}, {2, 9}}}).in_row,
            (quadrilateral{{{28, 3}, {38, 3}, {38, 9}, {28, 9}}}));
}

TEST(placed_quad, has_no_area_where_nothing_is_left_of_it) {
  const pipeline chain({tr::center_crop{20, 20}});
  placed_picture where;
  place(chain, {}, geometry_of(chain, {}, 40, 30, 1), where);
  EXPECT_EQ(place_quad(where, rotated_box(4, 15, 4, 4, 45)).area, 0);
  EXPECT_NEAR(place_quad(where, rotated_box(4, 15, 4, 4, 45)).whole_area, 16, 1e-9);
  EXPECT_EQ(place_quad(where, rotated_box(20, 15, 8, 0, 30)).area, 0);
  EXPECT_NEAR(place_quad(where, rotated_box(10, 15, 4, 4, 45)).area, 8, 1e-9);  // half of it is left of the crop
}

}  // namespace
}  // namespace leat::pixels
