#include "base/words.hpp"

#include "base/base64.hpp"
#include "base/numbers.hpp"
#include "base/text.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>

namespace leat {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

TEST(words, are_what_stands_between_separators) {
  EXPECT_THAT(words_of(" 1,2;;[3] ", " ,;[]"), ::testing::ElementsAre("1", "2", "3"));
  EXPECT_THAT(words_of("", ","), ::testing::ElementsAre());
  EXPECT_THAT(words_of(",,", ","), ::testing::ElementsAre());
  EXPECT_EQ(trimmed(" \t a b\r\n"), "a b");
  EXPECT_EQ(trimmed(" \n"), "");
}

TEST(words, are_the_same_in_any_case_of_ascii_alone) {
  EXPECT_TRUE(is_same_in_any_case("HTTP://", "http://"));
  EXPECT_FALSE(is_same_in_any_case("http:/", "http://"));
  EXPECT_EQ(lower_case("ÄBC-Z"), "Äbc-z");
}

TEST(numbers, are_whole_ones_that_fit) {
  EXPECT_EQ(parse_signed(" -9223372036854775808\n"), std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(parse_signed("+7"), 7);
  EXPECT_EQ(parse_unsigned("18446744073709551615"), std::numeric_limits<std::uint64_t>::max());
  for (const char* const wrong : {"", " ", "-", "+", "+-1", "1 2", "1.0", "0x10", "9223372036854775808"})
    EXPECT_FALSE(parse_signed(wrong)) << "'" << wrong << "'";
  EXPECT_FALSE(parse_unsigned("-1"));
}

TEST(numbers, with_fractions_are_read_whatever_their_size) {
  EXPECT_EQ(parse_real(" 2.5e-1 "), 0.25);
  EXPECT_EQ(parse_real("+1"), 1.0);
  EXPECT_TRUE(std::signbit(parse_real("-0").value()));
  EXPECT_EQ(parse_real("Infinity"), infinity);
  EXPECT_TRUE(std::isnan(parse_real("nan").value()));
  EXPECT_EQ(parse_real("1e400"), infinity);
  EXPECT_EQ(parse_real("-1e400"), -infinity);
  EXPECT_EQ(parse_real("1e99999999999999999999"), infinity);
  EXPECT_EQ(parse_real(std::string(400, '9')), infinity);
  EXPECT_EQ(parse_real("1e-400"), 0.0);
  EXPECT_TRUE(std::signbit(parse_real("-1e-400").value()));
  EXPECT_EQ(parse_real("0." + std::string(400, '0') + "1"), 0.0);
  EXPECT_EQ(parse_real("0." + std::string(400, '0') + "1e500"), 1e99);
  for (const char* const wrong : {"", "+-1", "1 2", "0x10", "1e", "one", "1,5"})
    EXPECT_FALSE(parse_real(wrong)) << "'" << wrong << "'";
}

TEST(base64, of_every_length_is_read_as_it_was_written) {
  const char* const written[] = {"", "AA==", "AAE=", "AAEC", "AAECAw==", "AAECAwQ="};
  std::string bytes;
  for (const char* const each : written) {
    EXPECT_EQ(to_base64(bytes), each);
    EXPECT_EQ(from_base64(each), bytes);
    bytes += static_cast<char>(bytes.size());
  }
  EXPECT_EQ(to_base64("\xFF\xEF\xBE"), "/+++");
}

TEST(base64, may_have_line_ends_and_no_padding_and_nothing_else) {
  EXPECT_EQ(from_base64("AA\nEC\r\n"), std::string("\0\1\2", 3));
  EXPECT_EQ(from_base64("AAE"), std::string("\0\1", 2));
  for (const char* const wrong : {"A", "A===", "AA=", "AA=A", "AA==AA==", "A-EC", "AAEC=", "AA!C"})
    EXPECT_FALSE(from_base64(wrong)) << wrong;
}

TEST(text, is_put_together_of_texts_and_numbers) {
  const std::string name = "x";
  EXPECT_EQ(str_cat(name, std::string_view("="), -1, ' ' == 32, "; ", std::uint64_t{18446744073709551615U}),
            "x=-11; 18446744073709551615");
  EXPECT_EQ(str_cat(0.1, " ", 1e6, " ", 1234567.0, " ", 1e-7, " ", -infinity, " ", std::nan("")),
            "0.1 1e+06 1.23457e+06 1e-07 -inf nan");
  const char* const nothing = nullptr;
  EXPECT_EQ(str_cat(nothing), "");
  EXPECT_EQ(joined(std::initializer_list<int>{1, 2, 3}, ", "), "1, 2, 3");
  EXPECT_EQ(with_decimals(12.25, 1), "12.2");  // half to even, as printf
  EXPECT_EQ(with_digits(1234567890123.0, 12), "1.23456789012e+12");
  EXPECT_EQ(to_left("ab", 4) + to_right("ab", 4) + to_right("abcde", 4), "ab    ababcde");
}

}  // namespace
}  // namespace leat
