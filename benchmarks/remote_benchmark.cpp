// What do samples of a store cost over the network and by a cache, in CPU and where each answer takes long?
//
// A set of tar shards is read once an epoch through a loader: as files, as objects of a store over HTTP, and by way of a cache that is empty,
// has room for half of it and was filled before, or holds all of it; in exact order, in order, and by windows of two shards; from a store that answers at once and from one that waits
// before each answer (without making others wait). The store is a process of its own on this machine that sends files from the page cache,
// so that what it costs is not in the figures; its CPU is this machine's all the same, and so samples/s are. Requests are signed as S3 has
// it; nobody checks that. Nothing is decoded.
//
// Files and cache are read from the page cache, where reads have brought both.
//
// Before the rounds each line's digest is compared with that of the files in the same order. Rounds are interleaved, figures are medians
// with their lowest and highest. CPU is that of this process from the loader's construction to its end, its objects' opening included.
// The first line is the floor: a thread that asks for the same samples over 16 connections, and does nothing with them.
//
//     remote_benchmark [--rounds 5] [--epochs 1] [--samples 5120] [--sample-bytes 107000] [--shards 8] [--wait-ms 30]
//                      [--only WORDS] [--directory DIR] [--toy]
//
// --only measures the lines whose names have WORDS in them. The set lies below --directory, or $TMPDIR, and goes when the program ends.
#include "base/descriptor.hpp"
#include "base/text.hpp"
#include "benchmarks/arguments.hpp"
#include "benchmarks/measure.hpp"
#include "benchmarks/range_server.hpp"
#include "datasets/write/index_writer.hpp"
#include "stages/state/digest.hpp"
#include "tests/support/seeded_random.hpp"
#include "tests/support/tar_writer.hpp"
#include "tests/support/temporary_directory.hpp"

#include <leat/error.hpp>
#include <leat/index_options.hpp>
#include <leat/loading.hpp>
#include <leat/open.hpp>

