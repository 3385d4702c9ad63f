// Orders of one's own: what comes twice is drawn twice and has room, and nobody gets what the order does not give.
#include "tests/loader/running.hpp"
#include "tests/support/raw_files.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/support/watchdog.hpp"

#include <leat/loading.hpp>
#include <leat/open_tokens.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace leat {
namespace {

using ::testing::AllOf;
using testing::fake_dataset;
using testing::fake_sample;
using ::testing::HasSubstr;
using testing::loader;
using testing::loader_options;
using testing::small_options;
using testing::watchdog;

using batch_rows = std::vector<pick>;
using epoch_batches = std::vector<batch_rows>;

/// An order that is written down.
class listed_sampler : public sampler {
 public:
  explicit listed_sampler(std::vector<epoch_batches> epochs, bool repeats = true)
      : epochs_(std::move(epochs)), repeats_(repeats) {}

  std::uint64_t batches(std::uint32_t epoch) const override { return epochs_.at(epoch).size(); }
  std::uint32_t rows(std::uint32_t epoch, std::uint64_t batch) const override {
    return static_cast<std::uint32_t>(epochs_.at(epoch).at(batch).size());
  }
  std::uint32_t rows_max() const override {
    std::uint32_t most = 1;
    for (std::uint32_t epoch = 0; epoch < epochs_.size(); ++epoch) {
      for (std::uint64_t batch = 0; batch < batches(epoch); ++batch) most = std::max(most, rows(epoch, batch));
    }
    return most;
  }
  void picks(std::uint32_t epoch, std::uint64_t batch, std::uint32_t row_begin, std::uint32_t row_end,
             std::span<pick> out) const override {
    const batch_rows& all = epochs_.at(epoch).at(batch);
    std::copy(all.begin() + row_begin, all.begin() + row_end, out.begin());
  }
  bool repeats() const override { return repeats_; }

 private:
  std::vector<epoch_batches> epochs_;
  bool repeats_;
};

loader_options with(std::shared_ptr<const sampler> order, std::uint32_t epochs = 1) {
  loader_options options = small_options();
  options.epochs = epochs;
  options.order = sampled_by(std::move(order));
  options.batch_size = 1;  // and others that say nothing then
  options.shuffle = false;
  return options;
}

/// So many rows of one sample, each with a draw of its own.
batch_rows draws_of(std::uint64_t sample, std::uint32_t rows, std::uint32_t epoch = 0) {
  batch_rows made;
  for (std::uint64_t draw = 0; draw < rows; ++draw) made.push_back({.sample = sample, .draw = draw, .epoch = epoch});
  return made;
}

/// With texts of which only two large ones fit where nothing comes twice.
std::vector<fake_sample> pictures_with_texts() {
  std::vector<fake_sample> samples = testing::make_samples(1, 12);
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const std::size_t bytes = i == 3 ? std::size_t{1} << 20 : i;
    samples[i].find("txt")->bytes = testing::to_bytes(std::string(bytes, static_cast<char>('a' + i)));
  }
  return samples;
}

