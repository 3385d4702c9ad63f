#include "stages/pixels/picture_format.hpp"

#include "stages/pixels/byte_reading.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace leat {
namespace {

using namespace std::string_view_literals;
using pixels::format;
using pixels::format_of;

pixels::byte_span bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }

TEST(picture_format, is_told_by_the_first_bytes) {
  EXPECT_EQ(format_of(bytes_of("\xFF\xD8\xFF\xE0"sv)), format::jpeg);
  EXPECT_EQ(format_of(bytes_of("\x89PNG\r\n\x1A\n\0\0"sv)), format::png);
  EXPECT_EQ(format_of(bytes_of("RIFF\x24\0\0\0WEBPVP8 "sv)), format::webp);
  EXPECT_EQ(format_of(bytes_of("RIFF\x24\0\0\0WEBPVP8X\x0A\0\0\0\x10\0\0\0"sv)), format::webp);
  EXPECT_EQ(format_of(bytes_of("RIFF\x24\0\0\0WEBPVP8X\x0A\0\0\0\x02\0\0\0"sv)), format::animated_webp);
  EXPECT_EQ(format_of(bytes_of("BM\x36\0\0\0\0\0\0\0\x36\0\0\0\x28\0\0\0"sv)), format::bmp);
  EXPECT_EQ(format_of(bytes_of("GIF89a....."sv)), format::gif);
  EXPECT_EQ(format_of(bytes_of("GIF87a....."sv)), format::gif);
  EXPECT_EQ(format_of(bytes_of("II*\0\x08\0\0\0"sv)), format::tiff);
  EXPECT_EQ(format_of(bytes_of("MM\0*\0\0\0\x08"sv)), format::tiff);
  EXPECT_EQ(format_of(bytes_of("P6\n# made by hand\n3 2\n255\n"sv)), format::netpbm);
  EXPECT_EQ(format_of(bytes_of("P2 3 2 255"sv)), format::netpbm);
  EXPECT_EQ(format_of(bytes_of("\0\0\0\x1C"
                               "ftypavif\0\0\0\0avifmif1miaf"sv)),
            format::avif);
  EXPECT_EQ(format_of(bytes_of("\0\0\0\x1C"
                               "ftypmif1\0\0\0\0mif1avifmiaf"sv)),
            format::avif);
  EXPECT_EQ(format_of(bytes_of("\0\0\0\x18"
                               "ftypheic\0\0\0\0mif1heic"sv)),
            format::heic);
  EXPECT_EQ(format_of(bytes_of("\xFF\x0A\x10\x90"sv)), format::jpeg_xl);
  EXPECT_EQ(format_of(bytes_of("\0\0\0\x0CJXL \r\n\x87\n"sv)), format::jpeg_xl);
  EXPECT_EQ(format_of(bytes_of("\0\0\0\x0CjP  \r\n\x87\n"sv)), format::jpeg_2000);
  EXPECT_EQ(format_of(bytes_of("\xFF\x4F\xFF\x51\0\x29"sv)), format::jpeg_2000);
  EXPECT_EQ(format_of(bytes_of("<?xml version=\"1.0\"?>\n<svg width=\"3\">"sv)), format::svg);
  EXPECT_EQ(format_of(bytes_of("8BPS\0\1"sv)), format::photoshop);
  EXPECT_EQ(format_of(bytes_of("\0\0\1\0\1\0\x10\x10"sv)), format::ico);
}

TEST(picture_format, takes_nothing_for_a_picture_that_only_begins_like_one) {
  EXPECT_EQ(format_of(bytes_of(""sv)), format::unknown);
  EXPECT_EQ(format_of(bytes_of("BM is what this text begins with, and no more"sv)), format::unknown);
  EXPECT_EQ(format_of(bytes_of("P6 is no picture yet"sv).subspan(1)), format::unknown);
  EXPECT_EQ(format_of(bytes_of("RIFF\x24\0\0\0WAVEfmt "sv)), format::unknown);
  EXPECT_EQ(format_of(bytes_of("\0\0\0\x18"
                               "ftypisom\0\0\0\0isomiso2"sv)),
            format::unknown);
  EXPECT_EQ(format_of(bytes_of("<html><body>"sv)), format::unknown);
  // No prefix of anything is read beyond its end (AddressSanitizer looks on).
  for (const std::string_view whole :
       {"\0\0\0\x1C"
        "ftypmif1\0\0\0\0mif1avifmiaf"sv,
        "RIFF\x24\0\0\0WEBPVP8X\x0A\0\0\0\x02"sv, "BM\x36\0\0\0\0\0\0\0\x36\0\0\0\x28\0\0\0"sv, "P6\n"sv, "<svg"sv}) {
    for (std::size_t size = 0; size < whole.size(); ++size) {
      const std::vector<std::byte> part(bytes_of(whole).begin(),
                                        bytes_of(whole).begin() + static_cast<std::ptrdiff_t>(size));
      static_cast<void>(format_of(part));
    }
  }
}

TEST(picture_format, names_what_is_not_read_and_says_what_to_do) {
  const std::string advice = pixels::reads_tiff() ? "; JPEG, PNG, WebP, BMP, GIF and TIFF are read: convert it"
                                                  : "; JPEG, PNG, WebP, BMP and GIF are read: convert it";
  EXPECT_EQ(pixels::why_not_read(bytes_of("8BPS"sv)), "unsupported format: Photoshop" + advice);
  EXPECT_EQ(pixels::why_not_read(bytes_of("what"sv)),
            "unsupported format: none that is known (begins with 77 68 61 74)" + advice);
  if (!pixels::reads_tiff()) {
    EXPECT_EQ(pixels::why_not_read(bytes_of("II*\0\x08\0\0\0"sv)),
              "unsupported format: TIFF, which this leat is built without (LEAT_TIFF): convert it");
  }
  EXPECT_TRUE(pixels::is_read(format::bmp));
  EXPECT_TRUE(pixels::is_read(format::animated_webp));
  EXPECT_EQ(pixels::is_read(format::tiff), pixels::reads_tiff());
  EXPECT_FALSE(pixels::is_read(format::unknown));
  EXPECT_EQ(pixels::media_type(format::webp), "image/webp");
}

}  // namespace
}  // namespace leat
