// What is read of a photo pack: whatever else its bytes are, the pixels are the same.
#include "stages/fields/photo_reach.hpp"

#include "tests/pixels/random_jpeg.hpp"
#include "tests/support/seeds.hpp"

#include <leat/photo_pack.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <vector>

namespace leat::stages {
namespace {

using testing::between;
using byte_vector = std::vector<std::byte>;

byte_vector random_photo(std::mt19937_64& random, int side_max) {
  const testing::jpeg_colours colours[] = {testing::jpeg_colours::ycbcr, testing::jpeg_colours::ycbcr,
                                           testing::jpeg_colours::rgb, testing::jpeg_colours::grey};
  const testing::rgb_picture picture =
      testing::make_texture(random(), between(random, 1, side_max), between(random, 1, side_max));
  return testing::make_jpeg(
      picture, {.colours = colours[between(random, 0, 3)],
                .h = between(random, 1, 2),
                .v = between(random, 1, 2),
                .quality = between(random, 1, 100),
                .restart_interval = between(random, 0, 2) == 0 ? static_cast<unsigned>(between(random, 1, 9)) : 0,
                .orientation = between(random, 0, 8)});
}

pixels::pipeline random_steps(std::mt19937_64& random) {
  const filter how = between(random, 0, 1) == 0 ? filter::bilinear : filter::bicubic;
  const int size = between(random, 1, 40);
  switch (between(random, 0, 4)) {
    case 0:
      return pixels::pipeline({transforms::resize{.shorter_side = size + 4, .how = how},
                               transforms::center_crop{.height = size, .width = size}});
    case 1:
      return pixels::pipeline({transforms::random_crop{.height = size, .width = size, .padding = between(random, 0, 3)},
                               transforms::random_flip{}});
    case 2:
      return pixels::pipeline({transforms::random_resized_crop{.height = size, .width = size, .how = how},
                               transforms::random_flip{}, transforms::affine{.degrees = {-40, 40}, .scale = {0.5, 2}},
                               transforms::random_apply{0.5, {transforms::perspective{}}}},
                              pixel_rounding::fused);
    default:
      return pixels::pipeline({transforms::random_resized_crop{
                                   .height = size, .width = size, .scale = {0.02, 1}, .ratio = {0.5, 2}, .how = how},
                               transforms::random_flip{}});
  }
}

// All but the head and what is wanted becomes something else.
byte_vector without_the_rest(const byte_vector& pack, const datasets::photo_place& place,
                             const datasets::photo_range& wanted, std::mt19937_64& random) {
  byte_vector left = pack;
  for (std::size_t at = place.head_bytes; at < left.size(); ++at) {
    if (at < wanted.first || at >= wanted.end) left[at] ^= static_cast<std::byte>(random() % 255 + 1);
  }
  return left;
}

struct answer {
  outcome_kind kind;
  std::string reason;
  byte_vector row;
};

answer decode(testing::one_decoder& one, const byte_vector& encoded, const pixels::pipeline& steps,
              const pixels::draw_key& key, const pixels::decode_options& options) {
  const auto how = pixels::store::from(dtype::u8, layout::nhwc, std::nullopt);
  byte_vector row(how.row_bytes(steps.out_height(), steps.out_width()), std::byte{0xEE});
  const auto got = one.decoder.decode(encoded, steps, key, how, options, row.data(), nullptr);
  return {got.kind(), got ? std::string() : got.reason(), std::move(row)};
}

TEST(photo_reach, covers_all_that_decoding_looks_at) {
  testing::one_decoder one;
  int tried = 0;
  int places = 0;
  int spared = 0;
  testing::for_each_seed(600, [&](std::uint64_t seed) {
    ++tried;
    std::mt19937_64 random(seed);
    const byte_vector jpeg = random_photo(random, seed % 3 == 0 ? 300 : 90);
    const byte_vector pack = pack_photo(jpeg);
    const std::optional<datasets::photo_place> place = place_of_photo(pack);
    if (!place) return;  // grey, with sampling factors
    ++places;
    const pixels::pipeline steps = random_steps(random);
    const pixels::decode_options options{.exif_orientation = between(random, 0, 1) == 1,
                                         .decimate = between(random, 0, 1) == 1,
                                         .plain_huffman = between(random, 0, 3) == 0};
    for (std::uint64_t draw = 0; draw < 6; ++draw) {
      const pixels::draw_key key{.seed = seed, .epoch = 1, .draw = draw};
      const datasets::photo_range wanted = photo_bytes_wanted(*place, steps, key, options);
      spared += wanted.end - wanted.first < place->bytes - place->head_bytes - 32 ? 1 : 0;
      const answer whole = decode(one, pack, steps, key, options);
      ASSERT_EQ(whole.kind, outcome_kind::ok) << whole.reason;
      const answer ours = decode(one, without_the_rest(pack, *place, wanted, random), steps, key, options);
      ASSERT_EQ(ours.kind, outcome_kind::ok) << ours.reason << ", rows of " << wanted.first << ".." << wanted.end;
      ASSERT_EQ(ours.row, whole.row);
    }
  });
  if (tried < 100) return;  // of a replay
  EXPECT_GT(places, tried * 2 / 3);
  EXPECT_GT(spared, tried);
}

// Rows above are skipped some at a time there, so that a decoder can be stopped in between.
TEST(photo_reach, covers_it_in_pictures_of_megapixels_too) {
  testing::one_decoder one;
  std::mt19937_64 random(3);
  for (const int v : {1, 2}) {
    const byte_vector pack = pack_photo(testing::make_jpeg(testing::make_texture(9, 1500, 2600), {.h = 2, .v = v}));
    const std::optional<datasets::photo_place> place = place_of_photo(pack);
    ASSERT_TRUE(place);
    const pixels::pipeline steps({transforms::random_resized_crop{.height = 64, .width = 64, .scale = {0.01, 0.1}}});
    for (std::uint64_t draw = 0; draw < 12; ++draw) {
      const pixels::draw_key key{.seed = 1, .epoch = 0, .draw = draw};
      const pixels::decode_options options{.decimate = draw % 2 == 0};
      const datasets::photo_range wanted = photo_bytes_wanted(*place, steps, key, options);
      EXPECT_LT(wanted.end - wanted.first, place->bytes / 2);
      const answer whole = decode(one, pack, steps, key, options);
      const answer ours = decode(one, without_the_rest(pack, *place, wanted, random), steps, key, options);
      ASSERT_EQ(ours.kind, outcome_kind::ok) << ours.reason;
      ASSERT_EQ(ours.row, whole.row);
    }
  }
}

// Views of one picture share a pass: what each wants, and all rows between.
TEST(photo_reach, covers_several_rows_made_of_one_pack) {
  testing::one_decoder one;
  testing::for_each_seed(150, [&](std::uint64_t seed) {
    std::mt19937_64 random(seed);
    const byte_vector pack = pack_photo(random_photo(random, 200));
    const std::optional<datasets::photo_place> place = place_of_photo(pack);
    if (!place) return;
    const std::vector<pixels::pipeline> steps{random_steps(random), random_steps(random), random_steps(random)};
    const auto how = pixels::store::from(dtype::u8, layout::nhwc, std::nullopt);
    const pixels::draw_key key{.seed = seed, .epoch = 0, .draw = 3};
    const auto rows_of = [&](std::vector<byte_vector>& into) {
      std::vector<pixels::picture_row> rows;
      for (std::size_t i = 0; i < steps.size(); ++i) {
        into.emplace_back(how.row_bytes(steps[i].out_height(), steps[i].out_width()));
        rows.push_back({.steps = &steps[i], .key = key, .how = &how, .options = {.decimate = true}});
        rows.back().row = into.back().data();
      }
      return rows;
    };
    datasets::photo_range wanted{place->bytes, 0};
    for (const pixels::pipeline& each : steps) {
      const datasets::photo_range one_s = photo_bytes_wanted(*place, each, key, {.decimate = true});
      if (one_s.first == one_s.end) continue;
      wanted = {std::min(wanted.first, one_s.first), std::max(wanted.end, one_s.end)};
    }
    std::vector<byte_vector> expected;
    std::vector<pixels::picture_row> rows = rows_of(expected);
    ASSERT_TRUE(one.decoder.decode_rows(pack, rows, nullptr));
    std::vector<byte_vector> got;
    rows = rows_of(got);
    const auto made = one.decoder.decode_rows(without_the_rest(pack, *place, wanted, random), rows, nullptr);
    ASSERT_TRUE(made) << made.reason();
    ASSERT_EQ(got, expected);
  });
}

TEST(photo_reach, is_all_of_a_picture_that_is_refused_for_its_size) {
  const byte_vector pack = pack_photo(testing::make_jpeg(testing::make_texture(1, 100, 300), {}));
  const std::optional<datasets::photo_place> place = place_of_photo(pack);
  ASSERT_TRUE(place);
  const pixels::pipeline steps({transforms::random_resized_crop{.height = 8, .width = 8, .scale = {0.01, 0.02}}});
  EXPECT_LT(photo_bytes_wanted(*place, steps, {}, {}).end, place->bytes);
  EXPECT_EQ(photo_bytes_wanted(*place, steps, {}, {.pixels_max = 29'999}),
            (datasets::photo_range{place->head_bytes, place->bytes}));
}

TEST(photo_reach, finds_no_place_in_what_is_no_pack) {
  const byte_vector jpeg = testing::make_jpeg(testing::make_texture(1, 60, 40), {});
  EXPECT_FALSE(place_of_photo(jpeg));
  EXPECT_FALSE(place_of_photo({}));
  byte_vector pack = pack_photo(jpeg);
  ASSERT_TRUE(place_of_photo(pack));
  EXPECT_FALSE(place_of_photo(std::span(pack).first(pack.size() - 1)));
  pack[60] ^= std::byte{1};
  EXPECT_FALSE(place_of_photo(pack));
}

}  // namespace
}  // namespace leat::stages
