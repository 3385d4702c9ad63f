#include "io/remote/name_answers.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>

namespace leat::testing {
namespace {

namespace ip = boost::asio::ip;
using kind = io::name_answer::kind;
constexpr std::uint64_t second = 1'000'000'000;

/// A name server that answers when the test lets it.
struct name_server {
  std::mutex mutex;
  std::condition_variable changed;
  bool answers = true;
  io::name_answer answer;
  std::atomic<int> asked{0};

  io::name_answer operator()() {
    ++asked;
    std::unique_lock lock(mutex);
    changed.wait(lock, [this] { return answers; });
    return answer;
  }
  void say(io::name_answer next) {
    const std::lock_guard lock(mutex);
    answer = std::move(next);
  }
  void set(bool now_answers) {
    {
      const std::lock_guard lock(mutex);
      answers = now_answers;
    }
    changed.notify_all();
  }
};

io::name_answer found(const char* address) { return {.what = kind::found, .addresses = {ip::make_address(address)}}; }

class name_answers : public ::testing::Test {
 protected:
  // The answer, once one has come.
  io::name_answer wait(const std::string& name, std::uint64_t now_ns) {
    for (;;) {
      io::name_answer now = names_.ask(name, now_ns);
      if (now.what != kind::pending) return now;
      std::this_thread::yield();
    }
  }

  // The threads that ask it have it too.
  const std::shared_ptr<name_server> kept_ = std::make_shared<name_server>();
  name_server& server_ = *kept_;
  io::name_answers names_{[kept = kept_](const std::string&) { return (*kept)(); }};
};

TEST_F(name_answers, are_asked_for_once_by_all_and_again_after_a_minute) {
  server_.say(found("10.0.0.1"));
  server_.set(false);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(names_.ask("store", second).what, kind::pending);
  server_.set(true);
  EXPECT_EQ(wait("store", second).addresses, std::vector{ip::make_address("10.0.0.1")});
  EXPECT_EQ(wait("store", 60 * second).what, kind::found);
  EXPECT_EQ(server_.asked, 1);
  // The old one holds until the new one has come.
  server_.set(false);
  server_.say(found("10.0.0.2"));
  EXPECT_EQ(names_.ask("store", 62 * second).addresses.front().to_string(), "10.0.0.1");
  server_.set(true);
  while (names_.ask("store", 62 * second).addresses.front().to_string() != "10.0.0.2") std::this_thread::yield();
  EXPECT_EQ(server_.asked, 2);
}

TEST_F(name_answers, that_failed_are_asked_for_again_after_a_second_and_take_nothing_that_was_known) {
  server_.say({.what = kind::failed, .why = "no such name", .is_unknown = true});
  EXPECT_EQ(wait("store", second).why, "no such name");
  EXPECT_TRUE(wait("store", second + second / 2).is_unknown);
  EXPECT_EQ(server_.asked, 1);
  server_.say(found("10.0.0.1"));
  EXPECT_EQ(wait("store", 2 * second).what, kind::found);
  server_.say({.what = kind::failed, .why = "try again"});
  EXPECT_EQ(names_.ask("store", 100 * second).what, kind::found);
  while (server_.asked < 3) std::this_thread::yield();
  EXPECT_EQ(wait("store", 100 * second).addresses.size(), 1U);
}

TEST_F(name_answers, of_which_one_is_silent_hold_nobody_else_up) {
  server_.set(false);
  EXPECT_EQ(names_.ask("silent", second).what, kind::pending);
  io::name_answers others([](const std::string&) { return found("10.0.0.9"); });
  while (others.ask("store", second).what == kind::pending) std::this_thread::yield();
  server_.say(found("10.0.0.1"));
  EXPECT_EQ(names_.ask("silent", second).what, kind::pending);
  server_.set(true);
}

TEST_F(name_answers, are_tried_with_dead_addresses_last_and_both_families_in_turns) {
  io::name_answer two = found("10.0.0.1");
  two.addresses.push_back(ip::make_address("10.0.0.2"));
  server_.say(two);
  wait("store", second);
  names_.is_dead(ip::make_address("10.0.0.1"), 2 * second);
  EXPECT_EQ(wait("store", 3 * second).addresses.front().to_string(), "10.0.0.2");
  EXPECT_EQ(wait("store", 61 * second).addresses.size(), 2U);
  while (names_.ask("store", 63 * second).addresses.front().to_string() != "10.0.0.1") std::this_thread::yield();
  const auto a = [](const char* text) { return ip::make_address(text); };
  EXPECT_THAT(io::in_turns({a("::1"), a("::2"), a("1.1.1.1"), a("2.2.2.2"), a("3.3.3.3")}),
              ::testing::ElementsAre(a("::1"), a("1.1.1.1"), a("::2"), a("2.2.2.2"), a("3.3.3.3")));
  EXPECT_TRUE(io::in_turns({}).empty());
}

}  // namespace
}  // namespace leat::testing
