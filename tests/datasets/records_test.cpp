// Fixed-size records, and the JSON that describes them.
#include "datasets/model/model.hpp"
#include "tests/support/failures.hpp"
#include "tests/support/raw_files.hpp"
#include "tests/support/temporary_directory.hpp"

#include <leat/error.hpp>
#include <leat/open.hpp>
#include <leat/open_records.hpp>
#include <leat/open_tokens.hpp>
#include <leat/samples.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

namespace leat {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::little;
using testing::message_of;
using testing::temporary_directory;
using testing::write_file;

constexpr const char* xy =
    R"({"fields": [{"name": "x", "dtype": "u16", "shape": [2, 2]}, {"name": "y", "dtype": "i64"}]})";

// 16 bytes each: four numbers and a label.
std::string records(int count) {
  std::string bytes;
  for (int k = 0; k < count; ++k) {
    for (int i = 0; i < 4; ++i) bytes += little(static_cast<std::uint16_t>(10 * k + i));
    bytes += little(static_cast<std::int64_t>(-k));
  }
  return bytes;
}

TEST(record_files, are_read_as_the_json_beside_them_says) {
  const temporary_directory root;
  write_file(root.path() / "r.json", xy);
  const dataset found = open_records(write_file(root.path() / "r.bin", records(5)));
  ASSERT_EQ(found.size(), 5U);
  ASSERT_EQ(found.fields().size(), 2U);
  EXPECT_EQ(found.fields()[0].shape, (dimensions{2, 2}));
  EXPECT_EQ(found.fields()[0].type, dtype::u16);
  EXPECT_TRUE(found.fields()[1].shape.empty());
  const std::vector<std::byte> x = found.read(3, "x");
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(x.data()), x.size()), records(5).substr(3 * 16, 8));
  const std::vector<std::byte> y = found.read(4, "y");
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(y.data()), y.size()), little(std::int64_t{-4}));
  EXPECT_EQ(found.name(3), (root.path() / "r.bin").string() + "[3]");
}

TEST(record_files, parts_come_in_the_order_of_the_file_whatever_is_asked_first) {
  const temporary_directory root;
  write_file(root.path() / "r.json", xy);
  const dataset found = open_records(write_file(root.path() / "r.bin", records(2)));
  datasets::part_list parts;
  const datasets::need wanted[] = {{.field = 1}, {.field = 0}};
  found.model()->parts(1, wanted, parts);
  ASSERT_EQ(parts.size(), 2U);
  EXPECT_EQ(parts[0].where, (extent{0, 0, 16, 8, 8}));
  EXPECT_EQ(parts[1].where, (extent{0, 0, 24, 8, 8}));
}

TEST(record_files, a_header_is_stepped_over_and_a_count_leaves_the_rest) {
  const temporary_directory root;
  std::string json = xy;
  json.insert(json.size() - 1, R"(, "header_bytes": 7, "records": 3)");
  write_file(root.path() / "r.json", json);
  const dataset found = open_records(write_file(root.path() / "r.bin", "header." + records(4)));
  ASSERT_EQ(found.size(), 3U);
  EXPECT_EQ(found.read(2, "x").at(0), std::byte{20});
  ASSERT_EQ(found.notes().size(), 1U);
  EXPECT_THAT(found.notes()[0], HasSubstr("16 bytes after the last record"));
}

TEST(record_files, several_follow_one_another_if_their_fields_are_the_same) {
  const temporary_directory root;
  for (const char* name : {"a", "b"}) write_file(root.path() / (std::string(name) + ".json"), xy);
  write_file(root.path() / "a.bin", records(2));
  write_file(root.path() / "b.bin", records(3));
  const dataset both = open_records((root.path() / "*.bin").string());
  ASSERT_EQ(both.size(), 5U);
  EXPECT_EQ(both.read(4, "x").at(0), std::byte{20});
  write_file(root.path() / "b.json", R"({"fields": [{"name": "x", "dtype": "u8", "shape": [16]}]})");
  EXPECT_THAT(message_of(errc::usage, [&] { static_cast<void>(open_records((root.path() / "*.bin").string())); }),
              AllOf(HasSubstr("b.bin"), HasSubstr("a.bin")));
}

TEST(record_files, sizes_that_do_not_fit_together_are_said) {
  const temporary_directory root;
  write_file(root.path() / "r.json", xy);
  const auto open_it = [&](const std::string& content) {
    static_cast<void>(open_records(write_file(root.path() / "r.bin", content)));
  };
  EXPECT_THAT(message_of(errc::format, [&] { open_it(records(2) + "x"); }),
              AllOf(HasSubstr("33 bytes"), HasSubstr("16 bytes")));
  write_file(root.path() / "r.json", R"({"records": 9, "fields": [{"name": "x", "dtype": "u8", "shape": [16]}]})");
  EXPECT_THAT(message_of(errc::format, [&] { open_it(records(2)); }),
              AllOf(HasSubstr("room for 2"), HasSubstr("says 9")));
  write_file(root.path() / "r.json", R"({"header_bytes": 99, "fields": [{"name": "x", "dtype": "u8"}]})");
  EXPECT_THAT(message_of(errc::format, [&] { open_it(records(2)); }), HasSubstr("header_bytes 99"));
}

