// Where redirects lead, by no connection.
#include "io/remote/redirects.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace leat::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

class remote_redirects : public ::testing::Test {
 protected:
  const io::address from_ = io::parse_address("https://host/a.tar");
  io::redirects ways_{true};
  io::route way_{.from = &from_, .at = from_};
};

TEST_F(remote_redirects, are_followed_and_remembered_until_they_fail) {
  EXPECT_THAT(ways_.follow(way_, "https://other/b.tar", "302"), IsEmpty());
  EXPECT_EQ(way_.at.host, "other");
  EXPECT_FALSE(way_.is_direct());
  ways_.remember(way_);

  io::route next{.from = &from_, .at = from_};
  ways_.set_out(next);
  EXPECT_EQ(next.at.host, "other");
  EXPECT_TRUE(next.is_remembered);

  EXPECT_TRUE(ways_.begins_anew(next));
  EXPECT_EQ(next.at.host, "host");
  EXPECT_TRUE(next.is_direct());
  ways_.set_out(next);
  EXPECT_EQ(next.at.host, "host") << "what failed is forgotten";
}

TEST_F(remote_redirects, are_begun_anew_once) {
  EXPECT_FALSE(ways_.begins_anew(way_)) << "there is nothing to begin anew";
  EXPECT_THAT(ways_.follow(way_, "https://other/b.tar", "302"), IsEmpty());
  EXPECT_TRUE(ways_.begins_anew(way_));
  EXPECT_THAT(ways_.follow(way_, "https://other/b.tar", "302"), IsEmpty());
  EXPECT_FALSE(ways_.begins_anew(way_));
}

TEST_F(remote_redirects, are_followed_five_times) {
  for (int i = 0; i < 5; ++i) EXPECT_THAT(ways_.follow(way_, "/next", "302"), IsEmpty()) << i;
  EXPECT_EQ(ways_.follow(way_, "/next", "302"), "more than 5 redirects");
}

TEST_F(remote_redirects, never_leave_tls_nor_lead_from_elsewhere_to_this_machine) {
  EXPECT_THAT(ways_.follow(way_, "http://other/b", "302 Found"),
              HasSubstr("302 Found, to an address that is not followed"));
  EXPECT_THAT(ways_.follow(way_, "nonsense://", "302"), HasSubstr("not followed"));
  EXPECT_THAT(ways_.follow(way_, "https://169.254.169.254/keys", "302"),
              HasSubstr("a redirect leads to 169.254.169.254"));
  EXPECT_EQ(way_.at.host, "host");

  ways_.is_near_server(io::parse_address("https://inner/"));
  EXPECT_THAT(ways_.follow(way_, "https://inner/keys", "302"), HasSubstr("not followed from elsewhere"));
  EXPECT_TRUE(ways_.may_be_near(way_)) << "what the user has named may be anywhere";
  EXPECT_THAT(ways_.follow(way_, "https://other/b", "302"), IsEmpty());
  EXPECT_FALSE(ways_.may_be_near(way_)) << "a name that somebody else has said may not";
}

TEST_F(remote_redirects, of_a_server_that_is_near_may_lead_to_another_one) {
  ways_.is_near_server(from_);
  EXPECT_THAT(ways_.follow(way_, "https://127.0.0.1/b", "302"), IsEmpty());
  EXPECT_TRUE(ways_.may_be_near(way_));
}

TEST(remote_redirect, to_http_is_not_followed_where_that_is_not_allowed) {
  const io::address from = io::parse_address("http://host/a");
  io::route way{.from = &from, .at = from};
  EXPECT_THAT(io::redirects(false).follow(way, "/b", "302"), HasSubstr("not followed"));
  EXPECT_THAT(io::redirects(true).follow(way, "/b", "302"), IsEmpty());
}

}  // namespace
}  // namespace leat::testing
