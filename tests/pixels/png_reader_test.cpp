#include "tests/pixels/decode_one.hpp"
#include "tests/support/seeds.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <string>

namespace leat {
namespace {

using stages::outcome_kind;
using testing::one_decoder;
using testing::plain_box;
using testing::png_colours;
using testing::png_options;
using testing::rgb_picture;

std::vector<png_options> every_kind() {
  std::vector<png_options> kinds;
  for (const bool interlaced : {false, true}) {
    for (const png_colours colours :
         {png_colours::rgb, png_colours::rgba, png_colours::grey, png_colours::grey_alpha, png_colours::palette}) {
      for (const int depth : {1, 2, 4, 8, 16}) {
        const bool shallow = colours == png_colours::grey || colours == png_colours::palette;
        if ((depth < 8 && !shallow) || (depth == 16 && colours == png_colours::palette)) continue;
        kinds.push_back({.colours = colours, .depth = depth, .interlaced = interlaced});
        const bool has_alpha = colours == png_colours::rgba || colours == png_colours::grey_alpha;
        if (!has_alpha)
          kinds.push_back({.colours = colours, .depth = depth, .interlaced = interlaced, .transparency = true});
      }
    }
  }
  return kinds;
}

std::string text_of(const png_options& o) {
  return "colours " + std::to_string(static_cast<int>(o.colours)) + " depth " + std::to_string(o.depth) +
         (o.interlaced ? " interlaced" : "") + (o.transparency ? " tRNS" : "");
}

TEST(png_reader, becomes_8_bit_rgb_whatever_is_stored) {
  one_decoder one;
  testing::for_each_seed(2, [&](std::uint64_t seed) {
    std::mt19937_64 random(seed);
    const auto between = [&](int from, int to) { return std::uniform_int_distribution<int>(from, to)(random); };
    for (const png_options& options : every_kind()) {
      SCOPED_TRACE(text_of(options));
      const rgb_picture texture = testing::make_texture(random(), between(1, 70), between(1, 70));
      rgb_picture seen;
      const auto encoded = testing::make_png(texture, options, seen);
      for (int i = 0; i < 4; ++i) {
        const int w = between(1, texture.width);
        const int h = between(1, texture.height);
        const int x = between(0, texture.width - w);
        const int y = between(0, texture.height - h);
        const rgb_picture got = one.decode(encoded, plain_box(x, y, w, h));
        ASSERT_EQ(one.reason, "");
        ASSERT_EQ(got, testing::crop(seen, x, y, w, h));
      }
    }
  });
}

TEST(png_reader, notices_damage_in_what_it_reads) {
  one_decoder one;
  const rgb_picture texture = testing::make_texture(4, 90, 80);
  rgb_picture seen;
  for (const bool interlaced : {false, true}) {
    const auto whole = testing::make_png(texture, {.interlaced = interlaced}, seen);
    // A flipped bit in the data: a checksum that does not fit, or a stream that makes no sense.
    auto damaged = whole;
    damaged[damaged.size() / 2] ^= std::byte{0x10};
    one.decode(damaged, plain_box(0, 0, 90, 80));
    EXPECT_EQ(one.kind, outcome_kind::corrupt);
    EXPECT_THAT(one.reason, ::testing::StartsWith("PNG: "));

    for (const std::size_t size : {std::size_t{40}, whole.size() / 3, whole.size() - 30}) {
      const std::vector<std::byte> part(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size));
      one.decode(part, plain_box(0, 0, 90, 80));
      EXPECT_EQ(one.kind, outcome_kind::corrupt);
    }
  }
  // Below the region nothing is read.
  const auto whole = testing::make_png(texture, {}, seen);
  const std::vector<std::byte> upper(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(whole.size() * 3 / 4));
  EXPECT_EQ(one.decode(upper, plain_box(10, 5, 30, 20)), testing::crop(seen, 10, 5, 30, 20));
  EXPECT_EQ(one.reason, "");
}

}  // namespace
}  // namespace leat
