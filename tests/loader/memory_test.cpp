// Memory: a budget in bytes that is kept, and nothing taken per sample. A program of its own: what other tests left on the
// heap would be counted.
#include "datasets/write/pack_zarr.hpp"
#include "tests/loader/running.hpp"
#include "tests/support/allocation_counter.hpp"
#include "tests/support/fake_dataset.hpp"
#include "tests/support/photos.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/support/watchdog.hpp"

#include <leat/loading.hpp>
#include <leat/open.hpp>
#include <leat/open_arrays.hpp>
#include <leat/open_folder.hpp>
#include <leat/open_records.hpp>
#include <leat/order.hpp>
#include <leat/own_samples.hpp>
#include <leat/samples.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace leat {
namespace {

using testing::watchdog;

// A line of /proc/self/status, in bytes: "VmRSS", "VmHWM".
std::size_t process_bytes(const std::string& what) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(what + ":")) return std::stoull(line.substr(what.size() + 1)) * 1024;
  }
  return 0;
}

bool reset_peak() {
  std::ofstream clear("/proc/self/clear_refs");
  clear << "5";
  return static_cast<bool>(clear.flush());
}

TEST(memory, stays_within_the_budget_for_ten_epochs) {
  LEAT_NEEDS_ALLOCATION_COUNTER();  // sanitizers keep memory of their own
  const watchdog dog("ten epochs");
  // Real photographs by size, some of them progressive by the set's own law; 224-pixel training crops.
  tools::make_photos_options set = testing::photo_folder::small();
  set.count = 48;
  set.width = 400;
  set.height = 320;
  const testing::photo_folder photos(set);
  for (const std::size_t budget : {std::size_t{48} << 20, std::size_t{160} << 20}) {
    const dataset samples = open_folder(photos.path().string());
    loader_options options;
    options.batch_size = 16;
    options.seed = 1;
    options.epochs = 10;
    options.decode_threads = 2;
    options.host_bytes_max = budget;
    if (!reset_peak()) GTEST_SKIP() << "the kernel does not reset VmHWM";
    const std::size_t before = process_bytes("VmRSS");
    {
      loader train(samples, options, image("jpg").random_resized_crop(224).random_flip().normalize(imagenet),
                   label("cls"));
      std::uint64_t rows = 0;
      for (int epoch = 0; epoch < 10; ++epoch) {
        for (const batch& got : train.blocking()) rows += got.valid_rows();
      }
      EXPECT_EQ(rows, 480U);
      const loader_stats stats = train.stats();
      EXPECT_LE(stats.arena_bytes + stats.scratch_bytes_peak, train.plan().bytes_total);
    }
    const std::size_t peak = process_bytes("VmHWM");
    const std::size_t grown = peak > before ? peak - before : 0;
    std::printf("budget %zu MiB: grew by %zu MiB\n", budget >> 20, grown >> 20);
    EXPECT_LE(grown, budget + (std::size_t{48} << 20));
    // And all of it is given back.
    EXPECT_LE(process_bytes("VmRSS"), before + (std::size_t{24} << 20));
  }
}

// Room for the reads that keep a drive busy, by their bytes; a depth that was asked for is for each I/O thread.
TEST(memory, has_read_buffers_for_as_many_reads_as_their_bytes_ask_for) {
  const testing::temporary_directory directory;
  const std::string path = (directory.path() / "records").string();
  const auto buffers = [&](std::uint64_t record_bytes, reader_options how) {
    constexpr std::uint64_t records = 8;
    std::ofstream(path).close();
    std::filesystem::resize_file(path, records * record_bytes);
    extent_list table{.files = {path}, .fields = {{.name = "x", .extents = {}}}};
    for (std::uint64_t k = 0; k < records; ++k) {
      table.fields[0].extents.push_back({.offset = k * record_bytes, .stored_bytes = record_bytes});
    }
    how.backend = read_backend::preadv;
    loader train(
        from_extents(std::move(table)),
        {.batch_size = 2, .epochs = 1, .decode_threads = 1, .host_bytes_max = std::size_t{512} << 20, .reader = how},
        bytes("x"));
    for (const loader_plan::line& line : train.plan().lines) {
      if (line.holder == "read buffers") return line.why.substr(0, line.why.find(','));
    }
    return std::string("none");
  };
  EXPECT_EQ(buffers(4096, {}), "128 in flight");
  EXPECT_EQ(buffers(std::uint64_t{108} << 10, {}), "64 in flight") << "with 4 KiB for where it begins";
  EXPECT_EQ(buffers(std::uint64_t{1} << 20, {}), "8 in flight");
  EXPECT_EQ(buffers(std::uint64_t{1} << 20, {.io_threads = 2}), "16 in flight");
  EXPECT_EQ(buffers(std::uint64_t{1} << 20, {.queue_depth = 20, .io_threads = 2}), "40 in flight");
}