TEST(own_order, a_sample_that_comes_twice_has_room_for_both_and_two_crops) {
  const watchdog dog("a sample twice");
  const std::vector<fake_sample> samples = pictures_with_texts();
  const fake_dataset set(samples);
  batch_rows rows = draws_of(3, 7);
  rows.push_back(rows[2]);  // the same draw once more
  rows.push_back({.sample = 3, .draw = 2, .epoch = 5});
  const auto order = std::make_shared<listed_sampler>(std::vector<epoch_batches>{{rows, draws_of(2, 4), rows}});
  loader train(set, with(order), testing::all_fields());
  std::vector<std::vector<std::string>> digests;
  for (const batch& got : train.blocking()) {
    std::vector<std::string>& now = digests.emplace_back();
    for (std::size_t row = 0; row < got.valid_rows(); ++row) {
      const fake_sample& of = samples[got.ids()[row]];
      EXPECT_EQ(testing::row_of(got, "txt", row), of.find("txt")->bytes);
      EXPECT_EQ(testing::row_of(got, "json", row), of.find("json")->bytes);
      now.push_back(got.row_digests()[row].hex());
    }
    EXPECT_NE(testing::row_of(got, "jpg", 0), testing::row_of(got, "jpg", 1)) << "two draws, one crop";
  }
  ASSERT_EQ(digests.size(), 3U);
  ASSERT_EQ(digests[0].size(), 9U);
  EXPECT_EQ(digests[0], digests[2]);
  EXPECT_EQ(digests[0][7], digests[0][2]) << "equal draws are drawn alike";
  EXPECT_EQ(std::set<std::string>(digests[0].begin(), digests[0].end()).size(), 8U)
      << "each draw, and the draw in another epoch, has a crop of its own";

  // Drawn as today's orders draw: by the sample and the epoch.
  loader usual(
      set,
      [] {
        loader_options options = small_options();
        options.epochs = 1;
        return options;
      }(),
      testing::all_fields());
  std::string of_three;
  for (const batch& got : usual.blocking()) {
    for (std::size_t row = 0; row < got.valid_rows(); ++row) {
      if (got.ids()[row] == 3) of_three = got.row_digests()[row].hex();
    }
  }
  EXPECT_EQ(of_three, digests[0][3]);
}

TEST(own_order, a_sample_that_comes_twice_is_mixed_twice_and_has_two_windows) {
  const watchdog dog("a sample twice, mixed and cut");
  const fake_dataset set(testing::make_samples(1, 4));
  const auto order = std::make_shared<listed_sampler>(std::vector<epoch_batches>{{draws_of(1, 8)}});
  loader_options options = with(order);
  options.mix = mixup(0.4);
  loader mixed(set, options, image("jpg").resize(8, 8).normalize(imagenet), label("cls"));
  const auto weights = testing::values_of<float>(*mixed.next_blocking(), "mix.weight");
  EXPECT_EQ(std::set<float>(weights.begin(), weights.end()).size(), 8U);

  const testing::temporary_directory root;
  const dataset tokens_of = open_tokens(
      testing::write_file(root.path() / "t.bin", testing::bytes_of(testing::counting<std::uint16_t>(5000))));
  const tokens how{.length = 16, .windows = window_order::random};
  loader windows(cut_windows(tokens_of, how), with(order), how);
  const batch got = *windows.next_blocking();
  const auto x = testing::values_of<std::int64_t>(got, "x");
  std::set<std::int64_t> begins;
  for (std::size_t row = 0; row < 8; ++row) begins.insert(x[row * 16]);
  EXPECT_EQ(begins.size(), 8U);
}

TEST(own_order, can_be_of_windows_and_of_some_of_them) {
  const watchdog dog("orders of windows");
  const testing::temporary_directory root;
  const dataset from = open_tokens(
      testing::write_file(root.path() / "t.bin", testing::bytes_of(testing::counting<std::uint16_t>(1000))));
  const tokens how{.length = 16, .windows = window_order::tiled, .documents = document_rule::mark};
  const dataset windows = cut_windows(from, how);
  ASSERT_EQ(windows.size(), 62U);
  const auto begins = [&](const dataset& set, const batch_rows& rows) {
    loader train(set, with(std::make_shared<listed_sampler>(std::vector<epoch_batches>{{rows}})), how);
    const batch got = *train.next_blocking();
    const auto x = testing::values_of<std::int64_t>(got, "x");
    std::vector<std::int64_t> first;
    for (std::size_t row = 0; row < got.valid_rows(); ++row) {
      first.push_back(x[row * 16]);
      EXPECT_EQ(testing::values_of<std::int32_t>(got, "position")[row * 16 + 15], 15);
    }
    return first;
  };
  const batch_rows some{{.sample = 5}, {.sample = 0}, {.sample = 2}};
  EXPECT_EQ(begins(windows, some), (std::vector<std::int64_t>{80, 0, 32}));
  EXPECT_EQ(begins(windows.slice(10, 6), some), (std::vector<std::int64_t>{240, 160, 192}));
  EXPECT_EQ(begins(concat({windows.slice(30, 3), windows.slice(7, 3)}), some),
            (std::vector<std::int64_t>{144, 480, 512}));

  // One sample as long as a window, which could pass for one.
  const dataset uncut = open_tokens(
      testing::write_file(root.path() / "one.bin", testing::bytes_of(testing::counting<std::uint16_t>(17))));
  EXPECT_THAT(testing::message_of(errc::usage, [&] { static_cast<void>(concat({windows, uncut, windows})); }),
              AllOf(HasSubstr("concat: the field 'tokens'"), HasSubstr("cut_windows()")));

  EXPECT_THAT(
      testing::message_of(errc::usage, [&] { const loader train(windows, small_options(), tokens{.length = 8}); }),
      HasSubstr("another rule"));
  EXPECT_THAT(
      testing::message_of(errc::usage, [&] { const loader train(windows, small_options(), how, tokens{.length = 8}); }),
      HasSubstr("another rule"));
}

