#include "stages/pixels/store.hpp"

#include "base/half.hpp"

#include <leat/error.hpp>

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace leat {
namespace {

using pixels::store;

// The value of an f16, by its definition.
double f16_value(std::uint16_t bits) {
  const int exponent = bits >> 10 & 31;
  const double fraction = bits & 1023;
  const double magnitude = exponent == 31  ? (fraction == 0 ? std::numeric_limits<double>::infinity() : std::nan(""))
                           : exponent == 0 ? std::ldexp(fraction, -24)
                                           : std::ldexp(1024 + fraction, exponent - 25);
  return (bits & 0x8000) != 0 ? -magnitude : magnitude;
}

TEST(store, rounds_to_f16_as_ieee_754_does) {
  // Around every f16 and every middle between two: the number itself, and its neighbours among f32.
  for (std::uint32_t bits = 0; bits < 0x7C00; ++bits) {
    const auto low = static_cast<std::uint16_t>(bits);
    const auto high = static_cast<std::uint16_t>(bits + 1);
    const double above = bits + 1 == 0x7C00 ? 65536.0 : f16_value(high);  // infinity stands where 2^16 would
    const auto middle = static_cast<float>((f16_value(low) + above) / 2);
    const auto exact = static_cast<float>(f16_value(low));
    ASSERT_EQ(f16_bits(exact), low);
    ASSERT_EQ(f16_bits(-exact), low | 0x8000);
    ASSERT_EQ(f16_bits(middle), bits % 2 == 0 ? low : high) << bits;
    ASSERT_EQ(f16_bits(std::nextafterf(middle, 0)), low) << bits;
    ASSERT_EQ(f16_bits(std::nextafterf(middle, 1e9F)), high) << bits;
    ASSERT_EQ(f16_bits(-middle), (bits % 2 == 0 ? low : high) | 0x8000) << bits;
  }
  EXPECT_EQ(f16_bits(std::numeric_limits<float>::infinity()), 0x7C00);
  EXPECT_EQ(f16_bits(-1e30F), 0xFC00);
  EXPECT_EQ(f16_bits(std::numeric_limits<float>::denorm_min()), 0);
  EXPECT_TRUE(std::isnan(f16_value(f16_bits(std::numeric_limits<float>::quiet_NaN()))));
}

TEST(store, knows_what_every_f16_is_worth) {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    const float got = leat::f16_value(half);
    if (std::isnan(f16_value(half))) {
      ASSERT_TRUE(std::isnan(got)) << bits;
      ASSERT_EQ(f16_bits(got), half | 0x0200);
      continue;
    }
    ASSERT_EQ(static_cast<double>(got), f16_value(half)) << bits;
    ASSERT_EQ(std::signbit(got), half >= 0x8000) << bits;
    ASSERT_EQ(f16_bits(got), half);
  }
}

TEST(store, rounds_to_bf16_as_ieee_754_does) {
  std::mt19937 random(1);
  for (int i = 0; i < 200'000; ++i) {
    const auto bits = static_cast<std::uint32_t>(random());
    const auto value = std::bit_cast<float>(i % 4 == 0 ? (bits & 0xFFFF0000U) | 0x8000U : bits);
    if (!std::isfinite(value)) continue;
    const std::uint16_t got = bf16_bits(value);
    const auto down = static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(value) >> 16);
    const auto as_double = [](std::uint32_t b) {
      // One above the largest finite bf16 stands for 2^128.
      if ((b & 0x7F80U) == 0x7F80U) return (b & 0x8000U) != 0 ? -0x1p128 : 0x1p128;
      return static_cast<double>(std::bit_cast<float>(b << 16));
    };
    const double below = std::abs(static_cast<double>(value) - as_double(down));
    const double above = std::abs(as_double(down + 1U) - static_cast<double>(value));
    const bool up = above < below || (above == below && down % 2 == 1);
    ASSERT_EQ(got, up ? down + 1 : down) << value;
  }
  EXPECT_EQ(bf16_bits(std::numeric_limits<float>::infinity()), 0x7F80);
  EXPECT_NE(bf16_bits(std::bit_cast<float>(0x7F800001U)) & 0x7F, 0);  // a NaN stays one
}

