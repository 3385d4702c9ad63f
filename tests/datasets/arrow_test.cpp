// Arrow files and streams that pyarrow wrote (tests/data/arrow/make.py): every value is known from its row.
#include "base/text.hpp"
#include "datasets/model/model.hpp"
#include "tests/datasets/numbered_arrays.hpp"
#include "tests/datasets/tensors_of_tables.hpp"
#include "tests/datasets/times_of_tables.hpp"
#include "tests/datasets/value_reader.hpp"
#include "tests/support/temporary_directory.hpp"

#include <leat/error.hpp>
#include <leat/open.hpp>
#include <leat/open_tables.hpp>
#include <leat/samples.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace leat {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::message_of;
using testing::number_of;

constexpr std::uint64_t rows = 100;

std::string path_of(const std::string& name) { return std::string(LEAT_TEST_DATA) + "/arrow/" + name; }

// Packed ones are expanded, batch by batch.
TEST(arrow, files_and_streams_are_read_whether_their_values_lie_there_or_are_packed) {
  for (const std::string name : {"stream.arrow", "file.arrow", "lz4.arrow", "zstd.arrow"}) {
    SCOPED_TRACE(name);
    const bool is_packed = name == "lz4.arrow" || name == "zstd.arrow";
    const dataset samples = open({path_of(name)}, {.tables = {.columns = {"small", "flag", "gaps", "score"}}});
    ASSERT_EQ(samples.size(), rows);
    testing::value_reader values(samples);
    EXPECT_THAT(samples.classes(), ElementsAre("cat", "dog", "eel"));
    for (std::uint64_t row = 0; row < rows; ++row) {
      const auto number = static_cast<std::int64_t>(row);
      std::string picture = "\xff\xd8\xff\xe0";
      for (std::uint64_t i = 0; i < row * 7 % 23; ++i) picture += std::to_string(row);
      if (row % 10 != 5) ASSERT_EQ(values.text(row, "image"), picture);
      if (row % 7 != 3) ASSERT_EQ(values.text(row, "text"), str_cat("text ", row));
      if (!is_packed) ASSERT_EQ(values.text(row, "kind"), str_cat("k", row % 2));
      ASSERT_EQ(values.text(row, "large"), str_cat("large ", row));
      ASSERT_EQ(values.text(row, "after"), str_cat("after ", row));
      ASSERT_EQ(values.text(row, "fixed").front(), static_cast<char>(row));
      ASSERT_EQ(samples.label(row), number % 3);
      ASSERT_EQ(samples.column(row, "small"), number * 2);
      ASSERT_EQ(samples.column(row, "flag"), number % 3 == 0 ? 1 : 0);
      ASSERT_EQ(samples.column(row, "gaps"), number % 2 == 0 ? std::optional(number) : std::nullopt);
      ASSERT_EQ(samples.number(row, "score"), static_cast<double>(row) / 4);
      const std::vector<std::byte> vector = values.read(row, "vector");
      ASSERT_EQ(vector.size(), 12U);
      ASSERT_EQ(number_of(dtype::f32, vector.data() + 8), static_cast<double>(row + 2));
      if (row % 11 == 2) continue;
      const std::vector<std::byte> ids = values.read(row, "ids");
      ASSERT_EQ(ids.size(), row % 4 * 4);
      if (!ids.empty()) ASSERT_EQ(number_of(dtype::i32, ids.data() + ids.size() - 4), static_cast<double>(row % 4 - 1));
    }
    for (const field_info& field : samples.fields()) {
      if (field.name == "image") EXPECT_TRUE(field.kind == field_kind::picture && field.samples == 90);
      if (field.name == "vector") EXPECT_TRUE(field.kind == field_kind::tensor && field.shape == dimensions({3}));
      if (field.name == "ids")
        EXPECT_TRUE(field.kind == field_kind::bytes && field.type == dtype::i32 && field.samples == 91);
    }
    for (const field_info& field : samples.model()->fields()) EXPECT_EQ(field.chunked, is_packed) << field.name;
    EXPECT_EQ(samples.model()->blocks().size(), !is_packed ? 0U : name == "lz4.arrow" ? 2U : 4U);
    if (is_packed) {
      EXPECT_THAT(samples.notes(), Contains(AllOf(HasSubstr("packed (" + name.substr(0, 3)), HasSubstr("shuffle"))));
      continue;
    }
    EXPECT_THAT(samples.notes(), Contains(AllOf(HasSubstr("'nested'"), HasSubstr("list"))));
    EXPECT_THAT(samples.notes(), Contains(AllOf(HasSubstr("numbers that are not kept"), HasSubstr("when"))));
  }
}

