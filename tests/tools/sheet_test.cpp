#include "tools/sheet.hpp"

#include "stages/pixels/store.hpp"
#include "tools/pixels_back.hpp"

#include <leat/error.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <png.h>

#include <cstring>
#include <string>
#include <vector>

namespace leat::tools {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

rgb_picture plain(std::uint32_t width, std::uint32_t height, std::uint8_t level) {
  return {width, height, std::vector<std::uint8_t>(std::size_t{3} * width * height, level)};
}

rgb_picture read_png(const std::vector<std::byte>& file) {
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  rgb_picture picture;
  if (png_image_begin_read_from_memory(&image, file.data(), file.size()) == 0) return picture;
  image.format = PNG_FORMAT_RGB;
  picture = {image.width, image.height, std::vector<std::uint8_t>(PNG_IMAGE_SIZE(image))};
  png_image_finish_read(&image, nullptr, picture.rgb.data(), 0, nullptr);
  return picture;
}

TEST(sheet, text_is_escaped_and_bad_utf8_replaced) {
  EXPECT_EQ(html_text("<a href=\"x\">'&'</a>"), "&lt;a href=&quot;x&quot;&gt;&#39;&amp;&#39;&lt;/a&gt;");
  EXPECT_EQ(html_text("größe"), "größe");
  EXPECT_EQ(html_text("a\xff\x80z"), "a\xEF\xBF\xBD\xEF\xBF\xBDz");
  EXPECT_EQ(html_text("cut \xE2\x82"), "cut \xEF\xBF\xBD\xEF\xBF\xBD");
}

TEST(sheet, a_page_needs_nothing_beside_it_and_lets_no_name_out_of_its_text) {
  sheet shown{.title = "photos</title><script>", .facts = {"a & b"}, .cells = {}};
  sheet_cell cell;
  cell.name = "<img src=x onerror=alert(1)>.jpg";
  cell.label = "\"quoted\"";
  cell.seen = plain(4, 4, 200);
  cell.texts = {{"txt", "</figure><script>"}};
  shown.cells.push_back(cell);
  const std::string page = sheet_html(shown);
  EXPECT_THAT(page, Not(HasSubstr("<script")));
  EXPECT_THAT(page, Not(HasSubstr("onerror=alert(1)>.jpg<\"")));
  EXPECT_THAT(page, HasSubstr("&lt;img src=x onerror=alert(1)&gt;.jpg"));
  EXPECT_THAT(page, HasSubstr("data:image/png;base64,"));
  EXPECT_THAT(page, Not(HasSubstr("http")));
}

TEST(sheet, a_page_of_damaged_files_is_no_larger_than_another) {
  sheet shown{.title = "damaged", .facts = {}, .cells = {}};
  for (int i = 0; i < 64; ++i) {
    sheet_cell cell;
    cell.name = std::to_string(i);
    cell.problem = "cannot be decoded";
    cell.original = {
        .file = std::vector<std::byte>(300 << 10, std::byte{7}), .media_type = "image/png", .width = 9, .height = 9};
    shown.cells.push_back(cell);
  }
  EXPECT_LE(sheet_html(shown).size(), page_bytes_max);
  // A few are shown.
  shown.cells.resize(3);
  EXPECT_THAT(sheet_html(shown), HasSubstr("data:image/png;base64,"));
}

TEST(sheet, the_box_is_drawn_where_the_crop_was) {
  sheet_cell cell;
  cell.seen = plain(4, 4, 0);
  cell.original = {.file = {std::byte{1}}, .media_type = "image/jpeg", .width = 500, .height = 400};
  cell.box = crop_box{.x = 12, .y = 34, .width = 100.5, .height = 80};
  cell.flipped = true;
  cell.decimation = 2;
  const std::string page = sheet_html({.title = "t", .facts = {}, .cells = {cell}});
  EXPECT_THAT(page, HasSubstr("viewBox=\"0 0 500 400\""));
  EXPECT_THAT(page, HasSubstr("class=\"box\" d=\"M12 34h100.5v80h-100.5z\""));
  EXPECT_THAT(page, HasSubstr(">flipped<"));
  EXPECT_THAT(page, HasSubstr("decoded at 1/2"));
}

TEST(sheet, a_missing_picture_says_why) {
  sheet_cell cell;
  cell.problem = "cut after 12 bytes";
  EXPECT_THAT(sheet_html({.title = "t", .facts = {}, .cells = {cell}}), HasSubstr(">cut after 12 bytes<"));
}

TEST(sheet, a_grid_has_each_picture_in_its_place) {
  sheet shown;
  for (std::uint8_t level = 10; level <= 50; level = static_cast<std::uint8_t>(level + 10)) {
    sheet_cell cell;
    cell.seen = plain(6, 5, level);
    shown.cells.push_back(cell);
  }
  shown.cells[3].seen.reset();
  const rgb_picture grid = read_png(sheet_png(shown));
  ASSERT_EQ(grid.width, 3 * (6 + 4) + 4U);
  ASSERT_EQ(grid.height, 2 * (5 + 4) + 4U);
  const auto level_at = [&](std::uint32_t x, std::uint32_t y) {
    return grid.rgb[(std::size_t{y} * grid.width + x) * 3];
  };
  EXPECT_EQ(level_at(4, 4), 10);
  EXPECT_EQ(level_at(14 + 5, 4 + 4), 20);
  EXPECT_EQ(level_at(24, 4), 30);
  EXPECT_EQ(level_at(14, 13), 50);
  EXPECT_NE(level_at(7, 15), 40);
}

TEST(sheet, a_grid_without_any_picture_is_refused) {
  sheet shown;
  shown.cells.emplace_back();
  EXPECT_THROW(static_cast<void>(sheet_png(shown)), error);
}

// Every level of every channel, through the store and back.
void expect_back(dtype type, layout order, bool normalised, int tolerance) {
  image field("jpg");
  if (normalised) field = field.normalize(imagenet);
  field = field.as(type).as(order);
  const auto how = pixels::store::from(type, order, field.get().statistics);
  constexpr int width = 256;
  constexpr int height = 2;
  std::vector<std::byte> row(how.row_bytes(height, width));
  std::vector<std::uint8_t> line(3 * width);
  const auto level = [](int x, int channel, int y) { return static_cast<std::uint8_t>(x + 31 * channel + 7 * y); };
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      for (int channel = 0; channel < 3; ++channel) {
        const int at = order == layout::nchw ? channel * width + x : x * 3 + channel;
        line[static_cast<std::size_t>(at)] = level(x, channel, y);
      }
    }
    pixels::store_line(how, how.order, line.data(), y, height, width, row.data());
  }
  const dimensions shape = order == layout::nchw ? dimensions{3, height, width} : dimensions{height, width, 3};
  const rgb_picture back = pixels_back(field.get(), shape, row);
  ASSERT_EQ(back.width, 256U);
  ASSERT_EQ(back.height, 2U);
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      for (int channel = 0; channel < 3; ++channel) {
        const int got = back.rgb[static_cast<std::size_t>((y * width + x) * 3 + channel)];
        ASSERT_NEAR(got, level(x, channel, y), tolerance)
            << name(type) << " at " << x << ", " << y << ", channel " << channel;
      }
    }
  }
}

TEST(pixels_back, gives_u8_and_f32_back_exactly_in_both_layouts) {
  for (const layout order : {layout::nchw, layout::nhwc}) {
    expect_back(dtype::u8, order, false, 0);
    expect_back(dtype::f32, order, false, 0);
    expect_back(dtype::f32, order, true, 0);
  }
}

TEST(pixels_back, gives_halves_back_to_the_level_they_kept) {
  for (const layout order : {layout::nchw, layout::nhwc}) {
    expect_back(dtype::f16, order, true, 0);
    expect_back(dtype::bf16, order, true, 1);
  }
}

}  // namespace
}  // namespace leat::tools
