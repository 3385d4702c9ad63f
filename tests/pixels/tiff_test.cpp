// TIFF: every way in which samples may lie gives the numbers that were stored, and no header takes memory that was not computed.
#include "stages/pixels/tiff_blocks.hpp"
#include "tests/pixels/decode_one.hpp"
#include "tests/pixels/wide_numbers.hpp"
#include "tests/support/allocation_counter.hpp"
#include "tests/support/make_tiff.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tiffio.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <string>
#include <vector>

namespace leat {
namespace {

using ::testing::HasSubstr;
using testing::make_numbers;
using testing::make_tiff;
using testing::one_wide_decoder;
using testing::tiff_options;
using testing::wide_picture;

constexpr int width = 37;
constexpr int height = 29;

std::vector<transform> whole_page() { return {transforms::center_crop{height, width}}; }
// A part of it, of which no side lies on a block's.
std::vector<transform> middle() { return {transforms::center_crop{13, 17}}; }

std::vector<std::byte> tiff_of(const wide_picture& of, const tiff_options& how) {
  return make_tiff(of.width, of.height, of.channels, of.numbers, how);
}

// Page and crop of it are what is stored.
template <class Element>
void expect_stored(const wide_picture& stored, const tiff_options& how, dtype type, const std::string& what) {
  one_wide_decoder one;
  const auto encoded = tiff_of(stored, how);
  const int channels = stored.channels - (how.alpha ? 1 : 0);
  const pixels::wide_store store{.type = type, .order = layout::nhwc, .channels = channels};
  for (const bool is_part : {false, true}) {
    const auto row = one.decode<Element>(encoded, is_part ? middle() : whole_page(), how.bits, store);
    ASSERT_EQ(one.reason, "") << what;
    const int w = is_part ? 17 : width;
    const int h = is_part ? 13 : height;
    for (int y = 0; y < h; ++y) {
      for (int x = 0; x < w; ++x) {
        for (int c = 0; c < channels; ++c) {
          const double expected = stored.at(x + (width - w) / 2, y + (height - h) / 2, c);
          ASSERT_EQ(static_cast<double>(row[static_cast<std::size_t>((y * w + x) * channels + c)]), expected)
              << what << ' ' << x << ' ' << y << ' ' << c;
        }
      }
    }
  }
}

TEST(tiff, is_what_is_stored_in_every_layout_and_compression) {
  for (const int channels : {1, 3, 5}) {
    const wide_picture stored = make_numbers(1, width, height, channels, 0, 65'535);
    for (const int compression :
         {COMPRESSION_NONE, COMPRESSION_LZW, COMPRESSION_ADOBE_DEFLATE, COMPRESSION_PACKBITS, COMPRESSION_ZSTD}) {
      for (const int tile : {0, 16}) {
        for (const bool planar : {false, true}) {
          for (const bool big_endian : {false, true}) {
            tiff_options how{.tile = tile, .compression = compression, .planar = planar, .big_endian = big_endian};
            how.big_tiff = big_endian == planar;
            const bool predicts = compression == COMPRESSION_LZW || compression == COMPRESSION_ADOBE_DEFLATE;
            if (predicts && tile != 0) how.predictor = 2;
            const std::string what = std::to_string(channels) + " channels, compression " +
                                     std::to_string(compression) + ", tile " + std::to_string(tile) +
                                     (planar ? ", planar" : "") + (big_endian ? ", big endian" : "");
            ASSERT_NO_FATAL_FAILURE(expect_stored<std::uint16_t>(stored, how, dtype::u16, what));
          }
        }
      }
    }
  }
}

TEST(tiff, is_what_is_stored_of_every_kind_of_sample) {
  expect_stored<std::uint8_t>(make_numbers(2, width, height, 5, 0, 255), {.bits = 8}, dtype::u8, "u8");
  expect_stored<std::int16_t>(make_numbers(3, width, height, 2, -32'768, 32'767), {.kind = 2}, dtype::i16, "i16");
  expect_stored<float>(make_numbers(4, width, height, 1, -32'768, 32'767), {.kind = 2}, dtype::f32, "i16 as f32");
  expect_stored<std::int32_t>(make_numbers(5, width, height, 1, 0, 16'777'216), {.bits = 32}, dtype::i32, "u32");
  expect_stored<float>(make_numbers(5, width, height, 1, 0, 16'777'216), {.bits = 32}, dtype::f32, "u32 as f32");
  expect_stored<std::int32_t>(make_numbers(6, width, height, 1, -16'777'216, 5), {.bits = 32, .kind = 2}, dtype::i32,
                              "i32");
  wide_picture real = make_numbers(7, width, height, 5, -1000, 1000);
  for (double& number : real.numbers) number = static_cast<float>(number / 7);
  real.numbers[3] = std::numeric_limits<double>::infinity();
  for (const int predictor : {1, 2, 3}) {
    for (const bool big_endian : {false, true}) {
      if (predictor == 3 && big_endian) continue;  // says_what_it_does_not_read
      expect_stored<float>(real,
                           {.bits = 32,
                            .kind = 3,
                            .tile = 16,
                            .compression = COMPRESSION_ADOBE_DEFLATE,
                            .predictor = predictor,
                            .big_endian = big_endian},
                           dtype::f32,
                           "f32 with predictor " + std::to_string(predictor) + (big_endian ? ", big endian" : ""));
    }
  }
  expect_stored<std::uint16_t>(make_numbers(8, width, height, 4, 0, 65'535),
                               {.photometric = PHOTOMETRIC_RGB, .alpha = true}, dtype::u16, "alpha");
}

TEST(tiff, resizes_floats_by_the_definition) {
  one_wide_decoder one;
  wide_picture real = make_numbers(9, width, height, 5, -1000, 1000);
  for (double& number : real.numbers) number = static_cast<float>(number / 64);
  const auto encoded = tiff_of(real, {.bits = 32, .kind = 3, .tile = 16});
  const wide_picture expected = testing::resized(real, {0, 0, width, height}, 11, 12, filter::bicubic);
  const auto row = one.decode<float>(
      encoded, {transforms::resize{.shorter_side = 0, .height = 12, .width = 11, .how = filter::bicubic}}, 32,
      {.type = dtype::f32, .order = layout::nhwc, .channels = 5});
  ASSERT_EQ(row.size(), expected.numbers.size()) << one.reason;
  for (std::size_t i = 0; i < row.size(); ++i) ASSERT_NEAR(row[i], expected.numbers[i], 1e-5);
}

TEST(tiff, of_8_bits_is_a_picture_like_any_other) {
  testing::one_decoder one;
  const wide_picture rgb = make_numbers(10, width, height, 3, 0, 255);
  testing::rgb_picture expected{width, height, {rgb.numbers.begin(), rgb.numbers.end()}};
  const pixels::geometry all = testing::plain_box(0, 0, width, height);
  for (const int tile : {0, 16}) {
    const auto encoded =
        tiff_of(rgb, {.bits = 8, .tile = tile, .compression = COMPRESSION_LZW, .photometric = PHOTOMETRIC_RGB});
    EXPECT_EQ(one.decode(encoded, all), expected) << one.reason;
    EXPECT_EQ(one.decode(encoded, testing::plain_box(5, 9, 20, 13)), testing::crop(expected, 5, 9, 20, 13));
  }
  const wide_picture grey = make_numbers(11, width, height, 1, 0, 255);
  for (const int photometric : {PHOTOMETRIC_MINISBLACK, PHOTOMETRIC_MINISWHITE, PHOTOMETRIC_PALETTE}) {
    const auto got = one.decode(tiff_of(grey, {.bits = 8, .photometric = photometric}), all);
    ASSERT_EQ(one.reason, "");
    for (std::size_t i = 0; i < grey.numbers.size(); ++i) {
      const auto number = static_cast<std::uint8_t>(grey.numbers[i]);
      const auto inverse = static_cast<std::uint8_t>(255 - number);
      std::array<std::uint8_t, 3> colour{number, number, number};
      if (photometric == PHOTOMETRIC_MINISWHITE) colour = {inverse, inverse, inverse};
      if (photometric == PHOTOMETRIC_PALETTE) colour = {number, inverse, static_cast<std::uint8_t>(number * 3)};
      for (std::size_t c = 0; c < 3; ++c) ASSERT_EQ(got.pixels[3 * i + c], colour[c]) << photometric;
    }
  }
  const wide_picture rgba = make_numbers(12, width, height, 4, 0, 255);
  const auto with_alpha = tiff_of(rgba, {.bits = 8, .photometric = PHOTOMETRIC_RGB, .alpha = true});
  const auto dropped = one.decode(with_alpha, all);
  const auto laid = one.decode(with_alpha, all, {.background = pixels::rgb_colour{255, 255, 255}});
  ASSERT_EQ(one.reason, "");
  for (std::size_t i = 0; i < dropped.pixels.size(); ++i) {
    const double value = rgba.numbers[i / 3 * 4 + i % 3];
    const double alpha = rgba.numbers[i / 3 * 4 + 3];
    ASSERT_EQ(dropped.pixels[i], value);
    ASSERT_EQ(laid.pixels[i], std::floor((value * alpha + 255 * (255 - alpha)) / 255 + 0.5));
  }
}

// The divided colours are Pillow 13's, of convert("RGB").
TEST(tiff, colours_that_alpha_multiplied_are_divided_or_laid_over_the_background_once) {
  testing::one_decoder one;
  const wide_picture rgba{4, 1, 4, {10, 20, 30, 40, 200, 7, 0, 100, 9, 8, 7, 0, 1, 2, 3, 255}};
  const auto encoded = tiff_of(rgba, {.bits = 8, .photometric = PHOTOMETRIC_RGB, .alpha = true, .premultiplied = true});
  const pixels::geometry all = testing::plain_box(0, 0, 4, 1);
  EXPECT_EQ(one.decode(encoded, all).pixels, (std::vector<std::uint8_t>{63, 127, 191, 255, 17, 0, 0, 0, 0, 1, 2, 3}))
      << one.reason;
  EXPECT_EQ(one.decode(encoded, all, {.background = pixels::rgb_colour{255, 100, 0}}).pixels,
            (std::vector<std::uint8_t>{225, 104, 30, 255, 68, 0, 255, 108, 7, 1, 2, 3}))
      << one.reason;
}

TEST(tiff, numbers_that_a_half_cannot_hold_are_corrupt) {
  one_wide_decoder one;
  const auto halves = [&](std::vector<double> numbers, dtype type, std::optional<double> white = std::nullopt) {
    const wide_picture row{static_cast<int>(numbers.size()), 1, 1, std::move(numbers)};
    return one.decode<std::uint16_t>(tiff_of(row, {.bits = 32, .kind = 3}), {transforms::center_crop{1, row.width}}, 32,
                                     {.type = type, .white = white});
  };
  constexpr double infinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(halves({65'519, -65'519, infinity}, dtype::f16), (std::vector<std::uint16_t>{0x7BFF, 0xFBFF, 0x7C00}))
      << one.reason;
  EXPECT_EQ(halves({100'000}, dtype::f16, 2), (std::vector<std::uint16_t>{0x7A1A})) << one.reason;
  EXPECT_TRUE(halves({1, 100'000}, dtype::f16).empty());
  EXPECT_EQ(one.reason, "the number 100000 at line 0, which f16 cannot hold; as() says another type");
  EXPECT_EQ(one.kind, stages::outcome_kind::corrupt);
  EXPECT_TRUE(halves({-65'520}, dtype::f16).empty());
  EXPECT_TRUE(halves({std::numeric_limits<float>::max()}, dtype::bf16).empty());
  EXPECT_EQ(halves({100'000}, dtype::bf16), (std::vector<std::uint16_t>{0x47C3})) << one.reason;
  // An overshoot of bicubic weights is no damage.
  const wide_picture edge{8, 1, 1, {0, 0, 0, 0, 65'504, 65'504, 65'504, 65'504}};
  const auto row = one.decode<std::uint16_t>(
      tiff_of(edge, {.bits = 32, .kind = 3}),
      {transforms::resize{.shorter_side = 0, .height = 1, .width = 19, .how = filter::bicubic}}, 32,
      {.type = dtype::f16});
  EXPECT_THAT(row, ::testing::Contains(0x7BFF)) << one.reason;
  EXPECT_THAT(row, ::testing::Not(::testing::Contains(0x7C00)));
}

// Processors differ in the sign of a NaN that they make: x86-64's has one.
TEST(tiff, infinities_that_meet_make_the_same_bits_on_every_processor) {
  one_wide_decoder one;
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const wide_picture row{4, 1, 1, {infinity, -infinity, infinity, -infinity}};
  const auto encoded = tiff_of(row, {.bits = 32, .kind = 3});
  const transform half = transforms::resize{.shorter_side = 0, .height = 1, .width = 2, .how = filter::bilinear};
  for (const std::optional<normalization>& by :
       {std::optional<normalization>(), std::optional<normalization>({{0.5, 0.5, 0.5}, {2, 2, 2}})}) {
    const auto as = [&](dtype type) { return pixels::wide_store{.type = type, .statistics = by}; };
    EXPECT_EQ(one.decode<std::uint32_t>(encoded, {half}, 32, as(dtype::f32)), std::vector<std::uint32_t>(2, 0x7FC00000))
        << one.reason;
    EXPECT_EQ(one.decode<std::uint16_t>(encoded, {half}, 32, as(dtype::f16)), std::vector<std::uint16_t>(2, 0x7E00))
        << one.reason;
    EXPECT_EQ(one.decode<std::uint16_t>(encoded, {half}, 32, as(dtype::bf16)), std::vector<std::uint16_t>(2, 0x7FC0))
        << one.reason;
  }
}

TEST(tiff, of_jpeg_is_close_to_its_picture) {
  testing::one_decoder one;
  const testing::rgb_picture smooth = testing::make_texture(13, 64, 48);
  const std::vector<double> numbers(smooth.pixels.begin(), smooth.pixels.end());
  for (const int tile : {0, 16}) {
    const auto encoded = make_tiff(
        64, 48, 3, numbers,
        {.bits = 8, .tile = tile, .rows = 16, .compression = COMPRESSION_JPEG, .photometric = PHOTOMETRIC_YCBCR});
    const auto got = one.decode(encoded, testing::plain_box(0, 0, 64, 48));
    ASSERT_EQ(one.reason, "");
    double sum = 0;
    for (std::size_t i = 0; i < numbers.size(); ++i) sum += std::abs(got.pixels[i] - numbers[i]);
    EXPECT_LT(sum / static_cast<double>(numbers.size()), 12);
  }
}

TEST(tiff, stands_upright_where_that_is_asked_for) {
  testing::one_decoder one;
  const wide_picture rgb = make_numbers(14, 6, 4, 3, 0, 255);
  const testing::rgb_picture stored{6, 4, {rgb.numbers.begin(), rgb.numbers.end()}};
  const auto encoded = tiff_of(rgb, {.bits = 8, .photometric = PHOTOMETRIC_RGB, .orientation = 6});
  EXPECT_EQ(one.decode(encoded, testing::plain_box(0, 0, 4, 6), {.exif_orientation = true}),
            testing::turn_upright(stored, 6))
      << one.reason;
}

// The number that a tag of a little-endian classic TIFF has.
void set_tag(std::vector<std::byte>& file, unsigned tag, std::uint32_t number) {
  const auto u16 = [&](std::size_t at) {
    return std::to_integer<unsigned>(file[at]) | std::to_integer<unsigned>(file[at + 1]) << 8;
  };
  const std::size_t directory = u16(4) | u16(6) << 16;
  for (std::size_t i = 0; i < u16(directory); ++i) {
    const std::size_t at = directory + 2 + 12 * i;
    if (u16(at) != tag) continue;
    const std::uint32_t type = 4;
    std::memcpy(&file[at + 2], &type, 2);
    std::memcpy(&file[at + 8], &number, 4);
  }
}

TEST(tiff, says_what_it_does_not_read) {
  one_wide_decoder wide;
  testing::one_decoder plain;
  const wide_picture stored = make_numbers(15, width, height, 1, 0, 255);
  const auto wide_reason = [&](const std::vector<std::byte>& encoded) {
    static_cast<void>(wide.decode<float>(encoded, whole_page(), 16, {.type = dtype::f32}));
    return wide.reason;
  };
  const auto plain_reason = [&](const std::vector<std::byte>& encoded) {
    static_cast<void>(plain.decode(encoded, testing::plain_box(0, 0, width, height)));
    return plain.reason;
  };
  EXPECT_EQ(wide_reason(tiff_of(stored, {.bits = 32, .kind = 3})),
            "a TIFF with float samples of 32 bits, and bits() says 16");
  EXPECT_EQ(wide_reason(tiff_of(stored, {.bits = 16, .compression = COMPRESSION_LZMA})),
            "a TIFF compressed by LZMA; LZW, Deflate, Zstandard, PackBits and JPEG are read");
  EXPECT_EQ(wide_reason(tiff_of(
                stored, {.bits = 32, .kind = 3, .compression = COMPRESSION_LZW, .predictor = 3, .big_endian = true})),
            "a big-endian TIFF of floats with predictor 3, whose order of bytes is not certain");
  EXPECT_EQ(wide_reason(tiff_of(stored, {.bits = 8, .photometric = PHOTOMETRIC_PALETTE})),
            "a TIFF of a palette, whose numbers are indexes");
  EXPECT_EQ(plain_reason(tiff_of(stored, {})), "a TIFF with samples of 16 bits; image::bits(16) reads them");
  EXPECT_EQ(plain_reason(tiff_of(make_numbers(16, width, height, 1, -9, 9), {.bits = 8, .kind = 2})),
            "a TIFF with signed samples of 8 bits; write them unsigned");
  EXPECT_EQ(plain_reason(tiff_of(stored, {.bits = 8, .fill_order = 2})),
            "a TIFF with the bits of each byte turned round (FillOrder 2)");
  const wide_picture three = make_numbers(16, width, height, 3, 0, 255);
  for (const int photometric : {PHOTOMETRIC_MINISBLACK, PHOTOMETRIC_MINISWHITE, PHOTOMETRIC_PALETTE}) {
    EXPECT_THAT(plain_reason(tiff_of(three, {.bits = 8, .photometric = photometric})),
                HasSubstr("with 3 channels; write it with the photometric interpretation"));
  }
  std::vector<std::byte> apart =
      tiff_of(three, {.bits = 8, .rows = 8, .compression = COMPRESSION_JPEG, .planar = true});
  set_tag(apart, TIFFTAG_PHOTOMETRIC, PHOTOMETRIC_YCBCR);
  EXPECT_EQ(plain_reason(apart), "a TIFF of YCbCr whose channels lie apart");
  static_cast<void>(wide.decode<float>(
      tiff_of(make_numbers(16, width, height, 4, 0, 9), {.photometric = PHOTOMETRIC_RGB, .alpha = true}), whole_page(),
      16, {.type = dtype::f32, .channels = 4}));
  EXPECT_EQ(wide.reason, "a TIFF with 3 channels beside its alpha, and channels() says 4");
  EXPECT_EQ(plain_reason(tiff_of(make_numbers(16, width, height, 5, 0, 255), {.bits = 8})),
            "a TIFF with 5 channels; image::channels(5) reads them");
  wide_picture large = make_numbers(17, width, height, 1, 0, 10);
  large.numbers[40] = 16'777'217;
  static_cast<void>(wide.decode<float>(tiff_of(large, {.bits = 32}), whole_page(), 32, {.type = dtype::f32}));
  EXPECT_THAT(wide.reason, HasSubstr("the whole number 16777217 of 32 bits"));
  static_cast<void>(wide.decode<std::uint16_t>(tiff_of(make_numbers(18, width, height, 1, -5, 5), {.kind = 2}),
                                               whole_page(), 16, {.type = dtype::u16}));
  EXPECT_THAT(wide.reason, HasSubstr("the number -"));
}

TEST(tiff, cut_or_damaged_is_a_corrupt_sample_with_words) {
  one_wide_decoder one;
  const wide_picture stored = make_numbers(19, width, height, 3, 0, 65'535);
  const pixels::wide_store how{.type = dtype::u16, .channels = 3};
  std::mt19937_64 random(20);
  for (const int tile : {0, 16}) {
    for (const int compression : {COMPRESSION_NONE, COMPRESSION_LZW, COMPRESSION_ADOBE_DEFLATE, COMPRESSION_ZSTD}) {
      const auto encoded = tiff_of(stored, {.tile = tile, .compression = compression});
      for (std::size_t cut = 0; cut < encoded.size(); cut += 97) {
        const std::vector<std::byte> some(encoded.begin(), encoded.begin() + static_cast<std::ptrdiff_t>(cut));
        static_cast<void>(one.decode<std::uint16_t>(some, whole_page(), 16, how));
        ASSERT_NE(one.kind, stages::outcome_kind::ok) << cut;
        ASSERT_GT(one.reason.size(), 4U);
      }
      for (int i = 0; i < 400; ++i) {
        std::vector<std::byte> changed = encoded;
        for (int n = 0; n < 3; ++n) {
          // The directory lies at the end.
          const std::size_t from_end = random() % 4 == 0 ? random() % changed.size() : random() % 300;
          changed[changed.size() - 1 - from_end] = static_cast<std::byte>(random());
        }
        static_cast<void>(one.decode<std::uint16_t>(changed, whole_page(), 16, how));
        if (one.kind != stages::outcome_kind::ok) {
          ASSERT_GT(one.reason.size(), 4U);
        }
      }
    }
  }
}

TEST(tiff, a_bomb_is_refused_without_memory) {
  one_wide_decoder one;
  const wide_picture stored = make_numbers(21, 64, 64, 1, 0, 65'535);
  const auto refused = [&](std::vector<std::byte> file, std::int64_t pixels_max = std::int64_t{1} << 40) {
    static_cast<void>(
        one.decode<std::uint16_t>(file, {transforms::center_crop{8, 8}}, 16, {.type = dtype::u16}, pixels_max));
    EXPECT_NE(one.kind, stages::outcome_kind::ok);
    return one.reason;
  };
  std::vector<std::byte> wide = tiff_of(stored, {.rows = 64, .compression = COMPRESSION_LZW});
  set_tag(wide, TIFFTAG_IMAGEWIDTH, 1U << 30);
  set_tag(wide, TIFFTAG_IMAGELENGTH, 64);
  EXPECT_THAT(refused(wide, 1 << 20), HasSubstr("more than pixels_max"));
  EXPECT_THAT(refused(wide), HasSubstr("scratch"));
  std::vector<std::byte> tiled = tiff_of(stored, {.tile = 64, .compression = COMPRESSION_ADOBE_DEFLATE});
  set_tag(tiled, TIFFTAG_TILEWIDTH, 1U << 30);
  set_tag(tiled, TIFFTAG_TILELENGTH, 1U << 30);
  EXPECT_THAT(refused(tiled), HasSubstr("blocks of 1073741824 x 1073741824"));
  set_tag(tiled, TIFFTAG_TILELENGTH, 16);
  EXPECT_THAT(refused(tiled), HasSubstr("lists 1 tiles where its size needs 4"));
  EXPECT_LE(one.budget.peak(), std::size_t{1} << 20);
}

// A frame of Zstandard with one empty block: of so many bytes, without a window; or with this window.
std::vector<std::uint8_t> empty_frame(std::int64_t content, std::uint8_t window) {
  std::vector<std::uint8_t> made{0x28, 0xB5, 0x2F, 0xFD};
  if (content > 0) {
    made.push_back(0xA0);
    for (int shift = 0; shift < 32; shift += 8) made.push_back(static_cast<std::uint8_t>(content >> shift));
  } else {
    made.insert(made.end(), {0x00, window});
  }
  made.insert(made.end(), {0x01, 0x00, 0x00});
  return made;
}

TEST(tiff, looks_at_every_window_of_zstandard_and_closes_what_it_refuses) {
  const wide_picture stored = make_numbers(23, 16, 4, 1, 0, 255);
  const auto with_strip = [&](const std::vector<std::vector<std::uint8_t>>& parts) {
    std::vector<std::byte> file =
        tiff_of(stored, {.bits = 8, .rows = 4, .compression = COMPRESSION_ZSTD, .photometric = PHOTOMETRIC_PALETTE});
    const std::size_t at = file.size();
    for (const std::vector<std::uint8_t>& part : parts) {
      for (const std::uint8_t each : part) file.push_back(std::byte{each});
    }
    set_tag(file, TIFFTAG_STRIPBYTECOUNTS, static_cast<std::uint32_t>(file.size() - at));
    set_tag(file, TIFFTAG_STRIPOFFSETS, static_cast<std::uint32_t>(at));
    return file;
  };
  const std::vector<std::uint8_t> small = empty_frame(0, 13 << 3);  // 8 MiB
  const std::vector<std::uint8_t> large = empty_frame(0, 13 << 3 | 1);
  const std::vector<std::uint8_t> skipped{0x51, 0x2A, 0x4D, 0x18, 3, 0, 0, 0, 7, 7, 7};
  const std::vector<std::uint8_t> old{0x27, 0xB5, 0x2F, 0xFD, 0, 0, 0, 0, 0, 0};
  const pixels::rectangle region{0, 0, 16, 4};
  pixels::scratch_budget budget(std::size_t{64} << 20);
  const auto starts = [&](const std::vector<std::byte>& file) {
    pixels::scratch_arena arena(budget);
    pixels::tiff_blocks reader(arena);
    arena.begin();
    EXPECT_TRUE(reader.open(file, nullptr));
    EXPECT_TRUE(arena.reserve(reader.scratch_bytes(region)));
    const auto started = reader.start(region);
    EXPECT_EQ(reader.palette().red != nullptr, bool(started));  // else libtiff still holds the file
    if (!started) {
      EXPECT_THAT(started.reason(), HasSubstr("a window above 8 MiB"));
    }
    reader.stop_reading();
    arena.end();
    return bool(started);
  };
  EXPECT_TRUE(starts(with_strip({small})));
  EXPECT_TRUE(starts(with_strip({skipped, small, empty_frame(8 << 20, 0)})));
  EXPECT_FALSE(starts(with_strip({large})));
  EXPECT_FALSE(starts(with_strip({small, large})));
  EXPECT_FALSE(starts(with_strip({skipped, large})));
  EXPECT_FALSE(starts(with_strip({small, empty_frame((8 << 20) + 1, 0)})));
  EXPECT_FALSE(starts(with_strip({small, old})));
}

TEST(tiff, takes_no_more_than_it_said) {
  LEAT_NEEDS_ALLOCATION_COUNTER();
  const wide_picture rgb = make_numbers(22, 330, 250, 3, 0, 255);
  for (const int compression : {COMPRESSION_NONE, COMPRESSION_LZW, COMPRESSION_ADOBE_DEFLATE, COMPRESSION_PACKBITS,
                                COMPRESSION_ZSTD, COMPRESSION_JPEG}) {
    for (const int tile : {0, 64}) {
      for (const bool planar : {false, true}) {
        if (compression == COMPRESSION_JPEG && planar) continue;
        tiff_options how{.bits = 8, .tile = tile, .rows = 16, .compression = compression, .planar = planar};
        how.photometric = compression == COMPRESSION_JPEG ? PHOTOMETRIC_YCBCR : PHOTOMETRIC_RGB;
        if (compression == COMPRESSION_LZW) how.predictor = 2;
        const auto encoded = tiff_of(rgb, how);
        pixels::scratch_budget budget(std::size_t{64} << 20);
        pixels::scratch_arena arena(budget);
        pixels::tiff_blocks reader(arena);
        arena.begin();
        ASSERT_TRUE(reader.open(encoded, nullptr));
        const pixels::rectangle region{0, 0, 330, 250};
        const std::size_t said = reader.scratch_bytes(region);
        ASSERT_TRUE(arena.reserve(said));
        const testing::allocation_counter counter;
        const auto started = reader.start(region);
        ASSERT_TRUE(started) << started.reason();
        EXPECT_EQ(arena.used(), said);
        for (int y = 0; y < 250; ++y) {
          const auto line = reader.read();
          ASSERT_TRUE(line) << line.reason();
        }
        // A line, and a row of blocks.
        std::size_t own = 330 * 3;
        if (tile != 0) own += 6 * 64 * 64 * 3;
        if (tile == 0 && planar) own += 330 * 16 * 3;
        // All that libtiff asked for, as if it had given nothing back meanwhile.
        EXPECT_LE(counter.count().allocated_bytes, said - own) << compression << ' ' << tile << ' ' << planar;
        arena.end();
      }
    }
  }
}

}  // namespace
}  // namespace leat