TEST(own_order, that_repeats_samples_and_denies_it_ends_the_run_and_writes_nowhere) {
  const watchdog dog("a sample twice, denied");
  std::vector<fake_sample> samples = pictures_with_texts();
  samples[3].find("txt")->bytes.resize(std::size_t{5} << 20, std::byte{'x'});
  const fake_dataset set(samples);
  const auto order =
      std::make_shared<listed_sampler>(std::vector<epoch_batches>{{{{.sample = 1}}, draws_of(3, 4)}}, false);
  loader train(set, with(order), testing::all_fields());
  EXPECT_EQ(train.next_blocking()->ids()[0], 1U) << "in the turn of the batch that is too large";
  EXPECT_THAT(testing::message_of(errc::usage, [&] { static_cast<void>(train.next_blocking()); }),
              AllOf(HasSubstr("batch 1 of epoch 0"), HasSubstr("repeats()")));
}

TEST(own_order, that_gives_what_cannot_be_ends_the_run_and_says_what) {
  const watchdog dog("impossible orders");
  const fake_dataset set(testing::make_samples(1, 10));
  const auto refused = [&](std::shared_ptr<const sampler> order, std::uint32_t epochs = 1) {
    return testing::message_of(errc::usage, [&] {
      loader train(set, with(order, epochs), testing::label_only());
      for (std::uint32_t call = 0; call < 10; ++call) static_cast<void>(train.next_blocking());
    });
  };
  const auto rows_of = [](batch_rows rows) {
    return std::make_shared<listed_sampler>(std::vector<epoch_batches>{{std::move(rows)}});
  };
  EXPECT_THAT(
      refused(rows_of({{.sample = 1}, {.sample = 10}})),
      AllOf(HasSubstr("row 1 of batch 0 of epoch 0"), HasSubstr("sample 10"), HasSubstr("has 10, numbered from 0")));
  EXPECT_THAT(refused(rows_of({{.sample = 1, .draw = std::uint64_t{1} << 48}})), HasSubstr("less than 2^48"));
  EXPECT_THAT(refused(rows_of({})), HasSubstr("0 rows"));
  EXPECT_THAT(refused(std::make_shared<listed_sampler>(std::vector<epoch_batches>{{{{.sample = 1}}}, {}}), 2),
              HasSubstr("gives 0 batches for epoch 1, and 1 for the first one"));
  const auto late = std::make_shared<listed_sampler>(std::vector<epoch_batches>{{}, {}, {{{.sample = 1}}}});
  EXPECT_THAT(refused(late, 3), HasSubstr("gives 1 batches for epoch 2, and 0 for the first one"));

  struct narrow final : listed_sampler {
    using listed_sampler::listed_sampler;
    std::uint32_t rows_max() const override { return 2; }
  };
  EXPECT_THAT(refused(std::make_shared<narrow>(std::vector<epoch_batches>{{draws_of(1, 3)}})), HasSubstr("rows_max()"));
  struct broken final : listed_sampler {
    using listed_sampler::listed_sampler;
    void picks(std::uint32_t, std::uint64_t, std::uint32_t, std::uint32_t, std::span<pick>) const override {
      throw error(errc::usage, "thrown by the user");
    }
  };
  EXPECT_EQ(refused(std::make_shared<broken>(std::vector<epoch_batches>{{draws_of(1, 3)}})), "thrown by the user");
}

