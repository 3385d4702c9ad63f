// What does it cost to find out that a copy to the device has passed, and how long does its memory lie idle?
//
// The host memory of a copy goes home when its event has fired. leat asks the oldest event when memory for a batch is wanted, and
// has a thread wait for it while there is none. Beside that, of the same line in the same rounds:
//
//     host fallback     no copies: what is counted against it is the I/O thread's CPU
//     timer         no thread waits: while memory is wanted the oldest event is asked every 100 us. The timer is a thread of the
//                   benchmark's
//     every copy    the thread waits for each copy, wanted or not
//
// The loader is the whole one, the disk costs nothing or answers by the clock, and so does the device (timed_device.hpp): no GPU is
// needed, and what CUDA's own calls cost is not in it. Batches of 38 MB and of 1 MB, steps of 1, 5 and 20 ms, four lines:
//
//     ahead     the host is faster than the steps, and the trainer queues steps without waiting for any
//     waits     the same, and the trainer waits for each step before it asks for the next batch (it reads its loss)
//     disk      the disk takes 1.5 times as long as steps and copies do; rows are read straight to where they stay
//     decoders  decode threads take as long, from read buffers
//
// Memory is idle from the moment that its copy has passed, or that somebody wants it if that is later, until it is leased; a batch
// whose memory was there when it was asked for has none that counts. No memory may be leased before its copy has passed.
//
//     hand_over_benchmark [--seconds 0.4] [--rounds 5] [--line NAME] [--json] [--toy]
#include "base/clock.hpp"
#include "base/mutex.hpp"
#include "benchmarks/arguments.hpp"
#include "benchmarks/measure.hpp"
#include "benchmarks/raw_records.hpp"
#include "benchmarks/timed_disk.hpp"
#include "stages/device/device_transfer.hpp"
#include "stages/run/loader_parts.hpp"
#include "tests/support/null_disk.hpp"
#include "tests/support/sleep_until.hpp"
#include "tests/support/timed_device.hpp"

#include <leat/error.hpp>
#include <leat/loading.hpp>
#include <leat/units.hpp>

#include <nlohmann/json.hpp>

#include <pthread.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace leat::benchmarks {
namespace {

using namespace leat::literals;
using testing::sleep_until;
using testing::timed_device;
using testing::timed_device_options;

constexpr std::uint64_t timer_ns = 100'000;
constexpr double copy_bytes_per_s = 25e9;
constexpr double slower = 1.5;  // a slow host than what it feeds
constexpr std::uint32_t decoder_count = 4;

enum class way : std::uint8_t { host_fallback, as_it_is, timer, every_copy };
constexpr std::array<std::pair<way, const char*>, 4> ways{{{way::host_fallback, "host fallback"},
                                                           {way::as_it_is, "leat"},
                                                           {way::timer, "timer"},
                                                           {way::every_copy, "every copy"}}};

enum class line : std::uint8_t { ahead, waits, disk, decoders };
constexpr std::array<std::pair<line, const char*>, 4> lines{
    {{line::ahead, "ahead"}, {line::waits, "waits"}, {line::disk, "disk"}, {line::decoders, "decoders"}}};

/// Batches of `rows` records.
struct shape {
  std::uint32_t rows;
  std::uint64_t record_bytes;
  [[nodiscard]] std::uint64_t batch_bytes() const { return rows * record_bytes; }
};

struct scene {
  line runs;
  shape batches;
  double step_s;
};

// --- what stands between the loader and its transfer ------------------------------------------------------------------------

/// Looks at when memory is wanted, had and sent, and has the transfer asked in another way than leat's.
class watched_transfer final : public stages::transfer {
 public:
  /// Of the batches whose memory a copy had read before.
  struct tally {
    std::uint64_t batches = 0;
    std::uint64_t starved = 0;  ///< had to wait for their memory
    std::uint64_t idle_ns = 0;  ///< of their memory, while they wanted it
    std::uint64_t idle_ns_max = 0;
    std::uint64_t leased_too_early = 0;
  };

