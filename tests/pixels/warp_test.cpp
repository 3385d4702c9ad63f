// Warps against their definition in double precision, and what is drawn of them against torchvision's.
#include "stages/pixels/warp.hpp"

#include "base/portable_math.hpp"
#include "stages/pixels/policies.hpp"
#include "stages/pixels/recipe.hpp"
#include "tests/support/each_target.hpp"
#include "tests/support/reference_warp.hpp"
#include "tests/support/seeded_random.hpp"
#include "tests/support/seeds.hpp"

#include <leat/error.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <numbers>
#include <optional>
#include <string>
#include <vector>

namespace leat::pixels {
namespace {

namespace tr = transforms;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// Lines of three planes.
struct planar {
  planar(int h, int w) : height(h), width(w), bytes(static_cast<std::size_t>(h) * static_cast<std::size_t>(w) * 3) {}
  [[nodiscard]] picture view() { return {bytes.data(), height, width}; }
  [[nodiscard]] std::uint8_t& at(int c, int y, int x) {
    return bytes[(static_cast<std::size_t>(y) * 3 + static_cast<std::size_t>(c)) * static_cast<std::size_t>(width) +
                 static_cast<std::size_t>(x)];
  }
  int height;
  int width;
  std::vector<std::uint8_t> bytes;
};

planar noise(int height, int width, std::uint64_t seed) {
  planar made(height, width);
  testing::seeded_random random(seed);
  for (std::uint8_t& value : made.bytes) value = static_cast<std::uint8_t>(random.below(256));
  return made;
}
planar smooth(int height, int width) {
  planar made(height, width);
  for (int c = 0; c < 3; ++c) {
    for (int y = 0; y < height; ++y) {
      for (int x = 0; x < width; ++x) {
        made.at(c, y, x) =
            static_cast<std::uint8_t>(std::lround(127.5 + 120 * std::sin(0.05 * x + c) * std::cos(0.04 * y)));
      }
    }
  }
  return made;
}

planar warped(planar& from, const warp& how) {
  planar made(from.height, from.width);
  const warper warps(how, from.view());
  for (int y = 0; y < from.height; ++y) warps.line(y, made.view().line(y));
  return made;
}

warp_matrix any_matrix(testing::seeded_random& random, int height, int width) {
  const auto uniform = [&](double from, double to) {
    return from + (to - from) * static_cast<double>(random.next() >> 11) * 0x1p-53;
  };
  if (random.below(3) != 0) {
    return affine_matrix({.degrees = uniform(-360, 360),
                          .translate = {uniform(-width, width), uniform(-height, height)},
                          .scale = std::exp(uniform(-2, 2)),
                          .tan_x = uniform(-2, 2),
                          .tan_y = uniform(-2, 2),
                          .center = {uniform(0, width), uniform(0, height)}});
  }
  const auto near = [&](double x, double y) {
    return std::array<double, 2>{x + uniform(-0.4, 0.4) * width, y + uniform(-0.4, 0.4) * height};
  };
  const double right = width;
  const double low = height;
  return perspective_matrix({near(0, 0), near(right, 0), near(right, low), near(0, low)},
                            {{{0, 0}, {right, 0}, {right, low}, {0, low}}});
}

TEST(warp, is_its_definition_within_one_level_on_every_instruction_set) {
  std::size_t values = 0;
  std::size_t equal = 0;
  testing::for_each_seed(40, [&](std::uint64_t seed) {
    testing::seeded_random random(seed);
    const int height = 1 + static_cast<int>(random.below(90));
    const int width = 1 + static_cast<int>(random.below(90));
    planar from = noise(height, width, seed);
    for (const filter how : {filter::nearest, filter::bilinear}) {
      const warp what{.from = any_matrix(random, height, width), .how = how, .fill = {255, 7, 100}};
      std::vector<std::uint8_t> first;
      for (const std::int64_t target : testing::targets_here()) {
        use_instruction_sets(target);
        planar made = warped(from, what);
        use_instruction_sets(0);
        if (!first.empty()) {
          ASSERT_EQ(made.bytes, first) << hwy::TargetName(target);
          continue;
        }
        first = made.bytes;
        for (int c = 0; c < 3; ++c) {
          for (int y = 0; y < height; ++y) {
            for (int x = 0; x < width; ++x) {
              const std::optional<double> wanted = testing::warped_value(
                  what, height, width, c, x, y, [&](int of, int at_x, int at_y) { return from.at(of, at_y, at_x); });
              if (!wanted) continue;
              const double off = std::abs(*wanted - made.at(c, y, x));
              ++values;
              if (off <= 0.5) ++equal;
              ASSERT_LE(off, how == filter::nearest ? 0 : 1.5) << c << ' ' << y << ' ' << x;
            }
          }
        }
      }
    }
  });
  EXPECT_GE(static_cast<double>(equal), 0.99 * static_cast<double>(values));
}

TEST(warp, by_the_identity_changes_nothing_and_by_right_angles_permutes) {
  planar from = noise(37, 37, 1);
  for (const filter how : {filter::nearest, filter::bilinear}) {
    EXPECT_EQ(warped(from, {.how = how}).bytes, from.bytes);
    for (int turns = 0; turns < 4; ++turns) {
      const warp what{.from = affine_matrix({.degrees = -90.0 * turns, .center = {18.5, 18.5}}), .how = how};
      planar made = warped(from, what);
      for (int c = 0; c < 3; ++c) {
        for (int y = 0; y < 37; ++y) {
          for (int x = 0; x < 37; ++x) {
            const std::array<std::array<int, 2>, 4> places = {{{y, x}, {x, 36 - y}, {36 - y, 36 - x}, {36 - x, y}}};
            const auto [from_y, from_x] = places[static_cast<std::size_t>(turns)];
            ASSERT_EQ(made.at(c, y, x), from.at(c, from_y, from_x)) << turns << ' ' << y << ' ' << x;
          }
        }
      }
    }
  }
}

TEST(warp, and_its_inverse_bring_back_what_is_away_from_the_rim) {
  planar from = smooth(128, 96);
  for (const double degrees : {13.0, -30.0, 45.0, 170.0}) {
    const std::array<double, 2> center = {48, 64};
    planar there = warped(from, {affine_matrix({.degrees = degrees, .center = center}), filter::bilinear, {}});
    planar back = warped(there, {affine_matrix({.degrees = -degrees, .center = center}), filter::bilinear, {}});
    for (int c = 0; c < 3; ++c) {
      for (int y = 0; y < 128; ++y) {
        for (int x = 0; x < 96; ++x) {
          if (std::hypot(x + 0.5 - 48, y + 0.5 - 64) > 44) continue;
          ASSERT_LE(std::abs(back.at(c, y, x) - from.at(c, y, x)), 2) << degrees;
        }
      }
    }
  }
}

TEST(warp, of_a_picture_far_away_or_behind_the_horizon_is_fill) {
  planar from = noise(9, 200, 2);
  for (const filter how : {filter::nearest, filter::bilinear}) {
    for (const warp_matrix& matrix :
         {affine_matrix({.translate = {65'000, -65'000}}), affine_matrix({.scale = 0.01, .center = {-2'000, -90}}),
          warp_matrix{}, warp_matrix{1, 0, 0, 0, 1, 0, 0, 0, -1}, warp_matrix{1, 0, 1e300, 0, 1, -1e300, 0, 1e-9, 1},
          perspective_matrix({{{0, 0}, {5, 0}, {9, 0}, {0, 9}}}, {{{0, 0}, {9, 0}, {9, 9}, {0, 9}}})}) {
      const planar made = warped(from, {matrix, how, {3, 3, 3}});
      EXPECT_THAT(made.bytes, ::testing::Each(3));
    }
  }
}

TEST(warp, sides_may_be_large) {
  for (const auto& [height, width] : std::array<std::array<int, 2>, 2>{{{1, 65'535}, {4'096, 3}}}) {
    planar from = noise(height, width, 3);
    const warp mirror{
        .from = {-1, 0, double(width), 0, -1, double(height), 0, 0, 1}, .how = filter::bilinear, .fill = {}};
    planar made = warped(from, mirror);
    for (int y = 0; y < height; ++y) {
      for (int x = 0; x < width; ++x) ASSERT_EQ(made.at(1, y, x), from.at(1, height - 1 - y, width - 1 - x));
    }
  }
}

TEST(matrix, has_sines_and_cosines_of_every_angle) {
  for (int i = -7200; i <= 7200; ++i) {
    const double degrees = i * 0.1;
    const auto [sine, cosine] = portable_sine_and_cosine(degrees);
    ASSERT_NEAR(sine, std::sin(std::fmod(degrees, 360.0) * std::numbers::pi / 180), 2e-15) << degrees;
    ASSERT_NEAR(cosine, std::cos(std::fmod(degrees, 360.0) * std::numbers::pi / 180), 2e-15) << degrees;
  }
  const auto [sine, cosine] = portable_sine_and_cosine(-90);
  EXPECT_EQ(sine, -1);
  EXPECT_EQ(cosine, 0);
}

// torchvision.transforms.v2.functional._geometry._get_inverse_affine_matrix([0, 0], 20, [3, -4], 1.25, [10, -5]) and
// _get_perspective_coeffs([[0, 0], [99, 0], [99, 49], [0, 49]], [[7, 3], [90, 5], [95, 40], [2, 45]]).
TEST(matrix, of_two_warps_in_a_row_looks_where_the_second_does_in_what_the_first_has_made) {
  testing::for_each_seed(20, [&](std::uint64_t seed) {
    testing::seeded_random random(seed);
    const warp_matrix first = any_matrix(random, 60, 80);
    const warp_matrix second = any_matrix(random, 60, 80);
    const warp_matrix both = followed(first, second);
    for (const auto& [x, y] : {std::pair(0.5, 0.5), std::pair(79.5, 3.0), std::pair(40.0, 59.5)}) {
      const auto [u, v, w] = seen_from(second, x, y);
      if (std::abs(w) < 1e-3) continue;
      const auto [a, b, c] = seen_from(first, u / w, v / w);
      const auto [d, e, f] = seen_from(both, x, y);
      EXPECT_NEAR(d, a * w, 1e-9 * (1 + std::abs(d)));
      EXPECT_NEAR(e, b * w, 1e-9 * (1 + std::abs(e)));
      EXPECT_NEAR(f, c * w, 1e-9 * (1 + std::abs(f)));
    }
    const std::optional<warp_matrix> back = inverse(first);
    ASSERT_TRUE(back);
    const warp_matrix nothing = followed(first, *back);
    for (std::size_t i = 0; i < nothing.size(); ++i) EXPECT_NEAR(nothing[i], identity_matrix[i], 1e-6);
  });
  EXPECT_EQ(inverse({1, 2, 3, 2, 4, 6, 0, 0, 1}), std::nullopt);
  EXPECT_EQ(inverse({}), std::nullopt);
}

TEST(matrix, is_torchvisions) {
  constexpr double tan_10 = 0.17632698070846498;
  constexpr double tan_5 = 0.08748866352592401;
  const warp_matrix affine =
      affine_matrix({.degrees = 20, .translate = {3, -4}, .scale = 1.25, .tan_x = tan_10, .tan_y = -tan_5});
  const double wanted[] = {0.6919111745752432,  0.4019496751477444, -0.467934823134752,
                           -0.3393860758747206, 0.7278157884379205, 3.929421381375844};
  for (std::size_t i = 0; i < 6; ++i) EXPECT_NEAR(affine[i], wanted[i], 1e-12) << i;
  const warp_matrix seen =
      perspective_matrix({{{7, 3}, {90, 5}, {95, 40}, {2, 45}}}, {{{0, 0}, {99, 0}, {99, 49}, {0, 49}}});
  const double coefficients[] = {1.0004286766052246,     0.11909865587949753,  -7.360297203063965,
                                 -0.031609877943992615,  1.3118098974227905,   -3.714160680770874,
                                 -0.0019273393554612994, 0.0029219710268080235};
  for (std::size_t i = 0; i < 8; ++i)
    EXPECT_NEAR(seen[i], coefficients[i], 1e-6 * std::max(1.0, std::abs(coefficients[i]))) << i;
}

// float(torchvision's magnitudes[bin]) of 31 bins, of a picture of 200 x 224 (height x width).
TEST(policies, have_torchvisions_magnitudes) {
  using op = policy_operation;
  const auto of = [](op what, const policy_space& space, int bin) {
    return policy_magnitude(what, space, bin, 31, 200, 224);
  };
  EXPECT_NEAR(of(op::shear_x, usual_space, 9), 0.09, 1e-7);
  EXPECT_NEAR(of(op::translate_x, usual_space, 9), 150.0 / 331 * 224 * 9 / 30, 1e-5);
  EXPECT_NEAR(of(op::translate_y, usual_space, 30), 150.0 / 331 * 200, 1e-5);
  EXPECT_NEAR(of(op::translate_y, wide_space, 30), 32, 1e-6);
  EXPECT_NEAR(of(op::rotate, usual_space, 9), 9, 1e-6);
  EXPECT_NEAR(of(op::rotate, wide_space, 10), 45, 1e-5);
  EXPECT_NEAR(of(op::contrast, wide_space, 30), 0.99, 1e-7);
  std::vector<int> bits;
  std::vector<int> bits_wide;
  std::vector<int> thresholds;
  for (int bin = 0; bin < 31; ++bin) {
    bits.push_back(static_cast<int>(of(op::posterize, usual_space, bin)));
    bits_wide.push_back(static_cast<int>(of(op::posterize, wide_space, bin)));
    thresholds.push_back(static_cast<int>(of(op::solarize, usual_space, bin)));
  }
  EXPECT_THAT(bits,
              ElementsAre(8, 8, 8, 8, 7, 7, 7, 7, 7, 7, 7, 7, 6, 6, 6, 6, 6, 6, 6, 5, 5, 5, 5, 5, 5, 5, 5, 4, 4, 4, 4));
  EXPECT_THAT(bits_wide,
              ElementsAre(8, 8, 8, 7, 7, 7, 7, 7, 6, 6, 6, 6, 6, 5, 5, 5, 5, 5, 4, 4, 4, 4, 4, 3, 3, 3, 3, 3, 2, 2, 2));
  EXPECT_THAT(thresholds, ElementsAre(255, 247, 238, 230, 221, 213, 204, 196, 187, 179, 170, 162, 153, 145, 136, 128,
                                      120, 111, 103, 94, 85, 77, 68, 60, 52, 43, 34, 26, 17, 9, 0));
}

/// What a chain draws, as text without its numbers' digits: how often each.
std::map<std::string, int> drawn_kinds(const transform& what, int draws) {
  const pipeline chain({tr::center_crop{200, 224}, what});
  std::map<std::string, int> counts;
  recipe drawn;
  for (int i = 0; i < draws; ++i) {
    chain.draw_colour({.seed = 5, .epoch = 1, .draw = static_cast<std::uint64_t>(i)}, drawn);
    for (const colour_pass& pass : drawn.drawn()) ++counts[text_of(pass)];
    if (drawn.count == 0) ++counts["nothing"];
  }
  return counts;
}

TEST(policies, rand_augment_draws_each_operation_and_sign_as_often) {
  constexpr int rows = 28'000;
  const std::map<std::string, int> counts = drawn_kinds(tr::rand_augment{.ops = 1}, rows);
  // Nine operations with two signs, four without, and nothing: 14 alike.
  EXPECT_EQ(counts.size(), 23U);
  double chi_square = 0;
  for (const auto& [text, count] : counts) {
    const bool has_sign = text != "nothing" && !text.starts_with("posterize") && !text.starts_with("solarize") &&
                          text != "autocontrast" && text != "equalize";
    const double expected = rows / 14.0 / (has_sign ? 2 : 1);
    chi_square += (count - expected) * (count - expected) / expected;
  }
  EXPECT_LT(chi_square, 55) << "22 degrees of freedom: 1 in 10,000 is above 54";
  EXPECT_EQ(counts.count("brightness(1.2699999809265137)"), 1U);
  EXPECT_EQ(counts.count("solarize(179)"), 1U);
}

TEST(policies, of_several_operations_draws_each_by_itself) {
  const pipeline chain({tr::center_crop{64, 64}, tr::rand_augment{.ops = 3}});
  const pipeline fewer({tr::center_crop{64, 64}, tr::rand_augment{.ops = 2}});
  recipe three;
  recipe two;
  int most = 0;
  for (std::uint64_t i = 0; i < 200; ++i) {
    chain.draw_colour({.seed = 1, .draw = i}, three);
    fewer.draw_colour({.seed = 1, .draw = i}, two);
    most = std::max(most, static_cast<int>(three.count));
    ASSERT_LE(two.count, three.count);
    for (std::size_t k = 0; k < two.count; ++k) ASSERT_EQ(text_of(two.passes[k]), text_of(three.passes[k]));
  }
  EXPECT_EQ(most, 3);
}

TEST(policies, trivial_augment_reaches_every_operation_bin_and_sign) {
  const std::map<std::string, int> counts = drawn_kinds(tr::trivial_augment{}, 60'000);
  // Of five warps and four factors 30 magnitudes with two signs, and 0, which has one text or (warps by -0) two; thresholds are 31.
  int solarized = 0;
  int warps = 0;
  int factors = 0;
  for (const auto& [text, count] : counts) {
    solarized += text.starts_with("solarize") ? 1 : 0;
    warps += text.starts_with("trivial_augment from") ? 1 : 0;
    factors += text.starts_with("brightness") ? 1 : 0;
  }
  EXPECT_EQ(solarized, 31);
  EXPECT_EQ(factors, 61);
  EXPECT_GE(warps, 4 * 60);
}

TEST(policies, auto_augment_draws_pairs_with_their_probabilities) {
  for (const learned_policy policy : {learned_policy::imagenet, learned_policy::cifar10, learned_policy::svhn}) {
    double equalized = 0;
    for (const learned_pair& pair : pairs_of(policy)) {
      for (const learned_operation& each : pair) {
        if (each.what == policy_operation::equalize) equalized += each.probability / static_cast<double>(learned_pairs);
      }
    }
    constexpr int rows = 20'000;
    const int counted = drawn_kinds(tr::auto_augment{policy}, rows)["equalize"];
    EXPECT_NEAR(counted, equalized * rows, 5 * std::sqrt(equalized * rows)) << static_cast<int>(policy);
  }
}

TEST(policies, and_warps_refuse_numbers_out_of_range) {
  const auto refused = [](const transform& what) {
    try {
      check_numbers(what);
    } catch (const error& failure) {
      return std::string(failure.what());
    }
    return std::string("taken");
  };
  EXPECT_THAT(refused(tr::rotate{.degrees = {-1e9, 0}}), HasSubstr("rotate: degrees from -1e+09 to 0"));
  EXPECT_THAT(refused(tr::rotate{.degrees = {NAN, NAN}}), HasSubstr("rotate: degrees"));
  EXPECT_THAT(refused(tr::rotate{.how = filter::bicubic}), HasSubstr("nearest or bilinear"));
  EXPECT_THAT(refused(tr::rotate{.fill = {0, 256, 0}}), HasSubstr("fill 256: must be 0..255"));
  EXPECT_THAT(refused(tr::rotate{.center = {INFINITY, 0}}), HasSubstr("center"));
  EXPECT_THAT(refused(tr::affine{.scale = {0, 1}}), HasSubstr("affine: scale from 0 to 1"));
  EXPECT_THAT(refused(tr::affine{.translate = {0, -0.1}}), HasSubstr("affine: translate -0.1"));
  EXPECT_THAT(refused(tr::affine{.shear_y = {0, 90}}), HasSubstr("shear_y"));
  EXPECT_THAT(refused(tr::shear{.x = {0, 81}}), HasSubstr("shear: x"));
  EXPECT_THAT(refused(tr::translate{.x = {0, 1.5}}), HasSubstr("translate: x"));
  EXPECT_THAT(refused(tr::perspective{.distortion = 1.1}), HasSubstr("perspective: distortion 1.1"));
  EXPECT_THAT(refused(tr::rand_augment{.ops = 7}), HasSubstr("rand_augment: ops 7: must be 1..6"));
  EXPECT_THAT(refused(tr::rand_augment{.magnitude = 31}), HasSubstr("magnitude 31: of 31 bins it must be 0..30"));
  EXPECT_THAT(refused(tr::trivial_augment{.bins = 1}), HasSubstr("bins 1"));
}

}  // namespace
}  // namespace leat::pixels
