// views(), five_crop() and ten_crop(): several pictures of one in one output.
#include "tests/loader/running.hpp"
#include "tests/support/failures.hpp"
#include "tests/support/fake_dataset.hpp"
#include "tests/support/make_picture.hpp"
#include "tests/support/watchdog.hpp"

#include <leat/loading.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace leat {
namespace {

using testing::fake_dataset;
using testing::fake_sample;
using ::testing::HasSubstr;
using testing::loader;
using testing::loader_options;
using testing::small_options;

const std::vector<fake_sample>& samples() {
  static const std::vector<fake_sample> made = testing::make_samples(5, 21);
  return made;
}

loader_options one_epoch() {
  loader_options options = small_options();
  options.epochs = 1;
  return options;
}

image train_picture() {
  return image().random_resized_crop(12).random_flip().color_jitter(0.4, 0.4, 0.4, 0.1).normalize(imagenet);
}

using rows_by_sample = std::map<std::uint64_t, std::vector<std::byte>>;

std::map<std::string, rows_by_sample> rows_of(const dataset& from, const std::vector<field>& fields) {
  std::map<std::string, rows_by_sample> rows;
  loader train(from, one_epoch(), fields);
  for (const batch& got : train.blocking()) {
    static_cast<void>(testing::look_at(got));
    for (const field& each : fields) {
      for (std::size_t r = 0; r < got.valid_rows(); ++r) {
        rows[each.name()][got.ids()[r]] = testing::row_of(got, each.name(), r);
      }
    }
  }
  return rows;
}

// View k of a row of `count`.
std::vector<std::byte> view_of(const std::vector<std::byte>& row, std::size_t k, std::size_t count) {
  const auto bytes = static_cast<std::ptrdiff_t>(row.size() / count);
  const auto begin = row.begin() + static_cast<std::ptrdiff_t>(k) * bytes;
  return {begin, begin + bytes};
}

std::string refusal(const std::vector<field>& fields, const batch_mix& mix = {}) {
  loader_options options = one_epoch();
  options.mix = mix;
  return testing::message_of(errc::usage, [&] { loader(fake_dataset(samples()), options, fields); });
}

TEST(views_field, holds_the_bytes_of_fields_that_are_loaded_one_by_one) {
  const testing::watchdog dog("views one by one");
  const fake_dataset set(samples());
  const std::vector<image> kinds{train_picture(), train_picture().as(layout::nhwc), train_picture().as(dtype::f16),
                                 image().random_resized_crop(9).as(dtype::u8),
                                 train_picture().rotate(-20, 20).rounding(pixel_rounding::fused)};
  for (const image& kind : kinds) {
    const auto together = rows_of(set, {views(kind, 4, "global")}).at("global");
    ASSERT_EQ(together.size(), samples().size());
    for (std::size_t k = 0; k < 4; ++k) {
      const auto alone = rows_of(set, {kind.together("global/" + std::to_string(k))}).at("jpg");
      for (const auto& [sample, row] : together) ASSERT_EQ(view_of(row, k, 4), alone.at(sample)) << k;
    }
  }
}

TEST(views_field, draws_each_view_by_its_name_whatever_their_number_and_whatever_is_beside_it) {
  const testing::watchdog dog("views by name");
  const fake_dataset set(samples());
  const auto seven = rows_of(set, {views(train_picture(), 7, "global")}).at("global");
  const auto two = rows_of(set, {views(train_picture(), 2, "global")}).at("global");
  const auto beside =
      rows_of(set, {image("plain").from("jpg").random_resized_crop(16), views(train_picture(), 3, "local"),
                    views(train_picture(), 2, "global"), image("last").from("jpg").random_resized_crop(8)});
  const auto plain = rows_of(set, {image("plain").from("jpg").random_resized_crop(16)}).at("plain");
  for (const auto& [sample, row] : two) {
    for (std::size_t k = 0; k < 2; ++k) EXPECT_EQ(view_of(row, k, 2), view_of(seven.at(sample), k, 7));
    EXPECT_NE(view_of(row, 0, 2), view_of(row, 1, 2));
    EXPECT_NE(view_of(row, 0, 2), view_of(beside.at("local").at(sample), 0, 3));
  }
  EXPECT_EQ(beside.at("global"), two);
  EXPECT_EQ(beside.at("plain"), plain) << "views are not numbered";
}

TEST(views_field, has_an_axis_and_shares_a_decode) {
  const testing::watchdog dog("views share");
  loader train(fake_dataset(samples()), one_epoch(), views(train_picture(), 2, "global"),
               views(image().random_resized_crop(6).as(layout::nhwc).as(dtype::u8), 3, "local"));
  std::string notes;
  for (const std::string& each : train.plan().notes) notes += each + "\n";
  EXPECT_THAT(notes, HasSubstr("global, global[1], local, local[1], local[2]: one decode of each picture"));
  for (const batch& got : train.blocking()) {
    const auto rows = static_cast<std::int64_t>(got["global"].shape[0]);
    EXPECT_EQ(got["global"].shape, (dimensions{rows, 2, 3, 12, 12}));
    EXPECT_EQ(got["local"].shape, (dimensions{rows, 3, 6, 6, 3}));
    EXPECT_THAT(got.outputs(), ::testing::ElementsAre("global", "local"));
  }
}

TEST(views_field, of_a_damaged_picture_is_corrupt) {
  const testing::watchdog dog("a damaged view");
  std::vector<fake_sample> some = samples();
  std::size_t damaged = 0;
  while (some[damaged].find("jpg") == nullptr) ++damaged;
  some[damaged].find("jpg")->bytes.resize(40);
  loader_options options = one_epoch();
  const testing::seen_run run =
      testing::run_all(fake_dataset(some), options, {views(train_picture(), 3, "global"), label("cls")});
  EXPECT_EQ(run.failed, errc::corrupt);
  EXPECT_THAT(run.message, HasSubstr("global: "));
}

// torchvision.transforms.functional.five_crop and ten_crop of a picture of 27 x 20 with crops of 12: the corners, and the middle at
// (round(15 / 2), round(8 / 2)) = (8, 4), for Python rounds 7.5 to 8; of the mirrored picture likewise.
TEST(ten_crop, is_torchvisions_of_the_resized_picture) {
  const testing::watchdog dog("ten crops");
  constexpr int width = 27;
  constexpr int height = 20;
  constexpr int size = 12;
  const fake_dataset set(samples());
  const image resized = image().resize(height, width).as(dtype::u8).as(layout::nhwc);
  const auto whole = rows_of(set, {resized}).at("jpg");
  const auto five = rows_of(set, {five_crop(resized, size)}).at("jpg");
  const auto ten = rows_of(set, {ten_crop(resized, size)}).at("jpg");
  constexpr std::array<std::pair<int, int>, 5> places{{{0, 0}, {15, 0}, {0, 8}, {15, 8}, {8, 4}}};
  for (const auto& [sample, picture] : whole) {
    std::vector<std::byte> expected;
    for (const bool mirrored : {false, true}) {
      for (const auto& [left, top] : places) {
        for (int y = top; y < top + size; ++y) {
          for (int x = left; x < left + size; ++x) {
            const int from = mirrored ? width - 1 - x : x;
            const auto pixel = picture.begin() + static_cast<std::ptrdiff_t>(3) * (y * width + from);
            expected.insert(expected.end(), pixel, pixel + 3);
          }
        }
      }
    }
    ASSERT_EQ(ten.at(sample), expected);
    expected.resize(expected.size() / 2);
    ASSERT_EQ(five.at(sample), expected);
  }
}

// Ten crops of one picture: what is drawn is drawn once for all of them.
TEST(ten_crop, draws_alike_in_each_crop) {
  const testing::watchdog dog("ten crops that draw");
  const fake_dataset set(samples());
  const image drawn = image().random_resized_crop(12).as(dtype::u8).as(layout::nhwc);
  const auto whole = rows_of(set, {drawn.together("jpg")}).at("jpg");
  const auto ten = rows_of(set, {ten_crop(drawn, 12)}).at("jpg");
  for (const auto& [sample, row] : ten) {
    for (std::size_t k = 0; k < 5; ++k) ASSERT_EQ(view_of(row, k, 10), whole.at(sample)) << k;
    for (std::size_t k = 6; k < 10; ++k) ASSERT_EQ(view_of(row, k, 10), view_of(row, 5, 10)) << k;
  }
}

TEST(together, draws_alike_wherever_the_fields_stand) {
  const testing::watchdog dog("together");
  std::vector<fake_sample> some = samples();
  for (fake_sample& each : some) {
    const auto* const picture = each.find("jpg") != nullptr ? each.find("jpg") : each.find("png");
    const std::vector<std::byte> bytes = picture->bytes;
    each.members.push_back({"right", bytes});
  }
  const image left = image("left").from("jpg").random_resized_crop(12).random_flip();
  const image right = image("right").random_resized_crop(12).random_flip();
  const image other = image("other").from("jpg").random_resized_crop(12);
  const auto rows = rows_of(fake_dataset(some), {left.together("pair"), other, right.together("pair")});
  EXPECT_EQ(rows.at("left"), rows.at("right"));
  EXPECT_NE(rows.at("left"), rows_of(fake_dataset(some), {left}).at("left"));
}

TEST(together, of_fields_that_crop_or_warp_otherwise_is_refused) {
  const image left = image("left").from("jpg").random_resized_crop(12).together("pair");
  const image nearest = image("b").from("jpg").random_resized_crop(12, {0.08, 1}, {0.75, 4.0 / 3}, filter::nearest);
  EXPECT_THAT(refusal({left, image("b").from("jpg").random_resized_crop(12, {0.5, 1}).together("pair")}),
              HasSubstr("'left' and 'b' are together as 'pair', and crop, scale, flip or warp differently"));
  EXPECT_THAT(refusal({left, image("b").from("jpg").random_resized_crop(12).rotate(-9, 9).together("pair")}),
              HasSubstr("differently"));
  const image flipped = image("b").from("jpg").resize(12, 12).together("pair");
  EXPECT_THAT(refusal({image("a").from("jpg").resize(12, 12).random_flip(1).together("pair"), flipped}),
              HasSubstr("differently"));
  EXPECT_THAT(
      refusal({image("a").from("jpg").resize(12, 12).random_flip(0.6).together("pair"), flipped.random_flip(0.5)}),
      HasSubstr("differently"));
  EXPECT_THAT(refusal({stack("both", {image("a").from("jpg").resize(12, 12).rotate(-10, 10).together("pair"),
                                      image("b").from("jpg").resize(12, 12).rotate(-30, 30).together("pair")})}),
              HasSubstr("differently"));
  loader(fake_dataset(samples()), one_epoch(), left, nearest.together("pair"));
  EXPECT_THAT(testing::message_of(errc::usage, [] { static_cast<void>(image().together("")); }),
              HasSubstr("together() with no name"));
}

TEST(views_field, refuses_what_it_cannot_be) {
  EXPECT_THAT(testing::message_of(errc::usage, [] { static_cast<void>(views(train_picture(), 0, "global")); }),
              HasSubstr("views 'global': 0 of them; give 1 to 256"));
  EXPECT_THAT(testing::message_of(errc::usage, [] { static_cast<void>(views(train_picture(), 257, "global")); }),
              HasSubstr("give 1 to 256"));
  EXPECT_THAT(testing::message_of(errc::usage, [] { static_cast<void>(views(train_picture(), 2, "")); }),
              HasSubstr("views without a name"));
  EXPECT_THAT(refusal({views(train_picture().decoder(jpeg_decoder::nvjpeg), 2, "global")}),
              HasSubstr("decodes one picture for a row"));
  EXPECT_THAT(refusal({views(train_picture(), 2, "global"), label("cls")}, mixup(0.4)),
              HasSubstr("several pictures in one output are not mixed"));
  EXPECT_THAT(refusal({five_crop(image().resize(16, 16).center_crop(8), 12)}), HasSubstr("would look outside"));
}

TEST(views_field, goes_on_where_a_saved_run_ended_and_with_as_many_views_only) {
  const testing::watchdog dog("views resumed");
  const fake_dataset set(samples());
  const auto fields = [](int count) -> std::vector<field> { return {views(train_picture(), count, "global")}; };
  const testing::seen_run whole = testing::run_all(set, small_options(), fields(2));
  ASSERT_FALSE(whole.failed) << whole.message;
  loader_options options = small_options();
  {
    loader first(set, options, fields(2));
    options.resume = first.state().at(1, 1);
  }
  const testing::seen_run rest = testing::run_all(set, options, fields(2));
  ASSERT_FALSE(rest.failed) << rest.message;
  ASSERT_FALSE(rest.batches.empty());
  EXPECT_EQ(rest.batches.front(), whole.batches[whole.batches.size() - rest.batches.size()]);
  EXPECT_EQ(rest.batches.back(), whole.batches.back());
  EXPECT_THAT(testing::message_of(errc::usage, [&] { loader(set, options, fields(3)); }), HasSubstr("count"));
}

}  // namespace
}  // namespace leat
