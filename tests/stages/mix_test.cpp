#include "stages/device/mix.hpp"

#include "base/half.hpp"
#include "stages/pixels/store.hpp"
#include "tests/support/failures.hpp"
#include "tests/support/seeded_random.hpp"
#include "tests/support/seeds.hpp"

#include <leat/error.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

namespace leat::stages {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(mix, draws_weights_of_the_beta_distribution) {
  for (const double alpha : {0.05, 0.2, 0.5, 1.0, 2.0, 8.0}) {
    constexpr int count = 20000;
    double sum = 0;
    double squares = 0;
    int below_a_tenth = 0;
    for (std::uint64_t sample = 0; sample < count; ++sample) {
      const drawn_mix drawn = draw_mix(mixup(alpha), 3, 1, sample, 8, 8);
      const double weight = drawn.weight;
      ASSERT_TRUE(weight >= 0 && weight <= 1) << weight;
      ASSERT_EQ(drawn.row.own, drawn.weight);
      ASSERT_EQ(drawn.row.other, 1.0F - drawn.weight);
      sum += weight;
      squares += weight * weight;
      below_a_tenth += weight < 0.1 ? 1 : 0;
    }
    const double mean = sum / count;
    const double variance = squares / count - mean * mean;
    const double expected = 1 / (4 * (2 * alpha + 1));
    EXPECT_NEAR(mean, 0.5, 5 * std::sqrt(expected / count)) << alpha;
    EXPECT_NEAR(variance, expected, 0.03 * expected) << alpha;
    // Not only its moments: the uniform one has a tenth of its weight there, 0.2 and less have much more.
    if (alpha == 1.0) EXPECT_NEAR(below_a_tenth, count / 10, 5 * std::sqrt(count * 0.09));
    if (alpha == 0.2) EXPECT_NEAR(below_a_tenth, count * 0.3367, 5 * std::sqrt(count * 0.2233)) << "I(0.1; 0.2, 0.2)";
  }
}

TEST(mix, draws_are_a_function_of_seed_epoch_and_sample) {
  for (const batch_mix& how : {mixup(0.4), cutmix(0.7)}) {
    const auto weight = [&](std::uint64_t seed, std::uint32_t epoch, std::uint64_t sample) {
      return draw_mix(how, seed, epoch, sample, 64, 48).weight;
    };
    EXPECT_EQ(weight(1, 2, 3), weight(1, 2, 3));
    EXPECT_NE(weight(1, 2, 3), weight(2, 2, 3));
    EXPECT_NE(weight(1, 2, 3), weight(1, 3, 3));
    EXPECT_NE(weight(1, 2, 3), weight(1, 2, 4));
  }
  // For ever: a run that is repeated next year is mixed as it was.
  EXPECT_FLOAT_EQ(draw_mix(mixup(0.2), 7, 0, 42, 8, 8).weight, draw_mix(mixup(0.2), 7, 0, 42, 100, 100).weight);
}

TEST(mix, boxes_of_cutmix_lie_in_the_picture_and_cost_what_the_weight_says) {
  int empty = 0;
  for (std::uint64_t sample = 0; sample < 5000; ++sample) {
    const drawn_mix drawn = draw_mix(cutmix(), 1, 0, sample, 30, 50);
    const mix_row& box = drawn.row;
    ASSERT_LE(box.left, box.right);
    ASSERT_LE(box.top, box.bottom);
    ASSERT_LE(box.right, 50);
    ASSERT_LE(box.bottom, 30);
    const int area = (box.right - box.left) * (box.bottom - box.top);
    ASSERT_FLOAT_EQ(drawn.weight, 1.0F - static_cast<float>(area) / 1500.0F);
    ASSERT_EQ(box.own, 1.0F);
    ASSERT_EQ(box.other, 0.0F);
    empty += area == 0 ? 1 : 0;
  }
  EXPECT_LT(empty, 500);
}

/// A number of any type in f32, exactly.
double value_at(dtype type, const std::byte* row, std::size_t i) {
  if (type == dtype::f32) {
    float value = 0;
    std::memcpy(&value, row + 4 * i, 4);
    return static_cast<double>(value);
  }
  std::uint16_t bits = 0;
  std::memcpy(&bits, row + 2 * i, 2);
  const int sign = bits >> 15 != 0 ? -1 : 1;
  const int exponent = type == dtype::f16 ? bits >> 10 & 0x1F : bits >> 7 & 0xFF;
  const int fraction_bits = type == dtype::f16 ? 10 : 7;
  const int bias = type == dtype::f16 ? 15 : 127;
  const int fraction = bits & ((1 << fraction_bits) - 1);
  const double significand = exponent == 0 ? fraction : fraction + (1 << fraction_bits);
  return sign * std::ldexp(significand, std::max(exponent, 1) - bias - fraction_bits);
}

// By definition, element by element: in double where it is exact, rounded where the rule says so.
TEST(mix, a_picture_is_mixed_by_two_products_and_a_sum_each_rounded_once) {
  testing::for_each_seed(20, [](std::uint64_t seed) {
    testing::seeded_random random(seed);
    for (const dtype type : {dtype::f32, dtype::f16, dtype::bf16}) {
      const picture_batch how = pictures_of(pixels::store::from(type, layout::nchw, imagenet), 5, 7);
      std::vector<std::uint8_t> pixels(2 * 5 * 7 * 3);
      testing::fill_seeded(seed, 0, std::as_writable_bytes(std::span(pixels)));
      picture_batch both = how;
      both.from = pixels.data();
      std::vector<std::byte> own(105 * size_bytes(type));
      std::vector<std::byte> other(own.size());
      finish_picture(both, 0, own.data());
      finish_picture(both, 1, other.data());
      const std::vector<std::byte> before = own;
      mix_row mixed;
      mixed.own = static_cast<float>(random.below(1000)) / 1000.0F;
      mixed.other = 1.0F - mixed.own;
      mix_picture(how, mixed, own.data(), other.data());
      for (std::size_t i = 0; i < 105; ++i) {
        const auto first = static_cast<float>(static_cast<double>(mixed.own) * value_at(type, before.data(), i));
        const auto second = static_cast<float>(static_cast<double>(mixed.other) * value_at(type, other.data(), i));
        const auto sum = static_cast<float>(static_cast<double>(first) + static_cast<double>(second));
        if (type == dtype::f32) {
          ASSERT_EQ(value_at(type, own.data(), i), static_cast<double>(sum));
        } else {
          std::uint16_t got = 0;
          std::memcpy(&got, own.data() + 2 * i, 2);
          ASSERT_EQ(got, type == dtype::f16 ? f16_bits(sum) : bf16_bits(sum));
        }
      }
    }
  });
}

TEST(mix, a_box_takes_the_partners_pixels_in_every_layout) {
  for (const layout order : {layout::nchw, layout::nhwc}) {
    constexpr std::size_t height = 4;
    constexpr std::size_t width = 6;
    const picture_batch how = pictures_of(pixels::store::from(dtype::f32, order, imagenet), height, width);
    std::vector<float> own(height * width * 3, 1.0F);
    const std::vector<float> other(own.size(), 2.0F);
    mix_picture(how, {.left = 2, .top = 1, .right = 5, .bottom = 3}, own.data(), other.data());
    for (std::size_t y = 0; y < height; ++y) {
      for (std::size_t x = 0; x < width; ++x) {
        const float expected = x >= 2 && x < 5 && y >= 1 && y < 3 ? 2.0F : 1.0F;
        for (std::size_t c = 0; c < 3; ++c) {
          EXPECT_EQ(own[order == layout::nchw ? (c * height + y) * width + x : (y * width + x) * 3 + c], expected);
        }
      }
    }
  }
}

output_spec picture(const std::string& name, dtype type = dtype::f32, std::uint32_t height = 8) {
  return {.name = name, .type = type, .row_shape = {3, height, 8}, .axes = layout::nchw};
}

TEST(mix, adds_each_labels_partner_and_the_weight) {
  std::vector<output_spec> outputs{
      picture("jpg"), {.name = "cls", .type = dtype::i64, .label = true}, {.name = "id", .type = dtype::i64}};
  add_mix_outputs(outputs, {});
  EXPECT_EQ(outputs.size(), 3U);
  add_mix_outputs(outputs, mixup());
  std::vector<std::string> names;
  for (const output_spec& each : outputs) names.push_back(each.name);
  EXPECT_THAT(names, ElementsAre("jpg", "cls", "id", "cls.partner", "mix.weight"));
  EXPECT_EQ(outputs[3].type, dtype::i64);
  EXPECT_EQ(outputs[4].type, dtype::f32);
}

TEST(mix, refuses_what_it_cannot_do_and_says_what_would_do) {
  const auto refusal = [](std::vector<output_spec> outputs, const batch_mix& how) {
    try {
      add_mix_outputs(outputs, how);
    } catch (const error& problem) {
      EXPECT_EQ(problem.code(), errc::usage);
      return std::string(problem.what());
    }
    return std::string("accepted");
  };
  EXPECT_THAT(refusal({picture("jpg")}, mixup(0)), HasSubstr("alpha = 0"));
  EXPECT_THAT(refusal({picture("jpg")}, mixup(std::nan(""))), HasSubstr("alpha"));
  EXPECT_THAT(refusal({picture("jpg", dtype::u8)}, cutmix()), HasSubstr("'jpg' is u8; take it as f32"));
  EXPECT_THAT(refusal({{.name = "cls", .type = dtype::i64, .label = true}}, mixup()), HasSubstr("without a picture"));
  EXPECT_THAT(refusal({picture("a"), picture("b", dtype::f32, 9)}, cutmix()), HasSubstr("'a' and 'b' differ"));
  EXPECT_EQ(refusal({picture("a"), picture("b", dtype::f32, 9)}, mixup()), "accepted");
}

}  // namespace
}  // namespace leat::stages
