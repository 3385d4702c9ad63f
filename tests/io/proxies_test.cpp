// Who stands on the way: which servers are asked through a proxy, and that one on the loopback is spoken to as it wants.
#include "io/remote/proxies.hpp"

#include "base/text.hpp"
#include "io/remote/http_client.hpp"
#include "io/remote/name_answers.hpp"
#include "tests/support/fault_server.hpp"
#include "tests/support/seeded_random.hpp"
#include "tests/support/temporary_directory.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
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

namespace asio = boost::asio;
using asio::ip::tcp;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

io::proxies of(std::map<std::string, std::string> set) {
  return io::proxies([set = std::move(set)](const char* variable) {
    const auto found = set.find(variable);
    return found == set.end() ? std::string() : found->second;
  });
}
std::string variable_for(const io::proxies& all, const char* server) {
  const io::proxy* const found = all.on_the_way_to(io::parse_address(server));
  return found == nullptr ? "none" : found->variable;
}

TEST(proxies, are_those_of_the_servers_scheme_and_lower_case_comes_first) {
  const io::proxies all =
      of({{"http_proxy", "a:1"}, {"HTTP_PROXY", "b:1"}, {"HTTPS_PROXY", "c:1"}, {"ALL_PROXY", "d:1"}});
  EXPECT_EQ(variable_for(all, "http://host/"), "http_proxy");
  EXPECT_EQ(variable_for(all, "https://host/"), "HTTPS_PROXY");
  EXPECT_EQ(variable_for(of({{"ALL_PROXY", "d:1"}}), "https://host/"), "ALL_PROXY");
  EXPECT_EQ(variable_for(of({{"https_proxy", "d:1"}}), "http://host/"), "none");
  // What a cloud answers there, and this machine.
  const io::proxies any = of({{"all_proxy", "d:1"}});
  for (const char* const each : {"http://127.0.0.1/", "http://169.254.169.254/", "https://localhost/", "http://[::1]/"})
    EXPECT_EQ(variable_for(any, each), "none") << each;
}

TEST(proxies, have_an_address_a_port_and_a_user) {
  const io::proxies all = of({{"http_proxy", "HTTP://me:p%40ss%3A@proxy.example:3128/"}, {"https_proxy", "other"}});
  const io::proxy& first = *all.on_the_way_to(io::parse_address("http://host/"));
  EXPECT_EQ(first.refusal, "");
  EXPECT_EQ(first.at.host_header(), "proxy.example:3128");
  EXPECT_EQ(first.authorization, "Basic bWU6cEBzczo=");
  EXPECT_EQ(all.on_the_way_to(io::parse_address("https://host/"))->at.host_header(), "other:1080");
  for (const char* const each : {"socks5://me:hush@h:1", "https://h:1", "h:none", "http://"}) {
    const io::proxies bad = of({{"all_proxy", each}});
    const std::string why = bad.on_the_way_to(io::parse_address("http://host/"))->refusal;
    EXPECT_THAT(why, HasSubstr("all_proxy")) << each;
    EXPECT_THAT(why, Not(HasSubstr("hush")));
  }
}

TEST(proxies, are_never_asked_for_what_a_cloud_answers_to_this_machine) {
  const io::proxies all = of({{"http_proxy", "a:1"}, {"https_proxy", "a:1"}});
  for (const char* const server : {"http://127.0.0.1/", "http://localhost/", "http://localhost.:9000/",
                                   "http://169.254.169.254/", "http://[fd00:ec2::254]/", "http://[fd00:ec2::23]/v1"}) {
    EXPECT_EQ(variable_for(all, server), "none") << server;
  }
}

TEST(proxies, that_are_refused_are_not_told_with_a_password) {
  const io::proxies all = of({{"https_proxy", "me:pa://ss@h:3128"}});
  const io::proxy* const found = all.on_the_way_to(io::parse_address("https://host/"));
  ASSERT_NE(found, nullptr);
  EXPECT_THAT(found->refusal, AllOf(Not(HasSubstr("pa:")), Not(HasSubstr("ss@")), Not(HasSubstr("me:"))));
}

