// How many accelerators does one core keep busy?
//
// The shapes are those of MLPerf Storage: sample sizes, batch sizes and the time that an accelerator computes on a batch. An
// accelerator is emulated as there, by sleeping: a thread that takes batches from a loader of its own and sleeps. Its
// utilisation is the time it slept on purpose over all its time, its first step left out. The rule of MLPerf Storage asks
// for 0.90 (unet3d, resnet50) or 0.70 (cosmoflow). All of it runs on one core (--core), accelerators included.
//
// Not as there: the files are far fewer (--make says how many); all samples of a workload have the mean size; ResNet-50 and
// CosmoFlow are records without TFRecord's framing, which leat does not read; nothing is sharded over hosts, and no
// checkpoints are written. A result is no MLPerf result.
//
//     storage_benchmark FOLDER --make [--workload W]
//     storage_benchmark FOLDER --workload unet3d|resnet50|cosmoflow [--accelerator a100|h100] [--accelerators 1]
//                       [--cache warm|cold] [--seconds 5] [--core N] [--json]
//
// Warm is the page cache, which the files must have been read into (`cat FOLDER/W/* > /dev/null`): the drive is out of the
// question then. Cold is O_DIRECT. Of every batch a row is looked at: the number at its beginning and its end must fit.
// benchmarks/peers/storage.py runs this in alternation with PyTorch's loader, and looks for the largest number.
#include "base/text.hpp"
#include "benchmarks/arguments.hpp"
#include "benchmarks/measure.hpp"
#include "tests/support/temporary_directory.hpp"

#include <leat/error.hpp>
#include <leat/loading.hpp>
#include <leat/open_arrays.hpp>
#include <leat/open_records.hpp>
#include <leat/units.hpp>

#include <nlohmann/json.hpp>

#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <barrier>
#include <bit>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <deque>
#include <exception>
#include <filesystem>
#include <fstream>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace leat::benchmarks {
namespace {

using namespace leat::literals;

/// As published: mlcommons/storage, configs/dlio/workload/<name>_<accelerator>.yaml, v1.0 and v2.0 (the same in both).
///   sample_bytes         record_length_bytes, the mean
///   kept_bytes           of a sample that a batch holds: unet3d's readers give record_length_bytes_resize of it
///   a100_s, h100_s       computation_time of a batch
///   utilisation_least    the rule, Submission_guidelines.md table 1
///   samples_per_file     there 1, 1251, 1
///   files                here; there 168, 1024, 524288
struct workload {
  std::string_view name;
  std::uint64_t sample_bytes;
  std::uint64_t kept_bytes;
  std::uint32_t batch_size;
  double a100_s;
  double h100_s;
  double utilisation_least;
  std::uint64_t samples_per_file;
  std::uint64_t files;
};

constexpr std::array<workload, 3> workloads{{
    {"unet3d", 146'600'628, 2'097'152, 7, 0.636, 0.323, 0.90, 1, 14},
    {"resnet50", 114'660, 114'660, 400, 0.435, 0.224, 0.90, 1251, 8},
    {"cosmoflow", 2'828'486, 2'828'486, 1, 0.00551, 0.00350, 0.70, 1, 320},
}};

struct settings {
  std::string folder;
  workload shape = workloads[1];
  bool every_workload = true;
  bool h100 = true;
  std::uint32_t accelerators = 1;
  bool cold = false;
  double seconds = 5;
  int core = -1;  // -1: the last of those allowed
  bool make = false;
  bool json = false;
  bool toy = false;

