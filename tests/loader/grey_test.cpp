// image::channels(1): grey pictures in one plane.
#include "base/half.hpp"
#include "stages/batch/field_model.hpp"
#include "tests/loader/running.hpp"
#include "tests/support/failures.hpp"
#include "tests/support/fake_dataset.hpp"
#include "tests/support/make_picture.hpp"
#include "tests/support/watchdog.hpp"

#include <leat/loading.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

namespace leat {
namespace {

using testing::fake_dataset;
using testing::fake_sample;
using ::testing::HasSubstr;
using testing::loader;
using testing::loader_options;
using testing::watchdog;

std::vector<std::vector<std::byte>> rows_of(const dataset& from, const field& one) {
  std::vector<std::vector<std::byte>> rows;
  loader train(from, testing::one_epoch_in_order(), one);
  for (const batch& got : train.blocking()) {
    static_cast<void>(testing::look_at(got));
    for (std::size_t r = 0; r < got.valid_rows(); ++r) rows.push_back(testing::row_of(got, one.name(), r));
  }
  return rows;
}

// Pillow's convert("L"), src/libImaging/Convert.c.
std::uint8_t pillow_grey(const std::byte* rgb) {
  const auto value = [&](std::size_t channel) { return std::to_integer<std::uint32_t>(rgb[channel]); };
  return static_cast<std::uint8_t>((value(0) * 19595 + value(1) * 38470 + value(2) * 7471 + 0x8000) >> 16);
}

// Of u8 pixels, interleaved.
std::vector<std::uint8_t> grey_of(const std::vector<std::byte>& rgb) {
  std::vector<std::uint8_t> grey;
  for (std::size_t at = 0; at < rgb.size(); at += 3) grey.push_back(pillow_grey(&rgb[at]));
  return grey;
}

template <class Element>
std::vector<Element> elements_of(const std::vector<std::byte>& row) {
  std::vector<Element> elements(row.size() / sizeof(Element));
  std::memcpy(elements.data(), row.data(), row.size());
  return elements;
}

TEST(grey, is_pillows_of_the_finished_picture_in_every_dtype_and_layout) {
  const watchdog dog("grey pictures");
  const fake_dataset set(testing::make_samples(3, 20));
  const image crop = image().random_resized_crop(13).random_flip();
  // Nothing; a table; a pass over lines and a table behind it; statistics of the picture; a warp; one matrix.
  const std::vector<image> kinds{crop,
                                 crop.brightness({0.5, 1.5}),
                                 crop.saturation({0.2, 1.8}).brightness({0.5, 1.5}),
                                 crop.color_jitter(0.4, 0.4, 0.4, 0.1).equalize(),
                                 crop.rotate(-30, 30).posterize(4),
                                 crop.rotate(-30, 30).rounding(pixel_rounding::fused)};
  for (const image& kind : kinds) {
    const image grey = kind.channels(1);
    const auto colours = rows_of(set, kind.as(dtype::u8).as(layout::nhwc));
    const auto planes = rows_of(set, grey.as(dtype::u8));
    const auto pixels = rows_of(set, grey.as(dtype::u8).as(layout::nhwc));
    const auto floats = rows_of(set, grey.normalize(imagenet));
    const auto halves = rows_of(set, grey.normalize(imagenet).as(dtype::f16));
    const auto brains = rows_of(set, grey.as(dtype::bf16));
    const auto scale = static_cast<float>(1 / (255 * imagenet.deviation[0]));
    const auto bias = static_cast<float>(-imagenet.mean[0] / imagenet.deviation[0]);
    ASSERT_EQ(colours.size(), 20U);
    for (std::size_t row = 0; row < colours.size(); ++row) {
      const std::vector<std::uint8_t> expected = grey_of(colours[row]);
      ASSERT_EQ(elements_of<std::uint8_t>(planes[row]), expected) << row;
      ASSERT_EQ(pixels[row], planes[row]);
      const std::vector<float> singles = elements_of<float>(floats[row]);
      const std::vector<std::uint16_t> f16s = elements_of<std::uint16_t>(halves[row]);
      const std::vector<std::uint16_t> bf16s = elements_of<std::uint16_t>(brains[row]);
      ASSERT_EQ(singles.size(), expected.size());
      for (std::size_t i = 0; i < expected.size(); ++i) {
        const float scaled = static_cast<float>(expected[i]) * scale;
        const float number = scaled + bias;
        const float share = static_cast<float>(expected[i]) * static_cast<float>(1.0 / 255);
        ASSERT_EQ(singles[i], number);
        ASSERT_EQ(f16s[i], f16_bits(number));
        ASSERT_EQ(bf16s[i], bf16_bits(share));
      }
    }
  }
}

TEST(grey, of_a_grey_file_is_what_the_file_holds) {
  const watchdog dog("a grey file");
  std::vector<fake_sample> some(3);
  std::vector<testing::rgb_picture> seen(some.size());
  for (std::size_t i = 0; i < some.size(); ++i) {
    const testing::png_options how{.colours = testing::png_colours::grey};
    some[i].members.push_back({"png", testing::make_png(testing::make_texture(i, 16, 16), how, seen[i])});
  }
  const auto rows = rows_of(fake_dataset(some), image("png").center_crop(16).as(dtype::u8).channels(1));
  for (std::size_t i = 0; i < some.size(); ++i) {
    const std::vector<std::uint8_t> row = elements_of<std::uint8_t>(rows[i]);
    ASSERT_EQ(row.size(), 256U);
    for (std::size_t pixel = 0; pixel < row.size(); ++pixel) ASSERT_EQ(row[pixel], seen[i].pixels[3 * pixel]);
  }
}

TEST(grey, has_one_channel_where_its_layout_has_them) {
  const fake_dataset set(testing::make_samples(3, 8));
  const auto shape = [&](const field& of) {
    loader train(set, testing::one_epoch_in_order(), of);
    const std::optional<batch> got = train.next_blocking();
    return (*got)["jpg"].shape;
  };
  const image grey = image().center_crop(8).channels(1);
  EXPECT_EQ(shape(grey), (dimensions{8, 1, 8, 8}));
  EXPECT_EQ(shape(grey.as(layout::nhwc)), (dimensions{8, 8, 8, 1}));
  EXPECT_EQ(shape(grey.channels(3)), (dimensions{8, 3, 8, 8}));
  loader train(set, testing::one_epoch_in_order(), views(grey, 2, "both"));
  const std::optional<batch> got = train.next_blocking();
  EXPECT_EQ((*got)["both"].shape, (dimensions{8, 2, 1, 8, 8}));
}

TEST(grey, erases_in_its_plane) {
  const watchdog dog("an erased grey picture");
  const fake_dataset set(testing::make_samples(3, 8));
  const image erased = image().center_crop(12).random_erasing(1).as(dtype::u8);
  const auto colours = rows_of(set, erased.as(layout::nhwc));
  const auto planes = rows_of(set, erased.channels(1));
  for (std::size_t row = 0; row < colours.size(); ++row) {
    ASSERT_EQ(elements_of<std::uint8_t>(planes[row]), grey_of(colours[row])) << row;
  }
}

TEST(grey, is_a_part_of_what_a_saved_run_is) {
  const fake_dataset set(testing::make_samples(3, 20));
  const image colours = image().center_crop(8);
  loader_options options = testing::small_options();
  options.resume = loader(set, options, colours).state().at(0, 1);
  loader again(set, options, colours.channels(3));
  EXPECT_THAT(testing::message_of(errc::usage, [&] { loader(set, options, colours.channels(1)); }),
              HasSubstr("channels"));
}

TEST(grey, refuses_other_numbers_and_what_makes_three_channels_only) {
  const fake_dataset set(testing::make_samples(3, 8));
  const auto refusal = [&](const image& of, const batch_mix& mix = {}) {
    loader_options options = testing::small_options();
    options.mix = mix;
    return testing::message_of(errc::usage, [&] { loader(set, options, of, label("cls")); });
  };
  const image crop = image().center_crop(8);
  EXPECT_EQ(refusal(crop.channels(0)), "image 'jpg': channels(0): give 1 to 4096");
  std::vector<std::unique_ptr<stages::field_program>> made;
  const field on_device = crop.channels(1).decoder(jpeg_decoder::nvjpeg);
  EXPECT_THAT(
      testing::message_of(
          errc::usage, [&] { on_device.model().bind(*set.get().model(), stages::finished_by::device_decoding, made); }),
      HasSubstr("nvjpeg of grey pictures, which are made on the host; leave it out"));
  EXPECT_EQ(refusal(crop.channels(1), mixup(0.4)),
            "mixup of 'jpg': only pictures of 8 bits and three channels are mixed; take those, or leave mix out");
}

}  // namespace
}  // namespace leat
