// Does the ring reader read as fast as fio, at no more CPU, and what is it worth beside a plain loop of pread(2)?
//
// Random reads with O_DIRECT of one large file, 112 KiB (a photograph) at depth 32 and 1 MiB at depth 16. The rounds of
// all methods are interleaved: what the machine does beside us hits all of them alike. fio, where it is installed, gets
// the same settings: registered files and buffers, submission and completion in quarters of the depth, and huge pages
// where the machine has some reserved (`sysctl vm.nr_hugepages=64`); ours are transparent and need no reservation.
// What was read is checked: every method reads the same extents once, and the digests must be equal.
//
// Without --file it writes one of --mebibytes to --directory (the temporary one), which is gone however this ends.
//
//     ring_benchmark [--file FILE] [--directory DIR] [--mebibytes 4096] [--rounds 9] [--seconds 1] [--toy]
#include "base/clock.hpp"
#include "benchmarks/arguments.hpp"
#include "benchmarks/measure.hpp"
#include "io/arena/lease_pool.hpp"
#include "io/files/file_table.hpp"
#include "io/files/source.hpp"
#include "io/ring/io_threads.hpp"
#include "tools/bench_fio.hpp"

#include <leat/error.hpp>
#include <leat/reader.hpp>
#include <leat/units.hpp>

#include <sys/stat.h>

#include <fcntl.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <filesystem>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace leat::benchmarks {
namespace {

using namespace leat::literals;

struct settings {
  std::string file;
  std::string directory = std::filesystem::temp_directory_path();
  std::uint64_t file_bytes = 4_GiB;
  int rounds = 9;
  double seconds = 1;
  bool toy = false;
};

struct workload {
  const char* name;
  std::uint64_t bytes;
  unsigned depth;
};

/// What one round of a method did.
struct outcome {
  std::uint64_t bytes = 0;
  double wall_s = 0;
  double cpu_s = 0;
};

std::uint64_t mix(std::uint64_t x) {
  x += 0x9E3779B97F4A7C15U;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9U;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBU;
  return x ^ (x >> 31);
}

/// The n-th extent of a run: random, aligned to 4096 and whole.
std::uint64_t offset_of(std::uint64_t n, std::uint64_t seed, std::uint64_t bytes, std::uint64_t file_bytes) {
  const std::uint64_t places = (file_bytes - bytes) / 4096 + 1;
  return mix(mix(seed) ^ n) % places * 4096;
}

/// Digests of extents in any order: what arrives first need not have been asked first.
class extents_digest {
 public:
  void add(std::uint64_t offset, std::span<const std::byte> data) {
    sum_ += XXH3_64bits_withSeed(data.data(), data.size(), offset);
    ++count_;
  }
  friend bool operator==(const extents_digest&, const extents_digest&) = default;

 private:
  std::uint64_t sum_ = 0;
  std::uint64_t count_ = 0;
};

class method {
 public:
  explicit method(std::string called) : name(std::move(called)) {}
  method(const method&) = delete;
  method& operator=(const method&) = delete;
  virtual ~method() = default;
  virtual outcome run(double seconds, std::uint64_t seed) = 0;
  /// Reads the first `count` extents of the seed; nullopt where it cannot show them.
  virtual std::optional<extents_digest> read_and_digest(std::uint64_t seed, std::uint64_t count) = 0;

  const std::string name;
  figure rate;  // MiB/s
  figure cpu;   // CPU seconds per GiB
};

/// A loop of pread(2) with O_DIRECT into huge pages, on one thread.
class pread_loop final : public method {
 public:
  pread_loop(const std::string& file, std::uint64_t file_bytes, const workload& what)
      : method("pread, 1 thread"),
        file_bytes_(file_bytes),
        bytes_(what.bytes),
        arena_(std::make_shared<io::arena>(io::arena_options{.bytes_max = 16_MiB})),
        pool_(arena_, {.bytes_max = 16_MiB}),
        memory_(std::move(*pool_.try_lease(what.bytes))),
        descriptor_(::open(file.c_str(), O_RDONLY | O_DIRECT | O_CLOEXEC)) {
    if (descriptor_ < 0) throw error(errc::io, file + ": " + std::strerror(errno));
  }
  ~pread_loop() override { ::close(descriptor_); }

