#include "stages/pixels/picture_info.hpp"

#include "tests/support/make_picture.hpp"
#include "tests/support/seeds.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <string_view>
#include <vector>

namespace leat {
namespace {

using pixels::peek;
using stages::outcome_kind;
using ::testing::HasSubstr;
using testing::jpeg_colours;
using testing::png_colours;

std::vector<std::byte> bytes_of(std::string_view text) {
  std::vector<std::byte> out;
  for (const char letter : text) out.push_back(static_cast<std::byte>(letter));
  return out;
}

TEST(picture_info, tells_what_the_headers_say) {
  const testing::rgb_picture texture = testing::make_texture(1, 37, 21);
  const auto jpeg = peek(testing::make_jpeg(texture, {}));
  ASSERT_TRUE(jpeg);
  EXPECT_EQ(jpeg->what, pixels::format::jpeg);
  EXPECT_EQ(jpeg->width, 37);
  EXPECT_EQ(jpeg->height, 21);
  EXPECT_EQ(jpeg->channels, 3);
  EXPECT_EQ(jpeg->orientation, 1);
  EXPECT_FALSE(jpeg->progressive);
  EXPECT_TRUE(peek(testing::make_jpeg(texture, {.progressive = true}))->progressive);
  EXPECT_EQ(peek(testing::make_jpeg(texture, {.colours = jpeg_colours::grey, .h = 1, .v = 1}))->channels, 1);
  EXPECT_EQ(peek(testing::make_jpeg(texture, {.colours = jpeg_colours::ycck}))->channels, 4);

  testing::rgb_picture seen;
  const auto png = peek(testing::make_png(texture, {.colours = png_colours::rgba, .interlaced = true}, seen));
  ASSERT_TRUE(png);
  EXPECT_EQ(png->what, pixels::format::png);
  EXPECT_EQ(png->width, 37);
  EXPECT_EQ(png->height, 21);
  EXPECT_EQ(png->channels, 4);
  EXPECT_TRUE(png->progressive);
}

TEST(picture_info, finds_the_orientation_in_either_byte_order) {
  const testing::rgb_picture texture = testing::make_texture(1, 16, 16);
  testing::rgb_picture seen;
  for (int orientation = 1; orientation <= 8; ++orientation) {
    EXPECT_EQ(peek(testing::make_jpeg(texture, {.orientation = orientation}))->orientation, orientation);
    EXPECT_EQ(
        peek(testing::make_jpeg(texture, {.orientation = orientation, .orientation_big_endian = true}))->orientation,
        orientation);
    EXPECT_EQ(peek(testing::make_png(texture, {.orientation = orientation}, seen))->orientation, orientation);
  }
  EXPECT_EQ(peek(testing::make_jpeg(texture, {.orientation = 9}))->orientation, 1);
}

TEST(picture_info, names_what_it_cannot_read) {
  EXPECT_THAT(peek({}).reason(), HasSubstr("zero bytes"));
  EXPECT_EQ(peek({}).kind(), outcome_kind::corrupt);
  const auto gif = peek(bytes_of("GIF89a....."));
  EXPECT_EQ(gif.kind(), outcome_kind::unsupported);
  EXPECT_EQ(gif.reason(), "unsupported format (magic 47 49 46 38 39 61 2e 2e)");
  EXPECT_EQ(peek(bytes_of("x")).reason(), "unsupported format (magic 78)");
  EXPECT_EQ(peek(bytes_of("\xFF\xD8")).kind(), outcome_kind::corrupt);
  EXPECT_EQ(peek(bytes_of("\x89PNG\r\n\x1A\n")).kind(), outcome_kind::corrupt);

  auto lossless = testing::make_jpeg(testing::make_texture(1, 16, 16), {});
  for (std::size_t i = 0; i + 1 < lossless.size(); ++i) {
    if (lossless[i] == std::byte{0xFF} && lossless[i + 1] == std::byte{0xC0}) {
      lossless[i + 1] = std::byte{0xC3};
      break;
    }
  }
  EXPECT_EQ(peek(lossless).kind(), outcome_kind::unsupported);
  EXPECT_THAT(peek(lossless).reason(), HasSubstr("SOF3"));
}

// Every prefix and a good many damaged headers: an answer, and AddressSanitizer silent.
TEST(picture_info, never_reads_past_the_end) {
  testing::rgb_picture seen;
  const testing::rgb_picture texture = testing::make_texture(1, 24, 24);
  const std::vector<std::byte> pictures[] = {
      testing::make_jpeg(texture, {.orientation = 6}),
      testing::make_png(texture, {.colours = png_colours::palette, .orientation = 3}, seen)};
  for (const auto& whole : pictures) {
    for (std::size_t size = 0; size < std::min<std::size_t>(whole.size(), 700); ++size) {
      const std::vector<std::byte> part(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size));
      const auto info = peek(part);
      if (info) EXPECT_EQ(info->width, 24);
    }
    testing::for_each_seed(400, [&](std::uint64_t seed) {
      std::mt19937_64 random(seed);
      std::vector<std::byte> damaged(whole.begin(), whole.begin() + 200);
      for (int i = 0; i < 3; ++i) damaged[random() % damaged.size()] = static_cast<std::byte>(random());
      const auto info = peek(damaged);
      if (info) {
        EXPECT_GE(info->width, 1);
        EXPECT_GE(info->height, 1);
        EXPECT_GE(info->orientation, 1);
        EXPECT_LE(info->orientation, 8);
      } else {
        EXPECT_NE(info.reason(), "");
      }
    });
  }
}

}  // namespace
}  // namespace leat