TEST(arrow, files_of_polars_are_read_by_their_footer_and_views_where_their_values_lie) {
  for (const char* name : {"polars.arrow", "polars-old.arrow"}) {
    SCOPED_TRACE(name);
    const dataset samples = open(path_of(name));
    ASSERT_EQ(samples.size(), rows);
    testing::value_reader values(samples);
    for (std::uint64_t row = 0; row < rows; ++row) {
      std::string text;
      for (std::uint64_t i = 0; i < row % 4; ++i) str_append(text, "text ", row);
      if (row % 7 != 3) ASSERT_EQ(values.text(row, "text"), text);
      ASSERT_EQ(values.text(row, "bytes"), std::string(row % 20, static_cast<char>(row)));
      ASSERT_EQ(samples.column(row, "label"), static_cast<std::int64_t>(row));
    }
    EXPECT_EQ(samples.fields().front().samples, 86U);
  }
  EXPECT_THAT(message_of(errc::unsupported,
                         [] { static_cast<void>(open_arrow(path_of("polars.arrow"), {.columns = {"text"}})); }),
              AllOf(HasSubstr("'text'"), HasSubstr("write it as string")));
}

// A block is known by its codec, file and place: two columns of a batch are never one.
TEST(arrow, blocks_of_columns_at_one_place_are_two) {
  const dataset samples = open(path_of("empty-column.arrow"));
  datasets::part_list parts;
  samples.model()->parts(1, parts);
  ASSERT_EQ(parts.size(), 2U);
  EXPECT_EQ(parts[0].where.offset, parts[1].where.offset);
  EXPECT_NE(parts[0].codec, parts[1].codec);
  testing::value_reader values(samples);
  EXPECT_EQ(values.text(1, "a"), "");
  EXPECT_EQ(values.text(1, "b"), "zw");
}

TEST(arrow, damage_to_a_packed_batch_concerns_its_samples) {
  std::ifstream from(path_of("lz4.arrow"), std::ios::binary);
  std::string bytes{std::istreambuf_iterator<char>(from), {}};
  const dataset whole = open_arrow(path_of("lz4.arrow"));
  const std::uint16_t field = *whole.model()->find_field("after");
  datasets::part_list parts;
  const datasets::need after{.field = field};
  whole.model()->parts(70, {&after, 1}, parts);
  for (std::uint64_t i = 20; i < 40; ++i) bytes[parts.front().where.offset + i] = '\xff';
  const testing::temporary_directory directory;
  const std::string path = (directory.path() / "damaged.arrow").string();
  std::ofstream(path, std::ios::binary) << bytes;
  const dataset damaged = open_arrow(path);
  EXPECT_EQ(damaged.read(63, "after"), whole.read(63, "after"));
  EXPECT_EQ(damaged.read(70, "large"), whole.read(70, "large"));
  EXPECT_THAT(message_of(errc::corrupt, [&] { static_cast<void>(damaged.read(70, "after")); }),
              AllOf(HasSubstr("damaged.arrow"), HasSubstr("lz4")));
}

