// How many tokens does a CPU-second pad, of rows of 1 to 2,048 tokens in any order, to the batch's longest and a multiple of 8?
//
// Rows of u16 lie one behind the other in one file, which is in the page cache; a batch is 32 of them as i64 [32, L]. The CPU time of the
// process is taken, all threads, from the second epoch on. peers/padding.py does the same by pad_sequence in PyTorch's DataLoader, with the
// same file, and calls this.
//
//     pad_benchmark [--file FILE] [--rows 50000] [--epochs 4] [--threads 1] [--toy]
//
// Writes FILE and FILE.lengths where they are not there. Prints JSON: tokens (without padding), CPU seconds, and a sum over the first token
// of each row, by which both are known to have read the same.
#include "base/random.hpp"
#include "benchmarks/arguments.hpp"
#include "benchmarks/measure.hpp"

#include <leat/error.hpp>
#include <leat/loading.hpp>
#include <leat/own_samples.hpp>

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

namespace leat::benchmarks {
namespace {

struct settings {
  std::string file;
  std::uint64_t rows = 50'000;
  std::uint32_t epochs = 4;
  std::uint32_t threads = 1;
};

template <class T>
void write(const std::string& path, const std::vector<T>& values) {
  std::ofstream out(path, std::ios::binary);
  out.write(reinterpret_cast<const char*>(values.data()), static_cast<std::streamsize>(values.size() * sizeof(T)));
  if (!out.flush()) throw error(errc::io, str_cat("cannot write ", path));
}

std::vector<std::int64_t> lengths_of(const settings& how) {
  const std::string beside = how.file + ".lengths";
  std::vector<std::int64_t> lengths;
  if (std::filesystem::exists(beside)) {
    lengths.resize(std::filesystem::file_size(beside) / sizeof lengths[0]);
    std::ifstream(beside, std::ios::binary)
        .read(reinterpret_cast<char*>(lengths.data()),
              static_cast<std::streamsize>(lengths.size() * sizeof lengths[0]));
    return lengths;
  }
  random_draws draws(7, 0, 0, "pad_benchmark");
  std::vector<std::uint16_t> tokens;
  for (std::uint64_t row = 0; row < how.rows; ++row) {
    lengths.push_back(static_cast<std::int64_t>(1 + draws.below(2048)));
    for (std::int64_t k = 0; k < lengths.back(); ++k) tokens.push_back(static_cast<std::uint16_t>(draws.below(50'000)));
  }
  write(how.file, tokens);
  write(beside, lengths);
  return lengths;
}

void run(const settings& how) {
  extent_list table{.files = {how.file}, .fields = {{.name = "ids", .extents = {}}}};
  std::uint64_t tokens = 0;
  for (const std::int64_t length : lengths_of(how)) {
    const std::uint64_t bytes = static_cast<std::uint64_t>(length) * sizeof(std::uint16_t);
    table.fields[0].extents.push_back({.offset = tokens * sizeof(std::uint16_t), .stored_bytes = bytes});
    tokens += static_cast<std::uint64_t>(length);
  }
  loader_options options{.batch_size = 32, .seed = 7};
  options.decode_threads = how.threads;
  options.epochs = how.epochs + 1;
  loader train(from_extents(std::move(table)), options,
               {sequence("ids").stored(dtype::u16).pad({.multiple = 8}).mask()});
  std::int64_t sum = 0;
  double cpu_s = 0;
  double seconds = 0;
  for (std::uint32_t epoch = 0; epoch <= how.epochs; ++epoch) {
    const double began_cpu_s = process_cpu_s();
    const double began_s = wall_s();
    sum = 0;
    for (const batch& got : train.blocking()) {
      const tensor ids = got["ids"];
      const auto* const values = static_cast<const std::int64_t*>(ids.data);
      for (std::int64_t row = 0; row < ids.shape[0]; ++row) sum += values[row * ids.shape[1]];
    }
    if (epoch == 0) continue;
    cpu_s += process_cpu_s() - began_cpu_s;
    seconds += wall_s() - began_s;
  }
  std::printf("{\"tokens\": %llu, \"cpu_s\": %.6f, \"seconds\": %.6f, \"sum\": %lld}\n",
              static_cast<unsigned long long>(tokens * how.epochs), cpu_s, seconds, static_cast<long long>(sum));
}

}  // namespace
}  // namespace leat::benchmarks

int main(int count, char** words) {
  namespace benchmarks = leat::benchmarks;
  return benchmarks::run_benchmark("pad_benchmark", [&] {
    benchmarks::settings how;
    std::string made;
    benchmarks::read_options(count, words,
                             {{"--file", how.file},
                              {"--rows", how.rows},
                              {"--epochs", how.epochs},
                              {"--threads", how.threads},
                              {"--toy", [&] {
                                 how.rows = 300;
                                 how.epochs = 1;
                               }}});
    if (how.file.empty()) {
      made = (std::filesystem::temp_directory_path() / ("leat-pad-" + std::to_string(how.rows) + ".u16")).string();
      how.file = made;
    }
    benchmarks::run(how);
    if (made.empty()) return;
    std::filesystem::remove(made);
    std::filesystem::remove(made + ".lengths");
  });
}
