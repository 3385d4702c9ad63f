// Batches whose rows are mixed with one another, beside the same batches as they were before.
#include "tests/loader/running.hpp"
#include "tests/support/fake_dataset.hpp"
#include "tests/support/seeds.hpp"
#include "tests/support/watchdog.hpp"

#include <leat/loading.hpp>

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

namespace leat {
namespace {

using testing::fake_dataset;
using testing::loader;
using testing::loader_options;
using testing::watchdog;

const std::vector<testing::fake_sample>& samples() {
  static const std::vector<testing::fake_sample> made = testing::make_samples(5, 45);
  return made;
}

struct seen_rows {
  std::vector<std::vector<float>> pictures;
  std::vector<std::int64_t> labels;
  std::vector<std::int64_t> partners;
  std::vector<float> weights;
  std::vector<std::string> row_digests;
  std::string content;
};

std::vector<seen_rows> run(const dataset& from, const loader_options& options) {
  std::vector<seen_rows> all;
  loader train(from, options,
               {image("jpg").random_resized_crop(12).random_flip().normalize(imagenet), label("cls"),
                sequence("numbers").from("cls"), sequence("filled").from("cls").pad({.multiple = 8, .max = 9}).mask()});
  for (std::uint32_t epoch = 0; epoch < options.epochs; ++epoch) {
    for (const batch& got : train.blocking()) {
      static_cast<void>(testing::look_at(got));  // the bytes that lie there have the digest that is stated
      seen_rows& seen = all.emplace_back();
      const std::vector<float> pixels = testing::values_of<float>(got, "jpg");
      const std::size_t row = 3 * 12 * 12;
      for (std::size_t r = 0; r < got.valid_rows(); ++r) {
        seen.pictures.emplace_back(pixels.begin() + static_cast<std::ptrdiff_t>(r * row),
                                   pixels.begin() + static_cast<std::ptrdiff_t>((r + 1) * row));
        seen.row_digests.push_back(got.row_digests()[r].hex());
      }
      seen.labels = testing::values_of<std::int64_t>(got, "cls");
      seen.content = got.content_digest()->hex();
      if (options.mix == batch_mix()) continue;
      seen.partners = testing::values_of<std::int64_t>(got, "cls.partner");
      seen.weights = testing::values_of<float>(got, "mix.weight");
    }
  }
  return all;
}

void expect_mixed(const dataset& from, loader_options options, const batch_mix& how) {
  const std::vector<seen_rows> before = run(from, options);
  options.mix = how;
  const std::vector<seen_rows> after = run(from, options);
  ASSERT_EQ(before.size(), after.size());
  std::size_t changed = 0;
  for (std::size_t b = 0; b < after.size(); ++b) {
    const seen_rows& plain = before[b];
    const seen_rows& mixed = after[b];
    EXPECT_EQ(mixed.labels, plain.labels);
    const std::size_t rows = plain.pictures.size();
    ASSERT_EQ(mixed.weights.size(), rows);
    ASSERT_EQ(mixed.partners.size(), rows);
    if (rows != 0) EXPECT_NE(mixed.content, plain.content) << "a batch's digest is taken after mixing";
    for (std::size_t r = 0; r < rows; ++r) {
      const std::size_t partner = (r + 1) % rows;
      EXPECT_EQ(mixed.partners[r], plain.labels[partner]);
      EXPECT_EQ(mixed.row_digests[r], plain.row_digests[r]) << "a row's is taken before";
      const float weight = mixed.weights[r];
      std::size_t own = 0;
      for (std::size_t i = 0; i < plain.pictures[r].size(); ++i) {
        const float got = mixed.pictures[r][i];
        if (how.what == batch_mix::kind::mixup) {
          const float first = weight * plain.pictures[r][i];
          const float second = (1.0F - weight) * plain.pictures[partner][i];
          ASSERT_EQ(got, first + second);
        } else {
          ASSERT_TRUE(got == plain.pictures[r][i] || got == plain.pictures[partner][i]);
          own += got == plain.pictures[r][i] ? 1 : 0;
        }
      }
      if (how.what == batch_mix::kind::cutmix) {
        // Pixels that are equal in both count as own.
        EXPECT_GE(static_cast<double>(own) / static_cast<double>(plain.pictures[r].size()),
                  static_cast<double>(weight) - 1e-6);
      }
      changed += mixed.pictures[r] != plain.pictures[r] ? 1 : 0;
    }
  }
  EXPECT_GT(changed, 20U);
}

TEST(mixed_batches, are_what_mixup_says_of_the_rows_before) {
  const watchdog dog("mixup");
  expect_mixed(fake_dataset(samples()), testing::small_options(), mixup(0.8));
}

TEST(mixed_batches, are_what_cutmix_says_of_the_rows_before) {
  const watchdog dog("cutmix");
  loader_options options = testing::small_options();
  options.decode_threads = 0;  // the loader's own choice
  expect_mixed(fake_dataset(samples()), options, cutmix());
}

// Partners are the rows that are there, and not those that were planned.
TEST(mixed_batches, mix_what_is_left_of_a_batch) {
  const watchdog dog("mixing with holes");
  std::vector<testing::fake_sample> damaged = samples();
  for (std::size_t i = 0; i < damaged.size(); i += 4) damaged[i].find("cls")->bytes = testing::to_bytes("none");
  loader_options options = testing::small_options();
  options.on_corrupt = corrupt_policy::skip;
  options.batch_size = 2;  // some have one row, which is its own partner, or none
  expect_mixed(fake_dataset(damaged), options, mixup(0.8));
}

TEST(mixed_batches, are_the_same_whatever_the_machine_does) {
  testing::for_each_seed(8, [](std::uint64_t seed) {
    const watchdog dog("mixing at any seed");
    testing::seeded_random random(seed);
    loader_options options = testing::small_options();
    options.mix = seed % 2 == 0 ? mixup(0.5) : cutmix(0.5);
    const auto contents = [&](const dataset& from) {
      std::vector<std::string> all;
      for (const seen_rows& each : run(from, options)) all.push_back(each.content);
      return all;
    };
    options.decode_threads = 1;
    const std::vector<std::string> expected = contents(fake_dataset(samples()));
    options.decode_threads = static_cast<std::uint32_t>(2 + random.below(6));
    options.prefetch_batches = static_cast<std::uint32_t>(1 + random.below(5));
    testing::fake_dataset_options where;
    where.disk.seed = seed;
    EXPECT_EQ(contents(fake_dataset(samples(), where)), expected);
  });
}

// Its members are kept in the batch until all are there, and are no part of what the trainer sees.
TEST(mixed_batches, state_the_digest_of_what_a_field_of_several_members_makes) {
  const watchdog dog("mixing beside several members");
  const custom sizes = custom({{.name = "sizes", .type = dtype::i64, .row_shape = {2}},
                               {.name = "joined", .type = dtype::u8, .bytes_max = 64}},
                              [](custom_sample& sample, std::span<custom_row> rows) -> std::string {
                                for (std::size_t m = 0; m < 2; ++m) {
                                  const auto size = static_cast<std::int64_t>(sample.members[m].size());
                                  std::memcpy(rows[0].bytes.data() + m * sizeof size, &size, sizeof size);
                                }
                                rows[1].used = sample.members[1].size();
                                std::memcpy(rows[1].bytes.data(), sample.members[1].data(), rows[1].used);
                                return {};
                              })
                           .from({"txt", "cls"});
  for (const batch_mix how : {mixup(0.8), cutmix(1.0)}) {
    loader_options options = testing::small_options();
    options.mix = how;
    loader train(fake_dataset(samples()), options, {image("jpg").random_resized_crop(12).normalize(imagenet), sizes});
    std::size_t batches = 0;
    for (const batch& got : train.blocking()) {
      const std::vector<std::string> outputs(got.outputs().begin(), got.outputs().end());
      EXPECT_EQ(outputs, (std::vector<std::string>{"jpg", "sizes", "joined", "joined.offsets", "mix.weight"}));
      ASSERT_TRUE(got.content_digest());
      static_cast<void>(testing::look_at(got));  // the bytes that lie there have it
      ++batches;
    }
    EXPECT_GT(batches, 1U);
  }
}

TEST(mixed_batches, may_be_left_at_any_moment) {
  testing::for_each_seed(20, [](std::uint64_t seed) {
    const watchdog dog("mixing, and gone");
    testing::seeded_random random(seed);
    loader_options options = testing::small_options();
    options.mix = mixup();
    loader train(fake_dataset(samples()), options, testing::all_fields());
    for (std::uint64_t left = random.below(5); left != 0; --left) EXPECT_TRUE(train.next_blocking());
  });
}

}  // namespace
}  // namespace leat
