// Bodies of answers, from a peer that cuts them anywhere, lies about their length, or breaks; without a clock.
#include "io/remote/receive_body.hpp"

#include "base/text.hpp"
#include "io/remote/address.hpp"
#include "tests/io/scripted_peer.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <exception>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace leat::testing {
namespace {

namespace asio = boost::asio;
using ::testing::HasSubstr;

class received_body : public ::testing::Test {
 protected:
  received_body() { connect(); }

  void connect() {
    line_.emplace(context_, io::parse_address(str_cat("http://127.0.0.1:", peer_.port(), "/a")));
    line_->socket.connect({asio::ip::address_v4::loopback(), peer_.port()});
    line_->socket.set_option(asio::ip::tcp::no_delay(true));
    peer_.take();
    wanted_.whole_bytes_max = 1'000;
  }
  template <class Coroutine>
  void start(Coroutine coroutine) {
    is_over_ = false;
    context_.restart();
    asio::co_spawn(context_, std::move(coroutine), [this](const std::exception_ptr& failure) {
      if (failure) std::rethrow_exception(failure);
      is_over_ = true;
    });
    context_.poll();
  }
  void wait() {
    while (!is_over_) context_.run_one();
  }
  void wait_for_bytes(std::size_t bytes) {
    while (wanted_.bytes_received < bytes) context_.run_one();
  }

  // What an answer holds that is taken whole as a text, or as an error's words.
  enum class kind : std::uint8_t { text, words };
  asio::awaitable<void> ask(kind what) {
    const auto [failure, end] = co_await line_->ask("GET /a HTTP/1.1\r\n\r\n", 0);
    if (!end) {
      came_.broken = failure;
      co_return;
    }
    std::string refusal;
    const std::optional<io::http_head> head =
        io::parse_http_head(std::string_view(line_->received).substr(0, *end), refusal);
    EXPECT_TRUE(head) << refusal;
    status_ = head->status;
    came_ = what == kind::text ? co_await io::receive_text(wanted_, *line_, *head)
                               : co_await io::receive_words(wanted_, *line_, *head, *end);
  }
  // Said in these pieces, each after the one before has been received.
  const io::received_text& received(std::vector<std::string_view> pieces, kind what = kind::text) {
    start(ask(what));
    peer_.hear();
    for (const std::string_view each : pieces) {
      peer_.say(each);
      context_.poll();
    }
    return came_;
  }
  const io::received_text& received_until_closed(std::vector<std::string_view> pieces, kind what = kind::text) {
    received(std::move(pieces), what);
    peer_.close();
    wait();
    return came_;
  }

  asio::awaitable<void> take_bytes(std::size_t bytes) { broken_ = co_await io::receive_bytes(wanted_, *line_, bytes); }
  // Of as many bytes as are wanted, into a memory that is longer.
  void start_bytes(std::size_t bytes) {
    memory_.assign(bytes + 8, '.');
    wanted_.into = std::as_writable_bytes(std::span(memory_).first(bytes));
    start(take_bytes(bytes));
  }

