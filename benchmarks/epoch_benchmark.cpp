// What does the loader cost beside the decoding that it is there to feed?
//
// Photographs become 224-pixel training crops in f32 NCHW, once through a loader (files, queues, batches, hand-over) and
// once through a bare loop over the same bytes in memory: the same decoder, the same crops, as many threads. Rounds are
// interleaved, ratios are taken within a round, figures are medians with their lowest and highest. Four questions:
//
//   1. images per second, loader / bare loop      aim: at least 0.97, page cache warm and cold
//   2. CPU outside the decode threads             aim: at most 3 % of the process's
//   3. next() when a batch is ready               aim: at most 1 us
//   4. first batch of 1,000 photographs           aim: 15 ms + batch x bare time / threads after the process's start
//
// A run of the loader counts from when all of its batch memory has been used once; what it takes to get there is in
// question 4. Every row of both is compared by digest before the rounds, and one row of every batch within them.
//
//     epoch_benchmark [PHOTOS] [--rounds N] [--images N] [--threads N,N...]
//                     [--readings warm,cold,direct] [--toy]
//
// PHOTOS is a folder or tar shards; else $LEAT_PHOTOS; else 1,000 are made in the temporary directory, and kept.
#include "base/as_absl.hpp"
#include "base/clock.hpp"
#include "base/text.hpp"
#include "benchmarks/arguments.hpp"
#include "benchmarks/bare_loop.hpp"
#include "benchmarks/measure.hpp"
#include "datasets/model/model.hpp"
#include "stages/state/digest.hpp"
#include "tools/make_photos.hpp"

#include <leat/error.hpp>
#include <leat/loading.hpp>
#include <leat/open.hpp>
#include <leat/own_samples.hpp>

#include <absl/strings/str_format.h>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/use_future.hpp>
#include <sys/mman.h>
#include <sys/wait.h>

#include <spawn.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <vector>

extern char** environ;

