// What batches have held since there is leat::content_version: for the same dataset, fields, options and seed the same bytes, in every
// version of leat and on every machine. Where a change of this program changes one of these digests, leat::content_version has to
// rise: runs that were saved before would go on with other bytes.
#include "tests/loader/running.hpp"
#include "tests/support/golden_pictures.hpp"
#include "tests/support/raw_files.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/support/watchdog.hpp"

#include <leat/loader_state.hpp>
#include <leat/loading.hpp>
#include <leat/mosaic.hpp>
#include <leat/open_tokens.hpp>
#include <leat/order.hpp>
#include <leat/own_samples.hpp>

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace leat {
namespace {

using testing::loader;
using testing::loader_options;

// Pictures whose bytes are in the sources: no encoder of this machine has a part in them. Number 5 of each 12 is damaged.
dataset pictures() {
  return from_function(24,
                       [](std::uint64_t sample) {
                         constexpr std::string_view all[] = {testing::golden_jpeg, testing::golden_progressive_jpeg,
                                                             testing::golden_png, testing::golden_webp};
                         if (sample % 12 == 5) return testing::to_bytes("no picture");
                         return testing::from_hex(all[sample % 4]);
                       },
                       {.field = "jpg", .bytes_max = 1000, .columns = {{"cls", {0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3,
                                                                                4, 4, 4, 4, 4, 4, 4, 4, 9, 9, 9, 9}}}});
}

loader_options usual() {
  loader_options options = testing::small_options();
  options.batch_size = 5;
  options.on_corrupt = corrupt_policy::skip;
  return options;
}

// The run's digest: the chain over all of its batches.
std::string digest_of_run(const dataset& of, const loader_options& options, const std::vector<field>& fields) {
  digest run;
  loader train(of, options, fields);
  for (std::uint32_t epoch = 0; epoch < options.epochs; ++epoch) {
    for (const batch& got : train.blocking()) run = stages::chain_digest(run, *got.content_digest());
  }
  return run.hex();
}

void expect_golden(const std::string& found, std::string_view golden) {
  EXPECT_EQ(found, golden) << "leat::content_version is " << content_version
                           << ", and these options have given other bytes under it. If that is meant, it rises by one "
                              "(include/leat/loader_state.hpp), and this digest is written anew";
}

TEST(golden_digests, of_shuffled_random_crops) {
  const testing::watchdog dog("golden digests");
  expect_golden(digest_of_run(pictures(), usual(),
                              {image("jpg").random_resized_crop(12).random_flip().normalize(imagenet), label("cls")}),
                "bb6c0ec3c466c54e3b25497c76aa57c7");
}

TEST(golden_digests, of_pictures_without_anything_drawn) {
  const testing::watchdog dog("golden digests");
  loader_options options = usual();
  options.shuffle = false;
  expect_golden(
      digest_of_run(pictures(), options,
                    {image("jpg").resize(16, filter::bicubic).center_crop(14).as(dtype::u8).as(layout::nhwc)}),
      "0aa840c6c97b53fdb992bd654496cc9b");
  expect_golden(digest_of_run(pictures(), options, {image("jpg").resize(9, 17, filter::nearest).as(dtype::bf16)}),
                "6f9c1aa1a43969ac7195b0a504711cdc");
}

TEST(golden_digests, of_two_views_and_random_crops_with_padding) {
  const testing::watchdog dog("golden digests");
  expect_golden(digest_of_run(pictures(), usual(),
                              {image("a").from("jpg").random_resized_crop(10).as(dtype::f16),
                               image("b").from("jpg").random_crop(20, 4).random_flip(0.25)}),
                "55b3a923f0c4e2a9e3efd7486059cca8");
}

TEST(golden_digests, of_substitutes_and_of_a_padded_last_batch) {
  const testing::watchdog dog("golden digests");
  loader_options options = usual();
  options.on_corrupt = corrupt_policy::substitute;
  options.last = last_batch::pad;
  expect_golden(digest_of_run(pictures(), options, {image("jpg").random_resized_crop(8), label("cls")}),
                "c3a1fa2220be502cffbb5e7c33bae7c1");
}

TEST(golden_digests, of_mixed_rows) {
  const testing::watchdog dog("golden digests");
  loader_options options = usual();
  options.mix = mixup(0.3);
  expect_golden(digest_of_run(pictures(), options, {image("jpg").random_resized_crop(8), label("cls")}),
                "921d17378078bbe9874f363cfb53a2e2");
  options.mix = cutmix(0.7);
  expect_golden(digest_of_run(pictures(), options, {image("jpg").random_resized_crop(8), label("cls")}),
                "3f2ebe1a5edfa0bdef384c40b752f660");
  options.mix = mosaic(0.7);
  expect_golden(digest_of_run(pictures(), options, {image("jpg").random_resized_crop(8), label("cls")}),
                "a44121b0d7dc04d4d95a813897e446b1");
}

TEST(golden_digests, of_windows_of_tokens) {
  const testing::watchdog dog("golden digests");
  const testing::temporary_directory root;
  std::vector<std::string> paths;
  for (const std::size_t length : {400U, 333U}) {
    paths.push_back(testing::write_file(root.path() / (std::to_string(length) + ".bin"),
                                        testing::bytes_of(testing::counting<std::uint16_t>(length))));
  }
  const dataset of = open_tokens(paths);
  const auto digest_of = [&](const tokens& how) { return digest_of_run(cut_windows(of, how), usual(), {how}); };
  expect_golden(digest_of({.length = 16}), "58f574d26f0ae99d78f4a32242024a95");
  expect_golden(digest_of({.length = 16, .windows = window_order::random}), "f0d5f97946411dc33c026bbee5dfbf3b");
  expect_golden(digest_of({.length = 16, .documents = document_rule::within}), "d3056a0723ef2cd094496074809e6d0a");
}

TEST(golden_digests, of_orders) {
  const testing::watchdog dog("golden digests");
  std::vector<double> weights;
  for (int sample = 0; sample < 24; ++sample) weights.push_back(1 + sample % 5);
  const std::vector<dataset> parts = pictures().split(3, {0.5});
  const auto by = [&](const dataset& of, const order& how) {
    loader_options options = usual();
    options.order = how;
    return digest_of_run(of, options, {label("cls")});
  };
  expect_golden(by(pictures(), repeated(3)), "68051d6c30efae2e49d188e772a51ea6");
  expect_golden(by(pictures(), weighted(weights, 40)), "9389e7544d31b1c976b985fd0b7535f8");
  expect_golden(by(pictures(), weighted(weights, 20, replacement::no)), "cf0458c4740f111a6c05c246712d785a");
  expect_golden(by(pictures(), balanced("cls")), "d4f8c601f51a78ec886d2d78b2e689e4");
  expect_golden(by(pictures(), bucketed({.length = "cls", .tokens_max = 30, .rows_max = 6})),
                "0c2bf7c36a5d170eefede91324502a65");
  expect_golden(by(concat(parts), mixed_by({0.7, 0.3}, 30)), "2ca5e6cfc0848b084cd5697c40f26c24");
}

TEST(golden_digests, of_split_parts_one_after_the_other) {
  const testing::watchdog dog("golden digests");
  const std::vector<dataset> parts = pictures().split(3, {0.5});
  expect_golden(digest_of_run(concat({parts[1], parts[0]}), usual(), {label("cls")}),
                "5aa29a76c02d887f55539386fb280e1f");
}

}  // namespace
}  // namespace leat
