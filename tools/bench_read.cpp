#include "tools/bench_read.hpp"

#include "async/histogram.hpp"
#include "base/as_absl.hpp"
#include "base/clock.hpp"
#include "base/text.hpp"
#include "io/arena/arena.hpp"
#include "io/arena/budget_refusal.hpp"
#include "io/files/queue_depth.hpp"
#include "io/ring/io_threads.hpp"
#include "tools/bench_drive.hpp"
#include "tools/bench_extents.hpp"
#include "tools/bench_file.hpp"
#include "tools/bench_fio.hpp"
#include "tools/human.hpp"
#include "tools/page_cache.hpp"
#include "tools/process.hpp"

#include <leat/error.hpp>
#include <leat/read_queue.hpp>
#include <leat/units.hpp>

#include <absl/strings/str_format.h>
#include <absl/strings/str_split.h>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/use_future.hpp>
#include <sys/stat.h>

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstring>
#include <deque>
#include <exception>
#include <fstream>
#include <future>
#include <limits>
#include <numeric>
#include <span>
#include <thread>
#include <utility>

namespace leat::tools {

using namespace leat::literals;

namespace {

constexpr std::uint64_t page_bytes = 4096;
constexpr std::uint64_t parts_of_random = 16;  // of a pass, after each of which the page cache is emptied

std::uint64_t mix(std::uint64_t x) noexcept {
  x += 0x9E3779B97F4A7C15U;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9U;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBU;
  return x ^ (x >> 31);
}

double machine_cpu_s() {
  std::ifstream file("/proc/stat");
  std::string line;
  std::getline(file, line);
  return busy_cpu_s(line, static_cast<double>(::sysconf(_SC_CLK_TCK)));
}

/// What all threads share.
struct bench_run {
  explicit bench_run(const read_places& from) : places(from) {}
  const read_places& places;
  const page_cache_of* cache = nullptr;  // that is read through
  std::uint64_t drop_after_bytes = 0;
  bool verify = false;
  std::uint64_t from_ns = 0;
  std::uint64_t until_ns = 0;
  std::atomic<std::uint64_t> bytes_with_ramp{0};
  std::atomic<std::uint64_t> next{0};
  std::atomic<std::uint64_t> reads{0};
  std::atomic<std::uint64_t> bytes{0};
  std::atomic<bool> failed{false};
  async::histogram latency;
};

asio::awaitable<void> open_all(reader& disk, const std::vector<std::string>& paths, std::vector<reader::file>& files) {
  for (const std::string& path : paths) files.push_back(co_await disk.open(path, asio::use_awaitable));
}

/// A reader with the files of the run, and memory for all its reads.
struct line {
  line(const std::vector<std::string>& paths, std::size_t memory_bytes, const reader_options& options)
      : disk(memory_bytes, options) {
    asio::co_spawn(disk.get_executor(), open_all(disk, paths, files), asio::use_future).get();
  }
  /// And one read into it, before anything is timed: the first one opens its file and registers the buffer, as fio does
  /// before its own clock begins.
  void take_memory(std::uint32_t depth, std::size_t bytes) {
    memory = disk.lease(depth * bytes, asio::use_future).get();
    const std::uint64_t page = std::min(files.front().size_bytes, page_bytes);
    disk.read(files.front(), 0, page, memory, asio::use_future).get();
  }

