#include "io/arena/arena.hpp"

#include "base/numa_nodes.hpp"
#include "io/arena/lease_pool.hpp"

#include <leat/error.hpp>
#include <leat/units.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/mempolicy.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <span>
#include <thread>
#include <vector>

namespace leat::io {
namespace {

using namespace leat::literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(arena, maps_in_only_the_pieces_that_are_used) {
  arena memory({.bytes_max = 256_MiB});
  const arena::region region = memory.reserve(102_MiB);
  EXPECT_EQ(region.bytes.size(), 102_MiB);
  EXPECT_EQ(memory.bytes_populated(), 0U);
  EXPECT_TRUE(memory.piece(0).empty());

  memory.populate(region, region.bytes.subspan(3_MiB, 2_MiB));
  EXPECT_EQ(memory.bytes_populated(), 8_MiB);
  EXPECT_EQ(memory.piece(0).size(), arena::piece_bytes);
  EXPECT_EQ(memory.piece(1).data(), region.bytes.data() + arena::piece_bytes);
  EXPECT_TRUE(memory.piece(2).empty());
  // The last piece of a region is as long as the region.
  memory.populate(region, region.bytes.last(1));
  EXPECT_EQ(memory.piece(25).size(), 2_MiB);
}

// The policy that the kernel has for this memory.
int policy_of(std::span<const std::byte> memory, unsigned long& nodes) {
  int policy = -1;
  std::array<unsigned long, 16> all{};
  const long failed = ::syscall(SYS_get_mempolicy, &policy, all.data(), 8 * sizeof all, memory.data(), MPOL_F_ADDR);
  nodes = all[0];
  return failed == 0 ? policy : -1;
}

TEST(arena, takes_its_pages_from_the_node_that_it_is_given) {
  const std::vector<node_cores> machine = find_numa_nodes();
  if (machine.empty()) GTEST_SKIP() << "this kernel lists no NUMA nodes";
  arena memory({.bytes_max = 8_MiB, .node = machine.front().node});
  const arena::region region = memory.reserve(8_MiB);
  if (memory.node_failure() != 0) GTEST_SKIP() << "mbind: " << std::strerror(memory.node_failure());
  unsigned long nodes = 0;
  EXPECT_EQ(policy_of(region.bytes, nodes), MPOL_PREFERRED);
  EXPECT_EQ(nodes, 1UL << machine.front().node);
  memory.populate(region, region.bytes);
  EXPECT_EQ(memory.bytes_populated(), 8_MiB);
}

TEST(arena, has_memory_where_the_kernel_refuses_its_node_and_says_so) {
  for (const std::uint32_t node : {1023U, 5000U}) {
    arena memory({.bytes_max = 4_MiB, .node = node});
    const arena::region region = memory.reserve(4_MiB);
    EXPECT_NE(memory.node_failure(), 0);
    memory.populate(region, region.bytes);
    EXPECT_EQ(memory.bytes_populated(), 4_MiB);
  }
  arena anywhere({.bytes_max = 4_MiB});
  static_cast<void>(anywhere.reserve(4_MiB));
  EXPECT_EQ(anywhere.node_failure(), 0);
}

TEST(arena, numbers_pieces_by_address) {
  arena memory({.bytes_max = 64_MiB});
  const arena::region first = memory.reserve(5_MiB);
  const arena::region second = memory.reserve(40_MiB);
  EXPECT_EQ(first.first_piece, 0U);
  EXPECT_EQ(second.first_piece, 2U);
  const std::byte* const base = second.bytes.data();
  EXPECT_EQ(arena::piece_at(base, base, 2), 2U);
  EXPECT_EQ(arena::piece_at(base + 4_MiB, base, 2), 3U);
  EXPECT_EQ(arena::piece_at(base + 39_MiB, base + 5_MiB, 3), 11U);
  EXPECT_EQ(arena::bytes_to_piece_end(base + 3_MiB), 1_MiB);
}

TEST(arena, makes_one_buffer_of_the_pieces_that_nobody_has_touched) {
  arena memory({.bytes_max = 64_MiB});
  static_cast<void>(memory.reserve(1_MiB));
  const arena::region region = memory.reserve(40_MiB);
  memory.populate(region, region.bytes.subspan(12_MiB, 1));
  memory.populate_as_one(region, region.bytes.subspan(1_MiB, 24_MiB));
  const auto buffer_at = [&](std::uint32_t piece) { return memory.buffer_of(region.first_piece + piece); };
  for (const std::uint32_t piece : {0U, 1U, 2U}) {
    EXPECT_EQ(buffer_at(piece).first_piece, region.first_piece);
    EXPECT_EQ(buffer_at(piece).memory.data(), region.bytes.data());
    EXPECT_EQ(buffer_at(piece).memory.size(), 12_MiB);
  }
  EXPECT_EQ(buffer_at(3).first_piece, region.first_piece + 3) << "it was there before";
  EXPECT_EQ(buffer_at(3).memory.size(), 4_MiB);
  EXPECT_EQ(buffer_at(4).first_piece, region.first_piece + 4);
  EXPECT_EQ(buffer_at(6).memory.size(), 12_MiB);
  EXPECT_TRUE(buffer_at(7).memory.empty()) << "nobody has asked for it";
  EXPECT_EQ(memory.bytes_populated(), 28_MiB);
  memory.populate_as_one(region, region.bytes);
  EXPECT_EQ(buffer_at(6).memory.size(), 12_MiB) << "the same ever after";
  EXPECT_EQ(buffer_at(9).memory.size(), 12_MiB);
}

TEST(arena, leaves_the_faulting_in_to_who_writes_where_it_is_told_to) {
  arena memory({.bytes_max = 8_MiB});
  const arena::region region = memory.reserve(8_MiB);
  memory.populate(region, region.bytes, true);
  EXPECT_EQ(memory.piece(0).size(), arena::piece_bytes);
  unsigned char resident[1] = {1};
  ASSERT_EQ(::mincore(region.bytes.data(), 4096, resident), 0);
  EXPECT_EQ(resident[0] & 1, 0);
  region.bytes[0] = std::byte{1};
  ASSERT_EQ(::mincore(region.bytes.data(), 4096, resident), 0);
  EXPECT_EQ(resident[0] & 1, 1);
}

TEST(arena, refuses_more_than_it_was_made_for) {
  arena memory({.bytes_max = 32_MiB});
  static_cast<void>(memory.reserve(20_MiB));
  try {
    static_cast<void>(memory.reserve(13_MiB));
    FAIL() << "13 MiB were given out of 12";
  } catch (const error& refused) {
    EXPECT_EQ(refused.code(), errc::limit);
  }
  EXPECT_NO_THROW(static_cast<void>(memory.reserve(12_MiB)));
}

TEST(arena, reports_the_huge_pages_it_got) {
  arena memory({.bytes_max = 32_MiB});
  const arena::region region = memory.reserve(32_MiB);
  memory.populate(region, region.bytes);
  const arena::page_report got = memory.report();
  EXPECT_EQ(got.bytes_resident, 32_MiB);
  EXPECT_LE(got.bytes_huge, got.bytes_resident);
  if (got.bytes_huge == 0) {
    EXPECT_EQ(got.pages.use, "off");
    EXPECT_FALSE(got.pages.why.empty());
    GTEST_SKIP() << "no huge pages here: " << got.pages.why;
  }
  EXPECT_EQ(got.pages.use, got.bytes_huge == got.bytes_resident ? "on" : "partly");
}

TEST(arena, leaves_pages_to_who_touches_them_first_where_it_may) {
  arena memory({.bytes_max = 32_MiB});
  const arena::region region = memory.reserve(32_MiB);
  memory.populate(region, region.bytes, true);
  EXPECT_EQ(memory.piece(0).size(), arena::piece_bytes);
  EXPECT_EQ(memory.report().bytes_resident, 0U);
  region.bytes[17_MiB] = std::byte{1};
  const std::size_t touched = memory.report().bytes_resident;
  EXPECT_GT(touched, 0U);
  EXPECT_LE(touched, 2_MiB);
}

// The parts of a piece that leases divide it into, one after the other.
TEST(arena, has_a_piece_await_pinning_until_all_of_it_is_done_with) {
  arena memory({.bytes_max = 64_MiB});
  static_cast<void>(memory.reserve(8_MiB));
  EXPECT_FALSE(memory.pins_first());
  const arena::region region = memory.reserve(14_MiB, true);
  EXPECT_TRUE(memory.pins_first());
  const auto awaiting = [&] {
    std::vector<std::uint32_t> pieces;
    for (std::uint32_t piece = 0; piece < memory.pieces_max(); ++piece) {
      if (memory.awaits_pinning(piece)) pieces.push_back(piece);
    }
    return pieces;
  };
  const std::uint32_t first = region.first_piece;
  EXPECT_THAT(awaiting(), ElementsAre(first, first + 1, first + 2, first + 3));
  memory.pinning_done(region, region.bytes.first(6_MiB));
  EXPECT_THAT(awaiting(), ElementsAre(first + 1, first + 2, first + 3));
  memory.pinning_done(region, region.bytes.subspan(12_MiB, 2_MiB));
  EXPECT_THAT(awaiting(), ElementsAre(first + 1, first + 2)) << "the last is short";
  memory.pinning_done(region, region.bytes.subspan(6_MiB, 4096));
  memory.pinning_done(region, region.bytes.subspan(6_MiB + 4096, 6_MiB - 4096));
  EXPECT_THAT(awaiting(), ::testing::IsEmpty());
}

TEST(arena, takes_small_pages_when_told_to) {
  arena memory({.bytes_max = 16_MiB, .pages = huge_pages::off});
  const arena::region region = memory.reserve(16_MiB);
  memory.populate(region, region.bytes);
  const arena::page_report got = memory.report();
  EXPECT_EQ(got.bytes_huge, 0U);
  EXPECT_EQ(got.pages.use, "off");
}

// Whether the kernel may read a byte there: who asks it does not fault.
bool is_readable(const std::byte* at) {
  int ends[2];
  if (::pipe(ends) != 0) return false;
  const bool readable = ::write(ends[1], at, 1) == 1;
  ::close(ends[0]);
  ::close(ends[1]);
  return readable;
}

TEST(arena, lies_between_pages_that_nobody_may_touch) {
  arena memory({.bytes_max = 64_MiB});
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  for (const std::size_t bytes : {std::size_t{1}, 4_MiB, 4_MiB + 1, 5_MiB - 1, 8_MiB - 4096}) {
    const arena::region region = memory.reserve(bytes);
    const std::byte* const begin = region.bytes.data();
    EXPECT_TRUE(is_readable(begin) && is_readable(begin + bytes - 1)) << bytes;
    EXPECT_FALSE(is_readable(begin - 1)) << bytes;
    EXPECT_FALSE(is_readable(begin + (bytes + page - 1) / page * page)) << bytes;
  }
}

TEST(arena, populates_a_piece_once_when_several_threads_want_it) {
  arena memory({.bytes_max = 32_MiB});
  const arena::region region = memory.reserve(32_MiB);
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < 8; ++i) {
    threads.emplace_back([&, i] {
      memory.populate(region, region.bytes);
      region.bytes[i] = std::byte{1};  // there for whoever returns
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(memory.bytes_populated(), 32_MiB);
}

TEST(arena, is_not_there_in_a_child_after_fork) {
  arena memory({.bytes_max = 16_MiB});
  const arena::region region = memory.reserve(16_MiB);
  memory.populate(region, region.bytes);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    // mincore() fails with ENOMEM where nothing is mapped; touching it would be the end.
    unsigned char resident[1];
    ::_exit(::mincore(region.bytes.data(), 4096, resident) == -1 && errno == ENOMEM ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

TEST(arena, leaves_alone_what_a_child_of_fork_has_at_its_address) {
  auto memory = std::make_unique<arena>(arena_options{.bytes_max = 16_MiB});
  const arena::region region = memory->reserve(16_MiB);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    void* const own = ::mmap(region.bytes.data(), 4096, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if (own != region.bytes.data()) ::_exit(2);
    memory.reset();
    unsigned char resident[1];
    ::_exit(::mincore(own, 4096, resident) == 0 ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

}  // namespace
}  // namespace leat::io
