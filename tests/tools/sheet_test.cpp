#include "tools/sheet.hpp"

#include "stages/pixels/store.hpp"
#include "tools/array_picture.hpp"
#include "tools/pixels_back.hpp"
#include "tools/row_text.hpp"

#include <leat/error.hpp>
#include <leat/own_samples.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <png.h>

#include <cstring>
#include <limits>
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

// As wide as the place allows, or as the 170 pixels of its height do: the ratio is the picture's in any window.
TEST(sheet, an_original_keeps_its_shape_at_any_width) {
  sheet_cell cell;
  cell.original = {.file = {std::byte{1}}, .media_type = "image/jpeg", .width = 500, .height = 400};
  const std::string page = sheet_html({.title = "t", .facts = {}, .cells = {cell}});
  EXPECT_THAT(page, HasSubstr("class=\"frame\" style=\"--w:500;--h:400\""));
  EXPECT_THAT(page, HasSubstr(".frame { position: relative; width: min(100%, calc(170px * var(--w) / var(--h))); "
                              "aspect-ratio: var(--w) / var(--h) }"));
  EXPECT_THAT(page, Not(HasSubstr("max-height: 100%"))) << "which would take the ratio away";
}

TEST(sheet, of_512_cells_is_at_most_8_mb_also_with_texts_and_drawings) {
  sheet shown{.title = "many", .facts = {}, .cells = {}};
  for (std::uint32_t i = 0; i < 512; ++i) {
    sheet_cell cell;
    cell.name = std::to_string(i);
    cell.texts = {{"txt", std::string(3000, '<')}};
    rgb_picture noise{96, 96, {}};
    for (std::uint32_t k = 0; k < 3 * 96 * 96; ++k) {
      noise.rgb.push_back(static_cast<std::uint8_t>((k * 2654435761U + i * 40503U) >> 13));
    }
    cell.seen = noise;
    cell.drawings = {{"x", noise}};
    shown.cells.push_back(cell);
  }
  const std::string page = sheet_html(shown);
  EXPECT_LE(page.size(), page_bytes_most);
  EXPECT_THAT(page, HasSubstr("class=\"drawing\""));
}

tensor row_of(dtype type, const dimensions& shape, void* data) {
  tensor rows;
  rows.type = type;
  rows.shape.push_back(1);
  for (const std::int64_t extent : shape) rows.shape.push_back(extent);
  rows.data = data;
  return rows;
}

TEST(array_picture, of_levels_is_the_picture_whatever_axis_has_the_channels) {
  std::vector<std::uint8_t> last(std::size_t{10} * 12 * 3);
  std::vector<std::uint8_t> first(last.size());
  for (std::size_t k = 0; k < last.size(); ++k) last[k] = static_cast<std::uint8_t>(k);
  for (std::size_t at = 0; at < 120; ++at) {
    for (std::size_t channel = 0; channel < 3; ++channel) first[channel * 120 + at] = last[at * 3 + channel];
  }
  const auto one = draw_row(row_of(dtype::u8, {10, 12, 3}, last.data()), 0);
  const auto other = draw_row(row_of(dtype::u8, {3, 10, 12}, first.data()), 0);
  ASSERT_TRUE(one && other);
  EXPECT_EQ(one->width, 12U);
  EXPECT_EQ(one->height, 10U);
  EXPECT_EQ(one->rgb, last);
  EXPECT_EQ(other->rgb, last);
}

TEST(array_picture, of_numbers_is_a_heat_map_or_a_line_and_of_few_nothing) {
  std::vector<float> numbers(std::size_t{300} * 20);
  for (std::size_t k = 0; k < numbers.size(); ++k) numbers[k] = static_cast<float>(k);
  numbers[5] = std::numeric_limits<float>::quiet_NaN();
  const auto heat = draw_row(row_of(dtype::f32, {300, 20}, numbers.data()), 0);
  ASSERT_TRUE(heat);
  EXPECT_LE(heat->height, 128U);
  EXPECT_GT(heat->rgb[heat->rgb.size() - 3], heat->rgb[0]) << "more is lighter";
  const auto line = draw_row(row_of(dtype::f32, {600}, numbers.data()), 0);
  ASSERT_TRUE(line);
  EXPECT_EQ(line->width, 128U);
  EXPECT_FALSE(draw_row(row_of(dtype::f32, {4}, numbers.data()), 0));
  std::vector<std::uint8_t> same(64, 3);
  EXPECT_TRUE(draw_row(row_of(dtype::i8, {8, 8}, same.data()), 0)) << "all alike is no division by zero";
}

TEST(row_text, floats_have_four_digits_and_integers_all) {
  double third = 1.0 / 3;
  EXPECT_EQ(element_text(row_of(dtype::f64, {1}, &third), 0), "0.3333");
  float two = 2;
  EXPECT_EQ(element_text(row_of(dtype::f32, {1}, &two), 0), "2.0");
  std::uint64_t large = 18446744073709551615U;
  EXPECT_EQ(element_text(row_of(dtype::u64, {1}, &large), 0), "18446744073709551615");
  std::uint16_t half = 0x3E00;
  EXPECT_EQ(element_text(row_of(dtype::f16, {1}, &half), 0), "1.5");
  bool yes = true;
  EXPECT_EQ(element_text(row_of(dtype::boolean, {1}, &yes), 0), "1");
}

TEST(row_text, a_label_is_its_class_or_all_its_digits) {
  std::int32_t number = 1;
  const dataset samples = from_tensors({{"cls", tensor{dtype::i32, {1}, {1}, &number, host}}}, nullptr, {"cat", "dog"});
  EXPECT_EQ(label_text(samples, 1), "dog (1)");
  EXPECT_EQ(label_text(samples, 2), "2");
  EXPECT_EQ(label_text(samples, -1), "-1");
  EXPECT_EQ(label_text(samples, 18446744073709551615U), "18446744073709551615");
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
