// What does join() of two folders by stem take, beside opening both?
//
// Two folders of as many files, a thousand in each directory, are opened without an index, and opened and joined, in turns. Then two
// datasets of `--rows` samples without files are joined: seconds, and how much memory the process took at most besides. aim: at most
// 1.5 times the time of opening both at a million files.
//
//     join_benchmark [--rounds 3] [--files 1000000] [--rows 10000000] [--toy]
#include "base/text.hpp"
#include "benchmarks/arguments.hpp"
#include "benchmarks/measure.hpp"
#include "tests/support/temporary_directory.hpp"

#include <leat/error.hpp>
#include <leat/join.hpp>
#include <leat/open_folder.hpp>
#include <leat/own_samples.hpp>
#include <leat/samples.hpp>

#include <absl/strings/str_format.h>
#include <sys/resource.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

namespace leat::benchmarks {
namespace {

namespace fs = std::filesystem;

struct settings {
  std::uint64_t rounds = 3;
  std::uint64_t files = 1'000'000;
  std::uint64_t rows = 10'000'000;
};

void make_files(const fs::path& root, std::uint64_t files, const char* ending) {
  for (std::uint64_t i = 0; i < files; ++i) {
    const fs::path folder = root / absl::StrFormat("%05d", i / 1000);
    if (i % 1000 == 0) fs::create_directories(folder);
    std::ofstream(folder / absl::StrFormat("%09d.%s", i, ending)).put('x');
  }
}

dataset open_one(const fs::path& path) {
  return open_folder(path.string(), {.classes = folder_options::class_folders::no, .index = {.use = index_use::off}});
}

double peak_mib() {
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  return static_cast<double>(used.ru_maxrss) / 1024;
}

void join_folders(const settings& how) {
  const testing::temporary_directory root;
  make_files(root.path() / "images", how.files, "jpg");
  make_files(root.path() / "masks", how.files, "png");
  figure opening;
  figure both;
  for (std::uint64_t round = 0; round <= how.rounds; ++round) {
    double began = wall_s();
    {
      const dataset left = open_one(root.path() / "images");
      const dataset right = open_one(root.path() / "masks");
    }
    const double opened_s = wall_s() - began;
    began = wall_s();
    const dataset joined = join(open_one(root.path() / "images"), open_one(root.path() / "masks"), by_stem(),
                                {.rename = {{"jpg", "mask"}}});
    const double joined_s = wall_s() - began;
    if (joined.size() != how.files) throw error(errc::corrupt, str_cat("joined ", joined.size(), " samples"));
    if (round == 0) continue;  // The file system's cache is warm from then on.
    opening.add(opened_s);
    both.add(joined_s);
  }
  absl::PrintF(
      "2 folders of %d files: opened in %.2f s (%.2f to %.2f), opened and joined in %.2f s (%.2f to %.2f): %.2f x\n",
      how.files, opening.median(), opening.low(), opening.high(), both.median(), both.low(), both.high(),
      both.median() / opening.median());
}

dataset made(std::uint64_t rows, const char* field, std::uint64_t first) {
  function_options options{.field = field, .bytes_max = 8};
  options.name = [first, rows](std::uint64_t i) { return absl::StrFormat("%09d.x", (first + i * 7919) % rows); };
  return from_function(rows, [](std::uint64_t) { return std::vector<std::byte>(1); }, options);
}

void join_rows(const settings& how) {
  const dataset left = made(how.rows, "a", 0);
  const dataset right = made(how.rows, "b", 17);
  const double before_mib = peak_mib();
  const double began = wall_s();
  const dataset joined = join(left, right, by_stem());
  if (joined.size() != how.rows) throw error(errc::corrupt, str_cat("joined ", joined.size(), " samples"));
  absl::PrintF("2 datasets of %d samples: joined in %.2f s, with at most %.0f MiB more, of which %.0f stay\n", how.rows,
               wall_s() - began, peak_mib() - before_mib, static_cast<double>(joined.memory().total()) / (1024 * 1024));
}

}  // namespace
}  // namespace leat::benchmarks

int main(int count, char** words) {
  namespace benchmarks = leat::benchmarks;
  return benchmarks::run_benchmark("join_benchmark", [&] {
    benchmarks::settings how;
    benchmarks::read_options(
        count, words, {{"--rounds", how.rounds}, {"--files", how.files}, {"--rows", how.rows}, {"--toy", [&] {
                                                                                                  how.rounds = 1;
                                                                                                  how.files = 2'000;
                                                                                                  how.rows = 20'000;
                                                                                                }}});
    benchmarks::join_rows(how);
    benchmarks::join_folders(how);
  });
}
