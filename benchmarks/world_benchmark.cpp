// What does a rank of many cost to start, beside a process alone?
//
// 16,384 ranks and 10^9 samples: each rank binds its dataset, order and fields, lays out its batches, and plans its first one and one
// from the middle of the epoch, as a loader does before it reads a byte. No rank talks to another, none walks the samples, and
// nothing is kept per sample: it should cost what it costs a process alone. aim: at most 1.1 times.
//
// Rows that differ: batches of 64 rows for a process alone; for the ranks a global batch of 64 each, 1,048,576 rows. Rounds are
// interleaved, the CPU time of this thread is taken, and what was planned is looked at: no two ranks that are neighbours share a sample.
//
//     world_benchmark [--rounds 101] [--ranks 16384] [--samples 1000000000] [--toy]
#include "benchmarks/arguments.hpp"
#include "benchmarks/measure.hpp"
#include "stages/plan/run_spec.hpp"

#include <leat/error.hpp>
#include <leat/loading.hpp>
#include <leat/own_samples.hpp>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <set>
#include <string>
#include <vector>

namespace leat::benchmarks {
namespace {

struct settings {
  std::uint64_t rounds = 101;
  std::uint32_t ranks = 16'384;
  std::uint64_t samples = 1'000'000'000;
};

using planned = std::vector<std::uint64_t>;  // the samples of the first batch

planned start(const dataset& samples, const world& here) {
  loader_options options{.batch_size = 64, .seed = 7};
  options.world = here;
  const stages::run_spec run(samples, {bytes("bytes")}, stages::checked(options));
  const std::uint64_t batches = run.batches(0);
  const stages::batch_plan first = run.plan(0, 0);
  if (run.plan(0, batches / 2).picks.size() != first.picks.size() || run.planner().largest_ragged_batch().empty()) {
    throw error(errc::usage, "a batch has other rows than the first");
  }
  planned ids;
  for (const pick& row : first.picks) ids.push_back(row.sample);
  return ids;
}

void run(const settings& how) {
  const dataset samples = from_function(how.samples, [](std::uint64_t) { return std::vector<std::byte>(8); },
                                        {.field = "bytes", .bytes_max = 8});
  std::printf("%s\n%llu samples, medians of %llu interleaved rounds, CPU time\n", machine().c_str(),
              static_cast<unsigned long long>(how.samples), static_cast<unsigned long long>(how.rounds));
  const world alone;
  figure of_one;
  figure of_many;
  std::set<std::uint64_t> seen;
  std::size_t planned_rows = 0;
  const auto measure = [&](const world& here, figure& into) {
    const double began = thread_cpu_s();
    const planned ids = start(samples, here);
    into.add((thread_cpu_s() - began) * 1e6);
    return ids;
  };
  for (std::uint64_t round = 0; round < how.rounds; ++round) {
    static_cast<void>(measure(alone, of_one));
    const world here{.rank = static_cast<std::uint32_t>((how.ranks / 2 + round) % how.ranks), .size = how.ranks};
    const planned ids = measure(here, of_many);
    if (round >= how.ranks) continue;
    planned_rows += ids.size();
    seen.insert(ids.begin(), ids.end());
  }
  if (seen.size() != planned_rows) {
    throw error(errc::usage, "two ranks have a sample in common");
  }
  std::printf("%-24s %8.1f us (%.1f to %.1f)\n", "1 rank", of_one.median(), of_one.low(), of_one.high());
  std::printf("%-24s %8.1f us (%.1f to %.1f)\n", (std::to_string(how.ranks) + " ranks, each").c_str(), of_many.median(),
              of_many.low(), of_many.high());
  std::printf("%-24s %8.2f\n", "ratio", of_many.median() / of_one.median());
}

}  // namespace
}  // namespace leat::benchmarks

int main(int count, char** words) {
  namespace benchmarks = leat::benchmarks;
  return benchmarks::run_benchmark("world_benchmark", [&] {
    benchmarks::settings how;
    benchmarks::read_options(
        count, words, {{"--rounds", how.rounds}, {"--ranks", how.ranks}, {"--samples", how.samples}, {"--toy", [&] {
                                                                                                        how.rounds = 3;
                                                                                                      }}});
    benchmarks::run(how);
  });
}