  [[nodiscard]] double step_s() const { return h100 ? shape.h100_s : shape.a100_s; }
};

struct outcome {
  double utilisation = 0;  // the mean of the accelerators'
  double wall_s = 0;
  double cpu_s = 0;
  std::uint64_t steps = 0;
  double bytes_per_s = 0;
  std::string direct;
};

// --- data --------------------------------------------------------------------------------------------------------------

std::uint64_t mix(std::uint64_t x) noexcept {
  x += 0x9E3779B97F4A7C15U;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9U;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBU;
  return x ^ (x >> 31);
}

/// A sample's bytes: its number, what no drive can compress, and mix(number) in the last eight.
void fill_sample(std::uint64_t number, std::span<std::byte> into) {
  static_assert(std::endian::native == std::endian::little);
  std::uint64_t state = mix(~number);
  std::size_t at = 0;
  for (; at + 8 <= into.size(); at += 8) {
    state ^= state << 13;  // xorshift64, Marsaglia 2003
    state ^= state >> 7;
    state ^= state << 17;
    std::memcpy(into.data() + at, &state, 8);
  }
  std::memcpy(into.data() + at, &state, into.size() - at);
  const std::uint64_t last = mix(number);
  std::memcpy(into.data(), &number, 8);
  std::memcpy(into.data() + into.size() - 8, &last, 8);
}

bool is_whole(std::span<const std::byte> sample) noexcept {
  std::uint64_t number = 0;
  std::uint64_t last = 0;
  if (sample.size() < 16) return false;
  std::memcpy(&number, sample.data(), 8);
  std::memcpy(&last, sample.data() + sample.size() - 8, 8);
  return last == mix(number);
}

std::uint32_t crc32(std::uint32_t crc, std::span<const std::byte> bytes) {
  static const std::array<std::uint32_t, 256> table = [] {
    std::array<std::uint32_t, 256> made{};
    for (std::uint32_t i = 0; i < 256; ++i) {
      std::uint32_t value = i;
      for (int bit = 0; bit < 8; ++bit) value = (value >> 1) ^ ((value & 1) != 0 ? 0xEDB88320U : 0U);
      made[i] = value;
    }
    return made;
  }();
  crc = ~crc;
  for (const std::byte each : bytes) crc = table[(crc ^ static_cast<std::uint32_t>(each)) & 0xFFU] ^ (crc >> 8);
  return ~crc;
}

void put(std::string& text, std::uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) text += static_cast<char>(value >> (8 * i));
}

/// What numpy.savez(x=...) writes of an array of u8 [1, bytes], around its bytes.
struct npz_frame {
  std::string before;
  std::string after;
};

npz_frame npz_around(std::span<const std::byte> data) {
  std::string npy = str_cat("{'descr': '|u1', 'fortran_order': False, 'shape': (1, ", data.size(), "), }");
  while ((10 + npy.size() + 1) % 64 != 0) npy += ' ';
  npy += '\n';
  std::string header = "\x93NUMPY\x01";
  put(header, 0, 1);
  put(header, npy.size(), 2);
  npy = header + npy;
  const std::uint32_t crc = crc32(crc32(0, std::as_bytes(std::span(npy))), data);

  constexpr std::string_view name = "x.npy";
  const auto common = [&](std::string& to) {  // PKWARE APPNOTE 4.3.7: version, flags, method 0 (stored), time, date
    for (const std::uint64_t each : {20U, 0U, 0U, 0U, 0x21U}) put(to, each, 2);
    put(to, crc, 4);
    put(to, npy.size() + data.size(), 4);
    put(to, npy.size() + data.size(), 4);
    put(to, name.size(), 2);
    put(to, 0, 2);
  };
  npz_frame made;
  put(made.before, 0x04034b50, 4);
  common(made.before);
  made.before += name;
  made.before += npy;
  put(made.after, 0x02014b50, 4);
  put(made.after, 20, 2);
  common(made.after);
  for (const int bytes : {2, 2, 2, 4, 4}) put(made.after, 0, bytes);
  made.after += name;
  const std::size_t directory_bytes = made.after.size();
  put(made.after, 0x06054b50, 4);
  for (const std::uint64_t each : {0U, 0U, 1U, 1U}) put(made.after, each, 2);
  put(made.after, directory_bytes, 4);
  put(made.after, made.before.size() + data.size(), 4);
  put(made.after, 0, 2);
  return made;
}

void write_all(const std::filesystem::path& path, std::span<const std::string_view> pieces) {
  std::ofstream file(path, std::ios::binary);
  for (const std::string_view piece : pieces) file.write(piece.data(), static_cast<std::streamsize>(piece.size()));
  file.close();
  if (!file) throw error(errc::io, str_cat(path.string(), " cannot be written; is there room for it?"));
}