  watched_transfer(std::shared_ptr<timed_device> device, way how)
      : device_(std::move(device)),
        behind_(std::make_shared<stages::device_transfer>(device_, stages::device_transfer_options{})),
        how_(how) {}
  ~watched_transfer() override { end_timer(); }

  /// From here on. Thread: any.
  void begin() {
    const mutex_lock lock(mutex_);
    counted_ = {};
  }
  [[nodiscard]] tally count() const {
    const mutex_lock lock(mutex_);
    return counted_;
  }

  [[nodiscard]] bool runs_operations() const noexcept override { return behind_->runs_operations(); }
  [[nodiscard]] bool pins() const noexcept override { return behind_->pins(); }
  void prepare(stages::transfer_needs needs) override {
    behind_->prepare(std::move(needs));
    if (how_ == way::every_copy) behind_->starve(true);
    if (how_ == way::timer) timer_ = std::thread([this] { run_timer(); });
  }
  void send(stages::transfer_operation& operation) noexcept override {
    look_at(operation);
    behind_->send(operation);
  }
  // The line wants memory for one batch after the other, in their turns, and asks once for each. Who waits for copies may give it
  // home while it asks: a batch that did not starve has its memory when the next one wants its own, or when it is sent.
  void collect() noexcept override {
    const std::uint64_t wanted_ns = now_ns();
    if (!leases_.empty() && !leases_.back().starved) leases_.back().had_ns = wanted_ns;
    behind_->collect();
    leases_.push_back({.wanted_ns = wanted_ns});
  }
  void starve(bool waiting) override {
    if (waiting) leases_.back().starved = true;
    if (!waiting) leases_.back().had_ns = now_ns();
    if (how_ == way::as_it_is) behind_->starve(waiting);
    if (how_ != way::timer) return;
    const mutex_lock lock(mutex_);
    starving_ = waiting;
    changed_.notify_one();
  }
  void give_back(io::lease memory, bool was_handed_out) noexcept override {
    behind_->give_back(std::move(memory), was_handed_out);
  }
  void drain() noexcept override {
    end_timer();
    behind_->drain();
  }
  [[nodiscard]] device_report report() const override { return behind_->report(); }

 private:
  struct lease_times {
    std::uint64_t wanted_ns = 0;
    std::uint64_t had_ns = 0;  // at the latest; 0 while it is not known
    bool starved = false;
  };

  void look_at(const stages::transfer_operation& operation) noexcept {
    const lease_times& lease = leases_[operation.number];
    const std::uint64_t passed_ns = device_->passes_ns(operation.memory->data());
    if (passed_ns == 0) return;  // its first time out
    const mutex_lock lock(mutex_);
    ++counted_.batches;
    if ((lease.had_ns != 0 ? lease.had_ns : now_ns()) < passed_ns) ++counted_.leased_too_early;
    if (!lease.starved) return;
    ++counted_.starved;
    const std::uint64_t idle_from_ns = std::max(passed_ns, lease.wanted_ns);
    const std::uint64_t idle_ns = lease.had_ns - std::min(idle_from_ns, lease.had_ns);
    counted_.idle_ns += idle_ns;
    counted_.idle_ns_max = std::max(counted_.idle_ns_max, idle_ns);
  }

  void run_timer() {
    ::pthread_setname_np(::pthread_self(), "ask-timer");
    mutex_lock lock(mutex_);
    for (;;) {
      while (!ending_ && !starving_) changed_.wait(mutex_);
      if (ending_) return;
      lock.unlock();
      sleep_until(now_ns() + timer_ns);
      lock.lock();
      if (ending_ || !starving_) continue;
      lock.unlock();
      behind_->collect();
      lock.lock();
    }
  }
  void end_timer() {
    {
      const mutex_lock lock(mutex_);
      ending_ = true;
    }
    changed_.notify_one();
    if (timer_.joinable()) timer_.join();
  }

