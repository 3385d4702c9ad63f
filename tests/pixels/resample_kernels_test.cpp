#include "stages/pixels/resample_kernels.hpp"

#include "tests/support/each_target.hpp"
#include "tests/support/seeds.hpp"

#include <gtest/gtest.h>
#include <hwy/highway.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace leat::pixels {
namespace {

using testing::for_each_target;

std::uint8_t plain(std::int64_t sum) {
  return static_cast<std::uint8_t>(std::clamp<std::int64_t>((sum + (1 << (weight_bits - 1))) >> weight_bits, 0, 255));
}

int between(std::mt19937_64& random, int from, int to) { return std::uniform_int_distribution<int>(from, to)(random); }

std::vector<std::uint8_t> random_bytes(std::mt19937_64& random, std::size_t count) {
  std::vector<std::uint8_t> made(count);
  // Extremes more often than chance has them: that is where sums leave 0..255.
  for (auto& value : made) value = static_cast<std::uint8_t>(std::clamp(between(random, -80, 335), 0, 255));
  return made;
}

// Weights as a filter's: they sum to about 1, and some of a cubic's are below 0.
std::vector<std::int32_t> random_weights(std::mt19937_64& random, int taps) {
  std::vector<std::int32_t> weights(static_cast<std::size_t>(taps));
  constexpr int one = 1 << weight_bits;
  int left = one;
  for (auto& weight : weights) {
    weight = between(random, -one / 8, one / taps);
    left -= weight;
  }
  weights[static_cast<std::size_t>(between(random, 0, taps - 1))] += std::min(left, one + one / 8);
  return weights;
}

TEST(resample_kernels, are_several_on_this_processor) {
  // The tests below would prove little where only the plain one was compiled.
#if defined(__x86_64__) || defined(__aarch64__)
  EXPECT_GE(testing::targets_here().size(), 1U);
  EXPECT_NE(testing::targets_here().front(), HWY_EMU128);
#endif
}

TEST(instruction_sets, are_those_that_highway_finds) {
#if defined(__x86_64__)
  // Sets that later Highways know have lower bits. They are not chosen.
  constexpr std::int64_t known = HWY_TARGETS & -static_cast<std::int64_t>(HWY_AVX3_DL);
#else
  constexpr std::int64_t known = HWY_TARGETS;
#endif
  EXPECT_EQ(instruction_sets() & known, hwy::SupportedTargets() & known);
}

TEST(resample_kernels, make_a_line_as_the_plain_sum_does_on_every_instruction_set) {
  testing::for_each_seed(200, [](std::uint64_t seed) {
    std::mt19937_64 random(seed);
    const int count = between(random, 1, 70);
    const int taps = between(random, 0, 3) == 0 ? between(random, 6, 40) : between(random, 1, 6);
    const int inputs = taps + between(random, 0, 100);
    const bool planar = between(random, 0, 1) == 1;
    const bool flipped = between(random, 0, 1) == 1;
    const auto line = random_bytes(random, static_cast<std::size_t>(inputs) * 3 + line_slack_bytes);

    const int groups = (count + line_table::group - 1) / line_table::group;
    std::vector<std::int32_t> first(static_cast<std::size_t>(groups * line_table::group));
    std::vector<std::int32_t> weights(static_cast<std::size_t>(groups * line_table::group * taps));
    std::vector<std::uint8_t> expected(static_cast<std::size_t>(count) * 3 + 2, 0xCC);
    const std::ptrdiff_t pixel = (planar ? 1 : 3) * (flipped ? -1 : 1);
    const std::ptrdiff_t plane = planar ? count : 1;
    const std::ptrdiff_t begin = 1 + (flipped ? (count - 1) * -pixel : 0);  // a byte before and after stay as they are
    for (int x = 0; x < count; ++x) {
      first[static_cast<std::size_t>(x)] = between(random, 0, inputs - taps);
      const auto own = random_weights(random, taps);
      for (int t = 0; t < taps; ++t) {
        weights[static_cast<std::size_t>((x / 4 * taps + t) * 4 + x % 4)] = own[static_cast<std::size_t>(t)];
      }
      for (int c = 0; c < 3; ++c) {
        std::int64_t sum = 0;
        for (int t = 0; t < taps; ++t) {
          sum += std::int64_t{own[static_cast<std::size_t>(t)]} *
                 line[static_cast<std::size_t>((first[static_cast<std::size_t>(x)] + t) * 3 + c)];
        }
        expected[static_cast<std::size_t>(begin + x * pixel + c * plane)] = plain(sum);
      }
    }
    const line_table table{.count = count, .taps = taps, .first = first.data(), .weights = weights.data()};
    for_each_target([&] {
      std::vector<std::uint8_t> made(expected.size(), 0xCC);
      resample_line(line.data(), table, {made.data() + begin, pixel, plane});
      EXPECT_EQ(made, expected) << count << " outputs, " << taps << " taps, " << (planar ? "planar" : "interleaved")
                                << (flipped ? ", flipped" : "");
    });
  });
}

TEST(resample_kernels, make_lines_as_the_plain_sum_does_on_every_instruction_set) {
  testing::for_each_seed(200, [](std::uint64_t seed) {
    std::mt19937_64 random(seed);
    const auto bytes = static_cast<std::size_t>(between(random, 1, 400));
    const int taps = between(random, 1, 12);
    std::vector<std::vector<std::uint8_t>> inputs;
    std::vector<const std::uint8_t*> lines;
    for (int t = 0; t < taps; ++t) {
      inputs.push_back(random_bytes(random, bytes));
      lines.push_back(inputs.back().data());
    }
    const auto weights = random_weights(random, taps);
    std::vector<std::uint8_t> expected(bytes + 1, 0xCC);
    for (std::size_t i = 0; i < bytes; ++i) {
      std::int64_t sum = 0;
      for (int t = 0; t < taps; ++t)
        sum += std::int64_t{weights[static_cast<std::size_t>(t)]} * lines[static_cast<std::size_t>(t)][i];
      expected[i] = plain(sum);
    }
    for_each_target([&] {
      std::vector<std::uint8_t> made(expected.size(), 0xCC);
      resample_lines(lines.data(), weights.data(), taps, bytes, made.data());
      EXPECT_EQ(made, expected) << bytes << " bytes, " << taps << " taps";
    });
  });
}

}  // namespace
}  // namespace leat::pixels