  outcome run(double seconds, std::uint64_t seed) override {
    const double begun = wall_s();
    const double cpu_begun = process_cpu_s();
    std::uint64_t n = 0;
    while (wall_s() < begun + seconds) read(offset_of(n++, seed, bytes_, file_bytes_));
    return {n * bytes_, wall_s() - begun, process_cpu_s() - cpu_begun};
  }
  std::optional<extents_digest> read_and_digest(std::uint64_t seed, std::uint64_t count) override {
    extents_digest digest;
    for (std::uint64_t n = 0; n < count; ++n) {
      const std::uint64_t offset = offset_of(n, seed, bytes_, file_bytes_);
      read(offset);
      digest.add(offset, memory_.bytes());
    }
    return digest;
  }

 private:
  void read(std::uint64_t offset) {
    const ssize_t result = ::pread(descriptor_, memory_.data(), bytes_, static_cast<off_t>(offset));
    if (result != static_cast<ssize_t>(bytes_)) throw error(errc::io, "pread read less than was asked for");
  }

  const std::uint64_t file_bytes_;
  const std::uint64_t bytes_;
  const std::shared_ptr<io::arena> arena_;
  io::lease_pool pool_;
  io::lease memory_;
  const int descriptor_;
};

/// The reader, driven as the loader drives it: `depth` operations, each started again when it is done; those that are
/// done in one turn of the loop start together in the next.
class leat_reads final : public method {
 public:
  leat_reads(std::string called, const std::string& file, std::uint64_t file_bytes, const workload& what,
             reader_options options)
      : method(std::move(called)),
        file_bytes_(file_bytes),
        bytes_(what.bytes),
        arena_(std::make_shared<io::arena>(io::arena_options{.bytes_max = 64_MiB})),
        pool_(arena_, {.bytes_max = 64_MiB}),
        threads_(with_depth(options, what.depth), arena_) {
    files_.add(file, file_bytes);
    source_ = threads_.loop(0).connect_files(files_);
    for (unsigned i = 0; i < what.depth; ++i) {
      operation& made = operations_.emplace_back();
      made.owner = this;
      made.memory = std::move(*pool_.try_lease(bytes_));
      made.into = io::target_of(made.memory);
      made.bytes = bytes_;
      made.done = [](io::read_operation& ended) noexcept {
        auto& self = static_cast<operation&>(ended);
        self.owner->on_done(self);
      };
    }
    idle_.reserve(what.depth);
  }
  ~leat_reads() override { source_.reset(); }

  outcome run(double seconds, std::uint64_t seed) override {
    digest_.reset();
    const double begun = wall_s();
    const double cpu_begun = process_cpu_s();
    go(seed, ~std::uint64_t{0}, now_ns() + static_cast<std::uint64_t>(seconds * 1e9));
    return {told_ * bytes_, wall_s() - begun, process_cpu_s() - cpu_begun};
  }
  std::optional<extents_digest> read_and_digest(std::uint64_t seed, std::uint64_t count) override {
    digest_.emplace();
    go(seed, count, ~std::uint64_t{0});
    return digest_;
  }
  [[nodiscard]] reader_report report() const { return threads_.report(); }

 private:
  struct operation : io::read_operation {
    leat_reads* owner = nullptr;
    io::lease memory;
  };

  static reader_options with_depth(reader_options options, unsigned depth) {
    options.queue_depth = depth;
    options.direct = choice::on;
    return options;
  }

  void go(std::uint64_t seed, std::uint64_t count, std::uint64_t until_ns) {
    seed_ = seed;
    count_ = count;
    until_ns_ = until_ns;
    next_ = told_ = 0;
    failure_ = 0;
    in_flight_ = 0;
    idle_.clear();
    for (operation& one : operations_) idle_.push_back(&one);
    finished_ = {};
    std::future<void> finished = finished_.get_future();
    threads_.loop(0).post([](void* self) noexcept { static_cast<leat_reads*>(self)->start_idle(); }, this);
    finished.wait();
    if (failure_ != 0) throw error(errc::io, std::string("a read failed: ") + std::strerror(failure_));
  }

  void start_idle() noexcept {
    posted_ = false;
    const bool more = failure_ == 0 && now_ns() < until_ns_;
    std::size_t started = 0;
    for (; more && started < idle_.size() && next_ < count_; ++started) {
      operation& one = static_cast<operation&>(*idle_[started]);
      one.offset = offset_of(next_++, seed_, bytes_, file_bytes_);
    }
    if (started != 0) {
      in_flight_ += started;
      source_->start({idle_.data(), started});
      idle_.erase(idle_.begin(), idle_.begin() + static_cast<std::ptrdiff_t>(started));
    } else if (in_flight_ == 0) {
      finished_.set_value();
    }
  }

