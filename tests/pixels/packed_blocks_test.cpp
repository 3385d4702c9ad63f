#include "stages/pixels/packed_blocks.hpp"

#include "tests/support/seeds.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>
#include <vector>

namespace leat {
namespace {

using pixels::block_pages;
using block = std::array<JCOEF, DCTSIZE2>;

// Any mixture of empty blocks, few and many coefficients, small and large.
std::vector<block> random_row(std::mt19937_64& random, std::size_t count) {
  std::vector<block> row(count);
  std::size_t empty = 0;
  for (block& each : row) {
    if (empty > 0 && --empty > 0) continue;
    if (random() % 8 == 0) empty = random() % 700;
    const std::uint64_t density = std::uint64_t{1} << random() % 8;
    for (JCOEF& value : each) {
      if (random() % density != 0) continue;
      switch (random() % 3) {
        case 0:
          value = random() % 2 == 0 ? 1 : -1;
          break;
        case 1:
          value = static_cast<JCOEF>(static_cast<int>(random() % 258) - 129);
          break;
        default:
          value = static_cast<JCOEF>(static_cast<int>(random() % 65'536) - 32'768);
      }
    }
  }
  return row;
}

const JBLOCK* blocks_of(const std::vector<block>& row) { return reinterpret_cast<const JBLOCK*>(row.data()); }
JBLOCK* blocks_of(std::vector<block>& row) { return reinterpret_cast<JBLOCK*>(row.data()); }

struct pages_in_arena {
  explicit pages_in_arena(std::size_t bytes) {
    arena.begin();
    EXPECT_TRUE(arena.reserve(bytes));
    pages.begin(arena, bytes);
  }
  ~pages_in_arena() { arena.end(); }
  pages_in_arena(const pages_in_arena&) = delete;
  pages_in_arena& operator=(const pages_in_arena&) = delete;

  pixels::scratch_budget budget{std::size_t{64} << 20};
  pixels::scratch_arena arena{budget};
  block_pages pages;
};

TEST(packed_blocks, come_out_as_they_went_in_however_often_rows_are_written_anew) {
  testing::for_each_seed(20, [](std::uint64_t seed) {
    std::mt19937_64 random(seed);
    pages_in_arena memory(std::size_t{16} << 20);
    const std::size_t count = 1 + random() % 900;
    std::vector<std::vector<block>> rows(5, std::vector<block>(count));
    std::vector<block_pages::page*> packed(rows.size(), nullptr);
    std::vector<block> got(count);
    for (int turn = 0; turn < 30; ++turn) {
      const std::size_t at = random() % rows.size();
      rows[at] = random() % 5 == 0 ? std::vector<block>(count) : random_row(random, count);
      ASSERT_TRUE(memory.pages.pack(blocks_of(rows[at]), count, packed[at]));
      for (std::size_t i = 0; i < rows.size(); ++i) {
        std::fill(got.begin(), got.end(), block{7});
        block_pages::unpack(packed[i], blocks_of(got), count);
        ASSERT_EQ(got, rows[i]) << turn;
      }
    }
  });
}

TEST(packed_blocks, take_nothing_for_zeros_and_use_pages_again) {
  pages_in_arena memory(std::size_t{1} << 20);
  const std::vector<block> empty(200);
  block_pages::page* none = nullptr;
  ASSERT_TRUE(memory.pages.pack(blocks_of(empty), empty.size(), none));
  EXPECT_EQ(none, nullptr);
  EXPECT_EQ(memory.arena.used(), 0U);

  std::mt19937_64 random(1);
  std::vector<block> full(1'000);
  for (block& each : full) each.fill(1'000);  // 193 bytes each
  block_pages::page* row = nullptr;
  for (int turn = 0; turn < 100; ++turn) ASSERT_TRUE(memory.pages.pack(blocks_of(full), full.size(), row));
  EXPECT_LT(memory.arena.used(), std::size_t{300} << 10);
}

TEST(packed_blocks, say_when_there_is_no_room) {
  pages_in_arena memory(std::size_t{100} << 10);  // 64 pages
  std::vector<block> full(400);
  for (block& each : full) each.fill(-1'000);
  block_pages::page* row = nullptr;
  EXPECT_FALSE(memory.pages.pack(blocks_of(full), full.size(), row));
  for (std::size_t i = 100; i < full.size(); ++i) full[i].fill(0);
  ASSERT_TRUE(memory.pages.pack(blocks_of(full), full.size(), row)) << "what it had taken is there for others";
  std::vector<block> got(full.size());
  block_pages::unpack(row, blocks_of(got), got.size());
  EXPECT_EQ(got, full);
}

}  // namespace
}  // namespace leat
