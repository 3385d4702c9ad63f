// What a run leaves in its record: each read, each batch, and no other byte in any batch.
#include "stages/observe/read_record.hpp"
#include "stages/run/loader_parts.hpp"
#include "tests/loader/running.hpp"
#include "tests/support/fake_dataset.hpp"
#include "tests/support/raw_files.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/support/watchdog.hpp"

#include <leat/error.hpp>
#include <leat/field.hpp>
#include <leat/loading.hpp>
#include <leat/stats.hpp>

#include <gmock/gmock.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>

namespace leat {
namespace {

using testing::fake_dataset;
using ::testing::HasSubstr;
using testing::loader;
using testing::loader_options;
using testing::small_options;
using testing::watchdog;

stages::read_record record_at(const std::string& path) {
  const std::string text = testing::file_text(path);
  return stages::parse_read_record(std::as_bytes(std::span(text)), path);
}

TEST(record_of_a_run, has_every_read_and_every_batch) {
  const watchdog dog("record");
  const testing::temporary_directory here;
  const dataset set = testing::write_samples(testing::make_samples(6, 90), {}, here.path());
  loader_options options = small_options();
  options.reader.io_threads = 2;
  options.reader.queue_depth = 16;
  options.record = (here.path() / "run.rec").string();
  std::uint64_t reads = 0;
  std::uint64_t rows = 0;
  std::uint64_t batches = 0;
  {
    loader train(set, options, testing::all_fields());
    for (int epoch = 0; epoch < 2; ++epoch) {
      while (const auto got = train.next_blocking()) {
        ++batches;
        rows += got->valid_rows();
      }
    }
    train.stop();
    reads = train.stats().read.count;
    EXPECT_EQ(stages::record_failure(train), 0);
  }
  const stages::read_record got = record_at(options.record);
  EXPECT_EQ(got.settings.io_threads, 2U);
  EXPECT_EQ(got.settings.decode_threads, 2U);
  EXPECT_EQ(got.settings.queue_depth, 16U);
  EXPECT_EQ(got.reads.size(), reads);
  ASSERT_EQ(got.batches.size(), batches);
  std::uint64_t recorded_rows = 0;
  for (std::size_t i = 0; i < got.batches.size(); ++i) {
    const stages::recorded_batch& each = got.batches[i];
    EXPECT_EQ(each.number, i);
    EXPECT_EQ(each.epoch * (batches / 2) + each.index, i);
    EXPECT_LE(each.begun_ns, each.made_ns);
    EXPECT_LE(each.made_ns, each.arrived_ns);
    EXPECT_LE(each.arrived_ns, each.handed_ns);
    EXPECT_LE(each.asked_ns, each.handed_ns);
    if (i > 0) EXPECT_GE(each.asked_ns, got.batches[i - 1].handed_ns);
    EXPECT_EQ(each.decoded, each.rows);
    EXPECT_LE(each.timed, each.decoded);
    recorded_rows += each.rows;
  }
  EXPECT_EQ(recorded_rows, rows);
  constexpr std::uint64_t tick_ns = 1024;
  for (const stages::recorded_read& each : got.reads) {
    ASSERT_LT(each.batch, batches);
    EXPECT_GT(each.bytes, 0U);
    EXPECT_LE(each.begin_ns, each.end_ns);
    EXPECT_GE(each.begin_ns + tick_ns, got.batches[each.batch].begun_ns);
    EXPECT_LE(each.end_ns, got.batches[each.batch].made_ns);
    // Ends of epochs have their turn, too.
    EXPECT_EQ(each.loop, (each.batch + got.batches[each.batch].epoch) % 2);
  }
}

TEST(record_of_a_run, changes_no_byte) {
  const watchdog dog("record");
  const testing::temporary_directory here;
  const fake_dataset set(testing::make_samples(2, 60));
  std::map<std::string, std::optional<digest>> digests;
  for (const std::string name : {"", "run.rec"}) {
    loader_options options = small_options();
    if (!name.empty()) options.record = (here.path() / name).string();
    loader train(set, options, testing::all_fields());
    for (int epoch = 0; epoch < 2; ++epoch) {
      while (train.next_blocking()) {
      }
    }
    digests[name] = train.state().run_digest;
  }
  ASSERT_TRUE(digests[""]);
  EXPECT_EQ(digests[""], digests["run.rec"]);
}

TEST(record_of_a_run, is_whole_where_the_run_was_stopped) {
  const watchdog dog("record");
  const testing::temporary_directory here;
  const fake_dataset set(testing::make_samples(2, 60));
  loader_options options = small_options();
  options.record = (here.path() / "run.rec").string();
  {
    loader train(set, options, testing::all_fields());
    for (int i = 0; i < 3; ++i) static_cast<void>(train.next_blocking());
    EXPECT_FALSE(std::filesystem::exists(options.record)) << "before the end";
  }
  EXPECT_EQ(record_at(options.record).batches.size(), 3U);
}

TEST(record_of_a_run, is_a_part_of_the_budget_and_refused_where_it_cannot_be_written) {
  const testing::temporary_directory here;
  const fake_dataset set(testing::make_samples(3, 30));
  loader_options options = small_options();
  const loader without(set, options, testing::all_fields());
  options.record = (here.path() / "run.rec").string();
  const loader with(set, options, testing::all_fields());
  EXPECT_EQ(with.plan().host_bytes_least, without.plan().host_bytes_least + stages::read_recorder::memory_bytes(1));
  EXPECT_THAT(with.plan().to_string(), HasSubstr("record"));
  options.record = (here.path() / "nowhere" / "run.rec").string();
  EXPECT_THAT(testing::message_of(errc::not_found, [&] { loader(set, options, testing::all_fields()); }),
              HasSubstr("cannot write the record " + options.record));
}

}  // namespace
}  // namespace leat