// What a file says of its sizes takes no memory that its bytes do not account for.
TEST(arrow, buffers_and_rows_that_say_more_than_the_file_has_are_refused) {
  std::ifstream from(path_of("lz4.arrow"), std::ios::binary);
  const std::string whole{std::istreambuf_iterator<char>(from), {}};
  const dataset samples = open_arrow(path_of("lz4.arrow"));
  const std::uint16_t field = *samples.model()->find_field("after");
  datasets::part_list parts;
  const datasets::need after{.field = field};
  samples.model()->parts(70, {&after, 1}, parts);
  const std::uint64_t values = parts.front().where.offset;
  const auto size = [](std::int64_t bytes) {
    return std::string(reinterpret_cast<const char*>(&bytes), sizeof(bytes));
  };
  const std::size_t offsets = whole.rfind(size((rows - 64 + 1) * 4), values);  // of the second batch
  ASSERT_NE(offsets, std::string::npos);
  const testing::temporary_directory directory;
  const std::string path = (directory.path() / "more.arrow").string();
  const auto refused = [&](std::uint64_t at, std::int64_t bytes) {
    std::ofstream(path, std::ios::binary) << std::string(whole).replace(at, 8, size(bytes));
    return message_of(errc::format, [&] { static_cast<void>(open_arrow(path)); });
  };
  EXPECT_THAT(refused(offsets, 1 << 12), AllOf(HasSubstr(str_cat("more.arrow: at offset ", offsets)),
                                               HasSubstr("a buffer of 4096 bytes where 148 are needed")));
  EXPECT_THAT(refused(values, std::int64_t{1} << 20), AllOf(HasSubstr(str_cat("more.arrow: at offset ", values)),
                                                            HasSubstr("says more than its bytes can become")));
  for (const char* name : {"empty.arrow", "empty-lz4.arrow"}) {
    EXPECT_THAT(message_of(errc::format, [&] { static_cast<void>(open_arrow(path_of(name))); }),
                AllOf(HasSubstr(name), HasSubstr("'empty'"), HasSubstr("3145728 values of no bytes")));
  }
}

TEST(arrow, dates_times_and_decimals_are_numbers_in_the_unit_of_the_file) {
  for (const char* name : {"times.arrow", "times-zstd.arrow"}) {
    SCOPED_TRACE(name);
    std::vector<std::string> columns = testing::names_of_times;
    columns.insert(columns.end(), {"eve", "small"});
    const dataset samples = open_arrow(path_of(name), {.columns = columns});
    testing::expect_times(samples, "seconds since 1970-01-01", 1);
    EXPECT_EQ(samples.column(5, "eve"), 5 * 86'400'000);
    EXPECT_EQ(samples.number(3, "small"), 0.003);
    EXPECT_THAT(samples.notes(), Contains(HasSubstr("'eve' is in milliseconds since 1970-01-01")));
    EXPECT_THAT(samples.notes(), Contains(HasSubstr("'took' is in milliseconds")));
    EXPECT_THAT(samples.notes(), Contains(AllOf(HasSubstr("'wide'"), HasSubstr("decimals of 256 bits"))));
    EXPECT_THAT(message_of(errc::unsupported, [&] { (void)open_arrow(path_of(name), {.columns = {"wide"}}); }),
                HasSubstr("cast it to decimal128"));
  }
}

TEST(arrow, a_time_is_in_one_unit_in_all_files) {
  const source_names files = {path_of("times.arrow"), path_of("milliseconds.arrow")};
  EXPECT_THAT(message_of(errc::unsupported, [&] { static_cast<void>(open_arrow(files, {.columns = {"second"}})); }),
              AllOf(HasSubstr("milliseconds.arrow: the column 'second' is in milliseconds since"),
                    HasSubstr("times.arrow in seconds since"), HasSubstr("one unit")));
  const dataset alike = open_arrow({path_of("times.arrow"), path_of("times-zstd.arrow")}, {.columns = {"second"}});
  EXPECT_EQ(alike.column(6, "second"), alike.column(0, "second"));
}

TEST(arrow, texts_that_are_asked_for_are_classes_over_all_files) {
  const dataset samples =
      open_arrow({path_of("stream.arrow"), path_of("file.arrow")}, {.fields = {"text"}, .columns = {"species"}});
  ASSERT_EQ(samples.size(), 2 * rows);
  EXPECT_THAT(samples.classes(), ElementsAre("s0", "s1", "s2", "s3", "s4"));
  for (std::uint64_t i = 0; i < 2 * rows; ++i) {
    const std::uint64_t row = i % rows;
    EXPECT_EQ(samples.label(i), row % 9 == 8 ? std::nullopt : std::optional<std::int64_t>(row * 7 % 5));
  }
}

