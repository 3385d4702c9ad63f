// Does the verdict name the part that holds the line up, and are its figures true?
//
// The whole loader, whose disk, fields, copies and trainer take times that are set: 4 ms a batch each, and one of them 1.3, 2 or 5 times
// as long, asleep or spinning, on the host and on a device that is simulated (tests/support/line_of_parts.hpp). Copies and steps of a
// device do not spin. Of each case:
//
//     word       the verdict's who is the slow part; "tie" where it is named beside another one
//     error      of the capacity of the verdict's part, against what the line really gave meanwhile, by the consumer's clock. aim: a median of
//                3 % at most, a 90th percentile of 8 %
//     if free    "if it were free", against the same line run without that part. aim: 10 %
//     others     what tf.data's rule and SPDL's tables make of the same counters
//
// tf.data: the consumer where next() waits for less than 50 us; else the stage whose item takes the longest, a sample of it. SPDL's tables
// are read by people; here by this rule: the bottleneck is behind the last queue that holds something in the mean: ready batches, then
// copies (one is nearly always under way), then samples that wait for a decode thread; where none does it is the read.
//
// The disk is a source that is no file, so that it tells nothing of its depth: a capacity of reads is what they gave.
// Then what stats() and write_metrics() take, while a line runs.
//
//     verdict_benchmark [--rounds 3] [--seconds 2] [--sentences] [--toy]        --sentences: also what each verdict says
#include "base/clock.hpp"
#include "benchmarks/arguments.hpp"
#include "benchmarks/measure.hpp"
#include "tests/support/line_of_parts.hpp"

#include <leat/loading.hpp>
#include <leat/metrics.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace leat::benchmarks {
namespace {

using testing::line_of_parts;
using testing::passing;
using testing::run_of_parts;

struct settings {
  std::uint64_t rounds = 3;
  double seconds = 2;  // of a window; a line runs for two of them and some more
  bool sentences = false;
  bool toy = false;
};

struct tally {
  std::uint64_t runs = 0;
  std::uint64_t right = 0;  // those that are named in a tie too
  std::uint64_t ties = 0;
  std::uint64_t wrong = 0;  // another part was named, with or without a tie
  std::uint64_t unsure = 0;
  std::uint64_t tf_data = 0;
  std::uint64_t spdl = 0;
  std::vector<double> errors;
  std::vector<double> if_free_errors;
  std::string said;  // the last verdict

  void add(const tally& other) {
    runs += other.runs;
    right += other.right;
    ties += other.ties;
    wrong += other.wrong;
    unsure += other.unsure;
    tf_data += other.tf_data;
    spdl += other.spdl;
    errors.insert(errors.end(), other.errors.begin(), other.errors.end());
    if_free_errors.insert(if_free_errors.end(), other.if_free_errors.begin(), other.if_free_errors.end());
  }
};

double quantile(std::vector<double> values, double share) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return values[static_cast<std::size_t>(share * static_cast<double>(values.size() - 1) + 0.5)];
}

double mean_s(const stage_stats& of) { return of.count == 0 ? 0 : of.items_s / static_cast<double>(of.count); }

bottleneck by_tf_data(const loader_stats& now) {
  if (mean_s(now.next) < 50e-6) return bottleneck::consumer;
  constexpr double batch = line_of_parts::batch_size;
  const std::array<double, 3> takes = {mean_s(now.read), mean_s(now.decode), mean_s(now.transfer) / batch};
  return static_cast<bottleneck>(std::max_element(takes.begin(), takes.end()) - takes.begin());
}

bottleneck by_spdl(const loader_stats& now) {
  if (now.queues.ready >= 0.5) return bottleneck::consumer;
  if (now.transfer.items_s >= 0.9 * now.elapsed_s) return bottleneck::transfer;
  return now.queues.decode >= 0.5 ? bottleneck::decode : bottleneck::read;
}

// Long enough for two windows that end, at the rate of its slowest part.
run_of_parts run_for(const line_of_parts& parts, const settings& how) {
  const auto seconds = [](std::chrono::microseconds time) { return std::chrono::duration<double>(time).count(); };
  constexpr double batch = line_of_parts::batch_size;
  const double batch_s = std::max(
      {batch * seconds(parts.read), batch / 2 * seconds(parts.decode), seconds(parts.transfer), seconds(parts.step)});
  const double batches = std::max(2.2 * how.seconds / batch_s, 54.0);
  return run(parts, static_cast<std::uint64_t>(batches), {.batches = 24, .seconds = how.seconds});
}

void look_at(const line_of_parts& parts, const settings& how, tally& into) {
  const run_of_parts slow = run_for(parts, how);
  const verdict& found = slow.stats.verdict;
  ++into.runs;
  const bool is_named = found.who == parts.slow || found.also == parts.slow;
  into.right += is_named ? 1 : 0;
  into.ties += is_named && found.also ? 1 : 0;
  const leat::capacity* const named = found.capacity_of(found.who);
  const double capacity = named != nullptr ? named->per_s : 0;
  into.unsure += capacity == 0 ? 1 : 0;
  into.wrong += !is_named && capacity != 0 ? 1 : 0;
  into.tf_data += by_tf_data(slow.stats) == parts.slow ? 1 : 0;
  into.spdl += by_spdl(slow.stats) == parts.slow ? 1 : 0;
  into.said = found.to_string();
  if (!is_named) std::printf("    %s\n", into.said.c_str());
  if (slow.samples_per_s == 0) return;
  if (capacity != 0) into.errors.push_back(std::abs(capacity / slow.samples_per_s - 1));
  if (found.who != parts.slow || found.also || !found.next) return;
  const run_of_parts free = run_for(without_slow(parts), how);
  if (free.samples_per_s != 0) into.if_free_errors.push_back(std::abs(found.if_free.per_s / free.samples_per_s - 1));
}

