// Parquet files that pyarrow wrote (tests/data/parquet/make.py): every value is known from its row.
#include "base/text.hpp"
#include "datasets/codecs/snappy.hpp"
#include "datasets/model/model.hpp"
#include "datasets/wire/thrift_compact.hpp"
#include "tests/datasets/numbered_arrays.hpp"
#include "tests/datasets/tensors_of_tables.hpp"
#include "tests/datasets/times_of_tables.hpp"
#include "tests/datasets/value_reader.hpp"
#include "tests/support/temporary_directory.hpp"

#include <leat/error.hpp>
#include <leat/open.hpp>
#include <leat/open_arrays.hpp>
#include <leat/open_tables.hpp>
#include <leat/samples.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <tuple>
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

std::string path_of(const std::string& name) { return std::string(LEAT_TEST_DATA) + "/parquet/" + name; }

std::string picture_of(std::uint64_t row) {
  std::string text = "\xff\xd8\xff\xe0";
  for (std::uint64_t i = 0; i < row * 7 % 23; ++i) text += std::to_string(row);
  return text;
}

const field_info& info_of(const std::vector<field_info>& fields, const std::string& name) {
  for (const field_info& each : fields) {
    if (each.name == name) return each;
  }
  ADD_FAILURE() << "no field " << name;
  return fields.front();
}

void expect_pictures(const dataset& samples) {
  ASSERT_EQ(samples.size(), rows);
  const std::vector<field_info> fields = samples.fields();
  EXPECT_EQ(info_of(fields, "image").kind, field_kind::picture);
  EXPECT_EQ(info_of(fields, "image").samples, 90U);
  testing::value_reader values(samples);
  for (std::uint64_t row = 0; row < rows; ++row) {
    if (row % 10 == 5) {
      EXPECT_THROW(static_cast<void>(samples.read(row, "image")), error);
    } else {
      ASSERT_EQ(values.text(row, "image"), picture_of(row)) << row;
    }
    ASSERT_EQ(samples.label(row), row % 3);
  }
  EXPECT_THAT(samples.classes(), ElementsAre("cat", "dog", "eel"));
}

TEST(parquet, values_that_lie_as_they_are_are_read_where_they_lie_from_pages_of_either_version) {
  for (const char* name : {"bare-v1.parquet", "bare-v2.parquet"}) {
    SCOPED_TRACE(name);
    const dataset samples = open(path_of(name));
    expect_pictures(samples);
    testing::value_reader values(samples);
    EXPECT_EQ(info_of(samples.fields(), "text").kind, field_kind::text);
    for (std::uint64_t row = 0; row < rows; ++row) {
      if (row % 7 != 3) ASSERT_EQ(values.text(row, "text"), "text " + std::to_string(row));
      ASSERT_EQ(values.text(row, "fixed").front(), static_cast<char>(row));
    }
    EXPECT_EQ(info_of(samples.fields(), "text").samples, 86U);
    EXPECT_EQ(info_of(samples.fields(), "text").expand_bytes_max, 0U);
    EXPECT_LE(samples.memory().extents, rows * 24 * 4);
    EXPECT_THAT(samples.notes(), Contains(AllOf(HasSubstr("numbers that are not kept"), HasSubstr("score"))));
    EXPECT_THAT(samples.notes(), Contains(AllOf(HasSubstr("'ids.list.element'"), HasSubstr("has lists (lists)"))));
    EXPECT_THAT(samples.notes(), Contains(AllOf(HasSubstr("numbers that are not kept"), HasSubstr("when"))));
  }
}

