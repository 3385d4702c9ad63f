// Epochs over HTTP by way of a cache on the drive: the batches of the files, whatever is cached, damaged, full or half done.
#include "datasets/files/input_files.hpp"
#include "datasets/formats/format_openers.hpp"
#include "datasets/write/index_writer.hpp"
#include "io/remote/block_cache.hpp"
#include "io/remote/remote_source.hpp"
#include "io/ring/file_set.hpp"
#include "tests/loader/remote_shards.hpp"
#include "tests/loader/running.hpp"
#include "tests/support/seeded_random.hpp"

#include <leat/index_options.hpp>
#include <leat/loading.hpp>
#include <leat/open.hpp>
#include <leat/order.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cinttypes>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace leat {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using testing::http_fault;
using testing::seen_run;
using testing::served_request;
using testing::shard_of;
using ::testing::StartsWith;

constexpr std::uint32_t block_bytes = 64U << 10;

class remote_cache : public testing::remote_shards {
 protected:
  remote_cache() {
    for (int i = 0; i < shards; ++i) blocks_ += (shard_of(i).size() + block_bytes - 1) / block_bytes;
  }
  [[nodiscard]] std::string cache_path() const { return (folder_.path() / "cache").string(); }
  [[nodiscard]] remote_options cached(std::uint64_t bytes = 64U << 20) const {
    return {.allow_http = true, .cache = cache_path(), .cache_bytes = bytes, .cache_block_bytes = block_bytes};
  }
  [[nodiscard]] dataset opened(const remote_options& options) const { return there("train-{0..2}.tar", options); }
  // Without a request for headers.
  [[nodiscard]] dataset opened_by_index(const remote_options& options) const {
    const index_options index = {.use = index_use::check, .directory = (folder_.path() / "kept").string()};
    static_cast<void>(open(server_.address("train-{0..2}.tar"), {.index = index, .remote = {.allow_http = true}}));
    return open(server_.address("train-{0..2}.tar"), {.index = index, .remote = options});
  }
  static std::vector<std::string> warnings_of(const dataset& samples) {
    return testing::loader(samples, testing::small_options(), fields()).plan().warnings;
  }
  static seen_run run(const dataset& samples) { return testing::run_all(samples, testing::small_options(), fields()); }
  void expect_right(const seen_run& seen) const {
    EXPECT_EQ(seen.failed, std::nullopt) << seen.message;
    EXPECT_EQ(seen.batches, run(here("train-{0..2}.tar")).batches);
  }
  [[nodiscard]] std::shared_ptr<io::block_cache> look(std::uint64_t bytes = 64U << 20) const {
    std::string refusal;
    auto cache =
        io::block_cache::open({.directory = cache_path(), .bytes_max = bytes, .block_bytes = block_bytes}, refusal);
    EXPECT_NE(cache, nullptr) << refusal;
    return cache;
  }
  // Of all data files, in the middle of the first one's first block.
  void flip_a_bit() const {
    for (const auto& each : fs::directory_iterator(cache_path())) {
      if (each.path().extension() != ".data") continue;
      std::fstream data(each.path(), std::ios::in | std::ios::out | std::ios::binary);
      data.seekg(block_bytes / 2);
      const int before = data.get();
      data.seekp(block_bytes / 2);
      data.put(static_cast<char>(before ^ 4));
    }
  }

  // Two indexes are looked for, which are not there; each shard is looked at, and opened.
  static constexpr std::uint64_t opening = 2 + 2 * shards;
  std::uint64_t blocks_ = 0;
};

TEST_F(remote_cache, reads_each_block_once_and_nothing_in_the_epochs_that_follow) {
  const std::uint64_t before = server_.requests();
  const dataset samples = opened(cached());
  const seen_run cold = run(samples);
  expect_right(cold);
  EXPECT_EQ(server_.requests() - before, opening + blocks_) << "each shard is opened, each block is fetched";
  EXPECT_EQ(cold.stats.remote.cache, "on");
  EXPECT_THAT(warnings_of(samples), ::testing::IsEmpty());
  for (int round = 0; round < 2; ++round) {
    const std::uint64_t opened_at = server_.requests();
    const dataset again = opened(cached());
    EXPECT_EQ(server_.requests() - opened_at, opening) << "headers are read from the cache too";
    const seen_run warm = run(again);
    expect_right(warm);
    EXPECT_EQ(server_.requests() - opened_at, opening);
    EXPECT_EQ(warm.stats.remote.requests, 0U);
    EXPECT_EQ(warm.stats.remote.cached_blocks, 0U);
    EXPECT_GE(warm.stats.remote.bytes_from_cache, warm.stats.bytes_read);
    EXPECT_EQ(warm.stats.remote.damaged_reads, 0U);
  }
  EXPECT_EQ(fs::status(cache_path()).permissions(), fs::perms::owner_all);
  for (const auto& each : fs::directory_iterator(cache_path())) {
    EXPECT_EQ(each.status().permissions(), fs::perms::owner_read | fs::perms::owner_write) << each.path();
  }
}

