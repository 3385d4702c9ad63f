// JSONL and CSV: written here, so that each value is known.
#include "base/text.hpp"
#include "datasets/wire/json_value.hpp"
#include "tests/datasets/numbered_arrays.hpp"
#include "tests/datasets/value_reader.hpp"
#include "tests/support/coded_forms.hpp"
#include "tests/support/seeds.hpp"
#include "tests/support/temporary_directory.hpp"

#include <leat/error.hpp>
#include <leat/index_options.hpp>
#include <leat/open.hpp>
#include <leat/open_tables.hpp>
#include <leat/samples.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <limits>
#include <optional>
#include <random>
#include <string>
#include <tuple>
#include <vector>

namespace leat {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::message_of;

std::string text_of(const dataset& samples, std::uint64_t sample, const std::string& field) {
  const std::vector<std::byte> bytes = samples.read(sample, field);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::vector<std::string> names_of(const dataset& samples) {
  std::vector<std::string> names;
  for (const field_info& each : samples.fields()) names.push_back(each.name);
  return names;
}

class text_tables : public ::testing::Test {
 protected:
  std::string put(const std::string& name, const std::string& content) {
    const std::string path = (root_.path() / name).string();
    std::ofstream(path, std::ios::binary) << content;
    return path;
  }

 private:
  testing::temporary_directory root_;
};

TEST_F(text_tables, lines_of_json_give_texts_numbers_and_lists) {
  const std::string path =
      put("a.jsonl",
          "\xEF\xBB\xBF{\"text\": \"first\", \"label\": 3, \"ids\": [1, 2, {\"x\": \"]\"}], \"score\": -2.5e3, "
          "\"yes\": true}\r\n"
          "\n"
          R"({"label":4,"text":"a \"quote\", \u00e9, \ud83d\ude00, \\ and \n", "yes": false, "late": null, "ids": []})"
          "\n"
          R"({ "te\u0078t" : "last" , "late": "here" })");
  const dataset samples = open(path);
  ASSERT_EQ(samples.size(), 3U);
  EXPECT_THAT(names_of(samples), ElementsAre("text", "label", "ids", "score", "yes", "late"));
  EXPECT_EQ(samples.fields()[0].kind, field_kind::text);
  EXPECT_EQ(samples.fields()[1].kind, field_kind::label);
  EXPECT_EQ(text_of(samples, 0, "text"), "first");
  EXPECT_EQ(text_of(samples, 0, "label"), "3");
  EXPECT_EQ(text_of(samples, 0, "ids"), "[1, 2, {\"x\": \"]\"}]");
  EXPECT_EQ(text_of(samples, 0, "score"), "-2.5e3");
  EXPECT_EQ(text_of(samples, 0, "yes") + text_of(samples, 1, "yes"), "10");
  EXPECT_EQ(text_of(samples, 1, "text"), "a \"quote\", \xC3\xA9, \xF0\x9F\x98\x80, \\ and \n");
  EXPECT_EQ(text_of(samples, 2, "text"), "last");
  EXPECT_EQ(text_of(samples, 2, "late"), "here");
  EXPECT_THAT(message_of(errc::corrupt, [&] { static_cast<void>(samples.read(1, "late")); }),
              HasSubstr("'late' is null"));
  EXPECT_THAT(message_of(errc::corrupt, [&] { static_cast<void>(samples.read(2, "label")); }),
              AllOf(HasSubstr("no 'label'"), HasSubstr("a.jsonl[2]")));
  EXPECT_LE(samples.memory().extents, 3U * 24);
}

TEST_F(text_tables, members_of_a_list_of_objects_are_lists_as_in_parquet_where_they_are_asked_for) {
  const std::string path = put("a.jsonl", R"({"id": 1, "messages": [{"role": "user", "content": "a \"b\""}, )"
                                          R"({"content": "c", "role": "bot", "n": 2}]})"
                                          "\n"
                                          R"({"id": 2, "messages": []})"
                                          "\n"
                                          R"({"id": 3, "messages": [{"n": 5, "x": {"role": 1}}, {"role": null}]})"
                                          "\n"
                                          R"({"id": 4, "messages": ["role"]})"
                                          "\n"
                                          R"({"id": 5})"
                                          "\n");
  const dataset samples = open_jsonl(path, {.fields = {"messages.role", "messages.content", "messages.n"}});
  testing::value_reader values(samples);
  EXPECT_EQ(values.text(0, "messages.role"), R"(["user","bot"])");
  EXPECT_EQ(values.text(0, "messages.content"), R"(["a \"b\"","c"])");
  EXPECT_EQ(values.text(0, "messages.n"), "[null,2]");
  EXPECT_EQ(values.text(1, "messages.role"), "[]");
  EXPECT_EQ(values.text(2, "messages.role"), "[null,null]");
  EXPECT_THAT(message_of(errc::corrupt, [&] { static_cast<void>(samples.read(3, "messages.role")); }),
              HasSubstr("a list of other things than objects"));
  EXPECT_THAT(message_of(errc::corrupt, [&] { static_cast<void>(samples.read(4, "messages.role")); }),
              HasSubstr("no 'messages'"));
  EXPECT_EQ(open_jsonl(path).fields().size(), 2U) << "nothing is added that nobody asked for";
  EXPECT_THAT(message_of(errc::not_found, [&] { static_cast<void>(open_jsonl(path, {.fields = {"id.role"}})); }),
              HasSubstr("id.role"));
}