/// Records of one field `x` of so many bytes each, all zero, which the disk need not hold.
dataset empty_records(const testing::temporary_directory& directory, std::uint64_t records,
                      std::uint64_t record_bytes) {
  const std::filesystem::path path = directory.path() / ("of" + std::to_string(record_bytes) + ".bin");
  std::ofstream(path).close();
  std::filesystem::resize_file(path, records * record_bytes);
  std::ofstream(std::filesystem::path(path).replace_extension(".json"))
      << R"({"fields": [{"name": "x", "dtype": "u8", "shape": [)" << record_bytes << "]}]}";
  return open_records(path.string());
}

/// By how much the process grew while a loader of so many rows ran, at most.
std::size_t growth_of(const dataset& samples, const loader_options& options) {
  const std::size_t before = process_bytes("VmRSS");
  EXPECT_TRUE(reset_peak());
  std::uint64_t rows = 0;
  {
    loader train(samples, options, array("x"));
    for (const batch& got : train.blocking()) rows += got.valid_rows();
    std::size_t sum = 0;
    for (const loader_plan::line& line : train.plan().lines) sum += line.bytes;
    EXPECT_EQ(sum, train.plan().bytes_total);
    EXPECT_LE(sum, options.host_bytes_max);
    EXPECT_NE(train.plan().to_string().find("bookkeeping"), std::string::npos);
  }
  EXPECT_EQ(rows, samples.size());
  const std::size_t peak = process_bytes("VmHWM");
  return peak > before ? peak - before : 0;
}

// 400 MB by 13 kB of the file.
TEST(memory, of_opening_a_batch_that_becomes_large_is_what_its_kind_takes) {
  LEAT_NEEDS_ALLOCATION_COUNTER();
  if (!reset_peak()) GTEST_SKIP() << "the kernel does not reset VmHWM";
  const std::size_t before = process_bytes("VmRSS");
  const dataset samples = open(std::string(LEAT_TEST_DATA) + "/arrow/large.arrow");
  const std::size_t peak = process_bytes("VmHWM");
  EXPECT_EQ(samples.size(), 25U);
  EXPECT_LE(peak, before + (std::size_t{32} << 20));
}

// Rings, stacks, and what the allocator keeps.
constexpr std::size_t not_of_the_budget = std::size_t{16} << 20;

