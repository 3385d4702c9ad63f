#include "stages/pixels/picture_info.hpp"

#include "tests/support/make_bmp.hpp"
#include "tests/support/make_picture.hpp"
#include "tests/support/make_webp.hpp"
#include "tests/support/seeds.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <zlib.h>

#include <algorithm>
#include <cstddef>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace leat {
namespace {

using pixels::peek;
using stages::outcome_kind;
using ::testing::HasSubstr;
using testing::jpeg_colours;
using testing::png_colours;
using testing::rgb_picture;

std::vector<std::byte> bytes_of(std::string_view text) {
  std::vector<std::byte> out;
  for (const char letter : text) out.push_back(static_cast<std::byte>(letter));
  return out;
}

TEST(picture_info, tells_what_the_headers_say) {
  const testing::rgb_picture texture = testing::make_texture(1, 37, 21);
  const auto jpeg = peek(testing::make_jpeg(texture, {}));
  ASSERT_TRUE(jpeg);
  EXPECT_EQ(jpeg->what, pixels::format::jpeg);
  EXPECT_EQ(jpeg->width, 37);
  EXPECT_EQ(jpeg->height, 21);
  EXPECT_EQ(jpeg->channels, 3);
  EXPECT_EQ(jpeg->orientation, 1);
  EXPECT_FALSE(jpeg->progressive);
  EXPECT_TRUE(peek(testing::make_jpeg(texture, {.progressive = true}))->progressive);
  EXPECT_EQ(peek(testing::make_jpeg(texture, {.colours = jpeg_colours::grey, .h = 1, .v = 1}))->channels, 1);
  EXPECT_EQ(peek(testing::make_jpeg(texture, {.colours = jpeg_colours::ycck}))->channels, 4);

  testing::rgb_picture seen;
  const auto png = peek(testing::make_png(texture, {.colours = png_colours::rgba, .interlaced = true}, seen));
  ASSERT_TRUE(png);
  EXPECT_EQ(png->what, pixels::format::png);
  EXPECT_EQ(png->width, 37);
  EXPECT_EQ(png->height, 21);
  EXPECT_EQ(png->channels, 4);
  EXPECT_TRUE(png->progressive);
}

TEST(picture_info, finds_the_orientation_in_either_byte_order) {
  const testing::rgb_picture texture = testing::make_texture(1, 16, 16);
  testing::rgb_picture seen;
  for (int orientation = 1; orientation <= 8; ++orientation) {
    EXPECT_EQ(peek(testing::make_jpeg(texture, {.orientation = orientation}))->orientation, orientation);
    EXPECT_EQ(
        peek(testing::make_jpeg(texture, {.orientation = orientation, .orientation_big_endian = true}))->orientation,
        orientation);
    EXPECT_EQ(peek(testing::make_png(texture, {.orientation = orientation}, seen))->orientation, orientation);
  }
  EXPECT_EQ(peek(testing::make_jpeg(texture, {.orientation = 9}))->orientation, 1);
}

// A text chunk before the data of a PNG. Checksums are not looked at by peek().
std::vector<std::byte> with_chunk(const std::vector<std::byte>& png, std::string_view type, std::string_view content,
                                  bool at_the_end = false) {
  std::vector<std::byte> chunk;
  for (int shift = 24; shift >= 0; shift -= 8) chunk.push_back(static_cast<std::byte>(content.size() >> shift & 0xFF));
  for (const std::string_view text : {type, content, std::string_view("crc!")}) {
    for (const char letter : text) chunk.push_back(static_cast<std::byte>(letter));
  }
  std::vector<std::byte> out = png;
  const std::ptrdiff_t at = at_the_end ? static_cast<std::ptrdiff_t>(out.size()) - 12 : 33;
  out.insert(out.begin() + at, chunk.begin(), chunk.end());
  return out;
}

std::string deflated(std::string_view text) {
  uLongf size = compressBound(text.size());
  std::string out(size, '\0');
  compress(reinterpret_cast<Bytef*>(out.data()), &size, reinterpret_cast<const Bytef*>(text.data()), text.size());
  out.resize(size);
  return out;
}

TEST(picture_info, finds_the_orientation_where_pillow_does) {
  using namespace std::string_literals;
  rgb_picture seen;
  const rgb_picture texture = testing::make_texture(1, 16, 16);
  const auto png = testing::make_png(texture, {}, seen);
  const std::string tiff = "\nexif\n      34\n4d4d002a000000080001011200030000\n00010006000000000000\n"s;
  const std::string with_prefix =
      "\nexif\n      40\n4578696600004d4d002a000000080001011200030000\n00010007000000000000\n"s;
  EXPECT_EQ(peek(with_chunk(png, "tEXt", "Raw profile type exif\0"s + tiff))->orientation, 6);
  EXPECT_EQ(peek(with_chunk(png, "zTXt", "Raw profile type exif\0\0"s + deflated(tiff)))->orientation, 6);
  EXPECT_EQ(peek(with_chunk(png, "zTXt", "Raw profile type APP1\0\0"s + deflated(with_prefix)))->orientation, 7);
  EXPECT_EQ(peek(with_chunk(png, "tEXt", "Comment\0"s + tiff))->orientation, 1);

  const std::string attribute = "<x:xmpmeta><rdf:Description tiff:Orientation=\"5\"/></x:xmpmeta>";
  const std::string element = "<rdf:Description><tiff:Orientation>8</tiff:Orientation></rdf:Description>";
  EXPECT_EQ(peek(with_chunk(png, "iTXt", "XML:com.adobe.xmp\0\0\0\0\0"s + attribute))->orientation, 5);
  EXPECT_EQ(peek(with_chunk(png, "iTXt", "XML:com.adobe.xmp\0\1\0en\0t\0"s + deflated(element)))->orientation, 8);
  // EXIF comes first, also behind the data, and also where it says nonsense.
  const auto both = with_chunk(png, "iTXt", "XML:com.adobe.xmp\0\0\0\0\0"s + attribute);
  const std::string exif = "MM\0*\0\0\0\x08\0\1\1\x12\0\3\0\0\0\1\0\3\0\0\0\0\0\0"s;
  EXPECT_EQ(peek(with_chunk(both, "eXIf", exif, true))->orientation, 3);
  std::string nonsense = exif;
  nonsense[19] = 9;
  EXPECT_EQ(peek(with_chunk(both, "eXIf", nonsense))->orientation, 1);
  // A text that would unpack to gigabytes is left alone, and so is one that is damaged.
  EXPECT_EQ(
      peek(with_chunk(png, "zTXt", "Raw profile type exif\0\0"s + deflated(std::string(1 << 22, '0'))))->orientation,
      1);
  EXPECT_EQ(peek(with_chunk(png, "zTXt", "Raw profile type exif\0\0nothing"s))->orientation, 1);

  for (int orientation = 1; orientation <= 8; ++orientation) {
    EXPECT_EQ(peek(testing::make_webp(texture, {.orientation = orientation}, seen))->orientation, orientation);
  }
  EXPECT_EQ(peek(testing::make_webp(texture, {.lossless = true, .xmp = attribute}, seen))->orientation, 5);
  EXPECT_EQ(peek(testing::make_webp(texture, {.orientation = 2, .xmp = attribute}, seen))->orientation, 2);

  auto jpeg = testing::make_jpeg(texture, {});
  const std::string app1 = "http://ns.adobe.com/xap/1.0/\0"s + element;
  std::string segment =
      "\xFF\xE1"s + static_cast<char>((app1.size() + 2) >> 8) + static_cast<char>((app1.size() + 2) & 0xFF);
  segment += app1;
  const auto inserted = bytes_of(segment);
  jpeg.insert(jpeg.begin() + 2, inserted.begin(), inserted.end());
  EXPECT_EQ(peek(jpeg)->orientation, 8);
  EXPECT_EQ(peek(jpeg, pixels::look_for::size)->orientation, 1) << "nobody asked";
}

// A JPEG with a segment in front of the frame header, or behind it.
std::vector<std::byte> with_app1(std::vector<std::byte> jpeg, const std::string& content, bool behind_frame) {
  const std::size_t length = content.size() + 2;
  std::vector<std::byte> segment = {std::byte{0xFF}, std::byte{0xE1}, static_cast<std::byte>(length >> 8),
                                    static_cast<std::byte>(length & 0xFF)};
  for (const std::byte each : bytes_of(content)) segment.push_back(each);
  std::size_t at = 2;
  while (behind_frame && jpeg[at + 1] != std::byte{0xDA}) {
    at += 2 + std::to_integer<std::size_t>(jpeg[at + 2]) * 256 + std::to_integer<std::size_t>(jpeg[at + 3]);
  }
  jpeg.insert(jpeg.begin() + static_cast<std::ptrdiff_t>(at), segment.begin(), segment.end());
  return jpeg;
}

std::string exif_of(char type, char value) {
  using namespace std::string_literals;
  const std::string shown = type == 4 || type == 9   ? "\0\0\0"s + value
                            : type == 3 || type == 8 ? "\0"s + value + "\0\0"s
                                                     : value + "\0\0\0"s;
  return "Exif\0\0MM\0*\0\0\0\x08\0\1\1\x12\0"s + type + "\0\0\0\1"s + shown + "\0\0\0\0"s;
}

TEST(picture_info, finds_the_orientation_of_a_jpeg_behind_its_frame_header_and_in_any_integer_type) {
  const auto jpeg = testing::make_jpeg(testing::make_texture(1, 16, 16), {});
  for (const bool behind_frame : {false, true}) {
    for (const char type : {'\1', '\3', '\4', '\6', '\10', '\11'}) {
      EXPECT_EQ(peek(with_app1(jpeg, exif_of(type, '\6'), behind_frame))->orientation, 6) << int{type};
      EXPECT_EQ(peek(with_app1(jpeg, exif_of(type, '\377'), behind_frame))->orientation, 1) << int{type};
    }
    EXPECT_EQ(peek(with_app1(jpeg, exif_of('\5', '\6'), behind_frame))->orientation, 1) << "no integer";
    // Damage behind the frame header is for the decoder to find.
    auto cut = with_app1(jpeg, exif_of('\3', '\6'), behind_frame);
    cut.resize(cut.size() / 2);
    EXPECT_TRUE(peek(cut));
  }
  // The first EXIF counts, and the last XMP.
  auto both = with_app1(with_app1(jpeg, exif_of('\3', '\5'), true), exif_of('\3', '\7'), false);
  EXPECT_EQ(peek(both)->orientation, 7);
  using namespace std::string_literals;
  const auto xmp = [](const char* value) {
    return "http://ns.adobe.com/xap/1.0/\0<x tiff:Orientation=\""s + value + "\"/>";
  };
  both = with_app1(with_app1(jpeg, xmp("3"), true), xmp("8"), false);
  EXPECT_EQ(peek(both)->orientation, 3);
}

TEST(picture_info, names_what_it_cannot_read) {
  EXPECT_THAT(peek({}).reason(), HasSubstr("zero bytes"));
  EXPECT_EQ(peek({}).kind(), outcome_kind::corrupt);
  const auto other = peek(bytes_of("8BPS....."));
  EXPECT_EQ(other.kind(), outcome_kind::unsupported);
  EXPECT_THAT(other.reason(), ::testing::StartsWith("unsupported format: Photoshop; JPEG, PNG, WebP, BMP"));
  EXPECT_THAT(peek(bytes_of("x")).reason(), HasSubstr("begins with 78"));
  EXPECT_EQ(peek(bytes_of("\xFF\xD8")).kind(), outcome_kind::corrupt);
  EXPECT_EQ(peek(bytes_of("\x89PNG\r\n\x1A\n")).kind(), outcome_kind::corrupt);

  auto lossless = testing::make_jpeg(testing::make_texture(1, 16, 16), {});
  for (std::size_t i = 0; i + 1 < lossless.size(); ++i) {
    if (lossless[i] == std::byte{0xFF} && lossless[i + 1] == std::byte{0xC0}) {
      lossless[i + 1] = std::byte{0xC3};
      break;
    }
  }
  EXPECT_EQ(peek(lossless).kind(), outcome_kind::unsupported);
  EXPECT_THAT(peek(lossless).reason(), HasSubstr("SOF3"));
}

TEST(picture_info, tells_the_size_by_the_beginning_as_by_the_whole) {
  testing::rgb_picture seen;
  const testing::rgb_picture texture = testing::make_texture(1, 137, 121);
  const std::vector<std::byte> pictures[] = {
      testing::make_jpeg(texture, {.orientation = 6}),
      testing::make_jpeg(texture, {.progressive = true}),
      testing::make_png(texture, {.colours = png_colours::rgba, .interlaced = true}, seen),
      testing::make_webp(texture, {}, seen),
      testing::make_webp(texture, {.orientation = 3}, seen),
      testing::make_webp(texture, {.lossless = true}, seen),
      testing::make_webp(texture, {.lossless = true, .orientation = 3}, seen),
      testing::make_bmp(texture, {}, seen)};
  for (const auto& whole : pictures) {
    const auto all = peek(whole, pixels::look_for::size);
    ASSERT_TRUE(all) << all.reason();
    const auto begin =
        peek(std::span(whole).first(std::min<std::size_t>(whole.size(), 1024)), pixels::look_for::begin_size);
    ASSERT_TRUE(begin) << begin.reason();
    EXPECT_EQ(begin->what, all->what);
    EXPECT_EQ(begin->width, 137);
    EXPECT_EQ(begin->height, 121);
    // Of fewer bytes it says the same, or that they do not tell.
    for (std::size_t size = 1; size < std::min<std::size_t>(whole.size(), 700); ++size) {
      const std::vector<std::byte> part(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size));
      const auto info = peek(part, pixels::look_for::begin_size);
      if (info) EXPECT_EQ(std::pair(info->width, info->height), std::pair(137, 121)) << size;
    }
  }
}

