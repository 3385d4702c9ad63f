#include "stages/pixels/mask_reader.hpp"

#include "tests/support/make_picture.hpp"

#include <leat/error.hpp>
#include <leat/transforms.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <span>
#include <string>
#include <vector>

namespace leat::pixels {
namespace {

namespace tr = transforms;
using ::testing::HasSubstr;

struct one_reader {
  scratch_budget budget{std::size_t{64} << 20};
  mask_reader reader{budget};
  placed_picture where;
  std::string reason;
  stages::outcome_kind kind = stages::outcome_kind::ok;

  // Of a picture that is width x height.
  void show(const std::vector<transform>& steps, int width, int height) {
    const pipeline chain(steps);
    place(chain, {}, geometry_of(chain, {}, width, height, 1), where);
  }
  template <class To>
  std::vector<To> read(const std::vector<std::byte>& encoded, const mask_reading& how) {
    std::vector<To> row(static_cast<std::size_t>(where.geometry.row_width * where.geometry.row_height), To{77});
    const auto made = reader.read(encoded, where, how, std::as_writable_bytes(std::span(row)), nullptr);
    reason = made ? "" : made.reason();
    kind = made.kind();
    return row;
  }
};

std::vector<std::uint16_t> counted(int count, int below) {
  std::vector<std::uint16_t> numbers(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    numbers[i] = static_cast<std::uint16_t>(i * 7 % static_cast<std::size_t>(below));
  }
  return numbers;
}

TEST(mask_reader, gives_the_indexes_of_a_palette_and_the_numbers_of_grey) {
  one_reader one;
  one.show({tr::center_crop{13, 9}}, 9, 13);
  for (const bool palette : {true, false}) {
    for (const int depth : {1, 2, 4, 8}) {
      for (const bool interlaced : {false, true}) {
        const std::vector<std::uint16_t> numbers = counted(9 * 13, 1 << depth);
        const auto got = one.read<std::uint8_t>(testing::make_mask_png(9, 13, numbers, depth, palette, interlaced), {});
        EXPECT_EQ(one.reason, "");
        EXPECT_EQ(std::vector<std::uint16_t>(got.begin(), got.end()), numbers) << depth << palette << interlaced;
      }
    }
  }
}

TEST(mask_reader, gives_all_depths_of_16_bits) {
  one_reader one;
  one.show({tr::center_crop{8, 8}}, 8, 8);
  std::vector<std::uint16_t> depths(64);
  for (std::size_t i = 0; i < depths.size(); ++i) depths[i] = static_cast<std::uint16_t>(20'000 + i);
  const auto encoded = testing::make_mask_png(8, 8, depths, 16, false);
  EXPECT_EQ(one.read<std::uint16_t>(encoded, {.type = dtype::u16}), depths);
  const auto wide = one.read<std::int64_t>(encoded, {.type = dtype::i64, .ignore = -1});
  EXPECT_EQ(std::vector<std::uint16_t>(wide.begin(), wide.end()), depths);
  static_cast<void>(one.read<std::uint8_t>(encoded, {}));
  EXPECT_EQ(one.reason, "number 20000 at line 0, pixel 0 is none of u8; mask::as() says another type");
}

// Middles of pixels: numpy.floor((numpy.arange(4) + 0.5) * 2).
TEST(mask_reader, looks_up_the_nearest_pixel_and_pads_with_what_is_ignored) {
  one_reader one;
  one.show({tr::resize{.shorter_side = 0, .height = 2, .width = 4}}, 8, 4);
  std::vector<std::uint16_t> numbers(32);
  std::iota(numbers.begin(), numbers.end(), std::uint16_t{0});
  const auto encoded = testing::make_mask_png(8, 4, numbers, 8, false);
  EXPECT_EQ(one.read<std::uint8_t>(encoded, {}), (std::vector<std::uint8_t>{9, 11, 13, 15, 25, 27, 29, 31}));
  one.show({tr::center_crop{2, 12}}, 8, 4);
  EXPECT_EQ(one.read<std::uint8_t>(encoded, {.ignore = 200}),
            (std::vector<std::uint8_t>{200, 200, 8,  9,  10, 11, 12, 13, 14, 15, 200, 200,
                                       200, 200, 16, 17, 18, 19, 20, 21, 22, 23, 200, 200}));
  one.show({tr::center_crop{1, 8}, tr::random_flip{.probability = 1}}, 8, 4);
  EXPECT_EQ(one.read<std::uint8_t>(encoded, {}), (std::vector<std::uint8_t>{23, 22, 21, 20, 19, 18, 17, 16}));
}

TEST(mask_reader, refuses_another_size_unless_it_is_scaled) {
  one_reader one;
  one.show({tr::center_crop{4, 4}}, 4, 4);
  const auto encoded = testing::make_mask_png(2, 2, {1, 2, 3, 4}, 8, false);
  static_cast<void>(one.read<std::uint8_t>(encoded, {}));
  EXPECT_EQ(one.kind, stages::outcome_kind::corrupt);
  EXPECT_EQ(one.reason,
            "a mask of 2 x 2 pixels, and its picture has 4 x 4; mask::scaled() lays it over the picture all the same");
  EXPECT_EQ(one.read<std::uint8_t>(encoded, {.scaled = true}),
            (std::vector<std::uint8_t>{1, 1, 2, 2, 1, 1, 2, 2, 3, 3, 4, 4, 3, 3, 4, 4}));
}

TEST(mask_reader, maps_colours_and_names_one_that_it_does_not_know) {
  testing::rgb_picture picture{2, 2, {0, 0, 0, 128, 0, 0, 0, 128, 0, 128, 0, 0}};
  testing::rgb_picture seen;
  const auto rgb = testing::make_png(picture, {}, seen);
  const auto rgba = testing::make_png(picture, {.colours = testing::png_colours::rgba}, seen);
  const colour_classes classes({{0, 0, 0}, {128, 0, 0}, {0, 128, 0}});
  one_reader one;
  one.show({tr::center_crop{2, 2}}, 2, 2);
  for (const auto& encoded : {rgb, rgba}) {
    EXPECT_EQ(one.read<std::uint8_t>(encoded, {.colours = &classes}), (std::vector<std::uint8_t>{0, 1, 2, 1}));
    static_cast<void>(one.read<std::uint8_t>(encoded, {}));
    EXPECT_THAT(one.reason, HasSubstr("mask::colors("));
    EXPECT_EQ(one.kind, stages::outcome_kind::unsupported);
  }
  const colour_classes fewer({{0, 0, 0}, {128, 0, 0}});
  static_cast<void>(one.read<std::uint8_t>(rgb, {.colours = &fewer}));
  EXPECT_EQ(one.reason, "colour 0/128/0 at line 1, pixel 0 is none of the 2 of colors()");
  EXPECT_THROW(colour_classes({{1, 2, 3}, {1, 2, 3}}), error);
}

TEST(mask_reader, finds_damage_and_other_formats) {
  one_reader one;
  one.show({tr::center_crop{9, 9}}, 9, 9);
  const auto encoded = testing::make_mask_png(9, 9, counted(81, 256), 8, false);
  // All but the end chunk, and the data's CRC: zlib has a checksum of its own.
  for (std::size_t bytes = 0; bytes < encoded.size() - 16; ++bytes) {
    const std::vector<std::byte> cut(encoded.begin(), encoded.begin() + static_cast<std::ptrdiff_t>(bytes));
    static_cast<void>(one.read<std::uint8_t>(cut, {}));
    ASSERT_NE(one.reason, "") << bytes;
  }
  const testing::rgb_picture picture = testing::make_texture(1, 9, 9);
  static_cast<void>(one.read<std::uint8_t>(testing::make_jpeg(picture, {}), {}));
  EXPECT_THAT(one.reason, HasSubstr("this is JPEG"));
}

}  // namespace
}  // namespace leat::pixels
