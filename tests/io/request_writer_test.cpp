// The text of requests, by a clock of the test's own.
#include "io/remote/request_writer.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace leat::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class written_requests : public ::testing::Test {
 protected:
  written_requests() {
    wanted_.where = &where_;
    wanted_.offset = 100;
    wanted_.into = memory_;
    store_.keys.id = "AKID";
    store_.keys.secret = "secret";
    store_.region = "us-east-1";
  }
  [[nodiscard]] io::request_writer writer(const remote_options& options = {}) {
    return {options, &store_, [this] { return now_s_; }};
  }
  [[nodiscard]] std::string written(io::request_writer& by, const io::object_facts* expected = nullptr) {
    return by.write(wanted_, way_, no_proxies_, expected, signature_);
  }

  const io::address where_ = io::parse_address("https://bucket.host/a.tar");
  const io::proxies no_proxies_{[](const char*) { return std::string(); }};
  io::s3_access store_;
  std::vector<std::byte> memory_ = std::vector<std::byte>(50);
  io::fetch wanted_;
  io::route way_{.from = &where_, .at = where_};
  io::request_signature signature_;
  std::int64_t now_s_ = 1'793'000'000;
};

TEST_F(written_requests, ask_for_what_is_missing_and_for_the_object_that_is_expected) {
  io::request_writer by = writer();
  const io::object_facts expected{1'000, "\"tag\"", ""};
  EXPECT_THAT(written(by, &expected),
              AllOf(StartsWith("GET /a.tar HTTP/1.1\r\nHost: bucket.host\r\n"), HasSubstr("Range: bytes=100-149\r\n"),
                    HasSubstr("If-Match: \"tag\"\r\n"), Not(HasSubstr("authorization"))));
  wanted_.bytes_received = 20;
  const io::object_facts weak{1'000, "W/\"tag\"", ""};
  EXPECT_THAT(written(by, &weak), AllOf(HasSubstr("Range: bytes=120-149\r\n"), Not(HasSubstr("If-Match"))));
}

TEST_F(written_requests, ask_for_a_whole_object_of_a_store_with_its_checksum) {
  io::request_writer by = writer();
  wanted_.is_signed = true;
  wanted_.offset = 0;
  const io::object_facts expected{50, "\"tag\"", ""};
  EXPECT_THAT(written(by, &expected), AllOf(HasSubstr("x-amz-checksum-mode: ENABLED"), Not(HasSubstr("Range:"))));
}

TEST_F(written_requests, are_signed_only_where_they_were_meant_to_go) {
  io::request_writer by = writer({.requester_pays = true, .headers = {"https://bucket.host X-Own: word"}});
  wanted_.is_signed = true;
  EXPECT_THAT(written(by), AllOf(HasSubstr("authorization: AWS4-HMAC-SHA256 Credential=AKID/"),
                                 HasSubstr("X-Own: word"), HasSubstr("x-amz-request-payer: requester")));
  EXPECT_TRUE(signature_.skew_s);
  way_.at = io::parse_address("https://other/b");
  way_.redirects = 1;
  EXPECT_THAT(written(by), AllOf(Not(HasSubstr("AKID")), Not(HasSubstr("X-Own")), Not(HasSubstr("request-payer"))));
  EXPECT_FALSE(signature_.skew_s);
}

TEST_F(written_requests, take_the_store_s_clock_once_each) {
  io::request_writer by = writer();
  wanted_.is_signed = true;
  static_cast<void>(written(by));
  EXPECT_FALSE(by.correct_clock(signature_, std::nullopt)) << "it tells no time";
  EXPECT_FALSE(by.correct_clock(signature_, now_s_ + 59)) << "that is not why it refuses";
  EXPECT_TRUE(by.correct_clock(signature_, now_s_ + 86'400));
  EXPECT_FALSE(by.correct_clock(signature_, now_s_ + 172'800)) << "once";

  io::request_signature other;
  other.skew_s = 0;
  EXPECT_TRUE(by.correct_clock(other, std::nullopt)) << "it was on its way with the old clock";
  static_cast<void>(written(by));
  EXPECT_EQ(signature_.skew_s, 86'400);
}

}  // namespace
}  // namespace leat::testing