// Each batch with the dictionary that it was written by: the first of other words than the last, which has more of them.
TEST(arrow, values_of_dictionaries_are_what_their_numbers_mean) {
  for (const char* const name : {"dictionaries.arrow", "dictionaries-zstd.arrow", "dictionaries-file.arrow"}) {
    SCOPED_TRACE(name);
    const dataset samples = open(path_of(name));
    ASSERT_EQ(samples.size(), 30U);
    testing::value_reader values(samples);
    const bool is_file = std::string_view(name) == "dictionaries-file.arrow";
    for (std::uint64_t row = 0; row < 30; ++row) {
      const std::uint64_t batch = row / 10;
      if (row % 7 == 5) {
        EXPECT_THAT(message_of(errc::not_found, [&] { static_cast<void>(samples.read(row, "word")); }),
                    HasSubstr("word"));
        continue;
      }
      // The file has one dictionary; the streams another one from the second batch on, and the third adds to that.
      ASSERT_EQ(values.text(row, "word"), str_cat(is_file ? "w" : batch == 0 ? "first " : "then ", row % (2 + batch)));
    }
    const dataset classes = open_arrow(path_of(name), {.columns = {"word"}});
    EXPECT_EQ(classes.classes().size(), is_file ? 4U : 6U);
    EXPECT_EQ(classes.classes()[static_cast<std::size_t>(*classes.label(0))], values.text(0, "word"));
    EXPECT_EQ(classes.label(5), std::nullopt);
  }
}

TEST(arrow, what_is_not_read_is_named_with_what_to_do) {
  EXPECT_THAT(message_of(errc::unsupported, [] { static_cast<void>(open(path_of("views.arrow"))); }),
              AllOf(HasSubstr("views.arrow"), HasSubstr("'view'"), HasSubstr("cast")));
  EXPECT_THAT(message_of(errc::unsupported,
                         [] { static_cast<void>(open_arrow(path_of("dictionaries.arrow"), {.fields = {"number"}})); }),
              AllOf(HasSubstr("dictionary"), HasSubstr("'number'"), HasSubstr("plain values")));
  EXPECT_THAT(
      message_of(errc::not_found, [] { static_cast<void>(open_arrow(path_of("file.arrow"), {.fields = {"txt"}})); }),
      HasSubstr("did you mean 'text'"));
}

// A stream with a schema and nothing else, written by hand: no writer at hand makes one.
TEST(arrow, a_column_of_a_union_is_left_out_whichever_buffers_it_has) {
  for (const char* const file : {"union-4.arrow", "union-5.arrow"}) {
    const dataset samples = open_arrow(path_of(file));
    ASSERT_EQ(samples.size(), 3U) << file;
    EXPECT_EQ(samples.read(2, "text").size(), 3U) << file;
    EXPECT_EQ(samples.read(1, "text").size(), 2U) << file;
    EXPECT_THAT(message_of(errc::unsupported, [&] { (void)open_arrow(path_of(file), {.fields = {"union"}}); }),
                HasSubstr("is a union"));
  }
}

TEST(arrow, numbers_that_are_big_endian_are_refused_by_name) {
  const testing::temporary_directory root;
  const std::string path = (root.path() / "big.arrow").string();
  const auto write = [&](std::uint16_t endianness) {
    const std::uint16_t words[] = {
        0xFFFF, 0xFFFF, 48,         0,         // the mark, and the bytes of the message
        16,     0,                             // where its table is
        10,     12,     4,          6, 8,  0,  // where that has a version, the kind of header, and the header
        12,     0,      4,          1, 12, 0,  // the table: how far back that stands; version 5, a schema, so far on
        6,      6,      4,          0,         // where a schema has its endianness
        8,      0,      endianness, 0, 0,  0,  // the schema
        0xFFFF, 0xFFFF, 0,          0};        // the end
    std::ofstream(path, std::ios::binary).write(reinterpret_cast<const char*>(words), sizeof words);
  };
  write(0);
  EXPECT_EQ(open(path).size(), 0U);
  write(1);
  EXPECT_THAT(message_of(errc::unsupported, [&] { static_cast<void>(open(path)); }),
              AllOf(HasSubstr("big.arrow: its numbers are big-endian"), HasSubstr("write it anew")));
}

