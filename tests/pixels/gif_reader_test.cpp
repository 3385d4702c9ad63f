#include "stages/pixels/gif_reader.hpp"

#include "stages/pixels/gif_headers.hpp"
#include "tests/pixels/decode_one.hpp"
#include "tests/support/seeds.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <utility>
#include <vector>

namespace leat {
namespace {

using stages::outcome_kind;
using ::testing::HasSubstr;
using testing::one_decoder;
using testing::plain_box;
using testing::rgb_picture;
using bytes = std::vector<std::byte>;

struct gif_options {
  int width = 0;  // of the screen
  int height = 0;
  pixels::rectangle frame = {};
  int bits = 4;
  bool interlaced = false;
  int transparent = -1;
  bool own_palette = false;
  int clear_every = 0;  // codes; 0: when the table is full, -1: never again
  bool frames_behind = false;
};

class gif_writer {
 public:
  void put(unsigned value, int count = 1) {
    for (int i = 0; i < count; ++i) out.push_back(static_cast<std::byte>(value >> (8 * i) & 0xFF));
  }
  void put_text(const char* text) {
    for (; *text != '\0'; ++text) put(static_cast<unsigned char>(*text));
  }
  void put_palette(int bits, unsigned salt) {
    for (unsigned i = 0; i < 1U << bits; ++i) {
      for (unsigned c = 0; c < 3; ++c) put((i * 37 + c * 91 + salt) % 256);
    }
  }
  // LZW as everybody writes it: the longest known string, and one more that becomes known.
  void put_data(const std::vector<std::uint8_t>& values, int bits, int clear_every) {
    put(static_cast<unsigned>(bits));
    const unsigned clear = 1U << bits;
    std::map<std::pair<unsigned, unsigned>, unsigned> known;
    int size = bits + 1;
    unsigned next = clear + 2;
    unsigned held = 0;
    int held_bits = 0;
    bytes data;
    const auto code = [&](unsigned value) {
      held |= value << held_bits;
      for (held_bits += size; held_bits >= 8; held_bits -= 8, held >>= 8)
        data.push_back(static_cast<std::byte>(held & 0xFF));
    };
    const auto begin = [&] {
      code(clear);
      known.clear();
      size = bits + 1;
      next = clear + 2;
    };
    begin();
    unsigned before = values.front();
    int codes = 0;
    for (std::size_t i = 1; i < values.size(); ++i) {
      const auto found = known.find({before, values[i]});
      if (found != known.end()) {
        before = found->second;
        continue;
      }
      code(before);
      if (next < 4096) {
        known[{before, values[i]}] = next++;
        if (next == (1U << size) + 1 && size < 12) ++size;
      }
      before = values[i];
      const bool is_full = next == 4096 && clear_every == 0;
      if (is_full || (clear_every > 0 && ++codes % clear_every == 0)) begin();
    }
    code(before);
    if (next == 1U << size && size < 12) ++size;
    code(clear + 1);
    if (held_bits > 0) data.push_back(static_cast<std::byte>(held & 0xFF));
    for (std::size_t at = 0; at < data.size(); at += 255) {
      const std::size_t some = std::min<std::size_t>(255, data.size() - at);
      put(static_cast<unsigned>(some));
      out.insert(out.end(), data.begin() + static_cast<std::ptrdiff_t>(at),
                 data.begin() + static_cast<std::ptrdiff_t>(at + some));
    }
    put(0);
  }

