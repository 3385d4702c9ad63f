#include "stages/pixels/recipe.hpp"

#include "tests/support/chi_square.hpp"
#include "tests/support/seeded_random.hpp"
#include "tests/support/seeds.hpp"

#include <leat/error.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <tuple>
#include <vector>

namespace leat {
namespace {

using pixels::colour_pass;
using pixels::pass_kind;
using pixels::pipeline;
using pixels::recipe;
using ::testing::HasSubstr;
namespace tr = transforms;

pipeline chain_of(std::vector<transform> steps) {
  steps.insert(steps.begin(), tr::center_crop{224, 224});
  return pipeline(std::move(steps));
}

recipe drawn(const pipeline& chain, std::uint64_t sample, std::uint32_t epoch = 0) {
  recipe out;
  chain.draw_colour({.seed = 5, .epoch = epoch, .draw = sample}, out);
  return out;
}

std::string text_of(const recipe& passes) {
  std::string text;
  for (const colour_pass& pass : passes.drawn()) text += pixels::text_of(pass) + " ";
  return text;
}

std::string refusal(const std::vector<transform>& steps) {
  try {
    const pipeline made(steps);
  } catch (const error& failure) {
    EXPECT_EQ(failure.code(), errc::usage);
    return failure.what();
  }
  return "";
}

TEST(recipe, refuses_what_makes_no_sense_and_says_what_to_do) {
  const auto refused = [](transform what) { return refusal({tr::center_crop{}, std::move(what)}); };
  EXPECT_THAT(refused(tr::gaussian_blur{.kernel = 4}), HasSubstr("gaussian_blur: kernel 4: must be an odd number"));
  EXPECT_THAT(refused(tr::gaussian_blur{.sigma = {0, 1}}), HasSubstr("sigma from 0: must be above 0"));
  EXPECT_THAT(refused(tr::gaussian_blur{.sigma = {-1, 1}}), HasSubstr("must be above 0"));
  EXPECT_THAT(refused(tr::hue{{-0.6, 0}}),
              HasSubstr("hue: shift from -0.6 to 0: must be ascending, and lie in -0.5..0.5"));
  EXPECT_THAT(refused(tr::color_jitter{.hue = 0.6}), HasSubstr("color_jitter: hue 0.6: must be 0..0.5"));
  EXPECT_THAT(refused(tr::posterize{9}), HasSubstr("posterize: bits 9: a value has 8; keep 0..8"));
  EXPECT_THAT(refused(tr::solarize{257}), HasSubstr("threshold 257"));
  EXPECT_THAT(refused(tr::random_apply{2, {tr::invert{}}}), HasSubstr("random_apply: probability 2: must be 0..1"));
  EXPECT_THAT(refused(tr::random_erasing{.probability = 2}), HasSubstr("probability 2"));
  EXPECT_THAT(refused(tr::random_erasing{.scale = {0, 1}}), HasSubstr("scale from 0"));
  EXPECT_THAT(refused(tr::random_apply{0.5, {}}), HasSubstr("random_apply: is empty; give it a step"));
  EXPECT_THAT(refused(tr::in_random_order{}), HasSubstr("is empty"));
  EXPECT_THAT(refused(tr::one_of{{tr::invert{}}, {1, 2}}), HasSubstr("2 weights for 1 steps"));
  EXPECT_THAT(refused(tr::one_of{{tr::invert{}}, {0}}), HasSubstr("all weights are 0"));
  EXPECT_THAT(refused(tr::brightness{{2, 1}}), HasSubstr("brightness: factor from 2 to 1: must be ascending"));
  EXPECT_THAT(refused(tr::brightness{{-1, 1}}), HasSubstr("factor from -1"));
  EXPECT_THAT(refused(tr::brightness{{0, std::nan("")}}), HasSubstr("factor from 0 to nan"));
  EXPECT_THAT(refused(tr::lookup{}), HasSubstr("lookup: give it a name"));
  EXPECT_THAT(refused(tr::edit{"mine", {}}), HasSubstr("edit: 'mine' has no function"));
  EXPECT_THAT(refused(tr::random_apply{0.5, {tr::random_flip{}}}), HasSubstr("random_flip: stands in a group"));
  EXPECT_THAT(refused(tr::random_apply{0.5, {tr::random_erasing{}}}), HasSubstr("random_erasing: stands in a group"));
  transform deep = tr::invert{};
  for (int i = 0; i < 9; ++i) deep = tr::random_apply{0.5, {deep}};
  EXPECT_THAT(refused(deep), HasSubstr("groups in groups"));
  EXPECT_THAT(refusal({tr::center_crop{}, tr::invert{}, tr::random_flip{}}),
              HasSubstr("random_flip: stands behind invert; a picture is cropped, resized and flipped first"));
  EXPECT_THAT(refusal({tr::brightness{}, tr::random_resized_crop{}}),
              HasSubstr("write random_resized_crop before brightness"));
  EXPECT_THAT(refusal({tr::center_crop{}, tr::random_erasing{}, tr::invert{}}),
              HasSubstr("random_erasing, which is the last step"));
  EXPECT_THAT(refusal({tr::center_crop{11, 300}, tr::gaussian_blur{23}}), HasSubstr("make it smaller than 22"));
  EXPECT_EQ(refusal({tr::center_crop{12, 300}, tr::gaussian_blur{23}}), "");
  const std::vector<transform> many(9, tr::color_jitter{0.4, 0.4, 0.4, 0.1});
  EXPECT_THAT(refused(tr::random_apply{0.5, many}), HasSubstr("36 steps of colour"));
  EXPECT_EQ(refused(tr::random_apply{0.5, {many.begin(), many.begin() + 8}}), "");
}

TEST(recipe, draws_by_the_path_of_names_and_by_nothing_else) {
  const transform jitter = tr::color_jitter{0.4, 0.4, 0.4, 0.1};
  const pipeline one = chain_of({tr::random_apply{0.8, {jitter}}});
  const pipeline behind =
      chain_of({tr::random_apply{0.8, {jitter}}, tr::random_apply{0.2, {tr::grayscale{}}}, tr::hue{{-0.1, 0.1}}});
  const pipeline two = chain_of({tr::random_apply{1, {jitter, jitter}}, tr::random_apply{1, {jitter}}});
  for (std::uint64_t sample = 0; sample < 50; ++sample) {
    const recipe a = drawn(one, sample);
    EXPECT_EQ(text_of(a), text_of(drawn(one, sample)));
    if (a.count != 0) EXPECT_NE(text_of(a), text_of(drawn(one, sample, 1))) << "of another epoch";
    // A step behind another changes nothing of the other's draws.
    EXPECT_TRUE(text_of(drawn(behind, sample)).starts_with(text_of(a)));
    // Every draw is made whether or not the step applies: here they all do.
    const recipe all = drawn(two, sample);
    ASSERT_EQ(all.count, 12U);
    if (a.count != 0) EXPECT_TRUE(text_of(all).starts_with(text_of(a)));
    EXPECT_NE(all.passes[0].value, all.passes[4].value);
    EXPECT_NE(all.passes[0].value, all.passes[8].value);
  }
  EXPECT_NE(text_of(drawn(two, 1)), text_of(drawn(two.as_view(2), 1)));
}

TEST(recipe, draws_by_torchvisions_laws) {
  constexpr std::uint64_t samples = 4000;
  const pipeline chain = chain_of({tr::color_jitter{0.4, 2, 0.3, 0.1}, tr::gaussian_blur{23, {0.1, 2}},
                                   tr::one_of{{tr::invert{}, tr::solarize{}, tr::equalize{}}, {1, 0, 3}},
                                   tr::in_random_order{{tr::invert{}, tr::solarize{}, tr::equalize{}}},
                                   tr::channel_permutation{}, tr::random_apply{0.3, {tr::grayscale{}}}});
  std::map<std::string, std::uint32_t> jitters, orders, chosen;
  std::vector<std::uint32_t> permutations(6);
  std::map<pass_kind, std::vector<std::uint32_t>> tenths;
  std::uint32_t grey = 0;
  for (std::uint64_t sample = 0; sample < samples; ++sample) {
    const recipe got = drawn(chain, sample);
    ASSERT_GE(got.count, 10U);
    std::string jitter, order;
    for (std::size_t i = 0; i < 5; ++i) {
      const auto [from, to] = got.passes[i].what == pass_kind::brightness   ? std::pair(0.6, 1.4)
                              : got.passes[i].what == pass_kind::contrast   ? std::pair(0.0, 3.0)
                              : got.passes[i].what == pass_kind::saturation ? std::pair(0.7, 1.3)
                              : got.passes[i].what == pass_kind::hue        ? std::pair(-0.1, 0.1)
                                                                            : std::pair(0.1, 2.0);
      const double part = (got.passes[i].value - from) / (to - from);
      ASSERT_GE(part, 0);
      ASSERT_LT(part, 1);
      std::vector<std::uint32_t>& counts = tenths[got.passes[i].what];
      counts.resize(10);
      ++counts[static_cast<std::size_t>(part * 10)];
      if (i < 4) jitter += std::to_string(static_cast<int>(got.passes[i].what));
    }
    ++jitters[jitter];
    ++chosen[pixels::text_of(got.passes[5])];
    for (std::size_t i = 6; i < 9; ++i) order += pixels::text_of(got.passes[i]);
    ++orders[order];
    ++permutations[static_cast<std::size_t>(got.passes[9].number)];
    grey += got.count == 11 ? 1 : 0;
  }
  const auto counts_of = [](const std::map<std::string, std::uint32_t>& of) {
    std::vector<std::uint32_t> counts;
    for (const auto& [name, count] : of) counts.push_back(count);
    return counts;
  };
  EXPECT_EQ(jitters.size(), 24U);
  EXPECT_LT(testing::deviation(counts_of(jitters)), testing::deviation_max);
  EXPECT_EQ(orders.size(), 6U);
  EXPECT_LT(testing::deviation(counts_of(orders)), testing::deviation_max);
  EXPECT_LT(testing::deviation(permutations), testing::deviation_max);
  ASSERT_EQ(chosen.size(), 2U);
  const std::vector<double> weights = {3, 1};  // equalize, invert
  EXPECT_LT(testing::deviation_from(counts_of(chosen), weights), testing::deviation_max);
  EXPECT_EQ(tenths.size(), 5U);
  for (const auto& [kind, counts] : tenths) EXPECT_LT(testing::deviation(counts), testing::deviation_max);
  const std::vector<std::uint32_t> applied = {grey, static_cast<std::uint32_t>(samples) - grey};
  const std::vector<double> shares = {0.3, 0.7};
  EXPECT_LT(testing::deviation_from(applied, shares), testing::deviation_max);
}

TEST(recipe, applies_never_and_always_where_the_probability_says_so) {
  const pipeline chain = chain_of({tr::random_apply{0, {tr::invert{}}}, tr::random_apply{1, {tr::grayscale{}}},
                                   tr::random_erasing{.probability = 0}});
  for (std::uint64_t sample = 0; sample < 200; ++sample) {
    const recipe got = drawn(chain, sample);
    ASSERT_EQ(text_of(got), "grayscale ");
    ASSERT_FALSE(got.erased);
  }
}

TEST(recipe, erases_boxes_as_torchvision_does) {
  const pipeline chain = chain_of({tr::random_erasing{.probability = 1}});
  for (std::uint64_t sample = 0; sample < 500; ++sample) {
    const recipe got = drawn(chain, sample);
    ASSERT_TRUE(got.erased);
    const pixels::rectangle& box = got.erased->box;
    EXPECT_GE(box.x, 0);
    EXPECT_GE(box.y, 0);
    EXPECT_LE(box.x + box.width, 224);
    EXPECT_LE(box.y + box.height, 224);
    const double area = static_cast<double>(box.width) * box.height / (224.0 * 224.0);
    EXPECT_GT(area, 0.018);
    EXPECT_LT(area, 0.34);
    const double ratio = static_cast<double>(box.height) / box.width;
    EXPECT_GT(ratio, 0.28);
    EXPECT_LT(ratio, 3.5);
  }
}

// No box that is drawn here is too large for the picture: none is drawn again.
TEST(recipe, erases_by_torchvisions_laws_and_chooses_one_of_equals) {
  constexpr std::uint64_t samples = 4000;
  const tr::random_erasing erasing{.probability = 0.5, .scale = {0.05, 0.1}, .ratio = {0.5, 2}};
  const pipeline chain = chain_of({tr::one_of{{tr::invert{}, tr::solarize{}, tr::equalize{}}}, erasing});
  std::vector<std::uint32_t> erased(2), areas(5), ratios(5), xs(10), ys(10);
  std::map<std::string, std::uint32_t> chosen;
  const auto count = [](std::vector<std::uint32_t>& in, double part) {
    const auto cells = static_cast<double>(in.size());
    ++in[static_cast<std::size_t>(std::clamp(part * cells, 0.0, cells - 1))];
  };
  for (std::uint64_t sample = 0; sample < samples; ++sample) {
    const recipe got = drawn(chain, sample);
    ++chosen[pixels::text_of(got.passes[0])];
    ++erased[got.erased ? 1 : 0];
    if (!got.erased) continue;
    const pixels::rectangle& box = got.erased->box;
    const double area = static_cast<double>(box.width) * box.height / (224.0 * 224.0);
    count(areas, (area - 0.05) / 0.05);
    count(ratios, (std::log2(static_cast<double>(box.height) / box.width) + 1) / 2);
    count(xs, static_cast<double>(box.x) / (224 - box.width + 1));
    count(ys, static_cast<double>(box.y) / (224 - box.height + 1));
  }
  for (const auto& counts : {erased, areas, ratios, xs, ys}) {
    EXPECT_LT(testing::deviation(counts), testing::deviation_max);
  }
  ASSERT_EQ(chosen.size(), 3U);
  std::vector<std::uint32_t> equals;
  for (const auto& [name, times] : chosen) equals.push_back(times);
  EXPECT_LT(testing::deviation(equals), testing::deviation_max);
}

TEST(recipe, turns_decimation_on_for_a_random_geometry_alone) {
  EXPECT_FALSE(chain_of({tr::color_jitter{0.4}}).geometry_is_random());
  EXPECT_TRUE(chain_of({tr::color_jitter{0.4}}).random());
  EXPECT_FALSE(chain_of({tr::brightness{{1.3, 1.3}}}).random());
  EXPECT_TRUE(pipeline({tr::random_resized_crop{}}).geometry_is_random());
}

TEST(recipe, turns_decimation_on_by_parameters_and_not_by_the_kind_of_a_step) {
  const auto is_random = [](std::vector<transform> steps) { return pipeline(std::move(steps)).geometry_is_random(); };
  for (const double probability : {0.0, 1.0}) {
    EXPECT_FALSE(is_random({tr::resize{.shorter_side = 72}, tr::center_crop{64, 64}, tr::random_flip{probability}}));
    EXPECT_TRUE(is_random({tr::random_crop{64, 64}, tr::random_flip{probability}}));
  }
  EXPECT_TRUE(is_random({tr::resize{.shorter_side = 72}, tr::center_crop{64, 64}, tr::random_flip{0.5}}));
  // A crop of the size that is there has one place; with padding it has many.
  EXPECT_FALSE(is_random({tr::resize{.height = 64, .width = 48}, tr::random_crop{64, 48}}));
  EXPECT_TRUE(is_random({tr::resize{.height = 64, .width = 48}, tr::random_crop{64, 48, 4}}));
  EXPECT_TRUE(is_random({tr::resize{.height = 64, .width = 48}, tr::random_crop{64, 40}}));
  EXPECT_TRUE(is_random({tr::resize{.shorter_side = 64}, tr::random_crop{64, 64}}));
}

TEST(recipe, numbers_views_alike_whatever_a_probability_is) {
  for (const double probability : {0.0, 0.5, 1.0}) {
    EXPECT_TRUE(pipeline({tr::center_crop{64, 64}, tr::random_flip{probability}}).random());
  }
}

TEST(recipe, varies_where_a_draw_can_change_a_picture) {
  const std::vector<transform> both = {tr::invert{}, tr::grayscale{}};
  const std::vector<std::vector<transform>> same = {
      {tr::random_apply{0, {tr::brightness{{0.5, 1}}, tr::channel_permutation{}}}},
      {tr::random_apply{1, {tr::brightness{{0.5, 0.5}}}}},
      {tr::random_apply{1, {tr::random_apply{0, {tr::trivial_augment{}}}, tr::invert{}}}},
      {tr::one_of{{tr::invert{}}}},
      {tr::one_of{{tr::color_jitter{0.5}, tr::hue{{0.1, 0.1}}}, {0, 2}}},
      {tr::in_random_order{{tr::invert{}}}},
      {tr::color_jitter{}},
      {tr::timm_rand_augment{.probability = 0}},
      {tr::random_erasing{.probability = 0}},
      {tr::gaussian_noise{.mean = {0.1, 0.1}, .sigma = {0, 0}}},
      {tr::salt_and_pepper{.amount = {0, 0}, .salt = {0.5, 0.5}}},
      {tr::iso_noise{.color_shift = {0.1, 0.1}, .intensity = {0, 0}}},
      {tr::coarse_dropout{.holes = {0, 0}, .height = {0.1, 0.1}, .width = {0.1, 0.1}}}};
  for (const std::vector<transform>& steps : same) {
    const pipeline chain = chain_of(steps);
    EXPECT_FALSE(chain.varies()) << to_string(steps.front());
    const recipe first = drawn(chain, 0);
    for (std::uint64_t sample = 1; sample < 100; ++sample) {
      const recipe other = drawn(chain, sample, 3);
      ASSERT_EQ(text_of(other), text_of(first)) << to_string(steps.front());
      ASSERT_EQ(other.erased.has_value(), first.erased.has_value());
    }
  }
  const std::vector<std::vector<transform>> other = {{tr::random_apply{0.5, {tr::invert{}}}},
                                                     {tr::random_apply{1, {tr::brightness{{0.5, 1}}}}},
                                                     {tr::random_apply{0, {tr::trivial_augment{}}}, tr::hue{{0, 0.1}}},
                                                     {tr::one_of{both}},
                                                     {tr::one_of{both, {1, 2}}},
                                                     {tr::one_of{{tr::color_jitter{0.5}, tr::invert{}}, {1, 0}}},
                                                     {tr::in_random_order{both}},
                                                     {tr::color_jitter{.hue = 0.1}},
                                                     {tr::channel_permutation{}},
                                                     {tr::rand_augment{}},
                                                     {tr::timm_rand_augment{.probability = 1}},
                                                     {tr::aug_mix{}},
                                                     {tr::random_erasing{.probability = 1}},
                                                     {tr::gaussian_noise{.sigma = {0.1, 0.1}}},
                                                     {tr::coarse_dropout{.height = {0.1, 0.1}, .width = {0.1, 0.1}}},
                                                     {tr::affine{.translate = {0.1, 0}}}};
  for (const std::vector<transform>& steps : other) EXPECT_TRUE(chain_of(steps).varies()) << to_string(steps.front());
  EXPECT_TRUE(pipeline({tr::random_resized_crop{}}).varies());
  EXPECT_TRUE(pipeline({tr::center_crop{64, 64}, tr::random_flip{0.5}}).varies());
  for (const double probability : {0.0, 1.0}) {
    EXPECT_FALSE(pipeline({tr::center_crop{64, 64}, tr::random_flip{probability}}).varies());
  }
}

// For ever and on every machine: computed once, by this code, and written down.
TEST(recipe, draws_what_it_drew_when_this_was_written) {
  const pipeline chain =
      chain_of(parse_transforms("random_apply(0.8, color_jitter(0.4, 0.4, 0.4, 0.1)) one_of(3 equalize, 1 "
                                "channel_permutation) random_erasing(1)"));
  const recipe got = drawn(chain, 17, 3);
  EXPECT_EQ(text_of(got),
            "contrast(0.9786837216937891) hue(-0.09714964709390746) saturation(1.043707835871512) "
            "brightness(1.2748281055834862) equalize ");
  ASSERT_TRUE(got.erased);
  EXPECT_EQ(got.erased->box, (pixels::rectangle{15, 160, 54, 39}));
}

transform random_step(testing::seeded_random& random, int depth) {
  const auto number = [&](double from, double to) {
    return from + (to - from) * static_cast<double>(random.below(1 << 20)) / (1 << 20);
  };
  const auto range = [&](double from, double to) {
    const double a = number(from, to), b = random.chance(0.3) ? a : number(from, to);
    return std::array<double, 2>{std::min(a, b), std::max(a, b)};
  };
  const auto steps = [&] {
    std::vector<transform> made;
    for (auto i = 1 + random.below(3); i > 0; --i) made.push_back(random_step(random, depth + 1));
    return made;
  };
  const auto size = [&] { return static_cast<int>(1 + random.below(300)); };
  switch (random.below(depth < 3 ? 25 : 22)) {
    case 0:
      return tr::random_resized_crop{size(), size(), range(0.1, 1), range(0.5, 2),
                                     static_cast<filter>(random.below(3))};
    case 1:
      return tr::resize{.shorter_side = size(), .how = static_cast<filter>(random.below(3))};
    case 2:
      return tr::resize{.height = size(), .width = size(), .how = static_cast<filter>(random.below(3))};
    case 3:
      return tr::center_crop{size(), size()};
    case 4:
      return tr::random_crop{size(), size(), static_cast<int>(random.below(9))};
    case 5:
      return tr::random_flip{number(0, 1)};
    case 6:
      return tr::brightness{range(0, 2)};
    case 7:
      return tr::contrast{range(0, 2)};
    case 8:
      return tr::saturation{range(0, 2)};
    case 9:
      return tr::hue{range(-0.5, 0.5)};
    case 10:
      return tr::gamma{range(0.1, 3)};
    case 11:
      return tr::color_jitter{number(0, 1), random.chance(0.5) ? 0.0 : number(0, 1), 0, number(0, 0.5)};
    case 12:
      return tr::grayscale{};
    case 13:
      return tr::invert{};
    case 14:
      return tr::posterize{static_cast<int>(random.below(9))};
    case 15:
      return tr::solarize{static_cast<int>(random.below(257))};
    case 16:
      return tr::autocontrast{};
    case 17:
      return tr::equalize{};
    case 18:
      return tr::sharpness{range(0, 3)};
    case 19:
      return tr::gaussian_blur{static_cast<int>(2 * random.below(20) + 1), range(0.1, 3)};
    case 20:
      return tr::channel_permutation{};
    case 21: {
      tr::random_erasing made{.probability = number(0, 1), .scale = range(0.01, 1), .ratio = range(0.1, 4)};
      if (random.chance(0.3)) {
        made.noise = true;
      } else {
        made.value = {number(-1, 1), number(-1, 1), number(-1, 1)};
      }
      return made;
    }
    case 22:
      return tr::random_apply{number(0, 1), steps()};
    case 23: {
      tr::one_of made{steps()};
      if (random.chance(0.5)) {
        for (std::size_t i = 0; i < made.steps.size(); ++i) made.weights.push_back(number(0, 5));
      }
      return made;
    }
    default:
      return tr::in_random_order{steps()};
  }
}

TEST(transform_text, is_read_as_it_was_written) {
  testing::seeded_random random(3);
  for (int i = 0; i < 10'000; ++i) {
    std::string text;
    std::vector<transform> chain;
    for (auto k = random.below(4); k > 0; --k) chain.push_back(random_step(random, 0));
    for (const transform& each : chain) text += to_string(each) + " ";
    const std::vector<transform> read = parse_transforms(text);
    std::string again;
    for (const transform& each : read) again += to_string(each) + " ";
    ASSERT_EQ(again, text);
    ASSERT_EQ(read.size(), chain.size());
  }
}

TEST(transform_text, has_values_where_they_belong) {
  const auto steps = parse_transforms(
      "random_apply(0.8, color_jitter(0.4, 0.3, 0.2, 0.1)), one_of(2 grayscale, 1 posterize(3))\n gaussian_blur(23, "
      "0.1..2) "
      "brightness(1.3) random_erasing(0.25, 0.1..0.2, 1, 0/1/2) resize(256, bicubic) resize(10x20) hue(-.5...5)");
  ASSERT_EQ(steps.size(), 8U);
  const auto* const apply = steps[0].get_if<tr::random_apply>();
  ASSERT_NE(apply, nullptr);
  EXPECT_EQ(apply->probability, 0.8);
  ASSERT_NE(apply->steps.at(0).get_if<tr::color_jitter>(), nullptr);
  EXPECT_EQ(apply->steps[0].get_if<tr::color_jitter>()->hue, 0.1);
  const auto* const one = steps[1].get_if<tr::one_of>();
  ASSERT_NE(one, nullptr);
  EXPECT_EQ(one->weights, (std::vector<double>{2, 1}));
  EXPECT_EQ(one->steps.at(1).get_if<tr::posterize>()->bits, 3);
  EXPECT_EQ(steps[2].get_if<tr::gaussian_blur>()->sigma, (std::array<double, 2>{0.1, 2}));
  EXPECT_EQ(steps[3].get_if<tr::brightness>()->factor, (std::array<double, 2>{1.3, 1.3}));
  EXPECT_EQ(steps[4].get_if<tr::random_erasing>()->value, (std::array<double, 3>{0, 1, 2}));
  EXPECT_EQ(steps[5].get_if<tr::resize>()->shorter_side, 256);
  EXPECT_EQ(steps[5].get_if<tr::resize>()->how, filter::bicubic);
  EXPECT_EQ(steps[6].get_if<tr::resize>()->width, 20);
  EXPECT_EQ(steps[7].get_if<tr::hue>()->shift, (std::array<double, 2>{-0.5, 0.5}));
}

TEST(transform_text, reads_each_chain_that_the_fuzzer_begins_with) {
  const char* const sources = std::getenv("LEAT_SOURCES");
  if (sources == nullptr) GTEST_SKIP() << "LEAT_SOURCES is not set: ctest sets it to the sources";
  std::ifstream chains(std::filesystem::path(sources) / "tests/fuzz/transform_chains.txt");
  int count = 0;
  for (std::string line; std::getline(chains, line); ++count)
    EXPECT_NO_THROW(static_cast<void>(parse_transforms(line))) << line;
  EXPECT_GT(count, 10);
}

// Of each step none of whose values is its default.
TEST(transform_text, has_every_member_of_every_step_under_its_name) {
  using range = std::array<double, 2>;
  const auto back = []<class Step>(const char* name, const Step& given) {
    const std::string text = to_string(given);
    EXPECT_EQ(text.substr(0, text.find('(')), name);
    const std::vector<transform> read = parse_transforms(text);
    const Step* const found = read.size() == 1 ? read[0].get_if<Step>() : nullptr;
    EXPECT_NE(found, nullptr) << text;
    return found != nullptr ? *found : Step{};
  };
  const auto crop = back("random_resized_crop", tr::random_resized_crop{20, 30, {0.2, 0.9}, {0.5, 2}, filter::bicubic});
  EXPECT_EQ(std::tuple(crop.height, crop.width, crop.scale, crop.ratio, crop.how),
            std::tuple(20, 30, range{0.2, 0.9}, range{0.5, 2}, filter::bicubic));
  const auto centre = back("center_crop", tr::center_crop{20, 30});
  EXPECT_EQ(std::tuple(centre.height, centre.width), std::tuple(20, 30));
  const auto longer = back("longest_side", tr::longest_side{77, filter::bicubic});
  EXPECT_EQ(std::tuple(longer.size, longer.how), std::tuple(77, filter::bicubic));
  const auto shorter = back("smallest_side", tr::smallest_side{78, filter::nearest});
  EXPECT_EQ(std::tuple(shorter.size, shorter.how), std::tuple(78, filter::nearest));
  EXPECT_EQ(back("random_scale", tr::random_scale{{0.25, 3}}).factor, (range{0.25, 3}));
  const std::array<int, 3> colour = {9, 8, 7};
  const auto boxed = back("letterbox", tr::letterbox{20, 30, colour, filter::nearest});
  EXPECT_EQ(std::tuple(boxed.height, boxed.width, boxed.fill, boxed.how), std::tuple(20, 30, colour, filter::nearest));
  const auto laid = back("pad_to", tr::pad_to{20, 30, colour, placement::bottom_left, padding_mode::edge});
  EXPECT_EQ(std::tuple(laid.height, laid.width, laid.fill, laid.position, laid.mode),
            std::tuple(20, 30, colour, placement::bottom_left, padding_mode::edge));
  const auto around = back("center_crop", tr::center_crop{20, 30, colour, padding_mode::edge});
  EXPECT_EQ(std::tuple(around.fill, around.mode), std::tuple(colour, padding_mode::edge));
  const auto window = back("random_crop", tr::random_crop{20, 30, 4, colour, padding_mode::reflect});
  EXPECT_EQ(std::tuple(window.fill, window.mode), std::tuple(colour, padding_mode::reflect));
  const auto mixed = back("aug_mix", tr::aug_mix{4, 2, 3, 0.5, false, filter::nearest, colour});
  EXPECT_EQ(std::tuple(mixed.severity, mixed.width, mixed.depth, mixed.alpha, mixed.all_ops, mixed.how, mixed.fill),
            std::tuple(4, 2, 3, 0.5, false, filter::nearest, colour));
  const auto timms = back("timm_augmix", tr::timm_augmix{4, 2, 1, 0.5, 2, filter::nearest, colour});
  EXPECT_EQ(std::tuple(timms.magnitude, timms.width, timms.depth, timms.alpha, timms.magnitude_std, timms.fill),
            std::tuple(4, 2, 1, 0.5, 2.0, colour));
  const auto holes = back("coarse_dropout", tr::coarse_dropout{{2, 3}, {0.3, 0.4}, {0.5, 0.6}, colour});
  EXPECT_EQ(std::tuple(holes.holes, holes.height, holes.width, holes.fill),
            std::tuple(std::array<int, 2>{2, 3}, range{0.3, 0.4}, range{0.5, 0.6}, colour));
  const auto moved = back("motion_blur", tr::motion_blur{{5, 9}, {10, 20}, {-0.5, 0.5}, false});
  EXPECT_EQ(std::tuple(moved.kernel, moved.angle, moved.direction, moved.shifted),
            std::tuple(std::array<int, 2>{5, 9}, range{10, 20}, range{-0.5, 0.5}, false));
  const auto tiles = back("clahe", tr::clahe{{2, 3}, 4, 6});
  EXPECT_EQ(std::tuple(tiles.clip, tiles.rows, tiles.columns), std::tuple(range{2, 3}, 4, 6));
  const auto padded = back("random_crop", tr::random_crop{20, 30, 4});
  EXPECT_EQ(std::tuple(padded.height, padded.width, padded.padding), std::tuple(20, 30, 4));
  EXPECT_EQ(back("random_flip", tr::random_flip{0.25}).probability, 0.25);
  EXPECT_EQ(back("brightness", tr::brightness{{0.5, 2}}).factor, (range{0.5, 2}));
  EXPECT_EQ(back("contrast", tr::contrast{{0.5, 2}}).factor, (range{0.5, 2}));
  EXPECT_EQ(back("saturation", tr::saturation{{0.5, 2}}).factor, (range{0.5, 2}));
  EXPECT_EQ(back("sharpness", tr::sharpness{{0.5, 2}}).factor, (range{0.5, 2}));
  EXPECT_EQ(back("hue", tr::hue{{-0.25, 0.5}}).shift, (range{-0.25, 0.5}));
  EXPECT_EQ(back("gamma", tr::gamma{{0.5, 2}}).exponent, (range{0.5, 2}));
  const auto jitter = back("color_jitter", tr::color_jitter{0.4, 0.3, 0.2, 0.1});
  EXPECT_EQ(std::tuple(jitter.brightness, jitter.contrast, jitter.saturation, jitter.hue),
            std::tuple(0.4, 0.3, 0.2, 0.1));
  EXPECT_EQ(back("posterize", tr::posterize{5}).bits, 5);
  EXPECT_EQ(back("solarize", tr::solarize{77}).threshold, 77);
  const auto added = back("solarize_add", tr::solarize_add{70, 99});
  EXPECT_EQ(std::tuple(added.amount, added.threshold), std::tuple(70, 99));
  const auto blur = back("gaussian_blur", tr::gaussian_blur{5, {0.5, 1}});
  EXPECT_EQ(std::tuple(blur.kernel, blur.sigma), std::tuple(5, range{0.5, 1}));
  const auto erased = back("random_erasing", tr::random_erasing{0.25, {0.1, 0.2}, {0.5, 2}, {1, 2, 3}, false});
  EXPECT_EQ(std::tuple(erased.probability, erased.scale, erased.ratio, erased.value),
            std::tuple(0.25, range{0.1, 0.2}, range{0.5, 2}, std::array<double, 3>{1, 2, 3}));
  EXPECT_TRUE(back("random_erasing", tr::random_erasing{.noise = true}).noise);
  const char* const without[] = {"grayscale", "invert", "autocontrast", "equalize", "channel_permutation"};
  const transform steps[] = {tr::grayscale{}, tr::invert{}, tr::autocontrast{}, tr::equalize{},
                             tr::channel_permutation{}};
  for (std::size_t i = 0; i < std::size(steps); ++i) {
    EXPECT_EQ(to_string(steps[i]), without[i]);
    EXPECT_EQ(parse_transforms(without[i]).at(0).name(), without[i]);
  }
}

TEST(transform_text, refuses_what_it_cannot_read_and_says_where) {
  const auto refused = [](std::string_view text) -> std::string {
    try {
      static_cast<void>(parse_transforms(text));
    } catch (const error& failure) {
      EXPECT_EQ(failure.code(), errc::usage);
      return failure.what();
    }
    return "";
  };
  EXPECT_THAT(refused("invert greyscale"),
              HasSubstr("at character 8 ('greyscale'): no step is called 'greyscale'; did you mean 'grayscale'?"));
  EXPECT_THAT(refused("ColorJitter(0.4)"), HasSubstr("at character 1 ('ColorJitter(0.4)'): no step is called "
                                                     "'ColorJitter'; did you mean 'color_jitter'?"));
  EXPECT_THAT(refused("brightness("), HasSubstr("at character 12 (the end)"));
  EXPECT_THAT(refused("brightness(x)"), HasSubstr("factor: a number is missing"));
  EXPECT_THAT(refused("brightness(1, 2)"), HasSubstr("nothing more belongs"));
  EXPECT_THAT(refused("brightness(nan)"), HasSubstr("factor: a number is missing"));
  EXPECT_THAT(refused("brightness(1e999)"), HasSubstr("at character 12 ('1e999)'): factor: the number is too large"));
  EXPECT_THAT(refused("posterize(1.5)"), HasSubstr("at character 11 ('1.5)'): bits: must be a whole number"));
  EXPECT_THAT(refused("posterize(99999999999)"), HasSubstr("bits: the number is too large"));
  EXPECT_THAT(refused("invert, brightness(2..1)"),
              HasSubstr("at character 9 ('brightness(2..1)'): brightness: factor from 2 to 1: must be ascending"));
  EXPECT_THAT(refused("random_apply(1, hue(0.7))"), HasSubstr("at character 17 ('hue(0.7))'): hue: shift"));
  EXPECT_THAT(refused("random_apply(2, invert)"), HasSubstr("at character 1 "));
  EXPECT_THAT(refused("random_crop(0)"), HasSubstr("at character 1 ('random_crop(0)'): random_crop: "));
  EXPECT_THAT(refused("random_erasing(1, 0.1, 1, 1e300)"), HasSubstr("value 1e+300: an element holds -65504..65504"));
  EXPECT_THAT(refused("invert(1)"), HasSubstr("this step has no arguments"));
  EXPECT_THAT(refused("random_apply(0.5)"), HasSubstr("a group is empty"));
  EXPECT_THAT(refused("random_apply"), HasSubstr("has its steps in parentheses"));
  EXPECT_THAT(refused("one_of(1 invert, grayscale)"), HasSubstr("give each step a weight, or none"));
  EXPECT_THAT(refused("one_of(invert, 1 grayscale)"), HasSubstr("give each step a weight, or none"));
  EXPECT_THAT(refused("one_of(1)"), HasSubstr("a step begins with its name"));
  EXPECT_THAT(refused("lookup(dim)"), HasSubstr("is a function"));
  EXPECT_THAT(refused("edit"), HasSubstr("is a function"));
  EXPECT_THAT(refused("(invert)"), HasSubstr("begins with its name"));
  EXPECT_THAT(refused("resize(3, cubic)"), HasSubstr("nearest, bilinear or bicubic"));
  std::string deep;
  for (int i = 0; i < 5000; ++i) deep += "random_apply(1,";
  EXPECT_THAT(refused(deep), HasSubstr("too many groups in groups"));
}

}  // namespace
}  // namespace leat