void expect_packed_texts(const dataset& samples) {
  const std::vector<field_info> fields = samples.fields();
  const field_info& info = info_of(fields, "text");
  EXPECT_EQ(info.kind, field_kind::text);
  EXPECT_EQ(info.samples, 86U);
  EXPECT_EQ(info.bytes_max, 7U);
  EXPECT_TRUE(info.chunked);
  // A page of each, and a dictionary, or the lengths of its values.
  EXPECT_GT(info.expand_bytes_max, 0U);
  EXPECT_LT(info.expand_bytes_max, 10'000U);
  testing::value_reader values(samples);
  for (std::uint64_t row = 0; row < rows; ++row) {
    if (row % 7 != 3) ASSERT_EQ(values.text(row, "text"), str_cat("text ", row));
  }
  EXPECT_THROW(static_cast<void>(samples.read(3, "text")), error);
  EXPECT_THAT(samples.notes(), Contains(AllOf(HasSubstr("'text' is packed ("), HasSubstr("shuffle blocks"))));
}

TEST(parquet, a_set_as_the_hub_has_it_gives_pictures_classes_and_packed_texts) {
  const dataset samples = open(path_of("hub.parquet"));
  expect_pictures(samples);
  expect_packed_texts(samples);
  EXPECT_THAT(samples.notes(), Contains(HasSubstr("'text' is packed (snappy, dictionary)")));
  EXPECT_EQ(info_of(samples.fields(), "text").chunk, dimensions({64}));
  EXPECT_EQ(samples.model()->blocks().size(), 2U);
  EXPECT_EQ(samples.model()->blocks().first(1), 64U);
}

TEST(parquet, numbers_and_texts_are_kept_where_they_are_asked_for_whatever_their_codec_and_encoding) {
  for (const char* codec : {"snappy", "gzip", "zstd", "lz4"}) {
    SCOPED_TRACE(codec);
    const dataset samples =
        open_parquet(path_of(str_cat("packed-", codec, ".parquet")),
                     {.columns = {"id", "small", "score", "wide", "half", "species", "flag", "gaps"}});
    ASSERT_EQ(samples.size(), rows);
    expect_packed_texts(samples);
    EXPECT_LE(open_parquet(path_of(str_cat("packed-", codec, ".parquet")), {.fields = {"text"}}).memory().extents,
              rows * 4 + 4 * 32);
    EXPECT_THAT(samples.classes(), ElementsAre("cat", "dog", "eel"));
    for (std::uint64_t row = 0; row < rows; ++row) {
      const auto number = static_cast<std::int64_t>(row);
      ASSERT_EQ(samples.column(row, "label"), number % 3);
      ASSERT_EQ(samples.column(row, "id"), number * 1000003 - 500);
      ASSERT_EQ(samples.column(row, "small"), number * 2);
      ASSERT_EQ(samples.column(row, "flag"), number % 3 == 0 ? 1 : 0);
      ASSERT_EQ(samples.column(row, "species"), number * 7 % 5);
      ASSERT_EQ(samples.column(row, "gaps"), number % 2 == 0 ? std::optional(number) : std::nullopt);
      for (const char* name : {"score", "wide", "half"}) {
        ASSERT_EQ(samples.number(row, name), static_cast<double>(row) / 4) << name;
      }
    }
    for (const field_info& field : samples.fields()) {
      if (field.name == "score") EXPECT_TRUE(field.column && field.type == dtype::f32);
      if (field.name == "wide") EXPECT_TRUE(field.column && field.type == dtype::f64);
      if (field.name == "half") EXPECT_TRUE(field.column && field.type == dtype::f16);
    }
  }
}

TEST(parquet, dates_times_and_decimals_are_numbers_in_the_unit_of_the_file) {
  for (const char* name : {"times.parquet", "times-zstd.parquet"}) {
    SCOPED_TRACE(name);
    const dataset samples = open_parquet(path_of(name), {.columns = testing::names_of_times});
    testing::expect_times(samples, "milliseconds since 1970-01-01", 1000);
    EXPECT_THAT(open_parquet(path_of(name)).notes(),
                Contains(AllOf(HasSubstr("numbers that are not kept"), HasSubstr("price"), HasSubstr("nano"))));
  }
  // Times of 96 bits: a day and its nanoseconds.
  const dataset old = open_parquet(path_of("times-96.parquet"), {.columns = {"second", "nano"}});
  for (std::int64_t i = 0; i < 6; ++i) {
    const auto row = static_cast<std::uint64_t>(i);
    if (i == 4) EXPECT_EQ(old.column(row, "nano"), std::nullopt);
    if (i == 4) continue;
    EXPECT_EQ(old.column(row, "second"), (i * 86'401 - 200'000) * 1'000'000'000);
    EXPECT_EQ(old.column(row, "nano"), i * 1'000'000'007 - 2'000'000'000);
  }
  EXPECT_THAT(old.notes(), Contains(HasSubstr("'second' is in nanoseconds since 1970-01-01")));
}

TEST(parquet, a_time_is_in_one_unit_in_all_files) {
  const source_names files = {path_of("times.parquet"), path_of("times-96.parquet")};
  EXPECT_THAT(message_of(errc::unsupported, [&] { static_cast<void>(open_parquet(files, {.columns = {"second"}})); }),
              AllOf(HasSubstr("times-96.parquet: the column 'second' is in nanoseconds since"),
                    HasSubstr("times.parquet in milliseconds since"), HasSubstr("one unit")));
  EXPECT_EQ(open_parquet(files, {.columns = {"nano"}}).size(), 12U);
}

TEST(parquet, texts_that_are_asked_for_as_a_column_are_classes_in_their_order_over_all_files) {
  const dataset samples = open_parquet({path_of("bare-v1.parquet"), path_of("bare-v2.parquet")},
                                       {.fields = {"image"}, .columns = {"species"}});
  ASSERT_EQ(samples.size(), 2 * rows);
  EXPECT_THAT(samples.classes(), ElementsAre("s0", "s1", "s2", "s3", "s4"));
  for (std::uint64_t row = 0; row < 2 * rows; ++row) EXPECT_EQ(samples.label(row), row % rows * 7 % 5);
  EXPECT_EQ(samples.fields().size(), 2U);
}

TEST(parquet, what_is_not_there_or_not_read_is_named_with_what_to_do) {
  const auto wanting = [](const std::string& file, const std::string& name) {
    return [=] { static_cast<void>(open_parquet(path_of(file), {.fields = {name}})); };
  };
  EXPECT_THAT(message_of(errc::not_found, wanting("bare-v1.parquet", "imag")),
              AllOf(HasSubstr("'imag'"), HasSubstr("did you mean 'image'")));
  EXPECT_THAT(message_of(errc::unsupported, wanting("lists-bare.parquet", "deep")), HasSubstr("lists in lists"));
  EXPECT_THAT(message_of(errc::unsupported,
                         [] { static_cast<void>(open_parquet(path_of("lists-bare.parquet"), {.columns = {"ids"}})); }),
              HasSubstr("name it as a field"));
  EXPECT_THAT(message_of(errc::unsupported,
                         [] { static_cast<void>(open_parquet(path_of("brotli.parquet"), {.columns = {"id"}})); }),
              AllOf(HasSubstr("brotli"), HasSubstr("zstd")));
  EXPECT_THAT(message_of(errc::unsupported, [] { static_cast<void>(open(path_of("brotli.parquet"))); }),
              HasSubstr("no column of it can be read"));
  for (const auto& [name, what] : {std::pair("encrypted-columns.parquet", "encrypted columns"),
                                   std::pair("encrypted-footer.parquet", "footer is encrypted")}) {
    EXPECT_THAT(message_of(errc::unsupported, [&] { static_cast<void>(open(path_of(name))); }),
                AllOf(HasSubstr(name), HasSubstr(what), HasSubstr("decrypt it with")));
  }
  EXPECT_THAT(
      message_of(errc::usage, [] { static_cast<void>(open({path_of("bare-v1.parquet")}, {.arrays = {.window = 3}})); }),
      HasSubstr("array_options::window is of .npy, .npz, HDF5 and Zarr"));
  EXPECT_THAT(
      message_of(errc::usage,
                 [] { static_cast<void>(open({path_of("../npz/mixed.npz")}, {.tables = {.columns = {"x"}}})); }),
      HasSubstr("table_options::columns is of Parquet"));
}

template <class T>
std::vector<T> elements_of(const std::vector<std::byte>& bytes) {
  std::vector<T> elements(bytes.size() / sizeof(T));
  if (!bytes.empty()) std::memcpy(elements.data(), bytes.data(), elements.size() * sizeof(T));
  return elements;
}

TEST(parquet, lists_of_numbers_are_their_elements) {
  for (const char* name : {"lists-bare.parquet", "lists-snappy.parquet", "lists-zstd.parquet"}) {
    SCOPED_TRACE(name);
    const dataset samples = open(path_of(name));
    ASSERT_EQ(samples.size(), rows);
    const std::vector<field_info> fields = samples.fields();
    std::vector<std::string> names;
    for (const field_info& each : fields) {
      names.push_back(each.name);
      EXPECT_TRUE(each.chunked);
      EXPECT_EQ(each.kind, field_kind::bytes);
    }
    EXPECT_THAT(names, ElementsAre("ids", "wide", "small", "scores", "doubles", "flags", "objects.category",
                                   "objects.name", "inside.ids", "texts"));
    EXPECT_EQ(info_of(fields, "ids").type, dtype::i32);
    EXPECT_EQ(info_of(fields, "ids").samples, 91U);
    EXPECT_EQ(info_of(fields, "ids").bytes_max, 12U);
    EXPECT_EQ(info_of(fields, "wide").type, dtype::i64);
    EXPECT_EQ(info_of(fields, "small").type, dtype::u32);
    EXPECT_EQ(info_of(fields, "scores").type, dtype::f32);
    EXPECT_EQ(info_of(fields, "doubles").type, dtype::f64);
    EXPECT_THAT(samples.notes(), Contains(AllOf(HasSubstr("'deep.list.element.list.element'"), HasSubstr("left out"))));
    testing::value_reader values(samples);
    for (std::uint64_t row = 0; row < rows; ++row) {
      SCOPED_TRACE(row);
      const auto number = static_cast<std::int64_t>(row);
      std::vector<std::int32_t> categories;
      for (std::int64_t k = 0; k < number % 3; ++k) categories.push_back(static_cast<std::int32_t>(number + k));
      EXPECT_EQ(elements_of<std::int32_t>(values.read(row, "objects.category")), categories);
      EXPECT_EQ(elements_of<std::int32_t>(values.read(row, "inside.ids")),
                std::vector<std::int32_t>(row % 2, static_cast<std::int32_t>(row)));
      if (row % 11 == 2) {
        for (const char* is_null : {"ids", "wide", "small", "scores", "doubles", "flags"}) {
          EXPECT_THROW(static_cast<void>(samples.read(row, is_null)), error);
        }
        continue;
      }
      std::vector<std::int32_t> ids;
      for (std::int64_t k = 0; k < number % 4; ++k) ids.push_back(static_cast<std::int32_t>(k));
      EXPECT_EQ(elements_of<std::int32_t>(values.read(row, "ids")), ids);
      std::vector<std::int64_t> wide;
      for (std::int64_t k = 0; k < number % 7; ++k) wide.push_back(number * 1'000'003 - k);
      EXPECT_EQ(elements_of<std::int64_t>(values.read(row, "wide")), wide);
      std::vector<std::uint32_t> small;
      for (std::int64_t k = 0; k < number % 3; ++k) small.push_back(static_cast<std::uint32_t>((number + k) % 256));
      EXPECT_EQ(elements_of<std::uint32_t>(values.read(row, "small")), small);
      EXPECT_EQ(elements_of<float>(values.read(row, "scores")),
                std::vector<float>(row % 5, static_cast<float>(row) / 4));
      const double eighth = static_cast<double>(row) / 8;
      EXPECT_EQ(elements_of<double>(values.read(row, "doubles")), (std::vector<double>{eighth, -eighth}));
      EXPECT_EQ(elements_of<std::uint8_t>(values.read(row, "flags")),
                (std::vector<std::uint8_t>{static_cast<std::uint8_t>(row % 2 == 0), 1, 0}));
    }
  }
}

TEST(parquet, arrays_of_the_hub_are_their_numbers_row_after_row) {
  const dataset samples = open(path_of("hub-arrays.parquet"));
  ASSERT_EQ(samples.size(), 5U);
  EXPECT_EQ(info_of(samples.fields(), "grid").type, dtype::f32);
  EXPECT_EQ(info_of(samples.fields(), "cube").type, dtype::i64);
  EXPECT_EQ(info_of(samples.fields(), "grid").kind, field_kind::tensor);
  EXPECT_EQ(info_of(samples.fields(), "grid").shape, (dimensions{2, 3}));
  EXPECT_EQ(info_of(samples.fields(), "cube").kind, field_kind::bytes) << "rows choose an extent";
  EXPECT_THAT(samples.notes(), Contains(HasSubstr("'cube' has arrays of any x 2 x 2: ")));
  EXPECT_THAT(samples.notes(), Contains(AllOf(HasSubstr("'deep."), HasSubstr("has lists in lists"))));
  const auto numbers = [&]<class T>(std::uint64_t row, const std::string& field, T) {
    const std::vector<std::byte> bytes = samples.read(row, field);
    std::vector<T> all(bytes.size() / sizeof(T));
    std::memcpy(all.data(), bytes.data(), bytes.size());
    return all;
  };
  for (std::uint64_t row = 0; row < 5; ++row) {
    const auto r = static_cast<float>(row);
    EXPECT_THAT(numbers(row, "grid", 0.0F), ElementsAre(r * 6 + 0.5F, r + 1, r + 2, r + 3, r + 4, r + 5));
    const auto first = static_cast<std::int64_t>(row);
    if (row != 3) {
      EXPECT_THAT(numbers(row, "cube", std::int64_t{0}), ElementsAre(first, 1, 2, 3, first, 1, 2, 3));
    }
  }
  EXPECT_THROW(static_cast<void>(samples.read(3, "cube")), error);
}

TEST(parquet, arrays_of_a_known_shape_are_tensors_and_rows_of_another_lack_the_field) {
  const dataset samples = open(path_of("tensors.parquet"));
  testing::expect_tensors(samples);
  EXPECT_EQ(info_of(samples.fields(), "open").type, dtype::i32);
  EXPECT_THAT(samples.notes(), Contains(HasSubstr("lists in lists")));
}

TEST(parquet, lists_of_texts_and_of_bytes_are_lists_of_json) {
  const std::vector<std::string> all = {"messages.role", "messages.content", "images.bytes", "images.path"};
  const dataset samples = open_parquet(path_of("lists-of-texts.parquet"), {.fields = all});
  ASSERT_EQ(samples.size(), 5U);
  std::vector<std::string> names;
  for (const field_info& each : samples.fields()) {
    names.push_back(each.name);
    EXPECT_EQ(each.kind, field_kind::bytes);
  }
  EXPECT_THAT(names, ElementsAre("messages.role", "messages.content", "images.bytes", "images.path"));
  EXPECT_EQ(info_of(samples.fields(), "messages.role").samples, 4U);
  testing::value_reader values(samples);
  const auto expect = [&](std::uint64_t row, std::string_view role, std::string_view content, std::string_view path) {
    SCOPED_TRACE(row);
    EXPECT_EQ(values.text(row, "messages.role"), role);
    EXPECT_EQ(values.text(row, "messages.content"), content);
    EXPECT_EQ(values.text(row, "images.path"), path);
  };
  expect(0, R"(["user","assistant"])", R"(["Say \"hi\"\n","größe €\\\t\u0001\u001f/"])", R"(["a.png"])");
  expect(1, "[]", "[]", "[]");
  EXPECT_THROW(static_cast<void>(samples.read(2, "messages.role")), error);
  EXPECT_THROW(static_cast<void>(samples.read(2, "messages.content")), error);
  expect(3, R"(["",null,null])", R"([null,"",null])", R"(["",""])");
  expect(4, R"(["system"])", str_cat("[\"", std::string(3000, 'x'), "\"]"), "[null]");
  EXPECT_EQ(values.text(0, "images.bytes"), R"(["MQ=="])");
  EXPECT_EQ(values.text(1, "images.bytes"), "[]");
  EXPECT_EQ(values.text(3, "images.bytes"), R"(["Mg==",""])");
  EXPECT_EQ(values.text(4, "images.bytes"), "[null]");
}

TEST(parquet, a_list_of_structs_of_roles_and_contents_is_the_chats_that_jsonl_has) {
  const dataset samples = open(path_of("lists-of-texts.parquet"));
  std::vector<std::string> names;
  for (const field_info& each : samples.fields()) names.push_back(each.name);
  EXPECT_THAT(names, ElementsAre("messages", "images.bytes", "images.path"));
  EXPECT_EQ(info_of(samples.fields(), "messages").samples, 4U);
  testing::value_reader values(samples);
  EXPECT_EQ(values.text(0, "messages"),
            R"([{"role":"user","content":"Say \"hi\"\n"},{"role":"assistant","content":"größe €\\\t\u0001\u001f/"}])");
  EXPECT_EQ(values.text(1, "messages"), "[]");
  EXPECT_THROW(static_cast<void>(samples.read(2, "messages")), error);
  EXPECT_EQ(values.text(3, "messages"),
            R"([{"role":"","content":null},{"role":null,"content":""},{"role":null,"content":null}])");
  EXPECT_EQ(values.text(4, "messages"), str_cat(R"([{"role":"system","content":")", std::string(3000, 'x'), R"("}])"));
  const dataset asked = open_parquet(path_of("lists-of-texts.parquet"), {.fields = {"messages"}});
  ASSERT_EQ(asked.fields().size(), 1U);
  EXPECT_EQ(asked.fields().front().name, "messages");
  const dataset one = open_parquet(path_of("lists-of-texts.parquet"), {.fields = {"messages.content"}});
  EXPECT_EQ(one.fields().front().name, "messages.content");
}