TEST(store, computes_scale_and_bias_in_double_and_rounds_twice) {
  const store plain = store::from(dtype::f32, layout::nchw, std::nullopt);
  EXPECT_EQ(plain.scale[0], static_cast<float>(1.0 / 255.0));
  EXPECT_EQ(plain.bias[0], 0.0F);
  EXPECT_FALSE(std::signbit(plain.bias[0]));
  const store normal = store::from(dtype::f32, layout::nchw, imagenet);
  EXPECT_EQ(normal.scale[1], static_cast<float>(1.0 / (255.0 * 0.224)));
  EXPECT_EQ(normal.bias[1], static_cast<float>(-0.456 / 0.224));

  // A fused multiply-add would round once and give other bits for some values; make sure that some tell them apart.
  int told_apart = 0;
  std::vector<std::uint8_t> line(256 * 3);
  for (std::size_t i = 0; i < 256; ++i) line[i] = line[256 + i] = line[512 + i] = static_cast<std::uint8_t>(i);
  std::vector<float> row(256 * 3);
  pixels::store_line(normal, normal.order, line.data(), 0, 1, 256, reinterpret_cast<std::byte*>(row.data()));
  for (std::size_t c = 0; c < 3; ++c) {
    for (std::size_t value = 0; value < 256; ++value) {
      // Each step in double, rounded to f32: exact products of an 8 and a 24 bit number, and exact enough sums.
      const auto product = static_cast<float>(static_cast<double>(value) * static_cast<double>(normal.scale[c]));
      const auto sum = static_cast<float>(static_cast<double>(product) + static_cast<double>(normal.bias[c]));
      const float fused = std::fma(static_cast<float>(value), normal.scale[c], normal.bias[c]);
      told_apart += fused != sum ? 1 : 0;
      ASSERT_EQ(row[c * 256 + value], sum);
    }
  }
  EXPECT_GT(told_apart, 0);
}

TEST(store, puts_every_element_where_its_layout_says) {
  constexpr int height = 3;
  constexpr int width = 5;
  for (const dtype type : {dtype::u8, dtype::f16, dtype::bf16, dtype::f32}) {
    const auto statistics = type == dtype::u8 ? std::nullopt : std::optional(imagenet);
    for (const layout order : {layout::nchw, layout::nhwc}) {
      const store how = store::from(type, order, statistics);
      const std::size_t element = size_bytes(type);
      std::vector<std::byte> row(how.row_bytes(height, width));
      ASSERT_EQ(row.size(), height * width * 3 * element);
      const auto pixel = [](int x, int y, int c) { return static_cast<std::uint8_t>(37 * x + 91 * y + 13 * c); };
      for (int y = 0; y < height; ++y) {
        std::vector<std::uint8_t> line(width * 3);
        for (int x = 0; x < width; ++x) {
          for (int c = 0; c < 3; ++c) {
            line[static_cast<std::size_t>(order == layout::nchw ? c * width + x : 3 * x + c)] = pixel(x, y, c);
          }
        }
        pixels::store_line(how, how.order, line.data(), y, height, width, row.data());
      }
      for (int y = 0; y < height; ++y) {
        for (int x = 0; x < width; ++x) {
          for (int c = 0; c < 3; ++c) {
            const int at = order == layout::nchw ? (c * height + y) * width + x : (y * width + x) * 3 + c;
            const std::byte* const got = row.data() + static_cast<std::size_t>(at) * element;
            const auto channel = static_cast<std::size_t>(c);
            const float product = static_cast<float>(pixel(x, y, c)) * how.scale[channel];
            const float full = product + how.bias[channel];
            if (type == dtype::u8) {
              ASSERT_EQ(std::to_integer<int>(*got), pixel(x, y, c));
            } else if (type == dtype::f32) {
              ASSERT_EQ(*reinterpret_cast<const float*>(got), full);
            } else {
              ASSERT_EQ(*reinterpret_cast<const std::uint16_t*>(got),
                        type == dtype::f16 ? f16_bits(full) : bf16_bits(full));
            }
          }
        }
      }
    }
  }
}

TEST(store, refuses_what_makes_no_sense) {
  EXPECT_THROW(static_cast<void>(store::from(dtype::u8, layout::nchw, imagenet)), error);
  EXPECT_THROW(static_cast<void>(store::from(dtype::i64, layout::nchw, std::nullopt)), error);
  EXPECT_THROW(static_cast<void>(store::from(dtype::f32, layout::nchw, normalization{{0, 0, 0}, {1, 0, 1}})), error);
  EXPECT_THROW(static_cast<void>(store::from(dtype::f32, layout::nchw, normalization{{std::nan(""), 0, 0}, {1, 1, 1}})),
               error);
}

}  // namespace
}  // namespace leat
