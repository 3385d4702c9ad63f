#include "stages/pixels/jpeg_reader.hpp"
#include "stages/pixels/png_reader.hpp"
#include "tests/pixels/decode_one.hpp"
#include "tests/support/allocation_counter.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace leat {
namespace {

using testing::jpeg_colours;
using testing::jpeg_options;
namespace tr = transforms;

std::vector<std::vector<std::byte>> some_of_every_kind() {
  std::vector<std::vector<std::byte>> out;
  const testing::rgb_picture texture = testing::make_texture(6, 330, 250);
  for (const jpeg_options& options :
       {jpeg_options{}, jpeg_options{.h = 1, .v = 1}, jpeg_options{.progressive = true},
        jpeg_options{.separate_scans = true}, jpeg_options{.arithmetic = true}, jpeg_options{.restart_interval = 7},
        jpeg_options{.colours = jpeg_colours::grey, .h = 1, .v = 1}, jpeg_options{.colours = jpeg_colours::ycck},
        jpeg_options{.colours = jpeg_colours::ycck, .progressive = true}, jpeg_options{.orientation = 6}}) {
    out.push_back(testing::make_jpeg(texture, options));
  }
  testing::rgb_picture seen;
  for (const testing::png_options& options :
       {testing::png_options{}, testing::png_options{.depth = 16, .interlaced = true},
        testing::png_options{.colours = testing::png_colours::palette, .transparency = true}}) {
    out.push_back(testing::make_png(texture, options, seen));
  }
  return out;
}

TEST(allocation, none_per_sample_after_warming_up) {
  LEAT_NEEDS_ALLOCATION_COUNTER();
  testing::one_decoder one;
  const auto pictures = some_of_every_kind();
  const pixels::pipeline train({tr::random_resized_crop{.height = 64, .width = 64}, tr::random_flip{}});
  const pixels::pipeline eval({tr::resize{.shorter_side = 72, .how = filter::bicubic}, tr::center_crop{64, 64}});
  const pixels::pipeline fused(
      {tr::random_resized_crop{.height = 64, .width = 64}, tr::random_flip{}, tr::affine{.degrees = {-30, 30}},
       tr::rand_augment{}, tr::perspective{}, tr::color_jitter{0.4, 0.4, 0.4, 0.1}},
      pixel_rounding::fused);
  const auto how = pixels::store::from(dtype::f16, layout::nchw, imagenet);
  std::vector<std::byte> row(how.row_bytes(64, 64));
  const auto decode_all = [&](std::uint64_t sample) {
    for (const auto& encoded : pictures) {
      for (const pixels::pipeline* steps : {&train, &eval, &fused}) {
        const auto result = one.decoder.decode(encoded, *steps, {1, 0, sample}, how,
                                               {.exif_orientation = true, .decimate = true}, row.data(), nullptr);
        ASSERT_TRUE(result) << result.reason();
      }
    }
  };
  decode_all(0);
  const testing::allocation_counter counter;
  for (std::uint64_t sample = 1; sample < 20; ++sample) decode_all(sample);
  EXPECT_EQ(counter.count().allocations, 0U);
}

TEST(allocation, none_per_sample_of_several_rows_after_warming_up) {
  LEAT_NEEDS_ALLOCATION_COUNTER();
  testing::one_decoder one;
  const auto pictures = some_of_every_kind();
  const pixels::pipeline first({tr::random_resized_crop{.height = 64, .width = 64}, tr::random_flip{}});
  const pixels::pipeline second = first.as_view(2);
  const auto how = pixels::store::from(dtype::f16, layout::nchw, imagenet);
  std::vector<std::byte> memory(2 * how.row_bytes(64, 64));
  std::vector<pixels::picture_row> rows(2);
  const auto decode_all = [&](std::uint64_t sample) {
    for (const auto& encoded : pictures) {
      for (std::size_t i = 0; i < rows.size(); ++i) {
        rows[i] = {.steps = i == 0 ? &first : &second,
                   .key = {1, 0, sample},
                   .how = &how,
                   .options = {.exif_orientation = true, .decimate = true},
                   .row = memory.data() + i * how.row_bytes(64, 64)};
      }
      const auto result = one.decoder.decode_rows(encoded, rows, nullptr);
      ASSERT_TRUE(result) << result.reason();
    }
  };
  decode_all(0);
  const testing::allocation_counter counter;
  for (std::uint64_t sample = 1; sample < 20; ++sample) decode_all(sample);
  EXPECT_EQ(counter.count().allocations, 0U);
}

// What is reserved is an upper bound, and not a wasteful one: checked by what was really taken.
TEST(allocation, takes_no_more_than_it_said) {
  for (const auto& encoded : some_of_every_kind()) {
    const auto info = pixels::peek(encoded);
    ASSERT_TRUE(info);
    if (info->what != pixels::format::jpeg) continue;
    for (const int by : {1, 2, 4, 8}) {
      pixels::scratch_budget budget(std::size_t{64} << 20);
      pixels::scratch_arena arena(budget);
      pixels::jpeg_reader reader(arena);
      const pixels::rectangle region{0, 0, (info->width + by - 1) / by, (info->height + by - 1) / by};
      arena.begin();
      ASSERT_TRUE(reader.open(encoded, *info, {}));
      const std::size_t headers = arena.used();
      EXPECT_LT(headers, pixels::scratch_arena::base_bytes);
      const std::size_t said = reader.scratch_bytes(region, by);
      ASSERT_TRUE(arena.reserve(said));
      ASSERT_TRUE(reader.start(region, by));
      for (int y = 0; y < region.height;) {
        const auto some = reader.read();
        ASSERT_TRUE(some);
        y += some->count;
      }
      EXPECT_LE(arena.used() - headers, said);
      EXPECT_LT(said, arena.used() - headers + (std::size_t{40} << 10)) << "wastes too much";
      arena.end();
    }
  }
}

TEST(allocation, takes_no_more_for_a_png_than_it_said) {
  const testing::rgb_picture texture = testing::make_texture(6, 330, 250);
  for (const bool interlaced : {false, true}) {
    for (const int depth : {8, 16}) {
      for (const auto colours : {testing::png_colours::rgba, testing::png_colours::grey}) {
        testing::rgb_picture seen;
        const auto encoded =
            testing::make_png(texture, {.colours = colours, .depth = depth, .interlaced = interlaced}, seen);
        const auto info = pixels::peek(encoded);
        ASSERT_TRUE(info);
        pixels::scratch_budget budget(std::size_t{64} << 20);
        pixels::scratch_arena arena(budget);
        pixels::png_reader reader(arena);
        arena.begin();
        ASSERT_TRUE(reader.open(encoded, *info, {}));
        EXPECT_EQ(arena.used(), 0U);
        const pixels::rectangle region{0, 20, 330, 200};
        const std::size_t said = reader.scratch_bytes(region, 1);
        ASSERT_TRUE(arena.reserve(said));
        ASSERT_TRUE(reader.start(region, 1));
        for (int y = 0; y < region.height;) {
          const auto some = reader.read();
          ASSERT_TRUE(some);
          y += some->count;
        }
        EXPECT_LE(arena.used(), said);
        EXPECT_LT(said, arena.used() + (std::size_t{56} << 10)) << "wastes too much";
        arena.end();
      }
    }
  }
}

}  // namespace
}  // namespace leat
