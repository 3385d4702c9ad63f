// How far does one I/O thread carry the line, and what does a sample cost outside its decoding?
//
// No drive and no decoder of this machine is in it. Two questions:
//
//   1. A disk that costs nothing, records of 4 KiB, made by a decode thread, by the I/O thread that has read them, or read
//      straight to their rows: samples per second, CPU per sample on each kind of thread, and what a sample does there
//      besides: locks taken, memory asked for. The reciprocal of the I/O thread's CPU is where it is full.
//   2. A disk that answers as a fast NVMe drive does (100 us, 14 GB/s), and decoders that sleep instead of computing: 1
//      to 64 of them on however few cores. Of their time, which share do they decode? aim: at least 0.95 until the I/O thread
//      is full. A thread that sleeps too long for want of a core is decoding as far as this is concerned.
//
// The loader is the whole one; the disks are sources (io/files/source.hpp). Each run begins to count after its first fifth, when
// memory is there. Every batch is looked at: rows and samples must be those that were planned.
//
//     line_benchmark [--seconds 2] [--rounds 3] [--threads 1,2,4,...] [--sleep-us 1000] [--only 1|2] [--toy]
#include "base/clock.hpp"
#include "benchmarks/arguments.hpp"
#include "benchmarks/measure.hpp"
#include "benchmarks/raw_records.hpp"
#include "benchmarks/timed_disk.hpp"
#include "tests/support/null_disk.hpp"

#include <leat/error.hpp>
#include <leat/loading.hpp>
#include <leat/units.hpp>

#include <sys/prctl.h>

#include <dlfcn.h>
#include <pthread.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <string_view>
#include <vector>

// --- what the threads do besides ------------------------------------------------------------------------------------
namespace leat::benchmarks {
namespace {

/// Of the threads of one kind, by the beginning of their name.
struct tally {
  std::atomic<std::uint64_t> locks{0};
  std::atomic<std::uint64_t> allocations{0};
};
enum class kind : std::uint8_t { other, io, decode };
constinit std::array<tally, 3> tallies;

// Threads name themselves when they begin: what is counted before that is nobody's.
constinit thread_local kind mine = kind::other;
constinit thread_local bool known = false;

tally& of_this_thread() noexcept {
  if (!known) {
    std::array<char, 16> name{};
    ::prctl(PR_GET_NAME, name.data());
    const std::string_view called(name.data());
    mine = called.starts_with("leat-io") ? kind::io : called.starts_with("leat-decode") ? kind::decode : kind::other;
    known = mine != kind::other;
  }
  return tallies[static_cast<std::size_t>(mine)];
}

}  // namespace
}  // namespace leat::benchmarks

// std::mutex comes here by way of the dynamic linker; the C library's own locks do not.
extern "C" int pthread_mutex_lock(pthread_mutex_t* mutex) noexcept {
  using function = int (*)(pthread_mutex_t*);
  static constinit std::atomic<function> next{nullptr};
  function call = next.load(std::memory_order_relaxed);
  if (call == nullptr) {
    call = reinterpret_cast<function>(::dlsym(RTLD_NEXT, "pthread_mutex_lock"));
    next.store(call, std::memory_order_relaxed);
  }
  leat::benchmarks::of_this_thread().locks.fetch_add(1, std::memory_order_relaxed);
  return call(mutex);
}