// Every prefix and a good many damaged headers: an answer, and AddressSanitizer silent.
TEST(picture_info, never_reads_past_the_end) {
  testing::rgb_picture seen;
  const testing::rgb_picture texture = testing::make_texture(1, 24, 24);
  const std::vector<std::byte> pictures[] = {
      testing::make_jpeg(texture, {.orientation = 6}),
      testing::make_png(texture, {.colours = png_colours::palette, .orientation = 3}, seen),
      testing::make_webp(texture, {.orientation = 3, .xmp = "tiff:Orientation=\"4\""}, seen),
      testing::make_webp(testing::make_texture(1, 24, 24), {.lossless = true, .orientation = 3}, seen),
      testing::make_bmp(texture, {}, seen)};
  for (const auto& whole : pictures) {
    for (std::size_t size = 0; size < std::min<std::size_t>(whole.size(), 700); ++size) {
      const std::vector<std::byte> part(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size));
      const auto info = peek(part);
      if (info) EXPECT_EQ(info->width, 24);
    }
    testing::for_each_seed(400, [&](std::uint64_t seed) {
      std::mt19937_64 random(seed);
      std::vector<std::byte> damaged(whole.begin(), whole.begin() + 200);
      for (int i = 0; i < 3; ++i) damaged[random() % damaged.size()] = static_cast<std::byte>(random());
      const auto begin = peek(damaged, pixels::look_for::begin_size);
      if (begin) EXPECT_TRUE(begin->width >= 1 && begin->height >= 1);
      const auto info = peek(damaged);
      if (info) {
        EXPECT_GE(info->width, 1);
        EXPECT_GE(info->height, 1);
        EXPECT_GE(info->orientation, 1);
        EXPECT_LE(info->orientation, 8);
      } else {
        EXPECT_NE(info.reason(), "");
      }
    });
  }
}

}  // namespace
}  // namespace leat
