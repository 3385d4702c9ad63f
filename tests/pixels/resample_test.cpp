#include "stages/pixels/resample.hpp"

#include "stages/pixels/row_writer.hpp"
#include "tests/pixels/decode_one.hpp"
#include "tests/support/reference_resample.hpp"
#include "tests/support/seeds.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <vector>

namespace leat {
namespace {

using pixels::geometry;
using testing::rgb_picture;

int between(std::mt19937_64& random, int from, int to) { return std::uniform_int_distribution<int>(from, to)(random); }

std::string text_of(const geometry& g) {
  return "box " + std::to_string(g.box.width) + "x" + std::to_string(g.box.height) + "+" + std::to_string(g.box.x) +
         "+" + std::to_string(g.box.y) + " to " + std::to_string(g.scaled_width) + "x" +
         std::to_string(g.scaled_height) + ", crop " + std::to_string(g.out_width) + "x" +
         std::to_string(g.out_height) + " at " + std::to_string(g.crop_x) + "," + std::to_string(g.crop_y) +
         (g.flip ? " flipped" : "") + " filter " + std::to_string(static_cast<int>(g.how));
}

// The resampler alone, without a decoder: lines of `picture` in, a u8 row out.
rgb_picture resample(const rgb_picture& picture, const geometry& drawn, layout order) {
  pixels::scratch_budget budget(std::size_t{64} << 20);
  pixels::scratch_arena arena(budget);
  arena.begin();
  pixels::resampler to(drawn, {});
  EXPECT_TRUE(arena.reserve(to.scratch_bytes()));
  const auto how = pixels::store::from(dtype::u8, order, std::nullopt);
  std::vector<std::uint8_t> row(how.row_bytes(drawn.out_height, drawn.out_width), 0xEE);
  const std::size_t before = arena.used();
  pixels::row_writer writer(how, nullptr, drawn.out_height, drawn.out_width, reinterpret_cast<std::byte*>(row.data()));
  EXPECT_TRUE(to.start(arena, order, writer));
  EXPECT_LE(arena.used() - before, to.scratch_bytes());
  const auto line_bytes = static_cast<std::size_t>(to.region().width) * 3;
  std::vector<std::uint8_t> line(line_bytes + pixels::line_slack_bytes, 0xAA);
  for (int y = 0; y < to.region().height; ++y) {
    std::copy_n(picture.at(to.region().x, to.region().y + y), line_bytes, line.begin());
    to.push(line.data());
  }
  to.finish();
  arena.end();

  rgb_picture out{drawn.out_width, drawn.out_height, row};
  if (order == layout::nhwc) return out;
  const std::size_t plane = row.size() / 3;
  for (std::size_t i = 0; i < plane; ++i) {
    for (std::size_t c = 0; c < 3; ++c) out.pixels[3 * i + c] = row[c * plane + i];
  }
  return out;
}

geometry random_geometry(std::mt19937_64& random, int width, int height) {
  geometry g;
  const int w = between(random, 0, 4) == 0 ? 1 : between(random, 1, width);
  const int h = between(random, 0, 4) == 0 ? 1 : between(random, 1, height);
  g.box = {between(random, 0, width - w), between(random, 0, height - h), w, h};
  const int side_max = between(random, 0, 1) == 0 ? 9 : 120;
  g.scaled_width = between(random, 0, 5) == 0 ? w : between(random, 1, side_max);
  g.scaled_height = between(random, 0, 5) == 0 ? h : between(random, 1, side_max);
  switch (between(random, 0, 2)) {
    case 0:  // all of it
      g.out_width = static_cast<int>(g.scaled_width);
      g.out_height = static_cast<int>(g.scaled_height);
      break;
    case 1:  // a part
      g.out_width = between(random, 1, static_cast<int>(g.scaled_width));
      g.out_height = between(random, 1, static_cast<int>(g.scaled_height));
      g.crop_x = between(random, 0, static_cast<int>(g.scaled_width) - g.out_width);
      g.crop_y = between(random, 0, static_cast<int>(g.scaled_height) - g.out_height);
      break;
    default:  // partly or wholly outside
      g.out_width = between(random, 1, 40);
      g.out_height = between(random, 1, 40);
      g.crop_x = between(random, -45, static_cast<int>(g.scaled_width) + 5);
      g.crop_y = between(random, -45, static_cast<int>(g.scaled_height) + 5);
  }
  g.flip = between(random, 0, 1) == 1;
  g.how = static_cast<filter>(between(random, 0, 2));
  return g;
}

// Where an output's centre falls exactly between two inputs, the neighbour is a matter of the last bit.
bool nearest_is_ambiguous(const geometry& g) {
  const auto tie = [](int box, std::int64_t scaled, std::int64_t output) {
    return (2 * output + 1) * box % (2 * scaled) == 0;
  };
  for (int x = 0; x < g.out_width; ++x) {
    if (tie(g.box.width, g.scaled_width, g.crop_x + x)) return true;
  }
  for (int y = 0; y < g.out_height; ++y) {
    if (tie(g.box.height, g.scaled_height, g.crop_y + y)) return true;
  }
  return false;
}

TEST(resample, is_within_one_level_of_the_double_precision_reference) {
  int nearest = 0;
  testing::for_each_seed(150, [&](std::uint64_t seed) {
    std::mt19937_64 random(seed);
    const int width = between(random, 0, 5) == 0 ? 1 : between(random, 1, 130);
    const int height = between(random, 0, 5) == 0 ? 1 : between(random, 1, 130);
    const rgb_picture picture = testing::make_texture(random(), width, height);
    const geometry drawn = random_geometry(random, width, height);
    SCOPED_TRACE(text_of(drawn));
    const bool exact = drawn.how == filter::nearest;
    if (exact && nearest_is_ambiguous(drawn)) return;
    nearest += exact ? 1 : 0;
    const rgb_picture expected = testing::reference_resample(picture, drawn);
    for (const layout order : {layout::nchw, layout::nhwc}) {
      const rgb_picture got = resample(picture, drawn, order);
      ASSERT_LE(testing::largest_difference(got, expected), exact ? 0 : 1);
    }
  });
  EXPECT_GT(nearest, 0);
}

TEST(resample, leaves_the_picture_alone_where_nothing_is_scaled) {
  const rgb_picture picture = testing::make_texture(3, 61, 47);
  for (const filter how : {filter::nearest, filter::bilinear, filter::bicubic}) {
    geometry drawn = testing::plain_box(7, 5, 40, 30);
    drawn.how = how;
    EXPECT_EQ(resample(picture, drawn, layout::nhwc), testing::crop(picture, 7, 5, 40, 30));
  }
}

// The decoder may be told to look at the crop only; the crop must not know.
TEST(resample, makes_a_crop_as_it_makes_the_whole) {
  testing::for_each_seed(20, [&](std::uint64_t seed) {
    std::mt19937_64 random(seed);
    const rgb_picture picture = testing::make_texture(random(), between(random, 1, 90), between(random, 1, 90));
    geometry all = random_geometry(random, picture.width, picture.height);
    all.crop_x = all.crop_y = 0;
    all.out_width = static_cast<int>(all.scaled_width);
    all.out_height = static_cast<int>(all.scaled_height);
    all.flip = false;
    const rgb_picture whole = resample(picture, all, layout::nhwc);
    for (int i = 0; i < 5; ++i) {
      geometry part = all;
      part.out_width = between(random, 1, all.out_width);
      part.out_height = between(random, 1, all.out_height);
      part.crop_x = between(random, 0, all.out_width - part.out_width);
      part.crop_y = between(random, 0, all.out_height - part.out_height);
      SCOPED_TRACE(text_of(part));
      ASSERT_EQ(resample(picture, part, layout::nhwc),
                testing::crop(whole, static_cast<int>(part.crop_x), static_cast<int>(part.crop_y), part.out_width,
                              part.out_height));
    }
  });
}

// Where a value of the row comes from, by the words of the header.
int padded_source(int at, int size, padding_mode mode) {
  if (at >= 0 && at < size) return at;
  if (mode == padding_mode::constant) return -1;
  if (mode == padding_mode::edge) return at < 0 ? 0 : size - 1;
  while (size > 1 && (at < 0 || at >= size)) at = at < 0 ? -at : 2 * (size - 1) - at;
  return size == 1 ? 0 : at;
}

TEST(resample, pads_with_a_colour_an_edge_or_a_mirror_image) {
  testing::for_each_seed(60, [&](std::uint64_t seed) {
    std::mt19937_64 random(seed);
    const rgb_picture picture = testing::make_texture(random(), between(random, 1, 60), between(random, 1, 60));
    geometry all = random_geometry(random, picture.width, picture.height);
    all.crop_x = all.crop_y = 0;
    all.out_width = static_cast<int>(all.scaled_width);
    all.out_height = static_cast<int>(all.scaled_height);
    all.flip = false;
    const rgb_picture whole = resample(picture, all, layout::nhwc);
    for (const padding_mode mode : {padding_mode::constant, padding_mode::edge, padding_mode::reflect}) {
      for (int i = 0; i < 4; ++i) {
        geometry drawn = all;
        drawn.padding = mode;
        drawn.fill = {7, 130, 255};
        drawn.out_width = between(random, 1, 90);
        drawn.out_height = between(random, 1, 90);
        drawn.crop_x = between(random, -70, static_cast<int>(all.scaled_width) + 20);
        drawn.crop_y = between(random, -70, static_cast<int>(all.scaled_height) + 20);
        drawn.flip = between(random, 0, 1) == 1;
        SCOPED_TRACE(text_of(drawn) + " mode " + std::to_string(static_cast<int>(mode)));
        for (const layout order : {layout::nhwc, layout::nchw}) {
          const rgb_picture got = resample(picture, drawn, order);
          for (int y = 0; y < drawn.out_height; ++y) {
            for (int x = 0; x < drawn.out_width; ++x) {
              const int column = drawn.flip ? drawn.out_width - 1 - x : x;
              const int from_x = padded_source(static_cast<int>(drawn.crop_x) + column, whole.width, mode);
              const int from_y = padded_source(static_cast<int>(drawn.crop_y) + y, whole.height, mode);
              for (std::size_t c = 0; c < 3; ++c) {
                const std::uint8_t expected = from_x < 0 || from_y < 0 ? drawn.fill[c] : whole.at(from_x, from_y)[c];
                ASSERT_EQ(got.at(x, y)[c], expected) << x << ' ' << y << ' ' << c;
              }
            }
          }
        }
      }
    }
  });
}

// Through a decoder, which is told a region, turns what a camera has turned, and draws colour behind it.
TEST(resample, letterboxes_a_photograph_as_its_resized_picture_on_a_ground) {
  testing::one_decoder one;
  const auto how = pixels::store::from(dtype::u8, layout::nhwc, std::nullopt);
  const auto decode = [&](const std::vector<std::byte>& encoded, const std::vector<transform>& steps) {
    const pixels::pipeline chain(steps);
    rgb_picture made{chain.out_width(), chain.out_height(), {}};
    made.pixels.resize(how.row_bytes(made.height, made.width));
    const auto done = one.decoder.decode(encoded, chain, {1, 0, 2}, how, {.exif_orientation = true},
                                         reinterpret_cast<std::byte*>(made.pixels.data()), nullptr);
    EXPECT_TRUE(done) << done.reason();
    return made;
  };
  for (const int turned : {1, 3, 6}) {
    const std::vector<std::byte> encoded =
        testing::make_jpeg(testing::make_texture(13, 90, 60), {.orientation = turned});
    // 90 x 60 upright, or 60 x 90.
    const int width = turned == 6 ? 48 : 72;
    const int height = turned == 6 ? 72 : 48;
    const rgb_picture inside = decode(encoded, {transforms::resize{.height = height, .width = width}});
    const rgb_picture boxed = decode(encoded, {transforms::letterbox{72, 72, {9, 8, 7}}, transforms::random_flip{1}});
    const rgb_picture negative =
        decode(encoded, {transforms::letterbox{72, 72, {9, 8, 7}}, transforms::random_flip{1}, transforms::invert{}});
    for (int y = 0; y < 72; ++y) {
      for (int x = 0; x < 72; ++x) {
        const int from_x = 71 - x - (72 - width) / 2;
        const int from_y = y - (72 - height) / 2;
        const bool is_there = from_x >= 0 && from_x < width && from_y >= 0 && from_y < height;
        for (std::size_t c = 0; c < 3; ++c) {
          const int expected = is_there ? inside.at(from_x, from_y)[c] : 9 - static_cast<int>(c);
          ASSERT_EQ(boxed.at(x, y)[c], expected) << turned << ' ' << x << ' ' << y;
          ASSERT_EQ(negative.at(x, y)[c], 255 - expected);
        }
      }
    }
  }
}

TEST(resample, flips_what_it_would_have_made) {
  testing::for_each_seed(20, [&](std::uint64_t seed) {
    std::mt19937_64 random(seed);
    const rgb_picture picture = testing::make_texture(random(), between(random, 1, 90), between(random, 1, 90));
    geometry drawn = random_geometry(random, picture.width, picture.height);
    drawn.flip = false;
    const rgb_picture straight = resample(picture, drawn, layout::nhwc);
    drawn.flip = true;
    EXPECT_EQ(resample(picture, drawn, layout::nchw), testing::turn_upright(straight, 2));
  });
}

// Values that were computed by Pillow 11.3: Image.resize of a 5 x 1 picture to 3 and to 8 pixels.
TEST(resample, agrees_with_pillow_on_a_line) {
  rgb_picture five{5, 1, {}};
  for (const int value : {0, 255, 10, 200, 90})
    five.pixels.insert(five.pixels.end(), 3, static_cast<std::uint8_t>(value));
  const auto greys = [&](int width, filter how) {
    const rgb_picture out = resample(five,
                                     {.box = {0, 0, 5, 1},
                                      .scaled_width = width,
                                      .scaled_height = 1,
                                      .out_width = width,
                                      .out_height = 1,
                                      .how = how},
                                     layout::nhwc);
    std::vector<int> values;
    for (int x = 0; x < width; ++x) values.push_back(out.at(x, 0)[0]);
    return values;
  };
  EXPECT_EQ(greys(3, filter::bilinear), (std::vector{109, 107, 137}));
  EXPECT_EQ(greys(3, filter::bicubic), (std::vector{108, 115, 134}));
  EXPECT_EQ(greys(3, filter::nearest), (std::vector{0, 10, 90}));
  EXPECT_EQ(greys(8, filter::bilinear), (std::vector{0, 112, 240, 87, 69, 188, 138, 90}));
  EXPECT_EQ(greys(8, filter::bicubic), (std::vector{0, 113, 253, 71, 47, 196, 143, 82}));
  EXPECT_EQ(greys(8, filter::nearest), (std::vector{0, 0, 255, 10, 10, 200, 90, 90}));
}

// Values that were computed by Pillow 13.0: Image.resize of 6 x 20 pixels to 5 x 3. Pillow 12.1, which goes across first,
// has other values at most of these places, bicubic, and at a few, bilinear.
TEST(resample, goes_down_first_where_pillow_does) {
  rgb_picture picture{6, 20, {}};
  for (int y = 0; y < picture.height; ++y) {
    for (int x = 0; x < picture.width; ++x) {
      for (int c = 0; c < 3; ++c)
        picture.pixels.push_back(static_cast<std::uint8_t>((x * 7 + y * 5 + c * 3 + x * y) % 11 < 5 ? 255 : 0));
    }
  }
  geometry drawn = testing::scaled_box({0, 0, 6, 20}, 5, 3, filter::bicubic);
  EXPECT_THAT(resample(picture, drawn, layout::nhwc).pixels,
              ::testing::ElementsAre(116, 124, 104, 106, 107, 121, 107, 123, 118, 131, 98, 117, 102, 164, 120, 117, 114,
                                     121, 121, 114, 114, 120, 110, 108, 108, 123, 111, 141, 86, 98, 112, 110, 115, 110,
                                     126, 114, 115, 132, 129, 134, 108, 121, 62, 142, 165));
  drawn.how = filter::bilinear;
  EXPECT_THAT(resample(picture, drawn, layout::nchw).pixels,
              ::testing::ElementsAre(116, 121, 104, 110, 108, 119, 112, 120, 115, 132, 106, 112, 107, 160, 114, 116,
                                     115, 121, 120, 115, 115, 118, 113, 110, 109, 121, 112, 136, 92, 101, 114, 111, 115,
                                     112, 124, 113, 114, 127, 128, 125, 108, 126, 68, 136, 164));
}

TEST(resample, chooses_the_first_pass_by_sizes_alone) {
  const auto down_first = [](int width, int height, int to_width, int to_height) {
    return pixels::goes_down_first(testing::scaled_box({3, 5, width, height}, to_width, to_height, filter::bicubic));
  };
  EXPECT_FALSE(down_first(500, 375, 341, 256)) << "an ordinary photograph, to its shorter side";
  EXPECT_FALSE(down_first(375, 500, 256, 341)) << "also upright";
  EXPECT_FALSE(down_first(100, 200, 50, 100)) << "exactly twice as many";
  EXPECT_TRUE(down_first(100, 201, 50, 100));
  EXPECT_TRUE(down_first(200, 225, 224, 224)) << "the width grows";
  EXPECT_FALSE(down_first(200, 224, 224, 224)) << "the height does not shrink";
  EXPECT_FALSE(down_first(100, 100, 224, 224));
}

TEST(resample, needs_no_more_lines_than_the_filter_is_high) {
  geometry drawn = testing::plain_box(0, 0, 4000, 4000);
  drawn.scaled_width = drawn.scaled_height = drawn.out_width = drawn.out_height = 224;
  const pixels::resampler to(drawn, {});
  EXPECT_LT(to.scratch_bytes(), std::size_t{160} << 10);
}

}  // namespace
}  // namespace leat
