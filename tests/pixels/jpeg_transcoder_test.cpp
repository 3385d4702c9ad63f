// Files written anew as baseline: the same pixels, the same markers; baseline and damaged ones are left alone.
#include "stages/pixels/jpeg_transcoder.hpp"

#include "stages/pixels/picture_info.hpp"
#include "tests/pixels/random_jpeg.hpp"
#include "tests/support/seeds.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace leat {
namespace {

using pixels::transcode_result;
using stages::outcome_kind;
using testing::jpeg_colours;
using testing::jpeg_options;

std::vector<std::byte> transcoded(const std::vector<std::byte>& encoded) {
  std::vector<std::byte> file;
  const auto result = pixels::transcode_to_baseline(encoded, file);
  EXPECT_TRUE(result) << result.reason();
  if (result) EXPECT_EQ(*result, transcode_result::rewritten);
  return file;
}

int times(const std::vector<std::byte>& file, std::string_view text) {
  const auto* const wanted = reinterpret_cast<const std::byte*>(text.data());
  int found = 0;
  for (auto at = file.begin(); (at = std::search(at, file.end(), wanted, wanted + text.size())) != file.end(); ++at) {
    ++found;
  }
  return found;
}

/// The file with a marker segment put in after its first two bytes.
std::vector<std::byte> with_marker(std::vector<std::byte> file, std::uint8_t marker, std::string_view content) {
  const std::size_t length = content.size() + 2;
  std::vector<std::byte> segment = {std::byte{0xFF}, std::byte{marker}, static_cast<std::byte>(length >> 8),
                                    static_cast<std::byte>(length)};
  for (const char letter : content) segment.push_back(static_cast<std::byte>(letter));
  file.insert(file.begin() + 2, segment.begin(), segment.end());
  return file;
}

// Every kind of picture that is not baseline, decoded whole, before and after: each pixel, at each decimation.
TEST(jpeg_transcoder, leaves_every_pixel_what_it_was) {
  testing::for_each_seed(300, [&](std::uint64_t seed) {
    std::mt19937_64 random(seed);
    const int width = testing::between(random, 1, 90);
    const int height = testing::between(random, 1, 90);
    const testing::rgb_picture picture = testing::between(random, 0, 2) == 0
                                             ? testing::make_noise(random, width, height)
                                             : testing::make_texture(random(), width, height);
    jpeg_options options;
    const jpeg_colours colours[] = {jpeg_colours::ycbcr, jpeg_colours::ycbcr, jpeg_colours::rgb,
                                    jpeg_colours::grey,  jpeg_colours::cmyk,  jpeg_colours::ycck};
    options.colours = colours[testing::between(random, 0, 5)];
    options.h = testing::between(random, 1, 2);
    options.v = testing::between(random, 1, 2);
    options.quality = testing::between(random, 1, 100);
    const int kind = testing::between(random, 0, options.colours == jpeg_colours::grey ? 1 : 2);
    options.progressive = kind == 0;
    options.arithmetic = kind == 1;
    options.separate_scans = kind == 2;
    options.restart_interval = testing::between(random, 0, 2) == 0 ? 3 : 0;
    options.orientation = testing::between(random, 0, 8);
    const std::vector<std::byte> before = testing::make_jpeg(picture, options);
    const std::vector<std::byte> after = transcoded(before);
    for (const int decimation : {1, 2, 8}) {
      ASSERT_EQ(testing::decode_whole_jpeg(after, decimation), testing::decode_whole_jpeg(before, decimation))
          << decimation;
    }
    const auto info = pixels::peek(after);
    ASSERT_TRUE(info);
    EXPECT_FALSE(info->progressive);
    EXPECT_EQ(info->orientation, pixels::peek(before)->orientation);
    // And our own decoder takes it by its own Huffman stage, at the first try.
    testing::one_decoder one;
    const auto whole = testing::plain_box(0, 0, info->width, info->height);
    const auto ours = testing::ask_huffman(one.decoder, after, whole, {}, testing::huffman_stage::own);
    ASSERT_EQ(ours.kind, outcome_kind::ok) << ours.reason;
    EXPECT_FALSE(ours.again);
    EXPECT_EQ(ours.row, testing::ask_huffman(one.decoder, before, whole, {}, testing::huffman_stage::own).row);
    // Once is enough.
    std::vector<std::byte> again;
    const auto twice = pixels::transcode_to_baseline(after, again);
    ASSERT_TRUE(twice) << twice.reason();
    EXPECT_EQ(*twice, transcode_result::as_it_is);
    EXPECT_TRUE(again.empty());
  });
}

TEST(jpeg_transcoder, takes_all_markers_along) {
  std::vector<std::byte> file =
      testing::make_jpeg(testing::make_texture(1, 40, 30), {.progressive = true, .orientation = 6});
  const std::string profile = std::string("ICC_PROFILE\0\1\1", 14) + std::string(60'000, 'p');
  file = with_marker(with_marker(file, 0xE2, profile), 0xFE, "a comment");
  const std::vector<std::byte> after = transcoded(file);
  EXPECT_EQ(times(after, profile), 1);
  EXPECT_EQ(times(after, "a comment"), 1);
  EXPECT_EQ(times(after, std::string("Exif\0\0", 6)), 1);
  EXPECT_EQ(pixels::peek(after)->orientation, 6);
  EXPECT_EQ(times(after, std::string("JFIF\0", 5)), 1) << "as before, and not libjpeg's and the file's";
}

TEST(jpeg_transcoder, leaves_alone_what_is_baseline_or_no_jpeg) {
  const testing::rgb_picture picture = testing::make_texture(2, 33, 20);
  testing::rgb_picture seen;
  for (const std::vector<std::byte>& file :
       {testing::make_jpeg(picture, {}), testing::make_jpeg(picture, {.restart_interval = 2}),
        testing::make_jpeg(picture, {.colours = jpeg_colours::grey}), testing::make_png(picture, {}, seen),
        std::vector<std::byte>(100, std::byte{'x'})}) {
    std::vector<std::byte> written;
    const auto result = pixels::transcode_to_baseline(file, written);
    ASSERT_TRUE(result) << result.reason();
    EXPECT_EQ(*result, transcode_result::as_it_is);
    EXPECT_TRUE(written.empty());
  }
}

// What libjpeg would have to guess is left as it is, with its words.
TEST(jpeg_transcoder, refuses_what_is_damaged) {
  const std::vector<std::byte> whole =
      testing::make_jpeg(testing::make_texture(3, 120, 90), {.quality = 95, .progressive = true});
  int refused = 0;
  for (std::size_t kept = 0; kept < whole.size() - 2; kept += 97) {
    std::vector<std::byte> written;
    const auto result = pixels::transcode_to_baseline(std::span(whole).first(kept), written);
    ASSERT_FALSE(result) << kept << " of " << whole.size() << " bytes";
    EXPECT_EQ(result.kind(), outcome_kind::corrupt);
    EXPECT_FALSE(result.reason().empty());
    EXPECT_TRUE(written.empty());
    ++refused;
  }
  EXPECT_GT(refused, 20);
}

// Random damage: refused, or pixels that are what libjpeg makes of the damaged file too.
TEST(jpeg_transcoder, never_changes_what_a_damaged_file_shows) {
  testing::for_each_seed(400, [&](std::uint64_t seed) {
    std::mt19937_64 random(seed);
    std::vector<std::byte> file = testing::make_jpeg(
        testing::make_texture(random(), testing::between(random, 8, 60), testing::between(random, 8, 60)),
        {.quality = 80, .progressive = true});
    for (int i = testing::between(random, 1, 3); i > 0; --i)
      file[random() % file.size()] ^= std::byte{1} << random() % 8;
    std::vector<std::byte> written;
    const auto result = pixels::transcode_to_baseline(file, written);
    if (!result || *result != transcode_result::rewritten) return;
    const auto info = pixels::peek(file);
    ASSERT_TRUE(info);
    if (std::int64_t{info->width} * info->height > 1'000'000) return;
    const auto box = testing::plain_box(0, 0, info->width, info->height);
    testing::one_decoder one;
    const auto before = testing::ask_huffman(one.decoder, file, box, {}, testing::huffman_stage::libjpeg);
    const auto after = testing::ask_huffman(one.decoder, written, box, {}, testing::huffman_stage::libjpeg);
    ASSERT_EQ(after.kind, before.kind) << after.reason << " and " << before.reason;
    ASSERT_EQ(after.row, before.row);
  });
}

}  // namespace
}  // namespace leat