  const std::shared_ptr<timed_device> device_;
  const std::shared_ptr<stages::device_transfer> behind_;
  const way how_;
  std::vector<lease_times> leases_;  // by turn; the I/O thread's

  mutable mutex mutex_;
  condition_variable changed_;
  tally counted_ ABSL_GUARDED_BY(mutex_);
  bool starving_ ABSL_GUARDED_BY(mutex_) = false;
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread timer_;
};

// --- one run -------------------------------------------------------------------------------------------------------------

/// Per batch.
struct costs {
  double ms = 0;
  double starved = 0;
  double queries = 0;
  double waits = 0;
  double io_us = 0;
  double waiting_us = 0;  // CPU of the thread that waits for copies, or of the timer
  double idle_us = 0;     // memory that a batch waits for
  double idle_us_max = 0;
};

double host_s(const scene& of) {
  return slower * std::max(of.step_s, static_cast<double>(of.batches.batch_bytes()) / copy_bytes_per_s);
}

dataset records_for(const scene& of) {
  constexpr std::uint64_t count = 1'000'000;
  const std::uint64_t file_bytes = count * of.batches.record_bytes;
  std::shared_ptr<const io::source_description> disk;
  if (of.runs == line::disk) {
    disk = std::make_shared<timed_disk>(
        timed_disk_options{.file_bytes = file_bytes,
                           .latency_ns = 100'000,
                           .bytes_per_s = static_cast<double>(of.batches.batch_bytes()) / host_s(of)});
  } else {
    disk = std::make_shared<testing::null_disk>(testing::null_disk_options{.files = 1, .file_bytes = file_bytes});
  }
  const std::uint32_t alignment = of.runs == line::decoders ? 1 : io::alignment_max_bytes;
  return dataset(std::make_shared<raw_records>(disk, count, of.batches.record_bytes, alignment));
}

field field_for(const scene& of) {
  if (of.runs != line::decoders) return array("x");
  const auto sleep_ns = static_cast<std::uint64_t>(host_s(of) * 1e9 * decoder_count / of.batches.rows);
  return custom("x", dtype::u8, {static_cast<std::int64_t>(of.batches.record_bytes)},
                [sleep_ns](std::span<const std::byte>, const sample_context&, std::span<std::byte>) {
                  sleep_until(now_ns() + sleep_ns);
                  return std::string();
                });
}

/// Where a run is.
struct point {
  double wall_s = 0;
  double io_s = 0;
  double waiting_s = 0;
  timed_device::counters device;

