// Rows that are stored bytes as they are go from the drive to their place in the batch, and nobody touches them on the way;
// rows that are less work than handing them over are made by the thread that has read them.
#include "stages/run/row_placement.hpp"
#include "tests/loader/running.hpp"
#include "tests/support/fake_dataset.hpp"
#include "tests/support/raw_files.hpp"
#include "tests/support/seeded_random.hpp"
#include "tests/support/seeds.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/support/verbatim_field.hpp"
#include "tests/support/watchdog.hpp"

#include <leat/loading.hpp>
#include <leat/open_records.hpp>
#include <leat/open_tokens.hpp>
#include <leat/own_samples.hpp>
#include <leat/reader.hpp>

#include <boost/asio/use_future.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace leat {
namespace {

using testing::fake_dataset;
using testing::fake_layout;
using testing::fake_sample;
using testing::loader;
using testing::loader_options;
using testing::seen_run;

constexpr std::size_t sample_count = 75;

std::vector<fake_sample> samples_of(std::size_t bytes, bool labels) {
  std::vector<fake_sample> samples;
  for (std::size_t i = 0; i < sample_count; ++i) {
    testing::seeded_random random(i);
    std::vector<std::byte> content(bytes);
    for (std::byte& each : content) each = static_cast<std::byte>(random.below(256));
    fake_sample& sample = samples.emplace_back();
    sample.members.push_back({"bin", std::move(content)});
    if (labels) sample.cls_column = static_cast<std::int64_t>(1000 + i);
  }
  return samples;
}

/// A batch's rows are the bytes of the samples that it names.
void expect_own_bytes(const batch& got, const std::vector<fake_sample>& samples) {
  const std::vector<std::byte> rows = testing::values_of<std::byte>(got, "bin");
  const std::byte* row = rows.data();
  for (const std::uint64_t id : got.ids()) {
    const std::vector<std::byte>& expected = samples[id].members[0].bytes;
    EXPECT_EQ(std::memcmp(row, expected.data(), expected.size()), 0) << "sample " << id;
    row += expected.size();
  }
}

struct outcome_of_run {
  std::vector<std::uint64_t> ids;
  loader_stats stats;
};

outcome_of_run run_and_compare(const dataset& set, const std::vector<fake_sample>& samples,
                               const loader_options& options, std::vector<field> fields) {
  loader train(set, options, std::move(fields));
  outcome_of_run run;
  for (std::uint32_t epoch = 0; epoch < options.epochs; ++epoch) {
    for (const batch& got : train.blocking()) {
      static_cast<void>(testing::look_at(got));
      expect_own_bytes(got, samples);
      run.ids.insert(run.ids.end(), got.ids().begin(), got.ids().end());
    }
  }
  run.stats = train.stats();
  return run;
}

TEST(straight, rows_are_the_samples_bytes_in_any_order_with_digests_and_without) {
  const testing::watchdog dog("straight");
  for (const bool shuffle : {true, false}) {
    for (const bool digests : {true, false}) {
      for (const bool labels : {true, false}) {
        for (const std::uint32_t io_threads : {1U, 2U}) {
          const std::vector<fake_sample> samples = samples_of(8192, labels);
          const fake_dataset set(samples, {.layout = fake_layout::columns, .disk = {}});
          loader_options options = testing::small_options();
          options.shuffle = shuffle;
          options.digests = digests;
          options.reader.io_threads = io_threads;
          std::vector<field> fields;
          fields.emplace_back(testing::verbatim("bin"));
          if (labels) fields.emplace_back(label("cls"));
          const outcome_of_run run = run_and_compare(set, samples, options, fields);
          EXPECT_EQ(run.ids.size(), 2 * sample_count);
          EXPECT_EQ(run.stats.bytes_copied, 0U);
          EXPECT_EQ(run.stats.decode.count, 2 * sample_count);
          if (!shuffle) {
            // 8 rows are one read, and the last batch has 3.
            EXPECT_EQ(set.count().reads, 2 * 10U);
          }
        }
      }
    }
  }
}

TEST(straight, what_lies_off_the_pages_is_copied_once_and_is_the_same) {
  const testing::watchdog dog("straight");
  const std::vector<fake_sample> samples = samples_of(8192, false);
  loader_options options = testing::small_options();
  const fake_dataset on_pages(samples, {.layout = fake_layout::columns, .disk = {}});
  const fake_dataset off_pages(samples, {.layout = fake_layout::shards, .disk = {}});
  const seen_run straight = run_all(on_pages, options, {testing::verbatim("bin")});
  const seen_run copied = run_all(off_pages, options, {testing::verbatim("bin")});
  EXPECT_EQ(straight.batches, copied.batches);
  EXPECT_EQ(straight.stats.bytes_copied, 0U);
  EXPECT_EQ(copied.stats.bytes_copied, 2 * sample_count * 8192);
}

TEST(straight, a_damaged_row_is_left_out_or_substituted_alone) {
  const testing::watchdog dog("straight");
  const std::vector<fake_sample> samples = samples_of(4096, false);
  for (const corrupt_policy policy : {corrupt_policy::skip, corrupt_policy::substitute}) {
    for (const bool digests : {true, false}) {
      for (const bool shuffle : {true, false}) {
        fake_dataset set(samples, {.layout = fake_layout::columns, .disk = {}});
        for (const std::uint64_t bad : {0U, 9U, 10U, 74U}) set.damage(bad, "bin", EIO);
        loader_options options = testing::small_options();
        options.on_corrupt = policy;
        options.digests = digests;
        options.shuffle = shuffle;
        const outcome_of_run run = run_and_compare(set, samples, options, {testing::verbatim("bin")});
        EXPECT_EQ(run.stats.quarantined, 2 * 4U);
        EXPECT_EQ(run.ids.size(), policy == corrupt_policy::skip ? 2 * (sample_count - 4) : 2 * sample_count);
        for (const std::uint64_t id : run.ids) EXPECT_TRUE(id != 0 && id != 9 && id != 10 && id != 74) << id;
      }
    }
  }
}

// Later rows are planned while decode threads and other loops let go of the reads of earlier ones.
TEST(straight, batches_of_more_rows_than_are_planned_at_once_are_the_same_on_any_threads) {
  const testing::watchdog dog("many rows");
  std::vector<fake_sample> samples;
  for (std::size_t i = 0; i < 9000; ++i) {
    samples.push_back({.members = {{"bin", std::vector<std::byte>(16, static_cast<std::byte>(i * 31))}},
                       .cls_column = static_cast<std::int64_t>(i),
                       .defect = ""});
  }
  const auto run = [&](std::uint32_t decode_threads, std::uint32_t io_threads) {
    loader_options options = testing::small_options();
    options.batch_size = 4000;
    options.decode_threads = decode_threads;
    options.reader.io_threads = io_threads;
    const fake_dataset set(samples, {.layout = fake_layout::columns, .disk = {}});
    const seen_run seen = testing::run_all(set, options, {testing::verbatim("bin"), label("cls")});
    EXPECT_FALSE(seen.failed) << seen.message;
    return seen.batches;
  };
  const auto expected = run(1, 1);
  EXPECT_EQ(expected.size(), 2 * 3U);
  EXPECT_EQ(run(4, 1), expected);
  EXPECT_EQ(run(3, 3), expected);
}

// Whatever it waits for, and while reads are in flight into the memory of a batch.
TEST(straight, stop_comes_to_its_end_at_any_time) {
  const testing::watchdog dog("straight");
  testing::for_each_seed(40, [](std::uint64_t seed) {
    const std::vector<fake_sample> samples = samples_of(4096, false);
    fake_dataset set(samples, {.layout = fake_layout::columns, .disk = {.seed = seed}});
    set.damage(seed % sample_count, "bin", testing::read_fault::never);
    loader_options options = testing::small_options();
    options.digests = false;
    options.shuffle = seed % 2 == 0;
    loader train(set, options, {testing::verbatim("bin")});
    const std::uint64_t reads = seed % 7;
    while (set.count().reads < reads) std::this_thread::yield();
    train.stop();
  });
}

// Files, and every way of reading them.
TEST(straight, records_of_a_file_are_the_same_from_every_fallback) {
  const testing::watchdog dog("straight");
  const testing::temporary_directory root;
  const std::vector<fake_sample> samples = samples_of(8192, false);
  for (const std::size_t header_bytes : {0U, 4096U, 512U, 7U}) {
    const std::filesystem::path path = root.path() / ("records-" + std::to_string(header_bytes) + ".bin");
    std::ofstream file(path, std::ios::binary);
    file << std::string(header_bytes, 'h');
    for (const fake_sample& each : samples) {
      const std::vector<std::byte>& bytes = each.members[0].bytes;
      file.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    }
    file.close();
    std::ofstream(std::filesystem::path(path).replace_extension(".json"))
        << R"({"fields": [{"name": "bin", "dtype": "u8", "shape": [8192]}], "header_bytes": )" << header_bytes << "}";
    const dataset set = open_records(path.string());
    for (const read_backend backend : {read_backend::automatic, read_backend::preadv}) {
      for (const choice direct : {choice::automatic, choice::off}) {
        loader_options options = testing::small_options();
        options.reader.backend = backend;
        options.reader.direct = direct;
        const outcome_of_run run = run_and_compare(set, samples, options, {array("bin")});
        EXPECT_EQ(run.ids.size(), 2 * sample_count);
        EXPECT_EQ(run.stats.bytes_copied, header_bytes % 4096 == 0 ? 0 : 2 * sample_count * 8192);
      }
    }
  }
}

/// Records of 8192 bytes after a header, and what lies in their file.
dataset records_in(const testing::temporary_directory& root, const std::vector<fake_sample>& samples,
                   std::size_t header_bytes) {
  std::string content(header_bytes, 'h');
  for (const fake_sample& each : samples) {
    const std::vector<std::byte>& bytes = each.members[0].bytes;
    content.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }
  const std::string name = "r" + std::to_string(header_bytes);
  testing::write_file(root.path() / (name + ".json"),
                      R"({"fields": [{"name": "bin", "dtype": "u8", "shape": [8192]}], "header_bytes": )" +
                          std::to_string(header_bytes) + "}");
  return open_records(testing::write_file(root.path() / (name + ".bin"), content));
}

/// What O_DIRECT reads of this file come in multiples of; 0 where there is none.
std::uint64_t block_of(const std::filesystem::path& path) {
  try {
    reader disk(1_MiB, {.direct = choice::on});
    return disk.open(path.string(), boost::asio::use_future).get().alignment;
  } catch (const error&) {
    return 0;
  }
}

// bytes_from_files is the smallest aligned piece around each read, and not a byte more.
TEST(straight, files_give_the_blocks_that_a_read_touches_and_no_others) {
  const testing::watchdog dog("bytes from files");
  const testing::temporary_directory root;
  const std::vector<fake_sample> samples = samples_of(8192, false);
  constexpr std::uint64_t content = sample_count * 8192;
  for (const std::size_t header_bytes : {std::size_t{0}, std::size_t{7}}) {
    const dataset set = records_in(root, samples, header_bytes);
    const std::uint64_t block = block_of(root.path() / ("r" + std::to_string(header_bytes) + ".bin"));
    for (const read_backend backend : {read_backend::automatic, read_backend::preadv}) {
      for (const choice direct : {choice::on, choice::off}) {
        for (const bool shuffle : {true, false}) {
          loader_options options = testing::small_options();
          options.epochs = 1;
          options.shuffle = shuffle;
          options.reader.backend = backend;
          options.reader.direct = direct;
          const testing::seen_run run = testing::run_all(set, options, {array("bin")});
          if (run.failed == errc::unsupported) continue;  // no O_DIRECT here
          EXPECT_FALSE(run.failed) << run.message;
          EXPECT_EQ(run.stats.bytes_read, content);
          // In their order the eight of a batch are one read; shuffled, two that lie in their places by chance. The file
          // ends where its last record does.
          const std::uint64_t reads = run.stats.read.count;
          if (header_bytes != 0 || !shuffle) EXPECT_EQ(reads, shuffle ? sample_count : 10U);
          const bool widened = header_bytes != 0 && direct == choice::on;
          EXPECT_EQ(run.stats.bytes_from_files, content + (widened ? (reads - 1) * block + header_bytes : 0));
          EXPECT_EQ(run.stats.bytes_copied, header_bytes == 0 ? 0 : content);
          EXPECT_EQ(run.stats.bytes_delivered, content);
        }
      }
    }
  }
}

TEST(straight, gaps_between_the_fields_of_a_read_are_read) {
  const testing::watchdog dog("gaps");
  const testing::temporary_directory root;
  testing::write_file(root.path() / "r.json", R"({"fields": [{"name": "x", "dtype": "u8", "shape": [100]},
      {"name": "between", "dtype": "u8", "shape": [50]}, {"name": "y", "dtype": "i64"}]})");
  const dataset set = open_records(testing::write_file(root.path() / "r.bin", std::string(158 * sample_count, 'r')));
  loader_options options = testing::small_options();
  options.epochs = 1;
  options.reader.direct = choice::off;
  const testing::seen_run run = testing::run_all(set, options, {array("x"), array("y")});
  EXPECT_EQ(run.stats.bytes_read, sample_count * 158);
  EXPECT_EQ(run.stats.bytes_from_files, sample_count * 158);
  EXPECT_EQ(run.stats.bytes_copied, sample_count * 108);
}