std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::filesystem::path place_of(const settings& chosen) {
  return std::filesystem::path(chosen.folder) / chosen.shape.name;
}

std::string file_name(const workload& shape, std::uint64_t number) {
  std::string digits = std::to_string(number);
  digits.insert(0, 4 - std::min<std::size_t>(digits.size(), 4), '0');
  return digits + (shape.name == "unet3d" ? ".npz" : ".bin");
}

/// Files that are there with the right size are kept.
void make_data(const settings& chosen) {
  const workload& shape = chosen.shape;
  const std::filesystem::path folder = place_of(chosen);
  std::filesystem::create_directories(folder);
  const std::uint64_t file_bytes = shape.samples_per_file * shape.sample_bytes;
  const bool npz = shape.name == "unet3d";
  std::vector<std::byte> memory(file_bytes);
  for (std::uint64_t k = 0; k < shape.files; ++k) {
    const std::filesystem::path path = folder / file_name(shape, k);
    std::error_code absent;
    const std::uint64_t there = std::filesystem::file_size(path, absent);
    if (!absent && (npz ? there > file_bytes : there == file_bytes)) continue;
    for (std::uint64_t i = 0; i < shape.samples_per_file; ++i) {
      fill_sample(k * shape.samples_per_file + i,
                  std::span(memory).subspan(i * shape.sample_bytes, shape.sample_bytes));
    }
    if (npz) {
      const npz_frame frame = npz_around(memory);
      write_all(path, std::array<std::string_view, 3>{frame.before, as_text(memory), frame.after});
    } else {
      const std::string header =
          str_cat(R"({"fields": [{"name": "x", "dtype": "u8", "shape": [)", shape.sample_bytes, "]}]}\n");
      write_all(path, std::array<std::string_view, 1>{as_text(memory)});
      write_all(std::filesystem::path(path).replace_extension(".json"), std::array<std::string_view, 1>{header});
    }
  }
  std::printf("%s: %llu files of %.1f MB, %.2f GB, %llu samples\n", folder.c_str(),
              static_cast<unsigned long long>(shape.files), static_cast<double>(file_bytes) * 1e-6,
              static_cast<double>(file_bytes * shape.files) * 1e-9,
              static_cast<unsigned long long>(shape.files * shape.samples_per_file));
}

// --- accelerators ------------------------------------------------------------------------------------------------------

void stay_on_core(int core) {
  cpu_set_t usable;
  CPU_ZERO(&usable);
  ::sched_getaffinity(0, sizeof usable, &usable);
  for (int k = CPU_SETSIZE - 1; core < 0 && k >= 0; --k) {
    if (CPU_ISSET(k, &usable)) core = k;
  }
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(core, &one);
  if (::sched_setaffinity(0, sizeof one, &one) != 0) {
    throw error(errc::usage, str_cat("--core ", core, ": ", std::strerror(errno)));
  }
}

void sleep_s(double seconds) {
  timespec time{static_cast<time_t>(seconds),
                static_cast<long>((seconds - static_cast<double>(static_cast<time_t>(seconds))) * 1e9)};
  while (::nanosleep(&time, &time) != 0 && errno == EINTR) {
  }
}

dataset open_data(const settings& chosen) {
  const std::string files = (place_of(chosen) / (chosen.shape.name == "unet3d" ? "*.npz" : "*.bin")).string();
  return chosen.shape.name == "unet3d" ? open_npz(files) : open_records(files);
}

field field_of(const workload& shape) {
  if (shape.kept_bytes == shape.sample_bytes) return array("x");
  // Read whole, and a part of it kept, as the readers of MLPerf Storage do.
  return custom("x", dtype::u8, {static_cast<std::int64_t>(shape.kept_bytes)},
                [](std::span<const std::byte> encoded, const sample_context&, std::span<std::byte> row) {
                  if (!is_whole(encoded)) return std::string("not the sample that was written");
                  std::memcpy(row.data(), encoded.data(), row.size());
                  return std::string();
                });
}

/// The part of the samples that accelerator `k` of n gets.
dataset share_of(const dataset& all, std::uint32_t k, std::uint32_t n) {
  const std::uint64_t first = all.size() * k / n;
  return all.slice(first, all.size() * (k + 1) / n - first);
}

