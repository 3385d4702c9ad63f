// Does a step on a GPU take as long with leat as with the data already there?
//
// A calibrated step (a chain of matrix products that first reads every byte of its batch) is fed by a loader, and beside it
// from batches that lie on the device and stay there. Rounds are interleaved, ratios are taken within a round, figures are
// medians with their lowest and highest, each beside what it was computed from:
//
//   1. step time with leat / with data on the device      aim: at most 1.01, steps of 5, 20 and 50 ms, of photographs and of
//                                                         raw records, in batches that the host can keep up with
//   2. GPU idle share between steps, in the same runs     aim: at most 1 %; and what the first steps of each run took longer,
//                                                         which 1 and 2 leave out, since memory is pinned meanwhile
//   3. host CPU of the hand-over per batch                aim: at most 60 us more than of the same batches on the host fallback; both
//                                                         are the sum of all threads but those that decode
//   4. next() and wait_on() of a ready batch              aim: at most 5 us
//   5. H2D rate under load / best pinned copy alone       aim: at least 0.95, batches of 38 MB (256 x 224 x 224 x 3 u8)
//   6. kernel / device-to-device copy of as many bytes    aim: at least 0.85, f32, f16 and bf16, both layouts,
//                                                         every second row mirrored, all of them, and rows mixed
//   7. u8 and kernel against f32 over the bus             aim: at least 3 times as many pictures a second of the longer of copies
//                                                         time; what the whole loader delivers is shown beside it
//   8. photo packs that the device decodes                aim: at least 30,000 rows a second of the whole line, 16 decode threads
//                                                         at most; and of the GPU's time at most 2 % for 3,000 a second. Beside
//                                                         them the same packs, and the JPEGs they are made of, on the host
//   9. JPEGs that nvJPEG decodes                          no aim; beside them the same on the host
//  10. kernels with steps of colour / a copy as in 6      aim: at least 0.75 of tables, 0.5 of saturation and hue, 0.4 of equalize
//  11. SimCLR's recipe, f16, whole line                   aim: packs at least 100,000 rows a second; of JPEG files the device leaves at
//                                                         most half of the CPU that colour takes on the host
//
// The sum of all words that the steps read is compared with the host fallback's, before the rounds and under load. Which of the two
// loops goes first changes from round to round, and the loader has ended before the other begins. What needs least is measured
// first (6, the bus alone, 4), and both files are written anew after each part: one that hangs costs nothing of what came before.
//
//     device_benchmark [PHOTOS] [--rounds N] [--seconds N] [--json FILE] [--markdown FILE] [--title TEXT]
//                      [--fact NAME=VALUE]... [--left-out TEXT]... [--only TEXT] [--toy]
//
// PHOTOS is a folder or tar shards; else $LEAT_PHOTOS; else 1,000 are made in the temporary directory, and kept. After
// --seconds nothing is begun but what is left of the first round. --only measures the parts whose name holds TEXT. Where
// there is no GPU it says so, measures nothing and ends with 0.
#include "base/text.hpp"
#include "benchmarks/arguments.hpp"
#include "benchmarks/device_step.hpp"
#include "benchmarks/gpu_report.hpp"
#include "benchmarks/measure.hpp"
#include "benchmarks/rounds.hpp"
#include "benchmarks/timed_calls.hpp"
#include "stages/device/finish_pictures.hpp"
#include "stages/device/open_device.hpp"
#include "stages/device/picture_operation.hpp"
#include "stages/pixels/recipe.hpp"
#include "stages/pixels/store.hpp"
#include "stages/run/loader_parts.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tools/doctor_facts.hpp"
#include "tools/doctor_probe.hpp"
#include "tools/make_photos.hpp"

#include <leat/error.hpp>
#include <leat/loading.hpp>
#include <leat/open.hpp>
#include <leat/own_samples.hpp>
#include <leat/photo_pack.hpp>

#include <absl/strings/str_format.h>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/use_future.hpp>

#include <cuda_runtime_api.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace leat::benchmarks {
namespace {

namespace asio = boost::asio;

constexpr std::uint64_t seed = 7;
constexpr int side = 224;
constexpr std::size_t record_bytes = std::size_t{side} * side * 3;
constexpr const char* decode_threads = "leat-decode";
constexpr std::size_t host_bytes_max = std::size_t{2} << 30;

struct settings {
  std::string photos;
  unsigned rounds = 5;
  double seconds = 150;
  std::string json;
  std::string markdown;
  std::string title = "On a GPU";
  std::vector<gpu_report::fact> facts;
  std::vector<std::string> left_out;
  std::string only;
  bool toy = false;
};

void check(cudaError_t status, std::string_view call) {
  if (status == cudaSuccess) return;
  throw error(errc::device, str_cat(call, ": ", cudaGetErrorString(status), " (", cudaGetErrorName(status), ")"));
}

// --- what CUDA gives, owned -------------------------------------------------------------------------------------------

class trainer_stream {
 public:
  trainer_stream() { check(cudaStreamCreateWithFlags(&handle_, cudaStreamNonBlocking), "cudaStreamCreateWithFlags"); }
  trainer_stream(const trainer_stream&) = delete;
  trainer_stream& operator=(const trainer_stream&) = delete;
  ~trainer_stream() { static_cast<void>(cudaStreamDestroy(handle_)); }

  [[nodiscard]] cudaStream_t get() const noexcept { return handle_; }
  void finish() const { check(cudaStreamSynchronize(handle_), "cudaStreamSynchronize of the steps"); }

 private:
  cudaStream_t handle_ = nullptr;
};

/// An event that takes the time, and does not spin when it is waited for.
class time_event {
 public:
  time_event() { check(cudaEventCreateWithFlags(&handle_, cudaEventBlockingSync), "cudaEventCreateWithFlags"); }
  time_event(const time_event&) = delete;
  time_event& operator=(const time_event&) = delete;
  time_event(time_event&& from) noexcept : handle_(std::exchange(from.handle_, nullptr)) {}
  time_event& operator=(time_event&&) = delete;
  ~time_event() {
    if (handle_ != nullptr) static_cast<void>(cudaEventDestroy(handle_));
  }

  void record(const trainer_stream& in) { check(cudaEventRecord(handle_, in.get()), "cudaEventRecord"); }
  [[nodiscard]] double ms_since(const time_event& before) const {
    float ms = 0;
    check(cudaEventElapsedTime(&ms, before.handle_, handle_), "cudaEventElapsedTime");
    return ms;
  }

 private:
  cudaEvent_t handle_ = nullptr;
};

class device_memory {
 public:
  explicit device_memory(std::size_t bytes) : bytes_(bytes) {
    check(cudaMalloc(&data_, bytes), str_cat("cudaMalloc of ", bytes, " bytes"));
  }
  device_memory(const device_memory&) = delete;
  device_memory& operator=(const device_memory&) = delete;
  device_memory(device_memory&& from) noexcept : data_(std::exchange(from.data_, nullptr)), bytes_(from.bytes_) {}
  device_memory& operator=(device_memory&&) = delete;
  ~device_memory() { static_cast<void>(cudaFree(data_)); }

  [[nodiscard]] void* data() const noexcept { return data_; }
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }

 private:
  void* data_ = nullptr;
  std::size_t bytes_;
};

class pinned_memory {
 public:
  explicit pinned_memory(std::size_t bytes) {
    check(cudaMallocHost(&data_, bytes), str_cat("cudaMallocHost of ", bytes, " bytes"));
    std::memset(data_, 0x5A, bytes);
  }
  pinned_memory(const pinned_memory&) = delete;
  pinned_memory& operator=(const pinned_memory&) = delete;
  ~pinned_memory() { static_cast<void>(cudaFreeHost(data_)); }

  [[nodiscard]] void* data() const noexcept { return data_; }

 private:
  void* data_ = nullptr;
};

// --- what the loaders load --------------------------------------------------------------------------------------------

/// A dataset, the field that the step reads, and how fast the host is with it.
struct source {
  std::string name;
  dataset samples;
  std::string output;
  std::vector<field> fields;
  std::uint32_t rows_max = 256;
  double rows_per_s = 0;
  leat::decode_on decode_on = leat::decode_on::host;
};

/// Pictures as somebody has decoded them before: in memory, copied into their rows by the decode threads.
source make_records(bool toy) {
  const std::size_t count = toy ? 64 : 1024;
  auto bytes = std::make_shared<std::vector<std::uint8_t>>(count * record_bytes);
  std::uint32_t state = 1;
  for (std::uint8_t& each : *bytes) {
    state = state * 1664525U + 1013904223U;
    each = static_cast<std::uint8_t>(state >> 24);
  }
  const auto rows = static_cast<std::int64_t>(count);
  const dimensions shape{rows, side, side, 3};
  const tensor values{
      .type = dtype::u8, .shape = shape, .strides = dense_strides(shape), .data = bytes->data(), .where = host};
  const auto copy = [](std::span<const std::byte> from, const sample_context&, std::span<std::byte> row) {
    std::memcpy(row.data(), from.data(), row.size());
    return std::string();
  };
  return {.name = "raw records",
          .samples = from_tensors({{"x", values}}, bytes),
          .output = "x",
          .fields = {custom{"x", dtype::u8, {side, side, 3}, copy}},
          .rows_max = toy ? 16U : 256U};
}

