#include "io/files/queue_depth.hpp"

#include <leat/units.hpp>

#include <gtest/gtest.h>

#include <cstdint>

namespace leat {
namespace {

using namespace leat::literals;
using io::queue_depth;

TEST(queue_depth, is_by_bytes_within_a_floor_and_a_ceiling_of_reads) {
  EXPECT_EQ(queue_depth::of(0), 128U);
  EXPECT_EQ(queue_depth::of(1), 128U);
  EXPECT_EQ(queue_depth::of(4_KiB), 128U);
  EXPECT_EQ(queue_depth::of(112_KiB), 64U);
  EXPECT_EQ(queue_depth::of(1_MiB), 8U);
  EXPECT_EQ(queue_depth::of(1_GiB), 8U);
}

// What is planned for is what the ring lets in.
TEST(queue_depth, admits_as_many_reads_of_one_size_as_it_says) {
  for (const std::uint64_t bytes : {std::uint64_t{1}, 4_KiB, 60_KiB, 112_KiB, 300_KiB, 1_MiB, 8_MiB}) {
    std::uint64_t reads = 0;
    while (queue_depth::admits(reads, reads * bytes, bytes)) ++reads;
    EXPECT_EQ(reads, queue_depth::of(bytes)) << bytes;
  }
}

// 14 GB/s x 100 us, the most that one drive asks for today, with room for five times its latency.
TEST(queue_depth, keeps_a_fast_drive_busy_at_sizes_that_matter) {
  for (const std::uint64_t bytes : {60_KiB, 112_KiB, 1_MiB, 8_MiB})
    EXPECT_GE(queue_depth::of(bytes) * bytes, 7'000'000U);
}

}  // namespace
}  // namespace leat