TEST(own_order, can_be_asked_for_a_batch_before_an_epoch_that_cannot_be) {
  const watchdog dog("batch_at before an empty epoch");
  const fake_dataset set(testing::make_samples(1, 10));
  const auto order = std::make_shared<listed_sampler>(
      std::vector<epoch_batches>{{{{.sample = 1}}, {{.sample = 2}}}, {{{.sample = 3}}}, {}});
  const loader train(set, with(order, 3), testing::label_only());
  EXPECT_EQ(train.batch_at(1, 0).ids()[0], 3U);
  EXPECT_EQ(train.rows(), 2U);
  EXPECT_EQ(train.options().epochs, 3U);
}

// --- what the loader is told ------------------------------------------------------------------------------------------

std::vector<std::vector<std::uint64_t>> ids_of(const dataset& set, loader_options options) {
  options.epochs = 1;
  loader train(set, options, testing::label_only());
  std::vector<std::vector<std::uint64_t>> batches;
  for (const batch& got : train.blocking()) batches.emplace_back(got.ids().begin(), got.ids().end());
  return batches;
}

TEST(orders, by_name_are_what_shuffle_says) {
  const watchdog dog("orders by name");
  const fake_dataset set(testing::make_samples(1, 30));
  for (const bool shuffle : {false, true}) {
    loader_options in_short = small_options();
    in_short.shuffle = shuffle;
    loader_options named = small_options();
    named.order = shuffle ? shuffled() : sequential();
    EXPECT_EQ(ids_of(set, named), ids_of(set, in_short));
  }
  EXPECT_EQ(sequential().name(), "sequential");
  EXPECT_EQ(shuffled().name(), "shuffled");
}

TEST(orders, keep_drop_or_pad_the_last_batch) {
  const watchdog dog("the last batch");
  const fake_dataset set(testing::make_samples(1, 10));
  loader_options options = small_options();
  options.batch_size = 4;
  const auto kept = ids_of(set, options);
  ASSERT_EQ(kept.size(), 3U);
  EXPECT_EQ(kept[2].size(), 2U);
  options.last = last_batch::drop;
  const auto dropped = ids_of(set, options);
  EXPECT_EQ(dropped, (std::vector<std::vector<std::uint64_t>>{kept[0], kept[1]}));
  options.last = last_batch::keep;
  options.drop_last = true;
  EXPECT_EQ(ids_of(set, options), dropped);
  options.drop_last = false;
  options.last = last_batch::pad;
  const auto padded = ids_of(set, options);
  EXPECT_EQ(padded, (std::vector<std::vector<std::uint64_t>>{
                        kept[0], kept[1], {kept[2][0], kept[2][1], kept[0][0], kept[0][1]}}));
  options.batch_size = 25;
  EXPECT_EQ(ids_of(set, options).at(0).size(), 25U) << "ten samples, again and again";
}

TEST(orders, refuse_what_contradicts) {
  const fake_dataset set(testing::make_samples(1, 10));
  const auto refused = [&](loader_options options) {
    return testing::message_of(errc::usage, [&] { const loader train(set, options, testing::label_only()); });
  };
  loader_options options = small_options();
  options.drop_last = true;
  options.last = last_batch::pad;
  EXPECT_THAT(refused(options), HasSubstr("drop_last is the short form of last = drop, and last is pad"));
  options = with(std::make_shared<listed_sampler>(std::vector<epoch_batches>{{draws_of(1, 3)}}));
  options.last = last_batch::drop;
  EXPECT_THAT(refused(options), AllOf(HasSubstr("sampled_by"), HasSubstr("leave last and drop_last out")));
  EXPECT_THAT(testing::message_of(errc::usage, [] { static_cast<void>(sampled_by(nullptr)); }),
              HasSubstr("no sampler was given"));
}