TEST(straight, what_is_copied_as_it_is_counts_and_what_is_made_does_not) {
  const testing::watchdog dog("bytes copied");
  const testing::temporary_directory root;
  const dataset runs =
      open_tokens(testing::write_file(root.path() / "t.bin", testing::bytes_of(testing::counting<std::uint16_t>(161))));
  const auto copied = [](const dataset& set, field wanted) {
    loader_options options = testing::small_options();
    options.epochs = 1;
    return testing::run_all(set, options, {std::move(wanted)}).stats.bytes_copied;
  };
  const tokens windows{.length = 16, .type = std::nullopt, .windows = window_order::tiled};
  EXPECT_EQ(copied(cut_windows(runs, windows), windows), 10U * 2 * 16 * 2) << "x and y";
  tokens widened = windows;
  widened.type = dtype::i32;
  EXPECT_EQ(copied(cut_windows(runs, widened), widened), 0U);
  const fake_dataset members(samples_of(1000, false), {.layout = fake_layout::shards, .disk = {}});
  EXPECT_EQ(copied(members, bytes("bin")), sample_count * 1000);
  auto values = std::make_shared<std::vector<float>>(60);
  const dataset memory =
      from_tensors({{"x", {dtype::f32, {20, 3}, dense_strides({20, 3}), values->data(), host}}}, values);
  EXPECT_EQ(copied(memory, array("x")), 20U * 12);
}