namespace leat::benchmarks {
namespace {

constexpr std::uint64_t seed = 7;

/// How the loader gets at the bytes. O_DIRECT is cold by nature.
enum class reading : std::uint8_t { warm, cold, direct };

constexpr std::string_view title(reading how) {
  constexpr std::string_view titles[] = {"loader, page cache warm", "loader, page cache cold", "loader, O_DIRECT"};
  return titles[static_cast<std::size_t>(how)];
}

struct settings {
  std::string photos;
  unsigned rounds = 5;
  std::vector<std::uint32_t> threads = {1, 2};
  std::uint32_t batch_size = 64;
  std::uint64_t images = 2000;  // of a measured run, rounded up to whole epochs
  std::vector<reading> readings = {reading::warm, reading::cold, reading::direct};
  bool toy = false;
};

std::vector<field> training_fields(const dataset& photos) {
  std::vector<field> fields{image{"jpg"}.random_resized_crop(training_crop::side).random_flip().normalize(imagenet)};
  if (!photos.classes().empty()) fields.push_back(label{"cls"});
  return fields;
}

std::vector<std::string> files_of(const dataset& photos) {
  std::set<std::string> files;
  datasets::part_list parts;
  for (std::uint64_t sample = 0; sample < photos.size(); ++sample) {
    parts.clear();
    photos.model()->parts(sample, parts);
    for (const datasets::part& part : parts) {
      files.insert(photos.model()->sources()[part.where.source]->file_name(part.where.file));
    }
  }
  return {files.begin(), files.end()};
}

/// "812 (790..830)", with so many decimals.
std::string with_spread(const figure& of, int decimals) {
  return absl::StrFormat("%.*f (%.*f..%.*f)", decimals, of.median(), decimals, of.low(), decimals, of.high());
}

// --- 1 and 2: epochs --------------------------------------------------------------------------------------------------

/// What a run of the loader took from when its memory had been used once to its end.
struct loader_run {
  std::uint64_t images = 0;
  double wall_s = 0;
  double cpu_s = 0;         // of the process
  double decode_cpu_s = 0;  // of the decode threads
  digest all;               // the run's, where digests are on
};

/// Spends the batches as a trainer would, on the executor it is spawned on.
///   expected   the digest of each row of the run; every batch's middle row is compared, which takes 60 us
asio::awaitable<void> spend(loader& train, std::uint32_t epochs, std::span<const digest> expected, loader_run& run) {
  const std::uint64_t uncounted = train.plan().batches;
  std::uint64_t batches = 0;
  std::size_t rows = 0;
  for (std::uint32_t epoch = 0; epoch < epochs; ++epoch) {
    while (true) {
      if (batches == uncounted) {
        run = {.images = 0,
               .wall_s = -wall_s(),
               .cpu_s = -process_cpu_s(),
               .decode_cpu_s = -named_threads_cpu_s("leat-decode"),
               .all = run.all};
      }
      const std::optional<batch> got = co_await train.next();
      if (!got) break;
      const std::uint32_t middle = got->valid_rows() / 2;
      const tensor pixels = (*got)["jpg"];
      const std::size_t row_bytes = pixels.bytes() / got->valid_rows();
      const bool has_label = got->outputs().size() > 1;
      const digest found = digest_of_row(got->ids()[middle], pixels.as_bytes().subspan(middle * row_bytes, row_bytes),
                                         has_label ? &(*got)["cls"].as<std::int64_t>()[middle] : nullptr);
      if (found != expected[rows + middle]) {
        throw error(errc::corrupt, str_cat("row ", middle, " of batch ", got->index(), " of epoch ", got->epoch(),
                                           " is not what the bare loop makes of sample ", got->ids()[middle]));
      }
      if (got->content_digest()) run.all = stages::chain_digest(run.all, *got->content_digest());
      ++batches;
      rows += got->valid_rows();
      run.images += got->valid_rows();
    }
  }
  run.wall_s += wall_s();
  run.cpu_s += process_cpu_s();
  run.decode_cpu_s += named_threads_cpu_s("leat-decode");
}

template <class Result>
Result run_to_end(asio::awaitable<Result> work) {
  asio::io_context context(1);
  auto done = asio::co_spawn(context, std::move(work), asio::use_future);
  context.run();
  return done.get();
}

loader_run run_loader(const dataset& photos, const settings& given, std::uint32_t threads, std::uint32_t epochs,
                      reading how, std::span<const digest> expected, bool digests = false) {
  loader_options options{.batch_size = given.batch_size,
                         .seed = seed,
                         .epochs = epochs,
                         .decode_threads = threads,
                         .prefetch_batches = 3,
                         .digests = digests};
  options.reader.direct = how == reading::direct ? choice::on : choice::off;
  loader train(photos, options, training_fields(photos));
  loader_run run;
  run_to_end(spend(train, epochs, expected, run));
  return run;
}

/// Rounds of everything at one number of threads.
struct epoch_figures {
  struct loader_figures {
    figure images_per_s, ratio, decode_us, cpu_us, outside_share;

    void add(const loader_run& run, double bare_per_s) {
      const auto images = static_cast<double>(run.images);
      images_per_s.add(images / run.wall_s);
      ratio.add(images / run.wall_s / bare_per_s);
      decode_us.add(run.decode_cpu_s / images * 1e6);
      cpu_us.add(run.cpu_s / images * 1e6);
      outside_share.add(100 * (run.cpu_s - run.decode_cpu_s) / run.cpu_s);
    }
  };
  figure bare_images_per_s, bare_cpu_us;
  figure into_batches_images_per_s, into_batches_ratio, into_batches_cpu_us;
  std::map<reading, loader_figures> loader;
};

class epoch_rounds {
 public:
  epoch_rounds(const settings& given, const dataset& photos)
      : given_(given),
        photos_(photos),
        files_(files_of(photos)),
        epochs_(static_cast<std::uint32_t>((given.images + photos.size() - 1) / photos.size())),
        planned_(plan_rows(photos.size(), epochs_, given.batch_size, seed)),
        bare_(photos, seed, *std::max_element(given.threads.begin(), given.threads.end()), given.batch_size, 4),
        expected_(bare_.digests(planned_)) {}

