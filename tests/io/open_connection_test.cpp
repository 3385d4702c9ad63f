// How a connection comes about, and what is said of one that does not: names, addresses, proxies, TLS; each step that hangs is stopped.
#include "io/remote/open_connection.hpp"

#include "base/clock.hpp"
#include "base/sanitizers.hpp"
#include "base/text.hpp"
#include "io/remote/address.hpp"
#include "tests/io/scripted_peer.hpp"
#include "tests/support/descriptors_left.hpp"
#include "tests/support/failures.hpp"
#include "tests/support/fault_server.hpp"
#include "tests/support/silent_address.hpp"
#include "tests/support/temporary_directory.hpp"

#include <leat/error.hpp>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <exception>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace leat::testing {
namespace {

namespace asio = boost::asio;
using io::next_step;
using ::testing::AllOf;
using ::testing::HasSubstr;

/// A name server of the test's: its threads have it too.
struct told_names {
  std::map<std::string, std::vector<std::string>> addresses;
  bool is_unknown = true;  // a name that is not among them
  std::atomic<bool> answers{true};
  std::atomic<int> asked{0};

  io::name_answer answer(const std::string& name) {
    ++asked;
    answers.wait(false);
    const auto found = addresses.find(name);
    if (found == addresses.end())
      return {.what = io::name_answer::kind::failed, .addresses = {}, .why = "no luck", .is_unknown = is_unknown};
    io::name_answer made{.what = io::name_answer::kind::found};
    for (const std::string& each : found->second) made.addresses.push_back(asio::ip::make_address(each));
    return made;
  }
};

class opened_connection : public ::testing::Test {
 protected:
  ~opened_connection() override {
    told_->answers = true;
    told_->answers.notify_all();
  }

  void make_opener(std::map<std::string, std::string> environment = {}, std::string ca_file = {}) {
    const auto value_of = [&](const char* name) { return environment[name]; };
    opener_.emplace(std::move(ca_file), io::proxies(value_of), names_, ways_, counts_);
  }
  void start(const std::string& to, bool may_be_near = true) {
    if (!opener_) make_opener();
    line_.emplace(context_, io::parse_address(to));
    line_->may_be_near = may_be_near;
    next_.reset();
    why_.clear();
    context_.restart();
    asio::co_spawn(context_, opener_->open(context_, *line_, why_),
                   [this](const std::exception_ptr& failure, next_step next) {
                     if (failure) std::rethrow_exception(failure);
                     next_ = next;
                   });
    context_.poll();
  }
  next_step wait() {
    while (!next_) context_.run_one();
    return *next_;
  }
  next_step open(const std::string& to, bool may_be_near = true) {
    start(to, may_be_near);
    return wait();
  }
  /// Where the peer of the test is.
  [[nodiscard]] std::string peer(std::string_view scheme, std::string_view host = "127.0.0.1") const {
    return str_cat(scheme, "://", host, ":", peer_.port(), "/a");
  }
  /// Ends what hangs, and says it.
  next_step stop() {
    EXPECT_FALSE(next_);
    line_->close();
    return wait();
  }

