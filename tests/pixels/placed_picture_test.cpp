// What follows a picture is in step with it: the picture's colours tell its classes, and the mask, the boxes and the points of the
// same classes are compared with what the decoder has made.
#include "stages/pixels/placed_picture.hpp"

#include "stages/pixels/mask_reader.hpp"
#include "tests/pixels/decode_one.hpp"
#include "tests/support/make_picture.hpp"
#include "tests/support/seeded_random.hpp"

#include <leat/transforms.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <optional>
#include <string>
#include <vector>

namespace leat::pixels {
namespace {

namespace tr = transforms;
using testing::rgb_picture;
using testing::seeded_random;

constexpr int nothing = 255;  // the mask's ignore
// No mix of two of them is near a third.
constexpr std::array<std::array<int, 3>, 4> colours{{{20, 20, 20}, {240, 20, 20}, {20, 240, 20}, {20, 20, 240}}};
constexpr std::array<int, 3> filled{255, 255, 255};

// Rectangles of classes on class 0.
struct scene {
  rgb_picture picture;
  std::vector<std::uint16_t> classes;
  rectangle blob;  // of class 3, the uppermost
};

scene make_scene(seeded_random& random) {
  const int width = 24 + static_cast<int>(random.below(60));
  const int height = 24 + static_cast<int>(random.below(60));
  scene made{{width, height, {}}, {}, {}};
  made.classes.resize(static_cast<std::size_t>(width * height));
  made.picture.pixels.resize(made.classes.size() * 3);
  const auto side = [&](int of) { return of / 4 + static_cast<int>(random.below(static_cast<std::uint64_t>(of / 3))); };
  for (std::uint16_t number = 1; number <= 3; ++number) {
    const int w = side(width);
    const int h = side(height);
    made.blob = {static_cast<int>(random.below(static_cast<std::uint64_t>(width - w + 1))),
                 static_cast<int>(random.below(static_cast<std::uint64_t>(height - h + 1))), w, h};
    for (int y = made.blob.y; y < made.blob.y + h; ++y) {
      for (int x = made.blob.x; x < made.blob.x + w; ++x)
        made.classes[static_cast<std::size_t>(y * width + x)] = number;
    }
  }
  for (std::size_t i = 0; i < made.classes.size(); ++i) {
    for (std::size_t c = 0; c < 3; ++c) {
      made.picture.pixels[3 * i + c] = static_cast<std::uint8_t>(colours[made.classes[i]][c]);
    }
  }
  return made;
}

// A chain of geometry and warps. Fills are alike, so that it can be fused.
std::vector<transform> make_chain(seeded_random& random, bool& has_warp) {
  std::vector<transform> steps;
  const int height = 20 + static_cast<int>(random.below(50));
  const int width = 20 + static_cast<int>(random.below(50));
  const filter how = static_cast<filter>(random.below(3));
  switch (random.below(7)) {
    case 0:
      steps.emplace_back(tr::random_resized_crop{.height = height, .width = width, .scale = {0.2, 1}, .how = how});
      break;
    case 1:
      steps.emplace_back(tr::resize{.shorter_side = 30 + static_cast<int>(random.below(40)), .how = how});
      steps.emplace_back(tr::center_crop{.height = height, .width = width, .fill = filled});
      break;
    case 2:
      steps.emplace_back(tr::resize{.shorter_side = 30 + static_cast<int>(random.below(40)), .how = how});
      steps.emplace_back(tr::random_crop{.height = height, .width = width, .padding = 6, .fill = filled});
      break;
    case 3:
      steps.emplace_back(tr::letterbox{.height = height, .width = width, .fill = filled});
      break;
    case 4:
      steps.emplace_back(tr::longest_side{.size = 40, .how = how});
      steps.emplace_back(
          tr::pad_to{.height = 48, .width = 44, .fill = filled, .position = static_cast<placement>(random.below(5))});
      break;
    case 5:
      steps.emplace_back(tr::random_scale{{0.6, 1.7}});
      steps.emplace_back(tr::random_crop{.height = height, .width = width, .padding = 0, .fill = filled});
      break;
    default:
      steps.emplace_back(tr::random_crop{.height = height, .width = width, .padding = 3, .fill = filled});
      break;
  }
  if (random.below(2) == 0) steps.emplace_back(tr::random_flip{});
  for (std::uint64_t warps = random.below(3); warps > 0; --warps) {
    has_warp = true;
    const filter look = static_cast<filter>(random.below(2));
    switch (random.below(6)) {
      case 0:
        steps.emplace_back(tr::rotate{.degrees = {-180, 180}, .how = look, .fill = filled});
        break;
      case 1:
        steps.emplace_back(tr::affine{.degrees = {-30, 30},
                                      .translate = {0.2, 0.2},
                                      .scale = {0.7, 1.5},
                                      .shear_x = {-20, 20},
                                      .shear_y = {-10, 10},
                                      .how = look,
                                      .fill = filled});
        break;
      case 2:
        steps.emplace_back(tr::shear{.x = {-30, 30}, .y = {-10, 10}, .how = look, .fill = filled});
        break;
      case 3:
        steps.emplace_back(tr::translate{.x = {-0.3, 0.3}, .y = {-0.3, 0.3}, .fill = filled});
        break;
      case 4:
        steps.emplace_back(tr::perspective{.distortion = 0.4, .how = look, .fill = filled});
        break;
      default:
        steps.emplace_back(tr::vertical_flip{});
        break;
    }
  }
  return steps;
}

// Detection's crops before a scaling; fused they stand behind one, too.
std::vector<transform> make_detection_chain(seeded_random& random, bool is_fused, bool& has_warp) {
  std::vector<transform> steps;
  const filter how = static_cast<filter>(random.below(3));
  if (is_fused && random.below(2) == 0) steps.emplace_back(tr::longest_side{.size = 70, .how = how});
  if (random.below(3) == 0) steps.emplace_back(tr::random_flip{});
  if (random.below(4) != 0) steps.emplace_back(tr::random_zoom_out{.side = {1, 2.5}, .probability = 1, .fill = filled});
  if (random.below(4) != 0) steps.emplace_back(tr::random_iou_crop{.scale = {0.4, 1}, .options = {0, 0.3, 0.5, 1}});
  if (random.below(2) == 0) steps.emplace_back(tr::random_flip{});
  const int height = 40 + static_cast<int>(random.below(50));
  const int width = 40 + static_cast<int>(random.below(50));
  switch (random.below(4)) {
    case 0:
      steps.emplace_back(tr::letterbox{.height = height, .width = width, .fill = filled, .how = how});
      break;
    case 1:
      steps.emplace_back(tr::longest_side{.size = 60, .how = how});
      steps.emplace_back(tr::pad_to{.height = 64, .width = 62, .fill = filled});
      break;
    case 2:
      steps.emplace_back(tr::smallest_side{.size = 50, .how = how});
      steps.emplace_back(tr::random_crop{.height = 56, .width = 52, .padding = 4, .fill = filled});
      break;
    default:
      steps.emplace_back(tr::resize{.height = height, .width = width, .how = how});
      break;
  }
  if (is_fused && random.below(3) == 0) {
    has_warp = true;
    steps.emplace_back(tr::rotate{.degrees = {-30, 30}, .how = filter::bilinear, .fill = filled});
  }
  return steps;
}

// The class whose colour is nearest, or `nothing` for what is filled.
int class_of(const std::uint8_t* rgb) {
  int best = nothing;
  int least = std::numeric_limits<int>::max();
  const auto look = [&](const std::array<int, 3>& colour, int number) {
    int distance = 0;
    for (std::size_t c = 0; c < 3; ++c) distance += (rgb[c] - colour[c]) * (rgb[c] - colour[c]);
    if (distance < least) least = distance, best = number;
  };
  for (std::size_t i = 0; i < colours.size(); ++i) look(colours[i], static_cast<int>(i));
  look(filled, nothing);
  return best;
}

// One sample of one chain, in step or not.
struct in_step {
  seeded_random random;
  scene of;
  int turned = 1;
  bool has_warp = false;
  bool is_fused = false;
  std::vector<transform> steps;
  rgb_picture row;
  std::vector<std::uint8_t> mask;
  placed_picture where;