  /// Compares every row. Throws error where they differ.
  [[nodiscard]] digest check() {
    const loader_run run = run_loader(photos_, given_, given_.threads.back(), epochs_, reading::warm, expected_, true);
    if (run.images == 0 || run.images + photos_.size() <= planned_.size()) {
      throw error(errc::usage, str_cat(photos_.size(), " photographs are too few for batches of ", given_.batch_size,
                                       ": an epoch must use the loader's batches more than once"));
    }
    uncounted_rows_ = planned_.size() - run.images;
    digest all;
    std::size_t row = 0;
    const global_sampler sampler(photos_.size(), {.shuffle = true, .seed = seed, .batch_size = given_.batch_size});
    for (std::uint32_t epoch = 0; epoch < epochs_; ++epoch) {
      for (std::uint64_t index = 0; index < sampler.batches(epoch); ++index) {
        const std::size_t rows = sampler.rows(epoch, index);
        all = stages::chain_digest(
            all,
            stages::batch_digest(epoch, index, std::span(expected_).subspan(std::exchange(row, row + rows), rows)));
      }
    }
    if (all != run.all) {
      throw error(errc::corrupt,
                  str_cat("the loader's digest ", run.all.hex(), " is not the bare loop's, ", all.hex()));
    }
    return all;
  }

  void round() {
    for (const std::uint32_t threads : given_.threads) {
      epoch_figures& into = figures_[threads];
      // What the loader is counted for: all but the batches that use its memory for the first time.
      const auto counted = std::span<const planned_row>(planned_).subspan(uncounted_rows_);
      const auto images = static_cast<double>(counted.size());
      const bare_loop::result bare = bare_.run(counted, threads, bare_loop::rows::one_per_thread);
      into.bare_images_per_s.add(images / bare.wall_s);
      into.bare_cpu_us.add(bare.cpu_s / images * 1e6);
      const bare_loop::result batches = bare_.run(counted, threads, bare_loop::rows::batches);
      into.into_batches_images_per_s.add(images / batches.wall_s);
      into.into_batches_ratio.add(bare.wall_s / batches.wall_s);
      into.into_batches_cpu_us.add(batches.cpu_s / images * 1e6);
      for (const reading how : given_.readings) {
        if (how == reading::cold) {
          round_cold(threads, into.loader[how]);
          continue;
        }
        try {
          into.loader[how].add(run_loader(photos_, given_, threads, epochs_, how, expected_), images / bare.wall_s);
        } catch (const error& refused) {
          if (how != reading::direct || refused.code() == errc::corrupt) throw;
          into.loader.erase(how);  // A file system without O_DIRECT.
        }
      }
    }
  }

  /// Only the first epoch after the drop is cold, so the bare loop runs over its rows again.
  void round_cold(std::uint32_t threads, epoch_figures::loader_figures& into) {
    const auto counted = std::span<const planned_row>(planned_).first(photos_.size()).subspan(uncounted_rows_);
    bare_loop::result bare;
    loader_run sum;
    for (std::size_t images = 0; images < planned_.size() - uncounted_rows_; images += counted.size()) {
      const bare_loop::result part = bare_.run(counted, threads, bare_loop::rows::one_per_thread);
      bare.wall_s += part.wall_s;
      uncached_.add(drop_from_page_cache(files_));
      const loader_run run = run_loader(photos_, given_, threads, 1, reading::cold, expected_);
      sum.images += run.images;
      sum.wall_s += run.wall_s;
      sum.cpu_s += run.cpu_s;
      sum.decode_cpu_s += run.decode_cpu_s;
    }
    into.add(sum, static_cast<double>(sum.images) / bare.wall_s);
  }

