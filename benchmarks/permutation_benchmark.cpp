// What does the exact global shuffle cost per sample id, beside a shuffled table in memory; and a row of each order, beside shuffled?
//
// A loader with one I/O thread aims at 500,000 samples/s, 2 us each: the order may take a few per cent of that. The
// table is what a keyed permutation replaces: one std::shuffle per epoch, 8 bytes per sample, and a walk through it.
#include "stages/order/order_model.hpp"
#include "stages/order/permutation.hpp"

#include <leat/order.hpp>
#include <leat/own_samples.hpp>

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <random>
#include <span>
#include <vector>

namespace leat::stages {
namespace {

constexpr std::uint64_t batch_size = 256;

// As the sampler asks: a batch at a time, set up anew for each.
void batches(benchmark::State& state) {
  const auto n = static_cast<std::uint64_t>(state.range(0));
  std::vector<std::uint64_t> ids(std::min(n, batch_size));
  std::uint64_t first = 0;
  for (auto _ : state) {
    permutation(n, 7, 1)(first, ids);
    benchmark::DoNotOptimize(ids.data());
    first = first + 2 * ids.size() <= n ? first + ids.size() : 0;
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(ids.size()));
}

// Each answer is needed before the next question: latency.
void one_after_the_other(benchmark::State& state) {
  const auto n = static_cast<std::uint64_t>(state.range(0));
  const permutation order(n, 7, 1);
  std::uint64_t at = 0;
  for (auto _ : state) benchmark::DoNotOptimize(at = order(at));
  state.SetItemsProcessed(state.iterations());
}

// The baseline: an epoch of Fisher-Yates, per sample.
void shuffled_table(benchmark::State& state) {
  std::vector<std::uint64_t> table(static_cast<std::size_t>(state.range(0)));
  std::iota(table.begin(), table.end(), std::uint64_t{0});
  std::mt19937_64 draws(7);
  for (auto _ : state) {
    std::shuffle(table.begin(), table.end(), draws);
    benchmark::DoNotOptimize(table.data());
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}

// --- orders: whole batches one after another, with all that a row has -----------------------------------------------------

dataset numbers(std::uint64_t samples) {
  return from_function(samples, [](std::uint64_t) { return std::vector<std::byte>(); }, {.field = "x", .bytes_max = 1});
}

// Zipf's law: a few long, many short.
std::vector<std::int64_t> zipf_lengths(std::uint64_t samples) {
  std::mt19937_64 draws(5);
  std::vector<std::int64_t> lengths;
  for (std::uint64_t i = 0; i < samples; ++i) {
    const double uniform = static_cast<double>(draws() >> 11) * 0x1.0p-53;
    lengths.push_back(static_cast<std::int64_t>(std::min(2048.0, 4 / (1 - uniform))));
  }
  return lengths;
}

void ask(benchmark::State& state, const order& what, const dataset& samples) {
  const auto of = what.model().bind(samples, {.seed = 7, .batch_size = batch_size});
  std::vector<pick> picks(of->rows_max());
  std::int64_t rows = 0;
  std::uint64_t batch = 0;
  static_cast<void>(of->rows(1, 0));
  of->picks(1, 0, 0, of->rows(1, 0), std::span(picks).first(of->rows(1, 0)));  // what is made ahead is made
  for (auto _ : state) {
    const std::uint32_t count = of->rows(1, batch);
    of->picks(1, batch, 0, count, std::span(picks).first(count));
    benchmark::DoNotOptimize(picks.data());
    rows += count;
    if (++batch == of->batches(1)) batch = 0;
  }
  state.SetItemsProcessed(rows);
}

void shuffled_order(benchmark::State& state) {
  ask(state, shuffled(), numbers(static_cast<std::uint64_t>(state.range(0))));
}
void node_local_order_of_8(benchmark::State& state) {
  ask(state, node_local(shuffled(), 8), numbers(static_cast<std::uint64_t>(state.range(0))));
}
void repeated_order(benchmark::State& state) {
  ask(state, repeated(3), numbers(static_cast<std::uint64_t>(state.range(0))));
}
std::vector<double> weights_of(benchmark::State& state) {
  std::vector<double> weights;
  for (std::int64_t i = 0; i < state.range(0); ++i) weights.push_back(static_cast<double>(i % 10 + 1));
  return weights;
}
void weighted_order(benchmark::State& state) {
  ask(state, weighted(weights_of(state)), numbers(static_cast<std::uint64_t>(state.range(0))));
}
void weighted_order_without_replacement(benchmark::State& state) {
  ask(state, weighted(weights_of(state), 0, replacement::no), numbers(static_cast<std::uint64_t>(state.range(0))));
}
// Made once an epoch, on a thread of its own.
void an_epoch_without_replacement(benchmark::State& state) {
  const auto n = static_cast<std::uint64_t>(state.range(0));
  const auto of = weighted(weights_of(state), 0, replacement::no).model().bind(numbers(n), {.batch_size = batch_size});
  std::uint32_t epoch = 0;
  pick first;
  for (auto _ : state) {
    of->picks(epoch, 0, 0, 1, {&first, 1});
    epoch += 2;  // The next one is on its way already; this one is made here.
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
void balanced_order(benchmark::State& state) {
  std::vector<std::int64_t> classes;
  for (std::int64_t i = 0; i < state.range(0); ++i) classes.push_back(i % 7 * i % 1000);
  ask(state, balanced("cls"), numbers(static_cast<std::uint64_t>(state.range(0))).with_column("cls", classes));
}
void mixture_order(benchmark::State& state) {
  const auto half = static_cast<std::uint64_t>(state.range(0)) / 2;
  ask(state, mixed_by({0.7, 0.3}), concat({numbers(half), numbers(half)}));
}
void mixture_order_of_10(benchmark::State& state) {
  std::vector<dataset> parts;
  std::vector<double> shares;
  for (int part = 0; part < 10; ++part) {
    parts.push_back(numbers(static_cast<std::uint64_t>(state.range(0)) / 10));
    shares.push_back(1 + part);
  }
  ask(state, mixed_by(shares), concat(parts));
}
// Counters: the share of padding in batches padded to their longest row.
void bucketed_order(benchmark::State& state) {
  const auto n = static_cast<std::uint64_t>(state.range(0));
  const std::vector<std::int64_t> lengths = zipf_lengths(n);
  const dataset set = numbers(n).with_column("length", lengths);
  const order what = bucketed({.length = "length", .tokens_max = 8192, .rows_max = 1024});
  ask(state, what, set);
  const auto padding = [&](const order& of_what) {
    const auto of = of_what.model().bind(set, {.seed = 7, .batch_size = batch_size});
    double held = 0;
    double padded = 0;
    std::vector<pick> picks(of->rows_max());
    for (std::uint64_t batch = 0; batch < of->batches(0); ++batch) {
      const std::uint32_t rows = of->rows(0, batch);
      of->picks(0, batch, 0, rows, std::span(picks).first(rows));
      std::int64_t longest = 0;
      for (std::uint32_t row = 0; row < rows; ++row) {
        longest = std::max(longest, lengths[picks[row].sample]);
        held += static_cast<double>(lengths[picks[row].sample]);
      }
      padded += static_cast<double>(longest) * rows;
    }
    return 1 - held / padded;
  };
  state.counters["padding"] = padding(what);
  state.counters["padding_plain"] = padding(shuffled());
}

BENCHMARK(shuffled_order)->Arg(1'281'167);
BENCHMARK(node_local_order_of_8)->Arg(1'281'167);
BENCHMARK(repeated_order)->Arg(1'281'167);
BENCHMARK(weighted_order)->Arg(1'281'167);
BENCHMARK(weighted_order_without_replacement)->Arg(1'281'167);
BENCHMARK(an_epoch_without_replacement)->Arg(1'281'167)->Unit(benchmark::kMillisecond);
BENCHMARK(balanced_order)->Arg(1'281'167);
BENCHMARK(mixture_order)->Arg(1'281'167);
BENCHMARK(mixture_order_of_10)->Arg(1'281'167);
BENCHMARK(bucketed_order)->Arg(1'281'167);
BENCHMARK(batches)->Arg(256)->Arg(2'000)->Arg(1'281'167)->Arg(10'000'000)->Arg(std::int64_t{1} << 48);
BENCHMARK(one_after_the_other)->Arg(256)->Arg(1'281'167)->Arg(std::int64_t{1} << 48);
BENCHMARK(shuffled_table)->Arg(256)->Arg(1'281'167);

}  // namespace
}  // namespace leat::stages

BENCHMARK_MAIN();