TEST_F(text_tables, what_is_no_json_is_named_and_a_later_line_concerns_its_sample_only) {
  EXPECT_THAT(message_of(errc::format, [&] { static_cast<void>(open(put("b.jsonl", "{\"a\": 1}\n{\"a\": }\n"))); }),
              AllOf(HasSubstr("b.jsonl"), HasSubstr("offset 15"), HasSubstr("line 2")));
  std::string many;
  for (int i = 0; i < 1150; ++i)
    many += i == 1140   ? "{\"a\": \"\\ud800\"}\n"
            : i == 1141 ? "{\"a\"\n"
            : i == 1142 ? "{\"a\": \"\xFF\"}\n"
                        : "{\"a\": \"x\"}\n";
  const dataset samples = open_jsonl(put("c.jsonl", many));
  ASSERT_EQ(samples.size(), 1150U);
  EXPECT_EQ(text_of(samples, 1149, "a"), "x");
  EXPECT_THAT(message_of(errc::corrupt, [&] { static_cast<void>(samples.read(1140, "a")); }), HasSubstr("surrogates"));
  EXPECT_THAT(message_of(errc::corrupt, [&] { static_cast<void>(samples.read(1141, "a")); }), HasSubstr("no colon"));
  EXPECT_THAT(message_of(errc::corrupt, [&] { static_cast<void>(samples.read(1142, "a")); }), HasSubstr("UTF-8"));
  // Words that Python writes are numbers.
  const dataset words = open(put("w.jsonl",
                                 "{\"a\": 1, \"b\": 2}\n{\"a\": NaN, \"b\": 3}\n{\"a\": -Infinity, \"b\": 4}\n"
                                 "{\"a\": Infinity, \"b\": 5}\n"));
  EXPECT_EQ(text_of(words, 1, "b") + text_of(words, 2, "b") + text_of(words, 3, "b"), "345");
  EXPECT_EQ(text_of(words, 1, "a") + text_of(words, 2, "a") + text_of(words, 3, "a"), "NaN-InfinityInfinity");
  EXPECT_EQ(words.fields()[0].type, dtype::f64);
  std::vector<datasets::json_member> members;
  EXPECT_THAT(datasets::read_members("{\"a\": " + std::string(65, '[') + std::string(65, ']') + "}", members)->why,
              HasSubstr("more than 64"));
  EXPECT_FALSE(datasets::read_members("{\"a\": " + std::string(64, '[') + std::string(64, ']') + "}", members));
}

// What stands behind an object would be lost, and with it a sample.
TEST_F(text_tables, a_line_is_one_object_and_nothing_else) {
  for (const char* const bad : {"{\"a\": 2}{\"a\": 3}", "{\"a\": 4},", "{\"a\": 5,}"}) {
    SCOPED_TRACE(bad);
    EXPECT_THAT(
        message_of(errc::format, [&] { static_cast<void>(open(put("g.jsonl", str_cat("\n{\"a\": 1}\n", bad)))); }),
        AllOf(HasSubstr("g.jsonl"), HasSubstr("line 3, column "), HasSubstr("one object")));
    std::string many;
    for (int i = 0; i < 1200; ++i) many += i == 1100 ? str_cat(bad, "\n") : "{\"a\": 1}\n";
    const dataset samples = open(put("h.jsonl", many));
    EXPECT_EQ(text_of(samples, 1101, "a"), "1");
    EXPECT_THAT(message_of(errc::corrupt, [&] { static_cast<void>(samples.read(1100, "a")); }),
                AllOf(HasSubstr("h.jsonl"), HasSubstr("at byte ")));
  }
}

TEST_F(text_tables, of_a_key_that_comes_twice_the_last_value_counts) {
  const dataset samples = open_jsonl(put("d.jsonl", "{\"a\": \"x\", \"b\": 7, \"\\u0061\": 2}\n"), {.columns = {"b"}});
  EXPECT_THAT(names_of(samples), ElementsAre("a", "b"));
  EXPECT_EQ(samples.fields()[0].kind, field_kind::label);
  EXPECT_EQ(text_of(samples, 0, "a"), "2");
}

