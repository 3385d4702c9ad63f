// What each order gives, asked in any way; and that it is as random as it says, beside orders that are not.
#include "base/random.hpp"
#include "datasets/model/model.hpp"
#include "datasets/model/sample_blocks.hpp"
#include "stages/order/made_ahead.hpp"
#include "stages/order/order_model.hpp"
#include "stages/order/permutation.hpp"
#include "stages/order/sample_places.hpp"
#include "stages/order/share_schedule.hpp"
#include "tests/support/chi_square.hpp"
#include "tests/support/failures.hpp"
#include "tests/support/in_blocks.hpp"
#include "tests/support/seeds.hpp"

#include <leat/description.hpp>
#include <leat/error.hpp>
#include <leat/order.hpp>
#include <leat/own_samples.hpp>
#include <leat/world.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <numeric>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

namespace leat {
namespace {

using ::testing::AllOf;
using testing::deviation;
using testing::deviation_from;
using testing::deviation_max;
using testing::for_each_seed;
using ::testing::HasSubstr;
using picks = std::vector<pick>;
using stages::permutation;

dataset numbers(std::uint64_t samples) {
  return from_function(samples, [](std::uint64_t) { return std::vector<std::byte>(); }, {.field = "x", .bytes_max = 1});
}

std::shared_ptr<const sampler> bound(const order& what, const dataset& samples, std::uint64_t seed = 7,
                                     std::uint32_t batch_size = 16, last_batch last = last_batch::keep) {
  return what.model().bind(samples, {.seed = seed, .batch_size = batch_size, .last = last});
}

picks batch_of(const sampler& order, std::uint32_t epoch, std::uint64_t batch) {
  picks rows(order.rows(epoch, batch));
  order.picks(epoch, batch, 0, order.rows(epoch, batch), rows);
  return rows;
}

picks epoch_of(const sampler& order, std::uint32_t epoch) {
  picks all;
  for (std::uint64_t batch = 0; batch < order.batches(epoch); ++batch) {
    const picks rows = batch_of(order, epoch, batch);
    all.insert(all.end(), rows.begin(), rows.end());
  }
  return all;
}

std::uint64_t draws_of(const picks& rows) {
  std::set<std::tuple<std::uint64_t, std::uint64_t, std::uint32_t>> all;
  for (const pick& row : rows) all.insert({row.sample, row.draw, row.epoch});
  return all.size();
}

constexpr std::uint64_t size_of_all = 300;

struct named_order {
  std::string name;
  leat::order order;
  dataset samples;
};

/// Zipf's law: a few long, many short.
std::vector<std::int64_t> zipf_lengths(std::uint64_t samples, std::uint64_t seed) {
  std::mt19937_64 draws(seed);
  std::vector<std::int64_t> lengths;
  for (std::uint64_t i = 0; i < samples; ++i) {
    const double uniform = static_cast<double>(draws() >> 11) * 0x1.0p-53;
    lengths.push_back(static_cast<std::int64_t>(std::min(2048.0, 4 / (1 - uniform))));
  }
  return lengths;
}

/// As numbers(), where so many neighbours share a block.
dataset in_blocks(const datasets::sample_blocks& blocks) {
  return testing::in_blocks(numbers(blocks.samples()), blocks);
}

std::vector<named_order> all_orders() {
  std::vector<double> weights;
  for (std::uint64_t i = 0; i < size_of_all; ++i) weights.push_back(static_cast<double>(i % 7) * 0.5);
  std::vector<std::int64_t> classes;
  for (std::uint64_t i = 0; i < size_of_all; ++i) classes.push_back(i < 5 ? -3 : i < 100 ? 4 : 1'000'000'000'000);
  const dataset plain = numbers(size_of_all);
  return {
      {"sequential", sequential(), plain},
      {"shuffled", shuffled(), plain},
      {"repeated", repeated(3), plain},
      {"weighted", weighted(weights, 500), plain},
      {"weighted without replacement", weighted(weights, 0, replacement::no), plain},
      {"balanced", balanced("cls", 210), plain.with_column("cls", classes)},
      {"bucketed", bucketed({.length = "length", .tokens_max = 4096, .rows_max = 40}),
       plain.with_column("length", zipf_lengths(size_of_all, 3))},
      {"mixture", mixed_by({0.5, 0.3, 0.2}), concat({numbers(200), numbers(7), numbers(93)})},
      {"shuffled_blocks", shuffled_blocks(2), in_blocks({size_of_all, 17})},
  };
}

TEST(order, gives_any_rows_of_any_batch_alone_as_they_are_when_one_walks) {
  for (const last_batch last : {last_batch::keep, last_batch::drop, last_batch::pad}) {
    for (const named_order& each : all_orders()) {
      SCOPED_TRACE(each.name);
      const auto walked = bound(each.order, each.samples, 7, 16, last);
      std::vector<std::vector<picks>> all;
      for (std::uint32_t epoch = 0; epoch < 3; ++epoch) {
        std::uint64_t rows = 0;
        all.emplace_back();
        for (std::uint64_t batch = 0; batch < walked->batches(epoch); ++batch) {
          all[epoch].push_back(batch_of(*walked, epoch, batch));
          const picks& got = all[epoch].back();
          rows += got.size();
          ASSERT_GE(got.size(), 1U);
          ASSERT_LE(got.size(), walked->rows_max());
          ASSERT_LT(walked->padded(epoch, batch), got.size());
          if (last != last_batch::pad) ASSERT_EQ(walked->padded(epoch, batch), 0U);
          for (const pick& row : got) ASSERT_LT(row.sample, each.samples.size());
          if (!walked->repeats()) {
            std::set<std::uint64_t> once;
            for (const pick& row : got) ASSERT_TRUE(once.insert(row.sample).second) << row.sample;
          }
        }
        ASSERT_EQ(walked->samples(epoch), rows);
        ASSERT_EQ(walked->sampler::samples(epoch), rows);
      }
      std::mt19937 draws(5);
      for (int i = 0; i < 200; ++i) {
        const auto epoch = static_cast<std::uint32_t>(draws() % 3);
        const std::uint64_t batch = draws() % all[epoch].size();
        const picks& whole = all[epoch][batch];
        const auto asked = i % 20 == 0 ? bound(each.order, each.samples, 7, 16, last) : walked;
        ASSERT_EQ(asked->rows(epoch, batch), whole.size());
        const auto begin = static_cast<std::uint32_t>(draws() % (whole.size() + 1));
        const auto end = begin + static_cast<std::uint32_t>(draws() % (whole.size() + 1 - begin));
        picks part(end - begin);
        asked->picks(epoch, batch, begin, end, part);
        ASSERT_EQ(part, picks(whole.begin() + begin, whole.begin() + end)) << begin << ".." << end;
      }
    }
  }
}

TEST(order, draws_each_time_that_a_sample_comes_anew) {
  for (const named_order& each : all_orders()) {
    SCOPED_TRACE(each.name);
    const auto of = bound(each.order, each.samples);
    picks all;
    for (std::uint32_t epoch = 0; epoch < 4; ++epoch) {
      const picks rows = epoch_of(*of, epoch);
      all.insert(all.end(), rows.begin(), rows.end());
    }
    EXPECT_EQ(draws_of(all), all.size());
  }
}

TEST(order, changes_with_seed_and_epoch_unless_it_is_sequential) {
  for (const named_order& each : all_orders()) {
    SCOPED_TRACE(each.name);
    const auto samples = [](const picks& rows) {
      std::vector<std::uint64_t> all;
      for (const pick& row : rows) all.push_back(row.sample);
      return all;
    };
    const auto of = bound(each.order, each.samples, 7);
    const auto other = bound(each.order, each.samples, 8);
    EXPECT_EQ(samples(epoch_of(*of, 0)) == samples(epoch_of(*of, 1)), each.name == "sequential");
    EXPECT_EQ(samples(epoch_of(*of, 0)) == samples(epoch_of(*other, 0)), each.name == "sequential");
  }
}

TEST(order, pads_with_rows_of_its_own_epoch_and_no_other) {
  for (const named_order& each : all_orders()) {
    SCOPED_TRACE(each.name);
    const auto kept = bound(each.order, each.samples, 7, 16, last_batch::keep);
    const auto padded = bound(each.order, each.samples, 7, 16, last_batch::pad);
    ASSERT_EQ(kept->batches(1), padded->batches(1));
    const picks of_epoch = epoch_of(*kept, 1);
    for (std::uint64_t batch = 0; batch < kept->batches(1); ++batch) {
      const picks own = batch_of(*kept, 1, batch);
      const picks filled = batch_of(*padded, 1, batch);
      ASSERT_EQ(filled.size(), own.size() + padded->padded(1, batch));
      ASSERT_EQ(picks(filled.begin(), filled.begin() + static_cast<std::ptrdiff_t>(own.size())), own);
      for (std::size_t row = own.size(); row < filled.size(); ++row) {
        ASSERT_NE(std::find(of_epoch.begin(), of_epoch.end(), filled[row]), of_epoch.end());
      }
    }
  }
}

TEST(order, gives_substitutes_that_it_could_have_given) {
  for (const named_order& each : all_orders()) {
    SCOPED_TRACE(each.name);
    const auto of = bound(each.order, each.samples);
    std::set<std::uint64_t> own;
    for (const pick& row : epoch_of(*of, 2)) own.insert(row.sample);
    for (std::uint64_t batch = 0; batch < of->batches(2); ++batch) {
      const std::uint64_t all = of->substitutes(2, batch);
      ASSERT_GE(all, 1U);
      for (std::uint64_t n = 0; n < all; n += 1 + all / 20)
        ASSERT_TRUE(own.contains(of->substitute(2, batch, n).sample));
    }
  }
}

TEST(order, may_be_asked_by_many_threads) {
  for (const named_order& each : all_orders()) {
    SCOPED_TRACE(each.name);
    const auto alone = bound(each.order, each.samples);
    const auto shared = bound(each.order, each.samples);
    std::atomic<int> wrong{0};
    {
      std::vector<std::jthread> threads;
      for (unsigned seed = 1; seed <= 4; ++seed) {
        threads.emplace_back([&, seed] {
          std::mt19937 draws(seed);
          for (int i = 0; i < 60; ++i) {
            const auto epoch = static_cast<std::uint32_t>(draws() % 5);
            const std::uint64_t batch = draws() % shared->batches(epoch);
            wrong += batch_of(*shared, epoch, batch) != batch_of(*alone, epoch, batch);
          }
        });
      }
    }
    EXPECT_EQ(wrong.load(), 0);
  }
}

TEST(order, names_all_that_it_was_made_of) {
  const auto digest_of = [](const leat::order& what, const dataset& samples, std::uint64_t seed = 7,
                            std::uint32_t batch_size = 16, last_batch last = last_batch::keep) {
    description out;
    bound(what, samples, seed, batch_size, last)->describe(out);
    EXPECT_TRUE(out.unnamed().empty());
    return out.digest().hex();
  };
  std::set<std::string> all;
  std::size_t described = 0;
  for (const named_order& each : all_orders()) {
    SCOPED_TRACE(each.name);
    EXPECT_EQ(digest_of(each.order, each.samples), digest_of(each.order, each.samples));
    all.insert({digest_of(each.order, each.samples), digest_of(each.order, each.samples, 7, 17),
                digest_of(each.order, each.samples, 7, 16, last_batch::drop)});
    described += 3;
  }
  const dataset set = numbers(4).with_column("cls", {1, 1, 2, 3});
  const dataset other = numbers(4).with_column("cls", {1, 2, 2, 3});
  for (const leat::order& changed :
       {repeated(2), repeated(4), weighted({1, 2, 3, 4}), weighted({1, 2, 3, 5}), weighted({1, 2, 3, 4}, 3),
        weighted({1, 2, 3, 4}, 0, replacement::no), weighted({1, 2, 3, 5}, 0, replacement::no), balanced("cls"),
        balanced("cls", 3), bucketed({.length = "cls", .tokens_max = 10}),
        bucketed({.length = "cls", .tokens_max = 11}), bucketed({.length = "cls", .tokens_max = 10, .rows_max = 3})}) {
    all.insert({digest_of(changed, set), digest_of(changed, set, 8)});
    described += 2;
  }
  for (const leat::order& of_column : {balanced("cls"), bucketed({.length = "cls", .tokens_max = 10})}) {
    all.insert(digest_of(of_column, other));
    ++described;
  }
  for (const std::uint64_t first : {1U, 2U}) {
    const dataset parts = concat({set.slice(0, first), set.slice(first, 4 - first)});
    all.insert({digest_of(mixed_by({1, 2}), parts), digest_of(mixed_by({1, 3}), parts),
                digest_of(mixed_by({1, 2}, 9), parts)});
    described += 3;
  }
  EXPECT_EQ(all.size(), described);
}

// A run that goes on must find the order that it left: these numbers may never be edited.
TEST(order, never_changes) {
  const auto first = [](const leat::order& what, const dataset& samples) {
    const auto of = bound(what, samples, 7, 6);
    std::string text;
    for (const pick& row : batch_of(*of, 3, 2)) {
      text += std::to_string(row.sample) + "/" + std::to_string(row.draw) + "/" + std::to_string(row.epoch) + " ";
    }
    return text;
  };
  std::map<std::string, std::string> got;
  for (const named_order& each : all_orders()) got[each.name] = first(each.order, each.samples);
  const std::map<std::string, std::string> recorded = {
      {"balanced", "42/42/2 188/188/1 1/1/42 242/242/1 1/1/43 80/80/2 "},
      {"bucketed", "266/266/3 65/65/3 290/290/3 255/255/3 41/41/3 159/159/3 136/136/3 "},
      {"mixture", "206/206/39 124/124/2 235/235/1 200/200/39 31/31/2 33/33/2 "},
      {"repeated", "18/54/3 18/55/3 18/56/3 94/282/3 94/283/3 94/284/3 "},
      {"sequential", "12/12/3 13/13/3 14/14/3 15/15/3 16/16/3 17/17/3 "},
      {"shuffled", "273/273/3 238/238/3 199/199/3 52/52/3 289/289/3 41/41/3 "},
      {"shuffled_blocks", "217/217/3 249/249/3 244/244/3 210/210/3 212/212/3 240/240/3 "},
      {"weighted", "255/12/3 272/13/3 47/14/3 117/15/3 3/16/3 23/17/3 "},
      {"weighted without replacement", "33/33/3 39/39/3 73/73/3 202/202/3 64/64/3 278/278/3 "},
  };
  for (const auto& [name, text] : recorded) EXPECT_EQ(got[name], text) << name;
  EXPECT_EQ(got.size(), recorded.size());
}

// --- blocks shuffled, and samples within some of them ------------------------------------------------------------------

// Wherever the first and the last one come, and whether their pools are found by arithmetic or in a list.
TEST(shuffled_blocks, stand_pool_by_pool_in_an_order_of_the_seed_whatever_their_lengths) {
  const auto blocks_at = [](const std::vector<std::uint64_t>& firsts, std::uint64_t samples) {
    datasets::sample_blocks blocks(samples);
    for (const std::uint64_t first : firsts) blocks.begin_block(first);
    return blocks;
  };
  std::vector<std::uint64_t> threes{0};  // more than a permutation keeps as a table
  while (threes.size() < 400) threes.push_back(threes.back() == 0 ? 2 : threes.back() + 3);
  const std::vector<std::pair<datasets::sample_blocks, std::uint64_t>> all = {
      {{97, 8}, 8},
      {{96, 8}, 8},
      {{5, 8}, 8},
      {blocks_at({0, 3, 11, 19, 27}, 29), 8},
      {blocks_at({0, 3}, 29), 26},
      {blocks_at({0, 20, 23, 26}, 29), 0},
      {blocks_at({0, 3, 6, 9}, 29), 0},
      {blocks_at({0, 1, 8, 9, 21}, 29), 0},
      {blocks_at(threes, threes.back() + 1), 3},
  };
  for (const auto& [blocks, equal] : all) {
    SCOPED_TRACE(blocks.samples());
    EXPECT_EQ(blocks.equal(), equal);
    for (const std::uint32_t pool_blocks : {1U, 2U, 3U, 7U}) {
      const auto of = bound(shuffled_blocks(pool_blocks), in_blocks(blocks), 7, 4);
      for (std::uint32_t epoch = 0; epoch < 5; ++epoch) {
        const permutation order(blocks.size(), random_draws(7, epoch, 0, "blocks"));
        picks wanted;
        for (std::uint64_t pool = 0; pool * pool_blocks < blocks.size(); ++pool) {
          std::vector<std::uint64_t> samples;
          for (std::uint64_t i = pool * pool_blocks; i < std::min((pool + 1) * pool_blocks, blocks.size()); ++i) {
            const std::uint64_t block = order(i);
            for (std::uint64_t k = 0; k < blocks.samples_of(block); ++k) samples.push_back(blocks.first(block) + k);
          }
          const permutation inside(samples.size(), random_draws(7, epoch, pool, "pool"));
          for (std::uint64_t i = 0; i < samples.size(); ++i) {
            wanted.push_back({.sample = samples[inside(i)], .draw = samples[inside(i)], .epoch = epoch});
          }
        }
        ASSERT_EQ(epoch_of(*of, epoch), wanted) << pool_blocks << " a pool, epoch " << epoch;
      }
    }
  }
}

// --- each sample so many times ----------------------------------------------------------------------------------------

TEST(repeated_order, gives_each_sample_n_times_side_by_side) {
  const auto of = bound(repeated(3), numbers(50), 7, 7);
  const picks rows = epoch_of(*of, 1);
  ASSERT_EQ(rows.size(), 150U);
  std::set<std::uint64_t> seen;
  for (std::size_t i = 0; i < rows.size(); i += 3) {
    EXPECT_TRUE(seen.insert(rows[i].sample).second);
    EXPECT_EQ(rows[i].sample, rows[i + 1].sample);
    EXPECT_EQ(rows[i].sample, rows[i + 2].sample);
  }
  EXPECT_EQ(epoch_of(*bound(repeated(1), numbers(50)), 4), epoch_of(*bound(shuffled(), numbers(50)), 4));
}

// --- by weight --------------------------------------------------------------------------------------------------------

/// So many samples of each place of the epochs 0..epochs-1.
template <class Use>
void for_each_row(const sampler& order, std::uint32_t epochs, const Use& use) {
  for (std::uint32_t epoch = 0; epoch < epochs; ++epoch) {
    const picks rows = epoch_of(order, epoch);
    for (std::size_t place = 0; place < rows.size(); ++place) use(epoch, place, rows[place].sample);
  }
}

/// What chi-square says of an order that is to draw each row for itself by weight: of samples, of samples at each of some places, of
/// neighbouring pairs, of pairs across epochs, and of pairs across seeds. The largest of them.
double worst_deviation(const std::function<std::shared_ptr<const sampler>(std::uint64_t seed)>& make,
                       std::span<const double> weights) {
  const std::size_t n = weights.size();
  constexpr std::uint32_t epochs = 400;
  std::vector<double> pair_shares;
  for (const double a : weights) {
    for (const double b : weights) pair_shares.push_back(a * b);
  }
  const auto order = make(11);
  const auto other = make(12);
  std::vector<std::uint32_t> single(n), neighbours(n * n), next_epoch(n * n), next_seed(n * n);
  std::vector<std::vector<std::uint32_t>> at_place(4, std::vector<std::uint32_t>(n));
  picks before;
  for (std::uint32_t epoch = 0; epoch < epochs; ++epoch) {
    const picks rows = epoch_of(*order, epoch);
    const picks of_other = epoch_of(*other, epoch);
    for (std::size_t place = 0; place < rows.size(); ++place) {
      ++single[rows[place].sample];
      if (place < at_place.size()) ++at_place[place][rows[place].sample];
      // Pairs that do not overlap: overlapping ones are no independent counts.
      if (place % 2 == 1) ++neighbours[rows[place - 1].sample * n + rows[place].sample];
      if (epoch % 2 == 1) ++next_epoch[before[place].sample * n + rows[place].sample];
      ++next_seed[rows[place].sample * n + of_other[place].sample];
    }
    before = rows;
  }
  double worst =
      std::max({std::abs(deviation_from(single, weights)), std::abs(deviation_from(neighbours, pair_shares)),
                std::abs(deviation_from(next_epoch, pair_shares)), std::abs(deviation_from(next_seed, pair_shares))});
  for (const auto& counts : at_place) worst = std::max(worst, std::abs(deviation_from(counts, weights)));
  return worst;
}

TEST(weighted_order, draws_by_weight_wherever_and_whenever) {
  const std::vector<std::vector<double>> all_weights = {
      {1, 1, 1, 1},        {1, 2, 3, 4}, {0, 1, 0, 5, 0}, {1e-300, 3e-300, 2e-300}, {1e300, 3e300, 1.5e308},
      {0.1, 10, 1, 0.5, 0}};
  for (const std::vector<double>& weights : all_weights) {
    const auto make = [&](std::uint64_t seed) { return bound(weighted(weights, 200), numbers(weights.size()), seed); };
    std::vector<double> shares = weights;  // whose products and sums can be computed
    for (double& share : shares) share /= *std::max_element(weights.begin(), weights.end());
    EXPECT_LT(worst_deviation(make, shares), deviation_max) << weights.size() << " weights, the first " << weights[0];
  }
}

TEST(weighted_order, gives_what_weighs_nothing_never_and_what_weighs_little_seldom) {
  std::vector<double> weights(1000, 0.0);
  weights[3] = 1;
  weights[500] = 1e-18;
  const auto of = bound(weighted(weights, 10'000), numbers(1000));
  for_each_row(*of, 3, [](std::uint32_t, std::size_t, std::uint64_t sample) { ASSERT_EQ(sample, 3U); });
}

/// An order that is broken in one way, to see that the tests above would be red.
class broken_sampler final : public sampler {
 public:
  using function = std::function<std::uint64_t(std::uint64_t seed, std::uint32_t epoch, std::uint64_t place)>;
  broken_sampler(std::uint64_t seed, function sample_at) : seed_(seed), sample_at_(std::move(sample_at)) {}
  std::uint64_t batches(std::uint32_t) const override { return 1; }
  std::uint32_t rows(std::uint32_t, std::uint64_t) const override { return 200; }
  std::uint32_t rows_max() const override { return 200; }
  void picks(std::uint32_t epoch, std::uint64_t, std::uint32_t row_begin, std::uint32_t,
             std::span<pick> out) const override {
    for (std::size_t i = 0; i < out.size(); ++i) {
      out[i] = {.sample = sample_at_(seed_, epoch, row_begin + i), .draw = row_begin + i, .epoch = epoch};
    }
  }

 private:
  std::uint64_t seed_;
  function sample_at_;
};

TEST(weighted_order, that_is_broken_would_be_found_out) {
  const std::vector<double> weights = {1, 2, 3, 4};
  const auto right = [&](std::uint64_t seed, std::uint32_t epoch, std::uint64_t place) {
    std::mt19937_64 draws(seed * 1'000'003 + epoch * 1009 + place);
    for (int i = 0; i < 4; ++i) static_cast<void>(draws());
    const double uniform = static_cast<double>(draws() >> 11) * 0x1.0p-53 * 10;
    return std::uint64_t{uniform < 1 ? 0U : uniform < 3 ? 1U : uniform < 6 ? 2U : 3U};
  };
  const auto worst = [&](const broken_sampler::function& sample_at) {
    return worst_deviation([&](std::uint64_t seed) { return std::make_shared<broken_sampler>(seed, sample_at); },
                           weights);
  };
  EXPECT_LT(worst(right), deviation_max) << "the test itself";
  EXPECT_GT(worst([&](auto, auto epoch, auto place) { return right(1, epoch, place); }), deviation_max) << "one seed";
  EXPECT_GT(worst([&](auto seed, auto, auto place) { return right(seed, 1, place); }), deviation_max) << "one epoch";
  EXPECT_GT(worst([&](auto seed, auto epoch, auto place) { return right(seed, epoch, place / 2); }), deviation_max)
      << "neighbours alike";
  EXPECT_GT(worst([&](auto seed, auto epoch, auto) { return right(seed, epoch, 1); }), deviation_max) << "one place";
  EXPECT_GT(worst([&](auto seed, auto epoch, auto place) { return place < 2 ? 3 : right(seed, epoch, place); }),
            deviation_max)
      << "the first places are always the heaviest's";
  EXPECT_GT(worst([&](auto seed, auto epoch, auto place) { return place % 50 == 9 ? 0 : right(seed, epoch, place); }),
            deviation_max)
      << "weights that are off by two parts in a hundred";
}

TEST(weighted_order, without_replacement_gives_each_once_and_by_weight_among_those_that_are_left) {
  const std::vector<double> weights = {1, 2, 4, 0, 3};
  const auto of = bound(weighted(weights, 3, replacement::no), numbers(5));
  std::map<std::vector<std::uint64_t>, std::uint32_t> orders;
  for (std::uint32_t epoch = 0; epoch < 20'000; ++epoch) {
    std::vector<std::uint64_t> samples;
    for (const pick& row : epoch_of(*of, epoch)) samples.push_back(row.sample);
    ASSERT_EQ(samples.size(), 3U);
    ++orders[samples];
  }
  std::vector<std::uint32_t> counts;
  std::vector<double> shares;
  for (const std::uint64_t a : {0U, 1U, 2U, 4U}) {
    for (const std::uint64_t b : {0U, 1U, 2U, 4U}) {
      for (const std::uint64_t c : {0U, 1U, 2U, 4U}) {
        if (a == b || b == c || a == c) continue;
        shares.push_back(weights[a] / 10 * weights[b] / (10 - weights[a]) * weights[c] /
                         (10 - weights[a] - weights[b]));
        counts.push_back(orders[{a, b, c}]);
      }
    }
  }
  EXPECT_EQ(std::accumulate(counts.begin(), counts.end(), 0U), 20'000U) << "something came twice, or weighed nothing";
  EXPECT_LT(std::abs(deviation_from(counts, shares)), deviation_max);
}

TEST(weighted_order, refuses_weights_that_are_none) {
  const auto refused = [](std::vector<double> weights, std::uint64_t samples_per_epoch = 0,
                          replacement how = replacement::yes) {
    return testing::message_of(errc::usage, [&] {
      static_cast<void>(bound(weighted(std::move(weights), samples_per_epoch, how), numbers(3)));
    });
  };
  EXPECT_EQ(refused({1, -2, 1}), "order weighted: the weight of sample 1 is -2; give a number from 0 on");
  EXPECT_THAT(refused({1, 1, std::nan("")}), HasSubstr("the weight of sample 2 is nan"));
  EXPECT_THAT(refused({std::numeric_limits<double>::infinity(), 1, 1}), HasSubstr("sample 0 is inf"));
  EXPECT_THAT(refused({1, 1e-310, 1}), HasSubstr("too near to 0"));
  EXPECT_EQ(refused({0, 0, 0}), "order weighted: all of 3 weights are 0");
  EXPECT_EQ(refused({1, 1}), "order weighted: 2 weights for 3 samples; give one for each");
  EXPECT_THAT(refused({1, 0, 1}, 3, replacement::no), HasSubstr("3 samples per epoch without replacement, and 2 of 3"));
  EXPECT_THAT(refused({1, 1, 1}, (std::uint64_t{1} << 48) + 1), HasSubstr("2^48"));
}

TEST(made_ahead, makes_each_epoch_once_and_the_next_one_meanwhile) {
  std::mutex mutex;
  std::map<std::uint32_t, std::vector<std::thread::id>> made;
  {
    stages::made_ahead<std::uint32_t> epochs([&](std::uint32_t epoch, const std::stop_token&) {
      const std::lock_guard lock(mutex);
      made[epoch].push_back(std::this_thread::get_id());
      return epoch * 10;
    });
    for (std::uint32_t epoch = 0; epoch < 20; ++epoch) {
      for (int i = 0; i < 3; ++i) EXPECT_EQ(*epochs.of(epoch), epoch * 10);
      if (epoch > 0) EXPECT_EQ(*epochs.of(epoch - 1), (epoch - 1) * 10) << "batches of two epochs meet";
    }
  }
  for (std::uint32_t epoch = 0; epoch < 20; ++epoch) {
    ASSERT_EQ(made[epoch].size(), 1U) << "epoch " << epoch;
    EXPECT_EQ(made[epoch][0] == std::this_thread::get_id(), epoch == 0) << "epoch " << epoch;
  }
}

TEST(made_ahead, ends_while_an_epoch_is_being_made_and_passes_on_what_failed) {
  std::atomic<bool> stopped{false};
  {
    stages::made_ahead<int> epochs([&](std::uint32_t epoch, const std::stop_token& stop) {
      if (epoch == 1) {
        while (!stop.stop_requested()) std::this_thread::yield();
        stopped = true;
      }
      return 1;
    });
    EXPECT_EQ(*epochs.of(0), 1);
  }
  EXPECT_TRUE(stopped);
  stages::made_ahead<int> failing([](std::uint32_t, const std::stop_token&) -> int { throw std::bad_alloc(); });
  EXPECT_THROW(static_cast<void>(failing.of(3)), std::bad_alloc);
  EXPECT_THROW(static_cast<void>(failing.of(4)), std::bad_alloc);
}

// --- equal shares -----------------------------------------------------------------------------------------------------

TEST(balanced_order, gives_each_value_its_share_after_any_number_of_rows_and_each_counts_its_own_epochs) {
  constexpr std::uint64_t samples = 120;
  std::vector<std::int64_t> values;
  for (std::uint64_t i = 0; i < samples; ++i) values.push_back(i < 3 ? 9 : i < 40 ? -1 : i < 41 ? 5 : 7);
  const auto of = bound(balanced("cls"), numbers(samples).with_column("cls", values), 3, 17);
  std::map<std::int64_t, std::vector<pick>> of_value;
  std::uint64_t rows = 0;
  for (std::uint32_t epoch = 0; epoch < 5; ++epoch) {
    for (const pick& row : epoch_of(*of, epoch)) {
      of_value[values[row.sample]].push_back(row);
      ++rows;
      for (const std::int64_t value : {9, -1, 5, 7}) {
        const auto share = static_cast<double>(rows) / 4;
        ASSERT_LE(std::abs(static_cast<double>(of_value[value].size()) - share), 1.0) << value << " after " << rows;
      }
    }
  }
  for (const auto& [value, of_one] : of_value) {
    const auto size = static_cast<std::size_t>(std::count(values.begin(), values.end(), value));
    for (std::size_t i = 0; i < of_one.size(); ++i) EXPECT_EQ(of_one[i].epoch, i / size);
    for (std::size_t begin = 0; begin + size <= of_one.size(); begin += size) {
      std::set<std::uint64_t> once;
      for (std::size_t i = begin; i < begin + size; ++i) once.insert(of_one[i].sample);
      EXPECT_EQ(once.size(), size) << "value " << value << ", its epoch " << begin / size;
    }
  }
}

TEST(balanced_order, puts_values_and_samples_everywhere) {
  const std::vector<std::int64_t> values = {0, 0, 0, 1, 1, 2, 2, 2, 2};
  std::vector<std::uint32_t> first_value(3), pairs(9), sample_of_two(4);
  for (std::uint64_t seed = 0; seed < 20'000; ++seed) {
    const auto of = bound(balanced("cls"), numbers(9).with_column("cls", values), seed, 9);
    const picks rows = batch_of(*of, 0, 0);
    const auto value = [&](std::size_t row) { return static_cast<std::size_t>(values[rows[row].sample]); };
    ++first_value[value(0)];
    ++pairs[value(0) * 3 + value(3)];
    for (const pick& row : rows) {
      if (row.sample < 5) continue;
      ++sample_of_two[row.sample - 5];
      break;
    }
  }
  EXPECT_LT(std::abs(deviation(first_value)), deviation_max);
  EXPECT_LT(std::abs(deviation(pairs)), deviation_max) << "rounds are drawn independently";
  EXPECT_LT(std::abs(deviation(sample_of_two)), deviation_max);
}

TEST(balanced_order, names_the_column_that_is_not_there) {
  const dataset samples = numbers(3).with_column("cls", {1, 2, 3});
  EXPECT_THAT(testing::message_of(errc::usage, [&] { static_cast<void>(bound(balanced("clas"), samples)); }),
              AllOf(HasSubstr("order balanced: the dataset has no column 'clas'; it has cls"),
                    HasSubstr("did you mean 'cls'?")));
  EXPECT_THAT(testing::message_of(errc::usage, [&] { static_cast<void>(bound(balanced("x"), samples)); }),
              HasSubstr("with_column(\"x\", read_column(samples, \"x\"))"));
  const dataset reals = numbers(3).with_column({.name = "w", .reals = {2, 1.5, 2}});
  EXPECT_THAT(testing::message_of(errc::usage, [&] { static_cast<void>(bound(balanced("w"), reals)); }),
              HasSubstr("'w' of sample 1 is 1.5, which is no whole number"));
  static_cast<void>(bound(balanced("w"), numbers(2).with_column({.name = "w", .reals = {2, 1}})));
  const dataset some = concat({samples, numbers(4)});
  EXPECT_THAT(testing::message_of(errc::usage, [&] { static_cast<void>(bound(balanced("cls"), some)); }),
              HasSubstr("sample 3 has no 'cls'"));
}

// --- like lengths together --------------------------------------------------------------------------------------------

/// What a batch's rows are padded by to its longest, and what they hold.
struct fill {
  std::uint64_t held = 0;
  std::uint64_t padding = 0;

  [[nodiscard]] double share() const { return static_cast<double>(padding) / static_cast<double>(padding + held); }
};

fill fill_of(const sampler& order, std::span<const std::int64_t> lengths) {
  fill of;
  for (std::uint64_t batch = 0; batch < order.batches(0); ++batch) {
    std::uint64_t longest = 0;
    const picks rows = batch_of(order, 0, batch);
    for (const pick& row : rows) {
      const auto length = static_cast<std::uint64_t>(lengths[row.sample]);
      longest = std::max(longest, length);
      of.held += length;
      of.padding -= length;
    }
    of.padding += longest * rows.size();
  }
  return of;
}

TEST(bucketed_order, never_exceeds_tokens_max_and_gives_each_sample_once) {
  for_each_seed(20, [](std::uint64_t seed) {
    std::mt19937_64 draws(seed);
    const std::uint64_t samples = 1 + draws() % 3000;
    std::vector<std::int64_t> lengths = zipf_lengths(samples, seed);
    if (seed % 3 == 0) std::fill(lengths.begin(), lengths.end(), static_cast<std::int64_t>(draws() % 5));
    const std::uint64_t tokens_max = 2048 + draws() % 10'000;
    const auto rows_max = static_cast<std::uint32_t>(1 + draws() % 300);
    const dataset set = numbers(samples).with_column("length", lengths);
    const auto order = bucketed({.length = "length", .tokens_max = tokens_max, .rows_max = rows_max});
    for (const last_batch last : {last_batch::keep, last_batch::drop, last_batch::pad}) {
      const auto of = bound(order, set, seed, 16, last);
      std::map<std::uint64_t, std::uint32_t> times;
      std::uint64_t padded = 0;
      for (std::uint64_t batch = 0; batch < of->batches(1); ++batch) {
        std::uint64_t longest = 0;
        const picks rows = batch_of(*of, 1, batch);
        padded += of->padded(1, batch);
        for (std::size_t row = 0; row < rows.size(); ++row) {
          longest = std::max(longest, static_cast<std::uint64_t>(lengths[rows[row].sample]));
          if (row + of->padded(1, batch) < rows.size()) ++times[rows[row].sample];
        }
        ASSERT_LE(longest * rows.size(), tokens_max);
        ASSERT_LE(rows.size(), rows_max);
      }
      for (const auto& [sample, count] : times) ASSERT_EQ(count, 1U) << sample;
      if (last == last_batch::drop) {
        ASSERT_LE(times.size(), samples);
      } else {
        ASSERT_EQ(times.size(), samples);
      }
      ASSERT_EQ(padded != 0 && last != last_batch::pad, false);
    }
  });
}

TEST(bucketed_order, pads_lengths_of_zipfs_law_a_quarter_as_much_as_plain_batches_at_most) {
  const std::vector<std::int64_t> lengths = zipf_lengths(20'000, 5);
  const dataset set = numbers(lengths.size()).with_column("length", lengths);
  const fill plain = fill_of(*bound(shuffled(), set, 7, 64), lengths);
  const fill together =
      fill_of(*bound(bucketed({.length = "length", .tokens_max = 8192, .rows_max = 512}), set), lengths);
  EXPECT_EQ(plain.held, together.held);
  RecordProperty("plain", std::to_string(plain.share()));
  RecordProperty("bucketed", std::to_string(together.share()));
  EXPECT_GT(plain.share(), 0.5);
  EXPECT_LE(together.share(), 0.25 * plain.share()) << plain.share() << " of plain batches";
}

TEST(bucketed_order, brings_samples_of_a_bucket_and_batches_of_all_buckets_into_any_order) {
  const std::vector<std::int64_t> lengths = {1, 1, 1, 1, 1, 1, 1, 1, 100, 100, 100, 100, 100, 100, 100, 100};
  const dataset set = numbers(16).with_column("length", lengths);
  std::vector<std::uint32_t> first(16), pairs(16 * 15), long_first(2);
  for (std::uint32_t epoch = 0; epoch < 40'000; ++epoch) {
    const auto of = bound(bucketed({.length = "length", .tokens_max = 200, .rows_max = 2}), set, 7 + epoch / 1000);
    const picks rows = batch_of(*of, epoch, 0);
    ASSERT_EQ(rows.size(), 2U);
    ++first[rows[0].sample];
    ++long_first[rows[0].sample / 8];
    const std::uint64_t other = rows[1].sample;
    ++pairs[rows[0].sample * 15 + (other > rows[0].sample ? other - 1 : other)];
  }
  EXPECT_LT(std::abs(deviation(first)), deviation_max);
  EXPECT_LT(std::abs(deviation(long_first)), deviation_max);
  std::vector<double> shares;
  for (std::uint64_t a = 0; a < 16; ++a) {
    for (std::uint64_t b = 0; b < 16; ++b) {
      if (a != b) shares.push_back(a / 8 == b / 8 ? 1 : 0);
    }
  }
  EXPECT_LT(std::abs(deviation_from(pairs, shares)), deviation_max);
}

TEST(bucketed_order, refuses_lengths_that_fit_nowhere) {
  const auto refused = [](std::vector<std::int64_t> lengths, bucket_options how) {
    return testing::message_of(errc::usage, [&] {
      static_cast<void>(bound(bucketed(how), numbers(lengths.size()).with_column("length", lengths)));
    });
  };
  EXPECT_THAT(refused({3, 9, 11}, {.length = "length", .tokens_max = 10}),
              HasSubstr("order bucketed: the length of sample 2 is 11, above bucket_options::tokens_max = 10"));
  EXPECT_THAT(refused({3, -9}, {.length = "length", .tokens_max = 10}), HasSubstr("the length of sample 1 is -9"));
  EXPECT_THAT(refused({3}, {.length = "lenght", .tokens_max = 10}),
              AllOf(HasSubstr("no column 'lenght'"), HasSubstr("did you mean 'length'?")));
  EXPECT_THAT(refused({3}, {.length = "length"}), HasSubstr("tokens_max is 0"));
}

// --- shares of several ------------------------------------------------------------------------------------------------

std::vector<double> random_shares(std::mt19937_64& draws) {
  std::vector<double> shares;
  const std::size_t count = 1 + draws() % 9;
  for (std::size_t k = 0; k < count; ++k) {
    const double uniform = static_cast<double>(draws() >> 11) * 0x1.0p-53;
    shares.push_back(draws() % 3 == 0 ? 1 : std::exp(-6 * uniform));
  }
  return shares;
}

TEST(share_schedule, is_within_1_of_each_share_after_any_number_of_rows_and_is_found_from_anywhere) {
  for_each_seed(40, [](std::uint64_t seed) {
    std::mt19937_64 draws(seed);
    const std::vector<double> shares = random_shares(draws);
    const double sum = std::accumulate(shares.begin(), shares.end(), 0.0);
    const stages::share_schedule schedule(shares);
    stages::share_schedule::position walked = schedule.at(0);
    for (std::uint64_t row = 0; row < 20'000; ++row) {
      if (row % 613 == 0 || row < 20) {
        stages::share_schedule::position jumped = schedule.at(row);
        for (std::size_t k = 0; k < shares.size(); ++k) ASSERT_EQ(jumped.given(k), walked.given(k)) << "row " << row;
        stages::share_schedule::position from = walked;
        for (int i = 0; i < 20; ++i) ASSERT_EQ(jumped.step(), from.step());
      }
      for (std::size_t k = 0; k < shares.size(); ++k) {
        ASSERT_LT(std::abs(static_cast<double>(walked.given(k)) - static_cast<double>(row) * shares[k] / sum), 1.0)
            << "source " << k << " after " << row;
      }
      static_cast<void>(walked.step());
    }
  });
}

TEST(share_schedule, holds_far_away) {
  const stages::share_schedule schedule(std::vector<double>{0.7, 0.2999, 0.0001});
  const std::uint64_t far = std::uint64_t{1} << 55;
  stages::share_schedule::position there = schedule.at(far);
  std::uint64_t all = 0;
  for (std::size_t k = 0; k < 3; ++k) {
    all += there.given(k);
    const auto share = static_cast<long double>(schedule.share(k)) / stages::share_schedule::whole;
    EXPECT_LT(std::abs(static_cast<long double>(there.given(k)) - static_cast<long double>(far) * share), 1.0L);
  }
  EXPECT_EQ(all, far);
}

TEST(mixture_order, gives_each_part_its_share_after_any_number_of_rows_and_each_counts_its_own_epochs) {
  const dataset set = concat({numbers(200), numbers(3), numbers(97)});
  const std::vector<std::uint64_t> begins = {0, 200, 203, 300};
  const std::vector<double> shares = {0.3, 0.1, 0.6};
  for (const last_batch last : {last_batch::keep, last_batch::drop}) {
    const auto of = bound(mixed_by(shares), set, 3, 17, last);
    std::vector<picks> of_part(3);
    std::uint64_t rows = 0;
    for (std::uint32_t epoch = 0; epoch < 5; ++epoch) {
      for (const pick& row : epoch_of(*of, epoch)) {
        const std::size_t part = row.sample < 200 ? 0 : row.sample < 203 ? 1 : 2;
        of_part[part].push_back(row);
        ++rows;
        for (std::size_t k = 0; k < 3; ++k) {
          ASSERT_LT(std::abs(static_cast<double>(of_part[k].size()) - static_cast<double>(rows) * shares[k]), 1.0);
        }
      }
    }
    for (std::size_t k = 0; k < 3; ++k) {
      const std::uint64_t size = begins[k + 1] - begins[k];
      for (std::size_t i = 0; i < of_part[k].size(); ++i) ASSERT_EQ(of_part[k][i].epoch, i / size);
      for (std::size_t begin = 0; begin + size <= of_part[k].size(); begin += size) {
        std::set<std::uint64_t> once;
        for (std::size_t i = begin; i < begin + size; ++i) once.insert(of_part[k][i].sample);
        ASSERT_EQ(once.size(), size) << "part " << k << ", its epoch " << begin / size;
      }
    }
  }
}

TEST(mixture_order, shuffles_each_part_for_itself) {
  std::vector<std::uint32_t> pairs(25);
  for (std::uint64_t seed = 0; seed < 20'000; ++seed) {
    const auto of = bound(mixed_by({1, 1}), concat({numbers(5), numbers(5)}), seed, 10);
    std::uint64_t first[2] = {99, 99};
    for (const pick& row : batch_of(*of, 0, 0)) {
      if (std::uint64_t& one = first[row.sample / 5]; one == 99) one = row.sample % 5;
    }
    ++pairs[first[0] * 5 + first[1]];
  }
  EXPECT_LT(std::abs(deviation(pairs)), deviation_max) << "parts of one size are shuffled alike";
}

TEST(mixture_order, refuses_shares_that_are_none) {
  const dataset set = concat({numbers(5), numbers(5)});
  const auto refused = [](std::vector<double> shares, const dataset& of) {
    return testing::message_of(errc::usage, [&] { static_cast<void>(bound(mixed_by(std::move(shares)), of)); });
  };
  EXPECT_THAT(refused({1, -1}, set), HasSubstr("order mixture: the share of part 1 is -1"));
  EXPECT_THAT(refused({0, 1}, set), HasSubstr("the share of part 0 is 0"));
  EXPECT_THAT(refused({1, std::nan("")}, set), HasSubstr("part 1 is nan"));
  EXPECT_THAT(refused({1, 1e-7}, set), HasSubstr("at least a millionth"));
  EXPECT_THAT(refused({1, 1, 1}, set), HasSubstr("3 shares for a dataset of 2 parts"));
  EXPECT_THAT(refused({1, 1}, concat({numbers(5), numbers(5).slice(0, 0)})), HasSubstr("part 1 has no sample"));
}

// By looking at every row.
std::vector<stages::sample_place> walked(const sampler& order, std::uint32_t epoch, std::uint64_t batches,
                                         std::uint64_t sample) {
  std::vector<stages::sample_place> found;
  for (std::uint64_t batch = 0; batch < std::min(batches, order.batches(epoch)); ++batch) {
    const picks rows = batch_of(order, epoch, batch);
    for (std::uint32_t row = 0; row < rows.size(); ++row) {
      if (rows[row].sample != sample) continue;
      found.push_back({batch, row, row >= rows.size() - order.padded(epoch, batch), rows[row]});
    }
  }
  return found;
}

TEST(places_of_a_sample, are_the_rows_that_have_it_in_each_order_and_cut) {
  const std::pair<order, bool> orders[] = {
      {sequential(), true}, {shuffled(), true}, {repeated(3), true}, {mixed_by({0.5, 0.5}, 50), false}};
  for (const auto& [what, at_once] : orders) {
    for (const last_batch last : {last_batch::keep, last_batch::drop, last_batch::pad}) {
      for (const std::uint64_t samples : {5U, 37U, 300U}) {
        if (!at_once && samples == 5) continue;
        const dataset set = !at_once ? concat({numbers(samples - 3), numbers(3)}) : numbers(samples);
        const auto order = bound(what, set, 7, 16, last);
        ASSERT_EQ(stages::finds_places(*order), at_once);
        for (const std::uint64_t batches : {~std::uint64_t{0}, std::uint64_t{2}}) {
          for (std::uint64_t sample = 0; sample < samples; ++sample) {
            ASSERT_EQ(stages::places_of(*order, samples, 7, 3, batches, sample), walked(*order, 3, batches, sample))
                << sample << " of " << samples;
          }
        }
      }
    }
  }
}

TEST(places_of_a_sample, know_the_rank_of_each_row) {
  for (const std::uint32_t size : {1U, 2U, 3U, 7U, 64U}) {
    for (std::uint32_t rows = 1; rows < 70; ++rows) {
      for (std::uint32_t rank = 0; rank < size; ++rank) {
        const world here{.rank = rank, .size = size};
        for (std::uint32_t row = here.row_begin(rows); row < here.row_end(rows); ++row) {
          ASSERT_EQ(stages::rank_of_row(row, rows, size), rank);
        }
      }
    }
  }
}

}  // namespace
}  // namespace leat
