// leat cache: what a cache of objects holds, whether it is sound, how to fill it and to get rid of it.
#include "base/text.hpp"
#include "datasets/files/remote_files.hpp"
#include "datasets/files/warm_cache.hpp"
#include "io/remote/block_cache.hpp"
#include "tools/arguments.hpp"
#include "tools/flags.hpp"
#include "tools/human.hpp"
#include "tools/output.hpp"
#include "tools/run_record.hpp"
#include "tools/sources.hpp"
#include "tools/status_line.hpp"
#include "tools/subcommand.hpp"

#include <leat/error.hpp>

#include <nlohmann/json.hpp>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace leat::tools {
namespace {

using json = nlohmann::ordered_json;

struct cache_arguments {
  std::string directory;
  std::string source;
  std::vector<std::string> addresses;
  remote_options remote;
  bool json = false;
  asked_for asked;
};

// Nothing is made where there is none.
std::shared_ptr<io::block_cache> open_cache(const std::string& directory) {
  struct stat status{};
  if (::stat(str_cat(directory, "/leat-cache").c_str(), &status) != 0)
    throw refused_name(str_cat(directory, ": there is no cache; it is made by `leat epoch s3://... --cache ", directory,
                               " --cache-bytes 200GiB`"));
  std::string refusal;
  std::shared_ptr<io::block_cache> cache =
      io::block_cache::open({.directory = directory,
                             .bytes_max = std::numeric_limits<std::uint64_t>::max() / 2,
                             .block_bytes = static_cast<std::uint32_t>(io::cache_page_bytes)},
                            refusal);
  if (!cache) throw error(errc::io, refusal);
  return cache;
}

// Those whose names begin so.
std::vector<io::cache_entry> chosen(const io::block_cache& cache, const std::string& source) {
  std::vector<io::cache_entry> all = cache.entries();
  std::erase_if(all, [&](const io::cache_entry& each) { return !each.name.starts_with(source); });
  if (all.empty() && !source.empty()) {
    const bool is_pattern = source.find_first_of("*?{") != std::string::npos;
    throw refused_name(str_cat(source, ": the cache has nothing whose name begins so",
                               is_pattern ? "; patterns are not expanded here: give what the names begin with" : ""));
  }
  return all;
}

std::string sizes_of(const io::cache_entry& entry) {
  return str_cat(bytes_text(entry.cached_bytes), " of ", bytes_text(entry.size_bytes));
}

int list(const cache_arguments& arguments) {
  const auto cache = open_cache(arguments.directory);
  const std::vector<io::cache_entry> all = chosen(*cache, arguments.source);
  std::uint64_t bytes = 0;
  json objects = json::array();
  for (const io::cache_entry& each : all) {
    bytes += each.cached_bytes;
    if (arguments.json) {
      objects.push_back({{"name", each.name},
                         {"file", each.file},
                         {"bytes", each.size_bytes},
                         {"cached_bytes", each.cached_bytes},
                         {"opened_unix_s", each.opened_unix_s},
                         {"in_use", each.in_use}});
    } else {
      print(str_cat("  ", one_line(each.name), "  ", sizes_of(each), each.in_use ? ", in use" : "", "\n"));
    }
  }
  if (arguments.json) {
    print(report_text(json{{"cached_bytes", bytes}, {"objects", objects}}, arguments.asked));
  } else {
    print(str_cat("  ", counted(all.size(), "object", "objects"), ", ", bytes_text(bytes), "\n"));
  }
  return exit_done;
}

int verify(const cache_arguments& arguments, interruption& stop) {
  const auto cache = open_cache(arguments.directory);
  std::uint64_t blocks = 0;
  std::uint64_t damaged = 0;
  for (const io::cache_entry& each : chosen(*cache, arguments.source)) {
    if (stop.token().stop_requested()) return stop.exit_code();
    const io::block_cache::verdict found = cache->verify(each);
    blocks += found.blocks;
    damaged += found.damaged;
    if (found.damaged == 0) continue;
    print(str_cat("  ", one_line(each.name), "  ", counted(found.damaged, "block was", "blocks were"),
                  " damaged, and will be fetched anew\n"));
  }
  print(str_cat("  ", counted(blocks, "block", "blocks"), ", ", damaged, " damaged\n"));
  return damaged == 0 ? exit_done : exit_failed;
}

int warm(const cache_arguments& arguments, interruption& stop) {
  remote_options remote = arguments.remote;
  remote.cache = arguments.directory;
  const auto began = std::chrono::steady_clock::now();
  datasets::warming so_far;
  std::vector<std::string> addresses;
  const datasets::warmed done = [&] {
    const status_line shown([&](const terminal& screen, std::size_t) {
      return screen.dim(str_cat("  fetching: ", bytes_text(so_far.bytes), " of ", bytes_text(so_far.bytes_all)));
    });
    return as_named([&] {
      for (const std::string& each : arguments.addresses) {
        if (!datasets::is_remote(each))
          throw refused_name(str_cat(each, ": only objects at addresses (s3://, https://) are cached"));
        for (std::string& one : datasets::expand_addresses(each, remote)) addresses.push_back(std::move(one));
      }
      return datasets::warm_cache(addresses, remote, so_far, stop.token());
    });
  }();
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
  if (arguments.json) {
    print(report_text(json{{"objects", addresses.size()},
                           {"bytes", so_far.bytes_all.load()},
                           {"read_bytes", so_far.bytes.load()},
                           {"fetched_blocks", done.counts.cached_blocks},
                           {"fetched_bytes", done.counts.bytes},
                           {"requests", done.counts.requests},
                           {"seconds", took.count()},
                           {"whole", done.is_whole}},
                      arguments.asked));
  } else {
    print(str_cat("  ", counted(addresses.size(), "object", "objects"), ", ", bytes_text(so_far.bytes_all), "; ",
                  counted(done.counts.cached_blocks, "block", "blocks"), " fetched, ", bytes_text(done.counts.bytes),
                  " in ", clock_text(took.count()), "\n"));
  }
  if (done.is_whole) return exit_done;
  complain("cache warm", str_cat("not all of it is in the cache: ", done.why));
  return exit_failed;
}

int drop(const cache_arguments& arguments) {
  const auto cache = open_cache(arguments.directory);
  std::uint64_t objects = 0;
  std::uint64_t bytes = 0;
  bool is_kept = false;
  for (const io::cache_entry& each : chosen(*cache, arguments.source)) {
    if (!cache->evict(each.file)) {
      is_kept = true;
      complain("cache drop", str_cat(each.name, ": a process that runs holds it; it stays"));
      continue;
    }
    ++objects;
    bytes += each.cached_bytes;
  }
  print(str_cat("  ", counted(objects, "object", "objects"), " removed, ", bytes_text(bytes), "\n"));
  return is_kept ? exit_failed : exit_done;
}

CLI::App& add_one(CLI::App& cache, const char* name, const char* what, cache_arguments& arguments) {
  CLI::App& app = *cache.add_subcommand(name, what);
  app.add_option("DIR", arguments.directory, "the folder that --cache has named")->required();
  app.add_option("SOURCE", arguments.source, "objects whose names begin so; all");
  return app;
}

}  // namespace