TEST_F(text_tables, types_are_those_of_the_first_thousand_rows_of_all_files) {
  std::string late = "title,score,n,note\n";
  for (int i = 0; i < 900; ++i) late += "1984,2,7,\n";
  late += "Brave New World,0.5,,\n";
  const std::string one = put("a.csv", late);
  const std::string other = put("b.csv", "title,score,n,note\n,,,x\n7,3,8,\n");
  const dataset samples = open({one, other}, {.tables = {}});
  ASSERT_EQ(samples.size(), 903U);
  const std::vector<field_info> fields = samples.fields();
  EXPECT_EQ(fields[0].kind, field_kind::text);
  EXPECT_EQ(fields[1].kind, field_kind::label);
  EXPECT_EQ(fields[1].type, dtype::f64);
  EXPECT_EQ(fields[2].kind, field_kind::label);
  EXPECT_EQ(fields[2].type, dtype::i64);
  EXPECT_EQ(fields[3].kind, field_kind::text);
  // An empty cell is no value: of real numbers NaN.
  EXPECT_EQ(text_of(samples, 901, "score"), "nan");
  EXPECT_EQ(text_of(samples, 901, "title"), "");
  EXPECT_THAT(message_of(errc::corrupt, [&] { static_cast<void>(samples.read(901, "n")); }),
              AllOf(HasSubstr("b.csv"), HasSubstr("'n' is empty")));
  const dataset nulls =
      open({put("a.jsonl", "{\"a\": 1, \"b\": null}\n"), put("b.jsonl", "{\"a\": null, \"b\": 0.5}\n{\"a\": 2}\n")});
  EXPECT_EQ(nulls.fields()[0].type, dtype::i64);
  EXPECT_EQ(text_of(nulls, 0, "b") + text_of(nulls, 2, "b"), "NaNNaN");
  EXPECT_THAT(message_of(errc::corrupt, [&] { static_cast<void>(nulls.read(1, "a")); }), HasSubstr("'a' is null"));
}

TEST_F(text_tables, an_empty_cell_makes_no_classes_of_numbers) {
  std::string content = "text,score,kind\n";
  for (int i = 0; i < 1000; ++i)
    content += i == 700 ? "t,,\n" : str_cat("t,", i, ".5,", i % 2 == 0 ? "owl" : "cat", "\n");
  const dataset samples = open_csv(put("s.csv", content), {.columns = {"score", "kind"}});
  EXPECT_EQ(samples.number(3, "score"), 3.5);
  EXPECT_TRUE(std::isnan(samples.number(700, "score").value()));
  EXPECT_THAT(samples.classes(), ElementsAre("cat", "owl"));
  EXPECT_EQ(samples.column(700, "kind"), std::nullopt);
  // Whole numbers in each row that has any.
  const dataset whole = open_csv(put("w.csv", "n,t\n5,a\n,b\n7,c\n"), {.columns = {"n"}});
  EXPECT_EQ(whole.column(0, "n"), 5);
  EXPECT_EQ(whole.column(1, "n"), std::nullopt);
  EXPECT_TRUE(whole.classes().empty());
}

TEST_F(text_tables, a_type_that_is_asked_for_is_the_type) {
  const std::string table = put("t.csv", "n,m\n1,1\n2,2\n");
  const table_options asked{.types = {{"n", dtype::f32}, {"m", dtype::f64}}};
  EXPECT_EQ(open_csv(table, asked).fields()[0].type, dtype::f32);
  table_options columns = asked;
  columns.columns = {"n", "m"};
  const dataset kept = open_csv(table, columns);
  EXPECT_EQ(kept.fields()[0].type, dtype::f32);
  EXPECT_EQ(kept.fields()[1].type, dtype::f64);
  EXPECT_THAT(message_of(errc::not_found, [&] { static_cast<void>(open_csv(table, {.types = {{"nn", dtype::f32}}})); }),
              HasSubstr("did you mean 'n'"));
  EXPECT_THAT(message_of(errc::usage, [&] { static_cast<void>(open_csv(table, {.types = {{"n", dtype::u8}}})); }),
              HasSubstr("i64, f32 or f64"));
  const std::string words = put("w.csv", "n\n1\nowl\n");
  EXPECT_THAT(message_of(errc::format,
                         [&] { static_cast<void>(open_csv(words, {.columns = {"n"}, .types = {{"n", dtype::i64}}})); }),
              AllOf(HasSubstr("w.csv"), HasSubstr("row 1"), HasSubstr("i64")));
}

