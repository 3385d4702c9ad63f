// Nodes that keep to their shares: who has which samples, in every world, and what each epoch leaves out.
#include "datasets/model/sample_blocks.hpp"
#include "stages/order/order_model.hpp"
#include "stages/plan/run_spec.hpp"
#include "tests/support/failures.hpp"
#include "tests/support/fake_dataset.hpp"
#include "tests/support/in_blocks.hpp"

#include <leat/description.hpp>
#include <leat/error.hpp>
#include <leat/loading.hpp>
#include <leat/order.hpp>
#include <leat/own_samples.hpp>
#include <leat/samples.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace leat {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::message_of;
using picks = std::vector<pick>;

dataset numbers(std::uint64_t samples) {
  return from_function(samples, [](std::uint64_t) { return std::vector<std::byte>(); },
                       {.field = "x", .bytes_max = 1, .described_as = "nothing"});
}

datasets::sample_blocks blocks_of(const std::vector<std::uint64_t>& lengths) {
  std::uint64_t samples = 0;
  for (const std::uint64_t length : lengths) samples += length;
  datasets::sample_blocks blocks(samples);
  std::uint64_t first = 0;
  for (const std::uint64_t length : lengths) {
    blocks.begin_block(first);
    first += length;
  }
  return blocks;
}

dataset shards(const std::vector<std::uint64_t>& lengths) {
  const datasets::sample_blocks blocks = blocks_of(lengths);
  return testing::in_blocks(numbers(blocks.samples()), blocks);
}

std::shared_ptr<const sampler> bound(const order& what, const dataset& samples, std::uint32_t batch_size,
                                     last_batch last = last_batch::keep, std::uint32_t nodes = 1) {
  return what.model().bind(samples, {.seed = 7, .batch_size = batch_size, .last = last, .nodes = nodes});
}

picks rows_of(const sampler& order, std::uint32_t epoch, std::uint64_t batch, std::uint32_t begin, std::uint32_t end) {
  picks rows(end - begin);
  order.picks(epoch, batch, begin, end, rows);
  return rows;
}

picks whole_batch(const sampler& order, std::uint32_t epoch, std::uint64_t batch) {
  return rows_of(order, epoch, batch, 0, order.rows(epoch, batch));
}

/// The samples of each node in one epoch, as they come.
std::vector<std::vector<std::uint64_t>> nodes_of(const sampler& order, std::uint32_t epoch) {
  const std::uint32_t nodes = order.nodes();
  std::vector<std::vector<std::uint64_t>> all(nodes);
  for (std::uint64_t batch = 0; batch < order.batches(epoch); ++batch) {
    const picks rows = whole_batch(order, epoch, batch);
    EXPECT_EQ(rows.size() % nodes, 0U);
    for (std::size_t row = 0; row < rows.size(); ++row) all[row * nodes / rows.size()].push_back(rows[row].sample);
  }
  return all;
}