void add_cache(CLI::App& leat, chosen_command& chosen) {
  auto arguments = std::make_shared<cache_arguments>();
  CLI::App& cache = *leat.add_subcommand("cache", "say what a cache of objects holds, verify it, fill it, empty it");
  // Before: a subcommand gets its own from what is there.
  cache.footer(
      "  leat cache ls /nvme/leat\n  leat cache warm /nvme/leat 's3://bucket/train-*.tar' --cache-bytes 200GiB\n  leat "
      "cache drop /nvme/leat s3://bucket/train-");
  CLI::App& ls = add_one(cache, "ls", "list the objects in a cache", *arguments);
  ls.add_flag("--json", arguments->json, "as one JSON object");
  ls.callback([arguments, &ls, &chosen] {
    arguments->asked = asked_of(ls);
    chosen = [arguments](interruption&) { return list(*arguments); };
  });
  add_one(cache, "verify", "read all that is cached, and take out what is damaged", *arguments)
      .callback(
          [arguments, &chosen] { chosen = [arguments](interruption& stop) { return verify(*arguments, stop); }; });
  CLI::App& fill = *cache.add_subcommand("warm", "fetch what a cache lacks of objects, in their order");
  fill.add_option("DIR", arguments->directory, "the folder of the cache, which is made where there is none")
      ->required();
  fill.add_option("ADDRESS", arguments->addresses, "s3:// or https://, with braces and globs as of leat epoch")
      ->required();
  add_cache_sizes(fill, arguments->remote);
  add_remote_options(fill, arguments->remote);
  fill.add_flag("--json", arguments->json, "as one JSON object");
  fill.callback([arguments, &fill, &chosen] {
    arguments->asked = asked_of(fill);
    chosen = [arguments](interruption& stop) { return warm(*arguments, stop); };
  });
  add_one(cache, "drop", "remove what no process uses", *arguments).callback([arguments, &chosen] {
    chosen = [arguments](interruption&) { return drop(*arguments); };
  });
}

}  // namespace leat::tools