TEST_F(text_tables, files_without_a_byte_are_empty_shards) {
  const std::string lines = put("a.jsonl", "{\"a\": 1}\n");
  for (const char* const name : {"b.jsonl", "b.csv", "b.tfrecord", "b.parquet", "b.arrow", "b.npy", "b.tar", "b.h5"}) {
    const std::string empty = put(name, "");
    for (const std::vector<std::string>& sources : {std::vector{lines, empty}, std::vector{empty, lines}}) {
      const dataset samples = open(sources);
      EXPECT_EQ(samples.size(), 1U) << name;
      EXPECT_THAT(samples.notes(), ElementsAre(AllOf(HasSubstr(empty), HasSubstr("no byte")))) << name;
    }
    EXPECT_EQ(open(empty).size(), 0U) << name;
  }
  EXPECT_EQ(open_jsonl({lines, put("c.jsonl", "")}).size(), 1U);
  EXPECT_EQ(open_csv({put("d.csv", "a\n1\n"), put("e.csv", "")}, {.columns = {"a"}}).size(), 1U);
}

TEST_F(text_tables, lines_are_found_whatever_pieces_they_are_read_in) {
  std::mt19937_64 random(2);
  std::string content;
  std::vector<std::string> texts;
  for (int i = 0; i < 60; ++i) {
    texts.emplace_back(random() % 3 == 0 ? random() % 1500000 : random() % 40, static_cast<char>('a' + i % 26));
    content += "{\"t\":\"" + texts.back() + "\"}" + (i == 59 ? "" : i % 2 == 0 ? "\n" : "\r\n");
  }
  const dataset samples = open_jsonl(put("d.jsonl", content), {.threads = 3});
  ASSERT_EQ(samples.size(), texts.size());
  testing::value_reader values(samples);
  for (std::size_t i = 0; i < texts.size(); ++i) ASSERT_EQ(values.text(i, "t"), texts[i]) << i;
}

// Line ends, quotes and separators at the end of what is read at once (256 KiB), and of a thread's piece (16 MiB).
TEST_F(text_tables, lines_and_rows_may_end_anywhere_in_what_is_read_at_once) {
  for (const std::size_t edge : {std::size_t{256} << 10, std::size_t{16} << 20}) {
    for (std::size_t shift = 0; shift < 5; ++shift) {
      SCOPED_TRACE(str_cat(edge, " ", shift));
      const std::string first(edge - 12 + shift, 'x');
      const dataset lines =
          open_jsonl(put("e.jsonl", "{\"t\": \"" + first + "\"}\r\n \t\r\n{\"t\": \"y\"}\r\n{\"t\": \"z\"}"));
      ASSERT_EQ(lines.size(), 3U);
      EXPECT_EQ(text_of(lines, 0, "t"), first);
      EXPECT_EQ(text_of(lines, 1, "t") + text_of(lines, 2, "t"), "yz");
      // a,b / x..x""","" / y,"z": the quotes of the first row lie about the edge.
      const std::string value(edge - 9 + shift, 'x');
      const dataset rows =
          open_csv(put("e.csv", "a,b\n\"" + value + "\"\"\n\",\"\"\"\"\r\n  \r\ny,\"z\""), {.threads = 1});
      ASSERT_EQ(rows.size(), 2U);
      EXPECT_EQ(text_of(rows, 0, "a"), value + "\"\n");
      EXPECT_EQ(text_of(rows, 0, "b"), "\"");
      EXPECT_EQ(text_of(rows, 1, "a") + text_of(rows, 1, "b"), "yz");
    }
  }
}

TEST_F(text_tables, columns_that_are_asked_for_are_kept_as_numbers_or_classes_over_all_files) {
  const std::string one =
      put("e.jsonl",
          "{\"n\": 5, \"r\": 1, \"kind\": \"owl\"}\n{\"n\": -6, \"r\": 0.1, \"kind\": \"cat\"}\n{\"kind\": null}\n");
  const std::string other = put("f.jsonl", "{\"n\": 7, \"r\": -2.5e3, \"kind\": \"ant\"}\n");
  const dataset samples = open_jsonl({one, other}, {.columns = {"n", "r", "kind"}});
  EXPECT_EQ(samples.number(0, "r"), 1);
  EXPECT_EQ(samples.number(1, "r"), 0.1);
  EXPECT_TRUE(std::isnan(samples.number(2, "r").value()));
  EXPECT_EQ(samples.number(3, "r"), -2500);
  EXPECT_EQ(samples.column(3, "r"), -2500);
  EXPECT_THAT(samples.classes(), ElementsAre("ant", "cat", "owl"));
  EXPECT_EQ(samples.column(0, "n"), 5);
  EXPECT_EQ(samples.column(1, "n"), -6);
  EXPECT_EQ(samples.column(2, "n"), std::nullopt);
  EXPECT_EQ(samples.column(3, "n"), 7);
  EXPECT_EQ(samples.label(0), 2);
  EXPECT_EQ(samples.label(2), std::nullopt);
  EXPECT_EQ(samples.label(3), 0);
  // A double would make them one.
  const std::string ids = put("ids.csv", "id\n9223372036854775809\n9223372036854775810\n");
  const dataset of_ids = open_csv(ids, {.columns = {"id"}});
  EXPECT_NE(of_ids.column(0, "id"), of_ids.column(1, "id"));
  EXPECT_THAT(message_of(errc::not_found, [&] { static_cast<void>(open_jsonl(one, {.fields = {"knd"}})); }),
              HasSubstr("did you mean 'kind'"));
}