// That the Hub's datasets wrote, with save_to_disk(): the shards are in the order of state.json.
TEST(arrow, folders_of_save_to_disk_are_opened_by_themselves) {
  namespace fs = std::filesystem;
  const dataset saved = open(path_of("saved"));
  ASSERT_EQ(saved.size(), 10U);
  EXPECT_THAT(saved.classes(), ElementsAre("cat", "dog", "eel"));
  for (std::uint64_t row = 0; row < 10; ++row) {
    EXPECT_EQ(testing::value_reader(saved).text(row, "text"), str_cat("text ", row));
    EXPECT_EQ(saved.label(row), static_cast<std::int64_t>(row % 3));
  }

  const testing::temporary_directory directory;
  const std::string folder = (directory.path() / "set").string();
  fs::copy(path_of("saved"), folder);
  const auto say = [&](std::string_view name, std::string_view what) {
    std::ofstream(fs::path(folder) / name) << what;
  };
  say("state.json",
      R"({"_data_files": [{"filename": "data-00001-of-00002.arrow"}, {"filename": "data-00000-of-00002.arrow"}]})");
  const dataset turned = open(folder);
  EXPECT_EQ(testing::value_reader(turned).text(0, "text"), "text 5");
  EXPECT_EQ(testing::value_reader(turned).text(9, "text"), "text 4");
  const auto refused = [&](errc why) { return message_of(why, [&] { static_cast<void>(open(folder)); }); };
  say("state.json", R"({"_data_files": [{"filename": "../saved/data-00000-of-00002.arrow"}]})");
  EXPECT_THAT(refused(errc::format), HasSubstr("state.json: it names no file beside it"));
  say("state.json", R"({"_data_files": []})");
  EXPECT_THAT(refused(errc::format), HasSubstr("state.json: it lists no files"));
  say("state.json", R"({"_data_files": [{"filename": "none.arrow"}]})");
  EXPECT_THAT(refused(errc::not_found), HasSubstr("none.arrow"));
  say("state.json", R"({"_data_files": [{"filename": "x"}], "_indices_data_files": [{"filename": "indices.arrow"}]})");
  EXPECT_THAT(refused(errc::unsupported), HasSubstr("flatten_indices()"));
  say("dataset_dict.json", R"({"splits": ["train", "test"]})");
  fs::create_directory(fs::path(folder) / "train");
  EXPECT_THAT(refused(errc::unsupported), HasSubstr("flatten_indices()")) << "a split of two is not there";
  fs::create_directory(fs::path(folder) / "test");
  EXPECT_THAT(refused(errc::usage), AllOf(HasSubstr("give one of"), HasSubstr("set/train")));
}

// Also between two batches, where what is left looks whole.
TEST(arrow, a_file_that_does_not_end_as_one_is_refused) {
  std::ifstream whole(path_of("file.arrow"), std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(whole), {}};
  const testing::temporary_directory directory;
  const std::string path = (directory.path() / "cut.arrow").string();
  for (const std::size_t missing : {std::size_t{1}, std::size_t{10}, bytes.size() / 2}) {
    std::ofstream(path, std::ios::binary) << bytes.substr(0, bytes.size() - missing);
    EXPECT_THAT(message_of(errc::format, [&] { static_cast<void>(open_arrow(path)); }),
                HasSubstr("an Arrow file that does not end as one"))
        << missing;
  }
}