  enum class chains : std::uint8_t { any, of_detection };
  explicit in_step(std::uint64_t seed, chains which = chains::any) : random(seed), of(make_scene(random)) {
    if (which == chains::any) steps = make_chain(random, has_warp);
    is_fused = random.below(2) == 0;
    if (which == chains::of_detection) steps = make_detection_chain(random, is_fused, has_warp);
    const bool is_turned = random.below(3) == 0;
    const int orientation = is_turned ? 1 + static_cast<int>(random.below(8)) : 0;
    const bool obeys = random.below(4) != 0;
    turned = is_turned && obeys ? orientation : 1;
    const pipeline chain(steps, is_fused ? pixel_rounding::fused : pixel_rounding::exact);
    const std::array<box, 2> things{blob(), {0, 0, of.picture.width / 3.0, of.picture.height / 4.0}};
    const picture_boxes seen_by_crops{things};
    const draw_key key{.seed = seed, .epoch = 1, .draw = 17, .boxes = &seen_by_crops};
    rgb_picture seen;
    const std::vector<std::byte> encoded = testing::make_png(of.picture, {.orientation = orientation}, seen);
    row = {chain.out_width(), chain.out_height(), {}};
    row.pixels.resize(static_cast<std::size_t>(row.width * row.height * 3));
    testing::one_decoder one;
    const auto made =
        one.decoder.decode(encoded, chain, key, store::from(dtype::u8, layout::nhwc, std::nullopt),
                           {.exif_orientation = obeys}, reinterpret_cast<std::byte*>(row.pixels.data()), nullptr);
    EXPECT_TRUE(made) << (made ? "" : made.reason());
    const picture_geometry geometry = geometry_of(made->drawn, made->from_row(), made->info.width, made->info.height,
                                                  obeys ? made->info.orientation : 1);
    EXPECT_EQ(geometry, geometry_of(chain, key, of.picture.width, of.picture.height, turned));
    place(chain, key, geometry, where);
    mask.resize(static_cast<std::size_t>(row.width * row.height));
    mask_reader reader(one.budget);
    const auto masked =
        reader.read(testing::make_mask_png(of.picture.width, of.picture.height, of.classes, 2, random.below(2) == 0),
                    where, {}, std::as_writable_bytes(std::span(mask)), nullptr);
    EXPECT_TRUE(masked) << (masked ? "" : masked.reason());
  }