TEST_F(remote_cache, has_each_block_that_was_fetched_and_what_was_read_of_the_cache_in_the_timeline) {
  const dataset samples = opened_by_index(cached());
  for (const bool is_cold : {true, false}) {
    SCOPED_TRACE(is_cold ? "cold" : "warm");
    testing::loader_options options = testing::small_options();
    options.timeline.bytes = std::size_t{1} << 20;
    testing::loader train(samples, options, fields());
    while (train.next_blocking()) {
    }
    const std::string path = (folder_.path() / "t.json").string();
    train.write_timeline(path);
    const auto trace = nlohmann::json::parse(std::ifstream(path));
    std::map<std::string, std::uint64_t> spans;
    std::map<int, std::string> lines;
    std::set<std::string> lines_of_blocks;
    std::uint64_t bytes = 0;
    double block_ends = 0;
    for (const nlohmann::json& each : trace.at("traceEvents")) {
      if (each.at("name") == "thread_name") lines[each.at("tid").get<int>()] = each.at("args").at("name");
      if (each.at("ph") != "X") continue;
      const std::string name = each.at("name");
      const double end = each.at("ts").get<double>() + each.at("dur").get<double>();
      ++spans[name];
      if (name == "block into the cache") {
        bytes += each.at("args").at("bytes").get<std::uint64_t>();
        EXPECT_LE(each.at("args").at("bytes").get<std::uint64_t>(), block_bytes);
        lines_of_blocks.insert(lines.at(each.at("tid").get<int>()).substr(0, 5));
        block_ends = end;
      }
      if (name == "write to the cache") EXPECT_NEAR(end, block_ends, 0.2) << "it is the last of its block";
    }
    const remote_stats seen = train.stats().remote;
    EXPECT_EQ(spans["block into the cache"], seen.cached_blocks);
    EXPECT_EQ(spans["write to the cache"], seen.cached_blocks);
    EXPECT_EQ(spans["request"], 0U) << "reads had none of their own";
    if (is_cold) {
      EXPECT_GE(seen.cached_blocks, blocks_ - shards) << "what opening has read is there";
      EXPECT_EQ(bytes, seen.bytes);
      EXPECT_EQ(lines_of_blocks, std::set<std::string>{"cache"});
      EXPECT_EQ(spans["wait for the answer"], seen.cached_blocks);
      EXPECT_GT(spans["fetch"], 0U) << "who waited for a block";
    } else {
      EXPECT_EQ(seen.cached_blocks, 0U);
      EXPECT_EQ(spans["fetch"], 0U);
      EXPECT_GT(spans["read of the cache"], 0U);
    }
  }
}

