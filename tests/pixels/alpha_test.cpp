// Pictures with alpha over a colour, beside what libpng and libwebp say of their alpha.
#include "stages/pixels/background.hpp"
#include "tests/pixels/decode_one.hpp"
#include "tests/support/make_bmp.hpp"
#include "tests/support/make_webp.hpp"
#include "tests/support/seeds.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <webp/decode.h>

#include <png.h>

#include <cmath>
#include <cstring>
#include <random>
#include <span>
#include <string>
#include <vector>

namespace leat {
namespace {

using pixels::rgb_colour;
using ::testing::HasSubstr;
using testing::one_decoder;
using testing::plain_box;
using testing::png_colours;
using testing::rgb_picture;

constexpr rgb_colour behind{250, 3, 120};

rgb_picture over(const std::vector<std::uint8_t>& rgba, int width, int height) {
  rgb_picture made{width, height, {}};
  for (std::size_t i = 0; i < rgba.size(); i += 4) {
    const double alpha = rgba[i + 3] / 255.0;
    for (std::size_t c = 0; c < 3; ++c) {
      made.pixels.push_back(static_cast<std::uint8_t>(std::lround(rgba[i + c] * alpha + behind[c] * (1 - alpha))));
    }
  }
  return made;
}

// Of 16 bits the upper 8.
std::vector<std::uint8_t> rgba_of_png(const std::vector<std::byte>& encoded) {
  png_structp png = png_create_read_struct(PNG_LIBPNG_VER_STRING, nullptr, nullptr, nullptr);
  png_infop info = png_create_info_struct(png);
  std::span<const std::byte> rest(encoded);
  if (setjmp(png_jmpbuf(png)) != 0) std::abort();
  png_set_read_fn(png, &rest, [](png_structp p, png_bytep to, png_size_t size) {
    auto* const from = static_cast<std::span<const std::byte>*>(png_get_io_ptr(p));
    std::memcpy(to, from->data(), size);
    *from = from->subspan(size);
  });
  png_read_info(png, info);
  png_set_expand(png);
  png_set_strip_16(png);
  png_set_gray_to_rgb(png);
  png_set_add_alpha(png, 255, PNG_FILLER_AFTER);
  static_cast<void>(png_set_interlace_handling(png));
  png_read_update_info(png, info);
  const std::size_t stride = png_get_rowbytes(png, info);
  std::vector<std::uint8_t> rgba(stride * png_get_image_height(png, info));
  std::vector<png_bytep> rows;
  for (std::size_t at = 0; at < rgba.size(); at += stride) rows.push_back(rgba.data() + at);
  png_read_image(png, rows.data());
  png_destroy_read_struct(&png, &info, nullptr);
  return rgba;
}

TEST(alpha, is_laid_over_a_colour_as_a_fraction_says) {
  for (std::uint32_t value = 0; value < 256; value += 5) {
    for (std::uint32_t alpha = 0; alpha < 256; ++alpha) {
      for (const std::uint32_t under : {0U, 1U, 77U, 254U, 255U}) {
        const double exact = (value * alpha + under * (255.0 - alpha)) / 255;
        ASSERT_EQ(pixels::blended(value, alpha, under), std::lround(exact)) << value << ' ' << alpha << ' ' << under;
      }
    }
  }
}

TEST(alpha, of_every_kind_of_png) {
  one_decoder one;
  testing::for_each_seed(2, [&](std::uint64_t seed) {
    std::mt19937_64 random(seed);
    const auto between = [&](int from, int to) { return std::uniform_int_distribution<int>(from, to)(random); };
    for (const bool interlaced : {false, true}) {
      for (const png_colours colours :
           {png_colours::rgb, png_colours::rgba, png_colours::grey, png_colours::grey_alpha, png_colours::palette}) {
        for (const int depth : {1, 4, 8, 16}) {
          const bool shallow = colours == png_colours::grey || colours == png_colours::palette;
          if ((depth < 8 && !shallow) || (depth == 16 && colours == png_colours::palette)) continue;
          const bool has_samples = colours == png_colours::rgba || colours == png_colours::grey_alpha;
          for (const bool transparency : {false, !has_samples}) {
            const rgb_picture texture = testing::make_texture(random(), between(1, 70), between(1, 70));
            rgb_picture seen;
            const auto encoded = testing::make_png(
                texture, {.colours = colours, .depth = depth, .interlaced = interlaced, .transparency = transparency},
                seen);
            const rgb_picture wanted = over(rgba_of_png(encoded), texture.width, texture.height);
            ASSERT_NO_FATAL_FAILURE(
                testing::expect_every_region(one, encoded, wanted, random, 3, {.background = behind}));
            if (!has_samples && !transparency) ASSERT_EQ(wanted, seen) << "nothing to be seen through";
          }
        }
      }
    }
  });
}

TEST(alpha, of_a_png_whose_transparency_is_damaged_is_corrupt_where_it_is_wanted) {
  one_decoder one;
  rgb_picture seen;
  auto encoded = testing::make_png(testing::make_texture(1, 20, 20),
                                   {.colours = png_colours::palette, .transparency = true}, seen);
  const auto name = std::as_bytes(std::span("tRNS", 4));
  const auto at = std::search(encoded.begin(), encoded.end(), name.begin(), name.end());
  ASSERT_NE(at, encoded.end());
  at[5] ^= std::byte{1};
  one.decode(encoded, plain_box(0, 0, 20, 20), {.background = behind});
  EXPECT_EQ(one.kind, stages::outcome_kind::corrupt);
  EXPECT_EQ(one.reason, "PNG: tRNS: CRC error");
  EXPECT_EQ(one.decode(encoded, plain_box(0, 0, 20, 20)), seen);
}

TEST(alpha, of_webp) {
  one_decoder one;
  testing::for_each_seed(3, [&](std::uint64_t seed) {
    std::mt19937_64 random(seed);
    const auto between = [&](int from, int to) { return std::uniform_int_distribution<int>(from, to)(random); };
    for (const bool lossless : {false, true}) {
      for (const bool alpha : {false, true}) {
        SCOPED_TRACE(std::string(lossless ? "lossless" : "lossy") + (alpha ? " with alpha" : ""));
        const rgb_picture texture = testing::make_texture(random(), between(1, 90), between(1, 90));
        rgb_picture seen;
        const auto encoded =
            make_webp(texture, {.lossless = lossless, .alpha = alpha, .extended = between(0, 1) == 1}, seen);
        int width = 0, height = 0;
        std::uint8_t* const whole =
            WebPDecodeRGBA(reinterpret_cast<const std::uint8_t*>(encoded.data()), encoded.size(), &width, &height);
        ASSERT_NE(whole, nullptr);
        const std::vector<std::uint8_t> rgba(
            whole, whole + std::size_t{4} * static_cast<unsigned>(width) * static_cast<unsigned>(height));
        WebPFree(whole);
        ASSERT_NO_FATAL_FAILURE(
            testing::expect_every_region(one, encoded, over(rgba, width, height), random, 5, {.background = behind}));
      }
    }
  });
}

TEST(alpha, of_a_cut_webp_is_corrupt) {
  one_decoder one;
  rgb_picture seen;
  auto encoded = make_webp(testing::make_texture(3, 60, 60), {.alpha = true}, seen);
  const auto name = std::as_bytes(std::span("ALPH", 4));
  const auto at = std::search(encoded.begin(), encoded.end(), name.begin(), name.end());
  ASSERT_NE(at, encoded.end());
  std::fill_n(at + 9, std::to_integer<int>(at[4]) - 1, std::byte{0xFF});
  one.decode(encoded, plain_box(0, 0, 5, 5), {.background = behind});
  EXPECT_EQ(one.kind, stages::outcome_kind::corrupt);
  EXPECT_THAT(one.reason, HasSubstr("WebP: damaged"));
}

TEST(alpha, of_bmp) {
  one_decoder one;
  std::mt19937_64 random(5);
  const rgb_picture texture = testing::make_texture(9, 40, 30);
  for (const auto masks : {testing::bmp_masks::bgra, testing::bmp_masks::rgba, testing::bmp_masks::argb}) {
    rgb_picture seen;
    const auto encoded = testing::make_bmp(texture, {.bits = 32, .header_bytes = 124, .masks = masks}, seen);
    std::vector<std::uint8_t> rgba;
    for (int y = 0; y < seen.height; ++y) {
      for (int x = 0; x < seen.width; ++x) {
        rgba.insert(rgba.end(), seen.at(x, y), seen.at(x, y) + 3);
        rgba.push_back(static_cast<std::uint8_t>(x * 5 + y));
      }
    }
    testing::expect_every_region(one, encoded, over(rgba, seen.width, seen.height), random, 3, {.background = behind});
    testing::expect_every_region(one, encoded, seen, random, 3);
  }
}

// Nothing shines through at the edges, where pixels that are seen lie beside some that are not.
TEST(alpha, is_laid_over_before_pixels_are_mixed) {
  one_decoder one;
  rgb_picture seen;
  const rgb_picture texture = testing::make_texture(2, 64, 64);
  const auto encoded = testing::make_png(texture, {.colours = png_colours::rgba}, seen);
  const auto small = testing::scaled_box({0, 0, 64, 64}, 16, 16, filter::bilinear);
  const rgb_picture flat = over(rgba_of_png(encoded), 64, 64);
  const auto without = testing::make_png(flat, {}, seen);
  EXPECT_EQ(one.decode(encoded, small, {.background = behind}), one.decode(without, small));
}

}  // namespace
}  // namespace leat
