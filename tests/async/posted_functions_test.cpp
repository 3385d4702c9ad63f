#include "async/posted_functions.hpp"

#include "async/simple_loop.hpp"
#include "tests/support/seeds.hpp"

#include <boost/asio/executor_work_guard.hpp>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>

namespace leat::async {
namespace {

TEST(posted_functions, are_waited_for_with_what_they_post) {
  leat::testing::for_each_seed(50, [](std::uint64_t) {
    simple_loop loop;
    std::thread thread([&loop, guard = asio::make_work_guard(loop)] { loop.run(); });
    struct part {
      posted_functions posted;
      std::atomic<int> ran{0};
    };
    auto owner = std::make_unique<part>();
    const auto here = loop.get_executor();
    owner->posted.post(here, [&part = *owner, here] {
      part.ran.fetch_add(1);
      part.posted.post(here, [&part, here] {
        part.ran.fetch_add(1);
        part.posted.post(here, [&part] { part.ran.fetch_add(1); });
      });
    });
    owner->posted.wait();
    EXPECT_EQ(owner->ran.load(), 3);
    owner.reset();  // while the thread may still be on its way out of the last one
    loop.stop();
    thread.join();
  });
}

TEST(posted_functions, run_later_also_on_the_loop_s_own_thread) {
  simple_loop loop;
  posted_functions posted;
  bool ran = false;
  const auto bound = loop.bind_to_this_thread();
  posted.post(loop.get_executor(), [&ran] { ran = true; });
  EXPECT_FALSE(ran);
  EXPECT_EQ(loop.run_posted(), 1U);
  EXPECT_TRUE(ran);
  posted.wait();
}

#ifndef NDEBUG
TEST(posted_functions_death, a_part_that_ends_before_what_it_posted_is_told) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        simple_loop loop;
        posted_functions posted;
        posted.post(loop.get_executor(), [] {});
      },
      "ends before a function that it posted");
}
#endif

}  // namespace
}  // namespace leat::async