TEST_F(text_tables, a_whole_number_that_a_double_takes_for_another_is_a_text) {
  const dataset samples =
      open_csv(put("ids.csv", "r,s\n0.5,0.5\n9007199254740993,9007199254740991\n"), {.columns = {"r", "s"}});
  EXPECT_THAT(samples.classes(), ElementsAre("0.5", "9007199254740993"));
  EXPECT_EQ(samples.number(1, "s"), 9007199254740991.0);
}

TEST_F(text_tables, a_number_of_a_column_may_be_written_as_that_of_a_label_may) {
  const dataset samples =
      open_csv(put("plus.csv", "n,r\n+5, 2.5 \n 8,+1.5\n9 ,1e-400\n-0,1e400\n7,.5\n"), {.columns = {"n", "r"}});
  EXPECT_TRUE(samples.classes().empty());
  for (const auto& [row, n, r] : std::vector<std::tuple<std::uint64_t, std::int64_t, double>>{
           {0, 5, 2.5}, {1, 8, 1.5}, {2, 9, 0.0}, {3, 0, std::numeric_limits<double>::infinity()}, {4, 7, 0.5}}) {
    EXPECT_EQ(samples.column(row, "n"), n) << row;
    EXPECT_EQ(samples.number(row, "r"), r) << row;
  }
}

TEST_F(text_tables, tabs_alone_are_a_row_of_empty_values_where_they_separate) {
  const dataset samples = open_csv(put("empty.tsv", "a\tb\n1\tx\n\t\n \n\n3\tz\n\t"));
  ASSERT_EQ(samples.size(), 4U);  // of spaces no row, as pandas has it
  EXPECT_EQ(text_of(samples, 1, "b"), "");
  EXPECT_EQ(text_of(samples, 2, "b"), "z");
  EXPECT_EQ(text_of(samples, 3, "b"), "");
  EXPECT_EQ(open_csv(put("tabs.csv", "a,b\n1,x\n\t\n3,z\n")).size(), 2U);
}

TEST_F(text_tables, rows_of_csv_are_those_that_were_written_whatever_stands_in_them) {
  std::mt19937_64 random(9);
  for (const char separator : {',', '\t', ';'}) {
    const std::string letters = std::string("ab\"\n\r ") + separator + "xyz";
    std::vector<std::vector<std::string>> rows;
    std::string content = std::string("one") + separator + "\"t\"\"wo\"" + separator + "three\n";
    for (int i = 0; i < 3000; ++i) {
      std::vector<std::string>& row = rows.emplace_back();
      for (int column = 0; column < 3; ++column) {
        std::string value;
        const std::uint64_t letter_count = random() % 2000 == 0 ? random() % 400'000 : random() % 9;
        for (std::uint64_t k = letter_count; k > 0; --k) value += letters[random() % letters.size()];
        if (column == 0) value += 'e';  // no row is blank
        const bool quoted =
            value.find_first_of(std::string("\"\n\r") + separator) != std::string::npos || random() % 4 == 0;
        row.push_back(value);
        if (quoted) {
          std::string doubled;
          for (const char letter : value) doubled += letter == '"' ? "\"\"" : std::string(1, letter);
          value = "\"" + doubled + "\"";
        }
        content += value + (column < 2 ? std::string(1, separator) : random() % 2 == 0 ? "\n" : "\r\n");
      }
    }
    const dataset samples = open(put("r.csv", content));
    ASSERT_EQ(samples.size(), rows.size());
    EXPECT_THAT(names_of(samples), ElementsAre("one", "t\"wo", "three"));
    testing::value_reader values(samples);
    for (std::size_t i = 0; i < rows.size(); i += 7) {
      ASSERT_EQ(values.text(i, "one"), rows[i][0]) << i;
      ASSERT_EQ(values.text(i, "t\"wo"), rows[i][1]) << i;
      ASSERT_EQ(values.text(i, "three"), rows[i][2]) << i;
    }
  }
}

TEST_F(text_tables, rows_of_csv_may_end_in_a_bare_cr) {
  const dataset bare = open_csv(put("bare.csv", "a,b\r1,x\r\"2\r3\",y\r\r4,z\r"));
  ASSERT_EQ(bare.size(), 3U);
  testing::value_reader values(bare);
  EXPECT_EQ(values.text(1, "a"), "2\r3");
  EXPECT_EQ(values.text(2, "b"), "z");
  // Windows of 256 KiB, the first of which ends within a CRLF, or behind a CR.
  for (const std::string end : {"\r\n", "\r"}) {
    std::string content = "a" + end;
    content += std::string((std::size_t{256} << 10) - 1 - content.size(), 'x') + end + "y" + end;
    const dataset samples = open_csv(put("window.csv", content));
    ASSERT_EQ(samples.size(), 2U);
    EXPECT_EQ(testing::value_reader(samples).text(1, "a"), "y");
  }
}

