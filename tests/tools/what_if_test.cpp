// leat replay-io: what it says of a run on another drive is what can be computed by hand, and what such a run then is.
#include "tools/what_if.hpp"

#include "tests/support/photos.hpp"
#include "tests/support/raw_files.hpp"
#include "tests/support/slow_parts.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/tools/command.hpp"
#include "tools/recorded_reads.hpp"

#include <leat/loading.hpp>

#include <gmock/gmock.h>

#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace leat::tools {
namespace {

using ::testing::AllOf;
using testing::ended;
using ::testing::HasSubstr;
using us = std::chrono::microseconds;

/// A run in which each row is a read.
struct made_run {
  std::uint64_t batches = 200;
  std::uint32_t rows = 64;
  std::uint64_t read_bytes = 100'000;
  std::uint64_t decode_ns = 0;  // of a row
  std::uint64_t step_ns = 0;
};

stages::read_record record_of(const made_run& run) {
  stages::read_record made;
  made.settings = {.batches = 8, .queue_depth = 32};
  made.totals = {.reads = run.batches * run.rows, .batches = run.batches, .reads_at_a_time = 32};
  std::uint64_t now = 1'000'000'000;
  for (std::uint64_t b = 0; b < run.batches; ++b) {
    for (std::uint32_t row = 0; row < run.rows; ++row) {
      made.reads.push_back({.begin_ns = now,
                            .end_ns = now + 100'000,
                            .offset = (b * run.rows + row) * run.read_bytes,
                            .bytes = run.read_bytes,
                            .batch = b});
    }
    made.batches.push_back({.number = b,
                            .index = b,
                            .begun_ns = now,
                            .made_ns = now,
                            .arrived_ns = now,
                            .asked_ns = now,
                            .handed_ns = now,
                            .decode_ns = run.rows * run.decode_ns,
                            .decode_us2 = run.rows * (run.decode_ns / 1000) * (run.decode_ns / 1000),
                            .timed = run.rows,
                            .rows = run.rows,
                            .decoded = run.decode_ns != 0 ? run.rows : 0});
    now += run.step_ns;
  }
  return made;
}

constexpr double rate_error = 0.01;

TEST(what_if, gives_what_the_drive_gives_where_it_is_slowest) {
  const stages::read_record record = record_of({.decode_ns = 100'000, .step_ns = 1'000'000});
  what_if_settings with = settings_of(record);
  with.decode_threads = 16;
  const what_if_result got = simulate(record, with, {.latency_ns = {90'000}, .bytes_per_s = 1e9});
  EXPECT_NEAR(got.samples_per_s, 10'000, 10'000 * rate_error);
  EXPECT_NEAR(got.bytes_per_s, 1e9, 1e9 * rate_error);
  // A batch comes every 6.4 ms, and is worked with for 1 ms.
  EXPECT_NEAR(got.stall_share, 5.4 / 6.4, 0.01);
  EXPECT_NEAR(got.wait_p50_s, 5.4e-3, 2e-4);
  EXPECT_EQ(got.bound.who, bottleneck::read) << got.bound.to_string();
}

TEST(what_if, gives_what_the_queue_lets_through_where_latency_is_all) {
  const stages::read_record record = record_of({});
  what_if_settings with = settings_of(record);
  for (const std::uint32_t depth : {1U, 8U, 64U}) {
    with.queue_depth = depth;
    const what_if_result got = simulate(record, with, {.latency_ns = {200'000}});
    EXPECT_NEAR(got.samples_per_s, depth / 200e-6, depth / 200e-6 * 0.02) << depth;
    EXPECT_EQ(got.bound.who, bottleneck::read) << got.bound.to_string();
  }
  with.queue_depth = 8;
  with.io_threads = 4;
  EXPECT_NEAR(simulate(record, with, {.latency_ns = {200'000}}).samples_per_s, 160'000, 160'000 * 0.05);
}

TEST(what_if, gives_what_the_threads_decode_where_that_is_slowest) {
  const stages::read_record record = record_of({.decode_ns = 1'000'000, .step_ns = 1'000'000});
  what_if_settings with = settings_of(record);
  for (const std::uint32_t threads : {1U, 4U, 16U}) {
    with.decode_threads = threads;
    const what_if_result got = simulate(record, with, {.latency_ns = {90'000}, .bytes_per_s = 6e9});
    EXPECT_NEAR(got.samples_per_s, threads * 1000.0, threads * 1000.0 * rate_error) << threads;
    EXPECT_EQ(got.bound.who, bottleneck::decode) << got.bound.to_string();
  }
}

TEST(what_if, gives_what_the_consumer_takes_where_all_else_is_faster) {
  const stages::read_record record = record_of({.decode_ns = 10'000, .step_ns = 1'000'000});
  what_if_settings with = settings_of(record);
  with.step_s = 12e-3;
  const what_if_result got = simulate(record, with, {.latency_ns = {90'000}, .bytes_per_s = 6e9});
  EXPECT_NEAR(got.samples_per_s, 64 / 12e-3, 64 / 12e-3 * rate_error);
  EXPECT_LT(got.stall_share, 0.001);
  EXPECT_EQ(got.wait_p99_s, 0);
  EXPECT_EQ(got.bound.who, bottleneck::consumer) << got.bound.to_string();
}

// Memory for one row's bytes, which the first row has in one read and the second in nine.
TEST(what_if, goes_on_where_reads_of_a_batch_have_unlike_sizes) {
  stages::read_record record = record_of({.batches = 40, .rows = 10, .read_bytes = 100, .step_ns = 2'000'000});
  record.settings.read_bytes = 900;
  for (stages::recorded_read& each : record.reads) {
    each.is_leased = true;
    if (each.offset / each.bytes % 10 == 0) each.bytes = 900;
  }
  for (stages::recorded_batch& each : record.batches) each.rows = each.timed = 2;
  const what_if_result again = simulate(record, settings_of(record), drive_of(record));
  EXPECT_NEAR(again.samples_per_s, 2 / 0.002, 10);
}

// Between two epochs a trainer evaluates and saves.
TEST(what_if, counts_neither_the_time_between_epochs_nor_what_comes_behind_it) {
  stages::read_record record = record_of({.batches = 12, .step_ns = 20'000'000});
  std::uint64_t paused_ns = 0;
  for (stages::recorded_batch& each : record.batches) {
    each.epoch = static_cast<std::uint32_t>(each.number / 2);
    if (each.number % 2 == 0 && each.number != 0) paused_ns += 500'000'000;
    for (std::uint64_t* at : {&each.begun_ns, &each.made_ns, &each.arrived_ns, &each.asked_ns}) *at += paused_ns;
    if (each.number % 2 == 0) paused_ns += 7'000'000;  // of waiting for an epoch's first batch
    each.handed_ns += paused_ns;
  }
  const what_if_result was = measured(record);
  EXPECT_NEAR(was.step_s, 0.02, 1e-6);
  EXPECT_NEAR(was.samples_per_s, 64 / 0.02, 1);
  EXPECT_EQ(was.stall_share, 0);
}

TEST(what_if, says_the_same_every_time) {
  const stages::read_record record = record_of({.decode_ns = 1'000'000, .step_ns = 1'000'000});
  const what_if_drive drive{.latency_ns = {50'000, 90'000, 2'000'000}, .bytes_per_s = 1e9};
  const what_if_result one = simulate(record, settings_of(record), drive);
  const what_if_result other = simulate(record, settings_of(record), drive);
  EXPECT_EQ(one.samples_per_s, other.samples_per_s);
  EXPECT_EQ(one.wait_p99_s, other.wait_p99_s);
}

TEST(recorded_reads, keep_their_sizes_and_their_order_in_a_file_of_another_size) {
  stages::read_record record = record_of({.batches = 2, .rows = 8, .read_bytes = 50'000});
  for (stages::recorded_read& each : record.reads) each.file = each.batch == 0 ? 7 : 3;
  const std::uint64_t file_bytes = 1 << 20;
  const std::vector<read_places::place> places = places_within(record, file_bytes);
  ASSERT_EQ(places.size(), record.reads.size());
  for (std::size_t i = 0; i < places.size(); ++i) {
    EXPECT_EQ(places[i].bytes, 50'000U);
    EXPECT_LE(places[i].offset + places[i].bytes, file_bytes);
    EXPECT_EQ(places[i].offset % 4096, 0U);
    if (i % 8 != 0) EXPECT_GT(places[i].offset, places[i - 1].offset);
  }
  EXPECT_LT(places[8].offset, places[0].offset) << "file 3 lies before file 7";
  EXPECT_THROW(static_cast<void>(places_within(record, 49'999)), error);
}

/// A line whose every part takes the time that is said.
struct timed_run {
  testing::timed_drive drive;
  std::uint32_t decode_threads = 2;
  us decode{1000};
  us step{10'000};
  std::uint32_t batches = 3;  // ahead of the trainer

  [[nodiscard]] std::string name() const {
    return "latency " + std::to_string(drive.latency.count()) + " us, " + std::to_string(drive.bytes_per_s / 1e6) +
           " MB/s, " + std::to_string(decode_threads) + " threads of " + std::to_string(decode.count()) + " us, step " +
           std::to_string(step.count()) + " us, " + std::to_string(batches) + " batches";
  }
};

constexpr std::uint32_t rows_of_test = 16;
constexpr std::uint32_t sample_bytes = 20'000;

stages::read_record run_and_record(const timed_run& run, std::uint64_t batches, const std::string& path) {
  {
    loader train(testing::on_timed_drive(rows_of_test * batches, sample_bytes, run.drive),
                 {.batch_size = rows_of_test,
                  .epochs = 1,
                  .decode_threads = run.decode_threads,
                  .host_bytes_max = std::size_t{64} << 20U,
                  .prefetch_batches = run.batches,
                  .record = path,
                  .digests = false},
                 testing::slow_field(run.decode, testing::passing::asleep));
    while (auto got = train.next_blocking()) testing::pass(run.step, testing::passing::asleep);
  }
  const std::string text = testing::file_text(path);
  return stages::parse_read_record(std::as_bytes(std::span(text)), path);
}

double row_us(const stages::read_record& record) {
  double us = 0;
  double rows = 0;
  for (const stages::recorded_batch& each : record.batches) {
    us += static_cast<double>(each.decode_ns) / 1000;
    rows += each.timed;
  }
  return us / rows;
}

double points_between(const what_if_result& a, const what_if_result& b) {
  return std::abs(a.stall_share - b.stall_share) * 100;
}

TEST(replay_io, says_of_a_run_as_it_was_what_it_was) {
  const testing::temporary_directory here;
  for (const timed_run& run : {timed_run{.drive = {us(1000), 20e6}, .decode = us(300)},
                               timed_run{.drive = {us(3000), 400e6}, .decode = us(2000)},
                               timed_run{.drive = {us(3000), 400e6}, .decode = us(200)}}) {
    SCOPED_TRACE(run.name());
    const stages::read_record record = run_and_record(run, 60, (here.path() / "r.rec").string());
    EXPECT_EQ(record.batches.size(), 60U);
    EXPECT_EQ(record.reads.size(), 60U * rows_of_test);
    const what_if_result was = measured(record);
    const what_if_result again = simulate(record, settings_of(record), drive_of(record));
    EXPECT_LE(points_between(was, again), 3) << was.stall_share << " and " << again.stall_share;
    EXPECT_NEAR(again.samples_per_s, was.samples_per_s, was.samples_per_s * 0.05);
  }
}

// 20 runs that differ from the recorded one in drive, threads, step and batches, alone and together.
TEST(replay_io, says_of_nine_in_ten_other_runs_what_they_are) {
  const testing::temporary_directory here;
  const timed_run base{.drive = {us(1000), 50e6}};
  const stages::read_record record = run_and_record(base, 60, (here.path() / "base.rec").string());
  std::vector<timed_run> cases;
  for (const std::uint32_t threads : {1U, 3U, 4U, 8U})
    cases.push_back({.drive = base.drive, .decode_threads = threads});
  for (const int step : {2'000, 5'000, 15'000, 25'000}) cases.push_back({.drive = base.drive, .step = us(step)});
  for (const double rate : {10e6, 20e6, 30e6, 500e6}) cases.push_back({.drive = {us(1000), rate}, .decode_threads = 8});
  for (const int latency : {300, 5'000, 20'000}) cases.push_back({.drive = {us(latency), 50e6}, .decode_threads = 4});
  for (const std::uint32_t batches : {1U, 2U, 6U})
    cases.push_back({.drive = {us(10'000), 40e6}, .decode_threads = 4, .batches = batches});
  cases.push_back({.drive = {us(10'000), 25e6}, .decode_threads = 8, .step = us(3'000)});
  cases.push_back({.drive = {us(20'000), 0}, .decode_threads = 4, .step = us(8'000)});
  ASSERT_EQ(cases.size(), 20U);
  std::size_t near = 0;
  std::size_t compared = 0;
  std::string others;
  for (const timed_run& each : cases) {
    const stages::read_record other = run_and_record(each, 40, (here.path() / "case.rec").string());
    // Threads that sleep wake late where others have the cores: that is another machine.
    if (std::abs(row_us(other) / row_us(record) - 1) > 0.05) continue;
    ++compared;
    const what_if_result truth = measured(other);
    what_if_settings with = settings_of(record);
    with.decode_threads = each.decode_threads;
    with.batches = each.batches + 1;
    with.step_s = truth.step_s;  // a sleep takes longer than it was asked to
    with.read_bytes = 0;
    const bool is_same_drive =
        each.drive.latency == base.drive.latency && each.drive.bytes_per_s == base.drive.bytes_per_s;
    const what_if_drive drive =
        is_same_drive ? drive_of(record)
                      : what_if_drive{.latency_ns = {static_cast<std::uint32_t>(each.drive.latency.count() * 1000)},
                                      .bytes_per_s = each.drive.bytes_per_s};
    const what_if_result said = simulate(record, with, drive);
    const double points = points_between(truth, said);
    near += points <= 3 ? 1 : 0;
    if (points <= 3) continue;
    others += each.name() + ": stall " + std::to_string(truth.stall_share * 100) + " %, and said was " +
              std::to_string(said.stall_share * 100) + " %\n";
  }
  if (compared < 10)
    GTEST_SKIP() << "this machine is busy: in " << 20 - compared << " of 20 runs rows took other times";
  EXPECT_GE(near * 10, compared * 9) << others;
}

TEST(replay_io, changes_nothing_in_what_it_is_given_and_says_what_it_found) {
  const testing::photo_folder photos;
  const testing::temporary_directory here;
  const std::string record = (here.path() / "epoch.rec").string();
  const ended plain = testing::run({"epoch", photos.path().string(), "--batch-size", "4", "--size", "32", "--json"});
  const ended recorded = testing::run(
      {"epoch", photos.path().string(), "--batch-size", "4", "--size", "32", "--json", "--record", record});
  ASSERT_EQ(recorded.exit_code, 0) << recorded.err;
  EXPECT_EQ(plain.json()["digest"], recorded.json()["digest"]);
  const std::string on = testing::write_file(here.path() / "drive", std::string(std::size_t{4} << 20U, 'x'));
  const std::string before = testing::file_text(record);
  const ended process = testing::run({"replay-io", record, "--on", on, "--threads", "16", "--step-ms", "3", "--json"});
  ASSERT_EQ(process.exit_code, 0) << process.err;
  const nlohmann::json got = process.json();
  EXPECT_EQ(got["record"]["reads"], recorded.json()["stages"]["read"]["count"]);
  EXPECT_EQ(got["what_if"]["decode_threads"], 16);
  EXPECT_NEAR(got["what_if"]["step_s"].get<double>(), 0.003, 1e-9);
  EXPECT_GT(got["what_if"]["samples_per_s"].get<double>(), 0);
  EXPECT_GT(got["what_if"]["drive"]["bytes_per_s"].get<double>(), 0);
  EXPECT_EQ(testing::file_text(record), before);
  EXPECT_EQ(testing::file_text(on), std::string(std::size_t{4} << 20U, 'x'));
  const ended shown = testing::run({"replay-io", record, "--disk", "latency=90us,rate=6GB/s"});
  EXPECT_THAT(shown.out, AllOf(HasSubstr("recorded"), HasSubstr("90.0 us, 6.00 GB/s"), HasSubstr("what if: ")));
}

TEST(replay_io, refuses_what_it_cannot_tell_from) {
  const testing::temporary_directory here;
  const std::string other = testing::write_file(here.path() / "other", "no record");
  testing::expect_one_line(testing::run({"replay-io", other}), "leat replay-io: " + other + " is no record of a run");
  testing::expect_one_line(testing::run({"replay-io", (here.path() / "none").string()}), "leat replay-io: cannot read");
  for (const std::string disk : {"latency", "latency=90", "latency=90us,rate=fast", "rate=6GB/s", "latency=9s"}) {
    const ended process = testing::run({"replay-io", other, "--disk", disk});
    EXPECT_EQ(process.exit_code, 2) << disk;
    EXPECT_THAT(process.err, HasSubstr("latency=90us,rate=6GB/s")) << disk;
  }
  EXPECT_EQ(testing::run({"replay-io", other, "--prefetch-batches", "4294967295"}).exit_code, 2);
}

}  // namespace
}  // namespace leat::tools
