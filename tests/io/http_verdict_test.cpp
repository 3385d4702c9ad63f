// What answers mean, by no connection.
#include "io/remote/http_verdict.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <vector>

namespace leat::testing {
namespace {

using io::fetch_end;
using io::next_step;
using ::testing::HasSubstr;
using ::testing::Not;

class http_verdicts : public ::testing::Test {
 protected:
  http_verdicts() {
    wanted_.where = &where_;
    wanted_.offset = 100;
    wanted_.into = memory_;
  }
  [[nodiscard]] io::http_verdict of_error(unsigned status, const std::string& code = "",
                                          io::http_head more = {}) const {
    more.status = status;
    return io::judge_error(wanted_, more, code, where_, &expected_);
  }
  template <class Member, class Value>
  [[nodiscard]] static io::http_head with(Member io::http_head::* member, Value value) {
    io::http_head made;
    made.*member = Member(value);
    return made;
  }
  [[nodiscard]] io::http_head range(const std::string& text, std::uint64_t bytes) const {
    io::http_head made;
    made.status = 206;
    made.content_range = text;
    made.content_bytes = bytes;
    made.etag = expected_.etag;
    return made;
  }
  [[nodiscard]] io::http_verdict of_body(const io::http_head& head, std::size_t came = 0) const {
    return io::judge_body(wanted_, head, came, &expected_);
  }