class accelerator {
 public:
  accelerator(const settings& chosen, const dataset& samples)
      : step_s_(chosen.step_s()), whole_rows_(chosen.shape.kept_bytes == chosen.shape.sample_bytes) {
    const workload& shape = chosen.shape;
    if (samples.size() < shape.batch_size) {
      throw error(errc::usage, str_cat("a share of ", samples.size(), " samples makes no batch of ", shape.batch_size,
                                       "; take fewer accelerators"));
    }
    loader_options options;
    options.batch_size = shape.batch_size;
    options.drop_last = true;
    options.seed = 7;
    options.reader.direct = chosen.cold ? choice::on : choice::off;
    // Room for four samples beside three batches.
    options.host_bytes_max =
        3 * shape.batch_size * (shape.kept_bytes + 4096) + 4 * (shape.sample_bytes + 8192) + 64_MiB;
    loader_ = std::make_unique<loader>(samples, options, field_of(shape));
  }

  /// Steps until `until`; the time begins when the first step is over, and all have come so far.
  template <class Barrier>
  void run(Barrier& begin, const double& until) {
    step();
    begin.arrive_and_wait();
    const double began = wall_s();
    while (wall_s() < until) {
      step();
      ++steps_;
    }
    utilisation_ = static_cast<double>(steps_) * step_s_ / (wall_s() - began);
  }

  [[nodiscard]] double utilisation() const { return utilisation_; }
  [[nodiscard]] std::uint64_t steps() const { return steps_; }
  [[nodiscard]] loader_stats stats() const { return loader_->stats(); }

 private:
  void step() {
    std::optional<batch> got = loader_->next_blocking();
    if (!got) got = loader_->next_blocking();  // The end of an epoch lies between.
    const tensor rows = (*got)["x"];
    if (whole_rows_ && !is_whole(rows.as_bytes().first(rows.bytes() / got->valid_rows()))) {
      throw error(errc::corrupt, "a row is not the sample that was written");
    }
    sleep_s(step_s_);
  }

  const double step_s_;
  const bool whole_rows_;
  std::unique_ptr<loader> loader_;
  std::uint64_t steps_ = 0;
  double utilisation_ = 0;
};

