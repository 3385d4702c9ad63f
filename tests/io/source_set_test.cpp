// Sources on loops: what is started ends once, whatever is cancelled meanwhile, and sources end on their loops' threads.
#include "io/reader/source_set.hpp"

#include "tests/support/fake_disk.hpp"
#include "tests/support/running_test_loops.hpp"
#include "tests/support/seeded_random.hpp"
#include "tests/support/seeds.hpp"
#include "tests/support/watchdog.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <deque>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace leat::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::uint64_t file_bytes = 1 << 20;

struct free_memory {
  void operator()(std::byte* memory) const noexcept { std::free(memory); }
};

/// Reads one range, and then `again` more times.
struct counted_read : io::set_read {
  counted_read(io::source_set& set, std::size_t on, std::uint32_t of, std::uint64_t at, std::uint64_t count, int more)
      : all(set), number(on), again(more) {
    const std::uint64_t room = io::aligned_bytes(at, count);
    memory.reset(static_cast<std::byte*>(std::aligned_alloc(io::alignment_max_bytes, room)));
    source = of;
    offset = at;
    bytes = count;
    into = {{memory.get(), room}, io::read_target::no_piece};
    ended = [](io::set_read& operation) noexcept {
      auto& self = static_cast<counted_read&>(operation);
      EXPECT_FALSE(self.in_flight());
      ++self.times_ended;
      if (self.failure == 0) {
        self.got.assign(self.data.begin(), self.data.end());
      } else {
        self.why = self.all.explain(self).what();
      }
      if (self.again-- <= 0) return;
      self.failure = 0;
      self.data = {};
      io::read_operation* const once_more = &self;
      self.all.start(self.number, {&once_more, 1});
    };
  }

  io::source_set& all;
  const std::size_t number;  // of the loop
  int again;
  std::unique_ptr<std::byte, free_memory> memory;
  int times_ended = 0;  // with `got` and `why` the loop's, until drain() has returned
  std::vector<std::byte> got;
  std::string why;
};

struct counted_open : io::set_open {
  counted_open() {
    ended = [](io::set_open& operation) noexcept { ++static_cast<counted_open&>(operation).times_ended; };
  }
  int times_ended = 0;
};

TEST(source_set, reads_from_several_sources_on_several_loops) {
  const watchdog dog("source_set reads");
  for_each_seed(8, [](std::uint64_t seed) {
    fake_disk first({.seed = seed});
    fake_disk second({.seed = seed + 1});
    for (fake_disk* const disk : {&first, &second}) disk->add_seeded_file("file", file_bytes);
    const running_test_loops loops(3);
    std::mt19937_64 random(seed);
    std::deque<counted_read> reads;
    std::deque<counted_open> opens;
    {
      io::source_set all(loops.get());
      EXPECT_EQ(all.add(first), 0U);
      EXPECT_EQ(all.add(second), 1U);
      for (std::size_t loop = 0; loop < 3; ++loop) {
        std::vector<io::read_operation*> together;
        for (int i = 0; i < 20; ++i) {
          counted_read& each =
              reads.emplace_back(all, loop, static_cast<std::uint32_t>(random() % 2), random() % (file_bytes / 2),
                                 1 + random() % 9000, static_cast<int>(random() % 3));
          together.push_back(&each);
        }
        counted_open& opened = opens.emplace_back();
        opened.source = static_cast<std::uint32_t>(random() % 2);
        all.start(loop, opened);
        all.start(loop, together);
      }
      all.drain();
      EXPECT_EQ(all.in_flight(), 0U);
      EXPECT_TRUE(all.under_way().empty());
    }
    for (const counted_read& each : reads) {
      EXPECT_LT(each.again, 0);
      EXPECT_EQ(each.why, "");
      EXPECT_EQ(each.got, (each.source == 0 ? first : second).bytes(0, each.offset, each.bytes));
    }
    for (const counted_open& each : opens) {
      EXPECT_EQ(each.times_ended, 1);
      EXPECT_EQ(each.failure, 0);
      EXPECT_EQ(each.size_bytes, file_bytes);
    }
  });
}

TEST(source_set, ends_each_read_once_whenever_it_is_cancelled) {
  const watchdog dog("source_set cancel");
  for_each_seed(30, [](std::uint64_t seed) {
    fake_disk disk({.seed = seed, .faults = {.never = 0.3}});
    disk.add_seeded_file("file", file_bytes);
    const running_test_loops loops(2);
    std::mt19937_64 random(seed);
    std::deque<counted_read> reads;
    io::source_set all(loops.get());
    all.add(disk);
    std::vector<std::thread> callers;
    for (std::size_t loop = 0; loop < 2; ++loop) {
      std::vector<io::read_operation*> together;
      for (int i = 0; i < 30; ++i) {
        together.push_back(&reads.emplace_back(all, loop, 0U, random() % (file_bytes / 2), 1 + random() % 9000, 0));
      }
      callers.emplace_back([&all, loop, together] {
        for (io::read_operation* const each : together) all.start(loop, {&each, 1});
      });
    }
    // Reads that begin after it end as well.
    all.cancel();
    for (std::thread& each : callers) each.join();
    all.drain();
    for (const counted_read& each : reads) {
      EXPECT_EQ(each.times_ended, 1);
      EXPECT_TRUE(each.failure == 0 || each.failure == ECANCELED) << each.failure;
    }
    counted_read late(all, 1, 0, 4096, 100, 0);
    io::read_operation* const begun = &late;
    all.start(1, {&begun, 1});
    all.drain();
    EXPECT_EQ(late.times_ended, 1);
  });
}

TEST(source_set, cancels_what_is_in_flight_and_goes_on) {
  const watchdog dog("source_set goes on");
  fake_disk disk({.faults = {.reads = {{.file = 0, .offset = 0, .failure = read_fault::never},
                                       {.file = 0, .offset = 8192, .failure = EIO}}}});
  disk.add_seeded_file("stuck.bin", file_bytes);
  const running_test_loops loops(1);
  io::source_set all(loops.get());
  all.add(disk);
  counted_read stuck(all, 0, 0, 0, 100, 0);
  io::read_operation* const begun = &stuck;
  all.start(0, {&begun, 1});
  EXPECT_THAT(all.under_way(), ElementsAre("stuck.bin at offset 0"));
  EXPECT_EQ(all.in_flight(), 1U);
  all.cancel_reads();
  all.drain();
  EXPECT_EQ(stuck.failure, ECANCELED);
  counted_read whole(all, 0, 0, 4096, 100, 0);
  counted_read damaged(all, 0, 0, 8192, 100, 0);
  const std::array<io::read_operation*, 2> more = {&whole, &damaged};
  all.start(0, more);
  all.drain();
  EXPECT_EQ(whole.failure, 0);
  EXPECT_EQ(damaged.failure, EIO);
  EXPECT_THAT(damaged.why, HasSubstr("stuck.bin at offset 8192"));
}

}  // namespace
}  // namespace leat::testing
