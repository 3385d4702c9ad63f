// Pictures of more than 8 bits through the loader: what is delivered, and that masks follow them.
#include "tests/loader/running.hpp"
#include "tests/pixels/wide_numbers.hpp"
#include "tests/support/bound_field.hpp"
#include "tests/support/make_picture.hpp"
#include "tests/support/watchdog.hpp"

#include <leat/loading.hpp>
#include <leat/targets.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <set>
#include <string>
#include <vector>

namespace leat {
namespace {

using testing::fake_dataset;
using testing::fake_sample;
using ::testing::HasSubstr;
using testing::loader;
using testing::loader_options;
using testing::small_options;
using testing::watchdog;

constexpr int width = 40;
constexpr int height = 30;

// The mask has the picture's numbers, all above 0.
std::vector<fake_sample> make_scans(std::size_t count) {
  std::vector<fake_sample> samples(count);
  for (std::size_t i = 0; i < count; ++i) {
    const auto numbers = testing::as_u16(testing::make_numbers(i, width, height, 1, 1, 65'535));
    samples[i].members = {{"png", testing::make_png16(width, height, 1, numbers, i % 2 == 1)},
                          {"seg.png", testing::make_mask_png(width, height, numbers, 16, false)}};
  }
  return samples;
}

// No pixel of 32 lies halfway between two of a box, whose sides are below 64.
image scan() {
  return image("png")
      .bits(16)
      .channels(1)
      .random_resized_crop(32, {0.1, 1.0}, {0.75, 1.25}, filter::nearest)
      .random_flip();
}

TEST(wide_pictures, are_u16_and_masks_follow_them_to_the_pixel) {
  const watchdog dog("masks of 16-bit pictures");
  const fake_dataset set(make_scans(19));
  for (const unsigned threads : {1U, 3U}) {
    loader_options options = small_options();
    options.decode_threads = threads;
    loader train(set, options, scan(), mask("seg.png").follows("png").ignore(0));
    std::size_t rows = 0;
    std::set<std::vector<std::uint16_t>> pictures;
    for (std::uint32_t epoch = 0; epoch < options.epochs; ++epoch) {
      while (const std::optional<batch> got = train.next_blocking()) {
        EXPECT_EQ((*got)["png"].type, dtype::u16);
        const auto pixels = testing::values_of<std::uint16_t>(*got, "png");
        EXPECT_EQ(pixels, testing::values_of<std::uint16_t>(*got, "seg.png"));
        rows += got->valid_rows();
        pictures.insert(pixels);
      }
    }
    EXPECT_EQ(rows, 38U);
    EXPECT_EQ(pictures.size(), 6U);
  }
}

TEST(wide_pictures, are_the_same_with_any_threads_and_part_of_what_a_saved_run_is) {
  const watchdog dog("threads of 16-bit pictures");
  const fake_dataset set(make_scans(19));
  const image resized = image("png").bits(16).channels(1).random_resized_crop(17).normalize(
      {.mean = {0.5, 0, 0}, .deviation = {0.25, 1, 1}});
  std::vector<std::vector<float>> seen;
  for (const unsigned threads : {1U, 3U}) {
    loader_options options = small_options();
    options.decode_threads = threads;
    loader train(set, options, resized);
    std::vector<float> all;
    for (std::uint32_t epoch = 0; epoch < options.epochs; ++epoch) {
      while (const std::optional<batch> got = train.next_blocking()) {
        const auto some = testing::values_of<float>(*got, "png");
        all.insert(all.end(), some.begin(), some.end());
      }
    }
    seen.push_back(std::move(all));
  }
  EXPECT_EQ(seen[0].size(), 38U * 17 * 17);
  EXPECT_EQ(seen[0], seen[1]);

  loader_options options = small_options();
  options.resume = loader(set, options, scan()).state().at(0, 1);
  loader again(set, options, scan());
  EXPECT_THAT(testing::message_of(errc::usage, [&] { loader(set, options, scan().bits(32)); }), HasSubstr("bits"));
}

TEST(wide_pictures, have_views_that_draw_as_those_of_a_group) {
  const watchdog dog("views of 16-bit pictures");
  const fake_dataset set(make_scans(9));
  loader train(set, small_options(), views(scan(), 2, "both"), scan().from("png").together("both/1"));
  while (const std::optional<batch> got = train.next_blocking()) {
    EXPECT_EQ((*got)["both"].shape, (dimensions{got->valid_rows(), 2, 1, 32, 32}));
    const auto both = testing::values_of<std::uint16_t>(*got, "both");
    const auto second = testing::values_of<std::uint16_t>(*got, "png");
    constexpr std::size_t row = 32 * 32;
    for (std::size_t r = 0; r < got->valid_rows(); ++r) {
      EXPECT_TRUE(std::equal(&second[r * row], &second[r * row] + row, &both[(2 * r + 1) * row]));
    }
  }
}

TEST(wide_pictures, need_no_more_memory_than_was_planned) {
  const watchdog dog("memory of 16-bit pictures");
  const fake_dataset set(make_scans(8));
  loader train(set, small_options(), scan());
  while (train.next_blocking()) continue;
  const loader_stats stats = train.stats();
  EXPECT_GT(stats.scratch_bytes_peak, 0U);
  EXPECT_LE(stats.arena_bytes + stats.scratch_bytes_peak, train.plan().bytes_total);
}

TEST(wide_pictures, refuse_by_name_what_is_of_8_bits_only) {
  const fake_dataset set(make_scans(2));
  const auto refusal = [&](const image& of) {
    return testing::message_of(errc::usage, [&] { loader(set, small_options(), of); });
  };
  EXPECT_EQ(refusal(scan().brightness({0.5, 1.5})),
            "image 'png': brightness is of 8 bits only; leave it out, or bits(16)");
  EXPECT_THAT(refusal(scan().rotate(5)), HasSubstr("rotate is of 8 bits only"));
  EXPECT_THAT(refusal(scan().rand_augment()), HasSubstr("rand_augment is of 8 bits only"));
  EXPECT_THAT(refusal(scan().random_erasing()), HasSubstr("random_erasing is of 8 bits only"));
  EXPECT_THAT(refusal(image("png").bits(16).letterbox(20)), HasSubstr("letterbox with padding other than 0"));
  EXPECT_THAT(refusal(scan().exif_orientation()), HasSubstr("exif_orientation() is of 8 bits only"));
  EXPECT_EQ(refusal(scan().bits(12)), "image 'png': bits(12): give 8, 16 or 32");
  EXPECT_EQ(refusal(scan().as(dtype::u8)), "image 'png': as(u8): give f32, f16, bf16, u16, i16 or i32");
  EXPECT_THAT(refusal(scan().normalize(imagenet).as(dtype::u16)), HasSubstr("normalize() makes fractions"));
  constexpr double infinity = std::numeric_limits<double>::infinity();
  EXPECT_THAT(refusal(scan().normalize({{0, 0, 0}, {1, infinity, 1}}).as(dtype::f32)),
              HasSubstr("deviation inf: must be finite"));
  EXPECT_THAT(refusal(scan().normalize({{-infinity, 0, 0}, {1, 1, 1}}).as(dtype::f32)),
              HasSubstr("mean -inf: must be finite"));
  EXPECT_EQ(refusal(scan().white(4095)), "image 'png': white() scales fractions; add as(f32), or leave it out");
  EXPECT_THAT(refusal(image("png").center_crop(8).bits(32).as(dtype::i32).white(4095)), HasSubstr("white() scales"));
  EXPECT_THAT(refusal(scan().channels(5).normalize(imagenet)), HasSubstr("1 or 3 channels"));
  EXPECT_EQ(refusal(image("png").center_crop(8).channels(5).invert()),
            "image 'png': invert is of pictures with 1 or 3 channels only; leave it out, or channels(5)");
}

TEST(wide_pictures, are_named_where_a_plain_picture_would_lose_bits) {
  const fake_dataset set(make_scans(2));
  const auto plain = testing::bound(image("png").center_crop(8), *set.get().model());
  EXPECT_THAT(plain->facts().warning, HasSubstr("keeps the numbers, and .bits(16) the picture's"));
  EXPECT_EQ(testing::bound(scan(), *set.get().model())->facts().warning, "");
}

}  // namespace
}  // namespace leat
