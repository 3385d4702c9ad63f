#include <leat/description.hpp>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <cmath>
#include <limits>
#include <string>

namespace leat {
namespace {

std::string value_of(const description& from, std::string_view key) {
  for (const description::entry& each : from.entries()) {
    if (each.key == key) return each.value;
  }
  return "(none)";
}

TEST(description, keeps_keys_and_values_in_order_as_text) {
  description out;
  out.add("text", "a tar");
  out.add("flag", true);
  out.add("small", std::uint8_t{7});
  out.add("largest", std::numeric_limits<std::uint64_t>::max());
  out.add("least", std::numeric_limits<std::int64_t>::min());
  out.add("double", 0.1);
  EXPECT_EQ(out.to_json(), R"({"text":"a tar","flag":"true","small":"7","largest":"18446744073709551615",)"
                           R"("least":"-9223372036854775808","double":"0.1"})");
}

TEST(description, has_another_digest_for_other_keys_values_and_orders) {
  const auto of = [](auto... entries) {
    description out;
    (out.add(entries.first, std::string_view(entries.second)), ...);
    return out.digest();
  };
  using pair = std::pair<const char*, const char*>;
  const digest first = of(pair{"a", "1"}, pair{"b", "2"});
  EXPECT_EQ(first, of(pair{"a", "1"}, pair{"b", "2"}));
  EXPECT_NE(first, of(pair{"b", "2"}, pair{"a", "1"}));
  EXPECT_NE(first, of(pair{"a", "12"}, pair{"b", ""}));
  EXPECT_NE(first, of(pair{"a", "1"}));
  EXPECT_NE(of(), of(pair{"", ""}));
}

TEST(description, tells_doubles_apart_that_differ_in_the_last_bit) {
  description one;
  description other;
  one.add("scale", 0.1);
  other.add("scale", std::nextafter(0.1, 1.0));
  EXPECT_NE(one.digest(), other.digest());
}

TEST(description, numbers_a_key_that_comes_again) {
  description out;
  out.add("scale", 1);
  out.add("scale", 2);
  out.add("scale", 3);
  EXPECT_EQ(value_of(out, "scale"), "1");
  EXPECT_EQ(value_of(out, "scale.2"), "2");
  EXPECT_EQ(value_of(out, "scale.3"), "3");
}

TEST(description, keeps_a_long_value_as_its_digest) {
  description one;
  description other;
  one.add("names", std::string(1000, 'a'));
  other.add("names", std::string(999, 'a') + "b");
  EXPECT_LE(value_of(one, "names").size(), description::value_bytes_max);
  EXPECT_TRUE(value_of(one, "names").ends_with(" of 1000 bytes")) << value_of(one, "names");
  EXPECT_NE(one.digest(), other.digest());
}

TEST(description, is_JSON_whatever_bytes_it_is_given) {
  description out;
  out.add("caf\xe9", "na\xefve \"quoted\"\n\\");
  out.add("UTF-8 stays", "Grüße");
  const nlohmann::ordered_json read = nlohmann::ordered_json::parse(out.to_json());
  EXPECT_EQ(read.at("caf\\xe9"), "na\\xefve \"quoted\"\n\\");
  EXPECT_EQ(read.at("UTF-8 stays"), "Grüße");
}

TEST(description, of_a_part_has_its_keys_below_a_name) {
  description inner;
  inner.add("format", "tar");
  inner.add_unnamed("function", "name it");
  description out;
  out.add("part 0", inner);
  EXPECT_EQ(value_of(out, "part 0.format"), "tar");
  ASSERT_EQ(out.unnamed().size(), 1U);
  EXPECT_EQ(out.unnamed()[0].key, "part 0.function");
  EXPECT_EQ(out.unnamed()[0].remedy, "name it");
}

}  // namespace
}  // namespace leat