TEST(memory, of_what_is_known_of_many_small_rows_is_in_the_budget) {
  LEAT_NEEDS_ALLOCATION_COUNTER();  // sanitizers keep memory of their own
  const watchdog dog("many small rows");
  if (!reset_peak()) GTEST_SKIP() << "the kernel does not reset VmHWM";
  const testing::temporary_directory directory;
  const dataset samples = empty_records(directory, 400'000, 64 * sizeof(float));
  for (const bool shuffle : {true, false}) {
    const loader_options options{.batch_size = 65'536,
                                 .shuffle = shuffle,
                                 .epochs = 1,
                                 .decode_threads = 1,
                                 .host_bytes_max = std::size_t{64} << 20};
    const std::size_t grown = growth_of(samples, options);
    std::printf("400,000 rows of 256 bytes, budget 64 MiB: grew by %zu MiB\n", grown >> 20);
    EXPECT_LE(grown, options.host_bytes_max + not_of_the_budget);
  }
}

// Chunks of 1 MiB, 128 MiB of them: those that are kept, and those that are being expanded.
TEST(memory, of_rows_out_of_chunks_is_in_the_budget) {
  LEAT_NEEDS_ALLOCATION_COUNTER();
  const watchdog dog("rows out of chunks");
  if (!reset_peak()) GTEST_SKIP() << "the kernel does not reset VmHWM";
  const testing::temporary_directory directory;
  const std::string folder = (directory.path() / "x.zarr").string();
  static_cast<void>(
      datasets::pack_zarr(empty_records(directory, 2048, std::uint64_t{64} << 10), folder, {.rows_per_chunk = 16}));
  const dataset samples = open_zarr(folder);
  for (const order& each : {sequential(), shuffled(), shuffled_blocks(8), shuffled_blocks(64)}) {
    for (const std::size_t mib : {20U, 160U}) {
      const loader_options options{
          .batch_size = 32, .epochs = 1, .order = each, .decode_threads = 2, .host_bytes_max = mib << 20};
      const std::size_t grown = growth_of(samples, options);
      std::printf("%s, budget %zu MiB: grew by %zu MiB\n", std::string(each.name()).c_str(), mib, grown >> 20);
      EXPECT_LE(grown, options.host_bytes_max + not_of_the_budget);
    }
  }
}

TEST(memory, of_a_million_records_of_a_byte_is_in_the_budget_or_refused_with_the_one_that_does) {
  LEAT_NEEDS_ALLOCATION_COUNTER();
  const watchdog dog("records of a byte");
  if (!reset_peak()) GTEST_SKIP() << "the kernel does not reset VmHWM";
  const testing::temporary_directory directory;
  constexpr std::size_t rows = 1'000'000;
  const dataset samples = empty_records(directory, 2 * rows, 1);
  for (const bool shuffle : {true, false}) {
    loader_options options{.batch_size = rows,
                           .shuffle = shuffle,
                           .epochs = 1,
                           .decode_threads = 1,
                           .host_bytes_max = std::size_t{16} << 20};
    std::string refusal;
    try {
      const loader never(samples, options, array("x"));
    } catch (const error& said) {
      EXPECT_EQ(said.code(), errc::limit);
      refusal = said.what();
    }
    const std::size_t place = refusal.find('(', refusal.find("at least"));
    ASSERT_NE(place, std::string::npos) << refusal;
    options.host_bytes_max = std::stoull(refusal.substr(place + 1));
    EXPECT_LE(options.host_bytes_max, rows * 132 + (std::size_t{8} << 20))
        << "128 bytes a row, its byte, and the buffers";
    const std::size_t grown = growth_of(samples, options);
    std::printf("records of a byte, budget %zu MiB: grew by %zu MiB\n", options.host_bytes_max >> 20, grown >> 20);
    EXPECT_LE(grown, options.host_bytes_max + not_of_the_budget);
  }
}

// A field that asks, once per sample, how often its thread has asked for memory since it last did.
class allocation_probe {
 public:
  [[nodiscard]] field as_field(const std::string& member) {
    return custom(member, dtype::u8, {1},
                  [this](std::span<const std::byte>, const sample_context& context, std::span<std::byte> row) {
                    row[0] = std::byte{0};
                    const std::uint64_t now = testing::allocations_of_this_thread().allocations;
                    const std::lock_guard lock(mutex_);  // allocates nothing
                    thread_state& mine = threads_.at(std::this_thread::get_id());
                    if (mine.samples++ > 0 && context.epoch >= 2) allocations_ += now - mine.before;
                    if (context.epoch >= 2) ++looked_at_;
                    mine.before = now;
                    return std::string();
                  });
  }
  // Threads are entered by a first call that may allocate.
  [[nodiscard]] field entering(const std::string& member) {
    return custom(member, dtype::u8, {1},
                  [this](std::span<const std::byte>, const sample_context&, std::span<std::byte> row) {
                    row[0] = std::byte{0};
                    const std::lock_guard lock(mutex_);
                    threads_.try_emplace(std::this_thread::get_id());
                    return std::string();
                  });
  }
  [[nodiscard]] std::uint64_t allocations() const { return allocations_; }
  [[nodiscard]] std::uint64_t looked_at() const { return looked_at_; }

 private:
  struct thread_state {
    std::uint64_t before = 0;
    std::uint64_t samples = 0;
  };
  std::mutex mutex_;
  std::map<std::thread::id, thread_state> threads_;
  std::uint64_t allocations_ = 0;
  std::uint64_t looked_at_ = 0;
};

// Also where a batch does not go into the arena's pieces of 4 MiB without a rest.
TEST(memory, holds_as_many_batches_as_the_plan_says) {
  for (const std::int64_t row_mib : {1, 2, 3, 5}) {
    const watchdog dog("batches of " + std::to_string(row_mib) + " MiB");
    const dataset numbers = from_function(16, [](std::uint64_t sample) { return std::vector{std::byte(sample)}; },
                                          {.field = "n", .bytes_max = 1});
    const custom large{"n",
                       dtype::u8,
                       {row_mib << 20},
                       [](std::span<const std::byte> from, const sample_context&, std::span<std::byte> row) {
                         row.front() = from.front();
                         return std::string();
                       }};
    loader train(numbers,
                 {.batch_size = 1, .epochs = 1, .host_bytes_max = std::size_t{64} << 20, .prefetch_batches = 7}, large);
    ASSERT_GE(train.plan().batches, 6U);
    std::vector<batch> held;
    while (held.size() < train.plan().batches) held.push_back(std::move(*train.next_blocking()));
  }
}

TEST(memory, is_not_allocated_per_sample_on_decode_threads_after_warm_up) {
  LEAT_NEEDS_ALLOCATION_COUNTER();
  const watchdog dog("allocations");
  auto samples = testing::make_samples(1, 64);
  for (auto& sample : samples) {
    sample.members.push_back({"probe", testing::to_bytes("p")});
    sample.members.push_back({"enter", testing::to_bytes("e")});
  }
  const testing::fake_dataset set(samples);
  allocation_probe probe;
  loader_options options = testing::small_options();
  options.epochs = 8;
  options.host_bytes_max = std::size_t{256} << 20;
  loader train(set, options, probe.entering("enter"), image("jpg").random_resized_crop(16).random_flip(), label("cls"),
               text("txt"), bytes("json"), probe.as_field("probe"));
  EXPECT_EQ(testing::run_epochs(train, 8).size(), 64U);
  EXPECT_GE(probe.looked_at(), 6U * 64 - 16);
  // One for each batch, when its last sample tells the I/O thread (each thread may bring one along from the epoch before);
  // none for a sample.
  EXPECT_LE(probe.allocations(), 6U * 8 + 2) << "for " << probe.looked_at() << " samples";
}

}  // namespace
}  // namespace leat