  static point now(const timed_device& device) {
    return {.wall_s = benchmarks::wall_s(),
            .io_s = named_threads_cpu_s("leat-io"),
            .waiting_s = named_threads_cpu_s("leat-copies") + named_threads_cpu_s("ask-timer"),
            .device = device.count()};
  }
};

costs run(const scene& of, way how, double seconds) {
  const auto device = std::make_shared<timed_device>(timed_device_options{.bytes_per_s = copy_bytes_per_s});
  const auto watched = std::make_shared<watched_transfer>(device, how);
  stream steps;
  device->make_stream(steps);
  const auto step_ns = static_cast<std::uint64_t>(of.step_s * 1e9);

  loader_options options;
  options.batch_size = of.batches.rows;
  options.drop_last = true;
  options.epochs = 0;
  options.decode_threads = decoder_count;
  options.host_bytes_max = 1_GiB;
  stages::loader_parts parts;
  if (how != way::host_fallback) parts.transfer = watched;
  loader train = stages::make_loader(records_for(of), options, {field_for(of)}, parts);

  // Not counted: until all memory has been out twice, has been pinned and is known to the kernel.
  const std::uint32_t uncounted = 2 * train.plan().batches;
  point begin;
  std::uint64_t counted = 0;
  for (std::uint32_t i = 0;; ++i) {
    if (i == uncounted) {
      watched->begin();
      begin = point::now(*device);
    }
    std::optional<batch> got = train.next_blocking();
    if (!got) continue;  // the end of an epoch
    if (got->valid_rows() != of.batches.rows) throw error(errc::corrupt, "a batch lacks rows");
    got->wait_on(steps);
    device->step(steps, step_ns);
    if (how == way::host_fallback) device->finish(steps);  // a step reads the batch on the trainer's thread
    got.reset();
    if (of.runs == line::waits) device->finish(steps);
    if (i < uncounted) continue;
    ++counted;
    if (wall_s() - begin.wall_s > seconds && counted >= 4) break;
  }
  const point end = point::now(*device);
  const watched_transfer::tally memory = watched->count();
  if (memory.leased_too_early != 0) throw error(errc::corrupt, "memory was leased while a copy was reading it");
  const auto batches = static_cast<double>(counted);
  const double starved = static_cast<double>(std::max<std::uint64_t>(memory.starved, 1));
  return {
      .ms = (end.wall_s - begin.wall_s) * 1e3 / batches,
      .starved = static_cast<double>(memory.starved) / static_cast<double>(std::max<std::uint64_t>(memory.batches, 1)),
      .queries = static_cast<double>(end.device.queries - begin.device.queries) / batches,
      .waits = static_cast<double>(end.device.waits - begin.device.waits) / batches,
      .io_us = (end.io_s - begin.io_s) * 1e6 / batches,
      .waiting_us = (end.waiting_s - begin.waiting_s) * 1e6 / batches,
      .idle_us = static_cast<double>(memory.idle_ns) * 1e-3 / starved,
      .idle_us_max = static_cast<double>(memory.idle_ns_max) * 1e-3};
}

// --- all of them -----------------------------------------------------------------------------------------------------------

struct settings {
  double seconds = 0.4;
  int rounds = 5;
  std::optional<line> only;
  bool json = false;
  bool toy = false;
};

struct row {
  figure ms, starved, queries, waits, io_us, over_host_us, waiting_us, idle_us, idle_us_max;
};

const char* name_of(line which) { return lines[static_cast<std::size_t>(which)].second; }

/// "25.5 (24.0 - 31.2)"
std::string spread(const figure& of, const char* format) {
  std::string all;
  for (const auto& [value, behind] : {std::pair(of.median(), " ("), {of.low(), " - "}, {of.high(), ")"}}) {
    std::array<char, 64> text{};
    std::snprintf(text.data(), text.size(), format, value);
    all += text.data();
    all += behind;
  }
  return all;
}

void print(const scene& of, const std::array<row, ways.size()>& rows) {
  std::printf("\n%s, batches of %.1f MB, steps of %.0f ms\n", name_of(of.runs),
              static_cast<double>(of.batches.batch_bytes()) * 1e-6, of.step_s * 1e3);
  std::printf("  %-10s %6s %7s %7s %6s %20s %20s %20s %18s %8s\n", "way", "ms", "starved", "queries", "waits",
              "I/O thread", "over host fallback", "waiting thread", "idle", "longest");
  for (std::size_t w = 0; w < ways.size(); ++w) {
    const row& r = rows[w];
    std::printf("  %-10s %6.2f", ways[w].second, r.ms.median());
    if (ways[w].first == way::host_fallback) {
      std::printf(" %7s %7s %6s %20s\n", "", "", "", spread(r.io_us, "%.0f").c_str());
      continue;
    }
    std::printf(" %7.2f %7.2f %6.2f %20s %20s %20s %18s %8.0f\n", r.starved.median(), r.queries.median(),
                r.waits.median(), spread(r.io_us, "%.0f").c_str(), spread(r.over_host_us, "%+.0f").c_str(),
                spread(r.waiting_us, "%.1f").c_str(), spread(r.idle_us, "%.0f").c_str(), r.idle_us_max.median());
  }
}

void print_json(const scene& of, const std::array<row, ways.size()>& rows) {
  for (std::size_t w = 0; w < ways.size(); ++w) {
    const row& r = rows[w];
    nlohmann::ordered_json told = {{"line", name_of(of.runs)},
                                   {"batch_bytes", of.batches.batch_bytes()},
                                   {"step_ms", of.step_s * 1e3},
                                   {"way", ways[w].second}};
    for (const auto& [name, of_it] : {std::pair<const char*, const figure&>{"batch_ms", r.ms},
                                      {"starved", r.starved},
                                      {"queries", r.queries},
                                      {"waits", r.waits},
                                      {"io_us", r.io_us},
                                      {"io_over_host_us", r.over_host_us},
                                      {"waiting_us", r.waiting_us},
                                      {"idle_us", r.idle_us},
                                      {"idle_us_max", r.idle_us_max}}) {
      if (!of_it.empty()) told[name] = {of_it.median(), of_it.low(), of_it.high()};
    }
    std::printf("%s\n", told.dump().c_str());
  }
}

void measure(const settings& chosen) {
  // 256 pictures of 224 x 224, each filled up to whole pages; windows of tokens.
  constexpr shape large{256, 148_KiB};
  constexpr shape small{32, 32_KiB};
  std::vector<scene> scenes;
  for (const auto& [runs, name] : lines) {
    if (chosen.only && *chosen.only != runs) continue;
    for (const shape& batches : {large, small}) {
      for (const double step_s : {0.001, 0.005, 0.02}) {
        if (!chosen.toy || step_s == 0.001) scenes.push_back({runs, batches, step_s});
      }
    }
  }
  std::vector<std::array<row, ways.size()>> rows(scenes.size());
  for (int round = 0; round < chosen.rounds; ++round) {
    for (std::size_t s = 0; s < scenes.size(); ++s) {
      double host_us = 0;
      for (std::size_t w = 0; w < ways.size(); ++w) {
        const costs took = run(scenes[s], ways[w].first, chosen.seconds);
        row& to = rows[s][w];
        to.ms.add(took.ms);
        to.io_us.add(took.io_us);
        if (ways[w].first == way::host_fallback) {
          host_us = took.io_us;
          continue;
        }
        to.starved.add(took.starved);
        to.queries.add(took.queries);
        to.waits.add(took.waits);
        to.over_host_us.add(took.io_us - host_us);
        to.waiting_us.add(took.waiting_us);
        to.idle_us.add(took.idle_us);
        to.idle_us_max.add(took.idle_us_max);
      }
    }
  }
  if (!chosen.json) {
    std::printf(
        "per batch: wall ms; share that had to wait for its memory; events asked and waited for; CPU us of the I/O "
        "thread,\n"
        "what that is more than on the host fallback in the same round, CPU us of the thread that waits for copies, or "
        "of "
        "the\n"
        "timer; us for which memory lay idle that a batch waited for: the mean of those, and the longest of a run\n");
  }
  for (std::size_t s = 0; s < scenes.size(); ++s) {
    chosen.json ? print_json(scenes[s], rows[s]) : print(scenes[s], rows[s]);
  }
}

settings parse(int count, char** words) {
  settings chosen;
  read_options(count, words,
               {{"--seconds", chosen.seconds},
                {"--rounds", chosen.rounds},
                {"--line",
                 [&](std::string_view wanted) {
                   const auto* const known = std::find_if(lines.begin(), lines.end(),
                                                          [&](const auto& each) { return wanted == each.second; });
                   if (known == lines.end()) throw error(errc::usage, "--line is one of ahead, waits, disk, decoders");
                   chosen.only = known->first;
                 }},
                {"--json", chosen.json},
                {"--toy", [&] {
                   chosen.seconds = 0.02;
                   chosen.rounds = 1;
                   chosen.toy = true;
                 }}});
  return chosen;
}

}  // namespace
}  // namespace leat::benchmarks

int main(int count, char** words) {
  using namespace leat::benchmarks;
  return run_benchmark("hand_over_benchmark", [&] {
    const settings chosen = parse(count, words);
    if (!chosen.json) {
      std::printf("%s; %d rounds of %.1f s; median (low - high)\n", machine().c_str(), chosen.rounds, chosen.seconds);
    }
    measure(chosen);
  });
}