image training_picture() { return image{"jpg"}.random_resized_crop(side).random_flip().normalize(imagenet); }

/// Where they are fewer than a batch, an epoch has them several times.
source make_photographs(const std::string& place, bool toy) {
  const std::uint32_t rows = toy ? 16U : 256U;
  const dataset once = open(place);
  if (once.size() == 0) throw nothing_to_measure(str_cat("no photographs below ", place));
  const std::vector<dataset> enough((rows + once.size() - 1) / once.size(), once);
  return {.name = "photographs",
          .samples = concat(enough),
          .output = "jpg",
          .fields = {training_picture()},
          .rows_max = rows};
}

std::vector<std::byte> content_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::vector<std::byte> bytes(std::filesystem::file_size(path));
  file.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  if (!file) throw error(errc::io, str_cat("cannot read ", path.string()));
  return bytes;
}

/// The photographs of a folder as packs, in a folder of the same classes. What cannot be packed stays a JPEG.
void make_packs_of(const std::string& photographs, const std::filesystem::path& place) {
  namespace fs = std::filesystem;
  if (!fs::is_directory(photographs)) throw nothing_to_measure("packs are made of photographs in a folder alone");
  std::vector<fs::path> files;
  for (const fs::directory_entry& each : fs::recursive_directory_iterator(photographs)) {
    if (each.is_regular_file() && each.path().extension() == ".jpg") files.push_back(each.path());
  }
  std::atomic<std::size_t> next = 0;
  std::atomic<std::size_t> failed = 0;
  const auto pack_some = [&] {
    for (std::size_t i = next++; i < files.size(); i = next++) {
      try {
        const std::vector<std::byte> jpeg = content_of(files[i]);
        fs::path to = place / fs::relative(files[i], photographs);
        fs::create_directories(to.parent_path());
        std::vector<std::byte> kept;
        try {
          kept = pack_photo(jpeg, false);
          to.replace_extension(".fjpg");
        } catch (const error&) {
          kept = jpeg;
        }
        std::ofstream file(to, std::ios::binary);
        file.write(reinterpret_cast<const char*>(kept.data()), static_cast<std::streamsize>(kept.size()));
        if (!file.flush()) throw error(errc::io, str_cat("cannot write ", to.string()));
      } catch (const std::exception& problem) {
        std::fprintf(stderr, "device_benchmark: %s\n", problem.what());
        ++failed;
      }
    }
  };
  {
    std::vector<std::jthread> threads;
    for (unsigned i = 0; i < std::max(1U, std::thread::hardware_concurrency()); ++i) threads.emplace_back(pack_some);
  }
  if (failed > 0)
    throw error(errc::io, str_cat(failed.load(), " photographs could not be packed into ", place.string()));
}

/// Endless, from the page cache, as a trainer has it.
loader_options options_for(std::uint32_t rows, device where) {
  loader_options options{.batch_size = rows, .seed = seed, .drop_last = true};
  options.host_bytes_max = host_bytes_max;
  options.prefetch_batches = 4;
  options.reader.direct = choice::off;
  options.device = where;
  return options;
}

// --- the trainer's loop -----------------------------------------------------------------------------------------------

template <class Result>
Result run_to_end(asio::awaitable<Result> work) {
  asio::io_context context(1);
  auto done = asio::co_spawn(context, std::move(work), asio::use_future);
  context.run();
  return done.get();
}

/// The next batch, over the ends of epochs.
asio::awaitable<batch> next_of(loader& train) {
  for (int empty = 0; empty < 2; ++empty) {
    std::optional<batch> got = co_await train.next();
    if (got) co_return std::move(*got);
  }
  throw error(errc::usage, "the dataset holds less than one batch");
}

struct loop_result {
  double step_ms = 0;
  double idle_share = 0;    ///< of the time from the first counted step's end to the last one's, between steps
  double other_cpu_us = 0;  ///< per step
  double rows_per_s = 0;
  double uncounted_ms = 0;  ///< from the first step's beginning to the end of the last one that is not counted
};

/// How long a loop is: what is not counted at its start, and what is.
struct loop_length {
  std::uint32_t uncounted = 0;
  std::uint32_t counted = 0;
};

/// The steps' events, and what they make of them.
class step_clock {
 public:
  explicit step_clock(const loop_length& length)
      : length_(length), began_(length.uncounted + length.counted), ended_(length.uncounted + length.counted) {}

  void begin(std::uint32_t step, const trainer_stream& in) {
    if (step == length_.uncounted) cpu_.emplace(decode_threads);
    began_[step].record(in);
  }
  void end(std::uint32_t step, const trainer_stream& in) { ended_[step].record(in); }

  /// After the last one: waits for it.
  [[nodiscard]] loop_result result(std::uint32_t rows, const trainer_stream& in) {
    in.finish();
    const double cpu_s = cpu_->spent_s();
    const time_event& start = ended_[length_.uncounted - 1];
    const double all_ms = ended_.back().ms_since(start);
    double idle_ms = 0;
    for (std::uint32_t i = length_.uncounted; i < ended_.size(); ++i) idle_ms += began_[i].ms_since(ended_[i - 1]);
    return {.step_ms = all_ms / length_.counted,
            .idle_share = 100 * idle_ms / all_ms,
            .other_cpu_us = cpu_s / length_.counted * 1e6,
            .rows_per_s = rows * length_.counted / all_ms * 1e3,
            .uncounted_ms = start.ms_since(began_.front())};
  }

 private:
  const loop_length length_;
  std::vector<time_event> began_;
  std::vector<time_event> ended_;
  std::optional<other_threads_cpu> cpu_;
};

asio::awaitable<loop_result> spend(loader& train, const source& from, device_step& step, unsigned products,
                                   std::uint32_t rows, loop_length length, const trainer_stream& in) {
  step_clock clock(length);
  for (std::uint32_t i = 0; i < length.uncounted + length.counted; ++i) {
    batch got = co_await next_of(train);
    got.wait_on(in.get());
    clock.begin(i, in);
    const tensor data = got[from.output];
    step.launch(data.data, data.bytes(), products, in.get());
    clock.end(i, in);
  }
  co_return clock.result(rows, in);
}

/// As many copies of one batch of `from` as a loader has blocks, on the device for good.
std::vector<device_memory> resident_batches(const source& from, std::uint32_t rows) {
  loader_options options = options_for(rows, cuda(0));
  options.prefetch_batches = 1;
  loader train(from.samples, options, from.fields);
  const trainer_stream in;
  std::optional<batch> got = train.next_blocking();
  if (!got) throw error(errc::usage, "the dataset holds less than one batch");
  got->wait_on(in.get());
  const tensor data = (*got)[from.output];
  std::vector<device_memory> all;
  for (int i = 0; i < 3; ++i) {
    const device_memory& made = all.emplace_back(data.bytes());
    check(cudaMemcpyAsync(made.data(), data.data, data.bytes(), cudaMemcpyDeviceToDevice, in.get()), "cudaMemcpyAsync");
  }
  in.finish();
  return all;
}

loop_result spend_resident(std::span<const device_memory> batches, device_step& step, unsigned products,
                           std::uint32_t rows, loop_length length, const trainer_stream& in) {
  step_clock clock(length);
  for (std::uint32_t i = 0; i < length.uncounted + length.counted; ++i) {
    const device_memory& data = batches[i % batches.size()];
    clock.begin(i, in);
    step.launch(data.data(), data.bytes(), products, in.get());
    clock.end(i, in);
  }
  return clock.result(rows, in);
}

// --- 1, 2 and 3: steps, and what the host does for them --------------------------------------------------------------------

/// A loader whose batches a trainer's stream waits for, and nothing else.
struct line_rate {
  figure rows_per_s, cpu_us, stream_per_s, kernels_ms, copy_ms, gpu_share;
};