#include <absl/strings/str_format.h>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/use_future.hpp>

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace leat::benchmarks {
namespace {

namespace asio = boost::asio;
namespace fs = std::filesystem;

struct settings {
  std::uint64_t rounds = 5;
  std::uint32_t epochs = 1;
  std::uint64_t samples = 5'120;
  std::uint64_t sample_bytes = 107'000;
  std::uint64_t shards = 8;
  std::uint32_t wait_ms = 30;
  std::string only = {};
  std::string directory = fs::temp_directory_path().string();
};

enum class order : std::uint8_t { exact, in_order, windows };
enum class way : std::uint8_t { floor, files, network, empty_cache, half_cache, full_cache };

struct line {
  way by;
  order in;
  bool waits;
  figure samples_per_s = {};
  figure cpu_s_per_gib = {};
  std::uint64_t requests = 0;     // of the last round
  std::uint64_t connections = 0;  // likewise

  [[nodiscard]] std::string name(const settings& how) const {
    constexpr std::string_view ways[] = {"bare sockets", "files", "network", "empty cache", "half cache", "full cache"};
    constexpr std::string_view orders[] = {"exact", "in order", "windows"};
    const std::string_view of = orders[static_cast<std::size_t>(in)];
    const std::string_view how_it_comes = ways[static_cast<std::size_t>(by)];
    return str_cat(how_it_comes, ", ", of, waits ? str_cat(", ", how.wait_ms, " ms") : "");
  }
};

struct run_result {
  std::uint64_t samples = 0;
  double wall_s = 0;
  double cpu_s = 0;
  digest all;
  remote_stats remote;
};

asio::awaitable<void> spend(loader& from, run_result& into) {
  for (;;) {
    const std::optional<batch> got = co_await from.next();
    if (!got && from.finished()) co_return;
    if (!got) continue;
    into.samples += got->valid_rows();
    if (got->content_digest()) into.all = stages::chain_digest(into.all, *got->content_digest());
  }
}

class set_of_shards {
 public:
  explicit set_of_shards(const settings& how) : how_(how), folder_(how.directory) {
    std::vector<std::string> paths;
    std::vector<std::byte> content(how.sample_bytes);
    for (std::uint64_t shard = 0; shard < how.shards; ++shard) {
      testing::tar_writer made;
      for (std::uint64_t i = shard * how.samples / how.shards; i < (shard + 1) * how.samples / how.shards; ++i) {
        testing::fill_seeded(i, 0, content);
        made.add_file(absl::StrFormat("%06d.bin", i), content);
        made.add_file(absl::StrFormat("%06d.cls", i), std::to_string(i % 1'000));
      }
      const std::vector<std::byte> bytes = made.finish();
      paths.push_back((folder_.path() / absl::StrFormat("train-%03d.tar", shard)).string());
      std::ofstream out(paths.back(), std::ios::binary);
      out.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
      if (!out.flush())
        throw error(errc::io, str_cat(paths.back(), ": it cannot be written; see whether there is room"));
      forget(paths.back());
    }
    static_cast<void>(datasets::write_indexes(paths, {}, {}));
  }

  // What was written lies in the page cache in large folios; what was read, as the cache's blocks are, in pages. Both are to be read.
  static void forget(const std::string& path) {
    const descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (file.get() < 0 || ::fdatasync(file.get()) != 0 || ::posix_fadvise(file.get(), 0, 0, POSIX_FADV_DONTNEED) != 0)
      throw error(errc::io, str_cat(path, ": it cannot be written to its drive"));
  }

  [[nodiscard]] std::string pattern() const { return absl::StrFormat("train-{000..%03d}.tar", how_.shards - 1); }
  [[nodiscard]] std::string path() const { return folder_.path().string(); }

 private:
  const settings& how_;
  const testing::temporary_directory folder_;
};

class measurement {
 public:
  explicit measurement(const settings& how) : how_(how), set_(how), server_(set_.path()) {
    for (const way by : {way::floor, way::files, way::network, way::empty_cache, way::half_cache, way::full_cache}) {
      for (const order in : {order::exact, order::in_order, order::windows}) {
        for (const bool waits : {false, true}) {
          if ((by == way::floor && in != order::exact) || (waits && (by == way::files || by == way::full_cache)))
            continue;
          line made{.by = by, .in = in, .waits = waits};
          if (made.name(how).find(how.only) != std::string::npos) lines_.push_back(std::move(made));
        }
      }
    }
    if (lines_.empty()) throw error(errc::usage, str_cat("no line has '", how.only, "' in its name"));
  }

  void check() {
    std::map<order, digest> right;
    for (const line& each : lines_) {
      if (each.by == way::floor) continue;
      if (!right.contains(each.in)) right[each.in] = read({.by = way::files, .in = each.in, .waits = false}, true).all;
      if (const digest seen = read(each, true).all; seen != right[each.in]) {
        throw error(errc::corrupt, str_cat(each.name(how_), ": its digest ", seen.hex(), " is not the files', ",
                                           right[each.in].hex()));
      }
    }
  }
  void round() {
    for (line& each : lines_) {
      const run_result seen = each.by == way::floor ? read_bare(each.waits) : read(each, false);
      const double gib = static_cast<double>(seen.samples * how_.sample_bytes) / (1U << 30);
      each.samples_per_s.add(static_cast<double>(seen.samples) / seen.wall_s);
      each.cpu_s_per_gib.add(seen.cpu_s / gib);
      each.requests = seen.remote.requests;
      each.connections = seen.remote.connections;
    }
  }
  void print() const {
    absl::PrintF("%-28s %-24s %-22s %9s %12s\n", "", "samples/s", "CPU-s per GiB", "requests", "connections");
    for (const line& each : lines_) {
      const auto text = [](const figure& of, int digits) {
        return absl::StrFormat("%.*f (%.*f to %.*f)", digits, of.median(), digits, of.low(), digits, of.high());
      };
      absl::PrintF("%-28s %-24s %-22s %9d %12d\n", each.name(how_), text(each.samples_per_s, 0),
                   text(each.cpu_s_per_gib, 2), each.requests, each.connections);
    }
  }

 private:
  // Below this bucket the server waits so long before each answer.
  [[nodiscard]] std::string bucket(bool waits) const { return str_cat("after-", waits ? how_.wait_ms : 0, "-ms"); }

  [[nodiscard]] dataset opened(const line& of, const std::string& cache) const {
    const index_options none{.use = index_use::off};
    if (of.by == way::files) return open(str_cat(set_.path(), "/", set_.pattern()), {.index = none});
    remote_options remote{.allow_http = true,
                          .endpoint = server_.address(),
                          .access_key_id = "KEYID",
                          .secret_access_key = "of no use to anybody"};
    if (!cache.empty()) {
      remote.cache = cache;
      const std::uint64_t set_bytes = how_.samples * (how_.sample_bytes + 4'096);
      remote.cache_bytes = of.by == way::half_cache ? set_bytes / 2 : 2 * set_bytes + (std::uint64_t{64} << 20);
    }
    return open(str_cat("s3://", bucket(of.waits), "/", set_.pattern()), {.index = none, .remote = remote});
  }

  [[nodiscard]] run_result read(const line& of, bool digests) {
    std::string cache;
    std::optional<testing::temporary_directory> emptied;
    if (of.by == way::empty_cache) {
      emptied.emplace(how_.directory);
      cache = emptied->path().string();
    } else if (of.by == way::half_cache || of.by == way::full_cache) {
      // Half a cache holds what an order has left there.
      const auto kept = kept_.try_emplace(of.by == way::half_cache ? of.name(how_) : "", how_.directory);
      cache = kept.first->second.path().string();
      if (kept.second) static_cast<void>(read_by(opened(of, cache), of, false));
    }
    run_result seen = read_by(opened(of, cache), of, digests);
    if (of.by == way::full_cache && seen.remote.bytes > how_.samples * how_.sample_bytes / 100) {
      throw error(errc::usage, str_cat("the cache in ", cache, " does not hold the set: see its file system's room"));
    }
    return seen;
  }
  [[nodiscard]] run_result read_by(const dataset& samples, const line& of, bool digests) const {
    loader_options options{.batch_size = 64, .seed = 7, .epochs = how_.epochs, .digests = digests};
    options.shuffle = of.in != order::in_order;
    if (of.in == order::windows) options.shuffle_blocks = 2;
    run_result into{.wall_s = -wall_s(), .cpu_s = -process_cpu_s(), .all = {}, .remote = {}};
    {
      loader from(samples, options, {bytes("bin"), label("cls")});
      asio::io_context context(1);
      auto done = asio::co_spawn(context, spend(from, into), asio::use_future);
      context.run();
      done.get();
      into.remote = from.stats().remote;
    }
    into.wall_s += wall_s();
    into.cpu_s += process_cpu_s();
    if (into.samples != how_.samples * how_.epochs)
      throw error(errc::corrupt, "an epoch has another number of samples");
    return into;
  }

  [[nodiscard]] run_result read_bare(bool waits) const {
    run_result into{
        .samples = how_.samples * how_.epochs, .wall_s = -wall_s(), .cpu_s = -process_cpu_s(), .all = {}, .remote = {}};
    const std::uint64_t record = how_.sample_bytes + 512;
    into.remote.requests = into.samples;
    into.remote.connections = 16;
    ask_bare(server_.port(), str_cat("/", bucket(waits), "/train-000.tar"), record, how_.sample_bytes,
             how_.samples / how_.shards, into.samples, static_cast<std::uint32_t>(into.remote.connections));
    into.wall_s += wall_s();
    into.cpu_s += process_cpu_s();
    return into;
  }

  const settings& how_;
  const set_of_shards set_;
  const range_server server_;
  std::map<std::string, testing::temporary_directory> kept_;  // caches that were filled
  std::vector<line> lines_;
};

void run(const settings& how) {
  measurement all(how);
  all.check();
  for (std::uint64_t round = 0; round < how.rounds; ++round) all.round();
  absl::PrintF(
      "%s\n%d samples of %d bytes in %d shards, epochs: %d, batches of 64; medians of interleaved rounds: %d\n\n",
      machine(), how.samples, how.sample_bytes, how.shards, how.epochs, how.rounds);
  all.print();
}

}  // namespace
}  // namespace leat::benchmarks

int main(int count, char** words) {
  namespace benchmarks = leat::benchmarks;
  return benchmarks::run_benchmark("remote_benchmark", [&] {
    benchmarks::settings how;
    benchmarks::read_options(count, words,
                             {{"--rounds", how.rounds},
                              {"--epochs", how.epochs},
                              {"--samples", how.samples},
                              {"--sample-bytes", how.sample_bytes},
                              {"--shards", how.shards},
                              {"--wait-ms", how.wait_ms},
                              {"--only", how.only},
                              {"--directory", how.directory},
                              {"--toy", [&] {
                                 how.rounds = 1;
                                 how.samples = 128;
                                 how.sample_bytes = 5'000;
                                 how.shards = 3;
                                 how.wait_ms = 2;
                               }}});
    benchmarks::run(how);
  });
}