// --- orders with samples that come twice -------------------------------------------------------------------------------

TEST(orders, two_picks_of_a_sample_differ_in_crop) {
  const watchdog dog("two crops of a sample");
  const fake_dataset fake(testing::make_samples(1, 12));
  std::vector<std::int64_t> classes;
  for (std::int64_t i = 0; i < 12; ++i) classes.push_back(i < 2 ? 0 : 1);
  const dataset set = fake.get().with_column("group", classes);
  std::vector<double> weights(12, 0.1);
  weights[3] = 5;
  const dataset halves = concat({fake.get().slice(0, 2), fake.get().slice(2, 10)});
  const std::vector<std::pair<order, dataset>> all = {
      {repeated(3), set}, {weighted(weights, 36), set}, {balanced("group", 36), set}, {mixed_by({1, 1}, 36), halves}};
  for (const auto& [what, samples] : all) {
    loader_options options = small_options();
    options.order = what;
    options.epochs = 2;
    loader train(samples, options, image("jpg").random_resized_crop(32));
    std::map<std::uint64_t, std::vector<std::string>> of_sample;
    for (std::uint32_t epoch = 0; epoch < 2; ++epoch) {
      for (const batch& got : train.blocking()) {
        for (std::size_t row = 0; row < got.valid_rows(); ++row) {
          of_sample[got.ids()[row]].push_back(got.row_digests()[row].hex());
        }
      }
    }
    std::size_t twice = 0;
    for (const auto& [sample, digests] : of_sample) {
      twice += digests.size() > 3;
      EXPECT_EQ(std::set<std::string>(digests.begin(), digests.end()).size(), digests.size())
          << what.name() << ", sample " << sample;
    }
    EXPECT_GE(twice, 1U) << what.name();
  }
}