  asio::io_context context_;
  scripted_peer peer_{context_};
  std::optional<io::http_connection> line_;
  io::fetch wanted_;
  io::received_text came_;
  unsigned status_ = 0;
  boost::system::error_code broken_;
  std::string memory_;
  bool is_over_ = false;
};

constexpr std::string_view of_a_length = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
constexpr std::string_view of_chunks =
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3;x=y\r\nllo\r\n0\r\nX-Sum: 1\r\n\r\n";

TEST_F(received_body, that_is_a_text_is_the_same_wherever_it_is_cut) {
  for (const std::string_view answer : {of_a_length, of_chunks}) {
    for (std::size_t at = 1; at <= answer.size(); ++at) {
      received({answer.substr(0, at), answer.substr(at)});
      wait();
      EXPECT_EQ(came_.text, "hello") << at;
      EXPECT_TRUE(came_.is_whole && came_.is_reusable && came_.refusal.empty() && !came_.broken) << at;
    }
  }
}

TEST_F(received_body, that_is_a_text_and_ends_early_is_broken_and_not_whole) {
  for (const std::string_view answer : {of_a_length, of_chunks}) {
    for (std::size_t at = 0; at < answer.size(); ++at) {
      received_until_closed({answer.substr(0, at)});
      EXPECT_EQ(came_.broken, asio::error::eof) << at;
      EXPECT_FALSE(came_.is_whole || came_.is_reusable) << at;
      connect();
    }
  }
  received({of_a_length.substr(0, of_a_length.size() - 1)});
  peer_.reset();
  wait();
  EXPECT_EQ(came_.broken, asio::error::connection_reset);
}

TEST_F(received_body, is_that_of_the_answer_and_not_of_those_of_1xx_before) {
  received({"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </x>\r\n", "\r\n", of_a_length});
  wait();
  EXPECT_EQ(status_, 200U);
  EXPECT_EQ(came_.text, "hello");
  EXPECT_TRUE(came_.is_reusable);
}

TEST_F(received_body, whose_server_will_close_or_has_said_more_is_the_connection_s_last) {
  received({"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello"});
  wait();
  EXPECT_TRUE(came_.is_whole);
  EXPECT_FALSE(came_.is_reusable);
  received({str_cat(of_a_length, "more")});
  wait();
  EXPECT_EQ(came_.text, "hello") << "a length that is too short is taken at its word";
  EXPECT_TRUE(came_.is_whole);
  EXPECT_FALSE(came_.is_reusable);
}

TEST_F(received_body, that_is_longer_than_wanted_or_no_text_is_refused_before_it_comes) {
  const std::string chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
  const std::string endless(70'000, '1');
  for (const std::string& answer :
       {std::string("HTTP/1.1 200 OK\r\nContent-Length: 1001\r\n\r\n"),
        std::string("HTTP/1.1 200 OK\r\nContent-Length: 18446744073709551615\r\n\r\n"), chunked + "3e9\r\n",
        chunked + "fffffffffffffff\r\n", chunked + "no\r\n", chunked + "-1\r\n", chunked + "2\r\nhello\r\n",
        chunked + "1;" + endless, chunked + "0\r\nX: " + endless}) {
    received({answer});
    wait();
    EXPECT_THAT(came_.refusal, HasSubstr("its text")) << answer.substr(0, 80);
    EXPECT_FALSE(came_.is_whole || came_.is_reusable);
    connect();
  }
}

TEST_F(received_body, whose_end_nobody_says_ends_with_the_connection_and_is_not_whole) {
  received_until_closed({"HTTP/1.1 200 OK\r\n\r\nhello", " and more"});
  EXPECT_EQ(came_.broken, asio::error::eof);
  EXPECT_FALSE(came_.is_whole);
}

TEST_F(received_body, that_nobody_wants_any_more_ends_at_once) {
  received({of_a_length.substr(0, of_a_length.size() - 1)});
  EXPECT_FALSE(is_over_);
  line_->close();
  wait();
  EXPECT_EQ(came_.broken, asio::error::operation_aborted);
  EXPECT_FALSE(came_.is_whole);
  // Another one had its bytes first.
  connect();
  received({of_a_length.substr(0, of_a_length.size() - 2)});
  wanted_.end = io::fetch_end::whole;
  peer_.say("l");
  wait();
  EXPECT_FALSE(came_.is_whole);
}

TEST_F(received_body, that_is_an_error_s_words_is_read_to_its_end_so_that_the_connection_can_be_used_again) {
  for (const std::string_view answer : {of_a_length, of_chunks}) {
    for (std::size_t at = 1; at <= answer.size(); ++at) {
      received({answer.substr(0, at), answer.substr(at)}, kind::words);
      wait();
      EXPECT_EQ(came_.text, "hello") << at;
      EXPECT_TRUE(came_.is_reusable) << at;
    }
  }
}

TEST_F(received_body, that_is_an_error_s_words_is_what_came_where_they_are_no_text_too_many_or_cut) {
  received({"HTTP/1.1 503 Busy\r\n\r\nwait"}, kind::words);
  wait();
  EXPECT_EQ(came_.text, "wait") << "without a length: some send none, and leave the connection open";
  EXPECT_FALSE(came_.is_reusable);
  for (const std::string_view answer : {"HTTP/1.1 503 Busy\r\nContent-Length: 17000\r\n\r\nwait",
                                        "HTTP/1.1 503 Busy\r\nTransfer-Encoding: chunked\r\n\r\nwait\r\n"}) {
    connect();
    received({answer}, kind::words);
    wait();
    EXPECT_THAT(came_.text, ::testing::StartsWith("wait"));
    EXPECT_FALSE(came_.is_reusable);
  }
  connect();
  received_until_closed({of_a_length.substr(0, of_a_length.size() - 2)}, kind::words);
  EXPECT_EQ(came_.text, "hel");
  EXPECT_FALSE(came_.is_reusable);
}

TEST_F(received_body, of_bytes_goes_where_it_is_wanted_and_never_one_beyond) {
  start_bytes(5);
  peer_.say("hello, and more");
  wait();
  EXPECT_FALSE(broken_);
  EXPECT_EQ(wanted_.bytes_received, 5U);
  EXPECT_EQ(memory_, "hello........");
  EXPECT_EQ(line_->socket.available(), 10U) << "what is beyond stays where it is";
}

TEST_F(received_body, of_bytes_is_counted_as_it_comes_and_its_rest_is_waited_for_at_once) {
  start_bytes(10);
  line_->silent_since_ns = 0;
  peer_.say("abc");
  wait_for_bytes(3);
  EXPECT_GT(line_->silent_since_ns, 0U) << "it is not silent";
  EXPECT_EQ(line_->low_water, 7);
  peer_.say("def");
  context_.poll();
  EXPECT_EQ(wanted_.bytes_received, 3U);
  line_->wake_at(1);  // as for a server that is slow
  wait_for_bytes(6);
  peer_.say("ghij");
  wait();
  EXPECT_FALSE(broken_);
  EXPECT_EQ(memory_, "abcdefghij........");
}

TEST_F(received_body, of_bytes_that_breaks_keeps_what_has_come) {
  const auto begin = [&] {
    connect();
    wanted_.bytes_received = 0;
    start_bytes(10);
    peer_.say("abc");
    wait_for_bytes(3);
  };
  begin();
  peer_.say("d");
  peer_.close();
  wait();
  EXPECT_EQ(broken_, asio::error::eof);
  EXPECT_EQ(wanted_.bytes_received, 4U);
  EXPECT_EQ(memory_.substr(0, 5), "abcd.");
  begin();
  peer_.reset();
  wait();
  EXPECT_EQ(broken_, asio::error::connection_reset);
  EXPECT_EQ(wanted_.bytes_received, 3U);
  begin();
  line_->close();
  wait();
  EXPECT_EQ(broken_, asio::error::operation_aborted);
  EXPECT_EQ(wanted_.bytes_received, 3U);
  EXPECT_EQ(memory_.substr(0, 4), "abc.");
}

}  // namespace
}  // namespace leat::testing