outcome measure(const settings& chosen) {
  const dataset all = open_data(chosen);
  std::deque<accelerator> each;
  for (std::uint32_t k = 0; k < chosen.accelerators; ++k) {
    each.emplace_back(chosen, share_of(all, k, chosen.accelerators));
  }
  outcome made;
  double began = 0;
  double until = 0;
  double cpu = 0;
  const auto go = [&]() noexcept {
    began = wall_s();
    cpu = process_cpu_s();
    until = began + chosen.seconds;
  };
  std::barrier begin(static_cast<std::ptrdiff_t>(each.size()), go);
  std::mutex mutex;
  std::exception_ptr failure;
  std::vector<std::thread> threads;
  for (accelerator& one : each) {
    threads.emplace_back([&] {
      try {
        one.run(begin, until);
      } catch (...) {
        const std::lock_guard lock(mutex);
        if (!failure) failure = std::current_exception();
        begin.arrive_and_drop();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  if (failure) std::rethrow_exception(failure);
  made.wall_s = wall_s() - began;
  made.cpu_s = process_cpu_s() - cpu;
  for (const accelerator& one : each) {
    made.utilisation += one.utilisation() / static_cast<double>(each.size());
    made.steps += one.steps();
  }
  made.bytes_per_s =
      static_cast<double>(made.steps * chosen.shape.batch_size * chosen.shape.sample_bytes) / made.wall_s;
  made.direct = each.front().stats().reader.direct.use;
  return made;
}

void report(const settings& chosen, const outcome& got) {
  const double cpu_per_step = got.cpu_s / static_cast<double>(got.steps);
  // What a core would hold if its time were all there is to it.
  const double bound = chosen.step_s() / chosen.shape.utilisation_least / cpu_per_step;
  const bool holds = got.utilisation >= chosen.shape.utilisation_least;
  if (chosen.json) {
    const nlohmann::ordered_json line = {{"workload", chosen.shape.name},
                                         {"accelerator", chosen.h100 ? "h100" : "a100"},
                                         {"accelerators", chosen.accelerators},
                                         {"cache", chosen.cold ? "cold" : "warm"},
                                         {"direct", got.direct},
                                         {"utilisation", got.utilisation},
                                         {"utilisation_least", chosen.shape.utilisation_least},
                                         {"steps", got.steps},
                                         {"wall_s", got.wall_s},
                                         {"cpu_s", got.cpu_s},
                                         {"cpu_s_per_step", cpu_per_step},
                                         {"accelerators_by_cpu", bound},
                                         {"bytes_per_s", got.bytes_per_s}};
    std::printf("%s\n", line.dump().c_str());
    return;
  }
  std::printf(
      "%-9s %u %s, %s: utilisation %.3f, %s the rule's %.2f; %.2f GB/s; %.2f of a core, by whose time alone it "
      "would hold %.1f\n",
      std::string(chosen.shape.name).c_str(), chosen.accelerators, chosen.h100 ? "H100" : "A100",
      chosen.cold ? "cold (O_DIRECT)" : "page cache warm", got.utilisation, holds ? "above" : "BELOW",
      chosen.shape.utilisation_least, got.bytes_per_s * 1e-9, got.cpu_s / got.wall_s, bound);
}

void run(settings chosen) {
  std::optional<testing::temporary_directory> scratch;
  if (chosen.toy) {
    scratch.emplace();
    chosen.folder = scratch->path().string();
  }
  stay_on_core(chosen.core);
  for (workload shape : workloads) {
    if (!chosen.every_workload && shape.name != chosen.shape.name) continue;
    if (chosen.toy) {
      shape.sample_bytes /= 100;
      shape.kept_bytes /= 100;
      shape.h100_s /= 50;
      shape.samples_per_file = std::min<std::uint64_t>(shape.samples_per_file, 50);
      shape.batch_size = std::min<std::uint32_t>(shape.batch_size, 40);
    }
    chosen.shape = shape;
    if (chosen.make || chosen.toy) make_data(chosen);
    if (chosen.make) continue;
    const outcome got = measure(chosen);
    if (got.steps == 0) throw error(errc::corrupt, "no accelerator made a step");
    report(chosen, got);
  }
}

settings parse(int count, char** words) {
  settings chosen;
  const auto one_of = [](std::string_view name, std::string_view first, std::string_view second, bool& is_second) {
    return option(name, [=, &is_second](std::string_view given) {
      if (given != first && given != second) {
        throw error(errc::usage, str_cat(name, " is '", given, "'; give ", first, " or ", second));
      }
      is_second = given == second;
    });
  };
  read_options(
      count, words,
      {{"FOLDER", chosen.folder},
       {"--workload",
        [&](std::string_view given) {
          const auto* const known = std::find_if(workloads.begin(), workloads.end(),
                                                 [&](const workload& each) { return each.name == given; });
          if (known == workloads.end()) {
            throw error(errc::usage, str_cat("--workload is '", given, "'; give unet3d, resnet50 or cosmoflow"));
          }
          chosen.shape = *known;
          chosen.every_workload = false;
        }},
       one_of("--accelerator", "a100", "h100", chosen.h100),
       {"--accelerators", chosen.accelerators},
       one_of("--cache", "warm", "cold", chosen.cold),
       {"--seconds", chosen.seconds},
       {"--core", [&](std::string_view value) { chosen.core = value == "0" ? 0 : number<int>("--core", value); }},
       {"--make", chosen.make},
       {"--json", chosen.json},
       {"--toy", [&] {
          chosen.toy = true;
          chosen.accelerators = 2;
          chosen.seconds = 0.2;
        }}});
  if (chosen.folder.empty() && !chosen.toy) throw error(errc::usage, "give a FOLDER for the data, and --make once");
  return chosen;
}

}  // namespace
}  // namespace leat::benchmarks

int main(int count, char** words) {
  using namespace leat::benchmarks;
  return run_benchmark("storage_benchmark", [&] {
    const settings chosen = parse(count, words);
    if (!chosen.json) std::printf("%s\n", machine().c_str());
    run(chosen);
  });
}
