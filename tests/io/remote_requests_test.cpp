// What requests say beside the range that they want, and answers that are more than the answer.
#include "base/text.hpp"
#include "io/remote/address.hpp"
#include "io/remote/http_client.hpp"
#include "io/remote/request_headers.hpp"
#include "io/remote/s3.hpp"
#include "tests/support/failures.hpp"
#include "tests/support/fault_server.hpp"

#include <leat/error.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace leat::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using wrong = http_fault::kind;

io::environment environment_of(std::map<std::string, std::string> values) {
  return [values = std::move(values)](const char* name) {
    const auto found = values.find(name);
    return found == values.end() ? std::string() : found->second;
  };
}

class remote_requests : public ::testing::Test {
 protected:
  remote_requests() { server_.put("a.bin", "0123456789"); }

  // "whole 0123456789", or what was said.
  std::string read(const std::string& where, const remote_options& options, const io::s3_access* store = nullptr) {
    io::http_client client(options, {.tries_max = 1}, store);
    const io::address at = io::parse_address(where);
    std::string into(10, 0);
    const auto wanted = std::make_shared<io::fetch>();
    wanted->where = &at;
    wanted->into = std::as_writable_bytes(std::span(into));
    wanted->is_signed = store != nullptr;
    client.fetch_now(wanted);
    return wanted->end == io::fetch_end::whole ? into : wanted->why;
  }

  fault_server server_;
};

TEST_F(remote_requests, have_a_header_that_was_given_and_no_other_server_gets_it) {
  fault_server other;
  other.put("a.bin", "abcdefghij");
  remote_options options{.allow_http = true};
  options.headers = {server_.address("") + " Authorization: Bearer hush"};
  EXPECT_EQ(read(server_.address("a.bin"), options), "0123456789");
  EXPECT_THAT(server_.all_headers(), HasSubstr("\r\nAuthorization: Bearer hush\r\n"));
  EXPECT_EQ(read(other.address("a.bin"), options), "abcdefghij");
  // By a redirect neither.
  server_.set_rule([&](const served_request&) {
    return http_fault{
        .what = wrong::status, .status = 302, .headers = str_cat("Location: ", other.address("a.bin"), "\r\n")};
  });
  EXPECT_EQ(read(server_.address("a.bin"), options), "abcdefghij");
  EXPECT_THAT(other.all_headers(), Not(HasSubstr("hush")));
}

TEST_F(remote_requests, have_no_header_that_is_none) {
  const auto said = [](const std::string& given) {
    return message_of(errc::usage, [&] { static_cast<void>(io::parse_request_headers({given}, false)); });
  };
  EXPECT_THAT(said("Authorization: Bearer hush"),
              AllOf(HasSubstr("with the server that it goes to"), Not(HasSubstr("hush"))));
  EXPECT_THAT(said("https://h Range: hush"), AllOf(HasSubstr("Range is set by leat itself"), Not(HasSubstr("hush"))));
  EXPECT_THAT(said("https://h Host: hush"), HasSubstr("leat itself"));
  EXPECT_THAT(said("https://h X-A: hush\r\nX-B: 1"),
              AllOf(HasSubstr("the value of the header X-A"), Not(HasSubstr("hush"))));
  EXPECT_THAT(said("https://h X A: hush"), AllOf(HasSubstr("no name"), Not(HasSubstr("hush"))));
  EXPECT_THAT(said("https://h X-A:"), HasSubstr("is empty"));
  EXPECT_THAT(said("http://h X-A: hush"), AllOf(HasSubstr("over http://"), Not(HasSubstr("hush"))));
  EXPECT_THAT(said("s3://bucket X-A: hush"), HasSubstr("with the server"));
  const std::vector<io::request_header> two =
      io::parse_request_headers({"https://h:8443 A: b c", "https://i/ D:e"}, false);
  ASSERT_EQ(two.size(), 2U);
  EXPECT_EQ(two[0].server.port, 8443);
  EXPECT_EQ(two[0].line.value, "b c");
  EXPECT_EQ(two[1].line.value, "e");
}

TEST_F(remote_requests, say_that_who_reads_pays_and_sign_it) {
  io::s3_access store;
  store.keys = {"ID", "secret", ""};
  store.region = "us-east-1";
  EXPECT_EQ(read(server_.address("a.bin"), {.allow_http = true, .requester_pays = true}, &store), "0123456789");
  EXPECT_THAT(server_.all_headers(),
              AllOf(HasSubstr("x-amz-request-payer: requester\r\n"), HasSubstr("x-amz-date;x-amz-request-payer")));
  EXPECT_EQ(read(server_.address("a.bin"), {.allow_http = true, .requester_pays = true}), "0123456789");
}

TEST_F(remote_requests, are_answered_by_the_final_answer_and_not_by_those_that_come_before_it) {
  server_.set_rule([](const served_request&) { return http_fault{.what = wrong::early}; });
  EXPECT_EQ(read(server_.address("a.bin"), {.allow_http = true}), "0123456789");
}

TEST_F(remote_requests, that_a_store_does_not_understand_fail_with_its_own_words) {
  server_.set_rule([](const served_request&) {
    return http_fault{.what = wrong::status,
                      .status = 400,
                      .body =
                          "<Error><Code>AuthorizationHeaderMalformed</Code><Message>the region 'us-east-1' is "
                          "wrong</Message><Region>eu-west-1</Region></Error>"};
  });
  EXPECT_THAT(read(server_.address("a.bin"), {.allow_http = true}),
              AllOf(HasSubstr("400 As Told, AuthorizationHeaderMalformed: the region 'us-east-1' is wrong"),
                    HasSubstr("the bucket is in the region eu-west-1; give that as region")));
  // A store may repeat what it was asked, and with it a key.
  server_.set_rule([](const served_request& asked) {
    return http_fault{.what = wrong::status,
                      .status = 400,
                      .body = "<Error><Code>Refused</Code><Message>" + asked.header + "</Message></Error>"};
  });
  EXPECT_THAT(read(server_.address("a.bin?X-Amz-Signature=0123456789abcdef"), {.allow_http = true}),
              AllOf(HasSubstr("400 As Told, Refused"), ::testing::Not(HasSubstr("0123456789abcdef"))));
}

TEST(s3_endpoints, have_buckets_as_hosts_where_they_say_so) {
  const auto found = [](const std::string& endpoint) {
    return io::find_s3_access({.endpoint = endpoint, .anonymous = true}, environment_of({}));
  };
  const io::address there = io::address_of({"train", "a/b c.tar"}, found("https://{bucket}.store.test:9000/x"));
  EXPECT_EQ(there.host, "train.store.test");
  EXPECT_EQ(there.port, 9000);
  EXPECT_EQ(there.target, "/x/a/b%20c.tar");
  EXPECT_EQ(io::address_of({"train", "a"}, found("https://store.test")).target, "/train/a");
  for (const char* const bad : {"https://store.{bucket}.test", "https://{bucket}", "https://{bucket}.{bucket}.test"}) {
    EXPECT_FALSE(message_of(errc::usage, [&] { static_cast<void>(found(bad)); }).empty()) << bad;
  }
}

TEST(s3_certificates, are_those_of_awss_variable_and_of_the_profile) {
  EXPECT_EQ(io::find_s3_access({.anonymous = true}, environment_of({{"AWS_CA_BUNDLE", "/etc/ours.pem"}})).ca_file,
            "/etc/ours.pem");
  EXPECT_EQ(io::find_s3_access({.anonymous = true}, environment_of({})).ca_file, "");
}

}  // namespace
}  // namespace leat::testing