  void on_done(operation& ended) noexcept {
    ++told_;
    --in_flight_;
    if (ended.failure != 0) failure_ = ended.failure;
    if (digest_ && ended.failure == 0) digest_->add(ended.offset, ended.data);
    idle_.push_back(&ended);
    if (posted_) return;
    posted_ = true;
    threads_.loop(0).post([](void* self) noexcept { static_cast<leat_reads*>(self)->start_idle(); }, this);
  }

  const std::uint64_t file_bytes_;
  const std::uint64_t bytes_;
  const std::shared_ptr<io::arena> arena_;
  io::lease_pool pool_;
  io::file_table files_;
  io::io_threads threads_;
  std::unique_ptr<io::source> source_;
  std::deque<operation> operations_;

  // The I/O thread's, while a run lasts.
  std::vector<io::read_operation*> idle_;
  std::uint64_t seed_ = 0;
  std::uint64_t count_ = 0;
  std::uint64_t until_ns_ = 0;
  std::uint64_t next_ = 0;
  std::uint64_t told_ = 0;
  std::size_t in_flight_ = 0;
  int failure_ = 0;
  bool posted_ = false;
  std::optional<extents_digest> digest_;
  std::promise<void> finished_;
};

/// By `leat bench read`'s own hands: the same settings for it wherever we stand beside it.
class fio final : public method {
 public:
  static bool installed() { return std::system("fio --version > /dev/null 2>&1") == 0; }

  fio(const std::string& file, const workload& what) : fio(file, like(what)) {}

  outcome run(double seconds, std::uint64_t /*seed*/) override {
    row_.asked.seconds = seconds;
    std::atomic<int> running{0};
    const tools::fio_figures found = tools::run_fio(tools::fio_arguments({file_}, row_, huge_), running);
    return {static_cast<std::uint64_t>(found.gib_per_s * (1 << 30)), 1, found.cpu_s_per_gib * found.gib_per_s};
  }
  std::optional<extents_digest> read_and_digest(std::uint64_t, std::uint64_t) override { return std::nullopt; }

 private:
  fio(const std::string& file, const tools::read_row& row) : fio(file, row, tools::free_huge_pages()) {}
  fio(std::string file, const tools::read_row& row, std::uint64_t huge_pages)
      : method(huge_pages >= tools::fio_huge_pages(row) ? "fio, huge pages" : "fio, 4 KiB pages"),
        file_(std::move(file)),
        row_(row),
        huge_(huge_pages >= tools::fio_huge_pages(row)) {}

  static tools::read_row like(const workload& what) {
    tools::read_row row;
    row.asked.block_bytes = what.bytes;
    row.asked.depth = what.depth;
    row.fallbacks.direct.use = "on";
    return row;
  }

  const std::string file_;
  tools::read_row row_;
  const bool huge_;
};

/// A file of random bytes, written past the page cache. It has no name, so that nothing is left of it however we end; others,
/// fio too, open it as /proc/<pid>/fd/<n>.
class scratch_file {
 public:
  scratch_file(const std::string& directory, std::uint64_t bytes) {
    const std::string name = directory + "/leat-ring-benchmark-" + std::to_string(::getpid());
    std::fprintf(
        stderr,
        "ring_benchmark: writing %llu MiB of random bytes to %s, gone when this ends; --directory DIR puts them "
        "elsewhere, --mebibytes N makes them fewer, --file FILE reads a file that is there\n",
        static_cast<unsigned long long>(bytes >> 20), directory.c_str());
    file_ = ::open(name.c_str(), O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600);
    if (file_ < 0) throw error(errc::io, name + ": " + std::strerror(errno) + "; give --directory another one");
    ::unlink(name.c_str());
    path_ = "/proc/" + std::to_string(::getpid()) + "/fd/" + std::to_string(file_);
    std::vector<std::uint64_t> block(1_MiB / sizeof(std::uint64_t));
    for (std::uint64_t at = 0; at < bytes; at += 1_MiB) {
      for (std::size_t i = 0; i < block.size(); ++i) block[i] = mix(at + i);
      if (::write(file_, block.data(), 1_MiB) != static_cast<ssize_t>(1_MiB)) {
        const int failure = errno;
        ::close(file_);
        throw error(errc::io, directory + ": " + std::strerror(failure) + "; give --directory one with more room");
      }
    }
    ::fsync(file_);
  }
  ~scratch_file() { ::close(file_); }
  scratch_file(const scratch_file&) = delete;
  scratch_file& operator=(const scratch_file&) = delete;
  [[nodiscard]] const std::string& path() const noexcept { return path_; }

