// Pictures that look alike: which are found, and which are not.
#include "tools/near_pictures.hpp"

#include "tests/support/make_picture.hpp"
#include "tests/support/photos.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <random>
#include <span>
#include <vector>

namespace leat::testing {
namespace {

using tools::bits_between;
using tools::find_near;
using tools::near_picture;
using tools::picture_key;

picture_key key(const rgb_picture& of) {
  const std::optional<picture_key> found = tools::key_of(
      std::as_bytes(std::span(of.pixels)), static_cast<std::size_t>(of.width), static_cast<std::size_t>(of.height));
  EXPECT_TRUE(found.has_value());
  return found.value_or(picture_key{});
}

rgb_picture photo(std::uint64_t seed, int width = 160, int height = 120) {
  return {width, height, photo_pixels(seed, static_cast<std::uint32_t>(width), static_cast<std::uint32_t>(height))};
}

rgb_picture halved(const rgb_picture& from) {
  rgb_picture half{from.width / 2, from.height / 2, {}};
  for (int y = 0; y < half.height; ++y) {
    for (int x = 0; x < half.width; ++x) {
      for (int channel = 0; channel < 3; ++channel) {
        const int sum = from.at(2 * x, 2 * y)[channel] + from.at(2 * x + 1, 2 * y)[channel] +
                        from.at(2 * x, 2 * y + 1)[channel] + from.at(2 * x + 1, 2 * y + 1)[channel];
        half.pixels.push_back(static_cast<std::uint8_t>((sum + 2) / 4));
      }
    }
  }
  return half;
}

// What find_near() says, by comparing each with each.
std::vector<near_picture> by_hand(std::span<const picture_key> keys, std::size_t asked_from, unsigned bits_max) {
  std::vector<near_picture> all;
  for (std::size_t i = asked_from; i < keys.size(); ++i) {
    std::optional<near_picture> best;
    for (std::size_t k = 0; k < (asked_from == 0 ? i : asked_from); ++k) {
      const unsigned bits = bits_between(keys[i], keys[k]);
      if (bits <= bits_max && (!best || bits < best->bits)) best = near_picture{i, k, bits};
    }
    if (best) all.push_back(*best);
  }
  return all;
}

TEST(near_pictures, a_photograph_that_was_written_anew_or_halved_is_within_the_usual_bits) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    const rgb_picture one = photo(seed);
    const rgb_picture again = decode_whole_jpeg(make_jpeg(one, {.quality = 50}), 1);
    EXPECT_LE(bits_between(key(one), key(again)), tools::near_bits_usual) << "seed " << seed;
    EXPECT_LE(bits_between(key(one), key(halved(one))), tools::near_bits_usual) << "seed " << seed;
  }
}

TEST(near_pictures, of_different_photographs_none_is) {
  std::vector<picture_key> keys;
  for (std::uint64_t seed = 0; seed < 300; ++seed) keys.push_back(key(photo(seed, 64, 48)));
  EXPECT_TRUE(find_near(keys, 0, tools::near_bits_usual, 2).empty());
}

TEST(near_pictures, a_picture_of_one_colour_has_no_key_and_one_with_a_line_has) {
  rgb_picture grey{20, 10, std::vector<std::uint8_t>(600, 90)};
  const auto key_there = [&] { return tools::key_of(std::as_bytes(std::span(grey.pixels)), 20, 10).has_value(); };
  EXPECT_FALSE(key_there());
  for (int x = 0; x < 20; ++x) std::fill_n(grey.at(x, 4), 3, std::uint8_t{200});
  EXPECT_TRUE(key_there());
}

TEST(near_pictures, a_picture_of_a_few_pixels_has_a_key) {
  for (const auto& [width, height] : {std::pair(1, 2), std::pair(2, 1), std::pair(8, 3), std::pair(9, 9)}) {
    static_cast<void>(key(make_noise(7, width, height)));
  }
}

TEST(near_pictures, finds_what_comparing_each_with_each_finds) {
  for (const std::uint64_t seed : {1U, 2U, 3U}) {
    std::mt19937_64 random(seed);
    std::vector<picture_key> keys;
    for (int i = 0; i < 400; ++i) {
      picture_key next{random(), random()};
      // Every other one is an earlier one with a few bits changed, or none.
      if (i % 2 == 1) {
        next = keys[random() % keys.size()];
        for (std::uint64_t changes = random() % 8; changes > 0; --changes) {
          next.across ^= std::uint64_t{1} << (random() % 64);
          next.down ^= std::uint64_t{1} << (random() % 64);
        }
      }
      keys.push_back(next);
    }
    for (const unsigned bits_max : {0U, 1U, 4U, 7U, tools::near_bits_max}) {
      for (const std::size_t asked_from : {0U, 150U}) {
        const std::vector<near_picture> wanted = by_hand(keys, asked_from, bits_max);
        EXPECT_FALSE(wanted.empty());
        for (const unsigned threads : {1U, 3U}) {
          EXPECT_EQ(find_near(keys, asked_from, bits_max, threads), wanted)
              << "seed " << seed << ", " << bits_max << " bits, from " << asked_from;
        }
      }
    }
  }
}

TEST(near_pictures, many_of_one_key_are_compared_once) {
  // 40,000 of one key, each with each, would be 800 million comparisons.
  std::vector<picture_key> keys(40'000, picture_key{5, 6});
  keys.push_back({7, 6});
  const std::vector<near_picture> found = find_near(keys, 0, 4, 1);
  ASSERT_EQ(found.size(), 40'000U);
  EXPECT_EQ(found.front(), (near_picture{1, 0, 0}));
  EXPECT_EQ(found.back(), (near_picture{40'000, 0, 1}));
}

TEST(near_pictures, nothing_is_near_where_there_is_nothing) {
  EXPECT_TRUE(find_near({}, 0, 4, 2).empty());
  EXPECT_TRUE(find_near(std::vector<picture_key>(3, {1, 2}), 3, 4, 2).empty());
}

}  // namespace
}  // namespace leat::testing
