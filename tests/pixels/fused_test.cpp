// Chains whose geometry is one matrix, beside the same matrix in double precision.
#include "stages/pixels/fused.hpp"

#include "stages/pixels/decimation.hpp"
#include "stages/pixels/recipe.hpp"
#include "stages/pixels/resample.hpp"
#include "stages/pixels/row_writer.hpp"
#include "tests/pixels/decode_one.hpp"
#include "tests/support/each_target.hpp"
#include "tests/support/make_picture.hpp"
#include "tests/support/seeds.hpp"

#include <leat/error.hpp>
#include <leat/photo_pack.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <optional>
#include <random>
#include <string>
#include <vector>

namespace leat::pixels {
namespace {

namespace tr = transforms;
using ::testing::HasSubstr;
using testing::rgb_picture;

/// A row of u8, interleaved, and what was drawn for it.
struct made_row {
  rgb_picture pixels;
  geometry drawn;
  int decimation = 1;
};

made_row made(testing::one_decoder& one, const std::vector<std::byte>& encoded, const pipeline& steps,
              const draw_key& key, const decode_options& options = {}) {
  const auto how = store::from(dtype::u8, layout::nhwc, std::nullopt);
  made_row row{{steps.out_width(), steps.out_height(), {}}, {}};
  row.pixels.pixels.assign(how.row_bytes(steps.out_height(), steps.out_width()), 0xEE);
  const auto result = one.decoder.decode(encoded, steps, key, how, options,
                                         reinterpret_cast<std::byte*>(row.pixels.pixels.data()), nullptr);
  EXPECT_TRUE(result) << result.reason();
  if (!result) return row;
  row.drawn = result->drawn;
  row.decimation = result->decimation;
  return row;
}

/// Numbers of a picture, interleaved.
struct exact_picture {
  int width = 0;
  int height = 0;
  std::vector<double> values;