TEST(parquet, chats_whose_roles_lie_behind_their_contents_are_chats_and_those_that_call_tools_are_none) {
  const dataset samples = open(path_of("chats.parquet"));
  std::vector<std::string> names;
  for (const field_info& each : samples.fields()) names.push_back(each.name);
  EXPECT_THAT(names, ElementsAre("id", "messages", "messages.name"));
  testing::value_reader values(samples);
  for (const std::uint64_t row : {39U, 0U, 16U, 15U}) {
    std::string answer = "and";
    for (std::uint64_t i = 0; i < row % 11; ++i) answer += " words of 12345";
    EXPECT_EQ(values.text(row, "messages"), str_cat(R"([{"role":"user","content":"the others )", row,
                                                    R"("},{"role":"assistant","content":")", answer, R"("}])"));
  }
  const dataset calling = open(path_of("chats-with-calls.parquet"));
  for (const field_info& each : calling.fields()) EXPECT_NE(each.name, "messages");
}

TEST(parquet, a_list_with_a_null_in_it_is_a_field_that_its_row_lacks) {
  const dataset samples = open(path_of("lists-with-nulls.parquet"));
  ASSERT_EQ(samples.size(), 2U);
  EXPECT_EQ(info_of(samples.fields(), "list").samples, 1U);
  EXPECT_EQ(elements_of<std::int64_t>(samples.read(1, "list")), (std::vector<std::int64_t>{4}));
  EXPECT_THROW(static_cast<void>(samples.read(0, "list")), error);
  EXPECT_THAT(samples.notes(), Contains(AllOf(HasSubstr("lists-with-nulls.parquet: the column 'list.list.element'"),
                                              HasSubstr("1 list with a null in it"), HasSubstr("in row 0"))));
  EXPECT_THAT(open_parquet(path_of("lists-with-nulls.parquet"), {.fields = {"id"}}).notes(), ElementsAre());
}

