// Which I/O thread reads a batch, while their number changes.
#include "stages/run/loop_schedule.hpp"

#include "tests/support/seeded_random.hpp"
#include "tests/support/seeds.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <vector>

namespace leat::stages {
namespace {

using ::testing::ElementsAre;

std::vector<std::size_t> take(loop_schedule& from, std::uint64_t first, std::uint64_t end) {
  std::vector<std::size_t> loops;
  for (std::uint64_t sequence = first; sequence < end; ++sequence) loops.push_back(from.take(sequence));
  return loops;
}

TEST(loop_schedule, gives_batches_to_all_loops_in_turn) {
  loop_schedule three(3);
  EXPECT_EQ(three.in_use(), 3U);
  EXPECT_THAT(take(three, 0, 7), ElementsAre(0, 1, 2, 0, 1, 2, 0));
}

TEST(loop_schedule, changes_with_the_first_batch_that_nobody_has_asked_about) {
  loop_schedule four(4);
  EXPECT_EQ(four.take(0), 0U);
  EXPECT_EQ(four.loop_of(3), 3U) << "told what it will read";
  four.set_in_use(2);
  EXPECT_THAT(take(four, 1, 8), ElementsAre(1, 2, 3, 0, 1, 0, 1));
  four.set_in_use(1);
  four.set_in_use(3);
  EXPECT_THAT(take(four, 8, 12), ElementsAre(2, 0, 1, 2)) << "what was set last";
}

// Somebody tells the loops of later batches what these will read; their number changes at any time.
TEST(loop_schedule, never_changes_an_answer) {
  leat::testing::for_each_seed(200, [](std::uint64_t seed) {
    leat::testing::seeded_random random(seed);
    const std::size_t most = 1 + random.below(6);
    loop_schedule loops(most);
    std::map<std::uint64_t, std::size_t> said;
    for (std::uint64_t sequence = 0; sequence < 200; ++sequence) {
      for (std::uint64_t ahead = sequence; ahead < sequence + random.below(8); ++ahead) {
        const std::size_t loop = loops.loop_of(ahead);
        EXPECT_LT(loop, most);
        EXPECT_EQ(said.emplace(ahead, loop).first->second, loop);
      }
      if (random.below(5) == 0) loops.set_in_use(1 + random.below(most));
      const std::size_t loop = loops.take(sequence);
      EXPECT_LT(loop, most);
      EXPECT_EQ(said.emplace(sequence, loop).first->second, loop);
    }
  });
}

}  // namespace
}  // namespace leat::stages