TEST(record_files, a_description_that_is_none_is_refused_with_an_example) {
  const temporary_directory root;
  const std::string data = write_file(root.path() / "r.bin", records(2));
  for (const char* wrong :
       {"", "{", "[]", "{}", R"({"fields": []})", R"({"fields": [1]})", R"({"fields": [{"name": "x"}]})",
        R"({"fields": [{"dtype": "u8"}]})", R"({"fields": [{"name": "", "dtype": "u8"}]})",
        R"({"fields": [{"name": "x", "dtype": "float32"}]})",
        R"({"fields": [{"name": "x", "dtype": "u8", "shape": 3}]})",
        R"({"fields": [{"name": "x", "dtype": "u8", "shape": [-1]}]})",
        R"({"fields": [{"name": "x", "dtype": "u8", "shape": [1.5]}]})",
        R"({"fields": [{"name": "x", "dtype": "u8", "shape": [0]}]})",
        R"({"fields": [{"name": "x", "dtype": "u8", "shape": [1,1,1,1,1,1,1,1]}]})",
        R"({"fields": [{"name": "x", "dtype": "u8", "size": [1]}]})",
        R"({"fields": [{"name": "x", "dtype": "u8"}, {"name": "x", "dtype": "u8"}]})",
        R"({"fields": [{"name": "x", "dtype": "u8"}], "records": -1})",
        R"({"fields": [{"name": "x", "dtype": "u8"}], "count": 1})"}) {
    write_file(root.path() / "r.json", wrong);
    EXPECT_THAT(message_of(errc::format, [&] { static_cast<void>(open_records(data)); }),
                AllOf(HasSubstr("r.json"), HasSubstr("\"fields\"")))
        << wrong;
  }
  write_file(root.path() / "r.json",
             R"({"fields": [{"name": "x", "dtype": "f64", "shape": [4611686018427387904, 8]}]})");
  message_of(errc::limit, [&] { static_cast<void>(open_records(data)); });
}

TEST(record_files, a_json_that_is_none_says_line_and_column) {
  const temporary_directory root;
  const std::string data = write_file(root.path() / "r.bin", records(2));
  const auto said = [&](const std::string& text) {
    write_file(root.path() / "r.json", text);
    return message_of(errc::format, [&] { static_cast<void>(open_records(data)); });
  };
  EXPECT_THAT(said("{\"fields\": [\n  {\"name\": \"x\", \"dtype\": \"u8\",}\n]}"),
              AllOf(HasSubstr("r.json: it is no JSON: line 2, column 31: "), HasSubstr("unexpected '}'")));
  EXPECT_THAT(said("{\"fields\":"), AllOf(HasSubstr("line 1, column 11: "), HasSubstr("unexpected end of input")));
  EXPECT_THAT(said("x"), HasSubstr("line 1, column 1: "));
  EXPECT_THAT(said("{\"records\": 1e999}"), HasSubstr("number overflow"));
  EXPECT_THAT(said(R"({"fields": [{"name": "x", "dtype": "u8"}, 3]})"), HasSubstr("entry 2 of \"fields\""));
}

TEST(record_files, without_a_json_say_what_they_look_like) {
  const temporary_directory root;
  std::string wide;
  for (std::uint32_t token = 0; token < 100; ++token) wide += little(token * 1000);
  const auto refusal = [&](const std::string& content) {
    const std::string path = write_file(root.path() / "r.bin", content);
    const std::string opened = message_of(errc::not_found, [&] { static_cast<void>(open_records(path)); });
    EXPECT_THAT(opened, HasSubstr("r.json"));
    return message_of(errc::usage, [&] { static_cast<void>(open(path)); });
  };
  EXPECT_THAT(refusal(records(3)), AllOf(HasSubstr("r.json"), HasSubstr("u16"), HasSubstr("leat::open_tokens()")));
  EXPECT_THAT(refusal(wide), HasSubstr("leat::dtype::u32"));
  EXPECT_THAT(refusal("odd"), HasSubstr("odd number"));
  EXPECT_EQ(open(write_file(root.path() / "e.bin", "")).size(), 0U);
}

TEST(record_files, are_found_by_open) {
  const temporary_directory root;
  write_file(root.path() / "r.json", xy);
  EXPECT_EQ(open(write_file(root.path() / "r.bin", records(5))).size(), 5U);
}

}  // namespace
}  // namespace leat