TEST(node_local_order, gives_each_node_samples_of_its_own_blocks_once_an_epoch) {
  struct set {
    dataset samples;
    std::vector<std::uint64_t> borders;  // of three nodes
  };
  const std::vector<set> sets = {
      {numbers(100), {0, 33, 66, 100}},
      {shards({20, 20, 20, 20, 20, 20}), {0, 40, 80, 120}},
      {shards({20, 20, 20, 20, 20}), {0, 40, 60, 100}},
      {shards({3, 30, 9, 1, 27}), {0, 33, 43, 70}},
      {shards({90, 5, 5}), {0, 90, 95, 100}},
      {shards({5, 5, 90}), {0, 5, 10, 100}},
  };
  for (const set& each : sets) {
    const bool has_blocks = !each.samples.model()->blocks().empty();
    for (const order& of : {sequential(), shuffled(), shuffled_blocks(2)}) {
      if (of.name() == "shuffled_blocks" && !has_blocks) continue;
      for (const last_batch last : {last_batch::keep, last_batch::drop}) {
        SCOPED_TRACE(std::string(of.name()) + " of " + std::to_string(each.samples.size()));
        const auto order = bound(node_local(of, 3), each.samples, 12, last);
        ASSERT_EQ(order->nodes(), 3U);
        std::uint64_t smallest = each.samples.size();
        for (std::size_t k = 0; k < 3; ++k) smallest = std::min(smallest, each.borders[k + 1] - each.borders[k]);
        const std::uint64_t rows = last == last_batch::drop ? smallest / 4 * 4 : smallest;
        EXPECT_EQ(order->samples(0), 3 * rows);
        EXPECT_EQ(order->sampler::samples(0), 3 * rows);
        EXPECT_EQ(order->batches(0), (rows + 3) / 4);
        std::vector<std::set<std::uint64_t>> seen(3);
        for (std::uint32_t epoch = 0; epoch < 30; ++epoch) {
          const auto nodes = nodes_of(*order, epoch);
          for (std::size_t k = 0; k < 3; ++k) {
            ASSERT_EQ(nodes[k].size(), rows);
            ASSERT_EQ(std::set<std::uint64_t>(nodes[k].begin(), nodes[k].end()).size(), rows);
            for (const std::uint64_t sample : nodes[k]) {
              ASSERT_GE(sample, each.borders[k]);
              ASSERT_LT(sample, each.borders[k + 1]);
            }
            seen[k].insert(nodes[k].begin(), nodes[k].end());
          }
        }
        // What an epoch leaves out comes in another one, where it is drawn: in thirty, of shares that are not too different.
        if (of.name() == "shuffled" && each.samples.size() != 100 && smallest > 10) {
          for (std::size_t k = 0; k < 3; ++k) EXPECT_EQ(seen[k].size(), each.borders[k + 1] - each.borders[k]);
        }
        if (of.name() == "sequential") EXPECT_EQ(seen[1].size(), rows);
      }
    }
  }
}

TEST(node_local_order, gives_any_rows_of_any_batch_alone_as_they_are_when_one_walks) {
  const dataset samples = shards({20, 17, 20, 31, 20, 11, 40});
  std::mt19937 draws(5);
  for (const order& of : {sequential(), shuffled(), shuffled_blocks(2)}) {
    const auto walked = bound(node_local(of, 4), samples, 12);
    std::map<std::pair<std::uint32_t, std::uint64_t>, picks> all;
    for (std::uint32_t epoch = 0; epoch < 3; ++epoch) {
      for (std::uint64_t batch = 0; batch < walked->batches(epoch); ++batch) {
        all[{epoch, batch}] = whole_batch(*walked, epoch, batch);
        ASSERT_LE(walked->rows(epoch, batch), walked->rows_max());
        for (const pick& row : all[{epoch, batch}]) {
          ASSERT_EQ(row.draw, row.sample) << "crops are those that the sample has without nodes";
          ASSERT_EQ(row.epoch, epoch);
        }
      }
    }
    for (int i = 0; i < 300; ++i) {
      const auto asked = i % 20 == 0 ? bound(node_local(of, 4), samples, 12) : walked;
      const auto epoch = static_cast<std::uint32_t>(draws() % 3);
      const std::uint64_t batch = draws() % asked->batches(epoch);
      const picks& whole = all[{epoch, batch}];
      const auto begin = static_cast<std::uint32_t>(draws() % (whole.size() + 1));
      const auto end = begin + static_cast<std::uint32_t>(draws() % (whole.size() + 1 - begin));
      ASSERT_EQ(rows_of(*asked, epoch, batch, begin, end), picks(whole.begin() + begin, whole.begin() + end));
    }
  }
}

TEST(node_local_order, draws_each_node_and_each_epoch_for_itself) {
  for (const order& of : {shuffled(), shuffled_blocks(2)}) {
    const auto order = bound(node_local(of, 2), shards({20, 20, 20, 20, 20, 20}), 8);
    const auto first = nodes_of(*order, 0);
    EXPECT_NE(first, nodes_of(*order, 1));
    std::vector<std::uint64_t> second = first[1];
    for (std::uint64_t& sample : second) sample -= 60;
    EXPECT_NE(first[0], second) << "shares of one size, in one order";
  }
}

