// One digest, wherever the bytes come from: the command over files, HTTP, S3 and a cache, alone and as several processes of which some
// are killed. And no secret in anything that it writes.
#include "io/remote/block_cache.hpp"
#include "tests/datasets/archive.hpp"
#include "tests/support/fault_server.hpp"
#include "tests/support/raw_files.hpp"
#include "tests/support/seeded_random.hpp"
#include "tests/support/seeds.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/tools/command.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace leat::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::uint64_t block_bytes = std::uint64_t{4} << 20;

/// Three shards of 9 MiB on the disk and, the same ones, at a server and in its bucket.
class remote_command : public ::testing::Test {
 protected:
  static constexpr int shards = 3;

  remote_command() {
    for (int s = 0; s < shards; ++s) {
      const std::string name = "train-" + std::to_string(s) + ".tar";
      const std::string bytes = put_shard(name, 100 * s, 45, 200'000, true);
      server_.put("bucket/" + name, bytes);
      blocks_ += (bytes.size() + block_bytes - 1) / block_bytes;
    }
  }

  // On the disk and at the server: samples of so many bytes, by their numbers.
  std::string put_shard(const std::string& name, int first, int count, std::size_t sample_bytes, bool has_classes) {
    archive made;
    for (int i = 0; i < count; ++i) {
      const std::string number = std::to_string(first + i);
      std::vector<std::byte> content(sample_bytes);
      fill_seeded(static_cast<std::uint64_t>(first + i), 0, content);
      made.file(number + ".bin", {reinterpret_cast<const char*>(content.data()), content.size()});
      if (has_classes) made.file(number + ".cls", std::to_string(i % 10));
    }
    std::string bytes = made.end().bytes();
    write_file(folder_.path() / name, bytes);
    server_.put(name, bytes);
    return bytes;
  }

  using arguments = std::vector<std::string>;
  [[nodiscard]] arguments epoch_of(const std::string& source, const arguments& more = {}) const {
    arguments all = {"epoch", source, "--batch-size", "8", "--json", "--index", (folder_.path() / "index").string()};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  [[nodiscard]] std::string here() const { return (folder_.path() / "train-{0..2}.tar").string(); }
  [[nodiscard]] std::string there() const { return server_.address("train-{0..2}.tar"); }
  [[nodiscard]] arguments cached(const std::string& bytes = "1GiB") const {
    return {"--allow-http", "--cache", (folder_.path() / "cache").string(), "--cache-bytes", bytes};
  }
  static std::string digest_of(const ended& run) {
    EXPECT_EQ(run.exit_code, 0) << run.err;
    return run.exit_code == 0 ? run.json().at("digest").get<std::string>() : run.err;
  }

  // Half of them, but never the first one, from when so many requests have been counted.
  static void kill_some(const std::vector<std::unique_ptr<command>>& processes,
                        const std::atomic<std::uint64_t>& counted, std::uint64_t when, seeded_random& random) {
    const auto give_up_at = std::chrono::steady_clock::now() + std::chrono::seconds(5);
    while (counted < when && std::chrono::steady_clock::now() < give_up_at)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    for (std::size_t i = 1; i < processes.size(); ++i) {
      if (random.below(2) == 0) continue;
      processes[i]->signal(SIGKILL);
      std::this_thread::sleep_for(std::chrono::milliseconds(random.below(40)));
    }
  }

  const temporary_directory folder_;
  fault_server server_;
  std::uint64_t blocks_ = 0;
};

TEST_F(remote_command, has_one_digest_wherever_the_bytes_come_from) {
  for (const arguments& order : {arguments{}, arguments{"--no-shuffle"}, arguments{"--shuffle-blocks", "2"}}) {
    fs::remove_all(folder_.path() / "cache");
    const auto digest = [&](const std::string& source, arguments more) {
      more.insert(more.end(), order.begin(), order.end());
      return digest_of(run(epoch_of(source, more)));
    };
    const auto with = [](arguments all, const arguments& more) {
      all.insert(all.end(), more.begin(), more.end());
      return all;
    };
    const std::string files = digest(here(), {});
    EXPECT_EQ(digest(there(), {"--allow-http"}), files) << "http";
    EXPECT_EQ(
        digest("s3://bucket/train-{0..2}.tar", {"--allow-http", "--endpoint", server_.address(""), "--anonymous"}),
        files)
        << "s3";
    EXPECT_EQ(digest("s3://bucket/", {"--allow-http", "--endpoint", server_.address(""), "--anonymous"}), files)
        << "a bucket that is listed";
    static_cast<void>(digest(there(), with(cached(), {"--limit", "3"})));
    EXPECT_EQ(digest(there(), cached()), files) << "half cached";
    EXPECT_EQ(digest(there(), cached()), files) << "warm";
    fs::remove_all(folder_.path() / "cache");
    EXPECT_EQ(digest(there(), cached()), files) << "cold";
    fs::remove_all(folder_.path() / "cache");
    for (int round = 0; round < 2; ++round) {
      EXPECT_EQ(digest(there(), cached("9MiB")), files) << "a cache for a third of it";
      EXPECT_EQ(digest(there(), cached("1MiB")), files) << "a cache without room for a block";
    }
    fs::remove_all(folder_.path() / "cache");
    std::vector<std::string> seen(2);
    {
      std::vector<std::jthread> processes;
      for (std::string& each : seen) processes.emplace_back([&] { each = digest(there(), cached()); });
    }
    EXPECT_EQ(seen, (std::vector<std::string>{files, files})) << "two processes";
  }
}

// What a killed process has finished stays, and what it had begun is taken over: a block is fetched again for nobody but who was about to
// fill it, which are 16 at a time.
TEST_F(remote_command, shares_a_cache_among_processes_of_which_some_are_killed) {
  const std::string files = digest_of(run(epoch_of(here())));
  std::atomic<std::uint64_t> fetches{0};
  server_.set_rule([&fetches](const served_request& asked) {
    if (asked.value("Range") == "bytes=0-0") return http_fault();
    ++fetches;
    return http_fault{.what = http_fault::kind::late, .wait = std::chrono::milliseconds(30)};
  });
  static_cast<void>(run(epoch_of(there(), {"--allow-http"})));  // makes the index
  std::uint64_t killed = 0;
  std::uint64_t fetched_again = 0;
  for_each_seed(3, [&](std::uint64_t seed) {
    seeded_random random(seed);
    fs::remove_all(folder_.path() / "cache");
    fetches = 0;
    std::vector<std::unique_ptr<command>> processes;
    const std::uint64_t count = 4 + random.below(5);
    for (std::uint64_t i = 0; i < count; ++i)
      processes.push_back(std::make_unique<command>(epoch_of(there(), cached())));
    std::uint64_t kills = 0;
    // While blocks are on their way, mostly.
    kill_some(processes, fetches, 1 + random.below(blocks_), random);
    for (const auto& each : processes) {
      const ended how = each->wait();
      if (how.killed) {
        ++kills;
      } else {
        EXPECT_EQ(digest_of(how), files);
      }
    }
    constexpr std::uint64_t blocks_at_a_time = 16;
    EXPECT_LE(fetches.load(), blocks_ + kills * std::min(blocks_, blocks_at_a_time));
    if (kills == 0) EXPECT_EQ(fetches.load(), blocks_);
    killed += kills;
    fetched_again += fetches.load() > blocks_ ? fetches.load() - blocks_ : 0;
    const std::uint64_t before = fetches.load();
    EXPECT_EQ(digest_of(run(epoch_of(there(), cached()))), files);
    EXPECT_EQ(fetches.load(), before) << "all of it is there";
  });
  RecordProperty("killed", static_cast<int>(killed));
  std::printf("%llu processes were killed; %llu blocks were fetched a second time\n",
              static_cast<unsigned long long>(killed), static_cast<unsigned long long>(fetched_again));
}

/// 32 shards of 7 blocks of 64 KiB, and a cache for less than half of them: windows of two shards pass through it.
class passing_windows : public remote_command {
 protected:
  static constexpr std::uint32_t small_block_bytes = 64U << 10;
  static constexpr std::uint64_t room = std::uint64_t{6} << 20;

  passing_windows() {
    for (int s = 0; s < 32; ++s) {
      bytes_of_set_ += put_shard("part-" + std::to_string(s) + ".tar", 1'000 + 100 * s, 20, 20'000, false).size();
    }
  }
  [[nodiscard]] arguments epochs_of(const std::string& source, const arguments& more = {}) const {
    arguments all = epoch_of(source, {"--shuffle-blocks", "2", "--epochs", "2", "--prefetch-batches", "2"});
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  [[nodiscard]] std::string here() const { return (folder_.path() / "part-{0..31}.tar").string(); }
  [[nodiscard]] std::string there() const { return server_.address("part-{0..31}.tar"); }
  [[nodiscard]] arguments through_cache() const {
    arguments all = cached(std::to_string(room));
    all.insert(all.end(), {"--cache-block-bytes", std::to_string(small_block_bytes)});
    return all;
  }
  [[nodiscard]] std::shared_ptr<io::block_cache> look() const {
    std::string refusal;
    auto cache = io::block_cache::open(
        {.directory = (folder_.path() / "cache").string(), .bytes_max = room, .block_bytes = small_block_bytes},
        refusal);
    EXPECT_NE(cache, nullptr) << refusal;
    return cache;
  }
  [[nodiscard]] std::uint64_t bytes_on_disk() const {
    std::uint64_t sum = 0;
    for (const auto& each : fs::directory_iterator(folder_.path() / "cache")) {
      struct stat status{};
      if (each.path().extension() == ".data" && ::stat(each.path().c_str(), &status) == 0)
        sum += static_cast<std::uint64_t>(status.st_blocks) * 512;
    }
    return sum;
  }

  std::uint64_t bytes_of_set_ = 0;
};

TEST_F(passing_windows, have_one_digest_by_one_and_two_io_threads_alone_and_side_by_side) {
  const std::string files = digest_of(run(epochs_of(here())));
  const auto by = [&](const std::string& io_threads) {
    arguments all = through_cache();
    all.insert(all.end(), {"--io-threads", io_threads});
    return digest_of(run(epochs_of(there(), all)));
  };
  for (const char* const io_threads : {"1", "2"}) {
    fs::remove_all(folder_.path() / "cache");
    EXPECT_EQ(by(io_threads), files) << io_threads << ", into an empty cache";
    EXPECT_EQ(by(io_threads), files) << io_threads << ", once more";
    EXPECT_GT(look()->passing_bytes(), 0U);
  }
  fs::remove_all(folder_.path() / "cache");
  std::vector<std::string> seen(2);
  {
    std::vector<std::jthread> processes;
    for (std::size_t i = 0; i < seen.size(); ++i) processes.emplace_back([&, i] { seen[i] = by(i == 0 ? "1" : "2"); });
  }
  EXPECT_EQ(seen, (std::vector<std::string>{files, files})) << "two processes";
  EXPECT_LE(look()->bytes_in_use(), room);
}

TEST_F(passing_windows, are_shared_by_processes_of_which_some_are_killed) {
  ASSERT_GT(bytes_of_set_, 2 * room);
  const std::string files = digest_of(run(epochs_of(here())));
  std::atomic<std::uint64_t> asked_for{0};
  server_.set_rule([&asked_for](const served_request& asked) {
    if (asked.value("Range") == "bytes=0-0") return http_fault();
    ++asked_for;
    return http_fault{.what = http_fault::kind::late, .wait = std::chrono::milliseconds(10)};
  });
  static_cast<void>(run(epochs_of(there(), {"--allow-http"})));  // makes the index
  const std::uint64_t blocks = bytes_of_set_ / small_block_bytes;
  std::uint64_t killed = 0;
  std::uint64_t survived = 0;
  double longest_read_ms = 0;
  for_each_seed(3, [&](std::uint64_t seed) {
    seeded_random random(seed);
    fs::remove_all(folder_.path() / "cache");
    asked_for = 0;
    // As long as it is held nobody counts anew: what killed processes have left is seen as others see it.
    std::shared_ptr<io::block_cache> cache = look();
    ASSERT_NE(cache, nullptr);
    std::vector<std::unique_ptr<command>> processes;
    const std::uint64_t count = 4 + random.below(5);
    for (std::uint64_t i = 0; i < count; ++i)
      processes.push_back(std::make_unique<command>(epochs_of(there(), through_cache())));
    // From where the first blocks come to where others have made way for some time.
    kill_some(processes, asked_for, 1 + random.below(3 * blocks / 2), random);
    for (const auto& each : processes) {
      const ended how = each->wait();
      ++(how.killed ? killed : survived);
      if (how.killed) continue;
      EXPECT_EQ(digest_of(how), files);
      longest_read_ms = std::max(longest_read_ms, how.json().at("stages").at("read").at("max_ms").get<double>());
    }
    EXPECT_GT(cache->passing_bytes(), 0U);
    EXPECT_LE(cache->bytes_in_use(), room);
    EXPECT_LE(bytes_on_disk(), room);
    const ended later = run(epochs_of(there(), through_cache()));
    EXPECT_EQ(digest_of(later), files) << "beside what they have left";
    EXPECT_LE(cache->bytes_in_use(), room);
    cache = nullptr;
    cache = look();  // alone: counted anew
    ASSERT_NE(cache, nullptr);
    std::uint64_t kept = 0;
    for (const io::cache_entry& each : cache->entries()) kept += each.cached_bytes;
    EXPECT_EQ(cache->bytes_in_use(), kept);
    EXPECT_LE(kept, room);
    EXPECT_LE(bytes_on_disk(), room);
    cache = nullptr;
    EXPECT_EQ(digest_of(run(epochs_of(there(), through_cache()))), files) << "after it was counted anew";
  });
  constexpr double others_patience_ms = 10'000;  // io::retry_options: so long one waits for a process that is alive
  EXPECT_LT(longest_read_ms, others_patience_ms);
  std::printf("%llu processes were killed, %llu were not, whose longest read took %.0f ms\n",
              static_cast<unsigned long long>(killed), static_cast<unsigned long long>(survived), longest_read_ms);
}

TEST_F(remote_command, shows_its_secrets_in_nothing_that_it_writes) {
  const std::string id = "AKIAEXAMPLE";
  const std::string secret = "hushSECRETkey/0123456789";
  const std::string token = "hushTOKEN/abcdefghij==";
  const std::vector<std::string> environment = {"AWS_ACCESS_KEY_ID=" + id, "AWS_SECRET_ACCESS_KEY=" + secret,
                                                "AWS_SESSION_TOKEN=" + token, "AWS_CONFIG_FILE=/dev/null",
                                                "AWS_SHARED_CREDENTIALS_FILE=/dev/null"};
  const fs::path out = folder_.path() / "written";
  fs::create_directory(out);
  std::string all;
  const auto tell = [&](const arguments& more) {
    const ended how = command(more, command::streams::pipes, environment).wait();
    all += how.out + how.err;
    return how;
  };
  const std::string source = "s3://bucket/train-{0..2}.tar";
  const arguments store = {"--allow-http", "--endpoint", server_.address("")};
  const auto with_store = [&](arguments asked) {
    asked.insert(asked.end(), store.begin(), store.end());
    return asked;
  };
  const auto epoch = [&](const std::string& name, const std::string& at) {
    return tell(with_store(epoch_of(
        at, {"--cache", (folder_.path() / "cache").string(), "--cache-bytes", "9MiB", "--patience", "1", "--on-corrupt",
             "skip", "--plan", "--journal", (out / (name + ".journal")).string(), "--metrics",
             (out / (name + ".metrics")).string(), "--progress", (out / (name + ".progress")).string(), "--batches",
             (out / (name + ".batches")).string(), "--state", (out / (name + ".state")).string()})));
  };
  EXPECT_EQ(epoch("right", source).exit_code, 0);
  EXPECT_THAT(server_.all_headers(), ::testing::AllOf(HasSubstr("Credential=" + id), HasSubstr(token)))
      << "it is signed";
  EXPECT_EQ(tell(with_store({"inspect", source})).exit_code, 0);
  static_cast<void>(tell({"cache", "ls", (folder_.path() / "cache").string()}));
  static_cast<void>(tell({"cache", "verify", (folder_.path() / "cache").string()}));
  static_cast<void>(
      tell(with_store({"cache", "warm", (folder_.path() / "cache").string(), source, "--cache-bytes", "9MiB"})));
  // What a presigned address has in its query.
  const std::string presigned =
      server_.address("train-{0..2}.tar?X-Amz-Signature=hushSIGNATURE&X-Amz-Security-Token=hushQUERY");
  EXPECT_EQ(epoch("presigned", presigned).exit_code, 0);
  // A server that says what it was told, in each way to fail that ends at once.
  int round = 0;
  for (const unsigned status : {400U, 403U, 404U, 412U, 418U}) {
    server_.set_rule([status](const served_request& asked) {
      return http_fault{.what = http_fault::kind::status,
                        .status = status,
                        .body = "<Error><Code>Refused</Code><Message>" + asked.header + "</Message></Error>"};
    });
    for (const std::string& at : {source, presigned}) {
      EXPECT_NE(epoch("refused" + std::to_string(round++), at).exit_code, 0);
      EXPECT_NE(tell(with_store({"inspect", at})).exit_code, 0);
      static_cast<void>(tell(with_store({"doctor", at})));
    }
  }
  for (const http_fault::kind what :
       {http_fault::kind::whole, http_fault::kind::no_http, http_fault::kind::many_lines}) {
    server_.set_rule([what](const served_request& asked) {
      return asked.value("Range") == "bytes=0-0" ? http_fault() : http_fault{.what = what};
    });
    static_cast<void>(epoch("wrong" + std::to_string(round++), source));
  }
  std::size_t files = 0;
  for (const auto& each : fs::recursive_directory_iterator(folder_.path())) {
    if (!each.is_regular_file()) continue;
    ++files;
    if (each.path().extension() != ".data" && each.path().extension() != ".tar") all += text_of(each.path().string());
    all += each.path().string();
  }
  EXPECT_GE(files, 15U);
  EXPECT_THAT(all, HasSubstr("s3://bucket/train-0.tar"));
  for (const char* const hidden : {"hushSECRET", "hushTOKEN", "hushSIGNATURE", "hushQUERY"})
    EXPECT_THAT(all, Not(HasSubstr(hidden)));
}

}  // namespace
}  // namespace leat::testing