  void print() const {
    for (const auto& [threads, got] : figures_) {
      const auto line = [](std::string_view what, const figure& images_per_s, std::string_view ratio,
                           const figure& decode_us, std::string_view cpu_us, std::string_view outside_share) {
        absl::PrintF("  %-26s %-20s %-20s %-18s %-18s %s\n", as_absl(what), with_spread(images_per_s, 0),
                     as_absl(ratio), with_spread(decode_us, 0), as_absl(cpu_us), as_absl(outside_share));
      };
      absl::PrintF("\n%-28s %-20s %-20s %-18s %-18s %s\n",
                   str_cat(threads, threads == 1 ? " decode thread" : " decode threads"), "images/s",
                   "ratio to bare loop", "decode us/image", "all CPU us/image", "% CPU not decode");
      line("bare loop, row in cache", got.bare_images_per_s, "", got.bare_cpu_us, "", "");
      line("bare loop, into batches", got.into_batches_images_per_s, with_spread(got.into_batches_ratio, 2),
           got.into_batches_cpu_us, "", "");
      for (const auto& [how, of] : got.loader) {
        line(title(how), of.images_per_s, with_spread(of.ratio, 2), of.decode_us, with_spread(of.cpu_us, 0),
             with_spread(of.outside_share, 1));
      }
    }
    if (!uncached_.empty() && uncached_.low() < 1) {
      absl::PrintF("  cold: at worst %.1f %% of the files were out of the page cache\n", uncached_.low() * 100);
    }
  }

  [[nodiscard]] std::size_t rows() const noexcept { return planned_.size(); }
  /// What the bare loop takes for the rows of the first batch on one thread.
  [[nodiscard]] double first_batch_s() {
    const std::size_t rows = std::min<std::size_t>(given_.batch_size, photos_.size());
    return bare_.run(std::span<const planned_row>(planned_).first(rows), 1, bare_loop::rows::one_per_thread).wall_s;
  }