// Rows are in the order of the footer, wherever their batches lie.
TEST(arrow, batches_of_a_footer_need_not_be_in_the_order_of_the_file) {
  std::ifstream whole(path_of("file.arrow"), std::ios::binary);
  std::string bytes{std::istreambuf_iterator<char>(whole), {}};
  const auto number = [&](std::size_t at) { return number_of(dtype::i64, reinterpret_cast<std::byte*>(&bytes[at])); };
  const auto bytes_of_metadata = [&](std::size_t at) {
    return number_of(dtype::i32, reinterpret_cast<std::byte*>(&bytes[at]));
  };
  // Two blocks, each an offset, the bytes of its metadata and those of its body.
  std::size_t block = bytes.size() / 8 * 8 - 48;
  while (block != 0 && (number(block) <= 0 || number(block + 16) <= 0 ||
                        number(block) + bytes_of_metadata(block + 8) + number(block + 16) != number(block + 24)))
    block -= 2;
  ASSERT_NE(block, 0U);
  std::swap_ranges(&bytes[block], &bytes[block + 24], &bytes[block + 24]);
  const testing::temporary_directory directory;
  const std::string path = (directory.path() / "turned.arrow").string();
  std::ofstream(path, std::ios::binary) << bytes;
  const dataset samples = open_arrow(path);
  ASSERT_EQ(samples.size(), rows);
  testing::value_reader values(samples);
  const std::string first = values.text(0, "after");
  EXPECT_NE(first, "after 0");
  std::vector<std::string> all;
  for (std::uint64_t row = 0; row < rows; ++row) all.push_back(values.text(row, "after"));
  EXPECT_THAT(all, Contains("after 0"));
  bytes.replace(block, 24, bytes, block + 24, 24);
  std::ofstream(path, std::ios::binary) << bytes;
  EXPECT_THAT(message_of(errc::format, [&] { static_cast<void>(open_arrow(path)); }),
              HasSubstr("where another one is"));
}

TEST(arrow, columns_of_several_files_are_joined_by_their_names) {
  const table_options options{.columns = {"a", "b"}};
  const dataset samples = open_arrow({path_of("ab.arrow"), path_of("ba.arrow")}, options);
  const std::vector<std::int64_t> a = {0, 1, 1, 0};
  const std::vector<std::int64_t> b = {1, 0, 0, 1};
  for (std::uint64_t i = 0; i < 4; ++i) {
    EXPECT_EQ(samples.column(i, "a"), a[i]) << i;
    EXPECT_EQ(samples.column(i, "b"), b[i]) << i;
  }
  for (const auto& [one, other] : {std::pair("ab.arrow", "numbers.arrow"), std::pair("numbers.arrow", "ab.arrow")}) {
    EXPECT_THAT(
        message_of(errc::unsupported, [&] { static_cast<void>(open_arrow({path_of(one), path_of(other)}, options)); }),
        AllOf(HasSubstr("numbers.arrow: the column 'a'"), HasSubstr("open them apart")));
  }
}

TEST(arrow, batches_that_are_packed_as_before_the_format_had_a_place_for_it_are_refused) {
  EXPECT_THAT(message_of(errc::unsupported, [] { static_cast<void>(open(path_of("old-compression.arrow"))); }),
              AllOf(HasSubstr("old-compression.arrow"), HasSubstr("Arrow 0.17"), HasSubstr("LZ4"), HasSubstr("anew")));
}

TEST(arrow, a_list_with_a_null_in_it_is_a_field_that_its_row_lacks) {
  const dataset samples = open_arrow(path_of("nulls.arrow"));
  ASSERT_EQ(samples.size(), 2U);
  EXPECT_EQ(samples.fields().front().samples, 1U);
  EXPECT_EQ(number_of(dtype::i64, samples.read(1, "list").data()), 4.0);
  EXPECT_THROW(static_cast<void>(samples.read(0, "list")), error);
  EXPECT_THAT(samples.notes(), Contains(AllOf(HasSubstr("nulls.arrow: the column 'list'"),
                                              HasSubstr("1 list with a null in it"), HasSubstr("in row 0"))));
}

