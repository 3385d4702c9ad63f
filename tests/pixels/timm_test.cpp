// timm's text, levels and laws, against numbers that timm 1.0's own functions have given.
#include "stages/pixels/timm.hpp"

#include "stages/pixels/recipe.hpp"

#include <leat/error.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace leat::pixels {
namespace {

namespace tr = transforms;
using ::testing::HasSubstr;
using op = policy_operation;

// LEVEL_TO_ARG, with a share of 0.45 for translations, of levels 0, 3, 7.3, 9, 10 and 12.5.
TEST(timm, has_timms_levels) {
  const std::vector<double> levels = {0, 3, 7.3, 9, 10, 12.5};
  struct wanted {
    op what;
    bool increasing;
    std::vector<double> arguments;
  };
  const std::vector<wanted> all = {
      {op::rotate, true, {0, 9, 21.9, 27, 30, 37.5}},
      {op::posterize, false, {0, 1, 2, 3, 4, 5}},
      {op::posterize, true, {4, 3, 2, 1, 0, 0}},  // timm's -1 of 12.5 leaves no bit either
      {op::solarize, false, {0, 76, 186, 230, 256, 256}},
      {op::solarize, true, {256, 180, 70, 26, 0, 0}},
      {op::solarize_add, true, {0, 33, 80, 99, 110, 128}},
      {op::color, false, {0.1, 0.64, 1.414, 1.72, 1.9, 2.35}},
      {op::contrast, true, {1, 1.27, 1.657, 1.81, 1.9, 2.125}},
      {op::shear_x, true, {0, 0.09, 0.219, 0.27, 0.3, 0.375}},
      {op::translate_y, true, {0, 0.135, 0.3285, 0.405, 0.45, 0.5625}},
  };
  for (const wanted& each : all) {
    for (std::size_t i = 0; i < levels.size(); ++i) {
      double got = timm_argument(each.what, levels[i], each.increasing, false);
      if (each.what == op::translate_y) got *= timm_translate_share;
      EXPECT_NEAR(got, each.arguments[i], 1e-12) << static_cast<int>(each.what) << " at " << levels[i];
    }
  }
  EXPECT_NEAR(timm_argument(op::brightness, 9, true, true), 0.19, 1e-12);
  EXPECT_NEAR(timm_argument(op::brightness, 12.5, true, true), 0.1, 1e-12) << "not below 0.1";
  EXPECT_NEAR(timm_argument(op::shear_y, 10, false, true), -0.3, 1e-12);
}

tr::timm_rand_augment only(const std::vector<transform>& steps) { return *steps.at(0).get_if<tr::timm_rand_augment>(); }

TEST(timm, text_is_read_among_other_steps) {
  const auto steps = parse_transforms("rand-m9-mstd0.5-inc1, invert rand rand-n3-p0.25-mmax20-mstd101-tweights");
  ASSERT_EQ(steps.size(), 4U);
  const auto first = only(steps);
  EXPECT_EQ(first.magnitude, 9);
  EXPECT_EQ(first.magnitude_std, 0.5);
  EXPECT_TRUE(first.increasing);
  EXPECT_EQ(first.ops, 2);
  EXPECT_EQ(first.probability, 0.5);
  EXPECT_FALSE(first.weighted);
  EXPECT_EQ(only({steps[2]}).magnitude, 10);
  const auto last = only({steps[3]});
  EXPECT_EQ(last.ops, 3);
  EXPECT_EQ(last.probability, 0.25);
  EXPECT_EQ(last.magnitude_max, 20);
  EXPECT_EQ(last.magnitude_std, 101);
  EXPECT_TRUE(last.weighted);
  // As it is written, with the fill that timm's text has no key for.
  EXPECT_EQ(to_string(steps[0]), "timm_rand_augment(9, 2, 0.5, 0.5, 10, 1)");
  const auto again = parse_transforms("timm_rand_augment(9, 2, 0.5, 0.5, 10, 1, 0, bilinear, 128)");
  EXPECT_EQ(only(again).fill, (std::array<int, 3>{128, 128, 128}));
  EXPECT_EQ(to_string(parse_transforms(to_string(steps[3]))[0]), to_string(steps[3]));
  EXPECT_NO_THROW(static_cast<void>(parse_transforms("random_apply(0.5, rand-m9-inc1)")));
}

TEST(timm, text_with_a_key_that_is_not_there_is_refused_by_name) {
  const auto refused = [](std::string_view text) -> std::string {
    try {
      static_cast<void>(parse_transforms(text));
    } catch (const error& failure) {
      EXPECT_EQ(failure.code(), errc::usage);
      return failure.what();
    }
    return "";
  };
  EXPECT_THAT(refused("invert rand-m9-x3"),
              HasSubstr("at character 8 ('rand-m9-x3'): rand-m9-x3: timm's text has 'x3', which is no key"));
  // timm itself passes over these without a word.
  EXPECT_THAT(refused("rand-m9-inc"), HasSubstr("'inc': a whole number must stand behind the key"));
  EXPECT_THAT(refused("rand-m9-foo"), HasSubstr("'foo', which is no key"));
  EXPECT_THAT(refused("rand-m9--n2"), HasSubstr("'', which is no key"));
  EXPECT_THAT(refused("rand-twide"), HasSubstr("'twide', which is no key"));
  EXPECT_THAT(refused("rand-t3a"), HasSubstr("'t3a', which is no key"));
  EXPECT_THAT(refused("rand-m9-m5"), HasSubstr("'m' stands twice"));
  EXPECT_THAT(refused("rand-m9.5"), HasSubstr("'m9.5': a whole number"));
  EXPECT_THAT(refused("rand-mstd1.2.3"), HasSubstr("'mstd1.2.3': a number"));
  EXPECT_THAT(refused("rand-m101"), HasSubstr("magnitude 101: must be 0..100"));
  EXPECT_THAT(refused("rand-n7"), HasSubstr("ops 7: must be 1..6"));
  EXPECT_THAT(refused("rand-n0"), HasSubstr("ops 0: must be 1..6"));
  EXPECT_THAT(refused("rand-p1.5"), HasSubstr("probability 1.5: must be 0..1"));
  EXPECT_THAT(refused("rand-mmax0"), HasSubstr("magnitude_max 0: must be 1..100"));
  EXPECT_THAT(refused("original-mstd0.5"), HasSubstr("'original' is not there"));
  EXPECT_THAT(refused("v0"), HasSubstr("'v0' is not there"));
  EXPECT_THAT(refused("timm_rand_augment(9, 2, nan)"), HasSubstr("a number is missing"));
  EXPECT_THAT(refused("timm_rand_augment(9, 2, 0.5, 1, 10, 2)"), HasSubstr("increasing: must be 0 or 1"));
  EXPECT_THROW(check_numbers(tr::timm_rand_augment{.magnitude_std = std::nan("")}), error);
  EXPECT_THROW(check_numbers(tr::timm_rand_augment{.how = filter::bicubic}), error);
}

/// The kind of what was drawn: a warp by where its matrix differs from the identity.
std::string kind_of(const colour_pass& pass) {
  if (pass.what != pass_kind::warp) return text_of(pass).substr(0, text_of(pass).find('('));
  const warp_matrix& m = pass.from;
  if (m[1] != 0 && m[3] != 0) return "rotate";
  return m[1] != 0 ? "shear_x" : m[3] != 0 ? "shear_y" : m[2] != 0 ? "translate_x" : "translate_y";
}

TEST(timm, draws_each_operation_with_its_probability_and_half_of_the_signs) {
  const pipeline chain(
      {tr::center_crop{100, 200}, tr::timm_rand_augment{.magnitude = 7, .ops = 1, .increasing = true}});
  std::map<std::string, int> counts;
  int negated = 0;
  int signed_ones = 0;
  recipe drawn;
  constexpr int rows = 60'000;
  for (std::uint64_t i = 0; i < rows; ++i) {
    chain.draw_colour({.seed = 3, .epoch = 2, .draw = i}, drawn);
    ASSERT_LE(drawn.count, 1U);
    if (drawn.count == 0) {
      ++counts["nothing"];
      continue;
    }
    const std::string kind = kind_of(drawn.passes[0]);
    ++counts[kind];
    if (kind == "translate_x") {
      EXPECT_NEAR(std::abs(drawn.passes[0].from[2]), 0.7 * 0.45 * 200, 1e-9);
      ++signed_ones;
      negated += drawn.passes[0].from[2] < 0 ? 1 : 0;
    }
  }
  EXPECT_EQ(counts.size(), 16U);
  double chi_square = 0;
  for (const auto& [text, count] : counts) {
    const double expected = text == "nothing" ? rows / 2.0 : rows / 30.0;
    chi_square += (count - expected) * (count - expected) / expected;
  }
  EXPECT_LT(chi_square, 45) << "15 degrees of freedom: 1 in 10,000 is above 44.3";
  EXPECT_NEAR(negated, signed_ones / 2.0, 4 * std::sqrt(signed_ones / 4.0));
}

TEST(timm, magnitudes_are_normal_uniform_or_fixed_and_stay_in_their_bounds) {
  const auto moments = [](int magnitude, double deviation, int most) {
    double sum = 0, squares = 0, least = 1e9, largest = -1e9;
    constexpr int count = 40'000;
    for (std::uint64_t i = 0; i < count; ++i) {
      random_draws draws(1, 0, i, "magnitude");
      const double level = timm_magnitude(magnitude, deviation, most, draws);
      sum += level;
      squares += level * level;
      least = std::min(least, level);
      largest = std::max(largest, level);
    }
    const double mean = sum / count;
    return std::array<double, 4>{mean, std::sqrt(squares / count - mean * mean), least, largest};
  };
  const auto [mean, deviation, least, most] = moments(50, 2, 100);
  EXPECT_NEAR(mean, 50, 0.05);
  EXPECT_NEAR(deviation, 2, 0.05);
  EXPECT_GT(most, 56);
  const auto uniform = moments(9, 101, 10);
  EXPECT_NEAR(uniform[0], 4.5, 0.06);
  EXPECT_NEAR(uniform[1], 9 / std::sqrt(12.0), 0.05);
  const auto clamped = moments(9, 5, 10);
  EXPECT_EQ(clamped[2], 0);
  EXPECT_EQ(clamped[3], 10);
  const auto fixed = moments(15, 0, 10);
  EXPECT_EQ(fixed[2], 10);
  EXPECT_EQ(fixed[3], 10);
}

TEST(timm, weighted_operations_come_as_often_as_their_weights_say_and_none_twice) {
  const double weights[] = {0.25, 0.05, 0.05, 3, 0.05, 0.05, 0.05, 0.25, 0.05, 0.05, 0.25, 2, 2, 1, 1};
  double all = 0;
  for (const double weight : weights) all += weight;
  std::map<op, int> first;
  constexpr int rows = 40'000;
  for (std::uint64_t i = 0; i < rows; ++i) {
    random_draws draws(4, 0, i, "choice");
    timm_choice choice(true);
    std::map<op, int> seen;
    const op what = choice.next(draws);
    ++first[what];
    ++seen[what];
    for (int k = 1; k < 6; ++k) ASSERT_EQ(++seen[choice.next(draws)], 1);
  }
  EXPECT_NEAR(first[op::rotate], rows * 3 / all, 400);
  EXPECT_NEAR(first[op::shear_x], rows * 2 / all, 400);
  EXPECT_NEAR(first[op::invert], rows * 0.05 / all, 60);
}

// For ever and on every machine: computed once, by this code, and written down.
TEST(timm, draws_what_it_drew_when_this_was_written) {
  const pipeline chain({tr::center_crop{224, 224}, parse_transforms("rand-m9-mstd0.5-inc1-n6-p1")[0]});
  recipe drawn;
  chain.draw_colour({.seed = 17, .epoch = 1, .draw = 3}, drawn);
  std::string text;
  for (const colour_pass& pass : drawn.drawn()) text += text_of(pass) + "\n";
  EXPECT_EQ(text,
            "timm_rand_augment from (1 0 0; 0.271299 1 0; 0 0 1)\n"
            "autocontrast\n"
            "timm_rand_augment from (1 0 0; 0 1 98.3007; 0 0 1)\n"
            "timm_rand_augment from (1 0 -93.5945; 0 1 0; 0 0 1)\n"
            "solarize_add(94)\n"
            "timm_rand_augment from (1 0 0; 0 1 -92.3398; 0 0 1)\n");
}

}  // namespace
}  // namespace leat::pixels