TEST(node_local_order, of_one_node_is_the_order_itself) {
  const dataset samples = shards({20, 20, 20});
  EXPECT_EQ(whole_batch(*bound(node_local(shuffled(), 1), samples, 7), 2, 1),
            whole_batch(*bound(shuffled(), samples, 7), 2, 1));
  description alone, plain;
  bound(node_local(shuffled(), 1), samples, 7)->describe(alone);
  bound(shuffled(), samples, 7)->describe(plain);
  EXPECT_EQ(alone, plain);
}

TEST(node_local_order, is_described_with_its_nodes) {
  const dataset samples = shards({20, 20, 20, 20});
  const auto described = [&](const order& what) {
    description out;
    bound(what, samples, 8)->describe(out);
    EXPECT_TRUE(out.unnamed().empty());
    return out.to_json();
  };
  EXPECT_THAT(described(node_local(shuffled_blocks(2), 4)),
              AllOf(HasSubstr(R"("order":"shuffled_blocks")"), HasSubstr(R"("pool_blocks":"2")"),
                    HasSubstr(R"("nodes":"4","shares":"0,20,40,60")")));
  std::set<std::string> all;
  for (const order& of : {sequential(), shuffled(), shuffled_blocks(1), shuffled_blocks(2)}) {
    all.insert({described(of), described(node_local(of, 2)), described(node_local(of, 4))});
  }
  EXPECT_EQ(all.size(), 12U);
}

// A run that goes on must find the order that it left: these numbers may never be edited.
TEST(node_local_order, never_changes) {
  const dataset samples = shards({20, 17, 20, 31, 20, 11, 40});
  const auto first = [&](const order& of) {
    std::vector<std::uint64_t> rows;
    for (const pick& row : whole_batch(*bound(node_local(of, 3), samples, 6), 3, 2)) rows.push_back(row.sample);
    return rows;
  };
  EXPECT_THAT(first(sequential()), ElementsAre(4, 5, 61, 62, 112, 113));
  EXPECT_THAT(first(shuffled()), ElementsAre(55, 1, 81, 72, 142, 148));
  EXPECT_THAT(first(shuffled_blocks(2)), ElementsAre(38, 47, 70, 61, 145, 117));
}

TEST(node_local_order, says_what_cannot_be) {
  const dataset samples = shards({20, 20, 20, 20});
  const auto refusal = [&](const order& what, std::uint32_t batch_size = 8, last_batch last = last_batch::keep,
                           std::uint32_t nodes = 1) {
    return message_of(errc::usage, [&] { bound(what, samples, batch_size, last, nodes); });
  };
  EXPECT_THAT(refusal(node_local(repeated(2), 2)),
              HasSubstr("order node_local: repeated cannot be divided by nodes; give it "));
  EXPECT_THAT(refusal(node_local(node_local(shuffled(), 2), 2)), HasSubstr("node_local cannot be divided"));
  EXPECT_THAT(refusal(node_local(shuffled(), 3)),
              HasSubstr("a global batch of 8 rows, and 3 nodes; give a loader_options::batch_size, or "
                        "loader_options::global_batch_size, that is"));
  EXPECT_THAT(refusal(node_local(shuffled(), 8)),
              HasSubstr("8 nodes, and 4 blocks (shards, chunks) to divide; give fewer"));
  EXPECT_THAT(refusal(node_local(shuffled(), 2), 8, last_batch::pad), HasSubstr("last = pad"));
  EXPECT_THAT(refusal(node_local(shuffled(), 0), 8, last_batch::keep, 0), HasSubstr("give the number of nodes"));
  EXPECT_THAT(message_of(errc::usage, [] { bound(node_local(shuffled(), 4), numbers(3), 8); }),
              HasSubstr("4 nodes, and 3 samples; give fewer nodes"));
  EXPECT_THAT(message_of(errc::usage, [] { bound(node_local(shuffled_blocks(2), 4), numbers(30), 8); }),
              HasSubstr("no samples of this dataset share blocks"));
}

// --- runs of ranks ----------------------------------------------------------------------------------------------------

