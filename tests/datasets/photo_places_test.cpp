#include "datasets/formats/tar/photo_places.hpp"

#include "tests/support/seeded_random.hpp"
#include "tests/support/seeds.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace leat::datasets {
namespace {

struct pack_of_rows {
  photo_place place;
  std::vector<std::uint32_t> ends;  // of each row
};

pack_of_rows random_pack(testing::seeded_random& random, std::uint32_t block) {
  constexpr std::uint8_t heights[] = {8, 16, 32};
  pack_of_rows made;
  photo_place& place = made.place;
  place.mcu_height = heights[random.below(3)];
  place.height = static_cast<std::uint16_t>(random.below(random.below(2) == 0 ? 700 : 65'535) + 1);
  place.width = static_cast<std::uint16_t>(random.below(65'535) + 1);
  place.mcu_rows = static_cast<std::uint16_t>((place.height + place.mcu_height - 1) / place.mcu_height);
  place.orientation = static_cast<std::uint8_t>(random.below(8) + 1);
  place.head_bytes = static_cast<std::uint32_t>(random.below(3000) + 48);
  place.block = block;
  std::uint32_t end = 0;
  for (std::uint32_t row = 0; row < place.mcu_rows; ++row) {
    end += static_cast<std::uint32_t>(random.below(random.below(4) == 0 ? 20'000 : 3) + 1);
    made.ends.push_back(end);
  }
  place.bytes = place.head_bytes + end + 32;
  place.mark(made.ends);
  return made;
}

TEST(photo_places, hold_the_rows_that_are_asked_for_and_little_more) {
  testing::for_each_seed(300, [](std::uint64_t seed) {
    testing::seeded_random random(seed);
    const pack_of_rows made = random_pack(random, 7);
    const photo_place& place = made.place;
    ASSERT_TRUE(place.is_sound());
    const std::uint32_t unit = (made.ends.back() + 255) / 256;
    for (int i = 0; i < 50; ++i) {
      const auto first = static_cast<std::uint32_t>(random.below(place.mcu_rows));
      const auto end = static_cast<std::uint32_t>(first + 1 + random.below(place.mcu_rows - first));
      const photo_range got = place.bytes_of({first, end});
      const std::uint32_t begins = place.head_bytes + (first == 0 ? 0 : made.ends[first - 1]);
      const std::uint32_t ends = place.head_bytes + made.ends[end - 1];
      ASSERT_LE(got.first, begins);
      ASSERT_GE(got.end, ends);
      ASSERT_LE(got.end, place.bytes);
      if (place.rows_per_mark() == 1) {  // nothing but what rounding adds
        ASSERT_LT(begins - got.first, unit);
        ASSERT_LE(got.end - ends, unit);
      }
    }
    ASSERT_EQ(place.bytes_of({0, place.mcu_rows}), (photo_range{place.head_bytes, place.bytes - 32}));
  });
}

TEST(photo_places, come_back_out_of_their_member) {
  testing::for_each_seed(30, [](std::uint64_t seed) {
    testing::seeded_random random(seed);
    std::vector<photo_place> places;
    for (std::uint32_t i = 0; i < 20; ++i) places.push_back(random_pack(random, 100 * i).place);
    const std::vector<std::byte> member = as_member(places);
    ASSERT_EQ(member.size(), photo_places_bytes(places.size()));
    ASSERT_EQ(parse_photo_places(member), places);
  });
  EXPECT_EQ(parse_photo_places(as_member({})), std::vector<photo_place>());
}

TEST(photo_places, that_were_changed_or_cut_are_none) {
  testing::seeded_random random(5);
  const std::vector<photo_place> places{random_pack(random, 1).place, random_pack(random, 900).place};
  const std::vector<std::byte> whole = as_member(places);
  for (std::size_t at = 0; at < whole.size(); ++at) {
    std::vector<std::byte> changed = whole;
    changed[at] ^= std::byte{0x10};
    EXPECT_EQ(parse_photo_places(changed), std::nullopt) << at;
    EXPECT_EQ(parse_photo_places(std::span(whole).first(at)), std::nullopt) << at;
  }
  std::vector<std::byte> longer = whole;
  longer.resize(whole.size() + 64);
  EXPECT_EQ(parse_photo_places(longer), std::nullopt);
}

// Under right checksums, too: such numbers would lead out of the pack.
TEST(photo_places, that_contradict_themselves_are_left_out) {
  testing::seeded_random random(6);
  const photo_place sound = random_pack(random, 1).place;
  const auto left_of = [](photo_place changed) { return parse_photo_places(as_member({&changed, 1}))->size(); };
  EXPECT_EQ(left_of(sound), 1U);
  const auto with = [&](auto change) {
    photo_place changed = sound;
    change(changed);
    return left_of(changed);
  };
  EXPECT_EQ(with([](photo_place& p) { p.mcu_rows = 0; }), 0U);
  EXPECT_EQ(with([](photo_place& p) { ++p.mcu_rows; }), 0U);
  EXPECT_EQ(with([](photo_place& p) { p.mcu_height = 0; }), 0U);
  EXPECT_EQ(with([](photo_place& p) { p.mcu_height = 24; }), 0U);
  EXPECT_EQ(with([](photo_place& p) { p.width = 0; }), 0U);
  EXPECT_EQ(with([](photo_place& p) { p.height = 0; }), 0U);
  EXPECT_EQ(with([](photo_place& p) { p.orientation = 0; }), 0U);
  EXPECT_EQ(with([](photo_place& p) { p.orientation = 9; }), 0U);
  EXPECT_EQ(with([](photo_place& p) { p.head_bytes = p.bytes; }), 0U);
  EXPECT_EQ(with([](photo_place& p) { p.bytes = 31; }), 0U);
  EXPECT_EQ(with([](photo_place& p) { p.height = 200, p.mcu_height = 8, p.mcu_rows = 25, p.marks = {9, 8}; }), 0U);
}

}  // namespace
}  // namespace leat::datasets
