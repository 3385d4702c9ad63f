#include "tests/pixels/decode_one.hpp"
#include "tests/support/seeds.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <zlib.h>

#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace leat {
namespace {

using stages::outcome_kind;
using ::testing::HasSubstr;
using testing::one_decoder;
using testing::plain_box;
using testing::png_colours;
using testing::png_options;
using testing::rgb_picture;

std::vector<png_options> every_kind() {
  std::vector<png_options> kinds;
  for (const bool interlaced : {false, true}) {
    for (const png_colours colours :
         {png_colours::rgb, png_colours::rgba, png_colours::grey, png_colours::grey_alpha, png_colours::palette}) {
      for (const int depth : {1, 2, 4, 8, 16}) {
        const bool shallow = colours == png_colours::grey || colours == png_colours::palette;
        if ((depth < 8 && !shallow) || (depth == 16 && colours == png_colours::palette)) continue;
        kinds.push_back({.colours = colours, .depth = depth, .interlaced = interlaced});
        const bool has_alpha = colours == png_colours::rgba || colours == png_colours::grey_alpha;
        if (!has_alpha)
          kinds.push_back({.colours = colours, .depth = depth, .interlaced = interlaced, .transparency = true});
      }
    }
  }
  return kinds;
}

std::string text_of(const png_options& o) {
  return "colours " + std::to_string(static_cast<int>(o.colours)) + " depth " + std::to_string(o.depth) +
         (o.interlaced ? " interlaced" : "") + (o.transparency ? " tRNS" : "");
}

TEST(png_reader, becomes_8_bit_rgb_whatever_is_stored) {
  one_decoder one;
  testing::for_each_seed(2, [&](std::uint64_t seed) {
    std::mt19937_64 random(seed);
    const auto between = [&](int from, int to) { return std::uniform_int_distribution<int>(from, to)(random); };
    for (const png_options& options : every_kind()) {
      SCOPED_TRACE(text_of(options));
      const rgb_picture texture = testing::make_texture(random(), between(1, 70), between(1, 70));
      rgb_picture seen;
      const auto encoded = testing::make_png(texture, options, seen);
      ASSERT_NO_FATAL_FAILURE(testing::expect_every_region(one, encoded, seen, random, 4));
    }
  });
}

TEST(png_reader, notices_damage_in_what_it_reads) {
  one_decoder one;
  const rgb_picture texture = testing::make_texture(4, 90, 80);
  rgb_picture seen;
  for (const bool interlaced : {false, true}) {
    const auto whole = testing::make_png(texture, {.interlaced = interlaced}, seen);
    // A flipped bit in the data: a checksum that does not fit, or a stream that makes no sense.
    auto damaged = whole;
    damaged[damaged.size() / 2] ^= std::byte{0x10};
    one.decode(damaged, plain_box(0, 0, 90, 80));
    EXPECT_EQ(one.kind, outcome_kind::corrupt);
    EXPECT_THAT(one.reason, ::testing::StartsWith("PNG: "));

    for (const std::size_t size : {std::size_t{40}, whole.size() / 3, whole.size() - 30}) {
      const std::vector<std::byte> part(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size));
      one.decode(part, plain_box(0, 0, 90, 80));
      EXPECT_EQ(one.kind, outcome_kind::corrupt);
    }
  }
  // A line depends on all before it, and the checksum stands behind the last: the whole file is looked at for any part.
  const auto whole = testing::make_png(texture, {}, seen);
  const std::vector<std::byte> upper(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(whole.size() * 3 / 4));
  one.decode(upper, plain_box(10, 5, 30, 20));
  EXPECT_EQ(one.kind, outcome_kind::corrupt);
}

struct chunk {
  std::string name;
  std::vector<std::byte> content;
};

std::uint32_t big32(const std::vector<std::byte>& from, std::size_t at) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < 4; ++i) value = value << 8 | std::to_integer<std::uint32_t>(from[at + i]);
  return value;
}

void append32(std::vector<std::byte>& to, std::uint32_t value) {
  for (int shift = 24; shift >= 0; shift -= 8) to.push_back(static_cast<std::byte>(value >> shift & 0xFF));
}