// Blocks of 64 KiB, and a value that lies in two of them: the read has waited for the server, though it ends by the drive.
TEST_F(remote_cache, has_a_read_of_several_blocks_that_waited_for_them_as_a_fetch_in_the_timeline) {
  testing::archive made;
  made.file("0.bin", std::string(100'000, 'x'));
  put("wide.tar", std::move(made.end().bytes()));
  const index_options index = {.use = index_use::check, .directory = (folder_.path() / "kept").string()};
  static_cast<void>(open(server_.address("wide.tar"), {.index = index, .remote = {.allow_http = true}}));
  const dataset samples = open(server_.address("wide.tar"), {.index = index, .remote = cached()});
  server_.set_rule([](const served_request&) {
    return http_fault{.what = http_fault::kind::late, .wait = std::chrono::milliseconds(50)};
  });
  testing::loader_options options = testing::small_options();
  options.epochs = 1;
  options.timeline.bytes = std::size_t{1} << 20;
  testing::loader train(samples, options, {bytes("bin")});
  while (train.next_blocking()) {
  }
  EXPECT_EQ(train.stats().remote.cached_blocks, 2U);
  const std::string path = (folder_.path() / "t.json").string();
  train.write_timeline(path);
  const auto trace = nlohmann::json::parse(std::ifstream(path));
  std::map<std::string, std::uint64_t> spans;
  for (const nlohmann::json& each : trace.at("traceEvents")) {
    if (each.at("ph") == "X") ++spans[each.at("name").get<std::string>()];
  }
  EXPECT_EQ(spans["fetch"], 1U);
  EXPECT_EQ(spans["read of the cache"], 0U);
}

// It is full, and when a run begins nobody holds what is there: an index that is read then is not to take the place of shards.
TEST_F(remote_cache, that_is_full_is_not_written_to_by_later_runs_that_open_by_an_index_beside_the_shards) {
  std::vector<std::string> paths;
  for (int i = 0; i < shards; ++i) paths.push_back((folder_.path() / ("train-" + std::to_string(i) + ".tar")).string());
  server_.put("train.index", testing::file_text(datasets::write_indexes(paths, {}, {}).at(0).path));
  const std::uint64_t room = blocks_ / 2 * block_bytes;
  for (int round = 0; round < 3; ++round) {
    const seen_run seen = run(opened(cached(room)));
    expect_right(seen);
    if (round > 0) EXPECT_EQ(seen.stats.remote.cached_blocks, 0U) << round;
    EXPECT_EQ(look(room)->entries().size(), static_cast<std::size_t>(shards));
  }
}

TEST_F(remote_cache, has_the_same_batches_by_the_preadv_twin_and_in_the_order_of_the_shards) {
  testing::loader_options options = testing::small_options();
  options.reader.backend = read_backend::preadv;
  options.shuffle = false;
  const seen_run files = testing::run_all(here("train-{0..2}.tar"), options, fields());
  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ(testing::run_all(opened(cached()), options, fields()).batches, files.batches);
  }
}

TEST_F(remote_cache, pins_what_it_has_room_for_and_reads_the_rest_over_the_network) {
  constexpr std::uint64_t room = 6 * block_bytes;
  const dataset samples = opened(cached(room));
  EXPECT_THAT(warnings_of(samples),
              ::testing::Contains(::testing::AllOf(StartsWith("the cache has room for 384 KiB of "),
                                                   HasSubstr(" requests by up to "),
                                                   HasSubstr("; with remote_options::cache_bytes of "))));
  const seen_run first = run(samples);
  expect_right(first);
  EXPECT_LE(look(room)->bytes_in_use(), room);
  const seen_run second = run(samples);
  expect_right(second);
  EXPECT_EQ(second.stats.remote.cached_blocks, 0U) << "what is there stays there";
  EXPECT_GT(second.stats.remote.bytes_from_cache, 0U);
  EXPECT_GT(second.stats.remote.requests, 0U);
  EXPECT_LT(second.stats.remote.bytes, second.stats.bytes_read);
}

// Windows of two shards of 24, and a cache for two thirds of them.
class windows : public remote_cache {
 protected:
  static constexpr int shards_of_set = 24;
  static constexpr std::uint64_t room = std::uint64_t{5} << 20;

  windows() {
    for (int i = 0; i < shards_of_set; ++i) blocks_of_set_ += put_shard(i);
    server_.set_rule([this](const served_request& asked) {
      std::uint64_t first = 0;
      std::uint64_t last = 0;
      if (std::sscanf(asked.value("Range").c_str(), "bytes=%" SCNu64 "-%" SCNu64, &first, &last) == 2 &&
          first % block_bytes != 0 && (last + 1) % block_bytes != 0 && !sizes_.contains(last + 1)) {
        ++samples_asked_for_;
      }
      return http_fault();
    });
  }
  //   returns   its blocks
  std::uint64_t put_shard(int number) {
    const std::string shard = shard_of(number);
    if (number >= shards) put("train-" + std::to_string(number) + ".tar", shard);
    sizes_.insert(shard.size());
    return (shard.size() + block_bytes - 1) / block_bytes;
  }
  // By themselves, since the last call. What is left of a block, asked for once more, ends as the block does.
  std::uint64_t samples_asked_for() { return samples_asked_for_.exchange(0); }
  [[nodiscard]] dataset set(std::uint64_t bytes = room, const std::string& names = "train-{0..23}.tar") const {
    const index_options index = {.use = index_use::check, .directory = (folder_.path() / "kept").string()};
    return open(server_.address(names), {.index = index, .remote = cached(bytes)});
  }
  static testing::loader_options options(std::uint32_t epochs) {
    testing::loader_options made = testing::small_options();
    made.order = shuffled_blocks(2);
    made.epochs = epochs;
    made.prefetch_batches = 2;
    return made;
  }
  [[nodiscard]] seen_run of_files(std::uint32_t epochs) const {
    return testing::run_all(here("train-{0..23}.tar"), options(epochs), fields());
  }

  // Each block is fetched once an epoch, and no sample by itself.
  void expect_to_pass(const dataset& samples, std::uint32_t epochs, const seen_run& files) {
    for (const std::uint32_t io_threads : {1U, 2U}) {
      testing::loader_options wanted = options(epochs);
      wanted.reader.io_threads = io_threads;
      const seen_run seen = testing::run_all(samples, wanted, fields());
      EXPECT_EQ(seen.failed, std::nullopt) << seen.message;
      EXPECT_EQ(seen.batches, files.batches);
      EXPECT_EQ(seen.stats.remote.damaged_reads, 0U);
      EXPECT_EQ(samples_asked_for(), 0U);
      EXPECT_LE(seen.stats.remote.requests, epochs * blocks_of_set_);
    }
  }

  std::uint64_t blocks_of_set_ = 0;

 private:
  std::set<std::uint64_t> sizes_;
  std::atomic<std::uint64_t> samples_asked_for_{0};
};

TEST_F(windows, pass_through_a_cache_that_is_smaller_than_the_set) {
  ASSERT_GT(blocks_of_set_ * block_bytes, room + (1U << 20));
  constexpr std::uint32_t epochs = 3;
  const dataset samples = set(room);
  EXPECT_THAT(testing::loader(samples, options(epochs), fields()).plan().warnings,
              ::testing::Contains(::testing::AllOf(HasSubstr(" of it through which the order's pools pass"),
                                                   HasSubstr("; with remote_options::cache_bytes of "))));
  static_cast<void>(samples_asked_for());  // by opening
  expect_to_pass(samples, epochs, of_files(epochs));
  const auto cache = look(room);
  EXPECT_LE(cache->bytes_in_use(), room);
  EXPECT_GT(cache->passing_bytes(), 0U);
  std::uint64_t on_disk = 0;
  for (const auto& each : fs::directory_iterator(cache_path())) {
    struct stat status{};
    ASSERT_EQ(::stat(each.path().c_str(), &status), 0);
    if (each.path().extension() == ".data") on_disk += static_cast<std::uint64_t>(status.st_blocks) * 512;
  }
  EXPECT_LE(on_disk, room);
}

TEST_F(windows, are_fetched_once_for_all_that_go_through_them_together) {
  constexpr std::uint32_t epochs = 2;
  const seen_run files = of_files(epochs);
  std::vector<seen_run> seen(2);
  {
    std::vector<std::thread> running;
    for (seen_run& each : seen) {
      running.emplace_back([&] { each = testing::run_all(set(room), options(epochs), fields()); });
    }
    for (std::thread& each : running) each.join();
  }
  for (const seen_run& each : seen) {
    EXPECT_EQ(each.failed, std::nullopt) << each.message;
    EXPECT_EQ(each.batches, files.batches);
    EXPECT_EQ(each.stats.remote.damaged_reads, 0U);
  }
  EXPECT_LE(look(room)->bytes_in_use(), room);
}

// Of one set what passes has filled the room, and then it is the other one's turn.
TEST_F(windows, of_two_sets_make_way_for_one_another) {
  constexpr std::uint32_t epochs = 3;
  const auto two = [&](const std::function<dataset(const std::string&)>& opened) {
    return concat({opened("train-{0..11}.tar"), opened("train-{12..23}.tar")});
  };
  const dataset samples = two([&](const std::string& names) { return set(room, names); });
  const seen_run files =
      testing::run_all(two([&](const std::string& names) { return here(names); }), options(epochs), fields());
  static_cast<void>(samples_asked_for());  // by opening
  expect_to_pass(samples, epochs, files);
  EXPECT_LE(look(room)->bytes_in_use(), room);
}

// Of two runs, one after the other, with the first one's set still open.
TEST_F(windows, pass_where_another_set_of_the_process_has_left_the_room_full) {
  constexpr std::uint32_t epochs = 2;
  const dataset first = set(room);
  EXPECT_EQ(testing::run_all(first, options(epochs), fields()).batches, of_files(epochs).batches);
  for (int i = 0; i < shards_of_set; ++i) put("other-" + std::to_string(i) + ".tar", shard_of(100 + i));
  const dataset second = set(room, "other-{0..23}.tar");
  static_cast<void>(samples_asked_for());  // by opening
  const seen_run seen = testing::run_all(second, options(epochs), fields());
  EXPECT_EQ(seen.failed, std::nullopt) << seen.message;
  EXPECT_EQ(seen.batches, testing::run_all(here("other-{0..23}.tar"), options(epochs), fields()).batches);
  // What is left at an end of a shard may be as long as none of the first set.
  EXPECT_LT(seen.stats.remote.requests, 2 * epochs * blocks_of_set_);
  EXPECT_LE(look(room)->bytes_in_use(), room);
}

TEST_F(windows, have_the_room_that_an_exact_order_has_filled) {
  const dataset samples = set(room);
  testing::loader_options exact = testing::small_options();
  const seen_run before = testing::run_all(samples, exact, fields());
  EXPECT_EQ(before.failed, std::nullopt) << before.message;
  EXPECT_EQ(look(room)->passing_bytes(), 0U);
  static_cast<void>(samples_asked_for());
  const seen_run seen = testing::run_all(samples, options(2), fields());
  EXPECT_EQ(seen.batches, of_files(2).batches);
  EXPECT_EQ(samples_asked_for(), 0U);
  EXPECT_LE(look(room)->bytes_in_use(), room);
}

// Each of two nodes has a cache that is smaller than its share.
TEST_F(windows, of_a_nodes_share_pass_through_its_cache) {
  constexpr std::uint64_t room_of_node = 58 * block_bytes;
  constexpr std::uint32_t epochs = 2;
  const std::uint64_t share = (blocks_of_set_ + 1) / 2;
  ASSERT_GT(share * block_bytes, room_of_node);
  for (std::uint32_t node = 0; node < 2; ++node) {
    fs::remove_all(cache_path());
    const dataset samples = set(room_of_node);
    testing::loader_options wanted = options(epochs);
    wanted.order = node_local(shuffled_blocks(2), 2);
    wanted.world = {.rank = node, .size = 2};
    EXPECT_THAT(testing::loader(samples, wanted, fields()).plan().warnings,
                ::testing::Contains(::testing::AllOf(HasSubstr(", this node's share: each epoch fetches about "),
                                                     HasSubstr(" of it through which the order's pools pass"))));
    static_cast<void>(samples_asked_for());
    const seen_run seen = testing::run_all(samples, wanted, fields());
    EXPECT_EQ(seen.failed, std::nullopt) << seen.message;
    EXPECT_EQ(seen.batches, testing::run_all(here("train-{0..23}.tar"), wanted, fields()).batches);
    EXPECT_EQ(samples_asked_for(), 0U);
    EXPECT_LE(seen.stats.remote.requests, epochs * (share + 8)) << "a shard more or less";
    EXPECT_LE(look(room_of_node)->bytes_in_use(), room_of_node);
    EXPECT_GT(look(room_of_node)->passing_bytes(), 0U);
  }
}

// Two ranks of a node, side by side as in training, and one cache for both.
TEST_F(windows, of_a_nodes_share_are_fetched_once_for_its_ranks) {
  constexpr std::uint32_t epochs = 3;
  constexpr std::uint32_t nodes = 2;
  constexpr std::uint32_t ranks = 2;
  constexpr int shards_of_node = 24;
  const std::string names = "train-{0..47}.tar";
  std::vector<std::uint64_t> blocks(nodes, 0);
  for (int i = 0; i < static_cast<int>(nodes) * shards_of_node; ++i)
    blocks[static_cast<std::size_t>(i / shards_of_node)] += put_shard(i);
  static_cast<void>(set(room, names));  // makes the index
  const auto digests_of = [&](const std::vector<std::unique_ptr<testing::loader>>& loaders) {
    while (!loaders.back()->finished()) {
      for (const auto& each : loaders) static_cast<void>(each->next_blocking());
    }
    std::vector<std::string> digests;
    for (const auto& each : loaders) digests.push_back(each->state().run_digest.value().hex());
    return digests;
  };
  for (std::uint32_t node = 0; node < nodes; ++node) {
    ASSERT_GT(blocks[node] * block_bytes, room + (1U << 20));
    fs::remove_all(cache_path());
    const dataset samples = set(room, names);
    std::vector<std::unique_ptr<testing::loader>> running;
    std::vector<std::unique_ptr<testing::loader>> of_files;
    for (std::uint32_t rank = 0; rank < ranks; ++rank) {
      testing::loader_options wanted = options(epochs);
      wanted.digests = true;
      wanted.batch_size = 4;
      wanted.order = node_local(shuffled_blocks(2), nodes);
      wanted.world = {.rank = node * ranks + rank, .size = nodes * ranks, .local_rank = rank, .local_size = ranks};
      running.push_back(std::make_unique<testing::loader>(samples, wanted, fields()));
      of_files.push_back(std::make_unique<testing::loader>(here(names), wanted, fields()));
    }
    static_cast<void>(samples_asked_for());  // by opening
    EXPECT_THAT(running.front()->plan().warnings,
                ::testing::Contains(HasSubstr(" of it through which the order's pools pass")));
    EXPECT_EQ(digests_of(running), digests_of(of_files));
    // A dataset counts for all that read it.
    EXPECT_LE(running.front()->stats().remote.requests, epochs * blocks[node]);
    EXPECT_EQ(samples_asked_for(), 0U);
    EXPECT_GT(look(room)->passing_bytes(), 0U);
    EXPECT_LE(look(room)->bytes_in_use(), room);
  }
}

TEST_F(windows, are_read_by_samples_where_a_cache_has_no_room_for_two_of_them) {
  constexpr std::uint64_t little = 10 * block_bytes;
  const dataset samples = set(little);
  EXPECT_THAT(testing::loader(samples, options(2), fields()).plan().warnings,
              ::testing::Contains(::testing::AllOf(HasSubstr(" by samples, in about "),
                                                   HasSubstr(" the order's pools are fetched in blocks"))));
  const seen_run seen = testing::run_all(samples, options(2), fields());
  EXPECT_EQ(seen.batches, of_files(2).batches);
  EXPECT_GT(seen.stats.remote.requests, seen.stats.remote.cached_blocks);
  EXPECT_GT(samples_asked_for(), 0U);
  EXPECT_EQ(look(little)->passing_bytes(), 0U);
}

TEST_F(remote_cache, is_filled_once_by_all_that_read_at_the_same_time) {
  const std::uint64_t before = server_.requests();
  std::vector<seen_run> seen(3);
  {
    std::vector<std::jthread> readers;
    for (seen_run& each : seen) readers.emplace_back([this, &each] { each = run(opened(cached())); });
  }
  for (const seen_run& each : seen) expect_right(each);
  EXPECT_EQ(server_.requests() - before, seen.size() * opening + blocks_);
}

// Each of three nodes has a cache for its own shard.
TEST_F(remote_cache, needs_room_for_the_share_of_its_node_only) {
  for (std::uint32_t node = 0; node < shards; ++node) {
    const std::uint64_t blocks = (shard_of(static_cast<int>(node)).size() + block_bytes - 1) / block_bytes;
    const std::uint64_t room = std::max(blocks, (blocks_ + shards - 1) / shards) * block_bytes;
    fs::remove_all(cache_path());
    const dataset samples = opened_by_index(cached(room));
    testing::loader_options options = testing::small_options();
    options.order = node_local(shuffled(), shards);
    options.world = {.rank = node, .size = shards};
    EXPECT_THAT(testing::loader(samples, options, fields()).plan().warnings, ::testing::IsEmpty());
    const seen_run first = testing::run_all(samples, options, fields());
    EXPECT_EQ(first.failed, std::nullopt) << first.message;
    EXPECT_LE(first.stats.remote.cached_blocks, blocks);
    EXPECT_EQ(first.stats.remote.requests, first.stats.remote.cached_blocks);
    EXPECT_EQ(testing::run_all(samples, options, fields()).stats.remote.requests, 0U);
    EXPECT_EQ(first.batches, testing::run_all(here("train-{0..2}.tar"), options, fields()).batches);
  }
}

TEST_F(remote_cache, that_has_room_for_the_share_of_a_node_says_how_to_have_it_read_that_only) {
  const dataset samples = opened_by_index(cached((blocks_ / 2 + 1) * block_bytes));
  testing::loader_options options = testing::small_options();
  const auto warning = [&] { return testing::loader(samples, options, fields()).plan().warnings.at(0); };
  EXPECT_THAT(warning(), ::testing::Not(HasSubstr("node_local")));
  options.world = {.rank = 0, .size = 4, .local_rank = 0, .local_size = 2};
  EXPECT_THAT(
      warning(),
      HasSubstr("; nor do they with loader_options::order = node_local(), where each of the 2 nodes reads a share"));
  options.order = node_local(shuffled(), 3);
  options.world = {.rank = 0, .size = 3};
  EXPECT_THAT(testing::loader(samples, options, fields()).plan().warnings, ::testing::IsEmpty());
}

// The first batch is with the trainer, and one more is all that there is memory for.
TEST_F(remote_cache, fetches_blocks_before_the_reads_that_want_them_are_there) {
  // The end of a shard is no sample's.
  const std::uint64_t wanted = run(opened_by_index(cached())).stats.remote.requests;
  ASSERT_GE(wanted + shards, blocks_);
  for (const std::uint32_t io_threads : {1U, 2U}) {
    for (const bool shuffle : {false, true}) {
      fs::remove_all(cache_path());
      const dataset samples = opened_by_index(cached());
      testing::loader_options options = testing::small_options();
      options.batch_size = 2;
      options.prefetch_batches = 1;
      options.shuffle = shuffle;
      options.reader.io_threads = io_threads;
      const std::uint64_t before = server_.requests();
      testing::loader running(samples, options, fields());
      const auto first = running.next_blocking();
      ASSERT_TRUE(first);
      const auto give_up_at = std::chrono::steady_clock::now() + std::chrono::seconds(20);
      while (running.stats().remote.cached_blocks < wanted && std::chrono::steady_clock::now() < give_up_at) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
      EXPECT_EQ(running.stats().remote.cached_blocks, wanted);
      EXPECT_EQ(server_.requests() - before, wanted) << "each one once";
      EXPECT_LE(running.stats().read.count, 4 * options.batch_size);
    }
  }
}

TEST_F(remote_cache, reads_as_much_at_a_time_over_the_network_as_it_has_connections) {
  const auto reads_in_flight = [&](const dataset& samples) {
    const testing::loader built(samples, testing::small_options(), fields());
    for (const loader_plan::line& each : built.plan().lines) {
      if (each.holder == "read buffers") return each.why;
    }
    return std::string();
  };
  EXPECT_THAT(reads_in_flight(here("train-0.tar")), StartsWith("128 in flight"));
  EXPECT_THAT(reads_in_flight(there("train-0.tar", {.allow_http = true, .connections_max = 200})),
              StartsWith(std::to_string(std::clamp(io::descriptors_allowed() / 8, 128U, 200U)) + " in flight"));
}

// Their labels were read when the set was opened: there is nothing to look ahead for.
TEST_F(remote_cache, goes_on_where_samples_read_nothing) {
  server_.put("labels.csv", "file,cls\na,1\nb,0\nc,1\nd,1\ne,0\n");
  const dataset samples = open(server_.address("labels.csv"), {.tables = {.columns = {"cls"}}, .remote = cached()});
  testing::loader_options options = testing::small_options();
  options.batch_size = 2;
  options.epochs = 0;
  testing::loader running(samples, options, {label("cls")});
  std::uint64_t rows = 0;
  while (rows < 4 * samples.size()) {
    const auto next = running.next_blocking();
    rows += next ? next->valid_rows() : 0;
  }
  EXPECT_EQ(running.stats().read.count, 0U);
}

// As many batches are hinted as are wanted, in the epoch that comes after one that is left.
TEST_F(remote_cache, looks_ahead_in_the_epoch_that_follows_one_that_was_skipped) {
  const dataset samples = opened_by_index(cached());
  testing::loader_options options = testing::small_options();
  options.epochs = 4;
  testing::loader running(samples, options, fields());
  for (std::uint32_t epoch = 0; epoch < 3; ++epoch) {
    const auto first = running.next_blocking();
    ASSERT_TRUE(first);
    EXPECT_EQ(first->epoch(), epoch);
    running.skip_epoch();
  }
  std::uint64_t rows = 0;
  while (const auto each = running.next_blocking()) rows += each->valid_rows();
  EXPECT_EQ(rows, samples.size());
}

TEST_F(remote_cache, finds_a_flipped_bit_before_it_is_delivered_and_fetches_the_block_anew) {
  expect_right(run(opened(cached())));
  const auto requests_of_a_run = [&] {
    const std::uint64_t before = server_.requests();
    expect_right(run(opened(cached())));
    return server_.requests() - before;
  };
  const std::uint64_t wanted = requests_of_a_run();
  flip_a_bit();
  // Whoever reads it first finds it: opening, which goes over the shards, or the run.
  EXPECT_EQ(requests_of_a_run(), wanted + shards) << "a block of each shard";
  EXPECT_EQ(requests_of_a_run(), wanted);
}

// By an index beside the shards it reads none of them but a header: then it is the loader's to find.
TEST_F(remote_cache, finds_a_flipped_bit_where_opening_reads_nothing) {
  expect_right(run(opened_by_index(cached())));
  const dataset samples = opened_by_index(cached());
  flip_a_bit();
  const std::uint64_t before = server_.requests();
  const seen_run mended = run(samples);
  expect_right(mended);
  EXPECT_EQ(server_.requests() - before, shards) << "a block of each shard";
  EXPECT_GE(mended.stats.remote.damaged_reads, 1U);
  EXPECT_LE(mended.stats.remote.cached_blocks, shards) << "the last one may be written when its reads have gone on";
  EXPECT_EQ(run(samples).stats.remote.requests, 0U);
}

TEST_F(remote_cache, takes_over_what_a_killed_process_was_about_to_fill) {
  expect_right(run(opened(cached())));
  const dataset samples = opened(cached());
  flip_a_bit();
  const pid_t child = ::fork();
  if (child == 0) {
    std::string refusal;
    const auto cache =
        io::block_cache::open({.directory = cache_path(), .bytes_max = 64U << 20, .block_bytes = block_bytes}, refusal);
    if (!cache) ::_exit(1);
    std::vector<std::shared_ptr<io::cached_object>> held;
    for (const io::cache_entry& each : cache->entries()) {
      static_cast<void>(cache->verify(each));  // takes the damaged block out
      held.push_back(cache->object(each.file, each.name, each.size_bytes, refusal));
      if (held.back()->claim(0) != io::cached_object::state::claimed) ::_exit(2);
    }
    ::raise(SIGKILL);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status)) << WEXITSTATUS(status);
  const std::uint64_t before = server_.requests();
  expect_right(run(samples));
  EXPECT_EQ(server_.requests() - before, shards);
}

