// Reads that nobody lets go of: stop() waits for them, and they have names.
#include "tests/loader/running.hpp"
#include "tests/support/failures.hpp"
#include "tests/support/fake_dataset.hpp"
#include "tests/support/held_file.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/support/watchdog.hpp"

#include <leat/loading.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

namespace leat {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::labels;
using testing::loader;
using testing::loader_options;

std::filesystem::path first_file_of(const std::filesystem::path& directory) {
  for (const auto& entry : std::filesystem::recursive_directory_iterator(directory)) {
    if (entry.is_regular_file()) return entry.path();
  }
  return {};
}

class held_reads : public ::testing::TestWithParam<read_backend> {
 protected:
  const testing::watchdog dog_{"held_reads"};
};

INSTANTIATE_TEST_SUITE_P(, held_reads, ::testing::Values(read_backend::automatic, read_backend::preadv),
                         [](const auto& each) { return each.param == read_backend::preadv ? "preadv" : "ring"; });

TEST_P(held_reads, are_named_while_stop_waits_for_them) {
  const testing::temporary_directory directory;
  const dataset samples = testing::write_samples(
      labels(20), {.layout = testing::fake_layout::file_per_member, .disk = {}}, directory.path());
  testing::held_file held(first_file_of(directory.path()));
  if (!held.held()) GTEST_SKIP() << "no leases on this file system";

  loader_options options = testing::small_options();
  options.epochs = 1;
  options.reader.backend = GetParam();
  loader train(samples, options, testing::label_only());
  const auto name = HasSubstr(first_file_of(directory.path()).filename().string() + " at offset 0");
  while (!held.somebody_waits() || train.stats().reads_in_flight != 1) std::this_thread::yield();
  EXPECT_THAT(train.reads_under_way(), ElementsAre(name));

  std::atomic<bool> stopped{false};
  std::thread stopper([&] {
    train.stop();
    stopped = true;
  });
  if (train.stats().reader.backend.use == "preadv") {
    // A thread in open(2) cannot be called back. The ring's open can, and it is not waited for.
    for (int i = 0; i < 100; ++i) EXPECT_THAT(train.reads_under_way(), ElementsAre(name));
    EXPECT_FALSE(stopped);
    held.let_go();
  }
  stopper.join();
  EXPECT_THAT(train.reads_under_way(), IsEmpty());
}

TEST(reads_under_way, are_named_on_every_loop_the_oldest_first) {
  const testing::watchdog dog("reads_under_way");
  testing::fake_dataset fake(labels(40), {.layout = testing::fake_layout::file_per_member, .disk = {}});
  for (const std::uint64_t sample : {3U, 17U, 18U, 30U}) fake.damage(sample, "cls", testing::read_fault::never);
  loader_options options = testing::small_options();
  options.shuffle = false;
  options.epochs = 1;
  options.reader.io_threads = 2;
  loader train(fake, options, testing::label_only());
  while (fake.count().reads < 40 || fake.count().reads_in_flight != 4) std::this_thread::yield();
  const auto at = [](std::uint64_t sample) { return HasSubstr(std::to_string(sample) + ".cls at offset 0"); };
  EXPECT_THAT(train.reads_under_way(), ::testing::UnorderedElementsAre(at(3), at(17), at(18), at(30)));
  EXPECT_THAT(train.reads_under_way().front(), at(3)) << "the first batch's reads were the first to be started";
  train.stop();
  EXPECT_THAT(train.reads_under_way(), IsEmpty());
}

TEST(reads_under_way, of_a_dead_disk_are_what_the_verdict_names_and_stop_ends_it) {
  const testing::watchdog dog("dead disk");
  testing::fake_dataset fake(labels(80), {.layout = testing::fake_layout::file_per_member, .disk = {}});
  fake.damage(45, "cls", testing::read_fault::never);
  loader_options options = testing::small_options();
  options.batch_size = 8;
  options.shuffle = false;
  options.epochs = 1;
  options.windows = {.batches = 2, .seconds = 0.001};
  loader train(fake, options, testing::label_only());
  std::thread trainer([&] {
    EXPECT_THAT(testing::message_of(errc::cancelled,
                                    [&] {
                                      while (train.next_blocking()) {
                                      }
                                    }),
                HasSubstr("the loader was stopped"));
  });
  std::string found;
  while (!found.starts_with("unknown: nothing came for ") || train.stats().batches != 5) {
    found = train.stats().verdict.to_string();
    std::this_thread::yield();
  }
  const loader_stats now = train.stats();
  EXPECT_GT(now.stalled_s, 0.001) << "though the call has not returned";
  train.stop();
  trainer.join();
  EXPECT_EQ(train.stats().batches, 5U);
  EXPECT_GE(train.stats().stalled_s, now.stalled_s);
}

// Which reads a batch consists of changes while they are asked for, and so does the loop that has them: for ThreadSanitizer.
TEST(reads_under_way, are_told_while_batches_come_and_go_on_every_loop) {
  const testing::watchdog dog("reads_under_way");
  const testing::temporary_directory directory;
  const dataset samples = testing::write_samples(
      labels(60), {.layout = testing::fake_layout::file_per_member, .disk = {}}, directory.path());
  loader_options options = testing::small_options();
  options.batch_size = 3;
  options.epochs = 20;
  options.prefetch_batches = 2;
  options.reader.io_threads = 3;
  loader train(samples, options, testing::label_only());
  std::atomic<bool> over{false};
  std::thread asks([&] {
    while (!over) {
      for (const std::string& read : train.reads_under_way()) EXPECT_THAT(read, HasSubstr(".cls at offset 0"));
    }
  });
  for (std::uint32_t epoch = 0; epoch < options.epochs; ++epoch) {
    while (train.next_blocking()) {
    }
  }
  over = true;
  asks.join();
  EXPECT_THAT(train.reads_under_way(), IsEmpty());
}

}  // namespace
}  // namespace leat
