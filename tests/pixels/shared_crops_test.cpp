#include "stages/pixels/shared_crops.hpp"

#include "tests/pixels/decode_one.hpp"
#include "tests/support/seeds.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <random>
#include <span>
#include <utility>
#include <vector>

namespace leat {
namespace {

using pixels::crop_of_both;
using pixels::geometry;
namespace tr = transforms;

// A crop of a picture of 640 x 480 that is resized to 341 x 256.
geometry crop_at(int x, int y, int width, int height) {
  geometry of = testing::scaled_box({0, 0, 640, 480}, 341, 256, filter::bilinear);
  of.scaled_width = 341;
  of.scaled_height = 256;
  of.crop_x = x;
  of.crop_y = y;
  of.out_width = width;
  of.out_height = height;
  return of;
}

TEST(shared_crops, are_cut_from_the_smallest_crop_that_holds_both) {
  geometry mirrored = crop_at(117, 32, 224, 224);
  mirrored.flip = true;
  EXPECT_EQ(crop_of_both(crop_at(0, 0, 224, 224), mirrored), crop_at(0, 0, 341, 256));
  EXPECT_EQ(crop_of_both(mirrored, mirrored), crop_at(117, 32, 224, 224));
}

TEST(shared_crops, that_are_resampled_otherwise_share_nothing) {
  const geometry of = crop_at(10, 10, 100, 100);
  const auto differs_by = [&](auto change) {
    geometry other = of;
    change(other);
    return !crop_of_both(of, other) && !crop_of_both(other, of);
  };
  EXPECT_TRUE(differs_by([](geometry& g) { g.box.x = 1; }));
  EXPECT_TRUE(differs_by([](geometry& g) { g.scaled_width = 340; }));
  EXPECT_TRUE(differs_by([](geometry& g) { g.scaled_height = 255; }));
  EXPECT_TRUE(differs_by([](geometry& g) { g.how = filter::bicubic; }));
  EXPECT_TRUE(differs_by([](geometry& g) { g.crop_x = -1; })) << "a column of it is padding";
  EXPECT_TRUE(differs_by([](geometry& g) { g.crop_y = 157; })) << "its last line is padding";
  EXPECT_TRUE(differs_by([](geometry& g) { g.warp.emplace(); }));
  geometry nearest = of;
  nearest.how = filter::nearest;
  EXPECT_EQ(crop_of_both(nearest, nearest), std::nullopt);
}

TEST(shared_crops, that_lie_far_apart_share_nothing) {
  EXPECT_TRUE(crop_of_both(crop_at(0, 0, 50, 50), crop_at(50, 0, 50, 50)));
  EXPECT_FALSE(crop_of_both(crop_at(0, 0, 50, 50), crop_at(51, 0, 50, 50)));
  geometry left = crop_at(0, 0, 50, 50);
  geometry right = left;
  left.scaled_width = right.scaled_width = std::int64_t{1} << 40;
  right.crop_x = (std::int64_t{1} << 40) - 50;
  EXPECT_FALSE(crop_of_both(left, right)) << "no number wraps";
}

// The lines that a row was given.
struct kept_lines final : pixels::line_sink {
  explicit kept_lines(int width) : line_bytes(static_cast<std::size_t>(width) * 3) {}
  void take(const std::uint8_t* line, int y) noexcept override {
    EXPECT_EQ(y, static_cast<int>(lines.size()));
    lines.emplace_back(line, line + line_bytes);
  }
  std::size_t line_bytes;
  std::vector<std::vector<std::uint8_t>> lines;
};

TEST(line_cutter, gives_each_row_its_part_of_the_lines) {
  constexpr int width = 9;
  constexpr int height = 5;
  const auto value = [](int x, int y, int c) { return static_cast<std::uint8_t>(100 * c + 10 * y + x); };
  for (const layout order : {layout::nhwc, layout::nchw}) {
    const auto place = [&](int x, int c, int of) {
      return static_cast<std::size_t>(order == layout::nchw ? c * of + x : x * 3 + c);
    };
    kept_lines plain(4);
    kept_lines mirrored(5);
    const pixels::line_cut cuts[] = {{.to = &plain, .x = 5, .y = 0, .width = 4, .height = 3},
                                     {.to = &mirrored, .x = 1, .y = 2, .width = 5, .height = 3, .mirrored = true}};
    pixels::line_cutter cutter(width, order, cuts);
    pixels::scratch_budget budget(std::size_t{1} << 20);
    pixels::scratch_arena arena(budget);
    arena.begin();
    ASSERT_TRUE(arena.reserve(cutter.scratch_bytes()));
    const std::size_t before = arena.used();
    ASSERT_TRUE(cutter.start(arena));
    EXPECT_EQ(arena.used() - before, cutter.scratch_bytes());
    for (int y = 0; y < height; ++y) {
      std::vector<std::uint8_t> line(3 * width);
      for (int x = 0; x < width; ++x) {
        for (int c = 0; c < 3; ++c) line[place(x, c, width)] = value(x, y, c);
      }
      cutter.take(line.data(), y);
    }
    arena.end();
    ASSERT_EQ(plain.lines.size(), 3U);
    ASSERT_EQ(mirrored.lines.size(), 3U);
    for (int y = 0; y < 3; ++y) {
      for (int c = 0; c < 3; ++c) {
        for (int x = 0; x < 4; ++x)
          EXPECT_EQ(plain.lines[static_cast<std::size_t>(y)][place(x, c, 4)], value(5 + x, y, c));
        for (int x = 0; x < 5; ++x) {
          EXPECT_EQ(mirrored.lines[static_cast<std::size_t>(y)][place(x, c, 5)], value(5 - x, y + 2, c));
        }
      }
    }
  }
}

// Five places of one resized picture, each mirrored or not, in every layout, with passes of colour or none.
TEST(shared_crops, have_the_bits_that_each_has_alone) {
  testing::one_decoder one;
  testing::for_each_seed(60, [&](std::uint64_t seed) {
    std::mt19937_64 random(seed);
    const auto between = [&](int from, int to) { return std::uniform_int_distribution<int>(from, to)(random); };
    std::vector<transform> resized;
    const int side = between(20, 90);
    const auto how = static_cast<filter>(between(0, 2));
    if (between(0, 2) == 0) {
      resized.push_back(tr::random_resized_crop{.height = side, .width = between(20, 90), .how = how});
    } else if (between(0, 3) != 0) {
      resized.push_back(tr::resize{.shorter_side = side, .height = 0, .width = 0, .how = how});
    }
    std::vector<transform> colour;
    if (between(0, 1) == 0) colour.push_back(tr::brightness{{0.5, 1.5}});
    if (between(0, 2) == 0) colour.push_back(tr::contrast{{0.5, 1.5}});
    if (between(0, 2) == 0) colour.push_back(tr::gaussian_blur{3, {0.5, 1.5}});
    const auto order = static_cast<layout>(between(0, 1));
    static constexpr dtype types[] = {dtype::u8, dtype::f16, dtype::f32};
    const auto store = pixels::store::from(types[between(0, 2)], order, std::nullopt);
    const pixels::decode_options options{.exif_orientation = seed % 2 == 0, .decimate = between(0, 1) == 1};

    std::vector<pixels::pipeline> steps;
    for (int i = 0; i < 10; ++i) {
      // At times larger than the picture.
      const int size = between(0, 5) == 0 ? between(20, 120) : std::min(side, between(15, 20));
      std::vector<transform> chain = resized;
      if (i % 2 == 1) chain.push_back(tr::random_flip{1});
      const auto at = static_cast<placement>(i / 2);
      chain.push_back(tr::center_crop{.height = std::min(side, size), .width = std::min(20, size), .position = at});
      chain.insert(chain.end(), colour.begin(), colour.end());
      steps.push_back(pixels::pipeline(std::move(chain)).as_view("crops"));
    }
    const auto encoded = testing::make_jpeg(testing::make_texture(seed, between(8, 220), between(8, 200)),
                                            {.h = between(1, 2), .v = between(1, 2), .orientation = between(0, 8)});
    std::vector<std::vector<std::byte>> together;
    std::vector<pixels::picture_row> rows;
    for (const pixels::pipeline& each : steps) {
      together.emplace_back(store.row_bytes(each.out_height(), each.out_width()), std::byte{0xEE});
      rows.push_back(
          {.steps = &each, .key = {3, 1, 4}, .how = &store, .options = options, .row = together.back().data()});
    }
    ASSERT_TRUE(one.decoder.decode_rows(encoded, rows, nullptr));
    for (std::size_t i = 0; i < steps.size(); ++i) {
      std::vector<std::byte> alone(together[i].size(), std::byte{0xDD});
      ASSERT_TRUE(one.decoder.decode(encoded, steps[i], {3, 1, 4}, store, options, alone.data(), nullptr));
      ASSERT_EQ(together[i], alone) << "crop " << i;
    }
  });
}

// Of ten crops of 224 of a photograph there is one resampling.
TEST(shared_crops, of_ten_corners_and_middles_are_one_picture) {
  std::optional<geometry> all;
  for (const double mirrored : {0, 1}) {
    for (int at = 0; at < 5; ++at) {
      const pixels::pipeline steps({tr::resize{.shorter_side = 256}, tr::random_flip{mirrored},
                                    tr::center_crop{.height = 224, .width = 224, .position = placement(at)}});
      const geometry drawn = steps.compile(640, 480, {1, 2, 3});
      all = all ? crop_of_both(*all, drawn) : drawn;
      ASSERT_TRUE(all) << at;
    }
  }
  EXPECT_EQ(*all, crop_at(0, 0, 341, 256));
}

}  // namespace
}  // namespace leat