TEST_F(text_tables, csv_that_is_damaged_is_named) {
  const dataset samples = open(put("g.csv", "a,b\n1,5\" pipe\n3\n4,5,6\n"));
  ASSERT_EQ(samples.size(), 3U);
  EXPECT_EQ(samples.fields()[0].kind, field_kind::label);
  EXPECT_EQ(text_of(samples, 0, "b"), "5\" pipe");
  EXPECT_THAT(message_of(errc::corrupt, [&] { static_cast<void>(samples.read(1, "a")); }),
              HasSubstr("1 values where the header has 2"));
  EXPECT_THAT(message_of(errc::format, [&] { static_cast<void>(open(put("h.csv", "a,b\n1,2\n3,\"4\n5,6\n"))); }),
              AllOf(HasSubstr("h.csv"), HasSubstr("offset 8"), HasSubstr("quotes without an end")));
  EXPECT_THAT(message_of(errc::format, [&] { static_cast<void>(open(put("i.csv", "a,a\n1,2\n"))); }),
              HasSubstr("'a' twice"));
  EXPECT_THAT(message_of(errc::limit, [&] { static_cast<void>(open(put("j.csv", std::string(70000, ',') + "\n"))); }),
              HasSubstr("70001 columns"));
  EXPECT_EQ(open(put("k.tsv", "a,b\tc\n1\t2\n")).fields()[0].name, "a,b");
}

TEST_F(text_tables, files_that_are_compressed_or_utf_16_are_named_for_what_they_are) {
  using std::string_literals::operator""s;
  // What is packed may have ends of lines and separators.
  const std::string gzip = "\x1f\x8b\x08\0,\n,\n\xff,1\n"s;
  for (const char* name : {"a.csv", "a.tsv", "a.jsonl", "a.tfrecord.gz"}) {
    const std::string path = put(name, gzip);
    EXPECT_THAT(message_of(errc::unsupported, [&] { static_cast<void>(open(path)); }),
                AllOf(HasSubstr(name), HasSubstr(": this is gzip"), HasSubstr("decompress it first (gzip -dc")));
    if (path.ends_with(".gz")) continue;
    put(name, "\xff\xfe{\0\n\0"s);
    EXPECT_THAT(message_of(errc::unsupported, [&] { static_cast<void>(open(path)); }),
                AllOf(HasSubstr(name), HasSubstr("this is UTF-16")));
  }
  // What a clone of a set has where Git LFS is not installed.
  const std::string pointer = put("c.csv", "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n");
  EXPECT_THAT(message_of(errc::unsupported, [&] { static_cast<void>(open(pointer)); }), HasSubstr("`git lfs pull`"));
  const std::string packed = put("d.jsonl", "\x28\xb5\x2f\xfd\x04\x00"s);
  EXPECT_THAT(message_of(errc::unsupported, [&] { static_cast<void>(open(packed)); }),
              AllOf(HasSubstr("d.jsonl: this is zstd"), HasSubstr(".jsonl.zst"), HasSubstr("(zstd -dc")));
  // A header that begins as bzip2 does.
  EXPECT_EQ(open_csv(put("b.csv", "BZh91AY,b\n1,2\n")).size(), 1U);
}

// The first block of a file that array_record 0.8 wrote.
TEST_F(text_tables, an_array_record_is_named_with_what_writes_it_anew) {
  using std::string_literals::operator""s;
  const std::string start =
      "\x83\xaf\x70\xd1\x0d\x88\x4a\x3f\0\0\0\0\0\0\0\0\x40\0\0\0\0\0\0\0\x91\xba\xc2\x3c\x92\x87\xe1\xa9"s
      "\0\0\0\0\0\0\0\0\xe1\x9f\x13\xc0\xe9\xb1\xc3\x72\x73\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"s;
  for (const char* name : {"a.array_record", "a.riegeli"}) {
    const std::string path = put(name, start + std::string(4096, '\0'));
    EXPECT_THAT(message_of(errc::unsupported, [&] { static_cast<void>(open(path)); }),
                AllOf(HasSubstr(name), HasSubstr("ArrayRecord"), HasSubstr("TFRecordWriter")));
  }
}