/// Returns what the loader counts.
loader_stats measure_line(const source& from, leat::decode_on where, const std::shared_ptr<stages::device_calls>& calls,
                          double least_s, line_rate& measured, std::uint32_t io_threads = 1,
                          bool finish_on_device = true) {
  const auto timed = std::make_shared<timed_calls>(calls, 256);
  loader_options options = options_for(from.rows_max, cuda(0));
  options.decode_on = where;
  options.finish_on_device = finish_on_device;
  options.reader.io_threads = io_threads;
  std::uint32_t uncounted = 0;
  std::uint32_t counted = 0;
  loader_stats stats;
  {
    loader train = stages::make_loader(from.samples, options, from.fields, {.device_calls = timed});
    const trainer_stream in;
    uncounted = train.plan().batches + 2;
    double began_s = 0;
    double began_cpu_s = 0;
    run_to_end([&]() -> asio::awaitable<int> {
      for (std::uint32_t i = 0;; ++i) {
        if (i == uncounted) {
          began_s = wall_s();
          began_cpu_s = process_cpu_s();
        }
        batch got = co_await next_of(train);
        got.wait_on(in.get());
        if (i < uncounted) continue;
        ++counted;
        if (wall_s() - began_s > least_s) co_return 0;
      }
    }());
    in.finish();
    stats = train.stats();
    measured.rows_per_s.add(from.rows_max * counted / (wall_s() - began_s));
    measured.cpu_us.add((process_cpu_s() - began_cpu_s) / (from.rows_max * counted) * 1e6);
  }
  figure copy_ms, longer_ms, kernels_ms;
  const std::vector<timed_calls::times> all = timed->taken();
  for (std::size_t i = uncounted; i < all.size(); ++i) {
    copy_ms.add(all[i].copy_ms);
    longer_ms.add(all[i].longer_ms());
    kernels_ms.add(all[i].kernels_ms);
  }
  if (copy_ms.empty()) throw error(errc::device, "no copy of the loader's was timed");
  measured.copy_ms.add(copy_ms.median());
  measured.kernels_ms.add(kernels_ms.median());
  measured.stream_per_s.add(from.rows_max / longer_ms.median() * 1e3);
  measured.gpu_share.add(100 * 3000 * kernels_ms.median() * 1e-3 / from.rows_max);
  return stats;
}

/// The sum of all 32-bit words of the first `batches` batches, over the ends of epochs, on the host fallback.
std::uint64_t words_on_the_host(const source& from, std::uint32_t rows, std::uint32_t batches) {
  std::uint64_t sum = 0;
  loader here(from.samples, options_for(rows, host), from.fields);
  for (std::uint32_t i = 0; i < batches; ++i) {
    std::optional<batch> got = here.next_blocking();
    if (!got) got = here.next_blocking();
    if (!got) throw error(errc::usage, "the dataset holds too few samples");
    const tensor data = (*got)[from.output];
    for (std::size_t at = 0; at < data.bytes(); at += 4) {
      std::uint32_t word = 0;
      std::memcpy(&word, static_cast<const std::byte*>(data.data) + at, 4);
      sum += word;
    }
  }
  return sum;
}

/// Throws error{errc::corrupt} where steps have read something else.
void check_words(std::uint64_t found, std::uint64_t expected, std::uint32_t batches, const source& from) {
  if (found == expected) return;
  throw error(errc::corrupt, str_cat("the words of ", batches, " batches of ", from.name, " add up to ", found,
                                     " on the device and to ", expected, " on the host"));
}

/// Before anything is measured, and so small that it says at once what is wrong.
void check_what_steps_read(const source& from, device_step& step, std::uint32_t batches) {
  const std::uint32_t rows = std::min<std::uint32_t>(from.rows_max, 32);
  loader_options options = options_for(rows, cuda(0));
  options.decode_on = from.decode_on;
  loader there(from.samples, options, from.fields);
  const trainer_stream in;
  for (std::uint32_t i = 0; i < batches; ++i) {
    std::optional<batch> got = there.next_blocking();
    if (!got) throw error(errc::usage, "the dataset holds too few samples");
    got->wait_on(in.get());
    const tensor on_device = (*got)[from.output];
    step.launch(on_device.data, on_device.bytes(), 0, in.get());
  }
  check_words(step.take_checksum(in.get()), words_on_the_host(from, rows, batches), batches, from);
}

/// Steps of one length, of one source: rounds of both loops.
class step_comparison {
 public:
  /// `rows` of what the host can do in a step, with some room: what is measured is the hand-over.
  step_comparison(const source& from, device_step& step, const std::shared_ptr<stages::device_calls>& calls,
                  double step_ms, bool toy)
      : from_(from),
        step_(step),
        calls_(calls),
        step_ms_(step_ms),
        products_(step.products_for(step_ms)),
        rows_(static_cast<std::uint32_t>(
            std::clamp(0.7 * from.rows_per_s * step_ms * 1e-3, 0.0, static_cast<double>(from.rows_max)))),
        counted_(toy ? 5U : static_cast<std::uint32_t>(std::clamp(800 / step_ms, 20.0, 100.0))) {}

  [[nodiscard]] bool keeps_up() const noexcept { return rows_ > 0; }

  void round() {
    if (resident_.empty()) resident_ = resident_batches(from_, rows_);
    loop_result with;
    loop_result without;
    // In turn, so that what a run leaves behind (clocks, heat, caches) is as often one's as the other's.
    if (rounds_++ % 2 == 0) {
      with = run_with_leat();
      without = run_without();
    } else {
      without = run_without();
      with = run_with_leat();
    }
    with_ms_.add(with.step_ms);
    without_ms_.add(without.step_ms);
    ratio_.add(with.step_ms / without.step_ms);
    idle_.add(with.idle_share);
    resident_idle_.add(without.idle_share);
    cpu_us_.add(with.other_cpu_us);
    resident_cpu_us_.add(without.other_cpu_us);
    rows_per_s_.add(with.rows_per_s);
  }

  void report(std::vector<report_line>& ratios, std::vector<report_line>& idle, std::vector<report_line>& firsts,
              std::vector<report_line>& cpu) const {
    const std::string under = absl::StrFormat("%s, %.0f ms, %u rows", from_.name, step_ms_, rows_);
    ratios.push_back({.what = {"step time with leat / with data on the device", ratio_, "", 4},
                      .under = under,
                      .target = target{target::sense::at_most, 1.01},
                      .of = {{"with leat", with_ms_, "ms", 3},
                             {"data on the device", without_ms_, "ms", 3},
                             {"rows", rows_per_s_, "/s", 0}}});
    idle.push_back({.what = {"GPU idle between steps", idle_, "%", 3},
                    .under = under,
                    .target = target{target::sense::at_most, 1},
                    .of = {{"data on the device", resident_idle_, "%", 3}}});
    firsts.push_back(first_steps_.report(under));
    cpu.push_back({.what = {"host CPU per step, decode threads left out", cpu_us_, "us", 0},
                   .under = under,
                   .of = {{"data on the device", resident_cpu_us_, "us", 0}}});
  }
  [[nodiscard]] std::string why_not() const {
    return absl::StrFormat("the host makes %.0f rows a second, less than one a step", from_.rows_per_s);
  }

 private:
  // The loader ends with its run: its threads and its memory are not the other run's. What the steps have read is compared
  // with the host's, which takes as long as a run and is done once.
  loop_result run_with_leat() {
    const trainer_stream in;
    loop_result measured;
    std::uint32_t batches = 0;
    const auto timed = std::make_shared<timed_calls>(calls_, 0);  // No copies, which would be more work for the stream.
    {
      loader_options options = options_for(rows_, cuda(0));
      loader train = stages::make_loader(from_.samples, options, from_.fields, {.device_calls = timed});
      // All of the host's memory has been used once, and pinned.
      const loop_length length{.uncounted = train.plan().batches + 4, .counted = counted_};
      batches = length.uncounted + length.counted;
      measured = run_to_end(spend(train, from_, step_, products_, rows_, length, in));
      first_steps_.add({.steps = length.uncounted,
                        .took_ms = measured.uncounted_ms,
                        .later_ms = measured.step_ms,
                        .pins = timed->pinned().calls,
                        .pinning_ms = timed->pinned().ms});
    }
    const std::uint64_t found = step_.take_checksum(in.get());
    if (!expected_) expected_ = words_on_the_host(from_, rows_, batches);
    check_words(found, *expected_, batches, from_);
    return measured;
  }
  loop_result run_without() {
    const trainer_stream in;
    const loop_result measured =
        spend_resident(resident_, step_, products_, rows_, {.uncounted = 4, .counted = counted_}, in);
    static_cast<void>(step_.take_checksum(in.get()));
    return measured;
  }

  const source& from_;
  device_step& step_;
  const std::shared_ptr<stages::device_calls> calls_;
  const double step_ms_;
  const unsigned products_;
  const std::uint32_t rows_;
  const std::uint32_t counted_;
  std::vector<device_memory> resident_;
  unsigned rounds_ = 0;
  std::optional<std::uint64_t> expected_;
  first_steps first_steps_;
  figure ratio_, with_ms_, without_ms_, idle_, resident_idle_, cpu_us_, resident_cpu_us_, rows_per_s_;
};

