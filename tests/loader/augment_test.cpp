// Colour within the line: the same bytes however the loader runs, and what becomes of a user's functions.
#include "tests/loader/running.hpp"
#include "tests/support/golden_pictures.hpp"
#include "tests/support/raw_files.hpp"
#include "tests/support/watchdog.hpp"

#include <leat/loader_state.hpp>
#include <leat/loading.hpp>
#include <leat/own_samples.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <vector>

namespace leat {
namespace {

using testing::fake_dataset;
using ::testing::HasSubstr;
using testing::loader;
using testing::loader_options;
using testing::seen_run;
namespace tr = transforms;

// All there is; `name`d pictures of one member are views of it.
image augmented(const std::string& name) {
  return image(name)
      .from("jpg")
      .random_resized_crop(12)
      .random_flip()
      .random_apply(0.8, {tr::color_jitter{0.4, 0.4, 0.4, 0.1}})
      .random_apply(0.2, {tr::grayscale{}})
      .one_of({tr::gaussian_blur{.kernel = 5}, tr::sharpness{{0, 3}}, tr::equalize{}, tr::autocontrast{}})
      .lookup("dim", [](draws& d) { return table::of([f = d.uniform(0.5, 1)](int v) { return f * v; }); })
      .in_random_order({tr::solarize{200}, tr::posterize{5}, tr::channel_permutation{}});
}

// Of u8 and floats, finished by the device and not, with an edit and a box that is erased.
std::vector<field> fields() {
  const auto scratch = [](draws& d, planes p) {
    const auto x = static_cast<int>(d.below(static_cast<std::uint64_t>(p.width)));
    for (int y = 0; y < p.height; ++y) p.line(0, y)[x] = 255;
    return std::string();
  };
  return {augmented("a").normalize(imagenet), augmented("b").edit("scratch", scratch).as(dtype::bf16).as(layout::nhwc),
          augmented("c").normalize(imagenet).as(dtype::f16).random_erasing(0.5), augmented("d").as(dtype::u8),
          label("cls")};
}

TEST(augmented_batches, are_the_same_with_any_threads_depths_and_on_a_device_that_finishes_them) {
  const testing::watchdog dog("augmented batches");
  const auto samples = testing::make_samples(1, 21);
  const fake_dataset set(samples);
  const seen_run expected = testing::run_all(set, testing::small_options(), fields());
  ASSERT_FALSE(expected.failed) << expected.message;
  ASSERT_EQ(expected.batches.size(), 6U);
  for (const std::uint32_t threads : {1U, 5U}) {
    for (const bool on_device : {true, false}) {
      loader_options options = testing::small_options();
      options.decode_threads = threads;
      options.prefetch_batches = threads;
      options.finish_on_device = on_device;
      const fake_dataset again(samples, {.shards = 1});
      const seen_run got = testing::run_all(again, options, fields());
      ASSERT_FALSE(got.failed) << got.message;
      ASSERT_EQ(got.batches, expected.batches);
    }
  }
}

// The four views that are decoded together are those that are decoded alone.
TEST(augmented_batches, have_each_view_as_it_is_by_itself) {
  const testing::watchdog dog("augmented views");
  const fake_dataset set(testing::make_samples(2, 9));
  loader_options options = testing::small_options();
  options.epochs = 1;
  const auto rows = [&](const std::vector<field>& of) {
    std::vector<std::vector<std::byte>> found;
    loader train(set, options, of);
    for (const batch& got : train.blocking()) {
      for (std::size_t row = 0; row < got.ids().size(); ++row) found.push_back(testing::row_of(got, "a", row));
    }
    return found;
  };
  const auto alone = rows({augmented("a").normalize(imagenet)});
  EXPECT_EQ(rows({augmented("a").normalize(imagenet), augmented("b").as(dtype::u8), augmented("c")}), alone);
}

TEST(augmented_batches, hold_what_they_held_when_this_was_written) {
  const testing::watchdog dog("augmented golden digests");
  const dataset set =
      from_function(8,
                    [](std::uint64_t sample) {
                      return testing::from_hex(sample % 2 == 0 ? testing::golden_jpeg : testing::golden_png);
                    },
                    {.field = "jpg", .bytes_max = 1000});
  loader_options options = testing::small_options();
  options.epochs = 1;
  loader train(set, options, {augmented("a").normalize(imagenet)});
  EXPECT_EQ(train.next_blocking()->content_digest()->hex(), "c4f753f18758e995c423b4699b141ac3");
}

TEST(an_edit, that_throws_ends_the_run_by_an_error_that_names_sample_and_field) {
  const testing::watchdog dog("an edit that throws");
  const fake_dataset set(testing::make_samples(1, 20));
  for (const bool two : {false, true}) {
    loader_options options = testing::small_options();
    options.on_corrupt = corrupt_policy::skip;
    std::vector<field> of = {image("jpg").random_resized_crop(12).edit("mine", [](draws& d, planes) -> std::string {
      if (d.uniform() < 0.2) throw std::out_of_range("thrown by the user");
      return "";
    })};
    if (two) of.emplace_back(augmented("b"));
    const seen_run got = testing::run_all(set, options, of);
    ASSERT_EQ(got.failed, errc::callback);
    EXPECT_THAT(got.message, HasSubstr("field 'jpg': a function of its transforms threw std::out_of_range"));
    EXPECT_THAT(got.message, HasSubstr("number "));
  }
}

TEST(an_edit, that_returns_a_reason_makes_its_sample_corrupt) {
  const testing::watchdog dog("an edit that refuses");
  const fake_dataset set(testing::make_samples(1, 40));
  loader_options options = testing::small_options();
  options.epochs = 1;
  const std::vector<field> of = {image("jpg").random_resized_crop(12).edit(
      "mine", [](draws& d, planes) { return std::string(d.uniform() < 0.3 ? "too dark" : ""); })};
  const seen_run raised = testing::run_all(set, options, of);
  EXPECT_EQ(raised.failed, errc::corrupt);
  EXPECT_THAT(raised.message, HasSubstr("too dark"));
  options.on_corrupt = corrupt_policy::skip;
  const seen_run skipped = testing::run_all(set, options, of);
  ASSERT_FALSE(skipped.failed) << skipped.message;
  std::size_t delivered = 0;
  for (const testing::seen_batch& each : skipped.batches) delivered += each.ids.size();
  EXPECT_LT(delivered, 40U);
  EXPECT_GT(delivered, 10U);
}

TEST(an_augmented_field, refuses_what_cannot_be_built) {
  const fake_dataset set(testing::make_samples(1, 4));
  const auto refused = [&](const image& of) {
    return testing::message_of(errc::usage, [&] { const loader train(set, testing::small_options(), of); });
  };
  for (const double value : {-3.0, 0.5, 300.0}) {
    EXPECT_THAT(
        refused(image("jpg").random_resized_crop(12).as(dtype::u8).apply(tr::random_erasing{.value = {0, 255, value}})),
        HasSubstr("an element of u8 is a whole number from 0 to 255"));
  }
  EXPECT_THAT(refused(image("jpg").random_resized_crop(12).as(dtype::u8).apply(tr::random_erasing{.noise = true})),
              HasSubstr("which u8 has none of"));
  EXPECT_THAT(refused(image("jpg").brightness({0.5, 2}).random_resized_crop(12)),
              HasSubstr("random_resized_crop: stands behind brightness"));
  EXPECT_THAT(refused(image("jpg").random_resized_crop(12).gaussian_blur(25)),
              HasSubstr("gaussian_blur: a kernel of 25"));
}

TEST(an_augmented_run, goes_on_with_the_chain_that_it_was_saved_with) {
  const testing::watchdog dog("augmented resume");
  const fake_dataset set(testing::make_samples(1, 24));
  const auto field_of = [](double factor, const std::string& name) {
    return image("jpg")
        .random_resized_crop(12)
        .random_apply(0.5, {tr::brightness{{factor, factor}}})
        .lookup(name, [](draws&) { return table::of([](int v) { return v / 2; }); });
  };
  loader_options options = testing::small_options();
  loader train(set, options, field_of(1.5, "half"));
  static_cast<void>(train.next_blocking());
  options.resume = train.state();
  loader again(set, options, field_of(1.5, "half"));
  EXPECT_EQ(again.next_blocking()->index(), 1U);
  const auto refused = [&](const image& of) {
    return testing::message_of(errc::usage, [&] { const loader other(set, options, of); });
  };
  EXPECT_THAT(refused(field_of(1.6, "half")), HasSubstr("random_apply(0.5, brightness(1.6))"));
  EXPECT_THAT(refused(field_of(1.5, "third")), HasSubstr("lookup:third"));
}

}  // namespace
}  // namespace leat