TEST(parquet, columns_of_one_name_and_columns_of_another_type_in_another_file_are_refused) {
  EXPECT_THAT(message_of(errc::format, [] { static_cast<void>(open(path_of("twice.parquet"))); }),
              AllOf(HasSubstr("twice.parquet: two of its columns are called 'a'"), HasSubstr("table_options::fields")));
  EXPECT_EQ(open_parquet(path_of("twice.parquet"), {.fields = {"species"}}).column(1, "species"), 8);
  for (const auto& [one, other] :
       {std::pair("bare-v1.parquet", "twice.parquet"), {"twice.parquet", "bare-v1.parquet"}}) {
    const std::vector<std::string> both = {path_of(one), path_of(other)};
    EXPECT_THAT(
        message_of(errc::unsupported, [&] { static_cast<void>(open_parquet(both, {.columns = {"species"}})); }),
        AllOf(HasSubstr(str_cat(other, ": the column 'species' is of another type")), HasSubstr("open them apart")));
  }
}

std::string content_of(const std::string& name) {
  std::ifstream from(path_of(name), std::ios::binary);
  return {std::istreambuf_iterator<char>(from), {}};
}

// Whatever becomes of it, it is read or refused, and what lies beyond the file is no value.
TEST(parquet, files_that_were_cut_or_changed_come_to_an_end) {
  const testing::temporary_directory root;
  const std::string path = (root.path() / "changed.parquet").string();
  std::mt19937_64 random(11);
  for (const char* name : {"bare-v1.parquet", "bare-v2.parquet", "packed-zstd.parquet", "packed-gzip.parquet",
                           "lists-snappy.parquet", "tensors.parquet", "times-zstd.parquet"}) {
    const std::string whole = content_of(name);
    std::uint32_t footer_bytes = 0;
    std::memcpy(&footer_bytes, whole.data() + whole.size() - 8, sizeof footer_bytes);
    int refused = 0;
    for (int i = 0; i < 60; ++i) {
      std::string content = whole;
      const bool in_footer = i % 2 == 0;
      for (std::uint64_t k = 0; k <= random() % 3; ++k) {
        const std::size_t at =
            in_footer ? content.size() - 8 - footer_bytes + random() % footer_bytes : random() % content.size();
        content[at] = static_cast<char>(random());
      }
      if (i % 10 == 9) content.erase(random() % content.size(), random() % 100);
      std::ofstream(path, std::ios::binary) << content;
      try {
        table_options options;
        if (std::string_view(name).starts_with("times")) options.columns = testing::names_of_times;
        if (std::string_view(name).find("-v") != std::string_view::npos || std::string_view(name).starts_with("packed"))
          options.columns = {"id", "score", "species", "gaps"};
        const dataset samples = open_parquet(path, options);
        for (std::uint64_t row = 0; row < std::min<std::uint64_t>(samples.size(), rows); row += 9) {
          datasets::part_list parts;
          samples.model()->parts(row, parts);
          for (const datasets::part& each : parts)
            ASSERT_LE(each.where.offset + each.where.stored_bytes, content.size());
        }
        if (i % 9 == 0 && samples.model()->find_field("text") && samples.size() > 7) {
          static_cast<void>(samples.read(7, "text"));
        }
        if (i % 9 == 0 && samples.model()->find_field("ids") && samples.size() > 7) {
          static_cast<void>(samples.read(7, "ids"));
        }
      } catch (const error& said) {
        ++refused;
        ASSERT_THAT(said.what(), HasSubstr("changed.parquet"));
      }
    }
    EXPECT_GT(refused, 5) << name;
  }
}