// Not inlined: GCC would see a free() of what it takes for its own operator new.
// NOLINTBEGIN(cppcoreguidelines-no-malloc)
[[gnu::noinline]] void* operator new(std::size_t bytes) {
  leat::benchmarks::of_this_thread().allocations.fetch_add(1, std::memory_order_relaxed);
  if (void* const memory = std::malloc(std::max<std::size_t>(bytes, 1))) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void* operator new(std::size_t bytes, std::align_val_t alignment) {
  leat::benchmarks::of_this_thread().allocations.fetch_add(1, std::memory_order_relaxed);
  const auto unit = static_cast<std::size_t>(alignment);
  if (void* const memory = std::aligned_alloc(unit, (bytes + unit - 1) / unit * unit)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }
// NOLINTEND(cppcoreguidelines-no-malloc)

namespace leat::benchmarks {
namespace {

using namespace leat::literals;

struct settings {
  double seconds = 2;
  int rounds = 3;
  std::vector<std::uint32_t> threads = {1, 2, 4, 8, 16, 32, 64};
  std::uint64_t sleep_us = 1000;
  int only = 0;  // 0: both questions
};

/// What a stretch of a run took.
struct stretch {
  double wall_s = 0;
  double samples = 0;
  double decoding_s = 0;  // of all decode threads together, inside the field
  double io_cpu_s = 0;
  double decode_cpu_s = 0;
  double consumer_cpu_s = 0;
  std::array<double, 3> locks{};
  std::array<double, 3> allocations{};

  [[nodiscard]] double per_s() const { return samples / wall_s; }
  [[nodiscard]] double io_us() const { return io_cpu_s * 1e6 / samples; }
};

std::atomic<std::uint64_t> decoding_ns{0};

stretch now(double samples) {
  stretch at{.wall_s = wall_s(),
             .samples = samples,
             .decoding_s = static_cast<double>(decoding_ns.load()) * 1e-9,
             .io_cpu_s = named_threads_cpu_s("leat-io"),
             .decode_cpu_s = named_threads_cpu_s("leat-decode"),
             .consumer_cpu_s = thread_cpu_s()};
  for (std::size_t k = 0; k < tallies.size(); ++k) {
    at.locks[k] = static_cast<double>(tallies[k].locks.load());
    at.allocations[k] = static_cast<double>(tallies[k].allocations.load());
  }
  return at;
}

stretch between(const stretch& begin, const stretch& end) {
  stretch made{.wall_s = end.wall_s - begin.wall_s,
               .samples = end.samples - begin.samples,
               .decoding_s = end.decoding_s - begin.decoding_s,
               .io_cpu_s = end.io_cpu_s - begin.io_cpu_s,
               .decode_cpu_s = end.decode_cpu_s - begin.decode_cpu_s,
               .consumer_cpu_s = end.consumer_cpu_s - begin.consumer_cpu_s};
  for (std::size_t k = 0; k < tallies.size(); ++k) {
    made.locks[k] = end.locks[k] - begin.locks[k];
    made.allocations[k] = end.allocations[k] - begin.allocations[k];
  }
  return made;
}

/// Takes batches for `seconds` and tells of the last four fifths.
stretch run(const dataset& samples, loader_options options, field wanted, double seconds) {
  options.epochs = 0;
  options.drop_last = true;
  loader train(samples, options, std::move(wanted));
  const double until = wall_s() + seconds;
  stretch begin;
  std::uint64_t taken = 0;
  while (wall_s() < until) {
    const std::optional<batch> got = train.next_blocking();
    if (!got) continue;  // the end of an epoch
    if (got->valid_rows() != options.batch_size) throw error(errc::corrupt, "a batch lacks rows");
    taken += got->valid_rows();
    if (begin.wall_s == 0 && wall_s() > until - 0.8 * seconds) begin = now(static_cast<double>(taken));
  }
  if (train.stats().samples < taken) throw error(errc::corrupt, "the loader counts fewer samples than it gave");
  const stretch end = now(static_cast<double>(taken));
  if (begin.wall_s == 0 || end.samples == begin.samples) throw error(errc::usage, "--seconds is too short for a batch");
  return between(begin, end);
}

// --- 1. what a sample costs --------------------------------------------------------------------------------------------

void measure_null_disk(const settings& chosen) {
  constexpr std::uint64_t record_bytes = 4_KiB;
  constexpr std::uint64_t count = 1'000'000;
  const auto disk =
      std::make_shared<testing::null_disk>(testing::null_disk_options{.files = 1, .file_bytes = count * record_bytes});
  const dataset anywhere(std::make_shared<raw_records>(disk, count, record_bytes));
  const dataset on_pages(std::make_shared<raw_records>(disk, count, record_bytes, io::alignment_max_bytes));
  struct way {
    const char* name;
    const dataset& samples;
    field what;
    figure rate, io_us, decode_us, consumer_us;
    stretch last;
  };
  way ways[] = {{"copied by a decode thread", anywhere, bytes("x"), {}, {}, {}, {}, {}},
                {"copied by the I/O thread", anywhere, array("x"), {}, {}, {}, {}, {}},
                {"read straight to their rows", on_pages, array("x"), {}, {}, {}, {}, {}}};
  loader_options options;
  options.batch_size = 256;
  options.decode_threads = 1;
  for (int round = 0; round < chosen.rounds; ++round) {
    for (way& each : ways) {
      each.last = run(each.samples, options, each.what, chosen.seconds);
      each.rate.add(each.last.per_s());
      each.io_us.add(each.last.io_us());
      each.decode_us.add(each.last.decode_cpu_s * 1e6 / each.last.samples);
      each.consumer_us.add(each.last.consumer_cpu_s * 1e6 / each.last.samples);
    }
  }
  std::printf("1. no disk, records of 4 KiB, batches of 256, 1 decode thread\n");
  for (const way& each : ways) {
    std::printf("  %s: %.0f samples/s (%.0f - %.0f)\n", each.name, each.rate.median(), each.rate.low(),
                each.rate.high());
    const auto line = [](const char* who, const figure& us) {
      std::printf("    %-16s %6.2f us of CPU per sample (%.2f - %.2f)\n", who, us.median(), us.low(), us.high());
    };
    line("I/O thread", each.io_us);
    line("decode thread", each.decode_us);
    line("consumer", each.consumer_us);
    std::printf("    one I/O thread is full at %.0f samples/s\n", 1e6 / each.io_us.median());
    const auto per_sample = [&](const std::array<double, 3>& all, kind whose) {
      return all[static_cast<std::size_t>(whose)] / each.last.samples;
    };
    std::printf(
        "    per sample: %.3f locks on the I/O thread, %.3f on the decode thread; memory asked for %.4f and %.4f "
        "times\n",
        per_sample(each.last.locks, kind::io), per_sample(each.last.locks, kind::decode),
        per_sample(each.last.allocations, kind::io), per_sample(each.last.allocations, kind::decode));
  }
}

// --- 2. scaling --------------------------------------------------------------------------------------------------------

field sleeper(std::uint64_t sleep_us) {
  return custom(
      "x", dtype::u8, {1}, [sleep_us](std::span<const std::byte>, const sample_context&, std::span<std::byte> row) {
        row[0] = std::byte{0};
        const std::uint64_t began = now_ns();
        const timespec time{static_cast<time_t>(sleep_us / 1'000'000), static_cast<long>(sleep_us % 1'000'000 * 1000)};
        ::nanosleep(&time, nullptr);
        decoding_ns.fetch_add(now_ns() - began, std::memory_order_relaxed);
        return std::string();
      });
}

void measure_scaling(const settings& chosen) {
  constexpr std::uint64_t record_bytes = 112_KiB;
  constexpr std::uint64_t count = 1'000'000;
  std::printf("2. a disk of 100 us and 14 GB/s, reads of 112 KiB, decoders that sleep %llu us; batches of 64\n",
              static_cast<unsigned long long>(chosen.sleep_us));
  std::printf("  %7s %10s %28s %16s %20s\n", "threads", "samples/s", "decoding, share of their time",
              "of an I/O thread", "CPU us of it/sample");
  struct row {
    figure rate, share, io_share, io_us;
  };
  std::vector<row> rows(chosen.threads.size());
  for (int round = 0; round < chosen.rounds; ++round) {
    for (std::size_t k = 0; k < rows.size(); ++k) {
      const auto disk = std::make_shared<timed_disk>(
          timed_disk_options{.file_bytes = count * record_bytes, .latency_ns = 100'000, .bytes_per_s = 14e9});
      const dataset samples(std::make_shared<raw_records>(disk, count, record_bytes));
      loader_options options;
      options.batch_size = 64;
      options.decode_threads = chosen.threads[k];
      const stretch took = run(samples, options, sleeper(chosen.sleep_us), chosen.seconds);
      rows[k].rate.add(took.per_s());
      rows[k].share.add(took.decoding_s / took.wall_s / chosen.threads[k]);
      rows[k].io_share.add(took.io_cpu_s / took.wall_s);
      rows[k].io_us.add(took.io_us());
    }
  }
  for (std::size_t k = 0; k < rows.size(); ++k) {
    const row& r = rows[k];
    std::printf("  %7u %10.0f %14.3f (%.3f - %.3f) %15.2f %20.2f\n", chosen.threads[k], r.rate.median(),
                r.share.median(), r.share.low(), r.share.high(), r.io_share.median(), r.io_us.median());
  }
}

settings parse(int count, char** words) {
  settings chosen;
  read_options(count, words,
               {{"--seconds", chosen.seconds},
                {"--rounds", chosen.rounds},
                {"--threads", chosen.threads},
                {"--sleep-us", chosen.sleep_us},
                {"--only", chosen.only},
                {"--toy", [&] { chosen = {.seconds = 0.3, .rounds = 1, .threads = {1, 4}}; }}});
  return chosen;
}

}  // namespace
}  // namespace leat::benchmarks

int main(int count, char** words) {
  using namespace leat::benchmarks;
  return run_benchmark("line_benchmark", [&] {
    const settings chosen = parse(count, words);
    std::printf("%s; %d rounds of %.1f s; median (low - high)\n", machine().c_str(), chosen.rounds, chosen.seconds);
    if (chosen.only != 2) measure_null_disk(chosen);
    if (chosen.only != 1) measure_scaling(chosen);
  });
}
