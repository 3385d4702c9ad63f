// Which connections are kept, and which are silent for too long, by the test's clock: none of them is open.
#include "io/remote/connection_pool.hpp"

#include <boost/asio/io_context.hpp>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <vector>

namespace leat::testing {
namespace {

constexpr std::uint64_t second = 1'000'000'000;

class kept_connections : public ::testing::Test {
 protected:
  [[nodiscard]] std::unique_ptr<io::http_connection> made(const char* address = "https://host/a") {
    auto one = std::make_unique<io::http_connection>(context_, io::parse_address(address));
    one->silence_max_ns = 30 * second;
    one->give_up_ns = 1'000 * second;
    return one;
  }
  // What watch() says to be late, and what not.
  void watch(std::uint64_t now) {
    late_.clear();
    others_.clear();
    pool_.watch(
        now, [&](io::http_connection& each) { late_.push_back(&each); },
        [&](io::http_connection& each) { others_.push_back(&each); });
  }

  boost::asio::io_context context_;
  io::connection_pool pool_{2};
  std::vector<io::http_connection*> late_;
  std::vector<io::http_connection*> others_;
};

TEST_F(kept_connections, that_are_idle_are_used_again_by_their_server_the_last_one_first) {
  auto first = made();
  auto last = made("https://host/b");
  const io::http_connection* const expected = last.get();
  pool_.keep(std::move(first), 0);
  pool_.keep(std::move(last), 0);
  EXPECT_EQ(pool_.take_idle(io::parse_address("https://other/a")), nullptr);
  EXPECT_EQ(pool_.take_idle(io::parse_address("https://host:8443/a")), nullptr);
  EXPECT_EQ(pool_.take_idle(io::parse_address("https://host/c")).get(), expected);
  EXPECT_NE(pool_.take_idle(io::parse_address("https://host/c")), nullptr);
  EXPECT_TRUE(pool_.is_empty());
}

TEST_F(kept_connections, that_are_idle_are_so_many_and_not_older_than_20_s) {
  for (int i = 0; i < 3; ++i) pool_.keep(made(i == 0 ? "https://first/a" : "https://host/a"), 0);
  EXPECT_EQ(pool_.take_idle(io::parse_address("https://first/a")), nullptr) << "the oldest one made way";
  pool_.close_old(20 * second);
  EXPECT_FALSE(pool_.is_empty());
  pool_.close_old(20 * second + 1);
  EXPECT_TRUE(pool_.is_empty());
  EXPECT_FALSE(pool_.close_idle());
}

TEST_F(kept_connections, that_are_silent_for_too_long_are_closed) {
  const auto silent = made();
  const auto heard = made();
  const io::connection_pool::place of_silent(pool_, *silent);
  const io::connection_pool::place of_heard(pool_, *heard);
  EXPECT_EQ(pool_.active(), 2U);
  heard->silent_since_ns = 10 * second;
  watch(30 * second);
  EXPECT_EQ(late_, std::vector{silent.get()});
  EXPECT_EQ(others_, std::vector{heard.get()});
  EXPECT_TRUE(silent->is_late && silent->is_closed);
  EXPECT_FALSE(heard->is_closed);
}

TEST_F(kept_connections, that_drip_are_late_once_their_time_for_all_bytes_is_over) {
  const auto drips = made();
  const io::connection_pool::place used(pool_, *drips);
  drips->asked_ns = second;
  drips->give_up_ns = 100 * second;
  drips->silent_since_ns = 99 * second;
  watch(99 * second);
  EXPECT_TRUE(late_.empty());
  drips->silent_since_ns = 100 * second;
  watch(100 * second);
  EXPECT_FALSE(late_.empty());
}

TEST_F(kept_connections, of_a_server_tell_when_it_was_heard_last) {
  // Only its address is looked at.
  const int place = 0;
  const auto& server = reinterpret_cast<const io::known_server&>(place);
  const auto one = made();
  const auto other = made();
  one->server = other->server = &server;
  one->silent_since_ns = 5 * second;
  other->silent_since_ns = 7 * second;
  const io::connection_pool::place of_one(pool_, *one);
  {
    const io::connection_pool::place of_other(pool_, *other);
    EXPECT_EQ(pool_.of(server).asked, nullptr) << "nobody waits";
    one->asked_ns = 5 * second;
    EXPECT_EQ(pool_.of(server).asked, one.get());
    EXPECT_EQ(pool_.of(server).heard_ns, 7 * second);
    pool_.close_silent(server, 8 * second, 2 * second);
  }
  EXPECT_TRUE(one->is_late);
  EXPECT_FALSE(other->is_late);
}

}  // namespace
}  // namespace leat::testing