TEST_F(text_tables, a_column_of_paths_makes_samples_of_the_files_that_it_names) {
  put("1.png", "first");
  put("2.PNG", "the second");
  const std::string table = put("metadata.csv", "file_name,label,\"a, text\"\n2.PNG,7,\"x, y\"\n1.png,8,z\n");
  const std::string folder = table.substr(0, table.rfind('/'));
  for (const dataset& samples : {open(folder), open_csv(table, {.path_column = "file_name", .root = folder})}) {
    ASSERT_EQ(samples.size(), 2U);
    EXPECT_THAT(names_of(samples), ElementsAre("jpg", "label", "a, text"));
    EXPECT_EQ(samples.fields()[0].kind, field_kind::picture);
    EXPECT_EQ(text_of(samples, 0, "jpg"), "the second");
    EXPECT_EQ(text_of(samples, 1, "jpg"), "first");
    EXPECT_EQ(text_of(samples, 0, "label") + text_of(samples, 0, "a, text"), "7x, y");
    EXPECT_THAT(samples.name(1), ::testing::EndsWith("/1.png"));
  }
  const std::string lines = put("more.jsonl", "{\"p\": \"1.png\", \"n\": 3}\n{\"p\": \"3.png\"}\n");
  EXPECT_THAT(message_of(errc::not_found, [&] { static_cast<void>(open_jsonl(lines, {.path_column = "p"})); }),
              AllOf(HasSubstr("3.png"), HasSubstr("more.jsonl"), HasSubstr("table_options::root")));
  EXPECT_THAT(message_of(errc::not_found, [&] { static_cast<void>(open_jsonl(lines, {.path_column = "q"})); }),
              HasSubstr("no 'q'"));
  const std::string zero = put("zero.csv", std::string("p\n1.png\n1.png\0.png\n", 19));
  EXPECT_THAT(message_of(errc::format, [&] { static_cast<void>(open_csv(zero, {.path_column = "p"})); }),
              AllOf(HasSubstr("zero.csv: at offset 8"), HasSubstr("zero byte in the path in 'p'")));
}

template <class Number>
std::string bytes_of(Number value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

// Two samples of three columns, as MDSWriter lays them down.
TEST_F(text_tables, shards_of_mds_are_read_where_their_values_lie) {
  const auto sample = [](std::int64_t number, const std::string& picture, const std::string& text,
                         const std::string& raw) {
    return bytes_of(static_cast<std::uint32_t>(picture.size())) + bytes_of(static_cast<std::uint32_t>(text.size())) +
           bytes_of(static_cast<std::uint32_t>(raw.size())) + picture + bytes_of(number) + text + raw;
  };
  const std::string one = sample(-3, "\xff\xd8\xff", "hello", "plain");
  const std::string two = sample(4, "\xff\xd8\xff\xe0", "", "\x01\xff");
  const std::string header(100, '{');  // MDSWriter's own description, which the index has as well
  const auto begin = static_cast<std::uint32_t>(4 + 4 * 3 + header.size());
  const auto end = static_cast<std::uint32_t>(begin + one.size() + two.size());
  const std::string shard = bytes_of(std::uint32_t{2}) + bytes_of(begin) +
                            bytes_of(static_cast<std::uint32_t>(begin + one.size())) + bytes_of(end) + header + one +
                            two;
  const std::string path = put("shard.00000.mds", shard);
  const std::string folder = path.substr(0, path.rfind('/'));
  const auto index = [&](const std::string& compression, int version) {
    put("index.json",
        str_cat(
            R"({"shards": [{"column_encodings": ["jpeg", "int", "str", "bytes"], "column_names": ["image", "n", "text", "raw"],
      "column_sizes": [null, 8, null, null], "compression": )",
            compression, R"(, "format": "mds", "hashes": [], "raw_data": {"basename": "shard.00000.mds",
      "bytes": )",
            shard.size(),
            R"(, "hashes": {}}, "samples": 2, "size_limit": 67108864, "version": 2, "zip_data": null}], "version": )",
            version, "}"));
  };
  index("null", 2);
  const dataset samples = open({folder}, {.tables = {.columns = {"n"}}});
  ASSERT_EQ(samples.size(), 2U);
  EXPECT_THAT(names_of(samples), ElementsAre("image", "text", "raw", "n"));
  // Of bytes the first value may be text, as it is here: the others need not be.
  EXPECT_EQ(samples.fields()[2].kind, field_kind::bytes);
  EXPECT_EQ(text_of(samples, 0, "text"), "hello");
  EXPECT_EQ(text_of(samples, 1, "image"), "\xff\xd8\xff\xe0");
  EXPECT_EQ(samples.column(0, "n"), -3);
  EXPECT_EQ(text_of(open_mds(folder), 1, "n"), "4");
  // Decompressed beside what the index says is compressed.
  index("\"zstd:3\"", 2);
  EXPECT_EQ(text_of(open_mds(folder), 1, "n"), "4");
  index("null", 1);
  EXPECT_THAT(message_of(errc::unsupported, [&] { static_cast<void>(open(folder)); }), HasSubstr("version 1"));
  index("null", 2);
  std::mt19937_64 random(8);
  for (int i = 0; i < 200; ++i) {
    std::string changed = shard;
    changed[random() % changed.size()] = static_cast<char>(random());
    if (i % 9 == 0) changed.resize(random() % changed.size());
    put("shard.00000.mds", changed);
    try {
      const dataset read = open_mds(folder);
      testing::value_reader values(read);
      for (const field_info& field : read.fields()) static_cast<void>(values.read(1, field.name));
    } catch (const error& said) {
      EXPECT_THAT(said.what(), HasSubstr("shard.00000.mds"));
    }
  }
}

