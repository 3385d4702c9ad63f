// Which of the expanded blocks stay.
#include "stages/run/chunk_cache.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <initializer_list>
#include <vector>

namespace leat::stages {
namespace {

// Of blocks that take a byte each.
class store {
 public:
  explicit store(std::size_t blocks) : kept_(blocks) {}

  /// Whether it was there. If it was not, it is expanded.
  bool use(std::uint64_t number) {
    block_in_flight block;
    block.of.number = number;
    if (kept_.find(block) == chunk_cache::state::there) return true;
    kept_.begin(block, 1);
    if (block.expands_shared) EXPECT_TRUE(kept_.finish(block).empty());
    return false;
  }
  void expect(std::initializer_list<std::uint64_t> numbers) {
    std::vector<batch_plan::block> blocks;
    for (const std::uint64_t number : numbers) blocks.emplace_back().number = number;
    std::vector<const batch_plan::block*> next;
    for (const batch_plan::block& each : blocks) next.push_back(&each);
    kept_.expect(next);
  }
  bool let_go() { return kept_.let_go_of_one(); }

 private:
  chunk_cache kept_;
};

TEST(chunk_cache, those_that_are_asked_for_next_stay_as_long_as_there_are_others) {
  store kept(3);
  for (const std::uint64_t number : {1U, 2U, 3U}) EXPECT_FALSE(kept.use(number));
  kept.expect({4, 1, 9, 1});
  EXPECT_FALSE(kept.use(4)) << "instead of 2, which was used longest ago of those that nobody asks for";
  EXPECT_TRUE(kept.use(1));
  EXPECT_FALSE(kept.use(9)) << "instead of 3";
  kept.expect({1, 4, 9});
  EXPECT_FALSE(kept.use(5));
  EXPECT_FALSE(kept.use(5)) << "all others are asked for before anybody asks for it again";
  for (const std::uint64_t number : {1U, 4U, 9U}) EXPECT_TRUE(kept.use(number)) << number;
}

TEST(chunk_cache, where_memory_lacks_those_go_first_that_nobody_asks_for_and_then_the_one_that_is_asked_for_last) {
  store kept(4);
  for (const std::uint64_t number : {1U, 2U, 3U, 4U}) EXPECT_FALSE(kept.use(number));
  kept.expect({3, 2, 1});
  EXPECT_TRUE(kept.let_go());  // of 4
  EXPECT_TRUE(kept.let_go());  // of 1
  EXPECT_TRUE(kept.use(2));
  EXPECT_TRUE(kept.use(3));
  kept.expect({});
  EXPECT_TRUE(kept.let_go() && kept.let_go());
  EXPECT_FALSE(kept.let_go());
}

}  // namespace
}  // namespace leat::stages
