#include "base/percent.hpp"

#include <gtest/gtest.h>

#include <optional>
#include <string>

namespace leat::testing {
namespace {

TEST(percent, is_written_for_all_but_words_and_marks) {
  EXPECT_EQ(percent_encoded("a/b c\xC3\xBF%", "/"), "a/b%20c%C3%BF%25");
  EXPECT_EQ(percent_encoded("", ""), "");
}

TEST(percent, is_read_in_either_case_and_stays_where_it_is_no_code) {
  EXPECT_EQ(percent_decoded("a%2fb%2F"), "a/b/");
  EXPECT_EQ(percent_decoded("100%"), "100%");
  EXPECT_EQ(percent_decoded("%4"), "%4");
  EXPECT_EQ(percent_decoded("%-1%+1%4g%%41"), "%-1%+1%4g%A");
  EXPECT_EQ(leading_percent_code("%00rest"), std::optional('\0'));
  EXPECT_EQ(leading_percent_code("x%41"), std::nullopt);
}

TEST(percent, comes_out_as_it_went_in) {
  std::string all;
  for (int byte = 0; byte < 256; ++byte) all += static_cast<char>(byte);
  EXPECT_EQ(percent_decoded(percent_encoded(all, "-._~")), all);
}

}  // namespace
}  // namespace leat::testing
