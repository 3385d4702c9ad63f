// Rows gathered on the device: the kernel's own source run by an emulation and its host twin, against std::memcpy.
#include "stages/device/gather_rows.hpp"

#include "tests/support/seeded_random.hpp"
#include "tests/support/seeds.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

// What the test is about: the kernel as nvcc gets it.
#include "stages/device/gather_rows_cuda.cu"  // NOLINT

namespace leat::stages {
namespace {

/// Memory that begins and ends at multiples of 16 bytes, as the device's does.
struct lines_of_memory {
  explicit lines_of_memory(std::size_t size) : lines(size / sizeof(uint4) + 1), bytes(lines.size() * sizeof(uint4)) {
    std::memset(data(), 0xA5, bytes);
  }
  [[nodiscard]] std::byte* data() { return reinterpret_cast<std::byte*>(lines.data()); }
  [[nodiscard]] std::vector<std::byte> copy() { return {data(), data() + bytes}; }

  std::vector<uint4> lines;
  std::size_t bytes;
};

/// Where a piece lies on both sides.
struct place {
  std::size_t from;
  std::size_t to;
  std::uint32_t bytes;
};

gathered_pieces pieces_of(const std::vector<place>& places, const std::byte* from, std::byte* to) {
  gathered_pieces all;
  for (const place& each : places) all.add(to + each.to, from + each.from, each.bytes);
  return all;
}

void expect_gathered(const std::vector<place>& places, std::uint64_t seed, std::size_t size) {
  lines_of_memory from(size);
  testing::fill_seeded(seed, 0, {from.data(), from.bytes});
  lines_of_memory expected(size);
  for (const place& each : places) std::memcpy(expected.data() + each.to, from.data() + each.from, each.bytes);
  lines_of_memory on_host(size);
  const gathered_pieces here = pieces_of(places, from.data(), on_host.data());
  gather_rows_kernel.run_on_host(&here);
  EXPECT_TRUE(on_host.copy() == expected.copy());
  lines_of_memory on_device(size);
  const gathered_pieces there = pieces_of(places, from.data(), on_device.data());
  const std::size_t before = emulated_launches;
  ASSERT_EQ(launch_gather_rows(there, {}), 0);
  EXPECT_EQ(emulated_launches - before, 1U);
  EXPECT_TRUE(on_device.copy() == expected.copy());
}

TEST(gather_rows, gives_the_bytes_of_each_piece_and_touches_no_other) {
  testing::for_each_seed(60, [](std::uint64_t seed) {
    testing::seeded_random random(seed);
    const std::size_t count = random.below(4) == 0 ? gathered_pieces_max : 1 + random.below(12);
    // Some are of one length, as rows are, and some of any.
    const auto row_bytes = static_cast<std::uint32_t>(1 + random.below(700));
    std::vector<place> places(count);
    std::size_t size = random.below(16);
    for (place& each : places) {
      const std::uint64_t kind = random.below(8);
      each.bytes = kind == 0   ? static_cast<std::uint32_t>(1 + random.below(3 * gathered_chunk_bytes))
                   : kind == 1 ? gathered_chunk_bytes
                   : kind == 2 ? static_cast<std::uint32_t>(1 + random.below(20))
                               : row_bytes;
      each.to = size;
      size += each.bytes + random.below(3);
    }
    // In another order, one behind another or with room between.
    std::vector<std::size_t> order(count);
    for (std::size_t i = 0; i < count; ++i) order[i] = i;
    for (std::size_t i = count; i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
    std::size_t from = random.below(16);
    for (const std::size_t i : order) {
      places[i].from = from;
      from += places[i].bytes + random.below(3);
    }
    expect_gathered(places, seed, std::max(size, from));
  });
}

TEST(gather_rows, copies_between_any_two_alignments) {
  for (std::size_t from = 0; from < 16; ++from) {
    for (std::size_t to = 0; to < 16; ++to) {
      std::vector<place> places;
      for (const std::uint32_t bytes : {1U, 15U, 16U, 17U, 1000U}) {
        const std::size_t before = 1040 * places.size();
        places.push_back({.from = before + from, .to = before + to, .bytes = bytes});
      }
      expect_gathered(places, from * 16 + to, 1040 * places.size());
    }
  }
}

TEST(gather_rows, has_a_block_for_each_chunk) {
  lines_of_memory from(4 * gathered_chunk_bytes);
  lines_of_memory to(4 * gathered_chunk_bytes);
  const gathered_pieces all = pieces_of(
      {{0, 0, 1}, {1, 1, gathered_chunk_bytes}, {20'000, 20'000, gathered_chunk_bytes + 1}}, from.data(), to.data());
  ASSERT_EQ(launch_gather_rows(all, {}), 0);
  EXPECT_EQ(emulated_blocks, 4U);
}

TEST(gather_rows, are_not_launched_for_nothing) {
  const std::size_t before = emulated_launches;
  EXPECT_EQ(launch_gather_rows({}, {}), 0);
  EXPECT_EQ(emulated_launches, before);
  const std::size_t loads = emulated_loads;
  EXPECT_EQ(load_gather_rows(), 0);
  EXPECT_EQ(emulated_loads - loads, 1U) << "it is loaded before the loop";
}

}  // namespace
}  // namespace leat::stages