TEST(parquet, damage_is_named_with_file_and_offset) {
  const testing::temporary_directory root;
  const std::string path = (root.path() / "x.parquet").string();
  const auto opening = [&](const std::string& content) {
    std::ofstream(path, std::ios::binary) << content;
    return [&] { static_cast<void>(open_parquet(path)); };
  };
  const std::string whole = content_of("bare-v1.parquet");
  EXPECT_THAT(message_of(errc::format, opening(whole.substr(0, whole.size() - 1))),
              AllOf(HasSubstr("x.parquet"), HasSubstr("PAR1")));
  EXPECT_THAT(message_of(errc::format, opening("PAR1")), HasSubstr("too short"));
  EXPECT_THAT(message_of(errc::format, opening("PAR1" + std::string(4, '\xff') + "PAR1")),
              HasSubstr("a footer of 4294967295 bytes"));
  std::string encrypted = whole;
  encrypted.replace(encrypted.size() - 4, 4, "PARE");
  EXPECT_THAT(message_of(errc::unsupported, opening(encrypted)), HasSubstr("encrypted"));
}

/// A copy of a file, of which bytes are changed.
class changed_copy {
 public:
  explicit changed_copy(const std::string& name) : content_(content_of(name)), path_((root_.path() / name).string()) {
    write();
  }
  /// Changes a bit of the byte at `offset` from where `text` begins.
  void flip(std::string_view text, std::size_t offset) {
    const std::size_t at = content_.find(text);
    ASSERT_NE(at, std::string::npos);
    content_[at + offset] = static_cast<char>(content_[at + offset] ^ 1);
    write();
  }
  [[nodiscard]] const std::string& path() const noexcept { return path_; }

