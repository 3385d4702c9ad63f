// Many shards walked at once on a difficult disk: the same index whatever arrives when, and the same error.
#include "datasets/formats/tar/tar_index.hpp"

#include "tests/datasets/archive.hpp"
#include "tests/support/fake_disk.hpp"
#include "tests/support/running_test_loops.hpp"
#include "tests/support/seeds.hpp"

#include <leat/error.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace leat::datasets {
namespace {

using testing::archive;
using testing::fake_disk;
using ::testing::HasSubstr;
using testing::running_test_loops;

std::vector<std::byte> to_bytes(const std::string& text) {
  const auto* const begin = reinterpret_cast<const std::byte*>(text.data());
  return {begin, begin + text.size()};
}

archive random_shard(std::mt19937_64& random) {
  archive shard;
  const std::uint64_t samples = random() % 60;
  const std::uint64_t bytes_max = std::uint64_t{1} << (random() % 16);
  for (std::uint64_t i = 0; i < samples; ++i) {
    const std::string key = "k" + std::to_string(i);
    shard.file(key + ".jpg", std::string(random() % bytes_max, 'j'));
    if (random() % 2 == 0) shard.file(key + ".cls", std::to_string(i));
    if (random() % 16 == 0) shard.file(std::string(5000, 'n') + ".txt", "text");
  }
  return random() % 4 == 0 ? shard : shard.end();
}

std::string describe(const std::vector<shard_index>& indexes) {
  std::string text;
  for (const shard_index& index : indexes) {
    std::size_t next = 0;
    for (const std::uint32_t end : index.ends) {
      for (; next < end; ++next) {
        const extent_table::record& record = index.records[next];
        text += std::to_string(record.file()) + ":" + std::to_string(record.offset()) + "+" +
                std::to_string(record.bytes()) + index.fields[record.field()] + " ";
      }
      text += "|";
    }
    text += "\n";
  }
  return text;
}

TEST(tar_index, is_the_same_whatever_order_reads_arrive_in) {
  testing::for_each_seed(20, [](std::uint64_t seed) {
    std::mt19937_64 random(seed);
    fake_disk calm(
        {.seed = seed, .faults = {.short_read = 0, .again = 0, .held_back = 0}, .order = testing::delivery::in_order});
    fake_disk wild({.seed = seed});
    for (std::uint64_t i = 0, shards = 1 + random() % 12; i < shards; ++i) {
      const archive shard = random_shard(random);
      if (shard.size() == 0) continue;
      const std::string name = "s-" + std::to_string(i) + ".tar";
      calm.add_file(name, to_bytes(archive(shard).bytes()));
      wild.add_file(name, to_bytes(archive(shard).bytes()));
    }
    const running_test_loops one(1);
    const std::string one_by_one = describe(index_tar_shards(calm, one.get(), {.shards_in_flight = 1}));
    std::uint64_t reads = 0;
    for (const std::size_t loops : {1U, 2U, 5U}) {
      tar_index_report report;
      const running_test_loops several(loops);
      EXPECT_EQ(describe(index_tar_shards(wild, several.get(), {.shards_in_flight = 64}, &report)), one_by_one);
      EXPECT_EQ(report.reads, wild.count().reads - std::exchange(reads, wild.count().reads));
      EXPECT_LE(wild.count().reads_in_flight_max, 12U);
    }
  });
}

TEST(tar_index, the_first_shard_that_fails_is_the_one_reported) {
  testing::for_each_seed(20, [](std::uint64_t seed) {
    fake_disk disk({.seed = seed});
    for (int i = 0; i < 10; ++i) {
      archive shard;
      for (int k = 0; k < 20; ++k) shard.file("k" + std::to_string(k) + ".jpg", std::string(70'000, 'x'));
      disk.add_file("s-" + std::to_string(i) + ".tar", to_bytes(shard.end().bytes()));
    }
    // Shard 3 fails late, shards 5 and 8 at once.
    disk.add_fault(testing::read_fault{.file = 3, .offset = 19 * 70'656, .bytes = 512, .failure = EIO});
    disk.add_fault(testing::open_fault{.file = 5, .failure = ENOENT});
    disk.add_fault(testing::read_fault{.file = 8, .offset = 0, .bytes = 512, .failure = EIO});
    for (const std::size_t count : {1U, 3U}) {
      const running_test_loops loops(count);
      try {
        static_cast<void>(index_tar_shards(disk, loops.get(), {}));
        FAIL() << "nothing was thrown";
      } catch (const error& caught) {
        EXPECT_THAT(caught.what(), HasSubstr("s-3.tar")) << count << " loops";
      }
    }
  });
}

TEST(tar_index, skips_large_members_and_reads_small_ones_over) {
  const running_test_loops loops(1);
  const auto report_of = [&](std::size_t member_bytes, int members) {
    fake_disk disk({.order = testing::delivery::in_order});
    archive shard;
    for (int k = 0; k < members; ++k) {
      shard.file("k" + std::to_string(k) + ".jpg", std::string(member_bytes, 'x'));
      shard.file("k" + std::to_string(k) + ".cls", "1");
    }
    disk.add_file("s.tar", to_bytes(shard.end().bytes()));
    tar_index_report report;
    static_cast<void>(index_tar_shards(disk, loops.get(), {}, &report));
    EXPECT_EQ(report.members, 2U * static_cast<unsigned>(members));
    return report;
  };
  // A page for each photograph, in which its label's header lies too, or the next page.
  const tar_index_report large = report_of(112 << 10, 200);
  EXPECT_LE(large.reads, 450U);
  EXPECT_LE(large.bytes, 450U * 4096 + (64 << 10));
  const tar_index_report small = report_of(1 << 10, 5000);
  EXPECT_LE(small.reads, 60U);
}

}  // namespace
}  // namespace leat::datasets
