// What is it worth to read only the rows of photo packs that a crop needs?
//
// Photographs are packed twice, with an index of their rows and without, and trained on from a disk of a fixed rate, on which reads wait for
// one another (benchmarks/timed_disk). Random crops of 224 pixels, shuffled. The rates differ as the bytes do, as long as the disk is the
// slowest part: the CPU that both take is beside them. aim: 1.3 times the images a second on a disk of 200 MB/s.
//
//     photo_crops_benchmark [PHOTOS] [--rate-mb 200] [--seconds 5] [--rounds 5] [--toy]
#include "base/text.hpp"
#include "benchmarks/arguments.hpp"
#include "benchmarks/measure.hpp"
#include "benchmarks/timed_disk.hpp"
#include "datasets/files/input_files.hpp"
#include "datasets/formats/format_openers.hpp"
#include "datasets/write/pack.hpp"
#include "stages/fields/photo_reach.hpp"
#include "tools/make_photos.hpp"

#include <leat/error.hpp>
#include <leat/index_options.hpp>
#include <leat/loading.hpp>
#include <leat/open_folder.hpp>
#include <leat/photo_pack.hpp>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace leat::benchmarks {
namespace {

struct settings {
  std::string photos;
  double rate_mb = 200;
  double seconds = 5;
  int rounds = 5;
  bool toy = false;
};

settings parse(int count, char** words) {
  settings chosen;
  read_options(count, words,
               {{"PHOTOS", chosen.photos},
                {"--rate-mb", chosen.rate_mb},
                {"--seconds", chosen.seconds},
                {"--rounds", chosen.rounds},
                {"--toy", [&] {
                   chosen.toy = true;
                   chosen.seconds = 0.3;
                   chosen.rounds = 1;
                 }}});
  return chosen;
}

class working_directory {
 public:
  working_directory() {
    std::string pattern = (std::filesystem::temp_directory_path() / "leat-photo-crops-XXXXXX").string();
    if (::mkdtemp(pattern.data()) == nullptr) throw error(errc::io, pattern + ": cannot be made");
    path_ = pattern;
  }
  working_directory(const working_directory&) = delete;
  working_directory& operator=(const working_directory&) = delete;
  ~working_directory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  [[nodiscard]] std::string in(const char* name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

void write_shard(const dataset& photos, const std::string& path, bool with_index) {
  datasets::pack_options how;
  how.rewrite = [](std::string_view member, std::span<const std::byte> content) {
    std::optional<datasets::rewritten_member> made;
    if (member.ends_with(".jpg")) {
      made = {str_cat(member.substr(0, member.size() - 3), "fjpg"), pack_photo(content)};
    }
    return made;
  };
  if (with_index) how.photo = stages::place_of_photo;
  datasets::pack(photos, path, how);
}

struct way {
  const char* name;
  std::string path;
  figure images_per_s = {};
  figure bytes = {};
  figure cpu_us = {};
};

void run(way& of, const settings& chosen) {
  const auto disk = std::make_shared<timed_disk>(timed_disk_options{
      .latency_ns = 100'000, .bytes_per_s = chosen.rate_mb * 1e6, .sector_bytes = 512, .paths = {of.path}});
  const dataset samples = datasets::open_shards_of_source(disk, {.index = {.use = index_use::off}});
  loader_options options;
  options.batch_size = std::min<std::uint32_t>(64, static_cast<std::uint32_t>(samples.size()));
  options.drop_last = true;
  options.epochs = 0;
  options.seed = 1;
  loader train(samples, options, image("jpg").random_resized_crop(224).random_flip().as(dtype::u8), label("cls"));
  const double until = wall_s() + chosen.seconds;
  double began_s = 0;
  double cpu_s = 0;
  std::uint64_t images = 0;
  loader_stats before;
  while (wall_s() < until) {
    const std::optional<batch> got = train.next_blocking();
    if (!got) continue;  // the end of an epoch
    if (began_s == 0) {
      if (wall_s() > until - 0.8 * chosen.seconds) {
        began_s = wall_s();
        cpu_s = process_cpu_s();
        before = train.stats();
      }
      continue;
    }
    images += got->valid_rows();
  }
  if (images == 0) throw error(errc::usage, "--seconds is too short for a batch");
  const loader_stats after = train.stats();
  const auto count = static_cast<double>(images);
  of.images_per_s.add(count / (wall_s() - began_s));
  of.bytes.add(static_cast<double>(after.bytes_read - before.bytes_read) / count);
  of.cpu_us.add((process_cpu_s() - cpu_s) * 1e6 / count);
}

void measure(const settings& chosen) {
  const working_directory directory;
  std::string photos = chosen.photos;
  if (photos.empty()) {
    photos = directory.in("photos");
    tools::make_photos_options how;
    how.count = chosen.toy ? 40 : 1000;
    how.classes = 4;
    tools::make_photos(photos, how);
  }
  const dataset folder = open_folder(photos);
  way ways[] = {{"whole packs", directory.in("whole.tar")}, {"rows of crops", directory.in("rows.tar")}};
  for (way& each : ways) write_shard(folder, each.path, &each == &ways[1]);
  for (int round = 0; round < chosen.rounds; ++round) {
    for (way& each : ways) run(each, chosen);
  }
  std::printf("%s; %llu photographs, a disk of %.0f MB/s and 100 us; %d rounds of %.1f s; median (low - high)\n",
              machine().c_str(), static_cast<unsigned long long>(folder.size()), chosen.rate_mb, chosen.rounds,
              chosen.seconds);
  for (const way& each : ways) {
    std::printf("  %-14s %7.0f images/s (%.0f - %.0f), %.0f bytes and %.0f us of CPU each\n", each.name,
                each.images_per_s.median(), each.images_per_s.low(), each.images_per_s.high(), each.bytes.median(),
                each.cpu_us.median());
  }
  std::printf("  rows of crops: %.2f times the images/s; %.2f of the bytes\n",
              ways[1].images_per_s.median() / ways[0].images_per_s.median(),
              ways[1].bytes.median() / ways[0].bytes.median());
}

}  // namespace
}  // namespace leat::benchmarks

int main(int count, char** words) {
  return leat::benchmarks::run_benchmark("photo_crops_benchmark",
                                         [&] { leat::benchmarks::measure(leat::benchmarks::parse(count, words)); });
}