/// CPU per batch of a loop that does nothing but take batches, decode threads left out.
struct hand_over_times {
  double all_us = 0;
  double sender_us = 0;  ///< of all: who queues copies
  double waiter_us = 0;  ///< who waits for host memory to be read
  double cuda_us = 0;    ///< CUDA's own threads
};
asio::awaitable<hand_over_times> other_cpu_us_per_batch(loader& train, loop_length length, const trainer_stream& in) {
  constexpr const char* names[] = {"leat-send", "leat-copies", "cuda"};
  double before_s[3] = {};
  std::optional<other_threads_cpu> cpu;
  for (std::uint32_t i = 0; i < length.uncounted + length.counted; ++i) {
    if (i == length.uncounted) {
      for (std::size_t k = 0; k < 3; ++k) before_s[k] = named_threads_cpu_s(names[k]);
      cpu.emplace(decode_threads);
    }
    batch got = co_await next_of(train);
    got.wait_on(in.get());
  }
  const double all_s = cpu->spent_s();
  const auto us = [&](std::size_t k) { return (named_threads_cpu_s(names[k]) - before_s[k]) / length.counted * 1e6; };
  co_return hand_over_times{
      .all_us = all_s / length.counted * 1e6, .sender_us = us(0), .waiter_us = us(1), .cuda_us = us(2)};
}

class hand_over_cpu {
 public:
  hand_over_cpu(const source& from, bool toy) : from_(from), counted_(toy ? 8U : 400U) {}

  void round() {
    hand_over_times us[2];
    const trainer_stream in;
    const bool host_first = rounds_++ % 2 == 0;
    for (const device where : {host_first ? host : cuda(0), host_first ? cuda(0) : host}) {
      loader train(from_.samples, options_for(from_.rows_max, where), from_.fields);
      const loop_length length{.uncounted = train.plan().batches + 4, .counted = counted_};
      us[where == host ? 0 : 1] = run_to_end(other_cpu_us_per_batch(train, length, in));
    }
    in.finish();
    on_host_us_.add(us[0].all_us);
    on_device_us_.add(us[1].all_us);
    difference_us_.add(us[1].all_us - us[0].all_us);
    sender_us_.add(us[1].sender_us);
    waiter_us_.add(us[1].waiter_us);
    cuda_us_.add(us[1].cuda_us);
  }

  [[nodiscard]] report_line report() const {
    return {.what = {"host CPU per batch: to the device, less on the host (the aim is for the difference)",
                     difference_us_, "us", 1},
            .under = absl::StrFormat("%s, %u rows", from_.name, from_.rows_max),
            .target = target{target::sense::at_most, 60},
            .of = {{"to the device", on_device_us_, "us", 1},
                   {"on the host", on_host_us_, "us", 1},
                   {"of it the thread that queues", sender_us_, "us", 1},
                   {"that waits for copies", waiter_us_, "us", 1},
                   {"CUDA's threads", cuda_us_, "us", 1}}};
  }

 private:
  const source& from_;
  const std::uint32_t counted_;
  unsigned rounds_ = 0;
  figure difference_us_, on_device_us_, on_host_us_, sender_us_, waiter_us_, cuda_us_;
};

// --- 4: a batch that is ready ------------------------------------------------------------------------------------------------

asio::awaitable<int> time_ready(loader& train, const trainer_stream& in, std::uint32_t count,
                                std::vector<double>& taken_us) {
  for (std::uint32_t i = 0; i < count; ++i) {
    while (train.stats().batches_ready == 0) std::this_thread::sleep_for(std::chrono::microseconds(200));
    const double began_s = wall_s();
    std::optional<batch> got = co_await train.next();
    if (!got) continue;  // An epoch's end.
    got->wait_on(in.get());
    taken_us.push_back((wall_s() - began_s) * 1e6);
  }
  co_return 0;
}

class ready_batch {
 public:
  explicit ready_batch(bool toy) : count_(toy ? 20U : 300U), numbers_(1024) {
    const tensor values{.type = dtype::i64, .shape = {1024}, .strides = {1}, .data = numbers_.data(), .where = host};
    samples_.emplace(from_tensors({{"cls", values}}, nullptr));
  }

  void round() {
    for (const device where : {host, cuda(0)}) {
      loader_options options = options_for(1, where);
      options.prefetch_batches = 8;
      loader train(*samples_, options, label{"cls"});
      const trainer_stream in;
      std::vector<double> taken_us;
      run_to_end(time_ready(train, in, count_, taken_us));
      in.finish();
      std::sort(taken_us.begin(), taken_us.end());
      (where == host ? host_us_ : median_us_).add(taken_us[taken_us.size() / 2]);
      if (where != host) p99_us_.add(taken_us[taken_us.size() * 99 / 100]);
    }
  }

  [[nodiscard]] bool begun() const noexcept { return !median_us_.empty(); }
  [[nodiscard]] report_line report() const {
    return {.what = {"next() and wait_on() of a ready batch", median_us_, "us", 2},
            .under = "one number a batch",
            .target = target{target::sense::at_most, 5},
            .of = {{"99th percentile", p99_us_, "us", 2}, {"on the host", host_us_, "us", 2}}};
  }

 private:
  const std::uint32_t count_;
  std::vector<std::int64_t> numbers_;
  std::optional<dataset> samples_;
  figure median_us_, p99_us_, host_us_;
};

// --- 5: the bus --------------------------------------------------------------------------------------------------------------

/// From memory that CUDA has pinned itself, with nothing beside it.
class best_copy {
 public:
  explicit best_copy(bool toy) : bytes_((toy ? 16 : 256) * record_bytes), from_(bytes_), to_(bytes_) {}

  /// The fastest of some.
  [[nodiscard]] double ms() const {
    const trainer_stream in;
    time_event began;
    time_event ended;
    double least_ms = 0;
    for (int i = 0; i < 20; ++i) {
      began.record(in);
      check(cudaMemcpyAsync(to_.data(), from_.data(), bytes_, cudaMemcpyHostToDevice, in.get()), "cudaMemcpyAsync");
      ended.record(in);
      in.finish();
      const double took_ms = ended.ms_since(began);
      if (i == 0 || took_ms < least_ms) least_ms = took_ms;
    }
    return least_ms;
  }

  void round() { rate_.add(static_cast<double>(bytes_) / ms() * 1e-6); }

  [[nodiscard]] report_line report() const {
    return {.what = {"H2D rate, best pinned copy alone", rate_, "GB/s", 1},
            .under = absl::StrFormat("copies of %.1f MB", static_cast<double>(bytes_) * 1e-6)};
  }

 private:
  const std::size_t bytes_;
  const pinned_memory from_;
  const device_memory to_;
  figure rate_;
};

class bus_rate {
 public:
  bus_rate(const source& records, device_step& step, const std::shared_ptr<stages::device_calls>& calls, bool toy)
      : records_(records),
        step_(step),
        calls_(calls),
        rows_(records.rows_max),
        bytes_(rows_ * record_bytes),
        counted_(toy ? 5U : 40U),
        // As long as the host takes for a batch, and 5 ms at least: the GPU computes while it copies.
        products_(step.products_for(std::max(5.0, rows_ / (0.7 * records.rows_per_s) * 1e3))),
        best_(toy) {}

  void round() {
    const double alone = best_.ms();
    const auto timed = std::make_shared<timed_calls>(calls_, 256);
    loader_options options = options_for(rows_, cuda(0));
    std::uint32_t uncounted = 0;
    std::uint32_t batches = 0;
    const trainer_stream in;
    {
      loader train = stages::make_loader(records_.samples, options, records_.fields, {.device_calls = timed});
      uncounted = train.plan().batches + 4;
      run_to_end(spend(train, records_, step_, products_, rows_, {.uncounted = uncounted, .counted = counted_}, in));
      batches = uncounted + counted_;
    }
    const std::uint64_t found = step_.take_checksum(in.get());
    if (!expected_) expected_ = words_on_the_host(records_, rows_, batches);
    check_words(found, *expected_, batches, records_);
    figure loaded_ms;
    const std::vector<timed_calls::times> all = timed->taken();
    const auto bytes = static_cast<double>(bytes_);
    for (std::size_t i = uncounted; i < all.size(); ++i) {
      loaded_ms.add(all[i].copy_ms * bytes / static_cast<double>(all[i].bytes));
    }
    if (loaded_ms.empty()) throw error(errc::device, "no copy of the loader's was timed");
    under_load_.add(bytes / loaded_ms.median() * 1e-6);
    alone_.add(bytes / alone * 1e-6);
    ratio_.add(alone / loaded_ms.median());
  }

  [[nodiscard]] report_line report() const {
    return {.what = {"H2D rate under load / best pinned copy alone", ratio_, "", 3},
            .under = absl::StrFormat("copies of %.1f MB", static_cast<double>(bytes_) * 1e-6),
            .target = target{target::sense::at_least, 0.95},
            .of = {{"under load", under_load_, "GB/s", 1}, {"alone", alone_, "GB/s", 1}}};
  }

 private:
  const source& records_;
  device_step& step_;
  const std::shared_ptr<stages::device_calls> calls_;
  const std::uint32_t rows_;
  const std::size_t bytes_;
  const std::uint32_t counted_;
  const unsigned products_;
  const best_copy best_;
  std::optional<std::uint64_t> expected_;
  figure ratio_, under_load_, alone_;
};

// --- 6: the kernel -----------------------------------------------------------------------------------------------------------

/// What the kernel does besides.
enum class besides : std::uint8_t { mirrors_half, mirrors_all, mixup, cutmix };

