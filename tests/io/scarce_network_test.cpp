// A client of servers where the system gives no descriptors, or no memory to wait for them. It says so, at once.
#include "base/sanitizers.hpp"
#include "io/remote/address.hpp"
#include "io/remote/list_bucket.hpp"
#include "io/remote/s3.hpp"
#include "tests/support/descriptors_left.hpp"
#include "tests/support/failures.hpp"
#include "tests/support/fault_server.hpp"
#include "tests/support/watchdog.hpp"

#include <leat/error.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/epoll.h>

#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <string>

namespace {

// Calls of a client from now on until one fails; below 0: none does.
std::atomic<int> epoll_calls_left{-1};

// The server of the test is not to fail.
bool is_of_client() {
  char name[16] = {};
  pthread_getname_np(pthread_self(), name, sizeof name);
  return ::gettid() == ::getpid() || std::strcmp(name, "leat-net") == 0;
}

}  // namespace

// In the place of the C library's in this program.
extern "C" int __real_epoll_ctl(int epoll, int what, int descriptor, epoll_event* event);
extern "C" int __wrap_epoll_ctl(int epoll, int what, int descriptor, epoll_event* event) {
  if (epoll_calls_left.load() >= 0 && is_of_client() && epoll_calls_left.fetch_sub(1) == 0) {
    errno = ENOMEM;
    return -1;
  }
  return __real_epoll_ctl(epoll, what, descriptor, event);
}

namespace leat::testing {
namespace {

using ::testing::HasSubstr;

std::size_t listed_at(const std::string& address) {
  const io::s3_access store{{"KEYID", "hush"}, "eu-west-1", io::parse_address(address)};
  return io::list_bucket("bucket", "", store, {.allow_http = true}).size();
}

// Without a server: it would need descriptors, too.
TEST(scarce_network, where_descriptors_are_used_up_it_says_so) {
  if (LEAT_ADDRESS_SANITIZER) GTEST_SKIP() << "UndefinedBehaviorSanitizer looks at what is thrown through a pipe";
  const watchdog dog("no descriptors");
  for (rlim_t more = 0; more < 4; ++more) {
    const descriptors_left few(more);
    try {
      listed_at("http://127.0.0.1:9/");
      ADD_FAILURE() << "a connection without a descriptor";
    } catch (const error& refused) {
      EXPECT_THAT(refused.what(), HasSubstr("Too many open files")) << more;
      EXPECT_THAT(refused.what(), HasSubstr("ulimit -n")) << more;
    }
  }
}

// The calls by which a client is prepared, of which Asio does not look at what comes.
TEST(scarce_network, where_epoll_has_no_memory_it_says_so_or_goes_on) {
  const watchdog dog("no memory for epoll");
  fault_server server;
  server.put("bucket/a", "x");
  bool was_refused = false;
  for (int call = 0; call < 5; ++call) {
    epoll_calls_left = call;
    try {
      EXPECT_EQ(listed_at(server.address("")), 1U) << call;
    } catch (const error& refused) {
      EXPECT_EQ(refused.code(), errc::limit) << refused.what();
      EXPECT_THAT(refused.what(), HasSubstr("epoll")) << call;
      was_refused = true;
    }
    epoll_calls_left = -1;
  }
  EXPECT_TRUE(was_refused) << "the timers' call was among them";
}

}  // namespace
}  // namespace leat::testing
