// A program that writes to a database while an epoch is read from it: liblmdb's own writer, on a thread.
#include "base/text.hpp"
#include "datasets/write/pack.hpp"
#include "tests/loader/running.hpp"
#include "tests/support/seeded_random.hpp"
#include "tests/support/seeds.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/support/watchdog.hpp"

#include <leat/error.hpp>
#include <leat/loading.hpp>
#include <leat/open_lmdb.hpp>
#include <leat/open_tar.hpp>
#include <leat/samples.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <lmdb.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace leat {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::loader;
using testing::loader_options;

constexpr std::uint64_t value_count = 300;

// Some lie in leaves, others on pages of their own.
std::string value_of(std::uint64_t number, std::uint64_t generation) {
  std::string text;
  const std::uint64_t words = 1 + (number * 37 + generation * 11) % 500;
  for (std::uint64_t i = 0; i < words; ++i) str_append(text, number, ".", generation, " ");
  return text;
}

std::string key_of(std::uint64_t number) { return str_cat(1'000'000 + number); }

void check(int code) {
  if (code != MDB_SUCCESS) throw std::runtime_error(mdb_strerror(code));
}

/// An environment that is open for writing.
class writer {
 public:
  writer(const std::string& folder, unsigned flags) {
    check(mdb_env_create(&env_));
    check(mdb_env_set_mapsize(env_, std::size_t{64} << 20));
    check(mdb_env_open(env_, folder.c_str(), flags, 0644));
  }
  writer(const writer&) = delete;
  writer& operator=(const writer&) = delete;
  ~writer() { mdb_env_close(env_); }

  /// Commits the values of this generation under `count` keys from `first` on.
  void write(std::uint64_t first, std::uint64_t count, std::uint64_t generation) {
    MDB_txn* transaction = nullptr;
    check(mdb_txn_begin(env_, nullptr, 0, &transaction));
    MDB_dbi database = 0;
    check(mdb_dbi_open(transaction, nullptr, 0, &database));
    for (std::uint64_t i = 0; i < count; ++i) {
      const std::uint64_t number = (first + i) % value_count;
      std::string key = key_of(number);
      std::string value = value_of(number, generation);
      MDB_val key_there{key.size(), key.data()};
      MDB_val value_there{value.size(), value.data()};
      check(mdb_put(transaction, database, &key_there, &value_there, 0));
    }
    check(mdb_txn_commit(transaction));
  }

 private:
  MDB_env* env_ = nullptr;
};

// Each seed is a run: a writer begins after some batches, and commits as fast as it can until the run has ended.
TEST(lmdb_writer, that_commits_during_an_epoch_is_noticed_and_no_changed_byte_is_delivered) {
  testing::for_each_seed(8, [](std::uint64_t seed) {
    const testing::watchdog dog("a writer beside a run");
    testing::seeded_random random(seed);
    const testing::temporary_directory folder;
    // Without waiting for the disk, a thousand transactions a millisecond after the other are usual.
    writer database(folder.path().string(), random.chance(0.8) ? MDB_NOSYNC : 0);
    for (std::uint64_t first = 0; first < value_count; first += 50) database.write(first, 50, 0);
    loader_options options = testing::small_options();
    options.epochs = 10'000;
    options.batch_size = static_cast<std::uint32_t>(1 + random.below(12));
    options.digests = false;
    const std::uint64_t begin_after = random.below(60);
    std::atomic<std::uint64_t> delivered{0};
    std::atomic<bool> ended{false};
    loader train(open_lmdb(folder.path().string()), options, bytes("value"));
    std::thread other([&] {
      while (delivered < begin_after && !ended) std::this_thread::yield();
      for (std::uint64_t generation = 1; !ended; ++generation) {
        database.write(random.below(value_count), 1 + random.below(20), generation);
      }
    });
    const std::string said = testing::message_of(errc::changed, [&] {
      try {
        for (std::uint32_t epoch = 0; epoch < options.epochs; ++epoch) {
          for (const batch& got : train.blocking()) {
            for (std::size_t row = 0; row < got.valid_rows(); ++row) {
              const std::uint64_t sample = got.ids()[row];
              EXPECT_EQ(testing::as_text(testing::row_of(got, "value", row)), value_of(sample, 0)) << sample;
            }
            ++delivered;
          }
        }
      } catch (...) {
        ended = true;
        throw;
      }
      ended = true;
    });
    ended = true;
    other.join();
    EXPECT_THAT(said, AllOf(HasSubstr("dataset changed: "), HasSubstr("data.mdb"),
                            HasSubstr("has changed since the dataset was opened")));
    EXPECT_EQ(train.stats().quarantined, 0U);
  });
}

// A shard that is there holds what the database held when it was opened, whenever the writer begins.
TEST(lmdb_writer, that_commits_while_a_database_is_packed_ends_it_and_no_changed_byte_is_in_a_shard) {
  std::uint64_t noticed = 0;
  testing::for_each_seed(3, [&](std::uint64_t seed) {
    const testing::watchdog dog("a writer beside packing");
    testing::seeded_random random(seed);
    const testing::temporary_directory folder;
    const testing::temporary_directory shards;
    writer database(folder.path().string(), MDB_NOSYNC);
    for (std::uint64_t first = 0; first < value_count; first += 50) database.write(first, 50, 0);
    // More than is read at once.
    const dataset once = open_lmdb(folder.path().string());
    const dataset all = concat({once, once, once, once, once, once, once, once});
    const std::uint64_t begin_after = random.below(all.size() / 2);
    std::atomic<std::uint64_t> packed{0};
    std::atomic<std::uint64_t> commits{0};
    std::atomic<bool> ended{false};
    std::thread other([&] {
      while (packed < begin_after && !ended) std::this_thread::yield();
      while (!ended) {
        database.write(random.below(value_count), 1 + random.below(20), commits + 1);
        ++commits;
      }
    });
    datasets::pack_options options{.samples_per_shard = 200 + random.below(400)};
    options.progress = [&](const datasets::pack_progress& done) {
      packed = done.samples;
      while (packed >= begin_after && commits == 0) std::this_thread::yield();
    };
    std::string said;
    try {
      datasets::pack(all, (shards.path() / "p-%04d.tar").string(), options);
    } catch (const error& why) {
      EXPECT_EQ(why.code(), errc::changed);
      said = why.what();
    }
    ended = true;
    other.join();
    if (!said.empty()) {
      ++noticed;
      EXPECT_THAT(said, AllOf(HasSubstr("dataset changed: "), HasSubstr("data.mdb")));
      EXPECT_GT(commits, 0U);
    }
    std::uint64_t sample = 0;
    for (std::uint64_t shard = 0;; ++shard) {
      const auto path = shards.path() / str_cat("p-", std::to_string(10'000 + shard).substr(1), ".tar");
      if (!std::filesystem::exists(path)) break;
      const dataset written = open_tar(path.string());
      for (std::uint64_t i = 0; i < written.size(); ++i, ++sample) {
        const std::vector<std::byte> bytes = written.read(i, written.fields()[0].name);
        const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
        ASSERT_EQ(text, value_of(sample % value_count, 0)) << sample;
      }
    }
    if (said.empty()) EXPECT_EQ(sample, all.size());
  });
  EXPECT_GT(noticed, 0U);
}

}  // namespace
}  // namespace leat
