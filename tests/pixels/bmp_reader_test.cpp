#include "tests/pixels/decode_one.hpp"
#include "tests/pixels/mutants.hpp"
#include "tests/support/make_bmp.hpp"
#include "tests/support/seeds.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace leat {
namespace {

using stages::outcome_kind;
using testing::bmp_masks;
using testing::bmp_options;
using ::testing::HasSubstr;
using testing::make_bmp;
using testing::one_decoder;
using testing::plain_box;
using testing::rgb_picture;

std::vector<bmp_options> every_kind() {
  std::vector<bmp_options> kinds;
  for (const bool top_down : {false, true}) {
    for (const int header : {40, 52, 56, 64, 108, 124}) {
      for (const int bits : {1, 4, 8, 16, 24, 32}) {
        kinds.push_back({.bits = bits, .header_bytes = header, .top_down = top_down});
      }
    }
    for (const int header : {40, 56, 124}) {
      kinds.push_back({.bits = 16, .header_bytes = header, .top_down = top_down, .masks = bmp_masks::rgb_565});
      kinds.push_back({.bits = 16, .header_bytes = header, .top_down = top_down, .masks = bmp_masks::rgb_555});
    }
    for (const bmp_masks masks : {bmp_masks::bgra, bmp_masks::rgba, bmp_masks::argb}) {
      kinds.push_back({.bits = 32, .header_bytes = 124, .top_down = top_down, .masks = masks});
    }
    for (const int bits : {4, 8}) {
      kinds.push_back({.bits = bits, .top_down = top_down, .run_lengths = true});
      kinds.push_back({.bits = bits, .top_down = top_down, .run_lengths = true, .colours = 5});
      kinds.push_back({.bits = bits, .top_down = top_down, .colours = 7});
    }
  }
  for (const int bits : {1, 4, 8, 24}) kinds.push_back({.bits = bits, .header_bytes = 12});
  return kinds;
}

std::string text_of(const bmp_options& o) {
  return std::to_string(o.bits) + " bits, header " + std::to_string(o.header_bytes) + (o.top_down ? ", top down" : "") +
         (o.run_lengths ? ", run lengths" : "") + ", masks " + std::to_string(static_cast<int>(o.masks)) +
         ", colours " + std::to_string(o.colours);
}

TEST(bmp_reader, becomes_8_bit_rgb_whatever_is_stored) {
  one_decoder one;
  testing::for_each_seed(2, [&](std::uint64_t seed) {
    std::mt19937_64 random(seed);
    const auto between = [&](int from, int to) { return std::uniform_int_distribution<int>(from, to)(random); };
    for (const bmp_options& options : every_kind()) {
      SCOPED_TRACE(text_of(options));
      const rgb_picture texture = testing::make_texture(random(), between(1, 70), between(1, 70));
      rgb_picture seen;
      const auto encoded = make_bmp(texture, options, seen);
      ASSERT_NO_FATAL_FAILURE(testing::expect_every_region(one, encoded, seen, random, 4));
    }
  });
}

// Rows of run lengths are expanded in blocks, narrow ones many at a time.
TEST(bmp_reader, reads_run_lengths_of_narrow_and_high_pictures) {
  one_decoder one;
  const rgb_picture texture = testing::make_texture(3, 3, 5000);
  rgb_picture seen;
  const auto encoded = make_bmp(texture, {.bits = 8, .run_lengths = true}, seen);
  EXPECT_EQ(one.decode(encoded, plain_box(0, 0, 3, 5000)), seen);
  EXPECT_EQ(one.decode(encoded, plain_box(1, 2700, 2, 70)), testing::crop(seen, 1, 2700, 2, 70));
}

// A skip of rows, runs that are cut at the row's end, an index without an entry: what Pillow 13.0 makes of it.
TEST(bmp_reader, reads_run_lengths_as_pillow_does) {
  std::vector<std::byte> file;
  const auto put = [&](std::uint64_t value, int bytes) {
    for (int i = 0; i < bytes; ++i) file.push_back(static_cast<std::byte>(value >> (8 * i) & 0xFF));
  };
  put(0x4D42, 2), put(0, 8), put(14 + 40 + 8, 4);
  put(40, 4), put(4, 4), put(4, 4), put(1, 2), put(8, 2), put(1, 4), put(0, 8), put(0, 4), put(2, 4), put(0, 4);
  put(0x00102030, 4), put(0x00405060, 4);
  put(0x0107, 2);                  // seven times 1, cut after four
  put(0x0000, 2);                  // end of line
  put(0x0901, 2);                  // once 9, which has no entry: black
  put(0x0200, 2), put(0x0102, 2);  // two to the right, one up
  put(0x0101, 2);                  // once 1
  put(0x0400, 2);                  // four as they are
  put(0x01000100, 4);
  one_decoder one;
  const rgb_picture got = one.decode(file, plain_box(0, 0, 4, 4));
  ASSERT_EQ(one.reason, "");
  // Rows from the bottom: 1111, 9000, 0001, 0101.
  const auto shade = [](char which) -> std::vector<std::uint8_t> {
    return which == '0'   ? std::vector<std::uint8_t>{0x10, 0x20, 0x30}
           : which == '1' ? std::vector<std::uint8_t>{0x40, 0x50, 0x60}
                          : std::vector<std::uint8_t>{0, 0, 0};
  };
  rgb_picture expected{4, 4, {}};
  for (const char which : std::string_view("0101"
                                           "0001"
                                           "9000"
                                           "1111")) {
    const auto rgb = shade(which);
    expected.pixels.insert(expected.pixels.end(), rgb.begin(), rgb.end());
  }
  EXPECT_EQ(got, expected);
}

TEST(bmp_reader, says_what_it_does_not_read) {
  one_decoder one;
  rgb_picture seen;
  const rgb_picture texture = testing::make_texture(1, 9, 7);
  const auto refused = [&](const bmp_options& options, std::size_t at, std::uint32_t value, int bytes) {
    auto file = make_bmp(texture, options, seen);
    for (int i = 0; i < bytes; ++i)
      file[at + static_cast<std::size_t>(i)] = static_cast<std::byte>(value >> (8 * i) & 0xFF);
    one.decode(file, plain_box(0, 0, 9, 7));
    return one.reason;
  };
  EXPECT_EQ(refused({}, 14, 41, 4), "unsupported BMP with a header of 41 bytes");
  EXPECT_EQ(one.kind, outcome_kind::unsupported);
  EXPECT_EQ(refused({}, 28, 2, 2), "unsupported BMP with 2 bits per pixel");
  EXPECT_EQ(refused({}, 30, 4, 4), "unsupported BMP with a JPEG inside");
  EXPECT_EQ(refused({}, 30, 11, 4), "unsupported BMP compression 11");
  EXPECT_EQ(refused({.bits = 16, .masks = bmp_masks::rgb_565}, 54, 0xF000, 4),
            "unsupported BMP of 16 bits with unusual bit masks");
  EXPECT_EQ(refused({}, 22, 0, 4), "BMP of 9 x 0 pixels");
  EXPECT_EQ(one.kind, outcome_kind::corrupt);
}

// However many pixels a header claims: without their bytes they are refused, and no memory is taken for them.
TEST(bmp_reader, refuses_what_is_too_short_for_its_pixels) {
  pixels::scratch_budget budget(std::size_t{1} << 20);
  pixels::picture_decoder decoder(budget);
  const auto how = pixels::store::from(dtype::u8, layout::nhwc, std::nullopt);
  std::vector<std::byte> row(how.row_bytes(8, 8));
  const pixels::pipeline steps({transforms::resize{.shorter_side = 0, .height = 8, .width = 8}});
  rgb_picture seen;
  for (const bool run_lengths : {false, true}) {
    for (const unsigned side : {12'000U, 60'000U}) {
      if (run_lengths && side > 12'000U) continue;  // A few runs may skip any number of pixels.
      auto file = make_bmp(testing::make_texture(1, 9, 7), {.bits = 8, .run_lengths = run_lengths}, seen);
      for (const std::size_t at : {std::size_t{18}, std::size_t{22}}) {
        file[at] = static_cast<std::byte>(side & 0xFF);
        file[at + 1] = static_cast<std::byte>(side >> 8);
      }
      const auto result = decoder.decode(file, steps, {}, how, {}, row.data(), nullptr);
      EXPECT_EQ(result.kind(), outcome_kind::corrupt) << side;
      EXPECT_THAT(result.reason(), HasSubstr("BMP"));
    }
  }
  const auto whole = make_bmp(testing::make_texture(1, 90, 70), {}, seen);
  one_decoder one;
  for (std::size_t size = 1; size < whole.size(); size += 97) {
    one.decode({whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size)}, plain_box(0, 0, 1, 1));
    EXPECT_NE(one.kind, outcome_kind::ok);
  }
}

TEST(bmp_reader, survives_mutants) {
  testing::decode_mutants(60, [](std::mt19937_64& random) {
    const auto kinds = every_kind();
    rgb_picture seen;
    return make_bmp(
        testing::make_texture(random(), 1 + static_cast<int>(random() % 40), 1 + static_cast<int>(random() % 40)),
        kinds[random() % kinds.size()], seen);
  });
}

}  // namespace
}  // namespace leat
