// What does the exact global shuffle cost per sample id, beside a shuffled table in memory?
//
// A loader with one I/O thread aims at 500,000 samples/s, 2 us each: the order may take a few per cent of that. The
// table is what a keyed permutation replaces: one std::shuffle per epoch, 8 bytes per sample, and a walk through it.
#include "stages/order/permutation.hpp"

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <random>
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

BENCHMARK(batches)->Arg(256)->Arg(2'000)->Arg(1'281'167)->Arg(10'000'000)->Arg(std::int64_t{1} << 48);
BENCHMARK(one_after_the_other)->Arg(256)->Arg(1'281'167)->Arg(std::int64_t{1} << 48);
BENCHMARK(shuffled_table)->Arg(256)->Arg(1'281'167);

}  // namespace
}  // namespace leat::stages

BENCHMARK_MAIN();
