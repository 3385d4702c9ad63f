// Arrays of pixels are the pictures that a PNG of the same pixels is.
#include "base/half.hpp"
#include "base/text.hpp"
#include "stages/pixels/array_pixels.hpp"
#include "tests/pixels/decode_one.hpp"
#include "tests/support/seeds.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

namespace leat {
namespace {

using pixels::array_pixels;
using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::one_decoder;
using testing::plain_box;
using testing::rgb_picture;

/// Interleaved samples of a picture, laid out as the array says.
std::vector<std::byte> array_of(const std::vector<std::uint8_t>& samples, const array_pixels& how) {
  const auto channels = static_cast<std::size_t>(how.channels);
  const std::size_t plane = samples.size() / channels;
  std::vector<std::byte> bytes(samples.size() * size_bytes(how.type));
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const std::size_t to = how.planar ? i % channels * plane + i / channels : i;
    const double value = samples[i] * how.white / 255;
    const auto put = [&](auto number) { std::memcpy(bytes.data() + to * sizeof number, &number, sizeof number); };
    switch (how.type) {
      case dtype::u16:
        put(static_cast<std::uint16_t>(std::lround(value)));
        break;
      case dtype::f16:
        put(f16_bits(static_cast<float>(value)));
        break;
      case dtype::f32:
        put(static_cast<float>(value));
        break;
      case dtype::f64:
        put(value);
        break;
      default:
        put(static_cast<std::uint8_t>(std::lround(value)));
    }
  }
  return bytes;
}

TEST(array_reader, gives_the_pixels_of_a_png_in_every_region) {
  one_decoder one;
  testing::for_each_seed(3, [&](std::uint64_t seed) {
    std::mt19937_64 random(seed);
    const auto between = [&](int from, int to) { return std::uniform_int_distribution<int>(from, to)(random); };
    for (const int channels : {1, 3, 4}) {
      for (const bool planar : {false, true}) {
        for (const auto& [type, white] : std::vector<std::pair<dtype, double>>{{dtype::u8, 255},
                                                                               {dtype::u16, 65535},
                                                                               {dtype::u16, 4080},
                                                                               {dtype::f16, 1},
                                                                               {dtype::f32, 1},
                                                                               {dtype::f32, 255},
                                                                               {dtype::f64, 1}}) {
          const rgb_picture texture = testing::make_texture(random(), between(1, 60), between(1, 60));
          std::vector<std::uint8_t> samples;
          rgb_picture wanted = texture;
          for (std::size_t i = 0; i < texture.pixels.size(); i += 3) {
            for (int c = 0; c < channels; ++c) {
              samples.push_back(c == 3 ? static_cast<std::uint8_t>(random())
                                       : texture.pixels[i + static_cast<std::size_t>(c)]);
            }
            if (channels == 1) wanted.pixels[i + 1] = wanted.pixels[i + 2] = wanted.pixels[i];
          }
          const array_pixels how{texture.height, texture.width, channels, planar, type, white};
          ASSERT_NO_FATAL_FAILURE(testing::expect_every_region(one, array_of(samples, how), wanted, random, 4,
                                                               {.exif_orientation = true, .array = how}));
        }
      }
    }
  });
}

TEST(array_reader, lays_alpha_over_a_colour) {
  one_decoder one;
  const array_pixels how{1, 2, 4, false, dtype::u8, 255};
  const std::vector<std::byte> bytes = array_of({200, 100, 0, 0, 200, 100, 0, 255}, how);
  EXPECT_EQ(one.decode(bytes, plain_box(0, 0, 2, 1), {.background = pixels::rgb_colour{7, 8, 9}, .array = how}).pixels,
            (std::vector<std::uint8_t>{7, 8, 9, 200, 100, 0}));
}

TEST(array_reader, says_which_number_is_none_of_a_pixel) {
  one_decoder one;
  for (const float wrong : {254.0F, -0.5F, std::numeric_limits<float>::quiet_NaN()}) {
    const array_pixels how{1, 2, 1, false, dtype::f32, 1};
    std::vector<std::byte> bytes(8);
    std::memcpy(bytes.data() + 4, &wrong, 4);
    one.decode(bytes, plain_box(0, 0, 2, 1), {.array = how});
    EXPECT_EQ(one.kind, stages::outcome_kind::corrupt);
    EXPECT_THAT(one.reason, AllOf(HasSubstr("0 to 1"), HasSubstr("white")));
  }
  one.decode(std::vector<std::byte>(7), plain_box(0, 0, 2, 1), {.array = array_pixels{1, 2, 1, false, dtype::f32, 1}});
  EXPECT_THAT(one.reason, HasSubstr("holds 7 bytes where a picture of 1 x 2 pixels has 8"));
  one.decode(std::vector<std::byte>(8), plain_box(0, 0, 2, 1),
             {.pixels_max = 1, .array = array_pixels{1, 2, 1, false, dtype::f32, 1}});
  EXPECT_EQ(one.kind, stages::outcome_kind::unsupported);
}

struct shape_case {
  dimensions shape;
  dtype type;
  pixels::array_reading how;
  std::string refused;  // empty: taken
  int height = 0, width = 0, channels = 0;
  bool planar = false;
};

TEST(array_pixels, are_told_by_shape_or_refused_in_words) {
  const std::vector<shape_case> cases = {
      {{28, 30}, dtype::u8, {}, "", 28, 30, 1, false},
      {{28, 30, 1}, dtype::u8, {}, "", 28, 30, 1, false},
      {{1, 28, 30}, dtype::u8, {}, "", 28, 30, 1, true},
      {{32, 31, 3}, dtype::u8, {}, "", 32, 31, 3, false},
      {{3, 32, 31}, dtype::u8, {}, "", 32, 31, 3, true},
      {{32, 31, 4}, dtype::u8, {}, "", 32, 31, 4, false},
      {{4, 31, 3}, dtype::u8, {}, "", 4, 31, 3, false},
      {{3, 31, 3}, dtype::u8, {}, ".stored(leat::layout::nchw)"},
      {{1, 1, 1}, dtype::u8, {}, ".stored(leat::layout::nhwc)"},
      {{3, 31, 3}, dtype::u8, {.order = layout::nchw, .white = {}}, "", 31, 3, 3, true},
      {{3, 31, 3}, dtype::u8, {.order = layout::nhwc, .white = {}}, "", 3, 31, 3, false},
      {{4, 31, 30}, dtype::u8, {}, "is no picture"},
      {{4, 31, 30}, dtype::u8, {.order = layout::nchw, .white = {}}, "", 31, 30, 4, true},
      {{5, 31, 3}, dtype::u8, {.order = layout::nchw, .white = {}}, "5 channels"},
      {{3072}, dtype::u8, {}, "1 axis"},
      {{2, 3, 4, 5}, dtype::u8, {}, "4 axes"},
      {{0, 30}, dtype::u8, {}, "without a pixel"},
      {{28, 30}, dtype::u16, {}, ".white(65535)"},
      {{28, 30}, dtype::u16, {.order = {}, .white = 4095}, "", 28, 30, 1, false},
      {{28, 30}, dtype::f32, {}, "", 28, 30, 1, false},
      {{28, 30}, dtype::i64, {}, "numbers of i64, and pixels are u8"},
      {{28, 30}, dtype::boolean, {}, "numbers of bool, and"},
  };
  for (const shape_case& each : cases) {
    SCOPED_TRACE(str_cat("case ", &each - cases.data()));
    const stages::outcome<array_pixels> made = pixels::pixels_of(each.shape, each.type, each.how);
    ASSERT_EQ(static_cast<bool>(made), each.refused.empty());
    if (!made) {
      EXPECT_THAT(made.reason(), HasSubstr(each.refused));
      continue;
    }
    EXPECT_EQ(made->height, each.height);
    EXPECT_EQ(made->width, each.width);
    EXPECT_EQ(made->channels, each.channels);
    EXPECT_EQ(made->planar, each.planar);
  }
}

}  // namespace
}  // namespace leat
