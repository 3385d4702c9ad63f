#include "stages/verdict.hpp"

#include <gtest/gtest.h>

namespace leat::stages {
namespace {

// 10 s of a loader with 4 decode threads whose consumer waits half of the time.
constexpr line_snapshot waited_for{.elapsed_s = 10,
                                   .next_wait_s = 5,
                                   .decode_busy_s = 2,
                                   .decode_wait_s = 30,
                                   .decode_threads = 4,
                                   .collated = 100,
                                   .transferred = 100};

TEST(verdict, is_the_consumer_where_it_hardly_waits_whatever_the_others_do) {
  line_snapshot seen = waited_for;
  seen.next_wait_s = 0.99;
  seen.decode_busy_s = 40;
  seen.transferred = 0;
  EXPECT_EQ(slowest_of(seen), bottleneck::consumer);
  seen.next_wait_s = 1;
  EXPECT_NE(slowest_of(seen), bottleneck::consumer);
}

TEST(verdict, is_decode_where_all_threads_work_nearly_all_of_the_time) {
  line_snapshot seen = waited_for;
  seen.decode_busy_s = 33;
  seen.transferred = 99;
  EXPECT_EQ(slowest_of(seen), bottleneck::decode);
  seen.decode_threads = 8;
  EXPECT_NE(slowest_of(seen), bottleneck::decode);
}

TEST(verdict, is_transfer_where_batches_are_on_their_way) {
  line_snapshot seen = waited_for;
  seen.transferred = 99;
  EXPECT_EQ(slowest_of(seen), bottleneck::transfer);
}

TEST(verdict, is_read_where_decoders_wait_more_than_they_work_and_decode_otherwise) {
  line_snapshot seen = waited_for;
  EXPECT_EQ(slowest_of(seen), bottleneck::read);
  seen.decode_busy_s = 20;
  seen.decode_wait_s = 19;
  EXPECT_EQ(slowest_of(seen), bottleneck::decode);
}

TEST(verdict, of_a_loader_that_has_just_begun_is_defined) {
  EXPECT_EQ(slowest_of({}), bottleneck::read);
  EXPECT_EQ(slowest_of({.elapsed_s = 1}), bottleneck::consumer);
}

}  // namespace
}  // namespace leat::stages