  const io::address where_ = io::parse_address("https://host/a.tar");
  const io::object_facts expected_{1'000, "\"tag\"", ""};
  std::vector<std::byte> memory_ = std::vector<std::byte>(50);
  io::fetch wanted_;
};

TEST_F(http_verdicts, of_errors_are_these) {
  struct line {
    unsigned status;
    const char* code;
    next_step next;
    fetch_end end;
    const char* words;
  };
  for (const line& each : {line{401, "", next_step::over, fetch_end::refused, "reading it is not allowed"},
                           {403, "AccessDenied", next_step::over, fetch_end::refused, "403, AccessDenied"},
                           {404, "", next_step::over, fetch_end::missing, "there is no such object"},
                           {410, "", next_step::over, fetch_end::missing, "there is no such object"},
                           {412, "", next_step::over, fetch_end::changed, "412"},
                           {416, "", next_step::over, fetch_end::short_of, "416"},
                           {400, "", next_step::give_up, fetch_end::pending, "400"},
                           {400, "RequestTimeout", next_step::again_later, fetch_end::pending, "RequestTimeout"},
                           {407, "", next_step::give_up, fetch_end::pending, "give the proxy's user"},
                           {408, "", next_step::again_later, fetch_end::pending, "408"},
                           {429, "", next_step::again_later, fetch_end::pending, "429"},
                           {500, "InternalError", next_step::again_later, fetch_end::pending, "InternalError"},
                           {503, "SlowDown", next_step::again_later, fetch_end::pending, "503, SlowDown"}}) {
    const io::http_verdict said = of_error(each.status, each.code);
    EXPECT_EQ(said.next, each.next) << each.status;
    EXPECT_EQ(said.end, each.end) << each.status;
    EXPECT_THAT(said.why, HasSubstr(each.words));
    EXPECT_FALSE(said.is_redirect);
  }
}

TEST_F(http_verdicts, wait_for_as_long_as_a_store_says_and_an_hour_at_the_most) {
  EXPECT_EQ(of_error(503, "", with(&io::http_head::retry_after_s, 7)).wait_at_least_ns, 7'000'000'000U);
  EXPECT_EQ(of_error(503, "", with(&io::http_head::retry_after_s, 1'000'000)).wait_at_least_ns, 3'600'000'000'000U);
  EXPECT_TRUE(of_error(503, "SlowDown").is_refusal);
  EXPECT_TRUE(of_error(400, "SlowDown").is_refusal) << "some stores say it so";
}

TEST_F(http_verdicts, of_a_redirect_name_the_region_where_a_store_says_only_that) {
  EXPECT_TRUE(of_error(302, "", with(&io::http_head::location, "https://other/")).is_redirect);
  wanted_.is_signed = true;
  const io::http_verdict said = of_error(301, "PermanentRedirect", with(&io::http_head::bucket_region, "eu-west-1"));
  EXPECT_EQ(said.end, fetch_end::refused);
  EXPECT_THAT(said.why, HasSubstr("the bucket is in the region eu-west-1; give that as region"));
}

TEST_F(http_verdicts, of_a_range_that_is_not_there_compare_the_size) {
  EXPECT_EQ(of_error(416, "", with(&io::http_head::content_range, "bytes */900")).end, fetch_end::changed);
  EXPECT_EQ(of_error(416, "", with(&io::http_head::content_range, "bytes */1000")).end, fetch_end::refused)
      << "it is longer than that";
  wanted_.offset = 1'000;
  EXPECT_EQ(of_error(416, "", with(&io::http_head::content_range, "bytes */1000")).end, fetch_end::short_of);
}

TEST_F(http_verdicts, of_bytes_take_the_range_that_was_asked_for_alone) {
  EXPECT_EQ(of_body(range("bytes 100-149/1000", 50)).next, next_step::over);
  EXPECT_EQ(of_body(range("bytes 100-149/1000", 50)).seen->size_bytes, 1'000U);
  EXPECT_EQ(of_body(range("bytes 100-149/*", 50)).seen->size_bytes, 1'000U) << "the size that it had holds";
  for (const io::http_head& each :
       {range("bytes 99-148/1000", 50), range("bytes 100-150/1000", 51), range("bytes 100-149/1000", 49),
        range("bytes 100-140/1000", 41), range("", 50), range("bytes */1000", 50)}) {
    const io::http_verdict said = of_body(each);
    EXPECT_EQ(said.next, next_step::give_up) << each.content_range;
    EXPECT_THAT(said.why, HasSubstr("another range"));
  }
  EXPECT_THAT(of_body(range("bytes 100-149/1000", 50), 51).why, HasSubstr("more bytes than it says"));
}

TEST_F(http_verdicts, of_bytes_of_another_object_are_that_it_has_changed) {
  io::http_head other = range("bytes 100-149/1000", 50);
  other.etag = "\"new\"";
  EXPECT_EQ(of_body(other).end, fetch_end::changed);
  EXPECT_EQ(of_body(range("bytes 100-149/1001", 50)).end, fetch_end::changed);
}

TEST_F(http_verdicts, of_bytes_without_a_length_or_with_a_coding_are_refusals) {
  io::http_head head = range("bytes 100-149/1000", 50);
  head.content_encoding = "gzip";
  EXPECT_THAT(of_body(head).why, HasSubstr("compressed"));
  head.content_encoding = "identity";
  head.is_chunked = true;
  EXPECT_THAT(of_body(head).why, HasSubstr("does not say how many bytes"));
}

TEST_F(http_verdicts, of_a_whole_object_ask_again_where_it_once_had_ranges) {
  io::http_head head;
  head.status = 200;
  head.content_bytes = 1'000;
  EXPECT_EQ(of_body(head).next, next_step::again_later);
  EXPECT_EQ(io::judge_body(wanted_, head, 0, nullptr).next, next_step::give_up);
}

TEST(words_of_store, are_left_out_where_they_repeat_what_was_sent) {
  const std::string answer =
      "<Error><Message>no such AKIDEXAMPLE012345 here</Message><Region>us-east-2</Region></Error>";
  EXPECT_THAT(io::words_of_store(answer, "GET / HTTP/1.1"), HasSubstr("no such AKIDEXAMPLE012345 here"));
  EXPECT_THAT(io::words_of_store(answer, "Authorization: AKIDEXAMPLE012345/2026"), Not(HasSubstr("AKID")));
  EXPECT_THAT(io::words_of_store(answer, "x"), HasSubstr("the bucket is in the region us-east-2; give that as region"));
}

}  // namespace
}  // namespace leat::testing
