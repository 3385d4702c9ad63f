#include "base/near_miss.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace leat::io {
namespace {

TEST(near_miss, is_found_where_a_letter_or_two_are_wrong_and_nowhere_else) {
  const std::vector<std::string> known = {"jpg", "cls", "txt", "json", "mix.weight"};
  EXPECT_EQ(nearest_name("jgp", known), "jpg");
  EXPECT_EQ(nearest_name("clss", known), "cls");
  EXPECT_EQ(nearest_name("jsn", known), "json");
  EXPECT_EQ(nearest_name("mix.wieght", known), "mix.weight");
  EXPECT_EQ(nearest_name("picture", known), "");
  EXPECT_EQ(nearest_name("mask", known), "");
  EXPECT_EQ(did_you_mean("jgp", known), "; did you mean 'jpg'?");
  EXPECT_EQ(did_you_mean("embedding", known), "");
  EXPECT_EQ(did_you_mean("x", known), "");
  EXPECT_EQ(did_you_mean("jpg", {}), "");
}

}  // namespace
}  // namespace leat::io