std::vector<chunk> chunks_of(const std::vector<std::byte>& png) {
  std::vector<chunk> chunks;
  for (std::size_t at = 8; at < png.size();) {
    const std::size_t length = big32(png, at);
    const auto begin = png.begin() + static_cast<std::ptrdiff_t>(at) + 8;
    chunks.push_back({std::string(reinterpret_cast<const char*>(&png[at + 4]), 4),
                      {begin, begin + static_cast<std::ptrdiff_t>(length)}});
    at += 12 + length;
  }
  return chunks;
}

// With CRCs that are right.
std::vector<std::byte> png_of(const std::vector<chunk>& chunks) {
  std::vector<std::byte> png{std::byte{0x89}, std::byte{'P'},  std::byte{'N'},  std::byte{'G'},
                             std::byte{'\r'}, std::byte{'\n'}, std::byte{0x1A}, std::byte{'\n'}};
  for (const chunk& each : chunks) {
    append32(png, static_cast<std::uint32_t>(each.content.size()));
    const std::size_t name = png.size();
    for (const char letter : each.name) png.push_back(static_cast<std::byte>(letter));
    png.insert(png.end(), each.content.begin(), each.content.end());
    const auto* const from = reinterpret_cast<const Bytef*>(&png[name]);
    append32(png, static_cast<std::uint32_t>(crc32(0, from, static_cast<uInt>(png.size() - name))));
  }
  return png;
}

std::vector<std::byte> deflated(const std::vector<std::byte>& lines) {
  uLongf size = compressBound(lines.size());
  std::vector<std::byte> data(size);
  EXPECT_EQ(compress(reinterpret_cast<Bytef*>(data.data()), &size, reinterpret_cast<const Bytef*>(lines.data()),
                     lines.size()),
            Z_OK);
  data.resize(size);
  return data;
}

// The chunks of a PNG with all of its data in one of them.
std::vector<chunk> merged(const std::vector<std::byte>& png) {
  std::vector<chunk> chunks;
  for (chunk& each : chunks_of(png)) {
    if (each.name == "IDAT" && chunks.back().name == "IDAT") {
      chunks.back().content.insert(chunks.back().content.end(), each.content.begin(), each.content.end());
    } else {
      chunks.push_back(std::move(each));
    }
  }
  return chunks;
}

chunk& data_of(std::vector<chunk>& chunks) {
  for (chunk& each : chunks) {
    if (each.name == "IDAT") return each;
  }
  ADD_FAILURE() << "no IDAT";
  return chunks.front();
}

std::vector<std::byte> header_of(int width, int height, int depth, int colours, bool interlaced) {
  std::vector<std::byte> header;
  append32(header, static_cast<std::uint32_t>(width));
  append32(header, static_cast<std::uint32_t>(height));
  for (const int each : {depth, colours, 0, 0, interlaced ? 1 : 0}) header.push_back(static_cast<std::byte>(each));
  return header;
}

// The crop lies at the top, with most of the data behind it.
TEST(png_reader, delivers_no_pixels_of_a_file_with_a_flipped_bit_in_its_data) {
  one_decoder one;
  testing::for_each_seed(60, [&](std::uint64_t seed) {
    std::mt19937_64 random(seed);
    const auto between = [&](int from, int to) { return std::uniform_int_distribution<int>(from, to)(random); };
    const std::vector<png_options> kinds = every_kind();
    png_options options = kinds[random() % kinds.size()];
    options.filter = between(-1, 4);
    SCOPED_TRACE(text_of(options) + " filter " + std::to_string(options.filter));
    const rgb_picture texture = testing::make_texture(random(), between(4, 60), between(4, 300));
    rgb_picture seen;
    const auto whole = testing::make_png(texture, options, seen);
    const int w = between(1, texture.width);
    const int h = between(1, texture.height / 4);
    const rgb_picture expected = testing::crop(seen, 0, 0, w, h);
    ASSERT_EQ(one.decode(whole, plain_box(0, 0, w, h)), expected);
    ASSERT_EQ(one.reason, "");

    std::size_t data_begin = 0;
    std::size_t data_end = 0;
    std::size_t at = 8;
    for (const chunk& each : chunks_of(whole)) {
      const std::size_t end = at + 12 + each.content.size();
      if (each.name == "IDAT") data_begin = data_begin == 0 ? at : data_begin, data_end = end;
      at = end;
    }
    for (int i = 0; i < 20; ++i) {
      const bool in_data = i % 2 == 0;
      const std::size_t where = in_data ? data_begin + random() % (data_end - data_begin) : random() % whole.size();
      auto damaged = whole;
      damaged[where] ^= static_cast<std::byte>(1U << random() % 8);
      const rgb_picture got = one.decode(damaged, plain_box(0, 0, w, h));
      if (in_data || one.kind != outcome_kind::ok) {
        ASSERT_TRUE(one.kind == outcome_kind::corrupt || (!in_data && one.kind == outcome_kind::unsupported))
            << where << ": " << one.reason;
      } else {
        ASSERT_EQ(got, expected) << where;
      }
    }
  });
}