 private:
  int file_ = -1;
  std::string path_;
};

void measure(const settings& chosen, const std::string& file, const workload& what) {
  const std::uint64_t file_bytes = std::filesystem::file_size(file);
  std::deque<std::unique_ptr<method>> methods;
  methods.push_back(std::make_unique<pread_loop>(file, file_bytes, what));
  auto ring = std::make_unique<leat_reads>("leat", file, file_bytes, what, reader_options{});
  const reader_report report = ring->report();
  method& ours = *ring;
  methods.push_back(std::move(ring));
  methods.push_back(std::make_unique<leat_reads>("leat, unregistered", file, file_bytes, what,
                                                 reader_options{.registered_buffers = choice::off}));
  methods.push_back(std::make_unique<leat_reads>("leat, preadv", file, file_bytes, what,
                                                 reader_options{.backend = read_backend::preadv}));
  method* theirs = nullptr;
  if (!chosen.toy && fio::installed()) {
    methods.push_back(std::make_unique<fio>(file, what));
    theirs = methods.back().get();
  }

  std::optional<extents_digest> right;
  for (const auto& each : methods) {
    const auto found = each->read_and_digest(1, 200);
    if (!found) continue;
    if (!right) right = found;
    if (*found != *right) throw error(errc::io, each->name + " read other bytes than " + methods.front()->name);
  }
  for (int round = 0; round < chosen.rounds; ++round) {
    for (const auto& each : methods) {
      const outcome did = each->run(chosen.seconds, static_cast<std::uint64_t>(round) + 2);
      each->rate.add(static_cast<double>(did.bytes) / (1 << 20) / did.wall_s);
      each->cpu.add(did.cpu_s / (static_cast<double>(did.bytes) / (1 << 30)));
    }
  }

  std::printf("%s random O_DIRECT, depth %u: %s (%s); buffers %s; pages %s\n", what.name, what.depth,
              report.backend.use.c_str(), report.backend.why.c_str(), report.registered_buffers.use.c_str(),
              report.huge_pages.use.c_str());
  std::printf("  %-20s %8s  %-17s %10s  %s\n", "", "MiB/s", "(low - high)", "CPU s/GiB", "(low - high)");
  for (const auto& each : methods) {
    std::printf("  %-20s %8.0f  (%.0f - %.0f)%*s %10.4f  (%.4f - %.4f)\n", each->name.c_str(), each->rate.median(),
                each->rate.low(), each->rate.high(), 3, "", each->cpu.median(), each->cpu.low(), each->cpu.high());
  }
  if (theirs != nullptr) {
    std::printf("  leat / fio: %.2f of its bytes/s at %.2f of its CPU\n", ours.rate.median() / theirs->rate.median(),
                ours.cpu.median() / theirs->cpu.median());
  }
}

settings parse(int count, char** words) {
  settings chosen;
  std::uint64_t mebibytes = chosen.file_bytes / 1_MiB;
  read_options(count, words,
               {{"--file", chosen.file},
                {"--directory", chosen.directory},
                {"--mebibytes", mebibytes},
                {"--rounds", chosen.rounds},
                {"--seconds", chosen.seconds},
                {"--toy", [&] {
                   chosen.toy = true;
                   mebibytes = 16;
                   chosen.rounds = 1;
                   chosen.seconds = 0.05;
                 }}});
  chosen.file_bytes = mebibytes * 1_MiB;
  return chosen;
}

void run(const settings& chosen) {
  std::optional<scratch_file> scratch;
  if (chosen.file.empty()) scratch.emplace(chosen.directory, chosen.file_bytes);
  const std::string file = scratch ? scratch->path() : chosen.file;
  static_cast<void>(drop_from_page_cache({file}));
  std::printf(
      "%s; %s, file of %llu MiB, out of the page cache; %d rounds of %.2f s, interleaved; median (low - high)\n",
      machine().c_str(), file_system(file).c_str(),
      static_cast<unsigned long long>(std::filesystem::file_size(file) >> 20), chosen.rounds, chosen.seconds);
  measure(chosen, file, {"112 KiB", 112_KiB, 32});
  measure(chosen, file, {"1 MiB", 1_MiB, 16});
}

}  // namespace
}  // namespace leat::benchmarks

int main(int count, char** words) {
  using namespace leat::benchmarks;
  return run_benchmark("ring_benchmark", [&] { run(parse(count, words)); });
}