  asio::io_context context_;
  scripted_peer peer_{context_};
  const std::shared_ptr<told_names> told_ = std::make_shared<told_names>();
  io::name_answers names_{[told = told_](const std::string& name) { return told->answer(name); }};
  io::redirects ways_{true};
  io::transfer_counts counts_;
  std::optional<io::connection_opener> opener_;
  std::optional<io::http_connection> line_;
  std::optional<next_step> next_;
  std::string why_;
};

TEST_F(opened_connection, to_a_number_is_open_and_counted_and_known_to_be_near) {
  EXPECT_EQ(open(peer("http")), next_step::over) << why_;
  EXPECT_TRUE(line_->socket.is_open());
  EXPECT_EQ(counts_.connections, 1U);
  EXPECT_EQ(told_->asked, 0);
  const io::address from = io::parse_address("https://elsewhere/a");
  EXPECT_TRUE(ways_.may_be_near({.from = &from, .at = line_->to, .is_remembered = true}));
}

TEST_F(opened_connection, to_a_name_tries_its_addresses_until_one_answers) {
  told_->addresses["store.test"] = {"127.0.0.3", "::1", "127.0.0.1"};
  EXPECT_EQ(open(peer("http", "store.test")), next_step::over) << why_;
  EXPECT_EQ(line_->socket.remote_endpoint().address().to_string(), "127.0.0.1");
  EXPECT_EQ(open(peer("http", "store.test")), next_step::over) << why_;
  EXPECT_EQ(told_->asked, 1) << "the answer is kept";
}

TEST_F(opened_connection, to_a_name_that_is_not_found_is_tried_again_and_says_whether_there_is_none) {
  for (const bool is_unknown : {true, false}) {
    told_->is_unknown = is_unknown;
    EXPECT_EQ(open(peer("http", is_unknown ? "unknown.test" : "busy.test")), next_step::again_later);
    EXPECT_EQ(line_->has_no_such_name, is_unknown);
    EXPECT_THAT(why_, AllOf(HasSubstr("the name of the server, "), HasSubstr(".test, is not found: no luck")));
  }
  EXPECT_EQ(counts_.connections, 0U);
}

TEST_F(opened_connection, that_is_refused_is_tried_again_and_its_name_is_asked_for_anew) {
  told_->addresses["store.test"] = {"127.0.0.3"};
  EXPECT_EQ(open(peer("http", "store.test")), next_step::again_later);
  EXPECT_THAT(why_, HasSubstr(str_cat("Connection refused while connecting to store.test:", peer_.port())));
  EXPECT_EQ(told_->asked, 1);
  static_cast<void>(names_.ask("store.test", now_ns() + io::name_answers::failed_ns));
  while (told_->asked < 2) std::this_thread::yield();
}

TEST_F(opened_connection, that_a_redirect_from_elsewhere_leads_to_this_machine_does_not_come_about) {
  told_->addresses["store.test"] = {"127.0.0.1", "169.254.169.254", "::1"};
  for (const char* const host : {"127.0.0.1", "store.test"}) {
    EXPECT_EQ(open(peer("http", host), false), next_step::give_up);
    EXPECT_THAT(why_, AllOf(HasSubstr("a redirect leads to "), HasSubstr(host), HasSubstr("not followed")));
  }
  EXPECT_FALSE(peer_.has_been_asked());
}

TEST_F(opened_connection, lacks_room_where_the_process_may_open_no_more_descriptors) {
  if (LEAT_ADDRESS_SANITIZER) GTEST_SKIP() << "UndefinedBehaviorSanitizer looks at what is thrown through a pipe";
  make_opener();
  const descriptors_left none(0);
  EXPECT_EQ(open(peer("http")), next_step::lacks_room);
  EXPECT_THAT(why_, AllOf(HasSubstr("Too many open files"), HasSubstr("ulimit -n")));
}

TEST_F(opened_connection, on_which_a_server_was_silent_makes_its_address_the_last_one) {
  told_->addresses["store.test"] = {"127.0.0.1", "127.0.0.3"};
  EXPECT_EQ(open(peer("http", "store.test")), next_step::over);
  opener_->is_silent(*line_);
  EXPECT_EQ(names_.ask("store.test", now_ns()).addresses.front().to_string(), "127.0.0.3");
}

TEST_F(opened_connection, is_stopped_wherever_it_hangs) {
  const auto expect_stopped = [&](const char* when) {
    EXPECT_EQ(stop(), next_step::again_later) << when;
    EXPECT_THAT(why_, HasSubstr(when));
  };
  told_->answers = false;
  start(peer("http", "store.test"));
  expect_stopped("Operation canceled while the server's name was looked up");

  const silent_address silent({asio::ip::make_address("127.0.0.2"), 0});
  start(str_cat("http://127.0.0.2:", silent.where().port(), "/a"));
  expect_stopped("Operation canceled while connecting to 127.0.0.2");

  start(peer("https"));
  peer_.take();
  EXPECT_EQ(peer_.hear_a_byte(), 22) << "TLS' first message";
  context_.poll();
  expect_stopped("Operation canceled while TLS began");

  make_opener({{"https_proxy", peer("http")}});
  start("https://far.test/a");
  peer_.take();
  while (line_->asked_ns == 0) context_.run_one();
  expect_stopped("Operation canceled before the proxy of https_proxy");
}

TEST_F(opened_connection, that_is_given_up_as_late_says_so) {
  start(peer("https"));
  peer_.take();
  line_->close_late();
  EXPECT_EQ(wait(), next_step::again_later);
  EXPECT_THAT(why_, HasSubstr("no answer in time while TLS began"));
}

TEST_F(opened_connection, by_tls_is_open_where_the_certificate_is_trusted_and_names_the_server) {
  const temporary_directory folder;
  const fault_server server(fault_server::transport::tls);
  const std::string authorities = (folder.path() / "ca.pem").string();
  std::ofstream(authorities) << server.certificate();
  told_->addresses = {{"store.test", {"127.0.0.1"}}, {"other.test", {"127.0.0.1"}}};
  const auto at = [&](std::string_view host) { return str_cat("https://", host, ":", server.port(), "/a"); };

  make_opener({}, authorities);
  EXPECT_EQ(open(at("store.test")), next_step::over) << why_;
  EXPECT_EQ(open(at("127.0.0.1")), next_step::over) << why_;
  EXPECT_EQ(open(at("other.test")), next_step::give_up);
  EXPECT_THAT(why_, HasSubstr("the certificate of other.test is not trusted: "));
  make_opener();
  EXPECT_EQ(open(at("store.test")), next_step::give_up);
  EXPECT_THAT(why_, AllOf(HasSubstr("the certificate of store.test is not trusted: "), HasSubstr("ca_file")));

  EXPECT_THAT(message_of(errc::usage, [&] { make_opener({}, (folder.path() / "none").string()); }), HasSubstr("none"));
}

TEST_F(opened_connection, to_a_server_without_tls_is_given_up_and_one_that_breaks_is_tried_again) {
  start(peer("https"));
  peer_.take();
  peer_.say("HTTP/1.1 400 Bad Request\r\n\r\n");
  EXPECT_EQ(wait(), next_step::give_up);
  EXPECT_THAT(why_, AllOf(HasSubstr("answers without TLS"), HasSubstr("allow_http")));
  start(peer("https"));
  peer_.take();
  EXPECT_EQ(peer_.hear_a_byte(), 22);
  peer_.reset();
  EXPECT_EQ(wait(), next_step::again_later);
  EXPECT_THAT(why_, HasSubstr("while TLS began"));
}

TEST_F(opened_connection, by_a_proxy_leads_through_it_for_tls_and_to_it_else) {
  make_opener({{"https_proxy", peer("http")}, {"http_proxy", peer("http")}});
  EXPECT_EQ(open("http://far.test/a"), next_step::over) << why_;
  start("https://far.test:8443/a");
  peer_.take();  // the first one, which was left
  peer_.take();
  while (line_->asked_ns == 0) context_.run_one();
  EXPECT_THAT(peer_.hear(), HasSubstr("CONNECT far.test:8443 HTTP/1.1\r\nHost: far.test:8443\r\n"));
  peer_.say("HTTP/1.1 200 Connection established\r\n\r\n");
  while (!line_->tls) context_.run_one();
  context_.poll();
  EXPECT_EQ(peer_.hear_a_byte(), 22) << "TLS' first message";
  EXPECT_EQ(stop(), next_step::again_later);
  EXPECT_EQ(told_->asked, 0) << "names are the proxy's to find";
}

TEST_F(opened_connection, by_a_proxy_that_does_not_lead_on_says_its_variable_and_never_its_password) {
  make_opener({{"https_proxy", str_cat("http://me:secret@127.0.0.1:", peer_.port())}});
  const auto after = [&](std::string_view answer) {
    start("https://far.test/a");
    peer_.take();
    while (line_->asked_ns == 0) context_.run_one();
    EXPECT_THAT(peer_.hear(), HasSubstr("Proxy-Authorization: Basic "));
    peer_.say(answer);
    peer_.close();
    const next_step next = wait();
    EXPECT_THAT(why_, AllOf(HasSubstr("https_proxy"), ::testing::Not(HasSubstr("secret")))) << answer;
    return next;
  };
  EXPECT_EQ(after("HTTP/1.1 407 Authenticate\r\n\r\n"), next_step::give_up);
  EXPECT_THAT(why_, AllOf(HasSubstr("does not lead to far.test:443: 407 Authenticate"), HasSubstr("user:password")));
  EXPECT_EQ(after("HTTP/1.1 403 Forbidden\r\n\r\n"), next_step::give_up);
  EXPECT_EQ(after("HTTP/1.1 502 Bad Gateway\r\n\r\n"), next_step::again_later);
  EXPECT_EQ(after("HTTP/1.1 200 OK\r\n\r\nand more, before it was asked for"), next_step::give_up);
  EXPECT_EQ(after("HTTP/1.1 20"), next_step::again_later);
  EXPECT_THAT(why_, HasSubstr("the server closed the connection before the proxy of https_proxy"));
}

TEST_F(opened_connection, by_a_proxy_that_is_none_is_given_up_at_once) {
  make_opener({{"https_proxy", "socks5://127.0.0.1:1080"}});
  EXPECT_EQ(open("https://far.test/a"), next_step::give_up);
  EXPECT_THAT(why_, HasSubstr("https_proxy"));
  EXPECT_EQ(open(peer("http")), next_step::over) << "it is not on the way there";
}

}  // namespace
}  // namespace leat::testing
