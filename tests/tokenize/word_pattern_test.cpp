#include "stages/tokenize/word_pattern.hpp"

#include <leat/error.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

namespace leat::stages {
namespace {

std::vector<std::string> matches(const std::string& expression, std::string_view text) {
  const word_pattern pattern(expression);
  word_pattern::matcher matcher(pattern);
  std::vector<std::string> found;
  for (std::size_t at = 0;;) {
    const auto place = matcher.find(text, at);
    if (!place) return found;
    found.emplace_back(text.substr(place->begin, place->end - place->begin));
    at = place->end;
  }
}

TEST(word_pattern, knows_every_space_of_unicode) {
  for (const char* const space : {" ", "\t", "\n", "\v", "\f", "\r", "\u0085", "\u00a0", "\u1680", "\u2000", "\u2028",
                                  "\u2029", "\u202f", "\u205f", "\u3000"}) {
    const std::string text = std::string("a") + space + "b";
    EXPECT_EQ(matches(R"(\s)", text), (std::vector<std::string>{space}));
    EXPECT_EQ(matches(R"([^\sb]+)", text), (std::vector<std::string>{"a"}));
    EXPECT_EQ(matches(R"(\S)", text), (std::vector<std::string>{"a", "b"}));
  }
}

TEST(word_pattern, takes_no_other_letter_for_a_space) {
  EXPECT_TRUE(matches(R"(\s)", "\u180e\u200b\u2060\ufeff\x1c").empty());
  EXPECT_EQ(matches(R"(\S+)", "a\u180eb"), (std::vector<std::string>{"a\u180eb"}));
}

TEST(word_pattern, knows_letters_and_numbers_of_unicode_16) {
  EXPECT_EQ(matches(R"(\p{L}+)", "a\U00010D65b.\U000323AF"), (std::vector<std::string>{"a\U00010D65b", "\U000323AF"}));
  EXPECT_EQ(matches(R"(\p{N})", "a\U000116E3"), (std::vector<std::string>{"\U000116E3"}));
  EXPECT_EQ(matches(R"([^\s\p{L}\p{N}]+)", "\U00010D65!\U000116E3?"), (std::vector<std::string>{"!", "?"}));
  EXPECT_EQ(matches(R"([\p{Lu}\p{M}])", "a\u1C89\u0897b"), (std::vector<std::string>{"\u1C89", "\u0897"}));
  EXPECT_EQ(matches(R"(\p{Ll}\p{Lm}\p{Lo})", "\u1C8A\U00010D4E\U00010D4F"),
            (std::vector<std::string>{"\u1C8A\U00010D4E\U00010D4F"}));
}

TEST(word_pattern, ignores_case_as_unicode_has_it) {
  EXPECT_EQ(matches(R"((?i:'s))", "'s'S'\u017f"), (std::vector<std::string>{"'s", "'S", "'\u017f"}));
}

TEST(word_pattern, finds_no_empty_match) { EXPECT_TRUE(matches("a*", "bbb").empty()); }

TEST(word_pattern, says_which_expression_it_cannot_read) {
  for (const char* const wrong : {"(a", R"([\S])", R"(\p{Nothing})", "[a[b]]", R"(\C)"}) {
    try {
      const word_pattern pattern(wrong);
      FAIL() << wrong;
    } catch (const error& refused) {
      EXPECT_EQ(refused.code(), errc::unsupported);
      EXPECT_THAT(refused.what(), ::testing::HasSubstr(wrong));
    }
  }
}

TEST(word_pattern, stops_where_it_would_go_back_and_forth_for_ever) {
  const word_pattern pattern(R"((a+a+)+\p{N})");
  word_pattern::matcher matcher(pattern);
  try {
    static_cast<void>(matcher.find(std::string(64, 'a'), 0));
    FAIL();
  } catch (const error& stopped) {
    EXPECT_EQ(stopped.code(), errc::limit);
  }
}

}  // namespace
}  // namespace leat::stages