// --- rows that are cheap ----------------------------------------------------------------------------------------------

/// The names of the threads that rows were made on.
class makers {
 public:
  [[nodiscard]] field verbatim(std::string name) {
    return testing::verbatim(std::move(name), [this] {
      char thread[16] = {};
      pthread_getname_np(pthread_self(), thread, sizeof thread);
      const std::lock_guard lock(mutex_);
      names_.insert(std::string(thread).substr(0, std::strlen("leat-io")));
    });
  }
  [[nodiscard]] std::set<std::string> names() {
    const std::lock_guard lock(mutex_);
    return names_;
  }

 private:
  std::mutex mutex_;
  std::set<std::string> names_;
};

TEST(cheap, rows_are_made_by_the_thread_that_has_read_them_where_nobody_looks_at_them) {
  const testing::watchdog dog("cheap");
  for (const std::size_t bytes :
       {std::size_t{1000}, stages::row_placement::cheap_row_bytes, stages::row_placement::cheap_row_bytes + 1}) {
    const std::vector<fake_sample> samples = samples_of(bytes, true);
    for (const bool shuffle : {true, false}) {
      for (const std::uint32_t io_threads : {1U, 3U}) {
        for (const bool digests : {true, false}) {
          const fake_dataset set(samples, {.layout = fake_layout::shards, .disk = {}});
          loader_options options = testing::small_options();
          options.shuffle = shuffle;
          options.digests = digests;
          options.reader.io_threads = io_threads;
          makers by;
          const outcome_of_run run = run_and_compare(set, samples, options, {by.verbatim("bin"), label("cls")});
          EXPECT_EQ(run.ids.size(), 2 * sample_count);
          EXPECT_EQ(run.stats.bytes_copied, 2 * sample_count * bytes);
          EXPECT_EQ(run.stats.decode.count, 2 * sample_count);
          EXPECT_GT(run.stats.decode.busy_s, 0);
          const bool cheap = !digests && bytes <= stages::row_placement::cheap_row_bytes;
          EXPECT_EQ(by.names(), std::set<std::string>{cheap ? "leat-io" : "leat-de"});
        }
      }
    }
  }
}