TEST(png_reader, looks_at_the_checksum_of_the_data_wherever_chunks_begin) {
  one_decoder one;
  const rgb_picture texture = testing::make_texture(4, 40, 30);
  rgb_picture seen;
  for (const bool interlaced : {false, true}) {
    const std::vector<chunk> good = merged(testing::make_png(texture, {.interlaced = interlaced}, seen));
    for (std::size_t last = 0; last < 8; ++last) {  // bytes of the data in a chunk of their own
      for (const bool flipped : {false, true}) {
        std::vector<chunk> chunks;
        for (const chunk& each : good) {
          if (each.name != "IDAT") {
            chunks.push_back(each);
            continue;
          }
          auto data = each.content;
          if (flipped) data.back() ^= std::byte{1};
          const auto cut = data.end() - static_cast<std::ptrdiff_t>(last);
          chunks.push_back({"IDAT", {data.begin(), cut}});
          chunks.push_back({"IDAT", {cut, data.end()}});
          chunks.push_back({"IDAT", {}});
        }
        const rgb_picture got = one.decode(png_of(chunks), plain_box(3, 2, 20, 10));
        if (flipped) {
          EXPECT_EQ(one.reason, "PNG: incorrect data check");
          EXPECT_EQ(one.kind, outcome_kind::corrupt);
        } else {
          EXPECT_EQ(one.reason, "");
          EXPECT_EQ(got, testing::crop(seen, 3, 2, 20, 10));
        }
      }
    }
  }
}

TEST(png_reader, wants_all_of_the_data_and_overlooks_what_changes_no_pixel) {
  one_decoder one;
  const rgb_picture texture = testing::make_texture(4, 40, 30);
  rgb_picture seen;
  const auto whole = testing::make_png(texture, {}, seen);
  const std::vector<chunk> good = merged(whole);
  const auto decode = [&](const std::vector<std::byte>& png) { return one.decode(png, plain_box(0, 0, 20, 10)); };
  const rgb_picture expected = testing::crop(seen, 0, 0, 20, 10);

  // Without the end chunk, or the checksum of the last data chunk, the data's own checksum says that all is there.
  const auto each_cut = [&](const std::vector<std::byte>& png, std::size_t data_end) {
    for (std::size_t size = 33; size < png.size(); ++size) {
      const rgb_picture got = decode({png.begin(), png.begin() + static_cast<std::ptrdiff_t>(size)});
      if (size < data_end) {
        ASSERT_EQ(one.kind, outcome_kind::corrupt) << size;
        ASSERT_THAT(one.reason, HasSubstr("premature end of file")) << size;
      } else {
        ASSERT_EQ(one.reason, "") << size;
        ASSERT_EQ(got, expected) << size;
      }
    }
  };
  constexpr std::size_t crc_bytes = 4;
  constexpr std::size_t end_bytes = 12;
  each_cut(whole, whole.size() - end_bytes - crc_bytes);
  auto longer = whole;
  longer.resize(longer.size() + 100, std::byte{7});
  EXPECT_EQ(decode(longer), expected) << one.reason;

  const auto with = [&](std::size_t before, chunk more) {
    std::vector<chunk> chunks = good;
    chunks.insert(chunks.begin() + static_cast<std::ptrdiff_t>(before), std::move(more));
    return png_of(chunks);
  };
  ASSERT_EQ(good.size(), 3U);  // IHDR, IDAT, IEND
  each_cut(with(2, {"teXt", std::vector<std::byte>(50, std::byte{1})}), whole.size() - end_bytes - crc_bytes);
  each_cut(with(2, {"IDAT", {}}), whole.size() - end_bytes - crc_bytes);
  for (const std::size_t before : {1U, 2U}) {
    auto odd = with(before, {"teXt", std::vector<std::byte>(50, std::byte{1})});
    EXPECT_EQ(decode(odd), expected) << one.reason;
    const std::string text(reinterpret_cast<const char*>(odd.data()), odd.size());
    odd[text.find("teXt") + 20] ^= std::byte{1};
    EXPECT_EQ(decode(odd), expected) << one.reason;
  }
  decode(with(1, {"TEXT", {}}));
  EXPECT_EQ(one.reason, "PNG: TEXT: unhandled critical chunk");
  decode(with(1, {"IHDR", good[0].content}));
  EXPECT_EQ(one.kind, outcome_kind::corrupt);

  // A stream that has every line and no end.
  std::vector<chunk> endless = good;
  std::vector<std::byte>& data = data_of(endless).content;
  for (int i = 0; i < 4; ++i) data.pop_back();
  decode(png_of(endless));
  EXPECT_EQ(one.reason, "PNG: IDAT: not enough image data");
}

