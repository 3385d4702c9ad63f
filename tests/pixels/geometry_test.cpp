#include "stages/pixels/geometry.hpp"

#include "base/portable_math.hpp"
#include "stages/pixels/recipe.hpp"
#include "tests/support/chi_square.hpp"
#include "tests/support/seeds.hpp"

#include <leat/error.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <vector>

namespace leat {
namespace {

using pixels::draw_key;
using pixels::geometry;
using pixels::inverse;
using pixels::pipeline;
using pixels::rectangle;
using pixels::seen_from;
using pixels::warp_matrix;
using ::testing::HasSubstr;
namespace tr = transforms;

std::string refusal(std::vector<transform> steps) {
  try {
    const pipeline p(std::move(steps));
  } catch (const error& e) {
    EXPECT_EQ(e.code(), errc::usage);
    return e.what();
  }
  return "";
}

TEST(geometry, folds_torchvisions_evaluation_chain) {
  const pipeline eval({tr::resize{.shorter_side = 256}, tr::center_crop{224, 224}});
  EXPECT_FALSE(eval.random());
  const geometry g = eval.compile(500, 375, {});
  EXPECT_EQ(g.box, (rectangle{0, 0, 500, 375}));
  EXPECT_EQ(g.scaled_width, 341);  // int(256 * 500 / 375) truncates 341.33
  EXPECT_EQ(g.scaled_height, 256);
  EXPECT_EQ(g.crop_x, 58);  // round(58.5) goes to the even neighbour
  EXPECT_EQ(g.crop_y, 16);
  EXPECT_EQ(g.out_width, 224);
  EXPECT_EQ(g.out_height, 224);

  EXPECT_EQ(eval.compile(375, 500, {}).scaled_height, 341);
  EXPECT_EQ(eval.compile(383, 256, {}).crop_x, 80);  // round(79.5)
}

TEST(geometry, pads_a_centre_crop_larger_than_the_picture) {
  const geometry g = pipeline({tr::center_crop{10, 7}}).compile(4, 5, {});
  EXPECT_EQ(g.crop_x, -1);  // (7 - 4) // 2 on the left, one more on the right
  EXPECT_EQ(g.crop_y, -2);
  EXPECT_EQ(g.out_width, 7);
  EXPECT_EQ(g.out_height, 10);
}

// ultralytics.data.augment.LetterBox(640, auto=False) of these sizes: new_unpad, left and top.
TEST(geometry, letterboxes_as_ultralytics) {
  const pipeline chain({tr::letterbox{}});
  EXPECT_FALSE(chain.random());
  EXPECT_FALSE(chain.geometry_is_random());
  const geometry wide = chain.compile(1280, 720, {});
  EXPECT_EQ(wide.scaled_width, 640);
  EXPECT_EQ(wide.scaled_height, 360);
  EXPECT_EQ(wide.crop_x, 0);
  EXPECT_EQ(wide.crop_y, -140);
  EXPECT_EQ(wide.out_height, 640);
  EXPECT_EQ(wide.fill, (std::array<std::uint8_t, 3>{114, 114, 114}));
  EXPECT_TRUE(wide.pads_otherwise());
  const geometry odd = chain.compile(333, 500, {});  // 426.24 wide: 213 left over, 106 of them on the left
  EXPECT_EQ(odd.scaled_width, 426);
  EXPECT_EQ(odd.crop_x, -107);
  EXPECT_FALSE(chain.compile(77, 77, {}).pads_otherwise());
}

TEST(geometry, scales_by_the_longer_or_the_shorter_side_and_by_a_drawn_factor) {
  const geometry longer =
      pipeline({tr::longest_side{100}, tr::pad_to{120, 110, {1, 2, 3}, placement::bottom_right}}).compile(50, 333, {});
  EXPECT_EQ(longer.scaled_height, 100);
  EXPECT_EQ(longer.scaled_width, 15);
  EXPECT_EQ(longer.crop_x, 15 - 110);
  EXPECT_EQ(longer.crop_y, 100 - 120);
  const geometry corner =
      pipeline({tr::longest_side{100}, tr::pad_to{120, 110, {}, placement::top_left}}).compile(50, 333, {});
  EXPECT_EQ(corner.crop_x, 0);
  EXPECT_EQ(corner.crop_y, 0);
  const geometry shorter = pipeline({tr::smallest_side{100}, tr::center_crop{64, 64}}).compile(50, 333, {});
  EXPECT_EQ(shorter.scaled_width, 100);
  EXPECT_EQ(shorter.scaled_height, 666);

  const pipeline jitter({tr::longest_side{640}, tr::random_scale{{0.5, 2}}, tr::random_crop{640, 640, 0, {9, 9, 9}}});
  EXPECT_TRUE(jitter.geometry_is_random());
  std::vector<std::uint32_t> quarters(4);
  for (std::uint64_t i = 0; i < 4000; ++i) {
    const geometry g = jitter.compile(1280, 960, {.seed = 1, .draw = i});
    ASSERT_GE(g.scaled_width, 320);
    ASSERT_LT(g.scaled_width, 1280);
    ASSERT_NEAR(static_cast<double>(g.scaled_height), 0.75 * static_cast<double>(g.scaled_width), 1);
    ++quarters[static_cast<std::size_t>((g.scaled_width - 320) / 240)];
  }
  EXPECT_LT(testing::deviation(quarters), testing::deviation_max);
  EXPECT_FALSE(pipeline({tr::random_scale{{0.5, 0.5}}, tr::center_crop{8, 8}}).geometry_is_random());
  EXPECT_EQ(pipeline({tr::random_scale{{0.01, 0.01}}, tr::center_crop{8, 8}}).compile(3, 3, {}).scaled_width, 1);
}

TEST(geometry, refuses_padding_whose_picture_may_be_larger_and_numbers_out_of_range) {
  EXPECT_THAT(refusal({tr::pad_to{}}),
              HasSubstr("a picture may be of any size here; write longest_side(640) before it"));
  EXPECT_THAT(refusal({tr::longest_side{700}, tr::pad_to{}}), HasSubstr("a picture may be 700 x 700 here"));
  EXPECT_THAT(refusal({tr::longest_side{640}, tr::random_scale{{1, 1.5}}, tr::pad_to{}}), HasSubstr("960 x 960"));
  EXPECT_EQ(refusal({tr::longest_side{640}, tr::random_scale{{0.5, 1}}, tr::pad_to{}}), "");
  EXPECT_THAT(refusal({tr::center_crop{32, 32}, tr::pad_to{}}), HasSubstr("would look outside"));
  EXPECT_THAT(refusal({tr::longest_side{640}}), HasSubstr("leave its size open"));
  EXPECT_THAT(refusal({tr::letterbox{}, tr::resize{.shorter_side = 9}}), HasSubstr("is scaled already"));
  EXPECT_THAT(refusal({tr::random_crop{8, 8}, tr::random_scale{}}), HasSubstr("stands after a crop"));
  EXPECT_THAT(refusal({tr::random_scale{}, tr::random_scale{}, tr::center_crop{}}), HasSubstr("stands twice"));
  EXPECT_THAT(refusal({tr::random_scale{{0, 1}}, tr::center_crop{}}), HasSubstr("must be ascending, and lie in"));
  EXPECT_THAT(refusal({tr::random_scale{{std::nan(""), 1}}, tr::center_crop{}}), HasSubstr("must be ascending"));
  EXPECT_THAT(refusal({tr::letterbox{.fill = {0, -1, 0}}}), HasSubstr("fill -1: must be 0..255"));
  EXPECT_THAT(refusal({tr::random_crop{.fill = {300, 0, 0}}}), HasSubstr("fill 300"));
  EXPECT_THAT(refusal({tr::longest_side{0}, tr::pad_to{}}), HasSubstr("longest_side: height 0"));
}

TEST(geometry, padding_is_read_as_text_where_the_picture_is_bounded_before_it) {
  const geometry g = pipeline(parse_transforms("longest_side(64) pad_to(80x90, 1/2/3, top_left)")).compile(20, 10, {});
  EXPECT_EQ(g.out_width, 90);
  EXPECT_EQ(g.scaled_height, 32);
  EXPECT_THAT(refusal(parse_transforms("pad_to(80)")), HasSubstr("write longest_side(80) before it"));
}

TEST(geometry, a_crop_inside_a_padded_one_keeps_its_padding) {
  const geometry g = pipeline({tr::random_crop{40, 40, 20, {5, 6, 7}, padding_mode::edge}, tr::center_crop{8, 8}})
                         .compile(30, 30, {.seed = 3});
  EXPECT_EQ(g.padding, padding_mode::edge);
  EXPECT_EQ(g.fill, (std::array<std::uint8_t, 3>{5, 6, 7}));
}

TEST(geometry, survives_pictures_of_any_shape) {
  const pipeline eval({tr::resize{.shorter_side = 256}, tr::center_crop{224, 224}});
  const pipeline train({tr::random_resized_crop{}, tr::random_flip{}});
  for (const auto& [width, height] : {std::pair{1, 1}, {1, 178'956'970}, {178'956'970, 1}, {65'500, 2}}) {
    const geometry g = eval.compile(width, height, {});
    EXPECT_GE(g.crop_x, 0);
    EXPECT_GE(g.crop_y, 0);
    EXPECT_LE(g.crop_x + 224, g.scaled_width);
    EXPECT_LE(g.crop_y + 224, g.scaled_height);
    const rectangle box = train.compile(width, height, {}).box;
    EXPECT_GE(box.x, 0);
    EXPECT_GE(box.y, 0);
    EXPECT_GE(box.width, 1);
    EXPECT_GE(box.height, 1);
    EXPECT_LE(box.x + box.width, width);
    EXPECT_LE(box.y + box.height, height);
  }
}

TEST(geometry, refuses_what_cannot_be_folded_and_says_which) {
  using ::testing::HasSubstr;
  using ::testing::StartsWith;
  EXPECT_THAT(refusal({}), HasSubstr("leave its size open"));
  EXPECT_THAT(refusal({tr::resize{.shorter_side = 256}}),
              HasSubstr("add random_resized_crop(size), center_crop(size)"));
  EXPECT_THAT(refusal({tr::resize{.height = 9, .width = 9}, tr::random_resized_crop{}}),
              StartsWith("random_resized_crop: the picture is scaled already"));
  EXPECT_THAT(refusal({tr::center_crop{}, tr::resize{.height = 9, .width = 9}}),
              StartsWith("resize: stands after a crop"));
  EXPECT_THAT(refusal({tr::center_crop{32, 32}, tr::random_crop{33, 32}}),
              StartsWith("random_crop: would look outside"));
  EXPECT_THAT(refusal({tr::center_crop{32, 32}, tr::random_crop{32, 32, 4}}), HasSubstr("without padding"));
  EXPECT_THAT(refusal({tr::random_resized_crop{.height = 0}}), HasSubstr("must be 1..65535"));
  EXPECT_THAT(refusal({tr::random_resized_crop{.scale = {0.5, 0.1}}}), HasSubstr("scale from 0.5"));
  EXPECT_THAT(refusal({tr::random_resized_crop{.ratio = {0, 1}}}), HasSubstr("ratio from 0.0"));
  EXPECT_THAT(refusal({tr::center_crop{}, tr::random_flip{1.5}}), HasSubstr("must be 0..1"));
  EXPECT_THAT(refusal({tr::random_crop{32, 32, -1}}), HasSubstr("padding -1"));
  EXPECT_EQ(refusal({tr::random_resized_crop{256, 256}, tr::random_flip{}, tr::center_crop{224, 224}}), "");
}

TEST(geometry, draws_depend_on_the_key_and_on_nothing_else) {
  const pipeline p({tr::random_resized_crop{}, tr::random_flip{}});
  EXPECT_TRUE(p.random());
  const geometry g = p.compile(500, 375, {7, 3, 11});
  EXPECT_EQ(p.compile(500, 375, {7, 3, 11}), g);
  EXPECT_EQ(pipeline({tr::random_resized_crop{}, tr::random_flip{}}).compile(500, 375, {7, 3, 11}), g);
  EXPECT_NE(p.compile(500, 375, {8, 3, 11}).box, g.box);
  EXPECT_NE(p.compile(500, 375, {7, 4, 11}).box, g.box);
  EXPECT_NE(p.compile(500, 375, {7, 3, 12}).box, g.box);
  // Two fields that name the same operation share its draws, whatever else is in their chains.
  EXPECT_EQ(pipeline({tr::random_flip{0}, tr::random_resized_crop{}}).compile(500, 375, {7, 3, 11}).box, g.box);
}

// The same crops for ever and on every machine: computed once, by this code, and written down.
TEST(geometry, draws_what_it_drew_when_this_was_written) {
  const pipeline p({tr::random_resized_crop{}, tr::random_flip{}});
  std::vector<geometry> drawn;
  for (const std::uint64_t sample : {0U, 1U, 2U, 1'281'166U}) drawn.push_back(p.compile(500, 375, {42, 5, sample}));
  std::vector<std::string> text;
  for (const geometry& g : drawn) {
    text.push_back(std::to_string(g.box.width) + "x" + std::to_string(g.box.height) + "+" + std::to_string(g.box.x) +
                   "+" + std::to_string(g.box.y) + (g.flip ? " flip" : ""));
  }
  EXPECT_EQ(text,
            (std::vector<std::string>{"321x350+20+17 flip", "204x203+199+127 flip", "339x308+159+10", "381x366+41+6"}));
}

// Chains are folded into one box, one scaling, one crop and one flip. Doing the steps one after the other on a picture
// of coordinates must end at the same pixels.
TEST(geometry, folds_crops_and_flips_as_if_done_one_by_one) {
  testing::for_each_seed(40, [&](std::uint64_t seed) {
    std::mt19937_64 random(seed);
    const auto between = [&](int from, int to) { return std::uniform_int_distribution<int>(from, to)(random); };
    const int width = between(1, 40);
    const int height = between(1, 40);
    std::vector<transform> steps;
    int w = between(1, 50);
    int h = between(1, 50);
    for (int i = between(0, 2); i > 0; --i) steps.emplace_back(tr::random_flip{0.5});
    steps.emplace_back(between(0, 1) == 0 ? transform(tr::center_crop{h, w})
                                          : transform(tr::random_crop{h, w, between(0, 9)}));
    for (int i = between(0, 3); i > 0; --i) {
      if (between(0, 1) == 0) {
        steps.emplace_back(tr::random_flip{0.5});
        continue;
      }
      w = between(1, w);
      h = between(1, h);
      steps.emplace_back(between(0, 1) == 0 ? transform(tr::center_crop{h, w}) : transform(tr::random_crop{h, w, 0}));
    }
    const draw_key key{seed, 1, 2};
    const geometry folded = pipeline(steps).compile(width, height, key);

    // One step more each time; what the last step did is read off the size and the flip before and after it. A pixel is
    // named by its column in the picture, outside it by none.
    std::vector<int> columns(static_cast<std::size_t>(width));
    for (int x = 0; x < width; ++x) columns[static_cast<std::size_t>(x)] = x;
    geometry before;
    before.scaled_width = before.out_width = width;
    for (std::size_t n = 1; n <= steps.size(); ++n) {
      const bool crops = steps[n - 1].get_if<tr::random_flip>() == nullptr;
      std::vector<transform> prefix(steps.begin(), steps.begin() + static_cast<std::ptrdiff_t>(n));
      if (!crops) {
        // A flip: find out which way the draw went by the whole chain so far, closed by a crop that changes nothing.
        prefix.emplace_back(tr::center_crop{1, static_cast<int>(columns.size())});
      }
      const geometry after = pipeline(prefix).compile(width, crops ? height : 1, key);
      if (after.flip != before.flip) std::reverse(columns.begin(), columns.end());
      if (crops) {
        // The crop as the flipped picture sees it.
        const auto size = static_cast<std::int64_t>(columns.size());
        const std::int64_t moved = after.crop_x - before.crop_x;
        const std::int64_t x0 = after.flip ? size - after.out_width - moved : moved;
        std::vector<int> cropped;
        for (std::int64_t x = x0; x < x0 + after.out_width; ++x) {
          cropped.push_back(x < 0 || x >= size ? -1 : columns[static_cast<std::size_t>(x)]);
        }
        columns = cropped;
        before.crop_x = after.crop_x;
      }
      before.flip = after.flip;
    }
    for (int x = 0; x < folded.out_width; ++x) {
      const std::int64_t column = folded.crop_x + (folded.flip ? folded.out_width - 1 - x : x);
      const int expected = column < 0 || column >= width ? -1 : static_cast<int>(column);
      ASSERT_EQ(columns[static_cast<std::size_t>(x)], expected) << "at " << x;
    }
  });
}

TEST(geometry, its_matrix_says_where_each_pixel_comes_from_and_the_inverse_where_it_goes) {
  testing::for_each_seed(40, [&](std::uint64_t seed) {
    std::mt19937_64 random(seed);
    const auto between = [&](int from, int to) { return std::uniform_int_distribution<int>(from, to)(random); };
    const int width = between(1, 400);
    const int height = between(1, 400);
    const pipeline steps({tr::resize{.height = between(1, 300), .width = between(1, 300)}, tr::random_flip{},
                          tr::random_crop{between(1, 300), between(1, 300), between(0, 9)}});
    const geometry g = steps.compile(width, height, {seed, 1, 2});
    const warp_matrix from = g.from_row();
    const std::optional<warp_matrix> to = inverse(from);
    ASSERT_TRUE(to);
    for (int i = 0; i < 20; ++i) {
      const int x = between(0, g.out_width - 1);
      const int y = between(0, g.out_height - 1);
      const auto scaled_x = static_cast<double>(g.crop_x + (g.flip ? g.out_width - 1 - x : x)) + 0.5;
      const double scaled_y = static_cast<double>(g.crop_y + y) + 0.5;
      const auto [u, v, w] = seen_from(from, x + 0.5, y + 0.5);
      EXPECT_EQ(w, 1);
      EXPECT_NEAR(u, scaled_x * width / static_cast<double>(g.scaled_width), 1e-9);
      EXPECT_NEAR(v, scaled_y * height / static_cast<double>(g.scaled_height), 1e-9);
      const auto [back_x, back_y, back_w] = seen_from(*to, u, v);
      EXPECT_NEAR(back_x / back_w, x + 0.5, 1e-9);
      EXPECT_NEAR(back_y / back_w, y + 0.5, 1e-9);
    }
  });
}

TEST(geometry, flips_as_often_as_asked_and_independently_the_second_time) {
  const pipeline p({tr::random_flip{0.25}, tr::center_crop{8, 8}});
  const pipeline twice({tr::random_flip{0.5}, tr::random_flip{0.5}, tr::center_crop{8, 8}});
  int flipped = 0;
  int flipped_twice = 0;
  constexpr int samples = 40'000;
  for (std::uint64_t sample = 0; sample < samples; ++sample) {
    flipped += p.compile(8, 8, {1, 0, sample}).flip ? 1 : 0;
    flipped_twice += twice.compile(8, 8, {1, 0, sample}).flip ? 1 : 0;
  }
  // Five standard deviations: 5 * sqrt(40000 * p * (1 - p)).
  EXPECT_NEAR(flipped, samples / 4, 433);
  EXPECT_NEAR(flipped_twice, samples / 2, 500);
}

TEST(geometry, random_crop_reaches_every_place_equally_often) {
  const pipeline p({tr::random_crop{32, 32, 4}});
  std::vector<int> seen(9);
  constexpr int samples = 18'000;
  for (std::uint64_t sample = 0; sample < samples; ++sample) {
    const geometry g = p.compile(32, 32, {1, 0, sample});
    ASSERT_GE(g.crop_x, -4);
    ASSERT_LE(g.crop_x, 4);
    ++seen[static_cast<std::size_t>(g.crop_x + 4)];
  }
  double chi = 0;
  for (const int count : seen) chi += (count - 2000.0) * (count - 2000.0) / 2000.0;
  EXPECT_LT(chi, 37.3);  // 8 degrees of freedom, p = 1e-5

  // Too small even with its padding: the picture lies anywhere inside.
  const pipeline large({tr::random_crop{40, 40, 1}});
  for (std::uint64_t sample = 0; sample < 200; ++sample) {
    const geometry g = large.compile(30, 30, {1, 0, sample});
    EXPECT_LE(g.crop_x, -1);
    EXPECT_GE(g.crop_x + 40, 30 + 1);
  }
}

// torchvision's law for RandomResizedCrop, told again with the standard library's generator and mathematics.
rectangle torchvision_crop(std::mt19937_64& random, const tr::random_resized_crop& t, int width, int height) {
  const auto uniform = [&](double a, double b) { return std::uniform_real_distribution<double>(a, b)(random); };
  const auto below = [&](int n) { return std::uniform_int_distribution<int>(0, n - 1)(random); };
  for (int attempt = 0; attempt < 10; ++attempt) {
    const double area = static_cast<double>(width) * height * uniform(t.scale[0], t.scale[1]);
    const double ratio = std::exp(uniform(std::log(t.ratio[0]), std::log(t.ratio[1])));
    const int w = static_cast<int>(std::nearbyint(std::sqrt(area * ratio)));
    const int h = static_cast<int>(std::nearbyint(std::sqrt(area / ratio)));
    if (0 < w && w <= width && 0 < h && h <= height) {
      const int y = below(height - h + 1);
      const int x = below(width - w + 1);
      return {x, y, w, h};
    }
  }
  const double in_ratio = static_cast<double>(width) / height;
  int w = width;
  int h = height;
  if (in_ratio < t.ratio[0]) {
    h = static_cast<int>(std::nearbyint(w / t.ratio[0]));
  } else if (in_ratio > t.ratio[1]) {
    w = static_cast<int>(std::nearbyint(h * t.ratio[1]));
  }
  return {(width - w) / 2, (height - h) / 2, w, h};
}

// Largest distance of two empirical distributions (Kolmogorov and Smirnov).
double distance(std::vector<double> a, std::vector<double> b) {
  std::sort(a.begin(), a.end());
  std::sort(b.begin(), b.end());
  double most = 0;
  for (std::size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    const double value = std::min(a[i], b[j]);
    while (i < a.size() && a[i] <= value) ++i;
    while (j < b.size() && b[j] <= value) ++j;
    most = std::max(most, std::abs(static_cast<double>(i) / static_cast<double>(a.size()) -
                                   static_cast<double>(j) / static_cast<double>(b.size())));
  }
  return most;
}

TEST(geometry, random_resized_crop_follows_torchvisions_law) {
  const tr::random_resized_crop t;
  const pipeline p({t});
  testing::for_each_seed(1, [&](std::uint64_t seed) {
    // Ordinary, square, tall, and so wide that the fall-back is the rule.
    for (const auto& [width, height] : {std::pair{500, 375}, {256, 256}, {300, 800}, {1200, 100}, {7, 5}}) {
      SCOPED_TRACE(std::to_string(width) + " x " + std::to_string(height));
      std::mt19937_64 random(seed);
      std::vector<double> ours[5];
      std::vector<double> theirs[5];
      const auto note = [](std::vector<double>(&to)[5], const rectangle& r) {
        to[0].push_back(r.x);
        to[1].push_back(r.y);
        to[2].push_back(r.width);
        to[3].push_back(r.height);
        to[4].push_back(static_cast<double>(r.x) * r.width - static_cast<double>(r.y) * r.height);  // and together
      };
      constexpr std::size_t samples = 20'000;
      for (std::size_t sample = 0; sample < samples; ++sample) {
        note(ours, p.compile(width, height, {seed, 0, sample}).box);
        note(theirs, torchvision_crop(random, t, width, height));
      }
      // c(alpha = 1e-6) * sqrt(2 / n), alpha shared by 25 comparisons.
      const double limit = 2.69 * std::sqrt(2.0 / samples);
      for (std::size_t i = 0; i < 5; ++i) EXPECT_LT(distance(ours[i], theirs[i]), limit) << "of quantity " << i;
    }
  });
}

TEST(portable_math, is_right_to_the_last_bits) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 100'000; ++i) {
    const double x = std::uniform_real_distribution<double>(-20, 20)(random);
    const auto expected = static_cast<double>(std::exp(static_cast<long double>(x)));
    ASSERT_NEAR(pixels::portable_exp(x) / expected, 1.0, 0x1p-51) << x;
    const double y = std::exp(x);
    const auto expected_log = static_cast<double>(std::log(static_cast<long double>(y)));
    ASSERT_NEAR(pixels::portable_log(y), expected_log, std::max(std::abs(expected_log), 1.0) * 0x1p-51) << y;
  }
  EXPECT_EQ(pixels::portable_exp(0), 1);
  EXPECT_EQ(pixels::portable_log(1), 0);
}

TEST(views, draw_for_themselves_and_the_first_as_without) {
  const pipeline steps({tr::random_resized_crop{.height = 24, .width = 24}, tr::random_flip{}});
  std::size_t alike = 0;
  for (std::uint64_t sample = 0; sample < 200; ++sample) {
    const draw_key key{7, 0, sample};
    const geometry first = steps.compile(640, 480, key);
    EXPECT_EQ(steps.as_view(1).compile(640, 480, key), first);
    EXPECT_EQ(steps.as_view(2).as_view(1).compile(640, 480, key), first);
    const geometry second = steps.as_view(2).compile(640, 480, key);
    EXPECT_NE(second.box, first.box);
    EXPECT_NE(steps.as_view(3).compile(640, 480, key).box, second.box);
    alike += second.flip == first.flip ? 1 : 0;
  }
  // Independent: half of them, by chance. 60 and 140 are more than five deviations away.
  EXPECT_GT(alike, 60U);
  EXPECT_LT(alike, 140U);
}

}  // namespace
}  // namespace leat