TEST_F(remote_cache, has_the_right_batches_where_one_request_in_five_goes_wrong) {
  server_.set_rule([random = testing::seeded_random(19)](const served_request&) mutable {
    const http_fault faults[] = {{.what = http_fault::kind::hang_up},
                                 {.what = http_fault::kind::status, .status = 503},
                                 {.what = http_fault::kind::cut, .bytes = 10},
                                 {.what = http_fault::kind::cut, .bytes = 5'000}};
    return random.below(5) == 0 ? faults[random.below(std::size(faults))] : http_fault();
  });
  const dataset samples = opened(cached());
  expect_right(run(samples));
  const seen_run warm = run(samples);
  expect_right(warm);
  EXPECT_EQ(warm.stats.remote.requests, 0U);
}

TEST_F(remote_cache, tells_one_version_of_an_object_from_the_next) {
  expect_right(run(opened(cached())));
  put("train-1.tar", shard_of(4));
  expect_right(run(opened(cached())));
  std::vector<std::string> names;
  for (const io::cache_entry& each : look()->entries()) names.push_back(each.name);
  EXPECT_EQ(names, (std::vector<std::string>{server_.address("train-0.tar"), server_.address("train-1.tar"),
                                             server_.address("train-1.tar"), server_.address("train-2.tar")}));
  // A set that is read now takes the place of one that nobody reads.
  const std::uint64_t room = look()->bytes_in_use();
  put("train-2.tar", shard_of(5));
  expect_right(run(opened(cached(room))));
  EXPECT_LE(look(room)->bytes_in_use(), room);
}

// Of one size, and written in the same second.
TEST_F(remote_cache, tells_objects_apart_that_differ_in_the_query_only) {
  server_.set_rule([](const served_request&) {
    return http_fault{.what = http_fault::kind::untagged,
                      .headers =
                          "Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT\r\n"
                          "Date: Sun, 06 Nov 1994 08:49:50 GMT\r\n"};
  });
  const index_options index = {.use = index_use::check, .directory = (folder_.path() / "kept").string()};
  std::string content = shard_of(6);
  put("part.tar?number=0", content);
  content[700] = static_cast<char>(content[700] ^ 1);  // in the first sample's bytes
  put("part.tar?number=1", content);
  std::vector<seen_run> seen;
  for (int round = 0; round < 2; ++round) {
    for (const char* const number : {"0", "1"}) {
      const std::string at = server_.address(std::string("part.tar?number=") + number);
      seen.push_back(run(open(at, {.index = index, .remote = cached()})));
      EXPECT_EQ(seen.back().failed, std::nullopt) << seen.back().message;
    }
  }
  EXPECT_NE(seen[0].batches, seen[1].batches);
  EXPECT_EQ(seen[0].batches, seen[2].batches);
  EXPECT_EQ(seen[1].batches, seen[3].batches);
  EXPECT_EQ(seen[3].stats.remote.requests, 0U);
}

TEST_F(remote_cache, does_not_take_a_weak_tag_for_the_same_bytes) {
  server_.set_rule([](const served_request&) {
    return http_fault{.what = http_fault::kind::untagged, .headers = "ETag: W/\"a\"\r\n"};
  });
  const seen_run seen = run(opened(cached()));
  expect_right(seen);
  EXPECT_THAT(seen.stats.remote.cache,
              ::testing::AllOf(StartsWith("on; 3 of 3 objects are not kept"), HasSubstr("no ETag of each byte")));
  EXPECT_EQ(seen.stats.remote.bytes_from_cache, 0U);
}

TEST_F(remote_cache, does_not_wait_for_ever_for_a_block_that_a_stopped_process_fills) {
  expect_right(run(opened(cached())));
  flip_a_bit();
  const auto other = look();
  std::vector<std::shared_ptr<io::cached_object>> held;
  for (const io::cache_entry& each : other->entries()) {
    static_cast<void>(other->verify(each));  // takes the damaged block out
    std::string refusal;
    held.push_back(other->object(each.file, each.name, each.size_bytes, refusal));
    ASSERT_EQ(held.back()->claim(0), io::cached_object::state::claimed);  // and does no more
  }
  const std::vector<std::string> names = {server_.address("train-0.tar")};
  std::vector<io::remote_object> objects = {{.where = io::parse_address(names[0])}};
  const auto samples = datasets::open_shards_of_source(
      std::make_shared<const io::remote_description>(
          std::move(objects), cached(), io::retry_options{.others_patience = std::chrono::milliseconds(20)}),
      {});
  const seen_run seen = run(samples);
  EXPECT_EQ(seen.failed, std::nullopt) << seen.message;
  EXPECT_EQ(seen.batches, run(here("train-0.tar")).batches);
  EXPECT_GT(seen.stats.remote.bytes_from_cache, 0U);
  EXPECT_GT(seen.stats.remote.requests, 0U);
}

TEST_F(remote_cache, ends_where_an_object_has_changed_that_is_not_cached_yet) {
  constexpr std::uint64_t room = 4 * block_bytes;
  const dataset samples = opened(cached(room));
  put("train-1.tar", shard_of(4));
  const seen_run ended = run(samples);
  EXPECT_EQ(ended.failed, errc::changed);
  EXPECT_THAT(ended.message, HasSubstr("/train-1.tar"));
}

TEST_F(remote_cache, goes_on_over_the_network_where_it_cannot_be_written) {
  std::ofstream(cache_path()) << "a file";
  const seen_run none = run(opened(cached()));
  expect_right(none);
  EXPECT_THAT(none.stats.remote.cache, ::testing::AllOf(StartsWith("off: "), HasSubstr("no folder")));
  EXPECT_EQ(none.stats.remote.bytes_from_cache, 0U);
  fs::remove(cache_path());
  const auto replace_data = [&](const std::function<void(const fs::path&)>& make) {
    for (const io::cache_entry& each : look()->entries()) {
      const fs::path data = fs::path(cache_path()) / (each.file + ".data");
      fs::remove(data);
      make(data);
    }
  };
  // Data files are not written through links: they are made anew.
  expect_right(run(opened(cached())));
  const fs::path elsewhere = folder_.path() / "elsewhere";
  std::ofstream(elsewhere) << "somebody's";
  replace_data([&](const fs::path& data) { fs::create_symlink(elsewhere, data); });
  const seen_run mended = run(opened(cached()));
  expect_right(mended);
  EXPECT_EQ(mended.stats.remote.cache, "on");
  EXPECT_EQ(fs::file_size(elsewhere), 10U);
  // In the middle of it, and of one object only.
  const dataset samples = opened(cached());
  const fs::path data = fs::path(cache_path()) / (look()->entries()[1].file + ".data");
  fs::remove(data);
  fs::create_directory(data);
  const seen_run broken = run(samples);
  expect_right(broken);
  EXPECT_THAT(broken.stats.remote.cache, StartsWith("on; 1 of 3 objects are not kept: "));
  const seen_run after = run(samples);
  expect_right(after);
  EXPECT_GT(after.stats.remote.bytes_from_cache, 0U) << "the others are kept";
}

// A drive of its own, which only this thread and those that it starts see.
TEST_F(remote_cache, goes_on_over_the_network_where_the_drive_is_full_or_read_only) {
  std::string refusal;
  std::thread([&] {
    const auto mounted = [&](const char* type, unsigned long flags, const char* options) {
      if (::mount(type, cache_path().c_str(), type, flags, options) == 0) return true;
      refusal = std::strerror(errno);
      return false;
    };
    fs::create_directory(cache_path());
    if (::unshare(CLONE_NEWNS) != 0 || ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) {
      refusal = std::strerror(errno);
      return;
    }
    if (!mounted("tmpfs", 0, "size=512k,mode=0700")) return;
    const seen_run full = run(opened(cached()));
    expect_right(full);
    EXPECT_THAT(full.stats.remote.cache, ::testing::AllOf(StartsWith("off: "), HasSubstr("ENOSPC")));
    ASSERT_TRUE(mounted(nullptr, MS_REMOUNT | MS_RDONLY, nullptr)) << refusal;
    const seen_run read_only = run(opened(cached()));
    expect_right(read_only);
    EXPECT_THAT(read_only.stats.remote.cache, ::testing::AllOf(StartsWith("off: "), HasSubstr("EROFS")));
    EXPECT_EQ(::umount2(cache_path().c_str(), MNT_DETACH), 0);
  }).join();
  if (!refusal.empty()) GTEST_SKIP() << "no file system can be mounted here: " << refusal;
}

TEST_F(remote_cache, fetches_a_block_for_all_reads_that_wait_for_it_and_tells_each_why_it_cannot_be_had) {
  std::vector<io::remote_object> objects = {{.where = io::parse_address(server_.address("train-0.tar"))}};
  const auto samples = datasets::open_shards_of_source(
      std::make_shared<const io::remote_description>(
          std::move(objects), cached(), io::retry_options{.tries_max = 3, .wait_first = std::chrono::milliseconds(1)}),
      {});
  flip_a_bit();  // in its first block
  for (const unsigned status : {503U, 404U}) {
    std::atomic<unsigned> whole{0};
    std::atomic<unsigned> others{0};
    server_.set_rule([&whole, &others, status](const served_request& asked) {
      ++(asked.value("Range") == "bytes=0-65535" ? whole : others);
      return http_fault{.what = http_fault::kind::status, .status = status};
    });
    testing::loader_options options = testing::small_options();
    options.on_corrupt = corrupt_policy::skip;
    options.unreadable_max = 1'000;
    const seen_run seen = testing::run_all(samples, options, fields());
    EXPECT_GE(whole, status == 503 ? 3U : 1U);
    EXPECT_EQ(others, 0U) << "no read tries again by itself";
    if (status == 503) {
      EXPECT_EQ(seen.failed, errc::io);
      EXPECT_THAT(seen.message, ::testing::AllOf(HasSubstr("/train-0.tar at offset "), HasSubstr("3 tries")));
    } else {
      EXPECT_EQ(seen.failed, std::nullopt) << seen.message;
      EXPECT_GE(seen.stats.quarantined, 1U);
      EXPECT_EQ(seen.stats.samples + seen.stats.quarantined, 2 * samples.size());
    }
    server_.set_rule([](const served_request&) { return http_fault(); });
  }
}

TEST_F(remote_cache, fetches_within_the_memory_that_the_plan_names) {
  const auto network_line = [](const loader_plan& plan) {
    for (const loader_plan::line& each : plan.lines) {
      if (each.holder == "network") return each;
    }
    return loader_plan::line();
  };
  constexpr std::uint64_t connections = std::uint64_t{256} * 8 << 10;
  constexpr std::uint64_t connections_least = connections / 8;
  const dataset samples = there("train-0.tar", cached());
  const auto small = network_line(testing::loader(samples, testing::small_options(), fields()).plan());
  EXPECT_EQ(small.bytes, 16 * block_bytes + connections);
  EXPECT_THAT(small.why, HasSubstr("16 blocks of 64.0 KiB that are fetched into the cache, 256 connections"));
  // More than a budget of 40 MiB has.
  fs::remove_all(cache_path());
  remote_options by_large_blocks = cached();
  by_large_blocks.cache_block_bytes = 4U << 20;
  const dataset large = there("train-0.tar", by_large_blocks);
  const seen_run right = run(here("train-0.tar"));
  const loader_plan plan = testing::loader(large, testing::small_options(), fields()).plan();
  EXPECT_GE(network_line(plan).bytes, connections_least + (4U << 20));
  EXPECT_LT(network_line(plan).bytes, connections + 16 * (4U << 20));
  EXPECT_LE(plan.bytes_total, plan.host_bytes_max);
  flip_a_bit();
  // Opened anew, since pages that were read of the drive when it was opened before are known.
  const seen_run mended = run(there("train-0.tar", by_large_blocks));
  EXPECT_EQ(mended.batches, right.batches);
  EXPECT_LE(mended.stats.remote.cached_blocks, 1U);
  // The blocks of an object that is there are larger than all memory for them.
  flip_a_bit();
  const seen_run without_room = run(there("train-0.tar", cached()));
  EXPECT_EQ(without_room.batches, right.batches);
  EXPECT_THAT(without_room.stats.remote.cache, HasSubstr("its blocks of 4.00 MiB have no room in the 1.00 MiB"));
}

TEST_F(remote_cache, is_refused_without_a_size_and_taken_from_the_environment) {
  const auto said = [&](const remote_options& options) {
    return testing::message_of(errc::usage, [&] { static_cast<void>(opened(options)); });
  };
  EXPECT_THAT(said({.allow_http = true, .cache = cache_path()}), HasSubstr("cache_bytes"));
  EXPECT_THAT(said({.allow_http = true, .cache_bytes = 5}), HasSubstr("no folder"));
  EXPECT_THAT(said({.allow_http = true, .cache = cache_path(), .cache_bytes = 5, .cache_block_bytes = 5}),
              HasSubstr("4096"));
  ::setenv("LEAT_CACHE", cache_path().c_str(), 1);
  ::setenv("LEAT_CACHE_BYTES", "many", 1);
  EXPECT_THAT(said({.allow_http = true}), HasSubstr("'many'"));
  ::setenv("LEAT_CACHE_BYTES", "1GiB", 1);
  const dataset samples = opened({.allow_http = true});
  ::unsetenv("LEAT_CACHE");
  ::unsetenv("LEAT_CACHE_BYTES");
  EXPECT_EQ(run(samples).stats.remote.cache, "on");
}

}  // namespace
}  // namespace leat