 private:
  void write() { std::ofstream(path_, std::ios::binary) << content_; }

  testing::temporary_directory root_;
  std::string content_;
  std::string path_;
};

std::string text_of(const dataset& samples, std::uint64_t row, const std::string& field) {
  const std::vector<std::byte> bytes = samples.read(row, field);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

TEST(parquet, pages_that_deny_being_compressed_are_expanded_where_their_writer_did_that) {
  const dataset samples = open_parquet(path_of("old-writer.parquet"), {.columns = {"x"}});
  ASSERT_EQ(samples.size(), 1000U);
  for (std::uint64_t row = 0; row < 1000; row += 37) {
    EXPECT_EQ(samples.column(row, "x"), row % 100);
    EXPECT_EQ(text_of(samples, row, "text"), str_cat("text ", row % 7));
  }
}

TEST(parquet, a_number_that_does_not_fit_the_width_of_its_column_is_damage) {
  const auto as_stored = [](std::uint32_t first) {
    std::string bytes(8, '\0');
    const std::uint32_t both[] = {first, first + 1};
    std::memcpy(bytes.data(), both, sizeof both);
    return bytes;
  };
  for (const auto& [name, byte, column] :
       {std::tuple("i8", 1, 0), std::tuple("u8", 1, 1), std::tuple("i16", 2, 2), std::tuple("u16", 2, 3)}) {
    changed_copy copy("narrow.parquet");
    EXPECT_EQ(open_parquet(copy.path(), {.columns = {name}}).column(7, name), 8) << name;
    // The columns follow one another, and each begins with 1, 2.
    std::string content = content_of("narrow.parquet");
    std::size_t at = content.find(as_stored(1));
    for (int i = 0; i < column; ++i) at = content.find(as_stored(1), at + 1);
    ASSERT_NE(at, std::string::npos);
    content[at + static_cast<std::size_t>(byte)] = 1;
    std::ofstream(copy.path(), std::ios::binary) << content;
    EXPECT_THAT(message_of(errc::format, [&] { (void)open_parquet(copy.path(), {.columns = {name}}); }),
                AllOf(HasSubstr("narrow.parquet"), HasSubstr(str_cat("'", name, "'")), HasSubstr("bits")));
  }
}

TEST(parquet, rows_and_lists_of_values_that_are_all_alike_are_no_damage) {
  const dataset rows_alike = open_parquet(path_of("alike.parquet"));
  ASSERT_EQ(rows_alike.size(), 2'000'000U);
  EXPECT_EQ(rows_alike.column(1'999'999, "label"), 0);
  const dataset lists = open_parquet(path_of("long-list.parquet"));
  EXPECT_EQ(lists.size(), 2U);
  EXPECT_EQ(elements_of<std::int32_t>(lists.read(0, "list")).size(), 5'000'000U);
  EXPECT_THAT(elements_of<std::int32_t>(lists.read(1, "list")), ElementsAre(1));
}

TEST(parquet, checksums_of_pages_are_verified_where_pages_are_read_and_elsewhere_on_demand) {
  const std::string value(100, '\7');
  changed_copy bare("checksums-bare.parquet");
  EXPECT_THAT(open_parquet(bare.path()).notes(), Contains(HasSubstr("checksums present, not verified")));
  EXPECT_EQ(text_of(open_parquet(bare.path(), {.checksums = true}), 7, "bare"), std::string(400, '\7'));
  bare.flip(value, 20);
  EXPECT_THAT(message_of(errc::format, [&] { (void)open_parquet(bare.path(), {.checksums = true}); }),
              AllOf(HasSubstr("CRC-32"), HasSubstr("'bare'")));
  changed_copy packed("checksums-packed.parquet");
  EXPECT_EQ(text_of(open_parquet(packed.path()), 7, "bare"), std::string(400, '\7'));
  const std::string content = content_of("checksums-packed.parquet");
  packed.flip(content.substr(200, 20), 0);
  EXPECT_THAT(message_of(errc::format, [&] { (void)open_parquet(packed.path()); }), HasSubstr("CRC-32"));
}

TEST(parquet, an_odd_column_is_left_out_and_the_others_load) {
  const dataset samples = open_parquet(path_of("odd-columns.parquet"));
  ASSERT_EQ(samples.size(), 40U);
  EXPECT_THAT(samples.notes(), Contains(HasSubstr("has no name")));
  EXPECT_THAT(samples.notes(), Contains(AllOf(HasSubstr("'text'"), HasSubstr("dictionary"))));
  for (std::uint64_t row = 0; row < 40; row += 3) {
    EXPECT_EQ(text_of(samples, row, "text"),
              str_cat("text ", row % 5));  // by a dictionary that the footer does not name
    const std::string digits = std::to_string(row * 3);
    EXPECT_EQ(text_of(samples, row, "fixed"), std::string(4 - digits.size(), '0') + digits);
  }
}

TEST(parquet, repeated_columns_need_no_list_around_them) {
  const dataset samples = open_parquet(path_of("repeated.parquet"));
  ASSERT_EQ(samples.size(), 3U);
  EXPECT_EQ(text_of(samples, 2, "plain"), "rrr");
  EXPECT_THAT(elements_of<std::int32_t>(samples.read(0, "numbers")), ElementsAre(1, 2));
  EXPECT_THAT(elements_of<std::int32_t>(samples.read(1, "numbers")), ElementsAre());
  EXPECT_THAT(elements_of<std::int32_t>(samples.read(0, "phone.number")), ElementsAre(7, 8));
  EXPECT_EQ(text_of(samples, 0, "words"), R"(["a","bb"])");
  EXPECT_EQ(text_of(samples, 1, "words"), "[]");
  EXPECT_EQ(text_of(samples, 0, "phone.kind"), R"(["x",null])");
  EXPECT_EQ(text_of(samples, 2, "phone.kind"), R"(["y"])");
}

TEST(parquet, a_table_without_columns_has_rows_and_no_fields) {
  const dataset samples = open_parquet(path_of("no-columns.parquet"));
  EXPECT_EQ(samples.size(), 3U);
  EXPECT_TRUE(samples.fields().empty());
}

TEST(thrift, structures_that_stand_too_deep_and_lists_longer_than_their_bytes_are_refused) {
  const std::string path = "made-up";
  const auto skipping = [&](const std::string& text) {
    return [&path, text] {
      datasets::cursor at(path, std::as_bytes(std::span(text)), 0);
      datasets::thrift_reader(at).skip(datasets::thrift_reader::type::structure);
    };
  };
  EXPECT_THAT(message_of(errc::format, skipping(std::string(100, '\x1c'))), HasSubstr("more than 64"));
  EXPECT_THAT(message_of(errc::format, skipping("\x19\xf5\xff\xff\xff\xff\x0f")),
              HasSubstr("more elements than there are bytes"));
  EXPECT_THAT(message_of(errc::format, skipping("\x15" + std::string(11, '\xff'))), HasSubstr("64 bits"));
  EXPECT_NO_THROW(skipping(std::string("\x15\x02\x19\x25\x02\x04\x18\x02hi\0", 11))());
}

TEST(snappy, a_block_that_repeats_itself_is_expanded_and_a_damaged_one_is_refused) {
  std::string block = std::string("\x14", 1) +
                      std::string(
                          "\x04"
                          "ab",
                          3) +
                      std::string("\x1d\x02", 2) + std::string("\x1e\x01\x00", 3);
  const auto expand = [](const std::string& from, std::size_t bytes) {
    std::string decoded(bytes, ' ');
    const auto reason =
        datasets::expand_snappy(std::as_bytes(std::span(from)), std::as_writable_bytes(std::span(decoded)));
    return reason ? "! " + *reason : decoded;
  };
  EXPECT_EQ(expand(block, 21), "! snappy data become 20 bytes where 21 were expected");
  // 2 bytes as they are, 11 from 2 behind, 8 from 1 behind: one more than there is room for.
  EXPECT_THAT(expand(block, 20), HasSubstr("damaged snappy data"));
  block[0] = '\x15';
  EXPECT_EQ(expand(block, 21), "ababababababaaaaaaaaa");
  for (std::size_t bytes = 0; bytes < block.size(); ++bytes) {
    EXPECT_THAT(expand(block.substr(0, bytes), 21), HasSubstr("damaged snappy data"));
  }
  EXPECT_THAT(expand(std::string("\x03\x05\x04", 3), 3), HasSubstr("damaged"));  // from before the first byte
}

}  // namespace
}  // namespace leat