TEST(proxies, are_left_out_as_no_proxy_says) {
  const auto is_left_out = [](const char* entries, const char* server) {
    return variable_for(of({{"all_proxy", "p:1"}, {"NO_PROXY", entries}}), server) == "none";
  };
  for (const auto& [entries, server] :
       std::vector<std::pair<const char*, const char*>>{{"*", "https://any/"},
                                                        {"example.com", "https://example.com/"},
                                                        {"example.com", "https://a.b.Example.com/"},
                                                        {".example.com", "https://example.com/"},
                                                        {"a, example.com.", "https://x.example.com/"},
                                                        {"a example.com", "https://example.com/"},
                                                        {"10.0.0.7", "http://10.0.0.7/"},
                                                        {"10.0.0.0/8", "http://10.200.0.7:80/"},
                                                        {"192.168.4.0/22", "http://192.168.7.9/"},
                                                        {"2001:db8::/32", "http://[2001:db8::7]/"},
                                                        {"[2001:db8::7]", "http://[2001:db8::7]/"}}) {
    EXPECT_TRUE(is_left_out(entries, server)) << entries << " " << server;
  }
  for (const auto& [entries, server] :
       std::vector<std::pair<const char*, const char*>>{{"", "https://example.com/"},
                                                        {"example.com", "https://badexample.com/"},
                                                        {"a.example.com", "https://example.com/"},
                                                        {"10.0.0.0/33", "http://10.0.0.7/"},
                                                        {"192.168.4.0/22", "http://192.168.8.9/"},
                                                        {"0.0.7", "http://10.0.0.7/"},
                                                        {".", "https://example.com/"}}) {
    EXPECT_FALSE(is_left_out(entries, server)) << entries << " " << server;
  }
}

/// Leads to a port of this machine, whatever host is asked for.
class small_proxy {
 public:
  small_proxy() {
    asio::co_spawn(context_, accept(), asio::detached);
    thread_ = std::thread([this] { context_.run(); });
  }
  small_proxy(const small_proxy&) = delete;
  small_proxy& operator=(const small_proxy&) = delete;
  ~small_proxy() {
    context_.stop();
    thread_.join();
  }
  [[nodiscard]] std::uint16_t port() const { return listening_.local_endpoint().port(); }
  /// Instead of leading anywhere: "407 Proxy Authentication Required".
  void answer(std::string status) {
    const std::lock_guard lock(mutex_);
    status_ = std::move(status);
  }
  [[nodiscard]] std::string heads() {
    const std::lock_guard lock(mutex_);
    return heads_;
  }

 private:
  static constexpr auto answers = asio::as_tuple(asio::use_awaitable);

  asio::awaitable<void> accept() {
    for (;;) {
      auto [failure, taken] = co_await listening_.async_accept(answers);
      if (failure) co_return;
      asio::co_spawn(context_, lead(std::make_shared<tcp::socket>(std::move(taken))), asio::detached);
    }
  }
  std::string take(const std::string& head) {
    const std::lock_guard lock(mutex_);
    heads_ += head;
    return status_;
  }
  asio::awaitable<void> lead(std::shared_ptr<tcp::socket> client) {
    std::string received;
    const auto [failure, end] =
        co_await asio::async_read_until(*client, asio::dynamic_buffer(received), "\r\n\r\n", answers);
    if (failure) co_return;
    std::string said = take(received.substr(0, end));
    if (!said.empty()) {
      said = str_cat("HTTP/1.1 ", said, "\r\nContent-Length: 0\r\n\r\n");
      co_await asio::async_write(*client, asio::buffer(said), answers);
      co_return;
    }
    const bool is_tunnel = received.starts_with("CONNECT ");
    const std::size_t host = is_tunnel ? 8 : received.find("://") + 3;
    const std::size_t colon = received.find(':', host);
    auto server = std::make_shared<tcp::socket>(context_);
    const auto port = static_cast<std::uint16_t>(std::stoul(received.substr(colon + 1)));
    co_await server->async_connect({asio::ip::address_v4::loopback(), port}, answers);
    if (is_tunnel) {
      said = "HTTP/1.1 200 Connection established\r\n\r\n";
      co_await asio::async_write(*client, asio::buffer(said), answers);
    } else {
      received.erase(4, received.find('/', host) - 4);  // behind "GET ": what is left is the path
      co_await asio::async_write(*server, asio::buffer(received), answers);
    }
    asio::co_spawn(context_, hand_on(server, client), asio::detached);
    if (is_tunnel) asio::co_spawn(context_, hand_on(client, server), asio::detached);
    // Of requests in the clear one for each connection is enough here.
  }
  asio::awaitable<void> hand_on(std::shared_ptr<tcp::socket> from, std::shared_ptr<tcp::socket> to) {
    char some[4096];
    for (;;) {
      const auto [failure, bytes] = co_await from->async_read_some(asio::buffer(some), answers);
      if (failure) break;
      co_await asio::async_write(*to, asio::buffer(some, bytes), answers);
    }
    boost::system::error_code ignored;
    to->close(ignored);
  }

  asio::io_context context_;
  tcp::acceptor listening_{context_, {asio::ip::address_v4::loopback(), 0}};
  std::mutex mutex_;
  std::string heads_;
  std::string status_;
  std::thread thread_;
};

/// What the environment has while it lives.
class variable {
 public:
  variable(const char* name, const std::string& value) : name_(name) { ::setenv(name, value.c_str(), 1); }
  ~variable() { ::unsetenv(name_); }
  variable(const variable&) = delete;
  variable& operator=(const variable&) = delete;

 private:
  const char* name_;
};

class remote_proxy : public ::testing::Test {
 protected:
  remote_proxy() { fill_seeded(7, 0, std::as_writable_bytes(std::span(content_))); }

