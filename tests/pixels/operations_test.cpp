// Noise and damage, each against its definition; and what all operations of the table have to keep.
#include "stages/pixels/operations/normal_numbers.hpp"
#include "stages/pixels/operations/operation.hpp"
#include "tests/pixels/row_of.hpp"
#include "tests/support/allocation_counter.hpp"
#include "tests/support/each_target.hpp"
#include "tests/support/seeds.hpp"

#include <leat/error.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace leat {
namespace {

using pixels::recipe;
using testing::rgb_picture;
namespace tr = transforms;

recipe drawn_by(const pixels::pipeline& chain, std::uint64_t sample) {
  recipe passes;
  chain.draw_colour({.seed = 5, .epoch = 1, .draw = sample}, passes);
  return passes;
}
rgb_picture made_by(const rgb_picture& picture, const std::string& text, std::uint64_t sample = 0) {
  return testing::coloured(picture, drawn_by(testing::chain_for(picture, parse_transforms(text)), sample));
}
rgb_picture even(int width, int height, std::uint8_t value) {
  return {width, height, std::vector<std::uint8_t>(static_cast<std::size_t>(width * height * 3), value)};
}
std::vector<rgb_picture> some_pictures() {
  return {testing::make_texture(1, 97, 64), testing::make_noise(2, 33, 40), testing::make_noise(3, 1, 1),
          testing::make_noise(4, 2, 19),    testing::make_noise(5, 19, 2),  even(20, 20, 255)};
}
int reflected(int i, int size) {
  if (size == 1) return 0;
  while (i < 0 || i >= size) i = i < 0 ? -i : 2 * (size - 1) - i;
  return i;
}

const char* const all_operations[] = {"gaussian_noise(-0.1..0.1, 0..0.5)",
                                      "iso_noise",
                                      "salt_and_pepper(0..0.5, 0..1)",
                                      "coarse_dropout(0..9, 0..1, 0..1, 1/2/3)",
                                      "jpeg_quality(1..100)",
                                      "downscale(0.01..1)",
                                      "median_blur(1..7)",
                                      "motion_blur(1..31)",
                                      "clahe(0..9, 3x5)"};

TEST(operations, have_one_digest_on_every_instruction_set_and_nothing_of_what_lay_in_the_scratch) {
  for (const rgb_picture& picture : some_pictures()) {
    for (const char* const text : all_operations) {
      SCOPED_TRACE(text);
      const pixels::pipeline chain = testing::chain_for(picture, parse_transforms(text));
      for (std::uint64_t sample = 0; sample < 4; ++sample) {
        const recipe passes = drawn_by(chain, sample);
        ASSERT_EQ(passes.count, 1U);
        rgb_picture first;
        testing::for_each_target([&] {
          const rgb_picture got = testing::coloured(picture, passes);
          if (first.pixels.empty()) first = got;
          ASSERT_EQ(got, first) << text_of(passes.passes[0]);
        });
      }
    }
  }
}

TEST(operations, among_other_steps_are_what_they_are_alone) {
  const rgb_picture picture = testing::make_texture(7, 53, 41);
  testing::for_each_seed(20, [&](std::uint64_t seed) {
    tr::in_random_order all;
    for (const char* const text : all_operations) all.steps.push_back(parse_transforms(text)[0]);
    for (const char* const text : {"equalize", "rotate(20)", "hue(0.1)", "brightness(1.3)", "sharpness(2)"}) {
      all.steps.push_back(parse_transforms(text)[0]);
    }
    const pixels::pipeline chain = testing::chain_for(picture, {all});
    const recipe passes = drawn_by(chain, seed);
    rgb_picture expected = picture;
    for (const pixels::colour_pass& pass : passes.drawn()) {
      recipe one;
      one.key = passes.key;
      one.add(pass);
      expected = testing::coloured(expected, one);
    }
    ASSERT_EQ(testing::coloured(picture, passes), expected);
  });
}

TEST(operations, take_the_scratch_that_they_say_and_no_memory_besides) {
  LEAT_NEEDS_ALLOCATION_COUNTER();
  std::string text;
  for (const char* const each : all_operations) text += std::string(each) + " ";
  const rgb_picture picture = testing::make_texture(12, 70, 50);
  const pixels::pipeline chain = testing::chain_for(picture, parse_transforms(text));
  const auto how = pixels::store::from(dtype::f16, layout::nchw, imagenet);
  pixels::scratch_budget budget(std::size_t{64} << 20);
  pixels::scratch_arena arena(budget);
  std::vector<std::byte> row(how.row_bytes(50, 70));
  const std::vector<std::uint8_t> line(70 * 3, 77);
  const auto run = [&](std::uint64_t sample) {
    recipe passes;
    chain.draw_colour({1, 0, sample}, passes);
    arena.begin();
    pixels::row_writer writer(how, &passes, 50, 70, row.data());
    ASSERT_TRUE(arena.reserve(writer.scratch_bytes()));
    ASSERT_LE(writer.scratch_bytes(), pixels::row_writer::scratch_bytes_most(chain));
    ASSERT_TRUE(writer.start(arena));
    ASSERT_EQ(arena.used(), writer.scratch_bytes());
    for (int y = 0; y < 50; ++y) writer.take(line.data(), y);
    ASSERT_TRUE(writer.finish());
    arena.end();
  };
  for (std::uint64_t sample = 0; sample < 20; ++sample) run(sample);
  const testing::allocation_counter counter;
  for (std::uint64_t sample = 0; sample < 20; ++sample) run(sample);
  EXPECT_EQ(counter.count().allocations, 0U);
}

TEST(operations, say_what_was_drawn_as_text_that_makes_the_same) {
  for (const char* const text : all_operations) {
    const pixels::pipeline chain = testing::chain_for(even(9, 9, 0), parse_transforms(text));
    const recipe passes = drawn_by(chain, 3);
    const std::string said = text_of(passes.passes[0]);
    EXPECT_EQ(to_string(parse_transforms(said).at(0)), said);
  }
  EXPECT_EQ(to_string(parse_transforms("median_blur(5) motion_blur(3..9, 0..90, 0, 0) clahe(2, 4x6)").at(1)),
            "motion_blur(3..9, 0..90, 0, 0)");
}

TEST(operations, refuse_numbers_out_of_range) {
  const double nan = std::nan("");
  const transform wrong[] = {tr::gaussian_noise{.sigma = {-0.1, 0}},
                             tr::gaussian_noise{.sigma = {nan, nan}},
                             tr::gaussian_noise{.mean = {0.5, 0.4}},
                             tr::iso_noise{.intensity = {0, 1.5}},
                             tr::iso_noise{.color_shift = {nan, 1}},
                             tr::salt_and_pepper{.amount = {0, 1.1}},
                             tr::salt_and_pepper{.salt = {-1, 1}},
                             tr::coarse_dropout{.holes = {-1, 1}},
                             tr::coarse_dropout{.holes = {1, 1001}},
                             tr::coarse_dropout{.height = {0.5, 1.5}},
                             tr::coarse_dropout{.fill = {0, 0, 256}},
                             tr::jpeg_quality{{0, 50}},
                             tr::jpeg_quality{{90, 80}},
                             tr::jpeg_quality{{90, 101}},
                             tr::downscale{{0, 0.5}},
                             tr::downscale{{0.5, 1.5}},
                             tr::median_blur{{3, 9}},
                             tr::median_blur{{2, 5}},
                             tr::median_blur{{-1, 5}},
                             tr::motion_blur{.kernel = {3, 33}},
                             tr::motion_blur{.angle = {0, 1e9}},
                             tr::motion_blur{.direction = {-2, 0}},
                             tr::clahe{.clip = {-1, 0}},
                             tr::clahe{.rows = 0},
                             tr::clahe{.columns = 65}};
  for (const transform& each : wrong) EXPECT_THROW(pixels::check_numbers(each), error) << to_string(each);
  for (const char* const text :
       {"median_blur(3..)", "median_blur(..3)", "median_blur(3.5)", "coarse_dropout(1..2, 0.1, x)"}) {
    EXPECT_THROW(static_cast<void>(parse_transforms(text)), error) << text;
  }
}

TEST(operations, are_random_where_two_draws_can_differ) {
  const auto is_random = [](const transform& what) { return pixels::pipeline({tr::center_crop{8, 8}, what}).random(); };
  EXPECT_FALSE(is_random(tr::jpeg_quality{{80, 80}}));
  EXPECT_TRUE(is_random(tr::jpeg_quality{{80, 90}}));
  EXPECT_FALSE(is_random(tr::clahe{{2, 2}}));
  EXPECT_TRUE(is_random(tr::gaussian_noise{{0, 0}, {0.1, 0.1}}));
}

// statistics.NormalDist().inv_cdf(0.5 + (i + 0.5) / 65536) of Python.
TEST(normal_numbers, are_quantiles) {
  const pixels::normal_numbers& normal = pixels::normal_numbers::get();
  EXPECT_NEAR(normal.of(0x8000), 1.9124056051512083e-05, 1e-11);
  EXPECT_NEAR(normal.of(0xFFFF), 4.324919040826044, 1e-6);
  EXPECT_NEAR(normal.of(0x7FFF), -4.324919040826044, 1e-6);
  EXPECT_NEAR(normal.of(0x8000 + 11185), 0.44178384503610013, 1e-7);
  double sum = 0, squares = 0, fourth = 0;
  for (std::uint32_t bits = 0; bits < 65536; ++bits) {
    const double z = normal.of(bits);
    ASSERT_EQ(normal.of(bits ^ 0x8000), -normal.of(bits));
    sum += z;
    squares += z * z;
    fourth += z * z * z * z;
  }
  EXPECT_NEAR(sum, 0, 1e-6);
  EXPECT_NEAR(squares / 65536, 1, 1e-3);
  EXPECT_NEAR(fourth / 65536, 3, 2e-2);
}

TEST(gaussian_noise, has_its_mean_and_deviation_and_no_two_values_alike) {
  const rgb_picture grey = even(200, 150, 128);
  const rgb_picture got = made_by(grey, "gaussian_noise(0.05, 0.08)");
  double sum = 0, squares = 0, across = 0, between = 0;
  const std::size_t count = got.pixels.size();
  for (std::size_t i = 0; i < count; ++i) {
    const double off = got.pixels[i] - 128.0;
    sum += off;
    squares += off * off;
    const double mean = 0.05 * 255;
    if (i + 3 < count) across += (off - mean) * (got.pixels[i + 3] - 128 - mean);
    if (i + 1 < count) between += (off - mean) * (got.pixels[i + 1] - 128 - mean);
  }
  const auto all = static_cast<double>(count);
  const double deviation = 0.08 * 255;
  EXPECT_NEAR(sum / all, 0.05 * 255, 5 * deviation / std::sqrt(all));
  EXPECT_NEAR(std::sqrt(squares / all - sum * sum / all / all), deviation, 0.3);
  EXPECT_NEAR(across / all / deviation / deviation, 0, 0.02) << "neighbours are alike";
  EXPECT_NEAR(between / all / deviation / deviation, 0, 0.02) << "channels are alike";
  EXPECT_NE(made_by(grey, "gaussian_noise(0, 0.1)", 1), made_by(grey, "gaussian_noise(0, 0.1)", 2));
  EXPECT_EQ(made_by(grey, "gaussian_noise(0, 0)"), grey);
}

TEST(salt_and_pepper, falls_on_whole_pixels_as_often_as_is_said) {
  const rgb_picture grey = even(300, 200, 100);
  const rgb_picture got = made_by(grey, "salt_and_pepper(0.1, 0.25)");
  int white = 0, black = 0;
  for (std::size_t i = 0; i < got.pixels.size(); i += 3) {
    ASSERT_EQ(got.pixels[i], got.pixels[i + 1]);
    ASSERT_EQ(got.pixels[i], got.pixels[i + 2]);
    white += got.pixels[i] == 255 ? 1 : 0;
    black += got.pixels[i] == 0 ? 1 : 0;
  }
  EXPECT_NEAR(white, 60'000 * 0.025, 200);
  EXPECT_NEAR(black, 60'000 * 0.075, 330);
  EXPECT_EQ(made_by(grey, "salt_and_pepper(0)"), grey);
  EXPECT_EQ(made_by(grey, "salt_and_pepper(1, 1)"), even(300, 200, 255));
}

TEST(coarse_dropout, fills_rectangles_of_the_sizes_that_are_said_at_every_place) {
  const rgb_picture grey = even(40, 50, 100);
  std::set<int> tops;
  for (std::uint64_t sample = 0; sample < 300; ++sample) {
    const rgb_picture got = made_by(grey, "coarse_dropout(1, 0.2, 0.5, 9/8/7)", sample);
    int filled = 0;
    int top = -1;
    for (int y = 0; y < 50; ++y) {
      for (int x = 0; x < 40; ++x) {
        if (got.at(x, y)[0] == 100) continue;
        ASSERT_EQ(got.at(x, y)[0], 9);
        ASSERT_EQ(got.at(x, y)[2], 7);
        ++filled;
        if (top < 0) top = y;
      }
    }
    ASSERT_EQ(filled, 10 * 20);
    tops.insert(top);
  }
  EXPECT_EQ(tops.size(), 41U);
  EXPECT_EQ(made_by(grey, "coarse_dropout(1, 1, 1, 3)"), even(40, 50, 3));
  EXPECT_EQ(made_by(grey, "coarse_dropout(0)"), grey);
}

TEST(downscale, shows_the_nearest_of_the_nearest) {
  rgb_picture steps{8, 1, {}};
  for (int x = 0; x < 8; ++x) steps.pixels.insert(steps.pixels.end(), 3, static_cast<std::uint8_t>(10 * x));
  const rgb_picture got = made_by(steps, "downscale(0.5)");
  for (int x = 0; x < 8; ++x) EXPECT_EQ(got.at(x, 0)[1], 20 * (x / 2)) << x;
  EXPECT_EQ(made_by(steps, "downscale(1)"), steps);
  EXPECT_EQ(made_by(steps, "downscale(0.01)"), (rgb_picture{8, 1, std::vector<std::uint8_t>(24, 0)}));
}

TEST(median_blur, is_the_middle_of_the_sorted_values) {
  for (const rgb_picture& picture : some_pictures()) {
    for (const int side : {1, 3, 5, 7}) {
      const rgb_picture got = made_by(picture, "median_blur(" + std::to_string(side) + ")");
      for (int y = 0; y < picture.height; ++y) {
        for (int x = 0; x < picture.width; ++x) {
          for (std::size_t c = 0; c < 3; ++c) {
            std::vector<std::uint8_t> around;
            for (int dy = -side / 2; dy <= side / 2; ++dy) {
              for (int dx = -side / 2; dx <= side / 2; ++dx) {
                around.push_back(
                    picture.at(std::clamp(x + dx, 0, picture.width - 1), std::clamp(y + dy, 0, picture.height - 1))[c]);
              }
            }
            std::sort(around.begin(), around.end());
            ASSERT_EQ(got.at(x, y)[c], around[around.size() / 2]) << side << ' ' << x << ' ' << y;
          }
        }
      }
    }
  }
}

TEST(motion_blur, is_the_mean_along_a_line) {
  for (const rgb_picture& picture : some_pictures()) {
    const rgb_picture across = made_by(picture, "motion_blur(5, 0, 0, 0)");
    const rgb_picture down = made_by(picture, "motion_blur(3, 90, 0, 0)");
    const rgb_picture ahead = made_by(picture, "motion_blur(9, 0, 1, 0)");
    for (int y = 0; y < picture.height; ++y) {
      for (int x = 0; x < picture.width; ++x) {
        for (std::size_t c = 0; c < 3; ++c) {
          const auto mean = [&](int first, int last, bool is_down) {
            int sum = 0;
            for (int i = first; i <= last; ++i) {
              sum += is_down ? picture.at(x, reflected(y + i, picture.height))[c]
                             : picture.at(reflected(x + i, picture.width), y)[c];
            }
            const int count = last - first + 1;
            return (2 * sum + count) / (2 * count);
          };
          ASSERT_EQ(across.at(x, y)[c], mean(-2, 2, false));
          ASSERT_EQ(down.at(x, y)[c], mean(-1, 1, true));
          ASSERT_EQ(ahead.at(x, y)[c], mean(0, 4, false));
        }
      }
    }
  }
  EXPECT_EQ(made_by(even(40, 30, 255), "motion_blur(31, 33, 0.5)"), even(40, 30, 255));
}

TEST(clahe, spreads_a_picture_of_few_values_and_keeps_one_of_a_single_one_even) {
  rgb_picture dull = testing::make_texture(8, 96, 80);
  for (std::uint8_t& value : dull.pixels) value = static_cast<std::uint8_t>(100 + value / 8);
  const rgb_picture got = made_by(dull, "clahe(4)");
  const auto range = [](const rgb_picture& of) {
    const auto [least, most] = std::minmax_element(of.pixels.begin(), of.pixels.end());
    return *most - *least;
  };
  EXPECT_GT(2 * range(got), 3 * range(dull));
  const rgb_picture level = made_by(even(64, 64, 90), "clahe(2)");
  EXPECT_EQ(level, even(64, 64, level.pixels[0]));
  // One tile and no clip: the table of the histogram, on luma.
  const rgb_picture picture = testing::make_texture(9, 40, 30);
  std::vector<int> luma;
  for (std::size_t i = 0; i < picture.pixels.size(); i += 3) {
    luma.push_back((77 * picture.pixels[i] + 150 * picture.pixels[i + 1] + 29 * picture.pixels[i + 2] + 128) / 256);
  }
  const rgb_picture plain = made_by(picture, "clahe(0, 1)");
  for (std::size_t i = 0; i < luma.size(); ++i) {
    const auto up_to = std::count_if(luma.begin(), luma.end(), [&](int each) { return each <= luma[i]; });
    const int moved = static_cast<int>(std::nearbyint(static_cast<double>(up_to) * 255 / 1200)) - luma[i];
    for (std::size_t c = 0; c < 3; ++c) {
      ASSERT_NEAR(plain.pixels[3 * i + c], std::clamp(picture.pixels[3 * i + c] + moved, 0, 255), 1);
    }
  }
}

TEST(iso_noise, raises_lightness_and_leaves_even_pictures_almost_as_they_are) {
  const rgb_picture picture = testing::make_texture(6, 80, 60);
  const rgb_picture none = made_by(picture, "iso_noise(0, 0)");
  for (std::size_t i = 0; i < none.pixels.size(); ++i) ASSERT_NEAR(none.pixels[i], picture.pixels[i], 1);
  const rgb_picture got = made_by(picture, "iso_noise(0.05, 0.5)");
  int raised = 0, lowered = 0;
  for (std::size_t i = 0; i < got.pixels.size(); i += 3) {
    const auto light = [&](const rgb_picture& of) {
      return std::max({of.pixels[i], of.pixels[i + 1], of.pixels[i + 2]}) +
             std::min({of.pixels[i], of.pixels[i + 1], of.pixels[i + 2]});
    };
    raised += light(got) > light(picture) + 2 ? 1 : 0;
    lowered += light(got) < light(picture) - 2 ? 1 : 0;
  }
  EXPECT_GT(raised, 100);
  EXPECT_EQ(lowered, 0);
  EXPECT_EQ(made_by(even(9, 9, 77), "iso_noise(0, 1)"), even(9, 9, 77));
}

TEST(jpeg_quality, is_libjpegs_encoder_and_decoder_bit_for_bit) {
  for (const rgb_picture& picture :
       {testing::make_texture(1, 97, 64), testing::make_noise(2, 33, 40), testing::make_noise(3, 1, 1),
        testing::make_noise(4, 2, 19), testing::make_noise(5, 19, 2), testing::make_noise(6, 16, 16),
        testing::make_texture(7, 48, 31), testing::make_noise(8, 3, 3), testing::make_noise(9, 17, 15)}) {
    for (const int quality : {1, 10, 49, 50, 75, 95, 100}) {
      ASSERT_EQ(made_by(picture, "jpeg_quality(" + std::to_string(quality) + ")"),
                testing::decode_whole_jpeg(testing::make_jpeg(picture, {.quality = quality}), 1))
          << picture.width << " x " << picture.height << " at " << quality;
    }
  }
}

}  // namespace
}  // namespace leat
