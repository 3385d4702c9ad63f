// A store that is away for a while, refuses some of what it is asked, or lets so much through a second: each read ends with its bytes.
#include "base/clock.hpp"
#include "base/text.hpp"
#include "io/remote/address.hpp"
#include "io/remote/http_client.hpp"
#include "io/remote/name_answers.hpp"
#include "tests/support/fault_server.hpp"
#include "tests/support/seeded_random.hpp"
#include "tests/support/silent_address.hpp"
#include "tests/support/temporary_directory.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace leat::testing {
namespace {

using ::testing::HasSubstr;
using wrong = http_fault::kind;
using steady = std::chrono::steady_clock;

double seconds_since(steady::time_point began) { return std::chrono::duration<double>(steady::now() - began).count(); }

/// The least of what ten calls say, or of as many as it takes for one that is enough: a machine is busy now and then, and
/// what waits by itself does so each time.
template <class Call>
double least_seconds(double enough, const Call& call) {
  double least = call();
  for (int others = 9; others > 0 && least > enough; --others) least = std::min(least, call());
  return least;
}

class remote_outage : public ::testing::Test {
 protected:
  remote_outage() { fill_seeded(7, 0, std::as_writable_bytes(std::span(content_))); }

  void serve(std::uint16_t port = 0) {
    server_.emplace(fault_server::transport::plain, port, std::map<std::string, std::string>{{"a.bin", content_}});
    // Again at its port: then reads that are under way refer to it.
    if (port == 0) where_ = io::parse_address(server_->address("a.bin"));
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
  /// What a bound allows a busy machine: ten times what as many reads take on it that nothing disturbs.
  double busy_seconds(io::http_client& client, std::uint64_t reads, std::uint64_t at_a_time) {
    const auto began = steady::now();
    read(client, reads, at_a_time);
    wait();
    return 10 * seconds_since(began);
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
  const double busy = busy_seconds(client, 2'000, 256);
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
    EXPECT_LE(seconds_since(began), 0.5 + 2 + busy);
  }
}

TEST_F(remote_outage, of_a_server_that_is_killed_and_started_again_is_waited_for) {
  serve();
  io::http_client client({.allow_http = true, .connections_max = 64});
  const double busy = busy_seconds(client, 3'000, 256);
  const std::uint64_t before = server_->requests();
  read(client, 3'000, 256);
  const std::uint16_t port = server_->port();
  while (server_->requests() - before < 100) std::this_thread::yield();
  server_.reset();
  const auto away = steady::now();
  while (seconds_since(away) < 1) std::this_thread::yield();
  serve(port);
  wait();
  EXPECT_EQ(wrong_, 0U) << why_;
  EXPECT_LE(seconds_since(away), 1 + 2 + busy);
}

TEST_F(remote_outage, that_does_not_end_is_one_error_after_patience_for_all_reads_together) {
  serve();
  io::http_client client({.allow_http = true, .patience = std::chrono::milliseconds(700)});
  const double busy = busy_seconds(client, 200, 200);
  server_.reset();
  const auto began = steady::now();
  read(client, 200, 200);
  wait();
  EXPECT_EQ(wrong_, 200U);
  EXPECT_THAT(why_, ::testing::AllOf(HasSubstr("while connecting to 127.0.0.1"), HasSubstr("patience is at its end")));
  EXPECT_GE(seconds_since(began), 0.7);
  EXPECT_LE(seconds_since(began), 20 * 0.7 + busy) << "and not each for itself";
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
  io::http_client client({.allow_http = true, .connections_max = 64});
  const double busy = busy_seconds(client, 1'200, 256);
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
  read(client, 1'200, 256);
  wait();
  EXPECT_EQ(wrong_, 0U) << why_;
  // store_state_test says how well, by a clock of its own.
  EXPECT_LE(seconds_since(began), 1'200 / rate / 0.4 + busy);
  EXPECT_LE(refused, 1'200U);
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

// Of a store that throttles by prefix.
TEST_F(remote_outage, of_one_folder_holds_up_no_read_of_another) {
  serve();
  server_->put("bucket/busy/a.bin", content_);
  server_->put("bucket/idle/a.bin", content_);
  std::atomic<bool> refuses{true};
  server_->set_rule([&](const served_request& asked) {
    return refuses && asked.target.starts_with("/bucket/busy/") ? http_fault{.what = wrong::status, .status = 503}
                                                                : http_fault();
  });
  io::http_client client({.allow_http = true, .connections_max = 16});
  const io::address busy = io::parse_address(server_->address("bucket/busy/a.bin"));
  where_ = io::parse_address(server_->address("bucket/idle/a.bin"));
  std::string into(64, 0);
  std::atomic<std::size_t> held{into.size()};
  std::vector<std::shared_ptr<io::fetch>> waiting;
  for (char& each : into) {
    waiting.push_back(std::make_shared<io::fetch>());
    waiting.back()->where = &busy;
    waiting.back()->into = std::as_writable_bytes(std::span(&each, 1));
    waiting.back()->owner = &held;
    waiting.back()->ended = [](io::fetch& done) noexcept {
      auto& left = *static_cast<std::atomic<std::size_t>*>(done.owner);
      if (--left == 0) left.notify_all();
    };
  }
  client.start(waiting);
  read(client, 2'000, 64);
  wait();
  EXPECT_EQ(wrong_, 0U) << why_;
  EXPECT_EQ(held, into.size()) << "it was refused all the time";
  refuses = false;
  for (std::size_t now = held; now != 0; now = held) held.wait(now);
  EXPECT_EQ(into, std::string(into.size(), content_[0]));
}

// A machine that is overloaded: each answer takes long, and one longer than patience lasts. It would be overtaken by six others.
TEST_F(remote_outage, of_one_read_among_slow_ones_is_the_store_s_slowness) {
  serve();
  std::atomic<int> silent{3};
  server_->set_rule([&](const served_request& asked) {
    const bool is_first = asked.value("Range") == "bytes=0-999";
    if (is_first && silent-- > 0) return http_fault{.what = wrong::stall};
    return silent < 0 ? http_fault() : http_fault{.what = wrong::late, .wait = std::chrono::milliseconds(400)};
  });
  io::http_client client({.allow_http = true, .patience = std::chrono::milliseconds(500)});
  read(client, 12, 2);
  wait();
  EXPECT_EQ(wrong_, 0U) << why_;
  EXPECT_LT(silent, 0);
}

TEST_F(remote_outage, of_one_read_that_others_overtake_ends_it_after_patience) {
  serve();
  server_->put("b.bin", content_);
  server_->set_rule([](const served_request& asked) {
    return asked.target == "/b.bin" ? http_fault{.what = wrong::stall} : http_fault();
  });
  io::http_client client({.allow_http = true, .patience = std::chrono::milliseconds(1'000)});
  const io::address other = io::parse_address(server_->address("b.bin"));
  std::vector<std::byte> into(10);
  const auto lost = std::make_shared<io::fetch>();
  lost->where = &other;
  lost->into = into;
  std::promise<void> ended;
  lost->owner = &ended;
  lost->ended = [](io::fetch& done) noexcept { static_cast<std::promise<void>*>(done.owner)->set_value(); };
  const double busy = busy_seconds(client, 100, 8);
  const auto began = steady::now();
  client.start({lost});
  const std::future<void> is_over = ended.get_future();
  while (is_over.wait_for(std::chrono::seconds(0)) != std::future_status::ready) {
    read(client, 100, 8);
    wait();
  }
  EXPECT_EQ(wrong_, 0U) << why_;
  EXPECT_EQ(lost->end, io::fetch_end::failed);
  EXPECT_THAT(lost->why, HasSubstr("patience is at its end"));
  EXPECT_LE(seconds_since(began), 20 + busy);
}

// What a read waits for as the store said takes none of its patience.
TEST_F(remote_outage, in_which_reads_wait_as_they_are_told_for_longer_than_patience_ends_none) {
  serve();
  server_->set_rule([](const served_request& asked) {
    return asked.number % 16 == 3 ? http_fault{.what = wrong::status, .status = 503, .headers = "Retry-After: 1\r\n"}
                                  : http_fault{.what = wrong::late, .wait = std::chrono::milliseconds(30)};
  });
  io::http_client client({.allow_http = true, .patience = std::chrono::milliseconds(950)});
  read(client, 32, 8);
  wait();
  EXPECT_EQ(wrong_, 0U) << why_;
}

/// Hands on what a client and a server say, but for a time in which all of it is lost, and what was said by connections of before for good.
class lossy_way {
 public:
  explicit lossy_way(std::uint16_t to) : to_(to) {
    boost::asio::co_spawn(context_, accept(), boost::asio::detached);
    thread_ = std::thread([this] { context_.run(); });
  }
  lossy_way(const lossy_way&) = delete;
  lossy_way& operator=(const lossy_way&) = delete;
  ~lossy_way() {
    context_.stop();
    thread_.join();
  }
  [[nodiscard]] std::uint16_t port() const { return listening_.local_endpoint().port(); }
  void lose(bool all) {
    if (all) ++losses_;
    is_lossy_ = all;
  }

 private:
  using tcp = boost::asio::ip::tcp;
  static constexpr auto answers = boost::asio::as_tuple(boost::asio::use_awaitable);

  boost::asio::awaitable<void> accept() {
    for (;;) {
      auto [failure, taken] = co_await listening_.async_accept(answers);
      if (failure) co_return;
      auto client = std::make_shared<tcp::socket>(std::move(taken));
      auto server = std::make_shared<tcp::socket>(context_);
      co_await server->async_connect({boost::asio::ip::address_v4::loopback(), to_}, answers);
      boost::asio::co_spawn(context_, hand_on(client, server), boost::asio::detached);
      boost::asio::co_spawn(context_, hand_on(server, client), boost::asio::detached);
    }
  }
  boost::asio::awaitable<void> hand_on(std::shared_ptr<tcp::socket> from, std::shared_ptr<tcp::socket> to) {
    const unsigned losses = losses_;
    const bool is_lost = is_lossy_;
    char some[4096];
    for (;;) {
      const auto [failure, bytes] = co_await from->async_read_some(boost::asio::buffer(some), answers);
      if (failure) break;
      if (is_lost || losses != losses_) continue;
      co_await boost::asio::async_write(*to, boost::asio::buffer(some, bytes), answers);
    }
    boost::system::error_code ignored;
    to->close(ignored);
  }

  const std::uint16_t to_;
  boost::asio::io_context context_;
  tcp::acceptor listening_{context_, {boost::asio::ip::address_v4::loopback(), 0}};
  std::atomic<unsigned> losses_{0};
  std::atomic<bool> is_lossy_{false};
  std::thread thread_;
};

// TCP repeats what was lost ever more seldom, and a connection that is silent is given up after 30 s.
TEST_F(remote_outage, in_which_all_packets_are_lost_ends_soon_after_a_new_connection_is_let_in) {
  const temporary_directory folder;
  server_.emplace(fault_server::transport::tls);
  server_->put("a.bin", content_);
  const std::string authorities = (folder.path() / "ca.pem").string();
  std::ofstream(authorities) << server_->certificate();
  lossy_way way(server_->port());
  where_ = io::parse_address(str_cat("https://localhost:", way.port(), "/a.bin"));
  io::http_client client({.ca_file = authorities, .connections_max = 16},
                         {.server_silence = std::chrono::milliseconds(200)});
  const double busy = busy_seconds(client, 1'500, 64);
  const std::uint64_t before = server_->requests();
  read(client, 1'500, 64);
  while (server_->requests() - before < 100) std::this_thread::yield();
  const auto lost = steady::now();
  way.lose(true);
  while (seconds_since(lost) < 0.8) std::this_thread::yield();
  way.lose(false);
  const auto back = steady::now();
  wait();
  EXPECT_EQ(wrong_, 0U) << why_;
  EXPECT_LE(seconds_since(back), 3 + busy);
}

// How often the client's thread has waited.
std::uint64_t waits_of_network_threads() {
  std::uint64_t all = 0;
  for (const auto& each : std::filesystem::directory_iterator("/proc/self/task")) {
    std::ifstream name(each.path() / "comm");
    std::string line;
    std::getline(name, line);
    if (line != "leat-net") continue;
    std::ifstream status(each.path() / "status");
    while (std::getline(status, line)) {
      constexpr std::string_view what = "voluntary_ctxt_switches:";
      if (line.starts_with(what)) all += std::stoull(line.substr(what.size()));
    }
  }
  return all;
}

TEST_F(remote_outage, apart_a_client_that_is_asked_nothing_does_not_wake) {
  serve();
  io::http_client client({.allow_http = true});
  read(client, 10, 2);
  wait();
  ASSERT_GT(waits_of_network_threads(), 0U);
  // What it still does after its last answer is soon over.
  auto since = steady::now();
  std::uint64_t before = waits_of_network_threads();
  const auto began = since;
  while (seconds_since(since) < 0.5 && seconds_since(began) < 10) {
    std::this_thread::yield();
    if (const std::uint64_t now = waits_of_network_threads(); now != before) {
      before = now;
      since = steady::now();
    }
  }
  EXPECT_LT(seconds_since(began), 10);
}

/// A name server of the test's, which answers when it is let.
struct name_server {
  std::mutex mutex;
  std::condition_variable changed;
  bool answers = true;
  std::vector<std::string> addresses = {"127.0.0.1"};
  int unknown_first = 0;  // so many times there is no such name
  std::atomic<int> asked{0};

  io::name_answer answer() {
    const int number = asked++;
    std::unique_lock lock(mutex);
    changed.wait(lock, [this] { return answers; });
    if (number < unknown_first)
      return {.what = io::name_answer::kind::failed, .addresses = {}, .why = "no such name", .is_unknown = true};
    io::name_answer made{.what = io::name_answer::kind::found};
    for (const std::string& each : addresses) made.addresses.push_back(boost::asio::ip::make_address(each));
    return made;
  }
  void set(bool now_answers) {
    {
      const std::lock_guard lock(mutex);
      answers = now_answers;
    }
    changed.notify_all();
  }
};

class remote_names : public remote_outage {
 protected:
  remote_names() {
    serve();
    where_ = io::parse_address(str_cat("http://store.test:", server_->port(), "/a.bin"));
  }
  [[nodiscard]] std::unique_ptr<io::http_client> client(const remote_options& options = {.allow_http = true}) {
    return std::make_unique<io::http_client>(
        options, io::retry_options{.unknown_patience = std::chrono::milliseconds(300), .names = &names_});
  }

  // The threads that ask it have it too.
  const std::shared_ptr<name_server> asked_ = std::make_shared<name_server>();
  io::name_answers names_{[asked = asked_](const std::string&) { return asked->answer(); }};
};

TEST_F(remote_names, are_looked_up_once_for_all_reads_and_clients) {
  asked_->set(false);
  const auto first = client();
  const auto second = client();
  read(*first, 500, 256);
  while (asked_->asked == 0) std::this_thread::yield();
  asked_->set(true);
  wait();
  read(*second, 100, 50);
  wait();
  EXPECT_EQ(wrong_, 0U) << why_;
  EXPECT_EQ(asked_->asked, 1);
}

TEST_F(remote_names, that_are_unknown_for_a_moment_end_no_run_that_had_the_store_and_soon_one_that_never_had) {
  asked_->unknown_first = 1'000;
  {
    const auto began = steady::now();
    const auto lost = client();
    read(*lost, 200, 200);
    wait();
    EXPECT_EQ(wrong_, 200U);
    EXPECT_THAT(why_, HasSubstr("the name of the server, store.test, is not found: no such name"));
    EXPECT_LE(seconds_since(began), 50 * 0.3) << "and not each for itself";
  }
  wrong_ = 0;
  asked_->unknown_first = asked_->asked + 1;
  const auto patient =
      std::make_unique<io::http_client>(remote_options{.allow_http = true}, io::retry_options{.names = &names_});
  read(*patient, 100, 50);
  wait();
  EXPECT_EQ(wrong_, 0U) << why_;
}

TEST_F(remote_names, of_which_the_first_address_is_silent_lead_to_the_next_one_at_once) {
  const silent_address silent({boost::asio::ip::make_address("127.0.0.2"), server_->port()});
  asked_->addresses = {"127.0.0.2", "127.0.0.1"};
  const auto began = steady::now();
  const auto first = client();
  read(*first, 1, 1);
  wait();
  EXPECT_EQ(wrong_, 0U) << why_;
  const double seconds = seconds_since(began);
  EXPECT_GE(seconds, 0.25);
  EXPECT_LE(seconds, 2 + busy_seconds(*client(), 1, 1));
  // Once is enough.
  EXPECT_EQ(names_.ask("store.test", now_ns()).addresses.front().to_string(), "127.0.0.1");
  EXPECT_EQ(names_.ask("store.test", now_ns()).addresses.back().to_string(), "127.0.0.2");
}

TEST_F(remote_names, of_which_the_first_address_refuses_lead_to_the_next_one) {
  asked_->addresses = {"127.0.0.3", "127.0.0.1"};
  const auto first = client();
  read(*first, 100, 10);
  wait();
  EXPECT_EQ(wrong_, 0U) << why_;
}

// A name server, a connection that does not come about, TLS that does not begin, a body that stalls.
TEST_F(remote_names, and_all_else_that_hangs_holds_the_end_of_a_client_up_for_no_time) {
  const auto end_soon = [&](io::http_client& of, const std::string& where, const std::function<bool()>& is_hanging) {
    const io::address at = io::parse_address(where);
    std::vector<std::byte> into(1'000);
    const auto lost = std::make_shared<io::fetch>();
    lost->where = &at;
    lost->into = into;
    std::promise<void> ended;
    lost->owner = &ended;
    lost->ended = [](io::fetch& done) noexcept { static_cast<std::promise<void>*>(done.owner)->set_value(); };
    of.start({lost});
    while (!is_hanging()) std::this_thread::yield();
    const auto began = steady::now();
    of.cancel(lost);
    ended.get_future().wait();
    EXPECT_EQ(lost->end, io::fetch_end::cancelled);
    return began;
  };
  // With the end of the client, which no try holds up for as long as a time-out.
  const auto expect_soon = [&](const char* what, const std::function<steady::time_point(io::http_client&)>& hang) {
    constexpr double most = 0.2;
    const double least = least_seconds(most, [&] {
      steady::time_point began;
      {
        const auto one = client();
        began = hang(*one);
      }
      const double seconds = seconds_since(began);
      EXPECT_LE(seconds, 5) << what;
      return seconds;
    });
    EXPECT_LE(least, most) << what;
  };
  const auto server = server_->port();
  const silent_address silent({boost::asio::ip::make_address("127.0.0.2"), server});
  boost::asio::io_context context;
  boost::asio::ip::tcp::acceptor mute(context, {boost::asio::ip::make_address("127.0.0.4"), 0});
  std::atomic<bool> is_stalled{false};
  server_->set_rule([&](const served_request&) {
    is_stalled = true;
    return http_fault{.what = wrong::stall, .bytes = 10};
  });
  asked_->set(false);
  expect_soon("a name server", [&](io::http_client& one) {
    return end_soon(one, str_cat("http://store.test:", server, "/a.bin"), [&] { return asked_->asked > 0; });
  });
  expect_soon("a connection", [&](io::http_client& one) {
    return end_soon(one, str_cat("http://127.0.0.2:", server, "/a.bin"), [] { return true; });
  });
  boost::asio::ip::tcp::socket taken(context);
  expect_soon("TLS", [&](io::http_client& one) {
    taken = boost::asio::ip::tcp::socket(context);
    return end_soon(one, str_cat("https://127.0.0.4:", mute.local_endpoint().port(), "/a.bin"), [&] {
      mute.accept(taken);
      return true;
    });
  });
  expect_soon("a body", [&](io::http_client& one) {
    is_stalled = false;
    return end_soon(one, server_->address("a.bin"), [&] { return is_stalled.load(); });
  });
  asked_->set(true);
}

}  // namespace
}  // namespace leat::testing