TEST(orders, mix_token_windows_of_each_part_for_itself) {
  const watchdog dog("mixtures of windows");
  const testing::temporary_directory root;
  const auto file = [&](const char* name, std::uint16_t first, std::size_t count) {
    std::vector<std::uint16_t> values(count);
    for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<std::uint16_t>(first + i % 1000);
    return open_tokens(testing::write_file(root.path() / name, testing::bytes_of(values)));
  };
  const dataset web = file("web.bin", 0, 5000);
  const dataset books = file("books.bin", 10'000, 500);
  for (const window_order windows : {window_order::shifted, window_order::tiled, window_order::random}) {
    const tokens how{.length = 16, .windows = windows};
    const auto begins = [&](const mixture& mixed) {
      loader_options options = small_options();
      options.batch_size = 20;
      options.epochs = 1;
      options.order = mixed;
      loader train(mixed, options, how);
      std::vector<std::int64_t> first;
      for (const batch& got : train.blocking()) {
        std::size_t of_books = 0;
        const auto x = testing::values_of<std::int64_t>(got, "x");
        for (std::size_t row = 0; row < got.valid_rows(); ++row) {
          first.push_back(x[row * 16]);
          of_books += x[row * 16] >= 10'000;
        }
        if (got.valid_rows() == 20) EXPECT_EQ(of_books, 6U);
      }
      return first;
    };
    EXPECT_GT(begins(mixture({{cut_windows(web, how), 0.7}, {cut_windows(books, how), 0.3}})).size(), 300U);
  }
}

TEST(orders, bucket_by_the_bytes_of_a_field) {
  const watchdog dog("buckets of texts");
  const fake_dataset set(testing::make_samples(1, 200));
  loader_options options = small_options();
  options.epochs = 1;
  options.order = bucketed({.length = "txt", .tokens_max = 1000, .rows_max = 32});
  loader train(set, options, text("txt"));
  std::size_t samples = 0;
  std::size_t bytes = 0;
  std::size_t padding = 0;
  for (const batch& got : train.blocking()) {
    std::size_t longest = 0;
    for (std::size_t row = 0; row < got.valid_rows(); ++row) {
      longest = std::max(longest, testing::row_of(got, "txt", row).size());
      bytes += testing::row_of(got, "txt", row).size();
      padding -= testing::row_of(got, "txt", row).size();
    }
    padding += longest * got.valid_rows();
    EXPECT_LE(longest * got.valid_rows(), 1000U);
    samples += got.valid_rows();
  }
  EXPECT_EQ(samples, 200U);
  EXPECT_EQ(train.stats().ragged_bytes, bytes);
  EXPECT_EQ(train.stats().ragged_padding_bytes, padding);
}

// --- substitutes ------------------------------------------------------------------------------------------------------

/// Every third sample is corrupt.
std::vector<fake_sample> damaged_samples(std::size_t count) {
  std::vector<fake_sample> samples = testing::make_samples(1, count);
  for (std::size_t i = 0; i < count; i += 3) samples[i].defect = "known to be damaged";
  return samples;
}

/// Under `substitute`: whether each row is a sample that the order gives in its epoch, and undamaged.
void expect_only_its_own(const dataset& set, const std::vector<epoch_batches>& epochs) {
  loader_options options =
      with(std::make_shared<listed_sampler>(epochs, false), static_cast<std::uint32_t>(epochs.size()));
  options.on_corrupt = corrupt_policy::substitute;
  loader train(set, options, testing::label_only());
  for (std::uint32_t epoch = 0; epoch < epochs.size(); ++epoch) {
    std::set<std::uint64_t> own;
    std::size_t planned = 0;
    for (const batch_rows& rows : epochs[epoch]) {
      for (const pick& row : rows) own.insert(row.sample);
      planned += rows.size();
    }
    std::size_t delivered = 0;
    for (const batch& got : train.blocking()) {
      for (const std::uint64_t id : got.ids()) {
        EXPECT_TRUE(own.contains(id)) << "sample " << id << " is not this order's in epoch " << epoch;
        EXPECT_NE(id % 3, 0U);
        ++delivered;
      }
    }
    EXPECT_EQ(delivered, planned);
  }
  EXPECT_GT(train.stats().substituted, 0U);
}

TEST(own_order, a_rank_gets_substitutes_from_its_own_samples_of_the_epoch) {
  const watchdog dog("substitutes of a rank");
  constexpr std::uint32_t ranks = 3;
  constexpr std::uint32_t share = 5;
  const fake_dataset set(damaged_samples(90));
  const global_sampler all(90, {.seed = 4, .batch_size = ranks * share});
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    std::vector<epoch_batches> epochs(2);
    for (std::uint32_t epoch = 0; epoch < 2; ++epoch) {
      for (std::uint64_t index = 0; index < all.batches(epoch); ++index) {
        batch_rows& rows = epochs[epoch].emplace_back(share);
        all.picks(epoch, index, rank * share, (rank + 1) * share, rows);
      }
    }
    expect_only_its_own(set, epochs);
  }
}

TEST(own_order, a_subset_gets_substitutes_from_the_subset) {
  const watchdog dog("substitutes of a subset");
  const fake_dataset set(damaged_samples(90));
  epoch_batches batches;
  for (std::uint64_t first = 30; first < 42; first += 4) {
    batches.push_back({{.sample = first}, {.sample = first + 1}, {.sample = first + 2}, {.sample = first + 3}});
  }
  expect_only_its_own(set, {batches});

  // The dataset's own subset, in the usual order.
  loader_options options = small_options();
  options.epochs = 1;
  options.on_corrupt = corrupt_policy::substitute;
  loader train(set.get().slice(30, 12), options, testing::label_only());
  for (const batch& got : train.blocking()) {
    const testing::seen_batch seen = testing::look_at(got);
    for (const std::int64_t label : seen.labels()) {
      EXPECT_TRUE(label >= 1030 && label < 1042) << label;
    }
  }
  EXPECT_EQ(train.stats().substituted, 4U);
}

}  // namespace
}  // namespace leat
