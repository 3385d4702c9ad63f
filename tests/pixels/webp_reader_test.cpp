#include "stages/pixels/webp_reader.hpp"

#include "stages/pixels/resample_kernels.hpp"
#include "stages/pixels/webp_codes.hpp"
#include "tests/pixels/decode_one.hpp"
#include "tests/pixels/mutants.hpp"
#include "tests/support/allocation_counter.hpp"
#include "tests/support/make_webp.hpp"
#include "tests/support/seeds.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

namespace leat {
namespace {

using stages::outcome_kind;
using ::testing::HasSubstr;
using testing::make_webp;
using testing::one_decoder;
using testing::plain_box;
using testing::rgb_picture;
using testing::webp_options;

std::vector<webp_options> every_kind() {
  std::vector<webp_options> kinds;
  for (const bool lossless : {false, true}) {
    for (const bool alpha : {false, true}) {
      for (const int quality : {5, 80}) {
        kinds.push_back({.lossless = lossless, .quality = quality, .method = quality == 80 ? 3 : 0, .alpha = alpha});
      }
      kinds.push_back({.lossless = lossless, .alpha = alpha, .extended = true, .orientation = 3, .xmp = "<x/>"});
    }
  }
  return kinds;
}

// Few colours: palettes, and pixels that are packed into bytes.
rgb_picture with_few_colours(rgb_picture picture, int levels) {
  for (auto& value : picture.pixels)
    value = static_cast<std::uint8_t>(value * levels / 256 * 255 / std::max(levels - 1, 1));
  return picture;
}

TEST(webp_reader, gives_each_region_as_libwebp_gives_the_whole) {
  one_decoder one;
  testing::for_each_seed(2, [&](std::uint64_t seed) {
    std::mt19937_64 random(seed);
    const auto between = [&](int from, int to) { return std::uniform_int_distribution<int>(from, to)(random); };
    for (const webp_options& options : every_kind()) {
      SCOPED_TRACE(std::string(options.lossless ? "lossless" : "lossy") + (options.alpha ? " alpha" : "") +
                   " quality " + std::to_string(options.quality));
      rgb_picture texture = testing::make_texture(random(), between(1, 90), between(1, 90));
      if (between(0, 2) == 0) texture = with_few_colours(std::move(texture), between(1, 4));
      rgb_picture seen;
      const auto encoded = make_webp(texture, options, seen);
      if (options.lossless) ASSERT_EQ(seen, texture);
      ASSERT_NO_FATAL_FAILURE(testing::expect_every_region(one, encoded, seen, random, 5));
    }
  });
}

TEST(webp_reader, refuses_what_is_cut_or_contradicts_itself) {
  one_decoder one;
  rgb_picture seen;
  const rgb_picture texture = testing::make_texture(4, 90, 80);
  for (const bool lossless : {false, true}) {
    const auto whole = make_webp(texture, {.lossless = lossless}, seen);
    for (std::size_t size = 1; size < whole.size(); size += 61) {
      one.decode({whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size)}, plain_box(0, 0, 1, 1));
      EXPECT_NE(one.kind, outcome_kind::ok) << size;
    }
    auto longer = whole;
    longer.resize(whole.size() + 100, std::byte{'x'});
    EXPECT_EQ(one.decode(longer, plain_box(0, 0, 90, 80)), seen) << "what stands behind the container is nothing of it";
  }
  auto extended = make_webp(texture, {.extended = true}, seen);
  extended[24] = std::byte{88};
  one.decode(extended, plain_box(0, 0, 90, 80));
  EXPECT_EQ(one.reason, "WebP of 89 x 80 pixels with a picture of 90 x 80 pixels");
}

// A million bytes of a stranger's file, which must not become as many calls.
TEST(webp_reader, looks_for_no_frames_within_frames) {
  constexpr std::size_t levels = 40'000;
  constexpr std::size_t level_bytes = 24;
  const auto put = [](std::vector<std::byte>& to, std::string_view letters, std::size_t value) {
    for (const char letter : letters) to.push_back(static_cast<std::byte>(letter));
    for (int i = 0; i < 4; ++i) to.push_back(static_cast<std::byte>(value >> (8 * i) & 0xFF));
  };
  std::vector<std::byte> file;
  put(file, "RIFF", 22 + levels * level_bytes);
  for (const char letter : {'W', 'E', 'B', 'P'}) file.push_back(static_cast<std::byte>(letter));
  put(file, "VP8X", 10);
  file.resize(file.size() + 10);
  file[20] = std::byte{2};
  for (std::size_t level = levels; level-- > 0;) {
    put(file, "ANMF", 16 + level * level_bytes);
    file.resize(file.size() + 16);
  }
  one_decoder one;
  one.decode(file, plain_box(0, 0, 1, 1));
  EXPECT_EQ(one.reason, "WebP without a picture");
}

TEST(webp_reader, gives_the_first_frame_of_an_animation) {
  one_decoder one;
  const auto put = [](std::vector<std::byte>& to, std::size_t value, int count) {
    for (int i = 0; i < count; ++i) to.push_back(static_cast<std::byte>(value >> (8 * i) & 0xFF));
  };
  // The chunks of a picture, as a frame.
  const auto frame_of = [&](const std::vector<std::byte>& picture, std::size_t x, std::size_t width,
                            std::size_t height) {
    std::vector<std::byte> frame;
    for (const char letter : {'A', 'N', 'M', 'F'}) frame.push_back(static_cast<std::byte>(letter));
    put(frame, picture.size() - 30 + 16, 4);
    put(frame, x / 2, 3);
    put(frame, 0, 3);
    put(frame, width - 1, 3);
    put(frame, height - 1, 3);
    put(frame, 100, 4);
    frame.insert(frame.end(), picture.begin() + 30, picture.end());
    return frame;
  };
  for (const bool lossless : {false, true}) {
    rgb_picture seen, other;
    const auto first = make_webp(testing::make_texture(1, 90, 80), {.lossless = lossless, .extended = true}, seen);
    const auto second = make_webp(testing::make_texture(2, 90, 80), {.lossless = !lossless, .extended = true}, other);
    for (const std::size_t x : {0U, 4U}) {
      std::vector<std::byte> file(first.begin(), first.begin() + 30);
      file[20] = std::byte{2};
      for (const auto& frame : {frame_of(first, x, 90, 80), frame_of(second, 0, 90, 80)}) {
        file.insert(file.end(), frame.begin(), frame.end());
      }
      std::vector<std::byte> size;
      put(size, file.size() - 8, 4);
      std::copy(size.begin(), size.end(), file.begin() + 4);
      std::mt19937_64 random(3);
      if (x == 0) {
        testing::expect_every_region(one, file, seen, random, 4);
      } else {
        one.decode(file, plain_box(0, 0, 90, 80));
        EXPECT_EQ(one.kind, outcome_kind::corrupt);
        EXPECT_EQ(one.reason, "WebP of 90 x 80 pixels with a picture of 90 x 80 pixels at 4, 0");
      }
    }
  }
}

// As Pillow: what is beside the frame is transparent, and black without a background, or where the file has no alpha.
TEST(webp_reader, places_a_first_frame_that_is_smaller_than_its_canvas) {
  one_decoder one;
  const auto put = [](std::vector<std::byte>& to, std::size_t value, int count) {
    for (int i = 0; i < count; ++i) to.push_back(static_cast<std::byte>(value >> (8 * i) & 0xFF));
  };
  std::mt19937_64 random(7);
  const pixels::rgb_colour behind{9, 200, 77};
  for (const bool lossless : {false, true}) {
    for (const bool has_alpha : {false, true}) {
      rgb_picture seen;
      const auto picture = make_webp(testing::make_texture(1, 40, 30), {.lossless = lossless, .extended = true}, seen);
      std::vector<std::byte> file(picture.begin(), picture.begin() + 20);
      put(file, has_alpha ? 0x12 : 2, 4);
      put(file, 99, 3);
      put(file, 69, 3);
      for (const char letter : {'A', 'N', 'M', 'F'}) file.push_back(static_cast<std::byte>(letter));
      put(file, picture.size() - 30 + 16, 4);
      for (const std::size_t each : {6U, 11U, 39U, 29U}) put(file, each, 3);
      put(file, 100, 4);
      file.insert(file.end(), picture.begin() + 30, picture.end());
      std::vector<std::byte> size;
      put(size, file.size() - 8, 4);
      std::copy(size.begin(), size.end(), file.begin() + 4);
      for (const bool is_over : {false, true}) {
        rgb_picture canvas{100, 70, {}};
        for (int y = 0; y < 70; ++y) {
          for (int x = 0; x < 100; ++x) {
            const bool is_in_frame = x >= 12 && x < 52 && y >= 22 && y < 52;
            for (std::size_t c = 0; c < 3; ++c) {
              canvas.pixels.push_back(is_in_frame            ? seen.at(x - 12, y - 22)[c]
                                      : has_alpha && is_over ? behind[c]
                                                             : std::uint8_t{0});
            }
          }
        }
        const pixels::decode_options how{.background = is_over ? std::optional(behind) : std::nullopt};
        ASSERT_NO_FATAL_FAILURE(testing::expect_every_region(one, file, canvas, random, 12, how));
      }
    }
  }
}

// Headers that claim more than their bytes can hold, and one colour that is enormous: no memory is asked for.
TEST(webp_reader, refuses_what_is_too_short_for_its_pixels) {
  one_decoder one;
  rgb_picture seen;
  auto lossy = make_webp(testing::make_texture(4, 16, 16), {}, seen);
  lossy[26] = std::byte{0xE0}, lossy[27] = std::byte{0x2E};
  lossy[28] = std::byte{0xE0}, lossy[29] = std::byte{0x2E};
  one.decode(lossy, plain_box(0, 0, 12000, 12000));
  EXPECT_EQ(one.reason, "WebP is too short for its 12000 x 12000 pixels");
  EXPECT_EQ(one.kind, outcome_kind::corrupt);

  auto lossless = make_webp({1, 1, {1, 2, 3}}, {.lossless = true}, seen);
  for (const std::size_t at : {21U, 22U, 23U}) lossless[at] = std::byte{0xFF};
  lossless[24] |= std::byte{0x0F};
  one.decode(lossless, plain_box(0, 0, 1, 1));
  EXPECT_EQ(one.kind, outcome_kind::unsupported);
  EXPECT_THAT(one.reason, HasSubstr("meant to harm"));
}

TEST(webp_reader, takes_no_more_than_it_said) {
  LEAT_NEEDS_ALLOCATION_COUNTER();
  rgb_picture seen;
  for (const webp_options& options : every_kind()) {
    for (const auto& [levels, is_over] : {std::pair{256, false}, {4, false}, {256, true}, {4, true}}) {
      const auto encoded = make_webp(with_few_colours(testing::make_texture(6, 330, 250), levels), options, seen);
      const auto info = pixels::peek(encoded);
      ASSERT_TRUE(info);
      pixels::scratch_budget budget(std::size_t{64} << 20);
      pixels::scratch_arena arena(budget);
      pixels::webp_reader reader(arena);
      arena.begin();
      const std::optional<pixels::rgb_colour> behind =
          is_over ? std::optional(pixels::rgb_colour{1, 2, 3}) : std::nullopt;
      ASSERT_TRUE(reader.open(encoded, *info, {.background = behind}));
      const pixels::rectangle region{0, 0, info->width, info->height};
      const std::size_t said = reader.scratch_bytes(region, 1);
      ASSERT_TRUE(arena.reserve(said));
      ASSERT_TRUE(reader.start(region, 1));
      EXPECT_EQ(arena.used(), said);
      const std::size_t lent =
          said - pixels::scratch_arena::rounded(std::size_t{330 * 255} * (is_over && info->channels == 4 ? 4 : 3) +
                                                pixels::line_slack_bytes);
      const testing::allocation_counter counter;
      const auto lines = reader.read();
      ASSERT_TRUE(lines) << lines.reason();
      EXPECT_EQ(lines->count, 250);
      // All that libwebp asked for, as if it had given nothing back meanwhile.
      EXPECT_LE(counter.count().allocated_bytes, lent);
      arena.end();
    }
  }
}

// The codes are counted by reading the headers as libwebp does, of files that use what there is to be used.
TEST(webp_reader, counts_the_groups_of_codes) {
  rgb_picture seen;
  std::size_t most = 0;
  testing::for_each_seed(4, [&](std::uint64_t seed) {
    rgb_picture texture = testing::make_texture(seed, 150 + static_cast<int>(seed % 7), 120);
    if (seed % 3 == 0) texture = with_few_colours(std::move(texture), 2 + static_cast<int>(seed % 5));
    const auto encoded =
        make_webp(texture, {.lossless = true, .quality = 70, .method = static_cast<int>(2 + seed % 3)}, seen);
    const auto layout = pixels::read_webp_headers(encoded);
    ASSERT_TRUE(layout);
    const auto codes = pixels::count_webp_codes(layout->picture, layout->width, layout->height);
    ASSERT_TRUE(codes);
    EXPECT_GE(codes->groups, 1U);
    EXPECT_LE(codes->groups, 2600U);
    most = std::max(most, codes->groups);
    for (std::size_t size = 0; size < 60; ++size) {
      static_cast<void>(pixels::count_webp_codes(layout->picture.first(size), layout->width, layout->height));
    }
  });
  if (testing::seed_count(4) >= 4) EXPECT_GT(most, 1U) << "none of them had several groups: the test shows nothing";
}

// libwebp tells of damage only where it comes to it: rows above are wrong by then, and a crop may end before.
TEST(webp_reader, refuses_each_crop_of_what_is_damaged_anywhere) {
  one_decoder one;
  std::size_t refused = 0;
  testing::for_each_seed(12, [&](std::uint64_t seed) {
    std::mt19937_64 random(seed);
    for (const webp_options& options : every_kind()) {
      rgb_picture seen;
      auto encoded = make_webp(testing::make_texture(random(), 80, 90), options, seen);
      // In the second half of the file, which most crops of rows do not need.
      encoded[encoded.size() / 2 + random() % (encoded.size() / 2)] ^= std::byte{1} << static_cast<int>(random() % 8);
      const rgb_picture whole = one.decode(encoded, plain_box(0, 0, 80, 90));
      const outcome_kind of_whole = one.kind;
      refused += of_whole != outcome_kind::ok;
      for (const int height : {1, 20, 60}) {
        const rgb_picture top = one.decode(encoded, plain_box(10, 2, 50, height));
        ASSERT_EQ(one.kind, of_whole) << height << " rows: " << one.reason;
        if (one.kind == outcome_kind::ok) ASSERT_EQ(top, testing::crop(whole, 10, 2, 50, height));
      }
    }
  });
  if (testing::seed_count(12) >= 12) EXPECT_GT(refused, 5U) << "hardly any was damaged: the test shows nothing";
}

TEST(webp_reader, refuses_a_crop_of_a_damaged_picture_that_is_too_large_to_be_decoded_at_once) {
  one_decoder one;
  rgb_picture seen;
  rgb_picture tiles{4200, 4100, {}};
  tiles.pixels.resize(std::size_t{4200} * 4100 * 3);
  for (std::size_t i = 0; i < tiles.pixels.size(); ++i)
    tiles.pixels[i] = static_cast<std::uint8_t>((i / 192 * 37) & 0xF0);
  const auto encoded = make_webp(tiles, {.quality = 20, .method = 0}, seen);
  EXPECT_EQ(one.decode(encoded, plain_box(0, 100, 4200, 3)), testing::crop(seen, 0, 100, 4200, 3));
  std::mt19937_64 random(1);
  for (int tries = 0; tries < 60; ++tries) {
    auto damaged = encoded;
    damaged[100 + random() % (damaged.size() / 8)] ^= std::byte{0x40};
    one.decode(damaged, plain_box(0, 4000, 4200, 100));
    if (one.kind == outcome_kind::ok) continue;
    one.decode(damaged, plain_box(0, 0, 4200, 3));
    EXPECT_EQ(one.kind, outcome_kind::corrupt);
    return;
  }
  FAIL() << "libwebp refuses none of these";
}

TEST(webp_reader, survives_mutants) {
  testing::decode_mutants(30, [](std::mt19937_64& random) {
    const auto kinds = every_kind();
    rgb_picture texture =
        testing::make_texture(random(), 1 + static_cast<int>(random() % 60), 1 + static_cast<int>(random() % 60));
    if (random() % 3 == 0) texture = with_few_colours(std::move(texture), 3);
    rgb_picture seen;
    return make_webp(texture, kinds[random() % kinds.size()], seen);
  });
}

}  // namespace
}  // namespace leat
