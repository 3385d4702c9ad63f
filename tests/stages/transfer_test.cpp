#include "stages/batch/transfer.hpp"

#include "io/arena/arena.hpp"
#include "io/arena/lease_pool.hpp"
#include "tests/support/delayed_transfer.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

namespace leat::stages {
namespace {

using testing::delayed_transfer;

struct sent final : transfer_operation {
  explicit sent(int n, std::vector<int>& into) : number(n), order(&into) {
    handed_over = [](transfer_operation& operation) noexcept {
      auto& self = static_cast<sent&>(operation);
      self.order->push_back(self.number);
    };
  }
  int number;
  std::vector<int>* order;
};

TEST(host_transfer, fires_both_events_at_once) {
  host_transfer here;
  std::vector<int> order;
  sent one(1, order);
  here.send(one);
  EXPECT_EQ(order, (std::vector<int>{1}));
  auto pool = std::make_unique<io::lease_pool>(
      std::make_shared<io::arena>(io::arena_options{.bytes_max = 1 << 16, .pages = io::huge_pages::off}),
      io::lease_pool_options{.bytes_max = 1 << 16, .name = "batches"});
  here.give_back(std::move(*pool->try_lease(1 << 16)), true);
  EXPECT_EQ(pool->count().leases_out, 0U);
}

TEST(delayed_transfer, fires_in_the_order_it_is_told) {
  delayed_transfer later;
  std::vector<int> order;
  sent one(1, order), two(2, order), three(3, order);
  later.send(one);
  later.send(two);
  later.send(three);
  EXPECT_TRUE(order.empty());
  EXPECT_EQ(later.sends_pending(), 3U);
  EXPECT_TRUE(later.fire_send(1));
  EXPECT_TRUE(later.fire_send(1));
  EXPECT_FALSE(later.fire_send(1));
  EXPECT_EQ(order, (std::vector<int>{2, 3}));
  later.drain();
  EXPECT_EQ(order, (std::vector<int>{2, 3, 1}));
  sent four(4, order);
  later.send(four);
  EXPECT_EQ(order.back(), 4) << "once drained, everything fires at once";
}

TEST(delayed_transfer, keeps_memory_until_its_event) {
  auto memory = std::make_shared<io::arena>(io::arena_options{.bytes_max = 1 << 16, .pages = io::huge_pages::off});
  io::lease_pool pool(memory, {.bytes_max = 1 << 16, .name = "batches"});
  delayed_transfer later;
  later.give_back(std::move(*pool.try_lease(4096)), true);
  later.give_back(std::move(*pool.try_lease(8192)), true);
  EXPECT_EQ(later.returns_pending(), 2U);
  EXPECT_EQ(pool.count().leases_out, 2U);
  EXPECT_TRUE(later.fire_return(1));
  EXPECT_EQ(pool.count().bytes_used, 4096U);
  later.release_all();
  EXPECT_EQ(pool.count().leases_out, 0U);
  later.give_back(std::move(*pool.try_lease(4096)), true);
  EXPECT_EQ(pool.count().leases_out, 0U);
}

// drain() must not return while another thread is inside handed_over(): what that touches goes next.
TEST(delayed_transfer, drain_waits_for_an_event_that_is_firing) {
  struct slow final : transfer_operation {
    std::atomic<bool> inside{false};
    std::atomic<bool> go_on{false};
    std::atomic<bool> ended{false};
  };
  delayed_transfer later;
  slow one;
  one.handed_over = [](transfer_operation& operation) noexcept {
    auto& self = static_cast<slow&>(operation);
    self.inside = true;
    while (!self.go_on) std::this_thread::yield();
    self.ended = true;
  };
  later.send(one);
  std::thread device([&] { later.fire_send(0); });
  while (!one.inside) std::this_thread::yield();
  std::atomic<bool> drained{false};
  std::thread drainer([&] {
    later.drain();
    EXPECT_TRUE(one.ended);
    drained = true;
  });
  for (int i = 0; i < 1000 && !drained; ++i) std::this_thread::yield();
  EXPECT_FALSE(drained);
  one.go_on = true;
  drainer.join();
  device.join();
}

}  // namespace
}  // namespace leat::stages