  [[nodiscard]] double& at(int x, int y, int c) {
    return values[(static_cast<std::size_t>(y) * static_cast<std::size_t>(width) + static_cast<std::size_t>(x)) * 3 +
                  static_cast<std::size_t>(c)];
  }
};

// The antialiased triangle, along the lines; then the axes change places.
exact_picture shrunk_across_and_turned(exact_picture& from, int to) {
  exact_picture made{from.height, to, {}};
  made.values.resize(static_cast<std::size_t>(from.height) * static_cast<std::size_t>(to) * 3);
  const double scale = static_cast<double>(from.width) / to;
  const double reach = std::max(scale, 1.0);
  for (int i = 0; i < to; ++i) {
    const double middle = (i + 0.5) * scale;
    for (int y = 0; y < from.height; ++y) {
      std::array<double, 3> sums{};
      double weights = 0;
      for (int x = std::max(0, static_cast<int>(middle - reach - 1));
           x < std::min(from.width, static_cast<int>(middle + reach + 2)); ++x) {
        const double weight = 1 - std::abs(x + 0.5 - middle) / reach;
        if (weight <= 0) continue;
        weights += weight;
        for (int c = 0; c < 3; ++c) sums[static_cast<std::size_t>(c)] += weight * from.at(x, y, c);
      }
      for (int c = 0; c < 3; ++c) made.at(y, i, c) = sums[static_cast<std::size_t>(c)] / weights;
    }
  }
  return made;
}

/// The row by its definition, from the decimated picture.
exact_picture wanted(const rgb_picture& decimated, const geometry& drawn, int by) {
  const fused_warp& warp = *drawn.warp;
  const fused_plan plan = plan_fused(warp, by, 0, 0);
  exact_picture region{plan.across.count, plan.down.count, {}};
  for (int y = 0; y < region.height; ++y) {
    for (int x = 0; x < region.width; ++x) {
      for (int c = 0; c < 3; ++c) {
        region.values.push_back(
            decimated
                .pixels[(static_cast<std::size_t>(plan.down.begin + y) * static_cast<std::size_t>(decimated.width) +
                         static_cast<std::size_t>(plan.across.begin + x)) *
                            3 +
                        static_cast<std::size_t>(c)]);
      }
    }
  }
  if (region.width > 0) {
    exact_picture turned = shrunk_across_and_turned(region, plan.across.shrunk_to);
    region = shrunk_across_and_turned(turned, plan.down.shrunk_to);
  }
  exact_picture row{warp.out_width, warp.out_height, {}};
  for (int y = 0; y < row.height; ++y) {
    for (int x = 0; x < row.width; ++x) {
      const auto [p, q, w] = seen_from(warp.from, x + 0.5, y + 0.5);
      for (int c = 0; c < 3; ++c) {
        const double fill = drawn.fill[static_cast<std::size_t>(c)];
        if (!(w > 0)) {
          row.values.push_back(fill);
          continue;
        }
        // Of the picture, by the matrix that was drawn; then of what was decoded of it.
        const double u = (p / w / by - plan.across.begin) * plan.across.shrunk_to / std::max(plan.across.count, 1);
        const double v = (q / w / by - plan.down.begin) * plan.down.shrunk_to / std::max(plan.down.count, 1);
        const auto at = [&](double place_x, double place_y) {
          const bool is_inside = place_x >= 0 && place_y >= 0 && place_x < region.width && place_y < region.height;
          return is_inside ? region.at(static_cast<int>(place_x), static_cast<int>(place_y), c) : fill;
        };
        const double left = std::floor(u - 0.5);
        const double top = std::floor(v - 0.5);
        const double right = u - 0.5 - left;
        const double down = v - 0.5 - top;
        row.values.push_back((at(left, top) * (1 - right) + at(left + 1, top) * right) * (1 - down) +
                             (at(left, top + 1) * (1 - right) + at(left + 1, top + 1) * right) * down);
      }
    }
  }
  return row;
}

std::vector<transform> any_chain(std::mt19937_64& random, int side) {
  const auto between = [&](int from, int to) { return std::uniform_int_distribution<int>(from, to)(random); };
  const std::array<int, 3> fill = {between(0, 255), between(0, 255), between(0, 255)};
  std::vector<transform> steps;
  switch (between(0, 3)) {
    case 0:
      steps = {tr::resize{.shorter_side = side + 9, .how = filter::bilinear}, tr::center_crop{side, side + 3}};
      break;
    case 1:
      steps = {tr::resize{.height = side + 20, .width = side + 30}, tr::random_flip{}, tr::random_crop{side, side},
               tr::resize{.height = side - 3, .width = side + 5}};
      break;
    case 2:
      steps = {tr::random_crop{.height = side, .width = side, .padding = 4, .fill = fill}};
      break;
    default:
      steps = {tr::random_resized_crop{.height = side, .width = side, .scale = {0.05, 1}}, tr::random_flip{}};
  }
  for (int i = between(1, 2); i > 0; --i) {
    switch (between(0, 3)) {
      case 0:
        steps.emplace_back(tr::rotate{.degrees = {-180, 180}, .how = filter::bilinear, .fill = fill});
        break;
      case 1:
        steps.emplace_back(tr::affine{.degrees = {-30, 30},
                                      .translate = {0.2, 0.2},
                                      .scale = {0.5, 1.5},
                                      .shear_x = {-20, 20},
                                      .shear_y = {-10, 10},
                                      .how = filter::bilinear,
                                      .fill = fill});
        break;
      case 2:
        steps.emplace_back(tr::perspective{.distortion = 0.6, .fill = fill});
        break;
      default:
        steps.emplace_back(tr::vertical_flip{});
        steps.emplace_back(tr::shear{.x = {-20, 20}, .how = filter::bilinear, .fill = fill});
    }
  }
  return steps;
}

TEST(fused, is_the_matrix_in_double_precision_within_one_level) {
  testing::one_decoder one;
  std::size_t values = 0;
  std::size_t off_by_more = 0;
  std::size_t shrunk = 0;
  std::size_t decimated_rows = 0;
  std::size_t rows = 0;
  testing::for_each_seed(150, [&](std::uint64_t seed) {
    std::mt19937_64 random(seed);
    const auto between = [&](int from, int to) { return std::uniform_int_distribution<int>(from, to)(random); };
    const bool is_jpeg = between(0, 1) == 0;
    // Whole blocks, so that a decimated picture is no larger than the picture.
    const int width = is_jpeg ? 8 * between(4, 70) : between(1, 500);
    const int height = is_jpeg ? 8 * between(4, 70) : between(1, 500);
    const rgb_picture texture = testing::make_texture(seed, width, height);
    rgb_picture seen;
    const std::vector<std::byte> encoded =
        is_jpeg ? testing::make_jpeg(texture, {}) : testing::make_png(texture, {}, seen);
    const pipeline steps(any_chain(random, between(8, 60)), pixel_rounding::fused);
    const made_row row = made(one, encoded, steps, {seed, 0, 3}, {.decimate = true});
    if (!row.drawn.warp) return;  // shears of nothing
    const fused_plan plan = plan_fused(*row.drawn.warp, row.decimation, 0, 0);
    ++rows;
    shrunk += plan.across.shrunk_to < plan.across.count || plan.down.shrunk_to < plan.down.count ? 1 : 0;
    decimated_rows += row.decimation > 1 ? 1 : 0;
    const exact_picture exact =
        wanted(is_jpeg ? testing::decode_whole_jpeg(encoded, row.decimation) : seen, row.drawn, row.decimation);
    ASSERT_EQ(exact.values.size(), row.pixels.pixels.size());
    for (std::size_t i = 0; i < exact.values.size(); ++i) {
      const double off = std::abs(exact.values[i] - row.pixels.pixels[i]);
      ++values;
      off_by_more += off > 1 ? 1 : 0;
      ASSERT_LE(off, 3) << i;
    }
  });
  EXPECT_LE(off_by_more * 1000, values);
  if (rows < 100) return;  // of a replay
  EXPECT_GT(shrunk, rows / 10);
  EXPECT_GT(decimated_rows, rows / 10);
}

TEST(fused, decodes_all_that_the_row_looks_at) {
  // The whole picture looked up by the same matrix: what lies beyond what was decoded would be fill.
  testing::one_decoder one;
  testing::for_each_seed(60, [&](std::uint64_t seed) {
    std::mt19937_64 random(seed);
    const rgb_picture texture = testing::make_texture(seed, 200 + static_cast<int>(seed % 90), 260);
    rgb_picture seen;
    const std::vector<std::byte> encoded = testing::make_png(texture, {}, seen);
    const pipeline steps(any_chain(random, 50), pixel_rounding::fused);
    const made_row row = made(one, encoded, steps, {seed, 0, 1});
    if (!row.drawn.warp) return;
    const fused_plan plan = plan_fused(*row.drawn.warp, 1, 0, 0);
    for (int y = 0; y < row.pixels.height; ++y) {
      for (int x = 0; x < row.pixels.width; ++x) {
        const auto [u, v, w] = seen_from(row.drawn.warp->from, x + 0.5, y + 0.5);
        if (!(w > 0) || u / w < 0 || v / w < 0 || u / w >= seen.width || v / w >= seen.height) continue;
        ASSERT_GE(u / w, plan.across.begin);
        ASSERT_LT(u / w, plan.across.begin + plan.across.count);
        ASSERT_GE(v / w, plan.down.begin);
        ASSERT_LT(v / w, plan.down.begin + plan.down.count);
      }
    }
  });
}

TEST(fused, rows_without_a_warp_are_those_of_exact_rounding) {
  testing::one_decoder one;
  const std::vector<std::byte> encoded = testing::make_jpeg(testing::make_texture(3, 330, 250), {});
  const std::vector<transform> chains[] = {
      {tr::random_resized_crop{.height = 64, .width = 64}, tr::random_flip{}},
      {tr::resize{.shorter_side = 72}, tr::center_crop{64, 64}, tr::rotate{.degrees = {0, 0}}},
      {tr::letterbox{.height = 64, .width = 64}, tr::brightness{{1.25, 1.25}}},
      {tr::random_resized_crop{.height = 64, .width = 64}, tr::translate{}, tr::affine{}},
      {tr::resize{.shorter_side = 72}, tr::center_crop{64, 64},
       tr::random_apply{0.5, {tr::rotate{.degrees = {9, 20}}}}}};
  std::size_t rows = 0;
  for (const std::vector<transform>& steps : chains) {
    const pipeline fused(steps, pixel_rounding::fused);
    const pipeline exact(steps);
    // As the field has it where nobody said.
    EXPECT_EQ(fused.geometry_is_random(), exact.geometry_is_random());
    for (std::uint64_t draw = 0; draw < 8; ++draw) {
      for (const bool decimate : {exact.geometry_is_random(), true}) {
        const made_row row = made(one, encoded, fused, {1, 2, draw}, {.decimate = decimate});
        if (row.drawn.warp) continue;
        ++rows;
        EXPECT_EQ(row.pixels, made(one, encoded, exact, {1, 2, draw}, {.decimate = decimate}).pixels);
      }
    }
  }
  EXPECT_GT(rows, 64U);
}

TEST(fused, has_pixels_of_the_picture_where_exact_rounding_has_corners_of_fill) {
  testing::one_decoder one;
  const std::vector<std::byte> encoded = testing::make_jpeg(testing::make_texture(5, 300, 300), {});
  const std::vector<transform> steps = {
      tr::center_crop{100, 100}, tr::rotate{.degrees = {45, 45}, .how = filter::bilinear, .fill = {255, 0, 255}}};
  const auto corner_of = [](const made_row& row) {
    return std::array<int, 3>{row.pixels.pixels[0], row.pixels.pixels[1], row.pixels.pixels[2]};
  };
  EXPECT_EQ(corner_of(made(one, encoded, pipeline(steps), {})), (std::array<int, 3>{255, 0, 255}));
  EXPECT_NE(corner_of(made(one, encoded, pipeline(steps, pixel_rounding::fused), {})),
            (std::array<int, 3>{255, 0, 255}));
  // And the middle, where nothing is scaled, is the same but for the rounding.
  const made_row exact = made(one, encoded, pipeline(steps), {});
  const made_row fused = made(one, encoded, pipeline(steps, pixel_rounding::fused), {});
  for (std::size_t y = 40; y < 60; ++y) {
    for (std::size_t x = 120; x < 180; ++x) {
      ASSERT_NEAR(exact.pixels.pixels[y * 300 + x], fused.pixels.pixels[y * 300 + x], 1);
    }
  }
}

TEST(fused, carries_two_scalings_and_a_scaling_after_a_crop) {
  testing::one_decoder one;
  rgb_picture seen;
  const std::vector<std::byte> encoded = testing::make_png(testing::make_texture(8, 120, 90), {}, seen);
  const std::vector<transform> steps = {tr::resize{.height = 180, .width = 240}, tr::center_crop{60, 80},
                                        tr::resize{.height = 30, .width = 40}};
  EXPECT_THROW(pipeline{steps}, error);
  const pipeline chain(steps, pixel_rounding::fused);
  const geometry drawn = chain.compile(120, 90, {});
  ASSERT_TRUE(drawn.warp);
  // Twice as large, the middle third of that, and half as large: one pixel stays one.
  const warp_matrix wanted_matrix = {1, 0, 40, 0, 1, 30, 0, 0, 1};
  for (std::size_t i = 0; i < wanted_matrix.size(); ++i) EXPECT_NEAR(drawn.warp->from[i], wanted_matrix[i], 1e-9);
  EXPECT_EQ(made(one, encoded, chain, {}).pixels, testing::crop(seen, 40, 30, 40, 30));
}

TEST(fused, gives_the_same_rows_of_photo_packs_layouts_and_turned_pictures) {
  testing::one_decoder one;
  const rgb_picture texture = testing::make_texture(6, 333, 250);
  testing::for_each_seed(20, [&](std::uint64_t seed) {
    std::mt19937_64 random(seed);
    const std::vector<std::byte> encoded = testing::make_jpeg(texture, {.orientation = static_cast<int>(seed % 9)});
    const pipeline steps(any_chain(random, 48), pixel_rounding::fused);
    const decode_options options{.exif_orientation = true, .decimate = true};
    const made_row row = made(one, encoded, steps, {seed, 0, 1}, options);
    EXPECT_EQ(made(one, pack_photo(encoded), steps, {seed, 0, 1}, options).pixels, row.pixels);

    const auto planes = store::from(dtype::u8, layout::nchw, std::nullopt);
    std::vector<std::uint8_t> planar(row.pixels.pixels.size());
    ASSERT_TRUE(one.decoder.decode(encoded, steps, {seed, 0, 1}, planes, options,
                                   reinterpret_cast<std::byte*>(planar.data()), nullptr));
    const std::size_t plane = planar.size() / 3;
    for (std::size_t i = 0; i < planar.size(); ++i) {
      ASSERT_EQ(planar[i], row.pixels.pixels[(i % plane) * 3 + i / plane]) << i;
    }
  });
}

TEST(fused, turns_a_picture_as_its_exif_says_before_it_looks) {
  testing::one_decoder one;
  // Lossless but for JPEG: the same picture stored upright and turned, whole blocks of it.
  const rgb_picture texture = testing::make_texture(6, 320, 256);
  const pipeline steps({tr::resize{.shorter_side = 90}, tr::center_crop{64, 64},
                        tr::rotate{.degrees = {30, 30}, .how = filter::bilinear}},
                       pixel_rounding::fused);
  for (const int orientation : {1, 2, 3, 4, 5, 6, 7, 8}) {
    const std::vector<std::byte> turned = testing::make_jpeg(texture, {.h = 1, .v = 1, .orientation = orientation});
    // By the whole picture, upright.
    const auto whole = one.decoder.decode_whole(turned, {.exif_orientation = true});
    ASSERT_TRUE(whole);
    rgb_picture upright{whole->width, whole->height, {}};
    upright.pixels.resize(whole->rgb.size());
    std::memcpy(upright.pixels.data(), whole->rgb.data(), whole->rgb.size());
    rgb_picture seen;
    const std::vector<std::byte> plain = testing::make_png(upright, {}, seen);
    ASSERT_EQ(seen, upright);
    EXPECT_EQ(made(one, turned, steps, {}, {.exif_orientation = true}).pixels, made(one, plain, steps, {}).pixels)
        << orientation;
  }
}

TEST(fused, takes_exactly_the_scratch_that_it_said) {
  testing::for_each_seed(40, [&](std::uint64_t seed) {
    std::mt19937_64 random(seed);
    const pipeline steps(any_chain(random, 64), pixel_rounding::fused);
    const geometry drawn = steps.compile(700, 500, {seed, 0, 1});
    if (!drawn.warp) return;
    scratch_budget budget(std::size_t{64} << 20);
    scratch_arena arena(budget);
    arena.begin();
    resampler to(drawn, {});
    ASSERT_TRUE(arena.reserve(to.scratch_bytes()));
    const auto how = store::from(dtype::u8, layout::nhwc, std::nullopt);
    std::vector<std::byte> row(how.row_bytes(drawn.out_height, drawn.out_width));
    row_writer writer(how, nullptr, drawn.out_height, drawn.out_width, row.data());
    writer.take_planar();
    ASSERT_TRUE(to.start(arena, writer.line_order(), writer));
    EXPECT_LE(arena.used(), to.scratch_bytes());
    // The widest output's taps are known when the tables are made.
    EXPECT_GT(arena.used() + (std::size_t{48} << 10), to.scratch_bytes());
    arena.end();
  });
}

TEST(fused, gives_the_same_bits_on_every_instruction_set) {
  testing::one_decoder one;
  const std::vector<std::byte> encoded = testing::make_jpeg(testing::make_texture(9, 450, 333), {});
  testing::for_each_seed(30, [&](std::uint64_t seed) {
    std::mt19937_64 random(seed);
    const pipeline steps(any_chain(random, 70), pixel_rounding::fused);
    std::optional<rgb_picture> first;
    for (const std::int64_t target : testing::targets_here()) {
      use_instruction_sets(target);
      const made_row row = made(one, encoded, steps, {seed, 0, 1}, {.decimate = true});
      use_instruction_sets(0);
      if (!first) first = row.pixels;
      ASSERT_EQ(row.pixels, *first) << hwy::TargetName(target);
    }
  });
}

TEST(fused, leaves_nothing_of_a_warp_to_others_and_colour_as_it_was) {
  const std::vector<transform> steps = {tr::random_resized_crop{.height = 64, .width = 64}, tr::random_flip{},
                                        tr::brightness{{0.5, 1.5}}, tr::rotate{.degrees = {-30, 30}}, tr::invert{}};
  const pipeline fused(steps, pixel_rounding::fused);
  const pipeline exact(steps);
  EXPECT_TRUE(exact.all_passes().sees_sides());
  EXPECT_FALSE(fused.all_passes().sees_sides());
  recipe of_fused;
  recipe of_exact;
  for (std::uint64_t draw = 0; draw < 20; ++draw) {
    fused.draw_colour({1, 0, draw}, of_fused);
    exact.draw_colour({1, 0, draw}, of_exact);
    ASSERT_EQ(of_fused.count, 2U);
    ASSERT_EQ(of_exact.count, 3U);
    EXPECT_EQ(of_fused.passes[0].value, of_exact.passes[0].value);
    // The same place is looked at, through the geometry alone.
    const warp_matrix one_matrix = fused.compile(300, 200, {1, 0, draw}).from_row();
    const warp_matrix two = followed(exact.compile(300, 200, {1, 0, draw}).from_row(), of_exact.from_row());
    for (std::size_t i = 0; i < two.size(); ++i) EXPECT_NEAR(one_matrix[i], two[i], 1e-9);
  }
}

std::string refusal(const std::vector<transform>& steps) {
  try {
    const pipeline made(steps, pixel_rounding::fused);
  } catch (const error& failure) {
    EXPECT_EQ(failure.code(), errc::usage);
    return failure.what();
  }
  return "";
}

TEST(fused, refuses_by_name_what_is_no_single_matrix) {
  const auto refused = [](std::vector<transform> steps) {
    steps.insert(steps.begin(), tr::center_crop{64, 64});
    return refusal(steps);
  };
  EXPECT_THAT(refused({tr::aug_mix{}}), HasSubstr("aug_mix: mixes pictures that are warped differently"));
  EXPECT_THAT(refused({tr::gaussian_blur{}, tr::rotate{}}), HasSubstr("rotate: stands behind gaussian_blur"));
  EXPECT_THAT(refused({tr::gaussian_noise{}, tr::rand_augment{}}),
              HasSubstr("write it before gaussian_noise, or write pixel_rounding::exact"));
  EXPECT_THAT(refused({tr::in_random_order{{tr::rotate{}, tr::sharpness{}}}}),
              HasSubstr("rotate: stands behind sharpness"));
  EXPECT_EQ(refused({tr::one_of{{tr::sharpness{}, tr::rotate{}}}}), "");
  EXPECT_THAT(refused({tr::one_of{{tr::sharpness{}, tr::rotate{}}}, tr::shear{}}),
              HasSubstr("shear: stands behind sharpness"));
  EXPECT_EQ(refused({tr::rotate{}, tr::gaussian_blur{}}), "");
  EXPECT_THAT(refused({tr::rotate{.fill = {1, 2, 3}}, tr::shear{}}),
              HasSubstr("shear: fill 0/0/0 where rotate has 1/2/3"));
  EXPECT_THAT(refusal({tr::letterbox{.height = 64, .width = 64}, tr::rotate{}}),
              HasSubstr("rotate: fill 0/0/0 where letterbox has 114/114/114"));
  EXPECT_EQ(refusal({tr::letterbox{.height = 64, .width = 64}, tr::rotate{.fill = {114, 114, 114}}}), "");
  EXPECT_THAT(refusal({tr::random_crop{.height = 64, .width = 64, .padding = 4, .mode = padding_mode::reflect}}),
              HasSubstr("random_crop: pads with more than a colour"));
  EXPECT_THAT(refusal({tr::resize{.shorter_side = 64}, tr::rotate{}}), HasSubstr("leave its size open"));
}

TEST(fused, of_masks_looks_at_the_nearest_pixel_and_makes_no_other_value) {
  testing::one_decoder one;
  rgb_picture mask{90, 70, {}};
  for (int i = 0; i < 90 * 70; ++i) {
    const auto value = static_cast<std::uint8_t>((i / 7 % 3) * 100);
    mask.pixels.insert(mask.pixels.end(), {value, value, value});
  }
  rgb_picture seen;
  const std::vector<std::byte> encoded = testing::make_png(mask, {}, seen);
  const pipeline steps({tr::resize{.height = 32, .width = 32, .how = filter::nearest}, tr::rotate{.degrees = {33, 33}}},
                       pixel_rounding::fused);
  const made_row row = made(one, encoded, steps, {});
  ASSERT_TRUE(row.drawn.warp);
  EXPECT_EQ(row.drawn.warp->how, filter::nearest);
  for (const std::uint8_t value : row.pixels.pixels) ASSERT_TRUE(value == 0 || value == 100 || value == 200);
}

TEST(fused, of_hostile_matrices_stays_inside_of_the_picture) {
  testing::for_each_seed(400, [&](std::uint64_t seed) {
    std::mt19937_64 random(seed);
    const auto number = [&]() -> double {
      constexpr double some[] = {0, 1, -1, 1e-9, 1e9, -1e9, 1e300, 0.5, -3};
      const auto chosen = std::uniform_int_distribution<std::size_t>(0, 12)(random);
      return chosen < std::size(some) ? some[chosen] : std::uniform_real_distribution<double>(-4, 4)(random);
    };
    fused_warp warp{.picture_width = std::uniform_int_distribution<int>(1, 300)(random),
                    .picture_height = std::uniform_int_distribution<int>(1, 300)(random),
                    .out_width = std::uniform_int_distribution<int>(1, 80)(random),
                    .out_height = std::uniform_int_distribution<int>(1, 80)(random),
                    .how = seed % 2 == 0 ? filter::bilinear : filter::nearest};
    for (double& each : warp.from) each = number();
    for (const int by : {1, 2, 4, 8}) {
      const fused_plan plan = plan_fused(warp, by, 0, 0);
      const auto is_inside = [&](const fused_axis& axis, int size) {
        return axis.count == 0 ||
               (axis.begin >= 0 && axis.count > 0 && axis.begin + axis.count <= (size + by - 1) / by &&
                axis.shrunk_to >= 1 && axis.shrunk_to <= axis.count);
      };
      ASSERT_TRUE(is_inside(plan.across, warp.picture_width));
      ASSERT_TRUE(is_inside(plan.down, warp.picture_height));
      ASSERT_EQ(plan.across.count == 0, plan.down.count == 0);
    }
    // And a decoder takes it.
    testing::one_decoder one;
    geometry drawn = testing::plain_box(0, 0, warp.out_width, warp.out_height);
    drawn.box = {0, 0, 1, 1};
    drawn.scaled_width = drawn.scaled_height = 1;
    drawn.warp = warp;
    rgb_picture seen;
    const std::vector<std::byte> encoded =
        testing::make_png(testing::make_texture(seed, warp.picture_width, warp.picture_height), {}, seen);
    const rgb_picture row = one.decode(encoded, drawn);
    ASSERT_EQ(one.reason, "");
    ASSERT_EQ(row.width, warp.out_width);
  });
}

}  // namespace
}  // namespace leat::pixels
