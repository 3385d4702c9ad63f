// A store that is away for a while, refuses some of what it is asked, or lets so much through a second: each read ends with its bytes.
#include "base/text.hpp"
#include "io/remote/address.hpp"
#include "io/remote/http_client.hpp"
#include "tests/support/fault_server.hpp"
#include "tests/support/seeded_random.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace leat::testing {
namespace {

using ::testing::HasSubstr;
using wrong = http_fault::kind;
using steady = std::chrono::steady_clock;

double seconds_since(steady::time_point began) { return std::chrono::duration<double>(steady::now() - began).count(); }

class remote_outage : public ::testing::Test {
 protected:
  remote_outage() { fill_seeded(7, 0, std::as_writable_bytes(std::span(content_))); }

  void serve(std::uint16_t port = 0) {
    server_.emplace(fault_server::transport::plain, port);
    server_->put("a.bin", content_);
    where_ = io::parse_address(server_->address("a.bin"));
  }

  struct one : io::fetch {
    std::vector<std::byte> memory;
    remote_outage* test = nullptr;
  };
  // Reads on, so many at a time, until so many have ended.
  void read(io::http_client& client, std::uint64_t reads, std::uint64_t at_a_time) {
    left_ = reads;
    begun_ = 0;
    reads_ = reads;
    client_ = &client;
    std::vector<std::shared_ptr<io::fetch>> first;
    for (std::uint64_t i = 0; i < std::min(reads, at_a_time); ++i) first.push_back(next());
    client.start(std::move(first));
  }
  void wait() {
    for (std::uint64_t now = left_; now != 0; now = left_) left_.wait(now);
  }
  std::shared_ptr<one> next() {
    auto made = std::make_shared<one>();
    made->test = this;
    made->where = &where_;
    made->offset = begun_++ * 997 % (content_.size() - 1'000);
    made->memory.resize(1'000);
    made->into = made->memory;
    made->ended = [](io::fetch& done) noexcept { static_cast<one&>(done).test->end(static_cast<one&>(done)); };
    return made;
  }
  // The client's thread.
  void end(const one& done) {
    const bool is_right = done.end == io::fetch_end::whole &&
                          std::memcmp(done.memory.data(), content_.data() + done.offset, done.memory.size()) == 0;
    if (!is_right) {
      const std::lock_guard lock(mutex_);
      ++wrong_;
      why_ = done.why;
    }
    if (begun_ < reads_) client_->start({next()});
    if (--left_ == 0) left_.notify_all();
  }

  std::string content_ = std::string(200'000, 0);
  std::optional<fault_server> server_;
  io::address where_;
  io::http_client* client_ = nullptr;
  std::uint64_t reads_ = 0;
  std::uint64_t begun_ = 0;
  std::atomic<std::uint64_t> left_{0};
  std::mutex mutex_;
  std::uint64_t wrong_ = 0;
  std::string why_;
};

// What asks at once is 256 reads: a budget of tries would be gone in two.
TEST_F(remote_outage, of_a_moment_makes_a_run_longer_by_that_and_no_read_fails) {
  serve();
  io::http_client client({.allow_http = true, .connections_max = 64});
  for (const http_fault& plan : {http_fault{.what = wrong::hang_up}, http_fault{.what = wrong::status, .status = 503},
                                 http_fault{.what = wrong::status, .status = 500}}) {
    const auto began = steady::now();
    server_->set_rule([=, first = server_->requests()](const served_request& asked) {
      const double now_s = seconds_since(began);
      return asked.number - first > 50 && now_s < 0.5 ? plan : http_fault();
    });
    read(client, 2'000, 256);
    wait();
    EXPECT_EQ(wrong_, 0U) << why_;
    EXPECT_LE(seconds_since(began), 0.5 + 2 + 2);
  }
}

TEST_F(remote_outage, of_a_server_that_is_killed_and_started_again_is_waited_for) {
  serve();
  io::http_client client({.allow_http = true, .connections_max = 64});
  read(client, 3'000, 256);
  const std::uint16_t port = server_->port();
  while (server_->requests() < 100) std::this_thread::yield();
  server_.reset();
  const auto away = steady::now();
  while (seconds_since(away) < 1) std::this_thread::yield();
  serve(port);
  wait();
  EXPECT_EQ(wrong_, 0U) << why_;
  EXPECT_LE(seconds_since(away), 1 + 2 + 2);
}

TEST_F(remote_outage, that_does_not_end_is_one_error_after_patience_for_all_reads_together) {
  serve();
  io::http_client client({.allow_http = true, .patience = std::chrono::milliseconds(700)});
  read(client, 1, 1);
  wait();
  server_.reset();
  const auto began = steady::now();
  read(client, 200, 200);
  wait();
  EXPECT_EQ(wrong_, 200U);
  EXPECT_THAT(why_, ::testing::AllOf(HasSubstr("while connecting to 127.0.0.1"), HasSubstr("patience is at its end")));
  EXPECT_GE(seconds_since(began), 0.7);
  EXPECT_LE(seconds_since(began), 3);
}

TEST_F(remote_outage, of_two_fifths_of_all_requests_is_gone_through) {
  serve();
  std::atomic<std::uint64_t> asked{0};
  server_->set_rule([&](const served_request& now) {
    ++asked;
    return mix_bits(now.number) % 5 < 2
               ? http_fault{.what = wrong::status, .status = 503, .body = "<Error><Code>SlowDown</Code></Error>"}
               : http_fault();
  });
  io::http_client client({.allow_http = true, .connections_max = 64});
  read(client, 3'000, 256);
  wait();
  EXPECT_EQ(wrong_, 0U) << why_;
  EXPECT_LE(asked, 3'000 / 0.6 * 1.2);
}

// So many a second, and a fifth of a second's worth at once.
TEST_F(remote_outage, by_more_requests_than_a_store_allows_lets_the_rate_fall_to_what_it_allows) {
  constexpr double rate = 400;
  serve();
  const auto began = steady::now();
  double left = rate / 5;
  double at_s = 0;
  std::atomic<std::uint64_t> refused{0};
  server_->set_rule([&](const served_request&) {
    const double now_s = seconds_since(began);
    left = std::min(rate / 5, left + (now_s - at_s) * rate);
    at_s = now_s;
    if (left >= 1) {
      left -= 1;
      return http_fault();
    }
    ++refused;
    return http_fault{.what = wrong::status, .status = 503};
  });
  io::http_client client({.allow_http = true, .connections_max = 64});
  read(client, 1'200, 256);
  wait();
  EXPECT_EQ(wrong_, 0U) << why_;
  EXPECT_LE(seconds_since(began), 1'200 / rate / 0.7);
  EXPECT_LE(refused, 400U);
}

TEST_F(remote_outage, of_one_object_is_no_outage_of_its_store) {
  serve();
  server_->put("b.bin", content_);
  server_->set_rule([](const served_request& asked) {
    return asked.target == "/b.bin" ? http_fault{.what = wrong::status, .status = 500} : http_fault();
  });
  io::http_client client({.allow_http = true, .patience = std::chrono::milliseconds(500)});
  const io::address other = io::parse_address(server_->address("b.bin"));
  std::vector<std::byte> into(10);
  const auto lost = std::make_shared<io::fetch>();
  lost->where = &other;
  lost->into = into;
  std::thread beside([&] { client.fetch_now(lost); });
  read(client, 3'000, 32);
  wait();
  beside.join();
  EXPECT_EQ(wrong_, 0U) << why_;
  EXPECT_EQ(lost->end, io::fetch_end::failed);
  EXPECT_THAT(lost->why, HasSubstr("500 As Told"));
}

}  // namespace
}  // namespace leat::testing