  /// Of a.bin, whose server's name nobody knows here.
  std::shared_ptr<io::fetch> read(fault_server& server, remote_options options = {}) {
    server.put("a.bin", content_);
    const bool tls = server.address("").starts_with("https");
    where_ = io::parse_address(str_cat(tls ? "https" : "http", "://store.test:", server.port(), "/a.bin"));
    if (tls) {
      options.ca_file = (folder_.path() / "ca.pem").string();
      std::ofstream(options.ca_file) << server.certificate();
    }
    options.allow_http = true;
    io::http_client client(options, {.names = &names_});
    auto wanted = std::make_shared<io::fetch>();
    into_.assign(500, std::byte{});
    wanted->where = &where_;
    wanted->offset = 100;
    wanted->into = into_;
    client.fetch_now(wanted);
    return wanted;
  }
  [[nodiscard]] std::string address(const char* user = "") const {
    return str_cat("http://", user, "127.0.0.1:", proxy_.port());
  }
  [[nodiscard]] bool is_right() const { return std::memcmp(into_.data(), content_.data() + 100, into_.size()) == 0; }

  const temporary_directory folder_;
  std::string content_ = std::string(2'000, 0);
  io::address where_;
  std::vector<std::byte> into_;
  small_proxy proxy_;
  std::shared_ptr<std::atomic<int>> asked_ = std::make_shared<std::atomic<int>>(0);
  io::name_answers names_{[asked = asked_](const std::string&) {
    ++*asked;
    return io::name_answer{.what = io::name_answer::kind::failed, .addresses = {}, .why = "no such name"};
  }};
};

TEST_F(remote_proxy, is_asked_for_the_whole_address_where_there_is_no_tls) {
  fault_server server;
  const variable set("http_proxy", address("me:secret@"));
  EXPECT_EQ(read(server)->end, io::fetch_end::whole);
  EXPECT_TRUE(is_right());
  EXPECT_THAT(proxy_.heads(), HasSubstr(str_cat("GET http://store.test:", server.port(), "/a.bin HTTP/1.1\r\n")));
  EXPECT_THAT(proxy_.heads(), HasSubstr("Proxy-Authorization: Basic bWU6c2VjcmV0\r\n"));
  EXPECT_EQ(*asked_, 0) << "names are the proxy's to find";
}

TEST_F(remote_proxy, leads_to_a_server_that_is_spoken_to_by_tls) {
  fault_server server(fault_server::transport::tls);
  const variable set("HTTPS_PROXY", address("me:secret@"));
  const auto done = read(server);
  EXPECT_EQ(done->end, io::fetch_end::whole) << done->why;
  EXPECT_TRUE(is_right());
  EXPECT_THAT(proxy_.heads(), HasSubstr(str_cat("CONNECT store.test:", server.port(), " HTTP/1.1\r\n")));
  EXPECT_THAT(proxy_.heads(), HasSubstr("Proxy-Authorization: Basic bWU6c2VjcmV0\r\n"));
  EXPECT_THAT(server.all_headers(), Not(HasSubstr("Proxy-"))) << "it is not the server's business";
}

TEST_F(remote_proxy, that_refuses_is_told_by_its_variable_and_never_with_the_password) {
  fault_server server(fault_server::transport::tls);
  const variable set("https_proxy", address("me:secret@"));
  for (const char* const status : {"403 Forbidden", "407 Proxy Authentication Required"}) {
    proxy_.answer(status);
    const auto done = read(server);
    EXPECT_EQ(done->end, io::fetch_end::failed);
    EXPECT_THAT(done->why, ::testing::AllOf(HasSubstr("https_proxy"), HasSubstr(status), Not(HasSubstr("secret"))));
  }
  EXPECT_EQ(server.requests(), 0U);
}

TEST_F(remote_proxy, that_is_away_is_told_by_its_variable_after_patience) {
  fault_server server;
  std::uint16_t free_port = 0;
  {
    const small_proxy gone;
    free_port = gone.port();
  }
  const variable set("http_proxy", str_cat("127.0.0.1:", free_port));
  const auto done = read(server, {.patience = std::chrono::milliseconds(200)});
  EXPECT_EQ(done->end, io::fetch_end::failed);
  EXPECT_THAT(done->why, ::testing::AllOf(HasSubstr("the proxy of http_proxy"), HasSubstr("patience is at its end")));
}

TEST_F(remote_proxy, of_another_kind_is_refused_at_once) {
  fault_server server;
  const variable set("ALL_PROXY", "socks5://127.0.0.1:1");
  EXPECT_THAT(read(server)->why, HasSubstr("ALL_PROXY names a proxy of socks5://"));
  // Where it is not on the way.
  const variable other("no_proxy", "store.test");
  EXPECT_THAT(read(server, {.patience = std::chrono::milliseconds(100)})->why, HasSubstr("no such name"));
}

}  // namespace
}  // namespace leat::testing