loader_options of_world(const world& here, std::uint32_t nodes = 4) {
  loader_options options;
  options.seed = 5;
  options.global_batch_size = 16;
  options.world = here;
  options.order = node_local(shuffled(), nodes);
  return options;
}

stages::run_spec run_of(const dataset& samples, const loader_options& options) {
  return {samples, {label("cls")}, options};
}

dataset labelled_shards() {
  return testing::in_blocks(testing::fake_dataset(testing::make_samples(1, 70)),
                            blocks_of({10, 7, 13, 10, 6, 4, 12, 8}));
}

TEST(node_local_order, has_the_same_rows_in_every_world_and_substitutes_of_the_row_s_own_node) {
  const dataset samples = labelled_shards();
  const stages::run_spec alone = run_of(samples, of_world({}));
  EXPECT_EQ(alone.nodes_of_rank(), 4U);
  EXPECT_EQ(alone.share_of_rank(101), 101U);
  const std::vector<std::uint64_t> borders{0, 17, 30, 50, 70};
  for (const std::uint32_t size : {2U, 4U, 8U, 12U, 64U}) {
    for (std::uint64_t batch = 0; batch < alone.batches(1); ++batch) {
      picks whole;
      alone.pick_rows(1, batch, whole);
      picks joined;
      for (std::uint32_t rank = 0; rank < size; ++rank) {
        const stages::run_spec run = run_of(samples, of_world({.rank = rank, .size = size}));
        ASSERT_EQ(run.batches(1), alone.batches(1));
        ASSERT_EQ(run.nodes_of_rank(), size == 2 ? 2U : 1U);
        ASSERT_EQ(run.share_of_rank(101), size == 2 ? 51U : 26U);
        ASSERT_EQ(run.substitutes(1, batch), alone.substitutes(1, batch));
        picks rows;
        run.pick_rows(1, batch, rows);
        for (std::uint32_t row = 0; row < rows.size(); ++row) {
          const auto of_all = static_cast<std::uint32_t>(joined.size()) + row;
          const std::size_t node = std::size_t{of_all} * 4 / whole.size();
          for (std::uint64_t n = 0; n < run.substitutes(1, batch); ++n) {
            const pick drawn = run.substitute(1, batch, row, n);
            ASSERT_EQ(drawn, alone.substitute(1, batch, of_all, n));
            ASSERT_GE(drawn.sample, borders[node]);
            ASSERT_LT(drawn.sample, borders[node + 1]);
          }
        }
        joined.insert(joined.end(), rows.begin(), rows.end());
      }
      ASSERT_EQ(joined, whole) << "world of " << size;
    }
  }
}

TEST(node_local_order, counts_the_nodes_of_the_world_where_nobody_says_how_many) {
  const dataset samples = labelled_shards();
  const auto nodes_in = [&](const world& here) { return run_of(samples, of_world(here, 0)).order().nodes(); };
  EXPECT_EQ(nodes_in({}), 1U);
  EXPECT_EQ(nodes_in({.rank = 5, .size = 8, .local_rank = 1, .local_size = 4}), 2U);
  EXPECT_EQ(nodes_in({.rank = 3, .size = 4}), 4U);
  EXPECT_THAT(message_of(errc::usage, [&] { nodes_in({.rank = 0, .size = 8, .local_rank = 0, .local_size = 3}); }),
              HasSubstr("give the number of nodes"));
}

TEST(node_local_order, says_which_worlds_do_not_fit) {
  const dataset samples = labelled_shards();
  const auto refusal = [&](const world& here) {
    return message_of(errc::usage, [&] { run_of(samples, of_world(here)); });
  };
  EXPECT_THAT(refusal({.rank = 0, .size = 6}),
              HasSubstr("order node_local: 4 nodes, and a world of 6 ranks; give each node the same number of ranks"));
  EXPECT_THAT(refusal({.rank = 5, .size = 8, .local_rank = 0, .local_size = 2}),
              AllOf(HasSubstr("rank 5 is number 0 of 2 on its machine"), HasSubstr("srun --distribution=block")));
}

}  // namespace
}  // namespace leat
