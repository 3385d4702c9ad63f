// AugMix: its weights, its chains, and the sum against one that is made step by step.
#include "stages/pixels/mix_weights.hpp"
#include "stages/pixels/policies.hpp"
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
#include <string>
#include <vector>

namespace leat {
namespace {

using pixels::colour_pass;
using pixels::pass_kind;
using pixels::recipe;
using testing::rgb_picture;
namespace tr = transforms;

recipe mix_of(const pixels::pipeline& chain, std::uint64_t sample) {
  recipe passes;
  chain.draw_colour({.seed = 9, .epoch = 1, .draw = sample}, passes);
  return passes;
}

// Chain by chain, each operation a picture of its own; products and sums are of f32, as torch's are.
rgb_picture mixed_by_hand(const rgb_picture& picture, const recipe& passes) {
  rgb_picture now = picture;
  rgb_picture source;
  std::vector<float> sums(picture.pixels.size());
  for (const colour_pass& pass : passes.drawn()) {
    const auto weight = static_cast<float>(pass.value);
    if (pass.what == pass_kind::mix_begin) {
      source = now;
      for (std::size_t i = 0; i < sums.size(); ++i) sums[i] = weight * static_cast<float>(now.pixels[i]);
    } else if (pass.what == pass_kind::mix_add) {
      for (std::size_t i = 0; i < sums.size(); ++i) sums[i] = sums[i] + weight * static_cast<float>(now.pixels[i]);
      now = source;
      if (pass.number == 0) continue;
      const auto share = static_cast<float>(pass.from[0]);
      for (std::size_t i = 0; i < sums.size(); ++i) {
        const int sum = std::min(255, static_cast<int>(sums[i]));
        const int old = source.pixels[i];
        now.pixels[i] =
            static_cast<std::uint8_t>(share == 1 ? sum : static_cast<int>(float(old) + share * float(sum - old)));
      }
    } else {
      recipe one;
      one.key = passes.key;
      one.add(pass);
      now = testing::coloured(now, one);
    }
  }
  return now;
}

TEST(mix, is_the_sum_of_its_chains_on_every_instruction_set) {
  const rgb_picture picture = testing::make_texture(3, 61, 47);
  for (const char* text :
       {"aug_mix", "aug_mix(10, 1, 1, 0.3)", "aug_mix(5, 4, 2, 1, 0, nearest, 9/8/7)", "augmix-m9-w3-d2", "augmix",
        "brightness(0.8) aug_mix equalize", "rotate(9) augmix-m5-w1-a0.2-mstd1 invert"}) {
    SCOPED_TRACE(text);
    const pixels::pipeline chain = testing::chain_for(picture, parse_transforms(text));
    for (std::uint64_t sample = 0; sample < 12; ++sample) {
      const recipe passes = mix_of(chain, sample);
      const rgb_picture expected = mixed_by_hand(picture, passes);
      testing::for_each_target([&] { ASSERT_EQ(testing::coloured(picture, passes), expected) << sample; });
    }
  }
}

TEST(mix, weights_are_of_dirichlets_law) {
  for (const double alpha : {0.05, 0.3, 1.0, 5.0, 100.0}) {
    SCOPED_TRACE(alpha);
    constexpr int rows = 30'000;
    double sum = 0, squares = 0, halves = 0;
    for (std::uint64_t i = 0; i < rows; ++i) {
      random_draws draws(2, 0, i, "mix");
      const pixels::mix_weights weights(alpha, 4, draws);
      double all = 0;
      for (int k = 0; k < 4; ++k) {
        ASSERT_GE(weights.part(k), 0);
        all += static_cast<double>(weights.part(k));
      }
      ASSERT_NEAR(all, 1, 1e-6);
      ASSERT_NEAR(weights.first_of_two() + weights.second_of_two(), 1, 1e-6);
      const double first = weights.part(0);
      sum += first;
      squares += first * first;
      halves += static_cast<double>(weights.first_of_two()) < 0.5 ? 1 : 0;
    }
    // Of each part: a mean of 1/4, a variance of 3/16 / (4 alpha + 1).
    const double mean = sum / rows;
    const double variance = 3.0 / 16 / (4 * alpha + 1);
    EXPECT_NEAR(mean, 0.25, 5 * std::sqrt(variance / rows));
    EXPECT_NEAR(squares / rows - mean * mean, variance, 0.03 * variance);
    EXPECT_NEAR(halves, rows / 2.0, 5 * std::sqrt(rows / 4.0));
  }
}

TEST(mix, has_torchvisions_space) {
  using op = pixels::policy_operation;
  const auto of = [](op what, int bin) {
    return pixels::policy_magnitude(what, pixels::mix_space, bin, pixels::mix_bins, 90, 120);
  };
  EXPECT_EQ(pixels::mix_operations(true).size(), 13U);
  EXPECT_EQ(pixels::mix_operations(false).size(), 9U);
  EXPECT_NEAR(of(op::translate_x, 9), 40, 1e-5);
  EXPECT_NEAR(of(op::translate_y, 3), 10, 1e-5);
  EXPECT_NEAR(of(op::shear_x, 9), 0.3, 1e-7);
  EXPECT_NEAR(of(op::rotate, 2), 60.0 / 9, 1e-5);
  std::vector<int> bits;
  for (int bin = 0; bin < 10; ++bin) bits.push_back(static_cast<int>(of(op::posterize, bin)));
  // (4 - torch.arange(10) / (9 / 4)).round()
  EXPECT_THAT(bits, ::testing::ElementsAre(4, 4, 3, 3, 2, 2, 1, 1, 0, 0));
}

TEST(mix, draws_each_operation_and_depth_as_often) {
  const pixels::pipeline chain({tr::center_crop{90, 120}, tr::aug_mix{.severity = 10, .width = 1}});
  std::map<std::size_t, int> depths;
  std::map<std::string, int> kinds;
  int operations = 0;
  constexpr int rows = 30'000;
  for (std::uint64_t i = 0; i < rows; ++i) {
    const recipe passes = mix_of(chain, i);
    ++depths[passes.count - 2];
    for (std::size_t k = 1; k + 1 < passes.count; ++k) {
      const colour_pass& pass = passes.passes[k];
      if (pass.what == pass_kind::warp) continue;
      std::string kind = text_of(pass);
      ++kinds[kind.substr(0, kind.find('('))];
    }
    operations += static_cast<int>(passes.count) - 2;
  }
  ASSERT_EQ(depths.size(), 3U);
  for (const auto& [depth, count] : depths) EXPECT_NEAR(count, rows / 3.0, 400) << depth;
  ASSERT_EQ(kinds.size(), 8U);
  double chi_square = 0;
  const double expected = operations / 13.0;
  for (const auto& [kind, count] : kinds) chi_square += (count - expected) * (count - expected) / expected;
  EXPECT_LT(chi_square, 31) << "8 kinds: 1 in 10,000 is above 31";
}

TEST(mix, takes_the_scratch_that_it_says_and_no_memory_besides) {
  LEAT_NEEDS_ALLOCATION_COUNTER();
  for (const int side : {33, 512}) {
    const rgb_picture picture = testing::make_texture(5, side, side);
    const pixels::pipeline chain =
        testing::chain_for(picture, parse_transforms(side == 33 ? "aug_mix(9, 4, 4)" : "aug_mix augmix"));
    const auto how = pixels::store::from(dtype::f16, layout::nchw, imagenet);
    pixels::scratch_budget budget(std::size_t{64} << 20);
    pixels::scratch_arena arena(budget);
    std::vector<std::byte> row(how.row_bytes(side, side));
    const std::vector<std::uint8_t> line(static_cast<std::size_t>(side) * 3, 77);
    const auto run = [&](std::uint64_t sample) {
      recipe passes;
      chain.draw_colour({1, 0, sample}, passes);
      arena.begin();
      pixels::row_writer writer(how, &passes, side, side, row.data());
      ASSERT_TRUE(arena.reserve(writer.scratch_bytes()));
      ASSERT_LE(writer.scratch_bytes(), pixels::row_writer::scratch_bytes_most(chain));
      ASSERT_TRUE(writer.start(arena));
      ASSERT_EQ(arena.used(), writer.scratch_bytes());
      for (int y = 0; y < side; ++y) writer.take(line.data(), y);
      ASSERT_TRUE(writer.finish());
      arena.end();
    };
    for (std::uint64_t sample = 0; sample < 20; ++sample) run(sample);
    const testing::allocation_counter counter;
    for (std::uint64_t sample = 0; sample < 20; ++sample) run(sample);
    EXPECT_EQ(counter.count().allocations, 0U);
  }
}

TEST(mix, refuses_numbers_out_of_range_and_chains_that_a_recipe_does_not_hold) {
  for (const tr::aug_mix& wrong :
       {tr::aug_mix{.severity = 0}, tr::aug_mix{.severity = 11}, tr::aug_mix{.width = 0}, tr::aug_mix{.width = 11},
        tr::aug_mix{.depth = -1}, tr::aug_mix{.depth = 11}, tr::aug_mix{.alpha = 0.01},
        tr::aug_mix{.alpha = std::nan("")}, tr::aug_mix{.how = filter::bicubic}, tr::aug_mix{.fill = {0, 256, 0}}}) {
    EXPECT_THROW(pixels::check_numbers(wrong), error) << to_string(wrong);
  }
  EXPECT_THROW(pixels::pipeline({tr::center_crop{}, tr::aug_mix{.width = 10, .depth = 10}}), error);
  EXPECT_THROW(pixels::check_numbers(tr::timm_augmix{.magnitude = 101}), error);
  EXPECT_THROW(static_cast<void>(parse_transforms("augmix-b1")), error);
  EXPECT_THROW(static_cast<void>(parse_transforms("augmix-mstd101")), error);
  EXPECT_EQ(to_string(parse_transforms("augmix-m5-w4-d2-a0.5-mstd1").at(0)), "timm_augmix(5, 4, 2, 0.5, 1)");
  EXPECT_EQ(to_string(parse_transforms("aug_mix(3, 3, 2)").at(0)), "aug_mix(3, 3, 2)");
}

}  // namespace
}  // namespace leat