TEST(arrow, arrays_of_a_known_shape_are_tensors_and_rows_of_another_lack_the_field) {
  for (const char* name : {"tensors.arrow", "tensors-zstd.arrow"}) {
    SCOPED_TRACE(name);
    const dataset samples = open(path_of(name));
    testing::expect_tensors(samples);
    EXPECT_THAT(samples.notes(), Contains(AllOf(HasSubstr("'deep'"), HasSubstr("lists in lists"))));
    EXPECT_THAT(message_of(errc::unsupported, [&] { (void)open_arrow(path_of(name), {.fields = {"deep"}}); }),
                HasSubstr("write them flat"));
  }
}

TEST(arrow, lists_of_texts_and_of_bytes_are_lists_of_json) {
  for (const char* name : {"lists.arrow", "lists-zstd.arrow"}) {
    SCOPED_TRACE(name);
    const dataset samples = open(path_of(name));
    ASSERT_EQ(samples.size(), 5U);
    testing::value_reader values(samples);
    const auto expect = [&](std::uint64_t row, std::string_view words, std::string_view blobs, std::string_view pairs,
                            std::string_view names) {
      SCOPED_TRACE(row);
      EXPECT_EQ(values.text(row, "words"), words);
      EXPECT_EQ(values.text(row, "blobs"), blobs);
      EXPECT_EQ(values.text(row, "pairs"), pairs);
      EXPECT_EQ(values.text(row, "in.names"), names);
    };
    expect(0, R"(["user","Say \"hi\"\n"])", R"(["/9j/"])", R"(["0","b0"])", "[]");
    expect(1, "[]", R"(["",null])", R"(["1","b1"])", R"(["1"])");
    expect(3, R"(["",null])", "[]", R"(["3","b3"])", R"(["3","3","3"])");
    std::string sizes = "[\"";
    for (int i = 0; i < 100; ++i) sizes += "größe";
    std::string zeros;
    for (int i = 0; i < 33; ++i) zeros += "AAAA";
    expect(4, sizes + "\"]", str_cat(R"(["YWI=",")", zeros, R"(AA=="])"), R"(["4","b4"])", R"(["4","4","4","4"])");
    for (const char* field : {"words", "blobs", "pairs", "in.names"}) {
      EXPECT_THROW(static_cast<void>(samples.read(2, field)), error) << field;
    }
    for (const field_info& field : samples.fields()) {
      EXPECT_EQ(field.kind, field_kind::bytes);
      EXPECT_EQ(field.samples, 4U);
      EXPECT_TRUE(field.chunked);
    }
    EXPECT_THAT(samples.notes(), Contains(AllOf(HasSubstr("'blobs' has lists of bytes"), HasSubstr("base64"))));
    EXPECT_EQ(samples.model()->blocks().size(), 2U) << "batches";
    EXPECT_THAT(message_of(errc::unsupported, [&] { (void)open_arrow(path_of(name), {.columns = {"words"}}); }),
                HasSubstr("has lists"));
  }
}

TEST(arrow, lists_of_several_widths_are_widened_where_that_is_exact) {
  struct pair_of_widths {
    std::string one, other;
    std::optional<dtype> both;
  };
  const std::vector<pair_of_widths> pairs = {{"i32", "i64", dtype::i64},   {"i16", "i32", dtype::i32},
                                             {"u16", "u32", dtype::u32},   {"u16", "i16", dtype::i32},
                                             {"u32", "i16", dtype::i64},   {"u32", "u64", dtype::u64},
                                             {"f32", "f64", dtype::f64},   {"u64", "i64", std::nullopt},
                                             {"i32", "f64", std::nullopt}, {"i64", "f32", std::nullopt}};
  const auto expect = [](const dataset& samples, dtype type, const std::string& one, const std::string& other) {
    ASSERT_EQ(samples.size(), 12U);
    EXPECT_EQ(samples.fields().front().type, type);
    for (std::uint64_t row = 0; row < 12; ++row) {
      const auto r = static_cast<int>(row % 6);
      if (r == 4) {
        EXPECT_THROW(static_cast<void>(samples.read(row, "ids")), error);
        continue;
      }
      const std::vector<std::byte> bytes = samples.read(row, "ids");
      ASSERT_EQ(bytes.size(), static_cast<std::size_t>(r) * size_bytes(type));
      for (int i = 0; i < r; ++i) {
        const int sign = (row < 6 ? one : other).front() == 'u' ? 0 : 1;
        EXPECT_EQ(number_of(type, bytes.data() + static_cast<std::size_t>(i) * size_bytes(type)), r * 3 - i * sign);
      }
    }
  };
  for (const auto& [first, second, both] : pairs) {
    for (const auto& [one, other] : {std::pair(first, second), std::pair(second, first)}) {
      SCOPED_TRACE(str_cat(one, " and ", other));
      const std::vector<std::string> paths = {path_of(str_cat("width-", one, ".arrow")),
                                              path_of(str_cat("width-", other, ".arrow"))};
      if (both) {
        expect(open_arrow(paths), *both, one, other);
      } else {
        EXPECT_THAT(message_of(errc::unsupported, [&] { static_cast<void>(open_arrow(paths)); }),
                    HasSubstr("'ids' is of another type"));
      }
    }
  }
  // In blocks, too.
  const std::vector<std::string> packed = {path_of("../parquet/width-i32.parquet"),
                                           path_of("../parquet/width-i64.parquet")};
  expect(open_parquet(packed), dtype::i64, "i32", "i64");
}

