#include "tests/pixels/random_jpeg.hpp"
#include "tests/support/seeds.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace leat {
namespace {

using pixels::decode_options;
using stages::outcome_kind;
using testing::ask_huffman;
using testing::between;
using testing::huffman_answer;
using testing::huffman_stage;
using testing::one_decoder;
using testing::random_jpeg;

pixels::geometry random_crop(std::mt19937_64& random, const std::vector<std::byte>& encoded) {
  const auto info = pixels::peek(encoded);
  const int width = info ? info->width : 1;
  const int height = info ? info->height : 1;
  const int w = between(random, 1, width);
  const int h = between(random, 1, height);
  const pixels::rectangle box{between(random, 0, width - w), between(random, 0, height - h), w, h};
  if (between(random, 0, 1) == 0) return testing::plain_box(box.x, box.y, w, h);
  return testing::scaled_box(box, between(random, 1, 12), between(random, 1, 12), filter::bilinear);
}

// A good picture, which needs no second try.
void compare(one_decoder& one, const std::vector<std::byte>& encoded, const pixels::geometry& drawn,
             const decode_options& options) {
  const huffman_answer theirs = ask_huffman(one.decoder, encoded, drawn, options, huffman_stage::libjpeg);
  ASSERT_EQ(theirs.kind, outcome_kind::ok) << theirs.reason;
  for (const huffman_stage by : {huffman_stage::own, huffman_stage::own_plain}) {
    const huffman_answer ours = ask_huffman(one.decoder, encoded, drawn, options, by);
    ASSERT_EQ(ours.kind, outcome_kind::ok) << ours.reason;
    ASSERT_EQ(ours.row, theirs.row);
    ASSERT_FALSE(ours.again);
  }
}

TEST(baseline_huffman, makes_the_pixels_that_libjpeg_makes_and_needs_no_second_try) {
  one_decoder one;
  testing::for_each_seed(400, [&](std::uint64_t seed) {
    std::mt19937_64 random(seed);
    const auto encoded = random_jpeg(random);
    const auto drawn = random_crop(random, encoded);
    const decode_options options{.decimate = between(random, 0, 1) == 1};
    compare(one, encoded, drawn, options);
  });
}

// Scans of several buffers, and so many blocks above the crop that the tables for skipping are built: here no side is small.
TEST(baseline_huffman, makes_the_pixels_of_large_pictures) {
  one_decoder one;
  testing::for_each_seed(6, [&](std::uint64_t seed) {
    std::mt19937_64 random(seed);
    const testing::rgb_picture picture =
        testing::make_noise(random, between(random, 250, 400), between(random, 250, 400));
    const auto encoded = testing::make_jpeg(
        picture, {.h = between(random, 1, 2),
                  .v = between(random, 1, 2),
                  .quality = between(random, 30, 100),
                  .restart_interval = between(random, 0, 1) == 1 ? static_cast<unsigned>(between(random, 1, 900)) : 0,
                  .optimise = between(random, 0, 1) == 1});
    const decode_options options{.decimate = between(random, 0, 1) == 1};
    for (const auto& drawn : {testing::plain_box(0, 0, picture.width, picture.height),
                              testing::plain_box(70, picture.height - 60, 150, 60), random_crop(random, encoded)}) {
      compare(one, encoded, drawn, options);
    }
  });
}

// Whatever is done to a file, ours answers as libjpeg does: the same pixels, or the same words.
TEST(baseline_huffman, answers_damaged_pictures_as_libjpeg_does) {
  one_decoder one;
  int good = 0;
  int bad = 0;
  int again = 0;
  testing::for_each_seed(3000, [&](std::uint64_t seed) {
    std::mt19937_64 random(seed);
    auto encoded = random_jpeg(random);
    const auto drawn = random_crop(random, encoded);
    // Where the scan begins, so that most of the damage is in it.
    const std::byte marker[] = {std::byte{0xFF}, std::byte{0xDA}};
    const auto scan = static_cast<std::size_t>(
        std::search(encoded.begin(), encoded.end(), std::begin(marker), std::end(marker)) - encoded.begin());
    const bool anywhere = between(random, 0, 9) == 0;
    const auto place = [&] {
      const std::size_t from = anywhere ? 0 : std::min(scan, encoded.size() - 1);
      return from + random() % (encoded.size() - from);
    };
    for (int i = between(random, 0, 3); i > 0; --i) {
      switch (between(random, 0, 4)) {
        case 0:
          encoded[place()] ^= static_cast<std::byte>(1U << random() % 8);
          break;
        case 1:
          encoded[place()] = static_cast<std::byte>(random());
          break;
        case 2: {  // a marker
          const std::size_t at = place();
          encoded[at] = std::byte{0xFF};
          if (at + 1 < encoded.size()) encoded[at + 1] = static_cast<std::byte>(0xD0 + random() % 10);
          break;
        }
        case 3: {  // a hole
          const std::size_t at = place();
          encoded.erase(
              encoded.begin() + static_cast<std::ptrdiff_t>(at),
              encoded.begin() + static_cast<std::ptrdiff_t>(std::min<std::size_t>(at + random() % 9, encoded.size())));
          break;
        }
        default:
          encoded.resize(place() + 1);
      }
      if (encoded.empty()) return;
    }
    const decode_options options{.pixels_max = 1'000'000, .decimate = between(random, 0, 1) == 1};
    const huffman_answer theirs = ask_huffman(one.decoder, encoded, drawn, options, huffman_stage::libjpeg);
    const auto by = seed % 2 == 0 ? huffman_stage::own : huffman_stage::own_plain;
    const huffman_answer ours = ask_huffman(one.decoder, encoded, drawn, options, by);
    ASSERT_EQ(ours.kind, theirs.kind) << ours.reason << " and " << theirs.reason;
    ASSERT_EQ(ours.reason, theirs.reason);
    ASSERT_EQ(ours.row, theirs.row);
    (ours.kind == outcome_kind::ok ? good : bad) += 1;
    again += ours.again ? 1 : 0;
  });
  if (testing::seed_count(3000) < 300) return;  // too few to have seen everything
  EXPECT_GT(good, 0);
  EXPECT_GT(bad, 0);
  EXPECT_GT(again, 0);
}

// Rows of several decimations are made of one picture that is read again for each: codes are decoded once, and what one read has not come to
// by the next. Damaged pictures included: rows that are made are those that libjpeg makes alone.
TEST(baseline_huffman, keeps_what_the_next_read_of_the_picture_wants) {
  one_decoder one;
  int several = 0;
  int damaged = 0;
  testing::for_each_seed(400, [&](std::uint64_t seed) {
    std::mt19937_64 random(seed);
    auto encoded = random_jpeg(random, 300);
    const bool whole = between(random, 0, 2) != 0;
    if (!whole) {
      const std::size_t from = encoded.size() / 2;
      encoded[from + random() % (encoded.size() - from)] = static_cast<std::byte>(random());
    }
    const auto how = pixels::store::from(dtype::u8, layout::nhwc, std::nullopt);
    std::vector<pixels::pipeline> steps;
    for (int i = between(random, 2, 6); i > 0; --i) {
      const transforms::random_resized_crop crop{
          .height = between(random, 1, 40), .width = between(random, 1, 40), .scale = {0.02, 1}};
      steps.push_back(pixels::pipeline({crop, transforms::random_flip{}}).as_view(static_cast<std::uint32_t>(i)));
    }
    const decode_options options{
        .exif_orientation = true, .decimate = true, .plain_huffman = between(random, 0, 1) == 1};
    std::vector<std::vector<std::byte>> made;
    std::vector<pixels::picture_row> rows;
    for (const pixels::pipeline& each : steps) {
      made.emplace_back(how.row_bytes(each.out_height(), each.out_width()));
      rows.push_back({.steps = &each, .key = {seed, 1, 2}, .how = &how, .options = options, .row = made.back().data()});
    }
    const auto together = one.decoder.decode_rows(encoded, rows, nullptr);
    if (whole) ASSERT_TRUE(together) << together.reason();
    if (!together) return;
    decode_options library = options;
    library.own_huffman = false;
    for (std::size_t i = 0; i < steps.size(); ++i) {
      std::vector<std::byte> alone(made[i].size());
      const auto result = one.decoder.decode(encoded, steps[i], {seed, 1, 2}, how, library, alone.data(), nullptr);
      ASSERT_TRUE(result) << result.reason();
      ASSERT_EQ(made[i], alone) << "row " << i << ", decimated by " << rows[i].decimation;
    }
    const bool differ = std::any_of(rows.begin(), rows.end(), [&](const pixels::picture_row& each) {
      return each.decimation != rows.front().decimation;
    });
    several += differ ? 1 : 0;
    damaged += differ && !whole ? 1 : 0;
  });
  if (testing::seed_count(400) < 300) return;  // too few to have seen everything
  EXPECT_GT(several, 100);
  EXPECT_GT(damaged, 5);
}

// Files whose scan stops in the last bytes: ours reads ahead, and must not mistake what is not there for what is.
TEST(baseline_huffman, reads_to_the_last_bit_and_not_further) {
  one_decoder one;
  testing::for_each_seed(20, [&](std::uint64_t seed) {
    std::mt19937_64 random(seed);
    const auto whole = random_jpeg(random);
    const auto info = pixels::peek(whole);
    ASSERT_TRUE(info);
    const auto drawn = testing::plain_box(0, 0, info->width, info->height);
    for (std::size_t cut = 0; cut < std::min<std::size_t>(whole.size(), 40); ++cut) {
      const std::vector<std::byte> encoded(whole.begin(), whole.end() - static_cast<std::ptrdiff_t>(cut));
      const huffman_answer theirs = ask_huffman(one.decoder, encoded, drawn, {}, huffman_stage::libjpeg);
      const auto by = seed % 2 == 0 ? huffman_stage::own : huffman_stage::own_plain;
      const huffman_answer ours = ask_huffman(one.decoder, encoded, drawn, {}, by);
      ASSERT_EQ(ours.kind, theirs.kind) << cut << " bytes cut off: " << ours.reason << " and " << theirs.reason;
      ASSERT_EQ(ours.reason, theirs.reason) << cut;
      ASSERT_EQ(ours.row, theirs.row) << cut;
    }
  });
}

}  // namespace
}  // namespace leat
