// random_iou_crop and random_zoom_out: what they draw, and what becomes of it where other steps follow.
#include "stages/pixels/iou_crop.hpp"

#include "stages/pixels/orientation.hpp"
#include "stages/pixels/placed_picture.hpp"
#include "stages/pixels/recipe.hpp"
#include "tests/pixels/decode_one.hpp"
#include "tests/support/make_picture.hpp"
#include "tests/support/seeded_random.hpp"

#include <leat/error.hpp>
#include <leat/transforms.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace leat::pixels {
namespace {

namespace tr = transforms;
using testing::seeded_random;

constexpr std::array<double, 7> usual_options{0, 0.1, 0.3, 0.5, 0.7, 0.9, 1};

double uniform_of(seeded_random& random) { return static_cast<double>(random.next() >> 11) * 0x1.0p-53; }

std::vector<box> some_boxes(seeded_random& random, int width, int height) {
  std::vector<box> made(1 + random.below(5));
  for (box& each : made) {
    const double x = uniform_of(random) * width * 0.8;
    const double y = uniform_of(random) * height * 0.8;
    each = {x, y, x + 1 + uniform_of(random) * (width - x - 1), y + 1 + uniform_of(random) * (height - y - 1)};
  }
  return made;
}

bool has_center(const box& part, const box& each) {
  const double x = (each.left + each.right) / 2;
  const double y = (each.top + each.bottom) / 2;
  return part.left < x && x < part.right && part.top < y && y < part.bottom;
}

// The largest overlap with one whose middle is inside; -1 where there is none.
double overlap_of(const box& part, const std::vector<box>& boxes) {
  double most = -1;
  for (const box& each : boxes) {
    if (!has_center(part, each)) continue;
    const double both = std::max(0.0, std::min(part.right, each.right) - std::max(part.left, each.left)) *
                        std::max(0.0, std::min(part.bottom, each.bottom) - std::max(part.top, each.top));
    const double sum =
        (part.right - part.left) * (part.bottom - part.top) + (each.right - each.left) * (each.bottom - each.top);
    most = std::max(most, both / (sum - both));
  }
  return most;
}

box as_box(const picture_part& of) {
  return {static_cast<double>(of.x), static_cast<double>(of.y), static_cast<double>(of.x + of.width),
          static_cast<double>(of.y + of.height)};
}

std::string refusal(const std::vector<transform>& steps, pixel_rounding how = pixel_rounding::exact) {
  try {
    const pipeline made(steps, how);
  } catch (const error& failure) {
    return failure.code() == errc::usage ? failure.what() : "another error";
  }
  return "none";
}

TEST(iou_crop, takes_parts_that_hold_the_middle_of_a_box_and_overlap_it) {
  std::size_t parts = 0;
  std::array<std::size_t, usual_options.size()> of_option{};
  for (std::uint64_t seed = 1; seed <= 1500; ++seed) {
    seeded_random random(seed);
    // All have parts of a ratio that is allowed.
    const int width = 100 + static_cast<int>(random.below(300));
    const int height = 100 + static_cast<int>(random.below(300));
    const std::vector<box> boxes = some_boxes(random, width, height);
    for (std::size_t option = 0; option + 1 < usual_options.size(); ++option) {
      const tr::random_iou_crop step{.options = {usual_options[option]}};
      random_draws draws(seed, 0, option, "random_iou_crop");
      const auto part = draw_iou_crop(step, width, height, {boxes}, draws);
      if (!part) continue;
      ++parts;
      ++of_option[option];
      ASSERT_GE(part->x, 0);
      ASSERT_GE(part->y, 0);
      ASSERT_LE(part->x + part->width, width);
      ASSERT_LE(part->y + part->height, height);
      ASSERT_GE(part->width, static_cast<int>(0.3 * width));
      ASSERT_GE(part->height, static_cast<int>(0.3 * height));
      const double ratio = static_cast<double>(part->width) / static_cast<double>(part->height);
      ASSERT_GE(ratio, 0.5);
      ASSERT_LE(ratio, 2);
      ASSERT_GE(overlap_of(as_box(*part), boxes), usual_options[option] - 1e-12) << "seed " << seed;
    }
  }
  EXPECT_GT(parts, 4'000U);
  // A middle is nearly always found. So large an overlap many boxes have with no part.
  EXPECT_GT(of_option[0], 1'490U);
  EXPECT_GT(of_option[5], 20U);
  EXPECT_LT(of_option[5], of_option[3]);
}

// torchvision.transforms.v2.RandomIoUCrop, told again with another generator.
std::optional<picture_part> torchvision_part(seeded_random& random, int width, int height,
                                             const std::vector<box>& boxes) {
  for (;;) {
    const double least = usual_options[random.below(usual_options.size())];
    if (least >= 1) return std::nullopt;
    for (int trial = 0; trial < 40; ++trial) {
      picture_part made;
      made.width = static_cast<std::int64_t>(width * (0.3 + 0.7 * uniform_of(random)));
      made.height = static_cast<std::int64_t>(height * (0.3 + 0.7 * uniform_of(random)));
      const double ratio = static_cast<double>(made.width) / static_cast<double>(made.height);
      if (!(0.5 <= ratio && ratio <= 2)) continue;
      made.x = static_cast<std::int64_t>(static_cast<double>(width - made.width) * uniform_of(random));
      made.y = static_cast<std::int64_t>(static_cast<double>(height - made.height) * uniform_of(random));
      const double overlap = overlap_of(as_box(made), boxes);
      if (overlap < 0 || overlap < least) continue;
      return made;
    }
  }
}

TEST(iou_crop, follows_torchvisions_law) {
  constexpr int width = 400;
  constexpr int height = 300;
  constexpr std::size_t samples = 20'000;
  const std::vector<box> boxes{{20, 30, 180, 200}, {200, 100, 390, 290}, {50, 220, 90, 260}};
  const tr::random_iou_crop step;
  seeded_random random(3);
  // The share that stays whole; and of the others the means of where they are, how large, and how far they overlap.
  struct sums {
    std::array<double, 6> of{};
    std::array<double, 6> squares{};
    double count = 0;
    double whole = 0;

    void add(const std::optional<picture_part>& part, const std::vector<box>& all) {
      if (!part) {
        ++whole;
        return;
      }
      ++count;
      const std::array<double, 6> measures{static_cast<double>(part->x),
                                           static_cast<double>(part->y),
                                           static_cast<double>(part->width),
                                           static_cast<double>(part->height),
                                           static_cast<double>(part->x * part->height),
                                           overlap_of(as_box(*part), all)};
      for (std::size_t i = 0; i < measures.size(); ++i) {
        of[i] += measures[i];
        squares[i] += measures[i] * measures[i];
      }
    }
  };
  sums ours;
  sums theirs;
  for (std::uint64_t sample = 0; sample < samples; ++sample) {
    random_draws draws(11, 0, sample, "random_iou_crop");
    ours.add(draw_iou_crop(step, width, height, {boxes}, draws), boxes);
    theirs.add(torchvision_part(random, width, height, boxes), boxes);
  }
  // One option of seven, and more where another finds nothing. Five deviations of a difference.
  EXPECT_GT(ours.whole / samples, 1.0 / 7);
  EXPECT_NEAR(ours.whole / samples, theirs.whole / samples, 5 * std::sqrt(2 * 0.25 / samples));
  for (std::size_t i = 0; i < ours.of.size(); ++i) {
    const double mean = theirs.of[i] / theirs.count;
    const double variance = theirs.squares[i] / theirs.count - mean * mean;
    EXPECT_NEAR(ours.of[i] / ours.count, mean, 5 * std::sqrt(2 * variance / ours.count)) << "of measure " << i;
  }
}

// make_params() of torchvision 0.29.2, given these draws.
TEST(iou_crop, takes_the_parts_that_torchvision_takes) {
  const std::vector<box> boxes{{20, 30, 180, 200}, {200, 100, 390, 290}, {50, 220, 90, 260}};
  constexpr std::array<std::array<std::int64_t, 4>, 10> expected{{{45, 13, 323, 201},
                                                                  {39, 35, 311, 212},
                                                                  {3, 2, 261, 275},
                                                                  {52, 5, 275, 272},
                                                                  {19, 50, 164, 152},
                                                                  {28, 4, 213, 189},
                                                                  {44, 128, 255, 156},
                                                                  {0, 52, 392, 207},
                                                                  {149, 13, 212, 251},
                                                                  {135, 30, 240, 265}}};
  for (std::uint64_t seed = 1; seed <= expected.size(); ++seed) {
    random_draws draws(seed, 0, 0, "random_iou_crop");
    const auto part = draw_iou_crop({}, 400, 300, {boxes}, draws);
    ASSERT_TRUE(part);
    EXPECT_EQ((std::array{part->x, part->y, part->width, part->height}), expected[seed - 1]) << "seed " << seed;
  }
}

TEST(iou_crop, leaves_a_picture_whole_that_has_no_boxes_or_no_such_part) {
  random_draws draws(1, 0, 0, "random_iou_crop");
  EXPECT_FALSE(draw_iou_crop({}, 100, 100, {}, draws));
  // Of a narrow box no part of these ratios has as much; and the middle of one lies outside.
  const std::vector<box> narrow{{0, 0, 2, 100}};
  EXPECT_FALSE(draw_iou_crop({.options = {0.9}}, 100, 100, {narrow}, draws));
  const std::vector<box> outside{{200, 200, 300, 300}};
  EXPECT_FALSE(draw_iou_crop({.options = {0}}, 100, 100, {outside}, draws));
  const pipeline chain({tr::random_iou_crop{}, tr::resize{.height = 50, .width = 50}});
  const geometry whole = chain.compile(80, 60, {.seed = 1});
  EXPECT_EQ(whole.box, (rectangle{0, 0, 80, 60}));
  EXPECT_EQ(whole.window, (box{0, 0, 80, 60}));
}

// Whatever the picture is stored as, and its boxes are in: the crop is that of the upright picture.
TEST(iou_crop, sees_boxes_where_the_upright_picture_has_them) {
  const pipeline chain({tr::random_iou_crop{.options = {0.5}}, tr::resize{.height = 50, .width = 50}});
  const std::vector<box> upright{{10, 20, 90, 70}, {60, 5, 110, 60}};
  constexpr int width = 120;
  constexpr int height = 80;
  for (int exif = 1; exif <= 8; ++exif) {
    const auto [stored_width, stored_height] = orientation(exif).size(width, height);
    const warp_matrix to_stored = orientation(exif).to_stored(stored_width, stored_height);
    std::vector<box> stored;
    std::vector<box> shares;
    for (const box& each : upright) {
      stored.push_back(moved(to_stored, each));
      const box& last = stored.back();
      shares.push_back(
          {last.left / stored_width, last.top / stored_height, last.right / stored_width, last.bottom / stored_height});
    }
    const picture_boxes as_they_are{upright};
    const picture_boxes in_pixels{stored};
    const picture_boxes in_shares{shares, true};
    std::size_t crops = 0;
    for (std::uint64_t draw = 0; draw < 50; ++draw) {
      const geometry expected = chain.compile(width, height, {.seed = 2, .draw = draw, .boxes = &as_they_are});
      crops += expected.box != rectangle{0, 0, width, height} ? 1 : 0;
      ASSERT_EQ(chain.compile(width, height, {.seed = 2, .draw = draw, .boxes = &in_pixels}, exif), expected);
      ASSERT_EQ(chain.compile(width, height, {.seed = 2, .draw = draw, .boxes = &in_shares}, exif), expected);
    }
    EXPECT_GT(crops, 25U);
  }
}

TEST(zoom_out, lays_the_picture_on_a_canvas) {
  const pipeline chain({tr::random_zoom_out{.side = {2, 3}, .probability = 1, .fill = {9, 8, 7}},
                        tr::random_crop{.height = 90, .width = 120, .fill = {9, 8, 7}}});
  std::size_t partly = 0;
  for (std::uint64_t draw = 0; draw < 500; ++draw) {
    // A crop of a canvas of 80 x 60 to 120 x 90 pixels, around which there is more of the same colour.
    const geometry g = chain.compile(40, 30, {.seed = 5, .draw = draw});
    EXPECT_EQ(g.box, (rectangle{0, 0, 40, 30}));
    EXPECT_EQ(std::pair(g.scaled_width, g.scaled_height), (std::pair<std::int64_t, std::int64_t>{40, 30}));
    EXPECT_EQ(g.fill, (std::array<std::uint8_t, 3>{9, 8, 7}));
    ASSERT_LE(g.crop_x, 0);
    ASSERT_GE(g.crop_x + g.out_width, 40);
    ASSERT_TRUE(g.window);
    EXPECT_EQ(g.window->left, static_cast<double>(g.crop_x));
    EXPECT_EQ(g.window->right, static_cast<double>(g.crop_x + 120));
    partly += g.crop_x < 0 ? 1 : 0;
  }
  EXPECT_GT(partly, 480U);
  std::size_t zoomed = 0;
  const pipeline sometimes(parse_transforms("random_zoom_out(4, 0.25) resize(64x64)"));
  for (std::uint64_t draw = 0; draw < 2000; ++draw) {
    const geometry g = sometimes.compile(64, 64, {.seed = 5, .draw = draw});
    zoomed += g.scaled_width != 64 ? 1 : 0;
    // A canvas of 256: a quarter of the row.
    ASSERT_TRUE(g.scaled_width == 64 || g.scaled_width == 16) << g.scaled_width;
  }
  EXPECT_GT(zoomed, 400U);
  EXPECT_LT(zoomed, 600U);
}

// The matrix of what was rounded is within half a pixel of the row from that of what was drawn, at every edge of the picture.
TEST(zoom_out, rounds_the_edges_of_a_scaled_picture_to_pixels_of_the_row) {
  for (std::uint64_t seed = 1; seed <= 2000; ++seed) {
    seeded_random random(seed);
    const int width = 10 + static_cast<int>(random.below(300));
    const int height = 10 + static_cast<int>(random.below(300));
    const std::vector<box> boxes = some_boxes(random, width, height);
    const picture_boxes seen{boxes};
    const int out_height = 16 + static_cast<int>(random.below(300));
    const int out_width = 16 + static_cast<int>(random.below(300));
    std::vector<transform> steps;
    if (random.below(2) == 0) steps.emplace_back(tr::random_flip{});
    if (random.below(4) != 0) steps.emplace_back(tr::random_zoom_out{.probability = 1});
    if (random.below(4) != 0) steps.emplace_back(tr::random_iou_crop{});
    if (random.below(2) == 0) steps.emplace_back(tr::random_flip{});
    steps.emplace_back(tr::resize{.height = out_height, .width = out_width});
    const geometry g = pipeline(steps).compile(width, height, {.seed = seed, .boxes = &seen});
    ASSERT_GE(g.box.x, 0);
    ASSERT_GE(g.box.y, 0);
    ASSERT_GE(g.box.width, 1);
    ASSERT_GE(g.box.height, 1);
    ASSERT_LE(g.box.x + g.box.width, width);
    ASSERT_LE(g.box.y + g.box.height, height);
    if (!g.window) continue;
    const std::optional<warp_matrix> to_row = inverse(g.from_row());
    ASSERT_TRUE(to_row);
    const box window = *g.window;
    const double across = out_width / (window.right - window.left);
    const double down = out_height / (window.bottom - window.top);
    const box part = common(window, {0, 0, static_cast<double>(width), static_cast<double>(height)});
    if (part.area() == 0) {
      EXPECT_TRUE(g.crop_x >= g.scaled_width || g.crop_x + g.out_width <= 0);
      continue;
    }
    const box rounded = moved(*to_row, part);
    box exact{(part.left - window.left) * across, (part.top - window.top) * down, (part.right - window.left) * across,
              (part.bottom - window.top) * down};
    if (g.flip) exact = {out_width - exact.right, exact.top, out_width - exact.left, exact.bottom};
    // A part that has no pixel of the row gets one.
    const double off_x = exact.right - exact.left < 1 ? 1 : 0.5;
    const double off_y = exact.bottom - exact.top < 1 ? 1 : 0.5;
    ASSERT_NEAR(rounded.left, exact.left, off_x + 1e-9) << "seed " << seed;
    ASSERT_NEAR(rounded.right, exact.right, off_x + 1e-9) << "seed " << seed;
    ASSERT_NEAR(rounded.top, exact.top, off_y + 1e-9) << "seed " << seed;
    ASSERT_NEAR(rounded.bottom, exact.bottom, off_y + 1e-9) << "seed " << seed;
  }
}

// The row: the part of the picture scaled by itself where the geometry says, and fill around it, which may be all of it.
TEST(zoom_out, scales_the_part_of_the_picture_by_itself_and_fills_the_rest) {
  const testing::rgb_picture picture = testing::make_texture(4, 40, 30);
  testing::rgb_picture stored;
  const std::vector<std::byte> encoded = testing::make_png(picture, {}, stored);
  // One box beside the picture, where a canvas may be.
  const std::vector<box> boxes{{-50, -40, -20, -10}, {5, 5, 30, 25}};
  const picture_boxes seen{boxes};
  const pipeline chain({tr::random_zoom_out{.side = {2, 4}, .probability = 1, .fill = {9, 8, 7}},
                        tr::random_iou_crop{.scale = {0.3, 0.6}, .options = {0}}, tr::random_flip{},
                        tr::resize{.height = 33, .width = 41}});
  testing::one_decoder one;
  std::size_t of_fill = 0;
  std::size_t of_both = 0;
  for (std::uint64_t draw = 0; draw < 300; ++draw) {
    const geometry g = chain.compile(40, 30, {.seed = 8, .draw = draw, .boxes = &seen});
    const testing::rgb_picture row = one.decode(encoded, g);
    ASSERT_EQ(one.reason, "");
    const auto width = static_cast<int>(g.scaled_width);
    const auto height = static_cast<int>(g.scaled_height);
    const testing::rgb_picture part = one.decode(encoded, testing::scaled_box(g.box, width, height, g.how));
    std::size_t filled = 0;
    for (int y = 0; y < row.height; ++y) {
      for (int x = 0; x < row.width; ++x) {
        const auto u = static_cast<int>(g.crop_x) + (g.flip ? row.width - 1 - x : x);
        const auto v = static_cast<int>(g.crop_y) + y;
        const bool is_fill = u < 0 || v < 0 || u >= width || v >= height;
        filled += is_fill ? 1 : 0;
        const std::array<std::uint8_t, 3> fill{9, 8, 7};
        const std::uint8_t* const expected = is_fill ? fill.data() : part.at(u, v);
        ASSERT_TRUE(std::equal(expected, expected + 3, row.at(x, y))) << "draw " << draw << ", " << x << ' ' << y;
      }
    }
    const bool meets = common(*g.window, {0, 0, 40, 30}).area() > 0;
    EXPECT_EQ(filled == std::size_t{33} * 41, !meets);
    of_fill += meets ? 0 : 1;
    of_both += meets && filled > 0 ? 1 : 0;
  }
  EXPECT_GT(of_fill, 5U);
  EXPECT_GT(of_both, 100U);
}

// What follows the picture learns where it would lie, and that none of it is there: also where a later crop reaches back over it.
TEST(zoom_out, says_where_the_picture_would_lie_in_a_row_that_shows_none_of_it) {
  const picture_boxes none;
  for (const int size : {24, 200}) {
    const pipeline chain({tr::random_zoom_out{.side = {3, 4}, .probability = 1, .fill = {9, 8, 7}},
                          tr::random_resized_crop{.height = 24, .width = 24}, tr::random_flip{},
                          tr::center_crop{.height = size, .width = size, .fill = {9, 8, 7}}});
    std::size_t beside = 0;
    std::size_t flipped = 0;
    for (std::uint64_t draw = 0; draw < 400; ++draw) {
      const draw_key key{.seed = 4, .draw = draw, .boxes = &none};
      const geometry g = chain.compile(40, 30, key);
      if (g.crop_x < g.scaled_width || g.crop_y < g.scaled_height) continue;
      ++beside;
      flipped += g.flip ? 1 : 0;
      ASSERT_TRUE(g.window);
      const box row{0, 0, static_cast<double>(size), static_cast<double>(size)};
      const box seen = moved(g.from_row(), row);
      EXPECT_NEAR(seen.left, g.window->left, 1e-9);
      EXPECT_NEAR(seen.top, g.window->top, 1e-9);
      EXPECT_NEAR(seen.right, g.window->right, 1e-9);
      EXPECT_NEAR(seen.bottom, g.window->bottom, 1e-9);
      placed_picture where;
      place(chain, key, geometry_of(chain, key, 40, 30, 1), where);
      // The upper left corner of what the row shows, which a flip puts on the right.
      const auto corner = place_in_row(where, g.window->left, g.window->top);
      ASSERT_TRUE(corner);
      EXPECT_NEAR((*corner)[0], g.flip ? size : 0, 1e-9);
      EXPECT_NEAR((*corner)[1], 0, 1e-9);
      for (int y = 0; y < size; ++y) {
        const pixel_run run = shown_in_line(where, y);
        ASSERT_EQ(run.begin, run.end) << "draw " << draw;
      }
      const auto middle = place_in_row(where, 20, 15);
      ASSERT_TRUE(middle);
      EXPECT_FALSE(is_shown(where, (*middle)[0], (*middle)[1]));
      EXPECT_EQ(place_box(where, {0, 0, 40, 30}).in_row, box{});
    }
    EXPECT_GT(beside, 20U);
    EXPECT_GT(flipped, 5U);
  }
}

TEST(detection_crops, are_refused_in_words_where_they_cannot_stand) {
  const tr::resize resized{.height = 8, .width = 8};
  const auto has = [](const std::string& text, std::string_view part) {
    return text.find(part) != std::string::npos ? std::string(part) : text;
  };
  const auto expect = [&](const std::vector<transform>& steps, std::string_view part) {
    EXPECT_EQ(has(refusal(steps), part), part);
  };
  expect({resized, tr::random_iou_crop{}}, "random_iou_crop: stands after a scaling; write it before");
  expect({tr::center_crop{8, 8}, tr::random_zoom_out{}}, "random_zoom_out: stands after a crop; write it before");
  expect({tr::random_iou_crop{}, tr::random_zoom_out{}, resized}, "random_zoom_out: stands after random_iou_crop");
  expect({tr::random_zoom_out{}, tr::random_zoom_out{}, resized}, "random_zoom_out: stands twice");
  expect({tr::random_zoom_out{}, tr::letterbox{}}, "letterbox: pads otherwise than the random_zoom_out before it");
  expect({tr::random_zoom_out{}, tr::center_crop{.height = 8, .width = 8, .mode = padding_mode::edge}},
         "center_crop: pads otherwise");
  expect({tr::random_zoom_out{.side = {0.5, 1}}, resized}, "side from 0.5");
  expect({tr::random_zoom_out{.probability = 2}, resized}, "probability 2");
  expect({tr::random_zoom_out{.fill = {0, 0, 256}}, resized}, "fill 256: must be 0..255");
  expect({tr::random_iou_crop{.scale = {0.5, 1.5}}, resized}, "random_iou_crop: scale from 0.5");
  expect({tr::random_iou_crop{.ratio = {2, 1}}, resized}, "random_iou_crop: ratio from 2");
  expect({tr::random_iou_crop{.options = {}}, resized}, "random_iou_crop: has no options");
  expect({tr::random_iou_crop{.options = {-0.1}}, resized}, "random_iou_crop: option -0.1");
  expect({tr::random_iou_crop{.trials = 0}, resized}, "random_iou_crop: trials 0: must be 1..300");
  expect({tr::random_iou_crop{.boxes = "a"}, tr::random_iou_crop{.boxes = "b"}, resized}, "give both the same");
  expect({tr::random_zoom_out{}, tr::random_iou_crop{}}, "leave its size open");
  EXPECT_EQ(refusal({tr::random_zoom_out{}, tr::random_iou_crop{}, tr::random_flip{}, resized}), "none");
  EXPECT_EQ(refusal({tr::random_zoom_out{.fill = {114, 114, 114}}, tr::random_iou_crop{}, tr::letterbox{}}), "none");
  EXPECT_EQ(refusal({tr::random_zoom_out{}, tr::random_iou_crop{}, tr::random_iou_crop{}, resized}), "none");
  // Rounded once, they stand anywhere.
  EXPECT_EQ(refusal({resized, tr::random_iou_crop{}, tr::random_zoom_out{}, resized}, pixel_rounding::fused), "none");
}

TEST(detection_crops, are_read_as_they_are_written) {
  const auto again = [](const transform& step) { return to_string(parse_transforms(to_string(step)).front()); };
  for (const char* const text : {"random_zoom_out", "random_zoom_out(1..2, 1, 124/116/104)", "random_iou_crop",
                                 "random_iou_crop(0.5..0.9)", "random_iou_crop(0.3..1, 0.5..2, 0.5/1)",
                                 "random_iou_crop(0.3..1, 0.5..2, 0/0.1/0.3/0.5/0.7/0.9/1, 50, boxes.json[1])"}) {
    EXPECT_EQ(to_string(parse_transforms(text).front()), text);
    EXPECT_EQ(again(parse_transforms(text).front()), text);
  }
  const std::vector<transform> chain = parse_transforms("random_iou_crop(0.3..1, 0.5..2, 1/0.25, 7, things) invert");
  ASSERT_EQ(chain.size(), 2U);
  const auto* const named = chain.front().get_if<tr::random_iou_crop>();
  ASSERT_NE(named, nullptr);
  EXPECT_EQ(named->options, (std::vector<double>{1, 0.25}));
  EXPECT_EQ(named->trials, 7);
  EXPECT_EQ(named->boxes, "things");
}

}  // namespace
}  // namespace leat::pixels
