#include "async/channel.hpp"

#include "async/scope.hpp"
#include "async/thread_pool.hpp"
#include "tests/async/running.hpp"
#include "tests/support/seeds.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <vector>

namespace leat::async {
namespace {

using testing::run;
using testing::turn;
using element = std::unique_ptr<int>;

TEST(channel, hands_over_in_order_through_any_capacity) {
  for (const std::size_t capacity : {std::size_t{0}, std::size_t{1}, std::size_t{3}}) {
    SCOPED_TRACE(capacity);
    simple_loop loop;
    channel<element> pipe(capacity);
    std::vector<int> received;
    auto send = [](channel<element>& to) -> asio::awaitable<void> {
      for (int i = 0; i < 20; ++i) {
        element one = std::make_unique<int>(i);
        co_await to.send(one);
        EXPECT_EQ(one, nullptr);
      }
      to.close();
    };
    auto receive = [](channel<element>& from, std::vector<int>& into) -> asio::awaitable<void> {
      while (auto one = co_await from.receive()) into.push_back(**one);
    };
    run(loop, with_scope([&](scope& s) -> asio::awaitable<void> {
          s.spawn(send(pipe));
          s.spawn(receive(pipe, received));
          co_return;
        }));
    ASSERT_EQ(received.size(), 20U);
    EXPECT_TRUE(std::is_sorted(received.begin(), received.end()));
  }
}

TEST(channel, is_bounded) {
  channel<element> pipe(2);
  element one = std::make_unique<int>(1);
  element two = std::make_unique<int>(2);
  element three = std::make_unique<int>(3);
  EXPECT_TRUE(pipe.try_send(one));
  EXPECT_TRUE(pipe.try_send(two));
  EXPECT_FALSE(pipe.try_send(three));
  ASSERT_NE(three, nullptr) << "a refused element stays with its sender";
  EXPECT_EQ(pipe.size(), 2U);
  EXPECT_EQ(**pipe.try_receive(), 1);
  EXPECT_TRUE(pipe.try_send(three));
  EXPECT_EQ(**pipe.try_receive(), 2);
  EXPECT_EQ(**pipe.try_receive(), 3);
  EXPECT_FALSE(pipe.try_receive());
}

TEST(channel, close_ends_senders_at_once_and_receivers_after_the_last_element) {
  simple_loop loop;
  channel<element> pipe(1);
  run(loop, with_scope([&](scope& s) -> asio::awaitable<void> {
        element first = std::make_unique<int>(1);
        co_await pipe.send(first);
        element stuck = std::make_unique<int>(2);
        bool refused = false;
        auto waits = [](channel<element>& to, element& sending, bool& failed) -> asio::awaitable<void> {
          try {
            co_await to.send(sending);
          } catch (const boost::system::system_error& error) {
            failed = error.code() == async_errc::closed;
          }
        };
        s.spawn(waits(pipe, stuck, refused));
        co_await turn(2);
        pipe.close();
        co_await turn(2);
        EXPECT_TRUE(refused);
        EXPECT_NE(stuck, nullptr) << "what was not sent stays with its sender";
        EXPECT_FALSE(pipe.try_send(stuck));
        auto last = co_await pipe.receive();
        EXPECT_TRUE(last.has_value());
        auto none = co_await pipe.receive();
        EXPECT_FALSE(none.has_value());
      }));
}

TEST(channel, close_wakes_waiting_receivers) {
  simple_loop loop;
  channel<int> pipe(1);
  int ended = 0;
  auto receive = [](channel<int>& from, int& count) -> asio::awaitable<void> {
    const auto none = co_await from.receive();
    if (!none) ++count;
  };
  run(loop, with_scope([&](scope& s) -> asio::awaitable<void> {
        s.spawn(receive(pipe, ended));
        s.spawn(receive(pipe, ended));
        co_await turn(2);
        pipe.close();
      }));
  EXPECT_EQ(ended, 2);
}

TEST(channel, serves_futures) {
  channel<int> pipe(0);
  auto received = pipe.receive(asio::use_future);
  int seven = 7;
  EXPECT_TRUE(pipe.try_send(seven));
  EXPECT_EQ(received.get(), 7);
  int eight = 8;
  auto sent = pipe.send(eight, asio::use_future);
  EXPECT_EQ(pipe.try_receive(), 8);
  sent.get();
}

// Senders and receivers on several threads, some of them cancelled at any moment. Every element that a sender got rid of
// is received exactly once or still inside; every other stayed with its sender.
TEST(channel, loses_and_doubles_nothing_while_both_sides_are_cancelled) {
  leat::testing::for_each_seed(25, [](std::uint64_t seed) {
    struct ledger {
      std::mutex guard;
      std::vector<int> sent;
      std::vector<int> received;
    };
    std::minstd_rand random(static_cast<unsigned>(seed));
    channel<element> pipe(random() % 4);
    ledger books;
    auto send = [](channel<element>& to, ledger& b, int from) -> asio::awaitable<void> {
      for (int i = 0; i < 40; ++i) {
        element one = std::make_unique<int>(from * 1000 + i);
        std::exception_ptr thrown;
        try {
          co_await to.send(one, asio::use_awaitable);
        } catch (...) {
          thrown = std::current_exception();
        }
        EXPECT_EQ(one == nullptr, !thrown) << "moved from exactly on success";
        if (!one) {
          const std::lock_guard lock(b.guard);
          b.sent.push_back(from * 1000 + i);
        }
        if (thrown) std::rethrow_exception(thrown);
      }
    };
    auto receive = [](channel<element>& from, ledger& b) -> asio::awaitable<void> {
      while (auto one = co_await from.receive()) {
        const std::lock_guard lock(b.guard);
        b.received.push_back(**one);
      }
    };
    thread_pool pool({.thread_count = 3, .name = "test"});
    {
      std::vector<std::unique_ptr<testing::cancellable>> senders;
      std::vector<std::unique_ptr<testing::cancellable>> receivers;
      for (int i = 0; i < 4; ++i) {
        senders.push_back(std::make_unique<testing::cancellable>(pool.get_executor(), send(pipe, books, i)));
        receivers.push_back(std::make_unique<testing::cancellable>(pool.get_executor(), receive(pipe, books)));
      }
      for (int i = 0; i < 4; ++i) {
        for (auto spins = random() % 3000; spins != 0; --spins) std::atomic_signal_fence(std::memory_order_seq_cst);
        if (random() % 2 == 0) {
          senders[random() % 4]->cancel();
        } else {
          receivers[random() % 3]->cancel();  // one receiver stays to the end
        }
      }
      for (auto& one : senders) one->wait();
      pipe.close();
      for (auto& one : receivers) one->wait();
    }
    std::sort(books.sent.begin(), books.sent.end());
    std::sort(books.received.begin(), books.received.end());
    EXPECT_EQ(books.sent, books.received);
    EXPECT_EQ(pipe.size(), 0U);
  });
}

}  // namespace
}  // namespace leat::async
