// When requests are asked anew and for how long, by no clock.
#include "io/remote/retry_rules.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace leat::testing {
namespace {

using namespace std::chrono_literals;
using io::as_ns;
using io::told_by_try;

std::chrono::nanoseconds longest_pause(io::retry_rules& rules, std::uint32_t tries, bool was_refused) {
  std::chrono::nanoseconds most{0};
  for (int i = 0; i < 1'000; ++i) most = std::max(most, rules.pause(tries, was_refused, 0));
  return most;
}

TEST(retry_rules, wait_twice_as_long_each_time_at_random) {
  io::retry_rules rules({}, 2min, 1);
  for (const auto& [tries, most] : {std::pair{1U, 5'000'000ns},
                                    {2U, 10'000'000ns},
                                    {3U, 20'000'000ns},
                                    {20U, 1'000'000'000ns},
                                    {4'000'000'000U, 1'000'000'000ns}}) {
    const std::chrono::nanoseconds seen = longest_pause(rules, tries, false);
    EXPECT_LE(seen, most) << tries;
    EXPECT_GT(seen, most / 2) << tries;
  }
  EXPECT_LE(longest_pause(rules, 20, true), 250ms) << "a store that refuses is asked by its rate";
}

TEST(retry_rules, wait_as_long_as_the_store_says_and_20_s_at_the_most) {
  io::retry_rules rules({}, 2min, 1);
  EXPECT_EQ(rules.pause(1, true, as_ns(3s)), 3s);
  EXPECT_EQ(rules.pause(1, true, as_ns(1h)), 20s);
}

TEST(retry_rules, have_less_patience_with_a_server_that_never_answered_and_least_with_a_name_that_is_not_known) {
  const io::retry_rules rules({}, 2min, 1);
  EXPECT_EQ(rules.patience_ns(true, false), as_ns(2min));
  EXPECT_EQ(rules.patience_ns(true, true), as_ns(2min)) << "it has answered under this name";
  EXPECT_EQ(rules.patience_ns(false, false), as_ns(20s));
  EXPECT_EQ(rules.patience_ns(false, true), as_ns(5s));
  EXPECT_EQ(io::retry_rules({}, 1s, 1).patience_ns(false, false), as_ns(1s)) << "never more than all of it";
}

TEST(retry_rules, give_each_request_its_patience_also_where_the_store_was_silent_before) {
  const io::retry_rules rules({}, 2min, 1);
  const io::shared_store::view silent{.silent_ns = as_ns(10min), .has_answered = true};
  EXPECT_FALSE(rules.is_patience_over(as_ns(119s), silent, false));
  EXPECT_TRUE(rules.is_patience_over(as_ns(2min), silent, false));
  EXPECT_FALSE(rules.is_patience_over(as_ns(1h), {.silent_ns = as_ns(1s), .has_answered = true}, false));
}

TEST(retry_rules, read_from_a_status_what_the_store_is_like) {
  for (const unsigned each : {200U, 206U, 404U, 403U, 416U, 400U})
    EXPECT_EQ(io::told_by_status(each), told_by_try::answers) << each;
  for (const unsigned each : {503U, 429U}) EXPECT_EQ(io::told_by_status(each), told_by_try::refuses) << each;
  for (const unsigned each : {500U, 502U, 504U, 408U}) EXPECT_EQ(io::told_by_status(each), told_by_try::fails) << each;
}

}  // namespace
}  // namespace leat::testing