 private:
  const settings& given_;
  const dataset photos_;
  const std::vector<std::string> files_;
  const std::uint32_t epochs_;
  const std::vector<planned_row> planned_;
  bare_loop bare_;
  const std::vector<digest> expected_;
  std::size_t uncounted_rows_ = 0;
  std::map<std::uint32_t, epoch_figures> figures_;
  figure uncached_;
};

// --- 3: next() --------------------------------------------------------------------------------------------------------

asio::awaitable<void> time_next(loader& train, std::uint64_t count, std::vector<double>& taken_ns) {
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint64_t begin_ns = now_ns();
    const std::optional<batch> got = co_await train.next();
    taken_ns.push_back(static_cast<double>(now_ns() - begin_ns));
    if (!got) throw error(errc::corrupt, "the epoch ended before its last batch");
  }
}

/// next() with nothing else to do in the process: class numbers alone, batches of 1, so that many are ready at a time.
void question_three(const settings& given, const dataset& photos) {
  std::vector<std::int64_t> numbers(std::max<std::uint64_t>(photos.size(), 64));
  const dataset samples = from_tensors({{"cls", tensor{.type = dtype::i64,
                                                       .shape = {static_cast<std::int64_t>(numbers.size())},
                                                       .strides = {1},
                                                       .data = numbers.data(),
                                                       .where = host}}},
                                       nullptr);
  figure median_us;
  figure p99_us;
  for (unsigned round = 0; round < given.rounds; ++round) {
    loader train(samples, {.batch_size = 1, .seed = seed, .epochs = 1, .decode_threads = 1, .prefetch_batches = 128},
                 {label{"cls"}});
    const std::uint64_t ready = std::min<std::uint64_t>(train.batches(), train.plan().batches);
    while (train.stats().batches_ready < ready) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    std::vector<double> taken_ns;
    taken_ns.reserve(ready);
    run_to_end(time_next(train, ready, taken_ns));
    std::sort(taken_ns.begin(), taken_ns.end());
    median_us.add(taken_ns[taken_ns.size() / 2] * 1e-3);
    p99_us.add(taken_ns[taken_ns.size() * 99 / 100] * 1e-3);
  }
  absl::PrintF("\nnext() on a ready batch: %s us; 99th percentile %s us (aim: 1 us)\n", with_spread(median_us, 2),
               with_spread(p99_us, 2));
}

// --- 4: the first batch -----------------------------------------------------------------------------------------------

/// When a process has got how far, in seconds since it was asked for.
struct first_batch_times {
  double main_s = 0;
  double opened_s = 0;
  double built_s = 0;
  double batch_s = 0;
};

/// The other end: this program again, as a process of its own. Prints its times since `began_ns`.
int first_batch(const std::string& photos, std::uint32_t batch_size, std::uint32_t threads, std::uint64_t began_ns) {
  const auto since = [began_ns] { return static_cast<double>(now_ns() - began_ns) * 1e-9; };
  first_batch_times at{.main_s = since()};
  const dataset samples = open(photos);
  at.opened_s = since();
  loader train(samples, {.batch_size = batch_size, .seed = seed, .epochs = 1, .decode_threads = threads},
               training_fields(samples));
  at.built_s = since();
  const std::optional<batch> first = train.next_blocking();
  at.batch_s = since();
  std::printf("%.9f %.9f %.9f %.9f\n", at.main_s, at.opened_s, at.built_s, at.batch_s);
  return first && first->valid_rows() == std::min<std::uint64_t>(batch_size, samples.size()) ? 0 : 1;
}

first_batch_times times_of_child(std::vector<std::string> arguments) {
  std::array<int, 2> ends{};
  if (::pipe(ends.data()) != 0) throw std::system_error(errno, std::generic_category(), "pipe");
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  posix_spawn_file_actions_addclose(&actions, ends[0]);
  std::vector<char*> argv;
  for (std::string& each : arguments) argv.push_back(each.data());
  // The steady clock is one for all processes: CLOCK_MONOTONIC, clock_gettime(2).
  std::string began = std::to_string(now_ns());
  argv.push_back(began.data());
  argv.push_back(nullptr);
  pid_t child = 0;
  const int failure = ::posix_spawn(&child, "/proc/self/exe", &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  ::close(ends[1]);
  std::string said;
  if (failure == 0) {
    std::array<char, 64> part{};
    for (ssize_t got = 0; (got = ::read(ends[0], part.data(), part.size())) > 0;) {
      said.append(part.data(), static_cast<std::size_t>(got));
    }
  }
  ::close(ends[0]);
  if (failure != 0) throw std::system_error(failure, std::generic_category(), "posix_spawn");
  int status = 0;
  ::waitpid(child, &status, 0);
  if (status != 0) throw error(errc::io, "the process that loads one batch failed; what it said is above");
  first_batch_times at;
  std::sscanf(said.c_str(), "%lf %lf %lf %lf", &at.main_s, &at.opened_s, &at.built_s, &at.batch_s);
  return at;
}

/// Has the machine's free memory at hand. A virtual machine gives the host back what lies free for some seconds, and the
/// first to touch it again waits for the host: 2 ms per MiB in place of 0.1 where this was written, 78 ms of a batch.
void touch_free_memory() {
  constexpr std::size_t bytes = std::size_t{256} << 20;
  constexpr std::size_t page = 4096;
  void* const memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return;
  ::madvise(memory, bytes, MADV_HUGEPAGE);
  for (std::size_t at = 0; at < bytes; at += page) static_cast<volatile char*>(memory)[at] = 1;
  ::munmap(memory, bytes);
}

void question_four(const settings& given, const dataset& photos, epoch_rounds& epochs) {
  absl::PrintF("\nfirst batch of %d photographs, page cache warm, ms from the start of the process\n", photos.size());
  absl::PrintF("  %-16s %-20s %-16s %-16s %-16s %-16s %-16s %s\n", "", "in all", "to main()", "to open it",
               "to build the loader", "to the batch", "decoding alone", "aim");
  for (const std::uint32_t threads : given.threads) {
    for (const bool touched : {true, false}) {
      figure all, main, opening, building, waiting, decoding;
      for (unsigned round = 0; round < 2 * given.rounds; ++round) {
        if (touched) touch_free_memory();
        const first_batch_times at = times_of_child({"epoch_benchmark", "--first-batch", given.photos,
                                                     std::to_string(given.batch_size), std::to_string(threads)});
        decoding.add(1e3 * epochs.first_batch_s() / threads);
        all.add(1e3 * at.batch_s);
        main.add(1e3 * at.main_s);
        opening.add(1e3 * (at.opened_s - at.main_s));
        building.add(1e3 * (at.built_s - at.opened_s));
        waiting.add(1e3 * (at.batch_s - at.built_s));
      }
      absl::PrintF("  %-16s %-20s %-16.1f %-16.1f %-19.1f %-16.1f %-16.1f %.0f\n",
                   touched ? str_cat(threads, threads == 1 ? " decode thread" : " decode threads")
                           : std::string("  memory as found"),
                   with_spread(all, 0), main.median(), opening.median(), building.median(), waiting.median(),
                   decoding.median(), 15 + decoding.median());
    }
  }
}

// --- the command ------------------------------------------------------------------------------------------------------

/// A photo set of one's own where none is given. Left where it is: the next run finds it.
std::string make_photos_for(const settings& given) {
  tools::make_photos_options how;
  how.count = given.toy ? 96 : 1000;
  if (given.toy) {
    how.width = 160;
    how.height = 120;
  }
  const auto place = std::filesystem::temp_directory_path() / str_cat("leat-benchmark-photos-", how.count);
  tools::make_photos(place, how);
  return place.string();
}

reading named_reading(std::string_view text) {
  if (text == "warm") return reading::warm;
  if (text == "cold") return reading::cold;
  if (text == "direct") return reading::direct;
  throw error(errc::usage, str_cat("--readings has '", text, "'; there are warm, cold and direct"));
}

settings parse(int count, char** words) {
  settings given;
  read_options(count, words,
               {{"PHOTOS", given.photos},
                {"--rounds", given.rounds},
                {"--images", given.images},
                {"--batch-size", given.batch_size},
                {"--threads", given.threads},
                {"--readings",
                 [&](std::string_view value) {
                   given.readings.clear();
                   for (const std::string_view each : listed(value)) given.readings.push_back(named_reading(each));
                 }},
                {"--toy", [&] {
                   given.toy = true;
                   given.rounds = 1;
                   given.images = 96;
                   given.batch_size = 8;
                 }}});
  if (given.photos.empty()) {
    const char* set = std::getenv("LEAT_PHOTOS");
    given.photos = set != nullptr && !given.toy ? std::string(set) : make_photos_for(given);
  }
  return given;
}

/// An epoch has to use the loader's batches more than once: few photographs come several times.
dataset repeated(const dataset& photos, std::uint32_t batch_size) {
  const std::uint64_t wanted = std::uint64_t{8} * batch_size;
  if (photos.size() == 0 || photos.size() >= wanted) return photos;
  return concat(std::vector<dataset>((wanted + photos.size() - 1) / photos.size(), photos));
}

void measure(const settings& given) {
  const dataset once = open(given.photos);
  const dataset photos = repeated(once, given.batch_size);
  std::uint64_t bytes = 0;
  for (const field_info& each : once.fields()) bytes += each.bytes_total;
  epoch_rounds epochs(given, photos);
  absl::PrintF("What does the loader cost beside the decoding that it is there to feed?\n\n");
  absl::PrintF("  machine   %s\n", machine());
  absl::PrintF("  photos    %d, %.1f MB, on %s; %d-pixel training crops to f32 NCHW in batches of %d\n", once.size(),
               static_cast<double>(bytes) * 1e-6, file_system(files_of(photos).front()), training_crop::side,
               given.batch_size);
  absl::PrintF("  method    %d rounds, interleaved; %d images a run; median (lowest..highest)\n", given.rounds,
               epochs.rows());
  absl::PrintF("  digest    %s, loader and bare loop alike\n", epochs.check().hex());
  std::fflush(stdout);
  for (unsigned round = 0; round < given.rounds; ++round) epochs.round();
  epochs.print();
  question_three(given, photos);
  question_four(given, once, epochs);
}

int main_of(int count, char** words) {
  int result = 0;
  const int failed = run_benchmark("epoch_benchmark", [&] {
    if (count == 6 && std::string_view(words[1]) == "--first-batch") {
      result = first_batch(words[2], number<std::uint32_t>("batch size", words[3]),
                           number<std::uint32_t>("threads", words[4]), number<std::uint64_t>("start", words[5]));
    } else {
      measure(parse(count, words));
    }
  });
  return std::max(result, failed);
}

}  // namespace
}  // namespace leat::benchmarks

int main(int count, char** words) { return leat::benchmarks::main_of(count, words); }