  bytes out;
};

// `seen` is what Pillow's convert("RGB") shows of it; `over` what is seen over `behind`.
bytes make_gif(std::uint64_t seed, const gif_options& how, rgb_picture& seen, const pixels::rgb_colour& behind,
               rgb_picture& over) {
  std::mt19937_64 random(seed);
  std::vector<std::uint8_t> values(static_cast<std::size_t>(how.frame.width * how.frame.height));
  // Runs: strings that come again.
  std::uint8_t value = 0;
  for (std::uint8_t& each : values) {
    if (random() % 3 == 0) value = static_cast<std::uint8_t>(random() % (1U << how.bits));
    each = value;
  }
  gif_writer to;
  to.put_text("GIF89a");
  to.put(static_cast<unsigned>(how.width), 2);
  to.put(static_cast<unsigned>(how.height), 2);
  to.put(0x80U | static_cast<unsigned>(how.bits - 1), 1);
  to.put(3, 2);
  to.put_palette(how.bits, 5);
  to.put_text("!\xFE\x03one");  // a comment
  to.put(0);
  to.put_text("!\xF9\x04");
  to.put(how.transparent < 0 ? 0 : 1);
  to.put(7, 2);
  to.put(how.transparent < 0 ? 0 : static_cast<unsigned>(how.transparent), 2);
  to.put_text(",");
  for (const int each : {how.frame.x, how.frame.y, how.frame.width, how.frame.height})
    to.put(static_cast<unsigned>(each), 2);
  to.put((how.interlaced ? 0x40U : 0U) | (how.own_palette ? 0x80U | static_cast<unsigned>(how.bits - 1) : 0U));
  const unsigned salt = how.own_palette ? 111 : 5;
  if (how.own_palette) to.put_palette(how.bits, salt);
  std::vector<std::uint8_t> stored = values;
  if (how.interlaced) {
    auto at = stored.begin();
    for (const auto& [first, step] : {std::pair{0, 8}, {4, 8}, {2, 4}, {1, 2}}) {
      for (int y = first; y < how.frame.height; y += step) {
        at = std::copy_n(values.begin() + static_cast<std::ptrdiff_t>(y) * how.frame.width, how.frame.width, at);
      }
    }
  }
  to.put_data(stored, std::max(how.bits, 2), how.clear_every);
  if (how.frames_behind) to.put_text(",and whatever comes");
  to.put_text(";");

  over = seen = {how.width, how.height, {}};
  for (int y = 0; y < how.height; ++y) {
    for (int x = 0; x < how.width; ++x) {
      const int fx = x - how.frame.x, fy = y - how.frame.y;
      const bool inside = fx >= 0 && fy >= 0 && fx < how.frame.width && fy < how.frame.height;
      const unsigned colour = inside ? values[static_cast<std::size_t>(fy * how.frame.width + fx)]
                                     : static_cast<unsigned>(std::max(how.transparent, 0));
      const bool is_transparent = how.transparent >= 0 && colour == static_cast<unsigned>(how.transparent);
      for (unsigned c = 0; c < 3; ++c) {
        seen.pixels.push_back(static_cast<std::uint8_t>((colour * 37 + c * 91 + salt) % 256));
        over.pixels.push_back(is_transparent ? behind[c] : seen.pixels.back());
      }
    }
  }
  return to.out;
}

bytes make_gif(std::uint64_t seed, const gif_options& how, rgb_picture& seen) {
  rgb_picture over;
  return make_gif(seed, how, seen, {}, over);
}

TEST(gif_reader, gives_each_region_of_the_first_frame) {
  one_decoder one;
  testing::for_each_seed(30, [&](std::uint64_t seed) {
    std::mt19937_64 random(seed);
    const auto between = [&](int from, int to) { return std::uniform_int_distribution<int>(from, to)(random); };
    gif_options how{.width = between(1, 120), .height = between(1, 120)};
    how.frame = {0, 0, how.width, how.height};
    if (between(0, 2) == 0) {
      how.frame = {between(0, how.width - 1), between(0, how.height - 1), 0, 0};
      how.frame.width = between(1, how.width - how.frame.x);
      how.frame.height = between(1, how.height - how.frame.y);
    }
    how.bits = between(1, 8);
    how.interlaced = between(0, 1) == 1;
    how.transparent = between(0, 2) == 0 ? between(0, (1 << how.bits) - 1) : -1;
    how.own_palette = between(0, 1) == 1;
    how.clear_every = between(-1, 1) * between(1, 300);
    how.frames_behind = between(0, 1) == 1;
    const pixels::rgb_colour behind{200, 7, 90};
    rgb_picture seen, over;
    const bytes encoded = make_gif(seed, how, seen, behind, over);
    testing::expect_every_region(one, encoded, seen, random, 6);
    testing::expect_every_region(one, encoded, over, random, 3, {.background = behind});
  });
}

TEST(gif_reader, gives_large_pictures_whose_table_is_full) {
  one_decoder one;
  for (const int clear_every : {-1, 0}) {
    gif_options how{.width = 400, .height = 300, .frame = {0, 0, 400, 300}, .bits = 8, .clear_every = clear_every};
    rgb_picture seen;
    const bytes encoded = make_gif(3, how, seen);
    EXPECT_EQ(one.decode(encoded, plain_box(0, 0, 400, 300)), seen) << one.reason;
  }
}

TEST(gif_reader, calls_what_is_cut_or_damaged_corrupt_whatever_the_crop) {
  one_decoder one;
  rgb_picture seen;
  const bytes whole = make_gif(1, {.width = 60, .height = 50, .frame = {0, 0, 60, 50}}, seen);
  for (std::size_t size = 6; size + 4 < whole.size(); size += 1 + size / 20) {
    one.decode(bytes(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size)), plain_box(0, 0, 1, 1));
    ASSERT_EQ(one.kind, outcome_kind::corrupt) << size;
  }
  EXPECT_THAT(one.reason, HasSubstr("GIF: premature end"));
}

TEST(gif_reader, refuses_a_frame_that_its_bytes_cannot_hold) {
  one_decoder one;
  rgb_picture seen;
  bytes claims = make_gif(1, {.width = 60, .height = 50, .frame = {0, 0, 60, 50}}, seen);
  for (std::size_t i = 0; i + 9 < claims.size(); ++i) {
    if (claims[i] != std::byte{','} || claims[i + 5] != std::byte{60} || claims[i + 7] != std::byte{50}) continue;
    claims[i + 6] = claims[i + 8] = std::byte{0x20};
  }
  one.decode(claims, plain_box(0, 0, 1, 1));
  EXPECT_EQ(one.kind, outcome_kind::corrupt);
  EXPECT_THAT(one.reason, HasSubstr("too short for its frame"));
  EXPECT_LT(one.budget.peak(), std::size_t{1} << 20);
}

}  // namespace
}  // namespace leat