/// What the kernel reads and writes, and the copies beside it, for whichever of them is measured: 1.5 GB.
struct kernel_memory {
  explicit kernel_memory(bool toy) : rows(toy ? 8U : 256U) {
    // More than a last-level cache holds lies between two uses of the same memory.
    const std::size_t sets = toy ? 1 : 4;
    for (std::size_t i = 0; i < sets; ++i) {
      from.emplace_back(in());
      to.emplace_back(in() * size_bytes(dtype::f32));
      // Noise on a slope: of one value alone all threads that count would wait for one another.
      std::vector<std::uint8_t> pixels(in());
      std::uint32_t state = 12345 + static_cast<std::uint32_t>(i);
      for (std::size_t at = 0; at < pixels.size(); ++at) {
        state = state * 1664525 + 1013904223;
        pixels[at] = static_cast<std::uint8_t>(at % record_bytes * 200 / record_bytes + (state >> 24) * 50 / 256);
      }
      check(cudaMemcpy(from.back().data(), pixels.data(), in(), cudaMemcpyHostToDevice), "cudaMemcpy");
      copy_from.emplace_back(copied(dtype::f32));
      copy_to.emplace_back(copied(dtype::f32));
      check(cudaMemset(copy_from.back().data(), 0x3C, copied(dtype::f32)), "cudaMemset");
    }
  }
  [[nodiscard]] std::size_t in() const noexcept { return rows * record_bytes; }
  /// A copy reads and writes each byte: half of what the kernel reads and writes is as much traffic.
  [[nodiscard]] std::size_t copied(dtype type) const noexcept { return in() * (1 + size_bytes(type)) / 2; }

  const std::uint32_t rows;
  std::vector<device_memory> from, to, copy_from, copy_to;
};

class kernel_rate {
 public:
  kernel_rate(const kernel_memory& memory, dtype type, layout order, besides what, bool toy)
      : memory_(memory),
        type_(type),
        order_(order),
        besides_(what),
        rows_(memory.rows),
        launches_(toy ? 4U : 40U),
        flips_(rows_),
        mix_rows_(rows_ * sizeof(stages::mix_row)) {
    std::vector<std::uint8_t> flips(rows_);
    for (std::uint32_t i = 0; i < rows_; ++i) flips[i] = what == besides::mirrors_all || i % 2 != 0;
    check(cudaMemcpy(flips_.data(), flips.data(), rows_, cudaMemcpyHostToDevice), "cudaMemcpy");
    const stages::mix_row whole{.own = 0.75F, .other = 0.25F};
    const stages::mix_row box{.left = side / 4, .top = side / 4, .right = side * 3 / 4, .bottom = side * 3 / 4};
    const std::vector<stages::mix_row> rows(rows_, what == besides::mixup ? whole : box);
    check(cudaMemcpy(mix_rows_.data(), rows.data(), mix_rows_.bytes(), cudaMemcpyHostToDevice), "cudaMemcpy");
  }

  void round() {
    stages::picture_batch pictures = stages::pictures_of(pixels::store::from(type_, order_, imagenet), side, side);
    pictures.rows = rows_;
    pictures.flips = static_cast<const std::uint8_t*>(flips_.data());
    if (besides_ == besides::mixup || besides_ == besides::cutmix) {
      pictures.mixed = static_cast<const stages::mix_row*>(mix_rows_.data());
    }
    const auto kernel_ms = time([&](std::size_t set, cudaStream_t in) {
      pictures.from = static_cast<const std::uint8_t*>(memory_.from[set].data());
      pictures.to = memory_.to[set].data();
      check(static_cast<cudaError_t>(stages::launch_finish_pictures(pictures, in)),
            "the kernel that finishes pictures");
    });
    const auto copy_ms = time([&](std::size_t set, cudaStream_t in) {
      check(cudaMemcpyAsync(memory_.copy_to[set].data(), memory_.copy_from[set].data(), memory_.copied(type_),
                            cudaMemcpyDeviceToDevice, in),
            "cudaMemcpyAsync");
    });
    const auto moved = static_cast<double>(2 * memory_.copied(type_));
    kernel_.add(moved / kernel_ms * 1e-6);
    copy_.add(moved / copy_ms * 1e-6);
    ratio_.add(copy_ms / kernel_ms);
    kernel_us_.add(1e3 * kernel_ms);
  }

  [[nodiscard]] static std::string title(dtype type, layout order, besides what) {
    // A mixed row reads its partner's picture too, which another row has read: each picture is counted once.
    constexpr std::string_view words[] = {"", ", all mirrored", ", mixup", ", cutmix"};
    return str_cat("u8 to ", name(type), order == layout::nchw ? " nchw" : " nhwc",
                   words[static_cast<std::size_t>(what)]);
  }
  [[nodiscard]] report_line report() const {
    return {.what = {"kernel / device-to-device copy of as many bytes", ratio_, "", 3},
            .under = str_cat(title(type_, order_, besides_), ", ", rows_, " rows"),
            .target = target{target::sense::at_least, 0.85},
            .of = {{"kernel", kernel_, "GB/s", 0}, {"copy", copy_, "GB/s", 0}, {"a launch", kernel_us_, "us", 1}}};
  }

 private:
  template <class Launch>
  double time(Launch&& launch) const {
    const trainer_stream in;
    time_event began;
    time_event ended;
    for (std::size_t set = 0; set < memory_.from.size(); ++set) launch(set, in.get());
    began.record(in);
    for (unsigned i = 0; i < launches_; ++i) launch(i % memory_.from.size(), in.get());
    ended.record(in);
    in.finish();
    return ended.ms_since(began) / launches_;
  }

  const kernel_memory& memory_;
  const dtype type_;
  const layout order_;
  const besides besides_;
  const std::uint32_t rows_;
  const unsigned launches_;
  const device_memory flips_, mix_rows_;
  figure ratio_, kernel_, copy_, kernel_us_;
};

// --- 10: kernels with steps of colour ----------------------------------------------------------------------------------------

/// A chain of steps of colour, and what is wanted of it.
struct colour_chain {
  const char* name;
  const char* steps;
  double at_least;      // 0: nothing
  bool as_f32 = false;  // to f32, too
};
constexpr const char* simclr =
    "random_apply(0.8, color_jitter(0.4, 0.4, 0.4, 0.1)) random_apply(0.2, grayscale) random_apply(0.5, "
    "gaussian_blur(23, 0.1..2))";
constexpr colour_chain colour_chains[] = {{"tables", "solarize(128) posterize(4)", 0.75, true},
                                          {"brightness", "brightness(0.6..1.4)", 0},
                                          {"saturation and hue", "saturation(0.6..1.4) hue(-0.1..0.1)", 0.5, true},
                                          {"contrast", "contrast(0.6..1.4)", 0},
                                          {"equalize", "equalize", 0.4, true},
                                          {"autocontrast", "autocontrast", 0},
                                          {"sharpness", "sharpness(0..2)", 0},
                                          {"blur of 23", "gaussian_blur(23, 0.1..2)", 0},
                                          {"SimCLR", simclr, 0},
                                          {"rotation, bilinear", "rotate(-30..30, bilinear)", 0},
                                          {"perspective, bilinear", "perspective(0.5)", 0},
                                          {"RandAugment", "rand_augment(2, 9)", 0},
                                          {"erasing", "random_erasing(0.25)", 0}};

class colour_rate {
 public:
  colour_rate(const kernel_memory& memory, const std::shared_ptr<stages::device_calls>& calls, const colour_chain& of,
              dtype type, bool toy)
      : memory_(memory),
        calls_(calls),
        of_(of),
        type_(type),
        launches_(toy ? 4U : 20U),
        chain_(parse_transforms(str_cat("resize(", side, "x", side, ") ", of.steps))),
        layout_(stages::layout_of(chain_)),
        operation_(stages::pictures_of(pixels::store::from(type, layout::nchw, imagenet), side, side), layout_),
        records_(memory.rows * std::size_t{layout_.record_bytes}),
        scratch_(std::max<std::size_t>(operation_.scratch_bytes(memory.rows), 16)) {
    std::vector<std::byte> records(records_.bytes());
    pixels::recipe drawn;
    for (std::uint32_t row = 0; row < memory.rows; ++row) {
      chain_.draw_colour({.seed = seed, .epoch = 0, .draw = row}, drawn);
      stages::write_program(layout_, drawn, 0, row % 2 != 0,
                            {records.data() + std::size_t{row} * layout_.record_bytes, layout_.record_bytes});
    }
    check(cudaMemcpy(records_.data(), records.data(), records.size(), cudaMemcpyHostToDevice), "cudaMemcpy");
  }