  reader disk;
  std::vector<reader::file> files;
  lease memory;
};

/// The page cache serves no byte twice: whoever reads past the next mark drops it.
void drop_what_was_read(bench_run& shared, std::uint64_t bytes) {
  const std::uint64_t before = shared.bytes_with_ramp.fetch_add(bytes, std::memory_order_relaxed);
  if (before / shared.drop_after_bytes != (before + bytes) / shared.drop_after_bytes) shared.cache->drop();
}

void verify_bytes(const read_completion& read, bench_run& shared) {
  if (const auto wrong = first_wrong_byte(read.data, read.offset)) {
    shared.failed.store(true);
    throw error(errc::corrupt, str_cat("--verify: a read of ", read.bytes, " bytes at ", read.offset,
                                       " has not what --create wrote, from byte ", *wrong,
                                       " of the file on: the file was changed, or its drive gives wrong bytes"));
  }
}

/// Keeps `depth` reads in flight until the time is over. On the queue's own executor, where nothing hops between threads.
/// A read's latency is from the push to when it is given back, with those that ended beside it.
asio::awaitable<void> drive(line& on, std::uint32_t depth, bench_run& shared) {
  const std::size_t slot_bytes = shared.places.lease_bytes();
  read_queue queue = on.disk.queue({.reads_max = depth});
  std::vector<std::uint64_t> began_ns(depth);
  std::vector<std::uint64_t> idle(depth);  // slots
  std::iota(idle.begin(), idle.end(), std::uint64_t{0});
  std::vector<read_request> next;
  next.reserve(depth);
  for (std::uint64_t now_ns = leat::now_ns();;) {
    if (now_ns < shared.until_ns && !shared.failed.load(std::memory_order_relaxed)) {
      std::uint64_t n = shared.next.fetch_add(idle.size(), std::memory_order_relaxed);
      for (const std::uint64_t slot : idle) {
        const read_places::place place = shared.places.at(n++);
        began_ns[slot] = now_ns;
        next.push_back({on.files[place.file], place.offset, place.bytes,
                        on.memory.bytes().subspan(slot * slot_bytes, slot_bytes), slot});
      }
      idle.clear();
      queue.push(next);
      next.clear();
    }
    const std::span<const read_completion> ended = co_await queue.completed(asio::deferred);
    if (ended.empty()) co_return;
    now_ns = leat::now_ns();
    std::uint64_t bytes = 0;
    const bool counts = now_ns >= shared.from_ns;
    for (const read_completion& each : ended) {
      if (each.failure != 0) {
        shared.failed.store(true);
        throw error(queue.explain(each));
      }
      if (shared.verify) verify_bytes(each, shared);
      if (counts) shared.latency.record(now_ns - began_ns[each.tag]);
      bytes += each.bytes;
      idle.push_back(each.tag);
    }
    if (shared.cache != nullptr) drop_what_was_read(shared, bytes);
    if (!counts) continue;
    shared.reads.fetch_add(ended.size(), std::memory_order_relaxed);
    shared.bytes.fetch_add(bytes, std::memory_order_relaxed);
  }
}

}  // namespace

std::string_view name(read_pattern pattern) noexcept {
  constexpr std::string_view names[] = {"random", "sequential", "extents"};
  return names[static_cast<std::size_t>(pattern)];
}

read_places::read_places(read_pattern pattern, const std::vector<reader::file>& files,
                         const std::vector<std::string>& paths, std::uint64_t block_bytes)
    : pattern_(pattern),
      block_bytes_(block_bytes),
      step_bytes_(pattern == read_pattern::random ? page_bytes : block_bytes),
      // A block that is no multiple of a page may begin anywhere in one.
      lease_bytes_(reader::lease_bytes(block_bytes % page_bytes == 0 ? 0 : page_bytes - 1, block_bytes)) {
  std::uint64_t count = 0;
  for (std::size_t k = 0; k < files.size(); ++k) {
    if (files[k].size_bytes == 0) {
      throw error(errc::usage, str_cat(paths[k], " has no bytes; of a device give a file that lies on it (--create)"));
    }
    if (files[k].size_bytes < block_bytes) {
      throw error(errc::usage,
                  str_cat(paths[k], " has ", bytes_text(files[k].size_bytes), ", less than a block of ",
                          bytes_text(block_bytes), "; give a smaller --block or a larger file (--create)"));
    }
    ends_.push_back(count += (files[k].size_bytes - block_bytes) / step_bytes_ + 1);
    bytes_of_pass_ += files[k].size_bytes;
  }
}

read_places::read_places(std::span<const place> listed) : listed_(listed) {
  for (const place& each : listed) {
    lease_bytes_ = std::max(lease_bytes_, reader::lease_bytes(each.offset, each.bytes));
    bytes_of_pass_ += each.bytes;
  }
}

read_places::place read_places::at(std::uint64_t n) const noexcept {
  if (!listed_.empty()) return listed_[n % listed_.size()];
  const std::uint64_t chosen = (pattern_ == read_pattern::random ? mix(n) : n) % ends_.back();
  const auto file = static_cast<std::size_t>(std::upper_bound(ends_.begin(), ends_.end(), chosen) - ends_.begin());
  return {file, (chosen - (file == 0 ? 0 : ends_[file - 1])) * step_bytes_, block_bytes_};
}

double busy_cpu_s(std::string_view stat_line, double ticks_per_s) {
  // cpu user nice system idle iowait irq softirq steal guest guest_nice; guests are counted in user already.
  const std::vector<std::string> words = absl::StrSplit(as_absl(stat_line), ' ', absl::SkipEmpty());
  if (words.size() < 8 || words[0] != "cpu" || ticks_per_s <= 0) return 0;
  double ticks = 0;
  for (const std::size_t k : {1U, 2U, 3U, 6U, 7U}) ticks += std::strtod(words[k].c_str(), nullptr);
  return ticks / ticks_per_s;
}

namespace {

/// The depth that keeps so many reads in the kernel: a ring counts the parts that it cuts them into.
std::uint32_t ring_depth(std::uint32_t reads, std::size_t read_bytes) {
  const std::size_t parts = (read_bytes + io::chunk_bytes_max - 1) / io::chunk_bytes_max;
  return static_cast<std::uint32_t>(std::min<std::size_t>(reads * parts, 4096));
}

constexpr std::uint64_t ring_patience_ns = 1'000'000'000;
constexpr std::chrono::milliseconds ring_try_again{20};

bool has_ring(const line& one) { return one.disk.report().backend.use == "io_uring"; }

/// Whether locked memory is what a ring is refused for: a reader says so by the name of the errno.
bool wants_memory(std::string_view why) { return why.find("(ENOMEM)") != std::string_view::npos; }

/// Makes a line. The kernel gives the locked memory of rings back when it gets to it, and tells nobody: all there is to do
/// is to ask again until `until_ns`.
void add_line(std::deque<line>& lines, const std::vector<std::string>& paths, std::size_t memory_bytes,
              const reader_options& options, std::uint64_t until_ns) {
  for (;; std::this_thread::sleep_for(ring_try_again)) {
    const bool last = options.backend == read_backend::preadv || now_ns() >= until_ns;
    try {
      const line& made = lines.emplace_back(paths, memory_bytes, options);
      if (last || has_ring(made) || !wants_memory(made.disk.report().backend.why)) return;
      lines.pop_back();
    } catch (const error& refused) {  // io_uring was asked for
      if (last || !wants_memory(refused.what())) throw;
    }
  }
}

/// Readers with the files open, one for each thread.
std::deque<line> open_lines(const std::vector<std::string>& paths, const read_settings& asked, std::size_t slot_bytes,
                            std::uint32_t rings_before) {
  const reader_options options{.backend = asked.backend,
                               .registered_buffers = asked.registered_buffers,
                               .huge_pages = asked.huge_pages,
                               .direct = asked.direct,
                               .queue_depth = ring_depth(asked.depth, slot_bytes)};
  std::deque<line> lines;
  // Whole pieces, which huge pages fit into.
  constexpr std::size_t piece = io::arena::piece_bytes;
  const std::size_t memory_bytes = (std::size_t{asked.depth} * slot_bytes + piece - 1) / piece * piece;
  const std::uint64_t until_ns = now_ns() + ring_patience_ns;
  for (std::uint32_t k = 0; k < asked.threads; ++k) {
    add_line(lines, paths, memory_bytes, options, k < rings_before ? until_ns : 0);
  }
  return lines;
}

/// What is read of each file: of a device as a whole its size, which a reader does not know, or what was asked for.
void set_sizes(const std::vector<std::string>& paths, std::uint64_t wanted, std::vector<reader::file>& files) {
  for (std::size_t k = 0; k < files.size(); ++k) {
    std::uint64_t& size = files[k].size_bytes;
    if (size == 0) size = block_device_bytes(paths[k]);
    if (size < wanted) {
      throw error(errc::usage, str_cat(paths[k], " has ", bytes_text(size), ", less than --size ", bytes_text(wanted),
                                       "; give a smaller one"));
    }
    if (wanted != 0) size = wanted;
  }
}

/// With the depth that is used.
read_settings settled(read_settings asked) {
  if (asked.depth == 0) asked.depth = io::queue_depth::of(asked.block_bytes);
  return asked;
}
read_settings settled(read_settings asked, const epoch_reads& epoch, std::size_t slot_bytes) {
  constexpr std::size_t memory_bytes_max = 1_GiB;
  asked.pattern = read_pattern::extents;
  asked.block_bytes = epoch.read_bytes_mean();
  if (asked.depth == 0) {
    const auto fit =
        static_cast<std::uint32_t>(std::clamp<std::size_t>(memory_bytes_max / asked.threads / slot_bytes, 1, 4096));
    asked.depth = std::min(io::queue_depth::of(asked.block_bytes), fit);
  }
  return asked;
}

reader_report report_of(const std::deque<line>& lines) {
  std::vector<reader_report> reports;
  for (const line& each : lines) reports.push_back(each.disk.report());
  return together(reports);
}

void set_latency(const async::histogram::summary& latency, read_row& row) {
  const auto us = [](std::uint64_t ns) { return static_cast<double>(ns) * 1e-3; };
  row.p50_us = us(latency.p50_ns);
  row.p90_us = us(latency.p90_ns);
  row.p99_us = us(latency.p99_ns);
  row.p999_us = us(latency.p999_ns);
  row.max_us = us(latency.max_ns);
  for (const std::uint64_t bound : async::histogram::bounds_ns) row.latency.push_back({us(bound), 0});
  row.latency.push_back({std::numeric_limits<double>::infinity(), 0});
  for (std::size_t k = 0; k < row.latency.size(); ++k) row.latency[k].reads = latency.between[k];
}

/// What is read twice may come from the page cache the second time. A pass in order reads nothing twice; at random a part of it
/// does so rarely (1/32 of what is read, with 1/16 of the files in the cache at most).
std::uint64_t drop_after(const read_places& places, read_pattern pattern) {
  return std::max<std::uint64_t>(places.bytes_of_pass() / (pattern == read_pattern::random ? parts_of_random : 1), 1);
}

/// Keeps all lines busy for asked.seconds.
read_row run_lines(const std::vector<std::string>& paths, std::deque<line>& lines, const read_places& places,
                   const read_settings& asked) {
  for (line& each : lines) each.take_memory(asked.depth, places.lease_bytes());
  read_row row;
  row.asked = asked;
  bench_run shared(places);
  shared.verify = asked.verify;
  const page_cache_of cache(paths);
  cache.write_out();
  cache.drop();
  cached_run cached;
  const bool through_cache = report_of(lines).direct.use != "on";
  if (through_cache) {
    shared.cache = &cache;
    shared.drop_after_bytes = drop_after(places, asked.pattern);
    cached.kept = cache.bytes();
    for (const reader::file& each : lines.front().files) cached.file_bytes += each.size_bytes;
  }
  const std::optional<std::uint64_t> from_drives = bytes_from_drives();
  std::vector<std::future<void>> ends;
  const auto start = [&] {
    shared.from_ns = now_ns() + static_cast<std::uint64_t>(asked.ramp_seconds * 1e9);
    shared.until_ns = shared.from_ns + static_cast<std::uint64_t>(asked.seconds * 1e9);
    for (line& each : lines) {
      ends.push_back(asio::co_spawn(each.disk.get_executor(), drive(each, asked.depth, shared), asio::use_future));
    }
  };
  if (asked.ramp_seconds > 0) {
    start();
    std::this_thread::sleep_for(std::chrono::duration<double>(asked.ramp_seconds));
  }
  const double machine_cpu = machine_cpu_s();  // reading /proc/stat takes some of ours
  const double cpu = cpu_seconds();
  const std::uint64_t counted_from = now_ns();
  if (ends.empty()) start();
  for (const std::future<void>& each : ends) each.wait();
  row.wall_s = static_cast<double>(now_ns() - counted_from) * 1e-9;
  row.cpu_s = cpu_seconds() - cpu;
  if (row.wall_s >= 1) row.system_cpu_s = machine_cpu_s() - machine_cpu;
  for (std::future<void>& each : ends) each.get();  // throws what a read threw

  row.reads = shared.reads.load();
  row.bytes = shared.bytes.load();
  set_latency(shared.latency.summarize(), row);
  for (const line& each : lines) row.rings += has_ring(each) ? 1 : 0;
  row.fallbacks = report_of(lines);
  if (through_cache) {
    cached.bytes = shared.bytes_with_ramp.load();
    if (const auto now = bytes_from_drives(); now && from_drives) cached.drive = *now - *from_drives;
    // Of a file system without a device of its own the kernel may count nothing.
    if (cached.drive == 0U && drive_of(paths.front()).empty()) cached.drive.reset();
    row.warm = why_warm(cached);
  }
  return row;
}

}  // namespace

reader_report together(std::span<const reader_report> each) {
  reader_report sum = each.front();
  for (const reader_report& other : each.subspan(1)) {
    io::join_backends(sum.backend, other.backend);
    io::join_fallbacks(sum.registered_buffers, other.registered_buffers);
    io::join_fallbacks(sum.direct, other.direct);
    io::join_fallbacks(sum.huge_pages, other.huge_pages);
  }
  return sum;
}

void mark_off_label(std::vector<read_row>& rows) {
  const auto rank = [](const std::string& use) {
    return use == "preadv" ? 0 : use == "io_uring" ? 2 : 1;  // between them: some threads have a ring
  };
  std::string best = "preadv";
  for (const read_row& row : rows) {
    if (rank(row.fallbacks.backend.use) > rank(best)) best = row.fallbacks.backend.use;
  }
  for (read_row& row : rows) {
    const fallback& backend = row.fallbacks.backend;
    const std::string meant = row.asked.backend == read_backend::preadv ? "preadv"
                              : row.fallback.empty()                    ? best
                                                                        : "io_uring";
    row.off_label = backend.use == meant ? "" : str_cat(backend.use, ", not ", meant, ": ", backend.why);
  }
}

read_row measure_reads(const std::vector<std::string>& paths, const read_settings& asked, std::uint32_t rings_before) {
  const read_settings used = settled(asked);
  std::deque<line> lines = open_lines(paths, used, reader::lease_bytes(page_bytes - 1, used.block_bytes), rings_before);
  for (line& each : lines) set_sizes(paths, used.size_bytes, each.files);
  const read_places places(used.pattern, lines.front().files, paths, used.block_bytes);
  return run_lines(paths, lines, places, used);
}

read_row measure_reads(const epoch_reads& epoch, const read_settings& asked, std::uint32_t rings_before) {
  const read_places places(epoch.reads);
  const read_settings used = settled(asked, epoch, places.lease_bytes());
  std::deque<line> lines = open_lines(epoch.files, used, places.lease_bytes(), rings_before);
  read_row row = run_lines(epoch.files, lines, places, used);
  row.samples_per_read = static_cast<double>(epoch.samples) / static_cast<double>(epoch.reads.size());
  return row;
}

void check_memory(const read_settings& asked, const epoch_reads* epoch, const memory_available& available) {
  if (available.bytes == 0) return;
  const std::uint64_t half = available.bytes / 2;
  const std::uint64_t block = epoch != nullptr ? epoch->read_bytes_max : asked.block_bytes;
  std::uint64_t fits = 0;  // in flight, on all threads together
  read_settings used = asked;
  if (block < half) {  // And no sum below overflows.
    const std::size_t slot_bytes =
        epoch != nullptr ? read_places(epoch->reads).lease_bytes() : reader::lease_bytes(page_bytes - 1, block);
    fits = half / slot_bytes;
    used = epoch != nullptr ? settled(asked, *epoch, slot_bytes) : settled(asked);
  }
  const std::uint64_t lanes = std::uint64_t{used.threads} * std::max(used.depth, 1U);
  if (lanes <= fits) return;
  std::string text = str_cat(epoch != nullptr ? "reads of up to " : "a block of ", bytes_text(block), " x depth ",
                             std::max(used.depth, 1U), " x ", counted(used.threads, "thread", "threads"),
                             " takes more than half of the ", bytes_text(available.bytes), " of memory available (",
                             available.said_by, "); ");
  if (fits >= used.threads) {
    str_append(text, "give --depth ", fits / used.threads, " or less");
  } else if (fits > 0) {
    str_append(text, "give --depth 1 and --threads ", fits, " or fewer");
  } else {
    text += epoch != nullptr ? "it is too little for such samples" : "give a smaller --block";
  }
  throw io::budget_refusal(text);
}

std::vector<std::pair<std::string, read_settings>> without_each_fallback(const read_settings& asked) {
  std::vector<std::pair<std::string, read_settings>> made(5, {std::string(nothing_left_out), asked});
  made[1].first = "unregistered buffers";
  made[1].second.registered_buffers = choice::off;
  made[2].first = "4 KiB pages";
  made[2].second.huge_pages = choice::off;
  made[3].first = "page cache";
  made[3].second.direct = choice::off;
  made[4].first = "preadv";
  made[4].second.backend = read_backend::preadv;
  return made;
}

std::vector<read_settings> sweep_of(const read_settings& asked, bool block_is_asked) {
  std::vector<std::uint64_t> blocks = {4_KiB, 112_KiB, 1_MiB, 8_MiB};
  if (block_is_asked) blocks = {asked.block_bytes};
  std::vector<read_settings> made;
  for (const std::uint64_t block : blocks) {
    for (std::uint32_t depth = 1; depth <= 128; depth *= 2) {
      if (depth > 1 && depth * block > 256_MiB) break;
      made.push_back(asked);
      made.back().block_bytes = block;
      made.back().depth = depth;
    }
  }
  return made;
}

const read_row* smallest_depth(const std::vector<read_row>& rows, std::uint64_t block_bytes, double share) {
  double best = 0;
  for (const read_row& row : rows) {
    if (row.asked.block_bytes == block_bytes && row.is_the_drive()) best = std::max(best, row.gib_per_s());
  }
  const read_row* found = nullptr;
  for (const read_row& row : rows) {
    if (row.asked.block_bytes != block_bytes || !row.is_the_drive() || row.gib_per_s() < share * best) continue;
    if (found == nullptr || row.asked.depth < found->asked.depth) found = &row;
  }
  return found;
}

std::vector<std::string> caveats_of(const std::vector<read_row>& rows) {
  std::vector<std::string> made;
  const auto add = [&made](std::string text) {
    if (std::find(made.begin(), made.end(), text) == made.end()) made.push_back(std::move(text));
  };
  for (const read_row& row : rows) {
    if (!row.off_label.empty()) add(str_cat("not what it is called: ", one_line(row.off_label)));
    if (!row.warm.empty()) add(str_cat("page cache, warm, and not the drive: ", row.warm));
  }
  return made;
}

std::vector<std::string> hole_caveats(const std::vector<std::string>& paths) {
  std::vector<std::string> made;
  for (const std::string& path : paths) {
    struct stat found{};
    if (::stat(path.c_str(), &found) != 0 || !S_ISREG(found.st_mode)) continue;
    const auto size = static_cast<std::uint64_t>(found.st_size);
    const std::optional<std::uint64_t> there = bytes_on_drive(path);
    if (!there || *there >= size) continue;
    made.push_back(str_cat(one_line(path), " has holes: ", bytes_text(*there), " of its ", bytes_text(size),
                           " are on the drive, and the rest is read from nowhere"));
  }
  return made;
}

// fio pays more for a large block on 4 KiB pages than we do on huge ones.
std::vector<std::string> why_unfair(const read_row& row) {
  std::vector<std::string> made;
  if (row.fio && !row.fio->huge_pages && row.fallbacks.huge_pages.use != "off") {
    made.push_back(str_cat("fio had no huge pages and we had: no fair comparison; `sysctl vm.nr_hugepages=",
                           fio_huge_pages(row), "` gives it some"));
  }
  if (row.fio && row.fallbacks.direct.use != "on" && row.asked.pattern == read_pattern::random) {
    made.push_back(str_cat("fio empties the page cache when it begins a pass over the files, and we ", parts_of_random,
                           " times in each: no fair comparison; compare with --direct on"));
  }
  for (std::string& each : caveats_of({row})) made.push_back(std::move(each));
  return made;
}

std::string histogram_text(const read_row& row) {
  std::string text;
  std::uint64_t so_far = 0;
  for (const latency_class& each : row.latency) {
    if (each.reads == 0) continue;
    so_far += each.reads;
    const double share = 100 * static_cast<double>(each.reads) / static_cast<double>(row.reads);
    const std::string below = std::isinf(each.below_us) ? "longer" : "< " + seconds_text(each.below_us * 1e-6);
    text += absl::StrFormat("  %10s %12s %6.2f %% %6.2f %%  %s\n", below, count_text(each.reads), share,
                            100 * static_cast<double>(so_far) / static_cast<double>(row.reads),
                            std::string(static_cast<std::size_t>(share / 2 + 0.5), '#'));
  }
  return text;
}

nlohmann::ordered_json as_json(const read_row& row) {
  nlohmann::ordered_json made = {{"block", row.asked.block_bytes},
                                 {"depth", row.asked.depth},
                                 {"threads", row.asked.threads},
                                 {"pattern", name(row.asked.pattern)},
                                 {"reader", row.fallbacks.backend.use},
                                 {"direct", row.fallbacks.direct.use},
                                 {"registered_buffers", row.fallbacks.registered_buffers.use},
                                 {"huge_pages", row.fallbacks.huge_pages.use},
                                 {"gib_per_s", row.gib_per_s()},
                                 {"iops", row.iops()},
                                 {"p50_us", row.p50_us},
                                 {"p90_us", row.p90_us},
                                 {"p99_us", row.p99_us},
                                 {"p999_us", row.p999_us},
                                 {"max_us", row.max_us},
                                 {"cpu_s_per_gib", row.cpu_s_per_gib()},
                                 {"system_cpu_s_per_gib", nullptr}};
  if (const auto machine = row.system_cpu_s_per_gib()) made["system_cpu_s_per_gib"] = *machine;
  if (row.samples_per_read > 0) made["samples_per_s"] = row.samples_per_s();
  if (!row.fallback.empty()) made["fallback"] = row.fallback;
  if (!row.off_label.empty()) made["off_label"] = row.off_label;
  made["page_cache"] = row.fallbacks.direct.use == "on" ? "not used" : row.warm.empty() ? "cold" : "warm";
  if (!row.warm.empty()) made["why_warm"] = row.warm;
  for (const latency_class& each : row.latency) {
    made["latency"].push_back(
        {{"below_us", std::isinf(each.below_us) ? nlohmann::ordered_json() : nlohmann::ordered_json(each.below_us)},
         {"reads", each.reads}});
  }
  if (row.fio) {
    const std::vector<std::string> unfair = why_unfair(row);
    made["fio"] = {
        {"fair", unfair.empty()},
        {"why", unfair},
        {"gib_per_s", row.fio->gib_per_s},
        {"cpu_s_per_gib", row.fio->cpu_s_per_gib},
        {"ratio_throughput", row.gib_per_s() / row.fio->gib_per_s},
        {"ratio_cpu", row.fio->cpu_s_per_gib > 0 ? nlohmann::ordered_json(row.cpu_s_per_gib() / row.fio->cpu_s_per_gib)
                                                 : nlohmann::ordered_json()}};
  }
  return made;
}

std::string as_table(const std::vector<read_row>& rows) {
  std::size_t widest = std::strlen("reader");
  for (const read_row& row : rows) widest = std::max(widest, row.fallbacks.backend.use.size());
  const int reader = static_cast<int>(widest);
  std::string text = absl::StrFormat("  %8s %5s %7s  %-*s %-6s %-7s %-6s %8s %9s %9s %9s %9s %9s %9s  %s\n", "block",
                                     "depth", "threads", reader, "reader", "direct", "buffers", "huge", "GiB/s", "IOPS",
                                     "p50", "p90", "p99", "p99.9", "max", "CPU s/GiB (machine)");
  const auto took = [](double us) { return seconds_text(us * 1e-6); };
  for (const read_row& row : rows) {
    const auto machine = row.system_cpu_s_per_gib();
    const reader_report& fallbacks = row.fallbacks;
    std::string note = row.fallback.empty() ? "" : "  " + row.fallback;
    if (!row.off_label.empty()) note += "  (not what it is called, see below)";
    if (!row.warm.empty()) note += "  (page cache, warm, see below)";
    text += absl::StrFormat("  %8s %5u %7u  %-*s %-6s %-7s %-6s %8.3f %9s %9s %9s %9s %9s %9s  %.4f (%s)%s\n",
                            bytes_text(row.asked.block_bytes), row.asked.depth, row.asked.threads, reader,
                            fallbacks.backend.use, fallbacks.direct.use, fallbacks.registered_buffers.use,
                            fallbacks.huge_pages.use, row.gib_per_s(),
                            count_text(static_cast<std::uint64_t>(row.iops() + 0.5)), took(row.p50_us),
                            took(row.p90_us), took(row.p99_us), took(row.p999_us), took(row.max_us),
                            row.cpu_s_per_gib(), machine ? absl::StrFormat("%.4f", *machine) : "-", note);
    if (row.fio) {
      text += absl::StrFormat("  %8s %5s %7s  %-*s %-6s %-7s %-6s %8.3f %59s  %.4f; leat / fio: %.2f of its bytes/s",
                              "", "", "", reader, "fio", "", "", "", row.fio->gib_per_s, "", row.fio->cpu_s_per_gib,
                              row.gib_per_s() / row.fio->gib_per_s);
      if (row.fio->cpu_s_per_gib > 0) {
        text += absl::StrFormat(" at %.2f of its CPU", row.cpu_s_per_gib() / row.fio->cpu_s_per_gib);
      }
      text += "\n";
    }
  }
  for (const std::string& each : caveats_of(rows)) str_append(text, "  ", each, "\n");
  return text;
}

}  // namespace leat::tools
