#include "base/parse_json.hpp"

#include "tests/support/failures.hpp"

#include <leat/error.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <string>

namespace leat {
namespace {

using ::testing::HasSubstr;
using testing::message_of;
using ::testing::StartsWith;

std::string nested(std::size_t depth, const std::string& opens = "[", const std::string& closes = "]") {
  std::string text;
  for (std::size_t i = 0; i < depth; ++i) text += opens;
  for (std::size_t i = 0; i < depth; ++i) text += closes;
  return text;
}

std::string refusal_of(const std::string& text) {
  EXPECT_TRUE(parse_json_or_discard(text).is_discarded());
  return message_of(errc::format, [&] { static_cast<void>(parse_json(text)); });
}

TEST(parse_json, gives_the_value_or_the_place_of_a_mistake) {
  EXPECT_EQ(parse_json(R"({"a": [1, 2]})").at("a").at(1), 2);
  EXPECT_EQ(parse_json<nlohmann::ordered_json>(R"({"b": 1, "a": 2})").begin().key(), "b");
  EXPECT_THAT(refusal_of("{\n  \"a\": [1, }"), StartsWith("line 2, column 12: unexpected '}'"));
  EXPECT_THAT(refusal_of("{\"id\": "), StartsWith("line 1, column 8: unexpected end of input"));
  EXPECT_THAT(refusal_of("1e999"), HasSubstr("number overflow parsing '1e999'"));
}

TEST(parse_json, has_a_bound_on_how_deep_a_text_is_nested) {
  EXPECT_TRUE(parse_json(nested(json_depth_max)).is_array());
  EXPECT_THAT(refusal_of("\n" + nested(json_depth_max + 1)),
              StartsWith("line 2, column 65: lists and objects within one another, more than 64 deep"));
  EXPECT_THAT(refusal_of(nested(65, "{\"a\":", "}")), HasSubstr("deep"));
  EXPECT_THAT(refusal_of(nested(500'000)), HasSubstr("deep"));
  EXPECT_THAT(refusal_of(std::string(500'000, '[')), HasSubstr("deep"));
  // Brackets in a text are none, and side by side they are not deep.
  EXPECT_EQ(parse_json("[\"" + std::string(1000, '[') + "\\\"[[\\\\\"]").at(0).get<std::string>().size(), 1004U);
  std::string wide = "[[]";
  for (int i = 0; i < 1000; ++i) wide += ",[{}]";
  EXPECT_EQ(parse_json(wide + "]").size(), 1001U);
}

}  // namespace
}  // namespace leat
