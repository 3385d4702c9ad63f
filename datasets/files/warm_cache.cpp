#include "datasets/files/warm_cache.hpp"

#include "datasets/files/blocking_source.hpp"
#include "io/remote/describe_objects.hpp"

#include <leat/error.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>
#include <vector>

namespace leat::datasets {
namespace {

// Blocks are as large as whoever cached the object first wanted them: this meets each one of that size and more.
constexpr std::uint64_t step_bytes = std::uint64_t{64} << 10;
// Of reads that are waited for together: 64 MiB, as many blocks of the usual size as are fetched at a time.
constexpr std::size_t reads_at_once = 1024;

}  // namespace

warmed warm_cache(std::span<const std::string> addresses, const remote_options& options, warming& so_far,
                  const std::stop_token& stop) {
  const auto source = io::describe_objects(addresses, options);
  blocking_sources connected(opening_loop::traffic::many);
  blocking_source& reads = connected.of(*source);
  const std::vector<blocking_source::file_look> looks = reads.look_at_all(source->files());
  for (const auto& each : looks) so_far.bytes_all += each.size_bytes;
  warmed result;
  result.is_whole = true;
  const auto counted = [&] {
    result.counts = {};
    source->add_counts(result.counts);
    return result.counts.bytes_from_cache;
  };
  static_cast<void>(counted());
  if (result.counts.cache == "off") throw error(errc::usage, "no cache was given: name its folder");
  std::array<std::byte, reads_at_once> bytes{};
  std::vector<blocking_source::request> wanted;
  for (std::uint32_t file = 0; file < looks.size(); ++file) {
    const std::uint64_t size_bytes = looks[file].size_bytes;
    for (std::uint64_t offset = 0; offset < size_bytes;) {
      wanted.clear();
      for (; offset < size_bytes && wanted.size() < reads_at_once; offset += step_bytes) {
        wanted.push_back({.file = file, .offset = offset, .into = std::span(bytes).subspan(wanted.size(), 1)});
      }
      const auto is_cached = [&] {
        const std::uint64_t before = counted();
        reads.read(wanted, stop);
        if (stop.stop_requested()) throw error(errc::cancelled, "stopped");
        return counted() - before == wanted.size();
      };
      // What has been received is handed on before it is written: it is from the cache the second time.
      const bool is_kept = is_cached() || is_cached();
      so_far.bytes += std::min(offset, size_bytes) - wanted.front().offset;
      if (is_kept) continue;
      result.is_whole = false;
      const std::string& cache = result.counts.cache;
      result.why = cache == "on" ? "the cache has no room for more; give it more bytes" : cache;
      // What is wrong with one object is not wrong with the next one.
      if (!cache.starts_with("on; ")) return result;
      break;
    }
    ++so_far.objects;
  }
  return result;
}

}  // namespace leat::datasets