  void round() {
    const trainer_stream in;
    time_event began, ended, copied;
    const std::size_t sets = memory_.from.size();
    const auto run = [&](unsigned i) {
      const std::byte* const from[] = {static_cast<const std::byte*>(memory_.from[i % sets].data()),
                                       static_cast<const std::byte*>(records_.data())};
      const stages::failed_call failed = operation_.launch(*calls_,
                                                           {.from = from,
                                                            .rows = memory_.rows,
                                                            .to = static_cast<std::byte*>(memory_.to[i % sets].data()),
                                                            .scratch = static_cast<std::byte*>(scratch_.data())},
                                                           in.get());
      check(static_cast<cudaError_t>(failed.status), failed.name);
    };
    for (unsigned i = 0; i < sets; ++i) run(i);
    began.record(in);
    for (unsigned i = 0; i < launches_; ++i) run(i);
    ended.record(in);
    for (unsigned i = 0; i < launches_; ++i) {
      check(cudaMemcpyAsync(memory_.copy_to[i % sets].data(), memory_.copy_from[i % sets].data(), memory_.copied(type_),
                            cudaMemcpyDeviceToDevice, in.get()),
            "cudaMemcpyAsync");
    }
    copied.record(in);
    in.finish();
    const double kernel_ms = ended.ms_since(began) / launches_;
    const double copy_ms = copied.ms_since(ended) / launches_;
    ratio_.add(copy_ms / kernel_ms);
    kernel_us_.add(1e3 * kernel_ms);
  }

  [[nodiscard]] static std::string title(const colour_chain& of, dtype type) {
    return str_cat(of.name, ", u8 to ", name(type));
  }
  [[nodiscard]] report_line report() const {
    report_line line{.what = {"kernels with steps of colour / copy of as many bytes as without", ratio_, "", 3},
                     .under = str_cat(title(of_, type_), " nchw, ", memory_.rows, " rows"),
                     .of = {{"a batch", kernel_us_, "us", 1}}};
    if (of_.at_least > 0) line.target = target{target::sense::at_least, of_.at_least};
    return line;
  }

 private:
  const kernel_memory& memory_;
  const std::shared_ptr<stages::device_calls> calls_;
  const colour_chain& of_;
  const dtype type_;
  const unsigned launches_;
  const pixels::pipeline chain_;
  const stages::program_layout layout_;
  const stages::picture_operation operation_;
  const device_memory records_, scratch_;
  figure ratio_, kernel_us_;
};

// --- 7: u8 and a kernel, or floats, over the bus -------------------------------------------------------------------------------

class bus_pictures {
 public:
  bus_pictures(const source& photographs, const std::shared_ptr<stages::device_calls>& calls, bool toy)
      : photographs_(photographs), calls_(calls), rows_(photographs.rows_max), counted_(toy ? 3U : 12U) {}

  void round() {
    double per_s[2] = {};
    for (const bool on_device : {false, true}) {
      const auto timed = std::make_shared<timed_calls>(calls_, 256);
      loader_options options = options_for(rows_, cuda(0));
      options.prefetch_batches = 2;
      options.finish_on_device = on_device;
      double began_s = 0;
      std::uint32_t uncounted = 0;
      {
        loader train = stages::make_loader(photographs_.samples, options, photographs_.fields, {.device_calls = timed});
        const trainer_stream in;
        uncounted = train.plan().batches + 1;
        run_to_end(
            [](loader& all, const trainer_stream& stream, loop_length length, double& began) -> asio::awaitable<int> {
              for (std::uint32_t i = 0; i < length.uncounted + length.counted; ++i) {
                if (i == length.uncounted) began = wall_s();
                batch got = co_await next_of(all);
                got.wait_on(stream.get());
              }
              co_return 0;
            }(train, in, {.uncounted = uncounted, .counted = counted_}, began_s));
        in.finish();
        (on_device ? whole_u8_ : whole_f32_).add(rows_ * counted_ / (wall_s() - began_s));
      }
      figure ms;
      const std::vector<timed_calls::times> all = timed->taken();
      for (std::size_t i = uncounted; i < all.size(); ++i) ms.add(all[i].longer_ms());
      if (ms.empty()) throw error(errc::device, "no copy of the loader's was timed");
      per_s[on_device ? 1 : 0] = rows_ / ms.median() * 1e3;
    }
    f32_.add(per_s[0]);
    u8_.add(per_s[1]);
    ratio_.add(per_s[1] / per_s[0]);
  }

  [[nodiscard]] report_line report() const {
    return {.what = {"copies or kernels, the longer: f32 over the bus / u8 and kernel", ratio_, "", 2},
            .under = absl::StrFormat("224 x 224 f32 nchw, %u rows", rows_),
            .target = target{target::sense::at_least, 3},
            .of = {{"u8 and kernel", u8_, "/s", 0},
                   {"f32", f32_, "/s", 0},
                   {"whole line, u8 and kernel", whole_u8_, "/s", 0},
                   {"whole line, f32", whole_f32_, "/s", 0}}};
  }

 private:
  const source& photographs_;
  const std::shared_ptr<stages::device_calls> calls_;
  const std::uint32_t rows_;
  const std::uint32_t counted_;
  figure ratio_, u8_, f32_, whole_u8_, whole_f32_;
};

// --- 8: photo packs -------------------------------------------------------------------------------------------------------------

class photo_packs {
 public:
  photo_packs(const source& jpegs, const std::string& photographs, device_step& step,
              std::shared_ptr<stages::device_calls> calls, bool toy)
      : jpegs_(jpegs), packs_(packs_of(photographs, toy)), calls_(std::move(calls)), least_s_(toy ? 0.05 : 1.0) {
    packs_.decode_on = leat::decode_on::device;
    const std::uint32_t rows = std::min<std::uint32_t>(packs_.rows_max, 32);
    const std::uint64_t batches = std::clamp<std::uint64_t>(packs_.samples.size() / rows, 1, 32);
    check_what_steps_read(packs_, step, static_cast<std::uint32_t>(batches));
  }

  [[nodiscard]] const source& packs() const noexcept { return packs_; }

  void round() {
    run(jpegs_, leat::decode_on::host, jpegs_on_host_);
    run(packs_, leat::decode_on::host, on_host_);
    run(packs_, leat::decode_on::device, on_device_);
    run(packs_, leat::decode_on::device, more_io_, 4);
  }

  [[nodiscard]] std::vector<report_line> report() const {
    const std::string under =
        absl::StrFormat("224 x 224 f32 nchw, %u rows, %u CPUs", packs_.rows_max, std::thread::hardware_concurrency());
    return {{.what = {"photo packs decoded on the device, whole line", on_device_.rows_per_s, "/s", 0},
             .under = under,
             .target = target{target::sense::at_least, 30000},
             .of = {{"by 4 I/O threads", more_io_.rows_per_s, "/s", 0},
                    {"packs on the host", on_host_.rows_per_s, "/s", 0},
                    {"JPEGs on the host", jpegs_on_host_.rows_per_s, "/s", 0}}},
            {.what = {"host CPU of a photo, packs decoded on the device", on_device_.cpu_us, "us", 1},
             .under = under,
             .of = {{"packs on the host", on_host_.cpu_us, "us", 1},
                    {"JPEGs on the host", jpegs_on_host_.cpu_us, "us", 1}}},
            {.what = {"time of the GPU's kernels for 3,000 packs a second", on_device_.gpu_share, "%", 2},
             .under = under,
             .target = target{target::sense::at_most, 2},
             .of = {{"copies or kernels, the longer", on_device_.stream_per_s, "/s", 0},
                    {"kernels of a batch", on_device_.kernels_ms, "ms", 3},
                    {"copy of a batch", on_device_.copy_ms, "ms", 3}}}};
  }

 private:
  [[nodiscard]] source packs_of(const std::string& photographs, bool toy) const {
    make_packs_of(photographs, folder_.path());
    return make_photographs(folder_.path().string(), toy);
  }
  void run(const source& from, leat::decode_on where, line_rate& measured, std::uint32_t io_threads = 1) const {
    static_cast<void>(measure_line(from, where, calls_, least_s_, measured, io_threads));
  }

  const testing::temporary_directory folder_;
  const source& jpegs_;
  source packs_;
  const std::shared_ptr<stages::device_calls> calls_;
  const double least_s_;
  line_rate jpegs_on_host_, on_host_, on_device_, more_io_;
};

// --- 11: a whole recipe -----------------------------------------------------------------------------------------------------------

class recipe_lines {
 public:
  recipe_lines(const source& jpegs, const source& packs, std::shared_ptr<stages::device_calls> calls, bool toy)
      : plain_(jpegs), jpegs_(jpegs), packs_(packs), calls_(std::move(calls)), least_s_(toy ? 0.05 : 1.0) {
    plain_.fields = {plain().as(dtype::f16)};
    jpegs_.fields = packs_.fields = {recipe().as(dtype::f16)};
  }