std::vector<std::string> all_texts(const dataset& samples) {
  std::vector<std::string> texts;
  for (std::uint64_t i = 0; i < samples.size(); ++i) texts.push_back(text_of(samples, i, "text"));
  return texts;
}

TEST_F(text_tables, of_plain_text_give_lines_paragraphs_and_files) {
  const std::string path = put("a.txt",
                               "\xEF\xBB\xBF"
                               "first\r\nsecond \r\n\r\n \t\nthird\n\n\nfourth\nfifth\n");
  const std::string other = put("b.txt", "\n\nsixth");
  const std::string empty = put("c.txt", "");
  const auto opened = [&](std::optional<text_samples> what) {
    return open({path, other, empty}, {.tables = {.text = what}});
  };
  EXPECT_THAT(names_of(opened({})), ElementsAre("text"));
  EXPECT_EQ(opened({}).fields()[0].kind, field_kind::text);
  EXPECT_THAT(all_texts(opened({})), ElementsAre("first", "second ", "third", "fourth", "fifth", "sixth"));
  EXPECT_THAT(all_texts(opened(text_samples::lines)),
              ElementsAre("first", "second ", "third", "fourth", "fifth", "sixth"));
  EXPECT_THAT(all_texts(opened(text_samples::paragraphs)),
              ElementsAre("first\r\nsecond ", "third", "fourth\nfifth", "sixth"));
  EXPECT_THAT(all_texts(opened(text_samples::files)),
              ElementsAre("first\r\nsecond \r\n\r\n \t\nthird\n\n\nfourth\nfifth\n", "\n\nsixth"));
  EXPECT_THAT(opened({}).notes(), Contains(HasSubstr("c.txt")));
}

TEST_F(text_tables, of_plain_text_are_the_same_in_pieces_and_where_they_are_compressed) {
  std::string content;
  std::vector<std::string> lines;
  std::vector<std::string> paragraphs;
  testing::for_each_seed(1, [&](std::uint64_t seed) {
    std::mt19937_64 draw(seed);
    while (content.size() < std::size_t{3} << 20) {
      const std::string end = draw() % 2 == 0 ? "\n" : "\r\n";
      std::string paragraph;
      for (std::uint64_t i = draw() % 5; i-- > 0;) {
        lines.push_back(std::string(1 + draw() % 3000, static_cast<char>('a' + draw() % 26)));
        content += lines.back() + end;
        paragraph += (paragraph.empty() ? "" : end) + lines.back();
      }
      content += draw() % 3 == 0 ? " \n" : "\n";
      if (!paragraph.empty()) paragraphs.push_back(paragraph);
    }
  });
  const std::string plain = put("a.txt", content);
  const std::string pressed = put("c.txt.zst", testing::coded(datasets::packing::zstd, content));
  const std::string zipped = put("b.txt.gz", testing::coded(datasets::packing::gzip, content));
  for (const std::string& path : {plain, zipped, pressed}) {
    const auto opened = [&](text_samples what) {
      return open({path}, {.index = {.use = index_use::off}, .tables = {.text = what}});
    };
    EXPECT_EQ(all_texts(opened(text_samples::lines)), lines);
    EXPECT_EQ(all_texts(opened(text_samples::paragraphs)), paragraphs);
    EXPECT_EQ(all_texts(opened(text_samples::files)), std::vector<std::string>{content});
  }
}

TEST_F(text_tables, of_plain_text_of_any_name_are_opened_by_their_own_function_and_the_option_is_of_no_other_format) {
  const std::string path = put("book.md", "a\n\nb\nc\n");
  EXPECT_THAT(all_texts(open_text(path, {.text = text_samples::paragraphs})), ElementsAre("a", "b\nc"));
  const std::string jsonl = put("a.jsonl", "{\"text\": \"a\"}\n");
  EXPECT_THAT(
      message_of(errc::usage, [&] { static_cast<void>(open(jsonl, {.tables = {.text = text_samples::lines}})); }),
      AllOf(HasSubstr("table_options::text"), HasSubstr("is of text")));
  const std::string wide = put("wide.txt", std::string("\xff\xfe") + "a");
  EXPECT_THAT(message_of(errc::unsupported, [&] { static_cast<void>(open(wide)); }), HasSubstr("UTF-16"));
}

}  // namespace
}  // namespace leat