TEST(arrow, what_datasets_keeps_of_filter_and_select_is_named_for_what_it_is) {
  EXPECT_THAT(
      message_of(errc::unsupported, [] { static_cast<void>(open(path_of("indices.arrow"))); }),
      AllOf(HasSubstr("indices.arrow"), HasSubstr("numbers of rows of another file"), HasSubstr("flatten_indices()")));
  EXPECT_EQ(open_arrow(path_of("indices.arrow"), {.columns = {"indices"}}).column(2, "indices"), 4);
}

TEST(arrow, files_that_were_cut_or_changed_come_to_an_end) {
  const testing::temporary_directory root;
  const std::string path = (root.path() / "changed.arrow").string();
  std::mt19937_64 random(4);
  for (const char* name : {"stream.arrow", "file.arrow", "lz4.arrow", "polars.arrow", "lists.arrow", "lists-zstd.arrow",
                           "tensors.arrow", "tensors-zstd.arrow", "times.arrow"}) {
    std::ifstream from(path_of(name), std::ios::binary);
    const std::string whole(std::istreambuf_iterator<char>(from), {});
    int refused = 0;
    for (int i = 0; i < 100; ++i) {
      std::string content = whole;
      // Every other time where the schema lies.
      const std::size_t reach = i % 2 == 0 ? std::min<std::size_t>(3000, content.size()) : content.size();
      for (std::uint64_t k = 0; k <= random() % 3; ++k) content[random() % reach] = static_cast<char>(random());
      if (i % 10 == 9) content.resize(random() % content.size());
      std::ofstream(path, std::ios::binary) << content;
      try {
        const std::string_view of = name;
        const bool is_usual = !of.starts_with("lists") && !of.starts_with("tensors");
        const dataset samples = open_arrow(path, {.columns = of.starts_with("times") ? testing::names_of_times
                                                             : is_usual ? std::vector<std::string>{"small", "species"}
                                                                        : std::vector<std::string>()});
        for (std::uint64_t row = 0; row < std::min<std::uint64_t>(samples.size(), 200); ++row) {
          datasets::part_list parts;
          samples.model()->parts(row, parts);
          for (const datasets::part& each : parts)
            ASSERT_LE(each.where.offset + each.where.stored_bytes, content.size());
          if (is_usual || row > 5) continue;
          for (const field_info& field : samples.model()->fields()) {
            try {
              static_cast<void>(samples.read(row, field.name));
            } catch (const error& damaged) {
              EXPECT_THAT(damaged.what(), HasSubstr("changed.arrow"));
            }
          }
        }
      } catch (const error& said) {
        ++refused;
        ASSERT_THAT(said.what(), HasSubstr("changed.arrow"));
      }
    }
    EXPECT_GT(refused, 20) << name;
  }
}

}  // namespace
}  // namespace leat