  void round() {
    const auto run = [&](const source& from, leat::decode_on where, line_rate& measured, bool finish,
                         std::uint32_t io_threads) {
      const loader_stats stats = measure_line(from, where, calls_, least_s_, measured, io_threads, finish);
      if (finish && stats.device.passes_on_host > 0) throw error(errc::device, "a step of colour stayed on the host");
    };
    run(packs_, leat::decode_on::device, packs_one_, true, 1);
    run(packs_, leat::decode_on::device, packs_four_, true, 4);
    run(packs_, leat::decode_on::host, packs_host_, false, 1);
    run(jpegs_, leat::decode_on::host, jpegs_device_, true, 1);
    run(jpegs_, leat::decode_on::host, jpegs_host_, false, 1);
    run(plain_, leat::decode_on::host, plain_device_, true, 1);
    run(plain_, leat::decode_on::host, plain_host_, false, 1);
    const double left = last(jpegs_device_) - last(plain_device_);
    const double all = last(jpegs_host_) - last(plain_host_);
    share_.add(left / all);
  }

  [[nodiscard]] std::vector<report_line> report() const {
    const std::string under = absl::StrFormat("SimCLR, 224 x 224 f16 nchw, %u rows, %u CPUs", packs_.rows_max,
                                              std::thread::hardware_concurrency());
    return {{.what = {"packs with the recipe, on the device, whole line", packs_four_.rows_per_s, "/s", 0},
             .under = under + ", 4 I/O threads",
             .target = target{target::sense::at_least, 100000},
             .of = {{"by 1 I/O thread", packs_one_.rows_per_s, "/s", 0},
                    {"copies or kernels, the longer", packs_four_.stream_per_s, "/s", 0},
                    {"kernels of a batch", packs_four_.kernels_ms, "ms", 3},
                    {"copy of a batch", packs_four_.copy_ms, "ms", 3},
                    {"host CPU of a row", packs_four_.cpu_us, "us", 1},
                    {"packs on the host", packs_host_.rows_per_s, "/s", 0}}},
            {.what = {"JPEG files with the recipe, tail on the device, whole line", jpegs_device_.rows_per_s, "/s", 0},
             .under = under,
             .of = {{"all on the host", jpegs_host_.rows_per_s, "/s", 0},
                    {"no recipe", plain_device_.rows_per_s, "/s", 0}}},
            {.what = {"CPU that colour takes of a picture: tail on the device / all on the host", share_, "", 2},
             .under = under,
             .target = target{target::sense::at_most, 0.5},
             .of = {{"a JPEG, tail on the device", jpegs_device_.cpu_us, "us", 1},
                    {"no recipe, finished there", plain_device_.cpu_us, "us", 1},
                    {"all on the host", jpegs_host_.cpu_us, "us", 1},
                    {"no recipe, on the host", plain_host_.cpu_us, "us", 1}}}};
  }

 private:
  static image plain() { return image{"jpg"}.random_resized_crop(side).random_flip().normalize(imagenet); }
  static image recipe() {
    image made = plain();
    for (const transform& step : parse_transforms(simclr)) made = made.apply(step);
    return made;
  }
  static double last(const line_rate& of) { return of.cpu_us.median(); }

  source plain_, jpegs_, packs_;
  const std::shared_ptr<stages::device_calls> calls_;
  const double least_s_;
  line_rate packs_one_, packs_four_, packs_host_, jpegs_device_, jpegs_host_, plain_device_, plain_host_;
  figure share_;
};

// --- 9: nvJPEG ------------------------------------------------------------------------------------------------------------------

class nvjpeg_files {
 public:
  nvjpeg_files(const source& jpegs, std::shared_ptr<stages::device_calls> calls, bool toy)
      : jpegs_(jpegs), by_nvjpeg_(jpegs), calls_(std::move(calls)), least_s_(toy ? 0.05 : 1.0) {
    if (const std::string why_not = calls_->prepare_jpegs(); !why_not.empty()) throw nothing_to_measure(why_not);
    by_nvjpeg_.fields = {training_picture().decoder(jpeg_decoder::nvjpeg)};
  }

  void round() {
    static_cast<void>(measure_line(jpegs_, leat::decode_on::host, calls_, least_s_, on_host_));
    const device_report told = measure_line(by_nvjpeg_, leat::decode_on::host, calls_, least_s_, on_device_).device;
    taken_.add(100.0 * static_cast<double>(told.jpegs_decoded) /
               static_cast<double>(std::max<std::uint64_t>(1, told.jpegs_decoded + told.jpegs_on_host)));
  }

  [[nodiscard]] std::vector<report_line> report() const {
    const std::string under =
        absl::StrFormat("224 x 224 f32 nchw, %u rows, %u CPUs", jpegs_.rows_max, std::thread::hardware_concurrency());
    return {{.what = {"JPEGs decoded by nvJPEG, whole line", on_device_.rows_per_s, "/s", 0},
             .under = under,
             .of = {{"on the host", on_host_.rows_per_s, "/s", 0}, {"that nvJPEG takes", taken_, "%", 1}}},
            {.what = {"host CPU of a photo decoded by nvJPEG", on_device_.cpu_us, "us", 1},
             .under = under,
             .of = {{"on the host", on_host_.cpu_us, "us", 1}}},
            {.what = {"copies or kernels with nvJPEG, the longer", on_device_.stream_per_s, "/s", 0},
             .under = under,
             .of = {{"nvJPEG and kernels of a batch", on_device_.kernels_ms, "ms", 3},
                    {"copy of a batch", on_device_.copy_ms, "ms", 3}}}};
  }

 private:
  const source& jpegs_;
  source by_nvjpeg_;
  const std::shared_ptr<stages::device_calls> calls_;
  const double least_s_;
  line_rate on_host_, on_device_;
  figure taken_;
};

// --- all of it -----------------------------------------------------------------------------------------------------------------

/// A photo set of one's own where none is given. Left where it is: the next run finds it.
std::string make_photos_for(bool toy) {
  tools::make_photos_options how;
  how.count = toy ? 96 : 1000;
  if (toy) {
    how.width = 160;
    how.height = 120;
  }
  const auto place = std::filesystem::temp_directory_path() / str_cat("leat-benchmark-photos-", how.count);
  tools::make_photos(place, how);
  return place.string();
}

/// What the device is and how it is linked, as doctor tells it. Asked after each part: an idle link is slowed down.
void add_device_facts(std::vector<gpu_report::fact>& facts, const stages::device_calls& calls) {
  const stages::device_facts told = calls.facts();
  tools::gpu_facts gpu;
  gpu.pci_address = told.pci_address;
  tools::look_at_link(gpu);
  facts.emplace_back("device",
                     absl::StrFormat("%s, compute capability %d.%d, %.0f GiB", calls.name(), told.capability / 10,
                                     told.capability % 10, static_cast<double>(told.memory_bytes) / 0x1p30));
  facts.emplace_back(
      "CUDA", absl::StrFormat("runtime %d.%d, driver knows %d.%d", told.runtime_cuda / 1000,
                              told.runtime_cuda % 1000 / 10, told.driver_cuda / 1000, told.driver_cuda % 1000 / 10));
  facts.emplace_back("link", gpu.link_lanes == 0
                                 ? std::string("not said by /sys/bus/pci")
                                 : absl::StrFormat("PCIe %.3g GT/s x%d", gpu.link_gt_s, gpu.link_lanes));
  facts.emplace_back("machine", machine());
}

/// The parts in the order in which they are measured, which is not that in which they are told: those first that need least of
/// leat, so that what hangs takes as little along as may be. What a part needs is made in its first round.
class measurements {
 public:
  measurements(const settings& given, std::shared_ptr<stages::device_calls> calls)
      : given_(given), calls_(std::move(calls)), ready_(given.toy) {}
  measurements(const measurements&) = delete;
  measurements& operator=(const measurements&) = delete;

  void add_to(rounds& all) {
    all.add_once("memory for the kernel", [this] { kernel_memory_.emplace(given_.toy); });
    for (const dtype type : {dtype::f32, dtype::f16, dtype::bf16}) {
      for (const layout order : {layout::nchw, layout::nhwc}) {
        add_kernel(all, type, order, besides::mirrors_half);
        add_kernel(all, type, order, besides::mirrors_all);
      }
      add_kernel(all, type, layout::nchw, besides::mixup);
      add_kernel(all, type, layout::nchw, besides::cutmix);
    }
    for (const colour_chain& of : colour_chains) add_colour(all, of, dtype::f16);
    for (const colour_chain& of : colour_chains) {
      if (of.as_f32) add_colour(all, of, dtype::f32);
    }
    all.add("copies alone", [this] {
      if (!copies_) copies_.emplace(given_.toy);
      copies_->round();
    });
    all.add("ready batches", [this] { ready_.round(); });
    all.add_once("the step", [this] { step_.emplace(); });

    all.add_once("what steps read of raw records, and how fast the host is with them", [this] {
      records_.emplace(make_records(given_.toy));
      prepare(*records_);
    });
    all.add("CPU of the hand-over", [this] {
      if (!cpu_) cpu_.emplace(ready(records_), given_.toy);
      cpu_->round();
    });
    all.add("copies under load", [this] {
      if (!bus_) bus_.emplace(ready(records_), *step_, calls_, given_.toy);
      bus_->round();
    });
    add_steps(all, records_, "raw records");

    all.add_once("what steps read of photographs, and how fast the host is with them", [this] {
      photographs_place_ = given_.photos.empty() ? make_photos_for(given_.toy) : given_.photos;
      photographs_.emplace(make_photographs(photographs_place_, given_.toy));
      prepare(*photographs_);
    });
    all.add("photo packs", [this] {
      if (!packs_) {
        const source& jpegs = ready(photographs_);
        packs_.emplace(jpegs, photographs_place_, *step_, calls_, given_.toy);
      }
      packs_->round();
    });
    all.add("photo packs with a recipe", [this] {
      if (!packs_) throw nothing_to_measure("there are no packs");
      if (!recipes_) recipes_.emplace(ready(photographs_), packs_->packs(), calls_, given_.toy);
      recipes_->round();
    });
    all.add("nvJPEG", [this] {
      if (!nvjpeg_) nvjpeg_.emplace(ready(photographs_), calls_, given_.toy);
      nvjpeg_->round();
    });
    all.add("u8 and f32 over the bus", [this] {
      if (!pictures_) pictures_.emplace(ready(photographs_), calls_, given_.toy);
      pictures_->round();
    });
    add_steps(all, photographs_, "photographs");
  }