  [[nodiscard]] box blob() const {
    return {static_cast<double>(of.blob.x), static_cast<double>(of.blob.y),
            static_cast<double>(of.blob.x + of.blob.width), static_cast<double>(of.blob.y + of.blob.height)};
  }
  [[nodiscard]] int at(int x, int y) const { return mask[static_cast<std::size_t>(y * row.width + x)]; }

  // No border of classes lies within 1.5 pixels, of the row or of the picture.
  [[nodiscard]] bool is_inside(int x, int y) const {
    for (int v = y - 1; v <= y + 1; ++v) {
      for (int u = x - 1; u <= x + 1; ++u) {
        if (u < 0 || v < 0 || u >= row.width || v >= row.height || at(u, v) != at(x, y)) return false;
      }
    }
    if (at(x, y) == nothing) return true;
    const auto [px, py, w] = seen_from(where.geometry.matrix, x + 0.5, y + 0.5);
    for (double v = -1.5; v <= 1.5; v += 0.75) {
      for (double u = -1.5; u <= 1.5; u += 0.75) {
        const double sx = std::floor(px / w + u);
        const double sy = std::floor(py / w + v);
        if (sx < 0 || sy < 0 || sx >= of.picture.width || sy >= of.picture.height) return false;
        if (of.classes[static_cast<std::size_t>(sy * of.picture.width + sx)] != at(x, y)) return false;
      }
    }
    return true;
  }
  [[nodiscard]] std::string text() const {
    std::string text = std::to_string(of.picture.width) + " x " + std::to_string(of.picture.height) +
                       (is_fused ? ", fused" : ", exact") + ", turned " + std::to_string(turned);
    for (const transform& step : steps) text += ", " + to_string(step);
    return text;
  }
};

// How often something was compared.
struct compared {
  std::size_t pixels = 0;
  std::size_t empty_pixels = 0;
  std::size_t whole_boxes = 0;
  std::size_t points = 0;
};

void compare_mask(const in_step& sample, compared& count) {
  for (int y = 0; y < sample.row.height; ++y) {
    for (int x = 0; x < sample.row.width; ++x) {
      if (!sample.is_inside(x, y)) continue;
      ++count.pixels;
      count.empty_pixels += sample.at(x, y) == nothing ? 1 : 0;
      ASSERT_EQ(class_of(sample.row.at(x, y)), sample.at(x, y)) << "pixel " << x << ' ' << y;
    }
  }
}

// The hull of the blob's pixels, and the box.
void compare_box(const in_step& sample, compared& count) {
  const placed_box placed = place_box(sample.where, sample.blob());
  box hull{1e9, 1e9, -1e9, -1e9};
  bool is_whole = true;
  for (int y = 0; y < sample.row.height; ++y) {
    for (int x = 0; x < sample.row.width; ++x) {
      if (sample.at(x, y) != 3) continue;
      hull = {std::min<double>(hull.left, x), std::min<double>(hull.top, y), std::max<double>(hull.right, x + 1),
              std::max<double>(hull.bottom, y + 1)};
      // It may go on where the row, or the picture in it, ends.
      for (int v = y - 2; v <= y + 2; ++v) {
        for (int u = x - 2; u <= x + 2; ++u) {
          const bool is_in_row = u >= 0 && v >= 0 && u < sample.row.width && v < sample.row.height;
          is_whole = is_whole && is_in_row && sample.at(u, v) != nothing;
        }
      }
    }
  }
  if (hull.right < 0) return;
  const box& got = placed.in_row;
  ASSERT_LE(got.left, hull.left + 1.5);
  ASSERT_LE(got.top, hull.top + 1.5);
  ASSERT_GE(got.right, hull.right - 1.5);
  ASSERT_GE(got.bottom, hull.bottom - 1.5);
  if (!is_whole) return;
  ++count.whole_boxes;
  // Corners of a turned blob are thinner than a pixel: nearest pixels may miss as much.
  const double off = sample.has_warp ? 2.5 : 1.5;
  ASSERT_NEAR(got.left, hull.left, off);
  ASSERT_NEAR(got.top, hull.top, off);
  ASSERT_NEAR(got.right, hull.right, off);
  ASSERT_NEAR(got.bottom, hull.bottom, off);
  ASSERT_NEAR(placed.whole_area, got.area(), 1e-6 * placed.whole_area + 1e-6);
}

// A place of the blob is of its colour in the row, where it is shown.
void compare_points(in_step& sample, compared& count) {
  const rectangle& blob = sample.of.blob;
  for (int i = 0; i < 4; ++i) {
    const auto share = [&] { return static_cast<double>(sample.random.below(1'000'000)) / 1e6; };
    const double x = blob.x + share() * blob.width;
    const double y = blob.y + share() * blob.height;
    const auto at = place_in_row(sample.where, x, y);
    if (!at || !is_shown(sample.where, (*at)[0], (*at)[1])) continue;
    const int u = std::min(static_cast<int>((*at)[0]), sample.row.width - 1);
    const int v = std::min(static_cast<int>((*at)[1]), sample.row.height - 1);
    const auto [px, py, w] = seen_from(sample.where.geometry.matrix, (*at)[0], (*at)[1]);
    ASSERT_NEAR(px / w, x, 1e-6);
    ASSERT_NEAR(py / w, y, 1e-6);
    if (!sample.is_inside(u, v)) continue;
    ++count.points;
    ASSERT_EQ(sample.at(u, v), 3);
    ASSERT_EQ(class_of(sample.row.at(u, v)), 3);
  }
}

TEST(placed_picture, has_its_mask_boxes_and_points_in_step_after_10000_chains) {
  compared count;
  for (std::uint64_t seed = 1; seed <= 10'000 && !HasFatalFailure(); ++seed) {
    in_step sample(seed);
    const ::testing::ScopedTrace trace(__FILE__, __LINE__, "seed " + std::to_string(seed) + ": " + sample.text());
    compare_mask(sample, count);
    if (!HasFatalFailure()) compare_box(sample, count);
    if (!HasFatalFailure()) compare_points(sample, count);
  }
  EXPECT_GT(count.pixels, 4'000'000U);
  EXPECT_GT(count.empty_pixels, 300'000U);
  EXPECT_GT(count.whole_boxes, 1'500U);
  EXPECT_GT(count.points, 5'000U);
}

// Where its middle is told to be inside, it lies in the row; the row's edge may be rounded.
void compare_middle(const in_step& sample) {
  const box blob = sample.blob();
  const double x = (blob.left + blob.right) / 2;
  const double y = (blob.top + blob.bottom) / 2;
  const auto at = place_in_row(sample.where, x, y);
  ASSERT_TRUE(at);
  const auto holds = [&](double off) {
    return (*at)[0] > -off && (*at)[0] < sample.row.width + off && (*at)[1] > -off &&
           (*at)[1] < sample.row.height + off;
  };
  const bool is_in = is_inside(sample.where, x, y);
  if (holds(-1)) ASSERT_TRUE(is_in);
  if (!holds(1)) ASSERT_FALSE(is_in);
}

TEST(placed_picture, has_what_follows_in_step_after_2000_chains_of_detection) {
  compared count;
  for (std::uint64_t seed = 1; seed <= 2000 && !HasFatalFailure(); ++seed) {
    in_step sample(seed, in_step::chains::of_detection);
    const ::testing::ScopedTrace trace(__FILE__, __LINE__, "seed " + std::to_string(seed) + ": " + sample.text());
    compare_mask(sample, count);
    if (!HasFatalFailure()) compare_box(sample, count);
    if (!HasFatalFailure()) compare_points(sample, count);
    if (!HasFatalFailure()) compare_middle(sample);
  }
  EXPECT_GT(count.pixels, 800'000U);
  EXPECT_GT(count.empty_pixels, 200'000U);
  EXPECT_GT(count.whole_boxes, 300U);
  EXPECT_GT(count.points, 1'500U);
}

// torchvision.transforms.v2.functional, by hand: crop_bounding_boxes(16, 8, 32, 64), resize to 64 x 128, horizontal_flip_bounding_boxes.
TEST(placed_picture, moves_a_box_as_torchvision_does) {
  const pipeline chain({tr::random_resized_crop{.height = 64, .width = 128, .scale = {1, 1}, .ratio = {2, 2}},
                        tr::random_flip{.probability = 1}});
  // The whole of a picture of 64 x 32: twice as large, and mirrored.
  const draw_key key;
  placed_picture where;
  place(chain, key, geometry_of(chain, key, 64, 32, 1), where);
  EXPECT_TRUE(where.geometry.mirrored);
  EXPECT_EQ(place_box(where, {10, 4, 30, 20}).in_row, (box{68, 8, 108, 40}));
  EXPECT_EQ(place_box(where, {50, 4, 80, 20}).in_row, (box{0, 8, 28, 40})) << "clamped to the canvas";
  EXPECT_EQ(place_box(where, {50, 4, 80, 20}).whole_area, 60.0 * 32) << "as if it were not";
  EXPECT_EQ(place_box(where, {70, 4, 80, 20}).in_row.area(), 0);
}

}  // namespace
}  // namespace leat::pixels
