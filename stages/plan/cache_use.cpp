#include "stages/plan/cache_use.hpp"

#include "base/option_words.hpp"
#include "base/text.hpp"
#include "io/files/source.hpp"
#include "stages/plan/run_spec.hpp"

#include <absl/container/inlined_vector.h>

#include <algorithm>
#include <functional>
#include <vector>

namespace leat::stages {
namespace {

// Of all sources, which share the cache.
struct shared_room : io::cache_room {
  std::uint32_t reads = 0;
  std::uint64_t ahead_bytes = 0;
};
shared_room room_of(const datasets::dataset_model& dataset) {
  shared_room room;
  for (const auto& each : dataset.sources()) {
    const std::optional<io::cache_room> one = each->cached();
    if (!one) continue;
    room.bytes_max = std::max(room.bytes_max, one->bytes_max);
    room.bytes_all += one->bytes_all;
    room.block_bytes = std::max(room.block_bytes, one->block_bytes);
    const io::source_depth depth = each->in_flight();
    room.reads = std::max(room.reads, depth.reads);
    room.ahead_bytes = std::max(room.ahead_bytes, depth.ahead_bytes);
  }
  return room;
}

// What samples that lie side by side span in their files, in whole blocks of the cache.
//   first, last   samples
std::uint64_t span_of(const planner& planner, std::uint64_t first, std::uint64_t last, std::uint64_t block_bytes) {
  std::vector<extent> places;
  for (const std::uint64_t sample : {first, last}) planner.places({.sample = sample, .draw = sample}, places);
  struct span {
    std::uint32_t source;
    std::uint32_t file;
    std::uint64_t begin;
    std::uint64_t end;
  };
  absl::InlinedVector<span, 2> spans;
  for (const extent& each : places) {
    const std::uint64_t end = each.offset + each.stored_bytes;
    const auto same = std::find_if(spans.begin(), spans.end(), [&](const span& known) {
      return known.source == each.source && known.file == each.file;
    });
    if (same == spans.end()) {
      spans.push_back({each.source, each.file, each.offset, end});
    } else {
      same->begin = std::min(same->begin, each.offset);
      same->end = std::max(same->end, end);
    }
  }
  std::uint64_t bytes = 0;
  for (const span& each : spans) {
    bytes += ((each.end + block_bytes - 1) / block_bytes - each.begin / block_bytes) * block_bytes;
  }
  return bytes;
}

// The spans of what this rank's node reads.
//   all      in an epoch
//   pool   of as many blocks as samples are taken of at a time, the largest ones; of each node that this rank has rows of
struct spans {
  std::uint64_t all = 0;
  std::uint64_t pool = 0;
};
spans spans_of(const run_spec& run, std::uint64_t block_bytes) {
  const datasets::sample_blocks blocks = run.dataset().blocks();
  std::vector<std::uint64_t> bytes;
  bytes.reserve(blocks.size());
  for (std::uint64_t block = 0; block < blocks.size(); ++block) {
    bytes.push_back(span_of(run.planner(), blocks.first(block), blocks.first(block + 1) - 1, block_bytes));
  }
  const std::uint64_t near = std::min<std::uint64_t>(run.order().blocks_near(), bytes.size());
  std::partial_sort(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(near), bytes.end(), std::greater<>());
  spans sum;
  for (std::uint64_t i = 0; i < bytes.size(); ++i) {
    sum.all += bytes[i];
    if (i < near) sum.pool += bytes[i];
  }
  sum.all = run.share_of_rank(sum.all);
  sum.pool *= run.nodes_of_rank();
  return sum;
}

// Of expanded blocks a pool is kept in memory, and each of them is one read.
bool has_pools(const run_spec& run) {
  return run.order().blocks_near() != 0 && !run.order().in_order() && !run.planner().in_blocks();
}

// Half a pool ahead, or what sources want: then the next pool comes while this one is read. What is hinted, and what batches under way
// read, has to be there together, and with it the pools at both of its ends, whole. All ranks of a node go through them side by side.
pools_in_cache room_for_pools(const run_spec& run, const line_depth& depth, const spans& read,
                              std::uint64_t ahead_bytes_least) {
  const std::uint64_t ranks = run.ranks_of_node();
  const std::uint64_t ahead = std::max(ahead_bytes_least * depth.io_threads, read.pool / 2 / ranks);
  const std::uint64_t epoch_bytes = std::max<std::uint64_t>(run.share_of_rank(run.epoch_bytes()), 1);
  const std::uint64_t batch_bytes =
      run.share_of_rank(run.epoch_bytes() / std::max<std::uint64_t>(run.dataset().size(), 1) * run.order().rows_max());
  // The last batch that is hinted may end behind that.
  const std::uint64_t reach = ahead * ranks + batch_bytes * (depth.batches + std::uint64_t{1});
  const double of_samples = static_cast<double>(read.all) / static_cast<double>(epoch_bytes);
  const auto in_blocks = static_cast<std::uint64_t>(static_cast<double>(reach) * of_samples);
  return {.passing_bytes = in_blocks + 2 * read.pool, .ahead_bytes = ahead};
}

}  // namespace

cache_use use_of_cache(const run_spec& run, const line_depth& depth) {
  const shared_room room = room_of(run.dataset());
  const std::uint64_t bytes_read = run.share_of_rank(room.bytes_all);
  if (bytes_read <= room.bytes_max) return {};
  const std::string begin =
      str_cat("the cache has room for ", bytes_text(room.bytes_max), " of ", bytes_text(bytes_read),
              bytes_read < room.bytes_all ? ", this node's share" : "", ": each epoch ");
  const std::uint32_t machines = machines_of(run.world());
  const bool helps_to_divide = run.nodes() == 1 && machines > 1 && room.bytes_all / machines < room.bytes_max;
  const std::string end =
      str_cat("; with ", spelled(option_id::cache_bytes), " of ", bytes_text(bytes_read, rounding::up),
              " later epochs ask for nothing",
              helps_to_divide ? str_cat("; nor do they with ", spelled(option_id::order_node_local, "by node"),
                                        ", where each of the ", machines, " nodes reads a share that has room")
                              : "");
  const auto share_of = [](std::uint64_t of, double share) {
    return static_cast<std::uint64_t>(static_cast<double>(of) * share);
  };
  const std::uint64_t samples = run.epoch_samples();
  std::string more_room;
  if (has_pools(run)) {
    const spans read = spans_of(run, room.block_bytes);
    const std::uint64_t requests = read.all / room.block_bytes;
    constexpr std::uint64_t fewer = 2;
    if (read.pool != 0 && requests <= samples * run.ranks_of_node() / fewer &&
        read.all / fewer <= run.share_of_rank(run.epoch_bytes())) {
      const pools_in_cache pools = room_for_pools(run, depth, read, room.ahead_bytes);
      const std::string passing = bytes_text(pools.passing_bytes, rounding::up);
      if (pools.passing_bytes <= room.bytes_max) {
        const double share = 1 - std::min(1.0, static_cast<double>(room.bytes_max - pools.passing_bytes) /
                                                   static_cast<double>(read.all));
        return {.pools = pools,
                .warning = str_cat(begin, "fetches about ", bytes_text(share_of(read.all, share), rounding::up), " in ",
                                   share_of(requests, share), " blocks, and writes them to the ", passing,
                                   " of it through which the order's pools pass", end)};
      }
      more_room = str_cat(", and with ", passing, " the order's pools are fetched in blocks");
    }
  }
  const double missing = 1 - static_cast<double>(room.bytes_max) / static_cast<double>(bytes_read);
  std::uint64_t requests = samples;
  if (run.order().in_order()) {
    requests = std::min(samples, run.share_of_rank(run.epoch_bytes()) / planner::joined_bytes_max + 1);
  }
  return {.warning = str_cat(begin, "asks for what has none by samples, in about ", share_of(requests, missing),
                             " requests by up to ", room.reads, " connections", end, more_room)};
}

}  // namespace leat::stages
