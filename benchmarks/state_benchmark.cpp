// What does the state of a run cost: after each batch, on its way to a file, and when a dataset of a million samples describes itself?
//
// A trainer may ask for a state after every batch, so that 1 us is the bound, and 100 us for the file that the command writes
// after each batch (it syncs it once a second). A description is made once, for the first state: 10 ms for 1.28 million samples.
#include "datasets/model/model.hpp"
#include "io/files/file_table.hpp"
#include "stages/state/state_file.hpp"

#include <leat/field.hpp>
#include <leat/loading.hpp>
#include <leat/own_samples.hpp>
#include <leat/samples.hpp>

#include <benchmark/benchmark.h>

#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

namespace leat {
namespace {

// Labels of 1.28 million samples: a loader whose batches cost nothing.
loader labels() {
  loader_options options{.batch_size = 64, .seed = 7, .decode_threads = 1, .host_bytes_max = std::size_t{64} << 20};
  options.digests = true;
  std::vector<std::int64_t> classes(1'280'000);
  std::iota(classes.begin(), classes.end(), 0);
  return {from_function(classes.size(), [](std::uint64_t) { return std::vector<std::byte>(1); },
                        {.field = "bytes", .bytes_max = 1, .columns = {{"cls", classes}}, .described_as = "ones"}),
          options, label("cls")};
}

void state_after_a_batch(benchmark::State& state) {
  loader train = labels();
  const batch got = *train.next_blocking();
  benchmark::DoNotOptimize(train.state_after(got));  // The first one describes the run.
  for (auto _ : state) benchmark::DoNotOptimize(train.state_after(got));
}

loader_state some_state() {
  loader train = labels();
  const batch got = *train.next_blocking();
  return train.state_after(got);
}

void bytes_of_a_state(benchmark::State& state) {
  const loader_state saved = some_state();
  for (auto _ : state) benchmark::DoNotOptimize(saved.bytes());
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(saved.bytes().size()));
}

std::filesystem::path place() {
  return std::filesystem::temp_directory_path() / ("state_benchmark." + std::to_string(::getpid()));
}

void save(benchmark::State& state) {
  const loader_state saved = some_state();
  for (auto _ : state) saved.save(place());
  std::filesystem::remove(place());
}

// As the command does.
void write_after_each_batch(benchmark::State& state) {
  loader_state saved = some_state();
  stages::state_file file(place());
  for (auto _ : state) {
    ++saved.batch;
    file.write(saved);
  }
  std::filesystem::remove(place());
}

void load(benchmark::State& state) {
  const loader_state saved = some_state();
  saved.save(place());
  for (auto _ : state) benchmark::DoNotOptimize(loader_state::load(place()));
  std::filesystem::remove(place());
}

// What a folder's description costs: its names and sizes.
void digest_of_loose_files(benchmark::State& state) {
  io::file_table files;
  for (std::int64_t i = 0; i < state.range(0); ++i) {
    files.add("/data/train/n" + std::to_string(1'000'000 + i / 1280),
              "n" + std::to_string(1'000'000 + i / 1280) + "_" + std::to_string(i % 1280) + ".JPEG",
              static_cast<std::uint64_t>(100'000 + i));
  }
  files.finish();
  for (auto _ : state) benchmark::DoNotOptimize(files.digest());
  state.SetItemsProcessed(state.iterations() * state.range(0));
}

// A column of labels, and a random half of the samples.
void description_of_half_of_a_dataset(benchmark::State& state) {
  const auto samples = static_cast<std::uint64_t>(state.range(0));
  std::vector<std::int64_t> classes(samples);
  std::iota(classes.begin(), classes.end(), 0);
  const dataset half =
      from_function(samples, [](std::uint64_t) { return std::vector<std::byte>(1); },
                    {.field = "bytes", .bytes_max = 1, .columns = {{"cls", classes}}, .described_as = "ones"})
          .split(7, {0.5})
          .front();
  for (auto _ : state) {
    description out;
    half.model()->describe(out);
    benchmark::DoNotOptimize(out);
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}

BENCHMARK(state_after_a_batch);
BENCHMARK(bytes_of_a_state);
BENCHMARK(write_after_each_batch);
BENCHMARK(save);
BENCHMARK(load);
BENCHMARK(digest_of_loose_files)->Arg(1000)->Arg(1'280'000)->Unit(benchmark::kMillisecond);
BENCHMARK(description_of_half_of_a_dataset)->Arg(1000)->Arg(1'280'000)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace leat

BENCHMARK_MAIN();
