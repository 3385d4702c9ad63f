#include "tests/pixels/decode_one.hpp"
#include "tests/support/seeds.hpp"

#include <gtest/gtest.h>

#include <random>
#include <string>

namespace leat {
namespace {

using testing::jpeg_colours;
using testing::jpeg_options;
using testing::one_decoder;
using testing::plain_box;
using testing::rgb_picture;

struct sampling {
  const char* name;
  jpeg_colours colours;
  int h;
  int v;
};

constexpr sampling samplings[] = {
    {"4:4:4", jpeg_colours::ycbcr, 1, 1},   {"4:2:2", jpeg_colours::ycbcr, 2, 1}, {"4:2:0", jpeg_colours::ycbcr, 2, 2},
    {"4:4:0", jpeg_colours::ycbcr, 1, 2},   {"4:1:1", jpeg_colours::ycbcr, 4, 1}, {"4:1:0", jpeg_colours::ycbcr, 4, 2},
    {"4:4:1", jpeg_colours::ycbcr, 1, 4},   {"2x4", jpeg_colours::ycbcr, 2, 4},   {"grey", jpeg_colours::grey, 1, 1},
    {"grey 2x2", jpeg_colours::grey, 2, 2}, {"rgb", jpeg_colours::rgb, 1, 1},     {"cmyk", jpeg_colours::cmyk, 1, 1},
    {"ycck", jpeg_colours::ycck, 2, 2},
};

int between(std::mt19937_64& random, int from, int to) { return std::uniform_int_distribution<int>(from, to)(random); }

pixels::rectangle random_part(std::mt19937_64& random, int width, int height) {
  // Small, thin and whole ones on purpose: edges are where columns and rows are cut wrongly.
  const auto extent = [&](int size) {
    switch (between(random, 0, 4)) {
      case 0:
        return 1;
      case 1:
        return size;
      case 2:
        return between(random, 1, std::min(size, 9));
      default:
        return between(random, 1, size);
    }
  };
  const int w = extent(width);
  const int h = extent(height);
  return {between(random, 0, width - w), between(random, 0, height - h), w, h};
}

jpeg_options random_options(std::mt19937_64& random, const sampling& s) {
  jpeg_options options{.colours = s.colours, .h = s.h, .v = s.v};
  options.quality = between(random, 5, 98);
  options.progressive = between(random, 0, 3) == 0;
  options.separate_scans = !options.progressive && between(random, 0, 3) == 0;
  options.restart_interval = between(random, 0, 2) == 0 ? static_cast<unsigned>(between(random, 1, 40)) : 0;
  return options;
}

TEST(jpeg_reader, decodes_a_part_bit_for_bit_as_the_whole_picture) {
  one_decoder one;
  testing::for_each_seed(6, [&](std::uint64_t seed) {
    std::mt19937_64 random(seed);
    for (const sampling& s : samplings) {
      const rgb_picture texture = testing::make_texture(random(), between(random, 1, 150), between(random, 1, 150));
      const jpeg_options options = random_options(random, s);
      const auto encoded = testing::make_jpeg(texture, options);
      const rgb_picture whole = testing::decode_whole_jpeg(encoded, 1);
      for (int i = 0; i < 25; ++i) {
        const pixels::rectangle part = random_part(random, texture.width, texture.height);
        SCOPED_TRACE(std::string(s.name) + (options.progressive ? " progressive " : " ") +
                     (options.separate_scans ? "separate scans " : "") + "restart " +
                     std::to_string(options.restart_interval) + ", " + std::to_string(part.width) + "x" +
                     std::to_string(part.height) + "+" + std::to_string(part.x) + "+" + std::to_string(part.y) +
                     " of " + std::to_string(texture.width) + "x" + std::to_string(texture.height));
        const rgb_picture got = one.decode(encoded, plain_box(part.x, part.y, part.width, part.height));
        ASSERT_EQ(one.reason, "");
        ASSERT_EQ(got, testing::crop(whole, part.x, part.y, part.width, part.height));
      }
    }
  });
}

// Rows above the region are skipped in pieces, so that stop() is heard; the pieces must not show.
TEST(jpeg_reader, skips_millions_of_pixels_without_a_trace) {
  one_decoder one;
  for (const sampling& s : {samplings[0], samplings[2], samplings[3]}) {
    SCOPED_TRACE(s.name);
    // Tiles, as a debug build takes seconds to make so large a texture.
    const rgb_picture tile = testing::make_texture(5, 211, 173);
    rgb_picture texture{1711, 1403, {}};
    for (int y = 0; y < texture.height; ++y) {
      for (int x = 0; x < texture.width; ++x) {
        texture.pixels.insert(texture.pixels.end(), tile.at(x % 211, y % 173), tile.at(x % 211, y % 173) + 3);
      }
    }
    const auto encoded = testing::make_jpeg(texture, {.colours = s.colours, .h = s.h, .v = s.v, .quality = 40});
    const rgb_picture whole = testing::decode_whole_jpeg(encoded, 1);
    for (const int y : {1310, 1201, 1199}) {
      const rgb_picture got = one.decode(encoded, plain_box(401, y, 300, 90));
      ASSERT_EQ(one.reason, "");
      ASSERT_EQ(got, testing::crop(whole, 401, y, 300, 90));
    }
  }
}

TEST(jpeg_reader, becomes_rgb_whatever_the_colours) {
  one_decoder one;
  const rgb_picture texture = testing::make_texture(9, 64, 48);
  for (const sampling& s : samplings) {
    if (s.colours == jpeg_colours::grey || s.h * s.v > 1) continue;
    SCOPED_TRACE(s.name);
    const auto encoded = testing::make_jpeg(texture, {.colours = s.colours, .h = 1, .v = 1, .quality = 100});
    const rgb_picture got = one.decode(encoded, plain_box(0, 0, 64, 48));
    ASSERT_EQ(one.reason, "");
    double error = 0;
    for (std::size_t i = 0; i < got.pixels.size(); ++i) error += std::abs(got.pixels[i] - texture.pixels[i]);
    EXPECT_LT(error / static_cast<double>(got.pixels.size()), 4) << "colours are inverted or exchanged";
  }
}

TEST(jpeg_reader, reads_arithmetic_coding_where_libjpeg_does) {
  one_decoder one;
  const rgb_picture texture = testing::make_texture(11, 90, 70);
  const auto encoded = testing::make_jpeg(texture, {.arithmetic = true});
  const rgb_picture got = one.decode(encoded, plain_box(17, 20, 40, 30));
  if (one.kind == stages::outcome_kind::unsupported) GTEST_SKIP() << one.reason;
  EXPECT_EQ(got, testing::crop(testing::decode_whole_jpeg(encoded, 1), 17, 20, 40, 30));
}

// A picture that lacks its tables must not be decoded with those of the one before it.
TEST(jpeg_reader, keeps_nothing_of_the_picture_before) {
  const auto first = testing::make_jpeg(testing::make_texture(1, 80, 60), {.quality = 20, .optimise = true});
  auto without_tables = testing::make_jpeg(testing::make_texture(2, 80, 60), {.quality = 95, .optimise = true});
  for (std::size_t i = 2; i + 3 < without_tables.size() && without_tables[i + 1] != std::byte{0xDA};) {
    const std::size_t length =
        std::to_integer<std::size_t>(without_tables[i + 2]) << 8 | std::to_integer<std::size_t>(without_tables[i + 3]);
    const bool tables = without_tables[i + 1] == std::byte{0xC4} || without_tables[i + 1] == std::byte{0xDB};
    if (tables) {
      without_tables.erase(without_tables.begin() + static_cast<std::ptrdiff_t>(i),
                           without_tables.begin() + static_cast<std::ptrdiff_t>(i + 2 + length));
    } else {
      i += 2 + length;
    }
  }
  one_decoder fresh;
  const rgb_picture alone = fresh.decode(without_tables, plain_box(0, 0, 80, 60));
  const auto kind = fresh.kind;
  const auto reason = fresh.reason;
  EXPECT_EQ(kind, stages::outcome_kind::corrupt);

  one_decoder used;
  used.decode(first, plain_box(0, 0, 80, 60));
  ASSERT_EQ(used.reason, "");
  const rgb_picture after = used.decode(without_tables, plain_box(0, 0, 80, 60));
  EXPECT_EQ(used.kind, kind);
  EXPECT_EQ(used.reason, reason);
  EXPECT_EQ(after, alone);
}

TEST(jpeg_reader, decimates_as_libjpeg_does_and_cuts_columns_right) {
  one_decoder one;
  testing::for_each_seed(4, [&](std::uint64_t seed) {
    std::mt19937_64 random(seed);
    for (const sampling& s : samplings) {
      const rgb_picture texture = testing::make_texture(random(), between(random, 60, 330), between(random, 60, 330));
      const jpeg_options options = random_options(random, s);
      const auto encoded = testing::make_jpeg(texture, options);
      for (const int by : {2, 4, 8}) {
        const rgb_picture shrunk = testing::decode_whole_jpeg(encoded, by);
        for (int i = 0; i < 6; ++i) {
          // A box whose edges are multiples of `by`, taken at exactly that scale: the decimated pixels themselves.
          pixels::rectangle part = random_part(random, texture.width / by, texture.height / by);
          pixels::geometry drawn = plain_box(part.x, part.y, part.width, part.height);
          drawn.box = {part.x * by, part.y * by, part.width * by, part.height * by};
          SCOPED_TRACE(std::string(s.name) + " by " + std::to_string(by) +
                       (options.progressive      ? " progressive"
                        : options.separate_scans ? " separate scans"
                                                 : ""));
          const rgb_picture got = one.decode(encoded, drawn, {.decimate = true});
          ASSERT_EQ(one.reason, "");
          ASSERT_EQ(one.decimation, by);
          ASSERT_EQ(got, testing::crop(shrunk, part.x, part.y, part.width, part.height));
        }
      }
    }
  });
}

}  // namespace
}  // namespace leat