TEST(cheap, rows_beside_a_field_that_is_not_are_made_by_the_decode_threads) {
  const testing::watchdog dog("cheap");
  std::vector<fake_sample> samples = samples_of(1000, false);
  for (fake_sample& each : samples) each.members.push_back({"txt", {std::byte{1}}});
  const fake_dataset set(samples, {.layout = fake_layout::shards, .disk = {}});
  loader_options options = testing::small_options();
  options.digests = false;
  makers by;
  const custom one("txt", dtype::u8, {1}, [](auto bytes, const sample_context&, std::span<std::byte> row) {
    row[0] = bytes[0];
    return std::string();
  });
  static_cast<void>(run_and_compare(set, samples, options, {by.verbatim("bin"), one}));
  EXPECT_EQ(by.names(), std::set<std::string>{"leat-de"});
}

// What is found out while a row is made, on the thread that has read it: the batch goes on when another thread has said it.
TEST(cheap, rows_that_are_corrupt_are_left_out_substituted_or_named) {
  const testing::watchdog dog("cheap");
  std::vector<fake_sample> samples = samples_of(1000, false);
  for (const std::uint64_t bad : {0U, 9U, 10U, 74U}) samples[bad].members[0].bytes.resize(999);
  const fake_dataset set(samples, {.layout = fake_layout::shards, .disk = {}});
  for (const corrupt_policy policy : {corrupt_policy::skip, corrupt_policy::substitute}) {
    for (const bool shuffle : {true, false}) {
      for (const std::uint32_t io_threads : {1U, 3U}) {
        const testing::temporary_directory root;
        loader_options options = testing::small_options();
        options.on_corrupt = policy;
        options.digests = false;
        options.shuffle = shuffle;
        options.reader.io_threads = io_threads;
        options.journal = root.path() / "journal";
        const outcome_of_run run = run_and_compare(set, samples, options, {testing::verbatim("bin")});
        EXPECT_EQ(run.stats.quarantined, 2 * 4U);
        EXPECT_EQ(run.ids.size(), policy == corrupt_policy::skip ? 2 * (sample_count - 4) : 2 * sample_count);
        for (const std::uint64_t id : run.ids) EXPECT_TRUE(id != 0 && id != 9 && id != 10 && id != 74) << id;
        const std::string journal = testing::whole_file(options.journal);
        EXPECT_EQ(std::count(journal.begin(), journal.end(), '\n'), 2 * 4);
        EXPECT_THAT(journal, ::testing::HasSubstr("bin: of another size"));
      }
    }
  }
  loader_options options = testing::small_options();
  options.digests = false;
  const seen_run raised = run_all(set, options, {testing::verbatim("bin")});
  EXPECT_EQ(raised.failed, errc::corrupt);
  EXPECT_THAT(raised.message, ::testing::HasSubstr("bin: of another size"));
}

TEST(cheap, rows_are_made_or_not_when_the_loader_stops) {
  const testing::watchdog dog("cheap");
  testing::for_each_seed(40, [](std::uint64_t seed) {
    const std::vector<fake_sample> samples = samples_of(1000, false);
    const fake_dataset set(samples, {.layout = fake_layout::shards, .disk = {.seed = seed}});
    loader_options options = testing::small_options();
    options.digests = false;
    options.epochs = 0;
    std::atomic<std::uint64_t> made{0};
    loader train(set, options, {testing::verbatim("bin", [&] { ++made; })});
    while (made < seed % 13) std::this_thread::yield();
    train.stop();
    EXPECT_THROW(static_cast<void>(train.next_blocking()), error);
  });
}

}  // namespace
}  // namespace leat
