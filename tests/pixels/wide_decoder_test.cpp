// Pictures of 16 bits: crops are what is stored, resizing is by the definition, and floats have the scale that is said.
#include "base/half.hpp"
#include "tests/pixels/wide_numbers.hpp"
#include "tests/support/make_picture.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

namespace leat {
namespace {

using ::testing::HasSubstr;
using testing::make_numbers;
using testing::one_wide_decoder;
using testing::wide_picture;

constexpr pixels::wide_store grey16{.type = dtype::u16};

transform page(int height, int width) { return transforms::center_crop{height, width}; }

TEST(wide_decoder, gives_every_number_of_16_bits_as_it_is_stored) {
  one_wide_decoder one;
  wide_picture all{256, 256, 1, {}};
  for (int i = 0; i < 65'536; ++i) all.numbers.push_back(i);
  for (const bool interlaced : {false, true}) {
    const auto encoded = testing::make_png16(256, 256, 1, testing::as_u16(all), interlaced);
    EXPECT_EQ(one.decode<std::uint16_t>(encoded, {page(256, 256)}, 16, grey16), testing::as_u16(all)) << one.reason;
    const auto floats = one.decode<float>(encoded, {page(256, 256)}, 16, {.type = dtype::f32});
    const auto halves = one.decode<std::uint16_t>(encoded, {page(256, 256)}, 16, {.type = dtype::f16});
    const auto brains = one.decode<std::uint16_t>(encoded, {page(256, 256)}, 16, {.type = dtype::bf16, .white = 1.0});
    ASSERT_EQ(floats.size(), 65'536U);
    for (std::size_t i = 0; i < floats.size(); ++i) {
      ASSERT_EQ(floats[i], static_cast<float>(i) / 65'535.0F);
      ASSERT_EQ(halves[i], f16_bits(floats[i]));
      ASSERT_EQ(brains[i], bf16_bits(static_cast<float>(i)));
    }
  }
}

TEST(wide_decoder, crops_flips_and_pads_with_the_numbers_of_the_8_bit_path) {
  one_wide_decoder one;
  const wide_picture stored = make_numbers(1, 31, 23, 3, 0, 65'535);
  const auto encoded = testing::make_png16(31, 23, 3, testing::as_u16(stored));
  const std::vector<transform> steps{transforms::random_crop{.height = 20, .width = 26, .padding = 6},
                                     transforms::random_flip{}};
  const pixels::pipeline chain(steps);
  for (const layout order : {layout::nchw, layout::nhwc}) {
    for (std::uint64_t draw = 0; draw < 20; ++draw) {
      const pixels::geometry drawn = chain.compile(31, 23, {.seed = 5, .epoch = 0, .draw = draw});
      const auto row = one.decode<std::uint16_t>(encoded, steps, 16,
                                                 {.type = dtype::u16, .order = order, .channels = 3}, 1 << 20, draw);
      ASSERT_EQ(one.drawn, drawn);
      for (int y = 0; y < 20; ++y) {
        for (int x = 0; x < 26; ++x) {
          const auto u = static_cast<int>(drawn.crop_x) + (drawn.flip ? 25 - x : x);
          const auto v = static_cast<int>(drawn.crop_y) + y;
          for (int c = 0; c < 3; ++c) {
            const bool inside = u >= 0 && v >= 0 && u < 31 && v < 23;
            const int at = order == layout::nchw ? (c * 20 + y) * 26 + x : (y * 26 + x) * 3 + c;
            ASSERT_EQ(row[static_cast<std::size_t>(at)], inside ? stored.at(u, v, c) : 0) << x << ' ' << y;
          }
        }
      }
    }
  }
}

TEST(wide_decoder, resizes_by_the_definition_and_rounds_once) {
  one_wide_decoder one;
  for (const int channels : {1, 3}) {
    const wide_picture stored = make_numbers(2, 61, 47, channels, 0, 65'535);
    const auto encoded = testing::make_png16(61, 47, channels, testing::as_u16(stored));
    for (const filter how : {filter::nearest, filter::bilinear, filter::bicubic}) {
      for (const auto& [height, width] : {std::pair(16, 20), std::pair(90, 75), std::pair(47, 13)}) {
        const std::vector<transform> steps{
            transforms::resize{.shorter_side = 0, .height = height, .width = width, .how = how}};
        const wide_picture expected = testing::resized(stored, {0, 0, 61, 47}, width, height, how);
        const pixels::wide_store store{.type = dtype::u16, .order = layout::nhwc, .channels = channels};
        pixels::wide_store floats = store;
        floats.type = dtype::f32;
        floats.white = 1;
        const auto row = one.decode<std::uint16_t>(encoded, steps, 16, store);
        const auto real = one.decode<float>(encoded, steps, 16, floats);
        ASSERT_EQ(row.size(), expected.numbers.size()) << one.reason;
        for (std::size_t i = 0; i < row.size(); ++i) {
          ASSERT_NEAR(real[i], expected.numbers[i], 0.02);
          ASSERT_EQ(row[i], std::clamp(std::nearbyint(real[i]), 0.0F, 65'535.0F));
        }
      }
    }
  }
}

TEST(wide_decoder, a_chain_of_crop_resize_and_flip_is_of_the_drawn_box) {
  one_wide_decoder one;
  const wide_picture stored = make_numbers(3, 80, 60, 1, 100, 60'000);
  const auto encoded = testing::make_png16(80, 60, 1, testing::as_u16(stored));
  const std::vector<transform> steps{transforms::random_resized_crop{.height = 16, .width = 16},
                                     transforms::random_flip{}};
  for (std::uint64_t draw = 0; draw < 12; ++draw) {
    const auto row = one.decode<float>(encoded, steps, 16, {.type = dtype::f32, .white = 1.0}, 1 << 20, draw);
    ASSERT_EQ(row.size(), 256U) << one.reason;
    const wide_picture expected = testing::resized(stored, one.drawn.box, 16, 16, filter::bilinear);
    for (int y = 0; y < 16; ++y) {
      for (int x = 0; x < 16; ++x) {
        const int u = one.drawn.flip ? 15 - x : x;
        ASSERT_NEAR(row[static_cast<std::size_t>(y * 16 + x)], expected.at(u, y, 0), 0.02);
      }
    }
  }
}

TEST(wide_decoder, normalizes_in_f64) {
  one_wide_decoder one;
  const wide_picture stored = make_numbers(4, 9, 7, 3, 0, 65'535);
  const auto encoded = testing::make_png16(9, 7, 3, testing::as_u16(stored));
  const auto row = one.decode<float>(
      encoded, {page(7, 9)}, 16,
      {.type = dtype::f32, .order = layout::nhwc, .channels = 3, .white = 4095.0, .statistics = imagenet});
  ASSERT_EQ(row.size(), stored.numbers.size());
  for (std::size_t i = 0; i < row.size(); ++i) {
    const double share = stored.numbers[i] / 4095;
    ASSERT_FLOAT_EQ(row[i], static_cast<float>((share - imagenet.mean[i % 3]) / imagenet.deviation[i % 3]));
  }
}

TEST(wide_decoder, leaves_alpha_aside_and_fills_three_channels_with_grey) {
  one_wide_decoder one;
  const wide_picture four = make_numbers(5, 6, 5, 4, 0, 65'535);
  const auto rgb = one.decode<std::uint16_t>(testing::make_png16(6, 5, 4, testing::as_u16(four)), {page(5, 6)}, 16,
                                             {.order = layout::nhwc, .channels = 3});
  ASSERT_EQ(rgb.size(), 90U) << one.reason;
  for (std::size_t i = 0; i < 90; ++i) ASSERT_EQ(rgb[i], four.numbers[i / 3 * 4 + i % 3]);
  const wide_picture two = make_numbers(6, 6, 5, 2, 0, 65'535);
  const auto grey =
      one.decode<std::uint16_t>(testing::make_png16(6, 5, 2, testing::as_u16(two)), {page(5, 6)}, 16, {.channels = 3});
  ASSERT_EQ(grey.size(), 90U) << one.reason;
  for (std::size_t i = 0; i < 90; ++i) ASSERT_EQ(grey[i], two.numbers[i % 30 * 2]);
}

TEST(wide_decoder, says_what_is_wrong) {
  one_wide_decoder one;
  const wide_picture stored = make_numbers(7, 12, 10, 1, 0, 65'535);
  const auto encoded = testing::make_png16(12, 10, 1, testing::as_u16(stored));
  const auto reason_of = [&](std::span<const std::byte> bytes, int bits, const pixels::wide_store& how,
                             std::int64_t pixels_max = 1 << 20) {
    EXPECT_TRUE(one.decode<std::int32_t>({bytes.begin(), bytes.end()}, {page(10, 12)}, bits, how, pixels_max).empty());
    return one.reason;
  };
  const auto png8 = testing::make_mask_png(12, 10, std::vector<std::uint16_t>(120, 7), 8, false);
  EXPECT_EQ(reason_of(png8, 16, grey16), "a PNG with unsigned samples of 8 bits, and bits() says 16");
  EXPECT_EQ(reason_of(encoded, 16, {.channels = 5}), "a PNG with 1 channel, and channels() says 5");
  EXPECT_EQ(reason_of(encoded, 16, grey16, 100), "12 x 10 pixels are more than pixels_max = 100");
  EXPECT_THAT(reason_of(encoded, 16, {.type = dtype::i16}), HasSubstr("which i16 cannot hold; as() says another type"));
  EXPECT_EQ(one.kind, stages::outcome_kind::corrupt);
  EXPECT_EQ(reason_of({}, 16, grey16), "empty: zero bytes");
  EXPECT_THAT(reason_of(testing::make_jpeg(testing::make_texture(1, 16, 16), {}), 16, grey16),
              HasSubstr("a JPEG: bits()"));
  // Cut anywhere, or with a byte changed: a corrupt sample with words.
  for (std::size_t cut = 9; cut + 20 < encoded.size(); cut += 5) {
    EXPECT_NE(reason_of(std::span(encoded).first(cut), 16, grey16), "") << cut;
  }
}

}  // namespace
}  // namespace leat
