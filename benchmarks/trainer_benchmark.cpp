// Does a trainer that computes on the CPU take longer for its steps with a loader beside it, and with one that tunes itself?
//
// Photographs become 224-pixel training crops in batches of 32. A step is a fixed amount of arithmetic on one thread. It is so long that a
// batch takes 0.3, 0.6 or 0.9 of a step on one core to decode. In turns:
//
//     alone     the steps, without a loader
//     off       with one of as many decode threads as cores
//     tuning    with one that tunes itself, until it has frozen
//     frozen    the same one after that. aim: steps take at most 1.05 times as long as alone, where there is a core to spare
//
//     trainer_benchmark [PHOTOS] [--rounds 3] [--seconds 4] [--loads 0.3,0.6,0.9] [--toy]
//
// PHOTOS is a folder; else 256 photographs are made in the temporary directory. Figures are medians of the rounds: of the mean step, with the
// lowest and the highest, and of what the trainer waited in next().
#include "base/text.hpp"
#include "benchmarks/arguments.hpp"
#include "benchmarks/measure.hpp"
#include "tools/make_photos.hpp"

#include <leat/error.hpp>
#include <leat/loading.hpp>
#include <leat/open.hpp>

#include <absl/strings/str_format.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace leat::benchmarks {
namespace {

struct settings {
  std::string photos;
  unsigned rounds = 3;
  double seconds = 4;  // of each figure
  std::vector<double> loads = {0.3, 0.6, 0.9};
  double tuning_seconds_max = 90;
};

/// Steps one after the other, of so many turns of a loop that no compiler leaves out.
class trainer {
 public:
  explicit trainer(std::uint64_t turns) : turns_(turns) {}

  void step() {
    const double began = wall_s();
    for (std::uint64_t turn = 0; turn < turns_; ++turn) {
      value_ = value_ * 6364136223846793005ULL + 1442695040888963407ULL;
      asm volatile("" : "+r"(value_));
    }
    in_steps_s_ += wall_s() - began;
    ++steps_;
  }
  void forget() {
    in_steps_s_ = 0;
    steps_ = 0;
    began_ = wall_s();
  }
  [[nodiscard]] double seconds() const { return wall_s() - began_; }
  [[nodiscard]] double step_ms() const { return 1e3 * in_steps_s_ / static_cast<double>(steps_); }
  [[nodiscard]] double waited_share() const { return 1 - in_steps_s_ / seconds(); }

 private:
  const std::uint64_t turns_;
  std::uint64_t value_ = 1;
  std::uint64_t steps_ = 0;
  double in_steps_s_ = 0;
  double began_ = wall_s();
};

loader make_loader(const dataset& photos, tuning tune) {
  return {photos,
          {.batch_size = 32, .seed = 7, .epochs = 0, .tune = tune},
          {image{"jpg"}.random_resized_crop(224).random_flip().normalize(imagenet)}};
}

void take_batch(loader& from, trainer& by) {
  std::optional<batch> got;
  while (!got) got = from.next_blocking();  // the end of an epoch is none
  by.step();
}

/// What the decode threads take for a batch, in seconds of a core's time.
double decode_cpu_s(const dataset& photos) {
  loader all = make_loader(photos, tuning::off);
  std::uint64_t batches = 0;
  double began = 0;
  for (; batches < 40; ++batches) {
    if (batches == 8) began = process_cpu_s();
    while (!all.next_blocking()) {
    }
  }
  return (process_cpu_s() - began) / static_cast<double>(batches - 8);
}

/// How many turns of the loop take a second of a core.
double turns_per_s() {
  constexpr std::uint64_t turns = 100'000'000;
  const double began = thread_cpu_s();
  trainer(turns).step();
  return turns / (thread_cpu_s() - began);
}

/// A figure of each round.
struct seen {
  figure step_ms;
  figure over_alone;
  figure waited;

  void add(const trainer& by, double alone_ms) {
    step_ms.add(by.step_ms());
    over_alone.add(by.step_ms() / alone_ms);
    waited.add(100 * by.waited_share());
  }
};

void print(const char* name, const seen& of, const std::string& rest) {
  absl::PrintF("  %-8s %7.2f ms (%.2f..%.2f)   %.3f (%.3f..%.3f)   %5.1f %%   %s\n", name, of.step_ms.median(),
               of.step_ms.low(), of.step_ms.high(), of.over_alone.median(), of.over_alone.low(), of.over_alone.high(),
               of.waited.median(), rest);
}

void measure(const settings& how, const dataset& photos, double load, std::uint64_t turns) {
  seen alone, off, tuning_on, frozen;
  std::string threads;
  for (unsigned round = 0; round < how.rounds; ++round) {
    trainer by(turns);
    for (by.forget(); by.seconds() < how.seconds;) by.step();
    const double alone_ms = by.step_ms();
    alone.add(by, alone_ms);

    const auto beside = [&](loader& train, seen& into) {
      for (by.forget(); by.seconds() < how.seconds;) take_batch(train, by);
      into.add(by, alone_ms);
    };
    {
      loader train = make_loader(photos, tuning::off);
      for (int batch = 0; batch < 8; ++batch) take_batch(train, by);
      beside(train, off);
    }
    loader train = make_loader(photos, tuning::on);
    for (int batch = 0; batch < 8; ++batch) take_batch(train, by);
    by.forget();
    while (!train.stats().tuned.frozen && by.seconds() < how.tuning_seconds_max) take_batch(train, by);
    tuning_on.add(by, alone_ms);
    const double tuned_s = by.seconds();
    beside(train, frozen);
    const tuning_stats tuned = train.stats().tuned;
    threads += absl::StrFormat("%s%d threads%s after %.0f s", threads.empty() ? "" : "; ", tuned.decode_threads,
                               tuned.frozen ? "" : ", not frozen,", tuned_s);
  }
  absl::PrintF("\na batch takes %.1f of a step on one core to decode\n", load);
  absl::PrintF("  %-8s %-27s %-24s %s\n", "", "step", "over alone", "waits");
  print("alone", alone, "");
  print("off", off, "");
  print("tuning", tuning_on, "");
  print("frozen", frozen, threads);
}

void run(const settings& how) {
  std::filesystem::path folder = how.photos;
  if (how.photos.empty()) {
    folder = std::filesystem::temp_directory_path() / "leat-trainer-benchmark";
    tools::make_photos_options made;
    made.count = 256;
    static_cast<void>(tools::make_photos(folder, made));
  }
  const dataset photos = open(folder.string());
  const double batch_s = decode_cpu_s(photos);
  const double per_s = turns_per_s();
  absl::PrintF("%s\na batch of 32 photographs takes %.1f ms of a core; %d rounds in turns\n", machine(), 1e3 * batch_s,
               how.rounds);
  for (const double load : how.loads) {
    measure(how, photos, load, static_cast<std::uint64_t>(per_s * batch_s / load));
  }
}

}  // namespace
}  // namespace leat::benchmarks

int main(int count, char** words) {
  namespace benchmarks = leat::benchmarks;
  return benchmarks::run_benchmark("trainer_benchmark", [&] {
    benchmarks::settings how;
    benchmarks::read_options(count, words,
                             {{"PHOTOS", how.photos},
                              {"--rounds", how.rounds},
                              {"--seconds", how.seconds},
                              {"--loads", how.loads},
                              {"--toy", [&] {
                                 how.rounds = 1;
                                 how.seconds = 0.1;
                                 how.tuning_seconds_max = 0.1;
                                 how.loads = {0.6};
                               }}});
    benchmarks::run(how);
  });
}
