#include "stages/pixels/jpeg_transcoder.hpp"
#include "tests/pixels/decode_one.hpp"
#include "tests/support/seeds.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ctime>
#include <random>
#include <string>
#include <vector>

namespace leat {
namespace {

using stages::outcome_kind;
using ::testing::HasSubstr;
using testing::jpeg_colours;
using testing::jpeg_options;
using testing::one_decoder;
using testing::plain_box;

using bytes = std::vector<std::byte>;

double thread_cpu_s() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

testing::rgb_picture flat_picture(int width, int height) {
  return {width, height,
          std::vector<std::uint8_t>(static_cast<std::size_t>(width) * static_cast<std::size_t>(height) * 3, 90)};
}

std::size_t last_marker(const bytes& jpeg, std::byte name) {
  std::size_t at = jpeg.size() - 2;
  while (jpeg[at] != std::byte{0xFF} || jpeg[at + 1] != name) --at;
  return at;
}

// The last scan once more, and again.
bytes with_last_scan_repeated(const bytes& jpeg, int times) {
  const auto begin = jpeg.begin() + static_cast<std::ptrdiff_t>(last_marker(jpeg, std::byte{0xDA}));
  const auto end = jpeg.end() - 2;
  bytes longer(jpeg.begin(), end);
  for (int i = 0; i < times; ++i) longer.insert(longer.end(), begin, end);
  longer.insert(longer.end(), end, jpeg.end());
  return longer;
}

// Claims another size.
bytes with_size(bytes jpeg, int width, int height) {
  for (std::size_t i = 0; i + 8 < jpeg.size(); ++i) {
    if (jpeg[i] != std::byte{0xFF} || (jpeg[i + 1] != std::byte{0xC0} && jpeg[i + 1] != std::byte{0xC2})) continue;
    jpeg[i + 5] = static_cast<std::byte>(height >> 8);
    jpeg[i + 6] = static_cast<std::byte>(height & 0xFF);
    jpeg[i + 7] = static_cast<std::byte>(width >> 8);
    jpeg[i + 8] = static_cast<std::byte>(width & 0xFF);
    return jpeg;
  }
  ADD_FAILURE() << "no frame";
  return jpeg;
}

// A budget that could not hold it says nothing about the file.
TEST(jpeg_claims, a_file_too_short_for_its_picture_is_corrupt_whatever_the_budget) {
  for (const std::size_t budget_bytes : {std::size_t{4} << 20, std::size_t{1} << 30}) {
    pixels::scratch_budget budget(budget_bytes, 4 * budget_bytes);
    pixels::picture_decoder decoder(budget);
    const auto how = pixels::store::from(dtype::u8, layout::nhwc, std::nullopt);
    std::vector<std::byte> row(how.row_bytes(4, 4));
    for (const jpeg_options& options :
         {jpeg_options{}, jpeg_options{.progressive = true}, jpeg_options{.h = 1, .v = 1, .progressive = true},
          jpeg_options{.separate_scans = true}, jpeg_options{.colours = jpeg_colours::grey, .h = 1, .v = 1}}) {
      const bytes small = testing::make_jpeg(testing::make_texture(3, 16, 16), options);
      ASSERT_LT(small.size(), 1'000U);
      for (const int side : {12'000, 60'000}) {  // 60,000 x 60,000 are more than pixels_max
        const bytes claims = with_size(small, side, side);
        const auto result = decoder.decode(claims, plain_box(0, 0, 4, 4), how, {}, row.data(), nullptr);
        EXPECT_EQ(result.kind(), outcome_kind::corrupt);
        EXPECT_THAT(result.reason(), HasSubstr("too short for its picture"));
        bytes file;
        if (options.progressive) {
          const auto transcoded = pixels::transcode_to_baseline(claims, file);
          EXPECT_EQ(transcoded.kind(), outcome_kind::corrupt);
          EXPECT_THAT(transcoded.reason(), HasSubstr("too short for its picture"));
        }
      }
    }
    EXPECT_EQ(budget.peak(), pixels::scratch_arena::base_bytes) << "no memory was taken";
  }
}

// The least that an encoder can write: pictures of one colour, with tables of their own.
TEST(jpeg_claims, the_flattest_picture_is_long_enough) {
  one_decoder one;
  for (const bool progressive : {false, true}) {
    for (const bool separate : {false, true}) {
      for (const jpeg_colours colours : {jpeg_colours::grey, jpeg_colours::ycbcr, jpeg_colours::cmyk}) {
        for (const int side : {1, 8, 9, 17, 640}) {
          const bytes jpeg = testing::make_jpeg(flat_picture(side, side), {.colours = colours,
                                                                           .h = colours == jpeg_colours::ycbcr ? 2 : 1,
                                                                           .v = colours == jpeg_colours::ycbcr ? 2 : 1,
                                                                           .quality = 1,
                                                                           .progressive = progressive,
                                                                           .separate_scans = separate && !progressive,
                                                                           .optimise = true});
          one.decode(jpeg, plain_box(0, 0, side, side));
          EXPECT_EQ(one.reason, "") << side;
        }
      }
    }
  }
}

TEST(jpeg_claims, honest_scripts_of_scans_pass) {
  one_decoder one;
  const testing::rgb_picture texture = testing::make_texture(5, 1200, 800);
  const auto box = plain_box(100, 100, 64, 64);
  const testing::rgb_picture expected = one.decode(testing::make_jpeg(texture, {.quality = 40}), box);
  ASSERT_EQ(one.reason, "");
  for (const int band : {1, 2, 5, 63}) {  // 190 scans to 4
    const bytes jpeg = testing::make_jpeg(texture, {.quality = 40, .progressive = true, .band_scans = band});
    EXPECT_EQ(one.decode(jpeg, box), expected) << band;
    EXPECT_EQ(one.reason, "") << band;
  }
  const bytes usual = testing::make_jpeg(texture, {.quality = 40, .progressive = true});
  EXPECT_EQ(one.decode(with_last_scan_repeated(usual, 0), box), expected);
  const bytes small = testing::make_jpeg(testing::make_texture(5, 64, 64), {.progressive = true});
  one.decode(with_last_scan_repeated(small, 400), plain_box(0, 0, 64, 64));
  EXPECT_THAT(one.reason, ::testing::Not(HasSubstr("too many"))) << "so few blocks that nobody minds";
}

// 1,000 scans of next to no bytes: 9 s of CPU before this was looked at.
TEST(jpeg_claims, scans_out_of_proportion_are_refused_before_a_block_is_decoded) {
  const bytes flat = testing::make_jpeg(flat_picture(2400, 2000),
                                        {.colours = jpeg_colours::grey, .h = 1, .v = 1, .progressive = true});
  for (const int times : {100, 1'000}) {
    const bytes hostile = with_last_scan_repeated(flat, times);
    EXPECT_LT(hostile.size(), 200'000U);
    pixels::scratch_budget budget(std::size_t{64} << 20);
    pixels::picture_decoder decoder(budget);
    const auto how = pixels::store::from(dtype::u8, layout::nhwc, std::nullopt);
    std::vector<std::byte> row(how.row_bytes(4, 4));
    const double began = thread_cpu_s();
    const auto result = decoder.decode(hostile, plain_box(0, 0, 4, 4), how, {}, row.data(), nullptr);
    EXPECT_LT(thread_cpu_s() - began, 0.2);
    EXPECT_EQ(result.kind(), outcome_kind::unsupported);
    EXPECT_THAT(result.reason(), HasSubstr("scans are too many for a picture of 75000 blocks"));
    EXPECT_EQ(budget.peak(), pixels::scratch_arena::base_bytes) << "no memory was taken";
    bytes file;
    EXPECT_EQ(pixels::transcode_to_baseline(hostile, file).kind(), outcome_kind::unsupported);
  }
}

}  // namespace
}  // namespace leat
