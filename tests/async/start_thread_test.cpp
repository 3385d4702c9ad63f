#include "base/start_thread.hpp"

#include "async/thread_pool.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <pthread.h>

#include <cerrno>
#include <cstddef>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>

namespace leat::async {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

// No thread can be started while it lives: each would have a stack of more than there is address space.
class no_room_for_stacks {
 public:
  no_room_for_stacks() {
    ::pthread_getattr_default_np(&before_);
    pthread_attr_t vast;
    ::pthread_attr_init(&vast);
    ::pthread_attr_setstacksize(&vast, std::size_t{1} << 50);
    worked_ = ::pthread_setattr_default_np(&vast) == 0;
    ::pthread_attr_destroy(&vast);
  }
  ~no_room_for_stacks() {
    ::pthread_setattr_default_np(&before_);
    ::pthread_attr_destroy(&before_);
  }
  no_room_for_stacks(const no_room_for_stacks&) = delete;
  no_room_for_stacks& operator=(const no_room_for_stacks&) = delete;
  [[nodiscard]] bool worked() const noexcept { return worked_; }

 private:
  pthread_attr_t before_{};
  bool worked_ = false;
};

std::string refusal_of(const auto& call) {
  try {
    call();
  } catch (const error& refused) {
    EXPECT_EQ(refused.code(), errc::limit);
    return refused.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return "";
}

TEST(start_thread, runs_what_it_is_given) {
  bool ran = false;
  start_thread({.what = "a thread"}, [&ran] { ran = true; }).join();
  EXPECT_TRUE(ran);
}

TEST(start_thread, that_cannot_says_which_of_how_many_why_and_what_to_do) {
  const std::error_code why(EAGAIN, std::generic_category());
  const thread_name which{.what = "decode thread", .number = 2, .of = 64, .remedy = "or give fewer decode_threads"};
  const std::string all = cannot_start(which, why, {.here = 31, .of_user_max = 100, .of_container_max = 32}).what();
  EXPECT_EQ(
      all,
      "cannot start decode thread 3 of 64: Resource temporarily unavailable (this process has 31 threads, its user may "
      "have 100 in all, its container may have 32 in all); raise `ulimit -u` or the container's limit of pids, or free "
      "some memory, or give fewer decode_threads");
  EXPECT_EQ(
      std::string(cannot_start({.what = "the watcher"}, why, {}).what()),
      "cannot start the watcher: Resource temporarily unavailable; raise `ulimit -u` or the container's limit of pids, "
      "or free some memory");
}

TEST(start_thread, counts_the_threads_of_this_process) {
  std::thread([] {}).join();  // ThreadSanitizer has a thread of its own from the first one on
  const std::size_t before = count_threads().here;
  EXPECT_GE(before, 1U);
  thread_pool pool({.thread_count = 3, .name = "three"});
  EXPECT_EQ(count_threads().here, before + 3);
}

TEST(thread_pool, whose_threads_cannot_be_started_is_a_limit_that_names_them) {
  const no_room_for_stacks now;
  if (!now.worked()) GTEST_SKIP() << "the size of stacks cannot be set";
  const std::string said = refusal_of([] {
    thread_pool pool(
        {.thread_count = 4, .name = "four", .what = "decode thread", .remedy = "or give fewer decode_threads"});
  });
  EXPECT_THAT(said, StartsWith("cannot start decode thread 1 of 4: Resource temporarily unavailable"));
  EXPECT_THAT(said, HasSubstr("or give fewer decode_threads"));
}

}  // namespace
}  // namespace leat::async