  /// What is measured so far.
  [[nodiscard]] gpu_report report() const {
    gpu_report made;
    std::vector<report_line> ratios, idle, firsts, cpus;
    for (const auto& each : steps_) each->report(ratios, idle, firsts, cpus);
    for (std::vector<report_line>* each : {&ratios, &idle, &firsts}) {
      for (report_line& line : *each) made.lines.push_back(std::move(line));
    }
    if (cpu_) made.lines.push_back(cpu_->report());
    for (report_line& line : cpus) made.lines.push_back(std::move(line));
    if (ready_.begun()) made.lines.push_back(ready_.report());
    if (bus_) made.lines.push_back(bus_->report());
    if (copies_) made.lines.push_back(copies_->report());
    for (const auto& each : kernels_) made.lines.push_back(each->report());
    for (const auto& each : colours_) made.lines.push_back(each->report());
    if (pictures_) made.lines.push_back(pictures_->report());
    if (packs_) {
      for (report_line& line : packs_->report()) made.lines.push_back(std::move(line));
    }
    if (recipes_) {
      for (report_line& line : recipes_->report()) made.lines.push_back(std::move(line));
    }
    if (nvjpeg_) {
      for (report_line& line : nvjpeg_->report()) made.lines.push_back(std::move(line));
    }

    add_device_facts(made.facts, *calls_);
    if (step_) made.facts.emplace_back("step", step_->name());
    for (const std::optional<source>* each : {&photographs_, &records_}) {
      if (!*each || (*each)->rows_per_s == 0) continue;
      made.facts.emplace_back((*each)->name, absl::StrFormat("%.0f rows a second at most", (*each)->rows_per_s));
    }
    return made;
  }

 private:
  void add_kernel(rounds& all, dtype type, layout order, besides what) {
    all.add("the kernel, " + kernel_rate::title(type, order, what),
            [this, type, order, what, of = static_cast<kernel_rate*>(nullptr)]() mutable {
              if (!kernel_memory_) throw nothing_to_measure("there is no memory for it");
              if (of == nullptr) {
                auto made = std::make_unique<kernel_rate>(*kernel_memory_, type, order, what, given_.toy);
                of = kernels_.emplace_back(std::move(made)).get();
              }
              of->round();
            });
  }
  void add_colour(rounds& all, const colour_chain& of, dtype type) {
    all.add("colour, " + colour_rate::title(of, type),
            [this, &of, type, made = static_cast<colour_rate*>(nullptr)]() mutable {
              if (!kernel_memory_) throw nothing_to_measure("there is no memory for it");
              if (made == nullptr) {
                auto rate = std::make_unique<colour_rate>(*kernel_memory_, calls_, of, type, given_.toy);
                made = colours_.emplace_back(std::move(rate)).get();
              }
              made->round();
            });
  }
  void add_steps(rounds& all, const std::optional<source>& from, const std::string& name) {
    for (const double ms : {5.0, 20.0, 50.0}) {
      all.add(absl::StrFormat("steps of %.0f ms, %s", ms, name),
              [this, &from, ms, of = static_cast<step_comparison*>(nullptr)]() mutable {
                if (of == nullptr) {
                  auto made = std::make_unique<step_comparison>(ready(from), *step_, calls_, ms, given_.toy);
                  if (!made->keeps_up()) throw nothing_to_measure(made->why_not());
                  of = steps_.emplace_back(std::move(made)).get();
                }
                of->round();
              });
    }
  }

  void prepare(source& made) {
    if (!step_) throw nothing_to_measure("there is no step");
    check_what_steps_read(made, *step_, 3);
    line_rate alone;
    static_cast<void>(measure_line(made, leat::decode_on::host, calls_, given_.toy ? 0.05 : 1.0, alone));
    made.rows_per_s = alone.rows_per_s.median();
  }
  /// What prepare() has gone well with.
  static const source& ready(const std::optional<source>& from) {
    if (!from || from->rows_per_s == 0) throw nothing_to_measure("what it needs could not be prepared");
    return *from;
  }

  const settings& given_;
  const std::shared_ptr<stages::device_calls> calls_;
  std::optional<device_step> step_;
  std::optional<source> records_;
  std::optional<source> photographs_;
  std::vector<std::unique_ptr<step_comparison>> steps_;
  std::optional<hand_over_cpu> cpu_;
  std::optional<best_copy> copies_;
  std::optional<bus_rate> bus_;
  std::string photographs_place_;
  std::optional<bus_pictures> pictures_;
  std::optional<photo_packs> packs_;
  std::optional<nvjpeg_files> nvjpeg_;
  std::optional<kernel_memory> kernel_memory_;
  std::vector<std::unique_ptr<kernel_rate>> kernels_;
  std::vector<std::unique_ptr<colour_rate>> colours_;
  std::optional<recipe_lines> recipes_;
  ready_batch ready_;
};

// --- the command ---------------------------------------------------------------------------------------------------------------

settings parse(int count, char** words) {
  settings given;
  read_options(count, words,
               {{"PHOTOS", given.photos},
                {"--rounds", given.rounds},
                {"--seconds", given.seconds},
                {"--json", given.json},
                {"--markdown", given.markdown},
                {"--title", given.title},
                {"--left-out", [&](std::string_view value) { given.left_out.emplace_back(value); }},
                {"--only", given.only},
                {"--fact",
                 [&](std::string_view value) {
                   const std::size_t equals = std::min(value.find('='), value.size());
                   given.facts.emplace_back(value.substr(0, equals), value.substr(std::min(equals + 1, value.size())));
                 }},
                {"--toy", [&] {
                   given.toy = true;
                   given.rounds = 1;
                 }}});
  if (const char* set = std::getenv("LEAT_PHOTOS"); given.photos.empty() && set != nullptr && !given.toy)
    given.photos = set;
  return given;
}

/// Whole or not at all: whoever kills us leaves the one before.
void write(const std::string& path, const std::string& text) {
  if (path.empty()) return;
  const std::string unfinished = path + ".part";
  std::ofstream file(unfinished, std::ios::binary);
  file << text;
  file.close();
  if (!file) throw error(errc::io, str_cat("cannot write ", unfinished));
  std::filesystem::rename(unfinished, path);
}

int main_of(int count, char** words) {
  try {
    const settings given = parse(count, words);
    const stages::opened_device opened = stages::open_device(cuda(0));
    if (opened.calls == nullptr) {
      std::printf("device_benchmark: skipped: %s\n", opened.why_not.c_str());
      return 0;
    }
    std::vector<std::string> left_out = given.left_out;
    // Waiting for the GPU is not to look like work of the CPU's.
    if (cudaSetDeviceFlags(cudaDeviceScheduleBlockingSync) != cudaSuccess) {
      static_cast<void>(cudaGetLastError());
      left_out.emplace_back(
          "cudaSetDeviceFlags failed: the CPU spins while it waits for the GPU, and its times hold that");
    }
    measurements measured(given, opened.calls);
    gpu_report report;
    rounds all(
        [&](const std::vector<std::string>& not_measured) {
          report = measured.report();
          report.facts.insert(report.facts.end(), given.facts.begin(), given.facts.end());
          report.left_out = left_out;
          report.left_out.insert(report.left_out.end(), not_measured.begin(), not_measured.end());
          write(given.json, report.as_json());
          write(given.markdown, report.as_markdown(given.title));
        },
        given.only);
    measured.add_to(all);
    all.run(given.rounds, given.seconds);
    std::printf("Does a step on a GPU take as long with leat as with the data already there?\n\n%s",
                report.as_table().c_str());
    return all.any_failed() ? 1 : 0;
  } catch (const std::exception& problem) {
    std::fprintf(stderr, "device_benchmark: %s\n", problem.what());
    return 1;
  }
}

}  // namespace
}  // namespace leat::benchmarks

int main(int count, char** words) { return leat::benchmarks::main_of(count, words); }