void print_head() {
  std::printf("%-34s %6s %5s %5s %6s %8s %8s %8s %8s %8s %6s\n", "", "right", "tied", "wrong", "unsure", "error", "p90",
              "if free", "p90", "tf.data", "SPDL");
}

void print(const std::string& name, const tally& of) {
  const auto share = [&](std::uint64_t count) {
    return 100.0 * static_cast<double>(count) / static_cast<double>(of.runs);
  };
  std::printf("%-34s %4.0f %% %5llu %5llu %6llu %6.1f %% %6.1f %% %6.1f %% %6.1f %% %6.0f %% %4.0f %%\n", name.c_str(),
              share(of.right), static_cast<unsigned long long>(of.ties), static_cast<unsigned long long>(of.wrong),
              static_cast<unsigned long long>(of.unsure), 100 * quantile(of.errors, 0.5),
              100 * quantile(of.errors, 0.9), 100 * quantile(of.if_free_errors, 0.5),
              100 * quantile(of.if_free_errors, 0.9), share(of.tf_data), share(of.spdl));
  std::fflush(stdout);
}

// --- what asking takes ------------------------------------------------------------------------------------------------

void time_calls(const settings& how) {
  for (const std::uint32_t decoders : {2U, 64U}) {
    loader_options options;
    options.batch_size = 8;
    options.decode_threads = decoders;
    options.host_bytes_max = std::size_t{64} << 20;
    options.device = host;
    loader train(testing::on_slow_disk(4096, std::chrono::microseconds(20), passing::asleep), options,
                 {testing::slow_field(std::chrono::microseconds(200), passing::asleep)});
    std::vector<double> asked;
    std::vector<double> written;
    while (asked.size() < (how.toy ? 5 : 300)) {
      static_cast<void>(train.next_blocking());
      const std::uint64_t began_ns = now_ns();
      const loader_stats now = train.stats();
      const std::uint64_t had_ns = now_ns();
      std::ostringstream text;
      write_metrics(text, now, {{"job", "benchmark"}});
      asked.push_back(static_cast<double>(had_ns - began_ns) * 1e-3);
      written.push_back(static_cast<double>(now_ns() - had_ns) * 1e-3);
    }
    std::printf("%2u decode threads: stats() %.1f us (99th percentile %.1f), write_metrics() %.1f us (%.1f)\n",
                decoders, quantile(asked, 0.5), quantile(asked, 0.99), quantile(written, 0.5), quantile(written, 0.99));
  }
}

void run_all(const settings& how) {
  std::printf("%s\nwindows of %.1f s, %llu rounds\n", machine().c_str(), how.seconds,
              static_cast<unsigned long long>(how.rounds));
  print_head();
  tally all_asleep;
  tally all_spinning;
  const std::vector<double> factors = how.toy ? std::vector<double>{2} : std::vector<double>{1.3, 2, 5};
  for (const bottleneck part : {bottleneck::read, bottleneck::decode, bottleneck::transfer, bottleneck::consumer}) {
    for (const double times : factors) {
      for (const bool on_device : {false, true}) {
        const bool is_of_device = on_device && (part == bottleneck::transfer || part == bottleneck::consumer);
        for (const passing kind : {passing::asleep, passing::spinning}) {
          if (kind == passing::spinning && (is_of_device || how.toy)) continue;
          tally of;
          for (std::uint64_t round = 0; round < how.rounds; ++round)
            look_at(with_slow(part, times, kind, on_device), how, of);
          std::array<char, 64> name{};
          std::snprintf(name.data(), name.size(), "%s x %.1f, %s%s", std::string(leat::name(part)).c_str(), times,
                        kind == passing::asleep ? "asleep" : "spinning", on_device ? ", device" : "");
          print(name.data(), of);
          if (how.sentences) std::printf("    %s\n", of.said.c_str());
          (kind == passing::asleep ? all_asleep : all_spinning).add(of);
        }
      }
    }
  }
  print("all that sleep", all_asleep);
  if (all_spinning.runs != 0) print("all that spin", all_spinning);
  tally all = all_asleep;
  all.add(all_spinning);
  print("all", all);
  time_calls(how);
}

}  // namespace
}  // namespace leat::benchmarks

int main(int count, char** words) {
  namespace benchmarks = leat::benchmarks;
  return benchmarks::run_benchmark("verdict_benchmark", [&] {
    benchmarks::settings how;
    benchmarks::read_options(
        count, words,
        {{"--rounds", how.rounds}, {"--seconds", how.seconds}, {"--sentences", how.sentences}, {"--toy", [&] {
                                                                                                  how.rounds = 1;
                                                                                                  how.seconds = 0.05;
                                                                                                  how.toy = true;
                                                                                                }}});
    benchmarks::run_all(how);
  });
}