// A few writers have a line too many. Nobody has gigabytes of them: 2 GB of zeros are 2 MB of file and 3 s of zlib's time.
TEST(png_reader, inflates_little_behind_the_last_line) {
  one_decoder one;
  for (const bool interlaced : {false, true}) {
    for (const std::size_t behind : {0U, 1U, 50'000U, 65'536U, 65'537U, 20'000'000U}) {
      const std::size_t lines =
          interlaced ? 15 + 20 * 20 : 20 * 21;  // grey: passes of 3 + 3 + 2 + 5 + 5 + 10 + 10 lines
      const std::size_t filters = interlaced ? 23 : 0;
      const std::vector<std::byte> zeros(lines + filters + behind);
      const auto png = png_of({{"IHDR", header_of(20, 20, 8, 0, interlaced)}, {"IDAT", deflated(zeros)}, {"IEND", {}}});
      one.decode(png, plain_box(0, 0, 5, 5));
      if (behind <= 65'536) {
        EXPECT_EQ(one.reason, "") << behind;
      } else {
        EXPECT_EQ(one.kind, outcome_kind::corrupt);
        EXPECT_EQ(one.reason, "PNG: IDAT: more than 64 KiB of data behind the last line");
      }
    }
  }
}

// Whatever the budget: 57 bytes cannot be 12,000 x 12,000 pixels, nor more than pixels_max.
TEST(png_reader, calls_a_file_too_short_for_its_picture_corrupt) {
  pixels::scratch_budget budget(std::size_t{8} << 20, std::size_t{32} << 20);
  pixels::picture_decoder decoder(budget);
  const auto how = pixels::store::from(dtype::u8, layout::nhwc, std::nullopt);
  std::vector<std::byte> row(how.row_bytes(4, 4));
  const auto kind_of = [&](const std::vector<std::byte>& png) {
    const auto result = decoder.decode(png, plain_box(0, 0, 4, 4), how, {}, row.data(), nullptr);
    if (!result) EXPECT_THAT(result.reason(), ::testing::StartsWith("PNG: ")) << result.reason();
    return result.kind();
  };
  for (const bool interlaced : {false, true}) {
    for (const int side : {12'000, 60'000}) {
      const auto tiny = png_of({{"IHDR", header_of(side, side, 8, 2, interlaced)}, {"IDAT", {}}, {"IEND", {}}});
      ASSERT_EQ(tiny.size(), 57U);
      EXPECT_EQ(kind_of(tiny), outcome_kind::corrupt) << side;
    }
    // The bound holds for what deflate can do best.
    const auto flat = [&](int side) {
      const std::size_t size = static_cast<std::size_t>(side) * static_cast<std::size_t>(side) * 3;
      std::vector<std::byte> zeros(size + static_cast<std::size_t>(side) * (interlaced ? 2 : 1));
      return png_of({{"IHDR", header_of(side, side, 8, 2, interlaced)}, {"IDAT", deflated(zeros)}, {"IEND", {}}});
    };
    EXPECT_EQ(kind_of(flat(1024)), outcome_kind::ok);
  }
}

}  // namespace
}  // namespace leat
